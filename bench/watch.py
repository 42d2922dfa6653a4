"""What `stepscope.watch` notices, and what it costs.

    python -m bench.watch causes --slow 20        planted slow steps, 1 in 200, of five causes
    python -m bench.watch quiet --minutes 10      a healthy, noisy run: what is noticed in it
    python -m bench.watch overhead jax            paired blocks of steps with and without a watch
    python -m bench.watch killed --times 10       what `kill -9` loses
    python -m bench.watch soak --minutes 10       memory, files and threads under captures

Each prints one JSON object.  `bench/WATCH.md` has the results and says on which machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import stepscope
from stepscope.capture.watching.triggers import Trigger
from stepscope.overtime import examine_run

EVERY = 200
_HOGS = 16
_HOG_S = 0.3

# What the first sentence has to say of each planted cause.
EXPECTED = {
    "input": ("load_batch (",),
    "checkpoint": ("save_checkpoint (", "saving"),
    "collection": ("garbage collector",),
    "compilation": ("compiling",),
    "contention": ("for a processor", "other processes used"),
}


# -- a training loop, and what makes a step of it slow --------------------------------------------------------------


class Job:
    """A small training loop in JAX.  Every part may be made slow."""

    def __init__(self, folder: Path) -> None:
        import jax
        import jax.numpy as jnp

        self._numpy = jnp
        self._step = jax.jit(lambda w, x: w - 1e-3 * jax.grad(lambda v: jnp.tanh(x @ v).sum())(w))
        self._weights = jnp.ones((96, 96))
        self._folder = folder
        self._size = 64
        self._heap: list[Any] = []
        self._hogs: list[Any] = []
        self._go = -1

    def prepare_causes(self) -> None:
        """Makes what the causes need: many objects, and processes that can compute."""
        self._heap = [{"self": None, "number": number} for number in range(1_200_000)]
        for each in self._heap:
            each["self"] = each
        gc.collect()
        gc.freeze()
        gc.unfreeze()
        reader, self._go = os.pipe()
        context = multiprocessing.get_context("fork")
        self._hogs = [context.Process(target=_hog, args=(reader,), daemon=True) for _ in range(_HOGS)]
        for hog in self._hogs:
            hog.start()

    def load_batch(self, slow: bool = False) -> Any:
        """A batch; a slow one waits for its storage."""
        if slow:
            time.sleep(0.2)
        return self._numpy.ones((self._size, 96))

    def save_checkpoint(self) -> None:
        """Writes arrays to the disk until it has taken a fifth of a second."""
        import numpy as np

        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            np.savez(self._folder / "checkpoint.npz", a=np.random.rand(1 << 20))

    def step(self, cause: str = "") -> None:
        """One step of the loop."""
        batch = self.load_batch(slow=cause == "input")
        if cause == "compilation":
            self._size += 1
            batch = self._numpy.ones((self._size, 96))
        if cause == "contention":
            os.write(self._go, b"." * _HOGS)
        self._weights = self._step(self._weights, batch)
        self._weights.block_until_ready()
        _compute(0.006)
        if cause == "checkpoint":
            self.save_checkpoint()
        if cause == "collection":
            gc.collect()

    def close(self) -> None:
        """Ends the processes."""
        for hog in self._hogs:
            hog.kill()
            hog.join()


def _compute(seconds: float) -> None:
    """Uses this much processor time of the thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(50))


def _hog(go: int) -> None:
    while os.read(go, 1):
        end = time.perf_counter() + _HOG_S
        while time.perf_counter() < end:
            sum(range(1000))


def measure_causes(slow: int) -> dict[str, Any]:
    """Plants slow steps and compares what the watch says of each."""
    planted: dict[int, str] = {}
    causes = [*EXPECTED] * slow
    random.Random(7).shuffle(causes)
    with tempfile.TemporaryDirectory() as folder:
        job = Job(Path(folder))
        job.prepare_causes()
        handle = stepscope.watch(Path(folder, "logs"), min_interval=0, window_every=0, window_steps=0)
        lengths: dict[str, list[float]] = {}
        number = 0
        for cause in ["", *causes]:
            for _ in range(EVERY):
                with stepscope.step(number):
                    job.step()
                number += 1
            planted[number] = cause
            start = time.perf_counter()
            with stepscope.step(number):
                job.step(cause)
            length_ms = 1e3 * (time.perf_counter() - start)
            lengths.setdefault(cause, []).append(length_ms)
            usual_ms = handle.watch.steps.usual.median_ns / 1e6
            if length_ms < max(3 * usual_ms, usual_ms + 20):  # the plant has failed: this step is not slow
                planted[number] = ""
            number += 1
        time.sleep(3)
        marks = list(handle.watch.marks)
        median_ms = handle.watch.steps.usual.median_ns / 1e6
        handle.stop()
        job.close()
    return _judge(planted, marks, number, median_ms, lengths)


def _judge(
    planted: dict[int, str], marks: list[Any], steps: int, median_ms: float, lengths: dict[str, list[float]]
) -> dict[str, Any]:
    by_step = {mark.step: mark for mark in marks if mark.trigger is Trigger.SLOW_STEP}
    rows: dict[str, dict[str, Any]] = {}
    wrong: list[str] = []
    for step, cause in planted.items():
        if not cause:
            continue
        row = rows.setdefault(cause, {"planted": 0, "noticed": 0, "named": 0})
        mark = by_step.get(step)
        row["planted"] += 1
        row["noticed"] += mark is not None
        named = mark is not None and any(word in mark.sentence for word in EXPECTED[cause])
        row["named"] += named
        if not named:
            wrong.append(f"{cause}: {mark.sentence if mark else 'not noticed'}")
    for cause, row in rows.items():
        row["median_ms"] = round(statistics.median(lengths[cause]), 1)
        row["not_slow"] = len(lengths[cause]) - row["planted"]
    named = sum(row["named"] for row in rows.values())
    total = sum(row["planted"] for row in rows.values())
    # The processes of a planted contention also disturb the steps after it.
    disturbed = {step + more for step, cause in planted.items() if cause == "contention" for more in range(1, 80)}
    others = [mark.sentence for step, mark in by_step.items() if not planted.get(step) and step not in disturbed]
    return {
        "causes": rows,
        "named_percent": round(100 * named / total, 1),
        "steps": steps,
        "usual_step_ms": round(median_ms, 2),
        "other_slow_steps": len(others),
        "other_sentences": [text.partition(": ")[2] for text in others[:20]],
        "wrong": wrong[:20],
    }


# -- a healthy run ---------------------------------------------------------------------------------------------------


def measure_quiet(minutes: float) -> dict[str, Any]:
    """A loop whose steps vary by themselves, with the options that a user gets; whatever is noticed there is listed."""
    chance = random.Random(11)
    with tempfile.TemporaryDirectory() as folder:
        handle = stepscope.watch(Path(folder, "logs"), window_every=0, window_steps=0)
        end, number = time.monotonic() + 60 * minutes, 0
        while time.monotonic() < end:
            with stepscope.step(number):
                time.sleep(0.02 * chance.lognormvariate(0, 0.35))
                _compute(0.004 * chance.lognormvariate(0, 0.35))
            number += 1
        marks = [mark.sentence for mark in handle.watch.marks]
        handle.stop()
        figures = examine_run(str(Path(folder, "logs"))).figures
    kinds = Counter("machine" if _is_of_machine(text) else "other" for text in marks)
    return {
        "minutes": minutes,
        "steps": number,
        "triggers": len(marks),
        "of_the_machine": kinds["machine"],
        "slow_steps": figures["slow_steps"],
        "contended_steps": figures["contended_steps"],
        "per_hour": round(60 * len(marks) / minutes, 2),
        "sentences": marks[:10],
    }


def _is_of_machine(sentence: str) -> bool:
    return "processor" in sentence


# -- what it costs ---------------------------------------------------------------------------------------------------


def _numpy_step() -> Callable[[], None]:
    return lambda: _compute(0.01)


def _jax_step() -> Callable[[], None]:
    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda w, x: w - 1e-3 * jax.grad(lambda v: jnp.tanh(x @ v).sum())(w))
    state = {"w": jnp.ones((512, 512))}
    x = jnp.ones((256, 512))

    def run() -> None:
        state["w"] = step(state["w"], x)
        state["w"].block_until_ready()

    return run


def _torch_step() -> Callable[[], None]:
    import torch

    torch.set_num_threads(1)
    net = torch.nn.Sequential(*(torch.nn.Linear(384, 384) for _ in range(6)))
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.randn(128, 384)

    def run() -> None:
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

    return run


def _tensorflow_step() -> Callable[[], None]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    w = tf.Variable(tf.ones((384, 384)))
    x = tf.ones((128, 384))

    @tf.function
    def train() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(tf.matmul(x, w)))
        w.assign_sub(1e-6 * tape.gradient(loss, w))

    return train


STEPS = {"python": _numpy_step, "jax": _jax_step, "torch": _torch_step, "tensorflow": _tensorflow_step}


class Block(NamedTuple):
    """What was measured of some steps.

    Attributes:
        wall_s: the mean of the nine in ten shortest steps.
        cpu_s: the processor time of the process.
        marks_s: of that, what `step` and `annotate` took on the thread of the steps.
        threads_s: and what the watch's own threads took; 0 without one.
        own_percent: what the watch says that it takes.
    """

    wall_s: float
    cpu_s: float
    marks_s: float
    threads_s: float
    own_percent: float


def measure_overhead(framework: str, pairs: int, block_s: float) -> dict[str, Any]:
    """Blocks of steps with and without a watch, in pairs of random order; the cost is the median of the pairs.

    Three figures say what a watch costs.  `wall_percent` and `cpu_percent` compare the blocks by the clock and by the
    processor time of the process: on a machine that others use, these vary by far more than a watch costs.
    `parts_percent` adds up what a watch can be seen to do: by how much the marks of steps take more processor time, and
    that of its own threads.  What a watch does once is measured apart: its start, its end, and a kept capture.
    """
    run = STEPS[framework]()
    for _ in range(30):
        run()
    chance = random.Random(5)
    once: dict[str, list[float]] = {"start": [], "stop": [], "capture": []}
    found: list[tuple[Block, Block]] = []
    with tempfile.TemporaryDirectory() as folder:
        steps = _calibrate(run, block_s)
        for pair in range(pairs):
            order = [False, True] if chance.random() < 0.5 else [True, False]
            blocks = {
                watched: _time_block(run, steps, Path(folder, str(pair)) if watched else None, once)
                for watched in order
            }
            found.append((blocks[False], blocks[True]))
    parts = [100 * (on.marks_s - off.marks_s + on.threads_s) / (on.cpu_s - on.threads_s) for off, on in found]
    return {
        "framework": framework,
        "pairs": pairs,
        "steps_per_block": steps,
        "wall_percent": _with_interval([100 * (on.wall_s / off.wall_s - 1) for off, on in found]),
        "cpu_percent": _with_interval([100 * (on.cpu_s / off.cpu_s - 1) for off, on in found]),
        "parts_percent": _with_interval(parts),
        "marks_us": _with_interval([1e6 * (on.marks_s - off.marks_s) / steps for off, on in found]),
        "threads_ms_per_s": _with_interval([1e3 * on.threads_s / on.cpu_s for _, on in found]),
        "own_percent": _with_interval([on.own_percent for _, on in found]),
        "step_cpu_ms": round(1e3 * statistics.median(off.cpu_s for off, _ in found) / steps, 2),
        "load": [round(each, 1) for each in os.getloadavg()],
        "once_cpu_ms": {name: round(statistics.median(values), 1) for name, values in once.items()},
    }


_KNOWN = 40  # steps


def _calibrate(run: Callable[[], None], block_s: float) -> int:
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < 1:
        run()
        count += 1
    return max(round(count * block_s), 10)


def _time_block(run: Callable[[], None], steps: int, logdir: Path | None, once: dict[str, list[float]]) -> Block:
    handle, start = None, time.process_time()
    if logdir is not None:
        handle = stepscope.watch(logdir, window_every=0, window_steps=0, slow_factor=1e6, min_interval=0)
        once["start"].append(1e3 * (time.process_time() - start))
    _run_steps(run, range(_KNOWN))  # from then on the watch knows what is usual
    threads_s = handle.watch.budget.threads_s if handle is not None else 0.0
    used = time.process_time()
    lengths, marks_s = _run_steps(run, range(_KNOWN, steps + _KNOWN))
    used = time.process_time() - used
    own_percent = 0.0
    if handle is not None:
        threads_s, own_percent = handle.watch.budget.threads_s - threads_s, handle.watch.budget.percent
        assert logdir is not None
        _end_watch(handle, logdir, once)
    return Block(statistics.fmean(sorted(lengths)[: int(0.9 * steps)]), used, marks_s, threads_s, own_percent)


def _run_steps(run: Callable[[], None], numbers: range) -> tuple[list[float], float]:
    """The lengths of steps, and the processor time that marking all of them took."""
    lengths, marks_ns = [], 0
    for number in numbers:
        start, before = time.perf_counter(), time.thread_time_ns()
        with stepscope.step(number), stepscope.annotate("compute"):
            entered = time.thread_time_ns()
            run()
            left = time.thread_time_ns()
        marks_ns += entered - before + time.thread_time_ns() - left
        lengths.append(time.perf_counter() - start)
    return lengths, marks_ns / 1e9


def _end_watch(handle: Any, logdir: Path, once: dict[str, list[float]]) -> None:
    """Keeps a capture and ends the watch; notes the processor time of both."""
    start = time.process_time()
    handle.trigger("bench")
    while not list(logdir.glob("plugins/profile/*/*.xplane.pb")):
        time.sleep(0.05)
    once["capture"].append(1e3 * (time.process_time() - start))
    start = time.process_time()
    handle.stop()
    once["stop"].append(1e3 * (time.process_time() - start))


def _with_interval(values: list[float]) -> dict[str, float]:
    """The median and its 95 % interval, from the order of the values."""
    ordered, count = sorted(values), len(values)
    reach = int(0.98 * count**0.5)
    low, high = max(count // 2 - reach, 0), min(count // 2 + reach, count - 1)
    return {name: round(value, 3) for name, value in
            (("median", statistics.median(ordered)), ("least", ordered[low]), ("most", ordered[high]))}  # fmt: skip


# -- what a killed job loses -----------------------------------------------------------------------------------------

_KILLED = """
import sys, time, stepscope
stepscope.watch(sys.argv[1], window_every=0)
number = 0
while True:
    with stepscope.step(number):
        time.sleep(0.005)
    number += 1
    print(number, time.perf_counter_ns(), flush=True)
"""


def measure_killed(times: int) -> dict[str, Any]:
    """Kills jobs at random moments; how much of their end is not in the ring."""
    lost = []
    for number in range(times):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([sys.executable, "-c", _KILLED, folder], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            until = time.monotonic() + 6 + 2 * random.Random(number).random()
            last = ""
            for line in process.stdout:
                last = line
                if time.monotonic() > until:
                    break
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().splitlines()
            process.wait()
            steps = int((rest or [last])[-1].split()[0])
            (ring,) = Path(folder).glob("plugins/profile/*/*.partial")  # beside it may be kept slow steps
            rows = stepscope.load(ring).steps().rows
            missing = steps - 1 - rows[-1]["step"]
            lost.append(missing * statistics.median(row["duration_ms"] for row in rows) / 1e3)
    return {"times": times, "lost_s_median": round(statistics.median(lost), 3), "lost_s_most": round(max(lost), 3)}


# -- a soak ----------------------------------------------------------------------------------------------------------


def measure_soak(minutes: float) -> dict[str, Any]:
    """A loop with a slow step every few seconds, each kept; memory, threads and files at the end of each minute."""
    from stepscope.capture.watching.memory import memory_in_use

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder, "logs")
        options = {"min_interval": 2, "window_every": 5, "quota": 20e6, "series": 1, "budget_percent": 5}
        handle = stepscope.watch(logs, **options)
        run = _torch_step()
        start, number, minute = time.monotonic(), 0, 0
        while time.monotonic() - start < 60 * minutes:
            with stepscope.step(number):
                run()
                if number % 400 == 399:
                    time.sleep(0.4)
            if number % 400 == 0:
                stepscope.trigger("soak")
            number += 1
            if time.monotonic() - start > 60 * (minute + 1):
                minute += 1
                gc.collect()
                rows.append(
                    {
                        "minute": minute,
                        "resident_mb": round(memory_in_use()["resident_bytes"] / 1e6, 1),
                        "threads": threading.active_count(),
                        "files": len(list(Path("/proc/self/fd").iterdir())),
                        "kept_mb": round(sum(f.stat().st_size for f in logs.rglob("*") if f.is_file()) / 1e6, 1),
                        "sessions": len(list(logs.glob("plugins/profile/*"))),
                    }
                )
        counts = dict(handle.watch.trigger_counts)
        cost, windows = handle.watch.budget.percent, handle.watch.budget.windows
        handle.stop()
    return {"minutes": minutes, "steps": number, "triggers": counts, "windows": windows, "cost": cost, "rows": rows}


def main() -> None:
    """Runs one of the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["causes", "quiet", "overhead", "killed", "soak"])
    parser.add_argument("framework", nargs="?", default="python", choices=[*STEPS])
    parser.add_argument("--slow", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--block", type=float, default=4)
    parser.add_argument("--times", type=int, default=10)
    asked = parser.parse_args()
    logging.getLogger("stepscope").setLevel(logging.ERROR)
    measured = {
        "causes": lambda: measure_causes(asked.slow),
        "quiet": lambda: measure_quiet(asked.minutes),
        "overhead": lambda: measure_overhead(asked.framework, asked.pairs, asked.block),
        "killed": lambda: measure_killed(asked.times),
        "soak": lambda: measure_soak(asked.minutes),
    }[asked.what]()
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
