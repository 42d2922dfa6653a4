"""Shows reports in terminals of any width.

A number is never cut.  If a table is wider than the screen, names are shortened first; columns that still do not fit go
below, next to a copy of the columns that identify the rows.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

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
from stepscope.report.sections import FURTHER_ROWS, TABLE_ROWS, Figures, Prose, Row, Rows, Section
from stepscope.report.styled import (
    Line,
    Rendered,
    cell_width,
    join_lines,
    line_of,
    screen_width,
    wrap_below,
    wrap_text,
)

if TYPE_CHECKING:
    from stepscope.report.base import Report

_RIGHT = frozenset({"float", "int"})
_LONGEST = 100  # of a name, however wide the screen is
_SHORTEST = 16  # of a name, before columns go below
_GAP = 2
_INDENT = 2

# The label at the start of a line; wrapped lines are indented below the text after it: `- `, `do first   `.
_LABEL = re.compile(r"(?:(?:[\w-]+ )*[\w-]+ {2,}| +)?(?:- |[\d.]+ %  )?")


def report_lines(report: Report, width: int, most_rows: int | None = None) -> Iterator[Line]:
    """The lines of a whole report, in a number of columns.

    Args:
        most_rows: tables are cut after so many rows with a note; None cuts at the default numbers.
    """
    sections = report.visible_sections()
    shown = {line for section in sections for line in _section_sentences(section)}
    is_first = True
    for warning in report.warnings:
        if warning not in shown:
            is_first = False
            yield from wrap_line(f"! {warning}", width, "yellow")
    shown.clear()
    main = next((section for section in sections if isinstance(section, Rows)), None)
    for section in sections:
        if isinstance(section, Rows) and not section.rows and section.empty in shown:
            continue
        shown.update(_section_sentences(section))
        rows = most_rows or (TABLE_ROWS if section is main else FURTHER_ROWS)
        if not is_first:
            yield line_of("")
        is_first = False
        yield line_of(section.title, "bold")
        yield from _section_lines(section, width, rows, len(report.hosts) == 1)


def render_report(report: Report) -> Rendered:
    """The report for `rich`, which knows the width."""
    return Rendered(partial(report_lines, report))


def render_text(report: Report) -> str:
    """Renders a report as text without colours, as wide as the terminal."""
    return join_lines(report_lines(report, screen_width(120))).strip("\n")


def wrap_line(line: str, width: int, style: str = "") -> Iterator[Line]:
    """A line that wraps below its text, not below its label."""
    found = _LABEL.match(line)
    label = found[0] if found else ""
    return wrap_below(label, clean(line[len(label) :]), width, style)


def _section_sentences(section: Section) -> tuple[str, ...]:
    if isinstance(section, Prose):
        return section.lines
    return (section.empty,) if isinstance(section, Rows) and not section.rows else ()


def _section_lines(section: Section, width: int, most_rows: int, one_host: bool) -> Iterator[Line]:
    if isinstance(section, Prose):
        for line in section.lines:
            for wrapped in wrap_line(line, width - _INDENT):
                yield ((" " * _INDENT, ""), *wrapped)
    elif isinstance(section, Figures):
        yield from _figure_lines(section, width)
    elif not section.rows:
        yield from wrap_below(" " * _INDENT, section.empty, width, "dim")
    else:
        yield from table_lines(section, width, most_rows, one_host)


def _figure_lines(section: Figures, width: int) -> Iterator[Line]:
    names = [" " * _INDENT + " ".join(name_words(field)) for field in section.fields]
    column = max(map(cell_width, names), default=0)
    for field, name in zip(section.fields, names, strict=True):
        value = section.values[field.name]
        first, *others = wrap_text(value_text(field, value), max(width - column - _GAP, 1))
        unit = f" {unit_symbol(field)}" if value is not None else ""
        yield (_pad_text(name, column, False) + " " * _GAP + first, ""), (unit if not others else "", "dim")
        for at, more in enumerate(others, 1):
            yield (" " * (column + _GAP) + more, ""), (unit if at == len(others) else "", "dim")


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


def table_lines(table: Rows, width: int, most_rows: int = TABLE_ROWS, one_host: bool = False) -> Iterator[Line]:
    """The lines of a table without its title; columns that do not fit go below.

    Args:
        most_rows: how many rows are shown; one_host: the column of hosts is left out.
    """
    shown = table.rows[:most_rows]
    columns = [_make_column(field, shown) for field in visible_fields(table, one_host)]
    left_out: list[str] = []
    if table.narrow and _least_width(columns) > width:
        left_out = [" ".join(name_words(each.field)) for each in columns if each.field.name not in table.narrow]
        left_out = list(dict.fromkeys(left_out))
        columns = [each for each in columns if each.field.name in table.narrow]
    for at, block in enumerate(_split_into_blocks(columns, width)):
        if at:
            yield line_of("")
        yield from _block_lines(block, _share_width(block, width))
    hidden = len(table.rows) - most_rows
    if hidden > 0:
        rows = "row" if hidden == 1 else "rows"
        yield line_of(f"  ... {hidden:,} more {rows}; --top {len(table.rows)} shows all", "dim")
    if left_out:
        yield from wrap_line(f"  in a wider window, and with --format csv: {', '.join(left_out)}", width, "dim")


def _make_column(field: Field, rows: Sequence[Row]) -> _Column:
    cells = column_texts(field, [row[field.name] for row in rows])
    unit = unit_symbol(field)
    head = (*name_words(field), *([unit] if unit else []))
    natural = max(map(cell_width, (*head, *cells)))
    least = natural
    if field.kind == "str":
        least = max(min(natural, _SHORTEST), *map(cell_width, head))
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


def _block_lines(columns: Sequence[_Column], widths: Sequence[int]) -> Iterator[Line]:
    right = [column.field.kind in _RIGHT for column in columns]
    height = max(len(column.head) for column in columns)
    heads = [("",) * (height - len(column.head)) + column.head for column in columns]
    for words in zip(*heads, strict=True):
        yield line_of(_join_cells(words, widths, right), "dim")
    cells = [
        [_fit_cell(column, cell, width) for cell in column.cells] for column, width in zip(columns, widths, strict=True)
    ]
    for row in zip(*cells, strict=True):
        for words in zip_longest(*row, fillvalue=""):
            yield line_of(_join_cells(words, widths, right))


def _fit_cell(column: _Column, cell: str, width: int) -> list[str]:
    """The lines of a cell."""
    if column.field.role is Role.TEXT:  # goes on in the next line
        return textwrap.wrap(cell, width) or [""]
    return [shorten_name(cell, width)]


def _join_cells(cells: Iterable[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    return (" " * _GAP).join(map(_pad_text, cells, widths, right)).rstrip()


def _pad_text(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_width(text))
    return space + text if right else text + space
