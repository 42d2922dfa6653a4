"""The report to send, in a browser: the page's Summary, offline, on a phone, on two sheets of paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browsing import DRAWN, objections, profiled_trace, store_profile
from draw import draw
from places import shared_folder

from stepscope.cli.main import run

WHOLE = "document.querySelector('.sheet .card') && !document.querySelector('.chart[data-drawn=false], .spinner')"
CORPUS = ("torch-v100-resnet50-workers0", "tf-gpu-multi-worker", "torch-multirank")


def written(tmp_path: Path, name: str) -> str:
    """The address of the report of a session: `drawn`, `plain`, or one of the corpus."""
    session = shared_folder() / "corpus" / name
    if name not in CORPUS:
        trace = draw(DRAWN) if name == "drawn" else profiled_trace()
        session = store_profile(tmp_path, name, trace)
    elif not session.is_dir():
        pytest.skip("needs the corpus")
    out = tmp_path / "report.html"
    assert run(["report", str(session), "--output", str(out)]) == 0
    return out.as_uri()


@pytest.mark.parametrize("name", ["drawn", "plain", *CORPUS])
def test_a_report_is_the_summary_offline_on_a_phone_and_on_two_sheets(browser, axe, tmp_path, name):
    address = written(tmp_path, name)
    for scheme, width in (("light", 1280), ("dark", 390)):
        view = {"width": width, "height": 844}
        with browser.new_context(offline=True, color_scheme=scheme, viewport=view) as context:
            page = context.new_page()
            wrong: list[str] = []
            page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
            page.on("requestfailed", lambda request, wrong=wrong: wrong.append(request.url))
            page.goto(address)
            page.wait_for_function(WHOLE)

            assert page.locator("h1 .verdict-cause").inner_text()
            charts = page.locator(".step-graph .chart[data-marks]").count()
            assert charts == (name != "tf-gpu-multi-worker")  # one step is drawn as the account's bar
            assert page.locator("a[href]").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
            page.evaluate(axe)
            is_first_look = scheme == "light" or name == "drawn"  # in the dark, colours alone are others
            assert objections(page, "" if is_first_look else "color-contrast") == []
            assert wrong == []
            if width == 1280:
                assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) <= 2


def test_the_first_advice_stands_beside_its_place_in_the_timeline(browser, tmp_path):
    address = written(tmp_path, CORPUS[0])
    with browser.new_context(offline=True) as context:
        page = context.new_page()
        page.goto(address)
        page.wait_for_function(WHOLE)

        assert page.locator(".advice-card.first figure svg path").count() > 10
        assert page.locator(".advice-card.first .actions li").count() >= 1


def test_without_scripts_the_verdict_the_advice_and_the_pictures_remain(browser, tmp_path):
    address = written(tmp_path, "drawn")
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address)

        assert page.locator("h2").inner_text()
        assert page.locator("article h3").count() >= 1
        assert page.locator("figure svg").count() >= 1
