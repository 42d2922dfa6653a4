"""The JSON scanner: converts the text of trace events to columns, in one pass and without a Python object per event.

It accepts what trace writers produce, beyond the standard: stray commas, bare `NaN` or `N/A`, control characters and
raw bytes in strings.  It skips an invalid object and continues at the next one.  Times stay exact, since they are read
as decimals and never converted to float.

    event = {"ph": "X", "cat": text, "name": text, "pid": any, "tid": any, "ts": us, "dur": us, "id": any, "args": args}
    args  = {text: number | text | list or object, kept as JSON text}

Several threads scan parts of a text at the same time, each with its own `Scanner`.  The scanner of the first part
absorbs the others, as long as each part ended where the next started.
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
