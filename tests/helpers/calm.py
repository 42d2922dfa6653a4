"""Programs whose share of time a test asserts: one at a time, and again where the machine was too busy.

Several processes test on few cores.  Such a program has other tests beside it, but never another such program, and goes
before them where the system allows that; where it got too little of a processor all the same, it is recorded again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

# Percent of a step without a processor: with more, the machine may be what limits the run, and rightly called so.
MUCH_CONTENTION = 15.0
_TRIES = 2


@contextmanager
def taking_a_turn() -> Iterator[None]:
    """Waits until no other process that tests this checkout runs such a program.

    The lock is on this very file, which all of them have; the system takes it back from a process that dies.
    """
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _going_first():
            yield


@contextmanager
def _going_first() -> Iterator[None]:
    """What starts in this block gets a processor before other tests; only root may ask for that."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, usual - 10)  # nine tenths of a core that it shares with one other
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)


def record_calmly(record: Callable[[], T], is_calm: Callable[[T], bool]) -> T:
    """What `record` returns; recorded again, a few times at most, where the machine disturbed it.

    Args:
        record: runs the program; in a new folder each time.
        is_calm: says of a recording that it was not disturbed.  What the test asserts does not belong here.
    """
    for _ in range(_TRIES):
        with taking_a_turn():
            found = record()
        if is_calm(found):
            break
    return found


def contention_percent(overview: Mapping[str, Any]) -> float:
    """The percent of a step for which its loop waits for a core that others use, as an overview's JSON has it."""
    return float(next((row["percent"] for row in overview["account"] if row["cause"] == "contention"), 0.0))


def is_calm(overview: Mapping[str, Any]) -> bool:
    """Whether others disturbed a loop so little that the rest of its overview can be asserted."""
    return contention_percent(overview) < MUCH_CONTENTION
