"""Charts of tables, as drawings: bars of shares, columns of steps, a curve over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stepscope.records import dataclass
from stepscope.report.drawing import COLOURS, LETTER, Box, Drawing, Line, Word, fit_text, ticks_between
from stepscope.report.fields import Cell, Field, Role, amount
from stepscope.report.looks import clean, size_text, value_with_unit
from stepscope.report.palette import cause_colour
from stepscope.report.sections import Rows

WIDTH = 960
_BAR, _NAMES = 22, 200  # the height of a bar with its gap, and the width of the names beside bars
_TALL, _LEFT, _FOOT = 190, 70, 24  # a chart with axes: its height, and the room for numbers
_MOST_BARS, _MOST_COLUMNS = 14, 240
_WHOLE = (97.0, 103.0)  # percent: a table whose shares add up to about all

Row = Mapping[str, Cell]


@dataclass(frozen=True)
class Bar:
    """A bar: its name, its size, and the words at its end."""

    name: str
    size: float
    text: str
    hint: str = ""


@dataclass(frozen=True)
class Stack:
    """A column: its name on the axis, and the sizes of its parts by name, from below."""

    name: str
    parts: Mapping[str, float]


def chart_of_table(table: Rows) -> Drawing | None:
    """The chart that suits a table by the roles of its columns; None if none does.

    Shares that add up to all become bars, and steps with their durations become columns.
    """
    by_role = {role: [field for field in table.fields if field.role is role] for role in Role}
    terms, shares = by_role[Role.TERM], by_role[Role.SHARE]
    if terms[:1] == list(table.fields[:1]) and terms and shares and _is_whole(table, shares[0]):
        return draw_bars(table.title, [_bar(row, terms[0], shares[0]) for row in table.rows[:_MOST_BARS]])
    steps, durations = by_role[Role.STEP], by_role[Role.DURATION]
    if steps and durations and 1 < len(table.rows) <= _MOST_COLUMNS and steps[0] is table.fields[0]:
        return draw_columns(table.title, _stacks(table.rows, steps[0], durations), durations[0].unit)
    return None


def _is_whole(table: Rows, share: Field) -> bool:
    known = [row[share.name] for row in table.rows]
    total = sum(value for value in known if isinstance(value, int | float))
    return len(table.rows) <= _MOST_BARS and _WHOLE[0] <= total <= _WHOLE[1]


def _bar(row: Row, term: Field, share: Field) -> Bar:
    value = row[share.name]
    name = str(row[term.name]).replace("_", " ")
    return Bar(name, float(value) if isinstance(value, int | float) else 0.0, value_with_unit(share, value))


def _stacks(rows: Sequence[Row], step: Field, durations: Sequence[Field]) -> list[Stack]:
    """A column for each row: of the parts of its duration if they add up to it, else of the whole."""
    whole, parts = durations[0], durations[1:]
    is_split = parts and all(_adds_up(row, whole, parts) for row in rows)
    chosen = parts if is_split else [whole]
    names = {field.name: field.label for field in chosen}
    return [Stack(str(row[step.name]), {names[f.name]: amount(row[f.name]) for f in chosen}) for row in rows]


def _adds_up(row: Row, whole: Field, parts: Sequence[Field]) -> bool:
    total = sum(amount(row[field.name]) for field in parts)
    return abs(total - amount(row[whole.name])) <= 0.03 * amount(row[whole.name])


# -- drawings ------------------------------------------------------------------------------------------------------


def choose_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name: that of a cause, else by their order, so that neighbours differ."""
    return {
        name: cause_colour(name.lower().replace(" ", "_")) or COLOURS[at % len(COLOURS)]
        for at, name in enumerate(dict.fromkeys(names))
    }


def draw_bars(title: str, bars: Sequence[Bar], width: int = WIDTH) -> Drawing:
    """Bars below each other, each with its name before it and its words at its end."""
    colours = choose_colours(bar.name for bar in bars)
    room = width - _NAMES - max([len(bar.text) * LETTER for bar in bars], default=0.0) - 14
    largest = max([bar.size for bar in bars], default=0.0) or 1.0
    boxes, words = [], []
    for at, bar in enumerate(bars):
        y = at * _BAR + 3.0
        size = room * max(bar.size, 0.0) / largest
        boxes.append(Box(_NAMES, y, max(size, 1.0), _BAR - 6, colours[bar.name], hint=bar.hint or bar.name))
        words.append(Word(_NAMES - 8, y + 12, fit_text(bar.name, _NAMES - 14), "end"))
        words.append(Word(_NAMES + size + 6, y + 12, clean(bar.text)))
    return Drawing(width, max(len(bars), 1) * _BAR + 4, title, (), tuple(boxes), tuple(words))


def draw_columns(title: str, stacks: Sequence[Stack], unit: str, width: int = WIDTH) -> Drawing:
    """Columns of parts, with an axis in `unit` and a legend of the parts that can be seen."""
    shades = choose_colours(name for stack in stacks for name in stack.parts)
    highest = max([sum(stack.parts.values()) for stack in stacks], default=0.0) or 1.0
    scale, each = (_TALL - 20) / highest, (width - _LEFT) / max(len(stacks), 1)
    boxes = [
        box for at, stack in enumerate(stacks) for box in _column(stack, _LEFT + at * each, each, scale, unit, shades)
    ]
    lines, words = _axis(highest, scale, width, unit)
    stride = -(-len(stacks) * 44 // (width - _LEFT)) or 1
    numbers = [
        Word(_LEFT + (at + 0.5) * each, _TALL + 14, stack.name, "middle", is_faint=True)
        for at, stack in enumerate(stacks)
        if at % stride == 0
    ]
    legend = _legend(stacks, highest, shades)
    height = _TALL + _FOOT + (20 if legend[0] else 0)
    return Drawing(width, height, title, tuple(lines), (*boxes, *legend[0]), (*words, *numbers, *legend[1]))


def _column(stack: Stack, x: float, width: float, scale: float, unit: str, colours: Mapping[str, str]) -> Iterator[Box]:
    y = float(_TALL)
    gap = min(3.0, width / 5)
    for name, size in stack.parts.items():
        height = size * scale
        if height > 0:
            y -= height
            hint = f"{stack.name}: {name} {size:,.3f} {unit}"
            yield Box(x + gap / 2, y, width - gap, height, colours[name], hint=hint)


def _legend(stacks: Sequence[Stack], highest: float, colours: Mapping[str, str]) -> tuple[list[Box], list[Word]]:
    """The parts that take at least a hundredth of the highest column; empty if there is only one."""
    sizes: dict[str, float] = {}
    for stack in stacks:
        for name, size in stack.parts.items():
            sizes[name] = max(sizes.get(name, 0.0), size)
    boxes, words, x = [], [], float(_LEFT)
    for name in [name for name, size in sizes.items() if size >= highest / 100]:
        boxes.append(Box(x, _TALL + _FOOT + 2, 10, 10, colours[name]))
        words.append(Word(x + 14, _TALL + _FOOT + 11, name))
        x += 14 + LETTER * len(name) + 18
    return (boxes, words) if len(boxes) > 1 else ([], [])


def _axis(highest: float, scale: float, width: int, unit: str) -> tuple[list[Line], list[Word]]:
    lines, words = [], []
    whole = 1024.0 ** int(math.log(highest, 1024)) if unit == "bytes" and highest > 1 else 1.0
    for tick in (whole * each for each in ticks_between(0.0, highest / whole, 4)):
        y = _TALL - tick * scale
        lines.append(Line(_LEFT, y, width, y))
        words.append(Word(_LEFT - 6, y + 4, _amount_text(tick, unit), "end", is_faint=True))
    return lines, words


def _amount_text(value: float, unit: str) -> str:
    return size_text(int(value)) if unit == "bytes" else f"{value:,g} {unit}".strip()


def draw_curve(title: str, points: Sequence[tuple[float, float]], unit: str, width: int = WIDTH) -> Drawing:
    """A curve of steps over time in ms: each value lasts until the next point."""
    if not points:
        return Drawing(width, 10, title)
    first, last = points[0][0], max(points[-1][0], points[0][0] + 1e-9)
    highest = max(value for _, value in points) or 1.0
    across, up = (width - _LEFT) / (last - first), (_TALL - 20) / highest
    boxes = []
    for low, high, value in _held_values(points, (last - first) / (width - _LEFT)):
        x, height = _LEFT + (low - first) * across, value * up
        hint = f"{low:,.3f} ms: {_amount_text(value, unit)}"
        boxes.append(Box(x, _TALL - height, max((high - low) * across, 0.8), height, COLOURS[0], hint=hint))
    lines, words = _axis(highest, up, width, unit)
    times = [
        Word(_LEFT + (tick - first) * across, _TALL + 14, f"{tick:,g} ms", "middle", is_faint=True)
        for tick in ticks_between(first, last, 8)
    ]
    return Drawing(width, _TALL + _FOOT, title, tuple(lines), tuple(boxes), (*words, *times))


def _held_values(points: Sequence[tuple[float, float]], least: float) -> Iterator[tuple[float, float, float]]:
    """Start, end and highest value of stretches of at least `least`, which is a pixel."""
    start, value = points[0]
    for at, new in points[1:]:
        if at - start >= least:
            yield start, at, value
            start, value = at, new
        else:
            value = max(value, new)
    yield start, points[-1][0], value
