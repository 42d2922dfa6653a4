"""The sessions that an agent may read, each opened once, with its reports in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from difflib import get_close_matches

from stepscope.analysis.compare.sides import Side, side_of
from stepscope.api import LoadedProfile, load
from stepscope.cache import Cache
from stepscope.errors import InputError, UsageError
from stepscope.formats import store
from stepscope.formats.session import Session, find_sessions
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Report
from stepscope.shelf import Recent, TraceShelf

_MOST_OPEN = 12
_MOST_REPORTS = 64  # of a session
_MEMORY = 2 << 30  # bytes of decoded traces
_MOST_NAMED = 5


@dataclass(frozen=True)
class NamedSession:
    """A session that was found; `id` is its run's name, or its path where several runs have that name."""

    id: str
    session: Session


class Opened:
    """A session with the reports that were asked for."""

    def __init__(self, profile: LoadedProfile) -> None:
        self.profile = profile
        self._identities = profile.identities()
        self._reports: Recent[tuple[str, str | None, str | None], Report] = Recent(_MOST_REPORTS)

    @property
    def is_current(self) -> bool:
        """Whether its files are what they were when it was opened; remote ones are not looked at again."""
        return store.is_remote(self.profile.path) or self.profile.identities() == self._identities

    def report(self, tool: str, host: str | None = None, steps: str | None = None) -> Report:
        """A tool's report; made once.  Raises the errors of `LoadedProfile.report`."""
        key = tool, host, steps
        return self._reports.get(key) or self._reports.put(key, self.profile.report(*key))

    def trace(self, host: str | None) -> HostTrace:
        """A host's trace, of the first host if None.  Raises UsageError, InputError."""
        return self.profile.trace(host or self.profile.hosts[0])

    def side(self, tools: Sequence[str]) -> Side:
        """The session as one side of a comparison."""

        def ask(names: Sequence[str], within_steps: bool) -> dict[str, Report]:
            return {name: self.report(name, None, "all" if within_steps else None) for name in names}

        return side_of(self.profile.run, self.profile.path, ask, tools)


class Sessions:
    """The sessions below some places.

    Args:
        roots: the places; with none, an agent may name any path, and the working folder is listed.
        follows_links: whether links may lead out of the places.
    """

    def __init__(self, roots: Sequence[str], follows_links: bool = False) -> None:
        self.lock = threading.RLock()
        self._roots = tuple(roots)
        self._within = [store.plain(root) for root in roots] if roots and not follows_links else None
        self._shelf = TraceShelf(_MEMORY)
        self._open: Recent[str, Opened] = Recent(_MOST_OPEN)

    def list_all(self) -> list[NamedSession]:
        """All sessions, the newest first.  Raises InputError if there is none anywhere."""
        found: list[Session] = []
        errors: list[InputError] = []
        for root in self._roots or (".",):
            try:
                found += find_sessions(root, self._within)
            except InputError as error:
                errors.append(error)
        if not found and errors:
            raise errors[0]
        return _name_sessions(found)

    def opened(self, wanted: str) -> Opened:
        """A session by its id, or by a path if no roots were given.

        Raises:
            UsageError: there is no such session; the message has the nearest ids.
            InputError: it cannot be read.
        """
        known = self._open.get(wanted)
        if known is None or not known.is_current:
            return self._open.put(wanted, Opened(self._load(wanted)))
        return known

    def _load(self, wanted: str) -> LoadedProfile:
        try:
            listed = self.list_all()
        except InputError:
            if self._roots:
                raise
            listed = []
        found = next((each for each in listed if each.id == wanted), None)
        if found is not None:
            return LoadedProfile(found.session, found.session.files, Cache(), shelf=self._shelf)
        if self._roots:
            raise _no_session(wanted, listed)
        try:
            return load(wanted, shelf=self._shelf)
        except InputError as error:
            if not listed:
                raise
            raise _no_session(wanted, listed) from error


def _name_sessions(found: Sequence[Session]) -> list[NamedSession]:
    runs = [session.run for session in found]
    return [NamedSession(one.run if runs.count(one.run) == 1 else f"{one.path}#{one.run}", one) for one in found]


def _no_session(wanted: str, listed: Sequence[NamedSession]) -> UsageError:
    names = [each.id for each in listed]
    near = get_close_matches(wanted, names, n=_MOST_NAMED, cutoff=0.3) or names[:_MOST_NAMED]
    return UsageError(f"there is no session {wanted!r}", hint=f"nearest: {', '.join(near)}; list_sessions has all")
