"""The capture dialog from end to end: a real browser, the page's own server, and a real job of JAX or TensorFlow."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import PageServer, await_address, running, watched_page
from playwright.sync_api import expect
from remote_jobs import Job, closed_port, running_jobs

import stepscope

# Both have the same server; `test_remote.py` captures from each.
FRAMEWORK = next((name for name in ("jax", "tensorflow") if importlib.util.find_spec(name)), "")

pytestmark = pytest.mark.skipif(not FRAMEWORK, reason="needs TensorFlow or JAX, whose servers it captures from")


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Iterator[Job]:
    """A job with the framework's own profiler server beside ours."""
    with running_jobs(tmp_path_factory.mktemp("jobs"), [FRAMEWORK]) as started:
        yield started[FRAMEWORK]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    """The page of a logdir that holds nothing yet."""
    with running(tmp_path / "logs") as started:
        yield started


@pytest.fixture
def page(browser, server, page_problems) -> Iterator[Any]:
    with watched_page(browser, server.address, page_problems) as opened:
        opened.set_default_timeout(40_000)  # the jobs keep a small machine busy
        yield opened


def ask(page: Any, server: PageServer, *addresses: str, duration_ms: int = 500) -> None:
    """Opens the dialog, fills it in, and begins."""
    page.goto(server.address)
    page.get_by_text("There is no profile here yet").wait_for()
    page.keyboard.press("c")
    page.get_by_label("Addresses").fill(", ".join(addresses))
    page.get_by_label("Duration, ms").fill(str(duration_ms))
    page.get_by_label("Retries").fill("0")
    page.get_by_role("button", name=re.compile(r"^Capture \d")).click()


def shown_session(page: Any, server: PageServer) -> dict[str, Any]:
    """The session that the page has opened, once the page shows it."""
    page.locator(".verdict").wait_for()
    (session,) = server.get("api/sessions")["sessions"]
    await_address(page, "#/", f"session={session['id']}")
    expect(page.get_by_role("dialog")).to_have_count(0)
    return session  # type: ignore[no-any-return]


def test_a_job_is_captured_from_its_frameworks_server_and_opens_by_itself(page, server, job):
    ask(page, server, job.address("theirs"))
    # Which state it is in just then is another test's: this capture is shorter than a busy machine may take to ask.
    page.locator(".workers li").filter(has_text=job.address("theirs")).wait_for()

    session = shown_session(page, server)
    assert len(session["hosts"]) == 1
    # The steps that the page tells of are steps of the job's own clock.
    rows = stepscope.load(server.logdir).steps().to_dict()["rows"]
    numbers = [int(row["step"]) for row in rows]
    assert numbers
    assert len(job.durations_ms(numbers)) == len(numbers)
    page.goto(f"{server.address}#/steps?session={session['id']}")
    expect(page.locator("[data-table=steps] .table-count")).to_contain_text(f"{len(numbers)} row")


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that nobody listens on."""
    with closed_port() as port:
        yield f"localhost:{port}"


def test_of_two_workers_one_fails_and_the_other_ones_profile_is_kept(page, server, job, nobody):
    ask(page, server, job.address("theirs"), nobody)

    said = page.locator(".running [role=alert]")
    expect(said).to_contain_text(nobody)
    assert job.address("theirs") not in said.inner_text()
    for address, state in {job.address("theirs"): "saved", nobody: "failed"}.items():
        worker = page.locator(".workers li").filter(has_text=address)
        expect(worker.locator(":scope > *").nth(1)).to_have_text(state)
    page.get_by_role("button", name="Open what was captured").click()
    assert len(shown_session(page, server)["hosts"]) == 1
