"""The process that answers questions.

It reads no file.  The process that started it decodes the traces and sends the columns that a query reads; they are
kept for the next query.  It is ended when a query takes too much time or memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import pyarrow as pa

from stepscope.children import Parent
from stepscope.errors import StepscopeError, UsageError
from stepscope.sql.database import Database
from stepscope.sql.frames import Message, MessageKind, pack_batches, pack_frame, unpack_batches, unpack_frame
from stepscope.sql.source import Notes

_NICE = 10  # half of the way down: whoever shows pages goes first where processors are scarce


class RemoteSource:
    """The columns of a session that the other process reads."""

    def __init__(self, session: str, hosts: tuple[str, ...], parent: Parent) -> None:
        self.notes = Notes()
        self.hosts = hosts
        self._session, self._parent = session, parent
        self._schemas: dict[str, pa.Schema] = {}
        self._kept: dict[tuple[str, str], list[pa.Array]] = {}

    def schema(self, view: str) -> pa.Schema:
        """The columns of a view.  Raises StepscopeError."""
        if view not in self._schemas:
            answer = self._request(MessageKind.NEED_SCHEMA, view=view)
            self._schemas[view] = pa.ipc.open_stream(answer.body).schema
        return self._schemas[view]

    def read(self, view: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a view.  Raises StepscopeError."""
        missing = [column for column in columns if (view, column) not in self._kept]
        if missing:
            answer = self._request(MessageKind.NEED_COLUMNS, view=view, columns=missing)
            batches = unpack_batches(answer.body)
            for at, column in enumerate(missing):
                self._kept[view, column] = [batch.column(at) for batch in batches]
        for arrays in zip(*(self._kept[view, column] for column in columns), strict=True):
            yield pa.RecordBatch.from_arrays(list(arrays), names=columns)

    def tool_tables(self, tool: str) -> Mapping[str, pa.Table]:
        """The tables of a tool.  Raises StepscopeError."""
        made: dict[str, pa.Table] = {}
        for table in self._request(MessageKind.NEED_TOOL, tool=tool).head["tables"]:
            made[table["name"]] = pa.ipc.open_stream(table["content"]).read_all()
        return made

    def _request(self, kind: MessageKind, **head: Any) -> Message:
        need = Message(kind, {"session": self._session, **head})
        answer = unpack_frame(self._parent.ask(*pack_frame(need)))
        if answer.kind == MessageKind.MISTAKE:
            self.notes.failure = StepscopeError("the profile could not be read", code="passed-on")
            raise self.notes.failure
        return answer


def main() -> NoReturn:
    """Answers questions until the process that asks is gone."""
    os.nice(_NICE)
    parent = Parent()
    asked: object = None
    while True:
        head = unpack_frame(parent.receive()).head
        if asked != (head["sessions"], head["memory_bytes"]):
            asked = head["sessions"], head["memory_bytes"]
            database = _open(head, parent)
        parent.send(*pack_frame(_answer(database, head)))


def _open(head: dict[str, Any], parent: Parent) -> Database:
    sources = {each["name"]: RemoteSource(each["id"], tuple(each["hosts"]), parent) for each in head["sessions"]}
    return Database(sources, head["memory_bytes"])


def _answer(database: Database, head: dict[str, Any]) -> Message:
    try:
        found = database.ask(head["query"], head["rows"])
        content = pack_batches(found.table.schema, found.table.to_batches())
        most = head["answer_bytes"]
        if most is not None and len(content) > most:
            hint = "ask for fewer columns or rows"
            raise UsageError(f"the answer is larger than {most >> 20} MiB", code="sql", hint=hint)
    except StepscopeError as error:
        problem = error.problem
        return Message(MessageKind.MISTAKE, {"code": problem.code, "reason": problem.reason, "hint": problem.hint})
    return Message(MessageKind.ANSWER, {"more": found.more}, content)
