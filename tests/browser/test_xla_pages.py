"""The pages of XLA programs in a real browser: the graph, the roofline, and the memory of a program."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import PageServer, await_address, objections, settle, store_profile
from playwright.sync_api import expect
from xla_sessions import xla_trace


@pytest.fixture(scope="module")
def server(page_server: PageServer) -> PageServer:
    store_profile(page_server.logdir, "xla-step", xla_trace())
    return page_server


def show(page: Any, server: PageServer, tool: str, **params: str) -> None:
    more = "".join(f"&{name}={value}" for name, value in params.items())
    page.goto(f"{server.address}#/{tool}?session={server.session('xla-step')}{more}")
    settle(page)


def nodes(page: Any) -> list[str]:
    """The names of the nodes that are drawn, from top to bottom."""
    labels: list[str] = page.eval_on_selector_all(
        ".hlo-node", "all => all.map(each => each.getAttribute('aria-label').split(', ')[0])"
    )
    return labels


def test_the_graph_starts_with_the_expensive_path(page: Any, server: PageServer) -> None:
    show(page, server, "graph-viewer")

    assert nodes(page) == ["dot.1", "add_fusion", "out"]
    assert page.inner_text(".hlo-card .card-note").startswith("93.3 % of the program")
    assert "dot.1" in page.inner_text(".hlo-details h3")  # the slowest
    assert "524 kFLOP a run" in page.inner_text(".hlo-details")


def test_a_fusion_opens_and_closes(page: Any, server: PageServer, axe: str) -> None:
    show(page, server, "graph-viewer")

    page.get_by_role("button", name="Open add_fusion").click()
    expect(page.locator(".hlo-node[aria-label^='deep,']")).to_have_count(1)
    page.evaluate(axe)
    assert objections(page) == []
    assert page.locator(".hlo-node .hlo-box").count() == 5
    page.get_by_role("button", name="Close add_fusion").click()
    expect(page.locator(".hlo-node")).to_have_count(3)


def test_a_mark_of_the_roofline_leads_to_its_row(page: Any, server: PageServer) -> None:
    show(page, server, "roofline")
    chart = page.locator(".chart")
    assert int(chart.get_attribute("data-marks")) == 3  # a fusion of tanh counts no operations

    mark = page.locator(".chart-picture g path").last.bounding_box()
    page.mouse.click(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    await_address(page, "#/compute/roofline", "rows.filter=rank")
    expect(page.locator("[data-table=rows] .grid-row")).to_have_count(1)


def test_the_memory_of_a_program(page: Any, server: PageServer) -> None:
    show(page, server, "memory-viewer")

    assert "At its peak, 80.0 KiB is in use, 40.0 % of it temporaries" in page.inner_text(".verdict-line")
    assert int(page.locator(".chart").get_attribute("data-marks")) == 5
    expect(page.locator("[data-table=buffers] .grid-row")).to_have_count(5)
    page.get_by_role("button", name="By shape").click()
    await_address(page, "#/memory/xla", "by=shape")
    assert "f32[64,64]{1,0}" in page.inner_text("[data-table=groups]")


@pytest.mark.parametrize("tool", ["graph-viewer", "roofline", "memory-viewer"])
def test_pages_fit_their_window(page: Any, server: PageServer, tool: str) -> None:
    for width in (1400, 800):
        page.set_viewport_size({"width": width, "height": 900})
        show(page, server, tool)

        sideways = page.evaluate("(main => main.scrollWidth - main.clientWidth)(document.querySelector('main'))")
        assert sideways <= 0, width
