"""The SQL console in a browser: asking, suggestions, the tables beside it, mistakes, the answer on the timeline."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import PageServer, running, settle, store_profile, until, watched_page
from playwright.sync_api import expect
from sql_sessions import rich_training


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    folder: Path = tmp_path_factory.mktemp("logs")
    store_profile(folder, "drawn", rich_training())
    with running(folder) as started:
        yield started


@pytest.fixture
def console(browser: Any, server: PageServer, page_problems: list[str]) -> Iterator[Any]:
    with watched_page(browser, server.address, page_problems) as page:
        page.goto(f"{server.address}#/sql?session={server.session('drawn')}")
        settle(page)
        yield page


def ask(page: Any, query: str) -> None:
    page.get_by_role("textbox", name="Query").fill(query)
    page.keyboard.press("Control+Enter")


def answer(page: Any) -> Any:
    return page.locator("[data-table=answer]")


def test_a_query_is_answered_as_table_chart_and_link(console: Any) -> None:
    ask(console, "SELECT name, count(*) AS calls FROM kernels GROUP BY name ORDER BY name")

    expect(answer(console)).to_contain_text("MemcpyH2D")
    expect(answer(console)).to_contain_text("ncclAllReduce")
    expect(console.get_by_role("img", name="The numbers of the answer")).to_have_attribute("data-marks", "3")
    assert "query=SELECT" in urllib.parse.unquote_plus(console.url)
    console.reload()
    expect(answer(console)).to_contain_text("MemcpyH2D")
    console.get_by_label("Earlier queries").select_option(index=1)
    expect(console.get_by_role("textbox", name="Query")).to_have_value(
        "SELECT name, count(*) AS calls FROM kernels GROUP BY name ORDER BY name"
    )


def test_rows_with_a_time_are_a_track_that_leads_to_the_timeline(console: Any) -> None:
    ask(console, "SELECT name, stream, start_ps, duration_ps FROM kernels WHERE kind = 'kernel'")

    expect(console.locator(".sql-track rect")).to_have_count(2)
    console.get_by_role("link", name="Show in the timeline").click()
    until(console, lambda: "track=" in console.url and "/timeline" in console.url)
    settle(console)
    expect(console.get_by_role("note").filter(has_text="2 rows above the tracks")).to_be_visible()
    expect(console.locator(".tl-label").filter(has_text="Query")).to_be_visible()
    console.get_by_role("button", name="Remove").click()
    expect(console.locator(".tl-label").filter(has_text="Query")).to_have_count(0)


def test_suggestions_and_tables_help_to_write(console: Any) -> None:
    query = console.get_by_role("textbox", name="Query")
    query.fill("")
    query.press_sequentially("SELECT count(*) AS n FROM kern")
    expect(console.get_by_label("Suggestions")).to_contain_text("kernels")
    query.press("Tab")
    expect(query).to_have_value("SELECT count(*) AS n FROM kernels")
    console.get_by_role("searchbox", name="Find a table or a column").fill("occupancy")
    expect(console.locator(".sql-schema")).to_contain_text("occupancy_percent")
    console.get_by_role("button", name="Run").click()
    expect(answer(console)).to_contain_text("6")


def test_a_mistake_is_shown_with_its_place_and_the_nearest_names(console: Any, page_problems: list[str]) -> None:
    ask(console, "SELECT * FROM kernel")

    alert = console.get_by_role("alert")
    expect(alert).to_contain_text("line 1, column 15")
    expect(alert).to_contain_text("kernels")
    page_problems[:] = [text for text in page_problems if "status of 400" not in text]


def test_a_query_without_end_is_stopped(console: Any, page_problems: list[str]) -> None:
    ask(console, "SELECT count(*) FROM range(10000000000) a, range(99999999) b WHERE hash(a.range + b.range) = 7")

    console.get_by_role("button", name="Stop").click()
    expect(console.get_by_role("alert")).to_contain_text("stopped")
    page_problems[:] = [text for text in page_problems if "status of 400" not in text]
