"""Where the columns of a session come from: its traces and the reports of its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from stepscope.analysis.registry import tool_named
from stepscope.errors import InputError, StepscopeError
from stepscope.model import HostTrace
from stepscope.report import Report
from stepscope.sql.all_views import VIEWS
from stepscope.sql.stats_view import NAME as STATS
from stepscope.sql.stats_view import stats_view
from stepscope.sql.tool_tables import tables_of_report
from stepscope.sql.views import View

BATCH_ROWS = 1 << 18
"""Rows that one thread of the engine takes at a time.  Each batch brings its lists of texts, so few large ones are
quicker than many small ones."""


class AskedSession(Protocol):
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


def _readable_traces(session: AskedSession, notes: Notes) -> Iterator[tuple[int, HostTrace]]:
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


class ColumnSource(Protocol):
    """The columns of one session.

    Attributes:
        notes: what happened while they were read for the question that is being answered.
    """

    notes: Notes

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts."""
        ...

    def schema(self, view: str) -> pa.Schema:
        """The columns of a view."""
        ...

    def read(self, view: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a view, a batch or more for each host."""
        ...

    def tool_tables(self, tool: str) -> Mapping[str, pa.Table]:
        """The tables of a tool by their names in a query."""
        ...


class LocalSource:
    """The columns of a session that this process reads."""

    def __init__(self, session: AskedSession, notes: Notes | None = None) -> None:
        self.notes = notes or Notes()
        self._session = session
        self._views = {view.name: view for view in VIEWS}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts."""
        return self._session.hosts

    def schema(self, view: str) -> pa.Schema:
        """The columns of a view; those of `stats` are found in the traces.  Raises InputError."""
        return self._view(view).schema()

    def _view(self, name: str) -> View:
        if name == STATS and STATS not in self._views:
            self._views[STATS] = stats_view(trace for _, trace in _readable_traces(self._session, self.notes))
        return self._views[name]

    def read(self, view: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a view, host after host.  Raises InputError."""
        try:
            for place, trace in _readable_traces(self._session, self.notes):
                rows = self._view(view).read(trace, columns, place)
                for first in range(0, rows.num_rows, BATCH_ROWS):
                    yield rows.slice(first, BATCH_ROWS)
        except (StepscopeError, MemoryError) as error:
            self.notes.failure = error
            raise

    def tool_tables(self, tool: str) -> Mapping[str, pa.Table]:
        """The tables of a tool.  Raises StepscopeError."""
        report = self._session.report(tool)
        self.notes.add_report(report)
        return tables_of_report(tool_named(tool), report)
