"""Every page of every tool in a real browser: numbers that explain themselves, charts that lead on, and comparisons."""

from __future__ import annotations

import json
import re
import urllib.parse
from operator import itemgetter
from statistics import mean
from typing import Any

import pytest
from browsing import await_address, settle, until
from playwright.sync_api import expect
from test_pages import CORPUS, TF, TORCH, downloaded, said, same, show, shown_rows

from stepscope.analysis.compare.predicted import predicted_lines
from stepscope.analysis.registry import TOOLS
from stepscope.cli.main import run

TIMES = "\N{MULTIPLICATION SIGN}"
QWEN, RANKS, WORKERS4 = "torch-h100-qwen", "torch-multirank", "torch-v100-resnet50-workers4"

# Texts that are a number, with or without a unit, and have no explanation on themselves or around them.
UNEXPLAINED = """() => {
    const number = /^[-+\u2212<>~]?\\s?[\\d,]*\\.?\\d+\\s?(ns|\u00b5s|ms|s|min|%|\u00d7|B|[KMGT]iB)?$/;
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const found = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const at = node.parentElement;
        if (!number.test(node.textContent.trim())) continue;
        if (at.closest('option, .long-name, .picked, .slider, [role=img]')) continue;
        const explained = at.closest('[data-hint], [data-hint-value]');
        if (!explained?.dataset.hint && !explained?.dataset.hintTitle) found.push(at.outerHTML.slice(0, 160));
    }
    return found;
}"""


def query_of(href: str) -> dict[str, str]:
    """The parameters of an address of the page."""
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(href.removeprefix("#")).query))


def tools_with_data(page, page_server, profile: str) -> set[str]:
    session = page_server.session(profile)

    def known() -> dict[str, bool | None]:
        return {tool["name"]: tool["has_data"] for tool in page_server.get(f"api/sessions/{session}")["tools"]}

    until(page, lambda: known() and None not in known().values())
    return {name for name, has_data in known().items() if has_data}


@pytest.mark.parametrize("profile", CORPUS)
def test_every_page_draws_its_charts_and_explains_its_numbers(page, page_server, corpus, profile):
    """All pages of PyTorch's session; of the others those that it has nothing for, and those that only they lack."""
    shown = {each.name for each in TOOLS}
    if profile != TORCH:
        shown &= tools_with_data(page, page_server, profile) ^ tools_with_data(page, page_server, TORCH) | {"overview"}
    for tool in sorted(shown):
        show(page, page_server, tool, profile)
        assert page.locator("main .state.failed").count() == 0, tool
        empty = page.locator("main .state.empty")
        if empty.count():
            assert len(empty.inner_text()) > 60, tool
            continue
        marks = page.eval_on_selector_all("main [data-marks]", "all => all.map(each => Number(each.dataset.marks))")
        assert all(marks), tool
        assert page.evaluate(UNEXPLAINED) == [], tool
        silent = page.eval_on_selector_all(
            "main .figure, main .head button", "all => all.filter(e => !e.dataset.hint).map(e => e.textContent)"
        )
        assert silent == [], tool
        unreachable = page.eval_on_selector_all(
            "main :is([role=grid], [role=slider], .graph-node, .figure)",
            "all => all.filter(e => e.tabIndex !== 0).map(e => e.outerHTML)",
        )
        assert unreachable == [], tool
        sideways = page.evaluate(
            "(() => { const m = document.querySelector('main'); return m.scrollWidth - m.clientWidth })()"
        )
        assert sideways <= 0, tool


@pytest.mark.parametrize(
    "profile, tool",
    [(TORCH, "kernel-stats"), (TORCH, "op-shapes"), ("jax-mi300x-conv", "op-profile")],
)
def test_the_shares_of_a_chart_add_up_to_the_whole(page, page_server, corpus, profile, tool):
    show(page, page_server, tool, profile)

    texts = page.locator(".ranked").first.inner_text()
    shares = [float(each) for each in re.findall(r"([\d.]+)\s%", texts)]
    assert sum(shares) == pytest.approx(100, abs=0.06 * len(shares))  # each is rounded to a tenth


def test_what_has_no_line_is_said_and_a_row_of_its_own_in_the_table(page, page_server, corpus):
    show(page, page_server, "compute/line", TORCH)

    expect(page.get_by_label("Findings")).to_contain_text("26.6 % of the 653 ms that ops take on the host has no line")
    expect(page.locator("main [role=grid]").first).to_contain_text("no line recorded")


# -- charts lead on ---------------------------------------------------------------------------------------------------


def test_arrow_keys_go_from_step_to_step_and_into_the_timeline(page, page_server, corpus, capsys):
    steps = said(capsys, "steps", page_server.logdir / TORCH)["rows"]
    for tool in ("overview", "steps"):
        show(page, page_server, tool, TORCH)
        graph = page.locator(".column-graph").first
        graph.focus()
        for step in steps[:2]:
            page.keyboard.press("ArrowRight")
            expect(graph.locator(".picked strong")).to_contain_text(str(step["step"]))
        expect(graph.get_by_role("link", name="Show in the timeline")).to_have_count(1)
        page.keyboard.press("Enter")
        await_address(page, "#/timeline?", "begin=")
        place = query_of(page.evaluate("location.hash"))
        assert float(place["begin"]) == pytest.approx(steps[1]["start_ms"], abs=1e-6), tool
        assert float(place["end"]) == pytest.approx(steps[1]["start_ms"] + steps[1]["duration_ms"], abs=1e-6), tool


def test_a_drag_across_a_chart_narrows_it_to_what_lies_there(page, page_server, corpus):
    show(page, page_server, "memory-profile", TORCH)
    chart = page.locator(".chart[data-drawn=true]")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    first, last = (box["x"] + share * box["width"] for share in (0.4, 0.5))
    page.mouse.move(first, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(last, box["y"] + 150, steps=4)
    page.mouse.up()

    whole = page.get_by_role("button", name="Show all")
    expect(whole).to_have_count(1)
    expect(page.locator(".picked")).to_have_count(0)  # a drag is no click
    whole.click()
    expect(whole).to_have_count(0)


def test_a_click_on_a_column_or_on_a_moment_of_memory_leads_to_the_timeline(page, page_server, corpus, capsys):
    show(page, page_server, "memory-profile", TORCH)
    chart = page.locator(".chart[data-drawn=true]")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    chart.click(position={"x": box["width"] / 2, "y": 150})
    place = query_of(page.locator(".picked").get_by_role("link", name="Show in the timeline").get_attribute("href"))
    events = said(capsys, "memory-profile", page_server.logdir / TORCH)["memories"][0]["timeline"]
    assert events[0]["time_ms"] <= float(place["begin"]) < float(place["end"]) <= events[-1]["time_ms"]

    show(page, page_server, "pod-viewer", RANKS)
    graph = page.locator(".column-graph")
    graph.focus()
    page.keyboard.press("ArrowRight")
    href = graph.get_by_role("link", name="Show in the timeline").get_attribute("href")
    assert query_of(href)["host"] in {"rank0", "rank1"}


def test_hosts_open_at_the_step_in_which_they_differ_most_and_lead_to_it(page, page_server, corpus, capsys):
    found = said(capsys, "pod-viewer", page_server.logdir / RANKS)
    worst = max(found["slowest"], key=lambda row: row["behind_ms"])
    steps = said(capsys, "steps", page_server.logdir / RANKS)["rows"]
    row = next(row for row in steps if (row["step"], row["host"]) == (worst["step"], worst["host"]))
    show(page, page_server, "pod-viewer", RANKS)

    graph = page.locator(".card", has_text=f"Step {worst['step']}").locator(".column-graph")
    graph.focus()
    for _ in range(1 + [row["host"] for row in found["rows"] if row["step"] == worst["step"]].index(worst["host"])):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    await_address(page, "#/timeline?", "begin=")
    place = query_of(page.evaluate("location.hash"))
    assert (place["host"], float(place["begin"])) == (worst["host"], pytest.approx(row["start_ms"], abs=1e-6))


@pytest.mark.parametrize("profile", [TORCH, RANKS])
def test_the_account_leads_to_the_step_that_it_is_of(page, page_server, corpus, capsys, profile):
    report = said(capsys, "overview", page_server.logdir / profile)
    of = report["account_step"]
    rows = said(capsys, "steps", page_server.logdir / profile)["rows"]
    step = next(row for row in rows if (row["step"], row["host"]) == (of["step"], of["host"]))
    show(page, page_server, "overview", profile)
    bars = page.locator(".verdict .stacked li:not(.thin) .stacked-part")  # the thin ones are of devices
    expect(bars).to_have_count(sum(row["ms"] > 0 for row in report["account"]))

    page.get_by_role("link", name="Show in the timeline: Critical path").click()
    await_address(page, "#/timeline?", "begin=")
    place = query_of(page.evaluate("location.hash"))
    assert float(place["begin"]) == pytest.approx(step["start_ms"], abs=1e-6)
    assert float(place["end"]) == pytest.approx(step["start_ms"] + step["duration_ms"], abs=1e-6)
    assert place.get("host") == (of["host"] if len(report["hosts"]) > 1 else None)


def test_a_stage_of_the_input_leads_to_its_longest_op(page, page_server, corpus, capsys):
    rows = said(capsys, "input-pipeline", page_server.logdir / TF)["rows"]
    show(page, page_server, "input-pipeline", TF)

    stage = page.locator(".ranked a", has_text="Preprocessing")
    longest = max((row for row in rows if row["category"] == "preprocessing"), key=lambda row: row["self_ms"])
    assert query_of(stage.get_attribute("href"))["find"] == longest["op"]
    stage.click()
    expect(page.locator(".tl-count")).to_contain_text("1 of")


def test_the_documentation_of_an_advice_is_there_without_a_network(page, page_server, corpus, capsys):
    first = said(capsys, "advice", page_server.logdir / TORCH)["advice"][0]
    show(page, page_server, "advice", TORCH)
    page.locator(f"[data-advice='{first['id']}']").get_by_role("link", name="means").click()

    pane = page.get_by_role("dialog", name=first["class"].replace("_", " "))
    expect(pane).to_contain_text("How the gain is predicted")
    for heading in ("When it is reported", "How sure it is"):
        expect(pane).to_contain_text(heading)
    rules = page.locator(".docs-rules li").all_inner_texts()
    assert rules and all(rule.startswith("From ") for rule in rules)
    await_address(page, "#/summary/advice?", f"about={first['class']}")
    page.keyboard.press("Escape")
    expect(pane).to_have_count(0)
    await_address(page, "#/summary/advice?", without="about=")


def test_advice_leads_to_its_rows_and_intervals(page, page_server, corpus, capsys):
    report = said(capsys, "advice", page_server.logdir / TORCH)
    show(page, page_server, "advice", TORCH)

    for advice in report["advice"]:
        card = page.locator(f"[data-advice='{advice['id']}']")
        text = card.inner_text()
        assert advice["title"] in text
        assert f"{round(100 * advice['confidence'])} % sure" in text
        reasoning = advice["reasoning"].replace(" -> ", " \N{RIGHTWARDS ARROW} ")
        assert reasoning[1:] in text  # a sentence begins with a capital letter
        hrefs = [each.get_attribute("href") for each in card.locator(".evidence-row").all()]
        places = [query_of(href) for href in hrefs if href.startswith("#/timeline")]
        places.sort(key=lambda place: float(place["evidence"].partition("_")[0]))
        intervals = sorted(advice["intervals"], key=itemgetter("start_ms"))
        for place, interval in zip(places, intervals, strict=True):
            assert float(place["begin"]) <= interval["start_ms"] < interval["end_ms"] <= float(place["end"])
    first = report["advice"][0]
    assert f"{first['predicted_speedup']}{TIMES} faster" in page.locator(".gain").first.get_attribute("data-hint-value")
    assert f"about {first['predicted_speedup']:.2f}{TIMES} faster" in page.locator(".gain").first.inner_text()


def test_a_module_opens_up_and_the_address_says_so(page, page_server, corpus, capsys):
    rows = said(capsys, "modules", page_server.logdir / QWEN)["rows"]
    show(page, page_server, "modules", QWEN)
    layer = next(row for row in rows if row["depth"] == 1)
    block = page.locator(f".flame-block[aria-label^='{layer['module']}:']")
    assert f"total {layer['device_us'] / 1e3:.3g} ms" in block.get_attribute("aria-label")
    block.click()
    await_address(page, "#/compute/layer?", f"module={layer['id']}")

    back = page.get_by_role("button", name="All modules")
    back.wait_for()  # the picture is of the layer now
    names = page.eval_on_selector_all(".flame-block", "all => all.map(e => e.getAttribute('aria-label').split(':')[0])")
    inside = [row["module"] for row in rows if row["parent"] == layer["id"]]
    assert names[0] == layer["module"]
    assert set(inside) <= set(names)
    back.click()
    await_address(page, "#/compute/layer?", without="module=")


def test_distributed_bars_are_the_steps_of_the_ranks(page, page_server, corpus, capsys):
    said_of = said(capsys, "distributed", page_server.logdir / RANKS)
    lengths = [
        sum(step["duration_ms"] for step in said_of["steps"] if step["host"] == row["host"]) for row in said_of["rows"]
    ]
    show(page, page_server, "distributed", RANKS)

    expect(page.locator(".stacked-total")).to_have_count(len(lengths))
    expect(page.get_by_text("in its steps, all together")).to_be_visible()
    totals = page.eval_on_selector_all(".stacked-total", "all => all.map(e => parseFloat(e.dataset.hintValue))")
    assert totals == pytest.approx(lengths, abs=5e-3)


# -- comparison -------------------------------------------------------------------------------------------------------


# The page's table, the list of the command's JSON that it shows, and what names a row of it.
OF_THE_COMMAND = {
    "overview": ("breakdown", "cause"),
    "steps": ("spread", "step_time"),
    "op-stats": ("rows", "name"),
    "kernel-stats": ("kernels", "kernel"),
    "memory-profile": ("memories", "memory"),
}


def compared(capsys: pytest.CaptureFixture[str], before: str, after: str, *more: str) -> dict[str, Any]:
    """What `stepscope compare` says, as JSON."""
    capsys.readouterr()
    assert run(["compare", before, after, "--format", "json", *more]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize("tool", OF_THE_COMMAND)
def test_a_page_compares_as_the_command_does(page, page_server, corpus, capsys, tool):
    before, after = (str(page_server.logdir / name) for name in (WORKERS4, TORCH))
    told = compared(capsys, before, after)
    show(page, page_server, tool, TORCH, **{"with": page_server.session(WORKERS4)})
    rows = side_by_side(page)

    expect(page.locator(".compare-line")).to_have_text(re.compile(re.escape(told["verdict_text"][5:20])))
    said_there = {"What the advice predicted": list(predicted_lines(told["foretold"])), "Notes": told["notes"]}
    assert said_there["What the advice predicted"]
    for heading, sentences in said_there.items():
        shown_there = page.get_by_role("list", name=heading).get_by_role("listitem").all_inner_texts()
        assert shown_there == [text[0].upper() + text[1:] for text in sentences]
    key, name = OF_THE_COMMAND[tool]
    assert len(rows) == len(told[key]) > 0
    for row, expected in zip(rows, told[key], strict=True):
        texts = {name: str(expected[name])} if tool not in ("overview", "steps") else {}
        shown = {column for column in row if column.startswith(("before", "after", "difference", "change"))}
        assert len(shown) >= 4
        assert [column for column in shown if not same(row[column], expected[column])] == []
        assert {column: row[column] for column in texts} == texts


def side_by_side(page: Any, name: str = "compare") -> list[dict[str, str]]:
    """The rows of a comparison; one of a few rows has no CSV, its numbers are those that its cells explain."""
    table = page.locator(f"[data-table={name}]")
    table.wait_for()
    if table.get_by_role("button", name="CSV").count():
        return downloaded(page, name)
    return page.evaluate(  # type: ignore[no-any-return]
        """name => {
            const table = document.querySelector(`[data-table=${name}]`);
            const names = [...table.querySelectorAll('.head button')].map(each => each.dataset.hintTitle.split(' ')[0]);
            const value = cell => (cell.dataset.hintValue ?? cell.textContent).trim().split(' ')[0];
            const text = cell => cell.classList.contains('unknown') ? '' : value(cell);
            return [...table.querySelectorAll('.grid-row')].map(row => Object.fromEntries(
                [...row.querySelectorAll('.cell')].map((cell, at) =>
                    [names[at], cell.classList.contains('right') ? text(cell) : cell.textContent.trim()])));
        }""",
        name,
    )


def test_what_is_advised_of_two_sessions_is_compared(page, page_server, corpus, capsys):
    show(page, page_server, "advice", TORCH, **{"with": page_server.session(WORKERS4)})
    rows = side_by_side(page)

    for side, name in (("after", TORCH), ("before", WORKERS4)):
        saved: dict[str, float] = {}
        for advice in said(capsys, "advice", page_server.logdir / name)["advice"]:
            if advice["predicted_step_time_ms"] is not None:
                kind = advice["class"].replace("_", " ").capitalize()
                saved[kind] = max(saved.get(kind, 0), advice["step_time_ms"] - advice["predicted_step_time_ms"])
        shown = {row["class"]: float(row[f"{side}_ms"]) for row in rows if row[f"{side}_ms"]}
        assert shown == pytest.approx({kind: ms for kind, ms in saved.items() if ms})
    expect(page.locator(".compare-said", has_text="dvised only after")).to_contain_text("input python")


def test_the_timeline_shows_a_step_of_each_and_either_alone(page, page_server):
    other = page_server.session("two-hosts")
    show(page, page_server, "timeline", "drawn", **{"with": other})
    expect(page.locator(".lane")).to_have_count(2)
    assert all("8.000 ms" in text for text in page.locator(".lane header").all_inner_texts())
    page.get_by_role("link", name="One timeline").click()
    note = page.get_by_role("note")
    expect(note).to_contain_text("no common time")
    note.get_by_role("link", name="instead").click()
    await_address(page, "#/timeline?", f"session={other}", f"with={page_server.session('drawn')}")


def test_a_comparison_stays_in_the_address_swaps_and_ends(page, page_server, corpus, capsys):
    told = compared(capsys, *(str(page_server.logdir / name) for name in (WORKERS4, TORCH)))
    show(page, page_server, "overview", TORCH)
    page.get_by_role("button", name="Compare with").click()
    page.get_by_label("Search sessions").fill("workers4")
    page.locator(".session-list .choice").click()
    page.wait_for_selector(".comparison .stacked")

    def totals() -> list[float]:
        return page.eval_on_selector_all(  # type: ignore[no-any-return]
            ".comparison .stacked-total", "all => all.map(e => parseFloat(e.dataset.hintValue))"
        )

    sums = [sum(row[f"{side}_ms"] or 0 for row in told["breakdown"]) for side in ("before", "after")]
    assert totals() == pytest.approx(sums, rel=1e-3)
    expect(page.locator(".comparison .cell.bad, .comparison .cell.good").first).to_be_visible()
    page.reload()
    settle(page)
    page.locator(".comparison").get_by_role("link", name="Swap").click()
    await_address(page, "#/summary?", f"with={page_server.session(TORCH)}")
    settle(page)
    assert totals() == pytest.approx(sums[::-1], rel=1e-3)
    page.keyboard.press("g")
    page.keyboard.press("o")
    await_address(page, "#/compute/op?")
    page.wait_for_selector("[data-table=compare]")
    page.get_by_role("button", name="Stop comparing").first.click()
    await_address(page, "#/compute/op?", without="with=")
    expect(page.locator(".comparison")).to_have_count(0)


def test_the_list_of_sessions_stays_in_the_window_and_goes_by_arrows(page, page_server):
    page.set_viewport_size({"width": 1024, "height": 800})
    show(page, page_server, "overview", "drawn")
    page.get_by_role("button", name="Compare with").focus()
    page.keyboard.press("Enter")
    box = page.locator(".menu-pane").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1024
    assert page.evaluate("[scrollX, document.querySelector('.frame')?.scrollLeft ?? 0]") == [0, 0]

    page.keyboard.type("two-hosts")
    for key in ("ArrowDown", "ArrowDown", "Enter"):  # past the button that looks for new sessions
        page.keyboard.press(key)
    await_address(page, "#/summary?", f"with={page_server.session('two-hosts')}")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("vs ")


def test_terms_are_in_words_and_their_csv_as_the_report_has_them(page, page_server, corpus, capsys):
    show(page, page_server, "pod-viewer", TF)
    # The last column but one; a dash where a device has no account of the step, since it works for it at another time.
    assert {"Device compute"} == {row[-2] for row in shown_rows(page, "workers")} - {"\N{EN DASH}"}
    cells = downloaded(page, "rows")
    rows = said(capsys, "pod-viewer", page_server.logdir / TF)["rows"]
    assert [cell["bottleneck"] for cell in cells] == [row["bottleneck"] or "" for row in rows]


def test_steps_of_one_session_are_compared(page, page_server, corpus, capsys):
    session = page_server.session(TORCH)
    show(page, page_server, "overview", TORCH, steps="5-6", withSteps="9-10", **{"with": session})
    page.locator(".comparison .stacked").wait_for()
    shown = [(row["before_ms"], row["after_ms"]) for row in side_by_side(page) if row["cause"] == "Input"]

    both = [
        said(capsys, "overview", page_server.logdir / TORCH, "--steps", steps)["steps"] for steps in ("9-10", "5-6")
    ]
    times = [mean(step["input_ms"] for step in steps if step["usual"]) for steps in both]
    assert [tuple(map(float, row)) for row in shown] == [pytest.approx(tuple(times))]


def test_every_page_shows_its_comparison_however_many_were_looked_at_before(page, page_server):
    other = page_server.session("two-hosts")
    tools = [each.name for each in TOOLS]
    for tool in (*tools, *tools[:6]):  # more answers than the page keeps, among them one that every page needs
        show(page, page_server, tool, "drawn", **{"with": other})
        assert page.locator("main .state.failed").count() == 0, tool


def test_what_is_compared_and_is_not_there_says_so(page, page_server, corpus, page_problems):
    show(page, page_server, "overview", "drawn", **{"with": "nothing"})
    expect(page.locator(".comparison").get_by_role("alert")).to_contain_text("nothing")
    expect(page.locator(".verdict")).to_have_count(1)
    show(page, page_server, "memory-profile", TF, **{"with": page_server.session("drawn")})
    expect(page.locator(".comparison")).to_contain_text("The session before has nothing here")

    assert all("404" in problem for problem in page_problems)
    page_problems.clear()


# -- sentences and answers --------------------------------------------------------------------------------------------
