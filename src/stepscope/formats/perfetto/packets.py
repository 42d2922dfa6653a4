"""From bytes to rows: finds the packets of a file, unpacks compressed ones, and steps over what is damaged."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stepscope.errors import UnreadableError
from stepscope.formats.heads import describe_head
from stepscope.formats.kineto.document import Raw
from stepscope.formats.kineto.text import GZIP_MAGIC, Inflater, size_limit
from stepscope.formats.kineto.texts import TextTable
from stepscope.kernels import trace_json
from stepscope.kernels.wire import packets as wire
from stepscope.model.arrays import U8
from stepscope.records import dataclass

# Keys of PyTorch's collectives whose values are text even if they look like a number.
_TEXT_KEYS = (b"Process Group Name", b"Process Group Description", b"Collective name", b"dtype")


class PerfettoTrack(NamedTuple):
    """A track as the file describes it.

    Attributes:
        kind: see `wire.UNKNOWN_TRACK` and those that follow it.
        uuid, parent: numbers in the file; the parent's is 0 if there is none.
        pid: the process, or the GPU of a queue.
        tid: the thread.
        name: text id.
    """

    kind: int
    uuid: int
    parent: int
    pid: int
    tid: int
    name: int


@dataclass(frozen=True)
class Losses:
    """What a file lacks.

    Attributes:
        cut_at: where its last packet starts, if that is incomplete.
        cut_because: why it ends there.
        damaged, damaged_at: packets and places that could not be read, and where the first is.
        locked: compressed packets that could not be unpacked; `locked_because`: why the first could not.
        lost: how often the recorder lost packets of a sequence.
        skipped: packets that refer to what was lost with others.
        unnamed: references to names that no packet defines.
        unknown_clocks: events whose clock is not related to the trace's.
    """

    cut_at: int | None
    cut_because: str
    damaged: int
    damaged_at: int
    locked: int
    locked_because: str
    lost: int
    skipped: int
    unnamed: int
    unknown_clocks: int


@dataclass(frozen=True)
class DecodedPackets:
    """The rows of a file, its tracks, and what it lacks.  `raw.tid` is a row of `tracks`."""

    raw: Raw
    tracks: Sequence[PerfettoTrack]
    losses: Losses


def decode(content: bytes | memoryview, source: str) -> DecodedPackets:
    """Reads the packets of a file.  Raises UnreadableError if it holds none."""
    packed = bytes(content[:2]) == GZIP_MAGIC
    damage = ""
    if packed:
        content, damage = _unpack_file(bytes(content), source)
    data = np.frombuffer(content, np.uint8)
    data.flags.writeable = False
    reading = _Reading(data, size_limit(len(data)))
    reading.run()
    if not reading.decoder.packets or reading.decoder.packets == reading.decoder.damaged:
        raise _unreadable_error(data, damage, source)
    if damage and reading.cut_at is None:
        reading.cut_at = len(data)
    return reading.result(packed, damage)


def _unpack_file(content: bytes, source: str) -> tuple[bytes | memoryview, str]:
    inflater = Inflater(content, source)
    unpacked = bytearray()
    for piece in inflater.pieces():
        unpacked += piece
    return memoryview(unpacked), inflater.damage


class _Reading:
    """One walk through the packets of a file."""

    def __init__(self, data: U8, most_bytes: int) -> None:
        self.data = data
        self.scanner = trace_json.Scanner()
        self.decoder = wire.PacketDecoder(self.scanner, int.from_bytes(os.urandom(8), "little"), _TEXT_KEYS)
        self.cut_at: int | None = None
        self.cut_because = ""
        self.locked = 0
        self.locked_because = ""
        self._left = most_bytes  # that compressed packets may still unpack to

    def run(self) -> None:
        """Reads all packets."""
        at = 0
        while True:
            why = self.decoder.decode(self.data, at)
            at = self.decoder.at
            if why == wire.DONE:
                break
            if why == wire.COMPRESSED:
                self._read_compressed()
                continue
            next_packet = int(wire.find_packet(self.data, at + 1))
            if next_packet < 0:
                self.cut_at = at
                self.cut_because = (
                    "the file ends inside the packet that starts here" if why == wire.CUT else "no packet starts here"
                )
                break
            self.decoder.note_damage(at)
            at = next_packet
        self.decoder.finish()

    def _read_compressed(self) -> None:
        """Reads the packets in a compressed one."""
        begin, end = self.decoder.inner_begin, self.decoder.inner_end
        unpacked, damage = _unpack_packets(self.data[begin:end].tobytes(), self.decoder.inner_method, self._left)
        self._left -= len(unpacked)
        if damage:
            self.locked += 1
            self.locked_because = self.locked_because or damage
        inner = np.frombuffer(unpacked, np.uint8)
        why = self.decoder.decode(inner, 0)
        if why in (wire.COMPRESSED, wire.BROKEN, wire.CUT) and not damage:
            self.decoder.note_damage(begin)

    def result(self, packed: bool, damage: str) -> DecodedPackets:
        """The rows that were read."""
        decoder = self.decoder
        columns: dict[str, Any] = {**self.scanner.take()}
        offsets = np.zeros(len(columns["stat_end"]) + 1, np.int64)
        offsets[1:] = columns.pop("stat_end")
        raw = Raw(
            **columns,
            stat_offsets=offsets,
            texts=TextTable(self.scanner),
            metadata={"baseTimeNanoseconds": decoder.realtime_ns} if decoder.realtime_ns > 0 else {},
            documents=(),
            cut_at=self.cut_at,
            cut_because=damage or self.cut_because,
            damaged=decoder.damaged + self.locked + decoder.lost + decoder.skipped + decoder.unnamed,
            damaged_at=decoder.damaged_at,
            compressed=packed,
            size=len(self.data),
            knows_clock=decoder.realtime_ns > 0,
        )
        losses = Losses(
            self.cut_at, damage or self.cut_because, decoder.damaged, decoder.damaged_at, self.locked,
            self.locked_because, decoder.lost, decoder.skipped, decoder.unnamed, decoder.unknown_clocks,
        )  # fmt: skip
        return DecodedPackets(raw, [PerfettoTrack(*track) for track in decoder.tracks()], losses)


# -- compression -------------------------------------------------------------------------------------------------------


def _unpack_packets(content: bytes, method: int, most: int) -> tuple[bytes, str]:
    """What a compressed packet holds, or the start of it, and why there is no more of it."""
    pieces = _inflate(content) if method == wire.BY_DEFLATE else _expand_zstd(content)
    unpacked = bytearray()
    try:
        for piece in pieces:
            unpacked += piece
            if len(unpacked) > most:
                return bytes(unpacked[:most]), "compressed packets unpack to more than a hundred times their size"
    except (zlib.error, OSError) as error:
        return bytes(unpacked), f"a compressed packet is damaged ({str(error).rpartition(': ')[2]})"
    return bytes(unpacked), ""


_PIECE_BYTES = 1 << 20


def _inflate(content: bytes) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    while content and not stream.eof:
        yield stream.decompress(content, _PIECE_BYTES)
        content = stream.unconsumed_tail
    if not stream.eof:
        raise zlib.error("it ends early")


def _expand_zstd(content: bytes) -> Iterator[bytes]:
    import pyarrow as pa

    piece = bytearray(_PIECE_BYTES)  # `read` would leak what it allocates where the data is damaged (pyarrow 25)
    with pa.CompressedInputStream(io.BytesIO(content), "zstd") as stream:
        while count := stream.readinto(piece):
            yield bytes(piece[:count])


# -- what is no trace --------------------------------------------------------------------------------------------------


def _unreadable_error(data: U8, damage: str, source: str) -> UnreadableError:
    hint = "check that this is a *.pftrace or *.perfetto-trace file and that it was copied completely"
    if not len(data) and not damage:
        hint = "the capture did not finish; record it again"
        return UnreadableError("the file is empty", code="empty", path=source, offset=0, hint=hint)
    looks = describe_head(data[:64].tobytes())
    because = f": {damage}" if damage else f"; it looks like {looks}" if looks else ""
    return UnreadableError(
        f"no packet of a Perfetto trace can be read{because}", path=source, offset=0, lost="everything", hint=hint
    )
