"""Removes the files of sessions that were deleted long ago, where the server was asked to.

Only what the list of sessions found is removed: the profiles of a session, and what captures store beside them.  A
folder that is a link, a file outside the logdir, and a remote store are left alone.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.errors import UsageError
from stepscope.formats import store

if TYPE_CHECKING:
    from stepscope.web.catalogue import Listed
    from stepscope.web.site import Site

DAYS_VARIABLE = "STEPSCOPE_PURGE_DAYS"
LEAST_DAYS = 1.0
"""For so long a deletion can be undone, whatever is asked for."""

MOST_AT_ONCE = 20
"""Sessions that one look removes: a mistake is noticed before all is gone."""

_LOOK_SECONDS = 600.0
_DAY_SECONDS = 86_400
_log = logging.getLogger(__name__)


def wanted_days() -> float | None:
    """For how many days a deletion can be undone; None if nothing is ever removed.  Raises UsageError."""
    text = os.environ.get(DAYS_VARIABLE, "").strip()
    if not text:
        return None
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not LEAST_DAYS <= days < 10**6:
        raise UsageError(
            f"{DAYS_VARIABLE}={text!r} is not a number of days", hint=f"at least {LEAST_DAYS:g}; unset: never"
        )
    return days


def purge(site: Site, days: float, now: float | None = None) -> list[str]:
    """Removes sessions that were deleted more than some days ago; returns their runs.

    What is said of a session counts as well: a note after the deletion starts the days anew.
    """
    before = (time.time() if now is None else now) - days * _DAY_SECONDS
    said = site.words.all()
    due = [one for one in site.catalogue.sessions() if (words := said.get(one.id)) is not None
           and words.deleted and words.changed_at < before]  # fmt: skip
    removed = [one for one in due[:MOST_AT_ONCE] if _remove(site, one)]
    for one in removed:
        site.words.forget(one.id, said[one.id].version)
        _log.warning("removed the session %s, which was deleted %s days ago or more", one.session.run, f"{days:g}")
    if removed:
        site.catalogue.forget()
    return [one.session.run for one in removed]


def _remove(site: Site, listed: Listed) -> bool:
    """Removes the files of a session, and its folder if that is one of a capture; whether its profiles are gone."""
    files = list(_own_files(site, listed))
    for path in files:
        with suppress(OSError):
            path.unlink()
    folder = Path(listed.session.path)
    if _is_run_folder(folder):
        with suppress(OSError):
            folder.rmdir()
    return bool(files) and not any(path.exists() for path in files)


def _own_files(site: Site, listed: Listed) -> Iterator[Path]:
    if store.is_remote(listed.session.path) or listed.session.joined:
        return
    roots = [Path(store.plain(root.path)).resolve() for root in site.options.roots if not store.is_remote(root.path)]
    folder = Path(listed.session.path)
    found = [Path(file.path) for file in listed.session.files]
    if _is_run_folder(folder) and not folder.is_symlink():
        with suppress(OSError):
            found += [path for path in folder.iterdir() if path not in found]
    for path in found:
        is_inside = any(root in path.resolve().parents for root in roots)
        if is_inside and not path.is_symlink() and path.is_file():
            yield path


def _is_run_folder(folder: Path) -> bool:
    """Whether it is `plugins/profile/RUN`, which belongs to one capture alone."""
    return folder.parent.name == "profile" and folder.parent.parent.name == "plugins"


class Purger:
    """Purges a site now and then, on its own thread.

    Args:
        site: of which.
        days: for how long a deletion can be undone.
    """

    def __init__(self, site: Site, days: float) -> None:
        self._site = site
        self._days = days
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="purge", daemon=True)

    def start(self) -> None:
        """Starts."""
        self._thread.start()

    def stop(self) -> None:
        """Ends."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                purge(self._site, self._days)
            except Exception:
                _log.exception("removing deleted sessions failed")
