"""Sets of instants as sorted, disjoint intervals, and how much of them lies where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Spans:
    """Disjoint intervals in ascending order: int64 of shape (n,), ps."""

    start: I64
    end: I64

    @property
    def total_ps(self) -> int:
        """Length of all intervals together."""
        return int((self.end - self.start).sum())

    def before(self, moments: I64) -> I64:
        """How much of the intervals lies before each moment, ps: int64 of the shape of `moments`."""
        if not len(self.start):
            return np.zeros(len(moments), np.int64)
        lengths = np.concatenate([[0], np.cumsum(self.end - self.start)])
        at = np.searchsorted(self.start, moments, side="right")
        inside = np.minimum(moments, self.end[np.maximum(at - 1, 0)]) - self.start[np.maximum(at - 1, 0)]
        return np.where(at > 0, lengths[np.maximum(at - 1, 0)] + inside, 0)

    def within(self, start: I64, end: I64) -> I64:
        """How much of the intervals lies in each window, ps."""
        return self.before(end) - self.before(start)


def union(start: I64, end: I64) -> Spans:
    """The instants of any of some intervals, which may overlap and come in any order."""
    kept = end > start
    start, end = start[kept], end[kept]
    if not len(start):
        return Spans(start, end)
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    opens = np.append(True, start[1:] > reach[:-1])
    first = np.flatnonzero(opens)
    return Spans(start[first], reach[np.append(first[1:], len(start)) - 1])


def joined(*parts: Spans) -> Spans:
    """The instants of any of the parts."""
    return union(np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts]))
