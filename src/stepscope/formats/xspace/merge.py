"""Adds planes to an XSpace file without decoding it: it reads a few headers and copies the rest.

In this format, messages written one after the other form one message, so planes can simply be appended.  Their times
must count from the file's own start, which its environment plane gives.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.formats.xspace import schema
from stepscope.formats.xspace.writer import planes_only
from stepscope.model import HostTrace

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


def start_unix_ns(space: bytes) -> int | None:
    """The start of the session of an XSpace file, in ns since 1970; None if unknown.

    Raises:
        ValueError: this is not an XSpace.
    """
    for number, wire, plane in _fields(memoryview(space)):
        if (
            number == schema.SPACE_PLANES
            and wire == _DELIMITED
            and _plane_name(plane) == schema.ENVIRONMENT_PLANE.encode()
        ):
            return _plane_stat(plane, schema.START_TIME_STAT.encode())
    return None


def append_planes(space: bytes, trace: HostTrace) -> bytes:
    """The file with the planes of a trace appended.  The trace's times must count from the file's start."""
    return b"".join((space, *planes_only(trace)))


def _plane_name(plane: memoryview) -> bytes | None:
    """A plane's name, if it comes before the lines; otherwise None."""
    for number, wire, value in _fields(plane):
        if number == schema.PLANE_NAME and wire == _DELIMITED:
            return bytes(value)
        if number == schema.PLANE_LINES:
            return None
    return None


def _plane_stat(plane: memoryview, name: bytes) -> int | None:
    """An integer stat of a small plane; None if it is missing."""
    names: dict[int, bytes] = {}
    values: dict[int, int] = {}
    for number, _, value in _fields(plane):
        if number == schema.PLANE_STAT_METADATA:
            metadata = dict(_numbered_fields(value)).get(2, memoryview(b""))
            inside = dict(_numbered_fields(metadata))
            names[_integer(inside.get(schema.METADATA_ID, b""))] = bytes(inside.get(schema.METADATA_NAME, b""))
        elif number == schema.PLANE_STATS:
            inside = dict(_numbered_fields(value))
            raw = inside.get(schema.STAT_UINT, inside.get(schema.STAT_INT, b""))
            values[_integer(inside.get(schema.STAT_METADATA_ID, b""))] = _integer(raw)
    return next((values[row] for row, text in names.items() if text == name and row in values), None)


def _numbered_fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    return ((number, value) for number, _, value in _fields(message))


def _fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Number, wire type and bytes of each field of a message.  Raises ValueError if it is not a message."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        wire, begin = tag & 7, at
        if wire == _VARINT:
            _, at = _varint(message, at)
        elif wire == _DELIMITED:
            length, begin = _varint(message, at)
            at = begin + length
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"this is not an XSpace: wire type {wire} at byte {at}")
        if at > end or not tag >> 3:
            raise ValueError(f"this is not an XSpace: the field at byte {begin} extends past the end")
        yield tag >> 3, wire, message[begin:at]


def _integer(value: memoryview | bytes) -> int:
    return _varint(value, 0)[0] if len(value) else 0


def _varint(data: memoryview | bytes, at: int) -> tuple[int, int]:
    """A number and the position after it.  Raises ValueError if it has no end."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError(f"this is not an XSpace: the number at byte {at} has no end")
