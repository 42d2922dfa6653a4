"""Small training jobs that can be captured over the network, each run as a process of its own.

    python remote_programs.py NAME CLOCK

prints one JSON line with the ports where it can be captured: `ours` is Stepscope's server, `theirs` the framework's.
Then it trains until its standard input is closed, and writes a line to the file CLOCK for every step: its number, and
by the loop's own clock, in ns, the times before and after its mark starts, and before and after it ends.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ports import free_port

import stepscope as profiler

LONGEST_SECONDS = 600  # for one whose tests were killed so that its input stays open

Step = Callable[[], object]


def plain() -> tuple[Step, Callable[[int], Any] | None]:
    """No framework."""
    return lambda: sum(range(20_000)), None


def tensorflow() -> tuple[Step, Callable[[int], Any] | None]:
    """A tf.function; TensorFlow's server beside ours."""
    import tensorflow as tf

    weights = tf.Variable(tf.random.normal((128, 128)))
    compiled = tf.function(lambda: weights.assign(tf.tanh(weights @ weights)))
    return lambda: compiled().numpy(), tf.profiler.experimental.server.start


def jax() -> tuple[Step, Callable[[int], Any] | None]:
    """A jitted function; JAX's server beside ours."""
    import jax
    import jax.numpy as jnp

    compiled = jax.jit(lambda weights: jnp.tanh(weights @ weights))
    weights = jnp.ones((128, 128))
    return lambda: compiled(weights).block_until_ready(), jax.profiler.start_server


def torch() -> tuple[Step, Callable[[int], Any] | None]:
    """Autograd."""
    import torch

    torch.set_num_threads(1)
    weights = torch.ones(128, 128, requires_grad=True)
    return lambda: torch.tanh(weights @ weights).sum().backward(), None


PROGRAMS = {program.__name__: program for program in (plain, tensorflow, jax, torch)}


def main(name: str, clock: Path) -> None:
    step, start_theirs = PROGRAMS[name]()
    step()
    ports = {"ours": profiler.server.start(0)}
    if start_theirs is not None:
        ports["theirs"] = free_port()
        server = start_theirs(ports["theirs"])  # noqa: F841 - JAX's serves only as long as somebody holds it
    print(json.dumps(ports), flush=True)
    _train(step, clock)


def _train(step: Step, clock: Path) -> None:
    asked_to_end = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), asked_to_end.set()), daemon=True).start()
    end = time.monotonic() + LONGEST_SECONDS
    with clock.open("w", buffering=1) as file:
        for number in itertools.count():
            if time.monotonic() > end or asked_to_end.is_set():
                return
            around = time.perf_counter_ns()
            with profiler.step(number):
                inside = time.perf_counter_ns()
                time.sleep(0.01)
                step()
                ends = time.perf_counter_ns()
            file.write(f"{number} {around} {inside} {ends} {time.perf_counter_ns()}\n")


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main(sys.argv[1], Path(sys.argv[2]))
