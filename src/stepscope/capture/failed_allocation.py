"""What a program could not allocate: no profiler records an allocation that fails, but its exception says it."""

from __future__ import annotations

import re

_OUT_OF_MEMORY = re.compile(r"out of memory|OOM when allocating|RESOURCE_EXHAUSTED|unable to allocate", re.IGNORECASE)
_OP = re.compile(r"\{\{node (?P<node>[^}]+)\}\}|\[Op:(?P<op>\w+)\]")  # in messages of TensorFlow
_LONGEST = 300  # of the message: PyTorch goes on with advice about its settings


def describe_failed_allocation(error: BaseException | None) -> str | None:
    """A sentence about the allocation that failed, with the op if the exception names it; None for another error."""
    text = str(error or "")
    if not (isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(text)):
        return None
    message = next(iter(text.strip().splitlines()), type(error).__name__)[:_LONGEST].rstrip(" .")
    found = _OP.search(text)
    op = found and (found["node"] or found["op"])
    return f"the program ran out of memory{f' in {op}' if op else ''}, and the capture ended with it: {message}"
