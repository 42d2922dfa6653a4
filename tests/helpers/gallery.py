"""Pictures and what is read from them, many in one text.

    @gallery('''
        a mark inside a mark is no step
            host main | M1-------- M2--------
            host main |   M7-        M8-
            steps = [("train 1", 0, 10), ("train 2", 11, 21)]
    ''')
    def test_bounds(picture, expected): ...

A line of words begins a case and names it; rows of a picture and expected figures, as `NAME = LITERAL`, follow.  A
literal may go on over several lines; lines with `#` are remarks.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

_ROW = re.compile(r"(host|gpu|tpu)\d*\s+\w+\s*\|")
_FIGURE = re.compile(r"(\S+) = (.*)")


def gallery(text: str) -> pytest.MarkDecorator:
    """Runs a test with each `picture` and what is `expected` of it, by the names of figures.

    Raises SyntaxError if a literal has no end, ValueError if a case expects nothing.
    """
    cases: list[tuple[str, list[str], dict[str, Any]]] = []
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    while lines:
        line = lines.pop(0)
        if _ROW.match(line):
            cases[-1][1].append(line)
        elif found := _FIGURE.fullmatch(line):
            cases[-1][2][found[1]] = _literal(found[2], lines)
        else:
            cases.append((line, [], {}))
    if empty := [title for title, _, expected in cases if not expected]:
        raise ValueError(f"nothing is expected of {empty[0]!r}")
    params = [pytest.param("\n".join(rows), expected, id=title) for title, rows, expected in cases]
    return pytest.mark.parametrize(("picture", "expected"), params)


def _literal(text: str, following: list[str]) -> Any:
    """The value of a literal that may go on in the lines that follow, which are then taken away."""
    while True:
        try:
            return ast.literal_eval(text)
        except SyntaxError:
            if not following:
                raise
            text += " " + following.pop(0)
