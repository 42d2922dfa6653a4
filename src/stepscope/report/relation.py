"""A table of a report as a relation: what tells its rows apart, what is counted of each, how many rows are kept, and in
which order.

    CALLS = Relation(("call", "line"), ("calls", "total_ps", "max_ps"), order=("-total_ps", "call"), most=500)

    part = CALLS.count({"call": (names, text), "line": (lines, text)}, {"total_ps": durations, "max_ps": durations})
    rows = CALLS.merge(parts)
    rows.table(FIELDS, avg_us=rows.mean("total_ps", "calls"), percent=rows.share("total_ps"))

What one host contributes, how hosts are put together and the cells of the report follow from the declaration.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stepscope.model.arrays import I32, I64, Groups, measure_groups
from stepscope.records import dataclass
from stepscope.report.columns import percents
from stepscope.report.fields import Cell, Field
from stepscope.report.sections import percent, round_us
from stepscope.report.tables import ROUNDED, Table

Columns = dict[str, list[Any]]
Key = tuple[I32 | I64, Callable[[int], Any]]
"""A number for each event, of shape (n,), and the value that a number stands for."""


@dataclass(frozen=True)
class Counted:
    """Rows of a relation as they are kept and sent: a text that many rows share is there once.

    Attributes:
        values: of each key its different values.
        places: of each key and row the place of its value among them.
        measures: of each measure and row its amount, None if unknown.
        left_out: how many rows more there were, and of each measure their amount in `rest`.
    """

    values: list[list[Any]]
    places: list[list[int]]
    measures: list[list[Any]]
    left_out: int
    rest: dict[str, Any]


@dataclass(frozen=True)
class Merged:
    """The rows of all hosts, in order; the columns are the keys and measures of the relation.

    Attributes:
        columns: a value for each row.
        left_out: how many rows more hosts had, added up, and by measure their amount in `rest`.
    """

    columns: Columns
    left_out: int
    rest: dict[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]

    def take(self, places: Sequence[int]) -> Merged:
        """Some of the rows, in another order."""
        return Merged({name: [values[at] for at in places] for name, values in self.columns.items()}, 0, {})

    def total(self, measure: str) -> Any:
        """The amount of all rows, also of those left out; None if one is unknown."""
        return _add_up(measure, [*self[measure], self.rest[measure]])

    def mean(self, measure: str, per: str) -> list[float]:
        """Picoseconds per event as microseconds, for each row."""
        return [round_us(ps / count) for ps, count in zip(self[measure], self[per], strict=True)]

    def share(self, measure: str, whole: float | None = None) -> list[float | None]:
        """Each row's share in percent, by default of the total."""
        total = self.total(measure) if whole is None else whole
        return percents(self[measure], total)

    def ratio(self, part: str, whole: str) -> list[float | None]:
        """What one column is of another in percent, for each row."""
        return [percent(one, other) for one, other in zip(self[part], self[whole], strict=True)]

    def regroup(self, relation: Relation, *carried: str) -> Merged:
        """The rows by fewer keys; `carried` are columns that each new row takes from the first of its rows."""
        first: dict[Any, int] = {}
        for at, key in enumerate(zip(*(self[name] for name in relation.keys), strict=True)):
            first.setdefault(key, at)
        columns = relation.add_up([self.columns])
        columns |= {name: [self[name][at] for at in first.values()] for name in carried}
        return Merged(relation.sort(columns), self.left_out, self.rest)

    def table(self, fields: Iterable[Field], **given: Any) -> Table:
        """The rows with a cell for each field.

        A cell is the column of the field's name; for a field in `_us` or `_ms` else that in `_ps`, rounded.  An empty
        text is unknown.

        Args:
            given: the other cells: a list with one for each row, or the same for all.
        """
        listed = [*fields]
        names = [field.name for field in listed]
        cells = [self._cells(field, given) for field in listed]
        return tuple(dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True))

    def _cells(self, field: Field, given: Mapping[str, Any]) -> Sequence[Cell]:
        name, unit = field.name, field.name[-3:]
        if name in given:
            return given[name] if isinstance(given[name], list) else [given[name]] * len(self)
        if name not in self.columns and unit in ROUNDED:
            return [None if ps is None else ROUNDED[unit](ps) for ps in self[f"{name[:-3]}_ps"]]
        return [cell or None for cell in self[name]] if field.kind == "str" else self[name]


@dataclass(frozen=True)
class Relation:
    """What a table counts.

    Attributes:
        keys: what tells rows apart, and what else is known of each.
        measures: what is counted, and adds up over hosts; of those in `min_` and `max_` the least and the most.
        order: columns to sort by, with `-` in front where the most comes first.
        most: how many rows of a host are kept.
    """

    keys: tuple[str, ...]
    measures: tuple[str, ...]
    order: tuple[str, ...]
    most: int = 1 << 30

    def count(self, keys: Mapping[str, Key], measures: Mapping[str, I64]) -> Counted:
        """The rows of one host from its events.

        Args:
            measures: of shape (n,), not negative; a measure that is not given is the number of events.
        """
        numbered = [_number_values(*keys[name]) for name in self.keys]
        groups = Groups.of(*(number for _, number in numbered))
        columns: Columns = {
            name: [values[place] for place in number[groups.first].tolist()]
            for name, (values, number) in zip(self.keys, numbered, strict=True)
        }
        measured = {
            id(each): measure_groups(groups.number, np.ascontiguousarray(each), len(groups))
            for each in measures.values()
        }
        for name in self.measures:
            if name not in measures:
                columns[name] = groups.count().tolist()
            else:
                _, total, least, most = measured[id(measures[name])]
                columns[name] = {"min_": least, "max_": most}.get(name[:4], total).tolist()
        return self._keep(columns)

    def keep(self, rows: Sequence[Sequence[Any]], left_out: int = 0, rest: Mapping[str, Any] | None = None) -> Counted:
        """The rows of one host, each with its keys and its measures in the order of the relation.

        Args:
            left_out, rest: the rows that were left out already, as in Counted.
        """
        names = (*self.keys, *self.measures)
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        kept = self._keep({name: [*column] for name, column in zip(names, columns, strict=True)})
        return kept if rest is None else replace(kept, left_out=left_out, rest=dict(rest))

    def keep_named(self, rows: Sequence[Mapping[str, Any]]) -> Counted:
        """The same of rows that name their keys and measures."""
        return self._keep({name: [row[name] for row in rows] for name in (*self.keys, *self.measures)})

    def _keep(self, columns: Columns) -> Counted:
        rows = self.sort(self.add_up([columns]))
        left_out = {name: values[self.most :] for name, values in rows.items()}
        rest = {name: _add_up(name, left_out[name]) for name in self.measures}
        kept = {name: values[: self.most] for name, values in rows.items()}
        return self._pack(kept, len(left_out[self.keys[0]]), rest)

    def fold(self, parts: Sequence[Counted]) -> Counted:
        """The rows of several hosts as those of one; unsorted, so that sums may be summed again."""
        return self._pack(self.add_up([self._unpack(part) for part in parts]), *self._rest(parts))

    def merge(self, parts: Sequence[Counted]) -> Merged:
        """The rows of all hosts, in order."""
        tables = [self._unpack(part) for part in parts]
        columns = tables[0] if len(tables) == 1 else self.add_up(tables)  # one host's rows differ already
        return Merged(self.sort(columns), *self._rest(parts))

    def add_up(self, tables: Sequence[Columns]) -> Columns:
        """Rows of equal keys as one, in the order in which they first appear."""
        number: dict[tuple[Any, ...], int] = {}
        rows = [row for table in tables for row in zip(*(table[name] for name in self.keys), strict=True)]
        places = [number.setdefault(row, len(number)) for row in rows]
        columns: Columns = {name: [row[at] for row in number] for at, name in enumerate(self.keys)}
        for name in self.measures:
            amounts = [amount for table in tables for amount in table[name]]
            columns[name] = amounts if len(number) == len(rows) else _add_alike(name, places, amounts, len(number))
        return columns

    def sort(self, columns: Columns) -> Columns:
        """The rows in the order of the relation; those that are equal in it stay as they are."""
        sorted_by = [
            [-(amount or 0) for amount in columns[name[1:]]]
            if name[0] == "-"
            else [value or "" for value in columns[name]]
            for name in self.order
        ]
        rows = len(columns[self.keys[0]])
        places = [row[-1] for row in sorted(zip(*sorted_by, range(rows), strict=True))]
        return {name: [values[at] for at in places] for name, values in columns.items()}

    def _rest(self, parts: Sequence[Counted]) -> tuple[int, dict[str, Any]]:
        rest = {name: _add_up(name, [part.rest[name] for part in parts]) for name in self.measures}
        return sum(part.left_out for part in parts), rest

    def _pack(self, columns: Columns, left_out: int, rest: dict[str, Any]) -> Counted:
        values, places = [], []
        for name in self.keys:
            number: dict[Any, int] = {}
            places.append([number.setdefault(value, len(number)) for value in columns[name]])
            values.append([_as_list(value) for value in number])
        return Counted(values, places, [columns[name] for name in self.measures], left_out, rest)

    def _unpack(self, part: Counted) -> Columns:
        columns: Columns = dict(zip(self.measures, part.measures, strict=True))
        for name, values, places in zip(self.keys, part.values, part.places, strict=True):
            known = [*map(_as_key, values)]
            columns[name] = [known[place] for place in places]
        return columns


def merge_hosts(partials: Sequence[Any], relations: Mapping[str, Relation]) -> dict[str, Merged]:
    """The rows of all hosts, by attribute; the arguments are those of `fold_hosts`."""
    return {name: relation.merge([getattr(part, name) for part in partials]) for name, relation in relations.items()}


def fold_hosts(partials: Sequence[Any], relations: Mapping[str, Relation]) -> list[Any]:
    """The partials of some hosts with the rows of all in the first.

    Args:
        partials: records.
        relations: by attribute of the records that holds `Counted`.
    """
    first, *others = partials
    folded = {name: relation.fold([getattr(part, name) for part in partials]) for name, relation in relations.items()}
    nothing = {name: relation.fold([]) for name, relation in relations.items()}
    return [replace(first, **folded), *(replace(part, **nothing) for part in others)]


def _number_values(numbers: I32 | I64, value_of: Callable[[int], Any]) -> tuple[list[Any], I64]:
    """The different values that numbers stand for, and for each number the place of its value."""
    groups = Groups.of(numbers)
    place: dict[Any, int] = {}
    places = [place.setdefault(value_of(number), len(place)) for number in numbers[groups.first].tolist()]
    return [*place], np.array(places, np.int64)[groups.number]


def _add_alike(name: str, places: Sequence[int], amounts: Sequence[Any], count: int) -> list[Any]:
    alike: list[list[Any]] = [[] for _ in range(count)]
    for place, amount in zip(places, amounts, strict=True):
        alike[place].append(amount)
    return [_add_up(name, each) for each in alike]


def _add_up(measure: str, amounts: Sequence[Any]) -> Any:
    """The amounts as one, None if one is unknown: the sum would be too small; 0 if there are none."""
    if not amounts or None in amounts:
        return None if amounts else 0
    join = {"min_": min, "max_": max}.get(measure[:4], operator.add)
    return functools.reduce(join, amounts)


def _as_list(value: Any) -> Any:
    """A value with lists for tuples, as a file gives it back."""
    return [*map(_as_list, value)] if isinstance(value, tuple) else value


def _as_key(value: Any) -> Any:
    """The inverse of `_as_list`."""
    return tuple(map(_as_key, value)) if isinstance(value, list) else value
