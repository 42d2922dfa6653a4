"""Checks a serialized XSpace for events, without parsing it."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.capture.tracers.system import PLANE as SYSTEM_PLANE

_PLANES, _NAME, _LINES, _EVENTS = 1, 2, 3, 4  # XSpace.planes, XPlane.name, XPlane.lines, XLine.events
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SYSTEM = SYSTEM_PLANE.encode()


def has_events(space: bytes) -> bool:
    """True if any line of any plane has an event; False for unreadable bytes.

    The system's samples do not count, since they exist even if the program did nothing.

    >>> has_events(b"")
    False
    """
    try:
        return any(
            True
            for plane in _parts(memoryview(space), _PLANES)
            if bytes(next(_parts(plane, _NAME), b"")) != _SYSTEM
            for line in _parts(plane, _LINES)
            for _ in _parts(line, _EVENTS)
        )
    except (IndexError, ValueError):
        return False


def _parts(data: memoryview, wanted: int) -> Iterator[memoryview]:
    """The contents of every length-delimited field `wanted`, in order; other fields are skipped."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            size, at = _varint(data, at)
            if tag >> 3 == wanted:
                yield data[at : at + size]
            at += size
        elif kind == _VARINT:
            _, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
