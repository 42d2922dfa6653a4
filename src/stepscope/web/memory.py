"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any


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
