"""Finds the chunks of a Riegeli file, and steps over what is damaged.

A file consists of chunks, and every 64 KiB of a block header, wherever that falls.  Block headers say where the chunk
around them starts and ends, so that reading can go on behind damage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from stepscope.kernels import riegeli as kernel
from stepscope.model.arrays import U8
from stepscope.records import dataclass

BLOCK = 1 << 16
_BLOCK_HEADER = struct.Struct("<QQQ")  # hash, bytes since the chunk's start, bytes to its end
_CHUNK_HEADER = struct.Struct("<QQQQQ")  # hash, bytes of data, their hash, type and number of records, decoded bytes
_IN_BLOCK = BLOCK - _BLOCK_HEADER.size
_KEY = np.array([0x2F696C6567656952, 0x0A7364726F636572] * 2, np.uint64)  # Riegeli/records\n, twice

SIGNATURE, METADATA, PADDING, SIMPLE, TRANSPOSED = (ord(letter) for letter in "smprt")


@dataclass(frozen=True)
class RiegeliChunk:
    """A chunk whose header is sound.

    Attributes:
        begin, end: where it is in the file; `end` may be beyond that of the file.
        kind: SIMPLE, TRANSPOSED, or one without records.
        data_bytes: bytes of its data; `data_hash` is their checksum.
        records: how many it holds, in so many `decoded_bytes`.
    """

    begin: int
    end: int
    kind: int
    data_bytes: int
    data_hash: int
    records: int
    decoded_bytes: int

    @property
    def has_records(self) -> bool:
        """Whether a profile may be in it."""
        return self.kind not in (SIGNATURE, METADATA, PADDING)


@dataclass
class BlockWalk:
    """What was found on the way.

    Attributes:
        damaged_at: where headers could not be read and reading went on behind them.
        cut_at: where the last chunk starts, if the file ends inside; otherwise None.
    """

    damaged_at: list[int]
    cut_at: int | None = None


def find_chunks(data: U8, walk: BlockWalk) -> Iterator[RiegeliChunk]:
    """All chunks of a file in order, the last one even if the file ends inside; notes damage in `walk`."""
    at = 0
    while at < len(data):
        header = read_across_blocks(data, at, _CHUNK_HEADER.size)
        if len(header) < _CHUNK_HEADER.size:
            walk.cut_at = at
            return
        chunk = _parse_header(at, header)
        if chunk is None:
            walk.damaged_at.append(at)
            at = _find_next_chunk(data, at)
            continue
        data_end = _add_overhead(chunk.begin, _CHUNK_HEADER.size + chunk.data_bytes)
        if min(chunk.end, data_end) > len(data):
            walk.cut_at = at
        yield chunk
        at = chunk.end


def chunk_data(data: U8, chunk: RiegeliChunk) -> U8:
    """The data of a chunk, as much as the file has."""
    return read_across_blocks(data, _add_overhead(chunk.begin, _CHUNK_HEADER.size), chunk.data_bytes)


def is_sound(chunk: RiegeliChunk, content: U8) -> bool:
    """Whether the data of a chunk is as it was written."""
    return len(content) == chunk.data_bytes and is_right(content, chunk.data_hash)


def read_across_blocks(data: U8, begin: int, size: int) -> U8:
    """Bytes of the file without the block headers between them; fewer if the file ends."""
    parts = []
    at = begin
    while size > 0 and at < len(data):
        if at % BLOCK < _BLOCK_HEADER.size:
            at += _BLOCK_HEADER.size - at % BLOCK
        stop = min(at + size, at - at % BLOCK + BLOCK, len(data))
        parts.append(data[at:stop])
        size -= max(stop - at, 0)
        at = stop
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.uint8)


def is_right(content: U8, checksum: int) -> bool:
    """Whether bytes have a checksum."""
    return int(kernel.highway_hash(np.ascontiguousarray(content), _KEY)) == checksum


def _parse_header(begin: int, header: U8) -> RiegeliChunk | None:
    """The chunk that a header describes; None if its checksum is wrong."""
    checksum, data_bytes, data_hash, kind, decoded_bytes = _CHUNK_HEADER.unpack(header.tobytes())
    if not is_right(header[8:], checksum):
        return None
    records = kind >> 8
    end = max(_add_overhead(begin, _CHUNK_HEADER.size + data_bytes), _round_up(begin + records))
    return RiegeliChunk(begin, end, kind & 255, data_bytes, data_hash, records, decoded_bytes)


def _add_overhead(begin: int, size: int) -> int:
    """The position so many bytes behind another, with the block headers between them."""
    blocks = (size + (begin + _IN_BLOCK - 1) % BLOCK) // _IN_BLOCK
    return begin + size + blocks * _BLOCK_HEADER.size


def _round_up(position: int) -> int:
    """The next position where a chunk may start: none starts inside a block header or right behind it."""
    left = BLOCK - 1 - (position + BLOCK - 1) % BLOCK
    return position + max(left - (_IN_BLOCK - 1), 0)


def _find_next_chunk(data: U8, at: int) -> int:
    """Where a chunk starts behind a position, as the next sound block header says; the file's end if there is none."""
    block = (at // BLOCK + 1) * BLOCK
    while block + _BLOCK_HEADER.size <= len(data):
        header = data[block : block + _BLOCK_HEADER.size]
        checksum, since_start, to_end = _BLOCK_HEADER.unpack(header.tobytes())
        if is_right(header[8:], checksum):
            if since_start == 0:
                return block
            if to_end > 0:
                return block + int(to_end)
        block += BLOCK
    return len(data)
