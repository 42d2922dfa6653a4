"""What a report is made of: a few named figures, tables, and sentences, each with an id that does not change.

Titles are for people and may be reworded; whoever looks for a section looks for its id.  Every figure and every column
carries its unit, its role and its meaning, so that pages, terminals and docs explain them alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from stepscope.records import dataclass
from stepscope.report.fields import ROW_NUMBERS, Cell, Field

TABLE_ROWS, FURTHER_ROWS = 20, 10
"""Rows of a report's first table and of the further ones that people are shown if nobody asked for more or fewer."""

_AMOUNTS = frozenset({"ms", "us", "count"})

Row = dict[str, Cell]


@dataclass(frozen=True)
class Figures:
    """A few named figures.

    Attributes:
        id: unique within the report.
        title: what stands above them.
        fields: all figures.
        values: one for each field.
        on_screen: the names of those that screens show, where others say elsewhere what the rest does; all if empty.
    """

    id: str
    title: str
    fields: tuple[Field, ...]
    values: Row
    on_screen: tuple[str, ...] = ()

    @property
    def tell(self) -> bool:
        """False if nothing is known, or only that no time and no event is what the unknown figures are about."""
        known = [field for field in self.fields if self.values[field.name] is not None]
        zeros = [field for field in known if field.unit in _AMOUNTS and not self.values[field.name]]
        return len(known) == len(self.fields) or len(zeros) < len(known)

    def for_screens(self) -> list[Figures]:
        """The figures that screens show."""
        shown = tuple(field for field in self.fields if not self.on_screen or field.name in self.on_screen)
        return [replace(self, fields=shown, on_screen=())]


@dataclass(frozen=True)
class Part:
    """Some columns of a table, where there is no room for all of them."""

    title: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """A table.

    Attributes:
        id: unique within the report; the key of the report's JSON that has the rows, if there is such a list.
        title: what stands above it.
        fields: all columns.
        rows: the rows, with a value for each field at least.
        empty: what to say where there is no row.
        parts: how the columns are shared out to tables that fit a screen; one table with all of them if empty.
        brief: a row as it fits on a screen, its names shortened or indented; as it is if None.
    """

    id: str
    title: str
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]
    empty: str = "nothing to show"
    parts: tuple[Part, ...] = ()
    brief: Callable[[Row], Row] | None = None

    @property
    def tell(self) -> bool:
        """False if there are rows with amounts, none of which is known: names alone say nothing that others do not."""
        amounts = [f for f in self.fields if f.kind in ("float", "int") and f.role not in ROW_NUMBERS]
        known = any(row[field.name] is not None for row in self.rows for field in amounts)
        return known or not amounts or not self.rows

    def for_screens(self) -> list[Rows]:
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
    def tell(self) -> bool:
        """False without a sentence."""
        return bool(self.lines)


Section = Figures | Rows | Prose


def for_screens(section: Section) -> list[Section]:
    """A section as screens and sheets of paper show it: wide tables in parts."""
    return [section] if isinstance(section, Prose) else [*section.for_screens()]


def round_6(value: float) -> float:
    """To six decimals, in a tenth of the time of `round`, which goes by way of decimal digits."""
    return math.floor(value * 1e6 + 0.5) / 1e6


def round_ms(ps: float) -> float:
    """Picoseconds as milliseconds, to the microsecond's thousandth."""
    return math.floor(ps / 1e3 + 0.5) / 1e6


def round_us(ps: float) -> float:
    """Picoseconds as microseconds, to the picosecond."""
    return math.floor(ps + 0.5) / 1e6


def percent(part: float, whole: float) -> float | None:
    """100 part / whole to four decimals, None if there is no whole."""
    return math.floor(1e6 * part / whole + 0.5) / 1e4 if whole > 0 else None
