"""The profiler servers of this user's jobs on this machine, so that nobody has to remember ports and tokens.

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

from stepscope.capture.job import is_alive
from stepscope.capture.remote.tpu_names import PROFILER_PORT
from stepscope.private_folders import make_private
from stepscope.records import dataclass

_TPU_WORKERS = "TPU_WORKER_HOSTNAMES"  # of the pod, separated by commas; set on Cloud TPU machines
_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")


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


def announce_server(port: int, program: str = "", token: str | None = None) -> Path | None:
    """Leaves a note of this process's server; returns the note.  None if none can be left, which does no harm.

    Args:
        port: where it listens.
        program: what runs it; empty for the script that Python runs.
        token: what its clients must bring, if this user's programs shall find it in the note: nobody else can read it.
    """
    facts = {"port": port, "program": program or _program(), "started_unix_s": time.time()} | (
        {"token": token} if token else {}
    )
    with suppress(OSError, ValueError):
        folder = _folder()
        make_private(folder, levels=2)
        note = folder / f"{os.getpid()}-{port}.json"
        note.touch(mode=0o600)
        note.write_text(json.dumps(facts), encoding="utf-8")
        return note
    return None


def token_for(address: str) -> str | None:
    """The token of a job of this user on this machine, such as `stepscope run` leaves it; None if there is none."""
    host, _, port = address.rpartition(":")
    if host not in _THIS_MACHINE:
        return None
    with suppress(OSError):
        for note in _folder().glob(f"*-{port}.json"):
            token = (_read_facts(note) or {}).get("token")
            if token:
                return str(token)
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
    return [*own, *(RunningServer(f"{name}:{PROFILER_PORT}", "TPU worker") for name in pod)]


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
    facts = _read_facts(note)
    try:
        pid = int(note.stem.partition("-")[0])
        if facts is None:
            return None
        address, started = f"localhost:{int(facts['port'])}", float(facts["started_unix_s"])
        server = RunningServer(address, str(facts["program"]), pid, started)
    except (ValueError, KeyError, TypeError):
        return None
    return server if is_alive(pid) else None


def _read_facts(note: Path) -> dict[str, Any] | None:
    """What a note says; None if it is damaged or gone."""
    try:
        facts = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def _program() -> str:
    """The script that runs, as its user would name it."""
    name = (getattr(sys, "argv", None) or [""])[0]
    return Path(name).name or "python"
