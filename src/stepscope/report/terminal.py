"""Shows reports in terminals of any width.

A number is never cut.  If a table is wider than the screen, names are shortened first; columns that still do not fit go
below, next to a copy of the columns that identify the rows.
"""

from __future__ import annotations

import io
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stepscope.records import dataclass
from stepscope.report.fields import ROW_NUMBERS, Field, Role
from stepscope.report.looks import (
    clean,
    column_texts,
    name_words,
    shorten_name,
    unit_symbol,
    value_text,
    visible_fields,
)
from stepscope.report.sections import FURTHER_ROWS, TABLE_ROWS, Figures, Prose, Rows, Section

if TYPE_CHECKING:
    from stepscope.report.base import Report

_RIGHT = frozenset({"float", "int"})
_LONGEST = 100  # of a name, however wide the screen is
_SHORTEST = 16  # of a name, before columns go below
_GAP = 2
_INDENT = 2

# The label at the start of a line; wrap_line lines are indented below the text after it: `- `, `do first   `.
_LABEL = re.compile(r"(?:(?:[\w-]+ )*[\w-]+ {2,}| +)?(?:- |[\d.]+ %  )?")


def render_report(report: Report, most_rows: int | None = None) -> Group:
    """Renders a whole report.  Tables are cut after `most_rows` rows with a note; None cuts at the default numbers."""
    sections = report.visible_sections()
    shown = {line for section in sections for line in _section_sentences(section)}
    parts: list[RenderableType] = [
        wrap_line(f"! {warning}", style="yellow") for warning in report.warnings if warning not in shown
    ]
    shown.clear()
    main = next((section for section in sections if isinstance(section, Rows)), None)
    for section in sections:
        if isinstance(section, Rows) and not section.rows and section.empty in shown:
            continue
        shown.update(_section_sentences(section))
        rows = most_rows or (TABLE_ROWS if section is main else FURTHER_ROWS)
        parts += [Text(""), Text(section.title, style="bold"), _render_section(section, rows, len(report.hosts) == 1)]
    return Group(*parts)


def render_text(report: Report) -> str:
    """Renders a report as text without colours, as wide as the terminal."""
    text = io.StringIO()
    width = shutil.get_terminal_size((120, 24)).columns
    # In a notebook rich would otherwise display the text instead of writing it.
    Console(file=text, width=width, force_jupyter=False).print(render_report(report))
    return "\n".join(map(str.rstrip, text.getvalue().strip("\n").splitlines()))


def wrap_line(line: str, style: str = "") -> RenderableType:
    """A line that wraps below its text, not below its label."""
    label = _LABEL.match(line)
    if not label or not label[0]:
        return Text(clean(line), style=style)
    grid = Table.grid()
    grid.add_column(no_wrap=True, width=cell_len(label[0]))
    grid.add_column(overflow="fold")
    grid.add_row(Text(label[0], style=style), Text(clean(line[label.end() :]), style=style))
    return grid


def _section_sentences(section: Section) -> tuple[str, ...]:
    if isinstance(section, Prose):
        return section.lines
    return (section.empty,) if isinstance(section, Rows) and not section.rows else ()


def _render_section(section: Section, most_rows: int, one_host: bool) -> RenderableType:
    if isinstance(section, Prose):
        return Padding(Group(*map(wrap_line, section.lines)), (0, 0, 0, _INDENT))
    if isinstance(section, Figures):
        return _render_figures(section)
    if not section.rows:
        return Padding(Text(section.empty, style="dim"), (0, 0, 0, _INDENT))
    return _TableView(section, most_rows, one_host)


def _render_figures(section: Figures) -> Table:
    grid = Table.grid(padding=(0, _GAP))
    for field in section.fields:
        value = section.values[field.name]
        unit = f" {unit_symbol(field)}" if value is not None else ""
        grid.add_row("  " + " ".join(name_words(field)), Text(value_text(field, value)).append(unit, style="dim"))
    return grid


# -- tables ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """A column as text.

    Attributes:
        head: its words, one per line, the unit last.
        is_key: whether it identifies the row.
        least, most: the smallest and largest width.
    """

    field: Field
    head: tuple[str, ...]
    cells: tuple[str, ...]
    is_key: bool
    least: int
    most: int


@dataclass(frozen=True)
class _TableView:
    """A table that is laid out once the width of the screen is known."""

    table: Rows
    most_rows: int
    one_host: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        columns = [self._column(field) for field in visible_fields(self.table, self.one_host)]
        for at, block in enumerate(_split_into_blocks(columns, options.max_width)):
            if at:
                yield Text("")
            yield _draw_block(block, _share_width(block, options.max_width))
        hidden = len(self.table.rows) - self.most_rows
        if hidden > 0:
            rows = "row" if hidden == 1 else "rows"
            text = f"  ... {hidden:,} more {rows}; --top {len(self.table.rows)} shows all"
            yield Text(text, style="dim")

    def _column(self, field: Field) -> _Column:
        cells = column_texts(field, [row[field.name] for row in self.table.rows[: self.most_rows]])
        unit = unit_symbol(field)
        head = (*name_words(field), *([unit] if unit else []))
        natural = max(map(cell_len, (*head, *cells)))
        least = natural
        if field.kind == "str":
            least = max(min(natural, _SHORTEST), *map(cell_len, head))
        is_key = field.kind == "str" or field.role in ROW_NUMBERS
        return _Column(field, head, tuple(cells), is_key, least, min(natural, max(_LONGEST, least)))


def _split_into_blocks(columns: Sequence[_Column], width: int) -> list[list[_Column]]:
    """Splits columns into blocks that fit the width; each block repeats the columns that name the rows."""
    leading = next((at for at, column in enumerate(columns) if not column.is_key), len(columns))
    keys = list(columns[: leading if leading < len(columns) else 1])
    widest = max((column.least for column in columns if column.field.kind in _RIGHT), default=0)
    room = min(width * 2 // 3, width - _GAP - widest)  # leaves space for any number next to them
    while len(keys) > 1 and _least_width(keys) > room:
        keys.pop()
    blocks = [list(keys)]
    for column in columns[len(keys) :]:
        if _least_width([*blocks[-1], column]) > width and len(blocks[-1]) > len(keys):
            blocks.append(list(keys))
        blocks[-1].append(column)
    return blocks


def _least_width(columns: Sequence[_Column]) -> int:
    return sum(column.least + _GAP for column in columns) - _GAP


def _share_width(columns: Sequence[_Column], width: int) -> list[int]:
    """The widths of columns; spare width goes to shortened names, in equal parts."""
    widths = [column.least for column in columns]
    spare = width - _least_width(columns)
    while spare > 0 and (wanting := [at for at, column in enumerate(columns) if widths[at] < column.most]):
        part = max(1, spare // len(wanting))
        for at in wanting:
            more = min(part, columns[at].most - widths[at], spare)
            widths[at] += more
            spare -= more
    return widths


def _draw_block(columns: Sequence[_Column], widths: Sequence[int]) -> Group:
    """Lays out a block as text: rich's own tables take a hundred times as long for thousands of rows."""
    right = [column.field.kind in _RIGHT for column in columns]
    height = max(len(column.head) for column in columns)
    heads = [("",) * (height - len(column.head)) + column.head for column in columns]
    sized = zip(columns, widths, strict=True)
    cells = [[_fit_cell(column, cell, width) for cell in column.cells] for column, width in sized]
    body = [line for row in zip(*cells, strict=True) for line in zip_longest(*row, fillvalue="")]
    head = _join_columns(zip(*heads, strict=True), widths, right)
    return Group(Text(head, "dim", no_wrap=True), Text(_join_columns(body, widths, right), no_wrap=True))


def _fit_cell(column: _Column, cell: str, width: int) -> list[str]:
    """The lines of a cell."""
    if column.field.role is Role.TEXT:  # goes on in the next line
        return textwrap.wrap(cell, width) or [""]
    return [shorten_name(cell, width)]


def _join_columns(lines: Iterable[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> str:
    gap = " " * _GAP
    return "\n".join(gap.join(map(_pad_text, line, widths, right)).rstrip() for line in lines)


def _pad_text(text: str, width: int, right: bool) -> str:
    space = " " * (width - (len(text) if text.isascii() else cell_len(text)))
    return space + text if right else text + space
