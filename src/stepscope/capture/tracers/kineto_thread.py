"""The thread that Kineto starts with a process's first profiler, and that lives to the process's end.

All that it does is to ask every few seconds whether a file or a daemon wants a profile.  A program that uses no
profiler of PyTorch has no such thread, and from Python 3.12 on each of its forks would warn of a second thread.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

_TASKS = Path("/proc/self/task")
# Whoever has these wants Kineto to take orders from outside.
_SETTINGS, _FILE = ("KINETO_USE_DAEMON", "KINETO_CONFIG"), Path("/etc/libkineto.conf")
_CLASS = "_ZN9libkineto12ConfigLoader"
_SLEEPS_WITHIN_S = 0.1  # it does so 0.1 ms after its start; on a busy machine later


@contextmanager
def without_lasting_thread() -> Iterator[None]:
    """Ends the thread if it was started meanwhile; what is recorded does not need it."""
    before = _tasks()
    yield
    born = _tasks() - before
    if born and not _takes_orders() and _sleep_soon(born):
        _end()


def _tasks() -> set[str]:
    try:
        return {path.name for path in _TASKS.iterdir()}
    except OSError:  # another system, or no open file to be had
        return set()


def _takes_orders() -> bool:
    return any(name in os.environ for name in _SETTINGS) or _FILE.exists()


def _sleep_soon(tasks: set[str]) -> bool:
    """Whether all of these wait.  Before its first wait Kineto's thread would miss that it is to end, for 5 s."""
    until = monotonic() + _SLEEPS_WITHIN_S
    while not (asleep := all(_sleeps(task) for task in tasks)) and monotonic() < until:
        sleep(_SLEEPS_WITHIN_S / 1000)
    return asleep


def _sleeps(task: str) -> bool:
    try:
        return (_TASKS / task / "stat").read_text().rpartition(")")[2].split()[0] == "S"
    except (OSError, IndexError):  # it has ended
        return True


def _end() -> None:
    with suppress(AttributeError, OSError, TypeError):  # another Kineto
        library = ctypes.CDLL(sys.modules["torch._C"].__file__)
        find, end = library[f"{_CLASS}8instanceEv"], library[f"{_CLASS}10stopThreadEv"]
        find.restype = ctypes.c_void_p
        end(ctypes.c_void_p(find()))
