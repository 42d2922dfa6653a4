"""Stores reports as bytes, to show them again later without the tool that made them.

A kept report has only the JSON text and the sections of the original: it can be shown in every form, but not be
filtered, sorted or computed with.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NoReturn

from stepscope.records import dataclass
from stepscope.report.base import Report
from stepscope.report.fields import Field, Role
from stepscope.report.sections import Figures, Part, Prose, Rows, Section, split_for_screens

MAX_ROWS = 50_000
"""Reports with more rows are not kept: making them again takes little time compared with showing them."""

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Field, Figures, Part, Prose, Rows)}
_ROWS = "rows"  # the name that most tools give to their main list
_KIND = "!kind"  # the key that distinguishes a section from a row


@dataclass(frozen=True, kw_only=True)
class KeptReport(Report):
    """The stored part of a report: enough for every output."""

    tool: str
    json: bytes
    parts: bytes
    main: bytes
    lines: tuple[str, ...]
    empty: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "TOOL", self.tool)

    def body(self) -> NoReturn:
        """Raises TypeError: it is not kept."""
        raise TypeError("a saved report can be displayed, but not used in computations")

    def to_dict(self) -> dict[str, Any]:
        """The report as plain Python values, as in JSON."""
        plain: dict[str, Any] = json.loads(self.json)
        return plain

    def to_json(self) -> bytes:
        """The report as one JSON object."""
        return self.json

    def sections(self) -> Sequence[Section]:
        """The sections to show, in order; wide tables in parts that fit a screen."""
        return tuple(map(_restore_section, json.loads(self.parts)))

    def main_table(self) -> Rows:
        """The table for CSV, Parquet, Arrow and pandas."""
        table: Rows = _restore_section(json.loads(self.main))
        return table if table.rows else replace(table, rows=tuple(self.to_dict().get(_ROWS, ())))

    def why_empty(self) -> str | None:
        """Why there is no data; None if there is data."""
        return self.empty

    def summary_lines(self) -> Sequence[str]:
        """The report in a few lines for the terminal."""
        return self.lines

    def head(self, rows: int) -> NoReturn:
        """Is not kept."""
        self.body()

    def arranged(self, sort: str | None = None, where: str | Sequence[str] = ()) -> NoReturn:
        """Is not kept."""
        self.body()


def pack_report(report: Report) -> bytes | None:
    """Packs a report into bytes; None if it is too long to be worth it."""
    parts = [part for section in report.sections() for part in split_for_screens(section)]
    if sum(len(part.rows) for part in parts if isinstance(part, Rows)) > MAX_ROWS:
        return None
    shown = {
        "tool": report.TOOL,
        "hosts": report.hosts,
        "warnings": report.warnings,
        "partial": report.partial,
        "lines": list(report.summary_lines()),
        "empty": report.why_empty(),
    }
    # One line each, since JSON without indentation has no line breaks; the indented text for people follows.
    lines = shown, [*map(_to_plain, parts)], _to_plain(_drop_known_rows(report))
    return b"\n".join([*(json.dumps(line).encode() for line in lines), report.to_json()])


def _drop_known_rows(report: Report) -> Rows:
    """The main table; without its rows if the JSON text has them."""
    table = replace(report.main_table(), brief=None)
    is_known = report.body().get(_ROWS) == list(table.rows)
    return replace(table, rows=()) if is_known else table


def unpack_report(content: bytes) -> KeptReport | None:
    """Unpacks the bytes of `pack_report`; None if another version of this module wrote them."""
    try:
        head, parts, main, text = content.split(b"\n", 3)
        shown = json.loads(head)
        return KeptReport(
            tool=shown["tool"],
            hosts=tuple(shown["hosts"]),
            warnings=tuple(shown["warnings"]),
            partial=shown["partial"],
            json=text,
            parts=parts,
            main=main,
            lines=tuple(shown["lines"]),
            empty=shown["empty"],
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _to_plain(value: Any) -> Any:
    """A section as values that JSON can hold."""
    if is_dataclass(value):
        held = {field.name: _to_plain(getattr(value, field.name)) for field in fields(value)}
        return {_KIND: type(value).__name__, **held}
    return list(map(_to_plain, value)) if isinstance(value, tuple) else value


def _restore_section(value: Any) -> Any:
    """The inverse of `_to_plain`: lists of a section become tuples, lists in the cells of a table stay lists."""
    if isinstance(value, list):
        return tuple(map(_restore_section, value))
    if isinstance(value, dict) and _KIND in value:
        kind = _KINDS[value[_KIND]]
        held = {name: _restore_section(each) for name, each in value.items() if name != _KIND}
        return kind(**held | {"role": Role(held["role"])}) if kind is Field else kind(**held)
    return value
