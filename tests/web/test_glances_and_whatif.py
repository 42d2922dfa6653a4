"""What the list of sessions knows of each, and predictions for the page's sliders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import DRAWN, store_profile
from draw import draw
from waiting import await_until
from werkzeug.test import Client

from stepscope.api import load
from stepscope.cache import Cache, CacheOptions
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions
from stepscope.web.summaries import READING, Prefetcher


class Page:
    """A site with one session, and what its routes answer."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.site = Site(SiteOptions([Root(str(folder))]), Cache(CacheOptions(cache)))
        self.client = Client(App(self.site))
        self.session = self.get("/api/sessions")["sessions"][0]["id"]

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        return answer.json

    def read(self) -> None:
        """Waits until the session is ready."""
        while self.get(f"/api/sessions/{self.session}?wait=1000")["state"] == "loading":
            pass


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    store_profile(tmp_path / "logs", "drawn", draw(DRAWN))
    return tmp_path


def test_a_session_that_nobody_opened_is_read_for_its_glance_which_stays_for_the_next_server(stored: Path) -> None:
    page = Page(stored / "logs", stored / "cache")
    asked = f"/api/glances?sessions={page.session}"
    assert page.get(f"{asked},nonsense") == {page.session: READING, "nonsense": None}
    await_until(lambda: page.get(asked)[page.session] != READING, 60, "the summary")
    summary = page.get(asked)[page.session]
    overview = load(stored / "logs").overview().to_dict()  # type: ignore[attr-defined]
    assert summary["verdict"] == overview["verdict"]
    assert summary["step_ms"] == overview["median_step_ms"]
    assert summary["steps_ms"] == [step["duration_ms"] for step in overview["steps"]]
    page.site.close()

    other = Page(stored / "logs", stored / "cache")
    assert other.get(f"/api/glances?sessions={page.session}") == {page.session: summary}
    other.site.close()


def test_a_damaged_session_says_why_it_has_no_glance_and_one_that_is_too_large_is_left_alone(stored: Path) -> None:
    (next((stored / "logs").rglob("*.xplane.pb"))).write_bytes(b"\x0a\xff")
    page = Page(stored / "logs", stored / "cache")
    asked = f"/api/glances?sessions={page.session}"
    await_until(lambda: page.get(asked)[page.session] != READING, 60, "the failure")
    assert page.get(asked)[page.session] == {"problem": "no plane of an XSpace can be read"}
    page.site.close()

    listed = page.site.catalogue.sessions()[0]
    assert Prefetcher(Cache(), most_bytes=1, is_busy=lambda: False).summary(listed) is None


def test_a_prediction_is_that_of_the_api_and_nonsense_is_refused(stored: Path) -> None:
    page = Page(stored / "logs", stored / "cache")
    page.read()
    root = f"/api/sessions/{page.session}/whatif"
    told = load(stored / "logs").whatif(scales={"device_compute": 0.5}).to_dict()
    assert page.get(f"{root}?scale=device_compute:0.5")["predicted_step_time_ms"] == told["predicted_step_time_ms"]
    for query in ("", "?scale=input", "?scale=input:-1", "?scale=:0", "?scale=no%20such%20part:0"):
        assert page.get(root + query, 400)["error"]
    page.site.close()
