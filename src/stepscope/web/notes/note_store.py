"""The words that people gave to sessions, in one SQLite file that several servers may share.

SQLite's own locks make each change whole.  A change names the version that it was made from, so of two people who edit
one note the second is told, instead of the first being overwritten.  The file has no write-ahead log: it may lie on a
network disk, where that does not work.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from stepscope.cache import CacheOptions
from stepscope.records import dataclass
from stepscope.web.answers import Refused
from stepscope.web.catalogue import make_id

STORE_VARIABLE = "STEPSCOPE_STORE"
FILE_NAME = "stepscope-sessions.db"

LONGEST_TITLE = 200
LONGEST_NOTE = 20_000
LONGEST_LABEL = 50
MOST_LABELS = 20

_BUSY_SECONDS = 10.0  # how long a change waits for another server's
_BUSY_READING_SECONDS = 0.2  # the page waits as long: after that it shows what was read last
_SCHEMA = 1
_CREATE = """
CREATE TABLE IF NOT EXISTS words (
    session TEXT PRIMARY KEY,
    title TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',
    labels TEXT NOT NULL DEFAULT '[]',
    starred INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0,
    changed_by TEXT NOT NULL DEFAULT '',
    changed_at REAL NOT NULL DEFAULT 0
)
"""
_COLUMNS = "session, title, note, labels, starred, deleted, version, changed_by, changed_at"


@dataclass(frozen=True)
class Words:
    """What people said of one session.

    Attributes:
        title: shown in place of the run's name; empty for none.
        note: free text, shown as text.
        labels: short words, each once.
        starred: whether it is listed first.
        deleted: whether it is left out of the list; its files stay, so this can be undone.
        version: counts the changes; 0 if there was none.
        changed_by: who made the last change; empty if unknown.
        changed_at: when, in seconds since 1970; 0 if never.
    """

    title: str = ""
    note: str = ""
    labels: tuple[str, ...] = ()
    starred: bool = False
    deleted: bool = False
    version: int = 0
    changed_by: str = ""
    changed_at: float = 0.0


NOTHING = Words()


class NoteStore:
    """The file.  Safe to use from several threads and servers.

    Args:
        path: the file, which is made on the first change; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._last: dict[str, list[Any]] = {}

    def all(self) -> dict[str, Words]:
        """What was said, by session; empty if nothing was, or the file cannot be read."""
        with suppress(ValueError):
            return {row[0]: _words(row) for row in self._read(f"SELECT {_COLUMNS} FROM words")}
        return {}

    def of(self, session: str) -> Words:
        """What was said of a session."""
        return self.all().get(session, NOTHING)

    def change(self, session: str, version: int, change: Mapping[str, Any], person: str) -> Words:
        """Changes what is said of a session, and returns all that is.

        Args:
            session: its id.
            version: that from which the change was made.
            change: new values by attribute of Words; checked already.
            person: who makes it.

        Raises:
            Refused: 409 if somebody else changed it meanwhile, or nothing can be written; 507 without space.
        """
        with self._changing("keeps no notes") as connection:
            return _change(connection, session, version, change, person)

    def forget(self, session: str, version: int) -> None:
        """Forgets what was said of a session that is gone, unless somebody has changed it since that version."""
        with suppress(sqlite3.Error, OSError), self._open() as connection:
            connection.execute("DELETE FROM words WHERE session = ? AND version = ?", (session, version))

    def end_login(self, login: str, until: float) -> None:
        """Notes for all servers that a login has ended, which would otherwise last until a time.

        Raises:
            Refused: 409 if there is no store, or it cannot be written.
        """
        with self._changing("cannot note it") as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS ended (login TEXT PRIMARY KEY, until REAL NOT NULL)")
            connection.execute("DELETE FROM ended WHERE until < ?", (time.time(),))
            connection.execute("INSERT OR REPLACE INTO ended VALUES (?, ?)", (login, until))

    def ended_logins(self) -> frozenset[str]:
        """The logins that have ended before their time."""
        return frozenset(str(row[0]) for row in self._read("SELECT login FROM ended"))

    def _read(self, query: str) -> list[Any]:
        """The rows of a query; those read last while another server changes the file."""
        if self.path is None or not self.path.exists():
            return []
        try:
            place = f"{self.path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(place, timeout=_BUSY_READING_SECONDS, uri=True)) as connection:
                self._last[query] = connection.execute(query).fetchall()
        except (sqlite3.Error, OSError) as error:
            if not _is_busy(error):
                return []
        return self._last.get(query, [])

    @contextmanager
    def _changing(self, cannot: str) -> Iterator[sqlite3.Connection]:
        """A change of the file, whole or not at all; Refused says that this server `cannot` where it fails."""
        if self.path is None:
            raise Refused(409, f"this server {cannot}", f"set {STORE_VARIABLE} to a file")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._open() as connection, _transaction(connection):
                yield connection
        except (sqlite3.Error, OSError) as error:
            is_full = "full" in str(error) or getattr(error, "errno", None) == 28
            status, why = (507, "there is no space left") if is_full else (409, "its file cannot be written")
            raise Refused(status, f"this server {cannot}: {why}", "ask who runs this server") from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        assert self.path is not None
        is_new = not self.path.exists()
        with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            if is_new:
                with suppress(OSError):
                    self.path.chmod(0o600)
            connection.execute(_CREATE)
            connection.execute(f"PRAGMA user_version = {_SCHEMA}")
            yield connection


def _is_busy(error: Exception) -> bool:
    """Whether another server has locked the file."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # with Python 3.11 and later
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) if code else "locked" in str(error)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _change(
    connection: sqlite3.Connection, session: str, version: int, change: Mapping[str, Any], person: str
) -> Words:
    row = connection.execute(f"SELECT {_COLUMNS} FROM words WHERE session = ?", (session,)).fetchone()
    known = _words(row) if row else NOTHING
    if known.version != version:
        who = known.changed_by or "somebody else"
        raise Refused(409, f"{who} has changed this meanwhile", "look at the change, then make yours again")
    fields = {name: getattr(known, name) for name in ("title", "note", "labels", "starred", "deleted")} | dict(change)
    values = (
        session, fields["title"], fields["note"], json.dumps(list(fields["labels"])), int(fields["starred"]),
        int(fields["deleted"]), version + 1, person, time.time(),
    )  # fmt: skip
    connection.execute(f"INSERT OR REPLACE INTO words ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    return _words(values)


def _words(row: tuple[Any, ...]) -> Words:
    labels = tuple(str(label) for label in json.loads(row[3]))
    return Words(str(row[1]), str(row[2]), labels, bool(row[4]), bool(row[5]), int(row[6]), str(row[7]), float(row[8]))


def default_store() -> NoteStore:
    """The file that the environment names, otherwise one beside the cache."""
    given = os.environ.get(STORE_VARIABLE, "").strip()
    if given:
        return NoteStore(Path(given).expanduser())
    folder = CacheOptions.from_environment().folder
    return NoteStore(folder.parent / FILE_NAME if folder else None)


def read_labels(store: NoteStore | None = None) -> Callable[[str, str], tuple[str, ...]]:
    """The labels of a session, by its run and path."""
    words = (store or default_store()).all()
    return lambda run, path: words.get(make_id(run, path), NOTHING).labels
