"""Writes a HostTrace as an XSpace file that TensorBoard, XProf and Stepscope read.

Metadata comes before the lines, so that a file that is cut off still names all events that it holds.  Text stats are
references to the metadata, which holds each text once per plane.  There is no 2 GiB limit: the file is written in
pieces, without a protobuf library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from stepscope.formats.xspace import schema
from stepscope.formats.xspace.clock import line_zeros_ps
from stepscope.formats.xspace.encode import Messages, delimited_head, encode_children, varint
from stepscope.formats.xspace.kinds import store_kinds
from stepscope.model import EventKind, HostTrace, PlaneKind, Stats, StatTag
from stepscope.model.arrays import I64, offsets_of
from stepscope.records import dataclass

_EVENTS_AT_ONCE = 1 << 16


def write(trace: HostTrace) -> bytes:
    """The trace as the bytes of one XSpace file."""
    return b"".join(pieces(trace))


def pieces(trace: HostTrace) -> Iterator[bytes | memoryview]:
    """The file in pieces; at most one plane is in memory at a time."""
    yield _text(schema.SPACE_HOSTNAMES, _encode_text(trace.host))
    yield from planes_only(trace)
    if trace.start_unix_ns is not None and PlaneKind.ENVIRONMENT not in trace.planes.kind:
        yield _environment_plane(trace.start_unix_ns, trace.stop_unix_ns)


def planes_only(trace: HostTrace) -> Iterator[bytes | memoryview]:
    """The planes and messages in pieces, to be added to a file that already has a host and a start."""
    trace = store_kinds(trace)
    for message in trace.recorder_messages:
        yield _text(schema.SPACE_WARNINGS, _encode_text(message))
    zeros = np.array(line_zeros_ps(trace.lines.start_ns.tolist(), trace.start_unix_ns)[0], np.int64)
    declared = _declared_names(trace)
    bounds = np.searchsorted(trace.lines.plane, np.arange(len(trace.planes) + 1)).tolist()
    for plane, (first, last) in enumerate(pairwise(bounds)):
        parts = list(_Plane.build(trace, plane, range(first, last), zeros, declared).parts())
        yield delimited_head(schema.SPACE_PLANES, sum(len(part) for part in parts))
        yield from parts


@dataclass(frozen=True)
class _Plane:
    """Encodes one plane.

    Attributes:
        plane: its row.
        lines, types: the rows of its lines and of its event types.
        zero_ps: int64 of shape (all lines,), what the reader adds to the offsets of each line.
        texts: int64 of shape (texts,), string rows of all names and texts of stats; their ids count from 1.
        text_ids: int64 of shape (strings,), the id of each string row in `texts`.
    """

    trace: HostTrace
    plane: int
    lines: range
    types: I64
    zero_ps: I64
    texts: I64
    text_ids: I64

    @classmethod
    def build(cls, trace: HostTrace, plane: int, lines: range, zero_ps: I64, declared: list[int]) -> _Plane:
        types = np.flatnonzero(trace.event_types.plane == plane)
        stats = (
            _slice_stats(trace.plane_stats, plane, plane + 1),
            trace.type_stats.take(types),
            _slice_stats(trace.event_stats, *_event_range(trace, lines)),
        )
        texts = _texts_used(stats, len(trace.strings), declared)
        text_ids = np.zeros(len(trace.strings), np.int64)
        text_ids[texts] = np.arange(1, len(texts) + 1)
        return cls(trace, plane, lines, types, zero_ps, texts, text_ids)

    def parts(self) -> Iterator[bytes | memoryview]:
        """The plane in pieces: its name, its metadata, then its lines."""
        trace, plane = self.trace, self.plane
        yield _number(schema.PLANE_ID, int(trace.planes.plane_id[plane]))
        yield _text(schema.PLANE_NAME, trace.strings.raw(trace.planes.name[plane]))
        yield self._stat_metadata().encode(schema.PLANE_STAT_METADATA)
        yield self._event_metadata().encode(schema.PLANE_EVENT_METADATA)
        yield self._stats(_slice_stats(trace.plane_stats, plane, plane + 1)).encode(schema.PLANE_STATS)
        yield from self._lines()

    def _stat_metadata(self) -> Messages:
        ids = np.arange(1, len(self.texts) + 1)
        entries = Messages(len(ids)).numbers(schema.METADATA_ID, ids)
        return _map_entries(ids, entries.texts(schema.METADATA_NAME, self.trace.strings, self.texts))

    def _event_metadata(self) -> Messages:
        types, strings = self.trace.event_types, self.trace.strings
        ids, name, display = types.metadata_id[self.types], types.name[self.types], types.display_name[self.types]
        stats = self.trace.type_stats.take(self.types)
        entries = (
            Messages(len(ids))
            .numbers(schema.METADATA_ID, ids)
            .texts(schema.METADATA_NAME, strings, name, name > 0)
            .texts(schema.METADATA_DISPLAY_NAME, strings, display, display > 0)
            .children(schema.METADATA_STATS, self._stats(stats), stats.offsets)
        )
        return _map_entries(ids, entries)

    def _stats(self, stats: Stats) -> Messages:
        """The messages of stats; a text is written as the id of its metadata."""
        tag, value = stats.tag, stats.value
        text = np.where(tag == StatTag.STRING, value, 0)
        return (
            Messages(len(stats))
            .numbers(schema.STAT_METADATA_ID, self.text_ids[stats.name])
            .doubles(schema.STAT_DOUBLE, value, tag == StatTag.DOUBLE)
            .numbers(schema.STAT_UINT, value, tag == StatTag.UINT)
            .numbers(schema.STAT_INT, value, tag == StatTag.INT)
            .texts(schema.STAT_BYTES, self.trace.strings, value, tag == StatTag.BYTES)
            .numbers(schema.STAT_REF, self.text_ids[text], tag == StatTag.STRING)
        )

    def _lines(self) -> Iterator[bytes | memoryview]:
        first, last = _event_range(self.trace, self.lines)
        encoded = [self._events(at, min(at + _EVENTS_AT_ONCE, last)) for at in range(first, last, _EVENTS_AT_ONCE)]
        ends = offsets_of(np.concatenate([np.empty(0, np.int64), *(sizes for _, sizes in encoded)]))
        events = memoryview(b"".join(data for data, _ in encoded))
        for row in self.lines:
            head = self._line_head(row)
            begin, end = ends[self.trace.lines.event_begin[row] - first], ends[self.trace.lines.event_end[row] - first]
            yield delimited_head(schema.PLANE_LINES, len(head) + int(end - begin)) + head
            yield events[begin:end]

    def _line_head(self, row: int) -> bytes:
        lines, strings = self.trace.lines, self.trace.strings
        return (
            _number(schema.LINE_ID, int(lines.line_id[row]))
            + _text(schema.LINE_NAME, strings.raw(lines.name[row]))
            + _number(schema.LINE_START_NS, int(lines.start_ns[row]))
            + _number(schema.LINE_DURATION_PS, int(lines.duration_ps[row]))
            + _number(schema.LINE_DISPLAY_ID, int(lines.display_id[row]))
            + _text(schema.LINE_DISPLAY_NAME, strings.raw(lines.display_name[row]))
        )

    def _events(self, first: int, last: int) -> tuple[bytes, I64]:
        """The encoded events of some rows, and the size of each in bytes."""
        events = self.trace.events
        offset = events.start_ps[first:last] - self.zero_ps[events.line[first:last]]
        duration = events.duration_ps[first:last]
        counted, stats = self._split_counts(first, last)
        ids = self.trace.event_types.metadata_id[events.type[first:last]]
        has_count = counted >= 0
        messages = (
            Messages(last - first)
            .numbers(schema.EVENT_METADATA_ID, ids, ids != 0)
            .numbers(schema.EVENT_OFFSET_PS, offset, ~has_count & (offset != 0))
            .numbers(schema.EVENT_OCCURRENCES, counted, has_count)
            .numbers(schema.EVENT_DURATION_PS, duration, duration != 0)
            .children(schema.EVENT_STATS, self._stats(stats), stats.offsets)
        )
        return encode_children(schema.LINE_EVENTS, messages)

    def _split_counts(self, first: int, last: int) -> tuple[I64, Stats]:
        """The number of occurrences of each aggregate, -1 for other events, and all other stats."""
        trace = self.trace
        stats = _slice_stats(trace.event_stats, first, last)
        counted = np.full(last - first, -1, np.int64)
        name = trace.strings.find(schema.OCCURRENCES_STAT)
        if name < 0 or not (trace.events.kind[first:last] == EventKind.AGGREGATE).any():
            return counted, stats
        owner = np.repeat(np.arange(last - first), np.diff(stats.offsets))
        aggregate = trace.events.kind[first:last] == EventKind.AGGREGATE
        rows = np.flatnonzero((stats.name == name) & aggregate[owner])
        counted[owner[rows]] = stats.value[rows]
        keep = np.ones(len(stats), np.bool_)
        keep[rows] = False
        offsets = np.searchsorted(owner[keep], np.arange(last - first + 1))
        return counted, Stats(stats.name[keep], stats.tag[keep], stats.value[keep], offsets)


def _event_range(trace: HostTrace, lines: range) -> tuple[int, int]:
    """First event row of a plane's lines, and one past the last."""
    if not lines:
        return 0, 0
    return int(trace.lines.event_begin[lines[0]]), int(trace.lines.event_end[lines[-1]])


def _slice_stats(stats: Stats, first: int, last: int) -> Stats:
    """The stats of the owners `first` to `last - 1`, without copying."""
    rows = slice(int(stats.offsets[first]), int(stats.offsets[last]))
    return Stats(stats.name[rows], stats.tag[rows], stats.value[rows], stats.offsets[first : last + 1] - rows.start)


def _declared_names(trace: HostTrace) -> list[int]:
    """String rows of stat names that every plane declares, even if it does not use them."""
    group = trace.strings.find(schema.GROUP_STAT)
    return [group] if group > 0 and (trace.event_stats.name == group).any() else []


def _texts_used(tables: Sequence[Stats], n_strings: int, declared: list[int]) -> I64:
    """String rows of the names and texts of stats.  Names come first: they recur most, and small ids are short."""
    names, texts = np.zeros(n_strings, np.bool_), np.zeros(n_strings, np.bool_)
    names[declared] = True
    for stats in tables:
        names[stats.name] = True
        texts[stats.value[stats.tag == StatTag.STRING]] = True
    return np.concatenate([np.flatnonzero(names), np.flatnonzero(texts & ~names)])


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _map_entries(keys: I64, values: Messages) -> Messages:
    return Messages(len(keys)).numbers(1, keys).children(2, values, np.arange(len(keys) + 1))


def _environment_plane(start_ns: int, stop_ns: int | None) -> bytes:
    """A plane with the start and end of the session, for traces from formats that store these elsewhere."""
    plane = _text(schema.PLANE_NAME, schema.ENVIRONMENT_PLANE.encode())
    times = ((schema.START_TIME_STAT, start_ns), (schema.STOP_TIME_STAT, stop_ns))
    for number, (name, value) in enumerate(times, 1):
        if value is not None:
            stat = _number(schema.STAT_METADATA_ID, number) + _number(schema.STAT_UINT, value)
            metadata = _number(schema.METADATA_ID, number) + _text(schema.METADATA_NAME, name.encode())
            entry = _number(1, number) + _text(2, metadata)
            plane += _text(schema.PLANE_STAT_METADATA, entry) + _text(schema.PLANE_STATS, stat)
    return _text(schema.SPACE_PLANES, plane)


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value) if value else b""


def _text(field: int, value: bytes) -> bytes:
    return delimited_head(field, len(value)) + value if value else b""
