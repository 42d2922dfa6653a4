"""Measures what a capture costs the training: `python -m bench.overhead` writes bench/OVERHEAD.md.

A process for each framework trains in many short blocks of steps.  The kinds of profiling take turns: none, the
framework's own profiler by its own calls and with the same levels and options, Stepscope, and Stepscope with more
tracers.  A round runs all of them in a random order and then in the reverse of that order, so that a machine that gets
slower or faster favours none.  Every figure compares two kinds within the same round.  The tables show the
Hodges-Lehmann estimate over all rounds with its 95 % interval (the signed-rank test's), which a few disturbed rounds do
not change.

Two clocks are read: the elapsed time, as the median step of a block, and the processor time of the whole process with
all its threads, over all steps of a block.  Other load on the machine hardly changes the second.  Starting, stopping
and writing count in neither.

The counters of the system are sampled four times per second, which is less than once in such a block, and their cost is
far too small to be seen.  So they are measured separately: without any profiler, where a step is shortest and their
share largest, in blocks of half a second, by the mean step, and sampled every 20 ms.  The tables show the part of the
difference that samples at the usual rate would make.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import stepscope
from bench.report import describe_machine
from stepscope import capture as profiler
from stepscope.capture.recorder import RECORDER
from stepscope.capture.tracers import system

SECONDS, STEPS, WARM_UP = 100.0, 10, 2
FEWEST_ROUNDS = 5
DEVIATIONS = 1.96  # of a normal distribution, for 95 %
FRAMEWORKS = ("plain", "tensorflow", "jax", "torch")
SERVERS = ("stepscope", "tensorflow", "jax")
CLOCKS = ("wall", "cpu")
LONG_BLOCK_S, OFTEN_MS = 0.5, 20
DEFAULTS = "native, its defaults"
COUNTERS, ALONE, SAMPLES = "system counters", "no counters", "samples_per_s"
MARK = "annotation_ns"
TIMEOUT_S = 900
RESULTS = Path(__file__).with_name("OVERHEAD.md")

Step = Callable[[], object]
Found = dict[str, dict[str, list[float]]]  # kind of profiling -> clock -> ms of a step, one for each round


@dataclass(frozen=True)
class Profiling:
    """One kind of profiling: its name, the functions that start and stop it, and whether steps are marked for it."""

    name: str
    start: Callable[[], object]
    stop: Callable[[], object]
    has_marks: bool = False


_OF_ONE_THREAD = 6  # Linux's number of the clock that counts one thread's processor time


def processor_time_ns(number: int) -> int:
    """How long a thread has run, by the system's number of it.  Raises OSError if it has ended; only Linux has it."""
    return time.clock_gettime_ns(~number << 3 | _OF_ONE_THREAD)


def profile_nothing() -> None:
    """Profiles nothing."""


def make_profiling(name: str, **options: Any) -> Profiling:
    """Stepscope with some options."""
    chosen = profiler.ProfilerOptions(strict=True, **options)
    return Profiling(name, lambda: profiler.start(_folder(), chosen), lambda: profiler.stop(save=False))


def make_watch() -> Profiling:
    """A watch, which follows marked steps and keeps a ring."""
    running: list[Any] = []

    def start() -> None:
        running.append(stepscope.watch(_folder(), window_every=0, window_steps=0))

    return Profiling("Stepscope, watching", start, lambda: running.pop().stop(), has_marks=True)


def mark_steps(step: Step) -> Step:
    """The same step, marked."""
    numbers = itertools.count()

    def run() -> None:
        with stepscope.step(next(numbers)):
            step()

    return run


def _folder() -> str:
    """A folder for profiles of this process, inside the folder that `main` removes."""
    return tempfile.mkdtemp(dir=os.environ.get("STEPSCOPE_BENCH_OVERHEAD"))


def plain() -> tuple[Step, list[Profiling]]:
    """Pure Python: 300 calls of a small function."""

    def small(number: int) -> int:
        return sum(range(number % 400))

    def step() -> int:
        return sum(small(number) for number in range(300, 600))

    return step, [
        make_profiling("python calls", system_interval_ms=0, python_tracer_level=1),
        make_profiling("stack samples at 100 Hz", system_interval_ms=0, stack_samples_hz=100),
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
    native = Profiling("native", lambda: api.start(_folder()), lambda: api.stop(save=False))
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
    levels = jax.profiler.ProfileOptions()
    levels.host_tracer_level, levels.python_tracer_level = 2, 0  # Stepscope's; by itself JAX would trace Python as well

    def start() -> None:
        jax.profiler.start_trace(_folder(), profiler_options=levels)

    native = Profiling("native", start, jax.profiler.stop_trace)
    return lambda: compiled(weights).block_until_ready(), [native]


def torch() -> tuple[Step, list[Profiling]]:
    """Forward and backward of 10 layers."""
    import torch

    torch.set_num_threads(1)  # on a busy machine a pool of threads waits for its slowest, with any profiler
    weights = (torch.ones(256, 256) / 256).requires_grad_()
    running: list[Any] = []

    def step() -> None:
        values = weights
        for _ in range(10):
            values = torch.tanh(values @ weights)
        values.sum().backward()

    def native(name: str, **options: Any) -> Profiling:
        def start() -> None:
            running.append(torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options))
            running[-1].start()

        return Profiling(name, start, lambda: running.pop().stop())

    # As Stepscope records: sizes of operands, on all threads.  PyTorch's own defaults are neither.
    everywhere = torch._C._profiler._ExperimentalConfig(profile_all_threads=True, trace_only=True)
    return step, [native("native", record_shapes=True, experimental_config=everywhere), native(DEFAULTS)]


def list_kinds(framework: str) -> tuple[Step, list[Profiling]]:
    """A training step, and the kinds of profiling that are compared."""
    step, more = globals()[framework]()
    return step, [
        Profiling("none", profile_nothing, profile_nothing),
        *more,
        make_profiling("Stepscope, annotations alone" if framework == "plain" else "Stepscope", system_interval_ms=0),
        make_watch(),
    ]


def measure_framework(framework: str, seconds: float, steps: int) -> Found:
    """The time of a step with each kind of profiling, round by round."""
    step, kinds = list_kinds(framework)
    found: Found = {kind.name: {clock: [] for clock in CLOCKS} for kind in kinds}
    order = random.Random(steps)
    end = time.monotonic() + seconds
    rounds = 0
    while rounds < FEWEST_ROUNDS or time.monotonic() < end:
        rounds += 1
        turn = order.sample(kinds, len(kinds))
        blocks: dict[str, list[dict[str, float]]] = {kind.name: [] for kind in kinds}
        for kind in [*turn, *reversed(turn)]:
            kind.start()
            blocks[kind.name].append(_time_block(mark_steps(step) if kind.has_marks else step, steps))
            kind.stop()
            assert not RECORDER.is_running()
        for name, (there, back) in blocks.items():
            for clock in CLOCKS:
                found[name][clock].append(math.sqrt(there[clock] * back[clock]))
    for kind in kinds:
        kind.start()
        found[kind.name][MARK] = [measure_annotation_ns()]
        kind.stop()
    return found | measure_counters(step, seconds)


def measure_counters(step: Step, seconds: float) -> Found:
    """The mean time of a step with and without the counters of the system, and the samples taken per second."""
    found: Found = {name: {clock: [] for clock in CLOCKS} for name in (ALONE, COUNTERS)}
    options = profiler.ProfilerOptions(system_interval_ms=OFTEN_MS)
    system.MOST_SHARE = 1.0  # or it would not sample as often
    order = random.Random(OFTEN_MS)
    end = time.monotonic() + seconds
    moments: set[int] = set()
    sampled_s = 0.0
    while len(found[ALONE]["wall"]) < FEWEST_ROUNDS or time.monotonic() < end:
        for name in order.sample((ALONE, COUNTERS), 2):
            tracer = system.SystemTracer()
            if name == COUNTERS:
                tracer.start(options, time.perf_counter_ns)
            begin = time.perf_counter()
            for clock, value in _time_long_block(step).items():
                found[name][clock].append(value)
            if name == COUNTERS:
                sampled_s += time.perf_counter() - begin
                tracer.stop()
                moments |= {moment for chunk in tracer.drain() for moment in chunk.begin}
    found[COUNTERS][SAMPLES] = [len(moments) / sampled_s]
    return found


def _time_long_block(step: Step) -> dict[str, float]:
    """The mean elapsed time and processor time of a step, in ms."""
    for _ in range(WARM_UP):
        step()
    count, used, begin = 0, time.process_time(), time.perf_counter()
    while (passed := time.perf_counter() - begin) < LONG_BLOCK_S:
        step()
        count += 1
    return {"wall": 1e3 * passed / count, "cpu": 1e3 * (time.process_time() - used) / count}


def _time_block(step: Step, steps: int) -> dict[str, float]:
    """The median elapsed time and the mean processor time of a step, in ms."""
    times = []
    began = 0.0
    for number in range(steps + WARM_UP):
        if number == WARM_UP:
            began = time.process_time()
        begin = time.perf_counter()
        with profiler.step(number):
            step()
        times.append(time.perf_counter() - begin)
    used = time.process_time() - began
    return {"wall": 1e3 * statistics.median(times[WARM_UP:]), "cpu": max(1e3 * used / steps, 1e-6)}


def measure_annotation_ns(count: int = 10_000, rounds: int = 9) -> float:
    """The processor time of one annotation with the current profiler; the least of some rounds."""

    def one() -> float:
        begin = time.thread_time_ns()
        for _ in range(count):
            with profiler.annotate("load"):
                pass
        annotated = time.thread_time_ns()
        for _ in range(count):
            pass
        return (annotated - begin - (time.thread_time_ns() - annotated)) / count

    profiler.step(0)  # Stepscope notices a capture that it did not start at a step mark
    return min(one() for _ in range(rounds))


def measure_own_threads(seconds: float) -> tuple[int, float]:
    """How many threads Stepscope has while a capture runs, and their processor time in percent of one core."""
    before = set(Path("/proc/self/task").iterdir())
    profiler.start(_folder(), profiler.ProfilerOptions(strict=True))
    time.sleep(1)  # the first samples cost more
    own = [int(task.name) for task in set(Path("/proc/self/task").iterdir()) - before]
    begin, began = time.perf_counter(), sum(map(processor_time_ns, own))
    time.sleep(seconds)
    passed = time.perf_counter() - begin
    used = sum(map(processor_time_ns, own)) - began
    profiler.stop(save=False)
    return len(own), used / 1e7 / passed


def start_server(whose: str) -> None:
    """Starts a profiler server in this process."""
    if whose == "tensorflow":
        import tensorflow as tf

        tf.profiler.experimental.server.start(free_port())
    elif whose == "jax":
        import jax

        jax.profiler.start_server(free_port())
    else:
        profiler.server.start(0, address="localhost", strict=True)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("localhost", 0)) as taken:
        return int(taken.getsockname()[1])


def measure_idle_server(whose: str, seconds: float) -> float:
    """Processor time of this process while its server waits, in percent of one core."""
    start_server(whose)
    time.sleep(1)
    began, begin = time.process_time(), time.perf_counter()
    time.sleep(seconds)
    return 100 * (time.process_time() - began) / (time.perf_counter() - begin)


@dataclass(frozen=True)
class Difference:
    """How much longer a step is, in percent, with the bounds of the 95 % interval."""

    percent: float
    low: float
    high: float

    def verdict(self, limit: float) -> str:
        """Whether a step is longer by no more than a limit, if the interval decides it."""
        if self.high <= limit:
            return "yes"
        return "no" if self.low > limit else "not decided"

    def scaled(self, part: float) -> Difference:
        """The difference, multiplied by a factor."""
        return Difference(part * self.percent, part * self.low, part * self.high)


def estimate_difference(steps: Sequence[float], others: Sequence[float]) -> Difference:
    """The Hodges-Lehmann estimate of the ratio of two kinds, round by round, and the signed-rank test's interval."""
    ratios = [math.log(step / other) for step, other in zip(steps, others, strict=True)]
    count = len(ratios)
    means = sorted((ratios[i] + ratios[j]) / 2 for i in range(count) for j in range(i, count))
    spread = DEVIATIONS * math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    aside = max(0, math.floor(len(means) / 2 - spread))
    middle, low, high = (100 * math.expm1(each) for each in (statistics.median(means), means[aside], means[-1 - aside]))
    return Difference(middle, low, high)


def table_rows(framework: str, found: Found) -> list[str]:
    """The table's rows: each kind compared with none, Stepscope with the native profiler, the counters with none."""
    short = [name for name in found if name not in ("none", ALONE, COUNTERS)]
    made = [_table_row(framework, found, name, "none") for name in short]
    if "native" in found:
        made.append(_table_row(framework, found, "Stepscope", "native", 1.0))
    if DEFAULTS in found:
        made.append(_table_row(framework, found, "Stepscope", DEFAULTS))
    usual = 1000 / profiler.ProfilerOptions().system_interval_ms
    return [*made, _table_row(framework, found, COUNTERS, ALONE, 0.5, usual / found[COUNTERS][SAMPLES][0])]


def _table_row(
    framework: str, found: Found, name: str, base: str, limit: float | None = None, part: float = 1.0
) -> str:
    cells = []
    verdict = ""
    for clock in CLOCKS:
        over = estimate_difference(found[name][clock], found[base][clock]).scaled(part)
        cells.append(f"{over.percent:+.2f} % ({over.low:+.2f} to {over.high:+.2f})")
        if limit is not None:
            verdict += f"{', ' if verdict else f'<= {limit:g} %: '}{clock} {over.verdict(limit)}"
    return f"| {framework} | {name} | {base} | {' | '.join(cells)} | {verdict} |"


def make_page(measured: dict[str, Found], seconds: float) -> str:
    """All results as Markdown."""
    lines = [
        "# Cost of capturing\n",
        f"Written by `python -m bench.overhead` on {date.today().isoformat()}.\n",
        f"- Machine: {describe_machine()}{_load_text()}.",
        f"- Versions: Python {sys.version.split()[0]}, {', '.join(_versions(measured))}.",
        "- How: see the head of `bench/overhead.py`. Percent by which a step is longer, with the 95 % interval.",
    ]
    lines += [_framework_line(framework, found) for framework, found in measured.items()]
    lines += ["\n| framework | profiling | over | wall | processor time | within the limit |", f"|{' --- |' * 6}"]
    lines += [row for framework, found in measured.items() for row in table_rows(framework, found)]
    return "\n".join([*lines, "", *_measure_directly(seconds)]) + "\n"


def _load_text() -> str:
    """The load average.  Other load makes intervals wide, most of all those of the elapsed time."""
    return f"; load average at the end {os.getloadavg()[2]:.0f}" if hasattr(os, "getloadavg") else ""


def _framework_line(framework: str, found: Found) -> str:
    none = found["none"]
    wall, cpu = (statistics.median(none[clock]) for clock in CLOCKS)
    marks = ", ".join(f"{name} {clocks[MARK][0]:,.0f} ns" for name, clocks in found.items() if MARK in clocks)
    return (
        f"- {framework}: {len(none['cpu'])} rounds; a step takes {wall:.2f} ms and {cpu:.2f} ms of processor time."
        f" An annotation takes: {marks}. The counters: {len(found[ALONE]['cpu'])} rounds,"
        f" {found[COUNTERS][SAMPLES][0]:.0f} samples per second."
    )


def _versions(measured: dict[str, Found]) -> list[str]:
    names = [name for name in ("stepscope", *measured) if name != "plain"]
    packages = {"tensorflow": "tensorflow-cpu"}
    return [f"{name} {version(packages.get(name, name))}" for name in names]


def _measure_directly(seconds: float) -> list[str]:
    count, used = measure_own_threads(seconds)
    servers = ", ".join(f"{whose} {_run_task('--idle', whose, seconds):.4f} %" for whose in SERVERS)
    return [
        f"- Stepscope's {count} threads during a capture, of one core over {seconds:g} s: {used:.3f} %.",
        "  The training thread loses more than that because it is interrupted; see the rows of the counters.",
        f"- The process of a waiting server, of one core over {seconds:g} s: {servers}.",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the page and writes it."""
    parser = argparse.ArgumentParser(prog="python -m bench.overhead", description=__doc__)
    parser.add_argument("--only", choices=FRAMEWORKS, action="append")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for each framework, {SECONDS:g} unless given")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"of a block, {STEPS} unless given")
    parser.add_argument("--output", type=Path, help="where the page goes; with --only it is printed alone")
    parser.add_argument("--measure", choices=FRAMEWORKS, help=argparse.SUPPRESS)
    parser.add_argument("--idle", choices=SERVERS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(measure_framework(options.measure, options.seconds, options.steps)))
        return 0
    if options.idle:
        print(json.dumps(measure_idle_server(options.idle, options.seconds)))
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["STEPSCOPE_BENCH_OVERHEAD"] = folder
        measured = {name: _measure_in_process(name, options) for name in options.only or FRAMEWORKS}
        text = make_page(measured, min(10.0, options.seconds))
    print(text)
    output = options.output or (None if options.only else RESULTS)
    if output is not None:
        output.write_text(text)
    return 0


def _measure_in_process(framework: str, options: argparse.Namespace) -> Found:
    """Measures a framework in a separate process."""
    found: Found = _run_task("--measure", framework, options.seconds, "--steps", str(options.steps))
    return found


def _run_task(task: str, name: str, seconds: float, *more: str) -> Any:
    """Runs a task of this program in a separate process; returns its result."""
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", **os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "bench.overhead", task, name, "--seconds", str(seconds), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        timeout=2 * seconds + TIMEOUT_S,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
