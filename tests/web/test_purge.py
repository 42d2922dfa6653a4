"""The end of sessions that people deleted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browsing import DRAWN, store_profile
from draw import draw

from stepscope.errors import UsageError
from stepscope.web.catalogue import Root
from stepscope.web.notes.note_store import NoteStore
from stepscope.web.notes.purge import DAYS_VARIABLE, MOST_AT_ONCE, purge, wanted_days
from stepscope.web.site import Site, SiteOptions

DAY = 86_400


class Server:
    """A site on a logdir and a store."""

    def __init__(self, folder: Path) -> None:
        options = SiteOptions([Root(str(folder / "logs"))], is_shared=True)
        self.site = Site(options, words=NoteStore(folder / "words.db"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store_profile(tmp_path / "logs", "r1", draw(DRAWN))
    return tmp_path


def delete(server: Server, run: str, at: float) -> str:
    """Deletes a session at a time."""
    listed = next(one for one in server.site.catalogue.sessions() if one.session.run == run)
    server.site.words.change(listed.id, 0, {"deleted": True}, "Label")
    with server.site.words._open() as connection:
        connection.execute("UPDATE words SET changed_at = ? WHERE session = ?", (at, listed.id))
    return listed.id


def test_files_of_sessions_that_were_deleted_long_ago_are_removed(folder: Path) -> None:
    for run in ("r2", "r3"):
        store_profile(folder / "logs", run, draw(DRAWN))
    server, now = Server(folder), 100.0 * DAY
    gone = delete(server, "r1", now - 31 * DAY)
    delete(server, "r2", now - 29 * DAY)

    assert purge(server.site, 30, now) == ["r1"]
    assert sorted(path.name for path in (folder / "logs/plugins/profile").iterdir()) == ["r2", "r3"]
    assert server.site.words.of(gone).version == 0
    assert purge(server.site, 30, now) == []
    server.site.close()


def test_nothing_behind_a_link_or_outside_the_logdir_is_removed(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "logs/plugins/profile/r1").rename(folder / "elsewhere/r1")
    (folder / "logs/plugins/profile/r1").symlink_to(folder / "elsewhere/r1")
    server = Server(folder)
    delete(server, "r1", 1.0)

    assert purge(server.site, 30, 100.0 * DAY) == []
    assert len(list((folder / "elsewhere/r1").iterdir())) == 1
    server.site.close()


def test_one_look_removes_few(folder: Path) -> None:
    (content,) = (folder / "logs/plugins/profile/r1").iterdir()
    for number in range(MOST_AT_ONCE + 4):
        run = folder / f"logs/plugins/profile/many{number}"
        run.mkdir()
        os.link(content, run / content.name)
    server = Server(folder)
    for number in range(MOST_AT_ONCE + 4):
        delete(server, f"many{number}", 1.0)

    assert len(purge(server.site, 30, 100.0 * DAY)) == MOST_AT_ONCE
    assert len(purge(server.site, 30, 100.0 * DAY)) == 4
    server.site.close()


@pytest.mark.parametrize("text", ["0", "0.5", "soon", "-3", "nan"])
def test_a_wrong_number_of_days_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(DAYS_VARIABLE, text)
    with pytest.raises(UsageError):
        wanted_days()


def test_nothing_is_removed_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DAYS_VARIABLE, raising=False)
    assert wanted_days() is None
    monkeypatch.setenv(DAYS_VARIABLE, "30")
    assert wanted_days() == 30
