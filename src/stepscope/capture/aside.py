"""Work that would hold up the training, in a process of its own.

Python runs one thread at a time, so a long conversion on a thread of its own still stops the training again and again.
In another process it cannot.  That process is a bare Python: no site folder and so no `sitecustomize`, nothing of the
environment that would make it capture, a session of its own so that Ctrl-C does not reach it, and a low priority.
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

_UNABLE = 3  # the exit status of a Python that lacks what the work needs
_NICE = 5  # a third of the share of a thread that trains: the training goes first, and the profile still comes
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

_hurry_until = float("inf")


class UnableError(Exception):
    """No process can be had here, or its Python lacks something: the work has to be done in this one."""


class FailedError(Exception):
    """The process ended without its result, or was ended since it took too long."""


def hurry(seconds: float) -> None:
    """From now on nothing is waited for longer than that: the job has been asked to end."""
    global _hurry_until
    _hurry_until = time.monotonic() + seconds


def run(module: str, words: Sequence[str], result: Path, patience_s: float) -> None:
    """Calls `main(words)` of a module in a process of its own and waits for it.

    Args:
        result: what `main` makes, last of all.  It tells success, since the exit status may go to somebody else: a
            program may ignore its children, or wait for all of them itself.
        patience_s: the process is ended after so many seconds.

    Raises:
        UnableError: do it here.
        FailedError: it was tried and did not work.
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
    except (OSError, RuntimeError) as error:  # RuntimeError: the interpreter is about to end
        raise UnableError(str(error)) from error
    status = _wait(process, time.monotonic() + patience_s)
    if result.exists():
        return
    if status == _UNABLE:
        raise UnableError(_last_line(complaints))
    raise FailedError(_last_line(complaints) if status else "it took too long")


def _python() -> str:
    """This Python, to be started again.

    Raises:
        UnableError: what runs is a program with a Python inside, which would start once more.
    """
    name = Path(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or not re.match(r"(python|pypy)[\d.]*w?(\.exe)?$", name):
        raise UnableError(f"{sys.executable or 'this program'} is no Python interpreter")
    return sys.executable


def _paths() -> list[str]:
    """Where that Python finds what this one has imported, after its own library."""
    ours = str(Path(__file__).resolve().parents[2])
    return list(dict.fromkeys([ours, *(path for path in sys.path if Path(path).is_absolute())]))


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)} | _ONE_THREAD


def _wait(process: subprocess.Popen[bytes], until: float) -> int | None:
    """The exit status; None if the process had to be ended."""
    try:
        while time.monotonic() < min(until, _hurry_until):
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_LOOK_S)
        return None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _last_line(complaints: Path) -> str:
    lines = complaints.read_text(errors="replace").strip().splitlines() or ["it ended without a word"]
    return lines[-1]
