"""Large profiles from a small real one: its step, repeated, with other times, names and ids each time.

A repetition keeps what a real capture keeps: nesting and order on every line, the links by correlation id and by
producer and consumer, one group per step.  It changes time (the same piecewise linear warp for all lines, so an event's
start and duration both move), ids, which continue or are mixed, and a few names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from bench import encode, wire
from bench.base import Base, Line, Plane, parse
from stepscope.formats.xspace.encode import delimited_head

KNOTS = 64
UNEVEN = 0.15
GAP = 0.01
NEW_NAMES = 0.01
SEED = 20260101

# Names that may change without changing what the event is: a framework op or a demangled kernel.
_OP = re.compile(rb"[A-Za-z0-9.][\w./>-]*:[A-Z]\w*")
_KERNEL = re.compile(rb"void .*|.*_kernel\w*")


def build_profile(data: bytes, events: int, path: Path) -> tuple[int, int]:
    """Writes `data` repeated to about `events` events; returns the numbers of events written and of repetitions."""
    base = parse(data)
    repetitions = max(1, round(events / max(1, base.events)))
    with path.open("wb") as out:
        write(base, repetitions, out)
    return base.events * repetitions, repetitions


def write(base: Base, repetitions: int, out: BinaryIO) -> None:
    """Writes `base` repeated; at no time are more than a few repetitions of one line in memory."""
    clock = _Clock(base, repetitions)
    origins = {id(line): origin for line, origin in base.list_line_origins()}
    for index, plane in enumerate(base.planes):
        names = _Names(plane, index, repetitions, base.strides["group"])
        _write_plane(plane, names, clock, origins, out)
    out.write(base.tail)


class _Clock:
    """Maps a base time to its time in a repetition: strictly ascending, at another pace in every repetition."""

    def __init__(self, base: Base, repetitions: int) -> None:
        self.first, last = base.span_ps()
        self.extent = max(1, last - self.first)
        self.period = int(self.extent * (1 + GAP)) + 1
        self.repetitions = repetitions
        pace = np.random.default_rng(SEED).uniform(1 - UNEVEN, 1 + UNEVEN, (repetitions, KNOTS))
        self.ends = np.cumsum(pace, axis=1) / pace.sum(axis=1, keepdims=True) * self.extent

    def __call__(self, ps: NDArray[np.int64], origin: int, repetition: int) -> NDArray[np.int64]:
        """The time in a repetition; it and `ps` count from the line's start, `origin` after the earliest line's."""
        since = ps + (origin - self.first)
        inside = since.astype(np.float64)
        if repetition:
            knots = np.linspace(0, self.extent, KNOTS + 1)
            inside = np.interp(inside, knots, np.concatenate(([0.0], self.ends[repetition])))
        return np.rint(inside).astype(np.int64) + repetition * self.period + (self.first - origin)

    @property
    def total(self) -> int:
        """The time from the first start to the last end of the result, ps."""
        return self.period * (self.repetitions - 1) + self.extent


class _Names:
    """The metadata id of each type in each repetition, and the entries that these ids need."""

    def __init__(self, plane: Plane, index: int, repetitions: int, stride: int) -> None:
        self.plane = plane
        self.added: dict[int, tuple[bytes, bytes]] = {}
        self.next_id = max(plane.metadata, default=0) + 1
        self.ids = np.tile(plane.type_ids, (repetitions, 1))
        rng = np.random.default_rng([SEED, index])
        steps, changeable = self._step_types(), self._changeable_types()
        for repetition in range(1, repetitions):
            for row, number in steps.items():
                self._add(row, repetition, b"%d" % (number + repetition * stride))
            for row in rng.choice(changeable, round(len(changeable) * NEW_NAMES), replace=False):
                self._add(int(row), repetition, _new_name(self._name(int(row)), repetition))

    def _name(self, row: int) -> bytes:
        return self.plane.metadata.get(int(self.plane.type_ids[row]), (b"", b""))[0]

    def _step_types(self) -> dict[int, int]:
        """Types on `Steps` lines whose names are numbers."""
        rows = {int(row) for line in self.plane.lines if line.name == "Steps" for row in line.types}
        return {row: int(self._name(row)) for row in sorted(rows) if self._name(row).isdigit()}

    def _changeable_types(self) -> list[int]:
        rows = range(len(self.plane.type_ids))
        return [row for row in rows if _OP.fullmatch(self._name(row)) or _KERNEL.fullmatch(self._name(row))]

    def _add(self, row: int, repetition: int, name: bytes) -> None:
        rest = self.plane.metadata[int(self.plane.type_ids[row])][1]
        self.added[self.next_id] = (name, rest)
        self.ids[repetition, row] = self.next_id
        self.next_id += 1

    def metadata(self) -> Iterator[bytes]:
        """All entries of the plane, as fields."""
        for entries in (self.plane.metadata, self.added):
            for key, (name, rest) in entries.items():
                entry = wire.number(1, key) + wire.text(2, name) + rest
                yield wire.text(4, wire.number(1, key) + wire.text(2, entry))


def _new_name(name: bytes, repetition: int) -> bytes:
    """`scope/op:Type` as `scope/op_r7:Type`, a kernel as `kernel_r7`."""
    stem, colon, kind = name.rpartition(b":") if _OP.fullmatch(name) else (name, b"", b"")
    return b"%s_r%d%s%s" % (stem, repetition, colon, kind)


def _write_plane(plane: Plane, names: _Names, clock: _Clock, origins: dict[int, int], out: BinaryIO) -> None:
    headers = [_line_header(line, clock) for line in plane.lines]
    sizes = [
        len(before) + len(after) + sum(part.size for part in _encode_events(line, names, clock, origins[id(line)]))
        for line, (before, after) in zip(plane.lines, headers, strict=True)
    ]
    metadata = b"".join(names.metadata())
    lines_size = sum(len(delimited_head(3, size)) + size for size in sizes)
    out.write(delimited_head(1, len(plane.head) + lines_size + len(metadata) + len(plane.tail)) + plane.head)
    for line, size, (before, after) in zip(plane.lines, sizes, headers, strict=True):
        out.write(delimited_head(3, size) + before)
        for part in _encode_events(line, names, clock, origins[id(line)]):
            out.write(part.data)
        out.write(after)
    out.write(metadata + plane.tail)


def _line_header(line: Line, clock: _Clock) -> tuple[bytes, bytes]:
    """A line's fields before and after its events; a declared extent grows with the repetitions."""
    after = b"".join(wire.number(9, clock.total) if part[0] == 9 and part[2] else wire.raw(part) for part in line.after)
    return line.before, after


def _encode_events(line: Line, names: _Names, clock: _Clock, origin: int) -> Iterator[NDArray[np.uint8]]:
    """The line's events, encoded, a repetition at a time; an array is valid until the next one is taken."""
    out, timed = np.empty(line.upper_bytes, np.uint8), line.is_timed
    for repetition in range(clock.repetitions):
        start, end = line.start.copy(), line.end.copy()
        start[timed] = clock(line.start[timed], origin, repetition)
        end[timed] = clock(line.end[timed], origin, repetition)
        stats = line.stats
        size = encode.put_events(
            out,
            names.ids[repetition][line.types],
            line.when_field,
            start,
            end,
            line.stat_begin,
            stats.name,
            stats.field,
            stats.rule,
            stats.value,
            stats.delta,
            stats.at,
            stats.length,
            stats.blob,
            repetition,
        )
        yield out[:size]
