"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

_M_ARENA_MAX = -8  # of glibc's mallopt
_MOST_ARENAS = 2


def share_arenas() -> None:
    """Has all threads allocate from two arenas of the C library; for a process of our own, before threads start.

    Within TensorBoard it is not for us to say: it cannot be taken back, its threads have arenas already, and those of
    other plugins may want more of them.  What they cost there is given back after each profile, see `give_back`.

    glibc gives each thread an arena, and each keeps holes where the columns of a trace were: after every tool of a
    profile of a million events was asked, they held 30 MB.  Elsewhere this does nothing.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(_M_ARENA_MAX, _MOST_ARENAS)


def give_back() -> None:
    """Has the C library return what it keeps of freed memory, a tenth of a large profile's after it was analysed.

    glibc keeps it for later use, which in a server may be hours away.  Elsewhere this does nothing.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
