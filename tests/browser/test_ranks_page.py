"""The ranks of a job in a browser: the answer first, then its causes, and maps of where the job is slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsing import PageServer, await_address, running, settle, watched_page
from playwright.sync_api import expect
from waiting import await_until

from bench.jobs.__main__ import make_job
from bench.jobs.plan import Job


@pytest.fixture(scope="module")
def job_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """A server on a simulated pipeline of eight ranks, one stage of which has more work than the others."""
    logdir = tmp_path_factory.mktemp("jobs")
    make_job(logdir / "stages", Job(steps=3, microbatches=4, fault="stages"))
    with running(logdir) as server:
        yield server


@pytest.fixture
def page(browser, job_server, page_problems) -> Iterator[Any]:
    with watched_page(browser, job_server.address, page_problems) as opened:
        yield opened


def test_the_answer_of_a_job_then_its_causes_then_where_it_is_slow(page, job_server):
    page.goto(f"{job_server.address}#/distributed?session={job_server.session('stages')}")
    settle(page)

    expect(page.locator(".verdict-line")).to_contain_text("last pipeline stage")
    titles = page.locator(".card-head h2").all_inner_texts()
    assert titles[:5] == [
        "Why the job is slower than with equal work", "Steps of each rank", "Kinds of work by stage",
        "Who waits for whom", "Ranks",
    ]  # fmt: skip
    assert "Missing ranks" not in titles

    steps, kinds, _ = page.locator(".heat").all()
    assert steps.locator("canvas").get_attribute("data-marks") == str(8 * 3)
    expect(steps.locator(".heat-scale")).to_contain_text("1.00x")
    kinds.locator(".heat-cells").press("ArrowRight")
    expect(kinds.locator(".heat-said")).to_contain_text("stage 1")
    steps.locator("canvas").click(position={"x": 3, "y": 3})
    await_address(page, "#/timeline?", "begin=", "host=")


def test_a_step_of_all_ranks_is_a_timeline_that_names_the_last_one(page, job_server):
    page.goto(f"{job_server.address}#/timeline?session={job_server.session('stages')}&stack=ranks&find=forward")

    expect(page.locator(".tl-notices")).to_contain_text("comes last: rank")
    expect(page.locator(".stacked-lanes .lane")).to_have_count(8)
    expect(page.locator(".tl-legend")).to_contain_text("Communication")
    expect(page.locator(".tl-toolbar .filter")).to_contain_text("in 8")
    expect(page.locator(".late-lines .waits")).not_to_have_count(0)
    canvas = page.locator(".lane canvas").nth(1)
    tip = page.locator(".lane").nth(1).locator(".tl-tip")

    def is_told() -> bool:
        """A lane that is drawn anew forgets the pointer until that moves."""
        canvas.hover(position={"x": 410, "y": 15})
        canvas.hover(position={"x": 400, "y": 15})
        return bool(tip.is_visible())

    await_until(is_told, 30, "the tip of the second rank")
    canvas.click(position={"x": 400, "y": 15})
    expect(page.locator(".tl-asked h2")).to_contain_text("GPU")
    page.keyboard.press("Escape")
    expect(page.locator(".tl-asked")).to_have_count(0)
    page.get_by_role("button", name="Next step").click()
    await_address(page, "#/timeline?", "step=")


def test_who_waits_for_whom_is_a_matrix_of_ranks(page, job_server):
    page.goto(f"{job_server.address}#/ranks?session={job_server.session('stages')}")
    settle(page)
    waits = job_server.get(f"api/sessions/{job_server.session('stages')}/tools/distributed")["report"]["waits"]
    of_first = {row["for_host"]: row["waiting_ms"] for row in waits if row["host"] == "node000_4000"}

    matrix = page.get_by_role("application", name="Waiting of 8 ranks for each other")
    matrix.press("ArrowRight")
    matrix.press("ArrowRight")
    told = f"Rank 0, waits for Rank 2: {of_first['node002_4002']:.0f}"
    expect(page.get_by_role("status").filter(has_text=told)).to_be_visible()
