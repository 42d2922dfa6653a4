"""Shows reports as Markdown, to paste into an issue, a pull request or a chat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepscope.errors import counted
from stepscope.report.fields import Field
from stepscope.report.looks import CODE, clean, column_texts, name_words, unit_symbol, value_text, visible_fields
from stepscope.report.sections import Figures, Prose, Rows, Section

if TYPE_CHECKING:
    from stepscope.report.base import Report

_RIGHT = frozenset({"float", "int"})
_PLAIN = re.compile(r"[A-Za-z0-9 .,/()%-]*")  # text that Markdown leaves unchanged


def render_document(report: Report, most_rows: int) -> str:
    """A whole report; tables are cut after `most_rows` rows with a note."""
    title = f"# {report.TOOL}" + (f": {', '.join(map(_escape_text, report.hosts))}" if report.hosts else "")
    warnings = [f"> {_escape_text(warning)}" for warning in report.warnings]
    shown = report.visible_sections()
    parts = [_render_section(section, most_rows, len(report.hosts) == 1) for section in shown]
    return "\n\n".join([title, *warnings, *parts]) + "\n"


def _render_section(section: Section, most_rows: int, one_host: bool) -> str:
    title = f"## {_escape_text(section.title)}\n\n"
    if isinstance(section, Prose):
        return title + "\n".join(map(_render_line, section.lines))
    if isinstance(section, Figures):
        rows = [[" ".join(name_words(field)), _render_figure(field, section)] for field in section.fields]
        return title + _render_grid(["figure", "value"], ["left", "left"], rows)
    return title + (_render_table(section, most_rows, one_host) if section.rows else _escape_text(section.empty))


def _render_line(line: str) -> str:
    text = line.lstrip(" ").removeprefix("- ")
    return f"  - {_escape_text(text)}" if text != line else f"- {_escape_text(text)}"


def _render_figure(field: Field, section: Figures) -> str:
    value = section.values[field.name]
    return f"{_render_cell(value_text(field, value), field)} {unit_symbol(field) if value is not None else ''}".rstrip()


def _render_table(section: Rows, most_rows: int, one_host: bool) -> str:
    fields = visible_fields(section, one_host)
    rows = section.rows[:most_rows]
    columns = [
        [_render_cell(text, field) for text in column_texts(field, [row[field.name] for row in rows])]
        for field in fields
    ]
    heads = [f"{' '.join(name_words(field))} {unit_symbol(field)}".strip() for field in fields]
    sides = ["right" if field.kind in _RIGHT else "left" for field in fields]
    left = len(section.rows) - len(rows)
    return _render_grid(heads, sides, list(zip(*columns, strict=True))) + (
        f"\n\nand {counted(left, 'more row')}" if left else ""
    )


def _render_grid(heads: Sequence[str], sides: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---:" if side == "right" else "---" for side in sides]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, rule, *rows])


def _render_cell(text: str, field: Field) -> str:
    """A name as code, so that no character of it is markup; numbers and plain words unchanged."""
    if field.kind != "str" or _PLAIN.fullmatch(text):
        return text.replace("<", "&lt;").replace(">", "&gt;")
    return f"`{text.replace('`', chr(39))}`".replace("|", "\\|")


def _escape_text(text: str) -> str:
    parts = CODE.split(clean(text))  # text and code in turns
    parts[::2] = [re.sub(r"([\\`*_<>|\[\]#])", r"\\\1", plain) for plain in parts[::2]]
    return "`".join(parts)
