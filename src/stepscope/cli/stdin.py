"""A profile on stdin, as in `curl ... | stepscope summary -`."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from stepscope.errors import UnreadableError
from stepscope.formats.base import FORMATS, format_of
from stepscope.formats.sniffing import SNIFF_BYTES, sniff

_NAMES = ("stdin.xplane.pb", "stdin.pt.trace.json", "stdin.pickle", "stdin.prof")
_GZIP = b"\x1f\x8b"
_PIECE = 1 << 20


def save_stdin() -> Path:
    """Writes what comes on stdin to a temporary file with a name of its format; it is removed when the process ends.

    Raises:
        UnreadableError: nothing comes, or it is no profile by its first bytes.
    """
    source = sys.stdin.buffer
    start = source.read(SNIFF_BYTES)
    name = _name_of(start)
    if name is None:
        known = "; ".join(each.summary for each in FORMATS)
        what = "its first bytes are not those of a profile" if start else "nothing came on stdin"
        raise UnreadableError(what, code="unknown-format", path="-", hint=f"what can be read: {known}")
    folder = Path(tempfile.mkdtemp(prefix="stepscope-stdin-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / (f"{name}.gz" if start.startswith(_GZIP) else name)
    with path.open("wb") as file:
        file.write(start)
        _copy(source, file)
    return path


def _copy(source: BinaryIO, sink: BinaryIO) -> None:
    while piece := source.read(_PIECE):
        sink.write(piece)


def _name_of(start: bytes) -> str | None:
    found = sniff(start) if start else None
    return next((name for name in _NAMES if found is not None and format_of(name) is found), None)
