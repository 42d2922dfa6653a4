"""A helper process that the program does not meet among its children, where the system is Linux.

The system sends a process a signal when a child of it ends, and `os.wait` returns that child: a program that counts the
workers that it forked would take ours for one of them.  A program that adopts orphans, by PR_SET_CHILD_SUBREAPER or as
the first process of a container, has to expect processes that it did not start, and ours is one of these.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import ExitStack, suppress
from subprocess import PIPE, Popen, TimeoutExpired
from time import monotonic
from typing import IO

from stepscope.capture.handles import move_up, open_temporary
from stepscope.children import Child, HelperProcess
from stepscope.kernels.orphans import start_orphan

_MOST = 1 << 16  # bytes that a pipe holds


class HiddenChild(Child):
    """As `Child`; its open files have high numbers, and it is no child where the system allows that."""

    def _open_errors(self) -> IO[bytes]:
        return open_temporary()

    def _open(self, environment: dict[str, str], errors: IO[bytes]) -> HelperProcess:
        return _open_hidden(self._words(), environment, errors)


def output_of(words: list[str], environment: dict[str, str], seconds: float) -> bytes:
    """What a command prints, on such a process; what it has printed where it takes longer, and is ended."""
    with open_temporary() as errors:
        process = _open_hidden(words, environment, errors)
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            content, until = b"", monotonic() + seconds
            answers = select.poll()
            answers.register(process.stdout, select.POLLIN)
            while answers.poll(max(0.0, until - monotonic()) * 1000) and (
                more := os.read(process.stdout.fileno(), _MOST)
            ):
                content += more
            process.kill()
            process.wait()
        return content


def _open_hidden(words: list[str], environment: dict[str, str], errors: IO[bytes]) -> HelperProcess:
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):
        with suppress(OSError):
            return Orphan(words, environment, errors.fileno())
    process = Popen(words, stdin=PIPE, stdout=PIPE, stderr=errors, env=environment, start_new_session=True)
    process.stdin, process.stdout = _move(process.stdin, "wb"), _move(process.stdout, "rb")
    return process


def _move(stream: IO[bytes] | None, mode: str) -> IO[bytes]:
    assert stream is not None
    with stream:
        return os.fdopen(move_up(os.dup(stream.fileno())), mode)


class Orphan:
    """A process that is none of this process's children, with pipes to it, as `Popen` with `PIPE`.

    Args:
        words: the program and its arguments.
        environment: all of its variables.
        errors: an open file, its stderr.

    Raises:
        OSError: it could not be started.
    """

    def __init__(self, words: list[str], environment: dict[str, str], errors: int) -> None:
        with ExitStack() as theirs, ExitStack() as ours:
            asked, question = map(move_up, os.pipe())
            theirs.callback(os.close, asked)
            self.stdin: IO[bytes] | None = ours.enter_context(os.fdopen(question, "wb"))
            answer, answered = map(move_up, os.pipe())
            theirs.callback(os.close, answered)
            self.stdout: IO[bytes] | None = ours.enter_context(os.fdopen(answer, "rb"))
            variables = [os.fsencode(f"{name}={value}") for name, value in environment.items()]
            self.pid = start_orphan(list(map(os.fsencode, words)), variables, (asked, answered, errors))
            self._handle = os.fdopen(move_up(os.pidfd_open(self.pid)), "rb", buffering=0)
            ours.pop_all()

    def poll(self) -> int | None:
        """None until it has ended, then 0: the system says to nobody but its parent how."""
        ends = select.poll()
        ends.register(self._handle, select.POLLIN)
        return 0 if ends.poll(0) else None

    def wait(self, timeout: float | None = None) -> None:
        """Waits for its end.  Raises TimeoutExpired."""
        ends = select.poll()
        ends.register(self._handle, select.POLLIN)
        if not ends.poll(None if timeout is None else timeout * 1000):
            raise TimeoutExpired([], timeout or 0.0)
        with suppress(ChildProcessError):  # this process has adopted it
            os.waitpid(self.pid, os.WNOHANG)

    def kill(self) -> None:
        """Ends it, unless it has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle.fileno(), signal.SIGKILL)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._handle.close()
