"""How much memory the C library has handed out: a profiler's record grows it by about the same for each event."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _HeapInfo(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS.split()]


def heap_bytes() -> int | None:
    """The bytes in use; None where the C library does not say (before glibc 2.33, and on other systems)."""
    ask = _question()
    if ask is None:
        return None
    info = ask()
    return int(info.uordblks + info.hblkhd)


@cache
def _question() -> Any:
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError, TypeError):
        return None
    ask.restype = _HeapInfo
    return ask
