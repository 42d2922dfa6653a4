"""How names and values look to the eye, alike in the terminal and in notebooks.

Files for programs keep every digit; a person gets five significant ones, one decimal of a percentage, bytes in the unit
that fits, and points below each other.  What is not nothing never looks like nothing: `<0.1`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from stepscope.report.fields import Cell, Field, Role
from stepscope.report.sections import Rows

UNKNOWN = "\N{EN DASH}"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

_SYMBOLS = {"percent": "%", "ms": "ms", "us": "us"}
_IN_CELLS = frozenset({"bytes"})  # units that each cell tells
_FEW_DECIMALS = {"percent": 1, "ratio": 2}
_DIGITS = 5
_MOST_DECIMALS = 3

# What moves the cursor, colours the screen or turns the direction of the text; names in profiles hold whatever a
# program wrote there.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """The text without control characters, each of which becomes a middle dot.

    >>> clean("red" + chr(27) + "[31m")
    'red·[31m'
    """
    return _UNSEEN.sub("\N{MIDDLE DOT}", text)


def shortened(text: str, width: int) -> str:
    """A name of at most `width` characters: its middle goes first, since the ends tell names apart.

    >>> shortened("replica_4/bert/encoder/GatherV2/Cast", 20)
    'replic…GatherV2/Cast'
    """
    if len(text) <= width:
        return text
    head = max(width - 1, 0) // 3
    return text[:head] + ELLIPSIS + text[len(text) - (width - 1 - head) :] if width > 1 else ELLIPSIS[:width]


def unit_of(field: Field) -> str:
    """The unit as it stands beside a figure or above a column; empty if it has none or each value tells it."""
    return _SYMBOLS.get(field.unit, "")


def words_of(field: Field) -> list[str]:
    """The words of a name without its unit: `host_op_percent` is `host op`."""
    told_elsewhere = field.unit in _SYMBOLS or field.unit in _IN_CELLS
    return [word for word in field.name.split("_") if not (told_elsewhere and word == field.unit)]


def shown_fields(table: Rows, one_host: bool) -> list[Field]:
    """The columns that tell something.

    Left out are explanations, columns unknown everywhere, times that are 0 everywhere, names that only repeat the
    column before, the host where there is only one, and whether steps are complete where all are.  All are shown where
    nothing would be left.
    """
    kept: list[Field] = []
    for field in table.fields:
        values = [row[field.name] for row in table.rows]
        if field.role is Role.MEANING or (field.role is Role.HOST and one_host) or _says_nothing(field, values):
            continue
        if field.kind == "str" and kept and _repeats(values, [row[kept[-1].name] for row in table.rows]):
            continue
        kept.append(field)
    return kept or list(table.fields)


def _says_nothing(field: Field, values: Sequence[Cell]) -> bool:
    if not values:
        return False
    if field.role is Role.COMPLETE:
        return all(values)
    return all(value is None for value in values) or (field.unit == "ms" and not any(values))


def _repeats(values: Sequence[Cell], before: Sequence[Cell]) -> bool:
    return bool(values) and all(str(one) == str(other) for one, other in zip(values, before, strict=True))


def texts_of(field: Field, values: Iterable[Cell]) -> list[str]:
    """A column of values, with as many decimals for all as the largest needs."""
    listed = list(values)
    if field.unit in _IN_CELLS:
        return [size_text(int(v)) if isinstance(v, int | float) else UNKNOWN for v in listed]
    decimals = _decimals(field, [abs(v) for v in listed if isinstance(v, float) and math.isfinite(v)])
    return [_text(value, decimals) for value in listed]


def text_of(field: Field, value: Cell) -> str:
    """One value alone."""
    return texts_of(field, [value])[0]


def number_text(value: float) -> str:
    """A number alone: two decimals, and more where these would be zeros.

    >>> number_text(37.8149), number_text(0.00125)
    ('37.81', '0.00125')
    """
    return f"{value:,.2f}" if abs(value) >= 0.1 or not value else f"{value:.3g}"


def _decimals(field: Field, sizes: Sequence[float]) -> int:
    largest = max(sizes, default=0.0)
    if all(size.is_integer() for size in sizes):
        return 0
    if field.unit in _FEW_DECIMALS:
        return _FEW_DECIMALS[field.unit]
    if largest < 1:
        return max(_MOST_DECIMALS, 1 - math.floor(math.log10(largest)))
    return min(_MOST_DECIMALS, max(0, _DIGITS - 1 - math.floor(math.log10(largest))))


def _text(value: Cell, decimals: int) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _float_text(value, decimals)
    return " x ".join(map(str, value)) if isinstance(value, list) else clean(value)


def _float_text(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return UNKNOWN
    if abs(value) >= 1e12:
        return f"{value:.4g}"
    least = 10.0**-decimals
    if 0 < abs(value) < least / 2:
        return f"<{least:.{decimals}f}" if value > 0 else f">-{least:.{decimals}f}"
    return f"{value:,.{decimals}f}" if value else "0"


def size_text(size: int) -> str:
    """Bytes for the eye, in powers of 1024: 512 B, 1.5 MiB, 24.00 GiB."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if abs(amount) < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:,.2f} GiB"
