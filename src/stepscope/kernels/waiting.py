"""How long this process has been compiling, for whoever waits for it.  Imports no compiler.

The first use of an installation compiles what later ones find in numba's cache, which takes some ten seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONG_S = 1.0  # more than one loop of an otherwise full cache takes

_lock = threading.Lock()
_running = 0  # compilations, which may be one inside another
_since = 0.0
_spent_s = 0.0
_tell: Callable[[], object] | None = None


@contextmanager
def told_of(tell: Callable[[], object]) -> Iterator[None]:
    """Has a function called, once, when compiling goes on after it has taken a second in this process."""
    global _tell
    before, _tell = _tell, tell
    try:
        yield
    finally:
        _tell = before


def began() -> None:
    """A compilation begins."""
    global _running, _since, _tell
    with _lock:
        _running += 1
        if _running == 1:
            _since = time.monotonic()
        tell = _tell if _spent_s >= LONG_S else None
        if tell is not None:
            _tell = None
    if tell is not None:
        tell()


def ended() -> None:
    """A compilation has ended."""
    global _running, _spent_s
    with _lock:
        _running -= 1
        if _running == 0:
            _spent_s += time.monotonic() - _since
