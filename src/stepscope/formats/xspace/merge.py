"""Adds planes to an XSpace file without decoding it: it reads a few headers and copies the rest.

In this format, messages written one after the other form one message, so planes can simply be appended.  Their times
must count from the file's own start, which its environment plane gives.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.formats.protobuf import DELIMITED, read_fields, read_number
from stepscope.formats.xspace import schema
from stepscope.formats.xspace.writer import planes_only
from stepscope.model import HostTrace


def start_unix_ns(space: bytes) -> int | None:
    """The start of the session of an XSpace file, in ns since 1970; None if unknown.

    Raises:
        ValueError: this is not an XSpace.
    """
    for number, wire, plane in read_fields(memoryview(space)):
        if (
            number == schema.SPACE_PLANES
            and wire == DELIMITED
            and _plane_name(plane) == schema.ENVIRONMENT_PLANE.encode()
        ):
            return _plane_stat(plane, schema.START_TIME_STAT.encode())
    return None


def append_planes(space: bytes, trace: HostTrace) -> bytes:
    """The file with the planes of a trace appended.  The trace's times must count from the file's start."""
    return b"".join((space, *planes_only(trace)))


def _plane_name(plane: memoryview) -> bytes | None:
    """A plane's name, if it comes before the lines; otherwise None."""
    for number, wire, value in read_fields(plane):
        if number == schema.PLANE_NAME and wire == DELIMITED:
            return bytes(value)
        if number == schema.PLANE_LINES:
            return None
    return None


def _plane_stat(plane: memoryview, name: bytes) -> int | None:
    """An integer stat of a small plane; None if it is missing."""
    names: dict[int, bytes] = {}
    values: dict[int, int] = {}
    for number, _, value in read_fields(plane):
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
    return ((number, value) for number, _, value in read_fields(message))


def _integer(value: memoryview | bytes) -> int:
    return read_number(value, 0)[0] if len(value) else 0
