"""Writes XSpace files field by field, so that a test shows the bytes it is about.

    plane(
        "/host:CPU",
        line("python", event(1, at=0, ps=500, stats=[stat(2, 7)])),
        event_name(1, "matmul:MatMul"),
        stat_name(2, "id"),
    )

A file is the concatenation of its planes.  This knows nothing of Stepscope's own writer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

Field = tuple[int, int, bytes]  # number, wire type, the value without tag and length


@dataclass(frozen=True)
class Unsigned:
    """A value for `uint64_value`."""

    value: int


@dataclass(frozen=True)
class Ref:
    """A value for `ref_value`: a stat metadata id whose name is the text."""

    stat_id: int


def varint(value: int) -> bytes:
    """A number; negative ones as 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return varint(field << 3) + varint(value)


def text(field: int, value: str | bytes) -> bytes:
    """A string, bytes or message field."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def fixed(field: int, value: bytes) -> bytes:
    """A field of four or eight bytes."""
    return varint(field << 3 | (1 if len(value) == 8 else 5)) + value


def group(field: int, *fields: bytes) -> bytes:
    """A group, which protobuf gave up long ago and which a reader skips."""
    return varint(field << 3 | 3) + b"".join(fields) + varint(field << 3 | 4)


def stat(metadata_id: int, value: int | float | str | bytes | Unsigned | Ref | None) -> bytes:
    """An XStat, without its own tag."""
    head = number(1, metadata_id)
    match value:
        case None:
            return head
        case float():
            return head + fixed(2, struct.pack("<d", value))
        case Unsigned():
            return head + number(3, value.value)
        case int():
            return head + number(4, value)
        case str():
            return head + text(5, value)
        case bytes():
            return head + text(6, value)
        case Ref():
            return head + number(7, value.stat_id)


def event(
    metadata_id: int,
    at: int | None = None,
    ps: int | None = None,
    stats: list[bytes] | None = None,
    occurrences: int | None = None,
    extra: bytes = b"",
) -> bytes:
    """An XEvent of a line."""
    body = number(1, metadata_id)
    body += b"" if at is None else number(2, at)
    body += b"" if occurrences is None else number(5, occurrences)
    body += b"" if ps is None else number(3, ps)
    return text(4, body + b"".join(text(4, one) for one in stats or []) + extra)


def line(name: str | bytes, *events: bytes, line_id: int = 1, start_ns: int = 0, extra: bytes = b"") -> bytes:
    """An XLine of a plane."""
    return text(3, number(1, line_id) + text(2, name) + number(3, start_ns) + extra + b"".join(events))


def event_name(metadata_id: int, name: str | bytes, display: str = "", stats: list[bytes] | None = None) -> bytes:
    """An entry of a plane's event metadata."""
    body = number(1, metadata_id) + text(2, name)
    body += text(4, display) if display else b""
    body += b"".join(text(5, one) for one in stats or [])
    return text(4, number(1, metadata_id) + text(2, body))


def stat_name(metadata_id: int, name: str | bytes) -> bytes:
    """An entry of a plane's stat metadata."""
    return text(5, number(1, metadata_id) + text(2, number(1, metadata_id) + text(2, name)))


def plane_stat(metadata_id: int, value: int | float | str | bytes | Unsigned | Ref | None) -> bytes:
    """A stat of a plane."""
    return text(6, stat(metadata_id, value))


def plane(name: str | bytes, *fields: bytes, plane_id: int = 0) -> bytes:
    """An XPlane of a file."""
    return text(1, number(1, plane_id) + text(2, name) + b"".join(fields))


def environment(start_ns: int, stop_ns: int) -> bytes:
    """The plane that tells when the session was."""
    names = stat_name(1, "profile_start_time"), stat_name(2, "profile_stop_time")
    return plane("Task Environment", *names, plane_stat(1, Unsigned(start_ns)), plane_stat(2, Unsigned(stop_ns)))


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a message.  Raises ValueError or IndexError if it is none."""
    pos = 0
    while pos < len(message):
        tag, pos = read_varint(message, pos)
        begin = pos
        if tag & 7 == 2:
            size, begin = read_varint(message, pos)
            pos = begin + size
        elif tag & 7 == 0:
            _, pos = read_varint(message, pos)
        elif tag & 7 in (1, 5):
            pos += 8 if tag & 7 == 1 else 4
        else:
            raise ValueError(tag)
        if pos > len(message) or tag < 8:
            raise ValueError(tag)
        yield tag >> 3, tag & 7, message[begin:pos]


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, pos


def raw_field(field: Field) -> bytes:
    number_, wire, value = field
    return varint(number_ << 3 | wire) + (varint(len(value)) if wire == 2 else b"") + value


def excerpt(space: bytes, lines: int, events: int) -> bytes:
    """A small file out of a large one: the first lines of each plane, the first events of each line, their names."""
    out = b""
    for field in fields(space):
        out += text(1, _shorter_plane(field[2], lines, events)) if field[0] == 1 else raw_field(field)
    return out


def _shorter_plane(message: bytes, lines: int, events: int) -> bytes:
    parts = list(fields(message))
    kept = [_shorter_line(value, events) for number_, _, value in parts if number_ == 3][:lines]
    of_events = [value for one in kept for number_, _, value in fields(one) if number_ == 4]
    types = {_first(one, 1) for one in of_events}
    entries = [value for number_, _, value in parts if number_ == 4 and _first(value, 1) in types]
    stats = [part for one in of_events for number_, _, part in fields(one) if number_ == 4]
    of_types = [value for entry in entries for number_, _, value in fields(entry) if number_ == 2]
    stats += [part for one in of_types for number_, _, part in fields(one) if number_ == 5]
    stats += [value for number_, _, value in parts if number_ == 6]
    texts = {_first(one, 1) for one in stats} | {_first(one, 7) for one in stats}
    out = b""
    for field in parts:
        if field[0] == 3:
            out += text(3, kept.pop(0)) if kept else b""
        elif field[0] not in (4, 5) or _first(field[2], 1) in (types if field[0] == 4 else texts):
            out += raw_field(field)
    return out


def _shorter_line(message: bytes, events: int) -> bytes:
    out, left = b"", events
    for field in fields(message):
        left -= field[0] == 4
        out += raw_field(field) if field[0] != 4 or left >= 0 else b""
    return out


def _first(message: bytes, wanted: int) -> int:
    numbers = (read_varint(value, 0)[0] for number_, wire, value in fields(message) if (number_, wire) == (wanted, 0))
    return next(numbers, 0)
