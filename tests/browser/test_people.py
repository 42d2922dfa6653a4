"""What people do with sessions on a shared server: log in, label, note, delete and undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import DRAWN, PageServer, objections, running_team, settle, store_profile, until, watched_page
from draw import draw
from playwright.sync_api import expect

from stepscope.web.auth.roles import Rights

TOKENS = {role: f"a-token-of-those-who-{role.name.lower()}" for role in Rights}


# Drops a profile of so many bytes.
DROP = """bytes => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(['x'.repeat(bytes)], 'vm.xplane.pb'));
    for (const type of ['dragover', 'drop'])
        document.body.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def team(tmp_path: Path) -> Iterator[PageServer]:
    """A shared server with two sessions."""
    for run in ("first", "second"):
        store_profile(tmp_path / "logs", run, draw(DRAWN))
    with running_team(tmp_path / "logs", TOKENS) as server:
        yield server


@pytest.fixture
def page(browser, team, page_problems) -> Iterator[Any]:
    with watched_page(browser, team.address, page_problems) as opened:
        yield opened


def log_in(page: Any, role: Rights) -> None:
    """Types the token of a role into the login page."""
    page.get_by_label("Token").fill(TOKENS[role])
    page.get_by_role("button", name="Log in").click()


def enter(page: Any, team: PageServer, role: Rights = Rights.LABEL) -> None:
    """Comes in, and opens the list of sessions."""
    page.goto(team.address)
    log_in(page, role)
    settle(page)
    open_list(page)


def open_list(page: Any) -> None:
    page.get_by_role("button", name="Choose a session").click()


def edit(page: Any, name: str) -> None:
    page.get_by_role("button", name=f"About {name}").click()


def said(team: PageServer) -> list[Any]:
    """What the server knows of the sessions that something was said of."""
    return list(team.site.words.all().values())


def test_a_login_that_has_ended_leads_to_the_login_page_and_back(page, team, page_problems):
    enter(page, team)
    page.get_by_role("button", name="first").first.click()  # the next one shares it
    page.wait_for_url("**session=first**")
    page.goto(f"{page.url.split('#')[0]}#/steps?{page.url.split('?')[1]}")
    settle(page)
    place = page.url
    page.evaluate("setInterval(() => document.dispatchEvent(new Event('visibilitychange')), 100)")  # makes it look
    page.context.clear_cookies()
    page.wait_for_url("**/login?next=**")
    log_in(page, Rights.LABEL)
    settle(page)

    assert page.url == place
    assert all("401" in problem for problem in page_problems)
    page_problems.clear()


def test_title_labels_note_and_star(page, team, axe):
    enter(page, team)
    edit(page, "first")
    page.get_by_label("Title").fill("Before the fix")
    page.get_by_label("Labels").fill("baseline, slow input")
    page.get_by_label("Note", exact=True).fill("Batch size 64\nsee the second line")
    page.evaluate(axe)
    assert objections(page) == []
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Save").press("Enter")
    open_list(page)
    page.get_by_label("Search sessions").fill("slow batch")
    page.get_by_role("button", name="Star Before the fix").press("Enter")

    expect(page.locator(".session-row")).to_have_count(1)
    expect(page.locator(".session-row .badge")).to_have_text(["baseline", "slow input"])
    expect(page.get_by_role("button", name="Star Before the fix")).to_have_attribute("aria-pressed", "true")
    assert objections(page) == []
    (words,) = said(team)
    assert (words.title, words.labels, words.changed_by) == ("Before the fix", ("baseline", "slow input"), "Label")
    assert words.starred and words.note == "Batch size 64\nsee the second line"


def test_two_people_who_write_one_note_lose_neither_text(page, team, page_problems):
    enter(page, team)
    edit(page, "first")
    page.get_by_label("Note", exact=True).fill("mine")
    first = next(each.id for each in team.site.catalogue.sessions() if each.session.run == "first")
    team.site.words.change(first, 0, {"note": "theirs"}, "Ana")
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("alert")).to_contain_text("Ana has changed this session meanwhile")
    expect(page.get_by_label("Note", exact=True)).to_have_value("mine")
    page.get_by_role("button", name="Join both notes").click()
    page.get_by_role("button", name="Save mine").click()
    until(page, lambda: said(team)[0].note == "theirs\n\nmine")
    assert all("409" in problem for problem in page_problems)
    page_problems.clear()


def test_deleting_is_undone(page, team):
    enter(page, team)
    edit(page, "second")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("second was deleted")).to_be_visible()
    open_list(page)
    expect(page.locator(".session-row")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    until(page, lambda: not said(team)[0].deleted)
    open_list(page)

    expect(page.locator(".session-row")).to_have_count(2)


def test_who_may_only_look_is_offered_nothing_else(page, team):
    enter(page, team, Rights.SEE)

    expect(page.locator(".session-row")).to_have_count(2)
    for name in ("Star first", "About first", "Capture"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def test_the_token_of_a_jobs_port_is_sent_and_not_remembered(page, team):
    enter(page, team, Rights.CAPTURE)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Capture").click()
    page.get_by_label("Addresses").fill("127.0.0.1:1")
    page.get_by_label("Retries").fill("0")
    page.get_by_label("Token of the job's port").fill("the-token-of-a-job")
    with page.expect_request("**/api/capture") as sent:
        page.get_by_role("button", name="Capture 2 s").click()
    page.get_by_role("button", name="Change the settings").click()

    assert sent.value.post_data_json["token"] == "the-token-of-a-job"
    kept = page.evaluate("JSON.stringify(localStorage)")
    assert "127.0.0.1:1" in kept and "the-token-of-a-job" not in kept


def test_logging_out_leads_to_the_login_page_and_the_cookie_is_worth_nothing(page, team, page_problems):
    page.goto(team.address)
    log_in(page, Rights.SEE)
    settle(page)
    kept = page.context.cookies()

    page.keyboard.press("Control+k")
    page.keyboard.type("Log out")
    page.get_by_text("Log out", exact=True).first.click()

    page.wait_for_url("**/login")
    page.context.add_cookies(kept)
    page.goto(team.address)
    page.wait_for_url("**/login*")
    assert all("401" in problem for problem in page_problems)
    page_problems.clear()
