"""A range that two tracers record."""

from __future__ import annotations

from types import TracebackType

from stepscope.capture.tracers.base import Span


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
