"""Splits an XSpace file into the parts that a repetition changes and those that it copies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import encode, wire

Ints = NDArray[np.int64]

# Stats that a repetition changes, by the family of ids they belong to: ids of one family match one another.
FAMILIES = {
    "group_id": "group",
    "step_num": "step",
    "correlation_id": "correlation",
    "run_id": "run",
    "id": "context",
    "parent_id": "context",
    "_p": "context",
    "_c": "context",
    "element_id": "element",
}
# From this value on an id is a hash; below, it is a count that continues in the next repetition.
HASHED = 1 << 32
NO_CONTEXT = (1 << 64) - 1
LONGEST_VARINT = 10


@dataclass
class Line:
    """One line: its own fields before and after the events, and the events as columns.

    `types` are rows of the plane's `type_ids`.  `start` and `end` are ps from the line's start, except where
    `when_field` is 5: there `start` is a number of occurrences and `end` the duration.  Event `i` has the stats
    `stat_begin[i]:stat_begin[i + 1]`.
    """

    name: str
    start_ns: int
    before: bytes
    after: list[wire.Field]
    types: Ints
    when_field: Ints
    start: Ints
    end: Ints
    stat_begin: Ints
    stats: Stats

    @property
    def is_timed(self) -> NDArray[np.bool_]:
        """Which events have a start time."""
        timed: NDArray[np.bool_] = self.when_field == 2
        return timed

    @property
    def upper_bytes(self) -> int:
        """An upper bound for the size of these events, encoded."""
        stats = self.stats
        return int(self.types.size * 5 * LONGEST_VARINT + stats.length.sum() + stats.length.size * 5 * LONGEST_VARINT)


@dataclass
class Stats:
    """Stats of one line as columns, and how a repetition changes each (`encode.put_events`)."""

    name: Ints
    field: Ints
    rule: Ints
    value: NDArray[np.uint64]
    delta: Ints
    at: Ints
    length: Ints
    blob: NDArray[np.uint8]


@dataclass
class Plane:
    """One plane: copied bytes, lines, and event metadata as id -> (name, the other fields as bytes)."""

    head: bytes
    tail: bytes
    lines: list[Line]
    metadata: dict[int, tuple[bytes, bytes]]
    stat_names: dict[int, str]
    type_ids: Ints


@dataclass
class Base:
    """A whole file.  `strides` is the range of the small ids of each family: a repetition moves them by that much."""

    planes: list[Plane]
    tail: bytes
    strides: dict[str, int] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """Number of events."""
        return sum(line.types.size for plane in self.planes for line in plane.lines)

    def span_ps(self) -> tuple[int, int]:
        """First start and last end of all events, ps after the earliest line's start."""
        first, last = [], []
        for line, origin in self.list_line_origins():
            timed = line.is_timed
            if timed.any():
                first.append(origin + int(line.start[timed].min()))
                last.append(origin + int(line.end[timed].max()))
        return min(first, default=0), max(last, default=0)

    def list_line_origins(self) -> Iterable[tuple[Line, int]]:
        """Each line with its start in ps after the earliest line's start."""
        lines = [line for plane in self.planes for line in plane.lines]
        zero = min((line.start_ns for line in lines), default=0)
        return [(line, (line.start_ns - zero) * 1000) for line in lines]


def parse(data: bytes) -> Base:
    """Splits a file.  Raises ValueError or IndexError if `data` is not a whole XSpace."""
    planes, tail = [], b""
    for part in wire.fields(data):
        if part[0] == 1:
            planes.append(_parse_plane(part[3]))
        else:
            tail += wire.raw(part)
    base = Base(planes, tail)
    _apply_rules(base)
    return base


@dataclass
class _RawPlane:
    head: bytes = b""
    tail: bytes = b""
    lines: list[bytes] = field(default_factory=list)
    metadata: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)


def _parse_plane(data: bytes) -> Plane:
    raw = _RawPlane()
    for part in wire.fields(data):
        match part[0]:
            case 3:
                raw.lines.append(part[3])
            case 4:
                key, entry = _map_entry(part[3])
                raw.metadata[key] = _split_entry(entry)
            case 5:
                key, entry = _map_entry(part[3])
                raw.stat_names[key] = _split_entry(entry)[0].decode(errors="replace")
                raw.tail += wire.raw(part)
            case 6:
                raw.tail += wire.raw(part)
            case _:
                raw.head += wire.raw(part)
    ids: dict[int, int] = {}
    lines = [_parse_line(line, ids) for line in raw.lines]
    return Plane(raw.head, raw.tail, lines, raw.metadata, raw.stat_names, np.array(list(ids), np.int64))


def _map_entry(data: bytes) -> tuple[int, bytes]:
    key, entry = 0, b""
    for number, _, value, content in wire.fields(data):
        if number == 1:
            key = wire.signed(value)
        elif number == 2:
            entry = content
    return key, entry


def _split_entry(entry: bytes) -> tuple[bytes, bytes]:
    """Name and other fields, except the id, of a metadata entry."""
    name, rest = b"", b""
    for part in wire.fields(entry):
        if part[0] == 2:
            name = part[3]
        elif part[0] != 1:
            rest += wire.raw(part)
    return name, rest


class _Columns:
    """Collects the rows of a line's events and stats."""

    def __init__(self, ids: dict[int, int]) -> None:
        self.ids = ids
        self.events: list[tuple[int, int, int, int]] = []
        self.stat_begin = [0]
        self.stats: list[tuple[int, int, int, int, int]] = []
        self.blob = bytearray()

    def add_event(self, data: bytes) -> None:
        type_id, when_field, when, duration = 0, 2, 0, 0
        for number, _, value, content in wire.fields(data):
            if number == 1:
                type_id = wire.signed(value)
            elif number in (2, 5):
                when_field, when = number, wire.signed(value)
            elif number == 3:
                duration = wire.signed(value)
            elif number == 4:
                self.add_stat(content)
        end = duration if when_field == 5 else when + duration
        self.events.append((self.ids.setdefault(type_id, len(self.ids)), when_field, when, end))
        self.stat_begin.append(len(self.stats))

    def add_stat(self, data: bytes) -> None:
        name, kind, value, at = 0, 4, 0, len(self.blob)
        for number, _, number_value, content in wire.fields(data):
            if number == 1:
                name = number_value
            else:
                kind, value = number, number_value
                self.blob += content
        self.stats.append((name, kind, value, at, len(self.blob) - at))

    def to_stats(self) -> Stats:
        columns: list[Any] = list(zip(*self.stats, strict=True)) or [()] * 5
        name, kind, value, at, length = columns
        count = len(self.stats)
        return Stats(
            name=np.array(name, np.int64),
            field=np.array(kind, np.int64),
            rule=np.full(count, encode.KEEP, np.int64),
            value=np.array(value, np.uint64),
            delta=np.zeros(count, np.int64),
            at=np.array(at, np.int64),
            length=np.array(length, np.int64),
            blob=np.frombuffer(bytes(self.blob), np.uint8),
        )


def _parse_line(data: bytes, ids: dict[int, int]) -> Line:
    columns = _Columns(ids)
    name, start_ns, before, after = "", 0, b"", []
    for part in wire.fields(data):
        if part[0] == 4:
            columns.add_event(part[3])
        elif part[0] > 4:
            after.append(part)
        else:
            before += wire.raw(part)
            name = part[3].decode(errors="replace") if part[0] == 2 else name
            start_ns = wire.signed(part[2]) if part[0] == 3 else start_ns
    events = np.array(columns.events, np.int64).reshape(-1, 4)
    types, when_field, start, end = (np.ascontiguousarray(column) for column in events.T)
    stat_begin = np.array(columns.stat_begin, np.int64)
    return Line(name, start_ns, before, after, types, when_field, start, end, stat_begin, columns.to_stats())


def _apply_rules(base: Base) -> None:
    """Decides how a repetition changes each stat."""
    rows = [(plane, line.stats) for plane in base.planes for line in plane.lines]
    for family in dict.fromkeys(FAMILIES.values()):
        chosen = [(stats, _family_mask(plane, stats, family)) for plane, stats in rows]
        small = [stats.value[mask & (stats.value < HASHED)] for stats, mask in chosen]
        stride = max((int(values.max()) + 1 for values in small if values.size), default=1)
        base.strides[family] = stride
        for stats, mask in chosen:
            _apply_family(stats, mask, family, stride)
    for plane, stats in rows:
        _apply_step_names(plane, stats, base.strides["group"])


def _family_mask(plane: Plane, stats: Stats, family: str) -> NDArray[np.bool_]:
    members = [key for key, name in plane.stat_names.items() if FAMILIES.get(name) == family]
    integers = (stats.field == 3) | (stats.field == 4)
    mask: NDArray[np.bool_] = np.isin(stats.name, members) & integers & (stats.value != NO_CONTEXT)
    return mask


def _apply_family(stats: Stats, mask: NDArray[np.bool_], family: str, stride: int) -> None:
    counts_from_zero = family in ("group", "step")
    shifted = mask & (stats.value < HASHED) & ((stats.value > 0) | counts_from_zero)
    stats.rule[shifted] = encode.SHIFT
    stats.delta[shifted] = stride
    stats.rule[mask & (stats.value >= HASHED)] = encode.MIX


def _apply_step_names(plane: Plane, stats: Stats, stride: int) -> None:
    """Step names that are numbers continue to count."""
    members = [key for key, name in plane.stat_names.items() if name == "step_name"]
    for row in np.flatnonzero(np.isin(stats.name, members) & (stats.field == 5)):
        content = stats.blob[stats.at[row] : stats.at[row] + stats.length[row]].tobytes()
        if content.isdigit():
            stats.rule[row], stats.delta[row], stats.value[row] = encode.DECIMAL, stride, int(content)
