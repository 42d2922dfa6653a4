"""The fields of protobuf messages in Python, for messages that are small or of which a few fields are wanted."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}
_MOST_BYTES = 10  # of a number


def read_fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Number, wire type and bytes of each field of a message.  Raises ValueError if it is not a message."""
    at, end = 0, len(message)
    while at < end:
        tag, at = read_number(message, at)
        wire, begin = tag & 7, at
        if wire == VARINT:
            _, at = read_number(message, at)
        elif wire == DELIMITED:
            length, begin = read_number(message, at)
            at = begin + length
        elif wire in _WIDTHS:
            at += _WIDTHS[wire]
        else:
            raise ValueError(f"byte {at:,} starts no field")
        if at > end or not tag >> 3:
            raise ValueError(f"the field at byte {begin:,} is cut short")
        yield tag >> 3, wire, message[begin:at]


def read_number(content: memoryview | bytes, at: int) -> tuple[int, int]:
    """A number, unsigned, and the position after it.  Raises ValueError if it has no end."""
    value, after = read_varint(content, at)
    if value is None:
        raise ValueError(f"the number at byte {at:,} has no end")
    return value & ((1 << 64) - 1), after


def read_varint(content: memoryview | bytes, position: int) -> tuple[int | None, int]:
    """The number at a position and the position after it; None if there is none."""
    value = 0
    for count, byte in enumerate(content[position : position + _MOST_BYTES]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value, position + count + 1
    return None, position
