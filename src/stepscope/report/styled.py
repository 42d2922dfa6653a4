"""Lines of text with styles, for terminals, pipes and files: widths, wrapping and colours.

Written here because a library that draws terminals takes longer to import than most tables take to make.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from os import environ, get_terminal_size
from typing import Any, TextIO

Piece = tuple[str, str]
"""A text and its style: one of `STYLES`, a colour such as `#2f65ed`, two as in `#2f65ed on #67bfb4`, or empty."""
Line = tuple[Piece, ...]
STYLES: Mapping[str, str] = {"bold": "1", "dim": "2", "yellow": "33", "cyan": "36"}
"""Styles, and the parameters of the escape sequences (ECMA-48, SGR) that switch them on."""

_BLOCKS = "▏▎▍▌▋▊▉█"  # one to eight eighths of a cell, from its left
_WORD = re.compile(r"\s*\S+")
_WIDE = ("W", "F")  # East Asian widths that take two cells
_UNSEEN = ("Mn", "Me", "Cf")  # categories that take none: marks on other letters, and signs of format


def line_of(text: str, style: str = "") -> Line:
    """A line of one piece."""
    return ((text, style),)


def cell_width(text: str) -> int:
    """How many cells of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_letter_width, text))


@lru_cache(maxsize=4096)
def _letter_width(letter: str) -> int:
    if unicodedata.category(letter) in _UNSEEN:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1


def wrap_text(text: str, width: int) -> list[str]:
    """The text in lines of at most so many cells, broken between words; a longer word is broken where the line ends."""
    if cell_width(text) <= width:
        return [text]
    lines, line = [], ""
    for word in _WORD.findall(text):
        if line and cell_width(line) + cell_width(word) > width:
            lines.append(line)
            line = word.lstrip()
        else:
            line += word
        while cell_width(line) > width > 1:
            head = _head(line, width)
            lines.append(head)
            line = line[len(head) :]
    return [*lines, line]


def _head(text: str, width: int) -> str:
    """As much of the start of a text as fits."""
    taken = 0
    for at, letter in enumerate(text):
        taken += _letter_width(letter)
        if taken > width:
            return text[:at]
    return text


def wrap_below(label: str, text: str, width: int, style: str = "") -> Iterator[Line]:
    """A label and a text that wraps below itself, not below its label."""
    indent = cell_width(label)
    for at, part in enumerate(wrap_text(text, max(width - indent, 1))):
        yield line_of((label if at == 0 else " " * indent) + part, style)


def join_lines(lines: Iterable[Line], colours: bool = False) -> str:
    """The lines as text, each with its end.

    Args:
        colours: styles become escape sequences; they are left out otherwise.
    """
    return "".join(f"{_join_pieces(line, colours)}\n" for line in lines)


def _join_pieces(line: Line, colours: bool) -> str:
    if not colours:
        return "".join(text for text, _ in line).rstrip()
    return "".join(f"\x1b[{_escape(style)}m{text}\x1b[0m" if style and text else text for text, style in line).rstrip()


def _escape(style: str) -> str:
    if style in STYLES:
        return STYLES[style]
    return ";".join(
        f"{layer};2;{_red_green_blue(each)}" for layer, each in zip((38, 48), style.split(" on "), strict=False)
    )


def _red_green_blue(colour: str) -> str:
    return ";".join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))


def bar_of(parts: Sequence[tuple[float, str]], width: int) -> Line:
    """A bar of several parts, each in its colour, exact to an eighth of a cell.

    Args:
        parts: how much each is, and its colour as `#rrggbb`.
        width: of the whole bar, in cells.
    """
    whole = sum(amount for amount, _ in parts)
    if whole <= 0:
        return ()
    pieces: list[Piece] = []
    done, filled = 0.0, 0  # eighths that are drawn, those of a cell that has begun included
    for at, (amount, colour) in enumerate(parts):
        done += amount
        end = round(8 * width * done / whole)
        if filled % 8 and end // 8 > filled // 8:  # the cell in which the part before ends
            pieces[-1] = (pieces[-1][0], f"{pieces[-1][1]} on {colour}")
            filled += 8 - filled % 8
        if end - filled >= 8:
            pieces.append((_BLOCKS[-1] * ((end - filled) // 8), colour))
            filled = end - end % 8
        if end > filled and filled % 8 == 0 and at + 1 < len(parts):
            pieces.append((_BLOCKS[end % 8 - 1], colour))
            filled = end
    return tuple(pieces)


def has_colours(to: TextIO) -> bool:
    """Whether a stream shows colours: a terminal does, unless its user wants none (https://no-color.org)."""
    return to.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def screen_width(usual: int = 80) -> int:
    """The columns of the terminal, or those that COLUMNS says; `usual` where there is none.

    `shutil` has such a function, and imports four modules that unpack files with it.
    """
    said = environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return get_terminal_size(1).columns or usual
    except OSError:
        return usual


def print_lines(lines: Iterable[Line], to: TextIO | None = None) -> None:
    """Writes lines to a stream, stdout by default, with colours if it shows them."""
    stream = sys.stdout if to is None else to
    stream.write(join_lines(lines, has_colours(stream)))
    stream.flush()


class Rendered:
    """Lines that are laid out for whatever width somebody shows them in; `rich.print` and Jupyter's rich display do.

    Args:
        make_lines: the lines for a width.
    """

    def __init__(self, make_lines: Any) -> None:
        self.make_lines = make_lines

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        for line in self.make_lines(options.max_width):
            yield Text.assemble(*line, no_wrap=True)
