"""Checks a serialized XSpace for events, without parsing it."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.capture.tracers.system import PLANE as SYSTEM_PLANE
from stepscope.formats.protobuf import DELIMITED, read_fields

_PLANES, _NAME, _LINES, _EVENTS = 1, 2, 3, 4  # XSpace.planes, XPlane.name, XPlane.lines, XLine.events
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
    except ValueError:
        return False


def _parts(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """The contents of every length-delimited field `wanted`, in order."""
    return (value for number, wire, value in read_fields(message) if number == wanted and wire == DELIMITED)
