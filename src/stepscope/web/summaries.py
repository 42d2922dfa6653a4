"""What the list of sessions shows of each beside its name.

A summary is made when a session's first report is ready, and kept in the result cache: a profile is read for it once.
Those of sessions that nobody has opened are made in the background, one after another.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec

from stepscope.api import MEMORY_OF_FILE, LoadedProfile
from stepscope.cache import Cache, cache_key
from stepscope.errors import StepscopeError
from stepscope.formats import store
from stepscope.runs import describe_overview
from stepscope.vocabulary.workers import describe_workers

if TYPE_CHECKING:
    from stepscope.report import Report
    from stepscope.web.catalogue import Listed

MOST_STEPS = 40
"""Step times in a summary, enough for a small line."""

_log = logging.getLogger(__name__)
_NAME = "glance2"
_FAULT = "it cannot be analysed, by a fault of stepscope; opening it says more"

SessionSummary = dict[str, Any]

READING: SessionSummary = {"reading": True}  # in place of one that is being made

_BUSY_SECONDS = 0.5


class Prefetcher:
    """Makes the summaries of local, small sessions that nobody has opened, while none that somebody opened is read."""

    def __init__(self, cache: Cache, most_bytes: int, is_busy: Callable[[], bool]) -> None:
        self._cache, self._most_bytes, self._is_busy = cache, most_bytes, is_busy
        self._made: dict[tuple[str, object], SessionSummary | None] = {}
        self._wanted: SimpleQueue[Listed] = SimpleQueue()
        self._ends = threading.Event()

    def summary(self, listed: Listed) -> SessionSummary | None:
        """A session's summary; `READING` if it is to come, None if it is not."""
        if kept := kept_summary(self._cache, listed):
            return kept
        key = listed.id, listed.identities
        is_small = not store.is_remote(listed.session.path) and MEMORY_OF_FILE * listed.nbytes <= self._most_bytes
        if key not in self._made and is_small:
            if not self._made:
                threading.Thread(target=self._run, name="fill the list", daemon=True).start()
            self._made[key] = READING
            self._wanted.put(listed)
        return self._made.get(key)

    def close(self) -> None:
        """Ends the work after the session that is being read."""
        self._ends.set()

    def _run(self) -> None:
        while not self._ends.is_set():
            listed = self._wanted.get()
            while self._is_busy():
                if self._ends.wait(_BUSY_SECONDS):
                    return
            self._made[listed.id, listed.identities] = self._read(listed)

    def _read(self, listed: Listed) -> SessionSummary | None:
        try:
            summary = summarize_session(
                LoadedProfile(listed.session, listed.session.files, self._cache).report("overview")
            )
        except (StepscopeError, OSError, ValueError) as error:
            if not isinstance(error, StepscopeError):
                _log.exception("no summary of %s", listed.session.path)
            return {"problem": error.problem.reason if isinstance(error, StepscopeError) else _FAULT}
        keep_summary(self._cache, listed, summary)
        return summary


def summarize_session(report: Report) -> SessionSummary:
    """Devices, the figures of `stepscope runs`, and step times, from the overview."""
    overview = report.to_dict()
    devices = {name: overview["environment"].get(name) for name in ("device_type", "device_count", "devices_used")}
    steps = [step["duration_ms"] for step in overview.get("steps", ())]
    every = -(-len(steps) // MOST_STEPS) or 1
    step = overview.get("account_step") or {}
    long_ms = None if step.get("is_median", True) else step.get("ms")  # of which the share is, not of the median
    recorded = overview["environment"]["recorded"]
    said = {
        "recorded": recorded,
        "limit": overview["verdict_text"].partition(":")[0],
        "hosts": describe_workers(overview["hosts"]),
    }
    return devices | describe_overview(overview) | said | {"steps_ms": steps[::every], "long_step_ms": long_ms}


def keep_summary(cache: Cache, listed: Listed, summary: SessionSummary) -> None:
    """Stores a summary until one of the session's files changes."""
    cache.put_bytes(_key_of(listed), _NAME, msgspec.json.encode(summary))


def kept_summary(cache: Cache, listed: Listed) -> SessionSummary | None:
    """The stored summary of a session as it is now; None if there is none."""
    kept = cache.get_bytes(_key_of(listed), _NAME)
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(kept, type=SessionSummary) if kept else None
    return None


def _key_of(listed: Listed) -> str | None:
    """The key of the session's files; None if one has disappeared or could change unnoticed."""
    known = [identity for identity in listed.identities if identity is not None]
    return cache_key(known, _NAME) if len(known) == len(listed.identities) else None
