"""The stats that decide an event's kind.  Decoding notes which of them an event has; `classify` says what follows."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from stepscope.formats.xspace.names import Interner
from stepscope.kernels.wire import FLAG_IF_NONZERO, FLAG_LEAVE_OUT

# Stats that decide an event's kind, as bits of the flags that decoding collects.  The second half of a pair says
# whether a value of 0 counts.
(
    CORRELATION, KERNEL, MEMCPY, MEMSET, MEMORY, HLO_OP, ROOT, STEP_NUM, ASYNC, FUNCTION_CALL, COLLECTIVE, COUNTER,
    EAGER,
) = (1 << bit for bit in range(13))  # fmt: skip
FLAG_OF_STAT: dict[str, tuple[int, bool]] = {
    "correlation_id": (CORRELATION, True),
    "kernel_details": (KERNEL, True),
    "memcpy_details": (MEMCPY, True),
    "Memset_details": (MEMSET, True),
    "memset_details": (MEMSET, True),
    "memalloc_details": (MEMORY, True),
    "MemFree_details": (MEMORY, True),
    "MemoryResidency_details": (MEMORY, True),
    "hlo_op": (HLO_OP, True),
    "_r": (ROOT, True),
    "step_num": (STEP_NUM, True),
    "_a": (ASYNC, False),
    "tf_function_call": (FUNCTION_CALL, True),
    "all_reduce_unique_id": (COLLECTIVE, True),
    "counter_value": (COUNTER, True),
    "is_eager": (EAGER, False),
}


def flags_of_texts(texts: Interner, left_out: Iterable[str]) -> array[int]:
    """What a stat with each text so far as its name says of its event, and whether it is left out: uint32 of shape
    (texts,)."""
    flags = array("I", bytes(4 * texts.count))
    for name, (bit, zero_counts) in FLAG_OF_STAT.items():
        row = texts.find(name)
        if row > 0:
            flags[row] = bit if zero_counts else bit | FLAG_IF_NONZERO
    for name in left_out:
        if (row := texts.find(name)) > 0:
            flags[row] |= FLAG_LEAVE_OUT
    return flags
