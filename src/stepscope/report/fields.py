"""The description of a column or figure: name, unit, meaning, and the role by which outputs lay it out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from stepscope.records import dataclass

Cell = str | int | float | bool | None | list[int]


class Role(StrEnum):
    """What the values of a field mean to a reader; outputs lay out, link and compare by it, never by a field's name."""

    NAME = "name"  # what ran, as the program names it: an op, a kernel, a call; the timeline finds it
    LABEL = "label"  # names the row but is not an event: a module, a counter, a group of ranks
    TERM = "term"  # one of Stepscope's fixed terms: a category, a cause, a verdict
    TYPE = "type"  # a type as the program or the framework names it: an op's type, a number format
    SHAPE = "shape"  # dimensions of arrays, blocks or grids
    SOURCE = "source"  # a line of the program: `train.py:12`
    HOST = "host"
    PLACE = "place"  # where: host or device, a device, a stream, a memory
    STEP = "step"  # the number of a step
    ORDINAL = "ordinal"  # the number of the row: its position in a list, the rank of a process, a node of a tree
    INSTANT = "instant"  # when, on the time axis of the session
    DURATION = "duration"  # how long
    SHARE = "share"  # how much of a whole, 0-100
    COUNT = "count"  # how many
    SIZE = "size"  # bytes
    MEASURE = "measure"  # any other amount: a rate, a ratio
    CHANGE = "change"  # a difference; may be negative
    FLAG = "flag"  # yes or no
    COMPLETE = "complete"  # no if a part is missing; shown only if some row is no
    TEXT = "text"  # a sentence
    MEANING = "meaning"  # explains the row; shown only on hover
    BY_UNIT = "by unit"  # only in declarations: the unit determines the role


ROW_NUMBERS = frozenset({Role.STEP, Role.ORDINAL})
"""Roles of numbers that identify a row."""

_OF_UNITS = {"ms": Role.DURATION, "us": Role.DURATION, "percent": Role.SHARE, "count": Role.COUNT, "bytes": Role.SIZE}
_OF_KINDS = {"bool": Role.FLAG, "ints": Role.SHAPE}
_ALONE = {"ms": "Time", "us": "Time", "percent": "Share", "bytes": "Size"}
"""Labels of fields whose names are only a unit."""

_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_UNIT_IN_NAME = re.compile(r"_(ms|us|ns|ps|bytes|percent|gb_per_s)(?=$|_)")


@dataclass(frozen=True)
class Field:
    """A column of a table or a named figure.

    Attributes:
        name: the key in JSON, CSV and Arrow.
        unit: `ms`, `us`, `bytes`, `percent` (0-100), `count`, `text`, ...; empty if it has none.
        doc: what it means and how it is computed, in one or two sentences.
        kind: how it is stored: `float`, `int`, `str`, `bool` or `ints`; by default `str` for a text, else `float`.
        role: what it means to a reader; for numbers, flags and dimensions it follows from the unit and the kind.
        label: a short heading; by default the name without its unit.

    Raises:
        ValueError: it has no role, and neither unit nor kind determines one.
    """

    name: str
    unit: str
    doc: str
    kind: str = ""
    role: Role = Role.BY_UNIT
    label: str = ""

    def __post_init__(self) -> None:
        if not self.kind:
            object.__setattr__(self, "kind", "str" if self.unit == "text" else "float")
        if self.role is Role.BY_UNIT:
            object.__setattr__(self, "role", self._usual_role())
        if not self.label:
            object.__setattr__(self, "label", _label_words(self.name))

    def _usual_role(self) -> Role:
        if self.kind == "str" or self.unit == "number":
            raise ValueError(f"the field {self.name!r} needs a role")
        return _OF_KINDS.get(self.kind) or _OF_UNITS.get(self.unit, Role.MEASURE)


def _label_words(name: str) -> str:
    """`total_self_us` as `Total self`: the unit is shown separately."""
    if name in _ALONE:
        return _ALONE[name]
    words = (_UNIT_IN_NAME.sub("", name, count=1) or name).replace("_", " ")
    return words[:1].upper() + words[1:]


def fields_named(fields: Iterable[Field], *names: str) -> tuple[Field, ...]:
    """The fields with these names, in the order of the names.  Raises KeyError for an unknown name."""
    by_name = {field.name: field for field in fields}
    return tuple(by_name[name] for name in names)


def amount(value: object) -> float:
    """A number for a sum or a drawing: 0 if it is unknown, or not a number.

    >>> amount(1.5), amount(None)
    (1.5, 0.0)
    """
    return float(value) if isinstance(value, int | float) else 0.0


def csv_value(value: Cell) -> str | int | float:
    """A value as a field of CSV: empty for unknown, and an x between the sizes of several dimensions.

    A text that a spreadsheet would run as a formula gets an apostrophe in front, which spreadsheets do not show.

    >>> csv_value([32, 4, 1]), csv_value(True), csv_value(None), csv_value("=1+2"), csv_value(-2)
    ('32x4x1', 'true', '', "'=1+2", -2)
    """
    if isinstance(value, list):
        return "x".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(_FORMULA_SIGNS):
        return f"'{value}"
    return "" if value is None else value
