"""The events of an XSpace file once they are decoded: without gaps, and in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.xspace.damage import Damage
from stepscope.formats.xspace.lines import LineReader
from stepscope.kernels import wire
from stepscope.model.arrays import I32, I64, U8, distinct, offsets_of, run_rows
from stepscope.records import dataclass


@dataclass
class EventColumns:
    """Events and their stats; see `stepscope.model.tables` for the meaning.

    Attributes:
        unnamed: int64, the metadata ids of events without metadata, in the order of decoding.
        event_base: int64 of shape (lines + 1,), first event row of each line.
        ranges, outcome: what was decoded, and how that went; see `stepscope.kernels.wire`.
    """

    start_ps: I64
    duration_ps: I64
    type: I32
    flags: NDArray[np.uint16]
    stat_offsets: I64
    stat_name: I32
    stat_tag: U8
    stat_value: I64
    unnamed: I64
    event_base: I64
    ranges: I64
    outcome: I64

    @classmethod
    def of(cls, lines: LineReader) -> EventColumns:
        """The events that were decoded, in the file's order."""
        events, (stat_name, stat_tag, stat_value) = lines.events, lines.stats
        columns = cls(
            start_ps=_array(events.start_ps),
            duration_ps=_array(events.duration_ps),
            type=_array(events.type),
            flags=_array(events.flags),
            stat_offsets=_array(events.stat_offsets),
            stat_name=_array(stat_name),
            stat_tag=_array(stat_tag),
            stat_value=_array(stat_value),
            unnamed=_array(lines.unnamed)[:, 0],
            event_base=offsets_of(_array(lines.header)[:, wire.EVENTS_SEEN]),
            ranges=_array(lines.ranges),
            outcome=_array(lines.outcome),
        )
        columns._close_gaps()
        return columns

    def sort(self) -> None:
        """Sorts the events of lines that are out of order: by start, of equal starts the longer first."""
        lines = self._find_unsorted()
        if len(lines):
            counts = np.diff(self.event_base)[lines]
            rows = run_rows(self.event_base[lines], counts)
            keys = (-self.duration_ps[rows], self.start_ps[rows], np.repeat(lines, counts))
            self._reorder(rows, rows[np.lexsort(keys)])

    def note_damage(self, lines: LineReader, damage: Damage) -> None:
        """Adds what could not be read to `damage`."""
        outcome, header = self.outcome, _array(lines.header)
        damage.add(header[:, wire.STOP_AT], header[:, wire.STOP_CODE], _array(lines.ends))
        broken = np.flatnonzero(outcome[:, wire.BROKEN_AT] >= 0)
        broken = broken[np.unique(self.ranges[broken, wire.RANGE_LINE], return_index=True)[1]]  # the first of a line
        damage.add(outcome[broken, wire.BROKEN_AT], outcome[broken, wire.BROKEN_CODE], np.zeros_like(broken))
        lost = outcome.sum(axis=0)
        damage.lost_events += int(lost[wire.LOST_EVENTS])
        damage.lost_stats += int(lost[wire.LOST_STATS])
        damage.unnamed_events += int(lost[wire.UNNAMED])
        damage.bad_times += int(lost[wire.BAD_TIMES]) + lines.wild_lines

    def _close_gaps(self) -> None:
        """Removes the gaps left by damaged events, in place."""
        events, ranges = self.outcome[:, wire.EVENTS], self.ranges
        if int(events.sum()) == len(self.start_ps):
            return
        self._keep(run_rows(ranges[:, wire.RANGE_ROW].copy(), events))
        ranges[:, wire.RANGE_ROW] = offsets_of(events)[:-1]
        ranges[:, wire.RANGE_ROOM] = events
        counts = np.bincount(ranges[:, wire.RANGE_LINE], events, len(self.event_base) - 1)
        self.event_base = offsets_of(counts.astype(np.int64))

    def _keep(self, rows: I64) -> None:
        """Keeps only these events.  No other event may have stats."""
        self.start_ps, self.duration_ps = self.start_ps[rows], self.duration_ps[rows]
        self.type, self.flags = self.type[rows], self.flags[rows]
        self.stat_offsets = np.append(0, self.stat_offsets[1:][rows])

    def _find_unsorted(self) -> I64:
        """Lines whose events are out of order, within a range or from one range to the next."""
        used = self.ranges[self.outcome[:, wire.EVENTS] > 0]
        line, row = used[:, wire.RANGE_LINE], used[:, wire.RANGE_ROW]
        row = row[1:][line[1:] == line[:-1]]
        start, duration = self.start_ps, self.duration_ps
        back = (start[row] < start[row - 1]) | ((start[row] == start[row - 1]) & (duration[row] > duration[row - 1]))
        inside = self.outcome[:, wire.UNSORTED] > 0
        between = np.searchsorted(self.event_base, row[back], side="right") - 1
        found: I64 = distinct(np.concatenate([self.ranges[inside, wire.RANGE_LINE], between]))
        return found

    def _reorder(self, rows: I64, new: I64) -> None:
        """Moves the events `new` to `rows`, with their stats.  Both hold the same events, line by line."""
        counts = np.diff(self.stat_offsets)
        stat_rows = run_rows(self.stat_offsets[rows], counts[rows])
        stat_new = run_rows(self.stat_offsets[new], counts[new])
        for stats in (self.stat_name, self.stat_tag, self.stat_value):
            stats[stat_rows] = stats[stat_new]
        counts[rows] = counts[new]
        np.cumsum(counts, out=self.stat_offsets[1:])
        for events in (self.start_ps, self.duration_ps, self.type, self.flags):
            events[rows] = events[new]


def _array(table: Any) -> Any:
    """A kernel's table as an array, without copying."""
    return np.asarray(table)
