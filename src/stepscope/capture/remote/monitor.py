"""Measures how busy the program is, and how long its steps take, without a profiler: from two readings of clocks."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from stepscope.capture.tracers import ranges
from stepscope.capture.tracers.system import MACHINE, CpuMeter, SmallFile
from stepscope.records import dataclass

_MACHINE = Path("/proc/stat")
_EMPTY, _WITH_STEPS = 0, 3  # ProfilerServiceMonitorResult.ResponseType


@dataclass(frozen=True)
class Load:
    """What the program did in a time window.

    Attributes:
        unix_time: when the window ended, in seconds since 1970.
        seconds: its length.
        process_percent: CPU time of the process, as a share of one CPU; two busy threads give 200.
        machine_percent: how busy all CPUs of the machine were, 0 to 100; None if the system does not report it.
        cpus: the number of CPUs.
        step_ms: from the start of each step to the start of the next of the same thread.
    """

    unix_time: float
    seconds: float
    process_percent: float
    machine_percent: float | None
    cpus: int
    step_ms: tuple[float, ...]

    def text(self, verbose: bool, timestamp: bool) -> str:
        """The load as lines of text for people."""
        lines = [time.strftime("Timestamp: %H:%M:%S", time.localtime(self.unix_time))] if timestamp else []
        machine = "unknown" if self.machine_percent is None else f"{self.machine_percent:.1f}% of {self.cpus} CPUs"
        lines.append(f"CPU: {self.process_percent:.1f}% of one by this process; machine {machine}")
        if verbose:
            lines.append(self._step_line())
        return "\n".join(lines) + "\n"

    def _step_line(self) -> str:
        if not self.step_ms:
            return f"Steps: none ended in {self.seconds:g} s; mark them with stepscope.step(i) to see their time"
        mean = sum(self.step_ms) / len(self.step_ms)
        return (
            f"Step time: {mean:.3f} ms mean, {min(self.step_ms):.3f} ms min, {max(self.step_ms):.3f} ms max"
            f" ({len(self.step_ms)} steps)"
        )

    def result(self) -> dict[str, Any]:
        """The fields of ProfilerServiceMonitorResult that are known."""
        if not self.step_ms:
            return {"response_type": _EMPTY}
        return {
            "response_type": _WITH_STEPS,
            "step_time_ms_avg": sum(self.step_ms) / len(self.step_ms),
            "step_time_ms_min": min(self.step_ms),
            "step_time_ms_max": max(self.step_ms),
        }


def measure_load(seconds: float, ended: threading.Event) -> Load:
    """Watches the program for a time, or until `ended`."""
    steps = _StepClock()
    stop_watching = ranges.watch_steps(steps.note)
    with closing(SmallFile(_MACHINE)) as stat:
        machine = CpuMeter(stat)
        machine.read(0.0)
        begin, process = time.perf_counter(), time.process_time()
        try:
            ended.wait(seconds)
        finally:
            stop_watching()
        passed = max(time.perf_counter() - begin, 1e-9)
        machine_percent = machine.read(passed).get(MACHINE)
    return Load(
        unix_time=time.time(),
        seconds=passed,
        process_percent=100 * (time.process_time() - process) / passed,
        machine_percent=machine_percent,
        cpus=os.cpu_count() or 1,
        step_ms=tuple(steps.step_ms),
    )


class _StepClock:
    """Times steps from start to start."""

    def __init__(self) -> None:
        self.step_ms: list[float] = []
        self._begun: dict[int, float] = {}

    def note(self, number: object) -> None:
        """A step of the calling thread starts."""
        now, thread = time.perf_counter(), threading.get_ident()
        before = self._begun.get(thread)
        self._begun[thread] = now
        if before is not None:
            self.step_ms.append((now - before) * 1e3)
