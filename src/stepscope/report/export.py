"""Exports reports as JSON, CSV, Parquet and Arrow; files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from stepscope.errors import OutputError
from stepscope.report.base import Report, make_arrow_table
from stepscope.report.fields import csv_value
from stepscope.report.sections import Rows

if TYPE_CHECKING:
    import pyarrow


def to_json(report: Report) -> bytes:
    """One JSON object, indented, with a newline at the end."""
    return report.to_json()


def to_csv(report: Report) -> bytes:
    """The main table with a header; unknown is an empty field."""
    import csv

    table = report.main_table()
    names = [field.name for field in table.fields]
    out = _Lines()
    # The library quotes a cell only if it holds this line end, and readers take a carriage return for a line end too.
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(names)
    writer.writerows([csv_value(row[name]) for name in names] for row in table.rows)
    return "".join(out.lines).encode()


class _Lines:
    """Rows of CSV, each with a line feed as its end."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, row: str) -> None:
        """Takes a row from the csv library."""
        self.lines.append(row.removesuffix("\r\n") + "\n")


def to_parquet(report: Report) -> bytes:
    """The main table as Parquet, units and meanings in the fields' metadata."""
    import io

    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(report.to_arrow(), out)
    return out.getvalue()


def to_arrow_stream(report: Report) -> bytes:
    """The main table as an Arrow IPC stream, units and meanings in the fields' metadata."""
    return _write_stream(report.to_arrow())


def table_to_arrow(table: Rows) -> bytes:
    """Any table as an Arrow IPC stream."""
    return _write_stream(make_arrow_table(table))


def _write_stream(table: pyarrow.Table) -> bytes:
    import io

    import pyarrow as pa

    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def _to_html(report: Report, most_rows: int) -> str:
    from stepscope.report.html import render_page

    return render_page(report, most_rows)


def _to_markdown(report: Report, most_rows: int) -> str:
    from stepscope.report.markdown import render_document

    return render_document(report, most_rows)


EXPORTS: dict[str, Callable[[Report], bytes]] = {
    "json": to_json,
    "csv": to_csv,
    "parquet": to_parquet,
    "arrow": to_arrow_stream,
}

SHEETS: dict[str, Callable[[Report, int], str]] = {"html": _to_html, "markdown": _to_markdown}
"""Forms for people; each takes a report and the number of rows to show per table."""

MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}


def write_file(path: Path, content: bytes | Iterable[bytes]) -> int:
    """Writes a file whole or not at all, from bytes or pieces; returns the number of bytes.

    A link is kept and its target is written.  A device or pipe, such as `/dev/stdout`, is written to and not replaced.

    Raises:
        OutputError: it cannot be written.
    """
    pieces = [content] if isinstance(content, bytes) else content
    try:
        if _is_device(path):
            return _write_pieces(path.open("wb"), pieces)
        return _replace_file(path.resolve(), pieces)
    except OSError as error:
        raise OutputError(
            f"cannot write the file: {error.strerror or error}", path=path, hint="choose another --output"
        ) from error


def _is_device(path: Path) -> bool:
    """Whether a path is neither a file nor a folder."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _replace_file(path: Path, pieces: Iterable[bytes]) -> int:
    """Replaces a file atomically."""
    temporary = path.parent / f".stepscope-{os.getpid()}-{os.urandom(6).hex()}.tmp"
    out = temporary.open("xb")
    try:
        size = _write_pieces(out, pieces)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return size


def _write_pieces(out: BinaryIO, pieces: Iterable[bytes]) -> int:
    with out:
        return sum(map(out.write, pieces))
