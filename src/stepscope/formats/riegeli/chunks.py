"""Decodes chunks: from their data to the bytes of their records, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.protobuf import read_varint
from stepscope.formats.riegeli.blocks import SIMPLE, TRANSPOSED, RiegeliChunk
from stepscope.kernels import riegeli as kernel
from stepscope.model.arrays import U8

_CODECS = {ord("b"): "brotli", ord("z"): "zstd", ord("s"): "snappy"}
_NO_COMPRESSION = 0
_PIECE_BYTES = 4 << 20
_LONGEST_VARINT = 10


class ChunkError(Exception):
    """A chunk cannot be decoded; the text says why."""


def decode_chunk(chunk: RiegeliChunk, content: U8, out: U8) -> tuple[int, str]:
    """Writes the records of a chunk into `out`, one after the other.

    Args:
        chunk: the chunk.
        content: its data, or the start of it if the file ends there.
        out: where to; as many bytes as the chunk's header says.

    Returns:
        The number of bytes that were written, and why they are not all; the empty string if they are.
    """
    try:
        if chunk.kind == SIMPLE:
            return _decode_simple(content, out)
        if chunk.kind == TRANSPOSED:
            return _decode_transposed(chunk, content, out)
        return 0, f"a chunk of unknown type {chr(chunk.kind)!r}"
    except ChunkError as error:
        return 0, str(error)


def _decode_simple(content: U8, out: U8) -> tuple[int, str]:
    """A simple chunk: the sizes of the records, then the records."""
    reader = _Reader(content)
    compression = reader.byte()
    reader.take(reader.varint())  # the sizes of the records, which follow each other without gaps
    return _unpack_into(reader.rest(), compression, out)


def _decode_transposed(chunk: RiegeliChunk, content: U8, out: U8) -> tuple[int, str]:
    """A transposed chunk: a header, buckets of buffers, transitions."""
    reader = _Reader(content)
    compression = reader.byte()
    header = _Reader(_unpack(reader.take(reader.varint()), compression, len(out)))
    buckets, buffers = header.count(), header.count()
    bucket_sizes = [header.varint() for _ in range(buckets)]
    sizes = np.array([header.varint() for _ in range(buffers)], np.uint64)
    unpacked = [_unpack(reader.take(size), compression, len(out)) for size in bucket_sizes]
    data = np.concatenate(unpacked) if unpacked else np.empty(0, np.uint8)
    if float(sizes.sum(dtype=np.float64)) > len(data):
        raise ChunkError("the buffers of a chunk are longer than its buckets")
    ends = np.cumsum(sizes.astype(np.int64))
    tags, subtypes, buffer_of, next_state, is_implicit, first = _read_states(header, buffers)
    transitions = _unpack(reader.rest(), compression, len(content) * 255 + len(out))
    records = kernel.join_fields(
        tags, subtypes, buffer_of, next_state, is_implicit, first,
        data, ends - sizes.astype(np.int64), ends, transitions, out,
    )  # fmt: skip
    if records != chunk.records:
        raise ChunkError("the parts of a transposed chunk contradict each other")
    return len(out), ""


_States = tuple[
    NDArray[np.uint32], U8, NDArray[np.int32], NDArray[np.int32], U8, int
]  # tags, subtypes, buffers, next states, whether the next state is implied, the first state


def _read_states(header: _Reader, buffers: int) -> _States:
    """The state machine of a transposed chunk."""
    count = header.count()
    raw = [header.varint() for _ in range(count)]
    next_state = np.array([header.varint() for _ in range(count)], np.int64)
    if not count or max(raw) > 0xFFFFFFFF:
        raise ChunkError("a chunk without states")
    tags = np.array(raw, np.uint32)
    wire = tags & 7
    is_field = tags >= 8
    if (is_field & (wire == 7)).any() or ((tags >= 4) & ~is_field).any():
        raise ChunkError("a chunk with unknown states")
    subtypes = np.zeros(count, np.uint8)
    varints = is_field & (wire == kernel.WIRE_VARINT)
    subtypes[varints] = header.take(int(varints.sum()))
    if subtypes.max(initial=0) > kernel.MOST_INLINE:
        raise ChunkError("a chunk with unknown states")
    groups = (wire == kernel.WIRE_START_GROUP) | (wire == kernel.WIRE_END_GROUP)
    inline = varints & (subtypes >= kernel.INLINE_VALUE)
    needs = (is_field & ~inline & ~groups & (wire != kernel.WIRE_SUBMESSAGE_END)) | (tags == kernel.NON_PROTO)
    buffer_of = np.full(count, -1, np.int32)
    found = np.array([header.varint() for _ in range(int(needs.sum()))], np.uint64)
    if (found >= buffers).any():
        raise ChunkError("a chunk that refers to a buffer that it does not have")
    buffer_of[needs] = found.astype(np.int32)
    is_implicit = next_state >= count
    next_state = np.where(is_implicit, next_state - count, next_state)
    first = header.varint()
    if (next_state >= count).any() or first >= count:
        raise ChunkError("a chunk that refers to a state that it does not have")
    return tags, subtypes, buffer_of, next_state.astype(np.int32), is_implicit.astype(np.uint8), first


class _Reader:
    """Reads numbers and parts of bytes in order.  Raises ChunkError at their end."""

    def __init__(self, content: U8) -> None:
        self._content = content
        self._at = 0

    def byte(self) -> int:
        return int(self.take(1)[0])

    def varint(self) -> int:
        value, size = read_varint(self._content[self._at : self._at + _LONGEST_VARINT].tobytes(), 0)
        if value is None:
            raise ChunkError("a chunk ends early")
        self._at += size
        return value & ((1 << 63) - 1)

    def count(self) -> int:
        """A number of things that follow, each of a byte or more."""
        found = self.varint()
        if found > len(self._content) - self._at:
            raise ChunkError("a chunk ends early")
        return found

    def take(self, count: int) -> U8:
        if count > len(self._content) - self._at:
            raise ChunkError("a chunk ends early")
        self._at += count
        return self._content[self._at - count : self._at]

    def rest(self) -> U8:
        return self._content[self._at :]


# -- compression -------------------------------------------------------------------------------------------------------


def _unpack(content: U8, compression: int, most: int) -> U8:
    """A block that is small beside the records.  Raises ChunkError if it is damaged, or beyond its bound."""
    if compression == _NO_COMPRESSION:
        return content
    size, _ = read_varint(content[:_LONGEST_VARINT].tobytes(), 0)
    if size is None or size > max(most, 1 << 20) * 2:
        raise ChunkError("a chunk with a block of impossible size")
    out = np.empty(size, np.uint8)
    written, damage = _unpack_into(content, compression, out)
    if damage:
        raise ChunkError(damage)
    return out[:written]


def _unpack_into(content: U8, compression: int, out: U8) -> tuple[int, str]:
    """Unpacks a block up to its end or to damage: how many bytes were written, and why they are not all."""
    if compression == _NO_COMPRESSION:
        count = min(len(content), len(out))
        out[:count] = content[:count]
        return count, "" if count == len(out) else "a chunk ends early"
    if compression not in _CODECS:
        raise ChunkError(f"a chunk with unknown compression {chr(compression)!r}")
    _, start = read_varint(content[:_LONGEST_VARINT].tobytes(), 0)
    written = 0
    try:
        for count in _fill(content[start:], _CODECS[compression], out):
            written += count
    except (OSError, ValueError) as error:
        return written, f"the compressed data of a chunk is damaged ({str(error).split(':')[0]})"
    if written > len(out):
        return len(out), "a chunk unpacks to more than its header says"
    return written, "" if written == len(out) else "the compressed data of a chunk ends early"


def _fill(content: U8, codec: str, out: U8) -> Iterator[int]:
    """Fills `out` with what is unpacked: how many bytes each time, and 1 at the end if there is more.

    Reading `bytes` from the stream instead would leak them where the data is damaged (pyarrow 25).
    """
    import pyarrow as pa

    packed = np.ascontiguousarray(content)
    if codec == "snappy":  # has no stream; it says its own size, which has to be right
        size, _ = read_varint(packed[:_LONGEST_VARINT].tobytes(), 0)
        if size != len(out):
            raise ValueError("its size is wrong")
        out[:] = np.frombuffer(pa.decompress(pa.py_buffer(packed), len(out), codec), np.uint8)
        yield len(out)
        return
    at = 0
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(packed)), codec) as stream:
        while at < len(out) and (count := stream.readinto(out[at : at + _PIECE_BYTES].data)):
            at += count
            yield count
        yield stream.readinto(bytearray(1))


__all__ = ["ChunkError", "decode_chunk"]
