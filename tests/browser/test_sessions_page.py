"""All sessions in one table: what each is limited by, a filter, and two that are compared by a tick."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browsing import await_address, objections, settle
from playwright.sync_api import expect


@pytest.fixture
def table(page: Any, page_server: Any) -> Any:
    """The table, once `drawn` has been read by being opened."""
    page.goto(f"{page_server.address}#/summary?session={page_server.session('drawn')}")
    settle(page)
    page.get_by_role("button", name="Choose a session").click()
    page.get_by_role("link", name="All sessions side by side").click()
    settle(page)
    return page.locator("table.sessions")


def row(table: Any, page_server: Any, run: str) -> Any:
    return table.locator(f"[data-session='{page_server.session(run)}']")


def test_a_row_says_what_limits_a_session_that_was_read(table, page_server, axe):
    drawn = row(table, page_server, "drawn")
    overview = page_server.get(f"api/sessions/{page_server.session('drawn')}/tools/overview")["report"]

    cause = overview["verdict_cause"].replace("_", " ").capitalize()
    expect(drawn).to_contain_text(f"{cause} {overview['verdict_percent']:.0f} %")
    assert drawn.locator("svg path").count() == 1
    table.page.evaluate(axe)
    assert objections(table.page) == []


def test_every_row_is_as_high_however_long_its_words_are(table, page_server):
    long = row(table, page_server, "drawn").locator(".wraps span").first
    long.evaluate("node => { node.textContent = '92 % of the recording lies before the first step, '.repeat(4) }")

    heights = [each.bounding_box()["height"] for each in table.locator("tbody tr").all()]
    assert [height for height in heights if not 32 <= height < 34] == []


def test_a_filter_leaves_what_it_names(table):
    table.page.get_by_label("Filter sessions").fill("two-hosts")

    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table.locator("tbody tr")).to_contain_text("2 hosts")


def test_two_that_are_ticked_are_compared_page_by_page(table, page_server):
    for run in ("drawn", "two-hosts"):
        row(table, page_server, run).get_by_role("checkbox").check()

    table.page.get_by_role("link", name="Compare the two").click()
    before, after = (page_server.session(run) for run in ("drawn", "two-hosts"))
    await_address(table.page, "#/summary", f"session={after}", f"with={before}")


def test_more_that_are_ticked_are_compared_with_the_first_in_a_table(table, page_server, axe):
    for run in ("two-hosts", "drawn", "hostile"):
        row(table, page_server, run).get_by_role("checkbox").check()
    table.page.get_by_role("link", name="Compare the 3").click()
    settle(table.page)

    card = table.page.locator(".table-card")
    expect(card).to_contain_text("Compared with two-hosts")
    expect(card.get_by_role("row")).to_have_count(4)
    expect(card).to_contain_text("slower")
    table.page.evaluate(axe)
    assert objections(table.page) == []
    card.get_by_role("button", name="Stop comparing").click()
    expect(card).to_have_count(0)


def test_the_table_fits_a_phone(table):
    table.page.set_viewport_size({"width": 390, "height": 844})

    assert table.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert table.evaluate("table => table.scrollWidth - table.parentElement.clientWidth") <= 0


def test_a_figure_is_drawn_for_every_session_that_was_read(table, page_server, axe):
    table.page.get_by_label("Figure", exact=True).fill("op-stats.rows.occurrences")
    table.page.keyboard.press("Enter")
    settle(table.page)

    await_address(table.page, "#/sessions", "figure=op-stats.rows.occurrences")
    rows = page_server.get("api/runs?figure=op-stats.rows.occurrences")["report"]["rows"]
    known = sum(row["op-stats.rows.occurrences"] is not None for row in rows)
    chart = table.page.get_by_role("img", name=re.compile(r"^op-stats\.rows\.occurrences of \d+ sessions"))
    drawn = int(re.findall(r"of (\d+) sessions", chart.get_attribute("aria-label") or "")[0])
    assert 0 < drawn <= known  # another session may have been read since
    outlines = chart.locator("g path").evaluate_all("all => all.map((each) => each.getAttribute('d')).join('')")
    assert 0 < outlines.count("M") <= drawn  # the columns of one colour are one shape, and one of 0 is none
    table.page.evaluate(axe)
    assert objections(table.page) == []
