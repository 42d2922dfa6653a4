"""Exports a trace to the formats of other viewers: Chrome's JSON and Perfetto's protobuf.

    content.py   what is written in either format: tracks on which events nest, arrows, counters
    chrome.py    `pieces(traces, hosts)`: the JSON, for chrome://tracing, Perfetto, and our own reader
    perfetto.py  `pieces(traces, hosts)`: the protobuf, which is smaller and opens faster

Both yield bytes piece by piece, so that a file of any size never has to fit into memory.
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
"""The file name ending of each format; a compressed file adds `.gz`."""


def pieces(traces: Iterable[HostTrace], form: str, hosts: int = 1) -> Iterator[bytes]:
    """The traces of one session as one file.

    Args:
        traces: one per host; each is released before the next is requested.
        form: `perfetto` or `chrome`.
        hosts: how many traces there are.

    Raises:
        UsageError: there is no such format.
    """
    if form not in SUFFIXES:
        raise UsageError(f"there is no trace as {form!r}", hint=f"choose one of {', '.join(SUFFIXES)}")
    writer: Iterator[bytes] = importlib.import_module(f"stepscope.export.{form}").pieces(traces, hosts)
    return writer


def compress_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, compressed as one gzip stream."""
    stream = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        yield stream.compress(piece)
    yield stream.flush()
