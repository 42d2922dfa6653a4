"""The tables of all tools: `TOOL_SECTION`, by the ids of tool and section; the main table also as `TOOL`.

A tool's report is made when a query first names one of its tables.
"""

from __future__ import annotations

import functools

import pyarrow as pa

from stepscope.analysis.registry import Tool, all_tools
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder
from stepscope.records import dataclass
from stepscope.report import Field, Figures, Prose, Report, Rows
from stepscope.report.base import make_arrow_table
from stepscope.sql.all_views import VIEWS
from stepscope.sql.stats_view import NAME as STATS

_VIEW_NAMES = frozenset({STATS, *(view.name for view in VIEWS)})


@dataclass(frozen=True)
class ToolTable:
    """A table of a tool: its names in a query, the longest first, its heading and its columns."""

    names: tuple[str, ...]
    tool: str
    title: str
    fields: tuple[Field, ...]


def tool_of_table(name: str) -> Tool | None:
    """The tool that a table's name starts with; None if it is none's."""
    found = [tool for tool in all_tools() if name == tool.method or name.startswith(f"{tool.method}_")]
    return max(found, key=lambda tool: len(tool.method), default=None)


def tables_of_report(tool: Tool, report: Report) -> dict[str, pa.Table]:
    """The tables of a report by their names in a query.  Figures are a table with one row."""
    made: dict[str, pa.Table] = {}
    for section in _tables(report):
        table = section if isinstance(section, Rows) else Rows(section.id, "", section.fields, (section.values,))
        arrow = make_arrow_table(table)
        made |= dict.fromkeys(_table_names(tool, section.id, report), arrow)
    return made


def _table_names(tool: Tool, section: str, report: Report) -> list[str]:
    names = [f"{tool.method}_{section.replace('-', '_')}"]
    if section == report.main_table().id and tool.method not in _VIEW_NAMES:
        names.append(tool.method)
    return names


@functools.cache
def declared_report(tool: Tool) -> Report:
    """A report for its sections and fields; it describes them by itself, so a tiny trace is enough."""
    found: Report = tool.merge([tool.partial(_tiny_trace())])
    return found


@functools.cache
def declared_tables() -> tuple[ToolTable, ...]:
    """The tables of all tools, in their order."""
    return tuple(
        ToolTable(tuple(_table_names(tool, section.id, report)), tool.name, section.title, tuple(section.fields))
        for tool in all_tools()
        for report in [declared_report(tool)]
        for section in _tables(report)
    )


def _tables(report: Report) -> list[Figures | Rows]:
    """What of a report is a table; that of the main list if its sections are all prose."""
    return [section for section in report.sections() if not isinstance(section, Prose)] or [report.main_table()]


def _tiny_trace() -> HostTrace:
    builder = TraceBuilder("host")
    python = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "stream", kind=LineKind.STREAM)
    python.event("train", 0, 1_000_000, EventKind.STEP_MARK, {"step_num": 0})
    stream.event("kernel", 1_000, 500_000, EventKind.KERNEL)
    return builder.build()
