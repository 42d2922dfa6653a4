"""Programs that start in a Python which has imported a framework already: TensorFlow takes seconds to import.

One server process per framework imports it and waits; all workers of a test run share it.  For each program it forks
twice.  The outer child waits for the
inner one and reports its exit status; the inner one runs the program as its `__main__`, returns, and ends as Python
ends, with everything that belongs to that.  A program is a process of its own with its own environment, arguments,
streams and signals; it only did not import the framework itself.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest
from waiting import await_until
from warm_server import LONGEST_REQUEST

# Libraries read the numbers of their threads when they are loaded; of two on a busy core one waits for the other.
QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
SERVER = Path(__file__).with_name("warm_server.py")


class WarmProcess:
    """A program that runs, with the attributes and methods of `subprocess.Popen` that tests use."""

    def __init__(self, stdin: int | None, stdout: int, stderr: int, status: int) -> None:
        self.stdin: IO[str] | None = None if stdin is None else os.fdopen(stdin, "w", encoding="utf-8")
        self.stdout: IO[str] = os.fdopen(stdout, encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(stderr, encoding="utf-8")
        self._status: IO[str] = os.fdopen(status)
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Closes the program's standard input, waits for its end and returns what it wrote.

        One that takes too long is killed.
        """
        if self.stdin is not None:
            self.stdin.close()
        said: dict[IO[str], str] = {}

        def read(stream: IO[str]) -> None:
            with stream:
                said[stream] = stream.read()

        readers = [
            threading.Thread(target=read, args=(stream,), daemon=True)
            for stream in (self.stdout, self.stderr, self._status)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(timeout)
        if any(reader.is_alive() for reader in readers):
            self.kill()
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        self.returncode = int(said[self._status])
        return said[self.stdout], said[self.stderr]


class WarmPython:
    """Starts programs; is connected to one server for each framework that was asked for."""

    def __init__(self) -> None:
        self._connections: dict[str, socket.socket] = {}
        self._servers: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        framework: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | None = None,
        has_input: bool = False,
    ) -> WarmProcess:
        """Starts a program.  Skips the test where the framework is not installed.

        Args:
            framework: what it finds imported.
            words: `-c` and its text, `-m` and a module, or the path of a script, and then its arguments; as after
                `python`.
            environment: its whole environment.
            folder: where it runs; the current folder if None.
            has_input: whether its standard input is a pipe, the `stdin` of the process; else it is empty.
        """
        place = {"folder": str(folder or Path.cwd()), "priority": os.getpriority(os.PRIO_PROCESS, 0)}
        request = json.dumps({"words": list(words), "environment": dict(environment), **place})
        stdin, to_stdin = os.pipe() if has_input else (os.open(os.devnull, os.O_RDONLY), None)
        mine, theirs = zip(*(os.pipe() for _ in range(3)), strict=True)
        socket.send_fds(self._connection(framework), [request.encode()], [stdin, *theirs])
        for stream in (stdin, *theirs):
            os.close(stream)
        return WarmProcess(to_stdin, *mine)

    def _connection(self, framework: str) -> socket.socket:
        if framework not in self._connections:
            if importlib.util.find_spec(framework) is None:
                pytest.skip(f"{framework} is not installed, and this test runs a program that uses it")
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_REQUEST)
            await_until(lambda: self._connect(connection, framework), 60, f"the server that imports {framework}")
            self._connections[framework] = connection
        return self._connections[framework]

    def _connect(self, connection: socket.socket, framework: str) -> bool:
        """Connects to the server of this test run, and starts it if there is none.

        Returns:
            False if another worker is about to start it.
        """
        # An abstract address: it exists only while somebody listens there, and belongs to one process at a time.
        address = f"\0stepscope-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}-{framework}"
        with suppress(ConnectionRefusedError):
            connection.connect(address)
            return True
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            try:
                listener.bind(address)
            except OSError:
                return False
            listener.listen()
            connection.connect(address)
            self._servers.append(_start_server(framework, listener))
        return True

    def run(
        self,
        framework: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        timeout: float,
        folder: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end; arguments as of `start`."""
        process = self.start(framework, words, environment, folder)
        stdout, stderr = process.communicate(timeout)
        assert process.returncode is not None
        return subprocess.CompletedProcess(list(words), process.returncode, stdout, stderr)

    def close(self) -> None:
        """Leaves the servers.  Each ends when its last worker has left, and is waited for where it was started."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        for server in self._servers:
            server.wait()
        self._servers.clear()


def _start_server(framework: str, listener: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(SERVER), framework, str(listener.fileno())],
        pass_fds=[listener.fileno()],
        stdin=subprocess.DEVNULL,
        env=os.environ | QUIET,
    )


WARM = WarmPython()


def pytest_unconfigure() -> None:
    """The tests have ended."""
    WARM.close()
