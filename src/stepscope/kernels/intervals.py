"""Sweeps over intervals."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled


@compiled
def merge_runs(group, rank, start, end, slot, out_group, out_rank, out_start, out_end):  # type: ignore[no-untyped-def]
    """Unites overlapping intervals of equal group and rank.

    Args:
        group, rank: int32 and uint8 of shape (n,); start, end: int64 of shape (n,), sorted by start.
        slot: int64 of shape (groups, ranks), all -1; scratch.
        out_group, out_rank, out_start, out_end: room for n intervals; receive the united ones, by start.

    Returns:
        number of united intervals.
    """
    count = 0
    for i in range(len(start)):
        g = group[i]
        r = rank[i]
        last = slot[g, r]
        if last >= 0 and start[i] <= out_end[last]:
            if end[i] > out_end[last]:
                out_end[last] = end[i]
            continue
        slot[g, r] = count
        out_group[count] = g
        out_rank[count] = r
        out_start[count] = start[i]
        out_end[count] = end[i]
        count += 1
    return count


@compiled
def union(start, end, out_start, out_end):  # type: ignore[no-untyped-def]
    """Unites intervals that overlap or touch; empty ones count for nothing.

    Args:
        start, end: int64 of shape (n,).
        out_start, out_end: int64, room for n; receive the united ones, by start.

    Returns:
        number of united intervals; -1 if the intervals are not sorted by start.
    """
    count = 0
    for i in range(len(start)):
        if i > 0 and start[i] < start[i - 1]:
            return -1
        if end[i] <= start[i]:
            continue
        if count > 0 and start[i] <= out_end[count - 1]:
            if end[i] > out_end[count - 1]:
                out_end[count - 1] = end[i]
            continue
        out_start[count] = start[i]
        out_end[count] = end[i]
        count += 1
    return count


@compiled
def common(start, end, other_start, other_end, out_start, out_end):  # type: ignore[no-untyped-def]
    """What two sets of instants have in common, each given as sorted intervals that do not touch each other.

    Args:
        start, end: int64 of shape (n,); other_start, other_end: int64 of shape (m,).
        out_start, out_end: int64, room for n + m; receive the common intervals, by start.

    Returns:
        number of common intervals.
    """
    count = 0
    i = 0
    j = 0
    while i < len(start) and j < len(other_start):
        begin = max(start[i], other_start[j])
        stop = min(end[i], other_end[j])
        if begin < stop:
            out_start[count] = begin
            out_end[count] = stop
            count += 1
        if end[i] < other_end[j]:
            i += 1
        else:
            j += 1
    return count


@compiled
def highest_rank_time(group, rank, time, is_end, open_count, totals):  # type: ignore[no-untyped-def]
    """Adds up, for each group, the time during which each rank is the highest of the open intervals.

    Args:
        group, rank, time, is_end: boundaries of shape (2n,), sorted by group, then time, ends before starts.
        open_count: int64 of shape (ranks,); scratch.
        totals: int64 of shape (groups, ranks), receives the sums.
    """
    last = np.int64(0)
    current = np.int64(-1)
    for i in range(len(time)):
        if group[i] != current:
            current = group[i]
            for r in range(len(open_count)):
                open_count[r] = 0
            last = time[i]
        if time[i] > last:
            for r in range(len(open_count) - 1, -1, -1):
                if open_count[r] > 0:
                    totals[current, r] += time[i] - last
                    break
            last = time[i]
        open_count[rank[i]] += -1 if is_end[i] else 1
