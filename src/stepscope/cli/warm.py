"""`stepscope serve --warm`: keeps decoded profiles, and runs the commands of its user that are about them.

A command runs here by the code that would run it in a process of its own, with the caller's words, working folder,
variables and terminal.  So it writes the same bytes; only the traces come from memory.  For the shelf, a file that has
changed since is another one, and is read again.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stepscope.cli import defaults, process, screen, start
from stepscope.cli.commands import find_command
from stepscope.cli.main import run
from stepscope.cli.options import STDOUT
from stepscope.cli.words import HelpWanted, read_words
from stepscope.engines.budget import default_budget
from stepscope.errors import AccessError, StepscopeError, UsageError
from stepscope.private_folders import make_private
from stepscope.records import dataclass
from stepscope.shelf import TraceShelf

IDLE_S = 600.0
"""Without a question for so long the server ends: what it keeps takes memory that a training job may need."""

_PATIENCE_S = 5.0  # for a caller that has connected and says or takes nothing
_LEFT_OUT = ("engine", "memory", "output")  # options that change this process, or files with the caller's rights


@dataclass(frozen=True)
class WarmQuestion:
    """A command that somebody wants to be run."""

    settings: str
    folder: str
    encodings: tuple[str, str]
    words: list[str]
    environment: dict[str, str]

    @classmethod
    def parse(cls, content: bytes) -> WarmQuestion:
        """Takes a question apart.  Raises ValueError, IndexError."""
        settings, folder, out, err, count, *texts = map(os.fsdecode, content.split(b"\0")[:-1])
        words, variables = texts[: int(count)], texts[int(count) :]
        return cls(settings, folder, (out, err), words, dict(each.split("=", 1) for each in variables))


class WarmServer:
    """Answers one question after the other.

    Args:
        logdirs: it answers what is about profiles below these.
        path: where it listens; in a folder that nobody else can enter.
        idle_s: without a question for so long it ends.

    Raises:
        UsageError: another server listens there, or the system does not say who asks.
        AccessError: it cannot listen there.
    """

    def __init__(self, logdirs: Sequence[str], path: str, idle_s: float = IDLE_S) -> None:
        self._roots = [os.path.realpath(each) for each in logdirs]
        self._settings = start.settings(os.environ)
        self._path = path
        self._listener = _listen(path)
        self._listener.settimeout(idle_s)

    def run(self) -> None:
        """Answers until nobody asks any more."""
        try:
            while True:
                with self._listener.accept()[0] as caller, suppress(OSError, ValueError, IndexError):
                    self._serve(caller)  # one who goes away, or is no caller, gets no answer
        except TimeoutError:
            self.close()

    def close(self) -> None:
        """Stops listening."""
        self._listener.close()
        Path(self._path).unlink(missing_ok=True)

    def _serve(self, caller: socket.socket) -> None:
        caller.settimeout(_PATIENCE_S)
        if not start.is_own_user(caller):
            return
        _, files, _, _ = socket.recv_fds(caller, len(start.HEAD), 3)
        try:
            size = int.from_bytes(start.receive(caller, start.SIZE), "little")
            if len(files) == 3 and size <= start.MOST_BYTES:
                self._answer(caller, WarmQuestion.parse(start.receive(caller, size)), files)
        finally:
            for each in files:
                os.close(each)

    def _answer(self, caller: socket.socket, asked: WarmQuestion, files: Sequence[int]) -> None:
        if asked.settings != self._settings:
            caller.sendall(start.NOT_MINE)
            return
        with _in_place_of(asked, files) as said:
            if not self._keeps(asked.words):
                caller.sendall(start.NOT_MINE)
                return
            caller.sendall(start.MINE)
            status = run(asked.words)
            sys.stderr.flush()
        caller.settimeout(None)  # a pager takes its time
        for to, content in said:
            caller.sendall(bytes([to]) + len(content).to_bytes(start.SIZE, "little") + content)
        caller.sendall(bytes([start.END]) + status.to_bytes(start.SIZE, "little"))

    def _keeps(self, words: list[str]) -> bool:
        """Whether these words show a tool of profiles below our folders, and do nothing else."""
        try:
            command = find_command(words[0])
            values, _ = read_words(words[1:], command.parameters, defaults.read().get(command.name, {}))
        except (StepscopeError, HelpWanted):
            return False
        if not command.shows_tool or any(values.get(name) for name in _LEFT_OUT):
            return False
        paths = [values["path"], *(values["more"] or ())]
        return not any(path == STDOUT or "://" in path for path in paths) and all(map(self._is_below, paths))

    def _is_below(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(os.path.commonpath([real, root]) == root for root in self._roots)


class _Held(io.RawIOBase):
    """A stream whose text is kept until the command has ended; it is a terminal if that of the caller is one."""

    def __init__(self, to: int, said: list[tuple[int, bytes]]) -> None:
        self._to, self._said = to, said

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._to

    def isatty(self) -> bool:
        return self._to == 1 and os.isatty(1)  # progress on stderr would come when all is over

    def write(self, content: Any) -> int:
        self._said.append((self._to, bytes(content)))
        return len(self._said[-1][1])


@contextmanager
def _in_place_of(asked: WarmQuestion, files: Sequence[int]) -> Iterator[list[tuple[int, bytes]]]:
    """A context in which this process has what the caller has; it gives what is written: descriptor and bytes."""
    folder, variables, streams = Path.cwd(), dict(os.environ), (sys.stdout, sys.stderr)
    own = [os.dup(each) for each in range(3)]
    said: list[tuple[int, bytes]] = []
    try:
        os.chdir(asked.folder)
        _set_variables(asked.environment)
        for each, file in enumerate(files):
            os.dup2(file, each)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.BufferedWriter(_Held(to, said)), encoding, line_buffering=to == 2 or os.isatty(to))
            for to, encoding in enumerate(asked.encodings, 1)
        )
        screen.adapt(asked.words)
        defaults.read_files.cache_clear()  # of the caller's folder
        yield said
    finally:
        screen.restore_streams()
        sys.stdout, sys.stderr = streams
        for each, file in enumerate(own):
            os.dup2(file, each)
            os.close(file)
        _set_variables(variables)
        os.chdir(folder)


def _set_variables(wanted: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(wanted)


def _listen(path: str) -> socket.socket:
    if not hasattr(socket, "SO_PEERCRED"):
        raise UsageError("--warm needs Linux, where a server learns whose question it is")
    try:
        make_private(Path(path).parent)
        with socket.socket(socket.AF_UNIX) as other, suppress(FileNotFoundError, ConnectionRefusedError):
            other.connect(path)
            raise UsageError("a warm server of yours runs already", hint="end it first, or wait until it is idle")
        Path(path).unlink(missing_ok=True)
        listener, mask = socket.socket(socket.AF_UNIX), os.umask(0o177)
        try:
            listener.bind(path)
            listener.listen()
        finally:
            os.umask(mask)
    except OSError as error:
        raise AccessError(f"cannot listen here ({error})", path=path, hint="set TMPDIR to a folder of yours") from error
    return listener


def serve_warm(logdirs: Sequence[str]) -> None:
    """Answers the commands of this user about profiles below some folders, until nobody asks for ten minutes."""
    from stepscope.formats.session import find_sessions

    for each in logdirs:
        find_sessions(each)
    path = start.socket_path()
    if path is None:
        raise UsageError("--warm needs Linux")
    server = WarmServer(logdirs, path)
    gc.enable()  # it lives long; see `stepscope.cli.main.main`
    process.shelf = TraceShelf(default_budget())

    def end(*_: object) -> None:
        server.close()
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    print(f"commands about {', '.join(logdirs)} are answered from memory   (Ctrl-C to exit)", flush=True)
    server.run()
