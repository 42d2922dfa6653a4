"""Loads a profile and runs tools on it: `stepscope.load`.

This combines finding, reading, caching and analysing; everything that shows results starts here.  Modules that only
some calls need are imported by those calls: a cached result needs neither numpy nor a tool.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from stepscope.analysis.registry import TOOLS, Tool, all_tools, tool_named
from stepscope.cache import Cache, cache_key
from stepscope.engines.budget import MEMORY_OF_FILE
from stepscope.engines.host_work import CHANGED, HostWork
from stepscope.engines.session_work import WHOLE, Placement, SessionWork, StepSelection, parse_placement
from stepscope.errors import InputError, Problem, StepscopeError, UnreadableError, UsageError
from stepscope.formats import store
from stepscope.formats.session import (
    BESIDE,
    HostFile,
    Session,
    find_joined_session,
    find_sessions,
    pick_host,
    written_ns_of,
)
from stepscope.meanwhile import importing
from stepscope.proof.record import FILE, read_proofs
from stepscope.records import dataclass
from stepscope.report.kept import pack_report, unpack_report
from stepscope.shelf import TraceShelf

if TYPE_CHECKING:
    from stepscope.analysis.advice.whatif import WhatIfReport
    from stepscope.analysis.compare.compare_report import CompareReport
    from stepscope.analysis.compare.sides import Side
    from stepscope.analysis.overview.advice_tool import AdviceReport
    from stepscope.analysis.steps.step_range import StepRange
    from stepscope.model import HostTrace
    from stepscope.report import Report
    from stepscope.sql.answer import SqlReport

__all__ = ["MEMORY_OF_FILE", "LoadedProfile", "compare", "load"]

Progress = Callable[[str], None]

_numbers = itertools.count()
_MOST_TRIES = 3  # to read files that somebody replaces meanwhile
_MOST_NAMED = 5  # runs that a message lists
_TRUST = "trust"  # the tool whose finding is a line of every report
_MOST_MODELS = 8  # hosts that a what-if replays: the slowest, since the others wait for them
_MEMORY_ONLY = "memory-only"  # the code of an error
_MEMORY_TOOL = "memory-profile"
_OF_MEMORY = (_MEMORY_TOOL, "overview", "advice")  # the tools with an answer where nothing but memory was recorded
_OP_TOOLS = ("op-stats", "kernel-stats")

# The code of a notice that only some steps are read; nothing is wrong then.
_WITH_PROOFS = ("overview", "advice", "proofs")
_STEPS_NOTICE = "steps"

# Problems of the search; they matter when looking for a profile, not in a report.
_QUIET_PROBLEMS = frozenset({"search-depth", BESIDE})


ProfilePath = str | os.PathLike[str]
Answered = TypeVar("Answered")


def load(
    path: ProfilePath | Sequence[ProfilePath],
    *,
    run: str | None = None,
    host: str | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
    shelf: TraceShelf | None = None,
    engine: str | None = None,
    memory: str | None = None,
) -> LoadedProfile:
    """Finds a profile; its files are read when a tool first needs them.

    Args:
        path: a profile file, a session folder, a logdir, or any parent of these; local, or a URL that fsspec supports.
            Several paths, or a pattern such as `logs/worker*`, are read as one session of all their hosts.
        run: the name of the session; the newest if None.
        host: the host to read; all of the session's hosts if None.
        cache: where derived data is kept; the user's cache directory if None.
        progress: called with a short sentence when a longer piece of work starts.
        shelf: where decoded traces are kept; two profiles that share one need the memory of one.
        engine: where the hosts are analysed: `local`, `local=PROCESSES`, `ray`, `ray=ADDRESS`, `dask` or
            `dask=ADDRESS`; if None, `STEPSCOPE_ENGINE`, else this process or, where it pays, processes beside it.
        memory: how much memory to use, such as `4GB`; if None, `STEPSCOPE_MEMORY`, else half of what is free.

    Raises:
        NotFoundError: there is no profile; the message says what was found instead.
        AccessError: the profile may not be read.
        UsageError: there is no such run, host or engine; the message lists the known ones.
    """
    where = parse_placement(engine, memory)
    paths = [path] if isinstance(path, str | os.PathLike) else path
    session = find_joined_session(_require_several(paths), run)
    found = LoadedProfile(session, session.files, cache or Cache(), progress, shelf, None if run else paths[0], where)
    return found if host is None else found.take_host(host)


def load_sessions(logdir: ProfilePath, last: int | None = None) -> list[LoadedProfile]:
    """All sessions at or below a path, the oldest first, found in one walk; each is read when it is first asked.

    Args:
        logdir: as a path of `load`.
        last: how many of the newest to take; all if None.

    Raises:
        NotFoundError, AccessError: there is no session, or it may not be read.
    """
    cache, shelf = Cache(), TraceShelf()
    found = reversed(find_sessions(logdir)[:last])
    return [LoadedProfile(session, session.files, cache, shelf=shelf) for session in found]


def _require_several(paths: object) -> Sequence[ProfilePath]:
    """Raises UsageError if this is not a list of paths with at least one."""
    if isinstance(paths, list | tuple) and paths:
        return paths
    raise UsageError(
        f"{type(paths).__name__} {paths!r:.60} is not a path", hint="give one file or folder, or a list of them"
    )


def compare(
    before: LoadedProfile | str | os.PathLike[str],
    after: LoadedProfile | str | os.PathLike[str],
    *,
    host: str | None = None,
    steps: StepRange | str | int | None = None,
    tools: Sequence[str] | None = None,
) -> CompareReport:
    """Compares two sessions: their step times, where the time went, and whether the change is more than noise.

    Args:
        before, after: paths as for `load`, or loaded profiles.
        host: the host to compare on both sides; all hosts if None.
        steps: the steps to compare on both sides, such as `3-9`; the whole captures if None.
        tools: the tools whose reports are compared; breakdown, ops, kernels, memories and spread of steps if None.

    Raises:
        NotFoundError, AccessError, InputError: a side does not exist or cannot be read.
        UsageError: a side has no such host or steps, or a tool cannot be compared.
    """
    from stepscope.analysis.compare.compare import choose_tools
    from stepscope.analysis.compare.compare import compare as compare_sides

    names = choose_tools(tools)
    one = before if isinstance(before, LoadedProfile) else load(before)
    other = after if isinstance(after, LoadedProfile) else load(after, shelf=one.shelf)
    return compare_sides(_make_side(one, host, steps, names), _make_side(other, host, steps, names), tools)


def _make_side(
    profile: LoadedProfile, host: str | None, steps: StepRange | str | int | None, tools: Sequence[str]
) -> Side:
    """A session with the reports that a comparison needs."""
    from stepscope.analysis.compare.sides import side_of
    from stepscope.analysis.overview.overview_tool import KNOW_CULPRITS

    def ask(names: Sequence[str], within_steps: bool) -> dict[str, Report]:
        if steps is None:
            profile.prepare((*names, *(() if within_steps else KNOW_CULPRITS)), host, within_steps)
        return {name: profile.report(name, host, "all" if within_steps else steps) for name in names}

    return side_of(profile.run, profile.path, ask, tools)


def _short_path(path: str) -> str:
    """A local path as seen from the working folder, if that is shorter; anything else, and that folder
    itself, as it is."""
    if store.is_remote(path):
        return path
    try:
        seen = os.path.relpath(path)
        return path if seen == os.curdir else min(seen, path, key=len)
    except (OSError, ValueError):  # the working folder is gone, or on another drive
        return path


class LoadedProfile:
    """A session of one or many hosts, with a method for each tool.

    Attributes:
        has_engine: whether the user chose where hosts are analysed.
        number: unique among the profiles loaded in this process.

    Examples:
        >>> profile = load("logs")  # doctest: +SKIP
        >>> profile.overview()  # doctest: +SKIP
    """

    def __init__(
        self,
        session: Session,
        files: Iterable[HostFile],
        cache: Cache,
        progress: Progress | None = None,
        shelf: TraceShelf | None = None,
        found_below: str | os.PathLike[str] | None = None,
        where: Placement | None = None,
    ) -> None:
        self._session = session
        self._found_below = found_below
        self._files = tuple(files)
        self._doubts: dict[tuple[str, ...], list[Any]] = {}
        self._cache = cache
        self._progress = progress or (lambda _: None)
        self.shelf = shelf or TraceShelf()
        where = where or parse_placement(None, None)
        self._work = HostWork(cache, self.shelf, self._progress, memory_bytes=where.memory_bytes)
        self._work.is_lean = shelf is None  # what others share is read once, for whatever they ask
        self._session_work = SessionWork(self._work, where, self._progress)
        self.has_engine = where.engine is not None
        self._others: dict[tuple[str, str], LoadedProfile] = {}
        self._is_told_apart = self._may_ask_again = False
        self.number = next(_numbers)

    def take_host(self, host: str) -> LoadedProfile:
        """This profile with one of its hosts alone.  Raises UsageError with the known hosts."""
        if all(file.host != host for file in self._files):
            self.tell_apart()
        self._files = (pick_host(self._session, host),)
        return self

    def tell_apart(self, tool_module: str = "") -> Session:
        """The session with a host for each process of its only file, if that holds several; reads it unless it is
        known.  What cannot be read is said by whoever asks for more.

        Args:
            tool_module: the module that is needed next, to be imported meanwhile.
        """
        if not self._is_told_apart and len(self._files) == 1 == len(self._session.files):
            [file] = self._files
            if self._session_work.fits_here(file):
                with suppress(InputError):
                    files = file.processes(self._work.processes(file, tool_module))
                    self._session, self._files = replace(self._session, files=files), files
        self._is_told_apart = True
        return self._session

    @property
    def run(self) -> str:
        """The session's name."""
        return self._session.run

    @property
    def search_problems(self) -> tuple[Problem, ...]:
        """What the search for sessions could not read, left out or joined."""
        return self._session.problems

    @property
    def path(self) -> str:
        """The path of the session."""
        return self._session.path

    @property
    def written_ns(self) -> int | None:
        """When the recording was written, in ns since the epoch; if neither the files nor their names say so, when they
        were last changed.  None if a store does not tell."""
        return written_ns_of(self._session, or_changed=True)

    @property
    def chosen(self) -> str:
        """Which session is read, in words: its path, and that it is the newest of so many; or the given file."""
        if len({file.path for file in self._files}) == 1 and self._is_given(self._files[0].path):
            return _short_path(self._files[0].path)
        lies = ", ".join(map(_short_path, self._session.joined or (self.path,)))
        if self._session.choices > 1 and self._found_below is not None:
            return f"{lies} (the newest of {self._session.choices} sessions; --run NAME reads another)"
        return lies

    def _is_given(self, path: str) -> bool:
        """Whether the user has named this file, and no folder above it."""
        given = None if self._found_below is None else os.fspath(self._found_below)
        return given is not None and store.basename(store.plain(given)) == store.basename(path)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the selected hosts."""
        self.tell_apart()
        return tuple(file.host for file in self._files)

    @property
    def events_read(self) -> int:
        """The number of events decoded so far, over all hosts."""
        return sum(self._work.events_read.values())

    def bytes_read(self, host: str) -> int:
        """Bytes of a host's file that were decoded so far; 0 if its results came from the cache."""
        return self._work.bytes_read.get(host, 0)

    def __repr__(self) -> str:
        return f"<profile {self.run!r} of {', '.join(self.hosts)} in {self.path}>"

    if TYPE_CHECKING:  # they are made below, one for each tool

        def __getattr__(self, name: str) -> Callable[..., Report]: ...

    else:

        def __getattr__(self, name: str) -> Callable[..., Report]:
            tools = all_tools()
            if found := next((tool for tool in tools if tool.method == name), None):  # of another package
                return functools.partial(self.report, found.name)
            from difflib import get_close_matches

            methods = [tool.method for tool in tools]
            near = get_close_matches(name, methods, n=1)
            known = f"did you mean {near[0]!r}?" if near else f"tools: {', '.join(methods)}"
            raise AttributeError(f"a loaded profile has no {name!r}; {known}", name=name, obj=self)

    def trace(self, host: str | None = None) -> HostTrace:
        """One host's trace; `host` may be omitted if there is only one.

        The last used trace is kept, so that several tools read a file once.  The shelf decides how many earlier ones
        are kept; by default none, so that a session of many hosts needs the memory of one.
        """
        self.tell_apart()
        file = self._files[0] if host is None and len(self._files) == 1 else pick_host(self._session, host or "")
        return self._work.trace(file)

    def clocks(self) -> tuple[dict[str, Any], ...]:
        """How far each host's clock is ahead, as in the table `clocks` of the tool `distributed`: estimated from
        collectives that end on all ranks together.  Empty with one host, or where there are too few of them."""
        self.tell_apart()
        return self._clocks if len(self._files) > 1 else ()

    @functools.cached_property
    def _clocks(self) -> tuple[dict[str, Any], ...]:
        clocks: tuple[dict[str, Any], ...] = self.report("distributed").to_dict()["clocks"]
        return clocks

    def correct_clock(self, trace: HostTrace) -> HostTrace:
        """A host's trace with its clock set right, if it is known to be wrong by more than the uncertainty of that."""
        ahead = {row["host"]: row["ahead_ms"] for row in self.clocks() if abs(row["ahead_ms"]) > row["uncertainty_ms"]}
        if trace.start_unix_ns is None or trace.host not in ahead:
            return trace
        ahead_ns = round(ahead[trace.host] * 1e6)
        stop = None if trace.stop_unix_ns is None else trace.stop_unix_ns - ahead_ns
        return replace(trace, start_unix_ns=trace.start_unix_ns - ahead_ns, stop_unix_ns=stop, _derived={})

    def is_decoded(self, host: str) -> bool:
        """Whether a host's trace is in memory, so that `trace` returns at once."""
        return self._work.is_decoded(pick_host(self._session, host))

    def analyse(self, tool_name: str, host: str) -> Any:
        """Computes one host's part of a tool's report and caches it.  Raises UsageError, InputError."""
        return self._work.partial(tool_named(tool_name), pick_host(self._session, host))

    def prepare(
        self,
        tool_names: Iterable[str],
        host: str | None = None,
        within_steps: bool = False,
        ended: Callable[[str, Problem | None], None] = lambda host, problem: None,
    ) -> None:
        """Runs several tools on each of several hosts, so that each file is decoded once and not once per tool.
        A host that cannot be read is skipped; the reports name it.  `within_steps` is for reports on all steps.
        `ended` is called with each host and why it is skipped, if it is.  Raises UsageError."""
        self.tell_apart()
        wanted = dict.fromkeys((*tool_names, *(() if within_steps else (_TRUST,))))
        tools = [tool_named(name) for name in wanted]
        files = self._files if host is None else (pick_host(self._session, host),)
        if len(files) > 1:
            self._session_work.analyse(files, tools, StepSelection(within_steps), ended)

    def report(self, tool_name: str, host: str | None = None, steps: StepRange | str | int | None = None) -> Report:
        """A tool's report.  A host that cannot be read is left out and named, unless it is the only one.

        Args:
            tool_name: a tool of the registry.
            host: one of `hosts`; all of them if None.
            steps: the steps to read, such as `3-9`, 7 or `all`; the whole capture if None.

        Raises:
            UsageError: there is no such tool or host, or there are no such steps.
            InputError: no host can be read.
        """
        return self._ask_unchanged_files(lambda: self._report(tool_named(tool_name), host, steps)[0])

    def _ask_unchanged_files(self, ask: Callable[[], Answered]) -> Answered:
        """What `ask` answers of files that stay what they are; it is asked again where one was replaced meanwhile, so
        that no answer is made of two recordings."""
        for tries in range(_MOST_TRIES, 0, -1):
            with self._work.one_state() as is_outermost:
                self._may_ask_again = tries > 1 if is_outermost else self._may_ask_again
                try:
                    return ask()
                except InputError as error:
                    if error.problem.code != CHANGED or not is_outermost or tries == 1:
                        raise
                    self._doubts.clear()
        raise AssertionError("the last try returns or raises")

    def report_to_show(self, tool_name: str) -> Report:
        """A tool's report on all hosts, for showing in any form; it cannot be filtered, sorted or computed with.

        It comes from the cache if it was shown before; then no tool is imported.  Raises the errors of `report`.
        """
        tool = tool_named(tool_name)
        key, name = self._session_key(), f"{tool.cache_name}.shown"
        content = self._cache.get_bytes(key, name)
        kept = None if content is None else unpack_report(content)
        if kept is not None:
            return kept
        report, unreadable = self._ask_unchanged_files(lambda: self._report(tool, None, None))
        packed = None if unreadable or key is None else pack_report(report)
        if packed is not None:
            self._cache.put_bytes(key, name, packed)
        return report

    def identities(self) -> tuple[store.Identity, ...]:
        """The identities of its files; a file that has changed has another one.  Raises InputError."""
        return tuple(store.identity(file.path) for file in self._files)

    def _session_key(self) -> str | None:
        """The cache key for results derived from all selected hosts; None without a cache."""
        if not self._cache.is_on:  # the key is the hash of many things
            return None
        named = [(file.host, file.path) for file in self._files], self._session.problems  # in warnings
        beside = [store.identity(str(file))] if (file := self._proofs_file()).is_file() else []
        return cache_key([*self.identities(), *beside], "session", *named)

    def _report(
        self, tool: Tool, host: str | None, steps: StepRange | str | int | None
    ) -> tuple[Report, list[Problem]]:
        """A report, and the problems of the hosts that it leaves out."""
        self.tell_apart(tool.module)
        wanted = None if steps is None else _parse_range(steps)
        self._work.is_lean &= wanted is None  # some of the steps are taken from a whole trace
        files: Sequence[HostFile] = self._files if host is None else (pick_host(self._session, host),)
        _require_more_than_memory(tool, files)
        files, selection, notices = self._select(files, wanted)
        partials, problems = self._partials(files, tool, selection)
        problems = [*notices, *problems]
        lost = any(problem.code != _STEPS_NOTICE for problem in problems)
        shown = [*(p for p in self._session.problems if p.code not in _QUIET_PROBLEMS), *problems]
        reader = _Reader(self, host, wanted)
        report = self._add_proofs(tool.finish(tool.merge(partials), reader))
        report = replace(report, warnings=(*report.warnings, *reader.failures)) if reader.failures else report
        report = _add_problems(report, shown, lost)
        return (self._add_doubts(report, reader) if wanted is None else report), problems

    def _add_doubts(self, report: Report, read: Callable[[str], Report | None]) -> Report:
        """The report with the line that says whether the recording can be trusted, which all reports have."""
        found = None if report.TOOL == _TRUST else read(_TRUST)
        line = getattr(found, "line", "")
        return replace(report, warnings=(*report.warnings, line)) if line else report

    def _add_proofs(self, report: Report) -> Report:
        """The report with the proofs that lie beside the session."""
        if report.TOOL not in _WITH_PROOFS or not (file := self._proofs_file()).is_file():
            return report
        from stepscope.analysis.overview.proofs_tool import add_proofs

        try:
            return add_proofs(report, read_proofs(file.parent))
        except InputError as error:
            return replace(report, warnings=(*report.warnings, str(error)))

    def _proofs_file(self) -> Path:
        return Path(self._files[0].path).parent / FILE

    def _partials(
        self, files: Sequence[HostFile], tool: Tool, selection: StepSelection = WHOLE
    ) -> tuple[list[Any], list[Problem]]:
        """The hosts' parts of a report, and the problems of the hosts that are left out."""
        if len(files) == 1:
            return [self._only_partial(files[0], tool, selection)], []
        hosts = tuple(file.host for file in files)
        if tool.name == _TRUST and selection is WHOLE and hosts in self._doubts:
            return self._doubts[hosts], []
        # Each host is read once: what every report says of the recording is found with what it was asked for.
        tools = [tool] if tool.name == _TRUST or selection is not WHOLE else [tool, tool_named(_TRUST)]
        found = self._session_work.analyse(files, tools, selection)
        changed = next((problem for problem in found.problems if problem.code == CHANGED), None)
        if changed is not None and self._may_ask_again:
            raise InputError.of(changed)
        if not found.partials[tool.name]:
            named = [str(problem) for problem in found.problems[:_MOST_NAMED]]
            if len(found.problems) > len(named):
                named.append(f"and {len(found.problems) - len(named):,} more")
            raise UnreadableError(
                f"none of the {len(files):,} hosts can be read", path=self.path, hint="; ".join(named)
            )
        if selection is WHOLE:
            self._doubts[hosts] = found.partials[_TRUST]
        return found.partials[tool.name], [*found.problems]

    def _only_partial(self, file: HostFile, tool: Tool, selection: StepSelection) -> Any:
        try:
            return self._session_work.only_partial(tool, file, selection)
        except InputError as error:
            if others := self._other_runs():
                raise error.add_hint(others) from error
            raise

    def _other_runs(self) -> str:
        """A hint that lists the other runs if the newest cannot be read; empty if there are none."""
        if self._found_below is None:
            return ""
        others = [session.run for session in find_sessions(self._found_below) if session.run != self.run]
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        return f"or use an earlier run with --run: {', '.join(others[:_MOST_NAMED])}{more}" if others else ""

    def _select(
        self, files: Sequence[HostFile], wanted: StepRange | None
    ) -> tuple[Sequence[HostFile], StepSelection, list[Problem]]:
        """The hosts that have the wanted steps, what to analyse of them, and what its reader should know.

        Some of the steps are not cached: there are too many ranges.
        """
        if wanted is None:
            return files, WHOLE, []
        if wanted.is_all:
            said = "only the steps, without what ran before the first and after the last"
            return files, StepSelection(within_steps=True), [Problem(_STEPS_NOTICE, said)]
        from stepscope.analysis.steps.step_range import choose_steps

        parts, problems = self._partials(files, tool_named("steps"))
        rows = choose_steps(parts, wanted)
        problems.append(Problem(_STEPS_NOTICE, f"only {wanted} of the capture"))
        without = [part.host for part in parts if part.host not in rows]
        if without:
            problems.append(Problem(_STEPS_NOTICE, f"{', '.join(without)} has no such steps and is left out"))
        return [file for file in files if file.host in rows], StepSelection(rows=rows), problems

    def whatif(
        self,
        remove: str | Sequence[str] = (),
        scale: float = 0.0,
        *,
        scales: Mapping[str, float] | None = None,
        overlap: str | Sequence[str] = (),
        move: Mapping[str, float] | None = None,
        balance_ranks: bool = False,
        balance: str = "",
        steps: StepRange | str | int | None = None,
    ) -> WhatIfReport:
        """Predicts the median step after some changes, all at once, by replaying the recorded steps.

        A part is a cause of the account (`input`), a category of the step breakdown, a class of advice or
        the id of one (`launch.bound`), an op or kernel, a recorded Python function, or `file.py:line`.

        Args:
            remove: parts whose time is removed.
            scale: the share of the time of those parts that stays: 0 removes it, 0.5 halves it.
            scales: further parts, each with the share of its time that stays.
            overlap: parts that run beside everything else.
            move: parts that other workers do, each with the number of workers.
            balance_ranks: the same as `balance="ranks"`.
            balance: whose work is equal: `ranks`, `stages` of a pipeline, or `kind=` and a kind of work, such as
                `kind=forward`; this change stands alone.
            steps: the steps to replay, such as `3-9`; all if None.

        Raises:
            UsageError: there is no such part, the profile has no such steps, or it has no ranks to balance.
            InputError: the steps cannot be replayed well enough.
        """
        from stepscope.analysis.account.model import model_of
        from stepscope.analysis.advice import whatif

        changes = whatif.list_changes(remove, scale, scales or {}, overlap, move or {})
        balance = balance or ("ranks" if balance_ranks else "")
        if balance and changes:
            raise UsageError("balanced ranks cannot be combined with other changes", hint="ask for them alone")
        self.tell_apart()
        files, selection, notices = self._select(self._files, None if steps is None else _parse_range(steps))
        if balance:
            return self._what_if_balanced(files, selection, notices, balance)
        advised = functools.cache(lambda: cast("AdviceReport", self.report("advice", steps=steps)))
        alone = changes[0].part if len(changes) == 1 and changes[0].action == whatif.REMOVE else ""
        if (found := _what_if_advised(alone, advised, notices)) is not None:
            return found
        traces = [self._trace_of(file, selection) for file in self._slowest_hosts(files, selection)]
        models = [model for trace in traces if (model := model_of(trace)) is not None]
        ops_of_class = functools.partial(_ops_of_class, advised)
        report = whatif.what_if(models, changes, ops_of_class, tuple(file.host for file in files))
        return cast("WhatIfReport", _add_problems(report, notices, False))

    def _what_if_balanced(
        self, files: Sequence[HostFile], selection: StepSelection, notices: Sequence[Problem], balance: str
    ) -> WhatIfReport:
        from stepscope.analysis.advice.whatif import what_if_balanced
        from stepscope.analysis.workers.pod_viewer_tool import HOST

        parts, problems = self._partials(files, tool_named("pod-viewer"), selection)
        ranks = [part.rank for part in parts if part.rank is not None]
        causes = {part.steps.host: part.accounts.get(HOST, []) for part in parts}
        warnings = tuple(str(problem) for problem in (*notices, *problems))
        return what_if_balanced(ranks, causes, warnings, balance)

    def _trace_of(self, file: HostFile, selection: StepSelection) -> HostTrace:
        """A host's trace with the selected steps."""
        rows = None if selection.rows is None else selection.rows[file.host]
        return self._work.trace(file) if rows is None else self._work.trace_of_steps(file, rows)

    def _slowest_hosts(self, files: Sequence[HostFile], selection: StepSelection) -> Sequence[HostFile]:
        """The hosts with the longest median steps, eight at most."""
        if len(files) <= _MOST_MODELS:
            return files
        partials, _ = self._partials(files, tool_named("overview"), selection)
        file_of = {file.host: file for file in files}
        known = [(part.account.step_ps, file_of[part.steps.host]) for part in partials if part.account is not None]
        return [file for _, file in sorted(known, key=lambda each: -each[0])[:_MOST_MODELS]]

    def compare(
        self,
        after: LoadedProfile | str | os.PathLike[str],
        *,
        host: str | None = None,
        steps: StepRange | str | int | None = None,
        tools: Sequence[str] | None = None,
    ) -> CompareReport:
        """Compares this profile (before) with another one (after); see `stepscope.api.compare`."""
        return compare(self, after, host=host, steps=steps, tools=tools)

    def sql(
        self,
        query: str,
        *,
        attach: Mapping[str, LoadedProfile | str | os.PathLike[str]] | None = None,
        name: str = "main",
        rows: int | None = None,
        timeout: float | None = None,
        memory_bytes: int | None = None,
    ) -> SqlReport:
        """Answers a question in SQL; the tables are in the docs, and `sql_schema` lists them.

        Args:
            query: one statement that reads, such as `SELECT name, sum(self_ps) FROM ops GROUP BY name`.
            attach: further sessions by name: the views of `before` are `before.events` and so on.
            name: by which this session can be named too; its views need no name before them.
            rows: the most rows of the answer; all of them if None.
            timeout: seconds after which the query is stopped; no limit if None.
            memory_bytes: what joins and sorts may use; 4 GiB if None.

        Raises:
            UsageError: the query is wrong, needs too much time or memory, or does more than read.
            InputError: no host can be read.
        """
        from stepscope.sql.names import may_read_events

        with importing("stepscope.sql.asking"):
            if len(self._files) == 1 and may_read_events(query) and len(self.hosts) == 1:
                self.trace()
        from stepscope.sql.asking import Asked, own_asker
        from stepscope.sql.limits import OWN_MEMORY_BYTES, Limits

        seconds = math.inf if timeout is None else timeout
        limits = Limits(memory_bytes or OWN_MEMORY_BYTES, seconds, rows, answer_bytes=None)
        sessions = {name: self, **{each: self._attached(each, path) for each, path in (attach or {}).items()}}
        asked = [Asked(each, str(session.number), session) for each, session in sessions.items()]
        return own_asker().ask(query, asked, limits)

    def sql_schema(self) -> SqlReport:
        """The tables and columns that `sql` can ask for, with their units and meanings."""
        from stepscope.sql.answer import schema_report

        return schema_report(self.hosts)

    def _attached(self, name: str, path: LoadedProfile | str | os.PathLike[str]) -> LoadedProfile:
        """Another session of a question; one that is read here is kept for the next question."""
        if isinstance(path, LoadedProfile):
            return path
        key = name, os.fspath(path)
        if key not in self._others:
            self._others[key] = load(path, cache=self._cache, shelf=self.shelf)
        return self._others[key]


def _require_more_than_memory(tool: Tool, files: Sequence[HostFile]) -> None:
    """Raises UnreadableError if the files show what fills a memory, and the tool wants steps or ops."""
    if tool.name in _OF_MEMORY or tool.edition or not all(file.format.holds_memory_only for file in files):
        return
    path, noun = files[0].path, files[0].format.noun
    raise UnreadableError(
        f"{noun} shows what fills a memory, and holds nothing for {tool.name}",
        code=_MEMORY_ONLY,
        path=path,
        hint=f"`stepscope {_MEMORY_TOOL} {_short_path(path)}` shows it",
    )


def _make_method(tool: Tool) -> Callable[..., Report]:
    def method(self: LoadedProfile, host: str | None = None, steps: StepRange | str | int | None = None) -> Report:
        return self.report(tool.name, host, steps)

    method.__name__, method.__qualname__ = tool.method, f"LoadedProfile.{tool.method}"
    method.__doc__ = f"{tool.summary[0].upper()}{tool.summary[1:]}.  Arguments and errors as of `report`."
    return method


for _tool in TOOLS:
    setattr(LoadedProfile, _tool.method, _make_method(_tool))


def _ops_of_class(advised: Callable[[], AdviceReport], kind: str) -> list[str]:
    """The ops that the advice of a class names; none if there is no such advice."""
    rows = [row for item in advised().rows if item["class"] == kind for row in item["rows"]]
    return [*dict.fromkeys(str(row["key"]) for row in rows if row["tool"] in _OP_TOOLS)]


def _what_if_advised(name: str, advised: Callable[[], AdviceReport], notices: Sequence[Problem]) -> WhatIfReport | None:
    """What an advice gives, or the changes of its class; None if the name is neither of an advice nor of a class.

    `input`, which is the id of a rule and a cause, means the cause.
    """
    from stepscope.analysis.advice import whatif
    from stepscope.analysis.advice.items import CLASSES
    from stepscope.analysis.advice.rule import rules

    is_advice = "." in name and any(name == rule.id or name.startswith(f"{rule.id}.") for rule in rules()[0])
    if name not in CLASSES and not is_advice:
        return None
    item = next((item for item in advised().items if name in (item.kind, item.id)), None)
    known = advised().context, tuple(map(str, notices))
    if item is not None:
        return whatif.what_if_advised(item, *known)
    return whatif.what_if_of_class(name, *known) if name in CLASSES else None


def _parse_range(steps: StepRange | str | int) -> StepRange:
    from stepscope.analysis.steps.step_range import StepRange

    return StepRange.coerce(steps)


@dataclass(frozen=True)
class _Reader:
    """Gives a tool the reports of other tools on the same hosts and steps, each made once: rules ask for the same ones.

    Attributes:
        failures: a sentence with the reason for each tool that failed.
        found: the reports that were asked for.
    """

    profile: LoadedProfile
    host: str | None = None
    steps: StepRange | None = None
    failures: list[str] = field(default_factory=list)
    found: dict[str, Report | None] = field(default_factory=dict)

    def __call__(self, tool: str) -> Report | None:
        """The report of a tool; None if it fails."""
        if tool not in self.found:
            self.found[tool] = self._read(tool)
        return self.found[tool]

    def _read(self, tool: str) -> Report | None:
        try:
            return self.profile.report(tool, self.host, self.steps)
        except StepscopeError as error:
            if error.problem.code != _MEMORY_ONLY:
                self.failures.append(f"details from {tool} are missing here: {error}")
            return None


def _add_problems(report: Report, problems: list[Problem], lost: bool) -> Report:
    if not problems:
        return report
    return replace(report, warnings=(*map(str, problems), *report.warnings), partial=report.partial or lost)
