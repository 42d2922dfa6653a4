"""No number decides on an answer without a word on where it is from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepscope

constants = pytest.importorskip("bench.constants", reason="the bench is in the checkout alone")

ROOMS = Path(stepscope.__file__).parent / "analysis"
_ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| (?P<value>\S+) \| \S+ \| \S+ \| \w* \|$", re.M)


def test_every_number_of_the_rules_was_moved_and_the_page_says_how_far() -> None:
    page = {row["name"]: row["value"] for row in _ROW.finditer(constants.PAGE.read_text(encoding="utf-8"))}
    numbers = [*constants.find_thresholds(), *constants.find_constants()]

    assert page == {number.name: f"{number.value:g}" for number in numbers}


@pytest.mark.parametrize("room", ["account", "facts"])
def test_every_number_of_the_model_has_its_reason_or_its_source_beside_it(room: str) -> None:
    assert [text for path in sorted((ROOMS / room).glob("*.py")) for text in _without_reason(path)] == []


def _without_reason(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.UnaryOp):
            numbers = [each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
            line, before = lines[node.lineno - 1], lines[node.lineno - 2].strip()
            if any(type(value) in (int, float) for value in numbers) and "#" not in line and before[:1] != "#":
                yield f"{path.name}: {line}"
