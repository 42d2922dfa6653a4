"""Runs work that would hold up the training in a separate process.

Python runs one thread at a time, so a long conversion on a separate thread would interrupt the training again and
again.  A separate process does not.  It is a bare Python: without a site folder and therefore without `sitecustomize`,
without the environment variables that would make it capture, in a session of its own so that Ctrl-C does not reach it,
and with a low priority.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_UNABLE = 3  # the exit status of a Python that lacks a module
_NICE = 5  # a third of the CPU time of a training thread: the training goes first, and the profile is still made
_LOOK_S = 0.2
_DROPPED = ("STEPSCOPE_", "PYTHON")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_PROGRAM = f"""
import os, sys
if hasattr(os, "nice"):
    os.nice({_NICE})
module, paths, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
sys.path += words[:paths]
try:
    __import__(module)
    sys.modules[module].main(words[paths:])
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit({_UNABLE})
"""


class UnableError(Exception):
    """No process can be started, or its Python lacks a module: the work has to be done in this process."""


class FailedError(Exception):
    """The process ended without a result, or was ended because it took too long."""


class Deadline:
    """When every wait of this process ends, whatever its own patience.

    Attributes:
        at: the time on the monotonic clock; infinity until the job is asked to end.
    """

    def __init__(self) -> None:
        self.at = float("inf")


DEADLINE = Deadline()


def hurry(seconds: float) -> None:
    """The job has been asked to end: from now on every wait ends after this time."""
    DEADLINE.at = time.monotonic() + seconds


def run(module: str, words: Sequence[str], result: Path, patience_s: float) -> None:
    """Calls `main(words)` of a module in a separate process and waits for it.

    Args:
        module: its name.
        words: the arguments of `main`.
        result: the file that `main` makes as its last act.  It shows success.  The exit status may be lost: a program
            may ignore its children, or wait for all of them itself.
        patience_s: the process is ended after this many seconds.

    Raises:
        UnableError: the work has to be done in this process.
        FailedError: it was tried and failed.
    """
    python = _python()
    complaints = result.with_name("complaints")
    try:
        with complaints.open("wb") as file:
            process = subprocess.Popen(
                [python, "-I", "-S", "-c", _PROGRAM, module, str(len(_paths())), *_paths(), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                env=_environment(),
                cwd=result.parent,
                start_new_session=True,
            )
    except (OSError, RuntimeError) as error:  # RuntimeError: the interpreter is shutting down
        raise UnableError(str(error)) from error
    status = _wait(process, time.monotonic() + patience_s)
    if result.exists():
        return
    if status == _UNABLE:
        raise UnableError(_last_line(complaints))
    raise FailedError(_last_line(complaints) if status else "it took too long")


def _python() -> str:
    """The path of this Python.

    Raises:
        UnableError: this is a program with a Python inside, which would start itself once more.
    """
    name = Path(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or not re.match(r"(python|pypy)[\d.]*w?(\.exe)?$", name):
        raise UnableError(f"{sys.executable or 'this program'} is not a Python interpreter")
    return sys.executable


def _paths() -> list[str]:
    """The folders in which this Python finds its modules, for the other one to search after its own library."""
    ours = str(Path(__file__).resolve().parents[2])
    return list(dict.fromkeys([ours, *(path for path in sys.path if Path(path).is_absolute())]))


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)} | _ONE_THREAD


def _wait(process: subprocess.Popen[bytes], until: float) -> int | None:
    """The exit status; None if the process had to be ended."""
    try:
        while time.monotonic() < min(until, DEADLINE.at):
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_LOOK_S)
        return None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _last_line(complaints: Path) -> str:
    lines = complaints.read_text(errors="replace").strip().splitlines() or ["it ended without a message"]
    return lines[-1]
