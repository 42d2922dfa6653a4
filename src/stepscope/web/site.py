"""The site: what every handler gets first."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from stepscope.analysis.registry import tool_named
from stepscope.cache import Cache
from stepscope.formats.base import FORMATS
from stepscope.shelf import TraceShelf
from stepscope.web.answers import Refused
from stepscope.web.capturing import Captures, logdir_of
from stepscope.web.catalogue import Catalogue, Listed, Root
from stepscope.web.opened import FIRST_TOOL, OpenSession

MOST_OPEN = 8
"""Sessions whose reports are kept; what is not looked at for longest goes first."""

DEFAULT_TRACE_BYTES = 2 << 30


@dataclass(frozen=True)
class SiteOptions:
    """What a site shows and how.

    Attributes:
        roots: the logdirs, or files.
        embedded: what the site is mounted in; None if it stands alone.
        trace_bytes: memory for decoded traces; the one used last is kept however large.
        allowed_hosts: values of the Host header to answer to, without port; empty for all.
    """

    roots: Sequence[Root]
    embedded: Literal["tensorboard"] | None = None
    trace_bytes: int = DEFAULT_TRACE_BYTES
    allowed_hosts: frozenset[str] = field(default_factory=frozenset)


class Site:
    """The sessions of some logdirs, and those of them that are being looked at."""

    def __init__(self, options: SiteOptions, cache: Cache | None = None) -> None:
        self.options = options
        self.catalogue = Catalogue(options.roots)
        self.shelf = TraceShelf(options.trace_bytes)
        self.captures = Captures(logdir_of([root.path for root in options.roots]))
        self._cache = cache or Cache()
        self._opened: dict[str, OpenSession] = {}
        self._lock = threading.Lock()

    def listed(self, session: str) -> Listed:
        """A session by its id.  Raises Refused (404) with the ids there are."""
        found = self.catalogue.find(session)
        if found is None:
            choices = [listed.id for listed in self.catalogue.sessions()]
            hint = "choose another session" if choices else "there are no profiles yet"
            raise Refused(404, f"there is no session {session!r}", hint, choices)
        return found

    def opened(self, session: str) -> OpenSession:
        """A session that is being looked at; the first call starts loading it in the background.

        A session whose files changed since is opened anew.  Raises Refused (404, or 410 if it was deleted).
        """
        listed = self._still_there(session)
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

    def _still_there(self, session: str) -> Listed:
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
        """Imports in the background what the first profile will need, while the browser starts."""
        threading.Thread(target=_import_ahead, name="warm up", daemon=True).start()

    def close(self) -> None:
        """Ends what goes on in the background."""
        self.captures.close()
        with self._lock:
            for opened in self._opened.values():
                opened.close()
            self._opened.clear()


def _import_ahead() -> None:
    try:
        for kind in FORMATS:
            kind.load_reader()
        tool_named(FIRST_TOOL).partial_type  # noqa: B018 - for the import
    except ImportError as error:
        logging.getLogger(__name__).warning("cannot be imported: %s", error)
