"""How far a reader of the code has to walk, and how small its pieces are: figures that only fall."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from draw import draw
from reporting import context_of

import stepscope
from stepscope.analysis.advice.ranking import advise

PACKAGE = Path(stepscope.__file__).parent

# From the facts of a run to its advice: calls that enter another file than the call before, and the files.
MOST_STAYS, MOST_FILES = 180, 17
PICTURE = """
host main | M0--------M1--------M2--------M3--------
host main | p-----a---p-----a---p-----a---p-----a---
"""
MOST_SMALL_HELPERS = 600  # private functions of fewer than six lines that are named once in their file


def walk(context: object) -> list[str]:
    """The files of this package that control passes through while advice is made, in order."""
    stays: list[str] = []

    def enter(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)) and stays[-1:] != [file]:
            stays.append(file)

    sys.setprofile(enter)
    try:
        advise(context)  # type: ignore[arg-type]
    finally:
        sys.setprofile(None)
    return stays


def small_helpers(package: Path) -> list[str]:
    """Private functions of fewer than six lines that are named once in the file that defines them."""
    found = []
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        named = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        found += [
            f"{path.relative_to(package)}:{node.name}"
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
            and node.name.startswith("_")
            and (node.end_lineno or 0) - node.lineno + 1 < 6
            and named[node.name] == 1
        ]
    return found


def test_from_facts_to_advice_is_no_longer_walk_than_it_was():
    stays = walk(context_of(draw(PICTURE)))
    assert len(set(stays)) <= MOST_FILES
    assert len(stays) <= MOST_STAYS


def test_there_are_no_more_small_helpers_with_one_caller():
    assert len(small_helpers(PACKAGE)) <= MOST_SMALL_HELPERS
