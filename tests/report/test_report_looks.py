"""How reports look to people: numbers, names and tables on screens of any width, and in notebooks."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from stepscope.errors import UsageError
from stepscope.records import dataclass
from stepscope.report import (
    Field,
    Figures,
    Prose,
    Report,
    Role,
    Rows,
    Section,
    clean,
    duration_text,
    number_text,
    shorten_name,
    size_text,
)
from stepscope.report.export import to_csv
from stepscope.report.html import render_page
from stepscope.report.looks import UNKNOWN, column_texts, name_words, value_text, visible_fields
from stepscope.report.markdown import render_document
from stepscope.report.styled import join_lines
from stepscope.report.terminal import report_lines


@dataclass(frozen=True, kw_only=True)
class Drawn(Report):
    """A report of given sections."""

    TOOL: ClassVar[str] = "drawn"
    parts: tuple[Section, ...] = ()

    def body(self) -> dict[str, Any]:
        return {}

    def sections(self) -> Sequence[Section]:
        return self.parts


def report(*parts: Section, warnings: tuple[str, ...] = (), hosts: tuple[str, ...] = ("h",)) -> Drawn:
    return Drawn(hosts=hosts, warnings=warnings, partial=False, parts=parts)


def screen(shown: Report, width: int, most_rows: int | None = None) -> list[str]:
    return join_lines(report_lines(shown, width, most_rows)).splitlines()


# -- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "values", "shown"),
    [
        ("ms", [852.545, 1460.138, 0.2], ["852.5", "1,460.1", "0.2"]),
        ("ms", [0.008, 0.0003], ["0.0080", "0.0003"]),
        ("ms", [21.31, 0.0001, 0.0], ["21.310", "<0.001", "0"]),
        ("us", [141933.0, 20.0], ["141,933", "20"]),
        ("us", [127736.418, 0.3], ["127,736", "<1"]),
        ("percent", [95.2143, 0.0462, 0.0, None], ["95.2", "<0.1", "0", UNKNOWN]),
        ("percent", [100.0, 0.0], ["100", "0"]),
        ("ms", [-0.0001, 5.5], [">-0.001", "5.500"]),
        ("number", [float("nan"), float("inf"), 1e15], [UNKNOWN, UNKNOWN, "1e+15"]),
        ("ms", [], []),
    ],
)
def test_a_column_has_as_many_decimals_as_its_largest_value_needs(unit: str, values: list[Any], shown: list[str]):
    assert column_texts(Field("x", unit, "", role=Role.MEASURE), values) == shown


def test_bytes_tell_their_unit():
    assert column_texts(Field("heap_bytes", "bytes", "", "int"), [512, 6208853760, -4013337088, None]) == [
        "512 B", "5.78 GiB", "-3.74 GiB", UNKNOWN,
    ]  # fmt: skip
    assert size_text(1536) == "1.5 KiB"


@pytest.mark.parametrize(
    ("value", "shown"), [(37.8149, "37.81"), (1234.5, "1,234.50"), (0.00125, "0.00125"), (0.0, "0.00")]
)
def test_a_number_alone_is_not_zero_unless_it_is(value: float, shown: str):
    assert number_text(value) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0.000593, "593 ns"), (0.0009996, "1 us"), (0.0123, "12.3 us"), (0.5902, "590 us"), (0.9996, "1.00 ms"),
        (37.8149, "37.81 ms"), (9_999.99, "9,999.99 ms"), (12_345.6, "12.35 s"), (-0.0123, "-12.3 us"), (0.0, "0 ms"),
    ],
)  # fmt: skip
def test_a_duration_alone_has_the_unit_that_suits_it(ms: float, shown: str):
    assert duration_text(ms) == shown


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [
        ("host_op_percent", "percent", "host op"),
        ("self_percent_with_idle", "percent", "self with idle"),
        ("mean_ms", "ms", "mean"),
        ("percent", "percent", ""),
        ("heap_bytes", "bytes", "heap"),
        ("count", "count", "count"),
    ],
)
def test_units_stand_beside_values_and_not_in_names(name: str, unit: str, words: str):
    assert " ".join(name_words(Field(name, unit, ""))) == words


def test_long_names_keep_both_ends():
    names = [f"replica_{i}/bert_span_labeler/bert_encoder_1/word_embeddings/GatherV2/Cast" for i in (4, 6)]
    assert shorten_name(names[0], 40) != shorten_name(names[1], 40)
    assert all(len(shorten_name(names[0], width)) == width for width in range(1, 40))
    assert shorten_name("short", 5) == "short"


def test_names_cannot_steer_the_screen():
    assert clean("a\x1b[31mb\x00\u202e") == "a·[31mb··"
    name = Field("name", "text", "", "str", Role.NAME)
    table = Rows("t", "T", (name,), ({"name": "a\x1b[2Jb [bold]c[/bold]"},))
    shown = report(table, Prose("p", "P", ("x\x1b[2Jy",)), warnings=("w\x1b[2J",))
    assert "\x1b" not in "".join(screen(shown, 80))
    assert any("[bold]c[/bold]" in line for line in screen(shown, 80))
    assert "\x1b" not in render_page(shown, 20)


# -- tables ------------------------------------------------------------------------------------------------------

NAME = Field("name", "text", "", "str", Role.NAME)
WIDE = Rows(
    "ops",
    "Ops",
    (NAME, *(Field(f"part{i}_ms", "ms", "") for i in range(12))),
    tuple({"name": "n" * 90 + str(row)} | {f"part{i}_ms": 1234.5 + i for i in range(12)} for row in range(3)),
)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_on_no_screen_is_a_number_cut(width: int):
    lines = screen(report(WIDE), width)
    assert all(len(line) <= width for line in lines)
    words = " ".join(lines).split()
    for i in range(12):
        assert words.count(f"{1234.5 + i:,.1f}") == 3
    heads = " ".join(lines)
    assert all(f"part{i}" in heads for i in range(12))


@pytest.mark.parametrize("width", [30, 36, 40, 42, 60])
def test_names_of_rows_leave_room_for_the_longest_number(width: int):
    """On a narrow screen fewer names say which row it is: a number that is cut is another number."""
    fields = (
        Field("where", "", "", "str", Role.PLACE),
        Field("type", "", "", "str", Role.TYPE),
        Field("total_bytes", "number", "", "int", Role.SIZE),
    )
    row = {"where": "on the host", "type": "annotation", "total_bytes": 1234567890123}

    assert "1,234,567,890,123" in "\n".join(screen(report(Rows("ops", "Ops", fields, (row,))), width))


def test_names_take_what_room_there_is():
    narrow = Rows("ops", "Ops", WIDE.fields[:2], WIDE.rows)
    assert any("n" * 90 + "2" in line for line in screen(report(narrow), 120))
    assert max(len(line) for line in screen(report(narrow), 60)) == 60


def test_points_of_a_column_are_below_each_other():
    table = Rows("t", "T", (NAME, Field("a_ms", "ms", "")), ({"name": "x", "a_ms": 1.5}, {"name": "y", "a_ms": 12.25}))
    assert screen(report(table), 80)[-2:] == ["x      1.500", "y     12.250"]


def test_columns_that_tell_nothing_are_left_out():
    fields = (
        Field("step", "number", "", "int", Role.STEP),
        Field("name", "text", "", "str", Role.NAME),
        Field("host", "text", "", "str", Role.HOST),
        Field("empty_us", "us", ""),
        Field("zero_ms", "ms", ""),
        Field("complete", "", "", "bool", Role.COMPLETE),
    )
    row = {"step": 7, "name": "7", "host": "h", "empty_us": None, "zero_ms": 0.0, "complete": True}

    def names(rows: tuple[dict[str, Any], ...], one_host: bool = True) -> list[str]:
        return [field.name for field in visible_fields(Rows("t", "T", fields, rows), one_host)]

    assert names((row,)) == ["step"]
    assert names((row,), one_host=False) == ["step", "host"]
    assert names((row, row | {"name": "first", "complete": False, "empty_us": 0.0, "zero_ms": 1.0})) == [
        "step", "name", "empty_us", "zero_ms", "complete",
    ]  # fmt: skip


def test_columns_that_a_reader_asked_for_are_all_shown_with_their_headings():
    fields = (Field("host", "text", "", "str", Role.HOST), Field("bytes", "bytes", "", "int"), Field("sum", "", ""))
    asked = Rows("rows", "", fields, ({"host": "h", "bytes": None, "sum": None},), is_asked=True)

    assert screen(report(asked), 80)[-2:] == ["host  bytes  sum", f"h         {UNKNOWN}    {UNKNOWN}"]


def test_what_is_left_out_of_a_long_table_is_said():
    assert screen(report(WIDE), 80, most_rows=1)[-1] == "  ... 2 more rows; --top 3 shows all"
    assert screen(report(WIDE), 80, most_rows=2)[-1] == "  ... 1 more row; --top 3 shows all"


# -- sentences ---------------------------------------------------------------------------------------------------


def test_lines_go_on_below_their_text():
    prose = Prose(
        "what_to_do", "What to do", ("because    the device waits", "  - use larger batches for it", "no label here")
    )
    assert screen(report(prose), 24)[1:] == [
        "  because    the device",
        "             waits",
        "    - use larger batches",
        "      for it",
        "  no label here",
    ]


def test_nothing_is_said_twice():
    empty = Rows("modules", "Modules", (NAME,), (), "no modules: record them")
    shown = screen(report(Prose("found", "Found", ("all is well",)), empty, warnings=("no modules: record them",)), 80)
    assert "\n".join(shown).count("no modules") == 1
    again = report(
        Prose("waits", "Waits", ("no calls",)),
        Rows("calls", "Calls", (NAME,), (), "no calls"),
        Prose("next", "Next", ()),
    )
    assert screen(again, 80) == ["Waits", "  no calls"]


def test_figures_have_their_units_and_unknown_has_none():
    fields = (Field("std_ms", "ms", ""), Field("busy_percent", "percent", ""), Field("steps", "count", "", "int"))
    figures = Figures("step_time", "Step time", fields, {"std_ms": None, "busy_percent": 12.3456, "steps": 3})
    assert [line.split() for line in screen(report(figures), 80)[1:]] == [
        ["std", UNKNOWN],
        ["busy", "12.3", "%"],
        ["steps", "3"],
    ]


# -- Python ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        pytest.param({"kernels": None, "gap_ms": None, "busy_percent": None}, False, id="unknown"),
        pytest.param({"kernels": 0, "gap_ms": 0.0, "busy_percent": None}, False, id="nothing there"),
        pytest.param({"kernels": 0, "gap_ms": 0.0, "busy_percent": 0.0}, True, id="known to be 0"),
        pytest.param({"kernels": None, "gap_ms": None, "busy_percent": 0.0}, True, id="one share"),
        pytest.param({"kernels": 3, "gap_ms": None, "busy_percent": None}, True, id="one count"),
    ],
)
def test_figures_of_which_none_is_known_are_left_out(values: dict[str, Any], shown: bool):
    fields = Field("kernels", "count", "", "int"), Field("gap_ms", "ms", ""), Field("busy_percent", "percent", "")
    drawn = report(
        Figures("gaps", "Gaps", fields, values), Rows("kernels", "Kernels", fields, (), "no kernels: record some")
    )

    for text in ("\n".join(screen(drawn, 80)), render_document(drawn, 9), render_page(drawn, 9)):
        assert ("Gaps" in text) is shown
        assert "no kernels: record some" in text


def test_a_further_table_of_which_no_amount_is_known_is_left_out():
    """Of the main one the names alone are worth a look, and one without amounts is all names."""
    name, rank, rate = (
        Field("name", "", "", "str", Role.NAME),
        Field("rank", "count", "", "int", Role.ORDINAL),
        Field("rate", "ms", ""),
    )
    unknown = Rows("ops", "Ops", (rank, name, rate), ({"rank": 1, "name": "a", "rate": None},))
    known = Rows("known", "Known", (rank, name, rate), ({"rank": 1, "name": "a", "rate": 0.0},))
    names = Rows("names", "Names", (name,), ({"name": "a"},))
    none = Rows("none", "None", (name, rate), ())

    shown = report(unknown, replace(unknown, title="Rates"), known, names, none).visible_sections()

    assert [section.title for section in shown] == ["Ops", "Known", "Names", "None"]


def test_a_long_table_is_short_in_a_notebook():
    many = Rows("ops", "Ops", (NAME,), tuple({"name": f"op{i}"} for i in range(1000)))
    html = render_page(report(many), 20)
    assert html.count("<tr>") == 21
    assert "980 more" in html


def test_notebooks_show_what_terminals_show():
    table = Rows(
        "t", "T", (NAME, Field("busy_percent", "percent", "share")), ({"name": "<b>", "busy_percent": 12.3456},)
    )
    html = render_page(report(table), 20)
    assert "&lt;b&gt;" in html
    assert ">12.3<" in html
    assert ">busy %<" in html
    assert value_text(table.fields[1], 12.3456) == "12.3"


def test_without_pandas_it_says_what_else_there_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'is not installed; pip install "stepscope\[pandas\]", or use to_arrow\('):
        report(WIDE).to_pandas()


def test_code_within_a_sentence_is_code_in_every_form():
    found = Prose("found", "Found", ("mostly `a_b<T>`, not ` or <i>",))

    assert "<li>mostly <code>a_b&lt;T&gt;</code>, not ` or &lt;i&gt;</li>" in render_page(report(found), 20)
    assert render_document(report(found), 20).splitlines()[-1] == r"- mostly `a_b<T>`, not \` or \<i\>"


# -- sheets to send ----------------------------------------------------------------------------------------------


def test_markdown_shows_names_as_they_are():
    fields = (NAME, Field("busy_percent", "percent", ""))
    rows = ({"name": "engine<float, 4>|`x`_y_", "busy_percent": 0.01}, {"name": "mm", "busy_percent": 99.0})
    found = Prose("found", "Found", ("uses *all* of <GPU_0>", "  - use larger batches"))
    figures = Figures(
        "step", "Step", (Field("mean_ms", "ms", ""), Field("std_ms", "ms", "")), {"mean_ms": 1.5, "std_ms": None}
    )
    shown = report(found, figures, Rows("ops", "Ops", fields, rows), warnings=("cut",), hosts=("a", "b"))
    assert render_document(shown, 20).splitlines() == [
        "# drawn: a, b", "",
        "> cut", "",
        "## Found", "",
        r"- uses \*all\* of \<GPU\_0\>",
        "  - use larger batches", "",
        "## Step", "",
        "| figure | value |",
        "| --- | --- |",
        "| mean | 1.500 ms |",
        f"| std | {UNKNOWN} |", "",
        "## Ops", "",
        "| name | busy % |",
        "| --- | ---: |",
        r"| `engine<float, 4>\|'x'_y_` | &lt;0.1 |",
        "| mm | 99.0 |",
    ]  # fmt: skip
    assert render_document(report(WIDE), 1).endswith("\n\nand 2 more rows\n")


def test_a_page_needs_nothing_else():
    html = render_page(report(WIDE, Prose("p", "P", ("<script>",))), 2)
    assert html.startswith("<!doctype html>")
    assert "and 1 more row</p>" in html
    assert "<script" not in html
    assert not re.search(r"(src|href|url)\s*[=(]", html)


def test_a_page_says_what_was_found_before_the_figures_and_draws_shares_as_bars():
    table = Rows(
        "ops", "Ops", (NAME, Field("busy_percent", "percent", "share")), ({"name": "mm", "busy_percent": 30.0},)
    )
    html = render_page(report(table, Prose("nothing", "Nothing", ()), Prose("found", "Found", ("mm is slow",))), 20)
    assert re.findall("<h4>(.*?)</h4>", html) == ["Found", "Ops"]
    assert "30.0%,transparent 30.0%" in html


def test_on_a_page_words_stay_whole_and_long_names_break_after_their_parts():
    rows = ({"name": "removed"}, {"name": "StatefulPartitionedCall/adam::update/Mul"})
    html = render_page(report(Rows("ops", "Ops", (NAME,), rows)), 20)
    assert '<td style="text-align:left;white-space:nowrap">removed</td>' in html
    assert ">StatefulPartitionedCall/<wbr>adam::<wbr>update/<wbr>Mul</td>" in html


# -- arranged --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Listing(Drawn):
    """A report whose main list has a name of its own, and columns of all sorts."""

    MAIN_LIST: ClassVar[str] = "pipelines"
    pipelines: tuple[dict[str, Any], ...] = (
        {"name": "a", "ms": 2.0, "parts": [{"x": 1}]},
        {"name": "b", "ms": None, "parts": [{"x": 2}]},
        {"name": "c", "ms": 3.0, "parts": [{"x": 3}]},
    )


def arranged(sort: str | None = None, *where: str) -> list[str]:
    listing = Listing(hosts=("h",), warnings=(), partial=False)
    return [row["name"] for row in listing.arranged(sort, where).pipelines]


def test_conditions_are_about_what_csv_holds():
    """Unknown is nothing there, not the word for it, and dimensions have an x between."""
    blocks = ({"name": "none", "block": [32, 4, 1]}, {"name": "b", "block": None})
    listing = Listing(hosts=("h",), warnings=(), partial=False, pipelines=blocks)

    assert [row["name"] for row in listing.arranged(where="block=32x4").pipelines] == ["none"]
    assert listing.arranged(where="block=none").pipelines == ()


@pytest.mark.parametrize(
    ("where", "kept"),
    [("limit=input_bound", ["a"]), ("limit=Input-bound", ["a"]), ("limit=device compute", ["b"]), ("limit=host", [])],
)
def test_a_condition_takes_a_term_as_it_is_kept_and_as_it_is_shown(where, kept):
    terms = ({"name": "a", "limit": "input_bound"}, {"name": "b", "limit": "device_compute"})
    listing = Listing(hosts=("h",), warnings=(), partial=False, pipelines=terms)

    assert [row["name"] for row in listing.arranged(where=where).pipelines] == kept


@pytest.mark.parametrize(("rows", "left"), [(1, 1), (0, 0), (-1, 0)])
def test_the_head_of_a_list_is_never_its_tail(rows: int, left: int):
    listing = Listing(hosts=("h",), warnings=(), partial=False)

    assert len(listing.head(rows).pipelines) == left


@pytest.mark.parametrize("name", ["a,b", "a\nb", "a\rb", "a\r\nb", 'a"b', " a", ""])
def test_whatever_a_name_holds_a_reader_of_csv_gets_it_back(name: str):
    """A line feed ends each line, and no other does."""
    fields = (Field("name", "text", "", "str", Role.NAME), Field("ms", "ms", ""))
    sheet = to_csv(report(Rows("ops", "Ops", fields, ({"name": name, "ms": None}, {"name": "next", "ms": 1.5}))))

    assert list(csv.reader(io.StringIO(sheet.decode(), newline=""))) == [["name", "ms"], [name, ""], ["next", "1.5"]]
    assert sheet.startswith(b"name,ms\n") and sheet.endswith(b"next,1.5\n")


@pytest.mark.parametrize("arguments", [("size",), (None, "size=1"), ("size", "name=nobody"), ("parts",), ("-parts",)])
def test_a_column_that_cannot_be_sorted_by_is_refused(arguments: tuple[str | None, ...]):
    with pytest.raises(UsageError, match="column"):
        arranged(*arguments)
