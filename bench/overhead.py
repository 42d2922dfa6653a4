"""What a capture costs the training: `python -m bench.overhead`.

A process for each framework trains in blocks of steps, and the kinds of profiling take turns, block by block, so that a
change of the machine's load meets all of them: none, the framework's own profiler by its own calls, Stepscope, and
Stepscope with more tracers.  Each figure is the median step of a block over the median step of the block without a
profiler of the same round, and of these ratios the median over all rounds.  Starting, stopping and writing are not in
the steps and not in these figures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stepscope import capture as profiler
from stepscope.capture import session

ROUNDS, STEPS, WARM_UP = 7, 40, 5
FRAMEWORKS = ("plain", "tensorflow", "jax", "torch")
TIMEOUT_S = 900

Step = Callable[[], object]


@dataclass(frozen=True)
class Profiling:
    """One kind of profiling: its name, and what begins and ends it."""

    name: str
    start: Callable[[], object]
    stop: Callable[[], object]


def nothing() -> None:
    """No profiling."""


def ours(name: str, **options: Any) -> Profiling:
    """Stepscope with some options."""
    chosen = profiler.ProfilerOptions(strict=True, **options)
    return Profiling(name, lambda: profiler.start(tempfile.gettempdir(), chosen), lambda: profiler.stop(save=False))


def plain() -> tuple[Step, list[Profiling]]:
    """Pure Python: 300 calls of a small function."""

    def small(number: int) -> int:
        return sum(range(number % 400))

    def step() -> int:
        return sum(small(number) for number in range(300, 600))

    return step, [
        ours("python calls", system_interval_ms=0, python_tracer_level=1),
        ours("stack samples at 100 Hz", system_interval_ms=0, stack_samples_hz=100),
    ]


def tensorflow() -> tuple[Step, list[Profiling]]:
    """A tf.function of 20 ops."""
    import tensorflow as tf

    weights = tf.Variable(tf.random.normal((256, 256)) / 16)

    @tf.function
    def compiled() -> Any:
        for _ in tf.range(10):
            weights.assign(tf.tanh(weights @ weights))

    api = tf.profiler.experimental
    native = Profiling("native", lambda: api.start(tempfile.mkdtemp()), lambda: api.stop(save=False))
    return compiled, [native]


def jax() -> tuple[Step, list[Profiling]]:
    """A jitted function of 20 ops."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def compiled(weights: Any) -> Any:
        for _ in range(10):
            weights = jnp.tanh(weights @ weights)
        return weights

    weights = jnp.ones((256, 256)) / 256
    native = Profiling("native", lambda: jax.profiler.start_trace(tempfile.mkdtemp()), jax.profiler.stop_trace)
    return lambda: compiled(weights).block_until_ready(), [native]


def torch() -> tuple[Step, list[Profiling]]:
    """Forward and backward of 10 layers."""
    import torch

    torch.set_num_threads(1)  # a pool of threads on a busy machine waits for its slowest, whoever profiles
    weights = (torch.ones(256, 256) / 256).requires_grad_()
    running: list[Any] = []

    def step() -> None:
        values = weights
        for _ in range(10):
            values = torch.tanh(values @ weights)
        values.sum().backward()

    def start() -> None:
        running.append(torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]))
        running[-1].start()

    return step, [Profiling("native", start, lambda: running.pop().stop())]


def measure(framework: str, rounds: int, steps: int) -> dict[str, list[float]]:
    """Median step in ms of each kind of profiling, one for each round."""
    step, more = globals()[framework]()
    kinds = [
        Profiling("none", nothing, nothing),
        *more,
        ours("Stepscope, annotations alone" if framework == "plain" else "Stepscope", system_interval_ms=0),
        ours("Stepscope with system counters"),
    ]
    found: dict[str, list[float]] = {kind.name: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            kind.start()
            found[kind.name].append(_block(step, steps))
            kind.stop()
            assert not session.is_running()
    return found


def _block(step: Step, steps: int) -> float:
    times = []
    for number in range(steps + WARM_UP):
        begin = time.perf_counter()
        with profiler.step(number):
            step()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times[WARM_UP:])


def annotations(count: int = 50_000, rounds: int = 5) -> tuple[float, float]:
    """Processor time of one annotation in ns, while nothing records and while Stepscope's own tracer does."""

    def one() -> float:
        begin = time.thread_time_ns()
        for _ in range(count):
            with profiler.annotate("load"):
                pass
        annotated = time.thread_time_ns()
        for _ in range(count):
            pass
        return (annotated - begin - (time.thread_time_ns() - annotated)) / count

    off = min(one() for _ in range(rounds))
    profiler.start(tempfile.gettempdir(), profiler.ProfilerOptions(strict=True, system_interval_ms=0))
    on = min(one() for _ in range(rounds))
    profiler.stop(save=False)
    return off, on


def table(framework: str, found: dict[str, list[float]]) -> str:
    """Ratios to no profiling, with the middle half of the rounds."""
    none = found["none"]
    lines = [f"{framework}: a step takes {statistics.median(none):.2f} ms without a profiler"]
    for name, steps in found.items():
        ratios = [step / plain for step, plain in zip(steps, none, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        lines.append(f"    {name:32} {middle:6.3f}   ({low:.3f} to {high:.3f})")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.overhead", description=__doc__)
    parser.add_argument("--only", choices=FRAMEWORKS, action="append")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--measure", choices=FRAMEWORKS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(measure(options.measure, options.rounds, options.steps)))
        return 0
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", **os.environ}
    for framework in options.only or FRAMEWORKS:
        command = [sys.executable, "-m", "bench.overhead", "--measure", framework]
        command += ["--rounds", str(options.rounds), "--steps", str(options.steps)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, env=environment, timeout=TIMEOUT_S, check=True
        )
        print(table(framework, json.loads(done.stdout.splitlines()[-1])), flush=True)
    off, on = annotations()
    print(f"annotate: {off:.0f} ns while nothing records, {on:.0f} ns while Stepscope's own tracer does")
    return 0


if __name__ == "__main__":
    sys.exit(main())
