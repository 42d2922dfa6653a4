"""Reads spools into traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from stepscope.errors import Problem, UnreadableError, counted
from stepscope.formats.spool import layout
from stepscope.formats.xspace import schema
from stepscope.model import EventKind, HostTrace, TraceBuilder, Trait
from stepscope.model.arrays import I32, I64
from stepscope.model.tables import Events, Lines, Stats
from stepscope.records import dataclass
from stepscope.vocabulary.user_ranges import gets_input

_LIMIT_NS = schema.TIME_LIMIT_PS // 1000
_NO_EVENTS = (np.empty(0, np.int64),) * 5


def read(data: bytes, source: str, host: str) -> HostTrace:
    """Reads the spool of a capture that did not end.

    Raises:
        UnreadableError: it is not a spool, or the capture was killed before its first record was complete.
    """
    spool = parse(data)
    if spool is None:
        raise UnreadableError(
            "this is not the spool of a capture",
            path=source,
            hint="a file with this name holds what Stepscope flushed until a job was killed; record again",
        )
    return spool.trace(host or spool.host, source=source, problems=tuple(_problems(source, spool)))


def _problems(source: str, spool: SpoolContent) -> Iterator[Problem]:
    yield _unconverted_problem(source, spool) if spool.ended else _unfinished_problem(source, spool)
    if spool.skipped:
        yield Problem(
            "damaged",
            f"{counted(spool.skipped, 'record')} could not be read",
            path=source,
            kept=counted(spool.events, "event"),
            lost="their contents",
            hint="copy the file again, or read it with the version of Stepscope that wrote it",
        )


def _unfinished_problem(source: str, spool: SpoolContent) -> Problem:
    lost = f"the events of {spool.framework}'s own profiler" if spool.framework else "the last second"
    if spool.cut_by:
        why, until = f"the program ended with {spool.cut_by} during the capture", "the program ends"
    else:
        why = "the capture that wrote this file has not ended: it is still running, or its job was killed"
        until = "the job is killed"
    return Problem(
        "unfinished",
        why,
        path=source,
        kept=f"{spool.events:,} events that Stepscope had flushed",
        lost=lost,
        hint=f"record again, and end the capture before {until}: with stop(), or fewer steps",
    )


def _unconverted_problem(source: str, spool: SpoolContent) -> Problem:
    return Problem(
        "unconverted",
        "this capture has ended, and its profile was not written: that still goes on, failed, or its job was killed",
        path=source,
        kept=f"{spool.events:,} events that Stepscope recorded",
        lost=f"the events of {spool.framework}'s own profiler" if spool.framework else None,
        hint="read this file as it is, as every command does",
    )


def parse(data: bytes) -> SpoolContent | None:
    """Everything in a spool's bytes; None if they are not a spool."""
    if not data.startswith(layout.MAGIC):
        return None
    spool = SpoolContent()
    found = False
    for head, body in layout.records(data):
        try:
            spool.add(head, body)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):  # damage, or a newer version
            spool.skipped += 1
            continue
        found = True
    return spool if found else None


@dataclass
class _LineEvents:
    """The events of one line, chunk by chunk."""

    plane: str
    name: str
    line_id: int
    begins: list[I64] = field(default_factory=list)
    ends: list[I64] = field(default_factory=list)
    types: list[I64] = field(default_factory=list)
    kinds: list[I64] = field(default_factory=list)
    stats: list[tuple[int, dict[str, layout.StatValue]]] = field(default_factory=list)  # row in the line, stats
    count: int = 0

    def sort_columns(self, shift_ns: int) -> tuple[I64, I64, I64, I64, I64]:
        """Start, duration, type and kind in the order of a trace, and the new place of each row.  Times are in ns."""
        begin = np.clip(np.concatenate(self.begins) + shift_ns, -_LIMIT_NS, _LIMIT_NS)
        duration = np.clip(np.concatenate(self.ends) + shift_ns - begin, 0, _LIMIT_NS)
        order = np.lexsort((-duration, begin))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return (
            begin[order],
            duration[order],
            np.concatenate(self.types)[order],
            np.concatenate(self.kinds)[order],
            place,
        )


@dataclass
class SpoolContent:
    """The contents of a spool, before they become a trace."""

    host: str = ""
    framework: str = ""
    clock_ns: int = 0
    unix_ns: int | None = None
    end_ns: int | None = None
    events: int = 0
    skipped: int = 0
    cut_by: str = ""
    notes: list[str] = field(default_factory=list)
    facts: dict[str, dict[str, layout.StatValue]] = field(default_factory=dict)
    _lines: dict[tuple[str, int, str], _LineEvents] = field(default_factory=dict)
    _types: dict[tuple[str, str], int] = field(default_factory=dict)  # plane, name -> row

    @property
    def ended(self) -> bool:
        """True if the capture has ended."""
        return self.end_ns is not None

    def add(self, head: Mapping[str, Any], body: memoryview) -> None:
        """Adds a record.  Raises KeyError, TypeError, ValueError or AttributeError if it is invalid."""
        what = head["is"]
        if what == "session":
            self.host, self.framework = str(head["host"]), str(head["framework"])
            self.clock_ns, self.unix_ns = _parse_clock(head["clock"]), _parse_clock(head["unix"])
        elif what == "chunk":
            self._add_chunk(head, body)
        elif what == "facts":
            self.facts.setdefault(str(head["plane"]), {}).update(layout.unpack_stats(head["stats"]))
        elif what == "note":
            self.notes.append(str(head["text"]))
        elif what == "cut":
            self.cut_by = str(head["by"])
        elif what == "end":
            self.end_ns = _parse_clock(head["clock"])

    def _add_chunk(self, head: Mapping[str, Any], body: memoryview) -> None:
        count = len(body) // layout.EVENT_BYTES
        name = np.frombuffer(body, "<i4", count)
        begin, end = np.frombuffer(body, "<i8", 2 * count, 4 * count).reshape(2, count)
        plane, line_name, line_id = self._plane_of(str(head["plane"])), str(head["line"]), _parse_int64(head["id"])
        types = np.array([self._type(plane, str(text)) for text in head["names"]], np.int64)
        if count and (name.min() < 0 or name.max() >= len(types)):
            raise ValueError("an event refers to a name that the chunk does not hold")
        kind = EventKind[head["kind"]]
        stats = {int(row): layout.unpack_stats(each) for row, each in head["stats"].items() if 0 <= int(row) < count}
        # Nothing fails from here on, so a record is added as a whole or not at all.
        line = self._lines.setdefault((plane, line_id, line_name), _LineEvents(plane, line_name, line_id))
        line.begins.append(begin - self.clock_ns)
        line.ends.append(end - self.clock_ns)
        line.types.append(types[name])
        line.kinds.append(_kinds(kind, [gets_input(str(text)) for text in head["names"]], name, stats))
        line.stats += [(line.count + row, each) for row, each in stats.items()]
        line.count += count
        self.events += count

    def _plane_of(self, plane: str) -> str:
        """The plane to use.  Python calls go with the annotations of their thread, unless a framework records these."""
        return schema.HOST_PLANE if plane == schema.PYTHON_PLANE and not self.framework else plane

    def _type(self, plane: str, name: str) -> int:
        return self._types.setdefault((plane, name), len(self._types))

    def trace(
        self,
        host: str,
        *,
        source: str = "",
        shift_ns: int = 0,
        without: frozenset[str] = frozenset(),
        problems: tuple[Problem, ...] = (),
    ) -> HostTrace:
        """The events as a trace.

        Args:
            shift_ns: what to add to all times.
            without: planes to leave out.
        """
        stop = None if self.unix_ns is None or self.end_ns is None else self.unix_ns + self.end_ns - self.clock_ns
        builder = TraceBuilder(host, self.unix_ns, stop)
        builder.source, builder.framework = source, self.framework
        builder.recorder_messages += self.notes
        builder.problems += problems
        builder.partial = bool(problems or self.notes)
        kept = [line for line in self._lines.values() if line.plane not in without]
        names = dict.fromkeys([*(line.plane for line in kept), *self.facts])
        planes = {name: builder.plane(name, *schema.plane_kind(name), self.facts.get(name)) for name in names}
        lines = sorted(kept, key=lambda line: planes[line.plane])
        for line in lines:
            plane = planes[line.plane]
            kind = schema.line_kind(schema.plane_kind(line.plane)[0], line.name, line.line_id)
            builder.line(plane, line.name, line.line_id, kind)
        rows = np.full(len(self._types), -1, np.int32)
        for (plane_name, name), row in self._types.items():
            if plane_name in planes:
                rows[row] = builder.event_type(planes[plane_name], name)
        events, stats = _event_columns(builder, lines, rows, shift_ns)
        empty = builder.build()
        trace = replace(empty, events=events, event_stats=stats, lines=_set_event_ranges(empty.lines, lines))
        trace.check()
        return trace


def _parse_int64(value: Any) -> int:
    """The value as an integer.  Raises ValueError if it does not fit into 64 bits."""
    number = int(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{number} does not fit into 64 bits")
    return number


def _parse_clock(value: Any) -> int:
    """A clock's reading in ns.  Raises ValueError if it is impossible."""
    reading = int(value)
    if not 0 <= reading < 1 << 62:
        raise ValueError(f"{value!r} is not a clock's reading")
    return reading


def _event_columns(builder: TraceBuilder, lines: list[_LineEvents], rows: I32, shift_ns: int) -> tuple[Events, Stats]:
    """The events of all lines, sorted within each line, and their stats."""
    parts = [line.sort_columns(shift_ns) for line in lines] or [_NO_EVENTS]
    begin, duration, types, kinds = (np.concatenate(column) for column in zip(*(p[:4] for p in parts), strict=True))
    first = np.cumsum([0, *(line.count for line in lines)])
    owned = [
        (int(base + place[row]), each)
        for base, line, (*_, place) in zip(first, lines, parts, strict=False)
        for row, each in line.stats
    ]
    owned.sort(key=lambda pair: pair[0])
    root = np.zeros(len(begin), np.uint8)
    root[[owner for owner, each in owned if each.get("_r")]] = int(Trait.EXPLICIT_ROOT)
    events = Events(
        start_ps=begin * 1000,
        duration_ps=duration * 1000,
        type=rows[types],
        line=np.repeat(np.arange(len(lines), dtype=np.int32), [line.count for line in lines]),
        kind=kinds.astype(np.uint8),
        traits=root,
    )
    return events, _stat_table(builder, owned, len(begin))


def _stat_table(builder: TraceBuilder, owned: list[tuple[int, dict[str, layout.StatValue]]], events: int) -> Stats:
    rows = [builder.stat_rows(each) for _, each in owned]
    counts = np.zeros(events + 1, np.int64)
    for (owner, _), own in zip(owned, rows, strict=True):
        counts[owner + 1] = len(own)
    flat = [row for own in rows for row in own]
    return Stats(
        name=np.array([row[0] for row in flat], np.int32),
        tag=np.array([row[1] for row in flat], np.uint8),
        value=np.array([row[2] for row in flat], np.int64),
        offsets=np.cumsum(counts),
    )


def _set_event_ranges(table: Lines, lines: list[_LineEvents]) -> Lines:
    """The line table with the event rows of each line."""
    ends = np.cumsum(np.array([line.count for line in lines], np.int64))
    return replace(table, event_begin=ends - np.array([line.count for line in lines], np.int64), event_end=ends)


def _kinds(kind: EventKind, gets: list[bool], name: I32, stats: Mapping[int, dict[str, layout.StatValue]]) -> I64:
    """The kinds of a chunk's events.  Names and metadata show which annotations are steps or waits for input.

    Args:
        gets: for each name of the chunk whether it says that input is got; name: int32 of shape (events,).
    """
    kinds = np.full(len(name), int(kind), np.int64)
    if kind == EventKind.ANNOTATION:
        kinds[np.array(gets, np.bool_)[name]] = int(EventKind.INPUT_WAIT)
        for row, each in stats.items():
            if "step_num" in each:
                kinds[row] = int(EventKind.STEP_MARK)
            elif "_ipl_stage_name" in each:
                kinds[row] = int(EventKind.INPUT_WAIT)
    return kinds
