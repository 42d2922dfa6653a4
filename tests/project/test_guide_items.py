"""Each item of the guide has a test; what its row names is declared, and what has no rule stands on its page."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import replace

import pytest
from draw import Sort, draw
from places import ROOT
from test_claims import names_of_tests

from stepscope.analysis.advice.rule import own_rules
from stepscope.analysis.registry import TOOLS, tool_named
from stepscope.model import EventKind

TEXT = (ROOT / "docs/guide-items.md").read_text(encoding="utf-8")
HEAD = {"| item | state | where, or why not | test |", "| --- | --- | --- | --- |"}
ROW = re.compile(
    r"\| (?P<item>.+) \| (?P<state>works|partly|no) \| (?P<where>.+) \| "
    r"(?:`(?P<file>[\w/]+\.py)::(?P<test>test_\w+)`)? ?\|"
)
LINES = [line for line in TEXT.splitlines() if line.startswith("|") and line not in HEAD]
ITEMS = [found.groupdict() for found in map(ROW.fullmatch, LINES) if found]
TOOL_OF = {
    "Overview page": "overview", "Input pipeline analyzer": "input-pipeline", "TensorFlow stats": "op-stats",
    "GPU kernel stats": "kernel-stats", "Memory profile tool": "memory-profile", "Pod viewer": "pod-viewer",
    "tf.data bottleneck analysis": "tf-data",
}  # fmt: skip


def test_every_row_is_an_item_and_the_page_counts_them():
    assert [line for line in LINES if not ROW.fullmatch(line)] == []
    states = [item["state"] for item in ITEMS]
    stated = re.search(r"these (\d+) items .*: (\d+) work, (\d+) partly, (\d+) not", TEXT)
    assert stated is not None
    assert [int(number) for number in stated.groups()] == [
        len(states), *(states.count(state) for state in ("works", "partly", "no"))
    ]  # fmt: skip


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["item"])
def test_an_item_has_its_test(item):
    if item["state"] == "no" and item["test"] is None:
        return  # what does not work, and is nowhere said to
    assert item["test"] in names_of_tests(f"tests/{item['file']}")


@functools.cache
def declared(tool: str) -> str:
    return (ROOT / f"docs/tools/{tool}.md").read_text(encoding="utf-8")


NAMES = [
    (TOOL_OF[section], name)
    for section, _, rows in (part.partition("\n") for part in TEXT.split("\n## "))
    if section in TOOL_OF
    for row in filter(None, map(ROW.fullmatch, rows.splitlines()))
    for name in re.findall(r"`([a-z][a-z_.0-9]+)`", row["where"])
]


@pytest.mark.parametrize(("tool", "name"), NAMES)
def test_a_field_that_an_item_names_is_declared_by_the_tool(tool, name):
    pages = declared(tool) + declared("overview")
    of_report = json.dumps(tool_named(tool).merge([tool_named(tool).partial(draw("host main | M0--M1--"))]).to_dict())
    is_field = all(f"`{part}`" in pages or f'"{part}"' in of_report for part in name.split("."))
    assert is_field or name in {each.name for each in TOOLS} | {rule.id for rule in own_rules()}


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("Loader alone", "**The loader alone.**"), ("Synthetic data", "**Synthetic data.**"),
        ("L2 fetch granularity", "L2 cache"),
        ("`report_tensor_allocations_upon_oom`", "report_tensor_allocations_upon_oom"),
        ("Devices kept busy, data sent in parallel", "in parallel"),
    ],
)  # fmt: skip
def test_a_practice_without_a_rule_stands_on_its_page(item, words):
    (row,) = [each for each in ITEMS if each["item"] == item]

    assert "docs/best-practices.md" in row["where"]
    assert words in (ROOT / "docs/best-practices.md").read_text(encoding="utf-8")


def test_the_summary_says_at_once_that_tensorflows_own_option_records_no_python():
    picture = "host main | M0--------M1--------M2--------\nhost main | a--       a--       a--"
    tool = tool_named("overview")
    said = []
    # Once the thread is seen to run all the time, and once nothing says what it does.
    for trace in (draw(picture, usage=[(0, 30, 30, 0)]), draw(picture)):
        said.append(tool.merge([tool.partial(replace(trace, framework="tensorflow"))]).summary_lines())

    python, silent = said
    assert "           to see the line of the program, record with `stepscope run --python-tracer-level 1`" in python[4]
    assert any(
        "see what the host does" in line and "`stepscope run --python-tracer-level 1`" in line for line in silent
    )
    for lines in said:
        assert any("TensorFlow's own option records no Python" in line for line in lines)
        assert len(lines) <= 10


def test_where_python_is_not_the_longest_the_summary_leaves_it_out():
    tool = tool_named("overview")
    trace = draw(
        "host main | M0--------M1--------\nhost main | I-------  I-------", {"I": Sort(EventKind.INPUT_WAIT, "next")}
    )

    assert not any("to see the line" in line for line in tool.merge([tool.partial(trace)]).summary_lines())
