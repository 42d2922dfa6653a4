"""Fresh profiles, recorded by TensorFlow, Keras, JAX and PyTorch with their own profilers while the tests run.

Each function runs one loop of `framework_programs` in a process of its own and returns where the profile lies and what
the loop's own clock said.  The fixtures of the same names with `_capture` at the end record once a test run, however
many workers share it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import framework_programs
import numpy as np
import pytest
import torch_programs
from calm import record_calmly
from places import folder_of_run
from warm_python import WARM

TIMEOUT_S = 600  # of a machine that does other things as well
# The fixtures of one marked capture of each framework, for tests that take them all.
FRESH = ("tf_slow_map_capture", "tf_keras_fit_capture", "jax_marked_capture", "torch_marked_capture")


@dataclass(frozen=True)
class FrameworkCapture:
    """A profile and the truth about it.

    Attributes:
        logdir: the folder that the framework was told to write to.
        paths: the profile files below it (`*.xplane.pb`, or `*.pt.trace.json`), sorted.
        step_ms: what the loop's own clock said for every profiled step, in order, read around its mark.
        least_ms: the same, read inside the mark; empty where a loop has no such clock.
    """

    logdir: Path
    paths: tuple[Path, ...]
    step_ms: tuple[float, ...]
    least_ms: tuple[float, ...] = ()

    @property
    def is_regular(self) -> bool:
        """Whether the loop had a rhythm: its quartiles lie close together, and few steps far off."""
        low, median, high = np.percentile(self.step_ms, (25, 50, 75))
        usual = [median / 2 <= step <= 2 * median for step in self.step_ms]
        return bool(high - low <= median / 3 and sum(usual) >= 0.8 * len(usual))


def _capture(
    name: str,
    framework: str,
    logdir: Path,
    programs: ModuleType = framework_programs,
    is_calm: Callable[[FrameworkCapture], bool] = lambda capture: True,
) -> FrameworkCapture:
    """One program's capture; `is_calm` says whether a busy machine left it what it is meant to show."""
    return record_calmly(lambda: _record(name, framework, logdir, programs), is_calm)


def _record(name: str, framework: str, logdir: Path, programs: ModuleType) -> FrameworkCapture:
    shutil.rmtree(logdir, ignore_errors=True)
    words = [str(programs.__file__), name, str(logdir)]
    done = WARM.run(framework, words, os.environ, TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{name} could not record a profile (exit {done.returncode}):\n{done.stderr[-3000:]}")
    return _found(logdir, json.loads(done.stdout.splitlines()[-1]))


def _with_rhythm(name: str, framework: str, logdir: Path) -> FrameworkCapture:
    """A capture whose steps need a rhythm to be what they are meant to be."""
    return _capture(name, framework, logdir, is_calm=lambda capture: capture.is_regular)


def skip_unless_regular(capture: FrameworkCapture) -> None:
    """Neither a rhythm nor a healthy input is there to be found if a busy machine took both from the loop."""
    if not capture.is_regular:
        pytest.skip(f"the machine is too busy for a regular loop: its steps took {capture.step_ms} ms")


def _found(logdir: Path, clock: dict[str, list[float]]) -> FrameworkCapture:
    paths = sorted([*logdir.rglob("*.xplane.pb"), *logdir.rglob("*.pt.trace.json")])
    if not paths:
        raise RuntimeError(f"the framework wrote no profile below {logdir}")
    return FrameworkCapture(logdir, tuple(paths), tuple(clock["step_ms"]), tuple(clock.get("least_ms", ())))


def tf_slow_map(logdir: Path) -> FrameworkCapture:
    """TensorFlow, 10 marked steps, input-bound: a map of 60 ms feeds a step of a few, without prefetch."""
    return _capture("tf_slow_map", "tensorflow", logdir)


def tf_healthy(logdir: Path) -> FrameworkCapture:
    """TensorFlow, 10 marked steps, prefetched input that costs nothing."""
    return _with_rhythm("tf_healthy", "tensorflow", logdir)


def tf_unmarked(logdir: Path) -> FrameworkCapture:
    """TensorFlow, 10 calls of a tf.function without a mark."""
    return _with_rhythm("tf_unmarked", "tensorflow", logdir)


def tf_keras_fit(logdir: Path) -> FrameworkCapture:
    """Keras Model.fit, 10 batches marked `Profiled batch` by its TensorBoard callback."""
    return _capture("tf_keras_fit", "tensorflow", logdir)


def jax_marked(logdir: Path) -> FrameworkCapture:
    """JAX, 10 steps in StepTraceAnnotation."""
    return _capture("jax_marked", "jax", logdir)


def jax_unmarked(logdir: Path) -> FrameworkCapture:
    """JAX, 10 calls of a jitted function without a mark."""
    return _with_rhythm("jax_unmarked", "jax", logdir)


def torch_marked(logdir: Path) -> FrameworkCapture:
    """PyTorch, 10 steps marked `ProfilerStep#N`, as Kineto JSON."""
    return _capture("torch_marked", "torch", logdir)


def torch_ddp(logdir: Path) -> FrameworkCapture:
    """PyTorch, two processes that train with gloo; the second sleeps 150 ms in each of the four steps."""
    return _capture("ddp", "torch", logdir, torch_programs)


def torch_loader_alone(logdir: Path) -> FrameworkCapture:
    """PyTorch, four steps whose DataLoader makes its items itself; the clock is that of `next`."""
    return _capture("loader_alone", "torch", logdir, torch_programs)


def torch_loader_workers(logdir: Path) -> FrameworkCapture:
    """The same with two worker processes."""
    return _capture("loader_workers", "torch", logdir, torch_programs)


def torch_epoch(logdir: Path) -> FrameworkCapture:
    """PyTorch, a whole pass over a DataLoader with worker processes, with stacks; the clock is that of `next`."""
    return _capture("epoch", "torch", logdir, torch_programs)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock that the system takes back when a worker dies."""
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _once(factory: pytest.TempPathFactory, record: Callable[[Path], FrameworkCapture]) -> FrameworkCapture:
    """The capture of `record`, made by whichever worker asks first."""
    folder = folder_of_run(factory) / "captures" / record.__name__
    folder.mkdir(parents=True, exist_ok=True)
    clock, logdir = folder / "clock.json", folder / "logdir"
    with _locked(folder / "lock"):
        if clock.exists():
            return _found(logdir, json.loads(clock.read_text()))
        capture = record(logdir)
        clock.write_text(json.dumps({"step_ms": capture.step_ms, "least_ms": capture.least_ms}))
        return capture


def _fixture(record: Callable[[Path], FrameworkCapture]) -> Any:
    """The fixture of a capture; its name is that of the function that records it, and `_capture`."""

    @pytest.fixture(scope="session", name=f"{record.__name__}_capture")
    def capture(tmp_path_factory: pytest.TempPathFactory) -> FrameworkCapture:
        return _once(tmp_path_factory, record)

    return capture


tf_slow_map_capture = _fixture(tf_slow_map)
tf_healthy_capture = _fixture(tf_healthy)
tf_unmarked_capture = _fixture(tf_unmarked)
tf_keras_fit_capture = _fixture(tf_keras_fit)
jax_marked_capture = _fixture(jax_marked)
jax_unmarked_capture = _fixture(jax_unmarked)
torch_marked_capture = _fixture(torch_marked)
torch_ddp_capture = _fixture(torch_ddp)
torch_loader_alone_capture = _fixture(torch_loader_alone)
torch_loader_workers_capture = _fixture(torch_loader_workers)
torch_epoch_capture = _fixture(torch_epoch)
