"""Drawings: boxes, lines and words at places in pixels, and their form as SVG.

An SVG takes the colour of its text from the page around it, so that it is readable on a light and on a dark one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Literal

from stepscope.records import dataclass
from stepscope.report.looks import clean

COLOURS = ("#7a93b8", "#b89a7a", "#8fae8b", "#a98bb0", "#7fb0b0", "#b08b95", "#a9a77c", "#8b8fb0")
"""Of boxes that no category has; muted, so that none is taken for one of `palette`."""

LETTER = 6.2
"""The mean width of a letter in pixels, at the size of words."""

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Box:
    """A filled rectangle; `label` is written inside where it fits, `hint` is shown on hover."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    label: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Word:
    """A line of text; `y` is its baseline."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    is_faint: bool = False


@dataclass(frozen=True)
class Line:
    """A thin line."""

    x1: float
    y1: float
    x2: float
    y2: float
    is_faint: bool = True


@dataclass(frozen=True)
class Drawing:
    """What a picture shows, back to front: lines, boxes, words.  `title` says it in a sentence."""

    width: int
    height: int
    title: str
    lines: tuple[Line, ...] = ()
    boxes: tuple[Box, ...] = ()
    words: tuple[Word, ...] = ()


def colour_of(name: str) -> str:
    """The colour of a name, the same in every picture."""
    return COLOURS[zlib.crc32(name.encode("utf-8", "replace")) % len(COLOURS)]


def fit_text(text: str, width: float) -> str:
    """The text cut at its end to a width in pixels; empty if next to nothing would be left."""
    room = int(width / LETTER)
    text = clean(text)
    return text if len(text) <= room else f"{text[: room - 1]}\N{HORIZONTAL ELLIPSIS}" if room > 3 else ""


def to_svg(drawing: Drawing) -> str:
    """The drawing as an SVG element that scales with its place and needs nothing from outside."""
    title = escape(clean(drawing.title))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width} {drawing.height}" role="img" '
        f'aria-label="{title}" style="width:100%;max-width:{drawing.width}px;height:auto;color:inherit" '
        'font-family="Inter Variable,system-ui,sans-serif" font-size="11">'
    )
    coloured = groupby(drawing.boxes, key=lambda box: box.colour)
    boxes = (_boxes(colour, tuple(group)) for colour, group in coloured)
    parts = [*map(_line, drawing.lines), *boxes, *map(_word, drawing.words)]
    return f"{head}<title>{title}</title>{''.join(parts)}</svg>"


def _line(line: Line) -> str:
    faint = "0.18" if line.is_faint else "0.7"
    ends = " ".join(f'{name}="{_number(getattr(line, name))}"' for name in ("x1", "y1", "x2", "y2"))
    return f'<line {ends} stroke="currentColor" stroke-opacity="{faint}"/>'


def _boxes(colour: str, boxes: Sequence[Box]) -> str:
    """Neighbours of one colour: one path of those that say nothing on hover, which most do not, then the others."""
    silent = "".join(_outline(box) for box in boxes if not box.hint)
    path = f'<path d="{silent}"/>' if silent else ""
    hints = ((box, escape(clean(box.hint))) for box in boxes if box.hint)
    others = "".join(f'<path d="{_outline(box)}"><title>{hint}</title></path>' for box, hint in hints)
    return f'<g fill="{colour}">{path}{others}</g>{"".join(map(_label, boxes))}'


def _outline(box: Box) -> str:
    x, y, width, height = map(_number, (box.x, box.y, box.width, box.height))
    return f"M{x} {y}h{width}v{height}h-{width}z"


def _label(box: Box) -> str:
    label = fit_text(box.label, box.width - 6)
    if not label:
        return ""
    at = f'x="{_number(box.x + 3)}" y="{_number(box.y + box.height / 2 + 4)}"'
    light = sum(int(box.colour[x : x + 2], 16) ** 2.2 * part for x, part in ((1, 0.2126), (3, 0.7152), (5, 0.0722)))
    ink = "#ffffff" if light < 0.194 * 255**2.2 else "#10141b"  # the one with more contrast
    return f'<text {at} fill="{ink}" pointer-events="none">{escape(label)}</text>'


def _word(word: Word) -> str:
    faint = ' fill-opacity="0.65"' if word.is_faint else ""
    at = f'x="{_number(word.x)}" y="{_number(word.y)}"'
    return f'<text {at} text-anchor="{word.anchor}" fill="currentColor"{faint}>{escape(clean(word.text))}</text>'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def ticks_between(low: float, high: float, most: int) -> Sequence[float]:
    """At most `most` round numbers between two others, at equal distances of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return (low,)
    step = 1e-12
    while (high - low) / step > most:
        step *= 2.5 if f"{step:e}"[0] == "2" else 2
    first = -(-low // step)
    return tuple((first + at) * step for at in range(int((high - first * step) / step + 1e-9) + 1))
