"""What the machine did: CPU, memory, disk, and GPUs through NVML where there are any, as counter tracks.

A sample is a few short reads of `/proc` and costs about 0.1 ms, off the training's threads.  Where the system has no
`/proc`, only what Python itself can tell is sampled.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Clock
from stepscope.capture.tracers.ticker import SHORT_PATIENCE_S, Ticker
from stepscope.formats.spool.layout import Chunk, StatValue

if TYPE_CHECKING:
    from stepscope.capture.tracers.nvml import Nvml

PLANE = "/device:CUSTOM:System (Stepscope)"
LINE = "_counters_"  # the name by which viewers know a line of counters
VALUE = "counter_value"
_BYTES_OF_VALUE = 200
_GB, _MB = 1e9, 1e6

Read = Callable[[float], dict[str, float]]  # seconds since the last reading -> counters


def _open_nvml() -> Nvml | None:
    from stepscope.capture.tracers.nvml import Nvml

    return Nvml.open()


class SystemTracer:
    """Samples the machine every `system_interval_ms`."""

    def __init__(self, proc: Path = Path("/proc"), nvml: Callable[[], Nvml | None] = _open_nvml) -> None:
        self._proc = proc
        self._open_nvml = nvml
        self._nvml: Nvml | None = None
        self._clock: Clock = time.perf_counter_ns
        self._values: list[tuple[int, str, float]] = []
        self._ticker: Ticker | None = None
        self._reads: list[Read] = []
        self._last_ns = 0

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Begins to sample, first of all the state at the start."""
        self._clock = clock
        proc = self._proc
        self._reads = [_Cpu(proc).read, _Memory(proc).read, _Disk(proc).read]
        self._last_ns = clock()
        for read in self._reads:
            read(0.0)  # what is counted from the boot needs a first reading to be a rate
        self._ticker = Ticker("system", options.system_interval_ms / 1000, self.sample, first=self._find_gpus)
        self._ticker.start()

    def _find_gpus(self) -> None:
        """Opens NVML, for which a driver that sleeps takes seconds: not while the training waits."""
        self._nvml = self._open_nvml()
        if self._nvml is not None:
            self._reads.append(self._nvml.read)

    def stop(self) -> None:
        """Ends the sampling with a last sample, unless one is under way that takes its time."""
        if self._ticker is None or not self._ticker.stop(SHORT_PATIENCE_S):
            return
        self.sample()
        if self._nvml is not None:
            self._nvml.close()

    def abandon(self) -> None:
        """Nothing: there is no hook in this process."""

    def sample(self) -> None:
        """Reads every counter once."""
        now = self._clock()
        passed = (now - self._last_ns) / 1e9
        if passed <= 0:
            return
        self._last_ns = now
        for read in self._reads:
            self._values += [(now, name, value) for name, value in read(passed).items()]

    def waiting_bytes(self) -> int:
        """About how much memory the values take."""
        return _BYTES_OF_VALUE * len(self._values)

    def drain(self) -> list[Chunk]:
        """The values since the last time: events of no length, each with its value as a stat."""
        taken = self._values[:]
        del self._values[: len(taken)]
        if not taken:
            return []
        rows: dict[str, int] = {}
        name = array("i", [rows.setdefault(text, len(rows)) for _, text, _ in taken])
        at = array("q", [moment for moment, _, _ in taken])
        stats: dict[int, dict[str, StatValue]] = {row: {VALUE: value} for row, (_, _, value) in enumerate(taken)}
        return [Chunk(PLANE, LINE, 0, "COUNTER", list(rows), name, at, at[:], stats)]


class _Cpu:
    """CPU time of this process, in percent of one core, and of the machine, in percent of all cores."""

    def __init__(self, proc: Path) -> None:
        self._stat = proc / "stat"
        self._own = 0.0
        self._busy = self._all = 0

    def read(self, passed_s: float) -> dict[str, float]:
        times = os.times()
        own, self._own = times.user + times.system - self._own, times.user + times.system
        values = {"CPU process %": 100 * own / passed_s} if passed_s else {}
        text = _text(self._stat)
        if text.startswith("cpu "):
            ticks = [int(field) for field in text.split("\n", 1)[0].split()[1:9]]
            whole, idle = sum(ticks), ticks[3] + ticks[4]
            grown, busy = whole - self._all, whole - idle - self._busy
            self._all, self._busy = whole, whole - idle
            if passed_s and grown > 0:
                values["CPU machine %"] = 100 * busy / grown
        return values


class _Memory:
    """Memory that this process has in use, and that the machine could still give."""

    def __init__(self, proc: Path) -> None:
        self._statm, self._meminfo = proc / "self" / "statm", proc / "meminfo"
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

    def read(self, passed_s: float) -> dict[str, float]:
        values = {}
        pages = _text(self._statm).split()
        if len(pages) > 1:
            values["Memory process GB"] = int(pages[1]) * self._page / _GB
        for line in _text(self._meminfo).split("\n", 4)[:4]:
            if line.startswith("MemAvailable:"):
                values["Memory available GB"] = int(line.split()[1]) * 1024 / _GB
        return values


class _Disk:
    """What this process reads from the disk and writes to it."""

    _NAMES = {"read_bytes": "Disk read MB/s", "write_bytes": "Disk write MB/s"}  # noqa: RUF012 - a table

    def __init__(self, proc: Path) -> None:
        self._io = proc / "self" / "io"
        self._last: dict[str, int] = {}

    def read(self, passed_s: float) -> dict[str, float]:
        values = {}
        for line in _text(self._io).splitlines():
            key, _, number = line.partition(": ")
            name = self._NAMES.get(key)
            if name is not None:
                grown = int(number) - self._last.get(name, int(number))
                self._last[name] = int(number)
                if passed_s:
                    values[name] = grown / passed_s / _MB
        return values


def _text(path: Path) -> str:
    """A small file's text; empty if the system has none or does not show it."""
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(4096)
    except OSError:
        return ""
