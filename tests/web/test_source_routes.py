"""The lines of the program that an advice is about: only what the session names, and only on the own machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from browsing import store_profile
from draw import Sort, draw
from werkzeug.test import Client

from stepscope.cache import Cache, CacheOptions
from stepscope.model.kinds import EventKind as K
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions

SORTS = {"g": Sort(K.PYTHON_CALL, "$train.py:3 __getitem__")}
TRACE = """
    host main | M0--------M1--------M2--------
    host main | g-g-g-aaaag-g-g-aaaag-g-g-aaaa
"""
PROGRAM = "class Pictures:\n\n    def __getitem__(self, at):\n        return decode(at)\n"


def ask(folder: Path, is_shared: bool = False) -> Any:
    """What the route of the first advice answers."""
    options = SiteOptions([Root(str(folder / "logs"))], is_shared=is_shared)
    site = Site(options, Cache(CacheOptions(folder / "cache")))
    client = Client(App(site))
    session = client.get("/api/sessions").json["sessions"][0]["id"]
    while client.get(f"/api/sessions/{session}?wait=1000").json["state"] == "loading":
        pass
    first = client.get(f"/api/sessions/{session}/tools/advice").json["report"]["advice"][0]
    assert (first["culprit"]["file"], first["culprit"]["line"]) == ("train.py", 3)
    unknown = client.get(f"/api/sessions/{session}/advice/nonsense/source")
    assert (unknown.status_code, unknown.json["error"]) == (404, "there is no advice 'nonsense'")
    answer = client.get(f"/api/sessions/{session}/advice/{first['id']}/source").json
    site.close()
    return answer


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    store_profile(tmp_path / "logs", "drawn", draw(TRACE, SORTS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_lines_of_the_culprit_are_shown_where_its_file_is_here(stored: Path) -> None:
    (stored / "train.py").write_text(PROGRAM)
    os.utime(stored / "train.py", (0, 0))

    lines = ["    def __getitem__(self, at):", "        return decode(at)"]
    assert ask(stored) == {"path": str(stored / "train.py"), "line": 3, "lines": lines, "at": 3, "is_edited": False}
    (stored / "train.py").touch()
    assert ask(stored)["is_edited"]


def test_nothing_is_shown_of_a_file_that_is_gone_or_has_changed(stored: Path) -> None:
    (stored / "train.py").write_text("print('another program')\n" * 5)

    assert ask(stored) == {"path": None, "line": None, "lines": [], "at": None, "is_edited": False}


def test_a_server_that_others_see_shows_no_file_of_its_machine(stored: Path) -> None:
    (stored / "train.py").write_text(PROGRAM)

    assert ask(stored, is_shared=True) == {"path": None, "line": None, "lines": [], "at": None, "is_edited": False}
