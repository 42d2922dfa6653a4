"""The site: the first argument of every handler."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from stepscope.analysis.registry import tool_named
from stepscope.api import LoadedProfile
from stepscope.cache import Cache
from stepscope.formats import store
from stepscope.formats.base import FORMATS
from stepscope.records import dataclass
from stepscope.shelf import TraceShelf
from stepscope.web.answers import Refused
from stepscope.web.capturing import Captures, find_logdir
from stepscope.web.catalogue import Catalogue, Listed, Root
from stepscope.web.hosts import HostNames
from stepscope.web.notes.note_store import NoteStore, default_store
from stepscope.web.opened import FIRST_TOOL, OpenSession
from stepscope.web.summaries import READING, Prefetcher, SessionSummary

if TYPE_CHECKING:
    from stepscope.sql.asking import Asker

MOST_OPEN = 8
"""Sessions whose reports are kept; the least recently used is dropped first."""

MOST_SUMMARIES = 100  # in one request

MOST_WAITING = 4
"""Requests that may wait for a session to be ready; each holds a thread of the server."""

_PATIENCE_SECONDS = 60.0
_CLOSE_SECONDS = 5.0  # loading libraries takes one or two

DEFAULT_TRACE_BYTES = 2 << 30


@dataclass(frozen=True)
class SiteOptions:
    """What a site shows and how.

    Attributes:
        roots: the logdirs, or files.
        embedded: what the site is mounted in; None if it stands alone.
        trace_bytes: memory for decoded traces; the last used one is kept whatever its size.
        host_names: the names that it answers to; None for all.
        host_hint: how to add one.
        is_shared: people beside the one who started it see it: answers name no folder of this machine.
        opens_newest: loads the newest session before it is requested: the page shows it first.
        follows_links: whether links may lead out of the logdirs.
        report: makes the file of `stepscope report` of a profile that is called by a place; None if it offers none.
    """

    roots: Sequence[Root]
    embedded: Literal["tensorboard"] | None = None
    trace_bytes: int = DEFAULT_TRACE_BYTES
    host_names: HostNames | None = None
    host_hint: str = "see --allowed-host"
    is_shared: bool = False
    opens_newest: bool = False
    follows_links: bool = True
    report: Callable[[LoadedProfile, str], str] | None = None


class Site:
    """The sessions of some logdirs, and those of them that are open."""

    def __init__(self, options: SiteOptions, cache: Cache | None = None, words: NoteStore | None = None) -> None:
        self.options = options
        self.catalogue = Catalogue(options.roots, options.follows_links)
        self.shelf = TraceShelf(options.trace_bytes)
        logdir = find_logdir([root.path for root in options.roots])
        self.captures = Captures(logdir, options.is_shared)
        self.words = words or default_store()
        self._cache = cache or Cache()
        self._opened: dict[str, OpenSession] = {}
        self._lock = threading.Lock()
        self._may_wait = threading.BoundedSemaphore(MOST_WAITING)
        self._warming: threading.Thread | None = None
        self._is_closed = False
        self._asker: Asker | None = None
        self._prefetcher = Prefetcher(self._cache, options.trace_bytes, self._is_reading)

    def asker(self) -> Asker:
        """What answers questions in SQL; it imports much, so it is made when the first is asked."""
        from stepscope.sql.asking import Asker

        with self._lock:
            if self._asker is None:
                self._asker = Asker()
            return self._asker

    @property
    def is_closed(self) -> bool:
        """Whether the server is ending."""
        return self._is_closed

    def end(self) -> None:
        """Says to those who ask that the server is ending."""
        self._is_closed = True

    def listed(self, session: str) -> Listed:
        """A session by its id.  Raises Refused (404) with the known ids."""
        found = self.catalogue.find(session)
        if found is None:
            choices = [listed.id for listed in self.catalogue.sessions()]
            hint = "choose another session" if choices else "there are no profiles yet"
            raise Refused(404, f"there is no session {session!r}", hint, choices)
        return found

    def opened(self, session: str) -> OpenSession:
        """An open session; the first call starts loading it in the background.

        A session whose files have changed is opened again.  Raises Refused (404, or 410 if it was deleted).
        """
        listed = self._find_or_close(session)
        with self._lock:
            known = self._opened.pop(session, None)
            if known is None or known.identities != listed.identities:
                if known is not None:
                    known.close()
                known = OpenSession(listed, self._cache, self.shelf)
            self._opened[session] = known
            while len(self._opened) > MOST_OPEN:
                self._opened.pop(next(iter(self._opened))).close()
        return known

    def summaries(self, sessions: Sequence[str]) -> dict[str, SessionSummary | None]:
        """What is known of sessions; what is not is read in the background.  None for unknown ids."""
        listed = {one.id: one for one in self.catalogue.sessions()}
        with self._lock:
            fresh = {session: opened.summary for session, opened in self._opened.items()}
        return {
            session: fresh.get(session) or (self._prefetcher.summary(listed[session]) if session in listed else None)
            for session in sessions
        }

    def read_profiles(self) -> list[LoadedProfile]:
        """The newest sessions that were read, the oldest of them first."""
        deleted = {session for session, words in self.words.all().items() if words.deleted}
        listed = [one for one in self.catalogue.sessions()[:MOST_SUMMARIES] if one.id not in deleted]
        known = self.summaries([one.id for one in listed])
        read = [one.session for one in reversed(listed) if known[one.id] not in (None, READING)]
        return [LoadedProfile(session, session.files, self._cache, shelf=self.shelf) for session in read]

    def _is_reading(self) -> bool:
        return any(opened.state == "loading" for opened in [*self._opened.values()])

    def wait(self, opened: OpenSession, seconds: float) -> None:
        """Waits at most `seconds` for a session to be ready; not at all if too many requests wait already."""
        if self._may_wait.acquire(blocking=False):
            try:
                opened.wait(seconds)
            finally:
                self._may_wait.release()

    def _find_or_close(self, session: str) -> Listed:
        try:
            return self.listed(session)
        except Refused as refused:
            with self._lock:
                known = self._opened.pop(session, None)
            if known is None:
                raise
            known.close()
            hint = "it was deleted or renamed while it was open; choose another session"
            raise Refused(410, f"the session {known.listed.session.run} is gone", hint, refused.choices) from None

    def warm_up(self) -> None:
        """Prepares in the background for the first profile, while the browser starts."""
        self._warming = threading.Thread(target=self._warm_up, name="warm up", daemon=True)
        self._warming.start()

    def _warm_up(self) -> None:
        for listed in self.catalogue.sessions()[:1]:
            if self._is_closed:
                return
            if self.options.opens_newest and not self._opened and not store.is_remote(listed.session.path):
                with suppress(Refused):  # it was deleted meanwhile
                    self.opened(listed.id).wait(_PATIENCE_SECONDS)
        if not self._is_closed:
            import_ahead(FIRST_TOOL)

    def close(self) -> None:
        """Ends the background work.

        It waits for libraries that are being loaded: a process that exits during that may abort.
        """
        self._is_closed = True
        self._prefetcher.close()
        self.captures.close()
        if self._asker is not None:
            self._asker.close()
        with self._lock:
            for opened in self._opened.values():
                opened.close()
            self._opened.clear()
        if self._warming is not None:
            self._warming.join(_CLOSE_SECONDS)


def import_ahead(tool: str) -> None:
    """Imports the readers, a tool and the timeline.  A failure is logged; the import then happens later."""
    try:
        for kind in FORMATS:
            kind.load_reader()
        for module in (tool_named(tool).module, "stepscope.web.timeline"):
            importlib.import_module(module)
    except Exception as error:
        logging.getLogger(__name__).warning("the first profile will open more slowly: %s", error)
