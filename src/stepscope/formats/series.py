"""The time series of runs that were watched: where they lie, and how they are read.

    LOGDIR/plugins/stepscope/RUN/HOST.tail.jsonl      the latest rows, one line each, appended
    LOGDIR/plugins/stepscope/RUN/HOST.tail-N.jsonl    rows that are being packed
    LOGDIR/plugins/stepscope/RUN/HOST.parquet         the rows before
    LOGDIR/plugins/stepscope/RUN/HOST.marks.jsonl     the triggers

A row that stands in two files after a crash counts once: its time, `unix_s`, identifies it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.errors import InputError, UnreadableError
from stepscope.formats import store

if TYPE_CHECKING:
    import pyarrow as pa

TIME = "unix_s"
_PLACE = ("plugins", "stepscope")
_TAIL, _MARKS, _PACKED = ".tail.jsonl", ".marks.jsonl", ".parquet"


def series_folder(logdir: str | Path, run: str) -> Path:
    """Where the time series of a run lies."""
    return Path(logdir, *_PLACE, run)


def tail_path(folder: Path, host: str) -> Path:
    """The file of a host's latest rows."""
    return folder / f"{host}{_TAIL}"


def marks_path(folder: Path, host: str) -> Path:
    """The file of a host's triggers."""
    return folder / f"{host}{_MARKS}"


def packed_path(folder: Path, host: str) -> Path:
    """The file of a host's earlier rows."""
    return folder / f"{host}{_PACKED}"


def waiting_tails(folder: Path, host: str) -> list[Path]:
    """The files of rows that are to be packed, oldest first."""
    return sorted(path for path in folder.glob("*.jsonl") if path.name.startswith(f"{host}.tail-"))


def series_place(logdir: str, run: str) -> str:
    """Where the time series of a run lies, as a path or an address."""
    return store.join(series_root(logdir), run)


def series_root(logdir: str) -> str:
    """Where the time series of all runs lie, as a path or an address."""
    place = store.plain(logdir)
    for name in _PLACE:
        place = store.join(place, name)
    return place


def find_runs(logdir: str) -> dict[str, list[str]]:
    """The runs of a logdir that have a time series, oldest first, each with its hosts; empty if there is none."""
    found: dict[str, list[str]] = {}
    with suppress(InputError):
        for folder in store.walk(series_root(logdir), max_depth=1).folders:
            hosts = _name_hosts([entry.name for entry in folder.files])
            if folder.depth == 1 and hosts:
                found[store.basename(folder.path)] = hosts
    return dict(sorted(found.items()))


def list_hosts(folder: str | Path) -> list[str]:
    """The hosts of a run's time series."""
    return _name_hosts(_list_files(folder))


def _name_hosts(files: list[str]) -> list[str]:
    names = {
        name.removesuffix(ending)
        for name in files
        for ending in (_TAIL, _PACKED)
        if name.endswith(ending) and not name.startswith(".")
    }
    return sorted(names)


def _list_files(folder: str | Path) -> list[str]:
    """The names of the files in a folder; none if it is not there."""
    with suppress(InputError):
        return [entry.name for entry in store.walk(os.fspath(folder), max_depth=0).folders[0].files]
    return []


def read_lines(path: str | Path) -> Iterator[dict[str, Any]]:
    """The rows of a text file; a line that was cut or damaged is left out."""
    content = b""
    with suppress(InputError):
        content = store.read_bytes(os.fspath(path))
    for line in content.decode(errors="replace").splitlines():
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict):
                yield row


def read_series(folder: str | Path, host: str) -> pa.Table:
    """The rows of a host, by time, as float64 columns; a value that a row lacks is null.

    Raises:
        UnreadableError: the packed file is damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    place, names = os.fspath(folder), set(_list_files(folder))
    packed = f"{host}{_PACKED}"
    parts = [_read_packed(store.join(place, packed))] if packed in names else []
    known = set(parts[0].column(TIME).to_pylist()) if parts else set()
    waiting = sorted(name for name in names if name.startswith(f"{host}.tail-") and name.endswith(".jsonl"))
    tails = [store.join(place, name) for name in (*waiting, f"{host}{_TAIL}")]
    fresh = rows_to_table([row for tail in tails for row in read_lines(tail)], known)
    table = pa.concat_tables([*parts, fresh], promote_options="default")
    return table.take(pc.sort_indices(table.column(TIME)))


def _read_packed(path: str) -> pa.Table:
    """The rows that were packed.  Raises UnreadableError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(pa.BufferReader(store.read_bytes(path)))
    except (pa.ArrowException, OSError, InputError) as error:
        raise UnreadableError(
            "the time series cannot be read", path=path, hint="remove the file to see the latest rows alone"
        ) from error


def rows_to_table(rows: list[dict[str, Any]], known: set[float]) -> pa.Table:
    """Rows as a table, each time once, without those whose time is known."""
    import pyarrow as pa

    by_time = {at: row for row in rows if (at := _number(row.get(TIME))) is not None and at not in known}
    kept = [row for _, row in sorted(by_time.items())]
    names = list(dict.fromkeys([TIME, *(name for row in kept for name in row)]))
    return pa.table({name: pa.array([_number(row.get(name)) for row in kept], pa.float64()) for name in names})


def read_marks(folder: str | Path) -> list[dict[str, Any]]:
    """The triggers of all hosts of a run, oldest first, each with its `host`; of one that has two lines the later one,
    which has its cause."""
    marks: dict[tuple[str, str], dict[str, Any]] = {}
    for name in _list_files(folder):
        if name.endswith(_MARKS):
            path = store.join(os.fspath(folder), name)
            host = name.removesuffix(_MARKS)
            for row in read_lines(path):
                marks[host, f"{row.get(TIME)} {row.get('trigger')}"] = {**row, "host": host}
    return sorted(marks.values(), key=lambda row: _number(row.get(TIME)) or 0.0)


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return None
    return float(value)
