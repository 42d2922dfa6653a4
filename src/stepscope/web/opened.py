"""An open session: loaded in the background, queried in the foreground."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from stepscope.analysis.registry import all_tools
from stepscope.api import MEMORY_OF_FILE, LoadedProfile
from stepscope.cache import Cache
from stepscope.errors import InputError, Problem, StepscopeError
from stepscope.formats import store
from stepscope.formats.session import HostFile
from stepscope.records import dataclass
from stepscope.shelf import Recent, TraceShelf
from stepscope.switching import switching_quickly
from stepscope.web.answers import Answer, Refused
from stepscope.web.catalogue import Listed
from stepscope.web.memory import return_memory
from stepscope.web.summaries import SessionSummary, keep_summary, summarize_session

if TYPE_CHECKING:
    from stepscope.model import HostTrace
    from stepscope.report import Report

FIRST_TOOL = "overview"
"""The tool of the start page; a session is ready when its report is."""

MOST_REPORTS = 24
"""Reports that are kept per session: its tools, for some hosts and step ranges.  Making one again is quick."""

State = Literal["loading", "ready", "failed"]
HostState = Literal["waiting", "reading", "ready", "failed"]

_Question = tuple[str, str | None, str | None]  # tool, host, steps

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HostProgress:
    """The loading state of one host.

    Attributes:
        state: `waiting` until its turn comes.
        error: why it cannot be read.
        partial: whether a part of its recording is missing.
    """

    state: HostState = "waiting"
    error: StepscopeError | None = None
    partial: bool = False


@dataclass(frozen=True)
class ToolState:
    """Whether a tool has data to show, None until its report was made; and by what it cannot group them."""

    has_data: bool | None = None
    missing: str | None = None
    lacks: tuple[str, ...] = ()


class OpenSession:
    """One session and its reports; safe to use from several threads.

    Attributes:
        listed: the session as found when it was opened.
        session: the same with a host for each process, once its only file was read.
        profile: the loaded profile.
        hosts, tools: the state of each.
        state: `ready` once the first tool is; the others may still be computed.
        error: why the session failed.
        stage: the current background work.
        summary: what the list of sessions shows, once the session is ready.
    """

    def __init__(self, listed: Listed, cache: Cache, shelf: TraceShelf) -> None:
        self.listed = listed
        self._cache = cache
        self.profile = LoadedProfile(listed.session, listed.session.files, cache, self._set_stage, shelf)
        self.session = listed.session
        self.hosts = {file.host: HostProgress() for file in listed.session.files}
        self.tools = {tool.name: ToolState() for tool in all_tools()}
        self.state: State = "loading"
        self.summary: SessionSummary | None = None
        self.error: StepscopeError | None = None
        self.stage = "waiting"
        self.started = time.monotonic()
        self._reports: Recent[_Question, Report] = Recent(MOST_REPORTS)
        self._answers: Recent[_Question, Answer] = Recent(MOST_REPORTS)
        self._turns = _Turns()
        self._is_closed = threading.Event()
        self._is_ready = threading.Event()
        threading.Thread(target=self._load, name=f"load {listed.id}", daemon=True).start()

    @property
    def identities(self) -> tuple[store.Identity | None, ...]:
        """The identities of the files that were opened."""
        return self.listed.identities

    def wait(self, seconds: float) -> None:
        """Waits at most `seconds` until the session is ready or has failed."""
        self._is_ready.wait(seconds)

    def working(self) -> AbstractContextManager[None]:
        """A context in which one thread at a time computes on this session; requests go before background work."""
        return self._turns.foreground()

    def file(self, host: str | None) -> HostFile:
        """The file of a host, or of the only host if `host` is None.  Raises Refused with the known hosts."""
        files = self.session.files
        found = [file for file in files if host is None or file.host == host]
        if len(found) == 1:
            return found[0]
        names = self.session.hosts
        if host is None:
            raise Refused(400, "this needs one host", "add host=NAME", names)
        raise Refused(404, f"there is no host {host!r} in this session", "choose another host", names)

    def trace(self, host: str | None = None) -> HostTrace:
        """A host's trace, decoded once and kept while memory allows.  Raises Refused, InputError."""
        return self.profile.trace(self.file(host).host)

    def report(self, tool: str, host: str | None = None, steps: str | None = None) -> Report:
        """A tool's report on one or all hosts.  Raises Refused, StepscopeError."""
        if host is not None:
            self.file(host)
        key = tool, host, steps
        report = self._reports.get(key)
        if report is None:
            with self._turns.foreground():
                report = self._reports.get(key) or self._compute(key)
        return report

    def answer(self, tool: str, host: str | None, steps: str | None, make: Callable[[Report], Answer]) -> Answer:
        """The report as an answer to the page: built, hashed and compressed once."""
        key = tool, host, steps
        return self._answers.get(key) or self._answers.put(key, make(self.report(*key)))

    def _compute(self, key: _Question) -> Report:
        tool, host, steps = key
        report = self._reports.put(key, self.profile.report(tool, host, steps))
        if host is None and steps is None:
            missing = report.why_hidden()
            self.tools[tool] = ToolState(missing is None, missing, report.lacks())
        return report

    # -- the background ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the background work at the next opportunity."""
        self._is_closed.set()

    def _set_stage(self, stage: str) -> None:
        self.stage = stage

    def _tell_apart(self) -> None:
        """Shows a host for each process of the only file."""
        with self._turns.background():
            session = self.profile.tell_apart()
        if session.hosts != self.session.hosts:
            self.hosts = {host: HostProgress() for host in session.hosts}
            self.session = session

    def _load(self) -> None:
        try:
            self._tell_apart()
            self._load_hosts()
            self._load_report(FIRST_TOOL)
            self._load_doubts()
            self.state, self.stage = "ready", ""
            self._is_ready.set()
            self._keep_glance()
            first, *others = self.hosts
            self._load_timelines([first])  # the page's next picture is its timeline
            for tool in all_tools():
                if not self._is_closed.is_set():
                    self._try_report(tool.name)
            self._load_timelines(others)
        except StepscopeError as error:
            self.error, self.state = error, "failed"
        except Exception as error:
            _log.exception("loading %s failed", self.listed.session.path)
            self.error, self.state = StepscopeError(f"{type(error).__name__}: {error}", code="internal"), "failed"
        self.stage = ""
        self._is_ready.set()
        return_memory()

    def _load_hosts(self) -> None:
        """Analyses every host: for the first tool if all traces stay in memory for the rest, else for all tools."""
        fits = len(self.hosts) == 1 or MEMORY_OF_FILE * self.listed.nbytes <= self.profile.shelf.max_bytes
        if self._cache.is_on and (not fits or (len(self.hosts) > 1 and self.profile.has_engine)):
            self.profile.prepare([tool.name for tool in all_tools()], ended=self._note_host)
        tools = [FIRST_TOOL] if fits else [tool.name for tool in all_tools()]
        for host, found in self.hosts.items():
            if self._is_closed.is_set():
                return
            if found.state != "failed":
                self.hosts[host] = HostProgress("reading")
                self.hosts[host] = self._load_host(host, tools)

    def _note_host(self, host: str, problem: Problem | None) -> None:
        """Notes what an engine has done.  Raises StepscopeError to end its work when this session is closed."""
        if self._is_closed.is_set():
            raise StepscopeError("the session was closed", code="closed")
        error = None if problem is None else InputError.of(problem)
        self.hosts[host] = HostProgress("failed" if error else "ready", error)

    def _load_host(self, host: str, tools: list[str]) -> HostProgress:
        """Analyses a host, unless an engine has done so: then all of it is in the cache."""
        partial = False
        try:
            for tool in tools:
                with self._turns.background():
                    part = self.profile.analyse(tool, host)
                if tool == FIRST_TOOL:
                    partial = part.steps.partial
        except InputError as error:
            return HostProgress("failed", error)
        return HostProgress("ready", partial=partial)

    def _load_report(self, tool: str) -> None:
        if not self._is_closed.is_set():
            with self._turns.background():
                key = tool, None, None
                if self._reports.get(key) is None:
                    self._compute(key)

    def _load_doubts(self) -> None:
        """Checks the recording, which the state of every session that is ready says: a request for that would wait
        until what comes next in the background is done."""
        with suppress(StepscopeError):  # of a recording of memory alone nothing is checked
            self._load_report("trust")

    def _keep_glance(self) -> None:
        """Keeps what the list of sessions shows of this one."""
        report = self._reports.get((FIRST_TOOL, None, None))
        if report is not None:
            self.summary = summarize_session(report)
            keep_summary(self._cache, self.listed, self.summary)

    def _try_report(self, tool: str) -> None:
        """Loads a report; a failure is shown on the tool's page and the other tools go on."""
        try:
            self._load_report(tool)
        except Exception as error:
            _log.warning("%s of %s failed: %s", tool, self.listed.session.path, error)
            self.tools[tool] = replace(self.tools[tool], has_data=False, missing=f"this tool failed: {error}")

    def _load_timelines(self, hosts: Iterable[str]) -> None:
        """Builds what the timeline draws of the traces in memory, so that it opens at once."""
        from stepscope.analysis.timeline import load, projection

        for host in hosts:
            if self.profile.is_decoded(host) and not self._is_closed.is_set():
                with self._turns.background():
                    load.prepare_windows(self.profile.trace(host))
                    projection.projection_of(self.profile.trace(host))


class _Turns:
    """A lock that background work takes only while no request waits for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting = 0
        self._free = threading.Condition()

    @contextmanager
    def foreground(self) -> Iterator[None]:
        with self._free:
            self._waiting += 1
        try:
            with self._lock, switching_quickly():
                yield
        finally:
            with self._free:
                self._waiting -= 1
                self._free.notify_all()

    @contextmanager
    def background(self) -> Iterator[None]:
        with self._free:
            self._free.wait_for(lambda: not self._waiting)
        with self._lock, switching_quickly():
            yield
