"""The program's annotations: what `Trace`, `annotate` and `step` name.

A range costs two readings of the clock and one append to a list of its thread, so there are no locks and threads do not
wait for each other.  Ranges nest as the `with` blocks do.  As in TensorFlow's tracer, a range that was open when the
capture started or ended is not recorded.
"""

from __future__ import annotations

import operator
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import field
from types import TracebackType

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import name_of_this_thread
from stepscope.capture.tracers.base import Clock, Metadata, Probe, make_chunk
from stepscope.formats.spool.layout import Chunk, StatValue
from stepscope.records import dataclass

PLANE = "/host:CPU"
_BYTES_OF_EVENT = 160  # a tuple, two numbers, its share of the names
_FOREVER = sys.maxsize
_MANY_THREADS = 256

Event = tuple[str, int, int, Metadata]  # name, start and end in ns of the clock, metadata


@dataclass(frozen=True)
class RecordedThread:
    """What one thread recorded: its name, the system's number for it, and the ranges in the order of their ends."""

    name: str
    number: int
    events: list[Event] = field(default_factory=list)


class HostTracer(Probe):
    """Records annotations, in memory until they are drained."""

    def __init__(self) -> None:
        self._clock: Clock = time.perf_counter_ns
        self._local = threading.local()
        self._threads: list[RecordedThread] = []
        self._stop_ns = _FOREVER

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts recording; the levels change nothing."""
        self._clock = clock

    def stop(self) -> None:
        """Ends the recording: ranges that end later are not drained."""
        self._stop_ns = self._clock()

    def waiting_bytes(self) -> int:
        """About how much memory the ranges take."""
        return _BYTES_OF_EVENT * sum(len(thread.events) for thread in self._threads)

    def drain(self) -> list[Chunk]:
        """The ranges that have ended, a chunk for each thread that has any."""
        chunks = [self._chunk(thread, taken) for thread in list(self._threads) if (taken := take_events(thread.events))]
        if len(self._threads) > _MANY_THREADS:
            self._forget_ended_threads()
        return chunks

    def _forget_ended_threads(self) -> None:
        """Forgets threads that have ended and have nothing to drain: a program may start any number in its life."""
        running = {thread.native_id for thread in threading.enumerate()}
        for thread in list(self._threads):
            if thread.number not in running and not thread.events:
                self._threads.remove(thread)

    def _chunk(self, thread: RecordedThread, events: list[Event]) -> Chunk:
        if self._stop_ns != _FOREVER:
            events = [event for event in events if event[2] <= self._stop_ns]
        rows = [(_text(name), begin, end) for name, begin, end, _ in events]
        stats = {row: _stats(facts) for row, (_, _, _, facts) in enumerate(events) if facts}
        return make_chunk(PLANE, thread.name, thread.number, "ANNOTATION", rows, stats)

    def annotate(self, name: str, metadata: Metadata) -> HostSpan:
        """A range of the thread that enters it."""
        return HostSpan(self, name, metadata)

    def make_append(self) -> Callable[[Event], None]:
        """Makes the function that stores the events of the calling thread."""
        thread = RecordedThread(name_of_this_thread(), threading.get_native_id())
        self._threads.append(thread)
        append: Callable[[Event], None] = thread.events.append
        self._local.append = append
        return append


class HostSpan:
    """One range.  It uses the tracer's private attributes, because every call that is saved here is saved millions of
    times."""

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
            append = tracer.make_append()
        append((self._name, self._start_ns, end_ns, self._metadata))

    def set_metadata(self, **metadata: object) -> None:
        """Adds facts to the range."""
        self._metadata = {**self._metadata, **metadata}


def take_events(events: list[Event]) -> list[Event]:
    """Takes the events from a list that another thread appends to: each of the two steps is atomic in Python."""
    taken = events[:]
    del events[: len(taken)]
    return taken


def _stats(metadata: Metadata) -> dict[str, StatValue]:
    return {str(key): _stat(value) for key, value in metadata.items()}


def _stat(value: object) -> StatValue:
    """A value of the metadata as a stat: numbers of any type as numbers, everything else as text."""
    if type(value) is int and value.bit_length() < 63:  # most are, and steps always
        return value
    if isinstance(value, float | str | bytes):
        return value
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except Exception:  # it is the program's own code, and may raise anything
        return _fraction(value)
    return number if -(1 << 63) <= number < 1 << 64 else _text(number)


def _fraction(value: object) -> float | str:
    try:
        return float(value) if hasattr(value, "__float__") else _text(value)
    except Exception:
        return _text(value)


def _text(value: object) -> str:
    """A value as text; the name of its type if it cannot be converted."""
    if type(value) is str:
        return value
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"
