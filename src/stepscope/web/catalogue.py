"""The sessions below the logdirs, with ids for addresses, looked up again as files come and go."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from stepscope.errors import InputError, Problem
from stepscope.formats import store
from stepscope.formats.session import Session, find_sessions
from stepscope.records import dataclass

FRESH_SECONDS = 1.0
"""A listing is reused for this long, or for WORTH times the time it took to make, whichever is longer."""
WORTH = 10

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_NAMED_ROOT = re.compile(r"(?P<name>[\w.-]{1,60})=(?P<path>.+)", re.DOTALL)
_SLUG_LENGTH = 48


@dataclass(frozen=True)
class Root:
    """A place to look for sessions.

    Attributes:
        path: a logdir, or any other path that `find_sessions` takes.
        name: a prefix for the names of its runs; empty for the only root.
    """

    path: str
    name: str = ""


def parse_root(text: str) -> Root:
    """A root from `LOGDIR` or `NAME=LOGDIR`."""
    found = _NAMED_ROOT.fullmatch(text)
    return Root(found["path"], found["name"]) if found else Root(text)


@dataclass(frozen=True)
class Listed:
    """A session that was found.

    Attributes:
        id: its id in addresses; stays the same until the session is moved.
        session: what the finder returned.
        identities: those of its files; None for a file that has disappeared.
    """

    id: str
    session: Session
    identities: tuple[store.Identity | None, ...]

    @property
    def modified(self) -> float | None:
        """When its newest file was written, in seconds since 1970; None if the store does not say."""
        times = [one.modified_ns for one in self.identities if one is not None and one.modified_ns is not None]
        return max(times) / 1e9 if times else None

    @property
    def nbytes(self) -> int:
        """The total size of its files, as far as the store reports it."""
        return sum(one.size or 0 for one in self.identities if one is not None)


@dataclass(frozen=True)
class Listing:
    """The result of one look at the roots: sessions, the newest first, and problems."""

    sessions: tuple[Listed, ...]
    problems: tuple[Problem, ...]


class Catalogue:
    """The sessions of some roots.  Safe to use from several threads.

    Args:
        roots: where they are.
        follows_links: whether links may lead out of the roots.
    """

    def __init__(self, roots: Sequence[Root], follows_links: bool = True) -> None:
        self.roots = tuple(roots)
        self._within = None if follows_links else [store.plain(root.path) for root in roots]
        self._lock = threading.Lock()
        self._listing: Listing | None = None
        self._valid_until = 0.0

    def scan(self) -> Listing:
        """The sessions now, or a moment ago.  A root without sessions is listed in `problems`; nothing is raised."""
        with self._lock:
            if self._listing is None or time.monotonic() >= self._valid_until:
                began = time.monotonic()
                self._listing = _look(self.roots, self._within)
                ended = time.monotonic()
                self._valid_until = ended + max(FRESH_SECONDS, WORTH * (ended - began))
            return self._listing

    def has_reachable_root(self) -> bool:
        """Whether at least one of the roots is there now; those of other machines count as there."""
        return any(store.is_remote(root.path) or _is_there(root.path) for root in self.roots)

    def forget(self) -> None:
        """Makes the next look read the roots again."""
        with self._lock:
            self._valid_until = 0.0

    def sessions(self) -> tuple[Listed, ...]:
        """The sessions, the newest first."""
        return self.scan().sessions

    def find(self, wanted: str) -> Listed | None:
        """The session with an id and the current identities of its files; None if there is none."""
        found = next((one for one in self.sessions() if one.id == wanted), None)
        return found and _refresh_identities(found)


def _look(roots: Sequence[Root], within: Sequence[str] | None) -> Listing:
    listed: list[Listed] = []
    problems: list[Problem] = []
    for root in roots:
        try:
            sessions = find_sessions(root.path, within)
        except InputError as error:
            problems.append(error.problem)
            continue
        problems += dict.fromkeys(problem for session in sessions for problem in session.problems)
        listed += [_listed(root, session) for session in sessions]
    if len(roots) > 1:
        # Each root's sessions are already in order, by times that only the finder reads; file times suffice to merge.
        listed.sort(key=lambda one: one.modified or 0.0, reverse=True)
    return Listing(tuple(listed), tuple(dict.fromkeys(problems)))


def _listed(root: Root, session: Session) -> Listed:
    named = replace(session, run=f"{root.name}/{session.run}") if root.name else session
    return _refresh_identities(Listed(make_id(named.run, named.path), named, ()))


def _refresh_identities(listed: Listed) -> Listed:
    """The session with current identities; in remote stores, where each costs a request, those of the last look."""
    if listed.identities and store.is_remote(listed.session.path):
        return listed
    identities = tuple(_identity(file.path) for file in listed.session.files)
    return listed if identities == listed.identities else replace(listed, identities=identities)


def _is_there(path: str) -> bool:
    with suppress(InputError):
        return store.kind(store.plain(path)) is not None
    return False


def _identity(path: str) -> store.Identity | None:
    with suppress(InputError):
        return store.identity(path)
    return None


def make_id(run: str, place: str) -> str:
    """The id of a run in addresses: its name made safe, and a short hash of its place, however the logdir is named."""
    slug = _UNSAFE.sub("_", run)[-_SLUG_LENGTH:].strip("_.-") or "run"
    source = f"{store.absolute(place)}\n{run}".encode("utf-8", "surrogateescape")
    return f"{slug}-{hashlib.blake2b(source, digest_size=4).hexdigest()}"
