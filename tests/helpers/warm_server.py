"""The server of `warm_python`: imports a framework, and then starts programs.

    python warm_server.py FRAMEWORK SOCKET

SOCKET is the number of a listening socket that it inherits.  The server ends when its last client has left.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import runpy
import select
import socket
import sys
import types
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

LONGEST_REQUEST = 1 << 20
_STREAMS = 4  # that come with a request: stdin, stdout, stderr, and where the exit status goes


def _await_program(framework: str, listener: socket.socket) -> dict[str, Any]:
    """Returns in the process that is to run a program, with what was asked for; the server itself never returns."""
    importlib.import_module(framework)
    gc.collect()
    gc.freeze()  # the collections of a program do not walk through the framework, nor copy its pages
    clients = [listener.accept()[0]]
    while clients:
        ready, _, _ = select.select([listener, *clients], [], [])
        _reap_children()
        if listener in ready:
            clients.append(listener.accept()[0])
        for client in [client for client in clients if client in ready]:
            message, streams, _, _ = socket.recv_fds(client, LONGEST_REQUEST, _STREAMS)
            if not message:
                client.close()
                clients.remove(client)
            elif _fork() == 0:
                for inherited in (listener, *clients):
                    inherited.close()
                _fork_program(streams)
                request: dict[str, Any] = json.loads(message)
                return request
            for stream in streams:
                os.close(stream)
    os._exit(0)


def _reap_children() -> None:
    """Takes the exit statuses of outer children, so that none stays a zombie and their CPU time is counted."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _fork() -> int:
    with warnings.catch_warnings(action="ignore"):  # JAX and newer Pythons warn of forks with threads
        return os.fork()


def _fork_program(streams: Sequence[int]) -> None:
    """Returns in the program's own process; its parent reports how it ends."""
    *standard, report = streams
    pid = _fork()
    if pid == 0:
        for number, stream in enumerate(standard):
            os.dup2(stream, number)
        for stream in streams:
            os.close(stream)
        return
    for stream in standard:
        os.close(stream)
    os.write(report, f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    os.write(report, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(words: Sequence[str], environment: Mapping[str, str], folder: str, priority: int) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, priority)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        # What the server opened remembers whether it could seek there.
        setattr(sys, name, open(number, mode, buffering=1, encoding="utf-8", closefd=False))  # noqa: SIM115
    if "PYTHONFAULTHANDLER" in environment:
        faulthandler.enable()
    if words[0] == "-m":
        sys.argv, sys.path[0] = list(words[1:]), folder
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    if words[0] == "-c":
        program, name, sys.argv, sys.path[0] = words[1], "<string>", ["-c", *words[2:]], ""
    else:
        program, name = Path(words[0]).read_text(encoding="utf-8"), words[0]
        sys.argv, sys.path[0] = list(words), str(Path(name).parent)
    server = sys.modules["__main__"]  # its functions still run
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__file__"] = name
    exec(compile(program, name, "exec"), main.__dict__)
    del server


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[2])) as listening:
        asked = _await_program(sys.argv[1], listening)
    _run(**asked)
