"""HostTrace: everything one host recorded, as columns."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeVar

import numpy as np

from stepscope import kernels
from stepscope.errors import Problem
from stepscope.model.arrays import I32, I64, Mask, run_rows
from stepscope.model.kinds import LineKind, PlaneKind, StatTag
from stepscope.model.strings import Strings
from stepscope.model.tables import Events, EventTypes, Lines, Planes, Stats
from stepscope.records import dataclass

T = TypeVar("T")

StatValue = int | float | str | bytes

_NEGATIVE_NUMBER = re.compile(r"(?:(?<=/)|(?<=\bthread ))-\d+")

# From this many stats on, a compiled loop finds their owners; for fewer it is not worth loading.
_LOOP_FROM = 50_000


@dataclass(frozen=True)
class HostTrace:
    """One host's trace.  It is read-only, and every analysis is a function of it.

    Attributes:
        host: the host's name, unique in its session.
        planes, lines, events, event_types: the tables; see `stepscope.model.tables`.
        event_stats, type_stats, plane_stats: the stats of `events`, `event_types` and `planes`.
        strings: the texts that the tables refer to.
        start_unix_ns: wall-clock time of the session's start in ns since 1970; None if unknown.
        stop_unix_ns: the same for its end.
        source: where the trace was read from.
        problems: what is damaged or doubtful, each with its place.
        partial: True if a part of the recording is missing, such as the end of a file or dropped events.
        recorder_messages: errors and warnings that the recording program stored.
        framework: "tensorflow", "jax" or "pytorch"; "python" for a program that uses none of these; "" if unknown.
    """

    host: str
    planes: Planes
    lines: Lines
    events: Events
    event_types: EventTypes
    event_stats: Stats
    type_stats: Stats
    plane_stats: Stats
    strings: Strings
    start_unix_ns: int | None = None
    stop_unix_ns: int | None = None
    source: str = ""
    problems: tuple[Problem, ...] = ()
    partial: bool = False
    recorder_messages: tuple[str, ...] = ()
    framework: str = ""
    _derived: dict[str, object] = field(default_factory=dict, repr=False, compare=False)
    _deriving: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False, compare=False)

    def check(self) -> None:
        """Raises ValueError unless every table matches its declaration and all row numbers exist."""
        for table in (self.planes, self.lines, self.events, self.event_types):
            table.check()
        for stats, owners in (
            (self.event_stats, len(self.events)),
            (self.type_stats, len(self.event_types)),
            (self.plane_stats, len(self.planes)),
        ):
            stats.check()
            if len(stats.offsets) != owners + 1 or stats.offsets[-1] != len(stats):
                raise ValueError(
                    f"stats of {owners} owners have {len(stats.offsets)} offsets ending at {stats.offsets[-1]}"
                )
        for name, rows, limit in (
            ("events.type", self.events.type, len(self.event_types)),
            ("events.line", self.events.line, len(self.lines)),
            ("lines.plane", self.lines.plane, len(self.planes)),
            ("event_types.name", self.event_types.name, len(self.strings)),
        ):
            if len(rows) and (rows.min() < 0 or rows.max() >= limit):
                raise ValueError(f"{name} refers to rows outside 0..{limit - 1}")

    # -- names ---------------------------------------------------------------------------------------------------

    def name_of(self, event: int) -> str:
        """The full name of an event; empty if the file lacks it."""
        return self.strings[self.event_types.name[self.events.type[event]]]

    def event_names(self, rows: I64 | None = None) -> I32:
        """String row of each event's name: int32 of shape (events,), or of the shape of `rows` if these are given."""
        return self.event_types.name[self.events.type if rows is None else self.events.type[rows]]

    def plane_name(self, plane: int) -> str:
        """The name of a plane."""
        return self.strings[self.planes.name[plane]]

    def line_name(self, line: int) -> str:
        """The name by which a line is shown; empty if the file has none."""
        return self.strings[self.lines.display_name[line] or self.lines.name[line]]

    def line_label(self, line: int) -> str:
        """The line's name for people, with thread numbers that are never negative.

        Recorders store the unsigned number of a POSIX thread as if it had a sign.
        """
        return _NEGATIVE_NUMBER.sub(_unsigned_number, self.line_name(line))

    # -- places --------------------------------------------------------------------------------------------------

    def lines_of(self, *kinds: LineKind) -> I64:
        """Rows of the lines whose kind is one of `kinds`, in order."""
        return np.flatnonzero(np.isin(self.lines.kind, [int(kind) for kind in kinds]))

    def device_planes(self) -> list[int]:
        """Rows of the planes that are devices, in order."""
        return [row for row, kind in enumerate(self.planes.kind.tolist()) if PlaneKind(kind).is_device]

    def span_ps(self) -> tuple[int, int]:
        """First start and last end of all events; (0, 0) without events."""
        return self.derived("span", _span_ps)

    # -- stats ---------------------------------------------------------------------------------------------------

    def stats_of_plane(self, plane: int) -> dict[str, StatValue]:
        """All stats of one plane by name."""
        return self._stat_dict(self.plane_stats, plane)

    def stats_of_event(self, event: int) -> dict[str, StatValue]:
        """All stats of one event by name, including those of its type; its own stats win."""
        return self._stat_dict(self.type_stats, int(self.events.type[event])) | self._stat_dict(self.event_stats, event)

    def stats_of_type(self, event_type: int) -> dict[str, StatValue]:
        """The stats that all events of a type share, by name."""
        return self._stat_dict(self.type_stats, event_type)

    def _stat_dict(self, stats: Stats, owner: int) -> dict[str, StatValue]:
        rows = range(int(stats.offsets[owner]), int(stats.offsets[owner + 1]))
        return {self.strings[stats.name[row]]: self.stat_value(stats, row) for row in rows}

    def stat_value(self, stats: Stats, row: int) -> StatValue:
        """One stat as a Python value."""
        tag, value = int(stats.tag[row]), int(stats.value[row])
        if tag == StatTag.DOUBLE:
            return float(np.int64(value).view(np.float64))
        if tag == StatTag.UINT:
            return value & 0xFFFF_FFFF_FFFF_FFFF
        if tag == StatTag.STRING:
            return self.strings[value]
        if tag == StatTag.BYTES:
            return self.strings.raw(value)
        return value

    def has_stat(self, names: Sequence[str]) -> bool:
        """True if the string table holds one of these stat names.  This is a cheap first check."""
        return any(self.strings.find(name) >= 0 for name in names)

    def stat_ints(self, names: Sequence[str], missing: int = -1, *, rows: I64 | None = None) -> I64:
        """One integer stat as a dense column: int64 of shape (events,), or of the shape of `rows` if these are given.

        Unsigned values above 2^63 keep their bits (two's complement), so that equal ids compare equal whichever of
        the two integer types the writer chose.  The event's own stat wins over its type's.
        """
        return self._dense_column(names, (StatTag.INT, StatTag.UINT), missing, rows)

    def stat_strings(self, names: Sequence[str], *, rows: I64 | None = None) -> I64:
        """One text stat as a dense column of string rows, -1 where there is none.

        Returns:
            int64 of shape (events,), or of the shape of `rows` if these are given.
        """
        return self._dense_column(names, (StatTag.STRING,), -1, rows)

    def stat_doubles(
        self, names: Sequence[str], *, rows: I64 | None = None
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """One floating-point stat as a dense column, NaN where there is none.

        Returns:
            float64 of shape (events,), or of the shape of `rows` if these are given.
        """
        missing = int(np.float64(np.nan).view(np.int64))
        return self._dense_column(names, (StatTag.DOUBLE,), missing, rows).view(np.float64)

    def _dense_column(self, names: Sequence[str], tags: Sequence[StatTag], missing: int, rows: I64 | None) -> I64:
        wanted = [row for row in (self.strings.find(name) for name in names) if row > 0]
        wanted.reverse()  # earlier spellings overwrite later ones, own stats overwrite the type's
        size = len(self.events) if rows is None else len(rows)
        out = np.full(size, missing, np.int64)
        types = self.events.type if rows is None else self.events.type[rows]
        find = _finder(self.event_stats, rows) if wanted else None
        for name in wanted:
            known, values = _find_stat(self.type_stats, name, tags)
            if len(known):
                of_type = np.full(len(self.event_types), missing, np.int64)
                of_type[known] = values
                chosen = np.isin(types, known)
                out[chosen] = of_type[types[chosen]]
            if find is not None:
                places, values = find(name, tags)
                out[places] = values
        return out

    # -- derived columns -----------------------------------------------------------------------------------------

    def derived(self, key: str, compute: Callable[[HostTrace], T]) -> T:
        """The result of `compute(self)`, computed once per trace and kept under `key`.

        It returns at once if the result is already computed.  Otherwise one thread computes and others wait for it.
        """
        if key not in self._derived:
            with self._deriving:
                if key not in self._derived:
                    self._derived[key] = compute(self)
        return self._derived[key]  # type: ignore[return-value]


def _span_ps(trace: HostTrace) -> tuple[int, int]:
    events = trace.events
    if not len(events):
        return 0, 0
    return int(events.start_ps.min()), int((events.start_ps + events.duration_ps).max())


_Finder = Callable[[int, Sequence[StatTag]], tuple[I64, I64]]

# Looking up a stat by its owner takes about this many times as long as scanning past it.
_COST_OF_LOOKUP = 6


def _finder(stats: Stats, rows: I64 | None) -> _Finder:
    """A function that finds a stat by name and tags.  It returns places in `rows` (all owners if None) and values."""
    if rows is None:
        return lambda name, tags: _find_stat(stats, name, tags)
    begin = stats.offsets[rows]
    count = stats.offsets[rows + 1] - begin
    total = int(count.sum())
    if total * _COST_OF_LOOKUP > len(stats):
        return lambda name, tags: _match_owners(rows, len(stats.offsets) - 1, *_find_stat(stats, name, tags))
    owner = np.repeat(np.arange(len(rows)), count)
    at = run_rows(begin, count)
    names = stats.name[at]

    def find(name: int, tags: Sequence[StatTag]) -> tuple[I64, I64]:
        hits = np.flatnonzero(names == name)
        hits = hits[_has_tag(stats, at[hits], tags)]
        return owner[hits], stats.value[at[hits]]

    return find


def _match_owners(rows: I64, owners: int, found: I64, values: I64) -> tuple[I64, I64]:
    """The places in `rows` of the owners that were found, and their values."""
    place = np.full(owners, -1, np.int64)
    place[found] = np.arange(len(found))
    at = place[rows]
    here = np.flatnonzero(at >= 0)
    return here, values[at[here]]


def _find_stat(stats: Stats, name: int, tags: Sequence[StatTag]) -> tuple[I64, I64]:
    """The owners of the stat `name` with one of `tags`, and its values: two int64 of shape (hits,)."""
    rows = np.flatnonzero(stats.name == name)
    rows = rows[_has_tag(stats, rows, tags)]
    return _find_owners(stats, rows), stats.value[rows]


def _find_owners(stats: Stats, rows: I64) -> I64:
    """The owners of stats in ascending order: int64 of shape (rows,)."""
    if len(rows) < _LOOP_FROM or len(rows) < len(stats.offsets) // 32:
        return np.searchsorted(stats.offsets, rows, side="right") - 1
    out = np.empty(len(rows), np.int64)
    kernels.stats.owners(stats.offsets, rows, out)
    return out


def _has_tag(stats: Stats, rows: I64, tags: Sequence[StatTag]) -> Mask:
    tag = stats.tag[rows]
    wanted: Mask = tag == tags[0]
    for other in tags[1:]:
        wanted |= tag == other
    return wanted


def _unsigned_number(found: re.Match[str]) -> str:
    """The unsigned number with the same bits, 32 or 64, as the signed number that was found."""
    number = int(found[0])
    bits = 32 if number >= -(1 << 31) else 64
    return str(number + (1 << bits)) if number >= -(1 << 63) else found[0]
