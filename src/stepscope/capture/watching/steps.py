"""Follows the steps of the training loop, on its own thread: how long each takes, and what the thread did meanwhile.

A step lasts from its start to the start of the next one.  What is done per step here costs the training some ten
microseconds: a reading of the system's counters for this thread, and a look at sorted lists.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from stepscope.capture.auto.finders import MARKED, Source
from stepscope.capture.report import report
from stepscope.capture.tracers.system import make_reader
from stepscope.capture.watching.usual import UsualLength

_FRESH_NS = 20_000_000
_LONG = 1.5  # times the usual length: such a step may be slow

_STALE_STEPS = 50  # a source is not the loop's if another one has this many steps meanwhile


class Usage(NamedTuple):
    """What a thread had used at one moment; differences say what a step used.

    Attributes:
        at_ns: the clock.
        cpu_ns: processor time of the thread.
        queued_ns: for how long the thread could run and waited for a processor; 0 where the system does not say.
        disk_faults: page faults that waited for the disk.
        collector_ns: how long Python's garbage collector held this thread.
    """

    at_ns: int
    cpu_ns: int
    queued_ns: int
    disk_faults: int
    collector_ns: int


class StepRecord(NamedTuple):
    """A step that has ended.

    Attributes:
        number: as the program numbers it, or counted from 0.
        start: of its thread, when it started.
        end: and when it ended.
        is_slow: whether it is far longer than those before it.
        usual_ns: the median of the steps before it; 0 if there are too few.
        was_profiled: a capture ran or was being written, so that its length says nothing.
    """

    number: int
    start: Usage
    end: Usage
    is_slow: bool
    usual_ns: int
    was_profiled: bool

    @property
    def length_ns(self) -> int:
        """How long it took."""
        return self.end.at_ns - self.start.at_ns


class ThreadMeter:
    """Reads what the calling thread has used.  One for each thread.

    Args:
        collector_ns: how long the garbage collector has run.
    """

    def __init__(self, collector_ns: Callable[[], int]) -> None:
        self._collector_ns = collector_ns
        self._queue: int | None = None
        with suppress(OSError):  # only Linux has it
            self._queue = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self._usage = _usage_reader()
        self._read_file = make_reader()
        self._last: Usage | None = None
        self._read_ns = 0

    def read(self, now_ns: int, at_once: bool) -> Usage:
        """What the thread has used until now, or until at most `_FRESH_NS` ago: asking the system takes longer than all
        else that is done per step.

        Args:
            now_ns: the clock.
            at_once: asks the system in any case.
        """
        last = self._last
        if not at_once and last is not None and now_ns - self._read_ns < _FRESH_NS:
            return Usage(now_ns, last.cpu_ns, last.queued_ns, last.disk_faults, self._collector_ns())
        cpu_ns, faults = self._usage()
        queued = 0
        if self._queue is not None:
            with suppress(ValueError, IndexError):
                queued = int(self._read_file(self._queue).split()[1])
        self._last, self._read_ns = Usage(now_ns, cpu_ns, queued, faults, self._collector_ns()), now_ns
        return self._last

    def close(self) -> None:
        """Closes the file of the system's counters."""
        queue, self._queue = self._queue, None
        if queue is not None:
            os.close(queue)


def _usage_reader() -> Callable[[], tuple[int, int]]:
    """Reads the processor time of the calling thread, and its page faults that waited for the disk."""
    try:
        import resource

        who = resource.RUSAGE_THREAD
    except (ImportError, AttributeError):  # not Linux
        return lambda: (time.thread_time_ns(), 0)

    def read() -> tuple[int, int]:
        usage = resource.getrusage(who)
        return round((usage.ru_utime + usage.ru_stime) * 1e9), usage.ru_majflt

    return read


class StepFollower:
    """Receives the reports of the finders of steps, or the program's own marks, and makes records of them.

    Args:
        usual: judges the lengths.
        on_step: called with each record, on the thread of the steps; must not raise.
        is_profiled: whether a capture runs or is being written.
        collector_ns: how long the garbage collector has run.

    Attributes:
        active: as for a `Listener`.
        thread_number: the system's number of the thread that runs the steps; 0 before the first.
        number: of the open step.
        open_since_ns: when it started; 0 while none is open.
        last_end_ns: when the last step ended; 0 before the first.
        count: how many have ended.
        source: what is followed; None before the first report.
    """

    def __init__(
        self,
        usual: UsualLength,
        on_step: Callable[[StepRecord], None],
        is_profiled: Callable[[], bool],
        collector_ns: Callable[[], int],
    ) -> None:
        self.active = True
        self.usual = usual
        self.thread_number = self.number = self.open_since_ns = self.last_end_ns = self.count = 0
        self.source: Source | None = None
        self._on_step = on_step
        self._is_profiled = is_profiled
        self._collector_ns = collector_ns
        self._meter: ThreadMeter | None = None
        self._thread = 0
        self._start: Usage | None = None
        self._began_profiled = False
        self._others = 0
        self._inside = threading.Lock()

    # -- what finders report, on the thread of the steps ---------------------------------------------------------------

    def begin(self, source: Source) -> None:
        """A step of a source starts, unless one is open."""
        self._run(self._begin, source)

    def end(self, source: Source, another_follows: bool = True) -> None:
        """A step of a source has ended; if another follows, it starts with that."""
        self._run(self._end, source, another_follows)

    def mark_step(self, number: object) -> None:
        """The program itself has marked the start of a step."""
        self._run(self._mark, number)

    def close(self) -> None:
        """Ends the watch of the steps."""
        self.active = False
        if self._meter is not None:
            self._meter.close()

    def forget_parent(self) -> None:
        """After a fork: the steps belong to the parent."""
        self.active = False

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        if not self.active or not self._inside.acquire(blocking=False):
            return
        try:
            work(*arguments)
        except Exception as error:
            report(error, "following the steps")
        finally:
            self._inside.release()

    def _begin(self, source: Source) -> None:
        if self._follows(source) and self._start is None:
            self._open(self.number, None)

    def _end(self, source: Source, another_follows: bool) -> None:
        if not self._follows(source):
            return
        now = self._finish_open()
        if another_follows:
            self._open(self.number + 1, now)
        else:
            self.number += 1

    def _mark(self, number: object) -> None:
        if self._follows(MARKED):
            now = self._finish_open()
            self._open(number if isinstance(number, int) else self.number + 1, now)

    def _follows(self, source: Source) -> bool:
        """Whether this is the source of the loop's steps: the most certain one that still has steps."""
        best = self.source
        if source is best or source == best:  # comparing the fields of dataclasses takes microseconds
            self._others = 0
            return True
        self._others += 1
        is_better = best is None or (source.rank, source.size) > (best.rank, best.size)
        if not is_better and self._others <= _STALE_STEPS:
            return False
        self.source, self._others, self._start = source, 0, None
        self.usual.forget()
        return True

    def _open(self, number: int, now: Usage | None) -> None:
        """A step starts: now, or when the one before it has ended."""
        if self._thread != threading.get_ident():
            self._take_thread()
        assert self._meter is not None
        self._began_profiled = self._is_profiled()
        self._start = self._meter.read(time.perf_counter_ns(), at_once=True) if now is None else now
        self.number, self.open_since_ns = number, self._start.at_ns

    def _take_thread(self) -> None:
        if self._meter is not None:
            self._meter.close()
        self._thread, self.thread_number = threading.get_ident(), threading.get_native_id()
        self._meter = ThreadMeter(self._collector_ns)

    def _finish_open(self) -> Usage | None:
        """Ends the open step; returns what the thread had used then, None if no step was open on this thread."""
        start, self._start = self._start, None
        self.open_since_ns = 0
        if start is None or self._meter is None or self._thread != threading.get_ident():
            return None
        now_ns, usual_ns = time.perf_counter_ns(), self.usual.median_ns
        end = self._meter.read(now_ns, at_once=now_ns - start.at_ns > _LONG * usual_ns)
        profiled = self._began_profiled or self._is_profiled()
        slow = not profiled and self.usual.judge(end.at_ns - start.at_ns, end.queued_ns - start.queued_ns)
        self.last_end_ns = end.at_ns
        self.count += 1
        self._on_step(StepRecord(self.number, start, end, slow, usual_ns, profiled))
        return end
