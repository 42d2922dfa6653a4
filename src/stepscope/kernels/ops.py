"""Loops over device work: climbing to the op that launched it, numbering pairs, adding up groups."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled

# Causes lead back in time, so there is no circle in a sound trace; in a damaged one this ends the walk.
_LONGEST_CLIMB = 4096


@compiled
def climb(start, parent, cause, kind, level, top, out):  # type: ignore[no-untyped-def]
    """The best event around each start: of the highest level, among equals the nearest.

    The way leads through the enclosing events and, if none of them has a level, on through what caused the outermost.

    Args:
        start: int64 of shape (n,), rows to begin at, which count themselves; -1 has no answer.
        parent, cause: int32 of shape (events,), row or -1.
        kind: uint8 of shape (events,).
        level: uint8 of shape (256,), the level of each kind, 0 for those that are no answer.
        top: the highest level; nothing further is looked for where it is found.
        out: int64 of shape (n,), receives the row or -1.
    """
    for i in range(len(start)):
        event = start[i]
        best = -1
        best_level = 0
        steps = 0
        while event >= 0 and steps < _LONGEST_CLIMB:
            here = level[kind[event]]
            if here > best_level:
                best = event
                best_level = here
                if here == top:
                    break
            above = parent[event]
            if above < 0:
                if best >= 0:
                    break
                above = cause[event]
            event = above
            steps += 1
        out[i] = best


@compiled
def number_pairs(a, b, slots, first, out):  # type: ignore[no-untyped-def]
    """Numbers the different pairs in the order in which they first appear.

    Args:
        a, b: int64 of shape (n,).
        slots: int32 of a power of two of at least 2 n, all -1; scratch.
        first: int64 of shape (n,), receives the place of the first of each number.
        out: int32 of shape (n,), receives the numbers.

    Returns:
        how many there are.
    """
    mask = np.uint64(len(slots) - 1)
    count = 0
    for i in range(len(a)):
        if i > 0 and a[i] == a[i - 1] and b[i] == b[i - 1]:  # equal pairs often stand together
            out[i] = out[i - 1]
            continue
        mixed = np.uint64(a[i]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b[i])
        mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
        at = (mixed ^ (mixed >> np.uint64(29))) & mask
        while True:
            found = slots[at]
            if found < 0:
                slots[at] = count
                first[count] = i
                out[i] = count
                count += 1
                break
            other = first[found]
            if a[other] == a[i] and b[other] == b[i]:
                out[i] = found
                break
            at = (at + np.uint64(1)) & mask
    return count


@compiled
def add_up(group, value, count, total, low, high):  # type: ignore[no-untyped-def]
    """Count, sum, smallest and largest value of each group.

    Args:
        group: int32 of shape (n,); value: int64 of shape (n,), not negative.
        count, total, low, high: int64 of shape (groups,), zeros; receive the results.
    """
    for i in range(len(group)):
        g = group[i]
        v = value[i]
        if count[g] == 0 or v < low[g]:
            low[g] = v
        if v > high[g]:
            high[g] = v
        count[g] += 1
        total[g] += v


@compiled
def hash_runs(begin, end, value, out):  # type: ignore[no-untyped-def]
    """A hash of each run of values, in which their order counts.

    Args:
        begin, end: int64 of shape (runs,), places in `value`.
        value: int64 of shape (n,).
        out: uint64 of shape (runs,), receives the hashes.
    """
    for run in range(len(begin)):
        mixed = np.uint64(end[run] - begin[run])
        for at in range(begin[run], end[run]):
            mixed = (mixed ^ np.uint64(value[at])) * np.uint64(0xFF51AFD7ED558CCD)
            mixed ^= mixed >> np.uint64(32)
        out[run] = mixed
