"""Stats: which string a metadata id stands for, and stats of event types and planes."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled
from stepscope.kernels.wire.fields import OK, read_field

# Tags of stats whose text lies in the buffer; `value` is the position of its length.
INLINE = 128  # added to the tag that the stat has once its text is interned
INLINE_STRING, INLINE_BYTES = 133, 134
TAG_DOUBLE, TAG_UINT, TAG_INT, TAG_STRING = 1, 2, 3, 5

# Flags of an event that come from its stats, 16 bits; the bits below are the caller's.
FLAG_AGGREGATE = 1 << 15
FLAG_IF_NONZERO = 1 << 16  # in a stat's flags only: set the others for a value other than 0

# The name of the stat that an aggregate's count becomes, until its row in the string table is known.
NAME_OCCURRENCES = -1


@compiled
def look_up(key, lut, ids):  # type: ignore[no-untyped-def]
    """Index into `lut` of a metadata id: the id itself if `ids` is empty, else its place in the sorted `ids`; or -1."""
    if len(ids) == 0:
        if 0 <= key < len(lut):
            return key
        return np.int64(-1)
    low = np.int64(0)
    high = np.int64(len(ids))
    while low < high:
        middle = (low + high) >> 1
        if ids[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < len(ids) and ids[low] == key:
        return low
    return np.int64(-1)


@compiled
def decode_stats(buf, begins, ends, lut, ids, name, tag, value):  # type: ignore[no-untyped-def]
    """Decodes XStat messages, one a range, into the rows 0.. of `name`, `tag` and `value`.

    Args:
        lut, ids: the string row of each stat metadata id, see `look_up`; -1 for none.

    Returns:
        (damaged stats, where the first of them starts or -1, what is wrong with it).
    """
    lost = 0
    lost_at = np.int64(-1)
    code = OK
    for i in range(len(begins)):
        pos = begins[i]
        name[i] = 0
        tag[i] = 0
        value[i] = 0
        error = OK
        while 0 <= pos < ends[i]:
            number, wire, start, stop, pos, error, place = read_field(buf, pos, ends[i])
            if wire == 0 and number == 1:
                row = look_up(start, lut, ids)
                name[i] = max(lut[row], 0) if row >= 0 else 0
            elif wire == 0 and (number == 3 or number == 4):
                tag[i] = TAG_UINT if number == 3 else TAG_INT
                value[i] = start
            elif wire == 0 and number == 7:
                row = look_up(start, lut, ids)
                tag[i] = TAG_STRING
                value[i] = max(lut[row], 0) if row >= 0 else 0
            elif wire == 1 and number == 2:
                tag[i] = TAG_DOUBLE
                value[i] = start
            elif wire == 2 and (number == 5 or number == 6):
                tag[i] = INLINE_STRING if number == 5 else INLINE_BYTES
                value[i] = place
        if pos < 0:
            tag[i] = 0
            value[i] = 0
            lost += 1
            if lost_at < 0:
                lost_at = begins[i]
                code = error
    return lost, lost_at, code
