"""The start page shows what profiling cost, where the profile tells it."""

from __future__ import annotations

import pytest
from browsing import profiled_trace, running, store_profile, watched_page

BEFORE = {"steps_before": 20, "step_ms_before": 100.0, "steps_inside": 4}


@pytest.mark.parametrize(
    ("cost", "shown"),
    [({**BEFORE, "step_ms_inside": 112.5}, ["12.5 %"]), ({}, [])],
    ids=["measured", "not measured"],
)
def test_the_cost_of_profiling_is_a_figure_beside_the_step_time(browser, tmp_path, page_problems, cost, shown):
    store_profile(tmp_path, "run", profiled_trace(**cost))
    with running(tmp_path) as server, watched_page(browser, server.address, page_problems) as page:
        page.goto(f"{server.address}#/summary?session={server.session('run')}")
        page.locator(".verdict > .figures .figure").first.wait_for()
        figures = page.locator(".verdict .figure").filter(has_text="Cost of profiling").all()

        assert [figure.get_attribute("data-hint-value") for figure in figures] == shown
