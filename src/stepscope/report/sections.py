"""The parts of a report: named figures, tables and sentences, each with an id that does not change.

Titles are for people and may be reworded; code finds a section by its id.  Every figure and every column has its unit,
its role and its meaning, so that pages, terminals and docs explain them alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from stepscope.records import dataclass
from stepscope.report.fields import ROW_NUMBERS, Cell, Field

TABLE_ROWS, FURTHER_ROWS = 20, 10
"""The default number of rows shown of a report's first table and of its other tables."""

_AMOUNTS = frozenset({"ms", "us", "count"})

Row = dict[str, Cell]


@dataclass(frozen=True)
class Figures:
    """A few named figures.

    Attributes:
        id: unique within the report.
        title: the heading above them.
        fields: all figures.
        values: one for each field.
        on_screen: the names of the figures that screens show, if the rest is shown elsewhere; all if empty.
    """

    id: str
    title: str
    fields: tuple[Field, ...]
    values: Row
    on_screen: tuple[str, ...] = ()

    @property
    def has_content(self) -> bool:
        """Whether to show the figures: not if none is known, or if some are unknown and all known ones are zero times
        or counts."""
        known = [field for field in self.fields if self.values[field.name] is not None]
        zeros = [field for field in known if field.unit in _AMOUNTS and not self.values[field.name]]
        return len(known) == len(self.fields) or len(zeros) < len(known)

    def split_for_screens(self) -> list[Figures]:
        """The figures that screens show."""
        shown = tuple(field for field in self.fields if not self.on_screen or field.name in self.on_screen)
        return [replace(self, fields=shown, on_screen=())]


@dataclass(frozen=True)
class Part:
    """Some columns of a table that is too wide to show whole."""

    title: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """A table.

    Attributes:
        id: unique within the report; the key of the report's JSON that has the rows, if there is such a list.
        title: the heading above it.
        fields: all columns.
        rows: the rows, with at least a value for each field.
        empty: the sentence to show if there are no rows; the table is hidden then if this is empty, too.
        parts: how the columns are split into tables that fit a screen; one table with all of them if empty.
        brief: makes a row that fits a screen, with names shortened or indented; rows are unchanged if None.
        is_asked: whether the reader chose the columns, as in SQL: then all are shown.
        narrow: the columns that a terminal keeps where not all fit beside each other; if empty, the others go below.
    """

    id: str
    title: str
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]
    empty: str = "nothing to show"
    parts: tuple[Part, ...] = ()
    brief: Callable[[Row], Row] | None = None
    is_asked: bool = False
    narrow: tuple[str, ...] = ()

    @property
    def has_content(self) -> bool:
        """Whether to show the table: not without rows and a sentence, nor if it has amounts of which none is known."""
        if not self.rows:
            return bool(self.empty)
        amounts = [f for f in self.fields if f.kind in ("float", "int") and f.role not in ROW_NUMBERS]
        return self.is_asked or not amounts or any(row[f.name] is not None for row in self.rows for f in amounts)

    def split_for_screens(self) -> list[Rows]:
        """The table in its parts, with brief rows."""
        rows = self.rows if self.brief is None else tuple(map(self.brief, self.rows))
        whole = replace(self, rows=rows, parts=(), brief=None)
        by_name = {field.name: field for field in self.fields}
        return [
            replace(whole, title=part.title, fields=tuple(by_name[name] for name in part.columns))
            for part in self.parts
        ] or [whole]


@dataclass(frozen=True)
class Prose:
    """Sentences, most important first; `id` is unique within the report."""

    id: str
    title: str
    lines: tuple[str, ...]

    @property
    def has_content(self) -> bool:
        """Whether there is a sentence."""
        return bool(self.lines)


Section = Figures | Rows | Prose


@dataclass(frozen=True)
class FirstScreen:
    """The answer of a report, as a page and a notebook begin with it.

    Attributes:
        title: the verdict.
        sentence: what it rests on; empty if the title says it.
        bar: what a bar is made of: a key of the palette, its name, and how much it is.
        advice: what to do first; empty if there is nothing.
        gain: what that would give; empty if unknown.
        actions: how to do it.
    """

    title: str
    sentence: str
    bar: tuple[tuple[str, str, float], ...]
    advice: str
    gain: str
    actions: tuple[str, ...]


def split_for_screens(section: Section) -> list[Section]:
    """A section as shown on a screen or on paper: wide tables in parts."""
    return [section] if isinstance(section, Prose) else [*section.split_for_screens()]


def round_6(value: float) -> float:
    """Rounds to six decimals, ten times as fast as `round`, which converts to decimal digits."""
    return math.floor(value * 1e6 + 0.5) / 1e6


def round_ms(ps: float) -> float:
    """Picoseconds as milliseconds, rounded to nanoseconds."""
    return math.floor(ps / 1e3 + 0.5) / 1e6


def round_us(ps: float) -> float:
    """Picoseconds as microseconds, rounded to picoseconds."""
    return math.floor(ps + 0.5) / 1e6


def percent(part: float, whole: float) -> float | None:
    """100 part / whole, rounded to four decimals; None if `whole` is not above 0."""
    return math.floor(1e6 * part / whole + 0.5) / 1e4 if whole > 0 else None
