"""A session of several hosts on the page: an engine analyses them, and the page shows how far it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.web.opened import OpenSession
from stepscope.web.site import Root, Site, SiteOptions

sessions = pytest.importorskip("bench.sessions", reason="the bench is in the checkout alone")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five hosts; one of them is no profile."""
    folder = tmp_path_factory.mktemp("session")
    sessions.make_session(folder, sessions.Scenario(hosts=4))
    next(folder.rglob("host0002.xplane.pb")).with_name("host0004.xplane.pb").write_bytes(b"\xff" * 64)
    return Path(folder)


def open_session(logdir: Path) -> tuple[Site, OpenSession]:
    """The only session of a logdir, loaded, in a server that keeps one trace."""
    site = Site(SiteOptions([Root(str(logdir))], trace_bytes=1))
    opened = site.opened(site.catalogue.sessions()[0].id)
    opened.wait(300)
    return site, opened


def test_an_engine_analyses_the_hosts_and_the_page_shows_how_far_it_is(
    logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[str] = []
    monkeypatch.setattr(OpenSession, "_set_stage", lambda self, stage: stages.append(stage))
    monkeypatch.setenv("STEPSCOPE_ENGINE", "local=1")
    site, opened = open_session(logdir)

    assert opened.state == "ready", opened.error
    assert {name: host.state for name, host in opened.hosts.items()} == {
        "host0000": "ready", "host0001": "ready", "host0002": "ready", "host0003": "ready", "host0004": "failed"
    }  # fmt: skip
    last = [stage.startswith("analysed 4 of 5 hosts, 1 failed") and "s left" in stage for stage in stages]
    assert any(last), stages
    # Once it is ready, the first host is read for the timeline.
    assert not [stage for stage in stages[: last.index(True)] if stage.startswith("reading")]
    assert opened.report("overview").hosts == ("host0000", "host0001", "host0002", "host0003")
    assert not site.shelf.nbytes()
