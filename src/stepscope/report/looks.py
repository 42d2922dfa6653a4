"""Formats names and values for people, the same in the terminal and in notebooks.

Files for programs keep every digit.  People get five significant digits, one decimal of a percentage, bytes in a
suitable unit, and aligned decimal points.  A value above 0 never looks like 0: `<0.1`.
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
_IN_CELLS = frozenset({"bytes"})  # units shown in each cell
_FEW_DECIMALS = {"percent": 1, "ratio": 2}
_DIGITS = 5
_MOST_DECIMALS = 3
_MANY_MS = 10_000.0  # from here on a duration alone is in seconds
_ALMOST_ONE = 0.9995  # rounded to three digits it is one of the next unit

# Characters that move the cursor, colour the screen or change the direction of the text: names in profiles may hold
# any text that a program wrote.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_TERM = re.compile(r"[a-z]+(_[a-z]+)+\Z")
CODE = re.compile("`([^`]+)`")  # within a sentence; each form shows it in its own way


def clean(text: str) -> str:
    """The text with a middle dot in place of each control character.

    >>> clean("red" + chr(27) + "[31m")
    'red·[31m'
    """
    return _UNSEEN.sub("\N{MIDDLE DOT}", text)


def shorten_name(text: str, width: int) -> str:
    """A name cut to at most `width` characters in its middle, since names differ at their ends.

    >>> shorten_name("replica_4/bert/encoder/GatherV2/Cast", 20)
    'replic…GatherV2/Cast'
    """
    if len(text) <= width:
        return text
    head = max(width - 1, 0) // 3
    return text[:head] + ELLIPSIS + text[len(text) - (width - 1 - head) :] if width > 1 else ELLIPSIS[:width]


def unit_symbol(field: Field) -> str:
    """The unit as shown next to a figure or above a column; empty if it has none or each value shows it."""
    return _SYMBOLS.get(field.unit, "")


def name_words(field: Field) -> list[str]:
    """The words of a name without the unit that stands elsewhere: `host_op_percent` is `host op`, `bytes` is itself."""
    is_unit_shown = field.unit in _SYMBOLS or (field.unit in _IN_CELLS and field.name != field.unit)
    return [word for word in field.name.split("_") if not (is_unit_shown and word == field.unit)]


def visible_fields(table: Rows, one_host: bool) -> list[Field]:
    """The columns worth showing.

    Left out are explanations, columns without values, times that are all 0, names that repeat the column before, the
    only host, and the completeness of steps where all are complete.  If no column would be left, all are shown.
    """
    if table.is_asked:
        return list(table.fields)
    kept: list[Field] = []
    for field in table.fields:
        values = [row[field.name] for row in table.rows]
        if field.role is Role.MEANING or (field.role is Role.HOST and one_host) or _is_uninformative(field, values):
            continue
        if field.kind == "str" and kept and _repeats_column(values, [row[kept[-1].name] for row in table.rows]):
            continue
        kept.append(field)
    return kept or list(table.fields)


def _is_uninformative(field: Field, values: Sequence[Cell]) -> bool:
    if not values or field.role is Role.COMPLETE:
        return bool(values) and all(values)
    return all(value is None for value in values) or (field.unit == "ms" and not any(values))


def _repeats_column(values: Sequence[Cell], before: Sequence[Cell]) -> bool:
    return bool(values) and all(str(one) == str(other) for one, other in zip(values, before, strict=True))


def column_texts(field: Field, values: Iterable[Cell]) -> list[str]:
    """The texts of a column, all with the decimals that the largest value needs."""
    listed = list(values)
    if field.unit in _IN_CELLS:
        return [size_text(int(v)) if isinstance(v, int | float) else UNKNOWN for v in listed]
    decimals = _choose_decimals(field, [abs(v) for v in listed if isinstance(v, float) and math.isfinite(v)])
    texts = [_cell_text(value, decimals) for value in listed]
    return list(map(term_text, texts)) if field.role == Role.TERM else texts


def term_text(term: str) -> str:
    """A term of the reports in the words of the page; names out of a trace stay as they are.

    >>> term_text("device_compute"), term_text("input_bound"), term_text("aten::add_")
    ('device compute', 'input-bound', 'aten::add_')
    """
    if not _TERM.match(term):
        return term
    return re.sub("_(?=bound$)", "-", term).replace("_", " ")


def value_text(field: Field, value: Cell) -> str:
    """The text of a single value."""
    return column_texts(field, [value])[0]


def number_text(value: float) -> str:
    """A single number: two decimals, and more if these would be zeros.

    >>> number_text(37.8149), number_text(0.00125)
    ('37.81', '0.00125')
    """
    return f"{value:,.2f}" if abs(value) >= 0.1 or not value else f"{value:.3g}"


def duration_text(ms: float) -> str:
    """A single duration in the unit that suits it, for sentences; JSON and tables keep their unit.

    >>> [duration_text(ms) for ms in (37.8149, 0.5902, 0.000593, 12_345.6, 0)]
    ['37.81 ms', '590 us', '593 ns', '12.35 s', '0 ms']
    """
    size = abs(ms)
    if size >= _MANY_MS:
        return f"{number_text(ms / 1e3)} s"
    if size >= _ALMOST_ONE:
        return f"{number_text(ms)} ms"
    if size >= _ALMOST_ONE / 1e3:
        return f"{ms * 1e3:.3g} us"
    return f"{ms * 1e6:.3g} ns" if ms else "0 ms"


def value_with_unit(field: Field, value: Cell) -> str:
    """The text of a single value with its unit.

    >>> value_with_unit(Field("step_ms", "ms", "a time"), 12.5)
    '12.500 ms'
    """
    unit = unit_symbol(field)
    return value_text(field, value) + (f" {unit}" if unit and value is not None else "")


def _choose_decimals(field: Field, sizes: Sequence[float]) -> int:
    largest = max(sizes, default=0.0)
    if all(size.is_integer() for size in sizes):
        return 0
    if field.unit in _FEW_DECIMALS:
        return _FEW_DECIMALS[field.unit]
    if largest < 1:
        return max(_MOST_DECIMALS, 1 - math.floor(math.log10(largest)))
    return min(_MOST_DECIMALS, max(0, _DIGITS - 1 - math.floor(math.log10(largest))))


def _cell_text(value: Cell, decimals: int) -> str:
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
    """Bytes in powers of 1024: 512 B, 1.5 MiB, 24.00 GiB."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if abs(amount) < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:,.2f} GiB" if abs(amount) < 1024 else f"{amount / 1024:,.2f} TiB"
