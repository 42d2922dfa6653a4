"""The page inside a real TensorBoard, in a real browser."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from browsing import DRAWN, PATIENCE_MS, Watch, await_address, running_tensorboard, store_profile
from draw import draw
from playwright.sync_api import expect
from remote_jobs import running_jobs

pytest.importorskip("tensorboard")


OURS = "[data-plugin-id=stepscope]"
PLUGINS = {point.name for point in importlib.metadata.entry_points(group="tensorboard_plugins")}


@contextmanager
def board(browser: Any, address: str) -> Iterator[Any]:
    """A page of TensorBoard, of whose problems only those of our plugin count."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    problems: list[str] = []
    Watch((address,), problems).over(context)
    yield context.new_page()
    context.close()
    # TensorBoard's own page asks for things of its own.
    assert [problem for problem in problems if "plugin/stepscope" in problem] == []


def ours(page: Any) -> Any:
    """What our plugin shows."""
    return page.frame_locator("iframe[src*=stepscope]")


@pytest.fixture(scope="module")
def tensorboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One TensorBoard for all that is looked at here, with XProf's plugin where it is installed."""
    logdir = tmp_path_factory.mktemp("logs")
    store_profile(logdir / "train", "2020_01_01_00_00_00", draw(DRAWN))
    with running_tensorboard(logdir, others="profile" if "profile" in PLUGINS else "") as address:
        yield address


def test_the_profile_tab_shows_the_whole_page(browser, tensorboard):
    with board(browser, tensorboard) as page:
        page.goto(f"{tensorboard}#stepscope")
        tab = page.locator(OURS).first
        tab.wait_for()
        expect(tab).to_contain_text("Profile", ignore_case=True)
        frame = ours(page)
        frame.get_by_text("train", exact=True).first.wait_for()
        frame.locator(".verdict").wait_for()
        address_of_frame = next(inner.url for inner in page.frames if "plugin/stepscope" in inner.url)

    assert address_of_frame.startswith(f"{tensorboard}data/plugin/stepscope/index.html")


def test_a_link_in_tensorboard_can_be_shared_and_survives_a_reload(browser, tensorboard):
    with board(browser, tensorboard) as page:
        page.goto(f"{tensorboard}#stepscope")
        ours(page).locator(".verdict").wait_for()
        ours(page).get_by_role("link", name="Timeline", exact=True).click()
        ours(page).locator(".tl-tracks").wait_for()
        shared = page.url
        page.reload()
        ours(page).locator(".tl-tracks").wait_for()

        page.goto("about:blank")
        page.goto(shared)
        ours(page).locator(".tl-tracks").wait_for()
    assert "#stepscope&view=" in shared


@pytest.mark.skipif("profile" not in PLUGINS, reason="needs XProf's plugin, beside which ours has to work")
def test_beside_xprofs_plugin_both_work_and_are_told_apart(browser, tensorboard):
    with board(browser, tensorboard) as page:
        page.goto(f"{tensorboard}#stepscope")
        ours(page).locator(".verdict").wait_for()
        names = {name: page.locator(f"[data-plugin-id={name}]").first.inner_text() for name in ("stepscope", "profile")}
        assert {name: text.strip().upper() for name, text in names.items()} == {
            "stepscope": "PROFILE (STEPSCOPE)",
            "profile": "PROFILE",
        }

        page.locator("[data-plugin-id=profile]").first.click()
        page.wait_for_function("() => [...document.querySelectorAll('iframe')].length > 1")
        theirs = page.evaluate("() => fetch('data/plugin/profile/runs').then(answer => answer.json())")
        assert theirs == ["train/2020_01_01_00_00_00"]
        page.locator(OURS).first.click()
        ours(page).locator(".verdict").first.wait_for()


def test_a_profile_is_captured_from_within_tensorboard(browser, tensorboard, tmp_path):
    with running_jobs(tmp_path, ["plain"]) as jobs, board(browser, tensorboard) as page:
        page.goto(f"{tensorboard}#stepscope")
        frame = ours(page)
        frame.locator(".verdict").wait_for()
        frame.get_by_role("button", name="Capture").click()
        frame.get_by_label("Addresses").fill(jobs["plain"].address())
        frame.get_by_label("Duration, ms").fill("300")
        frame.get_by_role("button", name="Capture 0.3 s").click()
        frame.get_by_role("dialog").wait_for(state="detached")
        inner = next(inner for inner in page.frames if "plugin/stepscope" in inner.url)
        newest = inner.evaluate("() => fetch('api/sessions').then(answer => answer.json())")["sessions"][0]
        await_address(inner, "#/", f"session={newest['id']}")
        frame.locator(".verdict").wait_for()
    assert newest["hosts"] == [jobs["plain"].address().replace(":", "_")]
