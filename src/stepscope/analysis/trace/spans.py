"""Sets of instants, as sorted intervals that do not touch: int64 arrays of starts and ends, in ps."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, Mask, offsets_of
from stepscope.records import dataclass


@dataclass(frozen=True)
class Spans:
    """A set of instants.

    Attributes:
        start, end: int64 of shape (n,), ascending; each interval starts after the previous one ends.
    """

    start: I64
    end: I64

    @staticmethod
    def union(start: I64, end: I64) -> Spans:
        """The union of intervals, which may come in any order; empty ones are ignored."""
        return Spans(*map(np.asarray, kernels.intervals.union(start, end)))

    @staticmethod
    def of_rows(start: I64, length: I64, rows: I64) -> Spans:
        """The union of some intervals of a table, by their starts and lengths."""
        return Spans(*map(np.asarray, kernels.intervals.union_of(start, length, np.ascontiguousarray(rows, np.int64))))

    @property
    def total(self) -> int:
        """The total length in ps."""
        return int((self.end - self.start).sum())

    def __or__(self, other: Spans) -> Spans:
        return Spans(*map(np.asarray, kernels.intervals.either(self.start, self.end, other.start, other.end)))

    def __and__(self, other: Spans) -> Spans:
        room = len(self.start) + len(other.start)
        begins, ends = np.empty(room, np.int64), np.empty(room, np.int64)
        count = kernels.intervals.common(self.start, self.end, other.start, other.end, begins, ends)
        return Spans(begins[:count].copy(), ends[:count].copy())

    def __sub__(self, other: Spans) -> Spans:
        if not len(self.start):
            return self
        low, high = int(self.start[0]), int(self.end[-1])
        rest = Spans.union(np.append(low, np.maximum(other.end, low)), np.append(np.minimum(other.start, high), high))
        return self & rest

    def overlap_ps(self, start: I64, end: I64) -> I64:
        """Time that this set shares with each interval: int64 of shape (n,), ps."""
        inside = np.empty(len(start), np.int64)
        kernels.intervals.overlap(self.start, self.end, offsets_of(self.end - self.start), start, end, inside)
        return inside

    def touches(self, start: I64, end: I64) -> Mask:
        """Whether each interval overlaps this set: bool of shape (n,)."""
        if len(self.start) != 1:
            return self.overlap_ps(start, end) > 0
        found: Mask = (end > self.start[0]) & (start < self.end[0]) & (end > start)
        return found

    def drop_shorter(self, length_ps: int) -> Spans:
        """Only the intervals that are at least this long."""
        kept = self.end - self.start >= length_ps
        return Spans(self.start[kept], self.end[kept])


def spans_of(trace: HostTrace, rows: I64) -> Spans:
    """When at least one of the events is running."""
    return Spans.of_rows(trace.events.start_ps, trace.events.duration_ps, rows)


def is_outermost(start: I64, end: I64) -> Mask:
    """Whether each interval lies in no earlier one: bool of shape (n,).

    The intervals are sorted by start, the longer first at equal starts, as the events of a line are.
    """
    outer = np.ones(len(start), np.bool_)
    if len(start):
        outer[1:] = end[1:] > np.maximum.accumulate(end)[:-1]
    return outer
