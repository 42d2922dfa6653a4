"""One capture from its start to its files: the framework's profiler and Stepscope's own tracers, on one clock."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from stepscope.capture import cost, files, report, tracers
from stepscope.capture.assemble import assemble_profile, measure_jump_ns
from stepscope.capture.kept_arrays import KeptArrays
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.other_process import ConverterProcess
from stepscope.capture.out_of_memory import describe_failure, find_full_memory
from stepscope.capture.own_threads import is_main_thread
from stepscope.capture.program_facts import collect_program_facts
from stepscope.capture.spool import Spool
from stepscope.capture.tracers import ranges
from stepscope.capture.tracers.base import Collected, Metadata, Recording, Span, Tracer, TwoSpans
from stepscope.capture.tracers.host import HostTracer
from stepscope.capture.tracers.probes import Probes
from stepscope.capture.tracers.ticker import Ticker
from stepscope.errors import CaptureError
from stepscope.formats.spool.layout import WITHOUT_FRAMEWORK, StatValue, session
from stepscope.kernels.observe import is_of_program

EndEarly = Callable[["Capture"], None]

FLUSH_S = 1.0
FLUSH_BYTES = 4 << 20
_LOOK_S, _LOOK_OFTEN_S = 0.5, 0.1
_WARN_AT = 0.8
_STOP_PATIENCE_S = 2.0  # longer than an operation takes; a program without steps whose main thread waits costs so much
_MUTED_S = 0.2  # for operations that had begun before
_CLOCK_READINGS = 5
_FIRST_LOOK, _LOOK_EVERY = 20, 5  # steps; so few show a leak


class Capture:
    """A capture.  `start`, `end`, `take` and `collect` are called in this order, once each.

    Attributes:
        name: the framework's name; `host` if there is none.
        target: the place of its files; None if it is taken in memory.
        needs_framework: True if a framework's profiler takes part.
        path: the profile, once it is written, if it is on this machine.
        url: its address, once it is written, if it is on another machine.
        is_written: True once the files are stored.
        released: set when the framework's profiler has stopped.
        finished: set when the files are written, or when writing has failed.
        ended_early: why the capture ended itself; empty if it did not.
        own_facts: what its maker wants to be kept in the profile.
        yields: True if any other capture may end and discard this one.
        gave_way: True once that has happened.
        notes: sentences for the reader of the profile.
    """

    def __init__(
        self,
        entry: tracers.TracerEntry,
        target: files.Target | None,
        options: ProfilerOptions,
        end_request: threading.Event | None = None,
        yields: bool = False,
    ) -> None:
        self.name = entry.name
        self._end_request = end_request
        self.target = target
        self.options = options
        self.needs_framework = entry.needs_framework
        self.path: Path | None = None
        self.url: str | None = None
        self.is_written = False
        self.ended_early = ""
        self.own_facts: dict[str, StatValue] = {}
        self.yields, self.gave_way = yields, False
        self.notes: list[str] = []
        self.released = threading.Event()
        self.finished = threading.Event()
        self._clock = time.perf_counter_ns
        self._tracer: Tracer | None = entry.load()() if entry.needs_framework else None
        self._host = HostTracer()
        self._probes = Probes()
        self._thread = threading.get_ident()
        self._spool: Spool | None = None
        self._recording: Recording | None = None
        self._helper = ConverterProcess()
        self._flusher = Ticker("flush", _LOOK_S, self._look)
        self._flush_lock = threading.Lock()
        self._flushed_ns = self._start_ns = self._start_unix_ns = self._jump_ns = 0
        self._warned = self._warned_of_limit = False
        self._end_early: EndEarly | None = None
        self._lengths: dict[str, StatValue] = {}
        self._arrays: KeptArrays | None = None
        self._steps = 0

    # -- start -------------------------------------------------------------------------------------------------------

    def start(self, end_early: EndEarly) -> None:
        """Starts recording.  Raises what the framework's profiler raises, and leaves nothing running then.

        Args:
            end_early: called on one of the capture's own threads when it has reached a limit.
        """
        self._end_early = end_early
        self._start_ns, self._start_unix_ns = read_two_clocks()
        self._flushed_ns = self._start_ns
        framework = self.name if self._tracer else ""
        self._spool = self._open_spool(framework, self._start_unix_ns)
        with ExitStack() as on_error:
            on_error.callback(self._spool.remove)
            if self._tracer is not None:
                self._tracer.start(self.options)
            on_error.pop_all()
            for undo in (self.forget, partial(self.take, save=False), self.end):  # each, though the next one fails
                on_error.callback(undo)
            self._start_own(framework)
            on_error.pop_all()

    def _open_spool(self, framework: str, unix_ns: int) -> Spool:
        host = self.target.name if self.target else files.host_name()
        path = self.target.partial if self.target else None
        with files.translate_write_errors(path.parent if path else Path(tempfile.gettempdir())):
            return Spool(path, session(host, framework, self._start_ns, unix_ns))

    def _start_own(self, framework: str) -> None:
        cost.LENGTHS.start_capture()
        may_count = self.options.host_tracer_level > 1 and is_main_thread()
        if framework and may_count and not self.yields:  # a watch has no half second for it
            with report.NeverRaise("counting arrays", strict=False):
                self._arrays = KeptArrays()
        self._probes.start(self._host, self.options, self._clock)
        for entry in tracers.PROBES:
            with report.NeverRaise(f"recording {entry.what}", strict=False):
                if entry.wanted(self.options, framework):
                    self._probes.start(entry.make(), self.options, self._clock)
        self._flusher.start()
        if self._tracer is not None:
            ranges.route(self._annotate_both)
        elif self.options.host_tracer_level > 0:
            ranges.route(self._host.annotate, cannot_fail=True)

    def _annotate_both(self, name: str, metadata: Metadata) -> Span:
        assert self._tracer is not None
        return TwoSpans(self._tracer.annotate(name, metadata), self._host.annotate(name, metadata))

    # -- while it runs -----------------------------------------------------------------------------------------------

    def _look(self) -> float:
        """Flushes once a second, or sooner if there is much to flush, and ends the capture at its limits.

        Returns:
            The seconds until the next look; each look wakes a thread, which costs a tenth of a millisecond.
        """
        now = self._clock()
        waiting = self._probes.waiting_bytes()
        since_flush_s = (now - self._flushed_ns) / 1e9
        if waiting >= FLUSH_BYTES or since_flush_s >= FLUSH_S:
            self._flush()
        self._end_at_limits(now)
        next_flush_s = FLUSH_S - since_flush_s if since_flush_s < FLUSH_S else FLUSH_S
        full_s = FLUSH_BYTES * since_flush_s / waiting - since_flush_s if waiting else FLUSH_S
        end_s = self.options.max_seconds - (now - self._start_ns) / 1e9
        return max(_LOOK_OFTEN_S, min(_LOOK_S, next_flush_s, full_s, end_s))

    def _end_at_limits(self, now: int) -> None:
        assert self._spool is not None
        self._enforce_limits(
            ((now - self._start_ns) / 1e9, self.options.max_seconds, "max_seconds", "s"),
            (self._spool.size / 1e6, self.options.max_bytes / 1e6, "max_bytes", "MB"),
            (self.events_recorded(), self.options.max_events, "max_events", "events"),
        )

    def note_step(self) -> None:
        """A step of the loop has ended."""
        self._steps += 1
        if self._arrays is not None and self._steps >= _FIRST_LOOK and self._steps % _LOOK_EVERY == 0:
            with report.NeverRaise("counting arrays", strict=False):
                self._arrays.look()

    def events_recorded(self) -> int:
        """About how many events the framework's profiler holds and the program will wait for; 0 if unknown."""
        count: Callable[[], int | None] | None = getattr(self._tracer, "events_recorded", None)
        return (count() if count else None) or 0

    def _enforce_limits(self, *limits: tuple[float, float, str, str]) -> None:
        for used, limit, name, unit in limits:
            most = f"{_amount(limit)} {unit} ({name})"
            if used >= limit and self.is_bound_to_thread:
                if not self._warned_of_limit:
                    self._warned_of_limit = True
                    report.warn(
                        f"the capture has reached {most}, and only the thread that started it can end it: call stop()"
                        " there"
                    )
                return
            if used >= limit and not self.ended_early:
                self.ended_early = f"the capture ended itself after {most}"
                report.warn(f"{self.ended_early}; what was recorded until then is saved")
                assert self._end_early is not None
                self._end_early(self)
                return
            if used >= _WARN_AT * limit and not self._warned:
                self._warned = True
                report.warn(f"the capture ends itself after {most}, {_amount(used)} {unit} are reached")

    def _flush(self) -> None:
        assert self._spool is not None
        with self._flush_lock:
            self._flushed_ns = self._clock()
            self._probes.drain(self._spool.add)

    # -- end ---------------------------------------------------------------------------------------------------------

    @property
    def is_bound_to_thread(self) -> bool:
        """Whether the framework's profiler has to be stopped on the thread that started it."""
        return self._tracer is not None and self._tracer.one_thread

    @property
    def stops_where_asked(self) -> bool:
        """Whether the framework's profiler is stopped on the thread that ends the capture, and not beside it."""
        return self._tracer is not None and (self._tracer.one_thread or self._tracer.stops_where_asked)

    def request_end(self) -> bool:
        """Asks the caller that takes this capture in memory to end it; False if the capture goes to files."""
        if self._end_request is None:
            return False
        self._end_request.set()
        return True

    def refuse_other_thread(self) -> None:
        """Raises CaptureError if the framework's profiler cannot be stopped on the calling thread."""
        if self.is_bound_to_thread and self._thread != threading.get_ident():
            raise CaptureError(
                f"the {self.name} profiler has to be stopped on the thread that started it",
                code="wrong-thread",
                kept="the running capture",
                hint="call stop() there",
            )

    def end(self) -> None:
        """Ends Stepscope's own tracers, which takes almost no time."""
        ranges.end_open_step()
        ranges.route(None, released=self.released)
        self._lengths = cost.LENGTHS.facts()  # before files are written: steps go on meanwhile
        clock_ns, unix_ns = read_two_clocks()
        self._jump_ns = measure_jump_ns(clock_ns - self._start_ns, unix_ns - self._start_unix_ns)
        self._probes.stop()
        if self._arrays is not None and is_main_thread():
            with report.NeverRaise("counting arrays", strict=False):
                self.own_facts |= self._arrays.held | self._arrays.find_last()
        self._arrays = None
        with report.NeverRaise("finding what fills the memory", strict=False):
            if (full := find_full_memory()) is not None:
                self.notes.append(full.sentence)
                self.own_facts |= full.facts
            elif failure := describe_failure():
                self.notes.append(failure)

    def take(self, save: bool) -> Recording | None:
        """Stops the framework's profiler, which may take seconds.  None without one, or if nothing is to be saved."""
        self._flusher.stop()
        try:
            if self._tracer is None:
                return None
            stop = self._tracer.stop if save else self._tracer.discard
            asked_by_step = self._thread == threading.get_ident() and self._end_request is None
            if not self._tracer.stops_where_asked or asked_by_step or is_main_thread():
                return stop()
            return _call_between_operations(stop, getattr(self._tracer, "mute", None))
        finally:
            self.released.set()

    def collect(self, recording: Recording | None) -> Collected:
        """The contents of the files, which are valid until `forget` or `leave_partial`."""
        assert self._spool is not None
        self._recording = recording
        self._flush()
        for note in filter(None, (self.ended_early, *self.notes)):
            self._spool.note(note)
        self._spool.facts(cost.PLANE, self._facts())
        host = self.target.name if self.target else files.host_name()
        framework = self._collect_framework(host)
        return assemble_profile(self._spool, self._clock(), framework, host, self._helper, self._jump_ns)

    def _facts(self) -> dict[str, StatValue]:
        held_s = getattr(self._recording, "held_s", None)
        pause: dict[str, StatValue] = {} if held_s is None else {cost.PAUSE: 1000.0 * float(held_s)}
        settings: dict[str, StatValue] = {
            f"{cost.SETTING}{name}": os.environ[name] for name in cost.SETTINGS if os.environ.get(name)
        }
        settings[cost.RECORDED] = self.options.describe(self.name if self._tracer else "")
        lost = {WITHOUT_FRAMEWORK: 1} if self._tracer is None else {}
        added = self._probes.cost_ms()
        pause |= {cost.PYTHON: added} if added else {}
        least_us = self.options.python_min_us if self.options.python_tracer_level else 0.0
        pause |= {cost.LEAST_CALL: float(least_us)} if least_us else {}
        return self._lengths | collect_program_facts() | self.own_facts | pause | settings | lost

    def _collect_framework(self, host: str) -> Collected | None:
        if self._recording is None:
            return None
        try:
            return self._recording.collect(host, self._helper)
        except Exception as error:  # what Stepscope recorded itself is not lost
            return Collected((), report.translate_error(error, "collecting the framework's profile"))

    def wait_for_path(self) -> Path | None:
        """The profile, once it is written; None if it is not on this machine, or is known not to be there."""
        self.finished.wait(threading.TIMEOUT_MAX)
        return self.path

    @property
    def place(self) -> Path | str | None:
        """The profile's file, or its address on another machine; None until it is written."""
        return self.path or self.url

    def forget(self) -> None:
        """Frees what was recorded and removes what was flushed."""
        self._close_recording()
        if self._spool is not None:
            self._spool.remove()
        if self.target is not None:
            self.target.release()

    def _close_recording(self) -> None:
        self._helper.close()
        if self._recording is not None:
            try:
                self._recording.close()
            except Exception as error:
                report.report(error, "cleaning up")

    def cut_short(self, by: str) -> None:
        """The program ends at this moment: flushes what Stepscope's own tracers have.  The framework's takes too
        long."""
        self._flush()
        assert self._spool is not None
        self._spool.cut(by)

    def leave_partial(self) -> None:
        """Frees what was recorded, and keeps the file with what was flushed."""
        self._close_recording()
        if self._spool is not None:
            self._spool.abandon()

    def abandon(self) -> None:
        """In a forked child: the capture, its threads and its files belong to the parent."""
        if self._spool is not None:
            self._spool.abandon()
        self._probes.abandon()


class _AtStep:
    """Calls a function when the next step of the loop starts or ends, on the thread of the steps."""

    active = True

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call

    def start_step(self, source: object, number: int | None = None) -> None:
        """A step starts."""
        self._call()

    def end_step(self, source: object, another_follows: bool = True, number: int | None = None) -> None:
        """A step has ended."""
        self._call()


def _call_between_operations(
    call: Callable[[], Recording | None], mute: Callable[[], object] | None
) -> Recording | None:
    """Calls a function where no operation of a framework runs: on the thread of the steps when one ends, or on the main
    thread between two instructions of its Python code, whichever comes first.

    If neither comes, because the program has no steps and its main thread waits for a thread, the profiler is made to
    overlook operations from then on, those that had begun are given time, and the calling thread does it.
    """
    from stepscope.capture.steps.finding import FINDING
    from stepscope.kernels.calls import call_on_main_thread

    claimed, done = threading.Lock(), threading.Event()
    results: list[Recording | None] = []
    failures: list[BaseException] = []

    def call_once() -> None:
        if not claimed.acquire(blocking=False):
            return
        try:
            results.append(call())
        except BaseException as error:
            failures.append(error)
            if is_of_program(error):
                raise
        finally:
            done.set()

    remove = FINDING.add(_AtStep(call_once))
    try:
        call_on_main_thread(call_once)
        if not done.wait(_STOP_PATIENCE_S) and claimed.acquire(blocking=False):
            if mute is not None:
                mute()
                done.wait(_MUTED_S)
            return call()
        done.wait()
    finally:
        remove()
    if failures:
        raise failures[0]
    return results[0]


def _amount(number: float) -> str:
    """A limit or a use of it, for a message.

    >>> _amount(3600.0), _amount(0.25), _amount(1_000_000)
    ('3,600', '0.25', '1,000,000')
    """
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def read_two_clocks() -> tuple[int, int]:
    """One moment on the capture's clock and on the wall clock, both in ns.

    The quickest of a few readings counts: the system may suspend the thread inside any of them.
    """
    readings = []
    for _ in range(_CLOCK_READINGS):
        before, unix_ns, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        readings.append((after - before, (before + after) // 2, unix_ns))
    _, clock_ns, unix_ns = min(readings)
    return clock_ns, unix_ns
