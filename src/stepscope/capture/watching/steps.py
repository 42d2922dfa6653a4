"""Follows the steps of the training loop, on its own thread: how long each takes, and what the thread did meanwhile.

A step lasts from its start to the start of the next one.  A step that is not longer than usual steps may be costs the
training a reading of the clock and an append: everything else is done later, in batches, by a thread of the watch.  Now
and then, and after each longer step, the system's counters for this thread are read; how often depends on what that
takes here.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from stepscope.capture.handles import move_up
from stepscope.capture.report import NeverRaise
from stepscope.capture.steps.step_loop import StepSource
from stepscope.capture.watching.baseline import Baseline, Length
from stepscope.kernels.small_files import read_start

_LEAST_FRESH_NS, _MOST_FRESH_NS = 20_000_000, 1_000_000_000  # between two readings of the counters
_SHARE_OF_READING = 0.0005  # of the time that the job has
_LEAST_JOB_PART = 0.2
_LONGEST_HOOK_NS = 1_000_000  # what took longer was interrupted
_SMOOTH = 0.1
_CLEAR_EXTRA_NS = 500_000
_QUICK_HOOK_NS = 15_000  # measured between steps that had used the caches meanwhile; alone, it takes a tenth of that
_MOST_WAITING = 50_000  # steps, if nobody takes them
_MOST_OF, _NEARLY_ALL = 0.5, 0.85  # of the additional time
_MANY_FAULTS = 10  # that read the disk: a few are those of a file that is mapped

CONTENDED, COLLECTED = "contention", "garbage collection"

QuickStep = tuple[int, int, int]
"""Number, start and end in ns of a step that was as long as usual."""


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
        is_contended: it is slow, and would not be if its thread had not waited for a processor.
    """

    number: int
    start: Usage
    end: Usage
    is_slow: bool
    usual_ns: int
    was_profiled: bool
    is_contended: bool = False

    @property
    def length_ns(self) -> int:
        """How long it took."""
        return self.end.at_ns - self.start.at_ns

    @property
    def counted_cause(self) -> str:
        """What counters of its thread show for most of the time that it took longer than usual; empty if nothing.  A
        thread that does more than usual waits longer for a core, too, so that wait has to be nearly all of it."""
        extra_ns = self.length_ns - self.usual_ns
        if self.end.collector_ns - self.start.collector_ns >= _MOST_OF * extra_ns:
            return COLLECTED
        is_wait = self.is_contended or self.end.queued_ns - self.start.queued_ns >= _NEARLY_ALL * extra_ns
        return CONTENDED if is_wait else ""

    def describe(self) -> str:
        """How much longer than usual it took, and what counters of its thread say of that."""
        said = f"Step {self.number:,} took {_ms(self.length_ns)} instead of {_ms(self.usual_ns)}"
        if self.counted_cause == COLLECTED:
            ran_ns = self.end.collector_ns - self.start.collector_ns
            return f"{said}: Python's garbage collector ran for {_ms(ran_ns)}"
        if self.counted_cause == CONTENDED:
            return f"{said}: its thread waited {_ms(self.end.queued_ns - self.start.queued_ns)} for a free core"
        faults = self.end.disk_faults - self.start.disk_faults
        return said if faults < _MANY_FAULTS else f"{said}, with {faults:,} page faults that read the disk"


def _ms(ns: float) -> str:
    """A time for a sentence.

    >>> _ms(1_234_567_890), _ms(12_300_000), _ms(930_000)
    ('1,235 ms', '12 ms', '0.9 ms')
    """
    ms = ns / 1e6
    return f"{ms:,.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


class ThreadMeter:
    """Reads what the calling thread has used.  One for each thread.

    Args:
        collector_ns: how long the garbage collector has run.
    """

    def __init__(self, collector_ns: Callable[[], int]) -> None:
        self._collector_ns = collector_ns
        self._queue: int | None = None
        with suppress(OSError):  # only Linux has it
            self._queue = move_up(os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC))
        self._usage = _usage_reader()

    def read(self, now_ns: int) -> Usage:
        """What the thread has used until now."""
        cpu_ns, faults = self._usage()
        queued = 0
        if self._queue is not None:
            with suppress(ValueError, IndexError):
                queued = int(read_start(self._queue).split()[1])
        return Usage(now_ns, cpu_ns, queued, faults, self._collector_ns())

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
    """Receives the steps of the loop, and makes records of them.

    Args:
        usual: judges the lengths.
        report_step: called with each record of a step that was not quick, on the thread of the steps; must not raise.
        is_profiled: whether a capture runs or is being written.
        collector_ns: how long the garbage collector has run.
        may_be_quick: whether steps may be noted alone, because nobody waits for one.

    Attributes:
        active: as for a `Listener`.
        thread_number: the system's number of the thread that runs the steps; 0 before the first.
        number: of the open step.
        open_since_ns: when it started; 0 while none is open.
        last_end_ns: when the last step ended; 0 before the first.
        count: how many have ended.
        source: what is followed; None before the first report.
        queued_ns: for how long the thread of the steps could run and waited for a processor, by the last reading.
    """

    def __init__(
        self,
        usual: Baseline,
        report_step: Callable[[StepRecord], None],
        is_profiled: Callable[[], bool],
        collector_ns: Callable[[], int],
        may_be_quick: Callable[[], bool] = lambda: True,
    ) -> None:
        self.active = True
        self.usual = usual
        self.thread_number = self.number = self.open_since_ns = self.last_end_ns = self.count = 0
        self.queued_ns = 0
        self.source: StepSource | None = None
        self._report_step = report_step
        self._is_profiled = is_profiled
        self._collector_ns = collector_ns
        self._may_be_quick = may_be_quick
        self._meter: ThreadMeter | None = None
        self._thread = 0
        self._start: Usage | None = None
        self._began_profiled = False
        self._inside = threading.Lock()
        self._taking = threading.Lock()
        self._quick: list[QuickStep] = []
        self._full: list[StepRecord] = []
        self._quick_source: StepSource | None = None
        self._quick_until_ns = self._quick_length_ns = 0
        self._spent_ns = self._hooks = 0
        self._hook_ns = 0.0
        self._queued_part = 0.0  # of what steps take longer than the median, the part of such waits
        self._queue_rate = self._run_rate = 0.0  # the usual parts of the time in which it waits for a core, and runs

    @property
    def hook_ns(self) -> int:
        """How long the hooks of the watch have taken, the quick ones by an estimate."""
        return self._spent_ns + _QUICK_HOOK_NS * (self.count - self._hooks)

    # -- what the loop reports, on the thread of the steps -------------------------------------------------------------

    def start_step(self, source: StepSource, number: int | None = None) -> None:
        """A step starts, unless one is open."""
        if self._start is None or source is not self.source:
            self._run(self._begin, source, number)

    def end_step(self, source: StepSource, another_follows: bool = True, number: int | None = None) -> None:
        """A step has ended; if another follows, it starts with that."""
        now, quick = time.perf_counter_ns(), self._quick_source
        if now < self._quick_until_ns and quick is not None:
            is_usual = now - self.open_since_ns < self._quick_length_ns
            if source is quick and another_follows and is_usual and threading.get_ident() == self._thread:
                self._quick.append((self.number, self.open_since_ns, now))
                self.number = self.number + 1 if number is None else number
                self.count += 1
                self.open_since_ns = now
                return
        self._run(self._end, source, another_follows, number)

    def close(self) -> None:
        """Ends the watch of the steps."""
        self.active = False
        self.look_closely()
        if self._meter is not None:
            self._meter.close()

    def forget_parent(self) -> None:
        """After a fork: the steps belong to the parent."""
        self.active = False
        self.look_closely()

    # -- what other threads ask ----------------------------------------------------------------------------------------

    def look_closely(self) -> None:
        """Reports every step at once from now on, until `may_be_quick` allows otherwise."""
        self._quick_until_ns = 0

    def take(self) -> tuple[list[QuickStep], list[StepRecord]]:
        """The steps since the last call, and adds the quick ones to what is usual."""
        with self._taking:
            quick, full = self._quick[:], self._full[:]
            del self._quick[: len(quick)], self._full[: len(full)]
        if quick:
            self.usual.add([end - start for _, start, end in quick], self._queued_part)
        return quick, full

    # -- on the thread of the steps ------------------------------------------------------------------------------------

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        if not self.active or not self._inside.acquire(blocking=False):
            return
        start = time.perf_counter_ns()
        try:
            with NeverRaise("following the steps", strict=False):
                work(*arguments)
        finally:
            self._note_hook(min(time.perf_counter_ns() - start, _LONGEST_HOOK_NS))
            self._inside.release()

    def _note_hook(self, spent_ns: int) -> None:
        self._spent_ns += spent_ns
        self._hooks += 1
        self._hook_ns += (_SMOOTH if self._hook_ns else 1.0) * (spent_ns - self._hook_ns)

    def _begin(self, source: StepSource, number: int | None) -> None:
        self._follow(source)
        if self._start is None:
            self._open(self.number if number is None else number, None)

    def _end(self, source: StepSource, another_follows: bool, number: int | None) -> None:
        self._follow(source)
        now = self._finish_open()
        self.number = self.number + 1 if number is None else number
        if another_follows:
            self._open(self.number, now)

    def _follow(self, source: StepSource) -> None:
        """Measures the steps of this source from now on: another loop has taken the place of the one before."""
        if source is not self.source:
            self.source, self._start = source, None
            self.look_closely()
            self.usual.forget()

    def _open(self, number: int, now: Usage | None) -> None:
        """A step starts: now, or when the one before it has ended."""
        if self._thread != threading.get_ident():
            self._take_thread()
        assert self._meter is not None
        self._began_profiled = self._is_profiled()
        self._start = self._meter.read(time.perf_counter_ns()) if now is None else now
        self.number, self.open_since_ns = number, self._start.at_ns
        self._allow_quick(self._start.at_ns)

    def _allow_quick(self, now_ns: int) -> None:
        """For how long, and up to which length, steps are noted alone."""
        if self._began_profiled or not self._may_be_quick() or len(self._quick) > _MOST_WAITING:
            self.look_closely()
            return
        self._quick_source = self.source
        self._quick_length_ns = self.usual.never_slow_ns
        fresh_ns = round(self._hook_ns / _SHARE_OF_READING / max(1 - self._queue_rate, _LEAST_JOB_PART))
        self._quick_until_ns = now_ns + min(max(fresh_ns, _LEAST_FRESH_NS), _MOST_FRESH_NS)

    def _take_thread(self) -> None:
        if self._meter is not None:
            self._meter.close()
        self._thread, self.thread_number = threading.get_ident(), threading.get_native_id()
        self._meter = ThreadMeter(self._collector_ns)

    def _finish_open(self) -> Usage | None:
        """Ends the open step; returns what the thread had used then, None if no step was open on this thread."""
        start, self._start = self._start, None
        since, self.open_since_ns = self.open_since_ns, 0
        self.look_closely()
        if start is None or self._meter is None or self._thread != threading.get_ident():
            return None
        usual_ns, end = self.usual.median_ns, self._meter.read(time.perf_counter_ns())
        start = self._counters_at(since, start, end)
        profiled = self._began_profiled or self._is_profiled()
        queued_ns = end.queued_ns - start.queued_ns
        length = Length.USUAL if profiled else self.usual.judge(end.at_ns - since, queued_ns)
        self._note_queue(end.at_ns - since - usual_ns, queued_ns)
        self.last_end_ns, self.queued_ns = end.at_ns, end.queued_ns
        self.count += 1
        is_slow, is_contended = length is not Length.USUAL, length is Length.CONTENDED
        step = StepRecord(self.number, start, end, is_slow, usual_ns, profiled, is_contended)
        self._full.append(step)
        self._report_step(step)
        return end

    def _note_queue(self, extra_ns: int, queued_ns: int) -> None:
        """A step took longer than the median by this, and waited for a processor for that."""
        if extra_ns > _CLEAR_EXTRA_NS:
            self._queued_part += _SMOOTH * (min(queued_ns / extra_ns, 1.0) - self._queued_part)

    def _counters_at(self, since_ns: int, last: Usage, end: Usage) -> Usage:
        """What the thread had used when its step started, which is after the last reading if quick steps lie between:
        those ran, and waited for a processor, as much as steps usually do; no step does for longer than it takes."""
        passed_ns, before_ns, length_ns = end.at_ns - last.at_ns, since_ns - last.at_ns, end.at_ns - since_ns
        queued_ns, ran_ns = end.queued_ns - last.queued_ns, end.cpu_ns - last.cpu_ns
        queued_before_ns = max(min(round(self._queue_rate * before_ns), queued_ns), queued_ns - length_ns)
        left_ns = length_ns - (queued_ns - queued_before_ns)
        ran_before_ns = max(min(round(self._run_rate * before_ns), ran_ns), ran_ns - left_ns)
        if passed_ns > 0:
            self._queue_rate += _SMOOTH * (queued_ns / passed_ns - self._queue_rate)
            self._run_rate += _SMOOTH * (ran_ns / passed_ns - self._run_rate)
        cpu_ns, queued_ns = last.cpu_ns + ran_before_ns, last.queued_ns + queued_before_ns
        return last._replace(at_ns=since_ns, cpu_ns=cpu_ns, queued_ns=queued_ns)
