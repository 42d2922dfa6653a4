"""Decodes the lines of an XSpace file: count everything, then fill columns of exactly that size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepscope.formats import progress
from stepscope.formats.xspace import schema
from stepscope.formats.xspace.clock import line_zeros_ps, session_start_ns
from stepscope.formats.xspace.damage import Damage
from stepscope.formats.xspace.names import NO_ROWS
from stepscope.formats.xspace.planes import Bytes, Plane, Ranges, stat_columns
from stepscope.kernels import wire
from stepscope.model.arrays import I32, I64, U8, offsets_of, run_rows
from stepscope.records import dataclass

_CHUNK_BYTES = 4 << 20  # of lines, for one task
_MOST_THREADS = 8


@dataclass
class EventColumns:
    """Events and their stats while they are decoded; see `stepscope.model.tables` for the meaning."""

    start_ps: I64
    duration_ps: I64
    type: I32
    flags: NDArray[np.uint16]
    stat_offsets: I64
    stat_name: I32
    stat_tag: U8
    stat_value: I64

    @classmethod
    def empty(cls, events: int, stats: int) -> EventColumns:
        """Room for so many events and stats."""
        return cls(
            np.empty(events, np.int64),
            np.empty(events, np.int64),
            np.empty(events, np.int32),
            np.empty(events, np.uint16),
            np.zeros(events + 1, np.int64),
            *stat_columns(stats),
        )

    def reorder(self, rows: I64, new: I64) -> None:
        """Moves the events `new` to `rows`; stats move along.  Both hold the same events, line by line."""
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
        session_start_ns: the zero of all times, in ns since 1970; None if the file does not tell.
    """

    def __init__(self, buf: Bytes, planes: Sequence[Plane], lines: Ranges, told_start: int | None) -> None:
        self.buf = buf
        self.header = np.zeros((len(lines[0]), wire.HEADER_WIDTH), np.int64)
        self._lines = lines
        self._workers = min(1 + int((lines[1] - lines[0]).sum()) // _CHUNK_BYTES, os.cpu_count() or 1, _MOST_THREADS)
        self._parts = [(plane, *part) for plane in planes for part in _chunks(plane, lines)]
        self._walk(wire.MEASURE, NO_ROWS, NO_ROWS, NO_ROWS, EventColumns.empty(0, 0), NO_ROWS)
        self.event_base = offsets_of(self.header[:, wire.EVENTS])
        self._stat_base = offsets_of(self.header[:, wire.STATS])
        starts, used = self.header[:, wire.START_NS], self.header[:, wire.EVENTS] > 0
        self.session_start_ns = session_start_ns(starts[used], told_start)
        self._zero_ps, wild = line_zeros_ps(starts, self.session_start_ns)
        self._wild_lines = int((wild & used).sum())

    def decode(self) -> EventColumns:
        """Decodes all events, in the file's order.  Types are rows of the metadata, -1 where it lacks the id."""
        columns = EventColumns.empty(int(self.event_base[-1]), int(self._stat_base[-1]))
        self._walk(wire.DECODE, self.event_base, self._stat_base, self._zero_ps, columns, NO_ROWS)
        return columns

    def sort(self, columns: EventColumns) -> None:
        """Sorts the events of lines that were not written in order: by start, at one start the longer first."""
        lines = np.flatnonzero(self.header[:, wire.UNSORTED])
        if len(lines):
            counts = np.diff(self.event_base)[lines]
            rows = run_rows(self.event_base[lines], counts)
            keys = (-columns.duration_ps[rows], columns.start_ps[rows], np.repeat(lines, counts))
            columns.reorder(rows, rows[np.lexsort(keys)])

    def metadata_ids(self, columns: EventColumns) -> I64:
        """The file's metadata id of every event, in the order of decoding: int64 of shape (events,)."""
        ids = np.empty(len(columns.type), np.int64)
        self._walk(wire.COLLECT_IDS, self.event_base, NO_ROWS, NO_ROWS, columns, ids)
        return ids

    def note_damage(self, damage: Damage) -> None:
        """Tells what could not be read, once everything is decoded."""
        header, ends = self.header, self._lines[1]
        damage.add(header[:, wire.STOP_AT], header[:, wire.STOP_CODE], ends)
        damage.add(header[:, wire.BROKEN_AT], header[:, wire.BROKEN_CODE], np.zeros_like(ends))
        lost = header.sum(axis=0)
        damage.lost_events += int(lost[wire.LOST_EVENTS])
        damage.lost_stats += int(lost[wire.LOST_STATS])
        damage.unnamed_events += int(lost[wire.UNNAMED])
        damage.bad_times += int(lost[wire.BAD_TIMES]) + self._wild_lines

    def let_go(self) -> None:
        """Lets go of the file, after which nothing more can be decoded."""
        self.buf = self.buf[:0].copy()

    def _walk(
        self, mode: int, event_base: I64, stat_base: I64, zero_ps: I64, columns: EventColumns, raw_ids: I64
    ) -> None:
        def run(plane: Plane, first: int, last: int) -> None:
            types, stats = plane.type_lookup, plane.stat_lookup
            wire.walk_lines(
                self.buf, *self._lines, first, last, mode, self.header, event_base, stat_base, zero_ps,
                schema.TIME_LIMIT_PS, types.rows, types.ids, stats.rows, stats.ids, plane.stat_flags,
                columns.start_ps, columns.duration_ps, columns.type, columns.flags, columns.stat_offsets[1:],
                columns.stat_name, columns.stat_tag, columns.stat_value, raw_ids,
            )  # fmt: skip

        begins, ends = self._lines
        sizes = [int((ends[first:last] - begins[first:last]).sum()) for _, first, last in self._parts]
        tasks = [partial(run, *part) for part in self._parts]
        for size in _run_all(tasks, sizes, self._workers):
            if mode == wire.DECODE:
                progress.advance(size)


def _run_all(tasks: Sequence[Callable[[], None]], sizes: Sequence[int], workers: int) -> Iterator[int]:
    """Runs the tasks, on several threads where that helps: the kernels release the interpreter's lock.

    Gives the size of each task once it is done.
    """
    if workers <= 1:
        for task, size in zip(tasks, sizes, strict=True):
            task()
            yield size
        return
    with ThreadPoolExecutor(workers) as pool:
        for done, size in zip([pool.submit(task) for task in tasks], sizes, strict=True):
            done.result()
            yield size


def _chunks(plane: Plane, lines: Ranges) -> Iterator[tuple[int, int]]:
    """Cuts a plane's lines into runs of about `_CHUNK_BYTES`: first line and one past the last of each."""
    first, last = plane.lines
    if first == last:
        return
    chunk = np.cumsum(lines[1][first:last] - lines[0][first:last]) // _CHUNK_BYTES
    cuts = [first, *(np.flatnonzero(np.diff(chunk)) + first + 1).tolist(), last]
    yield from pairwise(cuts)
