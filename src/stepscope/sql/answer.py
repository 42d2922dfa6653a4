"""The answer to a question in SQL, as a report: it shows itself everywhere a tool's report does."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from stepscope.errors import counted
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Report, Role, Rows, Section
from stepscope.report.base import make_arrow_table
from stepscope.sql.all_views import VIEWS
from stepscope.sql.source import Notes
from stepscope.sql.stats_view import DOC as STATS_DOC
from stepscope.sql.stats_view import NAME as STATS
from stepscope.sql.tool_tables import declared_tables

_UNIT = re.compile(r"(?:^|_)(ps|ns|us|ms|bytes|percent)$")
_KNOWN = {column.name: column for view in reversed(VIEWS) for column in view.columns}


@dataclass(frozen=True, kw_only=True)
class SqlReport(Report):
    """The rows of an answer.

    Attributes:
        query: what was asked.
        table: the answer.
        more: whether there are more rows than the limit allowed; the warnings name it.
    """

    TOOL: ClassVar[str] = "sql"

    query: str
    table: pa.Table
    more: bool = False

    def body(self) -> dict[str, Any]:
        """The columns with their units, and the rows."""
        columns = [{"name": field.name, "type": field.kind, "unit": field.unit} for field in self.fields()]
        return {"query": self.query, "columns": columns, "more": self.more, "rows": [*self._list_rows()]}

    def fields(self) -> tuple[Field, ...]:
        """The columns: their meanings are those of the views where the names are the same."""
        return tuple(_field(column) for column in self.table.schema)

    def sections(self) -> list[Section]:
        """One table."""
        return [Rows("rows", "", self.fields(), tuple(self._list_rows()), empty="the query has no rows", is_asked=True)]

    def main_table(self) -> Rows:
        """The same table."""
        table = self.sections()[0]
        assert isinstance(table, Rows)
        return table

    def head(self, rows: int) -> SqlReport:
        """The first rows."""
        from dataclasses import replace

        return replace(self, table=self.table.slice(0, max(rows, 0)))

    def to_arrow(self) -> pa.Table:
        """The table as the engine made it, with units and meanings in the fields' metadata."""
        described = make_arrow_table(Rows("rows", "", self.fields(), ())).schema
        fields = [
            field.with_metadata(shown.metadata) for field, shown in zip(self.table.schema, described, strict=True)
        ]
        metadata = {"tool": self.TOOL, "partial": str(self.partial).lower(), "warnings": "\n".join(self.warnings)}
        return self.table.cast(pa.schema(fields, metadata=metadata))

    def _list_rows(self) -> list[dict[str, Cell]]:
        columns = [[_cell(value) for value in column.to_pylist()] for column in self.table.columns]
        return [dict(zip(self.table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def make_report(
    query: str, table: pa.Table, cut_at: int | None, hosts: Iterable[str], notes: Sequence[Notes]
) -> SqlReport:
    """The report of an answer; `cut_at` is the number of its rows if there are more."""
    cut = () if cut_at is None else (f"only the first {counted(cut_at, 'row')} of the answer",)
    return SqlReport(
        hosts=tuple(dict.fromkeys(hosts)),
        warnings=(*cut, *dict.fromkeys(warning for each in notes for warning in each.warnings)),
        partial=any(each.partial for each in notes),
        query=query,
        table=table,
        more=cut_at is not None,
    )


def plain_table(table: pa.Table) -> pa.Table:
    """The table with texts as texts, with whole numbers in 64 bits where they fit, and columns of unique names."""
    columns = [_plain_column(column) for column in table.columns]
    return pa.table(columns, names=_unique_names(table.column_names))


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_decimal(kind):
        return _plain_decimals(column)
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    if pa.types.is_integer(kind) and kind != pa.int64():
        return column.cast(pa.float64() if kind == pa.uint64() else pa.int64(), safe=False)
    if pa.types.is_float32(kind) or pa.types.is_null(kind):
        return column.cast(pa.float64() if pa.types.is_float32(kind) else pa.string())
    return column


def _plain_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Sums of whole numbers come as decimals of 38 digits."""
    if column.type.scale == 0:
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            pass
    return column.cast(pa.float64())


def _unique_names(names: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        unique, number = name, 1
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found


def _field(column: pa.Field) -> Field:
    kind, known = _field_kind(column.type), _KNOWN.get(column.name)
    unit = _UNIT.search(column.name)
    if known is not None and _field_kind(known.dtype) == kind:
        return Field(column.name, known.unit, known.doc, kind, known.role, _label(column.name, known.unit))
    role = Role.TEXT if kind == "str" else Role.FLAG if kind == "bool" else Role.MEASURE
    if kind in ("int", "float") and unit:
        role = Role.BY_UNIT
    named = unit[1] if unit else ""
    return Field(column.name, named, "computed by the query", kind, role, _label(column.name, named))


def _label(name: str, unit: str) -> str:
    """The column as the query calls it, without the unit that is shown beside it."""
    return name.removesuffix(f"_{unit}") if unit else name


def _field_kind(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind):
        return "int"
    return "float" if pa.types.is_floating(kind) else "str"


def _cell(value: Any) -> Cell:
    """A value that JSON and a table can show."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


# -- what can be asked, as the answer to no question ------------------------------------------------------------------

_HEAD = ("table", "column", "type", "unit", "meaning")
_TYPES = {"float": "DOUBLE", "int": "BIGINT", "str": "VARCHAR", "bool": "BOOLEAN", "ints": "BIGINT[]"}

_Line = tuple[str, str | None, str | None, str | None, str]


def schema_report(hosts: tuple[str, ...]) -> SqlReport:
    """The tables and columns of a session, as the answer to no question."""
    lines = [*_view_lines(), *_tool_lines()]
    columns = {name: pa.array([line[at] for line in lines], pa.string()) for at, name in enumerate(_HEAD)}
    return SqlReport(hosts=hosts, warnings=(), partial=False, query="", table=pa.table(columns))


def _view_lines() -> Iterator[_Line]:
    for view in VIEWS:
        for column in view.columns:
            yield view.name, column.name, column.type_name, column.unit or None, column.doc
    yield STATS, None, None, None, STATS_DOC


def _tool_lines() -> Iterator[_Line]:
    for table in declared_tables():
        for field in table.fields:
            yield table.names[-1], field.name, _TYPES[field.kind], field.unit or None, field.doc
