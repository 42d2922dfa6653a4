"""Keeps the captures of watches within a quota: the oldest are removed first."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from stepscope.capture.publish import replace_text
from stepscope.formats import store
from stepscope.formats.candidates import WATCH_MARKER
from stepscope.records import dataclass


@dataclass(frozen=True)
class KeptRun:
    """A session that a watch has kept.

    Attributes:
        folder: where it is.
        size: of its files, in bytes.
        at: when it was kept, in seconds since 1970.
    """

    folder: Path
    size: int
    at: float


def mark_run(folder: Path, facts: dict[str, object]) -> None:
    """Makes a session one of a watch: others are never removed.  Another rank may do the same at the same time."""
    replace_text(folder / WATCH_MARKER, json.dumps(facts))


def find_kept_runs(logdir: Path) -> list[KeptRun]:
    """The sessions of watches in a logdir, oldest first."""
    return sorted(_list_runs(logdir / "plugins" / "profile"), key=lambda run: (run.at, run.folder.name))


def _list_runs(profiles: Path) -> Iterator[KeptRun]:
    with suppress(OSError):
        for folder in profiles.iterdir():
            with suppress(OSError):
                at = (folder / WATCH_MARKER).stat().st_mtime
                yield KeptRun(folder, sum(file.stat().st_size for file in folder.iterdir()), at)


def enforce_quota(logdir: Path, most_bytes: float, spared: Collection[str]) -> list[str]:
    """Removes the oldest sessions of watches until the others fit; returns the names of those removed.

    Args:
        most_bytes: what all of them may occupy.
        spared: names of sessions that are never removed: those that are being written, and the ring.
    """
    runs = find_kept_runs(logdir)
    left, removed = sum(run.size for run in runs), []
    for run in runs:
        if left <= most_bytes:
            break
        if run.folder.name in spared or _is_written(run, time.time()):
            continue
        if _remove(run.folder):
            left -= run.size
            removed.append(run.folder.name)
    return removed


class RemoteRuns:
    """The sessions that this watch has kept in a remote store, where those of other jobs are not looked for: that
    would take requests for every one of them.

    Args:
        most_bytes: what they may occupy.
    """

    def __init__(self, most_bytes: float) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[str, int] = {}  # address of the folder -> bytes, oldest first
        self._lock = threading.Lock()

    def add(self, address: str) -> list[str]:
        """A session was kept; removes the oldest others until all fit, and returns the names of those removed.

        Args:
            address: of its folder.
        """
        size = sum(entry.identity.size or 0 for folder in store.walk(address, max_depth=0).folders
                   for entry in folder.files if entry.identity is not None)  # fmt: skip
        removed = []
        with self._lock:
            self._kept.pop(address, None)
            self._kept[address] = size
            while sum(self._kept.values()) > self._most_bytes and len(self._kept) > 1:
                oldest = next(iter(self._kept))
                store.remove(oldest)
                del self._kept[oldest]
                removed.append(store.basename(oldest))
        return removed


_WRITING_S = 60.0


def _is_written(run: KeptRun, now: float) -> bool:
    """Whether a rank may still be writing to it: a ring file changed a moment ago."""
    with suppress(OSError):
        partials = [file for file in run.folder.iterdir() if file.name.endswith(".partial")]
        return any(now - file.stat().st_mtime < _WRITING_S for file in partials)
    return False


def _remove(folder: Path) -> bool:
    """Removes a session: only its own files, no folders below it."""
    try:
        for file in folder.iterdir():
            if file.name != WATCH_MARKER:
                file.unlink()
        (folder / WATCH_MARKER).unlink(missing_ok=True)
        folder.rmdir()
    except OSError:
        return False
    return True
