"""A view as something that DuckDB can scan.  A column is computed when a query reads it, host after host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset

from stepscope.errors import InputError
from stepscope.model import HostTrace
from stepscope.report import Report
from stepscope.sql.views import View

BATCH_ROWS = 1 << 18
"""Rows that one thread of the engine takes at a time.  Each batch brings its lists of texts, so few large ones are
quicker than many small ones."""


class Session(Protocol):
    """What questions are about; a loaded profile is one."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts."""
        ...

    def trace(self, host: str | None = None) -> HostTrace:
        """The trace of one host.  Raises InputError."""
        ...

    def report(self, tool_name: str) -> Report:
        """The report of a tool.  Raises StepscopeError."""
        ...


class Notes:
    """What happened while the columns of an answer were read.

    Attributes:
        warnings: what a reader must know, each once.
        partial: whether a part of a recording is missing.
        failure: the error that stopped the reading; the engine only passes on its text.
    """

    def __init__(self) -> None:
        self.warnings: dict[str, None] = {}
        self.partial = False
        self.failure: BaseException | None = None

    def add_trace(self, trace: HostTrace) -> None:
        """Takes over the problems of a trace that was read."""
        self.partial |= trace.partial
        self.warnings |= dict.fromkeys([*map(str, trace.problems), *trace.recorder_messages])

    def add_report(self, report: Report) -> None:
        """Takes over the warnings of a report whose tables were read."""
        self.partial |= report.partial
        self.warnings |= dict.fromkeys(report.warnings)


def readable_traces(session: Session, notes: Notes) -> Iterator[tuple[int, HostTrace]]:
    """The place and the trace of each host; one that cannot be read is left out and noted, unless it is the only one.

    Raises InputError.
    """
    for place, host in enumerate(session.hosts):
        try:
            trace = session.trace(host)
        except InputError as error:
            if len(session.hosts) == 1:
                raise
            notes.partial = True
            notes.warnings[str(error.problem)] = None
        else:
            notes.add_trace(trace)
            yield place, trace


class LateDataset(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """A dataset whose columns are made when a scan asks for them.

    Args:
        schema: all columns.
        read: makes batches with some columns.
    """

    def __init__(self, schema: pa.Schema, read: Callable[[list[str]], Iterator[pa.RecordBatch]]) -> None:
        self._columns, self._read = schema, read

    @classmethod
    def make(cls, schema: pa.Schema, read: Callable[[list[str]], Iterator[pa.RecordBatch]]) -> LateDataset:
        """A dataset; the library's class cannot be called."""
        made: LateDataset = cls.__new__(cls)
        made.__init__(schema, read)  # type: ignore[misc]
        return made

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return self._columns

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> Any:  # noqa: A002
        """A scan of some columns of the rows that a filter lets through."""
        shown = list(self._columns.names if columns is None else columns)
        read = [name for name in self._columns.names if name in shown or _mentions(filter, name)]
        schema = pa.schema([self._columns.field(name) for name in read])
        return pyarrow.dataset.Scanner.from_batches(
            self._read(read), schema=schema, columns=shown, filter=filter, batch_size=BATCH_ROWS
        )


def _mentions(expression: Any, name: str) -> bool:
    """Whether a filter may need a column; one too many is only read in vain."""
    return expression is not None and name in str(expression)


def dataset_of(view: View, traces: Callable[[], Iterable[tuple[int, HostTrace]]]) -> LateDataset:
    """A view of some traces, which are asked for at each scan, each with its host's place in the session."""

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        for place, trace in traces():
            yield from _in_batches(view.read(trace, names, place))

    return LateDataset.make(view.schema(), read)


def _in_batches(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(first, BATCH_ROWS)
