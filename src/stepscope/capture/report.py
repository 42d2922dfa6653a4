"""How a capture tells its troubles: to the log and to whoever asks, never into the training code unless it opted in."""

from __future__ import annotations

import logging
from types import TracebackType

from stepscope.errors import CaptureError, StepscopeError

_LOG = logging.getLogger("stepscope")
_last: StepscopeError | None = None


def last_error() -> StepscopeError | None:
    """The last thing that went wrong in a capture; None once another capture has started well."""
    return _last


def forget() -> None:
    """Forgets the last error."""
    global _last
    _last = None


def warn(text: str) -> None:
    """Logs something that the user should know and that costs nothing."""
    _LOG.warning("%s", text)


def report(error: Exception, doing: str) -> StepscopeError:
    """Logs and keeps an error, translate_error into our own tree; returns the translation."""
    global _last
    _last = error if isinstance(error, StepscopeError) else translate_error(error, doing)
    _LOG.error("%s", _last)
    return _last


def translate_error(error: Exception, doing: str) -> CaptureError:
    """An error of anybody's as one of ours."""
    if isinstance(error, CaptureError):
        return error
    path = error.filename if isinstance(error, OSError) else None
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    reason = f"{doing} failed: {type(error).__name__}: {said}" if said else f"{doing} failed: {type(error).__name__}"
    return CaptureError(reason, path=path, hint="training goes on; set ProfilerOptions(strict=True) to raise instead")


class Wall:
    """Keeps exceptions of its block from the training code: they are logged, and raised only if `strict`, then as one
    of our own.  KeyboardInterrupt and SystemExit pass."""

    def __init__(self, doing: str, strict: bool) -> None:
        self._doing = doing
        self._strict = strict

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        told = report(error, self._doing)
        if self._strict:
            raise told from (None if told is error else error)
        return True
