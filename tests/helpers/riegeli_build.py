"""Writes Riegeli files, by the public specification and apart from the reader.

The checksum is written again, in Python's integers; compression is pyarrow's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pyarrow as pa
from xspace_build import fields, raw_field, varint

BLOCK = 65536
CODECS = {"none": 0, "brotli": ord("b"), "zstd": ord("z"), "snappy": ord("s")}
_MASK = (1 << 64) - 1
_KEY = [int.from_bytes(text, "little") for text in (b"Riegeli/", b"records\n", b"Riegeli/", b"records\n")]
_MUL0 = [0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3]
_MUL1 = [0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377]


# ---- HighwayHash -----------------------------------------------------------------------------------------------------


def highway_hash(data: bytes, key: Sequence[int] = _KEY) -> int:
    """The 64-bit HighwayHash."""
    v0 = [mul ^ part for mul, part in zip(_MUL0, key, strict=True)]
    v1 = [mul ^ _swap(part) for mul, part in zip(_MUL1, key, strict=True)]
    state = (v0, v1, list(_MUL0), list(_MUL1))
    whole = len(data) // 32 * 32
    for at in range(0, whole, 32):
        _mix(state, struct.unpack_from("<4Q", data, at))
    if rest := data[whole:]:
        size = len(rest)
        for k in range(4):
            v0[k] = (v0[k] + (size << 32) + size) & _MASK
            halves = [(half << size | half >> (32 - size)) & 0xFFFFFFFF for half in (v1[k] & 0xFFFFFFFF, v1[k] >> 32)]
            v1[k] = halves[1] << 32 | halves[0]
        words, odd = size // 4 * 4, size % 4
        packet = bytearray(rest[:words].ljust(32, b"\0"))
        if size & 16:
            packet[28:32] = rest[-4:]
        elif odd:
            packet[16:19] = bytes((rest[words], rest[words + odd // 2], rest[-1]))
        _mix(state, struct.unpack("<4Q", packet))
    for _ in range(4):
        _mix(state, (_swap(v0[2]), _swap(v0[3]), _swap(v0[0]), _swap(v0[1])))
    return sum(part[0] for part in state) & _MASK


def _swap(word: int) -> int:
    return (word >> 32 | word << 32) & _MASK


def _mix(state: tuple[list[int], ...], lanes: Sequence[int]) -> None:
    v0, v1, mul0, mul1 = state
    for k in range(4):
        v1[k] = (v1[k] + mul0[k] + lanes[k]) & _MASK
        mul0[k] ^= (v1[k] & 0xFFFFFFFF) * (v0[k] >> 32)
        v0[k] = (v0[k] + mul1[k]) & _MASK
        mul1[k] ^= (v0[k] & 0xFFFFFFFF) * (v1[k] >> 32)
    for into, source in ((v0, v1), (v1, v0)):
        for k in (0, 2):
            low, high = source[k].to_bytes(8, "little"), source[k + 1].to_bytes(8, "little")
            mixed_low = bytes((low[3], high[4], low[2], low[5], high[6], low[1], high[7], low[0]))
            mixed_high = bytes((high[3], low[4], high[2], high[5], high[1], low[6], high[0], low[7]))
            into[k] = (into[k] + int.from_bytes(mixed_low, "little")) & _MASK
            into[k + 1] = (into[k + 1] + int.from_bytes(mixed_high, "little")) & _MASK


# ---- files -----------------------------------------------------------------------------------------------------------


def riegeli_file(chunks: Iterable[tuple[str, bytes, int, int]], padded: bool = True) -> bytes:
    """A file of chunks: type, data, number of records and bytes of all records.  It starts with a signature.

    Args:
        padded: it ends at the end of a block, as XLA's writer pads it.
    """
    out = bytearray()
    for kind, data, records, size in (("s", b"", 0, 0), *chunks):
        _add_chunk(out, kind, data, records, size)
    if padded and len(out) % BLOCK:
        room = BLOCK - len(out) % BLOCK
        _add_chunk(out, "p", bytes(room - 40 if room >= 40 else room + BLOCK - 24 - 40), 0, 0)
    return bytes(out)


def _add_chunk(out: bytearray, kind: str, data: bytes, records: int, size: int) -> None:
    head = struct.pack("<QQQQ", len(data), highway_hash(data), ord(kind) | records << 8, size)
    content = struct.pack("<Q", highway_hash(head)) + head + data
    begin = len(out)
    end, left = begin, len(content)
    while left:  # the end, with the block headers on the way
        if end % BLOCK == 0:
            end += 24
        step = min(left, BLOCK - end % BLOCK)
        end, left = end + step, left - step
    if 0 < end - begin < records:
        end = begin + records
    if end % BLOCK and end % BLOCK <= 24:
        end += 25 - end % BLOCK
    content += bytes(end - begin)  # more than enough padding
    at = 0
    while len(out) < end:
        if len(out) % BLOCK == 0:
            place = struct.pack("<QQ", len(out) - begin, end - len(out))
            out += struct.pack("<Q", highway_hash(place)) + place
        step = min(end, len(out) // BLOCK * BLOCK + BLOCK) - len(out)
        out += content[at : at + step]
        at += step


def packed(data: bytes, codec: str) -> bytes:
    """A block as compression makes it: its size, then its bytes."""
    if codec == "none":
        return data
    return varint(len(data)) + pa.compress(data, codec, asbytes=True)


def simple_chunk(records: Sequence[bytes], codec: str = "brotli") -> tuple[str, bytes, int, int]:
    """A chunk with the records one after the other."""
    sizes, values = packed(b"".join(varint(len(record)) for record in records), codec), packed(b"".join(records), codec)
    data = bytes((CODECS[codec],)) + varint(len(sizes)) + sizes + values
    return "r", data, len(records), sum(map(len, records))


# ---- transposed chunks -----------------------------------------------------------------------------------------------


def transposed_chunk(
    records: Sequence[bytes], codec: str = "brotli", messages: Iterable[tuple[int, ...]] = ()
) -> tuple[str, bytes, int, int]:
    """A chunk with the fields of messages in buffers of their own.

    Args:
        messages: the paths of fields that are messages themselves; others stay texts.
    """
    steps = _Steps(frozenset(messages))
    for record in reversed(records):
        if not _is_message(record):
            steps.add((1, 0, "record"), record)
            steps.lengths += varint(len(record))
            continue
        steps.add_fields(record, ())
        steps.add((3, 0, ""), b"")
    return "t", steps.data(codec), len(records), sum(map(len, records))


class _Steps:
    """The states of the machine in the order of their use, which is from the end of the records to their start."""

    def __init__(self, messages: frozenset[tuple[int, ...]]) -> None:
        self.messages = messages
        self.order: list[int] = []
        self.states: dict[tuple[int, int, str], int] = {}
        self.buffers: dict[str, bytearray] = {}
        self.lengths = bytearray()

    def add(self, state: tuple[int, int, str], value: bytes) -> None:
        """A state (tag, subtype, buffer), and what goes into its buffer."""
        self.order.append(self.states.setdefault(state, len(self.states)))
        if state[2]:
            self.buffers.setdefault(state[2], bytearray()).extend(value)

    def add_fields(self, message: bytes, path: tuple[int, ...]) -> None:
        for number, wire, raw in reversed(list(fields(message))):
            here, tag = (*path, number), number << 3 | wire
            if wire == 0:
                bare = bytes(byte & 0x7F for byte in raw)
                inline = len(raw) == 1
                self.add((tag, 10 + raw[0] if inline else len(raw) - 1, "" if inline else f"{here} {len(raw)}"), bare)
            elif wire == 2 and here in self.messages:
                self.add((tag + 4, 2, ""), b"")
                self.add_fields(raw, here)
                self.add((2, 0, ""), b"")
            elif wire == 2:
                self.add((tag, 0, str(here)), varint(len(raw)) + raw)
            else:
                self.add((tag, 0, str(here)), raw)

    def data(self, codec: str) -> bytes:
        """The chunk's data.

        A step reaches 64 states, so states lie in regions of 64, and before each stands a state that does nothing, a
        hub.  All others go back to the first hub: from there one step leads to a hub, and one more into its region.
        """
        regions = range(0, len(self.states), 64)
        total = len(regions) + len(self.states)
        alone = [first + 1 == len(self.states) for first in regions]  # then the hub leads there by itself
        following = [len(regions) + first + total * only for first, only in zip(regions, alone, strict=True)]
        steps = []
        for state in self.order[1:]:
            hub, place = divmod(state, 64)
            steps += [hub << 2] if alone[hub] else [hub << 2 | 1] if place == 0 else [hub << 2, place << 2]
        tags = [*(0 for _ in regions), *(tag for tag, _, _ in self.states)]
        subtypes = bytes(kind for tag, kind, _ in self.states if tag >= 8 and tag & 7 == 0)
        names = list(self.buffers)
        blobs = [*self.buffers.values(), *([self.lengths] if self.lengths else [])]
        half = len(blobs) // 2
        buckets = [packed(b"".join(map(bytes, part)), codec) for part in (blobs[:half], blobs[half:]) if part]
        header = packed(
            b"".join(
                (
                    *map(varint, (len(buckets), len(blobs), *map(len, buckets), *map(len, blobs), total)),
                    *map(varint, tags),
                    *map(varint, [*following, *(0 for _ in self.states)]),
                    subtypes,
                    *(varint(names.index(buffer)) for _, _, buffer in self.states if buffer),
                    varint(len(regions) + self.order[0]),
                )
            ),
            codec,
        )
        return b"".join((bytes((CODECS[codec],)), varint(len(header)), header, *buckets, packed(bytes(steps), codec)))


def _is_message(data: bytes) -> bool:
    try:
        list(fields(data))
    except (ValueError, IndexError):
        return False
    return True


def split_space(space: bytes, parts: int) -> list[bytes]:
    """An XSpace in several, each with some of its fields."""
    whole = [raw_field(each) for each in fields(space)]
    bounds = [len(whole) * part // parts for part in range(parts + 1)]
    return [b"".join(whole[first:last]) for first, last in pairwise(bounds)]
