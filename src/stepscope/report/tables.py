"""Tables as data: what a report shows is listed once, and its JSON and its sections follow from the list.

    @dataclass(frozen=True, kw_only=True)
    class SyncsReport(Report):
        findings: Lines = as_prose("Waiting for devices")
        rows: Table = as_table("Calls that wait for a device", FIELDS, empty=_EMPTY)

The order of the attributes is that of the sections; each attribute is a key of the JSON, and the id of its section.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from stepscope.report.fields import Cell, Field
from stepscope.report.sections import Figures, Part, Prose, Row, Rows, Section, round_ms, round_us

if TYPE_CHECKING:
    from stepscope.report.base import Report

Table = tuple[Row, ...]
Lines = tuple[str, ...]

_MAKE, _IS_DATA = "make section", "is in JSON"
_ROUNDED = {"_us": round_us, "_ms": round_ms}


def as_table(
    title: str,
    fields: Sequence[Field],
    empty: str | Callable[[Any], str] = "nothing to show",
    parts: tuple[Part, ...] = (),
    brief: Callable[[Row], Row] | None = None,
    id: str = "",  # noqa: A002 - as the sections call it
) -> Any:
    """Declares rows that are shown as a table; the arguments are those of `Rows`.

    Args:
        empty: may be a function of the report.
        id: of the section, if it is not the attribute's name.
    """

    def make(name: str, rows: Table, report: Report) -> Rows:
        why = empty if isinstance(empty, str) else empty(report)
        return Rows(id or name, title, tuple(fields), rows, why, parts, brief)

    return dataclasses.field(metadata={_MAKE: make})


def as_figures(title: str, fields: Sequence[Field], on_screen: tuple[str, ...] = (), id: str = "") -> Any:  # noqa: A002
    """Declares named figures; the arguments are those of `Figures`."""

    def make(name: str, values: Row, _: Report) -> Figures:
        return Figures(id or name, title, tuple(fields), values, on_screen)

    return dataclasses.field(metadata={_MAKE: make})


def as_prose(title: str) -> Any:
    """Declares sentences."""
    return dataclasses.field(metadata={_MAKE: lambda name, lines, _: Prose(name, title, lines)})


def not_in_json(default: Any = dataclasses.MISSING) -> Any:
    """Declares what the report needs and its JSON does not have."""
    return dataclasses.field(default=default, metadata={_IS_DATA: False})


def list_sections(report: Report) -> list[Section]:
    """The sections that a report declares, in order."""
    declared = ((field.name, field.metadata.get(_MAKE)) for field in dataclasses.fields(report))
    return [make(name, getattr(report, name), report) for name, make in declared if make]


def list_values(report: Report, shared: Iterable[str]) -> dict[str, Any]:
    """What a report declares, for JSON, without the attributes that all reports share."""
    names = [field.name for field in dataclasses.fields(report) if field.metadata.get(_IS_DATA, True)]
    values = {name: getattr(report, name) for name in names if name not in shared}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def make_rows(fields: Iterable[Field], records: Sequence[Any], **given: Any) -> Table:
    """A row for each record, with a cell for each field.

    A cell is the record's attribute of the field's name; for a field in `_us` or `_ms` else that in `_ps`, rounded.

    Args:
        given: the other cells: the same for all rows, or a function of the record.
    """
    if not records:
        return ()
    names = [field.name for field in fields]
    columns = [_make_column(name, records, given) for name in names]
    return tuple(dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True))


def make_row(fields: Iterable[Field], record: Any, **given: Any) -> Row:
    """The row of one record; as `make_rows`."""
    return make_rows(fields, (record,), **given)[0]


def _make_column(name: str, records: Sequence[Any], given: dict[str, Any]) -> Iterable[Cell]:
    if name in given:
        made = given[name]
        return map(made, records) if callable(made) else [made] * len(records)
    stem, unit = name[:-3], name[-3:]
    if unit in _ROUNDED and not hasattr(records[0], name):
        rounded = _ROUNDED[unit]
        return [None if ps is None else rounded(ps) for ps in map(attrgetter(f"{stem}_ps"), records)]
    return map(attrgetter(name), records)
