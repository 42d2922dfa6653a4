"""What can be asked, as a table: every view and every tool's table with its columns, units and meanings."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from stepscope.sql.all_views import VIEWS
from stepscope.sql.answer import SqlReport
from stepscope.sql.stats_view import DOC as STATS_DOC
from stepscope.sql.stats_view import NAME as STATS
from stepscope.sql.tool_tables import declared_tables

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
