"""Builds a HostTrace from Python values: for tracers with few events, readers of small formats, and tests.

Readers of large files fill columns directly instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

import numpy as np

from stepscope.errors import Problem
from stepscope.model.arrays import offsets_of
from stepscope.model.kinds import EventKind, LineKind, PlaneKind, StatTag, Trait
from stepscope.model.strings import Strings
from stepscope.model.tables import Events, EventTypes, Lines, Planes, Stats
from stepscope.model.trace import HostTrace, StatValue
from stepscope.records import dataclass

_Row = tuple[int, int, int]  # stat: name, tag, value


class _Event(NamedTuple):
    start_ps: int
    duration_ps: int
    type: int
    kind: int
    traits: int
    stats: list[_Row]


class _Plane(NamedTuple):
    plane_id: int
    name: int
    kind: int
    ordinal: int
    stats: list[_Row]


class _Interner:
    def __init__(self) -> None:
        self.rows: dict[bytes, int] = {b"": 0}

    def __call__(self, text: str | bytes) -> int:
        raw = _encode_text(text) if isinstance(text, str) else text
        return self.rows.setdefault(raw, len(self.rows))


def _encode_text(text: str) -> bytes:
    """The text as UTF-8.

    Undecodable bytes of a path keep their value.  Half a surrogate pair, which JSON and pickles may hold, becomes a
    question mark.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


@dataclass
class LineBuilder:
    """Collects the events of one line."""

    trace: TraceBuilder
    plane: int
    name: str
    line_id: int
    kind: LineKind
    start_ns: int = 0
    display_name: str = ""
    events: list[_Event] = field(default_factory=list)

    def event(
        self,
        name: str,
        start_ps: int,
        duration_ps: int,
        kind: EventKind = EventKind.OTHER,
        stats: Mapping[str, StatValue] | None = None,
        traits: Trait = Trait.NONE,
        display_name: str = "",
    ) -> None:
        """Adds one event.  Times are in ps from the session's start."""
        event_type = self.trace.event_type(self.plane, name, display_name)
        rows = self.trace.stat_rows(stats)
        self.events.append(_Event(start_ps, duration_ps, event_type, int(kind), int(traits), rows))


class TraceBuilder:
    """Collects planes, lines and events, then makes the columns.

    >>> builder = TraceBuilder("host")
    >>> line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    >>> line.event("train", 0, 1_000, EventKind.STEP_MARK, {"step_num": 0})
    >>> len(builder.build().events)
    1
    """

    def __init__(self, host: str, start_unix_ns: int | None = None, stop_unix_ns: int | None = None) -> None:
        self.host = host
        self.start_unix_ns = start_unix_ns
        self.stop_unix_ns = stop_unix_ns
        self.framework = ""
        self.source = ""
        self.partial = False
        self.problems: list[Problem] = []
        self.recorder_messages: list[str] = []
        self._string = _Interner()
        self._planes: list[_Plane] = []
        self._lines: list[LineBuilder] = []
        self._types: dict[tuple[int, int, int], int] = {}

    def plane(
        self,
        name: str,
        kind: PlaneKind = PlaneKind.OTHER,
        ordinal: int = -1,
        stats: Mapping[str, StatValue] | None = None,
    ) -> int:
        """Adds a plane; returns its row."""
        plane_id = ordinal if ordinal >= 0 else len(self._planes)
        self._planes.append(_Plane(plane_id, self._string(name), int(kind), ordinal, self.stat_rows(stats)))
        return len(self._planes) - 1

    def line(
        self,
        plane: int,
        name: str,
        line_id: int | None = None,
        kind: LineKind = LineKind.THREAD,
        display_name: str = "",
    ) -> LineBuilder:
        """Adds a line to a plane; returns the builder that collects its events."""
        new = LineBuilder(self, plane, name, len(self._lines) if line_id is None else line_id, kind)
        new.display_name = display_name
        self._lines.append(new)
        return new

    def event_type(self, plane: int, name: str, display_name: str = "") -> int:
        """The row of a plane's event type, which is created on first use."""
        key = (plane, self._string(name), self._string(display_name))
        return self._types.setdefault(key, len(self._types))

    def stat_rows(self, stats: Mapping[str, StatValue] | None) -> list[_Row]:
        """Python values as stat rows.  Raises TypeError for a value that is not an int, float, str or bytes."""
        return [(self._string(name), *self._encode_value(value)) for name, value in (stats or {}).items()]

    def _encode_value(self, value: StatValue) -> tuple[int, int]:
        if isinstance(value, bool | int | np.integer):
            return self._encode_integer(int(value))
        if isinstance(value, float | np.floating):
            return int(StatTag.DOUBLE), int(np.float64(value).view(np.int64))
        if isinstance(value, str):
            return int(StatTag.STRING), self._string(value)
        if isinstance(value, bytes):
            return int(StatTag.BYTES), self._string(value)
        raise TypeError(f"a stat holds int, float, str or bytes, not {type(value).__name__}")

    def _encode_integer(self, number: int) -> tuple[int, int]:
        """A number that does not fit into 64 bits becomes text, so that a seed or a hash cannot cost the trace."""
        if -(1 << 63) <= number < 1 << 63:
            return int(StatTag.INT), number
        if 0 <= number < 1 << 64:
            return int(StatTag.UINT), number - (1 << 64)
        return int(StatTag.STRING), self._string(str(number))

    def build(self) -> HostTrace:
        """Makes the trace: lines ordered by plane, events sorted within each line."""
        lines = sorted(self._lines, key=lambda line: line.plane)
        for line in lines:
            line.events.sort(key=lambda event: (event.start_ps, -event.duration_ps))
        events = [event for line in lines for event in line.events]
        line_table = self._line_table(lines)  # interns names, so it comes before the string table
        trace = HostTrace(
            host=self.host,
            planes=self._plane_table(),
            lines=line_table,
            events=_event_table(lines, events),
            event_types=self._type_table(),
            event_stats=_stat_table([event.stats for event in events]),
            type_stats=Stats.empty(len(self._types)),
            plane_stats=_stat_table([plane.stats for plane in self._planes]),
            strings=Strings.build(self._string.rows),
            start_unix_ns=self.start_unix_ns,
            stop_unix_ns=self.stop_unix_ns,
            source=self.source,
            problems=tuple(self.problems),
            partial=self.partial,
            recorder_messages=tuple(self.recorder_messages),
            framework=self.framework,
        )
        trace.check()
        return trace

    def _plane_table(self) -> Planes:
        return Planes(
            plane_id=np.array([plane.plane_id for plane in self._planes], np.int64),
            name=np.array([plane.name for plane in self._planes], np.int32),
            kind=np.array([plane.kind for plane in self._planes], np.uint8),
            ordinal=np.array([plane.ordinal for plane in self._planes], np.int32),
        )

    def _type_table(self) -> EventTypes:
        return EventTypes(
            name=np.array([name for _, name, _ in self._types], np.int32),
            display_name=np.array([display_name for _, _, display_name in self._types], np.int32),
            plane=np.array([plane for plane, _, _ in self._types], np.int32),
            metadata_id=np.arange(1, len(self._types) + 1, dtype=np.int64),
        )

    def _line_table(self, lines: list[LineBuilder]) -> Lines:
        bounds = offsets_of([len(line.events) for line in lines])
        return Lines(
            plane=np.array([line.plane for line in lines], np.int32),
            line_id=np.array([line.line_id for line in lines], np.int64),
            name=np.array([self._string(line.name) for line in lines], np.int32),
            display_name=np.array([self._string(line.display_name) for line in lines], np.int32),
            display_id=np.zeros(len(lines), np.int64),
            start_ns=np.array([line.start_ns for line in lines], np.int64),
            duration_ps=np.zeros(len(lines), np.int64),
            kind=np.array([int(line.kind) for line in lines], np.uint8),
            event_begin=bounds[:-1].copy(),
            event_end=bounds[1:].copy(),
        )


def _event_table(lines: list[LineBuilder], events: list[_Event]) -> Events:
    return Events(
        start_ps=np.array([event.start_ps for event in events], np.int64),
        duration_ps=np.array([event.duration_ps for event in events], np.int64),
        type=np.array([event.type for event in events], np.int32),
        line=np.repeat(np.arange(len(lines), dtype=np.int32), [len(line.events) for line in lines]),
        kind=np.array([event.kind for event in events], np.uint8),
        traits=np.array([event.traits for event in events], np.uint8),
    )


def _stat_table(per_owner: list[list[_Row]]) -> Stats:
    flat = [row for rows in per_owner for row in rows]
    return Stats(
        name=np.array([row[0] for row in flat], np.int32),
        tag=np.array([row[1] for row in flat], np.uint8),
        value=np.array([row[2] for row in flat], np.int64),
        offsets=offsets_of([len(rows) for rows in per_owner]),
    )
