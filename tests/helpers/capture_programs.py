"""Small training loops that profile themselves with Stepscope, each run as a process of its own.

    python capture_programs.py NAME LOGDIR

prints one JSON line: the profile's path, where a capture by the framework's own calls lies that saw the same marks, and
what Stepscope said when asked to start during that one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope import capture as profiler

STEPS = 6
FIRST = 100

Report = dict[str, Any]


def _train(step: Callable[[], object]) -> None:
    """Marks and runs STEPS steps, numbered from FIRST."""
    for i in range(FIRST, FIRST + STEPS):
        with profiler.Trace("train", step_num=i, _r=1) as mark:
            with profiler.annotate("load batch"):
                time.sleep(0.002)
            step()
            mark.set_metadata(batch_size=32)


def _busy(logdir: str) -> str | None:
    """What starting says while somebody else captures."""
    profiler.start(logdir)
    error = profiler.last_error()
    if error is None:
        profiler.stop(save=False)
    return error and str(error)


def tensorflow(logdir: str) -> Report:
    """A tf.function; start and stop."""
    import tensorflow as tf

    weights = tf.Variable(tf.random.normal((256, 256)))
    compiled = tf.function(lambda: weights.assign(tf.tanh(weights @ weights)))

    def step() -> None:
        compiled().numpy()

    step()
    profiler.start(logdir, tf.profiler.experimental.ProfilerOptions(host_tracer_level=3))
    _train(step)
    path = profiler.stop()
    tf.profiler.experimental.start(logdir + "/foreign")
    _train(step)
    busy = _busy(logdir)
    tf.profiler.experimental.stop()
    return {"path": path, "foreign": next(Path(logdir, "foreign").rglob("*.xplane.pb")), "busy": busy}


def jax(logdir: str) -> Report:
    """A jitted function; Profile."""
    import jax
    import jax.numpy as jnp

    compiled = jax.jit(lambda weights: jnp.tanh(weights @ weights))
    weights = jnp.ones((256, 256))

    def step() -> None:
        compiled(weights).block_until_ready()

    step()
    with profiler.Profile(logdir) as profile:
        _train(step)
    jax.profiler.start_trace(logdir + "/foreign")
    _train(step)
    busy = _busy(logdir)
    jax.profiler.stop_trace()
    foreign = next(Path(logdir, "foreign").rglob("*.xplane.pb"))
    return {"path": profile.path, "foreign": foreign, "busy": busy}


def torch(logdir: str) -> Report:
    """Autograd; Profile."""
    import torch

    weights = torch.ones(256, 256, requires_grad=True)

    def step() -> None:
        torch.tanh(weights @ weights).sum().backward()

    step()
    with profiler.Profile(logdir) as profile:
        _train(step)
    foreign = Path(logdir, "foreign.pt.trace.json")
    with torch.profiler.profile() as native:
        _train(step)
        busy = _busy(logdir)
    native.export_chrome_trace(str(foreign))
    return {"path": profile.path, "foreign": foreign, "busy": busy}


PROGRAMS = {program.__name__: program for program in (tensorflow, jax, torch)}


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    print(json.dumps(PROGRAMS[sys.argv[1]](sys.argv[2]), default=str))
