"""The source that a culprit names, where it is on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.program_source import find_source

LATER_NS = 2**63
PROGRAM = """import torch

@torch.compile
def update(x):
    y = x + 1
    return y

for i in range(3):
    update(i)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("update", 4, ["    4  def update(x):", "    5      y = x + 1", "    6      return y"]),
        ("update", 3, ["    3  @torch.compile", "    4  def update(x):", "    5      y = x + 1"]),
        ("<module>", 9, ["    8  for i in range(3):", "    9      update(i)"]),
        ("update", 5, ["    4  def update(x):", "    5      y = x + 1", "    6      return y"]),
        ("other", 4, []),
        ("update", 400, []),
    ],
    ids=[
        "a function",
        "from its decorators on",
        "a line of the script",
        "a traced line",
        "edited since",
        "shorter since",
    ],
)
def test_three_lines_are_shown(folder: Path, name: str, line: int, expected: list[str]) -> None:
    culprit = {"name": name, "file": "train.py", "line": line}

    found = find_source(culprit, (folder,), LATER_NS)

    assert (found.numbered() if found else []) == expected
    assert found is None or found.path == folder / "train.py"


@pytest.mark.parametrize("recorded_ns", [0, None])
def test_a_file_that_was_edited_since_is_no_evidence_of_what_ran(folder: Path, recorded_ns: int | None) -> None:
    found = find_source({"name": "update", "file": "train.py", "line": 4}, (folder,), recorded_ns)

    assert found is not None
    assert found.numbered()[:2] == ["changed since the recording; as it is now:", "    4  def update(x):"]


def test_a_culprit_without_a_file_has_none() -> None:
    assert find_source({"name": "aten::mm", "file": None, "line": None}) is None
    assert find_source(None) is None
    assert find_source({"name": "f", "file": "gone.py", "line": 3}) is None


def test_the_lines_are_those_around_the_statement_that_holds_most_of_the_time(folder: Path) -> None:
    statement = {"file": "train.py", "line": 5, "called": "", "share": 0.8}
    found = find_source({"name": "update", "file": "train.py", "line": 3, "statement": statement}, (folder,), LATER_NS)
    assert found is not None
    assert found.numbered() == ["    4  def update(x):", "    5      y = x + 1", "    6      return y"]
