"""Decodes the lines of an XSpace file: finds the events, then decodes each once, directly into its final row.

Of a file only the parts at hand are in memory, which then stay in the processor's caches.  It needs no numpy: a command
decodes while its modules are still being imported.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate

from stepscope.formats import progress
from stepscope.formats.threads import MOST_THREADS, ThreadWork, Workers, usable_cores
from stepscope.formats.xspace import schema
from stepscope.formats.xspace.clock import line_zeros_ps, session_start_ns
from stepscope.formats.xspace.names import Interner
from stepscope.formats.xspace.planes import Ranges, Table
from stepscope.kernels import memory, wire
from stepscope.records import dataclass

_PART_BYTES = 1 << 20  # bytes of lines per task
# A first guess, to reserve memory; what is not used of it lies between tables, where the analysis finds it.
_BYTES_A_STAT, _BYTES_A_KEPT_STAT = 16, 36
_MOST_BETWEEN = 64 << 10  # bytes between ranges that are read at once

PlaneLines = Sequence[tuple[int, int, wire.Lookups]]  # the first line of each plane, one past its last, its ids


@dataclass
class _Part:
    """Some stats, and the bytes that their texts stand in until these have ids."""

    stats: wire.StatTable
    bytes: memoryview = memoryview(bytearray())

    def room_for(self, size: int) -> memoryview:
        """Room for so many bytes; what was there before is lost."""
        if len(self.bytes) < size:
            self.bytes = memoryview(memory.Memory(max(size, 2 * _PART_BYTES)))
        return self.bytes


class LineReader:
    """Reads the lines of all planes.

    Attributes:
        header: int64 of shape (lines, HEADER_WIDTH), see `stepscope.kernels.wire`.
        ranges, outcome: int64 of shape (ranges, RANGE_WIDTH or OUTCOME_WIDTH), what is decoded, and how that went.
        events: the decoded events, with gaps behind ranges that hold damaged ones.
        stats: their stats; unnamed: int64 of shape (n, 1), the ids of events without metadata, in order.
        session_start_ns: the zero of all times, in ns since 1970; None if unknown.
        ends: int64 of shape (lines,), where each line ends.
        wild_lines: how many lines with events start impossibly far away.
    """

    def __init__(self, source: wire.Source, planes: PlaneLines, lines: Ranges, declared_start: int | None) -> None:
        self._source = source
        self._planes = planes
        self._lines = lines
        self._bytes = sum(lines[1]) - sum(lines[0])
        self._workers = min(1 + self._bytes // _PART_BYTES, usable_cores(), MOST_THREADS)
        self.header = wire.zero_table(len(lines[0]), wire.HEADER_WIDTH)
        self.ranges = wire.plan_ranges(*lines, self.header, self._scan())
        self._starts, self._stops = list(self.ranges[:, wire.RANGE_START]), list(self.ranges[:, wire.RANGE_STOP])
        self.outcome = wire.zero_table(len(self.ranges), wire.OUTCOME_WIDTH)
        starts, seen = list(self.header[:, wire.START_NS]), list(self.header[:, wire.EVENTS_SEEN])
        used = [start for start, events in zip(starts, seen, strict=True) if events > 0]
        self.session_start_ns = session_start_ns(used, declared_start)
        zeros, wild = line_zeros_ps(starts, self.session_start_ns)
        self._zero_ps = wire.zero_table(len(zeros), 1)[:, 0]
        for line, zero in enumerate(zeros):
            self._zero_ps[line] = zero
        self.ends = lines[1]
        self.wild_lines = sum(is_wild and events > 0 for is_wild, events in zip(wild, seen, strict=True))
        self.events = wire.EventTable(sum(seen))

    def decode(self, strings: Interner, leaves_out: bool = False) -> None:
        """Decodes all events, in the file's order, with all stats or with half.  Types are rows of the metadata; -1 if
        their id is missing there."""
        stats = wire.StatTable(strings.seed)
        stats.reserve(self._bytes // (_BYTES_A_KEPT_STAT if leaves_out else _BYTES_A_STAT))
        if self._workers == 1:
            self._decode_alone(_Part(stats), strings)
        else:
            self._decode_in_threads(stats, strings)
        self.stats = stats.take()
        self.unnamed = stats.take_unnamed()

    def release_source(self) -> None:
        """Lets go of the file, after which nothing more can be decoded."""
        del self._source

    # -- finding ------------------------------------------------------------------------------------------------------

    def _scan(self) -> Table:
        """Fills the header; returns the places where lines can be cut: int64 of shape (cuts, CUT_WIDTH)."""
        sizes = [end - begin for begin, end in zip(*self._lines, strict=True)]
        tasks = [
            partial(wire.scan_lines, self._source, *self._lines, first, last, _PART_BYTES, self.header)
            for first, last in _split_runs(sizes, 0, len(sizes))
        ]
        if self._workers > 1:
            with Workers(self._workers) as workers:
                found = [task.result() for task in [workers.submit(task) for task in tasks]]
        else:
            found = [task() for task in tasks]
        return wire.join_tables(found, wire.CUT_WIDTH)

    # -- decoding -----------------------------------------------------------------------------------------------------

    def _tasks(self) -> Iterator[tuple[int, int, Callable[[_Part], None]]]:
        """Each task's first range, one past its last, and the task, which decodes them into a given part."""
        line = list(self.ranges[:, wire.RANGE_LINE])
        sizes = [stop - start for start, stop in zip(self._starts, self._stops, strict=True)]
        begin = 0
        for _, last_line, lookups in self._planes:
            end = begin
            while end < len(line) and line[end] < last_line:
                end += 1
            for first, last in _split_runs(sizes, begin, end):
                yield first, last, partial(self._decode_ranges, first, last, lookups)
            begin = end

    def _decode_ranges(self, first: int, last: int, lookups: wire.Lookups, part: _Part) -> None:
        runs = [(low, high, self._starts[low], self._stops[high - 1]) for low, high in self._close_ranges(first, last)]
        room = part.room_for(sum(stop - start for *_, start, stop in runs))
        for low, high, start, stop in runs:
            wire.decode_events(
                self._source.read(start, stop, room), start, self.ranges[low:high], self._zero_ps, schema.TIME_LIMIT_PS,
                lookups, self.events, part.stats, self.outcome[low:high],
            )  # fmt: skip
            room = room[stop - start :]

    def _close_ranges(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Splits the ranges `first:last` where much lies between them; yields the bounds of each run."""
        begin = first
        for row in range(first + 1, last):
            if not 0 <= self._starts[row] - self._stops[row - 1] <= _MOST_BETWEEN:
                yield begin, row
                begin = row
        if begin < last:
            yield begin, last

    def _decode_alone(self, part: _Part, strings: Interner) -> None:
        for first, last, task in self._tasks():
            task(part)
            part.stats.intern(strings.table)
            self._advance(first, last)

    def _decode_in_threads(self, stats: wire.StatTable, strings: Interner) -> None:
        """Decodes on several threads, and merges their results in the order of the file, as on one thread.

        The kernels release the interpreter's lock.  Only as many parts are decoded ahead as keep all threads busy.
        """
        free = [_Part(wire.StatTable(strings.seed)) for _ in range(2 * self._workers)]
        running: deque[tuple[int, int, _Part, ThreadWork[None]]] = deque()
        with Workers(self._workers) as workers:

            def take_over() -> None:
                first, last, part, done = running.popleft()
                done.result()
                part.stats.intern(strings.table)
                self._shift_offsets(first, last, stats.size)
                stats.append(part.stats)
                free.append(part)
                self._advance(first, last)

            for first, last, task in self._tasks():
                if not free:
                    take_over()
                part = free.pop()
                running.append((first, last, part, workers.submit(partial(task, part))))
            while running:
                take_over()

    def _shift_offsets(self, first: int, last: int, by: int) -> None:
        """Moves the stat offsets of the events of some ranges by `by` rows, in place."""
        end = self.ranges[last - 1, wire.RANGE_ROW] + self.ranges[last - 1, wire.RANGE_ROOM]
        self.events.shift(self.ranges[first, wire.RANGE_ROW], end, by)

    def _advance(self, first: int, last: int) -> None:
        """Tells that some ranges are decoded."""
        progress.advance(sum(self._stops[first:last]) - sum(self._starts[first:last]))


def _split_runs(sizes: Sequence[int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Splits the rows `first:last` into runs of about `_PART_BYTES`; yields the bounds of each."""
    begin, part = first, None
    for row, size in enumerate(accumulate(sizes[first:last]), first):
        if part is not None and size // _PART_BYTES != part:
            yield begin, row
            begin = row
        part = size // _PART_BYTES
    if first < last:
        yield begin, last
