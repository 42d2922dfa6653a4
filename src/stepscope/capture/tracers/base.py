"""The interfaces of tracers.

There are two kinds.  A `Tracer` drives a framework's profiler, and a capture has at most one.  To add one, write a
module with such a class, and add a line to `tracers.REGISTRY`.  A `Probe` is one of Stepscope's own tracers, and a
capture has as many as its options ask for.  To add one, write a module with such a class, and add a line to
`tracers.PROBES`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from stepscope.formats.spool.layout import Chunk, StatValue
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.capture.options import ProfilerOptions
    from stepscope.capture.other_process import ConverterProcess
    from stepscope.errors import CaptureError

Metadata = Mapping[str, object]
Clock = Callable[[], int]


class Span(Protocol):
    """One annotated range: it starts when it is entered and ends when it is left."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...

    def set_metadata(self, **metadata: object) -> None:
        """Adds facts to the range while it is open."""


@dataclass(frozen=True)
class Artifact:
    """One file that a capture writes.

    Attributes:
        suffix: what follows the host's name and a dot, such as `xplane.pb`.
        content: the bytes, or the file that holds them.
    """

    suffix: str
    content: bytes | Path


@dataclass(frozen=True)
class Collected:
    """The result of a recording.

    Attributes:
        artifacts: the files to store, the profile itself first.
        error: what failed while the rest succeeded; None if nothing failed.
        notes: sentences for the reader of the profile.
    """

    artifacts: tuple[Artifact, ...]
    error: CaptureError | None = None
    notes: tuple[str, ...] = ()


class Recording(Protocol):
    """What was recorded, before it has its final form.  Nothing here uses the framework's profiler, so the work may be
    done on another thread than the training."""

    def collect(self, host: str, helper: ConverterProcess) -> Collected:
        """Makes the files' contents; slow.  `helper`: does work that would hold up the program."""

    def close(self) -> None:
        """Frees what the recording holds, mainly temporary files.  May be called more than once."""


class Tracer(Protocol):
    """Drives one profiler.  An instance serves one capture, except for `annotate`, which works at any time.

    A tracer for whose collecting the program waits has one more method: `events_recorded() -> int | None`, about how
    many events it holds, None if unknown.  With it, a capture ends itself at `max_events`.  One that
    `stops_where_asked` may have `mute()`: operations that begin from then on are not recorded, and do not touch what
    was.
    """

    one_thread: bool
    """True if `stop` and `discard` may only be called on the thread that called `start`."""

    stops_where_asked: bool
    """True if no thread should be inside of an operation of the framework while `stop` or `discard` runs: the thread of
    the steps calls it between two, or else the main thread."""

    @staticmethod
    def is_in_use() -> bool:
        """True if the program is known to compute with the tracer's framework; an import does not prove that."""

    @staticmethod
    def is_listening() -> bool:
        """True if a capture that was started elsewhere records annotations."""

    def start(self, options: ProfilerOptions) -> None:
        """Starts recording.  Raises what the framework raises if it cannot."""

    def stop(self) -> Recording:
        """Ends the recording and returns it."""

    def discard(self) -> None:
        """Ends the recording and discards it."""

    def annotate(self, name: str, metadata: Metadata) -> Span:
        """A named range; `step_num` in the metadata makes it a step mark."""


def make_chunk(
    plane: str,
    line: str,
    line_id: int,
    kind: str,
    events: Sequence[tuple[str, int, int]],
    stats: dict[int, dict[str, StatValue]] | None = None,
) -> Chunk:
    """A chunk of events: the name, and the begin and end in ns of the capture's clock, of each; the rest as there."""
    rows: dict[str, int] = {}
    name = array("i", [rows.setdefault(each[0], len(rows)) for each in events])
    begin, end = array("q", [each[1] for each in events]), array("q", [each[2] for each in events])
    return Chunk(plane, line, line_id, kind, list(rows), name, begin, end, stats or {})


class Probe:
    """One of Stepscope's own tracers.  An instance serves one capture.  This one records nothing.

    Attributes:
        cost_ms: what recording has added to the thread that it cost most, as far as that is known.
    """

    cost_ms: float = 0.0

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Starts recording.  Raises CaptureError, or anything else, if it cannot; the capture then goes on without it.

        Args:
            clock: ns; every time that is recorded is a reading of it.
        """

    def stop(self) -> None:
        """Ends the recording quickly, because the training waits.  What was recorded can still be drained."""

    def abandon(self) -> None:
        """In a forked child, which has only one thread: removes hooks, and changes nothing else."""

    def waiting_bytes(self) -> int:
        """Roughly how much memory the next `drain` frees."""
        return 0

    def drain(self) -> list[Chunk]:
        """Returns what was recorded since the last call, and forgets it.  One thread at a time calls it, while others
        go on recording."""
        return []


class TwoSpans:
    """The framework's range around Stepscope's own.  If the framework's fails to start, the other is not started."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, outer: Span, inner: Span) -> None:
        self._outer = outer
        self._inner = inner

    def __enter__(self) -> TwoSpans:
        self._outer.__enter__()
        self._inner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._inner.__exit__(kind, error, trace)
        self._outer.__exit__(kind, error, trace)

    def set_metadata(self, **metadata: object) -> None:
        """Adds facts to both."""
        self._outer.set_metadata(**metadata)
        self._inner.set_metadata(**metadata)
