"""Packs the rows of a time series into Parquet.  Another process runs this; see `stepscope.capture.aside`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def main(arguments: Sequence[str]) -> None:
    """Packs the rows of one host.

    Args:
        arguments: the folder, the host, and the file to make when all is done.
    """
    folder, host, done = Path(arguments[0]), arguments[1], Path(arguments[2])
    pack_rows(folder, host)
    done.touch()


def pack_rows(folder: Path, host: str) -> None:
    """Adds the rows of `HOST.tail-N.jsonl` to `HOST.parquet`, and removes those files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tails = sorted(folder.glob(f"{host}.tail-*.jsonl"))
    target = folder / f"{host}.parquet"
    rows = {row["unix_s"]: row for tail in tails for row in read_lines(tail) if "unix_s" in row}
    parts = [pq.read_table(target)] if target.exists() else []
    known = set(parts[0].column("unix_s").to_pylist()) if parts else set()
    fresh = [row for at, row in sorted(rows.items()) if at not in known]
    if fresh:
        names = list(dict.fromkeys(name for row in fresh for name in row))
        columns = {name: pa.array([_number(row.get(name)) for row in fresh], pa.float64()) for name in names}
        parts.append(pa.table(columns))
        draft = folder / f".{host}.parquet.draft"
        pq.write_table(pa.concat_tables(parts, promote_options="default"), draft, compression="zstd")
        draft.replace(target)
    for tail in tails:
        tail.unlink()


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a text file; a line that was cut or damaged is left out."""
    with suppress(OSError), path.open() as file:
        for line in file:
            with suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict):
                    yield row


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
