"""Returns freed memory to the system."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

# Of glibc's mallopt, and the values for a server: most arenas, and bytes.
_M_ARENA_MAX, _M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -8, -3, -1
_OPTIONS = ((_M_ARENA_MAX, 1), (_M_MMAP_THRESHOLD, 32 << 20), (_M_TRIM_THRESHOLD, 64 << 20))


def share_heap() -> None:
    """Makes all threads allocate from one heap that keeps up to 64 MB for later; for our own process, before threads
    start.

    Not used inside TensorBoard: it cannot be undone, TensorBoard's threads already have heaps, and other plugins may
    need more.  There `return_memory` returns the memory after each profile.

    glibc gives each thread a heap, and each keeps holes where the columns of a trace were: 30 MB after running every
    tool on a profile of a million events.  It also returns each column to the system when it is freed, which has to
    clear the memory of the next one: a tenth of the processor time of a first page.  On other systems this does
    nothing.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        for option, value in _OPTIONS:
            set_option(option, value)


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
