"""The text of a trace, seen through a moving window, so that a large trace never has to fit into memory.

Reading and decompression run on their own thread, a few pieces ahead of the scanner.
"""

from __future__ import annotations

import os
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain

import numpy as np

from stepscope.errors import UnreadableError
from stepscope.model.arrays import U8

LIMIT_VARIABLE = "STEPSCOPE_MAX_JSON_BYTES"
GZIP_MAGIC = b"\x1f\x8b"

# Traces shrink 10 to 60 times; a file made to exhaust memory shrinks about 1000 times.
_MOST_RATIO = 100
_ALWAYS_ALLOWED = 256 << 20
_MOST_BYTES = 64 << 30

# One event, or one value outside of the events, may be this long; anything longer counts as damage.
_MOST_VALUE_BYTES = 256 << 20

_SALVAGE_BYTES = 64
_INPUT_BYTES = 256 << 10
_PIECE_BYTES = 4 << 20
_PIECES_AHEAD = 3

# What is left of one piece is put before the next one, where there is room for an event of usual size.
_ROOM_BYTES = 256 << 10


def size_limit(compressed_bytes: int) -> int:
    """How many bytes a compressed trace may unpack to.  Raises UnreadableError if the variable is not a number."""
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        return min(max(_ALWAYS_ALLOWED, _MOST_RATIO * compressed_bytes), _MOST_BYTES)
    if not given.isdecimal():
        raise UnreadableError(
            f"{LIMIT_VARIABLE} is {given!r}, not a number of bytes", code="limit", hint="set it to digits, or unset it"
        )
    return int(given)


class Inflater:
    """Unpacks gzip data piece by piece and records damage.

    Attributes:
        bytes_out: bytes unpacked so far.
        damage: why unpacking stopped early, or the empty string.
        bytes_in: position in the compressed data.
    """

    def __init__(self, data: bytes, source: str) -> None:
        self.bytes_out = 0
        self.bytes_in = 0
        self.damage = ""
        self._data = memoryview(data)
        self._source = source
        self._limit = size_limit(len(data))

    def pieces(self) -> Iterator[bytes]:
        """The text, in order.  Raises UnreadableError once it grows beyond the limit."""
        stream = zlib.decompressobj(wbits=31)
        while self.bytes_in < len(self._data):
            chunk: bytes | memoryview = self._data[self.bytes_in : self.bytes_in + _INPUT_BYTES]
            self.bytes_in += len(chunk)
            while len(chunk) and not stream.eof:  # past its end, a stream returns the rest again and again
                before = stream.copy()
                try:
                    piece = stream.decompress(chunk, _PIECE_BYTES)
                except zlib.error as error:
                    self.damage = f"the gzip data is damaged ({str(error).rpartition(': ')[2]})"
                    yield from _salvage(before, bytes(chunk))
                    return
                chunk = stream.unconsumed_tail
                self._count(len(piece))
                yield piece
            if stream.eof:
                self.bytes_in -= len(stream.unused_data)
                if bytes(self._data[self.bytes_in : self.bytes_in + 2]) != GZIP_MAGIC:
                    return
                stream = zlib.decompressobj(wbits=31)
        if not stream.eof:
            self.damage = "the gzip data ends early"
            yield stream.flush()  # the rest, which did not fit into the last piece

    def _count(self, size: int) -> None:
        self.bytes_out += size
        if self.bytes_out > self._limit:
            raise UnreadableError(
                f"{len(self._data):,} compressed bytes unpack to more than {self._limit:,} bytes",
                code="too-large",
                path=self._source,
                hint=f"if you trust the file, set {LIMIT_VARIABLE} to a larger number of bytes",
            )


def _salvage(stream: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    """Unpacks `chunk` up to the damage: in small steps, and the step with the damage byte by byte."""
    for at in range(0, len(chunk), _SALVAGE_BYTES):
        before = stream.copy()
        try:
            yield stream.decompress(chunk[at : at + _SALVAGE_BYTES])
        except zlib.error:
            yield from _unpack_bytes(before, chunk[at : at + _SALVAGE_BYTES])
            return


def _unpack_bytes(stream: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    for byte in chunk:
        try:
            yield stream.decompress(bytes([byte]))
        except zlib.error:
            return


class Text:
    """A window over the text of a trace.

    Attributes:
        buf: read-only uint8; the window is `buf[at:end]`.
        at: the current position, moved by the reader.
        end: end of the window.
        offset: position of `buf[0]` in the whole text.
        inflater: unpacks the text; None if it is not compressed.

    Args:
        data: the file's bytes, or its pieces in order; pieces of a compressed file are joined first, since it is small.
        source: the name to use in messages.
    """

    def __init__(self, data: bytes | Iterator[bytes], source: str) -> None:
        self.at = 0
        self.offset = 0
        self.inflater: Inflater | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: deque[Future[tuple[U8, int] | None]] = deque()
        self._used: deque[U8] = deque()
        pieces: Iterator[bytes] | None = None
        if not isinstance(data, bytes):
            first = next(data, b"")
            pieces = chain([first], data)
            data = b"".join(pieces) if first.startswith(GZIP_MAGIC) else b""
        if data.startswith(GZIP_MAGIC):
            self.inflater = Inflater(data, source)
            pieces = self.inflater.pieces()
        if pieces is None:
            self._hold(np.frombuffer(data, np.uint8), len(data))
        else:
            self._hold(np.empty(0, np.uint8), 0)
            self._pieces = pieces
            self._pool = ThreadPoolExecutor(1, "stepscope-text")
            self._ahead.extend(self._request() for _ in range(_PIECES_AHEAD))

    def _hold(self, store: U8, end: int) -> None:
        self._store = store
        self.buf = store.view()
        self.buf.flags.writeable = False  # compiled code accepts one type of array
        self.end = end

    def _request(self) -> Future[tuple[U8, int] | None]:
        assert self._pool is not None
        return self._pool.submit(self._next_block)

    def _next_block(self) -> tuple[U8, int] | None:
        """The next piece after `_ROOM_BYTES` of room, and where it ends; it reuses earlier memory if it can."""
        piece = next(self._pieces, None)
        if piece is None:
            return None
        size = _ROOM_BYTES + len(piece)
        store = self._used.popleft() if self._used else np.empty(0, np.uint8)
        if not size <= len(store) <= 4 * size:
            store = np.empty(size, np.uint8)
        store[_ROOM_BYTES:size] = np.frombuffer(piece, np.uint8)
        return store, size

    @property
    def position(self) -> int:
        """The current position, from the start of the text."""
        return self.offset + self.at

    def more(self) -> bool:
        """Extends the window and drops what was read.  False at the end of the text, or if `too_long`.

        The unread part at least doubles, so that rereading a long value each time stays linear.
        """
        wanted = 2 * (self.end - self.at)
        grown = False
        while self._ahead and not self.too_long and (not grown or self.end - self.at < wanted):
            block = self._ahead.popleft().result()
            if block is None:
                self.close()
                break
            self._append(*block)
            self._ahead.append(self._request())
            grown = True
        return grown

    @property
    def too_long(self) -> bool:
        """True if a single value is longer than the reader's limit."""
        return self._pool is not None and self.end - self.at > _MOST_VALUE_BYTES

    def _append(self, block: U8, end: int) -> None:
        """Adds the piece in a block: by going on in the block, if what is kept of the window fits into its room."""
        kept = self.end - self.at
        position = self.position
        if kept <= _ROOM_BYTES:
            self.at = _ROOM_BYTES - kept
            block[self.at : _ROOM_BYTES] = self._store[self.end - kept : self.end]
            self._used.append(self._store)
            self._hold(block, end)
        else:
            self._extend(block[_ROOM_BYTES:end], kept)
        self.offset = position - self.at

    def _extend(self, piece: U8, kept: int) -> None:
        size = kept + len(piece)
        store = self._store if size <= len(self._store) else np.empty(2 * size, np.uint8)
        store[:kept] = self._store[self.at : self.end]
        store[kept:size] = piece
        self.at = 0
        self._hold(store, size)

    def close(self) -> None:
        """Stops reading ahead."""
        self._ahead.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def head(self, size: int) -> bytes:
        """Up to `size` bytes from the current position, without moving."""
        while self.end - self.at < size and self.more():
            pass
        return self.buf[self.at : min(self.end, self.at + size)].tobytes()
