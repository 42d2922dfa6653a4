"""The server's side of the process that answers: starts it, supplies columns, ends it when its time is over."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import BinaryIO, cast

import pyarrow as pa

from stepscope.errors import StepscopeError, UsageError, counted
from stepscope.records import dataclass
from stepscope.sql.answer import SqlReport
from stepscope.sql.frames import Frame, Kind, pack_batches, read_frame, write_frame
from stepscope.sql.source import LocalSource, Session

_END_SECONDS = 5.0
_FOR_TRAINING = "STEPSCOPE_LOGDIR"  # makes every Python program record itself
_ASK_LESS = "ask for less: add a condition, or aggregate before a join"


@dataclass(frozen=True)
class ServerLimits:
    """What a question on a server may use: memory for joins and sorts, time, and rows of the answer."""

    memory_bytes: int = 2 << 30
    seconds: float = 30.0
    rows: int = 10_000


@dataclass(frozen=True)
class Asked:
    """A session that a question is about.

    Attributes:
        name: by which the query names it; `main` for the first if it has no other.
        id: tells it from others, also from an earlier state of its files.
        session: the session.
        working: a context in which its columns may be computed.
    """

    name: str
    id: str
    session: Session
    working: Callable[[], AbstractContextManager[None]] = nullcontext


class Asker:
    """Answers questions in a process of its own, one at a time; the process is started when it is needed."""

    def __init__(self, limits: ServerLimits | None = None) -> None:
        self.limits = limits or ServerLimits()
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._sources: dict[str, LocalSource] = {}
        self._why_ended = ""

    def ask(self, query: str, sessions: Sequence[Asked], rows: int | None = None) -> SqlReport:
        """The answer to a query; `rows` may ask for fewer rows than the limit.

        Raises:
            UsageError: the query is wrong, was stopped, needs too much, or does more than read.
            InputError: a profile cannot be read.
        """
        limit = min(rows or self.limits.rows, self.limits.rows)
        with self._turn:
            self._why_ended = ""
            known = self._sources
            self._sources = {asked.id: known.get(asked.id) or LocalSource(asked.session) for asked in sessions}
            clock = _Clock(self.limits.seconds, lambda: self._end(f"after {self.limits.seconds:g} s"))
            try:
                answer = self._converse(self._running(), self._question(query, sessions, limit), sessions, clock)
            finally:
                clock.pause()
            return self._report(query, answer, limit)

    def prepare(self) -> None:
        """Starts the process, so that the first question need not wait for it."""
        with self._turn:
            self._running()

    def stop(self) -> None:
        """Stops the question that is being answered, if there is one."""
        if self._turn.locked():
            self._end("by request")

    def close(self) -> None:
        """Ends the process."""
        self._end("because the server ends")
        with self._turn:
            if self._process is not None:
                self._forget_process(self._process)
            self._sources.clear()

    def _end(self, why: str) -> None:
        process = self._process
        self._why_ended = why
        if process is not None:
            process.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._forget_process(self._process)
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "stepscope.sql.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if name != _FOR_TRAINING},
            )
        return self._process

    def _question(self, query: str, sessions: Sequence[Asked], rows: int) -> Frame:
        listed = [{"name": each.name, "id": each.id, "hosts": list(each.session.hosts)} for each in sessions]
        head = {"query": query, "sessions": listed, "memory_bytes": self.limits.memory_bytes, "rows": rows}
        return Frame(Kind.QUESTION, head)

    def _converse(
        self, process: subprocess.Popen[bytes], question: Frame, sessions: Sequence[Asked], clock: _Clock
    ) -> Frame:
        """The process's answer; before that it is given what it needs, which does not count as its time."""
        working = {asked.id: asked.working for asked in sessions}
        frame, failure = question, None
        while True:
            clock.go_on()
            said = _exchange(process, frame)
            clock.pause()
            if said is None:
                raise self._explain_end(process)
            if said.kind == Kind.MISTAKE:
                raise failure or _mistake(said.head)
            if said.kind == Kind.ANSWER:
                return said
            session = said.head["session"]
            try:
                with working[session]():
                    frame = _supply(self._sources[session], said)
            except StepscopeError as error:
                frame, failure = Frame(Kind.MISTAKE, {}), error

    def _explain_end(self, process: subprocess.Popen[bytes]) -> UsageError:
        """The error for a process that ended before it answered."""
        self._forget_process(process)
        if self._why_ended:
            return UsageError(f"the query was stopped {self._why_ended}", code="stopped", hint=_ASK_LESS)
        return UsageError("the process that answers ended, probably for want of memory", code="memory", hint=_ASK_LESS)

    def _forget_process(self, process: subprocess.Popen[bytes]) -> None:
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                cast(BinaryIO, pipe).close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
        self._process = None

    def _report(self, query: str, answer: Frame, limit: int) -> SqlReport:
        notes = [source.notes for source in self._sources.values()]
        more = bool(answer.head["more"])
        cut = (f"only the first {counted(limit, 'row')} of the answer",) if more else ()
        return SqlReport(
            hosts=tuple(dict.fromkeys(host for source in self._sources.values() for host in source.hosts)),
            warnings=(*cut, *dict.fromkeys(warning for each in notes for warning in each.warnings)),
            partial=any(each.partial for each in notes),
            query=query,
            table=pa.ipc.open_stream(answer.body).read_all(),
            more=more,
        )


class _Clock:
    """Calls a function when the process has worked for a time; the time of the server does not count."""

    def __init__(self, seconds: float, end: Callable[[], None]) -> None:
        self._left, self._end = seconds, end
        self._timer: threading.Timer | None = None
        self._since = 0.0

    def go_on(self) -> None:
        """Lets the time run."""
        self._since = time.monotonic()
        self._timer = threading.Timer(max(self._left, 0), self._end)
        self._timer.daemon = True
        self._timer.start()

    def pause(self) -> None:
        """Stops the time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._left -= time.monotonic() - self._since
            self._timer = None


def _exchange(process: subprocess.Popen[bytes], frame: Frame) -> Frame | None:
    """What the process says to a frame; None if it has ended."""
    try:
        write_frame(cast(BinaryIO, process.stdin), frame)
        return read_frame(cast(BinaryIO, process.stdout))
    except OSError:
        return None


def _mistake(head: dict[str, str]) -> UsageError:
    hint = _ASK_LESS if head["code"] in ("memory", "stopped") else head["hint"]
    return UsageError(head["reason"], code=head["code"], hint=hint)


def _supply(source: LocalSource, need: Frame) -> Frame:
    """What the process needs for its query.  Raises StepscopeError."""
    if need.kind == Kind.NEED_TOOL:
        tables = source.tool_tables(need.head["tool"])
        packed = [
            {"name": name, "content": pack_batches(table.schema, table.to_batches())} for name, table in tables.items()
        ]
        return Frame(Kind.SUPPLY, {"tables": packed})
    view, schema = need.head["view"], source.schema(need.head["view"])
    if need.kind == Kind.NEED_SCHEMA:
        return Frame(Kind.SUPPLY, {}, pack_batches(schema, []))
    columns = need.head["columns"]
    wanted = pa.schema([schema.field(column) for column in columns])
    return Frame(Kind.SUPPLY, {}, pack_batches(wanted, source.read(view, columns)))
