"""Samples the machine as counter tracks: CPU, memory, disk, and GPUs through NVML if there are any.

A sample reads the beginning of four files of `/proc`, which stay open, on a separate thread: this takes about 0.03 ms,
and waking up takes as long again.  The training thread is interrupted once per sample, not once per file.  The system
produces the files anew for each read, which takes longer with more processors, and a GPU driver may be slow; so samples
are taken less often if they would cost too much.  On a system without `/proc`, only Python's own figures are sampled.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.capture.handles import move_up
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Clock, Probe, make_chunk
from stepscope.capture.tracers.ticker import SHORT_PATIENCE_S, Ticker
from stepscope.formats.spool.layout import Chunk, StatValue
from stepscope.kernels.small_files import read_start

if TYPE_CHECKING:
    from stepscope.capture.tracers.nvml import Nvml

PLANE = "/device:CUSTOM:System (Stepscope)"
LINE = "_counters_"  # the name by which viewers know a line of counters
VALUE = "counter_value"
PROCESS, MACHINE = "CPU process %", "CPU machine %"
MOST_SHARE = 0.002
"""The share of one core that sampling may take.  The program loses more, because its training thread is interrupted."""

_MOST_WAIT_S = 1.0  # between two samples, however much one costs

_BYTES_OF_VALUE = 200
_GB, _MB = 1e9, 1e6

Read = Callable[[float], dict[str, float]]  # seconds since the last reading -> counters


def _open_nvml() -> Nvml | None:
    from stepscope.capture.tracers.nvml import Nvml

    return Nvml.open()


class SystemTracer(Probe):
    """Samples the machine every `system_interval_ms`, or less often if that would cost more than `MOST_SHARE`."""

    def __init__(self, proc: Path = Path("/proc"), nvml: Callable[[], Nvml | None] = _open_nvml) -> None:
        self._proc = proc
        self._open_nvml = nvml
        self._nvml: Nvml | None = None
        self._clock: Clock = time.perf_counter_ns
        self._values: list[tuple[int, str, float]] = []
        self._ticker: Ticker | None = None
        self._reads: list[Read] = []
        self._files: list[SmallFile] = []
        self._interval_s = 0.0
        self._last_ns = self._used_ns = 0
        self._is_left = False

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts sampling, with a sample of the state at the start."""
        self._clock = clock
        stat, statm, meminfo, io = (self._open_file(name) for name in ("stat", "self/statm", "meminfo", "self/io"))
        self._reads = [CpuMeter(stat).read, _Memory(statm, meminfo).read, _Disk(io).read]
        self._last_ns = clock()
        for read in self._reads:
            read(0.0)  # counters since the boot need a first reading to give a rate
        self._interval_s = options.system_interval_ms / 1000
        self._ticker = Ticker("system", self._interval_s, self._tick, first=self._find_gpus)
        self._ticker.start()

    def _open_file(self, name: str) -> SmallFile:
        self._files.append(SmallFile(self._proc / name))
        return self._files[-1]

    def _tick(self) -> float:
        """Takes a sample; returns the seconds until the next one.  The cost of a sample is the CPU time of this thread
        since the last one, which includes waking up."""
        self.sample()
        self._close_if_left()
        used_ns = time.thread_time_ns()
        cost_s, self._used_ns = (used_ns - self._used_ns) / 1e9, used_ns
        return max(self._interval_s, min(cost_s / MOST_SHARE, _MOST_WAIT_S))

    def _find_gpus(self) -> None:
        """Opens NVML on this thread, so that the training does not wait: a sleeping driver takes seconds."""
        self._nvml = self._open_nvml()
        if self._nvml is not None:
            self._reads.append(self._nvml.read)
        self._close_if_left()
        self._used_ns = time.thread_time_ns()

    def stop(self) -> None:
        """Ends the sampling with a last sample, unless a slow one is still under way, which then closes the files."""
        if self._ticker is None:
            return
        if self._ticker.stop(SHORT_PATIENCE_S):
            self.sample()
            self._close()
        else:
            self._is_left = True

    def _close_if_left(self) -> None:
        if self._is_left:
            self._close()

    def _close(self) -> None:
        for file in self._files:
            file.close()
        nvml, self._nvml = self._nvml, None
        if nvml is not None:
            nvml.close()

    def abandon(self) -> None:
        """Closes the files, which describe the parent."""
        for file in self._files:
            file.close()

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
        """The values since the last call: events without length, each with its value as a stat."""
        taken = self._values[:]
        del self._values[: len(taken)]
        if not taken:
            return []
        stats: dict[int, dict[str, StatValue]] = {row: {VALUE: value} for row, (_, _, value) in enumerate(taken)}
        return [make_chunk(PLANE, LINE, 0, "COUNTER", [(name, at, at) for at, name, _ in taken], stats)]


class SmallFile:
    """A small file that the system produces anew for each read.  It stays open, since opening costs more than
    reading."""

    def __init__(self, path: Path) -> None:
        # It closes itself, of which profilers of the program see nothing: a sampling thread that hangs in a driver may
        # keep `stop` from closing the files.
        self._file: io.FileIO | None = None
        with suppress(OSError):  # the system has no such file, or this user may not read it
            self._file = io.FileIO(move_up(os.open(path, os.O_RDONLY | os.O_CLOEXEC)))

    def read(self) -> bytes:
        """The beginning of the file; empty if there is none."""
        return b"" if self._file is None else read_start(self._file.fileno())

    def close(self) -> None:
        """Closes the file.  May be called more than once."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()


class CpuMeter:
    """CPU time of this process, in percent of one core, and of the machine, in percent of all cores."""

    def __init__(self, stat: SmallFile) -> None:
        self._stat = stat
        self._own = 0.0
        self._busy = self._all = 0

    def read(self, passed_s: float) -> dict[str, float]:
        """The counters since the last reading, which was `passed_s` seconds ago; none at the first."""
        times = os.times()
        own, self._own = times.user + times.system - self._own, times.user + times.system
        values = {PROCESS: 100 * own / passed_s} if passed_s else {}
        machine, _, _ = self._stat.read().partition(b"\n")
        if machine.startswith(b"cpu "):
            ticks = [int(field) for field in machine.split()[1:9]]
            whole, idle = sum(ticks), ticks[3] + ticks[4]
            grown, busy = whole - self._all, whole - idle - self._busy
            self._all, self._busy = whole, whole - idle
            if passed_s and grown > 0:
                values[MACHINE] = 100 * busy / grown
        return values


class _Memory:
    """Memory that this process uses, and memory that is available on the machine."""

    def __init__(self, statm: SmallFile, meminfo: SmallFile) -> None:
        self._statm, self._meminfo = statm, meminfo
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

    def read(self, passed_s: float) -> dict[str, float]:
        values = {}
        pages = self._statm.read().split()
        if len(pages) > 1:
            values["Memory process GB"] = int(pages[1]) * self._page / _GB
        _, _, available = self._meminfo.read().partition(b"MemAvailable:")
        if available:
            values["Memory available GB"] = int(available.split(None, 1)[0]) * 1024 / _GB
        return values


class _Disk:
    """What this process reads from the disk and writes to it."""

    _NAMES = {b"read_bytes": "Disk read MB/s", b"write_bytes": "Disk write MB/s"}  # noqa: RUF012 - a table

    def __init__(self, io: SmallFile) -> None:
        self._io = io
        self._last: dict[str, int] = {}

    def read(self, passed_s: float) -> dict[str, float]:
        values = {}
        for line in self._io.read().splitlines():
            key, _, number = line.partition(b": ")
            name = self._NAMES.get(key)
            if name is not None:
                grown = int(number) - self._last.get(name, int(number))
                self._last[name] = int(number)
                if passed_s:
                    values[name] = grown / passed_s / _MB
        return values
