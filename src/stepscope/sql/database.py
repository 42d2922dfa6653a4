"""The connection that answers: locked, with limits on memory, time and rows.

The engine may reach nothing but the views: no file, no network, no extension, no setting.  Each question is asked in a
transaction that only reads.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset

from stepscope.analysis.registry import all_tools
from stepscope.errors import UsageError
from stepscope.sql.all_views import VIEWS
from stepscope.sql.answer import SqlReport, make_report, plain_table
from stepscope.sql.macros import MACROS
from stepscope.sql.mistakes import explain_mistake, missing_table, require_reading
from stepscope.sql.source import BATCH_ROWS, ColumnSource, Notes
from stepscope.sql.stats_view import NAME as STATS
from stepscope.sql.tool_tables import tool_of_table

FIRST = "main"
"""The schema of the first session: its views need no name before them."""

_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
_ONE_LINE_UP = re.compile(r"(?m)^LINE (\d+):")
_AT_ONCE = 1 << 16
_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)
_OWN_SCHEMAS = frozenset({"temp", "system", "information_schema", "pg_catalog"})


class LateDataset(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """A view that DuckDB can scan: a dataset whose columns are made when a scan asks for them.

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


class Database:
    """Answers questions about sessions, one question at a time.

    Args:
        sources: sessions by name.  The views of the first need no name before them; those of all can be reached as
            `before.kernels`, and by `main.kernels` for the first.
        memory_bytes: what the engine may use for joins and sorts.

    Raises:
        UsageError: the name of a session cannot be that of a schema.
    """

    def __init__(self, sources: Mapping[str, ColumnSource], memory_bytes: int) -> None:
        self._sources = dict(_name_schemas(sources))
        self._memory_bytes = memory_bytes
        self._registered: dict[str, list[str]] = {}
        self._engine = duckdb.connect(config={**_SETTINGS, "memory_limit": f"{memory_bytes // 1000}kB"})
        for schema, source in self._sources.items():
            self._add_source(schema, source)
        self._engine.execute("SET lock_configuration = true")
        # The engine complains about what it still holds when the interpreter ends.
        weakref.finalize(self, self._engine.close)

    # -- asking --------------------------------------------------------------------------------------------------------

    def ask(self, query: str, rows: int | None = None) -> SqlReport:
        """The answer to a query; its first rows if it has more than `rows`.

        Raises:
            UsageError: the query is wrong, needs too much, or does more than read.
            InputError: a profile cannot be read.
        """
        for source in self._sources.values():
            source.notes = Notes()
        try:
            require_reading(self._engine, query)
            table, more = self._answer(query, rows)
        except duckdb.Error as error:
            raise self._explain(error, query) from error
        sources = self._sources.values()
        hosts = [host for source in sources for host in source.hosts]
        return make_report(query, table, rows if more else None, hosts, [source.notes for source in sources])

    def _answer(self, query: str, rows: int | None) -> tuple[pa.Table, bool]:
        """The rows, and whether there are more.  Tables of tools that the query names are added on the way."""
        while True:
            try:
                with self._reading():
                    return self._fetch_rows(query, rows)
            except duckdb.CatalogException as error:
                if not self._add_missing(missing_table(error), query):
                    raise

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._engine.execute("BEGIN TRANSACTION READ ONLY")
        try:
            yield
        finally:
            with suppress(duckdb.Error):
                self._engine.execute("ROLLBACK")

    def _fetch_rows(self, query: str, rows: int | None) -> tuple[pa.Table, bool]:
        relation = self._engine.sql(query)
        with relation.to_arrow_reader(_AT_ONCE) as reader:
            batches, left = [], rows
            for batch in reader:
                batches.append(batch if left is None else batch.slice(0, left))
                if left is not None and batch.num_rows > left:
                    return plain_table(pa.Table.from_batches(batches, reader.schema)), True
                left = None if left is None else left - batch.num_rows
            return plain_table(pa.Table.from_batches(batches, reader.schema)), False

    def _explain(self, error: Exception, query: str) -> BaseException:
        failures = [source.notes.failure for source in self._sources.values() if source.notes.failure is not None]
        if failures:
            return failures[0]
        names = [name for names in self._registered.values() for name in names]
        names += [STATS, *(tool.method for tool in all_tools())]
        return explain_mistake(self._error_with_place(error, query), query, names, self._memory_bytes)

    def _error_with_place(self, error: Exception, query: str) -> Exception:
        """The same mistake with its place in the query, which the engine leaves out of the errors of relations."""
        if "\nLINE " not in str(error) and isinstance(error, duckdb.BinderException | duckdb.CatalogException):
            try:
                self._engine.execute(f"EXPLAIN\n{query}")
            except type(error) as placed:
                error.args = (_ONE_LINE_UP.sub(lambda line: f"LINE {int(line[1]) - 1}:", str(placed)),)
        return error

    # -- tables --------------------------------------------------------------------------------------------------------

    def _add_source(self, schema: str, source: ColumnSource) -> None:
        if schema != FIRST:
            self._engine.execute(f"CREATE SCHEMA {schema}")
        for view in VIEWS:
            self._add(schema, view.name, _dataset(source, view.name))
        for macro in MACROS:
            self._engine.execute(macro.definition(schema))

    def _add(self, schema: str, name: str, table: LateDataset | pa.Table) -> None:
        """Adds a table to a schema.  What the engine scans lies in a schema of its own, so a view stands before it."""
        inner = f"{schema}.{name}"
        self._engine.register(inner, table)
        self._engine.execute(f'CREATE VIEW {inner} AS SELECT * FROM temp."{inner}"')
        self._registered.setdefault(schema, []).append(name if schema == FIRST else inner)

    def _add_missing(self, name: str | None, query: str) -> bool:
        """Adds a table that is made only when it is asked for; False if there is no such table."""
        if name is None:
            return False
        name = name.rpartition(".")[2].lower()
        schema = self._schema_in(query, name)
        known = self._registered[schema]
        prefix = "" if schema == FIRST else f"{schema}."
        if f"{prefix}{name}" in known:  # of a session that does not exist
            return False
        made = _make_tables(self._sources[schema], name)
        for table, content in made.items():
            if f"{prefix}{table}" not in known:
                self._add(schema, table, content)
        return name in made

    def _schema_in(self, query: str, name: str) -> str:
        """The session whose table is missing: the engine's message does not say."""
        for schema in self._sources:
            listed = self._registered[schema]
            is_named = re.search(rf'\b{schema}"?\s*\.\s*"?{re.escape(name)}\b', query, re.IGNORECASE)
            if is_named and f"{schema}.{name}" not in listed:
                return schema
        return FIRST


def _dataset(source: ColumnSource, view: str) -> LateDataset:
    """A view of a source.  The engine holds it, and no cycle through the engine would ever be collected, so it knows
    the source by a weak reference."""
    asked = weakref.ref(source)

    def read(columns: list[str]) -> Iterator[pa.RecordBatch]:
        found = asked()
        if found is not None:
            yield from found.read(view, columns)

    return LateDataset.make(source.schema(view), read)


def _make_tables(source: ColumnSource, name: str) -> Mapping[str, Any]:
    """The tables that come with one that is made only when it is asked for; none if there is no such table."""
    if name == STATS:
        return {STATS: _dataset(source, STATS)}
    tool = tool_of_table(name)
    return {} if tool is None else source.tool_tables(tool.name)


def _name_schemas(sources: Mapping[str, ColumnSource]) -> Iterator[tuple[str, ColumnSource]]:
    """The sessions by their schemas: the first has the engine's usual one, and its own if it has a name."""
    for at, (name, source) in enumerate(sources.items()):
        if at == 0:
            yield FIRST, source
        if name != FIRST:
            if not _NAME.fullmatch(name) or name.lower() in _OWN_SCHEMAS:
                raise UsageError(
                    f"{name!r} cannot name a session in SQL", hint="use letters, digits and _, such as before"
                )
            yield name.lower(), source
