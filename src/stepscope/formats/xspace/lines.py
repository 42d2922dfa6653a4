"""Decodes the lines of an XSpace file: finds the events, then decodes each once, directly into its final row."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepscope.formats import progress
from stepscope.formats.threads import MOST_THREADS, Task, Workers, usable_cores
from stepscope.formats.xspace import schema
from stepscope.formats.xspace.clock import line_zeros_ps, session_start_ns
from stepscope.formats.xspace.damage import Damage
from stepscope.formats.xspace.names import NO_ROWS, Interner
from stepscope.formats.xspace.pages import Pages
from stepscope.formats.xspace.planes import Bytes, Plane, Ranges, take_columns
from stepscope.kernels import wire
from stepscope.model.arrays import I32, I64, U8, distinct, offsets_of, run_rows
from stepscope.records import dataclass

_PART_BYTES = 1 << 20  # bytes of lines per task
_BYTES_A_STAT = 16  # a first guess, to reserve memory


@dataclass
class EventColumns:
    """Events and their stats while they are decoded; see `stepscope.model.tables` for the meaning.

    Attributes:
        unnamed: int64, the metadata ids of events without metadata, in the order of decoding.
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

    @classmethod
    def allocate(cls, events: int) -> EventColumns:
        """Columns with room for `events` events; their stats come later."""
        return cls(
            np.empty(events, np.int64),
            np.empty(events, np.int64),
            np.empty(events, np.int32),
            np.empty(events, np.uint16),
            np.zeros(events + 1, np.int64),
            np.empty(0, np.int32),
            np.empty(0, np.uint8),
            NO_ROWS,
            NO_ROWS,
        )

    def table(self) -> wire.EventTable:
        """The columns of events as the kernels need them."""
        return wire.EventTable(self.start_ps, self.duration_ps, self.type, self.flags, self.stat_offsets[1:])

    def keep(self, rows: I64) -> None:
        """Keeps only these events.  No other event may have stats."""
        self.start_ps, self.duration_ps = self.start_ps[rows], self.duration_ps[rows]
        self.type, self.flags = self.type[rows], self.flags[rows]
        self.stat_offsets = np.append(0, self.stat_offsets[1:][rows])

    def reorder(self, rows: I64, new: I64) -> None:
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


class LineReader:
    """Reads the lines of all planes.

    Attributes:
        header: int64 of shape (lines, HEADER_WIDTH), see `stepscope.kernels.wire`.
        event_base: int64 of shape (lines + 1,), first event row of each line.
        session_start_ns: the zero of all times, in ns since 1970; None if unknown.
    """

    def __init__(
        self, buf: Bytes, pages: Pages, planes: Sequence[Plane], lines: Ranges, declared_start: int | None
    ) -> None:
        self.buf = buf
        self._pages = pages
        self.header = np.zeros((len(lines[0]), wire.HEADER_WIDTH), np.int64)
        self._lines = lines
        self._planes = planes
        self._workers = min(1 + int((lines[1] - lines[0]).sum()) // _PART_BYTES, usable_cores(), MOST_THREADS)
        cuts = self._scan()
        self.event_base = offsets_of(self.header[:, wire.EVENTS_SEEN])
        self._ranges = _build_ranges(lines, self.header, self.event_base, cuts)
        self._outcome = np.zeros((len(self._ranges), wire.OUTCOME_WIDTH), np.int64)
        starts, used = self.header[:, wire.START_NS], self.header[:, wire.EVENTS_SEEN] > 0
        self.session_start_ns = session_start_ns(starts[used], declared_start)
        self._zero_ps, wild = line_zeros_ps(starts, self.session_start_ns)
        self._wild_lines = int((wild & used).sum())

    def decode(self, strings: Interner) -> EventColumns:
        """Decodes all events, in the file's order.  Types are rows of the metadata; -1 if their id is missing there."""
        columns = EventColumns.allocate(int(self.event_base[-1]))
        stats = wire.StatTable(strings.seed)
        stats.reserve(int((self._lines[1] - self._lines[0]).sum()) // _BYTES_A_STAT)
        if self._workers == 1:
            self._decode_alone(columns, stats, strings)
        else:
            self._decode_in_threads(columns, stats, strings)
        columns.stat_name, columns.stat_tag, columns.stat_value = take_columns(stats)
        columns.unnamed = np.asarray(stats.take_unnamed())[:, 0]
        self._close_gaps(columns)
        return columns

    def sort(self, columns: EventColumns) -> None:
        """Sorts the events of lines that are out of order: by start, of equal starts the longer first."""
        lines = self._find_unsorted(columns)
        if len(lines):
            counts = np.diff(self.event_base)[lines]
            rows = run_rows(self.event_base[lines], counts)
            keys = (-columns.duration_ps[rows], columns.start_ps[rows], np.repeat(lines, counts))
            columns.reorder(rows, rows[np.lexsort(keys)])

    def note_damage(self, damage: Damage) -> None:
        """Adds what could not be read to `damage`, once everything is decoded."""
        header, outcome = self.header, self._outcome
        damage.add(header[:, wire.STOP_AT], header[:, wire.STOP_CODE], self._lines[1])
        broken = np.flatnonzero(outcome[:, wire.BROKEN_AT] >= 0)
        broken = broken[np.unique(self._ranges[broken, wire.RANGE_LINE], return_index=True)[1]]  # the first of a line
        damage.add(outcome[broken, wire.BROKEN_AT], outcome[broken, wire.BROKEN_CODE], np.zeros_like(broken))
        lost = outcome.sum(axis=0)
        damage.lost_events += int(lost[wire.LOST_EVENTS])
        damage.lost_stats += int(lost[wire.LOST_STATS])
        damage.unnamed_events += int(lost[wire.UNNAMED])
        damage.bad_times += int(lost[wire.BAD_TIMES]) + self._wild_lines

    def release_buffer(self) -> None:
        """Lets go of the file, after which nothing more can be decoded."""
        self.buf = self.buf[:0].copy()
        self._pages.release_buffer()

    # -- finding ------------------------------------------------------------------------------------------------------

    def _scan(self) -> I64:
        """Fills the header; returns the places where lines can be cut: int64 of shape (cuts, CUT_WIDTH)."""
        sizes = self._lines[1] - self._lines[0]
        tasks = [
            partial(wire.scan_lines, self.buf, *self._lines, first, last, _PART_BYTES, self.header)
            for first, last in _split_runs(sizes, 0, len(sizes))
        ]
        if self._workers > 1:
            with Workers(self._workers) as workers:
                found = [task.result() for task in [workers.submit(task) for task in tasks]]
        else:
            found = [task() for task in tasks]
        return np.concatenate([np.asarray(cuts) for cuts in found]) if found else np.empty((0, 3), np.int64)

    # -- decoding -----------------------------------------------------------------------------------------------------

    def _tasks(self, columns: EventColumns) -> Iterator[tuple[int, int, Callable[[wire.StatTable], None]]]:
        """Each task's first range, one past its last, and the task, which decodes them into a given table of stats."""
        events, line = columns.table(), self._ranges[:, wire.RANGE_LINE]
        sizes = self._ranges[:, wire.RANGE_STOP] - self._ranges[:, wire.RANGE_START]
        for plane in self._planes:
            bounds = np.searchsorted(line, plane.lines)
            if bounds[0] < bounds[1]:
                lookups = plane.lookups()
                for first, last in _split_runs(sizes, *bounds.tolist()):
                    yield first, last, partial(self._decode_ranges, first, last, lookups, events)

    def _decode_ranges(
        self, first: int, last: int, lookups: wire.Lookups, events: wire.EventTable, stats: wire.StatTable
    ) -> None:
        ranges, outcome = self._ranges[first:last], self._outcome[first:last]
        wire.decode_events(self.buf, ranges, self._zero_ps, schema.TIME_LIMIT_PS, lookups, events, stats, outcome)

    def _decode_alone(self, columns: EventColumns, stats: wire.StatTable, strings: Interner) -> None:
        for first, last, task in self._tasks(columns):
            task(stats)
            stats.intern(strings.table)
            self._advance(first, last)

    def _decode_in_threads(self, columns: EventColumns, stats: wire.StatTable, strings: Interner) -> None:
        """Decodes on several threads, and merges their results in the order of the file, as on one thread.

        The kernels release the interpreter's lock.  Only as many parts are decoded ahead as keep all threads busy.
        """
        free = [wire.StatTable(strings.seed) for _ in range(2 * self._workers)]
        running: deque[tuple[int, int, wire.StatTable, Task[None]]] = deque()
        with Workers(self._workers) as workers:

            def take_over() -> None:
                first, last, part, done = running.popleft()
                done.result()
                part.intern(strings.table)
                self._shift_offsets(columns, first, last, stats.size)
                stats.append(part)
                free.append(part)
                self._advance(first, last)

            for first, last, task in self._tasks(columns):
                if not free:
                    take_over()
                part = free.pop()
                running.append((first, last, part, workers.submit(partial(task, part))))
            while running:
                take_over()

    def _shift_offsets(self, columns: EventColumns, first: int, last: int, by: int) -> None:
        """Moves the stat offsets of the events of some ranges by `by` rows, in place."""
        begin, end = (
            self._ranges[first, wire.RANGE_ROW],
            self._ranges[last - 1, [wire.RANGE_ROW, wire.RANGE_ROOM]].sum(),
        )
        columns.stat_offsets[begin + 1 : end + 1] += by

    def _advance(self, first: int, last: int) -> None:
        """Tells that some ranges are decoded, and gives back the memory of their bytes."""
        starts, stops = self._ranges[first:last, wire.RANGE_START], self._ranges[first:last, wire.RANGE_STOP]
        progress.advance(int((stops - starts).sum()))
        self._pages.release(starts, stops)

    def _close_gaps(self, columns: EventColumns) -> None:
        """Removes the gaps left by damaged events, in place."""
        events = self._outcome[:, wire.EVENTS]
        if int(events.sum()) == len(columns.start_ps):
            return
        columns.keep(run_rows(self._ranges[:, wire.RANGE_ROW].copy(), events))
        self._ranges[:, wire.RANGE_ROW] = offsets_of(events)[:-1]
        self._ranges[:, wire.RANGE_ROOM] = events
        counts = np.bincount(self._ranges[:, wire.RANGE_LINE], events, len(self.header))
        self.event_base = offsets_of(counts.astype(np.int64))

    def _find_unsorted(self, columns: EventColumns) -> I64:
        """Lines whose events are out of order, within a range or from one range to the next."""
        ranges = self._ranges[self._outcome[:, wire.EVENTS] > 0]
        line, row = ranges[:, wire.RANGE_LINE], ranges[:, wire.RANGE_ROW]
        row = row[1:][line[1:] == line[:-1]]
        start, duration = columns.start_ps, columns.duration_ps
        back = (start[row] < start[row - 1]) | ((start[row] == start[row - 1]) & (duration[row] > duration[row - 1]))
        inside = self._outcome[:, wire.UNSORTED] > 0
        between = np.searchsorted(self.event_base, row[back], side="right") - 1
        found: I64 = distinct(np.concatenate([self._ranges[inside, wire.RANGE_LINE], between]))
        return found


def _build_ranges(lines: Ranges, header: I64, event_base: I64, cuts: I64) -> I64:
    """The parts of all lines in order: int64 of shape (ranges, RANGE_WIDTH), see `stepscope.kernels.wire`."""
    n, first = len(header), np.zeros(len(header), np.int64)
    line = np.concatenate([np.arange(n), cuts[:, wire.CUT_LINE]])
    start = np.concatenate([lines[0], cuts[:, wire.CUT_AT]])
    row = event_base[line] + np.concatenate([first, cuts[:, wire.CUT_EVENTS]])
    order = np.lexsort((start, line))
    line, start, row = line[order], start[order], row[order]
    end = np.where(header[:, wire.STOP_AT] >= 0, header[:, wire.STOP_AT], lines[1])
    is_last = np.append(line[1:] != line[:-1], True)
    stop = np.where(is_last, end[line], np.append(start[1:], 0))
    next_row = np.append(row[1:], event_base[-1])
    out: I64 = np.stack([line, start, stop, row, next_row - row], axis=1)
    return out


def _split_runs(sizes: I64, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Splits the rows `first:last` into runs of about `_PART_BYTES`; yields the bounds of each."""
    if first == last:
        return
    part = np.cumsum(sizes[first:last]) // _PART_BYTES
    yield from pairwise([first, *(np.flatnonzero(np.diff(part)) + first + 1).tolist(), last])
