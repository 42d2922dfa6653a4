"""Reports for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from stepscope.report.sections import Cell, Field, Figures, Prose, Rows, Section, text_of

_RIGHT = frozenset({"float", "int"})
_LONGEST_NAME = 56  # longer texts in tables lose their beginning: the end of an op's path tells more
_HOVER_ONLY = frozenset({"meaning"})  # columns that explain others; a terminal has no room for them


def view(warnings: Sequence[str], sections: Sequence[Section], most_rows: int | None = None) -> Group:
    """A whole report; tables are cut after `most_rows` rows, and say so."""
    parts: list[RenderableType] = [Text(f"! {warning}", style="yellow") for warning in warnings]
    for section in sections:
        parts += [Text(""), Text(section.title, style="bold"), _section(section, most_rows)]
    return Group(*parts)


def _section(section: Section, most_rows: int | None) -> RenderableType:
    if isinstance(section, Prose):
        return Group(*(Text(f"  {line}") for line in section.lines))
    if isinstance(section, Figures):
        return _figures(section)
    if not section.rows:
        return Text(f"  {section.empty}", style="dim")
    return _table(section, len(section.rows) if most_rows is None else most_rows)


def _figures(section: Figures) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(style="dim")
    for field in section.fields:
        unit = field.unit if field.unit != "text" else ""
        grid.add_row(f"  {escape(field.name)}", escape(text_of(section.values[field.name])), escape(unit))
    return grid


def _table(section: Rows, most_rows: int) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    fields = [field for field in section.fields if _is_shown(field, section)]
    for field in fields:
        right = field.kind in _RIGHT
        # Where a terminal is too narrow, columns that may wrap give way first; their cells cut themselves instead.
        table.add_column(
            field.name.replace("_", "\n"), justify="right" if right else "left", no_wrap=field.kind != "str"
        )
    for row in section.rows[:most_rows]:
        table.add_row(*(_cell(row[field.name], field) for field in fields))
    hidden = len(section.rows) - most_rows
    if hidden <= 0:
        return table
    return Group(table, Text(f"  ... {hidden:,} more rows; --top {len(section.rows)} shows all", style="dim"))


def _is_shown(field: Field, section: Rows) -> bool:
    """Leaves out explanations, and times that are 0 everywhere: a terminal is narrow."""
    if field.name in _HOVER_ONLY:
        return False
    return field.unit != "ms" or any(row[field.name] != 0 for row in section.rows)


def _cell(value: Cell, field: Field) -> Text:
    text = text_of(value)
    if field.kind == "str" and field.name in ("name", "kernel", "op") and len(text) > _LONGEST_NAME:
        text = "…" + text[1 - _LONGEST_NAME :]
    return Text(text, no_wrap=True, overflow="ellipsis")
