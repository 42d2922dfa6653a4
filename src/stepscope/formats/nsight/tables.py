"""The tables of an export as columns, whichever form they were exported in.

No Python object stands for a row.  SQLite joins the numbers of a column into one text, which numpy parses: measured on
a million rows of ten columns this takes 0.6 of the time of making tuples, and none of their memory.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import field
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from stepscope.errors import AccessError, InputError, NotFoundError, Problem, UnreadableError, counted
from stepscope.formats import store
from stepscope.formats.naming import natural_key
from stepscope.model.arrays import I64
from stepscope.records import dataclass

MISSING = -1  # for NULL

_HEADER = 100  # bytes: what is shorter is no database
_MAGIC = b"SQLite format 3\x00"
# Of the header: 2 for a write-ahead log, which no database in memory can have; bytes of a page; number of pages.
_JOURNAL, _PAGE_BYTES, _PAGES = slice(18, 20), slice(16, 18), slice(28, 32)
_ROWS = 1 << 16  # joined at a time; fewer where the file is damaged
_FEWEST_ROWS = 1 << 8
_MOST_CUT = 16  # a file may have lost as many times what is left of it
_LONGEST_TEXT = 1 << 28  # bytes, of one value or of the numbers joined at a time
_MOST_RATIO = 100  # rows of a Parquet file for each of its bytes: more is a file made to exhaust memory
_ALWAYS_ALLOWED = 1 << 20  # rows
_MOST_TABLES = 1000  # an export has some fifty


@dataclass
class Texts:
    """The distinct texts of a trace, in order; text 0 is empty."""

    rows: dict[bytes, int] = field(default_factory=lambda: {b"": 0})

    def add(self, text: object) -> int:
        """The row of a text; 0 for what is no text."""
        raw = text.encode("utf-8", "replace") if isinstance(text, str) else text if isinstance(text, bytes) else b""
        return self.rows.setdefault(raw, len(self.rows))


class Tables(Protocol):
    """The tables of one export, by the names without the version that newer exports add, as in NVTX_EVENTS_V2.

    Attributes:
        texts: takes the texts that are read.
        problems: what could not be read.
    """

    texts: Texts
    problems: list[Problem]

    def columns_of(self, table: str) -> frozenset[str]:
        """The columns of a table; empty if there is no such table."""

    def columns(self, table: str, numbers: Sequence[str], text: str = "") -> dict[str, I64]:
        """Columns of a table that exist: of whole numbers, MISSING for NULL, and one of texts, as their rows."""

    def records(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of a small table, None for columns that do not exist."""


def _newest(table: str, names: Iterable[str]) -> str:
    """The name in an export of a table; of several versions the newest."""
    versions = [name for name in names if _VERSION.sub("", name) == table]
    return max(versions, key=lambda name: (name == table, natural_key(name)), default=table)


_VERSION = re.compile(r"_V\d{1,4}$")

# -- SQLite ------------------------------------------------------------------------------------------------------------


@contextmanager
def open_sqlite(data: bytes | Iterator[bytes], source: str) -> Iterator[SqliteTables]:
    """The tables of a database, which is only read: nothing in it is executed, and nothing is written beside it.

    Raises:
        UnreadableError: it is not a database of SQLite.
    """
    with _connect(data, source) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        yield SqliteTables(connection, source)


@contextmanager
def _connect(data: bytes | Iterator[bytes], source: str) -> Iterator[sqlite3.Connection]:
    if isinstance(data, bytes | memoryview):
        content = bytearray(data)
        if len(content) < _HEADER or not content.startswith(_MAGIC):
            raise _not_a_database(source)
        with _open_bytes(content) as connection:
            yield connection
    elif store.is_remote(source) or not Path(source).is_file():
        with tempfile.NamedTemporaryFile(suffix=".sqlite") as copy:
            for piece in data:
                copy.write(piece)
            copy.flush()
            with _open_file(copy.name, source) as connection:
                yield connection
    else:
        with _open_file(source, source) as connection:
            yield connection


@contextmanager
def _open_file(path: str, source: str) -> Iterator[sqlite3.Connection]:
    with Path(path).open("rb") as file:
        header = file.read(_HEADER)
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise _not_a_database(source)
    if _stated_size(header) > Path(path).stat().st_size:
        with _open_bytes(bytearray(Path(path).read_bytes())) as connection:
            yield connection
        return
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        yield connection


def _stated_size(header: bytes | bytearray) -> int:
    return int.from_bytes(header[_PAGE_BYTES], "big") * int.from_bytes(header[_PAGES], "big")


@contextmanager
def _open_bytes(content: bytearray) -> Iterator[sqlite3.Connection]:
    """Opens a database in memory.  Pages that were cut off are empty: else SQLite refuses all others too."""
    content[_JOURNAL] = b"\x01\x01"
    lost = _stated_size(content) - len(content)
    if 0 < lost <= _MOST_CUT * len(content):
        content.extend(bytes(lost))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(bytes(content))
        yield connection


def _not_a_database(source: str) -> UnreadableError:
    return UnreadableError(
        "this is not a database of SQLite",
        code="unknown-format",
        path=source,
        hint="export it again: `nsys export --type sqlite REPORT.nsys-rep`",
    )


def names_of_tables(path: str) -> list[str]:
    """The names of the tables of a database on this machine; none if it is elsewhere or damaged."""
    if store.is_remote(path):
        return []
    place = f"{Path(store.plain(path)).absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(place, uri=True)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchmany(_MOST_TABLES)
    except _DAMAGE:
        return []
    return [str(name) for (name,) in found]


# The second where SQLite's reason quotes a name that is no text, the third where a damaged length asks for gigabytes.
_DAMAGE = (sqlite3.Error, UnicodeDecodeError, MemoryError)


class SqliteTables:
    """The tables of a database of SQLite."""

    def __init__(self, connection: sqlite3.Connection, source: str) -> None:
        self.texts = Texts()
        self.problems: list[Problem] = []
        self._connection = connection
        self._source = source
        self._known: dict[str, frozenset[str]] = {}
        self._names: list[str] | None = None
        connection.create_function("row_of_text", 1, self.texts.add)

    def _name_of(self, table: str) -> str:
        """The name of a table in the database."""
        if self._names is None:
            try:
                found = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                self._names = [str(name) for (name,) in found.fetchmany(_MOST_TABLES)]
            except _DAMAGE:
                self._names = []
        return _newest(table, self._names)

    def columns_of(self, table: str) -> frozenset[str]:
        """The columns that a table stores: views, virtual tables and computed columns do not count."""
        table = self._name_of(table)
        if table not in self._known:
            self._known[table] = self._find_columns(table)
        return self._known[table]

    def _find_columns(self, table: str) -> frozenset[str]:
        stored = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage > 0"
        try:
            if not self._connection.execute(stored, (table,)).fetchall():
                return frozenset()
            return frozenset(str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({_quoted(table)})"))
        except _DAMAGE as error:
            self._note_damage(table, 0, error)
            return frozenset()

    def columns(self, table: str, numbers: Sequence[str], text: str = "") -> dict[str, I64]:
        """Columns of a table that exist; up to the damage if the file is damaged."""
        has, table = self.columns_of(table), self._name_of(table)
        read = {name: f"CAST(ifnull({_quoted(name)}, {MISSING}) AS INTEGER)" for name in numbers if name in has}
        read |= {text: f"row_of_text({_quoted(text)})"} if text in has else {}
        parts: dict[str, list[I64]] = {name: [] for name in read}
        stored, joined = ", ".join(map(_quoted, read)), ", ".join(f"group_concat({each})" for each in read.values())
        inner = f"SELECT rowid AS place_, {stored} FROM {_quoted(table)} WHERE rowid > ? ORDER BY rowid LIMIT ?"
        last, rows, limit = -(1 << 62), 0, _ROWS
        while read:
            try:
                found = self._connection.execute(
                    f"SELECT max(place_), {joined} FROM ({inner})", (last, limit)
                ).fetchone()
            except _DAMAGE as error:
                if limit > _FEWEST_ROWS:
                    limit = _FEWEST_ROWS
                    continue
                self._note_damage(table, rows, error)
                break
            if found[0] is None:
                break
            if found[0] <= last:  # then the same rows would come again, without end
                self._note_damage(table, rows, sqlite3.DatabaseError("the numbers of its rows do not ascend"))
                break
            last = found[0]
            for name, numbers_of in zip(read, found[1:], strict=True):
                parts[name].append(np.fromstring(numbers_of, np.int64, sep=","))
            rows += len(parts[next(iter(read))][-1])
        return {name: np.concatenate([np.empty(0, np.int64), *found]) for name, found in parts.items()}

    def records(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of a small table."""
        has, table = self.columns_of(table), self._name_of(table)
        read = ", ".join(_quoted(name) if name in has else "NULL" for name in columns)
        try:
            return self._connection.execute(f"SELECT {read} FROM {_quoted(table)}").fetchall() if has else []
        except _DAMAGE as error:
            self._note_damage(table, 0, error)
            return []

    def _note_damage(self, table: str, rows: int, error: Exception) -> None:
        why: object = error
        if not isinstance(error, sqlite3.Error):
            is_long = isinstance(error, MemoryError)
            why = "it asks for more memory than there is" if is_long else "the names of the tables are damaged"
        self.problems.append(
            Problem(
                "damaged",
                f"the table {table} cannot be read: {why}",
                path=self._source,
                kept=counted(rows, "row"),
                lost="what followed",
                hint="copy the file again, or export it again with `nsys export --type sqlite`",
            )
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# -- Parquet -----------------------------------------------------------------------------------------------------------


class ParquetTables:
    """The tables of a folder of Parquet files, each named after its table."""

    def __init__(self, folder: str, known: Mapping[str, bytes]) -> None:
        self.texts = Texts()
        self.problems: list[Problem] = []
        self._folder = folder
        self._known = dict(known)
        self._files: dict[str, Any] = {}
        self._names: list[str] | None = None

    def _open(self, table: str) -> Any | None:
        """The file of a table, None if it is missing or damaged."""
        if table not in self._files:
            self._files[table] = self._find_file(table)
        return self._files[table]

    def _find_file(self, table: str) -> Any | None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = store.join(self._folder, f"{self._name_of(table)}.parquet")
        try:
            content = self._known.pop(table, None) or store.read_bytes(path)
            file = pq.ParquetFile(BytesIO(content))
        except NotFoundError:
            return None
        except AccessError as error:
            self.problems.append(error.problem)
            return None
        except (pa.ArrowException, OSError, ValueError) as error:
            self._note_damage(path, str(error))
            return None
        if file.metadata.num_rows > max(_ALWAYS_ALLOWED, _MOST_RATIO * len(content)):
            self._note_damage(path, f"{len(content):,} bytes claim {file.metadata.num_rows:,} rows")
            return None
        return file

    def _name_of(self, table: str) -> str:
        """The name of a table's file, without its ending."""
        if self._names is None:
            self._names = []
            with suppress(InputError):
                files = store.walk(self._folder, max_depth=0).folders[0].files
                self._names = [file.name.removesuffix(".parquet") for file in files]
        return _newest(table, self._names)

    def _note_damage(self, path: str, why: str) -> None:
        hint = "copy the folder again, or export it again with `nsys export --type parquetdir`"
        reason = f"the table cannot be read: {why.splitlines()[0] if why else 'it is damaged'}"
        self.problems.append(Problem("damaged", reason, path=path, lost="its rows", hint=hint))

    def columns_of(self, table: str) -> frozenset[str]:
        """The columns of a table."""
        file = self._open(table)
        return frozenset() if file is None else frozenset(file.schema_arrow.names)

    def columns(self, table: str, numbers: Sequence[str], text: str = "") -> dict[str, I64]:
        """Columns of a table that exist."""
        has = self.columns_of(table)
        wanted = [name for name in (*numbers, text) if name in has]
        read = self._read(table, wanted)
        return {} if read is None else {name: self._numbered(read[name], name == text) for name in wanted}

    def _numbered(self, column: Any, is_text: bool) -> I64:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not is_text:
            filled = pc.fill_null(pc.cast(column, pa.int64(), safe=False), MISSING)
            return np.ascontiguousarray(filled.to_numpy(), np.int64)
        coded = pc.dictionary_encode(column.combine_chunks())
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        rows = np.array([*map(self.texts.add, coded.dictionary.to_pylist()), 0], np.int64)
        numbers: I64 = rows[pc.fill_null(coded.indices, len(rows) - 1).to_numpy(zero_copy_only=False)]
        return numbers

    def records(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of a small table."""
        has = self.columns_of(table)
        read = self._read(table, [name for name in columns if name in has])
        if read is None:
            return []
        return [tuple(row.get(name) for name in columns) for row in read.to_pylist()]

    def _read(self, table: str, columns: list[str]) -> Any | None:
        import pyarrow as pa

        file = self._open(table)
        if file is None or not columns:
            return None
        try:
            return file.read(columns)
        except (pa.ArrowException, OSError, ValueError) as error:
            self._note_damage(store.join(self._folder, f"{table}.parquet"), str(error))
            return None
