"""What a tracer is.  Adding one is a module with a class of this shape and a line in `tracers.REGISTRY`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stepscope.capture.options import ProfilerOptions
    from stepscope.errors import CaptureError

Metadata = Mapping[str, object]


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
    """

    artifacts: tuple[Artifact, ...]
    error: CaptureError | None = None


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
    def in_use() -> bool:
        """True if the program is known to compute with the tracer's framework, which importing does not prove."""

    @staticmethod
    def listening() -> bool:
        """True if a capture that somebody else started would take annotations."""

    def start(self, options: ProfilerOptions) -> None:
        """Begins to record.  Raises whatever the framework raises if it cannot."""

    def stop(self) -> Recording:
        """Ends the recording and hands it over."""

    def discard(self) -> None:
        """Ends the recording and forgets it."""

    def annotate(self, name: str, metadata: Metadata) -> Span:
        """A named range; `step_num` in the metadata makes it a step mark."""
