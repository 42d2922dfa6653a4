"""Tables as data: what a report shows is listed once, and its JSON and its sections follow from the list.

    @dataclass(frozen=True, kw_only=True)
    class SyncsReport(Report):
        findings: Lines = as_prose("Waiting for devices")
        rows: Table = as_table("Calls that wait for a device", FIELDS, empty=_EMPTY)

The order of the attributes is that of the sections; each attribute is a key of the JSON, and the id of its section.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from stepscope.report.fields import Cell, Field
from stepscope.report.sections import Figures, Part, Prose, Row, Rows, Section, round_ms, round_us

R = TypeVar("R")

Table = tuple[Row, ...]
Lines = tuple[str, ...]

_MAKE, _IS_DATA = "make section", "is in JSON"
ROUNDED: dict[str, Callable[[float], float]] = {"_us": round_us, "_ms": round_ms}
"""How picoseconds become a field of a unit, by the end of its name."""
_JOINED: dict[str, Callable[..., Any]] = {"min_": min, "max_": max}


def as_table(
    title: str,
    fields: Sequence[Field],
    empty: str | Callable[[Any], str] = "nothing to show",
    parts: tuple[Part, ...] = (),
    brief: Callable[[Row], Row] | None = None,
    id: str = "",  # noqa: A002 - as the sections call it
    rows: Callable[[Any], Table] | None = None,
) -> Any:
    """Declares rows that are shown as a table; the arguments are those of `Rows`.

    Args:
        empty: may be a function of the report.
        id: of the section, if it is not the attribute's name.
        rows: makes the rows from the report, if they are not what the attribute holds.
    """

    def make(name: str, value: Table, report: Any) -> Rows:
        why = empty if isinstance(empty, str) else empty(report)
        return Rows(id or name, title, tuple(fields), value if rows is None else rows(report), why, parts, brief)

    return dataclasses.field(metadata={_MAKE: make})


def as_figures(title: str, fields: Sequence[Field], id: str = "") -> Any:  # noqa: A002 - as the sections call it
    """Declares named figures; the arguments are those of `Figures`."""

    def make(name: str, values: Row, _: Any) -> Figures:
        return Figures(id or name, title, tuple(fields), values)

    return dataclasses.field(metadata={_MAKE: make})


def as_prose(title: str, id: str = "", lines: Callable[[Any], Iterable[str]] | None = None) -> Any:  # noqa: A002
    """Declares sentences.

    Args:
        title: the heading above them.
        id: of the section, if it is not the attribute's name.
        lines: makes the sentences from the report, if they are not what the attribute holds.
    """

    def make(name: str, value: Any, report: Any) -> Prose:
        return Prose(id or name, title, tuple(value if lines is None else lines(report)))

    return dataclasses.field(metadata={_MAKE: make})


def not_in_json(default: Any = dataclasses.MISSING) -> Any:
    """Declares what the report needs and its JSON does not have."""
    return dataclasses.field(default=default, metadata={_IS_DATA: False})


def list_sections(report: Any) -> list[Section]:
    """The sections that a report declares, in order."""
    declared = ((field.name, field.metadata.get(_MAKE)) for field in dataclasses.fields(report))
    return [make(name, getattr(report, name), report) for name, make in declared if make]


def list_values(report: Any, shared: Iterable[str]) -> dict[str, Any]:
    """What a report declares, for JSON, without the attributes that all reports share."""
    names = [field.name for field in dataclasses.fields(report) if field.metadata.get(_IS_DATA, True)]
    values = {name: getattr(report, name) for name in names if name not in shared}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def make_rows(fields: Iterable[Field], records: Sequence[Any], **given: Any) -> Table:
    """A row for each record, with a cell for each field.

    A cell is the record's attribute of the field's name; for a field in `_us` or `_ms` else that in `_ps`, rounded;
    for one in `_bytes` else that without it.  An empty text is unknown.

    Args:
        given: the other cells: the same for all rows, a list with one for each, or a function of the record.
    """
    if not records:
        return ()
    listed = [*fields]
    names = [field.name for field in listed]
    columns = [_make_column(field, records, given) for field in listed]
    return tuple(dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True))


def make_row(fields: Iterable[Field], record: Any, **given: Any) -> Row:
    """The row of one record; as `make_rows`."""
    return make_rows(fields, (record,), **given)[0]


def _make_column(field: Field, records: Sequence[Any], given: dict[str, Any]) -> Iterable[Cell]:
    name = field.name
    if name in given:
        made = given[name]
        return map(made, records) if callable(made) else made if isinstance(made, list) else [made] * len(records)
    if not hasattr(records[0], name):
        name = name.removesuffix("_bytes")
    stem, unit = name[:-3], name[-3:]
    if unit in ROUNDED and not hasattr(records[0], name):
        rounded = ROUNDED[unit]
        return [None if ps is None else rounded(ps) for ps in map(attrgetter(f"{stem}_ps"), records)]
    cells: Iterable[Any] = map(attrgetter(name), records)
    return [cell or None for cell in cells] if field.kind == "str" else cells


def add_up(records: Sequence[R], added: Sequence[str]) -> R:
    """The first of some records with the others added.

    Args:
        records: dataclasses or named tuples.
        added: the attributes that are added up; of those in `min_` and `max_` the smallest and largest count.  One that
            is missing in a record is unknown: the sum would be too small.
    """
    columns = ((name, [getattr(record, name) for record in records]) for name in added)
    sums = {
        name: None if None in column else functools.reduce(_JOINED.get(name[:4], operator.add), column)
        for name, column in columns
    }
    first: Any = records[0]
    summed: R = first._replace(**sums) if hasattr(first, "_replace") else dataclasses.replace(first, **sums)
    return summed
