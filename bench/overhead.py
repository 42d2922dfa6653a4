"""What a capture costs the training: `python -m bench.overhead`.

A process for each framework trains in many short blocks of steps, and the kinds of profiling take turns, block by block
and each round in another order, so that a change of the machine's load meets all of them: none, the framework's own
profiler by its own calls, Stepscope, and Stepscope with more tracers.  Each figure compares the median steps of two
blocks of the same round; shown is the median over all rounds, with the interval that holds the true median in 95 of 100
such runs.  Starting, stopping and writing are not in the steps and not in these figures.

`--clock cpu` compares the processor time of the whole process instead, threads of profilers included: what others do on
the machine then hardly counts, and neither does waiting.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
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

ROUNDS, STEPS, WARM_UP = 40, 15, 3
DEVIATIONS = 1.96  # of a normal distribution, for 95 %
FRAMEWORKS = ("plain", "tensorflow", "jax", "torch")
TIMEOUT_S = 900

Step = Callable[[], object]
Clock = Callable[[], float]  # s
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}


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


def measure(framework: str, rounds: int, steps: int, clock: Clock) -> dict[str, list[float]]:
    """Median step in ms of each kind of profiling, one for each round."""
    step, more = globals()[framework]()
    kinds = [
        Profiling("none", nothing, nothing),
        *more,
        ours("Stepscope, annotations alone" if framework == "plain" else "Stepscope", system_interval_ms=0),
        ours("Stepscope with system counters"),
    ]
    found: dict[str, list[float]] = {kind.name: [] for kind in kinds}
    order = random.Random(rounds)
    for _ in range(rounds):
        for kind in order.sample(kinds, len(kinds)):
            kind.start()
            found[kind.name].append(_block(step, steps, clock))
            kind.stop()
            assert not session.is_running()
    return found


def _block(step: Step, steps: int, clock: Clock) -> float:
    times = []
    for number in range(steps + WARM_UP):
        begin = clock()
        with profiler.step(number):
            step()
        times.append(clock() - begin)
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


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, and the values between which the true one is: those whose ranks a fair coin tossed once for each
    value would fall between 95 times in 100."""
    ordered = sorted(values)
    aside = max(0, math.floor(len(ordered) / 2 - DEVIATIONS * math.sqrt(len(ordered)) / 2))
    return statistics.median(ordered), ordered[aside], ordered[-1 - aside]


def compared(name: str, steps: Sequence[float], base: str, others: Sequence[float]) -> str:
    """How much longer the steps of one kind of profiling are than those of another, in percent."""
    middle, low, high = interval([100 * (step / other - 1) for step, other in zip(steps, others, strict=True)])
    return f"    {name:32} over {base:10} {middle:+7.2f} %   ({low:+.2f} to {high:+.2f})"


def table(framework: str, found: dict[str, list[float]]) -> str:
    """Every kind of profiling against none, Stepscope against the native profiler, and the counters against none."""
    none, native = found["none"], found.get("native")
    lines = [f"{framework}: a step takes {statistics.median(none):.2f} ms without a profiler"]
    lines += [compared(name, steps, "none", none) for name, steps in found.items() if name != "none"]
    if native:
        lines.append(compared("Stepscope", found["Stepscope"], "native", native))
    alone = "Stepscope" if native else "Stepscope, annotations alone"
    lines.append(compared("system counters", found["Stepscope with system counters"], "without", found[alone]))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.overhead", description=__doc__)
    parser.add_argument("--only", choices=FRAMEWORKS, action="append")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--measure", choices=FRAMEWORKS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(measure(options.measure, options.rounds, options.steps, CLOCKS[options.clock])))
        return 0
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", **os.environ}
    for framework in options.only or FRAMEWORKS:
        command = [sys.executable, "-m", "bench.overhead", "--measure", framework]
        command += ["--rounds", str(options.rounds), "--steps", str(options.steps), "--clock", options.clock]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, env=environment, timeout=TIMEOUT_S, check=True
        )
        print(table(framework, json.loads(done.stdout.splitlines()[-1])), flush=True)
    off, on = annotations()
    print(f"annotate: {off:.0f} ns while nothing records, {on:.0f} ns while Stepscope's own tracer does")
    return 0


if __name__ == "__main__":
    sys.exit(main())
