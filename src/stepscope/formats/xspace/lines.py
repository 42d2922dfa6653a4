"""Decodes the lines of an XSpace file: count everything, then fill columns of exactly that size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.xspace.names import I64, NO_ROWS, Plane, bases, stat_columns
from stepscope.kernels import wire

_CHUNK_BYTES = 4 << 20  # of lines, for one task
_ABSOLUTE_NS = 10**17  # line starts later than this (1973) count from 1970, not from the session's start


@dataclass
class EventColumns:
    """Events and their stats while they are decoded; see `stepscope.model.tables` for the meaning."""

    start_ps: I64
    duration_ps: I64
    type: NDArray[np.int32]
    flags: NDArray[np.uint32]
    stat_offsets: I64
    stat_name: NDArray[np.int32]
    stat_tag: NDArray[np.uint8]
    stat_value: I64

    @classmethod
    def empty(cls, events: int, stats: int) -> EventColumns:
        """Room for so many events and stats."""
        return cls(
            np.empty(events, np.int64),
            np.empty(events, np.int64),
            np.empty(events, np.int32),
            np.empty(events, np.uint32),
            np.zeros(events + 1, np.int64),
            *stat_columns(stats),
        )

    def sort(self, begin: int, end: int) -> None:
        """Sorts the events of one line by start, at one start the longer first; stats move along."""
        here = slice(begin, end)
        order = np.lexsort((-self.duration_ps[here], self.start_ps[here]))
        first = int(self.stat_offsets[begin])
        rows = slice(first, int(self.stat_offsets[end]))
        name, tag, value = self.stat_name[rows].copy(), self.stat_tag[rows].copy(), self.stat_value[rows].copy()
        ends = np.empty(end - begin, np.int64)
        wire.gather_stats(
            order, self.stat_offsets[begin : end + 1] - first, name, tag, value,
            ends, self.stat_name[rows], self.stat_tag[rows], self.stat_value[rows],
        )  # fmt: skip
        self.stat_offsets[begin + 1 : end + 1] = ends + first
        for column in (self.start_ps, self.duration_ps, self.type, self.flags):
            column[here] = column[here][order]


class LineReader:
    """Reads the lines of all planes.

    Attributes:
        header: int64 of shape (lines, HEADER_WIDTH), see `stepscope.kernels.wire`.
        event_base: int64 of shape (lines + 1,), first event row of each line.
        zero_ns: the file's zero in ns since 1970; 0 if its times are relative to the session's start.
        wild_lines: lines with events whose start lies impossibly far away; read as if it were 0.
    """

    def __init__(self, buf: NDArray[np.uint8], planes: Sequence[Plane]) -> None:
        self.buf = buf
        self.planes = planes
        self._begin = np.concatenate([plane.lines[0] for plane in planes])
        self._end = np.concatenate([plane.lines[1] for plane in planes])
        self.header = np.zeros((len(self._begin), wire.HEADER_WIDTH), np.int64)
        self._walk(wire.MEASURE, NO_ROWS, NO_ROWS, NO_ROWS, EventColumns.empty(0, 0), NO_ROWS)
        self.event_base = bases(self.header[:, wire.EVENTS])
        self._stat_base = bases(self.header[:, wire.STATS])
        self.zero_ns, self._zero_ps, self.wild_lines = _zeros(self.header)

    def decode(self) -> EventColumns:
        """Decodes all events, sorted within their lines.  Types are rows of the metadata, -1 where it lacks the id."""
        columns = EventColumns.empty(int(self.event_base[-1]), int(self._stat_base[-1]))
        self._walk(wire.DECODE, self.event_base, self._stat_base, self._zero_ps, columns, NO_ROWS)
        return columns

    def sort(self, columns: EventColumns) -> None:
        """Sorts the events of every line that was not written in order."""
        for line in np.flatnonzero(self.header[:, wire.UNSORTED]).tolist():
            columns.sort(int(self.event_base[line]), int(self.event_base[line + 1]))

    def metadata_ids(self, columns: EventColumns) -> I64:
        """The file's metadata id of every event, in the order of decoding: int64 of shape (events,)."""
        ids = np.empty(len(columns.type), np.int64)
        self._walk(wire.COLLECT_IDS, self.event_base, NO_ROWS, NO_ROWS, columns, ids)
        return ids

    def _walk(
        self, mode: int, event_base: I64, stat_base: I64, zero_ps: I64, columns: EventColumns, raw_ids: I64
    ) -> None:
        def run(plane: Plane, first: int, last: int) -> None:
            types, stats = plane.type_lookup, plane.stat_lookup
            wire.walk_lines(
                self.buf, self._begin, self._end, first, last, mode, self.header, event_base, stat_base, zero_ps,
                types.rows, types.ids, stats.rows, stats.ids, plane.stat_flags,
                columns.start_ps, columns.duration_ps, columns.type, columns.flags, columns.stat_offsets[1:],
                columns.stat_name, columns.stat_tag, columns.stat_value, raw_ids,
            )  # fmt: skip

        _run_all([partial(run, plane, *part) for plane in self.planes for part in _chunks(plane)])


def _run_all(tasks: Sequence[Callable[[], None]]) -> None:
    """Runs the tasks, on several threads where that helps: the kernels release the interpreter's lock."""
    workers = min(len(tasks), os.cpu_count() or 1, 8)
    if workers <= 1:
        for task in tasks:
            task()
        return
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(task) for task in tasks]:
            done.result()


def _chunks(plane: Plane) -> Iterator[tuple[int, int]]:
    """Cuts a plane's lines into runs of about `_CHUNK_BYTES`: first line and one past the last of each."""
    begins, ends = plane.lines
    chunk = np.cumsum(ends - begins) // _CHUNK_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(begins)]
    for a, b in zip(cuts, cuts[1:], strict=False):
        if a < b:
            yield plane.first_line + a, plane.first_line + b


def _zeros(header: I64) -> tuple[int, I64, int]:
    """The file's zero, each line's start after it in ps, and how many used lines start impossibly far away."""
    starts, used = header[:, wire.START_NS], header[:, wire.EVENTS] > 0
    absolute = starts > _ABSOLUTE_NS
    zero_ns = int(starts[used & absolute].min()) if (used & absolute).any() else 0
    relative = np.where(absolute, starts - zero_ns, starts)
    limit = wire.TIME_LIMIT_PS // 1000
    wild = (relative > limit) | (relative < -limit)
    return zero_ns, np.where(wild, 0, relative) * 1000, int((wild & used).sum())
