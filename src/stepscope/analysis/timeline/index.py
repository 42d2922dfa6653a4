"""The index that answers windows: which row every event is drawn in, and slices at several levels of detail.

It takes about 16 bytes per event and one or two passes over the events.  `stepscope.kernels.pyramid` explains how
slices are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.columns import is_call_with
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import F64, I32, I64, Mask, look_up, offsets_of
from stepscope.records import dataclass
from stepscope.vocabulary.traits import CodeTrait

if TYPE_CHECKING:
    from stepscope.kernels.pyramid import EventRows, Levels, Slices


COARSEST = 56
"""The level of the widest cells, of 2^56 ps: twenty hours."""

_USUAL_LANES = 16
"""Most lines need no more; a power of two."""


@dataclass(frozen=True)
class Index:
    """The rows and levels of one trace.  A row belongs to one line.

    Attributes:
        lane: int32 of shape (events,), the row of its line in which an event is drawn; -1 if it is not drawn.
        first_row: int64 of shape (lines + 1,), the first row of each line.
        rows, levels, slices: see `stepscope.kernels.pyramid`.
    """

    lane: I32
    first_row: I64
    rows: EventRows
    levels: Levels
    slices: Slices

    @property
    def nbytes(self) -> int:
        """The memory that it takes in addition to the trace."""
        own = (self.lane, self.first_row, self.rows.order, self.rows.begin, *self.levels, *self.slices)
        return sum(array.nbytes for array in own)

    @property
    def n_rows(self) -> int:
        """The number of rows of all lines."""
        return len(self.rows.begin) - 1

    def row_count(self, line: int) -> int:
        """The number of rows of a line."""
        return int(self.first_row[line + 1] - self.first_row[line])

    def event_count(self, line: int) -> int:
        """The number of events of a line that are drawn."""
        rows = self.rows.begin[self.first_row[line : line + 2]]
        return int(rows[1] - rows[0])


@dataclass(frozen=True)
class Window:
    """Slices of some rows.  Row `i` has the slices `row_begin[i]:row_begin[i + 1]`, in order of time.

    A slice is one event, or neighbours that are each shorter than a cell of its level.  It extends from the start of
    the first to the end of the last of them.

    Attributes:
        rows: int64 of shape (n,), as requested.
        levels: int64 of shape (n,), the level of each row; a cell of level e has 2^e ps.
        row_begin: int64 of shape (n + 1,).
        start_ps, end_ps: int64 of shape (slices,).
        busy_ps: float64 of shape (slices,), the time within the slice that its events take.
        count: int32 of shape (slices,), the number of its events.
        event: int32 of shape (slices,), the row of its longest event, the first if several are equal.
    """

    rows: I64
    levels: I64
    row_begin: I64
    start_ps: I64
    end_ps: I64
    busy_ps: F64
    count: I32
    event: I32


def is_drawn(trace: HostTrace) -> Mask:
    """Which events the timeline draws: not sums of many occurrences, not values of counters."""
    return trace.derived("timeline drawn", _is_drawn)


def _is_drawn(trace: HostTrace) -> Mask:
    counters = trace.lines.kind == LineKind.COUNTERS
    drawn: Mask = (trace.events.kind != EventKind.AGGREGATE) & look_up(~counters, trace.events.line)
    return drawn


def is_own_code(trace: HostTrace) -> Mask:
    """Which events are drawn where only the program's own Python calls are: all but those of libraries."""
    return trace.derived("timeline own code", _is_own_code)


def _is_own_code(trace: HostTrace) -> Mask:
    python = trace.events.kind == EventKind.PYTHON_CALL
    shown: Mask = is_drawn(trace) & (~python | is_call_with(trace, CodeTrait.OF_USER))
    return shown


def index_of(trace: HostTrace, own_code: bool = False) -> Index:
    """The index of a trace, which is built once.

    With `own_code`, the Python calls of libraries are folded: what they enclose moves up into their rows.
    """
    if own_code and has_library_calls(trace):
        return trace.derived("timeline index of own code", lambda host: _build_index(host, is_own_code(host)))
    return trace.derived("timeline index", lambda host: _build_index(host, is_drawn(host)))


def has_library_calls(trace: HostTrace) -> bool:
    """Whether there are calls to fold, beside some of the program's own."""
    return trace.derived("timeline has library calls", _has_library_calls)


def _has_library_calls(trace: HostTrace) -> bool:
    own = is_call_with(trace, CodeTrait.OF_USER)
    return bool(own.any()) and bool((is_drawn(trace) & ~is_own_code(trace)).any())


def _build_index(trace: HostTrace, shown: Mask) -> Index:
    events, lines = trace.events, trace.lines
    return lay_out(events.start_ps, events.duration_ps, shown, lines.event_begin, lines.event_end)


def lay_out(start: I64, duration: I64, shown: Mask, line_begin: I64, line_end: I64) -> Index:
    """Lays spans out in rows, and builds the levels of the rows.

    Args:
        start, duration: int64 of shape (spans,), ps; on each line in order of start, at one start the longer first.
        shown: bool of shape (spans,), which of them are drawn.
        line_begin, line_end: int64 of shape (lines,), the spans of each line.
    """
    pyramid = kernels.pyramid
    lane, n_lanes = _assign_lanes(start, duration, shown, line_begin, line_end)
    first_row = offsets_of(n_lanes)
    row_begin = np.zeros(first_row[-1] + 1, np.int64)
    order = np.empty(int(shown.sum()), np.int32)
    pyramid.sort_into_rows(lane, line_begin, line_end, first_row, row_begin, np.empty(first_row[-1], np.int64), order)

    rows = pyramid.EventRows(start, duration, order, row_begin)
    most_levels = int(np.ceil(np.log2(np.maximum(np.diff(row_begin), 1))).sum())
    level_first = np.zeros(len(row_begin), np.int64)
    exponent, size = np.empty(most_levels, np.int64), np.empty(most_levels, np.int64)
    n_levels = pyramid.plan_levels(rows, np.empty(pyramid.LEVELS + 1, np.int64), level_first, exponent, size)
    levels = pyramid.Levels(level_first, exponent[:n_levels].copy(), offsets_of(size[:n_levels]))
    slices = pyramid.Slices.room(int(levels.begin[-1]))
    pyramid.build_levels(rows, levels, slices)
    return Index(lane, first_row, rows, levels, slices)


def _assign_lanes(start: I64, duration: I64, shown: Mask, line_begin: I64, line_end: I64) -> tuple[I32, I64]:
    """The lane of every span, and the number of lanes of each line."""
    lane, n_lanes = np.empty(len(start), np.int32), np.zeros(len(line_begin), np.int64)
    done, room = 0, _USUAL_LANES
    while done < len(n_lanes):
        done = kernels.pyramid.lanes(
            start, duration, shown, line_begin, line_end, done, np.empty(2 * room, np.int64), lane, n_lanes
        )
        room *= 2
    return lane, n_lanes


def level_for(begin_ps: int, end_ps: int, width: int) -> int:
    """The finest level at which a window has no more cells than pixels."""
    per_pixel = max(1, -(-(end_ps - begin_ps) // width))
    return min(COARSEST, (per_pixel - 1).bit_length())


def find_slices(
    trace: HostTrace,
    begin_ps: int,
    end_ps: int,
    rows: Sequence[int] | I64,
    width: int,
    most: int,
    own_code: bool = False,
) -> Window:
    """The slices of some rows in a window of time, at most `most` of them.

    Every row gets the whole window.  With one cell per pixel there may be too many slices; the rows with most of them
    then get wider cells.  A row's slices hold exactly the events that overlap the window, widened to whole cells of the
    row's level, so their counts add up to the number of these events.

    Args:
        trace: the trace.
        begin_ps, end_ps: the window.
        rows: rows of the index.
        width: the pixels of the window on the screen.
        most: the most slices that the answer may hold; each row needs at least four.
        own_code: see `index_of`.

    Raises:
        UsageError: the window is empty, the width is not positive, or there are too many rows for `most`.
    """
    return cut_window(index_of(trace, own_code), begin_ps, end_ps, rows, width, most)


def cut_window(index: Index, begin_ps: int, end_ps: int, rows: Sequence[int] | I64, width: int, most: int) -> Window:
    """The same for any index."""
    if end_ps <= begin_ps or width < 1:
        raise UsageError(f"the window from {begin_ps} to {end_ps} ps in {width} pixels is empty")
    if 4 * len(rows) > most:
        raise UsageError(f"{len(rows)} rows are too many for one answer", hint=f"request at most {most // 4} at a time")
    pyramid = kernels.pyramid
    wanted = np.asarray(rows, np.int64)
    levels = np.full(len(wanted), level_for(begin_ps, end_ps, width), np.int64)
    places = pyramid.Places(*np.empty((4, len(wanted)), np.int64))

    def locate() -> I64:
        """Fills `places`; returns the most slices that each row may have."""
        pyramid.locate(begin_ps, end_ps, wanted, levels, index.rows, index.levels, index.slices, places)
        cells = ((end_ps - begin_ps) >> levels) + 2
        bound: I64 = np.minimum(places.stop - places.first, 2 * cells) + (places.before >= 0)
        return bound

    bound = locate()
    cap = _most_per_row(bound, most)
    while (over := (bound > cap) & (levels < COARSEST)).any():
        levels[over] += 1
        bound = locate()
    row_begin = np.zeros(len(wanted) + 1, np.int64)
    out = pyramid.Slices.room(int(bound.sum()))
    pyramid.window(levels, places, index.rows, index.slices, row_begin, out)
    stop = int(row_begin[-1])
    return Window(
        wanted, levels, row_begin, out.start[:stop], out.end[:stop], out.busy[:stop], out.events[:stop],
        out.longest[:stop],
    )  # fmt: skip


def _most_per_row(bound: I64, most: int) -> int:
    """The most slices that a row may have, so that all rows together have at most `most`.  Rows that need less leave
    the rest to the others."""
    if bound.sum() <= most:
        return most
    ascending = np.sort(bound)
    left = most - np.concatenate([[0], np.cumsum(ascending)[:-1]])
    share = left // np.arange(len(ascending), 0, -1)
    return max(4, int(share[ascending > share][0]))
