"""How long nodes of a graph take by themselves, by cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.model.arrays import F64, I64, U8, Mask


class OwnTimes:
    """A table of times by node and cause, in ps, as one column for each cause that any node has.

    A node has one cause or two of a dozen, so that a table of all would be zeros for the most part: 200 MB for a
    session of ten million events.

    Args:
        nodes: how many there are.
        columns: float64 of shape (nodes,) by cause.  They are shared with other tables and never changed in place.
    """

    def __init__(self, nodes: int, columns: Mapping[int, F64] | None = None) -> None:
        self._nodes = nodes
        self._columns = dict(columns or {})

    @classmethod
    def gather(cls, nodes: int, parts: Iterable[tuple[I64, int, I64 | F64]]) -> OwnTimes:
        """A table from parts: some nodes, a cause, and their times.  No node is in two parts of one cause."""
        columns: dict[int, F64] = {}
        for some, cause, ps in parts:
            if not np.any(ps):
                continue
            if cause not in columns:
                columns[cause] = np.zeros(nodes)
            columns[cause][some] = ps
        return cls(nodes, columns)

    @staticmethod
    def split(nodes: I64, cause: U8 | I64, ps: I64) -> Iterator[tuple[I64, int, I64]]:
        """The parts of a table from nodes of which each has one cause: three of shape (n,)."""
        for each in np.unique(cause).tolist():
            here = cause == each
            yield nodes[here], each, ps[here]

    def only(self, cause: int) -> OwnTimes:
        """The times with one cause."""
        return OwnTimes(self._nodes, {cause: self._columns[cause]} if cause in self._columns else {})

    def column(self, cause: int) -> F64:
        """The times with one cause: float64 of shape (nodes,)."""
        return self._columns[cause] if cause in self._columns else np.zeros(self._nodes)

    def take(self, nodes: I64) -> F64:
        """The times of some nodes: float64 of shape (n, causes)."""
        found = np.zeros((len(nodes), len(Cause)))
        for cause, column in self._columns.items():
            found[:, cause] = column[nodes]
        return found

    def sum_by_node(self) -> F64:
        """The times of all causes together: float64 of shape (nodes,)."""
        total = np.zeros(self._nodes)
        for cause in sorted(self._columns):
            total += self._columns[cause]
        return total

    def sum_by_cause(self, chosen: Mask) -> F64:
        """The times of the chosen nodes together: float64 of shape (causes,)."""
        total = np.zeros(len(Cause))
        for cause, column in self._columns.items():
            total[cause] = column[chosen].sum()
        return total

    def sum(self) -> float:
        """All times together."""
        return float(sum(column.sum() for column in self._columns.values()))

    def select_nodes(self, chosen: Mask) -> OwnTimes:
        """The times of the chosen nodes, 0 for the others."""
        return OwnTimes(self._nodes, {cause: np.where(chosen, column, 0.0) for cause, column in self._columns.items()})

    def scale(self, factor: F64) -> OwnTimes:
        """The times of each node multiplied by its factor."""
        return OwnTimes(self._nodes, {cause: column * factor for cause, column in self._columns.items()})

    def subtract(self, other: OwnTimes, factor: F64) -> OwnTimes:
        """These times less those of another table, which are multiplied by a factor for each node."""
        columns = dict(self._columns)
        for cause, column in other._columns.items():
            columns[cause] = self.column(cause) - column * factor
        return OwnTimes(self._nodes, columns)

    def add(self, nodes: I64, cause: int, ps: float | F64 | I64) -> OwnTimes:
        """These times and so much more with a cause for some nodes, each of which is named once."""
        column = self.column(cause).copy()
        column[nodes] += ps
        return OwnTimes(self._nodes, {**self._columns, cause: column})

    def drop_negative(self) -> OwnTimes:
        """The times without those below 0."""
        return OwnTimes(self._nodes, {cause: np.maximum(column, 0.0) for cause, column in self._columns.items()})
