"""What the server and the process that answers say to each other: frames over a pair of pipes.

The server sends a question; the process asks back for the columns that the query reads, and sends the answer.  A frame
is a kind, a length, a head in MessagePack and, for some kinds, a table as an Arrow IPC stream.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from stepscope.records import dataclass

_SIZES = struct.Struct("<BQQ")


class Kind(IntEnum):
    """What a frame is."""

    QUESTION = 0  # to the process: a query, its sessions and its limits
    NEED_SCHEMA = 1  # from the process: the columns of a view
    NEED_COLUMNS = 2  # from the process: some columns of a view
    NEED_TOOL = 3  # from the process: the tables of a tool
    SUPPLY = 4  # to the process: what it needs
    ANSWER = 5  # from the process: the rows
    MISTAKE = 6  # either way: an error


@dataclass(frozen=True)
class Frame:
    """A message: what it is, its facts, and a table or none."""

    kind: Kind
    head: dict[str, Any]
    body: bytes = b""


def write_frame(out: BinaryIO, frame: Frame) -> None:
    """Writes a frame.  Raises OSError if nobody reads any more."""
    head = msgspec.msgpack.encode(frame.head)
    out.write(_SIZES.pack(frame.kind, len(head), len(frame.body)))
    out.write(head)
    out.write(frame.body)
    out.flush()


def read_frame(source: BinaryIO) -> Frame | None:
    """The next frame; None at the end, also in the middle of a frame."""
    sizes = source.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return None
    kind, head_size, body_size = _SIZES.unpack(sizes)
    head, body = source.read(head_size), source.read(body_size)
    if len(head) < head_size or len(body) < body_size:
        return None
    return Frame(Kind(kind), msgspec.msgpack.decode(head), body)


def pack_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Batches as an Arrow IPC stream."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return out.getvalue()


def unpack_batches(body: bytes) -> list[pa.RecordBatch]:
    """The batches of a stream; they share its memory."""
    return [*pa.ipc.open_stream(body)]
