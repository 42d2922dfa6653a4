"""Reads XSpace files: bytes in, columns out, damage reported and stepped around.

The order is forced by the format: a plane's names come after its lines, so metadata is read first, then the lines are
counted, then decoded straight into their final place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stepscope.errors import Problem, UnreadableError
from stepscope.formats.xspace import classify, schema
from stepscope.formats.xspace.lines import EventColumns, LineReader
from stepscope.formats.xspace.names import I64, Interner, Names, Plane, Ranges, bases, read_names, stat_columns
from stepscope.kernels import wire
from stepscope.model import Events, EventTypes, HostTrace, Lines, PlaneKind, Planes, Stats, StatTag, Strings

_MOST_PROBLEMS = 8  # places of damage that are told one by one; the rest are counted
_WHY = {
    wire.BAD_VARINT: "a number has no end",
    wire.BAD_TAG: "this is no field of the format",
    wire.OVERRUN: "a field says it is longer than what is left",
}


@dataclass
class _Damage:
    """Where a file is damaged, in the order of reading."""

    places: list[tuple[int, int]] = field(default_factory=list)

    def add(self, offset: int, code: int) -> None:
        if offset >= 0:
            self.places.append((int(offset), int(code)))


@dataclass
class _Fields:
    """The fields of one message: number and range (or value and -1) of each."""

    numbers: I64
    starts: I64
    ends: I64

    def ranges(self, number: int) -> Ranges:
        """Ranges of the length-delimited fields with this number."""
        rows = np.flatnonzero((self.numbers == number) & (self.ends >= 0))
        return self.starts[rows], self.ends[rows]

    def last(self, number: int) -> int:
        """Value of the last varint field with this number, 0 if there is none."""
        rows = np.flatnonzero((self.numbers == number) & (self.ends < 0))
        return int(self.starts[rows[-1]]) if len(rows) else 0


def read(data: bytes, source: str, host: str) -> HostTrace:
    """Reads one XSpace file.

    Args:
        data: the file's bytes, uncompressed; any size.
        source: the name to use in messages.
        host: the host's name; the one that the file holds is used if this is empty.

    Returns:
        The trace.  If the file is cut or damaged, everything that can be read, with `partial` and `problems` set.

    Raises:
        UnreadableError: nothing in the file can be used.
    """
    buf = np.frombuffer(data, np.uint8)
    damage = _Damage()
    space = _scan(buf, 0, len(buf), damage)
    planes = [_plane(buf, begin, end, damage) for begin, end in zip(*space.ranges(schema.SPACE_PLANES), strict=True)]
    _require(buf, planes, source)
    strings = Interner(buf)
    names = read_names(buf, planes, strings)
    lines = LineReader(buf, planes)
    _note_damage(planes, lines, damage)
    columns = lines.decode()
    types = _event_types(names, planes, lines, columns)
    lines.sort(columns)
    stats = _stat_tables(buf, planes, columns, len(types))
    line_table = _line_table(planes, lines, strings)
    table = _intern_inline(buf, strings, stats)
    events = _events(table, columns, lines, types, line_table, planes, stats[0])
    hostnames = _texts(buf, space, schema.SPACE_HOSTNAMES)
    trace = HostTrace(
        host=host or next(filter(None, hostnames), "localhost"),
        planes=_plane_table(planes, names),
        lines=line_table,
        events=events,
        event_types=types,
        event_stats=stats[0],
        type_stats=stats[1],
        plane_stats=stats[2],
        strings=table,
        source=source,
        problems=_problems(damage, lines, len(buf), len(events), source),
        partial=bool(damage.places),
        recorder_messages=tuple(
            _texts(buf, space, schema.SPACE_ERRORS) + _texts(buf, space, schema.SPACE_WARNINGS)
        ),
        framework=classify.framework(table, types),
    )
    return _with_clock(trace, lines.zero_ns)


def _scan(buf: NDArray[np.uint8], begin: int, end: int, damage: _Damage) -> _Fields:
    none = np.empty(0, np.int64)
    count, bad_at, code = wire.scan_fields(buf, begin, end, none, none, none)
    damage.add(bad_at, code)
    fields = _Fields(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64))
    wire.scan_fields(buf, begin, end, fields.numbers, fields.starts, fields.ends)
    return fields


def _texts(buf: NDArray[np.uint8], space: _Fields, number: int) -> list[str]:
    spans = zip(*space.ranges(number), strict=True)
    return [buf[begin:end].tobytes().decode("utf-8", "replace") for begin, end in spans]


def _plane(buf: NDArray[np.uint8], begin: int, end: int, damage: _Damage) -> Plane:
    fields = _scan(buf, begin, end, damage)
    starts, ends = fields.ranges(schema.PLANE_NAME)
    return Plane(
        name_range=(int(starts[-1]), int(ends[-1])) if len(starts) else (0, 0),
        plane_id=fields.last(schema.PLANE_ID),
        lines=fields.ranges(schema.PLANE_LINES),
        event_metadata=fields.ranges(schema.PLANE_EVENT_METADATA),
        stat_metadata=fields.ranges(schema.PLANE_STAT_METADATA),
        stats=fields.ranges(schema.PLANE_STATS),
    )


def _require(buf: NDArray[np.uint8], planes: Sequence[Plane], source: str) -> None:
    """Raises UnreadableError unless a plane with a name or with lines was found."""
    if any(plane.n_lines or plane.name_range[1] > plane.name_range[0] for plane in planes):
        return
    if not len(buf):
        raise UnreadableError(
            "the file is empty", code="empty", path=source, offset=0, hint="the capture did not finish; record it again"
        )
    head = buf[:16].tobytes()
    looks = "gzip data" if head[:2] == b"\x1f\x8b" else "text" if head.isascii() and head.strip()[:1].isalnum() else ""
    looks = "JSON" if head.lstrip()[:1] in (b"{", b"[") else looks
    raise UnreadableError(
        f"no plane of an XSpace can be read{f'; it looks like {looks}' if looks else ''}",
        path=source,
        offset=0,
        lost="everything",
        hint="check that this is a *.xplane.pb file and that it was copied completely",
    )


def _note_damage(planes: Sequence[Plane], lines: LineReader, damage: _Damage) -> None:
    for plane in planes:
        bad = plane.types[:, wire.META_BAD_AT]
        for offset in bad[bad >= 0][:_MOST_PROBLEMS].tolist():
            damage.add(offset, wire.OVERRUN)
    header = lines.header
    for row in np.flatnonzero(header[:, wire.BAD_AT] >= 0).tolist():
        damage.add(header[row, wire.BAD_AT], header[row, wire.BAD_CODE])


def _event_types(names: Names, planes: Sequence[Plane], lines: LineReader, columns: EventColumns) -> EventTypes:
    """The event types of the metadata, and a nameless one for each id that the metadata lacks."""
    plane_row = np.repeat(np.arange(len(planes), dtype=np.int32), [len(plane.types) for plane in planes])
    ids = np.concatenate([plane.types[:, wire.META_ID] for plane in planes])
    lost = np.flatnonzero(columns.type < 0)
    extra_plane, extra_id = np.empty(0, np.int32), np.empty(0, np.int64)
    if len(lost):
        of_line = np.repeat(np.arange(len(planes)), [plane.n_lines for plane in planes])
        of_event = np.repeat(of_line, np.diff(lines.event_base))
        keys = np.stack([of_event[lost], lines.metadata_ids(columns)[lost]])
        unique, inverse = np.unique(keys, axis=1, return_inverse=True)
        columns.type[lost] = (len(ids) + inverse.reshape(-1)).astype(np.int32)
        extra_plane, extra_id = unique[0].astype(np.int32), unique[1]
    nameless = np.zeros(len(extra_id), np.int32)
    return EventTypes(
        name=np.concatenate([names.type_name, nameless]),
        display_name=np.concatenate([names.type_display, nameless]),
        plane=np.concatenate([plane_row, extra_plane]),
        metadata_id=np.concatenate([ids, extra_id]),
    )


def _stat_tables(
    buf: NDArray[np.uint8], planes: Sequence[Plane], columns: EventColumns, n_types: int
) -> tuple[Stats, Stats, Stats]:
    """Stats of events, of event types and of planes."""
    of_events = Stats(
        name=columns.stat_name, tag=columns.stat_tag, value=columns.stat_value, offsets=columns.stat_offsets
    )
    return of_events, _type_stats(buf, planes, n_types), _plane_stats(buf, planes)


def _type_stats(buf: NDArray[np.uint8], planes: Sequence[Plane], n_types: int) -> Stats:
    known = np.concatenate([plane.types[:, wire.META_STATS] for plane in planes])
    offsets = bases(np.concatenate([known, np.zeros(n_types - len(known), np.int64)]))
    columns = stat_columns(int(offsets[-1]))
    no_entries = np.zeros((0, wire.META_WIDTH), np.int64)
    for plane in planes:
        base = offsets[plane.first_type : plane.first_type + len(plane.types)]
        lookup = (plane.stat_lookup.rows, plane.stat_lookup.ids, plane.stat_flags)
        wire.walk_metadata(buf, *plane.event_metadata, no_entries, True, base, *lookup, *columns)
    return Stats(*columns, offsets)


def _plane_stats(buf: NDArray[np.uint8], planes: Sequence[Plane]) -> Stats:
    offsets = bases(np.array([len(plane.stats[0]) for plane in planes], np.int64))
    columns = stat_columns(int(offsets[-1]))
    for row, plane in enumerate(planes):
        here = slice(int(offsets[row]), int(offsets[row + 1]))
        lookup = (plane.stat_lookup.rows, plane.stat_lookup.ids, plane.stat_flags)
        wire.decode_stats(buf, *plane.stats, *lookup, *(column[here] for column in columns))
    return Stats(*columns, offsets)


def _intern_inline(buf: NDArray[np.uint8], strings: Interner, tables: Sequence[Stats]) -> Strings:
    """Turns texts that stand in the stats themselves into rows of the string table; returns the finished table."""
    for stats in tables:
        rows = np.flatnonzero(stats.tag >= wire.INLINE_STRING)
        if len(rows):
            starts, lengths = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
            wire.inline_ranges(buf, len(buf), rows, stats.value, starts, lengths)
            stats.value[rows] = strings.add(starts, lengths)
            stats.tag[rows] = np.where(stats.tag[rows] == wire.INLINE_STRING, StatTag.STRING, StatTag.BYTES)
    table = strings.table()
    counts = tables[0].name == wire.NAME_OCCURRENCES
    if counts.any():
        row = table.find(schema.OCCURRENCES_STAT)
        if row < 0:
            row, table = len(table), _with_text(table, schema.OCCURRENCES_STAT.encode())
        tables[0].name[counts] = row
    return table


def _with_text(strings: Strings, text: bytes) -> Strings:
    offsets = np.append(strings.offsets, strings.offsets[-1] + len(text))
    return Strings(np.concatenate([strings.blob, np.frombuffer(text, np.uint8)]), offsets)


def _events(
    strings: Strings,
    columns: EventColumns,
    lines: LineReader,
    types: EventTypes,
    line_table: Lines,
    planes: Sequence[Plane],
    stats: Stats,
) -> Events:
    plane_kinds = np.array([plane.kind for plane in planes], np.uint8)
    type_kind, type_traits = classify.classify_types(strings, types.name, types.plane, plane_kinds)
    line = np.repeat(np.arange(len(line_table), dtype=np.int32), np.diff(lines.event_base))
    kind, traits = classify.classify_events(
        columns.type, line, columns.flags, type_kind, type_traits, line_table.kind
    )
    events = Events(columns.start_ps, columns.duration_ps, columns.type, line, kind, traits)
    classify.put_16bit(strings, events, types, stats)
    classify.put_compiles(strings, events, stats)
    return events


def _plane_table(planes: Sequence[Plane], names: Names) -> Planes:
    return Planes(
        plane_id=np.array([plane.plane_id for plane in planes], np.int64),
        name=names.plane_name,
        kind=np.array([plane.kind for plane in planes], np.uint8),
        ordinal=np.array([plane.ordinal for plane in planes], np.int32),
    )


def _line_table(planes: Sequence[Plane], lines: LineReader, strings: Interner) -> Lines:
    header = lines.header
    plane_row = np.repeat(np.arange(len(planes), dtype=np.int32), [plane.n_lines for plane in planes])
    return Lines(
        plane=plane_row,
        line_id=header[:, wire.LINE_ID].copy(),
        name=strings.add(header[:, wire.NAME_AT], header[:, wire.NAME_LEN]),
        display_name=strings.add(header[:, wire.DISPLAY_AT], header[:, wire.DISPLAY_LEN]),
        display_id=header[:, wire.DISPLAY_ID].copy(),
        start_ns=header[:, wire.START_NS].copy(),
        duration_ps=header[:, wire.DURATION_PS].copy(),
        kind=_line_kinds(planes, lines),
        event_begin=lines.event_base[:-1].copy(),
        event_end=lines.event_base[1:].copy(),
    )


def _line_kinds(planes: Sequence[Plane], lines: LineReader) -> NDArray[np.uint8]:
    header, kinds = lines.header, np.zeros(len(lines.header), np.uint8)
    for plane in planes:
        for row in range(plane.first_line, plane.first_line + plane.n_lines):
            at, size = int(header[row, wire.NAME_AT]), int(header[row, wire.NAME_LEN])
            name = lines.buf[at : at + min(size, 200)].tobytes().decode("utf-8", "replace")
            kinds[row] = schema.line_kind(plane.kind, name, int(header[row, wire.LINE_ID]))
    return kinds


def _with_clock(trace: HostTrace, zero_ns: int) -> HostTrace:
    """Adds the wall-clock bounds of the session, where the file tells them."""
    start, stop = (zero_ns or None), None
    for row in np.flatnonzero(trace.planes.kind == PlaneKind.ENVIRONMENT).tolist():
        facts = trace.stats_of_plane(row)
        began, ended = facts.get(schema.START_TIME_STAT), facts.get(schema.STOP_TIME_STAT)
        start = began if isinstance(began, int) and began > 0 else start
        stop = ended if isinstance(ended, int) and ended > 0 else stop
    if zero_ns and start and abs(zero_ns - start) < wire.TIME_LIMIT_PS // 1000:
        trace.events.start_ps[:] += (zero_ns - start) * 1000  # lines told absolute times: count from the session's start
    return replace(trace, start_unix_ns=start, stop_unix_ns=stop)


def _problems(
    damage: _Damage, lines: LineReader, size: int, n_events: int, source: str
) -> tuple[Problem, ...]:
    """Everything that is wrong, in the one form that all problems have."""
    lost = int(lines.header[:, wire.LOST_EVENTS].sum())
    found = [_damage_problem(damage, size, n_events, lost, source)] if damage.places else []
    unnamed = int(lines.header[:, wire.UNNAMED].sum())
    if unnamed:
        found.append(
            Problem(
                "unnamed-events",
                f"{unnamed:,} of {n_events:,} events refer to names that the file does not hold",
                path=source,
                kept="their times and stats, without names",
                lost="what they are: they count as unknown work",
                hint="a complete copy of the file has the names after the events",
            )
        )
    wild = int(lines.header[:, wire.BAD_TIMES].sum()) + lines.wild_lines
    if wild:
        found.append(
            Problem(
                "impossible-times",
                f"{wild:,} times lie more than 26 days from the session's start or run backwards",
                path=source,
                kept="the events, at their line's start or with length 0",
            )
        )
    return tuple(found)


def _damage_problem(damage: _Damage, size: int, n_events: int, lost: int, source: str) -> Problem:
    """One problem for all places of damage, located at the innermost: the place where reading really failed."""
    places = sorted(set(damage.places))
    overruns = all(code == wire.OVERRUN for _, code in places)
    offset, code = places[-1] if overruns else places[0]
    more = f", and {len(places) - 1:,} more places" if len(places) > 1 and not overruns else ""
    return Problem(
        "truncated" if overruns else "damaged",
        (f"the file ends in the middle of a field, after {size:,} bytes" if overruns else f"{_WHY[code]}{more}"),
        path=source,
        offset=offset,
        kept=f"{n_events:,} events",
        lost=f"{lost:,} damaged events and what follows the damage" if lost else "what follows the damage",
        hint="copy the file again, or record again if the capture was interrupted",
    )
