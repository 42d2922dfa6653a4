"""What a tracer is.

There are two sorts.  A `Tracer` drives a framework's profiler, and a capture has at most one; adding one is a module
with a class of that shape and a line in `tracers.REGISTRY`.  A `Probe` is one of Stepscope's own, and a capture has as
many as its options ask for; adding one is a module with a class of that shape and a line in `tracers.PROBES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.capture.options import ProfilerOptions
    from stepscope.errors import CaptureError
    from stepscope.formats.spool.layout import Chunk

Metadata = Mapping[str, object]
Clock = Callable[[], int]


class Span(Protocol):
    """One annotated range: it begins on entering and ends on leaving."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...

    def set_metadata(self, **metadata: object) -> None:
        """Adds facts to the range while it is open."""


@dataclass(frozen=True)
class Artifact:
    """One file that a capture leaves.

    Attributes:
        suffix: what follows the host's name and a dot, such as `xplane.pb`.
        content: the bytes, or the file that holds them.
    """

    suffix: str
    content: bytes | Path


@dataclass(frozen=True)
class Collected:
    """What came of a recording.

    Attributes:
        artifacts: the files to store, the profile itself first.
        error: what could not be had, though something else could.
        notes: sentences for whoever reads the profile.
    """

    artifacts: tuple[Artifact, ...]
    error: CaptureError | None = None
    notes: tuple[str, ...] = ()


class Recording(Protocol):
    """What was recorded and is not yet in its final form.  Nothing here touches the framework's profiler, so the work
    may be done away from the thread that trains."""

    def collect(self, host: str) -> Collected:
        """Makes the files' contents; slow."""

    def close(self) -> None:
        """Frees what the recording holds, temporary files above all.  Harmless when repeated."""


class Tracer(Protocol):
    """Drives one profiler.  An instance serves one capture, `annotate` excepted, which works at any time."""

    one_thread: bool
    """True if `stop` and `discard` may only be called on the thread that called `start`."""

    @staticmethod
    def is_in_use() -> bool:
        """True if the program is known to compute with the tracer's framework, which importing does not prove."""

    @staticmethod
    def is_listening() -> bool:
        """True if a capture that somebody else started would take annotations."""

    def start(self, options: ProfilerOptions) -> None:
        """Begins to record.  Raises whatever the framework raises if it cannot."""

    def stop(self) -> Recording:
        """Ends the recording and hands it over."""

    def discard(self) -> None:
        """Ends the recording and forgets it."""

    def annotate(self, name: str, metadata: Metadata) -> Span:
        """A named range; `step_num` in the metadata makes it a step mark."""


class Probe(Protocol):
    """One of Stepscope's own tracers.  An instance serves one capture."""

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Begins to record.  Raises CaptureError, or anything else, if it cannot; the capture then goes on without it.

        Args:
            clock: ns; every time that is recorded is a reading of it.
        """

    def stop(self) -> None:
        """Ends the recording, in no time, for the training waits.  What was recorded can still be drained."""

    def abandon(self) -> None:
        """In a forked child, which has one thread only: takes hooks out of it, and touches nothing else."""

    def waiting_bytes(self) -> int:
        """About how much memory the next `drain` frees."""

    def drain(self) -> list[Chunk]:
        """Hands over what was recorded since the last time, and forgets it.  Called by one thread at a time, while
        others go on recording."""
