"""Records how long the threads of the loop ran, and for how long they were ready and had no processor.

No trace of a framework shows that another process took the processor: the thread is just late.  Linux counts both times
for each thread.  They are read whenever a step starts, on its thread, and with each sample of the stacks, which finds
where in the step the time was lost.  Threads are the main thread, those that marked a step, and a few others of Python
that run when the capture starts: one that never waits keeps the interpreter from the loop.  Elsewhere than on Linux
nothing is recorded.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field

from stepscope.capture.handles import move_up
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import name_of_this_thread
from stepscope.capture.ranges import watch_steps
from stepscope.capture.tracers.base import Clock, Probe, make_chunk
from stepscope.formats.spool.layout import QUEUED_NS, RAN_NS, USAGE_PLANE, Chunk, StatValue
from stepscope.kernels.small_files import read_start
from stepscope.records import dataclass

_NAME = "usage"
_BYTES_OF_READING = 200
_MOST_OTHERS = 8  # threads of the program, the newest: each costs a read of a file, some 3 us, with every sample
_OF_ONE_THREAD = 6  # the system's number of the clock that counts one thread's processor time


def processor_time_ns(number: int) -> int:
    """How long a thread has run, by the system's number of it.  Raises OSError if it has ended; only Linux has it."""
    return time.clock_gettime_ns(~number << 3 | _OF_ONE_THREAD)


Reading = tuple[int, int, int]  # ns of the clock, ns that the thread has run, ns that it was ready and did not run


@dataclass
class Meter:
    """One thread: its counters, and the readings that wait to be drained.

    Attributes:
        handle: the open file of its counters.
        last: the reading that the next interval starts with.
    """

    name: str
    number: int
    handle: int
    readings: list[Reading] = field(default_factory=list)
    last: Reading | None = None

    def read(self, now_ns: int) -> None:
        """Takes a reading; none once the thread has ended."""
        with suppress(OSError, ValueError, IndexError):
            queued = int(read_start(self.handle).split()[1])
            self.readings.append((now_ns, processor_time_ns(self.number), queued))


class ThreadUsage(Probe):
    """Reads the counters of the main thread and of each thread that marks a step."""

    def __init__(self) -> None:
        self._clock: Clock = time.perf_counter_ns
        self._meters: dict[int, Meter] = {}
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
        for meter in list(self._meters.values()):
            meter.read(self._clock())

    def _note_step(self, _: object) -> None:
        """A step starts on this thread."""
        number = threading.get_native_id()
        if number not in self._meters:
            self._add(number, name_of_this_thread())
        if (meter := self._meters.get(number)) is not None:
            meter.read(self._clock())

    def _add(self, number: int | None, name: str) -> None:
        with suppress(OSError):  # only Linux has it
            handle = move_up(os.open(f"/proc/self/task/{number}/schedstat", os.O_RDONLY | os.O_CLOEXEC))
            self._meters[number or 0] = Meter(name, number or 0, handle)

    def stop(self) -> None:
        """Ends with a last reading."""
        self._end_watch()
        self.read()
        self.abandon()

    def abandon(self) -> None:
        """Closes the files; in a forked child they describe the parent."""
        self._end_watch()
        for meter in self._meters.values():
            handle, meter.handle = meter.handle, -1
            if handle >= 0:
                os.close(handle)

    def waiting_bytes(self) -> int:
        """About how much memory the readings take."""
        return _BYTES_OF_READING * sum(len(meter.readings) for meter in self._meters.values())

    def drain(self) -> list[Chunk]:
        """What each thread used from one reading to the next, since the last call."""
        return [chunk for meter in self._meters.values() if (chunk := _drain_meter(meter)) is not None]


def _drain_meter(meter: Meter) -> Chunk | None:
    count = len(meter.readings)  # another thread may add one meanwhile
    taken = sorted(meter.readings[:count])
    del meter.readings[:count]
    readings = taken if meter.last is None else [meter.last, *taken]
    intervals = join_late(readings)
    if not intervals:
        return None
    meter.last = readings[-1]
    rows = [(_NAME, start[0], stop[0]) for start, stop in intervals]
    stats = {row: _stats(start, stop) for row, (start, stop) in enumerate(intervals)}
    return make_chunk(USAGE_PLANE, meter.name, meter.number, "OTHER", rows, stats)


def join_late(readings: list[Reading]) -> list[tuple[Reading, Reading]]:
    """The intervals between readings, each longer than the wait in it.

    The system adds a wait to the counter when it is over, so the interval may be too short for it.  Then it is joined
    with the intervals before it.
    """
    joined: list[tuple[Reading, Reading]] = []
    for start, stop in itertools.pairwise(readings):
        while joined and stop[2] - start[2] > stop[0] - start[0]:
            start, _ = joined.pop()
        if stop[0] > start[0]:
            joined.append((start, stop))
    return joined


def _stats(start: Reading, stop: Reading) -> dict[str, StatValue]:
    return {RAN_NS: stop[1] - start[1], QUEUED_NS: max(stop[2] - start[2], 0)}
