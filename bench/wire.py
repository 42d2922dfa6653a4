"""The parts of protobuf's wire format that making profiles needs: reads the fields of a message, writes a field."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.formats.xspace.encode import delimited_head, varint

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
MASK_64 = (1 << 64) - 1

Field = tuple[int, int, int, bytes]


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """The unsigned value at `pos` and the position after it."""
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & MASK_64, pos
        shift += 7


def fields(data: bytes) -> Iterator[Field]:
    """(number, wire type, value, bytes) of each field: the value of a number, the bytes of a string or message."""
    pos = 0
    while pos < len(data):
        key, pos = read_varint(data, pos)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            value, pos = read_varint(data, pos)
            yield number, wire_type, value, b""
        elif wire_type == LENGTH:
            length, pos = read_varint(data, pos)
            yield number, wire_type, 0, data[pos : pos + length]
            pos += length
        elif wire_type in (FIXED64, FIXED32):
            width = 8 if wire_type == FIXED64 else 4
            yield number, wire_type, int.from_bytes(data[pos : pos + width], "little"), b""
            pos += width
        else:
            raise ValueError(f"wire type {wire_type} at byte {pos} of a message of {len(data)}")


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return varint(field << 3 | VARINT) + varint(value)


def text(field: int, value: bytes) -> bytes:
    """A string, bytes or message field."""
    return delimited_head(field, len(value)) + value


def raw(field: Field) -> bytes:
    """A field from `fields`, encoded as it was."""
    number_, wire_type, value, content = field
    if wire_type == LENGTH:
        return text(number_, content)
    if wire_type == VARINT:
        return number(number_, value)
    return varint(number_ << 3 | wire_type) + value.to_bytes(8 if wire_type == FIXED64 else 4, "little")


def signed(value: int) -> int:
    """An unsigned 64-bit number as int64."""
    return value - (1 << 64) if value >> 63 else value
