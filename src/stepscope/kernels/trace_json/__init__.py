"""The JSON scanner: text of trace events into columns, in one pass and without a Python object per event.

It reads what trace writers write rather than what the standard allows: stray commas, bare `NaN` or `N/A`, control
characters and raw bytes in strings are all taken.  An object that makes no sense is stepped over, and reading goes on
at the next one.  Times stay exact, because they are read as decimals and never pass through a float.

    event = {"ph": "X", "cat": text, "name": text, "pid": any, "tid": any, "ts": us, "dur": us, "id": any, "args": args}
    args  = {text: number | text | list or object, kept as JSON text}

Threads scan parts of a text at a time, each with a `Scanner` of its own: that of the first part absorbs the others, as
long as each ended where the next began.
"""

from __future__ import annotations

from stepscope.kernels.trace_json.scan import (
    CLOSED,
    HAS_DURATION,
    HAS_FLOW,
    HAS_PID,
    HAS_TID,
    HAS_TIME,
    LOCAL_ID,
    MALFORMED,
    MORE,
    NEGATIVE,
    STOPPED,
    Scanner,
    find_event,
    skip_space,
    skip_value,
)

__all__ = [
    "CLOSED",
    "HAS_DURATION",
    "HAS_FLOW",
    "HAS_PID",
    "HAS_TID",
    "HAS_TIME",
    "LOCAL_ID",
    "MALFORMED",
    "MORE",
    "NEGATIVE",
    "STOPPED",
    "Scanner",
    "find_event",
    "skip_space",
    "skip_value",
]
