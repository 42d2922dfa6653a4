"""Sweeps over intervals."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def merge_runs(group, rank, start, end, n_groups, n_ranks, out_group, out_rank, out_start, out_end):  # type: ignore[no-untyped-def]
    """Unites overlapping intervals of equal group and rank.

    Args:
        group, rank: int32 and uint8 of shape (n,); start, end: int64 of shape (n,), sorted by start.
        n_groups, n_ranks: bounds of `group` and `rank`.
        out_group, out_rank, out_start, out_end: room for n intervals, filled in no particular order.

    Returns:
        number of united intervals.
    """
    open_start = np.full((n_groups, n_ranks), -1, np.int64)
    open_end = np.full((n_groups, n_ranks), -1, np.int64)
    is_open = np.zeros((n_groups, n_ranks), np.bool_)
    count = 0
    for i in range(len(start)):
        g = group[i]
        r = rank[i]
        if is_open[g, r] and start[i] <= open_end[g, r]:
            if end[i] > open_end[g, r]:
                open_end[g, r] = end[i]
            continue
        if is_open[g, r]:
            out_group[count] = g
            out_rank[count] = r
            out_start[count] = open_start[g, r]
            out_end[count] = open_end[g, r]
            count += 1
        is_open[g, r] = True
        open_start[g, r] = start[i]
        open_end[g, r] = end[i]
    for g in range(n_groups):
        for r in range(n_ranks):
            if is_open[g, r]:
                out_group[count] = g
                out_rank[count] = r
                out_start[count] = open_start[g, r]
                out_end[count] = open_end[g, r]
                count += 1
    return count


@njit(cache=True, nogil=True)
def highest_rank_time(group, rank, time, is_end, totals):  # type: ignore[no-untyped-def]
    """Adds up, for each group, the time during which each rank is the highest of the open intervals.

    Args:
        group, rank, time, is_end: boundaries of shape (2n,), sorted by group, then time, ends before starts.
        totals: int64 of shape (groups, ranks), receives the sums.
    """
    open_count = np.zeros(totals.shape[1], np.int64)
    last = np.int64(0)
    current = np.int64(-1)
    for i in range(len(time)):
        if group[i] != current:
            current = group[i]
            open_count[:] = 0
            last = time[i]
        if time[i] > last:
            for r in range(len(open_count) - 1, -1, -1):
                if open_count[r] > 0:
                    totals[current, r] += time[i] - last
                    break
            last = time[i]
        open_count[rank[i]] += -1 if is_end[i] else 1
