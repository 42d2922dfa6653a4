"""Reports as HTML fragments, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from stepscope.report.looks import clean, shown_fields, text_of, texts_of, unit_of, words_of
from stepscope.report.sections import Field, Figures, Prose, Rows, Section

if TYPE_CHECKING:
    from stepscope.report.base import Report

_MOST_ROWS = 50
_RIGHT = frozenset({"float", "int"})


def fragment(report: Report) -> str:
    """A whole report; meanings appear on hover, and long tables say how to get the rest."""
    told = [f"<p><b>{_text(warning)}</b></p>" for warning in report.warnings]
    sections = [_section(section, len(report.hosts) == 1) for section in report.sections()]
    return "\n".join([f"<h3>{_text(report.TOOL)}</h3>", *told, *sections])


def _text(text: str) -> str:
    return escape(clean(text))


def _section(section: Section, one_host: bool) -> str:
    title = f"<h4>{_text(section.title)}</h4>"
    if isinstance(section, Prose):
        return title + "<ul>" + "".join(map(_line, section.lines)) + "</ul>"
    if isinstance(section, Figures):
        return f"{title}<table>{''.join(_figure(section, row) for row in range(len(section.fields)))}</table>"
    return title + (_table(section, one_host) if section.rows else f"<p>{_text(section.empty)}</p>")


def _line(line: str) -> str:
    text = line.lstrip(" ").removeprefix("- ")
    return f'<li style="margin-left:2em">{_text(text)}</li>' if text != line else f"<li>{_text(text)}</li>"


def _figure(section: Figures, row: int) -> str:
    field = section.fields[row]
    value = section.values[field.name]
    unit = f" {unit_of(field)}" if value is not None else ""
    cell = f'<td style="text-align:left">{escape(text_of(field, value) + unit)}</td>'
    return f'<tr title="{escape(field.doc)}"><th style="text-align:left">{escape(_head(field))}</th>{cell}</tr>'


def _table(section: Rows, one_host: bool) -> str:
    fields = shown_fields(section, one_host)
    rows = section.rows[:_MOST_ROWS]
    columns = [texts_of(field, [row[field.name] for row in rows]) for field in fields]
    cells = [[_cell(text, field) for text in column] for field, column in zip(fields, columns, strict=True)]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    head = "".join(map(_column_head, fields))
    left = len(section.rows) - len(rows)
    rest = f"<p>and {left:,} more; to_dict() has all rows, to_pandas() those of the first table</p>" if left else ""
    return f"<table><tr>{head}</tr>{body}</table>{rest}"


def _column_head(field: Field) -> str:
    text = f"{_head(field)} {unit_of(field)}".strip()
    return f'<th title="{escape(field.doc)}" style="{_align(field)}">{escape(text)}</th>'


def _cell(text: str, field: Field) -> str:
    return f'<td style="{_align(field)}">{escape(text)}</td>'


def _align(field: Field) -> str:
    return "text-align:right;white-space:nowrap" if field.kind in _RIGHT else "text-align:left"


def _head(field: Field) -> str:
    return " ".join(words_of(field))
