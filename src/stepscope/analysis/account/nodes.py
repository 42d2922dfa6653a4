"""Lines cut into nodes, and finding the node that ends or starts at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.model.arrays import F64, I32, I64, U8, Mask, count_below, distinct, offsets_of, places_of, used_rows
from stepscope.records import dataclass


@dataclass(frozen=True)
class Nodes:
    """Nodes as columns, sorted by line and time; those of one line do not overlap.

    Attributes:
        line: int32 of shape (n,); start_ps, end_ps: int64 of shape (n,), as recorded.
        kind: uint8 of shape (n,), see NodeKind.
        event: int32 of shape (n,), the event that a node is, or -1.
    """

    line: I32
    start_ps: I64
    end_ps: I64
    kind: U8
    event: I32

    def __len__(self) -> int:
        return len(self.line)


def is_among(values: I64, wanted: I64) -> Mask:
    """Which values are among some others: bool of the shape of `values`."""
    found: Mask = places_of(wanted, values) >= 0
    return found


def numbers_in(column: NDArray[np.integer]) -> list[int]:
    """The different small numbers in a column, such as rows of lines or strings, ascending; none is negative."""
    found: list[int] = used_rows(column, int(column.max(initial=0)) + 1).tolist()
    return found


def runs_of(column: NDArray[np.integer]) -> list[tuple[int, int]]:
    """The first place of each run of equal numbers in a column, and the place after it; none is negative."""
    return list(pairwise(np.flatnonzero(np.diff(column, prepend=-2, append=-2)).tolist()))


def sum_of_busiest_line(line: NDArray[np.integer], step: NDArray[np.integer], own_ps: I64, steps: int) -> F64:
    """For each step the time of the line that has most of some nodes in it: float64 of shape (steps,), ps.

    Args:
        line, step, own_ps: of the nodes, shape (n,): their line, the place of their step, and their own time.
    """
    most = np.zeros(steps)
    for each in numbers_in(line):
        here = line == each
        most = np.maximum(most, np.bincount(step[here], weights=own_ps[here], minlength=steps))
    return most


class NodeFinder:
    """Finds nodes by line and time.

    Args:
        line, start_ps, end_ps: columns of nodes, sorted by line and time; those of one line do not overlap.
    """

    def __init__(self, line: I32, start_ps: I64, end_ps: I64) -> None:
        self._start_ps, self._end_ps = start_ps, end_ps
        self._first = offsets_of(np.bincount(line))

    def ending_by(self, line: NDArray[np.integer], time_ps: I64) -> I64:
        """The last node of a line that has ended at a time: int64 of shape (n,), -1 where none has."""
        return self._find(self._end_ps, line, time_ps, True)

    def starting_from(self, line: NDArray[np.integer], time_ps: I64) -> I64:
        """The first node of a line that starts at a time or later: int64 of shape (n,), -1 where none does."""
        return self._find(self._start_ps, line, time_ps, False)

    def starting_at(self, line: NDArray[np.integer], time_ps: I64) -> I64:
        """The node of a line that starts at a time: int64 of shape (n,), -1 where none does."""
        at = self.starting_from(line, time_ps)
        some = np.flatnonzero(at >= 0)
        at[some[self._start_ps[at[some]] != time_ps[some]]] = -1
        return at

    def _find(self, values: I64, line: NDArray[np.integer], time_ps: I64, before: bool) -> I64:
        at, lines = np.empty(len(line), np.int64), line.astype(np.int32, copy=False)
        kernels.intervals.find_by_line(values, self._first, lines, time_ps, before, self._first.copy(), at)
        return at


def cut_line(line: int, cuts: I64, gap_start: I64, gap_end: I64, done: I64) -> tuple[I32, I64, I64]:
    """The nodes between the cuts of a line, without those in gaps: line, start and end of each.

    Where a gap ends at the start of the next one, or at the end of the line, there is a node without length: the thread
    returns from one wait and enters another, and something has to wait and may be waited for.  So there is where others
    wait for the end of the gap itself.

    Args:
        cuts: times in ps, in any order; the bounds of gaps need not be among them.
        gap_start, gap_end: stretches that the thread only waits in, in order of time; they do not overlap.
        done: times at which something is done that other threads wait for.
    """
    times = distinct(np.concatenate([cuts, gap_start, gap_end]))
    start, end = times[:-1], times[1:]
    at = count_below(gap_start, start, with_limit=True) - 1
    waits = (at >= 0) & (start < np.append(gap_end, 0)[at])
    start, end = start[~waits], end[~waits]
    turns = distinct(gap_end[is_among(gap_end, np.concatenate([gap_start, times[-1:], done]))])
    if len(turns):
        start, end = np.append(start, turns), np.append(end, turns)
        order = np.lexsort((end, start))
        start, end = start[order], end[order]
    return np.full(len(start), line, np.int32), start, end
