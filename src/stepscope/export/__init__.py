"""Exports a trace to the formats of other viewers.

    registry.py    the one list of formats
    content.py     what timelines show: tracks on which events nest, arrows, counters
    stacks.py      what flame graphs show: each call stack once, with its time
    chrome.py      Chrome's JSON, for chrome://tracing, Perfetto, and our own reader
    perfetto.py    Perfetto's protobuf, which is smaller and opens faster
    collapsed.py, pprof.py   for flame graphs and pprof, both of which Speedscope opens

Each has `pieces(traces, hosts)`, which yields bytes piece by piece, so that a file of any size never has to fit into
memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stepscope.export.registry import export_named

if TYPE_CHECKING:
    from stepscope.model import HostTrace


def pieces(traces: Iterable[HostTrace], form: str, hosts: int = 1) -> Iterator[bytes]:
    """The traces of one session as one file.

    Args:
        traces: one per host; each is released before the next is requested.
        form: the name of a format, such as `perfetto`.
        hosts: how many traces there are.

    Raises:
        UsageError: there is no such format.
    """
    return export_named(form).pieces(traces, hosts)


def compress_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, compressed as one gzip stream."""
    stream = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        yield stream.compress(piece)
    yield stream.flush()
