"""Puts events of several tables together to one trace: lines, types and stats as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.kineto.lines import WORK_NAMES
from stepscope.formats.nsight.tables import Texts
from stepscope.formats.tables import Plane, make_lines, make_planes, make_stats
from stepscope.formats.xspace import schema
from stepscope.model import (
    EventKind,
    Events,
    EventTypes,
    LineKind,
    Lines,
    PlaneKind,
    Planes,
    Stats,
    StatTag,
    StatValue,
)
from stepscope.model.arrays import I64, U8, Mask, distinct, number_pairs, offsets_of
from stepscope.records import dataclass
from stepscope.vocabulary import lines as vocabulary

_PS_PER_NS = 1000
_LIMIT_NS = schema.TIME_LIMIT_PS // _PS_PER_NS
STREAM_BITS, DEVICE_BITS = 32, 16
PROCESS_SHIFT = STREAM_BITS + DEVICE_BITS


class Lane(IntEnum):
    """Where an event belongs."""

    THREAD = 0
    STREAM = 1
    WAIT = 2  # a wait that belongs to a stream; the host's part of it is a call on a thread
    STACK = 3  # the sampled stack of a thread
    SAMPLE = 4  # when that was sampled
    INTERPRETER = 5  # what samples say of a thread


OF_THREAD = (Lane.THREAD, Lane.STACK, Lane.SAMPLE, Lane.INTERPRETER)
_LINE_KIND = {Lane.THREAD: LineKind.THREAD, Lane.STREAM: LineKind.STREAM}
_OF_SAMPLES = {
    Lane.STACK: Plane(vocabulary.NATIVE_STACKS, PlaneKind.CUSTOM_DEVICE),
    Lane.SAMPLE: Plane(vocabulary.NATIVE_SAMPLES, PlaneKind.CUSTOM_DEVICE),
    Lane.INTERPRETER: Plane(vocabulary.NATIVE_CODE, PlaneKind.CUSTOM_DEVICE),
}


@dataclass(frozen=True)
class StatColumn:
    """A stat of the events of a part: int64 of shape (rows,); `has` says which have it, all if None."""

    name: str
    tag: StatTag
    values: I64
    has: Mask | None = None


@dataclass(frozen=True)
class TablePart:
    """Events of one table.

    Attributes:
        start_ns, end_ns: int64 of shape (rows,).
        name: int64 of shape (rows,), rows of texts.
        kind, traits: uint8 of shape (rows,).
        place: where they belong.
        line: int64 of shape (rows,): a thread's global id, or what `stream_key` makes of a stream.
    """

    start_ns: I64
    end_ns: I64
    name: I64
    kind: U8
    traits: U8
    place: Lane
    line: I64
    stats: Sequence[StatColumn] = ()

    def take(self, rows: NDArray[np.integer] | Mask) -> TablePart:
        """The part with only some of its rows."""
        stats = [
            StatColumn(each.name, each.tag, each.values[rows], None if each.has is None else each.has[rows])
            for each in self.stats
        ]
        return TablePart(
            self.start_ns[rows], self.end_ns[rows], self.name[rows], self.kind[rows], self.traits[rows],
            self.place, self.line[rows], stats,
        )  # fmt: skip


def stream_key(process: I64, device: I64, stream: I64) -> I64:
    """One number for a stream of a process on a device."""
    return process << PROCESS_SHIFT | device << STREAM_BITS | stream & ((1 << STREAM_BITS) - 1)


def process_number(key: int) -> int:
    """The number of the process of a stream's key."""
    return key >> PROCESS_SHIFT


def device_of(key: int) -> int:
    """The device of a stream's key."""
    return key >> STREAM_BITS & ((1 << DEVICE_BITS) - 1)


def stream_of(key: int) -> int:
    """The number of a stream's key; -1 for all streams."""
    number = key & ((1 << STREAM_BITS) - 1)
    return -1 if number == (1 << STREAM_BITS) - 1 else number


@dataclass(frozen=True)
class Names:
    """What threads and processes are called: by global id of a thread, and by number of a process."""

    threads: Mapping[int, str] = field(default_factory=dict)
    processes: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Assembled:
    """The tables of a trace; `dropped` counts events whose times are impossible."""

    planes: Planes
    plane_stats: Stats
    lines: Lines
    events: Events
    event_types: EventTypes
    event_stats: Stats
    dropped: int


def process_of(thread: int) -> int:
    """The process in a global id of a thread: the 24 bits above those of the thread."""
    return thread >> 24 & 0xFFFFFF


def process_of_all(thread: I64) -> I64:
    """The same of many threads."""
    return thread >> 24 & 0xFFFFFF


def assemble(
    parts: Sequence[TablePart],
    texts: Texts,
    names: Names,
    gpus: Mapping[int, Mapping[str, StatValue]],
    host: Mapping[str, StatValue],
) -> Assembled:
    """The tables of a trace with the events of all parts; `gpus` are the facts about each device, `host` those about
    the process."""
    sound = [part.take(_is_sound(part)) for part in parts]
    dropped = sum(len(part.name) for part in parts) - sum(len(part.name) for part in sound)
    place = np.concatenate([np.full(len(part.name), part.place, np.int64) for part in sound])
    key = _joined(sound, "line")
    of_event, first = number_pairs(place, key)
    kinds = _joined(sound, "kind").astype(np.uint8)
    lines = [_Line(Lane(int(place[row])), int(key[row])) for row in first.tolist()]
    _name_lines(lines, of_event, kinds, names)
    planes = _find_planes(lines, names, gpus)
    order = sorted(range(len(lines)), key=lambda at: (planes.index(lines[at].plane), *lines[at].rank()))
    rank = np.empty(len(lines), np.int32)
    rank[order] = np.arange(len(lines), dtype=np.int32)
    line, start = rank[of_event], _joined(sound, "start_ns") * _PS_PER_NS
    duration = np.maximum(_joined(sound, "end_ns") * _PS_PER_NS - start, 0)
    rows = np.lexsort((-duration, start, line))
    ordered = [lines[at] for at in order]
    plane_of_line = np.array([planes.index(each.plane) for each in ordered], np.int32)
    name = _joined(sound, "name")
    type_of, of_type = number_pairs(plane_of_line[line], name)
    events = Events(
        start_ps=start[rows],
        duration_ps=duration[rows],
        type=type_of[rows],
        line=line[rows],
        kind=kinds[rows],
        traits=_joined(sound, "traits").astype(np.uint8)[rows],
    )
    types = EventTypes(
        name=name[of_type].astype(np.int32),
        display_name=np.zeros(len(of_type), np.int32),
        plane=plane_of_line[line][of_type],
        metadata_id=np.arange(1, len(of_type) + 1, dtype=np.int64),
    )
    return Assembled(
        planes=make_planes(planes, texts.add),
        plane_stats=make_stats(
            [host if plane.kind == PlaneKind.HOST else gpus.get(plane.ordinal, {}) for plane in planes], texts.add
        ),
        lines=make_lines(ordered, plane_of_line, events, texts.add),
        events=events,
        event_types=types,
        event_stats=_event_stats(sound, texts).take(rows),
        dropped=dropped,
    )


def _is_sound(part: TablePart) -> Mask:
    inside: Mask = (part.start_ns >= 0) & (part.start_ns < _LIMIT_NS) & (part.end_ns < _LIMIT_NS)
    return inside


def _joined(parts: Sequence[TablePart], column: str) -> I64:
    return np.concatenate([np.empty(0, np.int64), *(getattr(part, column) for part in parts)])


# -- lines and planes --------------------------------------------------------------------------------------------------


@dataclass
class _Line:
    place: Lane
    key: int
    name: str = ""
    plane: Plane = field(default_factory=lambda: Plane(schema.HOST_PLANE, PlaneKind.HOST))

    @property
    def kind(self) -> LineKind:
        return _LINE_KIND.get(self.place, LineKind.OTHER)

    @property
    def line_id(self) -> int:
        return self.key & 0xFFFFFF if self.place in OF_THREAD else stream_of(self.key)

    def rank(self) -> tuple[int, bool, int, int]:
        """The sort key within a plane: main threads first, then by number."""
        is_main = self.place in OF_THREAD and process_of(self.key) == self.line_id
        return int(self.place), not is_main, self.line_id, self.key


def _name_lines(lines: list[_Line], of_event: NDArray[np.int32], kinds: U8, names: Names) -> None:
    pairs = distinct(of_event.astype(np.int64) << 8 | kinds)
    work: dict[int, list[str]] = {}
    for pair in pairs.tolist():
        if name := WORK_NAMES.get(EventKind(pair & 255)):
            work.setdefault(pair >> 8, []).append(name)
    for at, line in enumerate(lines):
        if line.place in OF_THREAD:
            line.name = names.threads.get(line.key) or f"thread {line.line_id}"
        elif line.place == Lane.STREAM:
            line.name = f"Stream #{line.line_id}" + (f"({','.join(work[at])})" if at in work else "")
        else:
            line.name = f"Stream #{line.line_id} waits" if line.line_id >= 0 else "waits for all streams"


def _find_planes(lines: list[_Line], names: Names, gpus: Mapping[int, Mapping[str, StatValue]]) -> list[Plane]:
    """The planes of all lines, hosts first; a process has its own if there are several."""
    processes = sorted({process_of(line.key) for line in lines if line.place == Lane.THREAD})
    hosts = {
        process: Plane(f"{names.processes.get(process) or 'process'} [{process}]", PlaneKind.HOST)
        for process in processes
    }
    if len(hosts) < 2:
        hosts = dict.fromkeys(processes, Plane(schema.HOST_PLANE, PlaneKind.HOST))
    devices = sorted({*gpus, *(device_of(line.key) for line in lines if line.place not in OF_THREAD)})
    on_gpu = {device: Plane(f"/device:GPU:{device}", PlaneKind.GPU, device) for device in devices}
    for line in lines:
        if line.place == Lane.THREAD:
            line.plane = hosts[process_of(line.key)]
        else:
            line.plane = _OF_SAMPLES.get(line.place) or on_gpu[device_of(line.key)]
    sampled = [plane for place, plane in _OF_SAMPLES.items() if any(line.place == place for line in lines)]
    return [*dict.fromkeys(hosts.values()), *on_gpu.values(), *sampled]


# -- stats -------------------------------------------------------------------------------------------------------------


def _event_stats(parts: Sequence[TablePart], texts: Texts) -> Stats:
    """The stats of all events, in the order of the parts."""
    names, tags, values, counts = [], [], [], [np.empty(0, np.int64)]
    for part in parts:
        size, stats = len(part.name), part.stats
        has = np.ones((size, len(stats)), np.bool_)
        for at, stat in enumerate(stats):
            if stat.has is not None:
                has[:, at] = stat.has
        shape = (size, len(stats))
        names.append(np.broadcast_to(np.array([texts.add(each.name) for each in stats], np.int32), shape)[has])
        tags.append(np.broadcast_to(np.array([each.tag for each in stats], np.uint8), shape)[has])
        values.append(np.stack([each.values for each in stats], 1)[has] if stats else np.empty(0, np.int64))
        counts.append(has.sum(1))
    return Stats(
        name=np.concatenate([np.empty(0, np.int32), *names]),
        tag=np.concatenate([np.empty(0, np.uint8), *tags]),
        value=np.concatenate([np.empty(0, np.int64), *values]),
        offsets=offsets_of(np.concatenate(counts)),
    )
