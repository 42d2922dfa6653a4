"""Questions to processes that answer them: how many at once, how long, how much memory, and who may stop one."""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from functools import cache

import pyarrow as pa

from stepscope.children import Child, ChildLostError, End
from stepscope.errors import BusyError, StepscopeError, UsageError
from stepscope.records import dataclass
from stepscope.report import size_text
from stepscope.sql.answer import SqlReport, make_report
from stepscope.sql.frames import Message, MessageKind, pack_batches, pack_frame, unpack_frame
from stepscope.sql.limits import AT_ONCE, EACH, Limits
from stepscope.sql.mistakes import ASK_LESS
from stepscope.sql.source import AskedSession, LocalSource, Notes

IDLE_SECONDS = 300.0
"""After this time without a question a process ends, and its memory is free."""

_OWN_BYTES = 256 << 20  # of the process itself: measured 90 MB after its imports
_MOST_KEPT_BYTES = 2 << 30  # columns that are kept for the next question


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
    session: AskedSession
    working: Callable[[], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True)
class Asking:
    """Who asks.

    Attributes:
        person: whose limits count; empty for the person who uses this process.
        id: by which the question can be stopped.
    """

    person: str = ""
    id: str = ""


class Asker:
    """Answers questions, several at a time.  Safe to use from several threads.

    Args:
        limits: what each may use; `ask` may say otherwise.
        waits: whether a question too many waits; otherwise it is refused.
        allow_more: what a person can do who needs more than the limits.
    """

    def __init__(self, limits: Limits | None = None, waits: bool = False, allow_more: str = "") -> None:
        self.limits = limits or Limits()
        self._waits, self._allow_more = waits, allow_more
        self._workers = [_Worker() for _ in range(AT_ONCE)]
        self._changed = threading.Condition()
        self._timer: threading.Timer | None = None

    def ask(
        self, query: str, sessions: Sequence[Asked], limits: Limits | None = None, asking: Asking | None = None
    ) -> SqlReport:
        """The answer to a query.

        Raises:
            BusyError: too many questions are being answered already.
            UsageError: the query is wrong, was stopped, needs too much, or does more than read.
            InputError: a profile cannot be read.
        """
        limits = limits or self.limits
        with self._worker_for(_Question(query, sessions, limits, asking or Asking())) as worker:
            try:
                return worker.answer()
            except ChildLostError as error:
                raise self._explain_end(error, limits) from error
            except UsageError as error:
                raise error.add_hint(self._allow_more if error.problem.code == "memory" else "") from error.__cause__

    def stop(self, person: str | None, question: str = "") -> int:
        """Stops the questions of a person, of everybody if None, or only the one of that id; returns how many."""
        with self._changed:
            found = [
                worker for worker in self._workers if worker.question is not None and worker.is_of(person, question)
            ]
            for worker in found:
                worker.stop()
        return len(found)

    def prepare(self) -> None:
        """Starts a process, so that the first question need not wait for it."""
        with self._changed:
            # One with a question starts its process itself, without this lock.
            if not any(worker.child.is_running or worker.question is not None for worker in self._workers):
                self._workers[0].child.start()

    def close(self) -> None:
        """Ends the processes."""
        with self._changed:
            if self._timer is not None:
                self._timer.cancel()
            for worker in self._workers:
                worker.child.close()
                if worker.question is None:
                    worker.child.release()

    # -- who answers ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _worker_for(self, question: _Question) -> Iterator[_Worker]:
        """The worker for a question, from now until it is answered."""
        with self._changed:
            while (refusal := self._why_not_now(question.asking.person)) is not None:
                if not self._waits:
                    raise refusal
                self._changed.wait()
            idle = [worker for worker in self._workers if worker.question is None]
            worker = max(idle, key=lambda each: each.fitness(question))
            worker.take(question)
        try:
            yield worker
        finally:
            with self._changed:
                worker.give_back()
                self._changed.notify_all()
                self._end_idle_later()

    def _why_not_now(self, person: str) -> BusyError | None:
        """Why a question of a person cannot be answered at once; None if it can."""
        busy = [worker for worker in self._workers if worker.question is not None]
        own = [worker for worker in busy if worker.is_of(person)]
        if self._waits or len(own) < EACH:
            own = busy
            if len(busy) < AT_ONCE:
                return None
        who = "you have" if own is not busy else "there are"
        seconds = math.ceil(max(1.0, min(worker.seconds_left() for worker in own)))
        return BusyError.for_seconds(seconds, f"{who} {len(own)} questions being answered")

    def _end_idle_later(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(IDLE_SECONDS, self._end_idle)
            self._timer.daemon = True
            self._timer.start()

    def _end_idle(self) -> None:
        with self._changed:
            self._timer = None
            for worker in self._workers:
                if worker.question is None and time.monotonic() - worker.since >= IDLE_SECONDS:
                    worker.forget()
            if any(worker.child.is_running for worker in self._workers):
                self._end_idle_later()

    def _explain_end(self, error: ChildLostError, limits: Limits) -> UsageError:
        hint = "; ".join(filter(None, (ASK_LESS, self._allow_more)))
        reason = {
            End.TIME: f"the query was stopped after {limits.seconds:g} s",
            End.STOPPED: "the query was stopped by request",
            End.MEMORY: f"the query needs more than its limit of {size_text(limits.memory_bytes)} of memory",
        }.get(error.end, f"the process that answers ended: {error}")
        return UsageError(reason, code="stopped" if error.end in (End.TIME, End.STOPPED) else "memory", hint=hint)


@dataclass(frozen=True)
class _Question:
    query: str
    sessions: Sequence[Asked]
    limits: Limits
    asking: Asking
    started: float = field(default_factory=time.monotonic)

    @property
    def key(self) -> tuple[object, ...]:
        """What a process has to know already to answer quickly."""
        return (self.limits.memory_bytes, *((each.name, each.id) for each in self.sessions))


class _Worker:
    """A process, and the question that it answers.

    Attributes:
        child: the process.
        question: None while it has none.
        since: when it had its last one.
    """

    def __init__(self) -> None:
        self.child = Child("stepscope.sql.worker")
        self.question: _Question | None = None
        self.since = 0.0
        self._key: tuple[object, ...] = ()
        self._sent_bytes = 0
        self._spent_seconds = 0.0
        self._is_stopped = False
        self._notes: dict[str, Notes] = {}  # of the columns that it keeps

    def fitness(self, question: _Question) -> tuple[bool, bool, float]:
        """The greater, the better it suits: it has the columns, else it is there, else it kept others for longest."""
        is_running = self.child.is_running
        return is_running and self._key == question.key, is_running != bool(self._key), -self.since

    def is_of(self, person: str | None, question: str = "") -> bool:
        """Whether its question is one of a person, or of anybody, and has that id if there is one."""
        assert self.question is not None
        asking = self.question.asking
        return person in (None, asking.person) and question in ("", asking.id)

    def seconds_left(self) -> float:
        """When its question ends at the latest, unless this process has to work for it."""
        assert self.question is not None
        return self.question.limits.seconds - (time.monotonic() - self.question.started)

    def take(self, question: _Question) -> None:
        """Takes a question."""
        self.question, self._spent_seconds, self._is_stopped = question, 0.0, False

    def give_back(self) -> None:
        """Has no question any more."""
        self.question, self.since = None, time.monotonic()
        if not self.child.is_running:
            self.forget()

    def stop(self) -> None:
        """Ends the process, and with it its question."""
        self._is_stopped = True
        self.child.kill()

    def forget(self) -> None:
        """Ends the process, and with it what it keeps."""
        self.child.kill()
        self.child.release()
        self._key, self._sent_bytes, self._notes = (), 0, {}

    def answer(self) -> SqlReport:
        """The answer to its question.  Raises ChildLostError, UsageError, InputError."""
        assert self.question is not None
        question = self.question
        if self._sent_bytes > _MOST_KEPT_BYTES or not self.child.is_running:
            self.forget()
        if self._key != question.key:
            self._key, self._sent_bytes, self._notes = question.key, 0, {}
        self.child.start()
        sources = {
            each.id: LocalSource(each.session, self._notes.setdefault(each.id, Notes())) for each in question.sessions
        }
        answer = self._converse(question, sources)
        rows = question.limits.rows if answer.head["more"] else None
        hosts = [host for source in sources.values() for host in source.hosts]
        return make_report(
            question.query, pa.ipc.open_stream(answer.body).read_all(), rows, hosts, [*self._notes.values()]
        )

    def _converse(self, question: _Question, sources: dict[str, LocalSource]) -> Message:
        """The process's answer; before that it is given what it needs."""
        working = {asked.id: asked.working for asked in question.sessions}
        frame, failure = _pack_question(question), None
        while True:
            said = self._exchange(frame, question.limits)
            if said.kind == MessageKind.MISTAKE:
                raise failure or UsageError(said.head["reason"], code=said.head["code"], hint=said.head["hint"])
            if said.kind == MessageKind.ANSWER:
                return said
            session = said.head["session"]
            try:
                with working[session]():
                    frame = _supply(sources[session], said)
            except StepscopeError as error:
                frame, failure = Message(MessageKind.MISTAKE, {}), error
            except BaseException:
                self.child.kill()  # it waits for what will never come
                raise
            self._sent_bytes += len(frame.body)

    def _exchange(self, frame: Message, limits: Limits) -> Message:
        """What the process says to a frame; its time counts."""
        if self._is_stopped:
            raise ChildLostError("stopped", End.STOPPED)
        started = time.monotonic()
        left = limits.seconds - self._spent_seconds
        memory = limits.memory_bytes + 2 * self._sent_bytes + _OWN_BYTES
        try:
            return unpack_frame(self.child.ask(*pack_frame(frame), seconds=left, memory_bytes=memory))
        finally:
            self._spent_seconds += time.monotonic() - started


@cache
def own_asker() -> Asker:
    """What answers the questions of the person who uses this process."""
    asker = Asker(waits=True, allow_more="or allow more: --timeout, --memory")
    atexit.register(asker.close)
    return asker


def _pack_question(question: _Question) -> Message:
    limits = question.limits
    listed = [{"name": each.name, "id": each.id, "hosts": list(each.session.hosts)} for each in question.sessions]
    head = {"query": question.query, "sessions": listed, "memory_bytes": limits.memory_bytes}
    return Message(MessageKind.QUESTION, {**head, "rows": limits.rows, "answer_bytes": limits.answer_bytes})


def _supply(source: LocalSource, need: Message) -> Message:
    """What the process needs for its query.  Raises StepscopeError."""
    if need.kind == MessageKind.NEED_TOOL:
        tables = source.tool_tables(need.head["tool"])
        packed = [
            {"name": name, "content": pack_batches(table.schema, table.to_batches())} for name, table in tables.items()
        ]
        return Message(MessageKind.SUPPLY, {"tables": packed})
    view, schema = need.head["view"], source.schema(need.head["view"])
    if need.kind == MessageKind.NEED_SCHEMA:
        return Message(MessageKind.SUPPLY, {}, pack_batches(schema, []))
    columns = need.head["columns"]
    wanted = pa.schema([schema.field(column) for column in columns])
    return Message(MessageKind.SUPPLY, {}, pack_batches(wanted, source.read(view, columns)))
