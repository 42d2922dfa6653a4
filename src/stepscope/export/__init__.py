"""A trace in the forms that other viewers read: Chrome's JSON, and Perfetto's protobuf.

    content.py   what is written, whatever the form: tracks on which events nest, arrows, counters
    chrome.py    `pieces(traces, hosts)`: the JSON, for chrome://tracing, Perfetto, and our own reader
    perfetto.py  `pieces(traces, hosts)`: the protobuf, smaller and quicker to open

Both are generators of bytes, so that a file of any size is written without being in memory.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stepscope.errors import UsageError

if TYPE_CHECKING:
    from stepscope.model import HostTrace

SUFFIXES = {"perfetto": ".perfetto-trace", "chrome": ".trace.json"}
"""What the names of files of each form end with; `.gz` after it says that the file is compressed."""


def pieces(traces: Iterable[HostTrace], form: str, hosts: int = 1) -> Iterator[bytes]:
    """The traces of one session as one file.

    Args:
        traces: one of each host; each is let go before the next is asked for.
        form: `perfetto` or `chrome`.
        hosts: how many traces there are.

    Raises:
        UsageError: there is no such form.
    """
    if form not in SUFFIXES:
        raise UsageError(f"there is no trace as {form!r}", hint=f"choose one of {', '.join(SUFFIXES)}")
    writer: Iterator[bytes] = importlib.import_module(f"stepscope.export.{form}").pieces(traces, hosts)
    return writer


def compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces as a gzip stream."""
    stream = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        yield stream.compress(piece)
    yield stream.flush()
