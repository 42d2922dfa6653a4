"""The entries of the metadata maps."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled
from stepscope.kernels.wire.fields import OK, OVERRUN, read_field

# Columns of walk_metadata's `entries`, one row a metadata entry.
(
    META_ID,
    META_NAME,
    META_DISPLAY,
    META_STATS,
    META_BAD_AT,
    META_BAD_CODE,
    META_WIDTH,
) = range(7)


@compiled
def walk_metadata(buf, begins, ends, entries, stat_base, stat_begins, stat_ends):  # type: ignore[no-untyped-def]
    """Reads map entries of event or stat metadata, one a range.

    Args:
        entries: int64 of shape (entries, META_WIDTH), filled; see the META_ columns.
        stat_base: int64 of shape (entries,), the first row of each entry's stats in `stat_begins` and `stat_ends`,
            which receive the ranges of the stats as far as there is room.
    """
    for i in range(len(begins)):
        pos = begins[i]
        inner = np.int64(-1)
        inner_end = np.int64(-1)
        has_key = False
        bad = np.int64(-1)
        code = OK
        while pos < ends[i]:
            number, wire, start, stop, nxt, error, place = read_field(buf, pos, ends[i])
            if wire == 2 and number == 2 and (error == OK or error == OVERRUN):
                inner = start
                inner_end = stop
            elif error == OK and wire == 0 and number == 1:
                entries[i, META_ID] = start
                has_key = True
            if error != OK:
                bad = pos
                code = error
                break
            pos = nxt
        stats = 0
        while inner >= 0 and inner < inner_end:
            number, wire, start, stop, nxt, error, place = read_field(buf, inner, inner_end)
            if error != OK:
                bad = inner
                code = error
                break
            if wire == 0 and number == 1 and not has_key:
                entries[i, META_ID] = start
            elif wire == 2 and number == 2:
                entries[i, META_NAME] = place
            elif wire == 2 and number == 4:
                entries[i, META_DISPLAY] = place
            elif wire == 2 and number == 5:
                if i < len(stat_base) and stat_base[i] + stats < len(stat_begins):
                    stat_begins[stat_base[i] + stats] = start
                    stat_ends[stat_base[i] + stats] = stop
                stats += 1
            inner = nxt
        entries[i, META_STATS] = stats
        entries[i, META_BAD_AT] = bad
        entries[i, META_BAD_CODE] = code
