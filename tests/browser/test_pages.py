"""Every page in a real browser: what it shows is what the command line says, and it can be used without a mouse."""

from __future__ import annotations

import csv
import io
import json
import re
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from browsing import (
    DRAWN,
    HOSTILE,
    PageServer,
    await_address,
    objections,
    open_all,
    running,
    settle,
    store_profile,
    watched_page,
)
from draw import draw
from playwright.sync_api import expect

from stepscope.cli.main import run

MS = 10**9  # in ps
TF, JAX, TORCH = "tf-gpu-multi-worker", "jax-mi300x-conv", "torch-v100-resnet50-workers0"
CORPUS = (TF, JAX, TORCH)
TOOLS = (
    "overview",
    "steps",
    "input-pipeline",
    "op-stats",
    "kernel-stats",
    "memory-profile",
    "pod-viewer",
    "tf-data",
)
# The main table of a page, and where its rows are in the JSON.
TABLES = (
    ("steps", "steps"),
    ("op-stats", "ops"),
    ("kernel-stats", "kernels"),
    ("pod-viewer", "rows"),
    ("input-pipeline", "ops"),
)


def show(page: Any, server: PageServer, tool: str, run_name: str, **params: str) -> None:
    """Opens the page of a tool, and what it shows on demand, and waits until all of it is there."""
    query = urllib.parse.urlencode({"session": server.session(run_name), **params})
    page.goto(f"{server.address}#/{tool}?{query}")
    settle(page)
    open_all(page)


def said(capsys: pytest.CaptureFixture[str], tool: str, path: Path, *more: str) -> dict[str, Any]:
    """What the command line says of a profile, as JSON."""
    capsys.readouterr()
    assert run([tool, str(path), "--format", "json", *more]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def downloaded(page: Any, table: str) -> list[dict[str, str]]:
    """The rows of the CSV that a table gives."""
    with page.expect_download() as download:
        page.locator(f"[data-table='{table}']").get_by_role("button", name="CSV").click()
    text = Path(download.value.path()).read_bytes().decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def shown_rows(page: Any, table: str) -> list[list[str]]:
    """The texts of the rows that a table has drawn, long names whole; waits for the first."""
    page.wait_for_selector(f"[data-table='{table}'] .grid-row", state="attached")
    return page.evaluate(  # type: ignore[no-any-return]
        """table => [...document.querySelectorAll(`[data-table='${table}'] .grid-row`)].map(row =>
            [...row.querySelectorAll('.cell')].map(cell => cell.textContent.trim()))""",
        table,
    )


def as_csv(value: Any) -> str:
    """A value of the JSON as the page writes it into CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def same(shown: str, value: Any) -> bool:
    """True if a CSV cell holds a value of the JSON."""
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return shown != "" and float(shown) == value
    return shown == as_csv(value)


IN_US = {
    "ns": 1e-3,
    "us": 1,
    "\N{MICRO SIGN}s": 1,
    "ms": 1e3,
    "s": 1e6,
}  # the units of columns, behind their names


def rounds_to(text: str, value: float) -> bool:
    """True if a number on the page is the value, to the decimals that it shows."""
    plain = text.replace(",", "").replace("\N{MINUS SIGN}", "-").removesuffix("%").strip()
    if plain.startswith(("<", ">")):
        return abs(value) < abs(float(plain[1:]))
    decimals = len(plain.partition(".")[2])
    return abs(float(plain) - value) <= 0.5 * 10**-decimals * (1 + 1e-9)


def heads_of(page: Any, table: str) -> list[tuple[str, str]]:
    """Name and unit of the columns that a table shows."""
    heads = page.eval_on_selector_all(
        f"[data-table='{table}'] .grid-head button", "all => all.map(each => each.dataset.hintTitle)"
    )
    return [(name, unit.rstrip(")")) for name, _, unit in (head.partition(" (") for head in heads)]


def in_unit(name: str, unit: str, value: float) -> float:
    """A value as a column shows it: `total_us` may be shown in ms."""
    return value * IN_US.get(name.rpartition("_")[2], IN_US.get(unit, 1)) / IN_US.get(unit, 1)


# -- charts ------------------------------------------------------------------------------------------------------------


def test_charts_are_drawn_and_not_merely_there(page, page_server, corpus):
    show(page, page_server, "overview", TORCH)
    # Device compute is blue and input is orange, on every page and in both themes.
    page.wait_for_function(
        """() => {
            const shapes = [...document.querySelectorAll('.step-graph .chart svg path')];
            const drawn = colour => shapes.some(each => {
                const { width, height } = each.getBBox();
                return each.getAttribute('fill') === colour && width > 100 && height > 10;
            });
            return drawn('#2f65ed') && drawn('#df8543');
        }"""
    )


def test_the_moments_of_a_short_step_fill_their_bar(browser, tmp_path, page_problems):
    store_profile(tmp_path, "short", draw(DRAWN, column_ps=MS // 100))
    with running(tmp_path) as server, watched_page(browser, server.address, page_problems) as page:
        show(page, server, "overview", "short")
        whole, last = page.evaluate(
            """() => [document.querySelector('.moments-track'), document.querySelector('.moments-track :last-child')]
                .map(each => each.getBoundingClientRect().right)"""
        )
    assert last == pytest.approx(whole, abs=1)


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", CORPUS)
def test_the_start_page_says_what_the_command_line_says(page, page_server, corpus, capsys, profile):
    report = said(capsys, "overview", page_server.logdir / profile)
    show(page, page_server, "overview", profile)

    parts = page.eval_on_selector_all(
        ".verdict .stacked li:first-child [data-part]",
        "all => all.map(each => [each.dataset.part, each.dataset.value])",
    )
    account = [(row["cause"], row["ms"]) for row in report["account"] if row["ms"] > 0]
    assert [(name, float(value)) for name, value in parts if float(value) > 0] == account != []
    assert [row[0] for row in shown_rows(page, "account")] == [
        cause.replace("_", " ").capitalize() for cause, _ in account
    ]
    figures = page.eval_on_selector_all(
        ".summary .figure",
        """all => Object.fromEntries(all.map(each =>
            [each.querySelector('.figure-label').textContent, each.dataset.hintValue]))""",
    )
    step = report["step_time_ms"]
    if step["count"] > 1:
        assert figures["Shortest"] == f"{step['min']} ms"
        assert figures["Longest"] == f"{step['max']} ms"
        assert figures["Steps"] == str(step["count"])
    verdict = page.locator(".verdict").inner_text().lower()
    said_there = re.sub(r"(?<=\d )us\b", "µs", report["verdict_text"].replace("`", "").lower())
    assert all(half.strip() in verdict for half in said_there.split(": ", 1))
    for advice in report["advice"][:3]:
        assert advice["title"] in page.locator(".advice").inner_text()
    # Where no op takes much, the types say more; they have no name of an op before the time.
    are_types = report["top_ops"][0]["self_percent"] < 5
    key, table, time_at = ("top_op_types", "types", 1) if are_types else ("top_ops", "top", 2)
    for row, op in zip(shown_rows(page, table), report[key], strict=True):
        assert row[0] == op["category" if are_types else "name"]
        assert rounds_to(row[time_at], op["self_time_ms"])
        assert rounds_to(row[time_at + 1], op["self_percent"])


@pytest.mark.parametrize(("tool", "table"), TABLES)
def test_tables_and_their_csv_hold_what_the_command_line_says(page, page_server, corpus, capsys, tool, table):
    rows = said(capsys, tool, page_server.logdir / TORCH)["by_kernel" if table == "kernels" else "rows"]
    show(page, page_server, tool, TORCH)
    cells = downloaded(page, table)

    assert len(cells) == len(rows)
    for cell, row in zip(cells, rows, strict=True):
        assert set(cell) <= set(row)
        assert [name for name in cell if not same(cell[name], row[name])] == []
    columns = heads_of(page, table)
    assert {name for name, _ in columns} <= set(cells[0])  # which holds those too for which there is no room
    for texts, row in zip(shown_rows(page, table), rows, strict=False):
        for text, (name, unit) in zip(texts, columns, strict=True):
            if isinstance(row[name], float) and not name.endswith("bytes"):
                assert rounds_to(text, in_unit(name, unit, row[name])), (name, text, row[name])


def test_a_table_shows_the_columns_that_there_is_room_for_and_gives_all(page, page_server, corpus):
    tool, table = "kernel-stats", "kernels"
    page.set_viewport_size({"width": 1280, "height": 900})
    show(page, page_server, tool, TORCH)
    grid = page.locator(f"[data-table='{table}'] .grid")
    widths = grid.evaluate("each => [each.scrollWidth, each.clientWidth]")
    heads = grid.get_by_role("columnheader").count()
    button = page.locator(f"[data-table='{table}']").get_by_role("button", name="Choose columns")

    assert widths[0] <= widths[1]
    assert heads >= 7
    left = int((re.search(r"\((\d+) more\)", button.inner_text()) or [0, 0])[1])
    assert len(downloaded(page, table)[0]) >= heads + left
    page.set_viewport_size({"width": 2560, "height": 900})
    expect(grid.get_by_role("columnheader")).to_have_count(heads + left)


def test_memory_over_time_and_its_peak_are_the_command_lines(page, page_server, corpus, capsys):
    memories = said(capsys, "memory-profile", page_server.logdir / TORCH)["memories"]
    memory = next(each for each in memories if each["id"] == "cuda:0")
    show(page, page_server, "memory-profile", TORCH, memory=f"{memory['host']} cuda:0")

    assert page.locator(".chart[data-marks]").get_attribute("data-marks") == str(
        sum(point["heap_bytes"] > 0 for point in memory["timeline"])
    )
    peak = page.locator("[data-hint-title='In use at the peak']").get_attribute("data-hint-value")
    assert peak == f"{memory['peak']['in_use_bytes']} bytes"
    assert [int(row["allocated_bytes"]) for row in downloaded(page, "breakdown")] == [
        row["allocated_bytes"] for row in memory["breakdown"]
    ]


def test_the_graph_and_the_tables_of_tf_data_are_the_command_lines(page, page_server, corpus, capsys):
    report = said(capsys, "tf-data", page_server.logdir / TF)
    show(page, page_server, "tf-data", TF)

    iterators = page.eval_on_selector_all(
        ".graph-node", "all => all.map(e => [e.dataset.hintTitle, e.dataset.hintValue])"
    )
    assert iterators == [
        [node["long_name"], f"self {node['self_us']} \N{MICRO SIGN}s, total {node['total_us']} \N{MICRO SIGN}s"]
        for node in report["graph"]
    ]
    slow = page.locator(".graph-node.bottleneck")
    assert slow.get_attribute("data-hint-title") == report["bottleneck"]["long_name"]
    expect(page.locator(".verdict-line")).to_contain_text(report["summary"][0][1:])  # whether steps wait comes first
    expect(page.locator("main")).to_contain_text(f"{report['bottleneck']['iterator']} is the slowest stage")
    for table in ("pipelines", "executions"):
        heads = heads_of(page, table)
        assert [name for name, _ in heads] == [name for name in report[table][0] if name != "graph"]
        for texts, row in zip(shown_rows(page, table), report[table], strict=True):
            for text, (name, unit) in zip(texts, heads, strict=True):
                value = row[name]
                is_number = isinstance(value, int | float)
                assert rounds_to(text, in_unit(name, unit, value)) if is_number else text == value, (name, text, value)
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV, the main table").click()
    cells = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text("utf-8"), newline="")))
    for cell, row in zip(cells, report["pipelines"], strict=True):
        assert [name for name in cell if not same(cell[name], row[name])] == []

    # Another host's execution has numbers of its own, and its place in the timeline.
    other = next(each for each in report["executions"] if each["host"] != report["bottleneck"]["host"])
    page.get_by_label(re.compile("^Pipeline")).select_option(f"{other['pipeline']} on {other['host']}")
    await_address(page, "#/waiting/tf-data?", f"tfhost={other['host']}")
    link = page.get_by_role("link", name="In the timeline")
    expect(link).to_have_attribute("href", re.compile(f"host={re.escape(other['host'])}"))
    place = urllib.parse.parse_qs(urllib.parse.urlsplit(link.get_attribute("href")[1:]).query)
    assert float(place["begin"][0]) == other["start_ms"]


def test_the_step_range_filters_the_pages(page, page_server, corpus, capsys):
    show(page, page_server, "steps", TORCH)
    brush = page.get_by_role("slider", name="Steps to show")
    brush.focus()
    page.keyboard.press("ArrowRight")
    await_address(page, "#/summary/steps", "steps=")
    page.keyboard.press("Shift+ArrowLeft")
    await_address(page, "#/summary/steps", "steps=6-9")
    settle(page)

    assert [int(row["step"]) for row in downloaded(page, "steps")] == [6, 7, 8, 9]
    report = said(capsys, "overview", page_server.logdir / TORCH, "--steps", "6-9")
    page.keyboard.press("g")
    page.keyboard.press("s")
    await_address(page, "#/summary?")
    settle(page)
    shortest = page.locator(".summary .figures .figure").first
    expect(shortest).to_have_attribute("data-hint-value", f"{report['step_time_ms']['min']} ms")
    page.get_by_role("button", name="Show all steps").click()
    await_address(page, without="steps=")


def test_a_row_of_the_steps_leads_to_the_step_above_the_median_one(page, page_server, corpus, axe):
    show(page, page_server, "steps", TORCH)
    page.locator('[data-table="steps"] .grid-row', has_text="ProfilerStep#8").click()
    page.get_by_role("link", name="Compare with the median step").click()
    await_address(page, "#/summary/steps", "beside=8")
    settle(page)

    expect(page.locator("main")).to_contain_text("Step 8 is 5.18 ms longer than step 5, the median of the others")
    assert page.locator(".moments-track").count() == 2
    changes = [row[3] for row in shown_rows(page, "differences")]
    assert changes[:2] == ["+1.904", "+1.219"]
    page.evaluate(axe)
    assert objections(page) == []


# -- use ---------------------------------------------------------------------------------------------------------------


def test_sorting_filtering_and_choosing_columns_change_the_table_its_csv_and_the_address(page, page_server, corpus):
    show(page, page_server, "op-stats", TORCH)
    page.keyboard.press("/")
    page.keyboard.type("side=host self_percent > 1")
    expect(page.locator("[data-table=ops] .table-count")).to_contain_text(" of ")
    count = page.get_by_role("columnheader", name="Count")
    count.get_by_role("button").click()
    expect(count).to_have_attribute("aria-sort", "descending")
    rows = downloaded(page, "ops")

    assert rows
    assert {row["side"] for row in rows} == {"host"}
    assert all(float(row["self_percent"]) > 1 for row in rows)
    counts = [int(row["occurrences"]) for row in rows]
    assert counts == sorted(counts, reverse=True)
    assert [row[3] for row in shown_rows(page, "ops")] == [row["name"] for row in rows]
    page.get_by_role("button", name="Choose columns").first.click()
    page.get_by_label("Rank").uncheck()
    expect(page.get_by_role("columnheader", name="Rank")).to_have_count(0)
    assert "rank" not in downloaded(page, "ops")[0]

    before = page.evaluate("location.hash")
    page.reload()
    settle(page)
    assert page.evaluate("location.hash") == before
    assert [row["name"] for row in downloaded(page, "ops")] == [row["name"] for row in rows]


def test_a_filter_that_makes_no_sense_says_so_and_hides_nothing(page, page_server, corpus):
    show(page, page_server, "op-stats", TORCH)
    page.keyboard.press("/")
    page.keyboard.type("speed > 1")

    expect(page.locator("[data-table=ops] .table-count")).to_contain_text("there is no column")
    assert len(shown_rows(page, "ops")) > 10


def test_the_page_is_used_by_keys_alone(page, page_server, corpus):
    show(page, page_server, "overview", TORCH)
    for keys, place in (("ge", "summary/steps"), ("go", "compute/op"), ("gk", "compute/kernel"), ("g6", "memory")):
        for key in keys:
            page.keyboard.press(key)
        await_address(page, f"#/{place}?")
    page.go_back()
    await_address(page, "#/compute/kernel?")
    settle(page)

    page.get_by_role("grid", name="Kernels", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    details = page.get_by_role("dialog", name="Kernels", exact=True)
    link = details.get_by_role("link", name="Find this kernel in the timeline")
    name = details.locator(".details-name").inner_text()
    assert urllib.parse.parse_qs(urllib.parse.urlsplit(link.get_attribute("href")[1:]).query)["find"] == [name]
    page.keyboard.press("Escape")
    details.wait_for(state="detached")
    expect(page.get_by_role("grid", name="Kernels", exact=True)).to_be_focused()

    page.keyboard.press("?")
    page.get_by_role("heading", name="Help and keys").wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Help and keys")).to_have_count(0)
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("t")
    page.wait_for_function("before => document.documentElement.dataset.theme !== before", arg=theme)


def test_the_head_of_a_column_says_what_it_means_and_in_which_unit(page, page_server, corpus):
    show(page, page_server, "steps", TF)
    page.get_by_role("columnheader", name="Duration").first.get_by_role("button").hover()
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text("duration_ms (ms)")
    assert len(tip.inner_text()) > 40


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_hostile_names_are_text(page, page_server):
    for tool in TOOLS:
        show(page, page_server, tool, "hostile")
        assert page.evaluate("() => window.hostile") is None, tool
        expect(page.locator("main img")).to_have_count(0)
    show(page, page_server, "op-stats", "hostile")
    assert any(HOSTILE.split()[0] in text for row in shown_rows(page, "ops") for text in row)


def test_what_is_not_there_is_answered_with_what_there_is(page, page_server, page_problems):
    page.goto(f"{page_server.address}#/summary?session=nothing")
    page.get_by_role("alert").get_by_role("link", name="drawn", exact=True).click()
    expect(page.locator(".verdict")).to_have_count(1)

    show(page, page_server, "nonsense", "drawn")
    expect(page.get_by_role("alert")).to_contain_text("There is no tool named")
    page.get_by_role("alert").get_by_role("link", name="Ops", exact=True).click()
    await_address(page, "#/compute/op?")

    assert all("404" in problem for problem in page_problems)
    page_problems.clear()


def test_without_a_session_in_the_address_the_newest_is_shown(page, page_server):
    page.goto(page_server.address)

    newest = page_server.get("api/sessions")["sessions"][0]["id"]
    await_address(page, "#/summary?", f"session={newest}")
    settle(page)


def test_the_list_of_sessions_opens_at_the_one_that_is_shown(page, page_server):
    last = page_server.get("api/sessions")["sessions"][-1]
    page.set_viewport_size({"width": 1280, "height": 420})
    page.goto(f"{page_server.address}#/summary?session={last['id']}")

    page.get_by_role("button", name="Choose a session").click()

    expect(page.locator(".choice", has_text=last["run"]).and_(page.locator("[aria-pressed=true]"))).to_be_in_viewport()


# -- capture -----------------------------------------------------------------------------------------------------------


def answering(page: Any, server: PageServer, answers: list[dict[str, Any]]) -> list[Any]:
    """Lets the server's capture answer so; returns what the page asks, as it asks."""
    asked: list[Any] = []
    config = server.get("api/config") | {"capture": True}

    def capture(route: Any) -> None:
        request = route.request
        if request.method == "POST":
            assert request.headers["x-stepscope"] == "1"
            asked.append(json.loads(request.post_data))
            route.fulfill(status=201, json={"id": "1"})
        elif request.method == "DELETE":
            asked.append("cancel")
            answers[:] = [{"state": "cancelled", "seconds_left": None, "workers": [], "session": None, "error": None}]
            route.fulfill(json=answers[0])
        else:
            route.fulfill(json=answers.pop(0) if len(answers) > 1 else answers[0])

    page.route(re.compile(r"/api/config$"), lambda route: route.fulfill(json=config))
    page.route(re.compile(r"/api/capture(/1)?$"), capture)
    return asked


def progress(state: str, **more: Any) -> dict[str, Any]:
    worker = {"address": "localhost:6009", "state": "recording", "message": "2 s", "bytes": None}
    return {"state": state, "seconds_left": None, "workers": [worker], "session": None, "error": None, **more}


def test_a_capture_shows_its_workers_can_be_cancelled_and_says_what_went_wrong(page, page_server):
    failed = progress("failed", error="localhost:6009: nobody listens there")
    asked = answering(page, page_server, [progress("running", seconds_left=60)])
    show(page, page_server, "overview", "drawn")
    page.keyboard.press("c")
    capture = page.get_by_role("button", name="Capture 2 s")
    expect(capture).to_be_disabled()
    page.get_by_label("Addresses").fill("nonsense")
    expect(page.get_by_role("alert")).to_contain_text("not an address")
    page.get_by_label("Addresses").fill("localhost:6009")
    capture.click()
    page.get_by_text("60 s left").wait_for()
    expect(page.locator(".workers")).to_contain_text("recording")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled").wait_for()
    assert asked[-1] == "cancel"

    page.unroute_all()
    answering(page, page_server, [failed])
    page.get_by_role("button", name="Change the settings").click()
    page.get_by_role("button", name="Capture 2 s").click()
    page.get_by_text("nobody listens there").wait_for()


def test_a_printed_page_is_whole_and_light_and_the_screen_stays_as_it_was(page, page_server, corpus):
    page.emulate_media(color_scheme="dark")
    show(page, page_server, "overview", TORCH)
    page.evaluate(
        "window.addEventListener('beforeprint', () => { window.printed = document.documentElement.dataset.theme; })"
    )

    paper = page.pdf()

    assert len(re.findall(rb"/Type\s*/Page\b", paper)) > 1, "what is below the fold is on no sheet"
    assert page.evaluate("window.printed") == "light"
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator(".rail")).to_be_hidden()
    expect(page.locator(".topbar-end")).to_be_hidden()
