"""What a report is made of: sections with ids, fields with roles, tables that are whole."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from draw import draw
from hypothesis import given
from hypothesis import strategies as st
from imports import PACKAGE, imports_of

import gen_types
from stepscope.analysis.registry import TOOLS, Tool
from stepscope.report import Field, Part, Prose, Role, Rows
from stepscope.report.base import encode_json, make_finite
from stepscope.report.columns import percents, rows_in_ms
from stepscope.report.sections import percent, round_ms

STEPS = """
    host main | M0--------M1--------
    host main |  I- L1     I- L2
    gpu0 s    |      K1--      K2--
"""
NOTHING = "host main | y-"


@pytest.fixture(params=["steps", "nothing"])
def trace(request):
    return draw(STEPS if request.param == "steps" else NOTHING)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_report_has_the_same_sections_whatever_was_found(tool: Tool, trace):
    report = tool.merge([tool.partial(trace)])
    body, sections = report.to_dict(), report.sections()
    ids = [section.id for section in sections]

    assert len(set(ids)) == len(ids)
    # Programs, addresses and the page look sections up by their ids.  All are listed in the page's types: a diff of
    # that file that changes an id breaks somebody's script.
    assert [each.id for each in sections if not isinstance(each, Prose)] == listed_ids(tool.name)
    assert all(report.section(name).id == name for name in ids)
    for table in (each for each in sections if isinstance(each, Rows)):
        names = {field.name for field in table.fields}
        if isinstance(body.get(table.id), list):  # a list of the JSON holds its rows
            listed = [{key: value for key, value in row.items() if key in names} for row in body[table.id]]
            assert listed == [{name: row[name] for name in listed[0]} for row in table.rows]
        if len(table.parts) > 1:
            assert {name for part in table.parts for name in part.columns} == names


def listed_ids(tool: str) -> list[str]:
    """The ids of a tool's tables and figures in the types that are made for the page."""
    _, _, rest = gen_types.types().partition(f"\n  {gen_types.key_of(tool)}: {{\n")
    return re.findall(r'(?m)^    "?([\w-]+)"?: \{', rest.partition("\n  };")[0])


def test_roles_follow_from_units_and_kinds():
    fields = [
        (Field("total_us", "us", ""), Role.DURATION),
        (Field("self_percent", "percent", ""), Role.SHARE),
        (Field("calls", "count", "", "int"), Role.COUNT),
        (Field("heap_bytes", "bytes", "", "int"), Role.SIZE),
        (Field("gib_per_s", "GiB/s", ""), Role.MEASURE),
        (Field("eligible", "", "", "bool"), Role.FLAG),
        (Field("grid_dim", "blocks", "", "ints"), Role.SHAPE),
        (Field("start_ms", "ms", "", role=Role.INSTANT), Role.INSTANT),
    ]
    assert [field.role for field, _ in fields] == [role for _, role in fields]


@pytest.mark.parametrize(("unit", "kind"), [("text", "str"), ("number", "int")])
def test_a_text_or_a_number_of_a_row_has_to_say_its_role(unit, kind):
    with pytest.raises(ValueError, match="the field 'x' needs a role"):
        Field("x", unit, "", kind)


LABELS = [("total_self_us", "Total self"), ("peak_heap_bytes", "Peak heap"), ("ms", "Time"), ("bus_gb_per_s", "Bus")]


@pytest.mark.parametrize(("name", "label"), LABELS)
def test_a_label_is_the_name_without_its_unit(name, label):
    assert Field(name, "ms", "").label == label


def test_a_label_of_its_own_stays():
    assert Field("ms", "ms", "", label="Longest").label == "Longest"


def test_a_screen_gets_a_wide_table_in_parts_with_brief_rows():
    name, one, two = Field("name", "text", "", "str", Role.NAME), Field("a_ms", "ms", ""), Field("b_ms", "ms", "")
    rows = ({"name": "void f(int)", "a_ms": 1.0, "b_ms": 2.0},)
    parts = (Part("First", ("name", "a_ms")), Part("Second", ("name", "b_ms")))
    table = Rows("rows", "Ops", (name, one, two), rows, parts=parts, brief=lambda row: row | {"name": "f"})

    first, second = table.split_for_screens()

    assert [(part.title, part.fields) for part in (first, second)] == [("First", (name, one)), ("Second", (name, two))]
    assert first.rows == second.rows == ({"name": "f", "a_ms": 1.0, "b_ms": 2.0},)
    assert table.rows == rows


def test_a_report_of_the_first_kind_has_a_section_by_its_id():
    report = next(tool for tool in TOOLS if tool.name == "system")
    found = report.merge([report.partial(draw(STEPS))])
    assert isinstance(found.section("findings"), Prose)
    with pytest.raises(KeyError):
        found.section("nothing")


def test_reports_do_not_know_their_forms():
    known = {found.target for found in imports_of("stepscope.report.base", PACKAGE / "report" / "base.py")}
    assert not [name for name in known if {"html", "terminal", "markdown", "export"} & set(name.split("."))]


def test_reports_do_not_load_their_forms():
    code = "import sys, stepscope.report; print([name for name in sys.modules if name.startswith('rich')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- cells of whole columns, held against those of one value ----------------------------------------------------------


TIMES = st.integers(0, 1 << 60)


@given(st.lists(TIMES), st.integers(-1, 1 << 60))
def test_percents_of_a_column_are_those_of_its_parts(parts: list[int], whole: int) -> None:
    assert percents(parts, whole) == [percent(part, whole) for part in parts]


@given(st.lists(st.tuples(TIMES, TIMES, TIMES)))
def test_times_of_rows_are_those_of_each(rows: list[tuple[int, int, int]]) -> None:
    assert rows_in_ms(rows) == [[round_ms(ps) for ps in row] for row in rows]


# -- a report as JSON: written without a copy, and the same as of its copy with finite numbers ------------------------


class Said(str):
    __slots__ = ("more",)


class Pair(NamedTuple):
    first: float
    second: str


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": float("nan"), "b": [float("inf"), -float("inf"), 1.5]}, b'{"a":null,"b":[null,null,1.5]}'),
        ({"rows": ({"n": 1, "at": None},)}, b'{"rows":[{"n":1,"at":null}]}'),
        (Said("said"), b'"said"'),
        (np.float64("nan"), b"null"),
        (Pair(float("nan"), "x"), b'[null,"x"]'),
        ({"path": "a\udcff", "n": float("nan")}, b'{"path":"a?","n":null}'),
        (Said("a\udcff"), b'"a?"'),
        ("é", '"é"'.encode()),
    ],
)
def test_json_of_a_value(value: Any, written: bytes) -> None:
    assert encode_json(value) == written == msgspec.json.encode(make_finite(value))


def test_what_is_no_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="holds no int64"):
        encode_json({"n": np.int64(1)})
