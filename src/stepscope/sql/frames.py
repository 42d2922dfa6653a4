"""What the process that reads profiles and the one that answers say to each other: frames, each a message.

The one sends a question; the other asks back for the columns that the query reads, and sends the answer.  A frame is a
kind, a head in MessagePack and, for some kinds, a table as an Arrow IPC stream.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import msgspec
import pyarrow as pa

from stepscope.records import dataclass

_SIZES = struct.Struct("<BQ")


class MessageKind(IntEnum):
    """What a frame is."""

    QUESTION = 0  # to the process: a query, its sessions and its limits
    NEED_SCHEMA = 1  # from the process: the columns of a view
    NEED_COLUMNS = 2  # from the process: some columns of a view
    NEED_TOOL = 3  # from the process: the tables of a tool
    SUPPLY = 4  # to the process: what it needs
    ANSWER = 5  # from the process: the rows
    MISTAKE = 6  # either way: an error


@dataclass(frozen=True)
class Message:
    """A message: what it is, its facts, and a table or none."""

    kind: MessageKind
    head: dict[str, Any]
    body: bytes | memoryview = b""


def pack_frame(frame: Message) -> tuple[bytes, bytes, bytes | memoryview]:
    """A frame as the parts of a message."""
    head = msgspec.msgpack.encode(frame.head)
    return _SIZES.pack(frame.kind, len(head)), head, frame.body


def unpack_frame(message: bytes) -> Message:
    """A frame from its message; the table shares the message's memory."""
    kind, head_size = _SIZES.unpack_from(message)
    body = _SIZES.size + head_size
    whole = memoryview(message)
    return Message(MessageKind(kind), msgspec.msgpack.decode(whole[_SIZES.size : body]), whole[body:])


def pack_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Batches as an Arrow IPC stream."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return out.getvalue()


def unpack_batches(body: bytes | memoryview) -> list[pa.RecordBatch]:
    """The batches of a stream; they share its memory."""
    return [*pa.ipc.open_stream(body)]
