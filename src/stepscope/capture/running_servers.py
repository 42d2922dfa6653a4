"""The profiler servers of this user's jobs on this machine, so that nobody has to remember their ports.

    TMPDIR/stepscope-UID/servers/PID-PORT.json      while the server runs; TMPDIR is the system's temporary folder

A job that was killed leaves its file; whoever looks next removes it.  On a TPU machine the workers of its pod are
listed too: the environment names them.
"""

from __future__ import annotations

import getpass
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepscope.records import dataclass

_TPU_WORKERS = "TPU_WORKER_HOSTNAMES"  # of the pod, separated by commas; set on Cloud TPU machines
_TPU_PORT = 8466  # of the profiler service that a TPU machine runs


@dataclass(frozen=True)
class RunningServer:
    """A profiler server that can be asked for a capture.

    Attributes:
        address: `host:port`.
        program: what runs it, such as `train.py`; empty if unknown.
        pid: its process on this machine; None if it is on another one.
        started_unix_s: when the server started; None if unknown.
    """

    address: str
    program: str
    pid: int | None = None
    started_unix_s: float | None = None


def announce_server(port: int) -> Path | None:
    """Leaves a note of this process's server; returns the note.  None if none can be left, which does no harm."""
    facts = {"port": port, "program": _program(), "started_unix_s": time.time()}
    with suppress(OSError, ValueError):
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        note = folder / f"{os.getpid()}-{port}.json"
        note.write_text(json.dumps(facts), encoding="utf-8")
        return note
    return None


def withdraw_server(note: Path | None) -> None:
    """Removes the note of a server that has stopped."""
    if note is not None:
        with suppress(OSError):
            note.unlink()


def find_running_servers() -> list[RunningServer]:
    """The servers of this user's jobs on this machine, the latest first, then the workers of its TPU pod."""
    own = sorted(_announced(), key=lambda server: -(server.started_unix_s or 0.0))
    pod = filter(None, (name.strip() for name in os.environ.get(_TPU_WORKERS, "").split(",")))
    return [*own, *(RunningServer(f"{name}:{_TPU_PORT}", "TPU worker") for name in pod)]


def _folder() -> Path:
    user = str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()
    return Path(tempfile.gettempdir(), f"stepscope-{user}", "servers")


def _announced() -> Iterator[RunningServer]:
    with suppress(OSError):
        for note in list(_folder().glob("*.json")):
            server = _read_note(note)
            if server is None:
                withdraw_server(note)
            else:
                yield server


def _read_note(note: Path) -> RunningServer | None:
    """The server of a note; None if its process has ended, or the note is damaged."""
    try:
        pid = int(note.stem.partition("-")[0])
        facts: Any = json.loads(note.read_text(encoding="utf-8"))
        address, started = f"localhost:{int(facts['port'])}", float(facts["started_unix_s"])
        server = RunningServer(address, str(facts["program"]), pid, started)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return server if _is_alive(pid) else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


def _program() -> str:
    """The script that runs, as its user would name it."""
    name = (getattr(sys, "argv", None) or [""])[0]
    return Path(name).name or "python"
