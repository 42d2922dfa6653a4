"""Packs the rows of a time series into Parquet.  Another process runs this; see `stepscope.capture.aside`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stepscope.formats import series


def main(arguments: Sequence[str]) -> None:
    """Packs the rows of one host.

    Args:
        arguments: the folder and the host.
    """
    folder, host = arguments
    pack_rows(Path(folder), host)


def pack_rows(folder: Path, host: str) -> None:
    """Adds the rows of `HOST.tail-N.jsonl` to `HOST.parquet`, and removes those files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tails, target = series.waiting_tails(folder, host), series.packed_path(folder, host)
    parts = [pq.read_table(target)] if target.exists() else []
    known = set(parts[0].column(series.TIME).to_pylist()) if parts else set()
    fresh = series.rows_to_table([row for tail in tails for row in series.read_lines(tail)], known)
    if len(fresh):
        draft = target.with_name(f".{target.name}.draft")
        pq.write_table(pa.concat_tables([*parts, fresh], promote_options="default"), draft, compression="zstd")
        draft.replace(target)
    for tail in tails:
        tail.unlink()
