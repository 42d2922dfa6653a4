"""Makes threads that compute release the interpreter sooner.

The interval holds for the whole process, so a program that is captured, or that has a page of ours, would read ours,
and might set that again when we are long gone.  It reads its own: `sys.getswitchinterval` is called through a pointer
in itself, and answers for as long as ours is set what the program has set.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stepscope.kernels import observe
from stepscope.kernels.untraced import untraced

SECONDS = 0.000499
"""How long a computing thread keeps the interpreter while another waits for it: a tenth of Python's default, and no
round number, so that it is told from what a program sets.

Timeline windows are answered while tools are computed in the background, and each takes the interpreter several times.
With 1.16 million events, 19 of 20 windows take at most 8 ms instead of 16.
"""


class _Interval:
    """The intervals that are asked for now, of which the shortest is set, and that of the program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: list[float] = []
        self._set: float | None = None
        self._of_program = SECONDS

    def hold(self, seconds: float) -> None:
        with self._lock:
            self._asked.append(seconds)
            self._apply()

    def release(self, seconds: float) -> None:
        with self._lock:
            if seconds not in self._asked:
                return  # held by the process that this one was forked from
            self._asked.remove(seconds)
            # If other code changed it meanwhile, its setting stays.
            if self._give_back() and self._asked:
                self._apply()

    def forget_parent(self) -> None:
        """In a forked child, where none of the threads lives for which it was shortened."""
        self._lock = threading.Lock()
        self._asked.clear()
        self._give_back()

    def _apply(self) -> None:
        self._of_program, shortest = sys.getswitchinterval(), min(self._asked)
        if shortest < self._of_program:
            self._set = shortest
            observe.hold_switch_interval(shortest, self._of_program)

    def _give_back(self) -> bool:
        """Whether the interval is that of the program because of this."""
        ours, self._set = self._set, None
        return ours is not None and observe.end_holding_switch_interval(ours, self._of_program)


_INTERVAL = _Interval()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=functools.partial(untraced, _INTERVAL.forget_parent))


def hold(seconds: float) -> None:
    """Threads wait for the interpreter no longer than this until it is released; the program goes on reading its own.

    Args:
        seconds: whole microseconds, and none that a program would set.
    """
    _INTERVAL.hold(seconds)


def release(seconds: float) -> None:
    """Ends one `hold` of as many seconds."""
    _INTERVAL.release(seconds)


@contextmanager
def switching_quickly() -> Iterator[None]:
    """While any thread is inside, threads wait less for the interpreter; afterwards the setting is restored.

    The setting holds for the whole process, which may be TensorBoard's: all of its threads then get the interpreter
    sooner while a profile is analysed.
    """
    hold(SECONDS)
    try:
        yield
    finally:
        release(SECONDS)
