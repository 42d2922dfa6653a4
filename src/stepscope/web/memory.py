"""Returns freed memory to the system."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

_M_ARENA_MAX = -8  # of glibc's mallopt
_MOST_ARENAS = 2


def share_arenas() -> None:
    """Makes all threads allocate from two arenas of the C library; for our own process, before threads start.

    Not used inside TensorBoard: it cannot be undone, TensorBoard's threads already have arenas, and other plugins may
    need more.  There `return_memory` returns the memory after each profile.

    glibc gives each thread an arena, and each keeps holes where the columns of a trace were: 30 MB after running every
    tool on a profile of a million events.  On other systems this does nothing.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(_M_ARENA_MAX, _MOST_ARENAS)


def return_memory() -> None:
    """Makes the C library return the freed memory that it keeps: a tenth of a large profile's after the analysis.

    glibc keeps it for later use, which in a server may be hours away.  On other systems this does nothing.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
