"""What the pages promise stands in one list, and each promise has a test."""

from __future__ import annotations

import ast
import functools
import re

import pytest
from places import ROOT

DOCS = ROOT / "docs"
ROW = re.compile(r"\| (?P<words>.+) \| \[[\w-]+\]\((?P<page>[\w-]+\.md)\) \| `(?P<file>[\w/]+\.py)::(?P<test>\w+)` \|")
HEAD = {"| claim | page | test |", "| --- | --- | --- |"}

LINES = [line for line in (DOCS / "claims.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
CLAIMS = [found.groupdict() for found in map(ROW.fullmatch, LINES) if found]


@functools.cache
def on_one_line(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


@functools.cache
def names_of_tests(file: str) -> set[str]:
    return {each.name for each in ast.parse((ROOT / file).read_bytes()).body if isinstance(each, ast.FunctionDef)}


def test_every_row_is_a_claim_with_its_page_and_its_test():
    assert [line for line in LINES if line not in HEAD and not ROW.fullmatch(line)] == []
    assert len(CLAIMS) > 70


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["words"])
def test_a_claim_stands_on_its_page_and_has_its_test(claim):
    assert claim["words"] in on_one_line(claim["page"])
    assert claim["test"].startswith("test_")
    assert claim["test"] in names_of_tests(claim["file"])
