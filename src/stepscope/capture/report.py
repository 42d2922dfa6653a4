"""How a capture tells its troubles: to the log and to whoever asks, never into the training code unless it opted in."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

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
    """Logs and keeps an error, translated into our own tree; returns the translation."""
    global _last
    _last = error if isinstance(error, StepscopeError) else _translate(error, doing)
    _LOG.error("%s", _last)
    return _last


def _translate(error: Exception, doing: str) -> CaptureError:
    path = error.filename if isinstance(error, OSError) else None
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    reason = f"{doing} failed: {type(error).__name__}: {said}" if said else f"{doing} failed: {type(error).__name__}"
    return CaptureError(reason, path=path, hint="training goes on; set ProfilerOptions(strict=True) to raise instead")


@contextmanager
def wall(doing: str, strict: bool) -> Iterator[None]:
    """Keeps exceptions of the body from the training code: they are logged, and raised as CaptureError only if `strict`.

    KeyboardInterrupt and SystemExit pass.
    """
    try:
        yield
    except Exception as error:  # whatever a framework's profiler comes up with
        told = report(error, doing)
        if strict:
            raise told from (None if told is error else error)
