"""The process that answers a server's questions: `python -m stepscope.sql.worker`.

It reads no file.  The server decodes the traces and sends the columns that a query reads; they are kept for the next
query.  The server ends this process when a query takes too long, and it ends by itself when the server is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

import pyarrow as pa

from stepscope.errors import StepscopeError, UsageError
from stepscope.records import dataclass
from stepscope.sql.database import Database, Limits
from stepscope.sql.frames import Frame, Kind, pack_batches, read_frame, unpack_batches, write_frame
from stepscope.sql.source import Notes

MOST_KEPT_BYTES = 2 << 30
"""Columns that are kept for later queries; more than that and all are dropped before the next query."""

MOST_ANSWER_BYTES = 32 << 20


@dataclass(frozen=True)
class Pipes:
    """The two ends of the connection to the server."""

    source: BinaryIO
    out: BinaryIO

    def request(self, kind: Kind, **head: Any) -> Frame:
        """What the server answers to a need.  Raises StepscopeError with its reason if it cannot."""
        write_frame(self.out, Frame(kind, head))
        answer = read_frame(self.source)
        if answer is None:
            raise EOFError
        if answer.kind == Kind.MISTAKE:
            raise StepscopeError("the server could not read the profile", code="passed-on")
        return answer


class RemoteSource:
    """The columns of a session that the server reads."""

    def __init__(self, session: str, hosts: tuple[str, ...], pipes: Pipes) -> None:
        self.notes = Notes()
        self.hosts = hosts
        self._session, self._pipes = session, pipes
        self._schemas: dict[str, pa.Schema] = {}
        self._kept: dict[tuple[str, str], list[pa.Array]] = {}

    @property
    def kept_bytes(self) -> int:
        """The size of the columns that are kept."""
        return sum(array.nbytes for arrays in self._kept.values() for array in arrays)

    def forget(self) -> None:
        """Drops the columns that are kept."""
        self._kept.clear()

    def schema(self, view: str) -> pa.Schema:
        """The columns of a view.  Raises StepscopeError."""
        if view not in self._schemas:
            answer = self._request(Kind.NEED_SCHEMA, view=view)
            self._schemas[view] = pa.ipc.open_stream(answer.body).schema
        return self._schemas[view]

    def read(self, view: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a view.  Raises StepscopeError."""
        missing = [column for column in columns if (view, column) not in self._kept]
        if missing:
            answer = self._request(Kind.NEED_COLUMNS, view=view, columns=missing)
            batches = unpack_batches(answer.body)
            for at, column in enumerate(missing):
                self._kept[view, column] = [batch.column(at) for batch in batches]
        for arrays in zip(*(self._kept[view, column] for column in columns), strict=True):
            yield pa.RecordBatch.from_arrays(list(arrays), names=columns)

    def tool_tables(self, tool: str) -> Mapping[str, pa.Table]:
        """The tables of a tool.  Raises StepscopeError."""
        made: dict[str, pa.Table] = {}
        for table in self._request(Kind.NEED_TOOL, tool=tool).head["tables"]:
            made[table["name"]] = pa.ipc.open_stream(table["content"]).read_all()
        return made

    def _request(self, kind: Kind, **head: Any) -> Frame:
        try:
            return self._pipes.request(kind, session=self._session, **head)
        except StepscopeError as error:
            self.notes.failure = error
            raise


def serve(pipes: Pipes) -> None:
    """Answers questions until the server is gone."""
    databases: dict[tuple[tuple[str, ...], ...], tuple[Database, list[RemoteSource]]] = {}
    while (question := read_frame(pipes.source)) is not None:
        head = question.head
        key = tuple((each["name"], each["id"], *each["hosts"]) for each in head["sessions"])
        if key not in databases:
            databases.clear()
            databases[key] = _open(head, pipes)
        database, sources = databases[key]
        if sum(source.kept_bytes for source in sources) > MOST_KEPT_BYTES:
            for source in sources:
                source.forget()
        write_frame(pipes.out, _answer(database, head))


def _open(head: dict[str, Any], pipes: Pipes) -> tuple[Database, list[RemoteSource]]:
    sources = {each["name"]: RemoteSource(each["id"], tuple(each["hosts"]), pipes) for each in head["sessions"]}
    return Database(sources, head["memory_bytes"]), [*sources.values()]


def _answer(database: Database, head: dict[str, Any]) -> Frame:
    try:
        found = database.ask(head["query"], Limits(rows=head["rows"]))
        content = pack_batches(found.table.schema, found.table.to_batches())
        if len(content) > MOST_ANSWER_BYTES:
            limit = f"{MOST_ANSWER_BYTES >> 20} MiB"
            raise UsageError(f"the answer is larger than {limit}", code="sql", hint="ask for fewer columns or rows")
    except StepscopeError as error:
        problem = error.problem
        return Frame(Kind.MISTAKE, {"code": problem.code, "reason": problem.reason, "hint": problem.hint})
    return Frame(Kind.ANSWER, {"more": found.more}, content)


def _own_pipes() -> Pipes:
    """The pipes to the server.  What a library prints goes to the server's log, and not between the frames."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return Pipes(sys.stdin.buffer, out)


if __name__ == "__main__":
    with suppress(EOFError, BrokenPipeError):  # the server is gone
        serve(_own_pipes())
