"""What `stepscope.watch` notices; what it costs is a kind of profiling of `bench.overhead`.

    python -m bench.watch causes --slow 20        planted slow steps, 1 in 200, of five causes
    python -m bench.watch quiet --minutes 10      a healthy, noisy run: what is noticed in it
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
from pathlib import Path
from typing import Any

import stepscope
from bench.overhead import list_kinds
from stepscope.capture.watching.triggers import Trigger
from stepscope.overtime import examine_run

EVERY = 200
_HOGS = 16
_HOG_S = 0.3

# What the first sentence has to say of each planted cause.
EXPECTED = {
    "input": ("load_batch`",),
    "checkpoint": ("save_checkpoint`",),
    "collection": ("garbage collector",),
    "compilation": ("compil",),
    "contention": ("for a free core",),
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
    of_machine = sum(any(words in text for words in EXPECTED["contention"]) for text in marks)
    return {
        "minutes": minutes,
        "steps": number,
        "triggers": len(marks),
        "of_the_machine": of_machine,
        "slow_steps": figures["slow_steps"],
        "contended_steps": figures["contended_steps"],
        "per_hour": round(60 * len(marks) / minutes, 2),
        "sentences": marks[:10],
    }


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
    from stepscope.capture.out_of_memory import memory_in_use

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder, "logs")
        options = {"min_interval": 2, "window_every": 5, "quota": 20e6, "series": 1, "budget_percent": 5}
        handle = stepscope.watch(logs, **options)
        run, _ = list_kinds("torch")
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
    parser.add_argument("what", choices=["causes", "quiet", "killed", "soak"])
    parser.add_argument("--slow", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--times", type=int, default=10)
    asked = parser.parse_args()
    logging.getLogger("stepscope").setLevel(logging.ERROR)
    measured = {
        "causes": lambda: measure_causes(asked.slow),
        "quiet": lambda: measure_quiet(asked.minutes),
        "killed": lambda: measure_killed(asked.times),
        "soak": lambda: measure_soak(asked.minutes),
    }[asked.what]()
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
