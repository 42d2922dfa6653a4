"""Records how long the threads of the loop ran, and for how long they were ready and had no processor.

No trace of a framework shows that another process took the processor: the thread is just late.  Linux counts both
times for each thread.  They are read with each sample of the stacks, which finds where in a step the time was lost,
and when a step starts, on its thread, unless they were read a moment ago.  Threads are the main thread, those that
marked a step, and a few others of Python that run when the capture starts: one that never waits keeps the interpreter
from the loop.  Elsewhere than on Linux nothing is recorded.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from stepscope.capture.handles import move_up
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import name_of_this_thread
from stepscope.capture.tracers.base import Clock, Probe, make_chunk
from stepscope.capture.tracers.ranges import watch_steps
from stepscope.formats.spool.layout import QUEUED_NS, RAN_NS, USAGE_PLANE, Chunk, StatValue
from stepscope.kernels.small_files import Meter

_NAME = "usage"
_BYTES_OF_READING = 24
_FRESH_NS = 5_000_000  # a reading takes up to 20 us between steps that use the caches, so 0.4 % of that time
_MOST_OTHERS = 8  # threads of the program, the newest: each costs a read of a file, some 3 us, with every sample


Reading = tuple[int, int, int]  # ns of the clock, ns that the thread has run, ns that it was ready and did not run


class ThreadUsage(Probe):
    """Reads the counters of the main thread and of each thread that marks a step.

    Attributes:
        meters: of each thread, by the system's number of it.
    """

    def __init__(self) -> None:
        self._clock: Clock = time.perf_counter_ns
        self.meters: dict[int, Meter] = {}
        self._last: dict[int, Reading] = {}  # of each thread, with which its next interval starts
        self._end_watch: Callable[[], None] = lambda: None

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts, with a reading of each thread."""
        self._clock = clock
        main = threading.main_thread()
        self._add(main.native_id, main.name)
        known = list(threading._active.values())  # type: ignore[attr-defined]  # `enumerate` may wait for a lock
        for each in [each for each in known if each is not main][-_MOST_OTHERS:]:
            self._add(each.native_id, each.name)
        self.read()
        self._end_watch = watch_steps(self._note_step)

    def read(self) -> None:
        """Takes a reading of each thread."""
        now = self._clock()
        for meter in (*self.meters.values(),):
            meter.read(now)

    def _note_step(self, _: object) -> None:
        """A step starts on this thread."""
        number = threading.get_native_id()
        if number not in self.meters:
            self._add(number, name_of_this_thread())
        now = self._clock()
        if (meter := self.meters.get(number)) is not None and now - meter.last_ns >= _FRESH_NS:
            meter.read(now)

    def _add(self, number: int | None, name: str) -> None:
        with suppress(OSError):  # only Linux has it
            handle = move_up(os.open(f"/proc/self/task/{number}/schedstat", os.O_RDONLY | os.O_CLOEXEC))
            self.meters[number or 0] = Meter(name, number or 0, handle)

    def stop(self) -> None:
        """Ends with a last reading."""
        self._end_watch()
        self.read()
        self.abandon()

    def abandon(self) -> None:
        """Closes the files; in a forked child they describe the parent."""
        self._end_watch()
        for meter in self.meters.values():
            handle, meter.handle = meter.handle, -1
            if handle >= 0:
                os.close(handle)

    def waiting_bytes(self) -> int:
        """About how much memory the readings take."""
        return _BYTES_OF_READING * sum(map(len, self.meters.values()))

    def drain(self) -> list[Chunk]:
        """What each thread used from one reading to the next, since the last call."""
        return [chunk for meter in [*self.meters.values()] if (chunk := self._drain_meter(meter)) is not None]

    def _drain_meter(self, meter: Meter) -> Chunk | None:
        last = self._last.get(meter.number)
        readings = [*([] if last is None else [last]), *sorted(meter.take())]
        if readings:
            self._last[meter.number] = readings[-1]
        return make_usage_chunk(meter.name, meter.number, readings)


def make_usage_chunk(name: str, number: int, readings: Sequence[Reading]) -> Chunk | None:
    """What a thread used from one reading to the next, in order of time; None for fewer than two.

    Args:
        name, number: of the thread.
    """
    intervals = [(start, stop) for start, stop in itertools.pairwise(readings) if stop[0] > start[0]]
    if not intervals:
        return None
    rows = [(_NAME, start[0], stop[0]) for start, stop in intervals]
    stats: dict[int, dict[str, StatValue]] = {
        row: {RAN_NS: stop[1] - start[1], QUEUED_NS: max(stop[2] - start[2], 0)}
        for row, (start, stop) in enumerate(intervals)
    }
    return make_chunk(USAGE_PLANE, name, number, "OTHER", rows, stats)
