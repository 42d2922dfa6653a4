"""The page while things go wrong around it: profiles that vanish or change, requests that break, proxies."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browsing import DRAWN, PageServer, running, settle, store_profile, watched_page
from draw import draw
from playwright.sync_api import expect
from werkzeug.exceptions import NotFound
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import make_server

from stepscope.model import EventKind, PlaneKind, TraceBuilder
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    """A server of its own, whose sessions `first` and `second` a test may destroy."""
    for run in ("first", "second"):
        store_profile(tmp_path, run, draw(DRAWN))
    with running(tmp_path) as started:
        yield started


@pytest.fixture
def page(browser, server, page_problems) -> Iterator[Any]:
    with watched_page(browser, server.address, page_problems) as opened:
        yield opened


def show(page: Any, server: PageServer, run: str, tool: str = "overview") -> str:
    """Opens a session's page; returns its id."""
    session = server.session(run)
    page.goto(f"{server.address}#/{tool}?session={session}")
    settle(page)
    return session


def test_a_profile_that_is_deleted_while_open_leads_to_the_others(page, server, page_problems):
    show(page, server, "first")
    shutil.rmtree(server.logdir / "plugins" / "profile" / "first")
    server.site.catalogue.forget()
    page.reload()
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "first" in alert.inner_text()

    alert.get_by_role("link", name="second", exact=True).click()
    page.locator(".verdict").wait_for()
    assert all("404" in problem or "410" in problem for problem in page_problems)
    page_problems.clear()


def test_a_server_that_ends_in_the_middle_is_told_in_place_and_what_is_there_stays(browser, tmp_path, page_problems):
    store_profile(tmp_path, "only", draw(DRAWN))
    with ExitStack() as until_the_end:
        server = until_the_end.enter_context(running(tmp_path))
        with watched_page(browser, server.address, page_problems) as page:
            show(page, server, "only")
            verdict = page.locator(".verdict").first.inner_text()
            until_the_end.close()
            page.get_by_role("link", name="Waiting").click()
            alert = page.get_by_role("alert")
            expect(alert).to_be_visible()
            page.get_by_role("link", name="Summary").click()
            expect(page.locator(".verdict").first).to_have_text(verdict, use_inner_text=True)
            page.close()  # so that no request fails later
            assert all("ERR_" in problem or "Failed to" in problem for problem in page_problems), page_problems
            page_problems.clear()


def test_twenty_thousand_sessions_are_searched_and_a_few_of_them_listed(page, server):
    session = server.session("first")
    listing = server.get("api/sessions")
    known = listing["sessions"][0]
    many = [{**known, "id": f"other-{at}", "run": f"run {at:06d}"} for at in range(20_000)]
    every = json.dumps({**listing, "sessions": [*listing["sessions"], *many]})
    page.route("**/api/sessions", lambda route: route.fulfill(body=every, content_type="application/json"))
    page.goto(f"{server.address}#/summary?session={session}")
    settle(page)
    page.get_by_role("button", name="Choose a session").click()
    expect(page.locator(".session-list")).to_contain_text("more: type a part of the name")
    page.get_by_label("Search sessions").fill("1999")
    expect(page.locator(".session-list .choice")).to_have_count(12)  # 001999, 011999, and 019990 to 019999
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("waiting")
    expect(page.get_by_role("option").first).to_contain_text("Waiting")


SCRIPTS = ("قراءة الدفعة", "读取批次", "バッチ読み込み", "לקרוא אצווה", "बैच पढ़ें", "🚂🚃🚃", "Z̸̢a̷l̴g̵o̶ " * 40, "ﷺ" * 300)


@pytest.mark.parametrize("place", ["compute/op", "summary/steps", "timeline"])
def test_names_in_any_script_are_shown_and_push_nothing_out_of_the_window(browser, tmp_path, page_problems, place):
    builder = TraceBuilder(host="文字")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "سلسلة", 1)
    for step in range(4):
        line.event("шаг", step * 10**10, 9 * 10**9, EventKind.STEP_MARK, {"step_num": step})
        for at, name in enumerate(SCRIPTS):
            line.event(name, step * 10**10 + at * 10**9, 8 * 10**8, EventKind.OP)
    store_profile(tmp_path, "scripts", builder.build())
    with running(tmp_path) as server, watched_page(browser, server.address, page_problems) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        show(page, server, "scripts", place)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        if place == "compute/op":
            for name in SCRIPTS[:6]:
                expect(page.locator(".ranked")).to_contain_text(name)


def test_a_request_that_breaks_is_told_in_place_and_can_be_repeated(page, server, page_problems):
    show(page, server, "first")
    page.route("**/tools/op-stats*", lambda route: route.abort("connectionreset"))
    page.goto(f"{server.address}#/op-stats?session={server.session('first')}")
    alert = page.get_by_role("alert")
    alert.wait_for()
    expect(alert).to_contain_text("does not answer")
    expect(page.get_by_role("link", name="Waiting").first).to_be_visible()

    page.unroute("**/tools/op-stats*")
    alert.get_by_role("button").first.click()
    page.locator("[data-table=ops] .grid-row").first.wait_for()
    assert all("op-stats" in problem for problem in page_problems)
    page_problems.clear()


def test_an_answer_that_is_cut_off_is_told_too(page, server, page_problems):
    show(page, server, "first")
    page.route(
        "**/tools/op-stats*", lambda route: route.fulfill(body='{"report": {"tool"', content_type="application/json")
    )
    page.goto(f"{server.address}#/op-stats?session={server.session('first')}")

    page.get_by_role("alert").wait_for()
    page_problems.clear()


@pytest.mark.parametrize("tool", ["overview", "timeline"])
def test_the_page_works_below_the_address_that_a_proxy_gives_it(browser, tmp_path, page_problems, tool):
    store_profile(tmp_path, "first", draw(DRAWN))
    site = Site(SiteOptions([Root(str(tmp_path))]))
    proxy = make_server("127.0.0.1", 0, DispatcherMiddleware(NotFound(), {"/at/some/place": App(site)}), threaded=True)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{proxy.server_port}/at/some/place/"
        with watched_page(browser, address, page_problems) as page:
            page.goto(f"{address}#/{tool}")
            page.locator({"overview": ".verdict", "timeline": ".tl-tracks"}[tool]).first.wait_for()
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
        site.close()
