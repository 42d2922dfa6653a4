"""The time series of runs that were watched: where they lie, and how they are read.

    LOGDIR/plugins/stepscope/RUN/HOST.tail.jsonl      the latest rows, one line each, appended
    LOGDIR/plugins/stepscope/RUN/HOST.tail-N.jsonl    rows that are being packed
    LOGDIR/plugins/stepscope/RUN/HOST.parquet         the rows before
    LOGDIR/plugins/stepscope/RUN/HOST.marks.jsonl     the triggers

A row that stands in two files after a crash counts once: its time, `unix_s`, identifies it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.errors import UnreadableError

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


def list_runs(logdir: str | Path) -> list[str]:
    """The runs of a logdir that have a time series, oldest first."""
    with suppress(OSError):
        return sorted(folder.name for folder in Path(logdir, *_PLACE).iterdir() if list_hosts(folder))
    return []


def list_hosts(folder: Path) -> list[str]:
    """The hosts of a run's time series."""
    names: set[str] = set()
    with suppress(OSError):
        for file in folder.iterdir():
            for ending in (_TAIL, _PACKED):
                if file.name.endswith(ending) and not file.name.startswith("."):
                    names.add(file.name.removesuffix(ending))
    return sorted(names)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a text file; a line that was cut or damaged is left out."""
    with suppress(OSError), path.open(errors="replace") as file:
        for line in file:
            with suppress(ValueError, RecursionError):
                row = json.loads(line)
                if isinstance(row, dict):
                    yield row


def read_series(folder: Path, host: str) -> pa.Table:
    """The rows of a host, by time, as float64 columns; a value that a row lacks is null.

    Raises:
        UnreadableError: the packed file is damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    packed = packed_path(folder, host)
    try:
        parts = [pq.read_table(packed)] if packed.exists() else []
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(
            "the time series cannot be read", path=str(packed), hint="remove the file to see the latest rows alone"
        ) from error
    known = set(parts[0].column(TIME).to_pylist()) if parts else set()
    tails = [*waiting_tails(folder, host), tail_path(folder, host)]
    fresh = rows_to_table([row for tail in tails for row in read_lines(tail)], known)
    table = pa.concat_tables([*parts, fresh], promote_options="default")
    return table.take(pc.sort_indices(table.column(TIME)))


def rows_to_table(rows: list[dict[str, Any]], known: set[float]) -> pa.Table:
    """Rows as a table, each time once, without those whose time is known."""
    import pyarrow as pa

    by_time = {at: row for row in rows if (at := _number(row.get(TIME))) is not None and at not in known}
    kept = [row for _, row in sorted(by_time.items())]
    names = list(dict.fromkeys([TIME, *(name for row in kept for name in row)]))
    return pa.table({name: pa.array([_number(row.get(name)) for row in kept], pa.float64()) for name in names})


def read_marks(folder: Path) -> list[dict[str, Any]]:
    """The triggers of all hosts of a run, oldest first, each with its `host`."""
    marks = []
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name.endswith(_MARKS):
                marks += [{**row, "host": path.name.removesuffix(_MARKS)} for row in read_lines(path)]
    return sorted(marks, key=lambda row: _number(row.get(TIME)) or 0.0)


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return None
    return float(value)
