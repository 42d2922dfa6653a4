"""HostTrace: everything one host recorded, as columns."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TypeVar

import numpy as np

from stepscope import kernels
from stepscope.errors import LeftOutError, Problem
from stepscope.model.arrays import I32, I64, Mask, blocks_of, settle_arrays
from stepscope.model.kinds import LineKind, PlaneKind, StatTag
from stepscope.model.repair import Repair
from stepscope.model.strings import Strings
from stepscope.model.tables import Events, EventTypes, Lines, Planes, Stats
from stepscope.records import dataclass

T = TypeVar("T")

_NOTHING = object()

StatValue = int | float | str | bytes

_NEGATIVE_NUMBER = re.compile(r"(?:(?<=/)|(?<=\bthread ))-\d+")


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
        repairs: what in it could not be so and was changed when it was read.
        framework: "tensorflow", "jax" or "pytorch"; "python" for a program that uses none of these; "" if unknown.
        recorder: who recorded it, where that is not the framework's own profiler: "nsight", or "chrome" for a trace in
            Chrome's format of an unknown maker; else "".
        left_out: names of stats that were not kept of events; to ask for one that the file has raises LeftOutError.
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
    recorder: str = ""
    repairs: tuple[Repair, ...] = ()
    left_out: frozenset[str] = frozenset()
    _derived: dict[str, object] = field(default_factory=dict, repr=False, compare=False)
    _deriving: dict[str, threading.Lock] = field(default_factory=dict, init=False, repr=False, compare=False)

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

    @property
    def all_event_stats(self) -> Stats:
        """The stats of events, for whoever does not ask for them by name.  Raises LeftOutError."""
        if self.left_out:
            raise LeftOutError
        return self.event_stats

    def stats_of_event(self, event: int) -> dict[str, StatValue]:
        """All stats of one event by name, including those of its type; its own stats win.  Raises LeftOutError."""
        own = self._stat_dict(self.all_event_stats, event)
        return self._stat_dict(self.type_stats, int(self.events.type[event])) | own

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

    def events_with_int(self, names: Sequence[str], least: int = 0) -> tuple[I64, I64]:
        """The events whose integer stat is `least` or more, and its values: int64 of shape (n,), rows ascending.

        It makes no column of all events on the way.
        """
        wanted = self._string_rows(names)
        if len(wanted) == 1 and not self.derived("names of type stats", _names_of_type_stats)[wanted[0]]:
            own, bits = self.event_stats, 1 << StatTag.INT | 1 << StatTag.UINT
            events, ints = kernels.stats.find(own.offsets, own.name, own.tag, own.value, wanted[0], bits, least)
            return np.asarray(events), np.asarray(ints)
        rows, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for first, column in self.stat_int_blocks(names, least - 1):
            found = np.flatnonzero(column >= least)
            if len(found):
                rows.append(found + first)
                values.append(column[found])
        return np.concatenate(rows), np.concatenate(values)

    def stat_int_blocks(self, names: Sequence[str], missing: int = -1) -> Iterator[tuple[int, I64]]:
        """The column of `stat_ints` piece by piece: the first row of each piece, and its int64 of shape (rows,)."""
        wanted, tags = self._string_rows(names), (StatTag.INT, StatTag.UINT)
        if not wanted:
            return
        of_types = self.derived("names of type stats", _names_of_type_stats)
        for rows in blocks_of(len(self.events)):
            out = np.full(rows.stop - rows.start, missing, np.int64)
            for name in reversed(wanted):  # as in `_dense_column`
                if of_types[name]:
                    _put_of_types(self.type_stats, name, tags, self.events.type, rows, out)
                _put_own(self.event_stats, name, tags, rows, out)
            yield rows.start, out

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
        out = np.full(len(self.events) if rows is None else len(rows), missing, np.int64)
        # Earlier spellings overwrite later ones, own stats overwrite the type's.
        for name in reversed(self._string_rows(names)):
            if self.derived("names of type stats", _names_of_type_stats)[name]:
                _put_of_types(self.type_stats, name, tags, self.events.type, rows, out)
            _put_own(self.event_stats, name, tags, rows, out)
        return out

    def _string_rows(self, names: Sequence[str]) -> list[int]:
        """The rows of those of some texts that the string table holds.  Raises LeftOutError for one of those."""
        rows = [row for row in map(self.strings.find, names) if row > 0]
        if rows and not self.left_out.isdisjoint(names) and self.has_stat([*self.left_out.intersection(names)]):
            raise LeftOutError
        return rows

    # -- derived columns -----------------------------------------------------------------------------------------

    def derived(self, key: str, compute: Callable[[HostTrace], T]) -> T:
        """The result of `compute(self)`, computed once per trace and kept under `key`.

        The first thread that asks for a key computes it and the others wait; a result that is there is returned at
        once.  No result depends on itself, so no two threads wait for each other.
        """
        found = self._derived.get(key, _NOTHING)
        if found is _NOTHING:
            with self._deriving.setdefault(key, threading.Lock()):
                found = self._derived.get(key, _NOTHING)
                if found is _NOTHING:
                    found = self._derived[key] = settle_arrays(compute(self))
        return found  # type: ignore[return-value]

    def forget(self) -> None:
        """Drops what was computed of it.  Some of that refers to the trace, whose memory would stay until Python looks
        for garbage."""
        self._derived.clear()


def _span_ps(trace: HostTrace) -> tuple[int, int]:
    events = trace.events
    if not len(events):
        return 0, 0
    return int(events.start_ps.min()), kernels.columns.latest_end(events.start_ps, events.duration_ps)


def _names_of_type_stats(trace: HostTrace) -> Mask:
    """Which texts name stats of event types: most stats are of events alone."""
    found = np.zeros(len(trace.strings), np.bool_)
    found[trace.type_stats.name] = True
    return found


def _put_own(stats: Stats, name: int, tags: Sequence[StatTag], rows: I64 | slice | None, out: I64) -> None:
    """Puts a stat of some owners into a column, of all if `rows` is None."""
    bits = sum(1 << tag for tag in tags)
    if rows is None or isinstance(rows, slice):
        offsets = stats.offsets if rows is None else stats.offsets[rows.start : rows.stop + 1]
        kernels.stats.put(offsets, stats.name, stats.tag, stats.value, name, bits, out)
    else:
        kernels.stats.put_some(stats.offsets, rows, stats.name, stats.tag, stats.value, name, bits, out)


def _put_of_types(
    stats: Stats, name: int, tags: Sequence[StatTag], types: I32, rows: I64 | slice | None, out: I64
) -> None:
    """Puts a stat of event types into a column of events, of all or of some rows, given the types of all."""
    found = np.flatnonzero(stats.name == name)
    found = found[np.isin(stats.tag[found], tags)]
    owners = np.searchsorted(stats.offsets, found, side="right") - 1
    values, has = np.zeros(len(stats.offsets) - 1, np.int64), np.zeros(len(stats.offsets) - 1, np.bool_)
    values[owners], has[owners] = stats.value[found], True
    types = types if rows is None else types[rows]
    chosen = np.flatnonzero(has[types])
    out[chosen] = values[types[chosen]]


def _unsigned_number(found: re.Match[str]) -> str:
    """The unsigned number with the same bits, 32 or 64, as the signed number that was found."""
    number = int(found[0])
    bits = 32 if number >= -(1 << 31) else 64
    return str(number + (1 << bits)) if number >= -(1 << 63) else found[0]
