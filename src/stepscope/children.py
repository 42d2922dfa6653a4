"""Processes that work for this one: started when they are needed, asked, held to limits, ended.

Only a process of its own can be ended when it takes too much time or memory, and it gives all of its memory back.  It
is started as a program, not forked or spawned by `multiprocessing`: forking a process with threads is not safe, and
spawning runs the user's main module again.

A message is eight bytes with its length and then as many bytes; questions come on stdin, answers go to stdout.  The
process ends when its stdin is closed, so it does not outlive the one that started it.  What it is asked and what it
answers is the business of its module: `engines/child.py` analyses hosts, `sql/worker.py` answers questions,
`capture/other_process.py` converts what was recorded.
"""

from __future__ import annotations

import math
import os
import queue
import select
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired  # those of before the program, which may put others in their place
from typing import IO, BinaryIO, Protocol

_LENGTH = struct.Struct("<Q")
_LOOK_SECONDS = 0.1  # between two looks at the memory of a child that works
_SELDOM_SECONDS = 0.5  # between two looks at the time, if the memory does not matter
_JOB_VARIABLE = "STEPSCOPE_LOGDIR"  # has training jobs recorded, and a child is none
_MOST_BYTES = 1 << 40  # of a message
_END_SECONDS = 5.0  # in which a process ends that closed its stdout
# What anything that is imported prints goes to stderr, and never among the answers.
_PROGRAM = """
import os, sys
module, kind, *paths = sys.argv[1:]
sys.argv[1:] = [str(os.dup(1))]
os.dup2(2, 1)
sys.path += paths
if kind != "bare":
    import site
    site.main()
__import__(module)
sys.modules[module].main()
"""


class End(Enum):
    """Why a child ended before it answered."""

    TIME = "time"
    MEMORY = "memory"
    STOPPED = "stopped"
    DIED = "died"
    UNABLE = "unable"
    """No process can be started at all."""


class ChildLostError(Exception):
    """A child process ended, or was ended, before it answered; the message says why."""

    def __init__(self, reason: str, end: End = End.DIED) -> None:
        self.end = end
        super().__init__(reason)


class HelperProcess(Protocol):
    """What is needed of `Popen`."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def poll(self) -> int | None:
        """None until it has ended."""
        ...

    def wait(self, timeout: float | None = None) -> int | None:
        """Its status, None if the system does not say.  Raises TimeoutExpired."""
        ...

    def kill(self) -> None:
        """Ends it, unless it has ended."""
        ...


# ---- the handle ------------------------------------------------------------------------------------------------------


class Deadline:
    """When every wait of this process for a child ends, whatever its own patience.

    Attributes:
        at: the time on the monotonic clock; infinity until the job is asked to end.
    """

    def __init__(self) -> None:
        self.at = math.inf


DEADLINE = Deadline()


def set_deadline(seconds: float) -> None:
    """This process has been asked to end: from now on every wait ends after this time."""
    DEADLINE.at = time.monotonic() + seconds


class Child:
    """A child process: started with the first message, and again if it has died.

    Args:
        module: its `main` is called.
        is_bare: leaves out the site folder of Python, and with it whatever that starts in every process: it may be a
            framework, or another capture.
    """

    def __init__(self, module: str, is_bare: bool = False) -> None:
        self._module = module
        self._kind = "bare" if is_bare else "with site"
        self._process: HelperProcess | None = None
        self._errors: IO[bytes] | None = None
        self._is_closed = self._is_stopped = False

    @property
    def is_running(self) -> bool:
        """Whether there is a process that has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def used_bytes(self) -> int:
        """The memory that the process has for itself, without mapped files; 0 if the system does not say."""
        return 0 if self._process is None else private_bytes(self._process.pid)

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Starts the process unless it runs, with some variables more than this one has.  Raises ChildLostError."""
        if self._is_closed:
            raise ChildLostError("the work was cancelled", End.STOPPED)
        if not self.is_running:
            self.release()
            try:
                self._errors = self._open_errors()
                self._process = self._open(_child_environment() | dict(environment or {}), self._errors)
            except (OSError, RuntimeError) as error:  # RuntimeError: the interpreter is shutting down
                raise ChildLostError(str(error), End.UNABLE) from error

    def _open_errors(self) -> IO[bytes]:
        return tempfile.TemporaryFile()

    def _open(self, environment: dict[str, str], errors: IO[bytes]) -> HelperProcess:
        # Ctrl-C is for the process that asks, which ends its children: so a session of their own.
        return Popen(self._words(), stdin=PIPE, stdout=PIPE, stderr=errors, env=environment, start_new_session=True)

    def _words(self) -> list[str]:
        return [_python(), "-I", "-S", "-c", _PROGRAM, self._module, self._kind, *_search_path()]

    def ask(self, *message: bytes | memoryview, seconds: float = math.inf, memory_bytes: float = math.inf) -> bytes:
        """The answer to a message, given in parts, of a process that was started.

        Args:
            message: the parts.
            seconds, memory_bytes: what it may take; a process that takes more is ended.

        Raises:
            ChildLostError: the process is gone, also because another thread called `kill`.
        """
        process = self._process
        assert process is not None
        self._is_stopped = False
        try:
            _send(process.stdin, message)
            return self._wait(process, seconds, memory_bytes)
        except (OSError, EOFError, ValueError) as error:  # ValueError: its pipes were closed
            raise self._explain_end(process) from error
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Ends the process at once."""
        self._is_stopped = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Ends the process for good."""
        self._is_closed = True
        self.kill()

    def release(self) -> None:
        """Closes the files of a process that has ended, when no thread asks it any more."""
        process = self._process
        for stream in (self._errors, process and process.stdin, process and process.stdout):
            if stream:
                with suppress(OSError):  # what was not sent cannot be sent now
                    stream.close()
        self._process = self._errors = None

    def _wait(self, process: HelperProcess, seconds: float, memory_bytes: float) -> bytes:
        assert process.stdout is not None
        end = time.monotonic() + seconds
        answers = select.poll()  # not `select`, which takes no file number above a thousand
        answers.register(process.stdout, select.POLLIN)
        is_limited = memory_bytes < math.inf
        while not answers.poll(1000 * (_LOOK_SECONDS if is_limited else min(_SELDOM_SECONDS, seconds))):
            used = private_bytes(process.pid) if is_limited else 0
            if used > memory_bytes:
                self.kill()
                reason = f"it took {used / 1e9:,.2f} GB of memory, of {memory_bytes / 1e9:,.2f} GB at most"
                raise ChildLostError(reason, End.MEMORY)
            if time.monotonic() > min(end, DEADLINE.at):
                self.kill()
                raise ChildLostError(f"it took longer than {seconds:,.0f} s", End.TIME)
        return _receive(process.stdout)

    def _explain_end(self, process: HelperProcess) -> ChildLostError:
        """Why a process ended without an answer.  One that does not end by itself is ended."""
        try:
            status = process.wait(_END_SECONDS)
        except TimeoutExpired:
            self.kill()
            return ChildLostError("what it answered is no answer")
        if self._is_closed:
            return ChildLostError("the work was cancelled", End.STOPPED)
        end = End.STOPPED if self._is_stopped else End.DIED
        if status is None:
            return ChildLostError(f"its process ended{self._last_words()}", end)
        if status < 0:
            out_of_memory = "; the system does that when memory runs out" if status == -9 else ""
            return ChildLostError(f"its process was ended by signal {-status}{out_of_memory}", end)
        return ChildLostError(f"its process ended with status {status}{self._last_words()}", end)

    def _last_words(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f": {said[-1][:200]}" if said else ""


def _python() -> str:
    """The path of this Python.

    Raises:
        ChildLostError: this is a program with a Python inside, which would start itself once more.
    """
    name = Path(sys.executable or "").name.lower().removesuffix(".exe").removesuffix("w").rstrip("0123456789.")
    if getattr(sys, "frozen", False) or name not in {"python", "pypy"}:
        raise ChildLostError(f"{sys.executable or 'this program'} is not a Python interpreter", End.UNABLE)
    return sys.executable


def _search_path() -> list[str]:
    """The folders in which this Python finds its modules, so that a child imports the same code; it looks through its
    own library first."""
    return list(dict.fromkeys([str(Path(__file__).parents[1]), *filter(os.path.isabs, sys.path)]))


def _child_environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != _JOB_VARIABLE}
    return environment | {"OPENBLAS_NUM_THREADS": "1"}


def private_bytes(pid: int) -> int:
    """The memory that a process has for itself, without mapped files; 0 if the system does not say."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().split("\n"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


# ---- inside the process ----------------------------------------------------------------------------------------------


class Parent:
    """The process that started this one, as seen from this one.

    It ends this process when it closes the stream or is gone, also in the middle of a task.  When memory runs out, the
    system ends this process before that one.  What is printed here does not get between the answers.
    """

    def __init__(self) -> None:
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        self._answers = os.fdopen(int(sys.argv[1]), "wb")
        self._turn = threading.Lock()
        self._messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(sys.stdin.buffer,), daemon=True).start()

    def receive(self) -> bytes:
        """The next message."""
        return self._messages.get()

    def send(self, *message: bytes | memoryview) -> None:
        """Sends an answer, given in parts."""
        _send(self._answers, message)

    def ask(self, *message: bytes | memoryview) -> bytes:
        """What the other process says to a question back; several threads may ask."""
        with self._turn:
            self.send(*message)
            return self.receive()

    def _listen(self, stream: BinaryIO) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._messages.put(_receive(stream))
        os._exit(0)


def _send(stream: IO[bytes] | None, message: tuple[bytes | memoryview, ...]) -> None:
    assert stream is not None
    stream.write(_LENGTH.pack(sum(map(len, message))))
    for part in message:
        stream.write(part)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """One message.  Raises EOFError if the other end closed the stream."""
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    if length > _MOST_BYTES:
        raise EOFError
    return _read_exactly(stream, length)


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content
