"""The page inside a real TensorBoard, in a real browser."""

from __future__ import annotations

import pytest
from browsing import DRAWN, Watch, running_tensorboard, store_profile
from draw import draw

pytest.importorskip("tensorboard")


def test_the_profile_tab_shows_the_whole_page(browser, tmp_path):
    store_profile(tmp_path / "train", "r1", draw(DRAWN))
    with running_tensorboard(tmp_path) as address:
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        problems: list[str] = []
        Watch((address,), problems).over(context)
        page = context.new_page()
        page.goto(f"{address}#stepscope")
        tab = page.locator("[data-plugin-id=stepscope]").first
        tab.wait_for()
        assert "Profile" in tab.inner_text().title()
        frame = page.frame_locator("iframe")
        frame.get_by_text("r1").first.wait_for()
        address_of_frame = next(inner.url for inner in page.frames if "plugin/stepscope" in inner.url)
        page.screenshot(path=str(tmp_path / "tensorboard.png"))
        context.close()

    assert address_of_frame.startswith(f"{address}data/plugin/stepscope/index.html")
    # TensorBoard's own page asks for things of its own; what matters is ours.
    assert [problem for problem in problems if "plugin/stepscope" in problem] == []
