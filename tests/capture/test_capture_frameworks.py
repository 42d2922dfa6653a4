"""Captures of real training loops on TensorFlow, JAX and PyTorch."""

from __future__ import annotations

import json
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

import capture_programs
import numpy as np
import pytest
from warm_python import WARM

import stepscope
from stepscope.formats.base import require_format
from stepscope.model import EventKind, HostTrace

STEP_NUMBERS = list(range(capture_programs.FIRST, capture_programs.FIRST + capture_programs.STEPS))


@dataclass(frozen=True)
class Run:
    """What one of the programs said, and where it was told to write."""

    framework: str
    logdir: Path
    path: Path
    foreign: Path
    busy: str | None


@pytest.fixture(scope="module", params=["tensorflow", "jax", "torch"])
def run(request, tmp_path_factory) -> Run:
    logdir = tmp_path_factory.mktemp(request.param)
    words = [str(capture_programs.__file__), request.param, str(logdir)]
    done = WARM.run(request.param, words, os.environ, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    paths = {name: Path(said.pop(name)) for name in ("path", "foreign")}
    return Run(request.param, logdir, **paths, **said)


def read(path: Path) -> HostTrace:
    return require_format(path.name, str(path)).read(path.read_bytes(), str(path), "host")


def marks(trace: HostTrace) -> dict[int, float]:
    """Step number -> duration in ms."""
    rows = np.flatnonzero(trace.events.kind == EventKind.STEP_MARK)
    numbers = trace.stat_ints(["step_num"])[rows].tolist()
    return dict(zip(numbers, (trace.events.duration_ps[rows] / 1e9).tolist(), strict=True))


def test_the_frameworks_own_events_are_in_it(run):
    trace = read(run.path)

    assert any("tanh" in trace.name_of(row).lower() for row in range(len(trace.events)))
    assert trace.framework == {"torch": "pytorch"}.get(run.framework, run.framework)


def test_annotations_are_in_it(run):
    trace = read(run.path)

    assert [trace.name_of(row) for row in range(len(trace.events))].count("load batch") == capture_programs.STEPS


def test_metadata_set_late_is_in_it(run):
    if run.framework == "torch":
        pytest.skip("PyTorch's profiler has no place for it")
    trace = read(run.path)
    steps = np.flatnonzero(trace.events.kind == EventKind.STEP_MARK)

    assert {trace.stats_of_event(row)["batch_size"] for row in steps} == {32}


def test_a_capture_that_somebody_else_started_sees_the_marks(run):
    assert list(marks(read(run.foreign))) == STEP_NUMBERS


def test_starting_during_somebody_elses_capture_is_reported(run):
    assert run.busy is not None
    assert "starting the capture" in run.busy or "already running" in run.busy


def test_pytorchs_own_file_tells_the_same(run):
    if run.framework != "torch":
        pytest.skip("only PyTorch's profile is converted")
    kept = run.path.with_name(run.path.name.replace(".xplane.pb", ".pt.trace.json.gz"))

    assert marks(read(kept)) == pytest.approx(marks(read(run.path)))


INSIDE_A_FUNCTION = """
import sys, traceback
import tensorflow as tf
import stepscope
from stepscope.capture import files

def rewritten():
    return [frame.name for frame in traceback.extract_stack() if "autograph" in frame.filename]

real, seen = files.open_target, []
files.open_target = lambda logdir: seen.append(rewritten()) or real(logdir)

@tf.function
def train(x):
    profiler = stepscope.Profiler(sys.argv[1])
    profiler.start()
    x = tf.tanh(x)
    profiler.stop()
    return x

seen.append([])
train(tf.ones((4, 4)))
print([name for name in seen[-1] if "start" in name or "begin" in name])
"""


def test_a_capture_inside_a_tf_function_is_not_rewritten_by_autograph(tmp_path):
    script = tmp_path / "train.py"  # AutoGraph reads the source
    script.write_text(INSIDE_A_FUNCTION)

    done = WARM.run("tensorflow", [str(script), str(tmp_path)], os.environ, timeout=300)

    assert done.stdout == "[]\n", done.stderr
    assert len(list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))) == 1


RUNS_AHEAD = """
import sys, jax, jax.numpy as jnp, stepscope

step = jax.jit(lambda x: jnp.tanh(x @ x))
x = step(jnp.ones((700, 700))).block_until_ready()
with stepscope.Profile(sys.argv[1]):
    for number in range(8):  # each returns long before its work has run, and nothing waits
        with stepscope.step(number):
            x = step(x)
"""


def test_steps_of_a_jax_loop_that_waits_for_nothing_are_as_long_as_their_work(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(RUNS_AHEAD)

    done = WARM.run("jax", [str(script), str(tmp_path / "logs")], os.environ, timeout=300)
    assert done.returncode == 0, done.stderr

    steps = stepscope.load(tmp_path / "logs").steps().rows
    assert len(steps) == 8
    assert all(row["complete"] for row in steps)
    assert all(row["host_compute"] > 0 for row in steps)


MANY_THREADS = """
import sys, threading
import jax, jax.numpy as jnp, stepscope

end = threading.Event()

def work():
    while not end.wait(0.2):
        jnp.ones(4) + 1

def refuse():
    raise AssertionError("JAX exported")

jax.profiler.stop_trace = refuse
threads = [threading.Thread(target=work) for _ in range(300)]
for thread in threads:
    thread.start()
with stepscope.Profile(sys.argv[1], stepscope.ProfilerOptions(python_tracer_level=1, strict=True)):
    for number in range(5):
        with stepscope.step(number):
            jnp.ones(4) + 1
            end.wait(0.1)
end.set()
"""


def test_with_hundreds_of_threads_jax_writes_its_profile_once(tmp_path):
    """Its own export writes it a second time, as text, which took four fifths of the seconds of `stop`."""
    script = tmp_path / "train.py"
    script.write_text(MANY_THREADS)

    done = WARM.run("jax", [str(script), str(tmp_path / "logs")], os.environ, timeout=300)
    assert done.returncode == 0, done.stderr

    profile = stepscope.load(tmp_path / "logs")
    assert len(profile.steps().rows) == 5
    assert len(profile.trace().lines) > 300


def test_the_profile_lies_where_tensorboard_looks(run):
    folder, host = run.path.parent, re.sub(r"[^\w.-]", "_", socket.gethostname())

    assert run.path.name == f"{host}.xplane.pb"
    assert folder.parent == run.logdir / "plugins" / "profile"
    assert re.fullmatch(r"\d{4}(_\d\d){5}", folder.name)
    beside = {f"{host}.pt.trace.json.gz"} if run.framework == "torch" else set()
    assert {path.name for path in folder.iterdir()} == {f"{host}.xplane.pb"} | beside
