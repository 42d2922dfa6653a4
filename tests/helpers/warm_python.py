"""Programs that start in a Python which has imported a framework already: TensorFlow takes seconds to import.

One server process per framework imports it and waits.  For each program it forks twice.  The outer child waits for the
inner one and reports its exit status; the inner one runs the program as its `__main__`, returns, and ends as Python
ends, with everything that belongs to that.  A program is a process of its own with its own environment, arguments,
streams and signals; it only did not import the framework itself.
"""

from __future__ import annotations

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

from warm_server import LONGEST_REQUEST

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "OPENBLAS_NUM_THREADS": "1"}
SERVER = Path(__file__).with_name("warm_server.py")


class WarmProcess:
    """A program that runs, with the attributes and methods of `subprocess.Popen` that tests use."""

    def __init__(self, stdout: int, stderr: int, status: int) -> None:
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
        """Waits until the program has ended; returns what it wrote.  One that takes too long is killed."""
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
    """Starts programs; has one server for each framework that was asked for."""

    def __init__(self) -> None:
        self._servers: dict[str, tuple[socket.socket, subprocess.Popen[bytes]]] = {}

    def start(self, framework: str, words: Sequence[str], environment: Mapping[str, str]) -> WarmProcess:
        """Starts a program in the current folder.  Its standard input is empty.

        Args:
            framework: what it finds imported.
            words: `-c` and its text, or the path of a script, and then its arguments; as after `python`.
            environment: its whole environment.
        """
        request = json.dumps({"words": list(words), "environment": dict(environment), "folder": str(Path.cwd())})
        mine, theirs = zip(*(os.pipe() for _ in range(3)), strict=True)
        with Path(os.devnull).open() as nothing:
            socket.send_fds(self._server(framework), [request.encode()], [nothing.fileno(), *theirs])
        for stream in theirs:
            os.close(stream)
        return WarmProcess(*mine)

    def _server(self, framework: str) -> socket.socket:
        if framework not in self._servers:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_REQUEST)
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, str(SERVER), framework, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=os.environ | QUIET,
                )
            self._servers[framework] = ours, process
        return self._servers[framework][0]

    def run(
        self, framework: str, words: Sequence[str], environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end; arguments as of `start`."""
        process = self.start(framework, words, environment)
        stdout, stderr = process.communicate(timeout)
        assert process.returncode is not None
        return subprocess.CompletedProcess(list(words), process.returncode, stdout, stderr)

    def close(self) -> None:
        """Ends the servers, once what they started has ended."""
        for ours, process in self._servers.values():
            ours.close()
            process.wait()
        self._servers.clear()


WARM = WarmPython()


def pytest_unconfigure() -> None:
    """The tests have ended."""
    WARM.close()
