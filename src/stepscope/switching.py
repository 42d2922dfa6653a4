"""Makes threads that compute release the interpreter sooner."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 0.0005
"""How long a computing thread keeps the interpreter while another waits for it: a tenth of Python's default.

Timeline windows are answered while tools are computed in the background, and each takes the interpreter several times.
With 1.16 million events, 19 of 20 windows take at most 8 ms instead of 16.
"""


class _Switching:
    """The number of computing threads, and the process's setting before the first of them started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = SECONDS

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = sys.getswitchinterval()
                _set(min(self._before, SECONDS))

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            # If other code changed it meanwhile, its setting stays.
            if not self._inside and _is_same(sys.getswitchinterval(), min(self._before, SECONDS)):
                _set(self._before)


_HALF_MICROSECOND = 5e-7


def _set(seconds: float) -> None:
    """Sets the interval.  Python truncates to whole microseconds; without the half, a value read back and set again
    would lose one."""
    sys.setswitchinterval(seconds + _HALF_MICROSECOND)


def _is_same(a: float, b: float) -> bool:
    return abs(a - b) < _HALF_MICROSECOND


_SWITCHING = _Switching()


@contextmanager
def switching_quickly() -> Iterator[None]:
    """While any thread is inside, threads wait less for the interpreter; afterwards the setting is restored.

    The setting holds for the whole process, which may be TensorBoard's: all of its threads then get the interpreter
    sooner while a profile is analysed.
    """
    _SWITCHING.enter()
    try:
        yield
    finally:
        _SWITCHING.leave()
