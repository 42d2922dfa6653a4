"""The levels of detail behind the timeline.

A line is drawn as rows, such that no two events of a row overlap.  At level `e` a row is cut into cells of 2^e ps,
counted from time 0.  An event shorter than a cell is *small*.  Small events that are neighbours in their row and start
in the same cell are one slice; every other event is a slice by itself.  So a slice of several events never spans much
more than a cell, a row of `c` cells has at most `2 c + 1` slices, and slices of a level are made of whole slices of any
finer level.

A row stores its slices at a few levels, each with at most half as many as the one before.  What lies between two stored
levels is merged from the finer one when somebody asks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepscope.kernels.compiling import compiled

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

SPARSE = 8
"""The finest stored level has at most one slice for so many events."""

LEVELS = 64
"""No cell is wider than 2^62 ps."""

_FREE = np.iinfo(np.int64).min


class Rows(NamedTuple):
    """The events of each row, in order of time.

    Attributes:
        start, duration: int64 of shape (events,), ps.
        order: int32 of shape (drawn events,), event rows.
        begin: int64 of shape (rows + 1,), where the events of each row begin in `order`.
    """

    start: I64
    duration: I64
    order: I32
    begin: I64


class Levels(NamedTuple):
    """Which levels each row stores, the finest first.

    Attributes:
        first: int64 of shape (rows + 1,), where the levels of each row begin in the other two.
        exponent: int64 of shape (levels,), the level.
        begin: int64 of shape (levels + 1,), where the slices of each level begin.
    """

    first: I64
    exponent: I64
    begin: I64


class Slices(NamedTuple):
    """Slices, as equally long columns.

    Attributes:
        start, end: int64, ps, begin of the first and end of the last event.
        busy: float64, ps, time within the slice that its events take.
        events: int32, how many events.
        longest: int32, event row of the longest, of equals the first.
    """

    start: I64
    end: I64
    busy: NDArray[np.float64]
    events: I32
    longest: I32

    @classmethod
    def room(cls, slices: int) -> Slices:
        """Columns to be filled."""
        wide, narrow = np.empty((2, slices), np.int64), np.empty((2, slices), np.int32)
        return cls(wide[0], wide[1], np.empty(slices), narrow[0], narrow[1])


class Places(NamedTuple):
    """Where the answer to a window comes from; each int64 of shape (rows asked for,).

    Attributes:
        source: a stored level, or -1 for the events themselves.
        first, stop: the slices of that level, or places in `Rows.order`, that start in the window.
        before: the event that reaches into the window from before it, or -1; of a row there is at most one.
    """

    source: I64
    first: I64
    stop: I64
    before: I64


@compiled
def lanes(start, duration, drawn, line_begin, line_end, first, free_at, lane, n_lanes):  # type: ignore[no-untyped-def]
    """Puts every event on the first lane of its line that is free when it starts, line by line from the line `first`.

    Calls that nest get the depth of their nesting; events that overlap otherwise get a lane each.

    Args:
        start, duration: int64 of shape (events,), ps; sorted within each line by start, at one start the longer first.
        drawn: bool of shape (events,); others get lane -1.
        line_begin, line_end: int64 of shape (lines,), event rows.
        first: the line to begin with.
        free_at: int64, twice as long as there may be lanes in a line, which is a power of two; scratch.
        lane: int32 of shape (events,), receives the lanes.
        n_lanes: int64 of shape (lines,), receives how many lanes each line has.

    Returns:
        the first line that needs more lanes than there may be; the number of lines if there is none.
    """
    size = len(free_at) // 2  # a tree of minima; its leaves, from `size` on, say when each lane is free
    for line in range(first, len(line_begin)):
        used = 0
        for at in range(len(free_at)):
            free_at[at] = _FREE
        for event in range(line_begin[line], line_end[line]):
            if not drawn[event]:
                lane[event] = -1
                continue
            begin = start[event]
            if free_at[1] > begin:
                return line
            at = 1
            while at < size:
                at *= 2
                if free_at[at] > begin:
                    at += 1
            lane[event] = at - size
            used = max(used, at - size + 1)
            free_at[at] = begin + duration[event]
            at //= 2
            while at > 0:
                free_at[at] = min(free_at[2 * at], free_at[2 * at + 1])
                at //= 2
        n_lanes[line] = used
    return len(line_begin)


@compiled
def sort_into_rows(lane, line_begin, line_end, first_row, row_begin, place, order):  # type: ignore[no-untyped-def]
    """Lists the events of each row in order of time.

    Args:
        lane: int32 of shape (events,), -1 for events that are not drawn.
        line_begin, line_end: int64 of shape (lines,), event rows.
        first_row: int64 of shape (lines + 1,), the row of each line's lane 0.
        row_begin: int64 of shape (rows + 1,), zeros; receives where the events of each row begin in `order`.
        place: int64 of shape (rows,); scratch.
        order: int32 of shape (events that are drawn,), receives event rows.
    """
    for line in range(len(line_begin)):
        for event in range(line_begin[line], line_end[line]):
            if lane[event] >= 0:
                row_begin[first_row[line] + lane[event] + 1] += 1
    for row in range(1, len(row_begin)):
        row_begin[row] += row_begin[row - 1]
        place[row - 1] = row_begin[row - 1]
    for line in range(len(line_begin)):
        for event in range(line_begin[line], line_end[line]):
            if lane[event] >= 0:
                row = first_row[line] + lane[event]
                order[place[row]] = event
                place[row] += 1


@compiled
def _bits(value):  # type: ignore[no-untyped-def]
    """How many bits a number has; 64 for a negative one."""
    if value < 0:
        return 64
    count = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if value >> shift:
            value >>= shift
            count += shift
    return count + (1 if value else 0)


@compiled
def plan_levels(rows, joins, first, exponent, size):  # type: ignore[no-untyped-def]
    """Chooses which levels each row stores, and how many slices each has.

    Two neighbours in a row are one slice from the level on at which both are small and start in one cell, which the
    bits of their times tell.  One pass therefore counts the slices of all levels.

    Args:
        rows: Rows.
        joins: int64 of shape (LEVELS + 1,); scratch.
        first: int64 of shape (rows + 1,), receives where the levels of each row begin.
        exponent, size: int64 of shape (room,), receive the levels, finest first, and their numbers of slices.

    Returns:
        number of levels, all rows together.  At most one a row and binary digit of its number of events.
    """
    count = 0
    for row in range(len(rows.begin) - 1):
        first[row] = count
        slices = rows.begin[row + 1] - rows.begin[row]
        limit = slices // SPARSE
        for level in range(LEVELS + 1):
            joins[level] = 0
        for at in range(rows.begin[row] + 1, rows.begin[row + 1]):
            a = rows.order[at - 1]
            b = rows.order[at]
            longer = max(rows.duration[a], rows.duration[b])
            joins[max(_bits(longer), _bits(rows.start[a] ^ rows.start[b]))] += 1
        for level in range(LEVELS - 1):
            slices -= joins[level]
            if 0 < slices <= limit:
                exponent[count] = level
                size[count] = slices
                count += 1
                limit = slices // 2
    first[len(rows.begin) - 1] = count
    return count


@compiled
def _merge_events(rows, first, stop, level, at, out):  # type: ignore[no-untyped-def]
    """Slices of the events `order[first:stop]` at a level, written from place `at` on; returns one past the last."""
    width = np.int64(1) << level
    cell = np.int64(0)
    is_open = False
    for place in range(first, stop):
        event = rows.order[place]
        begin = rows.start[event]
        length = rows.duration[event]
        small = length < width
        if is_open and small and (begin >> level) == cell:
            out.end[at - 1] = begin + length
            out.busy[at - 1] += length
            out.events[at - 1] += 1
            if length > rows.duration[out.longest[at - 1]]:
                out.longest[at - 1] = event
            continue
        out.start[at] = begin
        out.end[at] = begin + length
        out.busy[at] = length
        out.events[at] = 1
        out.longest[at] = event
        at += 1
        is_open = small
        cell = begin >> level
    return at


@compiled
def _merge_slices(duration, slices, first, stop, level, at, out):  # type: ignore[no-untyped-def]
    """The same of the slices `first:stop` of a finer level."""
    width = np.int64(1) << level
    cell = np.int64(0)
    is_open = False
    for place in range(first, stop):
        longest = slices.longest[place]
        begin = slices.start[place]
        small = slices.events[place] > 1 or duration[longest] < width
        if is_open and small and (begin >> level) == cell:
            out.end[at - 1] = slices.end[place]
            out.busy[at - 1] += slices.busy[place]
            out.events[at - 1] += slices.events[place]
            if duration[longest] > duration[out.longest[at - 1]]:
                out.longest[at - 1] = longest
            continue
        out.start[at] = begin
        out.end[at] = slices.end[place]
        out.busy[at] = slices.busy[place]
        out.events[at] = slices.events[place]
        out.longest[at] = longest
        at += 1
        is_open = small
        cell = begin >> level
    return at


@compiled
def build_levels(rows, levels, slices):  # type: ignore[no-untyped-def]
    """Fills the stored levels, each from the one before.

    Args:
        rows: Rows; levels: Levels.
        slices: Slices, the columns to fill.
    """
    for row in range(len(rows.begin) - 1):
        for level in range(levels.first[row], levels.first[row + 1]):
            at = levels.begin[level]
            exponent = levels.exponent[level]
            if level == levels.first[row]:
                _merge_events(rows, rows.begin[row], rows.begin[row + 1], exponent, at, slices)
            else:
                _merge_slices(rows.duration, slices, levels.begin[level - 1], at, exponent, at, slices)


@compiled
def locate(begin, end, wanted, asked, rows, levels, slices, places):  # type: ignore[no-untyped-def]
    """Where the answer to a window comes from, for each row.

    The window is widened to whole cells of the row's level, so that it cuts no slice that starts in it.

    Args:
        begin, end: int64, ps, the window.
        wanted, asked: int64 of shape (n,), the rows and the level of each.
        rows: Rows; levels: Levels; slices: Slices.
        places: Places, receives the answer.
    """
    for i in range(len(wanted)):
        row = wanted[i]
        left = (begin >> asked[i]) << asked[i]
        right = ((end + (np.int64(1) << asked[i]) - 1) >> asked[i]) << asked[i]
        found = -1
        for stored in range(levels.first[row], levels.first[row + 1]):
            if levels.exponent[stored] <= asked[i]:
                found = stored
        low = rows.begin[row]
        high = rows.begin[row + 1]
        while low < high:
            middle = (low + high) // 2
            if rows.start[rows.order[middle]] < left:
                low = middle + 1
            else:
                high = middle
        places.source[i] = found
        places.before[i] = -1
        if low > rows.begin[row]:
            event = rows.order[low - 1]
            if rows.start[event] + rows.duration[event] > left:
                places.before[i] = event
        high = rows.begin[row + 1]
        if found >= 0:
            low = levels.begin[found]
            high = levels.begin[found + 1]
            while low < high:
                middle = (low + high) // 2
                if slices.start[middle] < left:
                    low = middle + 1
                else:
                    high = middle
            high = levels.begin[found + 1]
        places.first[i] = low
        while low < high:
            middle = (low + high) // 2
            if (slices.start[middle] if found >= 0 else rows.start[rows.order[middle]]) < right:
                low = middle + 1
            else:
                high = middle
        places.stop[i] = low


@compiled
def window(asked, places, rows, slices, out_begin, out):  # type: ignore[no-untyped-def]
    """The slices that `locate` found, merged to the level of each row.

    Args:
        asked: int64 of shape (n,), levels; places: Places; rows: Rows; slices: Slices.
        out_begin: int64 of shape (n + 1,), receives where the slices of each row begin.
        out: Slices, the columns to fill.
    """
    at = 0
    for i in range(len(asked)):
        out_begin[i] = at
        event = places.before[i]
        if event >= 0:
            out.start[at] = rows.start[event]
            out.end[at] = rows.start[event] + rows.duration[event]
            out.busy[at] = rows.duration[event]
            out.events[at] = 1
            out.longest[at] = event
            at += 1
        if places.source[i] >= 0:
            at = _merge_slices(rows.duration, slices, places.first[i], places.stop[i], asked[i], at, out)
        else:
            at = _merge_events(rows, places.first[i], places.stop[i], asked[i], at, out)
    out_begin[len(asked)] = at


@compiled
def unite(start, duration, drawn, line_begin, line_end, first, u_start, u_busy):  # type: ignore[no-untyped-def]
    """The times during which each line has any event, as disjoint spans.

    Args:
        start, duration, drawn, line_begin, line_end: as for `lanes`.
        first: int64 of shape (lines + 1,), receives where the spans of each line begin.
        u_start: int64 with room for all events and one more a line, receives where spans begin; behind those of a line
            stands the end of its last span.
        u_busy: int64 of the same shape, receives how much of the line is covered before each of these times.
    """
    at = 0
    for line in range(len(line_begin)):
        first[line] = at
        covered = np.int64(0)
        is_open = False
        stop = np.int64(0)
        for event in range(line_begin[line], line_end[line]):
            if not drawn[event] or duration[event] == 0:
                continue
            end = start[event] + duration[event]
            if is_open and start[event] <= stop:
                stop = max(stop, end)
                continue
            if is_open:
                covered += stop - u_start[at - 1]
            u_start[at] = start[event]
            u_busy[at] = covered
            at += 1
            stop = end
            is_open = True
        if is_open:
            u_start[at] = stop
            u_busy[at] = covered + stop - u_start[at - 1]
            at += 1
    first[len(line_begin)] = at


@compiled
def cover(first, u_start, u_busy, lines, begin, level, load):  # type: ignore[no-untyped-def]
    """Adds up how much of each cell lines cover.

    Args:
        first, u_start, u_busy: what `unite` made.
        lines: int64 of shape (n,), the lines to add up.
        begin: int64, ps, start of the first cell; level: a cell has 2^level ps.
        load: float64 of shape (cells,), receives the sums in ps.
    """
    for i in range(len(lines)):
        low = first[lines[i]]
        stop = first[lines[i] + 1]
        if low == stop:
            continue
        earlier = np.int64(0)
        for cell in range(len(load) + 1):
            time = begin + (np.int64(cell) << level)
            high = stop
            if cell > 0:  # the next edge is mostly near the last one
                step = 1
                while low + step < stop and u_start[low + step] <= time:
                    step *= 2
                high = min(stop, low + step)
            while low < high:
                middle = (low + high) // 2
                if u_start[middle] <= time:
                    low = middle + 1
                else:
                    high = middle
            covered = np.int64(0)
            if low > first[lines[i]]:
                covered = u_busy[low - 1]
                if low < stop:
                    covered += min(time - u_start[low - 1], u_busy[low] - u_busy[low - 1])
            if cell > 0:
                load[cell - 1] += covered - earlier
            earlier = covered
            low = max(first[lines[i]], low - 1)
