"""How a capture reports errors: in the log, and to `last_error`.  The training code gets an exception only if it asked
for that."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from types import TracebackType

from stepscope.capture.own_threads import forget_this_thread
from stepscope.errors import CaptureError, StepscopeError
from stepscope.kernels.observe import is_of_program


class Saying:
    """Where this process says something to the user.

    Attributes:
        to_stderr: True in a program that is followed, which has not asked for us: its log is its own, and may be its
            output.
        shares_output: whether its stderr and its stdout were one file when it began.
    """

    to_stderr = False
    shares_output = True

    @classmethod
    def follow(cls) -> None:
        """The program is followed from now on."""
        cls.to_stderr, cls.shares_output = True, _are_one_file()


class LastError:
    """The last error of this process's captures.

    Attributes:
        error: None once another capture has started without one.
    """

    def __init__(self) -> None:
        self.error: StepscopeError | None = None


LAST = LastError()


def last_error() -> StepscopeError | None:
    """The last error of a capture; None once another capture has started without one."""
    return LAST.error


def forget() -> None:
    """Forgets the last error."""
    LAST.error = None


def warn(text: str) -> None:
    """Logs something that the user should know, though nothing was lost."""
    _say(logging.WARNING, text)


def inform(text: str) -> None:
    """Logs something that the user may want to know."""
    if not Saying.to_stderr:
        _log().info("%s", text)
        forget_this_thread()


def print_line(text: str) -> None:
    """Prints a line for the user to stderr, in one write, so that the lines of several ranks do not mix."""
    print_text(f"stepscope: {text}\n")


def print_text(text: str) -> None:
    """Prints lines for the user to stderr, if the process has one that is not its output."""
    # A stream that a followed program puts there collects its own texts, and what it sends to stdout is its output.
    stream = sys.__stderr__ if Saying.to_stderr else sys.stderr
    if stream is None or sys.stderr is None:
        return
    if Saying.to_stderr and not Saying.shares_output and _are_one_file():
        return
    # Not `print`: a program may have put another in its place, as one that is silent on all ranks but one.
    with suppress(OSError, ValueError, AttributeError):  # the program has closed or replaced the stream
        stream.write(text)
        stream.flush()


def _are_one_file() -> bool:
    """Whether stdout and stderr of the process are one file."""
    try:
        return os.path.sameopenfile(1, 2)
    except OSError:  # one is closed
        return False


def _say(level: int, text: str) -> None:
    if Saying.to_stderr:
        print_line(text)
        return
    _log().log(level, "%s", _signed(text))
    forget_this_thread()  # a record of `logging` names it, which puts it among the program's threads


def _log() -> logging.Logger:
    return logging.getLogger("stepscope")


def _signed(text: str) -> str:
    """The text after our name where the program has set up no logging: Python prints the bare message then, between
    the lines of the training."""
    return text if _log().hasHandlers() else f"stepscope: {text}"


def report(error: Exception, doing: str) -> StepscopeError:
    """Logs an error and keeps it for `last_error`; returns it as one of our own errors."""
    LAST.error = reported = error if isinstance(error, StepscopeError) else translate_error(error, doing)
    _say(logging.ERROR, str(reported))
    return reported


def translate_error(error: Exception, doing: str) -> CaptureError:
    """Any error as one of our own."""
    if isinstance(error, CaptureError):
        return error
    path = error.filename if isinstance(error, OSError) else None
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    reason = f"{doing} failed: {type(error).__name__}: {said}" if said else f"{doing} failed: {type(error).__name__}"
    return CaptureError(reason, path=path, hint="training goes on; set ProfilerOptions(strict=True) to raise instead")


class Suppressed(suppress):
    """As `contextlib.suppress(Exception)`, but the program's pass, as from `NeverRaise`."""

    def __init__(self) -> None:
        super().__init__(Exception)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool:
        return super().__exit__(kind, error, trace) and not (error and is_of_program(error))


class NeverRaise:
    """Keeps the exceptions of its block away from the training code.  They are logged.  With `strict` they are raised
    as one of our own errors.  The program's own pass: KeyboardInterrupt, SystemExit, and what it raises at a signal."""

    def __init__(self, doing: str, strict: bool) -> None:
        self._doing = doing
        self._strict = strict

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool:
        if not isinstance(error, Exception) or is_of_program(error):
            return False
        reported = report(error, self._doing)
        if self._strict:
            raise reported from (None if reported is error else error)
        return True
