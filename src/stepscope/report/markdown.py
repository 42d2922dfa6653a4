"""Shows reports as Markdown, to paste into an issue, a pull request or a chat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepscope.report.fields import Field
from stepscope.report.looks import clean, column_texts, name_words, unit_symbol, value_text, visible_fields
from stepscope.report.sections import Figures, Prose, Rows, Section

if TYPE_CHECKING:
    from stepscope.report.base import Report

_RIGHT = frozenset({"float", "int"})
_PLAIN = re.compile(r"[A-Za-z0-9 .,/()%-]*")  # text that Markdown leaves unchanged


def document(report: Report, most_rows: int) -> str:
    """A whole report; tables are cut after `most_rows` rows with a note."""
    title = f"# {report.TOOL}" + (f": {', '.join(map(clean, report.hosts))}" if report.hosts else "")
    told = [f"> {_sentence(warning)}" for warning in report.warnings]
    shown = report.visible_sections()
    parts = [_section(section, most_rows, len(report.hosts) == 1) for section in shown]
    return "\n\n".join([title, *told, *parts]) + "\n"


def _section(section: Section, most_rows: int, one_host: bool) -> str:
    title = f"## {_sentence(section.title)}\n\n"
    if isinstance(section, Prose):
        return title + "\n".join(map(_line, section.lines))
    if isinstance(section, Figures):
        rows = [[" ".join(name_words(field)), _figure(field, section)] for field in section.fields]
        return title + _grid(["figure", "value"], ["left", "left"], rows)
    return title + (_table(section, most_rows, one_host) if section.rows else _sentence(section.empty))


def _line(line: str) -> str:
    text = line.lstrip(" ").removeprefix("- ")
    return f"  - {_sentence(text)}" if text != line else f"- {_sentence(text)}"


def _figure(field: Field, section: Figures) -> str:
    value = section.values[field.name]
    return f"{_cell(value_text(field, value), field)} {unit_symbol(field) if value is not None else ''}".rstrip()


def _table(section: Rows, most_rows: int, one_host: bool) -> str:
    fields = visible_fields(section, one_host)
    rows = section.rows[:most_rows]
    columns = [
        [_cell(text, field) for text in column_texts(field, [row[field.name] for row in rows])] for field in fields
    ]
    heads = [f"{' '.join(name_words(field))} {unit_symbol(field)}".strip() for field in fields]
    sides = ["right" if field.kind in _RIGHT else "left" for field in fields]
    left = len(section.rows) - len(rows)
    return _grid(heads, sides, list(zip(*columns, strict=True))) + (
        f"\n\nand {left:,} more row{'s' * (left != 1)}" if left else ""
    )


def _grid(heads: Sequence[str], sides: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---:" if side == "right" else "---" for side in sides]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, rule, *rows])


def _cell(text: str, field: Field) -> str:
    """A name as code, so that no character of it is markup; numbers and plain words unchanged."""
    if field.kind != "str" or _PLAIN.fullmatch(text):
        return text.replace("<", "&lt;").replace(">", "&gt;")
    return f"`{text.replace('`', chr(39))}`".replace("|", "\\|")


def _sentence(text: str) -> str:
    return re.sub(r"([\\`*_<>|\[\]#])", r"\\\1", clean(text))
