"""Loading a profile and asking it questions: `stepscope.load`.

This is where finding, reading, caching and analysing come together; everything that shows results starts here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from stepscope.analysis.grouping import forest_columns, restore_forest
from stepscope.analysis.registry import TOOLS, Tool, tool_named
from stepscope.cache import Cache, cache_key
from stepscope.errors import Problem, StepscopeError, UnreadableError
from stepscope.formats import store
from stepscope.formats.session import HostFile, Session, find_session, pick_host

if TYPE_CHECKING:
    from stepscope.analysis.advice.tool import AdviceReport
    from stepscope.analysis.advice.whatif import WhatIfReport
    from stepscope.model import HostTrace
    from stepscope.report import Report

Progress = Callable[[str], None]

WORTH_KEEPING = 200_000
"""Events from which on reading the derived columns of a trace from the cache beats computing them."""

_FOREST = "forest"

# Found while searching; of interest to who looks for a profile, not to who reads a report.
_QUIET_PROBLEMS = frozenset({"search-depth"})


def load(
    path: str | os.PathLike[str],
    *,
    run: str | None = None,
    host: str | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> LoadedProfile:
    """Finds a profile; files are read when the first question needs them.

    Args:
        path: a profile file, a session folder, a logdir, or any parent of these; local, or a URL that fsspec knows.
        run: the session to take, by name; the newest if None.
        host: the host to look at; all of the session's hosts if None.
        cache: where derived data is kept; the user's cache directory if None.
        progress: called with a short sentence whenever a longer piece of work begins.

    Raises:
        NotFoundError: there is no profile; the message says what there is instead.
        AccessError: it may not be read.
        UsageError: there is no such run or host; the message lists those there are.
    """
    session = find_session(path, run)
    files = session.files if host is None else (pick_host(session, host),)
    return LoadedProfile(session, files, cache or Cache(), progress)


class LoadedProfile:
    """A session of one or many hosts, with a method for each tool.

    >>> profile = load("logs")  # doctest: +SKIP
    >>> profile.overview()  # doctest: +SKIP
    """

    def __init__(
        self, session: Session, files: Iterable[HostFile], cache: Cache, progress: Progress | None = None
    ) -> None:
        self._session = session
        self._files = tuple(files)
        self._cache = cache
        self._progress = progress or (lambda _: None)
        self._trace: tuple[str, HostTrace] | None = None

    @property
    def run(self) -> str:
        """The session's name."""
        return self._session.run

    @property
    def path(self) -> str:
        """Where the session lies."""
        return self._session.path

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts that are looked at."""
        return tuple(file.host for file in self._files)

    def __repr__(self) -> str:
        return f"<profile {self.run!r} of {', '.join(self.hosts)} in {self.path}>"

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *(tool.method for tool in TOOLS)])

    def __getattr__(self, name: str) -> Callable[[], Report]:
        for tool in TOOLS:
            if tool.method == name:
                return lambda: self.report(tool.name)
        raise AttributeError(f"a loaded profile has no {name!r}; tools: {', '.join(tool.method for tool in TOOLS)}")

    def trace(self, host: str | None = None) -> HostTrace:
        """One host's trace; `host` may be left out if there is only one.

        The last trace asked for is kept, so that several tools read a file once; earlier ones are let go, so that a
        session of many hosts needs the memory of one.
        """
        file = self._files[0] if host is None and len(self._files) == 1 else pick_host(self._session, host or "")
        if self._trace is None or self._trace[0] != file.path:
            self._trace = None  # let the last one go before the next is read
            self._progress(f"reading {file.host}" + (f" ({file.size / 1e6:,.1f} MB)" if file.size else ""))
            trace = _read(file)
            if len(trace.events) >= WORTH_KEEPING:
                kept = self._cache.get_columns(_key(file), _FOREST)
                if kept is not None:
                    restore_forest(trace, kept)
            self._trace = (file.path, trace)
        return self._trace[1]

    def report(self, tool_name: str) -> Report:
        """What a tool says.  A host that cannot be read is left out and named, unless it is the only one.

        Raises:
            UsageError: there is no such tool.
            InputError: no host can be read.
        """
        tool = tool_named(tool_name)
        partials, problems = [], [p for p in self._session.problems if p.code not in _QUIET_PROBLEMS]
        for file in self._files:
            try:
                partials.append(self._partial(tool, file))
            except UnreadableError as error:
                if len(self._files) == 1:
                    raise
                problems.append(error.problem)
        if not partials:
            raise UnreadableError(
                f"none of the {len(self._files)} hosts can be read", path=self.path, hint="; ".join(map(str, problems))
            )
        report = tool.finish(tool.merge(partials), self._read)
        return _with_problems(report, problems, lost=len(self._files) - len(partials))

    def whatif(self, remove: str, scale: float = 0.0) -> WhatIfReport:
        """The step time with a part of the step removed or made faster.

        Args:
            remove: a class of advice, a category of the step breakdown, or the name of an op.
            scale: how much of its time stays: 0 removes it, 0.5 halves it.

        Raises:
            UsageError: there is no such part, or the profile holds no steps.
        """
        from stepscope.analysis.advice.whatif import what_if

        advice = cast("AdviceReport", self.report("advice"))
        context = replace(advice.context, read=self._read)
        return what_if(context, remove, scale, advice.hosts, advice.warnings)

    def _read(self, tool_name: str) -> Mapping[str, Any] | None:
        """A tool's result for another tool; None if there is no such tool or it cannot answer."""
        try:
            return self.report(tool_name).to_dict()
        except StepscopeError:
            return None

    def _partial(self, tool: Tool, file: HostFile) -> Any:
        """What one host contributes, from the cache if it is there."""
        import msgspec

        key, name = _key(file), f"{tool.partial_of or tool.name}.partial"
        kept = self._cache.get_bytes(key, name)
        if kept is not None:
            try:
                return msgspec.msgpack.decode(kept, type=tool.partial_type)
            except (msgspec.DecodeError, msgspec.ValidationError):
                pass  # written by something else; computed anew below
        trace = self.trace(file.host)
        self._progress(f"analysing {file.host} ({len(trace.events):,} events)")
        partial = tool.partial(trace)
        self._cache.put_bytes(key, name, msgspec.msgpack.encode(partial))
        if len(trace.events) >= WORTH_KEEPING and self._cache.get_columns(key, _FOREST, only=()) is None:
            self._cache.put_columns(key, _FOREST, forest_columns(trace))
        return partial


def _read(file: HostFile) -> HostTrace:
    """Reads a host's file, and imports what decodes it while the disk or the network is at work."""
    with ThreadPoolExecutor(1) as background:
        content = background.submit(store.read_bytes, file.path)
        file.format.load_reader()
        data = content.result()
    return file.format.read(data, file.path, file.host)


def _key(file: HostFile) -> str | None:
    """The cache's key for what is derived from a host's file."""
    return cache_key([store.identity(file.path)], file.host)


def _with_problems(report: Report, problems: list[Problem], lost: int) -> Report:
    if not problems:
        return report
    warnings = (*map(str, problems), *report.warnings)
    return replace(report, warnings=warnings, partial=report.partial or lost > 0)
