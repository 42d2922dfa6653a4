"""What a report is made of: a few named figures, tables, and sentences.

Every figure and every column carries its unit and its meaning, so that pages, terminals and docs explain them alike.
"""

from __future__ import annotations

import math

from stepscope.records import dataclass

TABLE_ROWS, FURTHER_ROWS = 20, 10
"""Rows of a report's first table and of the further ones that people are shown if nobody asked for more or fewer."""

_AMOUNTS = frozenset({"ms", "us", "count"})

ROW_NUMBERS = frozenset({"step", "rank"})
"""Columns of numbers that say which row it is."""

Cell = str | int | float | bool | None | list[int]


def flat(value: Cell) -> str | int | float:
    """A value as one field of a sheet: nothing for unknown, and sizes of several dimensions with an x between.

    >>> flat([32, 4, 1]), flat(True), flat(None)
    ('32x4x1', 'true', '')
    """
    if isinstance(value, list):
        return "x".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value


@dataclass(frozen=True)
class Field:
    """A column of a table or a named figure.

    Attributes:
        name: the key in JSON, CSV and Arrow.
        unit: `ms`, `us`, `bytes`, `percent` (0-100), `count`, `text`, ...; empty if it has none.
        doc: what it means and how it is computed, one sentence or two.
        kind: how it is stored: `float`, `int`, `str`, `bool` or `ints`.
    """

    name: str
    unit: str
    doc: str
    kind: str = "float"


@dataclass(frozen=True)
class Figures:
    """A few named figures."""

    title: str
    fields: tuple[Field, ...]
    values: dict[str, Cell]

    @property
    def tell(self) -> bool:
        """False if nothing is known, or only that no time and no event is what the unknown figures are about."""
        known = [field for field in self.fields if self.values[field.name] is not None]
        zeros = [field for field in known if field.unit in _AMOUNTS and not self.values[field.name]]
        return len(known) == len(self.fields) or len(zeros) < len(known)


@dataclass(frozen=True)
class Rows:
    """A table."""

    title: str
    fields: tuple[Field, ...]
    rows: tuple[dict[str, Cell], ...]
    empty: str = "nothing to show"

    @property
    def tell(self) -> bool:
        """False if there are rows with amounts, none of which is known: names alone say nothing that others do not."""
        amounts = [f for f in self.fields if f.kind in ("float", "int") and f.name not in ROW_NUMBERS]
        known = any(row[field.name] is not None for row in self.rows for field in amounts)
        return known or not amounts or not self.rows


@dataclass(frozen=True)
class Prose:
    """Sentences, most important first."""

    title: str
    lines: tuple[str, ...]

    @property
    def tell(self) -> bool:
        """False without a sentence."""
        return bool(self.lines)


Section = Figures | Rows | Prose


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
