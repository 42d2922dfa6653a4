"""How long nodes of a graph take by themselves, by cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.analysis.account.causes import Cause
from stepscope.model.arrays import F64, I32, I64, U8, Mask, distinct
from stepscope.records import dataclass


@dataclass(frozen=True)
class _Column:
    """Times with one cause: int32 of shape (n,), the nodes that have it, ascending, and float64 of shape (n,), ps."""

    nodes: I32
    ps: F64

    @classmethod
    def join(cls, parts: Sequence[_Column]) -> _Column:
        """One column of several; no node is in two of them."""
        nodes = np.concatenate([part.nodes for part in parts])
        ps = np.concatenate([part.ps for part in parts])
        if (nodes[1:] > nodes[:-1]).all():
            return cls(nodes, ps)
        order = np.argsort(nodes, kind="stable")
        return cls(nodes[order], ps[order])

    def widen(self, nodes: NDArray[np.integer]) -> _Column:
        """The same with room for more nodes, whose times are 0."""
        wider = distinct(np.concatenate([self.nodes, nodes.astype(np.int32)]))
        if len(wider) == len(self.nodes):
            return _Column(self.nodes, self.ps.copy())
        ps = np.zeros(len(wider))
        ps[np.searchsorted(wider, self.nodes)] = self.ps
        return _Column(wider, ps)


_NOTHING = _Column(np.empty(0, np.int32), np.empty(0))


class OwnTimes:
    """A table of times by node and cause, in ps: for each cause the nodes that have it.

    A node has one cause or two of a dozen, so that a table of all would be zeros for the most part: 200 MB for a
    session of ten million events.

    Args:
        nodes: how many there are.
        columns: by cause.  They are shared with other tables and never changed in place.
    """

    def __init__(self, nodes: int, columns: Mapping[int, _Column] | None = None) -> None:
        self._nodes = nodes
        self._columns = dict(columns or {})

    @classmethod
    def gather(cls, nodes: int, parts: Iterable[tuple[NDArray[np.integer], int, I64 | F64]]) -> OwnTimes:
        """A table from parts: some nodes, a cause, and their times.  No node is in two parts of one cause."""
        found: dict[int, list[_Column]] = {}
        for some, cause, ps in parts:
            kept = np.flatnonzero(ps)
            if len(kept):
                found.setdefault(cause, []).append(_Column(some[kept].astype(np.int32), ps[kept].astype(np.float64)))
        return cls(nodes, {cause: _Column.join(columns) for cause, columns in found.items()})

    @classmethod
    def of_causes(cls, nodes: int, some: I64, cause: U8, ps: I64) -> OwnTimes:
        """A table of some nodes, of which each has a time with a cause; of equal causes the nodes ascend."""
        offsets, of, times = np.zeros(257, np.int64), np.empty(len(some), np.int32), np.empty(len(some))
        kernels.replay.sort_times(some, cause, ps, offsets, of, times)
        here = {each: slice(offsets[each], offsets[each + 1]) for each in np.flatnonzero(np.diff(offsets)).tolist()}
        return cls(nodes, {each: _Column(of[rows], times[rows]) for each, rows in here.items()})

    @staticmethod
    def split(nodes: I64, cause: U8 | I64, ps: I64) -> Iterator[tuple[I64, int, I64]]:
        """The parts of a table from nodes of which each has one cause: three of shape (n,)."""
        for each in distinct(cause).tolist():
            here = cause == each
            yield nodes[here], each, ps[here]

    def __len__(self) -> int:
        return self._nodes

    def only(self, cause: int) -> OwnTimes:
        """The times with one cause."""
        return OwnTimes(self._nodes, {cause: self._columns[cause]} if cause in self._columns else {})

    def column(self, cause: int) -> F64:
        """The times with one cause: float64 of shape (nodes,)."""
        column = np.zeros(self._nodes)
        known = self._columns.get(cause, _NOTHING)
        column[known.nodes] = known.ps
        return column

    def take(self, nodes: NDArray[np.integer]) -> F64:
        """The times of some nodes: float64 of shape (n, causes)."""
        found = np.zeros((len(nodes), len(Cause)))
        room = np.zeros(self._nodes)  # of one cause at a time: looking nodes up in it is faster than searching for them
        for cause, column in self._columns.items():
            room[column.nodes] = column.ps
            found[:, cause] = room[nodes]
            room[column.nodes] = 0.0
        return found

    def sum_by_node(self) -> F64:
        """The times of all causes together: float64 of shape (nodes,)."""
        total = np.zeros(self._nodes)
        for cause in sorted(self._columns):
            kernels.replay.add_times(self._columns[cause].nodes, self._columns[cause].ps, total)
        return total

    def sum_weighted(self, weight: F64) -> F64:
        """The times of all nodes together, each multiplied by its node's weight: float64 of shape (causes,)."""
        total = np.zeros(len(Cause))
        for cause, column in self._columns.items():
            total[cause] = kernels.replay.sum_weighted(column.nodes, column.ps, weight)
        return total

    def sum_by_cause(self, chosen: Mask) -> F64:
        """The times of the chosen nodes together: float64 of shape (causes,)."""
        total = np.zeros(len(Cause))
        for cause, column in self._columns.items():
            total[cause] = column.ps[chosen[column.nodes]].sum()
        return total

    def sum(self) -> float:
        """All times together."""
        return float(sum(column.ps.sum() for column in self._columns.values()))

    def select_nodes(self, chosen: Mask) -> OwnTimes:
        """The times of the chosen nodes, 0 for the others."""
        return OwnTimes.gather(self._nodes, self.parts_of_nodes(chosen))

    def parts_of_nodes(self, chosen: Mask) -> Iterator[tuple[I32, int, F64]]:
        """The parts of a table that the times of the chosen nodes are, as `gather` takes them."""
        for cause, column in self._columns.items():
            kept = chosen[column.nodes]
            yield column.nodes[kept], cause, column.ps[kept]

    def scale(self, factor: F64) -> OwnTimes:
        """The times of each node multiplied by its factor."""
        return OwnTimes(
            self._nodes,
            {cause: _Column(each.nodes, each.ps * factor[each.nodes]) for cause, each in self._columns.items()},
        )

    def subtract(self, other: OwnTimes, factor: F64) -> OwnTimes:
        """These times less those of another table, which are multiplied by a factor for each node."""
        columns = dict(self._columns)
        for cause, less in other._columns.items():
            column = self._columns.get(cause, _NOTHING)
            if column.nodes is less.nodes:  # all times with a cause, as of most changes
                columns[cause] = _Column(column.nodes, column.ps - less.ps * factor[less.nodes])
                continue
            column = column.widen(less.nodes)
            column.ps[np.searchsorted(column.nodes, less.nodes)] -= less.ps * factor[less.nodes]
            columns[cause] = column
        return OwnTimes(self._nodes, columns)

    def subtract_some(self, other: OwnTimes, most: float) -> OwnTimes:
        """These times less those of another table, but of no time more than a share of it."""
        columns = dict(self._columns)
        for cause, less in other._columns.items():
            column = self._columns.get(cause, _NOTHING)
            known = np.isin(less.nodes, column.nodes, assume_unique=True)
            place, ps = np.searchsorted(column.nodes, less.nodes[known]), column.ps.copy()
            ps[place] -= np.minimum(less.ps[known], most * ps[place])
            columns[cause] = _Column(column.nodes, ps)
        return OwnTimes(self._nodes, columns)

    def add(self, nodes: I64, cause: int, ps: float | F64 | I64) -> OwnTimes:
        """These times and so much more with a cause for some nodes, each of which is named once."""
        column = self._columns.get(cause, _NOTHING).widen(nodes)
        column.ps[np.searchsorted(column.nodes, nodes.astype(np.int32))] += ps
        return OwnTimes(self._nodes, {**self._columns, cause: column})

    def drop_negative(self) -> OwnTimes:
        """The times without those below 0."""
        return OwnTimes(
            self._nodes, {cause: _Column(each.nodes, np.maximum(each.ps, 0.0)) for cause, each in self._columns.items()}
        )
