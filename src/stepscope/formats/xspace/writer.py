"""Writes a HostTrace as an XSpace file that TensorBoard, XProf and Stepscope read.

Metadata comes before the lines, so that a file that is cut off still has the names of every event it holds.  Text
stats are written as references into the metadata, each text once a plane.  There is no 2 GiB limit: the file is a
sequence of pieces and no protobuf library is involved.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from stepscope.formats.xspace import schema
from stepscope.model import HostTrace, Stats, StatTag

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_FIELD_OF_TAG = {StatTag.DOUBLE: schema.STAT_DOUBLE, StatTag.UINT: schema.STAT_UINT, StatTag.INT: schema.STAT_INT}


def write(trace: HostTrace) -> bytes:
    """The trace as the bytes of one XSpace file."""
    return b"".join(pieces(trace))


def pieces(trace: HostTrace) -> Iterator[bytes]:
    """The file in pieces of one plane each, for writing without holding all of it."""
    yield _text(schema.SPACE_HOSTNAMES, trace.host.encode())
    for message in trace.recorder_messages:
        yield _text(schema.SPACE_WARNINGS, message.encode())
    for plane in range(len(trace.planes)):
        yield _text(schema.SPACE_PLANES, _Plane(trace, plane).encode())


class _Plane:
    """Encodes one plane, numbering its stat names and texts as they come."""

    def __init__(self, trace: HostTrace, plane: int) -> None:
        self.trace = trace
        self.plane = plane
        self.stat_ids: dict[int, int] = {}  # string row -> stat metadata id
        self.occurrences = trace.strings.find(schema.OCCURRENCES_STAT)

    def encode(self) -> bytes:
        trace, plane = self.trace, self.plane
        lines = [self._line(row) for row in np.flatnonzero(trace.lines.plane == plane).tolist()]
        types = [self._event_type(row) for row in np.flatnonzero(trace.event_types.plane == plane).tolist()]
        first, last = trace.plane_stats.offsets[plane], trace.plane_stats.offsets[plane + 1]
        stats = b"".join(_text(schema.PLANE_STATS, self._stat(trace.plane_stats, row)) for row in range(first, last))
        texts = [self._stat_name(row, number) for row, number in self.stat_ids.items()]
        head = _number(schema.PLANE_ID, int(trace.planes.plane_id[plane]))
        head += _text(schema.PLANE_NAME, trace.strings.raw(trace.planes.name[plane]))
        return b"".join(itertools.chain([head], texts, types, [stats], lines))

    def _line(self, row: int) -> bytes:
        lines = self.trace.lines
        head = _number(schema.LINE_ID, int(lines.line_id[row]))
        head += _text(schema.LINE_NAME, self.trace.strings.raw(lines.name[row]))
        head += _number(schema.LINE_START_NS, int(lines.start_ns[row]))
        head += _number(schema.LINE_DURATION_PS, int(lines.duration_ps[row]))
        head += _number(schema.LINE_DISPLAY_ID, int(lines.display_id[row]))
        head += _text(schema.LINE_DISPLAY_NAME, self.trace.strings.raw(lines.display_name[row]))
        return _text(schema.PLANE_LINES, head + self._events(row))

    def _events(self, line: int) -> bytes:
        trace = self.trace
        begin, end = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
        zero = _line_zero_ps(trace, line)
        columns = zip(
            trace.event_types.metadata_id[trace.events.type[begin:end]].tolist(),
            (trace.events.start_ps[begin:end] - zero).tolist(),
            trace.events.duration_ps[begin:end].tolist(),
            trace.event_stats.offsets[begin:end].tolist(),
            trace.event_stats.offsets[begin + 1 : end + 1].tolist(),
            strict=True,
        )
        return b"".join(_text(schema.LINE_EVENTS, self._event(*row)) for row in columns)

    def _event(self, metadata_id: int, offset: int, duration: int, first: int, last: int) -> bytes:
        stats = self.trace.event_stats
        parts = [_number(schema.EVENT_METADATA_ID, metadata_id)]
        rows = range(first, last)
        counts = [row for row in rows if stats.name[row] == self.occurrences and self.occurrences > 0]
        if counts:  # an aggregate has a count instead of a position
            parts.append(_number(schema.EVENT_OCCURRENCES, int(stats.value[counts[0]])))
        else:
            parts.append(_number(schema.EVENT_OFFSET_PS, offset))
        parts.append(_number(schema.EVENT_DURATION_PS, duration))
        parts += [_text(schema.EVENT_STATS, self._stat(stats, row)) for row in rows if row not in counts]
        return b"".join(parts)

    def _event_type(self, row: int) -> bytes:
        trace = self.trace
        key = int(trace.event_types.metadata_id[row])
        body = _number(schema.METADATA_ID, key)
        body += _text(schema.METADATA_NAME, trace.strings.raw(trace.event_types.name[row]))
        body += _text(schema.METADATA_DISPLAY_NAME, trace.strings.raw(trace.event_types.display_name[row]))
        for stat in range(trace.type_stats.offsets[row], trace.type_stats.offsets[row + 1]):
            body += _text(schema.METADATA_STATS, self._stat(trace.type_stats, stat))
        return _map_entry(schema.PLANE_EVENT_METADATA, key, body)

    def _stat_name(self, row: int, number: int) -> bytes:
        body = _number(schema.METADATA_ID, number) + _text(schema.METADATA_NAME, self.trace.strings.raw(row))
        return _map_entry(schema.PLANE_STAT_METADATA, number, body)

    def _id_of(self, row: int) -> int:
        return self.stat_ids.setdefault(row, len(self.stat_ids) + 1)

    def _stat(self, stats: Stats, row: int) -> bytes:
        tag, value = int(stats.tag[row]), int(stats.value[row])
        head = _number(schema.STAT_METADATA_ID, self._id_of(int(stats.name[row])))
        if tag == StatTag.STRING:
            return head + _number(schema.STAT_REF, self._id_of(value), keep_zero=True)
        if tag == StatTag.BYTES:
            return head + _text(schema.STAT_BYTES, self.trace.strings.raw(value), keep_empty=True)
        if tag == StatTag.DOUBLE:
            return head + _varint(schema.STAT_DOUBLE << 3 | _FIXED64) + (value & (1 << 64) - 1).to_bytes(8, "little")
        if tag == StatTag.NONE:
            return head
        return head + _number(_FIELD_OF_TAG[StatTag(tag)], value, keep_zero=True)


def _line_zero_ps(trace: HostTrace, line: int) -> int:
    """What the reader will add to the offsets of this line, so that it finds the times that the trace has."""
    zero_ns = int(trace.lines.start_ns[line])
    absolute = zero_ns > 10**17 and trace.start_unix_ns is not None
    return (zero_ns - (trace.start_unix_ns or 0) if absolute else zero_ns) * 1000


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int, keep_zero: bool = False) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value) if value or keep_zero else b""


def _text(field: int, value: bytes, keep_empty: bool = False) -> bytes:
    if not value and not keep_empty and field not in (schema.SPACE_PLANES, schema.LINE_EVENTS):
        return b""
    return _varint(field << 3 | _LENGTH) + _varint(len(value)) + value


def _map_entry(field: int, key: int, body: bytes) -> bytes:
    return _text(field, _number(1, key, keep_zero=True) + _text(2, body, keep_empty=True))
