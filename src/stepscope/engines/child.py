"""A process that does tasks, and the handle by which another process starts it, asks it and ends it.

    python -m stepscope.engines.child

A task comes on stdin and its answer goes to stdout: eight bytes with the length, then as many bytes.  The process ends
when its stdin is closed, so it does not outlive the one that started it.

Work is done in such a process even on a cluster, since only a process of its own can be ended when it takes too much
time or memory, and it gives all of its memory back.  It is started as a program of its own, not forked or spawned by
`multiprocessing`: forking a process with threads is not safe, and spawning runs the user's main module again.
"""

from __future__ import annotations

import os
import queue
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, NoReturn

if TYPE_CHECKING:
    from stepscope.cache import CacheOptions
    from stepscope.engines.task import Answer, HostOutcome, Task
    from stepscope.errors import Problem
    from stepscope.formats.session import HostFile

_LENGTH = struct.Struct("<Q")
_LOOK_SECONDS = 0.1  # between two looks at the memory of a child that works
_JOB_VARIABLE = "STEPSCOPE_LOGDIR"  # has training jobs recorded, and a child is none
_MEMORY_VARIABLE = "STEPSCOPE_CHILD_MEMORY"  # bytes
_MOST_ANSWER = 1 << 40
_BRIEFLY_MORE = 128 << 20  # bytes: what a process writes to before large columns leave it for the disk


class ChildLostError(Exception):
    """A child process ended, or was ended, before it answered; the message says why."""


# ---- the handle ------------------------------------------------------------------------------------------------------


class Child:
    """A child process.  It is started at the first task, and again if it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._is_closed = self._spills = False

    def ask(self, content: bytes, seconds: float, memory_bytes: int, spills: bool = False) -> bytes:
        """The answer to a packed task.

        Args:
            content: the task.
            seconds, memory_bytes: what it may take; a process that takes more is ended.
            spills: whether the process has to be one that keeps large columns on disk.

        Raises:
            ChildLostError: the process is gone, also because another thread called `kill`.
        """
        process = self._running(spills, memory_bytes)
        most = memory_bytes + max(memory_bytes // 4, _BRIEFLY_MORE) if self._spills else memory_bytes
        try:
            _send(process.stdin, content)
            return self._wait(process, seconds, most)
        except (OSError, EOFError) as error:
            raise ChildLostError(self._explain_end(process)) from error
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Ends the process at once."""
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

    def _running(self, spills: bool, memory_bytes: int) -> subprocess.Popen[bytes]:
        if self._is_closed:
            raise ChildLostError("the work was cancelled")
        if spills and not self._spills:
            self.kill()
        self._spills = self._spills or spills
        if self._process is None or self._process.poll() is not None:
            self.release()
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
            self._process = subprocess.Popen(
                [sys.executable, "-m", "stepscope.engines.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=_child_environment(self._spills, memory_bytes),
                start_new_session=True,  # Ctrl-C is for the process that asks; it ends its children
            )
        return self._process

    def _wait(self, process: subprocess.Popen[bytes], seconds: float, memory_bytes: int) -> bytes:
        assert process.stdout is not None
        end = time.monotonic() + seconds
        answers = select.poll()  # not `select`, which takes no file number above a thousand
        answers.register(process.stdout, select.POLLIN)
        while not answers.poll(_LOOK_SECONDS * 1000):
            used = private_bytes(process.pid)
            if used > memory_bytes:
                self.kill()
                raise ChildLostError(f"it took {used / 1e9:,.2f} GB of memory, of {memory_bytes / 1e9:,.2f} GB at most")
            if time.monotonic() > end:
                self.kill()
                raise ChildLostError(f"it took longer than {seconds:,.0f} s")
        return _receive(process.stdout)

    def _explain_end(self, process: subprocess.Popen[bytes]) -> str:
        """Why a process ended without an answer."""
        status = process.wait()
        if self._is_closed:
            return "the work was cancelled"
        if status < 0:
            out_of_memory = "; the system does that when memory runs out" if status == -9 else ""
            return f"its process was ended by signal {-status}{out_of_memory}"
        return f"its process ended with status {status}{self._last_words()}"

    def _last_words(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f": {said[-1][:200]}" if said else ""


def ask_child(child: Child, content: bytes) -> bytes:
    """The answer to a packed task from a child, within the limits of the task.  Raises ChildLostError."""
    from stepscope.engines.budget import default_budget, memory_of
    from stepscope.engines.local import usable_cores
    from stepscope.engines.spilling import is_possible
    from stepscope.engines.task import unpack_task

    task = unpack_task(content)
    memory = task.memory_bytes or default_budget() // usable_cores()
    spills = any(memory_of(file) > memory for file in task.files) and is_possible()
    return child.ask(content, task.seconds * len(task.files), memory, spills)


def _child_environment(spills: bool, memory_bytes: int) -> dict[str, str]:
    """This process's environment, with its search path, so that the child imports the same code."""
    environment = {name: value for name, value in os.environ.items() if name != _JOB_VARIABLE}
    path = [str(Path(__file__).parents[2]), *(part for part in sys.path if part)]
    environment |= {"PYTHONPATH": os.pathsep.join(dict.fromkeys(path)), "OPENBLAS_NUM_THREADS": "1"}
    environment[_MEMORY_VARIABLE] = str(memory_bytes)
    if not spills:
        return environment
    from stepscope.engines.spilling import environment_for_spilling

    return environment_for_spilling(environment)


def private_bytes(pid: int) -> int:
    """The memory that a process has for itself, without mapped files; 0 if the system does not say."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().split("\n"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def _send(stream: IO[bytes] | None, content: bytes) -> None:
    assert stream is not None
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """One message.  Raises EOFError if the other end closed the stream."""
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    if length > _MOST_ANSWER:
        raise EOFError
    return _read_exactly(stream, length)


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


# ---- inside the process ----------------------------------------------------------------------------------------------


def main() -> NoReturn:
    """Does tasks until stdin is closed."""
    from stepscope.engines.spilling import forget_library
    from stepscope.kernels import memory

    forget_library()
    memory.prefer_large_heap()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed must not get between the answers
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, tasks), daemon=True).start()
    while True:
        _send(answers, answer_task(tasks.get()))


def _listen(stream: BinaryIO, tasks: queue.SimpleQueue[bytes]) -> None:
    """Takes tasks from the stream, and ends the process when it is closed, also in the middle of a task."""
    with suppress(EOFError, OSError):
        while True:
            tasks.put(_receive(stream))
    os._exit(0)


def answer_task(content: bytes) -> bytes:
    """The packed answer to a packed task."""
    from stepscope.engines.task import pack, unpack_task

    return pack(do_task(unpack_task(content)))


def do_task(task: Task) -> Answer:
    """Analyses the hosts of a task.  A host that fails has a problem in its outcome; nothing is raised."""
    from stepscope.analysis.registry import tool_named
    from stepscope.engines.host_work import encode_partial
    from stepscope.engines.task import Answer

    hosts = _Hosts(task)
    outcomes = tuple(hosts.analyse(at) for at in range(len(task.files)))
    parts = {name: encode_partial(tool_named(name).condense(found)) for name, found in hosts.partials.items()}
    return Answer(outcomes, parts)


class _Hosts:
    """The hosts of a task, and the partials that were computed so far by tool."""

    def __init__(self, task: Task) -> None:
        from stepscope.cache import Cache
        from stepscope.engines.host_work import HostWork
        from stepscope.shelf import TraceShelf

        known = {file.host: known for file, known in zip(task.files, task.known, strict=True)}
        self._task = task
        memory = int(os.environ[_MEMORY_VARIABLE]) if _MEMORY_VARIABLE in os.environ else None
        self._work = HostWork(Cache(_cache_here(task)), TraceShelf(), lambda _: None, known, memory)
        self.partials: dict[str, list[object]] = {tool: [] for tool in task.tools}

    def analyse(self, at: int) -> HostOutcome:
        """Adds the partials of one host, all or none of them."""
        from stepscope.engines.task import HostOutcome
        from stepscope.errors import InputError

        file, problem = self._task.files[at], None
        try:
            found = self._partials_of(at)
            for tool, partial in found.items():
                self.partials[tool].append(partial)
        except InputError as error:
            problem = error.problem
        except MemoryError:
            problem = _make_problem("memory", "there is not enough memory to analyse it", file)
        except Exception as error:  # a defect costs one host and not all of them
            problem = _make_problem("internal", f"{type(error).__name__}: {error}; this is a bug in Stepscope", file)
        return HostOutcome(file.host, self._work.events_read.get(file.host, 0), problem)

    def _partials_of(self, at: int) -> dict[str, object]:
        from stepscope.analysis.registry import tool_named

        task, file = self._task, self._task.files[at]
        if task.rows is not None:
            rows = task.rows[at]
            return {name: self._work.partial_of_steps(tool_named(name), file, rows) for name in task.tools}
        return {name: self._work.partial(tool_named(name), file, task.within_steps) for name in task.tools}


def _make_problem(code: str, reason: str, file: HostFile) -> Problem:
    from stepscope.errors import Problem

    return Problem(code=code, reason=reason, path=file.path, host=file.host)


def _cache_here(task: Task) -> CacheOptions:
    """The cache of a task on this machine: a folder on another machine's disk means nothing here."""
    from stepscope.cache import CacheOptions

    folder = task.cache.folder
    if folder is None or task.machine == socket.gethostname() or folder.is_dir():
        return task.cache
    return CacheOptions.from_environment()


if __name__ == "__main__":
    main()
