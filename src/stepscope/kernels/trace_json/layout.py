"""What the scanner fills: the columns of events and stats, the table of texts, and its own state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# What scan_events stopped for.
MORE, CLOSED, FULL, TEXTS_FULL, BLOB_FULL = range(5)

# Instead of a position: the text ends first; this is no JSON; no room for another stat, text, or byte of text.
INCOMPLETE, MALFORMED, NO_STAT, NO_TEXT, NO_BLOB = -1, -2, -3, -4, -5

# Places of the scanner's state.
AT, ROWS, STATS, TEXTS, BLOB, SLOW, MEMBER_AT, RECOVERING, DAMAGED, DAMAGED_AT, STATE_WIDTH = range(11)

# Flags of an event.
HAS_TIME, HAS_DURATION, NEGATIVE, HAS_PID, HAS_TID, HAS_FLOW, LOCAL_ID = 1, 2, 4, 8, 16, 32, 64

# Times beyond this many microseconds (some 140,000 years) are damage.
TIME_LIMIT_US = 1 << 62

# Tags of stats; a slow double is one that needs a careful conversion.
NONE, DOUBLE, UINT, INT, STRING, SLOW_DOUBLE = 0, 1, 2, 3, 5, 9


class Texts(NamedTuple):
    """Interned texts: text `i` is `blob[offsets[i]:offsets[i + 1]]`; text 0 is empty.

    `escaped[i]` is 1 if the text came from a string with a backslash.  `follower[i]` is the key that came last after
    the key `i`: a guess that saves looking it up.  `slots` is a hash table of ids, 0 where free, of a power-of-two
    length at least twice that of `hashes`.
    """

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    escaped: NDArray[np.uint8]
    follower: NDArray[np.int32]
    slots: NDArray[np.int32]


class Rows(NamedTuple):
    """Columns of events, one row each.  Texts are ids; `us` and `frac_ps` add up to the time; `flow` is an `id` that
    is a whole number, or the id of its text, that of an `id2` as JSON; `stat_end` is the row after the event's last
    stat."""

    phase: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    cat: NDArray[np.int32]
    name: NDArray[np.int32]
    pid: NDArray[np.int32]
    tid: NDArray[np.int32]
    us: NDArray[np.int64]
    frac_ps: NDArray[np.int32]
    duration_us: NDArray[np.int64]
    duration_frac_ps: NDArray[np.int32]
    flow: NDArray[np.int64]
    stat_end: NDArray[np.int64]


class StatRows(NamedTuple):
    """Columns of stats.  `double` is `value` seen as doubles.  `slow` lists (row, begin, end) of the numbers that need
    a careful conversion."""

    name: NDArray[np.int32]
    tag: NDArray[np.uint8]
    value: NDArray[np.int64]
    double: NDArray[np.float64]
    slow: NDArray[np.int64]
