"""The index that answers windows: which row every event is drawn in, and slices at several levels of detail.

It takes about 16 bytes an event and a pass or two over the events; see `stepscope.kernels.pyramid` for how slices come
about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stepscope import kernels
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import F64, I32, I64, Mask, offsets_of
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.kernels.pyramid import Levels, Rows, Slices


COARSEST = 56
"""The widest cell has 2^56 ps, twenty hours."""

_USUAL_LANES = 16
"""Most lines have no more; a power of two."""


@dataclass(frozen=True)
class Index:
    """Rows and levels of one trace; a row belongs to one line.

    Attributes:
        lane: int32 of shape (events,), the row of its line that an event is drawn in, -1 if it is not drawn.
        first_row: int64 of shape (lines + 1,), the first row of each line.
        rows, levels, slices: see `stepscope.kernels.pyramid`.
    """

    lane: I32
    first_row: I64
    rows: Rows
    levels: Levels
    slices: Slices

    @property
    def nbytes(self) -> int:
        """Memory that it takes, besides the trace."""
        own = (self.lane, self.first_row, self.rows.order, self.rows.begin, *self.levels, *self.slices)
        return sum(array.nbytes for array in own)

    @property
    def n_rows(self) -> int:
        """How many rows all lines have together."""
        return len(self.rows.begin) - 1

    def rows_of(self, line: int) -> int:
        """How many rows a line has."""
        return int(self.first_row[line + 1] - self.first_row[line])

    def events_of(self, line: int) -> int:
        """How many events of a line are drawn."""
        rows = self.rows.begin[self.first_row[line : line + 2]]
        return int(rows[1] - rows[0])


@dataclass(frozen=True)
class Window:
    """Slices of some rows.  Row `i` has the slices `row_begin[i]:row_begin[i + 1]`, in order of time.

    A slice is one event, or neighbours that are each shorter than a cell of its level.  Its extent is from the begin of
    the first to the end of the last of them.

    Attributes:
        rows: int64 of shape (n,), as asked for.
        levels: int64 of shape (n,), the level of each row; a cell of level e has 2^e ps.
        row_begin: int64 of shape (n + 1,).
        start_ps, end_ps: int64 of shape (slices,).
        busy_ps: float64 of shape (slices,), time within the slice that its events take.
        count: int32 of shape (slices,), its events.
        event: int32 of shape (slices,), the row of the longest event, of equals the first.
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
    """Events that have a place on the timeline: not sums of many occurrences, not values of counters."""
    return trace.derived("timeline drawn", _is_drawn)


def _is_drawn(trace: HostTrace) -> Mask:
    counters = trace.lines.kind == LineKind.COUNTERS
    drawn: Mask = (trace.events.kind != EventKind.AGGREGATE) & ~counters[trace.events.line]
    return drawn


def index_of(trace: HostTrace) -> Index:
    """The index of a trace, built once."""
    return trace.derived("timeline index", _build)


def _build(trace: HostTrace) -> Index:
    pyramid, events, lines = kernels.pyramid, trace.events, trace.lines
    bounds = lines.event_begin, lines.event_end
    lane, n_lanes = _lanes(trace)
    first_row = offsets_of(n_lanes)
    row_begin = np.zeros(first_row[-1] + 1, np.int64)
    order = np.empty(int(is_drawn(trace).sum()), np.int32)
    pyramid.sort_into_rows(lane, *bounds, first_row, row_begin, np.empty(first_row[-1], np.int64), order)

    rows = pyramid.Rows(events.start_ps, events.duration_ps, order, row_begin)
    most_levels = int(np.ceil(np.log2(np.maximum(np.diff(row_begin), 1))).sum())
    level_first = np.zeros(len(row_begin), np.int64)
    exponent, size = np.empty(most_levels, np.int64), np.empty(most_levels, np.int64)
    n_levels = pyramid.plan_levels(rows, np.empty(pyramid.LEVELS + 1, np.int64), level_first, exponent, size)
    levels = pyramid.Levels(level_first, exponent[:n_levels].copy(), offsets_of(size[:n_levels]))
    slices = pyramid.Slices.room(int(levels.begin[-1]))
    pyramid.build_levels(rows, levels, slices)
    return Index(lane, first_row, rows, levels, slices)


def _lanes(trace: HostTrace) -> tuple[I32, I64]:
    """The lane of every event, and how many each line has."""
    events, bounds = trace.events, (trace.lines.event_begin, trace.lines.event_end)
    lane, n_lanes = np.empty(len(events), np.int32), np.zeros(len(trace.lines), np.int64)
    done, room = 0, _USUAL_LANES
    while done < len(n_lanes):
        done = kernels.pyramid.lanes(
            events.start_ps, events.duration_ps, is_drawn(trace), *bounds, done, np.empty(2 * room, np.int64), lane,
            n_lanes,
        )  # fmt: skip
        room *= 2
    return lane, n_lanes


def level_for(begin_ps: int, end_ps: int, width: int) -> int:
    """The finest level at which a window has no more cells than pixels."""
    per_pixel = max(1, -(-(end_ps - begin_ps) // width))
    return min(COARSEST, (per_pixel - 1).bit_length())


def window(trace: HostTrace, begin_ps: int, end_ps: int, rows: Sequence[int] | I64, width: int, most: int) -> Window:
    """The slices of some rows in a window of time, at most `most` of them.

    All of the window is answered for every row: where the slices at a cell a pixel would be too many, the rows with
    most of them get wider cells.  For each row the answer holds exactly the events that overlap the window, widened to
    whole cells of the row's level: the counts of the row's slices add up to their number.

    Args:
        trace: the trace.
        begin_ps, end_ps: the window.
        rows: rows of the index.
        width: pixels that the window has on the screen.
        most: the most slices that the answer may hold; at least four a row are needed.

    Raises:
        UsageError: the window is empty, the width is not positive, or there are too many rows for `most`.
    """
    if end_ps <= begin_ps or width < 1:
        raise UsageError(f"no window of time: {begin_ps} to {end_ps} ps in {width} pixels")
    if 4 * len(rows) > most:
        raise UsageError(f"{len(rows)} rows are too many for one answer", hint=f"ask for at most {most // 4} at a time")
    index, pyramid = index_of(trace), kernels.pyramid
    wanted = np.asarray(rows, np.int64)
    levels = np.full(len(wanted), level_for(begin_ps, end_ps, width), np.int64)
    places = pyramid.Places(*np.empty((4, len(wanted)), np.int64))

    def locate() -> I64:
        """Fills `places`; returns how many slices each row has at most."""
        pyramid.locate(begin_ps, end_ps, wanted, levels, index.rows, index.levels, index.slices, places)
        cells = ((end_ps - begin_ps) >> levels) + 2
        bound: I64 = np.minimum(places.stop - places.first, 2 * cells) + (places.before >= 0)
        return bound

    bound = locate()
    cap = _cap(bound, most)
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


def _cap(bound: I64, most: int) -> int:
    """The most slices that a row may have so that all rows together have at most `most`: what modest rows leave is
    shared by the others."""
    if bound.sum() <= most:
        return most
    ascending = np.sort(bound)
    left = most - np.concatenate([[0], np.cumsum(ascending)[:-1]])
    share = left // np.arange(len(ascending), 0, -1)
    return max(4, int(share[ascending > share][0]))
