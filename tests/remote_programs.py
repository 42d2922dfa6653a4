"""Small training jobs that can be captured over the network, each run as a process of its own.

    python remote_programs.py NAME

prints one JSON line with the ports where it can be captured: `ours` is Stepscope's server, `theirs` the framework's own.
Then it trains until its standard input is closed, and prints one more line: number, begin (ns since 1970) and duration
(ms) of every step by its own clock.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import stepscope as profiler

LONGEST_SECONDS = 120  # a job must not outlive the tests

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


def main(name: str) -> None:
    step, start_theirs = PROGRAMS[name]()
    step()
    ports = {"ours": profiler.server.start(0)}
    if start_theirs is not None:
        ports["theirs"] = free_port()
        server = start_theirs(ports["theirs"])  # JAX's serves only as long as somebody holds it  # noqa: F841
    print(json.dumps(ports), flush=True)
    print(json.dumps(_train(step)), flush=True)


def _train(step: Step) -> list[tuple[int, int, float]]:
    asked_to_end = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), asked_to_end.set()), daemon=True).start()
    steps = []
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end and not asked_to_end.is_set():
        begin_unix, begin = time.time_ns(), time.perf_counter()
        with profiler.step(len(steps)):
            time.sleep(0.01)
            step()
        steps.append((len(steps), begin_unix, (time.perf_counter() - begin) * 1e3))
    return steps


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main(sys.argv[1])
