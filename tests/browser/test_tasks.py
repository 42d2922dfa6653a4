"""What people come for, done in a browser: at most three clicks from the start page, and with the keyboard alone."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from browsing import PageServer, await_address, open_all, settle, until
from playwright.sync_api import expect
from test_pages import TORCH, said
from test_views import RANKS, WORKERS4, query_of

MOST_CLICKS = 3

_COUNT_CLICKS = """() => {
    window.clicks = 0;
    addEventListener('pointerdown', event => { if (event.isTrusted) window.clicks += 1; }, true);
}"""


@contextmanager
def few_clicks(page: Any, server: PageServer, run: str) -> Iterator[None]:
    """The start page of a session; what follows may take three clicks."""
    page.goto(f"{server.address}#/summary?session={server.session(run)}")
    settle(page)
    page.evaluate(_COUNT_CLICKS)
    yield
    assert page.evaluate("window.clicks") <= MOST_CLICKS


def start(page: Any, server: PageServer, run: str) -> None:
    """The start page of a session, to be used with the keyboard alone."""
    page.goto(f"{server.address}#/summary?session={server.session(run)}")
    settle(page)


def command(page: Any, text: str, first: str | re.Pattern[str]) -> None:
    """Goes to the first match of a text in the command palette, which has to be the one that is meant."""
    page.keyboard.press("Control+k")
    page.keyboard.type(text)
    expect(page.get_by_role("option").first).to_contain_text(first)
    page.keyboard.press("Enter")


def await_timeline(page: Any) -> dict[str, str]:
    """The parameters of the timeline's address, once an event is selected."""
    await_address(page, "#/timeline?", "selected=")
    return query_of(page.evaluate("location.hash"))


# -- why is my step slow -----------------------------------------------------------------------------------------------


def test_why_a_step_is_slow_stands_on_the_start_page_and_leads_to_its_evidence(page, page_server, corpus, capsys):
    first = said(capsys, "advice", page_server.logdir / TORCH)["advice"][0]
    with few_clicks(page, page_server, TORCH):
        expect(page.locator(".verdict h1")).to_contain_text("input-bound")
        card = page.locator(".advice-card.first")
        expect(card).to_contain_text(first["title"])
        card.get_by_role("link", name="Show in the timeline").click()
        note = page.get_by_role("note")
        expect(note).to_contain_text(first["title"])
        place = query_of(page.evaluate("location.hash"))
        start_ms, end_ms = map(float, place["evidence"].split("_"))
        assert (start_ms, end_ms) == (first["intervals"][0]["start_ms"], first["intervals"][0]["end_ms"])
        assert float(place["begin"]) < start_ms < end_ms < float(place["end"])
        note.get_by_role("link", name="Back to Summary").click()
        await_address(page, "#/summary?", without="evidence")


def test_why_a_step_is_slow_by_keyboard(page, page_server, corpus):
    start(page, page_server, TORCH)
    command(page, "waiting", "Waiting")
    await_address(page, "#/waiting?")
    settle(page)
    expect(page.locator(".verdict-line")).to_contain_text("of each step")
    page.keyboard.press("g")
    page.keyboard.press("a")
    await_address(page, "#/summary/advice?")


# -- the longest kernel ------------------------------------------------------------------------------------------------


def longest_kernel(capsys: Any, server: PageServer) -> dict[str, Any]:
    rows = said(capsys, "kernel-stats", server.logdir / TORCH)["rows"]
    return max(rows, key=lambda row: row["max_us"])


def test_the_longest_kernel_leads_to_its_longest_run(page, page_server, corpus, capsys):
    kernel = longest_kernel(capsys, page_server)
    with few_clicks(page, page_server, TORCH):
        page.get_by_role("link", name="Compute").click()
        settle(page)
        page.get_by_role("link", name="Kernel", exact=True).click()
        settle(page)
        bars = page.get_by_role("list", name="Time by op and kernel").get_by_role("link")
        href = bars.first.get_attribute("href")
        bars.first.click()
        await_timeline(page)
        name = query_of(href)["find"]
        expect(page.locator(".tl-details h2")).to_have_attribute("title", name)
    most = max(
        row["max_us"]
        for row in said(capsys, "kernel-stats", page_server.logdir / TORCH)["rows"]
        if row["kernel"] == name
    )
    duration = page.locator(".tl-facts > div", has_text="Duration").locator("dd")
    expect(duration).to_contain_text(f"{most / 1e3:.3f} ms" if most >= 1e3 else f"{most:.1f}")
    assert kernel["max_us"] >= most


def test_the_longest_kernel_by_keyboard(page, page_server, corpus, capsys):
    kernel = longest_kernel(capsys, page_server)["kernel"]
    start(page, page_server, TORCH)
    page.keyboard.press("g")
    page.keyboard.press("t")
    settle(page)
    page.keyboard.press("/")
    page.keyboard.type(kernel[:60])
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    rows = page.locator("#workbench-panel .grid-row")
    expect(rows.first).to_contain_text(kernel[:20])
    page.locator("#workbench-panel [role=grid]").focus()
    page.keyboard.press("Enter")
    await_timeline(page)


# -- the line that launches it -----------------------------------------------------------------------------------------


def test_the_line_behind_the_work_is_three_clicks_away(page, page_server, corpus, capsys):
    lines = said(capsys, "op-shapes", page_server.logdir / TORCH)["lines"]
    with_line = [row for row in lines if row["call_site"]]
    longest = max(with_line, key=lambda row: row["host_self_us"])  # the host limits this session's step
    with few_clicks(page, page_server, TORCH):
        page.get_by_role("link", name="Compute").click()
        settle(page)
        page.get_by_role("link", name="Line", exact=True).click()
        settle(page)
        file, _, line = longest["call_site"].rpartition("/")[2].split("): ")[0].rpartition("(")
        expect(page.locator(".verdict-line")).to_contain_text(f"{file}:{line}")
        expect(page.locator(".ranked li").first).to_contain_text(f"{file}:{line}")


def test_the_line_behind_the_work_by_keyboard(page, page_server, corpus):
    start(page, page_server, TORCH)
    command(page, "resnet50_profiler_api.py:46", "Line")
    await_address(page, "#/compute/line?", "lines.filter=")
    settle(page)
    expect(page.locator("[data-table=lines] .table-count")).to_contain_text(" of ")


# -- two sessions ------------------------------------------------------------------------------------------------------


def test_two_sessions_are_compared_in_two_clicks(page, page_server, corpus):
    with few_clicks(page, page_server, TORCH):
        page.get_by_role("button", name="Compare with").click()
        page.locator(".session-list .choice", has_text=WORKERS4).click()
        expect(page.locator(".compare-line")).to_contain_text("%")


def test_two_sessions_are_compared_by_keyboard_down_to_a_step_of_each(page, page_server, corpus):
    start(page, page_server, TORCH)
    command(page, f"compare {WORKERS4}", "Compare with")
    expect(page.locator(".compare-line")).to_contain_text("%")
    page.keyboard.press("g")
    page.keyboard.press("t")
    lanes = page.locator(".lane canvas")
    expect(lanes).to_have_count(2)
    page.wait_for_function("[...document.querySelectorAll('.lane canvas')].every(each => each.width > 100)")
    expect(page.locator(".lane strong").first).to_contain_text("ms")


# -- ranks -------------------------------------------------------------------------------------------------------------


def test_the_late_rank_is_one_click_away(page, page_server, corpus, capsys):
    steps = said(capsys, "distributed", page_server.logdir / RANKS)["steps"]
    with few_clicks(page, page_server, RANKS):
        page.get_by_role("link", name="Ranks").click()
        settle(page)
        expect(page.locator(".verdict-line")).to_contain_text("The others wait")
        cells = page.get_by_role("application", name="Step time of").locator("canvas")
        assert cells.get_attribute("data-marks") == str(len(steps))


def test_the_late_rank_by_keyboard(page, page_server, corpus, capsys):
    steps = said(capsys, "distributed", page_server.logdir / RANKS)["steps"]
    start(page, page_server, RANKS)
    page.keyboard.press("g")
    page.keyboard.press("r")
    settle(page)
    page.get_by_role("application", name="Step time of").focus()
    page.keyboard.press("ArrowRight")
    said_there = page.locator(".heat-said").first
    second = sorted({row["step"] for row in steps})[1]
    expect(said_there).to_contain_text(f"step {second}")
    page.keyboard.press("Enter")
    await_address(page, "#/timeline?", "begin=", "host=")


# -- share, capture, first visit ---------------------------------------------------------------------------------------


def test_what_is_seen_is_shared_by_its_address_with_the_selection(page, page_server, browser):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    query = urllib.parse.urlencode({"session": page_server.session("drawn"), "selected": "3", "tab": "calls"})
    page.goto(f"{page_server.address}#/timeline?{query}")
    settle(page)
    page.evaluate(_COUNT_CLICKS)
    page.get_by_role("button", name="Copy the link to this view").click()
    expect(page.get_by_role("status").filter(has_text="Link copied")).to_be_visible()
    assert page.evaluate("window.clicks") == 1
    link = page.evaluate("navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(link)
    settle(page)
    until(page, lambda: query_of(page.evaluate("location.hash")).get("selected") == "3")
    expect(page.get_by_role("tab", name="Call tree")).to_have_attribute("aria-selected", "true")


def test_what_is_seen_is_shared_by_keyboard(page, page_server):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    start(page, page_server, "drawn")
    page.keyboard.press("g")
    page.keyboard.press("w")
    await_address(page, "#/waiting?")
    settle(page)
    command(page, "copy the link", "Copy the link to this view")
    expect(page.get_by_role("status").filter(has_text="Link copied")).to_be_visible()
    assert "#/waiting?" in page.evaluate("navigator.clipboard.readText()")


def test_a_capture_is_one_click_or_a_command_away(page, page_server):
    config = page_server.get("api/config") | {"capture": True}
    page.route(re.compile(r"/api/config$"), lambda route: route.fulfill(json=config))
    start(page, page_server, "drawn")
    command(page, "capture", "Capture a profile")
    expect(page.get_by_role("dialog", name="Capture a profile")).to_be_visible()
    page.keyboard.press("Escape")
    page.evaluate(_COUNT_CLICKS)
    page.get_by_role("button", name="Capture").click()
    expect(page.get_by_role("dialog", name="Capture a profile")).to_be_visible()
    assert page.evaluate("window.clicks") == 1


def test_a_mark_on_the_timeline_keeps_its_name_through_escape_and_in_the_address(page, page_server):
    page.goto(f"{page_server.address}#/timeline?session={page_server.session('drawn')}&selected=3")
    settle(page)
    expect(page.locator(".tl-details h2")).to_be_visible()
    page.keyboard.press("m")
    page.get_by_role("tab", name="Marks").click()
    name = page.get_by_label("Name of the mark")
    name.fill("the odd one")
    name.press("Tab")
    page.locator(".tl-scroll").focus()
    for _ in range(4):
        page.keyboard.press("Escape")
    until(page, lambda: "odd" in page.evaluate("location.hash"))


# -- what is there on demand -------------------------------------------------------------------------------------------


def test_what_a_page_has_besides_is_closed_until_it_is_wanted(page, page_server, corpus):
    start(page, page_server, TORCH)
    session = page_server.session(TORCH)
    page.goto(f"{page_server.address}#/waiting/idle?session={session}")
    settle(page)
    expect(page.locator("[data-table=queues]")).to_have_count(0)
    open_all(page)
    expect(page.locator("[data-table=queues]")).to_have_count(1)
    page.goto(f"{page_server.address}#/waiting/idle?session={session}&queues.sort=launched")
    settle(page)
    page.reload()
    settle(page)
    expect(page.locator("[data-table=queues]")).to_have_count(1)
    expect(page.locator("[data-table=causes]")).to_have_count(0)


def test_ranks_are_dimmed_for_one_process_and_old_addresses_lead_on(page, page_server, corpus):
    start(page, page_server, TORCH)
    expect(page.get_by_role("link", name="Waiting")).to_have_count(1)
    expect(page.locator(".rail a[aria-disabled]", has_text="Ranks")).to_have_count(1)
    page.goto(f"{page_server.address}#/op-shapes?by=line&session={page_server.session(TORCH)}")
    await_address(page, "#/compute/line?")
    settle(page)
    start(page, page_server, RANKS)
    expect(page.locator(".rail a:not([aria-disabled])", has_text="Ranks")).to_have_count(1)


def test_what_if_predicts_what_the_command_line_predicts(page, page_server, corpus, capsys, page_problems):
    told = said(capsys, "whatif", page_server.logdir / TORCH, "--remove", "input")
    with few_clicks(page, page_server, TORCH):
        page.get_by_role("button", name="What if").click()
        dialog = page.get_by_role("dialog", name="What if a part took less time?")
        dialog.get_by_role("slider", name="Input").focus()
        page.keyboard.press("Home")
        expect(dialog.locator(".whatif-times")).to_contain_text(f"{told['predicted_speedup']}")
    dialog.get_by_label("Another part").fill("no such thing")
    page.keyboard.press("Enter")
    dialog.get_by_role("slider", name="no such thing").press("Home")
    expect(dialog.get_by_role("alert")).to_contain_text("no such thing")
    assert all("status of 4" in problem for problem in page_problems)
    page_problems.clear()
