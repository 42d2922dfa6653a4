"""Every page for everybody: nothing that axe objects to, nothing that overlaps, from a phone to a wide screen."""

from __future__ import annotations

from typing import Any

from browsing import PageServer, objections, objections_in_both_themes, open_all, settle, until
from playwright.sync_api import expect
from test_pages import TF, TORCH

RANKS = "torch-multirank"

# What is wider than the window or than the page, and controls that lie on each other.
OVERLAPS = """() => {
    const faults = [];
    const main = document.querySelector('main');
    for (const [name, wide] of [['the page', document.documentElement.scrollWidth - window.innerWidth],
                                ['its main part', main.scrollWidth - main.clientWidth]])
        if (wide > 0) faults.push(`${name} is ${wide} px too wide`);
    const shown = [...document.querySelectorAll('.topbar button, .rail a, .page-head a, .page-head button, h1')]
        .filter(each => each.getClientRects().length).map(each => [each, each.getBoundingClientRect()])
        .filter(([, box]) => box.right > 0 && box.left < window.innerWidth);
    for (const [one, a] of shown) for (const [other, b] of shown) {
        if (one === other || one.contains(other) || other.contains(one) || one.closest('.views')) continue;
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 2 && down > 2)
            faults.push(`${one.outerHTML.slice(0, 80)} lies on ${other.outerHTML.slice(0, 80)}`);
    }
    return faults;
}"""


def all_places(page: Any, server: PageServer, session: str) -> list[str]:
    """The addresses of all views that the page offers for a session."""

    def known() -> list[bool | None]:
        return [tool["has_data"] for tool in server.get(f"api/sessions/{session}")["tools"]]

    until(page, lambda: known() and None not in known())  # a view is dimmed once it is known to be empty
    page.goto(f"{server.address}#/summary?session={session}")
    settle(page)
    page.wait_for_function("() => document.querySelectorAll('.rail a').length >= 4")
    places: dict[str, None] = {}
    for question in links(page, ".rail a:not([aria-disabled])"):
        page.goto(server.address + question)
        settle(page)
        places |= dict.fromkeys([question, *links(page, ".views a:not([aria-disabled])")])
    assert len(links(page, ".rail li:not(.apart) a")) <= 6
    assert 8 <= len(places) <= 20, places
    return list(places)


def links(page: Any, selector: str) -> list[str]:
    found: list[str] = page.eval_on_selector_all(selector, "all => all.map(each => each.getAttribute('href'))")
    return found


def overlaps(page: Any) -> list[str]:
    """What does not fit from a phone to a wide screen; the page is as wide as before afterwards."""
    usual, faults = page.viewport_size, []
    for width, height in ((390, 844), (768, 1024), (2560, 1300)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        faults += [f"{width} px: {fault}" for fault in page.evaluate(OVERLAPS)]
    page.set_viewport_size(usual)
    return faults


def test_nothing_overlaps_and_axe_finds_nothing_on_any_page(page, page_server, corpus, axe):
    page.emulate_media(color_scheme="light")
    for place in all_places(page, page_server, page_server.session(TORCH)):
        page.goto(page_server.address + place)
        settle(page)
        assert overlaps(page) == [], place
        open_all(page)
        assert objections_in_both_themes(page, axe) == [], place


def test_a_view_that_would_be_empty_is_dimmed(page, page_server, corpus):
    """TensorFlow recorded no lines, shapes or annotations."""
    places = all_places(page, page_server, page_server.session(TF))
    offered = {place.split("?")[0] for place in places}
    assert "#/compute/kernel" in offered
    assert not offered & {"#/compute/line", "#/compute/shape", "#/compute/annotation"}


# What the session above has no data for.
OF_OTHERS = (
    ("torch-sglang-qwen3", ("summary/latency",)),
    (RANKS, ("ranks", "ranks/steps", "compute/annotation")),
    ("tpu-inference", ("compute/graph", "compute/hlo", "compute/hlo-profile", "memory/xla")),
    ("tf-gpu-multi-worker", ("waiting/tf-data",)),
)


def test_axe_finds_nothing_on_the_pages_of_ranks_and_xla(page, page_server, corpus, axe):
    page.emulate_media(color_scheme="light")
    for run, places in OF_OTHERS:
        for place in places:
            page.goto(f"{page_server.address}#/{place}?session={page_server.session(run)}")
            settle(page)
            expect(page.locator(".verdict-line, [data-table]").first).to_be_visible()
            assert overlaps(page) == [], place
            assert objections_in_both_themes(page, axe) == [], place


UNMOVED = """() => document.getAnimations()
    .filter(each => each.effect.getComputedTiming().iterations !== Infinity)
    .every(each => each.playState !== 'running')"""


def test_axe_finds_nothing_in_what_opens_over_a_page(page, page_server, axe):
    page.goto(f"{page_server.address}#/summary?session={page_server.session('two-hosts')}")
    settle(page)
    page.evaluate(axe)
    for name in ("Choose a session", "Choose a host", "Compare with", "Go to anything", "Help and keys"):
        page.get_by_role("button", name=name).click()
        page.wait_for_timeout(100)
        page.wait_for_function(UNMOVED)  # what fades in has other colours meanwhile
        assert objections(page) == [], name
        page.keyboard.press("Escape")


def test_axe_finds_nothing_in_a_selection_of_the_timeline(page, page_server, axe):
    session = page_server.session("drawn")
    for place in ("&selected=5", "&find=kernel&tab=slices", "&tab=flame", "&tab=calls", "&tab=durations"):
        page.goto(f"{page_server.address}#/timeline?session={session}{place}")
        settle(page)
        expect(page.locator(".tl-pane")).to_be_visible()
        assert objections_in_both_themes(page, axe) == [], place
    page.goto(f"{page_server.address}#/timeline?session={session}")
    page.locator(".tl-tracks").click(position={"x": 200, "y": 20})  # a stretch of the ribbon
    expect(page.locator(".tl-asked h2")).to_be_visible()
    assert objections_in_both_themes(page, axe) == []
