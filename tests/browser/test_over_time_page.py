"""A watched run over hours in a browser: its curves, its triggers, and the way to what was captured."""

from __future__ import annotations

import json
from typing import Any

import pytest
from browsing import DRAWN, await_address, objections, open_all, running, settle, store_profile, watched_page
from draw import draw
from playwright.sync_api import expect

from stepscope.formats import series


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server on a logdir with a watched run of two hours and a session that a trigger captured."""
    logdir = tmp_path_factory.mktemp("watched")
    store_profile(logdir, "slow_1", draw(DRAWN))
    folder = series.series_folder(logdir, "run")
    folder.mkdir(parents=True)
    rows = [
        {"unix_s": 1.7e9 + 30 * at, "steps": 10, "step_ms_median": 20.0 + at / 40, "resident_bytes": 1e9}
        for at in range(240)
    ]
    (folder / "host.tail.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    mark = {"unix_s": 1.7e9 + 3600, "host": "host", "trigger": "slow_step", "step": 9, "sentence": "a step was slow"}
    (folder / "host.marks.jsonl").write_text(json.dumps({**mark, "run": "slow_1"}) + "\n")
    with running(logdir) as server:
        yield server


def test_a_watched_run_has_a_page_with_curves_and_marks_that_lead_to_captures(watched, browser, axe) -> None:
    problems: list[str] = []
    with watched_page(browser, watched.address, problems) as page:
        page.goto(watched.address)
        settle(page)
        page.locator(".rail").get_by_role("link", name="Over time").click()
        settle(page)
        expect(page.locator(".verdict-line")).to_be_visible()
        expect(page.get_by_role("img", name="Step time over 1.99")).to_have_attribute("data-marks", "240")
        page.get_by_role("radio", name="Memory").or_(page.get_by_role("button", name="Memory", exact=True)).click()
        expect(page.get_by_role("img", name="Memory over")).to_be_visible()
        open_all(page)
        page.evaluate(axe)
        assert objections(page) == []
        row = page.locator("[data-table=marks] [role=row]", has_text="a step was slow")
        row.click()
        page.get_by_role("link", name="Open the session").first.click()
        await_address(page, "#/summary?", "session=")
