"""Reports as HTML fragments, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from stepscope.report.sections import Figures, Prose, Rows, Section, text_of


def fragment(title: str, warnings: Sequence[str], sections: Sequence[Section]) -> str:
    """A whole report; units and meanings appear on hover."""
    told = [f"<p><b>{escape(text)}</b></p>" for text in warnings]
    return "\n".join([f"<h3>{escape(title)}</h3>", *told, *map(_section, sections)])


def _section(section: Section) -> str:
    title = f"<h4>{escape(section.title)}</h4>"
    if isinstance(section, Prose):
        return title + "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in section.lines) + "</ul>"
    if isinstance(section, Figures):
        return f"{title}<table>{''.join(_figure(section, row) for row in range(len(section.fields)))}</table>"
    return title + (_table(section) if section.rows else f"<p>{escape(section.empty)}</p>")


def _figure(section: Figures, row: int) -> str:
    field = section.fields[row]
    cells = f"<td>{escape(text_of(section.values[field.name]))}</td><td>{escape(field.unit)}</td>"
    return f'<tr title="{escape(field.doc)}"><th>{escape(field.name)}</th>{cells}</tr>'


def _table(section: Rows) -> str:
    head = "".join(f'<th title="{escape(f.doc)}">{escape(f.name)}</th>' for f in section.fields)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(text_of(row[f.name]))}</td>' for f in section.fields)}</tr>"
        for row in section.rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
