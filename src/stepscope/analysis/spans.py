"""Sets of instants, as sorted intervals that do not touch each other: int64 arrays of begins and of ends, in ps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.model import HostTrace

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Spans:
    """A set of instants.

    Attributes:
        start, end: int64 of shape (n,), ascending; each interval begins after the one before it has ended.
    """

    start: I64
    end: I64

    @staticmethod
    def of(start: I64, end: I64) -> Spans:
        """What at least one of the intervals covers; they may come in any order, empty ones count for nothing."""
        some = end > start
        start, end = start[some], end[some]
        if not len(start):
            return Spans(np.empty(0, np.int64), np.empty(0, np.int64))
        if (start[1:] < start[:-1]).any():
            order = np.argsort(start, kind="stable")
            start, end = start[order], end[order]
        reach = np.maximum.accumulate(end)
        first = np.flatnonzero(np.concatenate([[True], start[1:] > reach[:-1]]))
        return Spans(start[first], reach[np.append(first[1:], len(start)) - 1])

    @property
    def total(self) -> int:
        """How long all intervals take together."""
        return int((self.end - self.start).sum())

    def __or__(self, other: Spans) -> Spans:
        return Spans.of(np.concatenate([self.start, other.start]), np.concatenate([self.end, other.end]))

    def __and__(self, other: Spans) -> Spans:
        first = np.searchsorted(other.end, self.start, side="right")
        count = np.maximum(np.searchsorted(other.start, self.end, side="left") - first, 0)
        mine = np.repeat(np.arange(len(self.start)), count)
        theirs = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
        return Spans(np.maximum(self.start[mine], other.start[theirs]), np.minimum(self.end[mine], other.end[theirs]))

    def __sub__(self, other: Spans) -> Spans:
        if not len(self.start):
            return self
        low, high = int(self.start[0]), int(self.end[-1])
        rest = Spans.of(np.append(low, np.maximum(other.end, low)), np.append(np.minimum(other.start, high), high))
        return self & rest

    def covered(self, start: I64, end: I64) -> I64:
        """How much of each of some intervals this set covers: int64 of shape (n,)."""
        before = np.concatenate([[0], np.cumsum(self.end - self.start)])
        at_start, at_end = np.searchsorted(self.start, start), np.searchsorted(self.start, end)
        reach = np.append(0, self.end)
        tail = np.maximum(reach[at_end] - end, 0) * (at_end > 0)
        head = np.maximum(reach[at_start] - start, 0) * (at_start > 0)
        inside: I64 = before[at_end] - tail - before[at_start] + head
        return inside

    def longer(self, length_ps: int) -> Spans:
        """Only the intervals of at least this length."""
        kept = self.end - self.start >= length_ps
        return Spans(self.start[kept], self.end[kept])


def spans_of(trace: HostTrace, rows: I64) -> Spans:
    """When at least one of some events lasts."""
    start = trace.events.start_ps[rows]
    return Spans.of(start, start + trace.events.duration_ps[rows])


def outermost(start: I64, end: I64) -> NDArray[np.bool_]:
    """Which of the intervals lie in none before them: bool of shape (n,).  They come sorted by begin, at one begin the
    longer first, as the events of a line do."""
    outer = np.ones(len(start), np.bool_)
    if len(start):
        outer[1:] = end[1:] > np.maximum.accumulate(end)[:-1]
    return outer
