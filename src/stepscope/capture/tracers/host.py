"""Stepscope's own tracer: the program's annotations, for code that no framework's profiler watches.

A range costs two readings of the clock and one append to a queue that belongs to its thread, so no lock is taken and
threads do not wait for each other.  Ranges nest as the `with` blocks do.  As in TensorFlow's tracer, a range that was
open when the capture began or ended is not recorded.
"""

from __future__ import annotations

import operator
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.base import Artifact, Collected, Metadata

if TYPE_CHECKING:
    from stepscope.model import EventKind, LineBuilder
    from stepscope.model import HostTrace as Trace

MAX_EVENTS = 1_000_000
"""Ranges kept for each thread, the newest; about 150 MB.  A capture that nobody stops must not eat the machine."""

Event = tuple[str, int, int, Metadata]  # name, start and end in ns of the clock, metadata
Clock = Callable[[], int]


@dataclass(frozen=True)
class Thread:
    """What one thread recorded: its name, the system's number for it, and the ranges in the order of their ends."""

    name: str
    number: int
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS))


class HostTracer:
    """Records annotations itself, in memory.

    Args:
        clock: a steady clock in ns.
        wall_clock: ns since 1970, read once to place the steady clock in time.
    """

    one_thread = False

    def __init__(self, clock: Clock = time.perf_counter_ns, wall_clock: Clock = time.time_ns) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._local = threading.local()
        self._threads: list[Thread] = []
        self._start_ns = 0
        self._start_unix_ns = 0

    @staticmethod
    def in_use() -> bool:
        """False: there is no framework to use."""
        return False

    @staticmethod
    def listening() -> bool:
        """False: nobody else drives this tracer."""
        return False

    def start(self, options: ProfilerOptions) -> None:
        """Begins to record; the levels change nothing."""
        before = self._clock()
        self._start_unix_ns = self._wall_clock()
        self._start_ns = (before + self._clock()) // 2

    def stop(self) -> HostRecording:
        """Ends the recording."""
        threads = [Thread(thread.name, thread.number, _snapshot(thread.events)) for thread in list(self._threads)]
        return HostRecording(threads, self._start_ns, self._start_unix_ns, self._clock())

    def discard(self) -> None:
        """Forgets what was recorded."""
        self._threads.clear()

    def annotate(self, name: str, metadata: Metadata) -> HostSpan:
        """A range of the thread that enters it."""
        return HostSpan(self, name, metadata)

    def append_of_this_thread(self) -> Callable[[Event], None]:
        """What takes the events of the thread that calls."""
        thread = Thread(threading.current_thread().name, threading.get_native_id())
        self._threads.append(thread)
        append: Callable[[Event], None] = thread.events.append
        self._local.append = append
        return append


class HostSpan:
    """One range.  It works on the tracer's insides because every call that is saved here is saved a million times."""

    __slots__ = ("_metadata", "_name", "_start_ns", "_tracer")

    def __init__(self, tracer: HostTracer, name: str, metadata: Metadata) -> None:
        self._tracer = tracer
        self._name = name
        self._metadata = metadata

    def __enter__(self) -> HostSpan:
        self._start_ns = self._tracer._clock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        tracer = self._tracer
        end_ns = tracer._clock()
        try:
            append = tracer._local.append
        except AttributeError:
            append = tracer.append_of_this_thread()
        append((self._name, self._start_ns, end_ns, self._metadata))

    def set_metadata(self, **metadata: object) -> None:
        """Adds facts to the range."""
        self._metadata = {**self._metadata, **metadata}


def _snapshot(events: deque[Event]) -> deque[Event]:
    while True:  # a thread that leaves its last range just now changes the queue under the copy
        try:
            return deque(events, maxlen=events.maxlen)
        except RuntimeError:
            continue


@dataclass
class HostRecording:
    """What all threads recorded between two readings of the clock."""

    threads: list[Thread]
    start_ns: int
    start_unix_ns: int
    stop_ns: int

    def collect(self, host: str) -> Collected:
        """The recording as XSpace."""
        from stepscope.formats.xspace.writer import write

        return Collected((Artifact("xplane.pb", write(self.trace(host))),))

    def close(self) -> None:
        """Lets go of the events."""
        self.threads = []

    def trace(self, host: str) -> Trace:
        """The recording as a trace: a line for each thread, and the session's times."""
        from stepscope.model import PlaneKind, TraceBuilder

        stop_unix_ns = self.start_unix_ns + self.stop_ns - self.start_ns
        builder = TraceBuilder(host, self.start_unix_ns, stop_unix_ns)
        plane = builder.plane("/host:CPU", PlaneKind.HOST)
        for thread in self.threads:
            self._fill(builder.line(plane, thread.name, thread.number), thread.events)
        builder.recorder_messages += [_lost(thread) for thread in self.threads if len(thread.events) == MAX_EVENTS]
        builder.partial = bool(builder.recorder_messages)
        return builder.build()

    def _fill(self, line: LineBuilder, events: deque[Event]) -> None:
        from stepscope.model import Trait

        for name, start_ns, end_ns, metadata in events:
            kind = _kind(metadata)
            traits = Trait.EXPLICIT_ROOT if metadata.get("_r") else Trait.NONE
            stats = {key: _stat(value) for key, value in metadata.items()}
            line.event(name, (start_ns - self.start_ns) * 1000, (end_ns - start_ns) * 1000, kind, stats, traits)


def _kind(metadata: Metadata) -> EventKind:
    """What a range is: a step, a wait for input if it is marked as a stage of the input, else a user's range."""
    from stepscope.model import EventKind

    if "step_num" in metadata:
        return EventKind.STEP_MARK
    return EventKind.INPUT_WAIT if "_ipl_stage_name" in metadata else EventKind.ANNOTATION


def _lost(thread: Thread) -> str:
    return f"thread {thread.name} recorded more than {MAX_EVENTS:,} ranges; the oldest were dropped"


def _stat(value: object) -> int | float | str | bytes:
    """Metadata as a stat: numbers as numbers, whatever they come wrapped in, the rest as text."""
    if isinstance(value, float | str | bytes):
        return value
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: an array library on an array of several elements
        return _fraction(value)
    return number if -(1 << 63) <= number < 1 << 64 else str(number)


def _fraction(value: object) -> float | str:
    try:
        return float(value) if hasattr(value, "__float__") else str(value)
    except (TypeError, ValueError, RuntimeError):
        return str(value)
