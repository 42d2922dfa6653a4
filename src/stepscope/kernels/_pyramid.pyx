"""The loops behind the timeline's levels of detail; see `stepscope.kernels.pyramid`."""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint64_t

cpdef enum:
    SPARSE = 8  # the finest stored level has at most one slice for so many events
    LEVELS = 64  # no cell is wider than 2^62 ps


cdef class Rows:
    """The events of each row; see `pyramid.Rows`."""

    cdef const int64_t[::1] start, duration, begin
    cdef const int32_t[::1] order

    def __init__(self, start, duration, order, begin):
        self.start, self.duration, self.order, self.begin = start, duration, order, begin


cdef class Levels:
    """Which levels each row stores; see `pyramid.Levels`."""

    cdef const int64_t[::1] first, exponent, begin

    def __init__(self, first, exponent, begin):
        self.first, self.exponent, self.begin = first, exponent, begin


cdef class Slices:
    """Slices, as equally long columns; see `pyramid.Slices`."""

    cdef int64_t[::1] start, end
    cdef double[::1] busy
    cdef int32_t[::1] events, longest

    def __init__(self, start, end, busy, events, longest):
        self.start, self.end, self.busy, self.events, self.longest = start, end, busy, events, longest

    cdef int put(self, int64_t at, int64_t start, int64_t end, double busy, int32_t events, int32_t longest) except -1 nogil:
        self.start[at], self.end[at], self.busy[at] = start, end, busy
        self.events[at], self.longest[at] = events, longest
        return 0


cdef class Places:
    """Where the answer to a window comes from; see `pyramid.Places`."""

    cdef int64_t[::1] source, first, stop, before

    def __init__(self, source, first, stop, before):
        self.source, self.first, self.stop, self.before = source, first, stop, before


# -- building -----------------------------------------------------------------------------------------------------


def lanes(
    const int64_t[::1] start, const int64_t[::1] duration, const uint8_t[::1] drawn, const int64_t[::1] line_begin,
    const int64_t[::1] line_end, int64_t first, int64_t[::1] free_at, int32_t[::1] lane, int64_t[::1] n_lanes,
):
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
    cdef int64_t line = first, event, chosen, used
    with nogil:
        while line < line_begin.shape[0]:
            used = 0
            free_at[:] = INT64_MIN
            for event in range(line_begin[line], line_end[line]):
                if not drawn[event]:
                    lane[event] = -1
                    continue
                if free_at[1] > start[event]:
                    break
                chosen = _take_lane(free_at, start[event], start[event] + duration[event])
                lane[event] = <int32_t>chosen
                used = max(used, chosen + 1)
            else:
                n_lanes[line] = used
                line += 1
                continue
            break
    return line


cdef int64_t _take_lane(int64_t[::1] free_at, int64_t begin, int64_t end) except -1 nogil:
    """The first lane that is free at a time, which it is not any more before another one.

    `free_at` is a tree of minima; its leaves, the second half, say when each lane is free.
    """
    cdef int64_t size = free_at.shape[0] // 2, at = 1, lane
    while at < size:
        at *= 2
        at += free_at[at] > begin
    lane = at - size
    free_at[at] = end
    at //= 2
    while at > 0:
        free_at[at] = min(free_at[2 * at], free_at[2 * at + 1])
        at //= 2
    return lane


def sort_into_rows(
    const int32_t[::1] lane, const int64_t[::1] line_begin, const int64_t[::1] line_end, const int64_t[::1] first_row,
    int64_t[::1] row_begin, int64_t[::1] place, int32_t[::1] order,
):
    """Lists the events of each row in order of time.

    Args:
        lane: int32 of shape (events,), -1 for events that are not drawn.
        line_begin, line_end: int64 of shape (lines,), event rows.
        first_row: int64 of shape (lines + 1,), the row of each line's lane 0.
        row_begin: int64 of shape (rows + 1,), zeros; receives where the events of each row begin in `order`.
        place: int64 of shape (rows,); scratch.
        order: int32 of shape (events that are drawn,), receives event rows.
    """
    cdef int64_t line, event, row
    with nogil:
        for line in range(line_begin.shape[0]):
            for event in range(line_begin[line], line_end[line]):
                if lane[event] >= 0:
                    row_begin[first_row[line] + lane[event] + 1] += 1
        for row in range(1, row_begin.shape[0]):
            row_begin[row] += row_begin[row - 1]
            place[row - 1] = row_begin[row - 1]
        for line in range(line_begin.shape[0]):
            for event in range(line_begin[line], line_end[line]):
                if lane[event] >= 0:
                    row = first_row[line] + lane[event]
                    order[place[row]] = <int32_t>event
                    place[row] += 1


cdef inline int _bits(int64_t value) noexcept nogil:
    """How many bits a number has; 64 for a negative one."""
    cdef uint64_t left = <uint64_t>value
    cdef int count = 0, shift = 32
    while shift:
        if left >> shift:
            left >>= shift
            count += shift
        shift //= 2
    return count + <int>left


def plan_levels(Rows rows, int64_t[::1] joins, int64_t[::1] first, int64_t[::1] exponent, int64_t[::1] size):
    """Chooses which levels each row stores, and how many slices each has.

    Two neighbours in a row are one slice from the level on at which both are small and start in one cell, which the
    bits of their times tell.  One pass therefore counts the slices of all levels.

    Args:
        joins: int64 of shape (LEVELS + 1,); scratch.
        first: int64 of shape (rows + 1,), receives where the levels of each row begin.
        exponent, size: int64 of shape (room,), receive the levels, finest first, and their numbers of slices.

    Returns:
        number of levels, all rows together.  At most one a row and binary digit of its number of events.
    """
    cdef int64_t row, level, slices, limit, count = 0
    with nogil:
        for row in range(rows.begin.shape[0] - 1):
            first[row] = count
            slices = rows.begin[row + 1] - rows.begin[row]
            limit = slices // SPARSE
            _count_joins(rows, row, joins)
            for level in range(LEVELS - 1):
                slices -= joins[level]
                if 0 < slices <= limit:
                    exponent[count], size[count] = level, slices
                    count += 1
                    limit = slices // 2
        first[rows.begin.shape[0] - 1] = count
    return count


cdef int _count_joins(Rows rows, int64_t row, int64_t[::1] joins) except -1 nogil:
    """Counts the neighbours of a row by the level from which on they are one slice."""
    cdef int64_t at
    cdef int32_t a, b
    joins[:] = 0
    for at in range(rows.begin[row] + 1, rows.begin[row + 1]):
        a, b = rows.order[at - 1], rows.order[at]
        joins[max(_bits(max(rows.duration[a], rows.duration[b])), _bits(rows.start[a] ^ rows.start[b]))] += 1
    return 0


cdef int64_t _merge_events(Rows rows, int64_t first, int64_t stop, int64_t level, int64_t at, Slices out) except -1 nogil:
    """Slices of the events `order[first:stop]` at a level, written from place `at` on; returns one past the last."""
    cdef int64_t width = <int64_t>1 << level, cell = 0, place, begin, length
    cdef int32_t event
    cdef bint is_open = False
    for place in range(first, stop):
        event = rows.order[place]
        begin, length = rows.start[event], rows.duration[event]
        if is_open and length < width and begin >> level == cell:
            out.end[at - 1] = begin + length
            out.busy[at - 1] += length
            out.events[at - 1] += 1
            if length > rows.duration[out.longest[at - 1]]:
                out.longest[at - 1] = event
            continue
        out.put(at, begin, begin + length, length, 1, event)
        at += 1
        is_open = length < width
        cell = begin >> level
    return at


cdef int64_t _merge_slices(
    const int64_t[::1] duration, Slices slices, int64_t first, int64_t stop, int64_t level, int64_t at, Slices out
) except -1 nogil:
    """The same of the slices `first:stop` of a finer level."""
    cdef int64_t width = <int64_t>1 << level, cell = 0, place, begin
    cdef int32_t longest
    cdef bint is_open = False, is_small
    for place in range(first, stop):
        longest, begin = slices.longest[place], slices.start[place]
        is_small = slices.events[place] > 1 or duration[longest] < width
        if is_open and is_small and begin >> level == cell:
            out.end[at - 1] = slices.end[place]
            out.busy[at - 1] += slices.busy[place]
            out.events[at - 1] += slices.events[place]
            if duration[longest] > duration[out.longest[at - 1]]:
                out.longest[at - 1] = longest
            continue
        out.put(at, begin, slices.end[place], slices.busy[place], slices.events[place], longest)
        at += 1
        is_open = is_small
        cell = begin >> level
    return at


def build_levels(Rows rows, Levels levels, Slices slices):
    """Fills the stored levels, each from the one before."""
    cdef int64_t row, level, at
    with nogil:
        for row in range(rows.begin.shape[0] - 1):
            for level in range(levels.first[row], levels.first[row + 1]):
                at = levels.begin[level]
                if level == levels.first[row]:
                    _merge_events(rows, rows.begin[row], rows.begin[row + 1], levels.exponent[level], at, slices)
                else:
                    _merge_slices(
                        rows.duration, slices, levels.begin[level - 1], at, levels.exponent[level], at, slices
                    )


# -- windows ------------------------------------------------------------------------------------------------------


cdef int64_t _first_event(Rows rows, int64_t low, int64_t high, int64_t time) except -1 nogil:
    """The first place in `order[low:high]` of an event that does not start before a time."""
    cdef int64_t middle
    while low < high:
        middle = (low + high) // 2
        if rows.start[rows.order[middle]] < time:
            low = middle + 1
        else:
            high = middle
    return low


cdef int64_t _first_slice(Slices slices, int64_t low, int64_t high, int64_t time) except -1 nogil:
    """The first of the slices `low:high` that does not start before a time."""
    cdef int64_t middle
    while low < high:
        middle = (low + high) // 2
        if slices.start[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


def locate(
    int64_t begin, int64_t end, const int64_t[::1] wanted, const int64_t[::1] asked, Rows rows, Levels levels,
    Slices slices, Places places,
):
    """Where the answer to a window comes from, for each row.

    The window is widened to whole cells of the row's level, so that it cuts no slice that starts in it.

    Args:
        begin, end: int64, ps, the window.
        wanted, asked: int64 of shape (n,), the rows and the level of each.
        places: receives the answer.
    """
    cdef int64_t i, row, left, right, found, stored, low
    with nogil:
        for i in range(wanted.shape[0]):
            row = wanted[i]
            left = (begin >> asked[i]) << asked[i]
            right = ((end + (<int64_t>1 << asked[i]) - 1) >> asked[i]) << asked[i]
            found = -1
            for stored in range(levels.first[row], levels.first[row + 1]):
                if levels.exponent[stored] <= asked[i]:
                    found = stored
            low = _first_event(rows, rows.begin[row], rows.begin[row + 1], left)
            places.source[i] = found
            places.before[i] = _reaching(rows, rows.begin[row], low, left)
            if found >= 0:
                places.first[i] = _first_slice(slices, levels.begin[found], levels.begin[found + 1], left)
                places.stop[i] = _first_slice(slices, places.first[i], levels.begin[found + 1], right)
            else:
                places.first[i] = low
                places.stop[i] = _first_event(rows, low, rows.begin[row + 1], right)


cdef int64_t _reaching(Rows rows, int64_t first, int64_t place, int64_t time) except -2 nogil:
    """The event before a place of a row, if it ends after a time; else -1."""
    cdef int32_t event
    if place <= first:
        return -1
    event = rows.order[place - 1]
    return event if rows.start[event] + rows.duration[event] > time else -1


def window(const int64_t[::1] asked, Places places, Rows rows, Slices slices, int64_t[::1] out_begin, Slices out):
    """The slices that `locate` found, merged to the level of each row.

    Args:
        asked: int64 of shape (n,), levels.
        out_begin: int64 of shape (n + 1,), receives where the slices of each row begin.
        out: the columns to fill.
    """
    cdef int64_t i, event, at = 0
    with nogil:
        for i in range(asked.shape[0]):
            out_begin[i] = at
            event = places.before[i]
            if event >= 0:
                out.put(
                    at, rows.start[event], rows.start[event] + rows.duration[event], rows.duration[event], 1,
                    <int32_t>event,
                )
                at += 1
            if places.source[i] >= 0:
                at = _merge_slices(rows.duration, slices, places.first[i], places.stop[i], asked[i], at, out)
            else:
                at = _merge_events(rows, places.first[i], places.stop[i], asked[i], at, out)
        out_begin[asked.shape[0]] = at


# -- load ---------------------------------------------------------------------------------------------------------


def unite(
    const int64_t[::1] start, const int64_t[::1] duration, const uint8_t[::1] drawn, const int64_t[::1] line_begin,
    const int64_t[::1] line_end, int64_t[::1] first, int64_t[::1] u_start, int64_t[::1] u_busy,
):
    """The times during which each line has any event, as disjoint spans.

    Args:
        start, duration, drawn, line_begin, line_end: as for `lanes`.
        first: int64 of shape (lines + 1,), receives where the spans of each line begin.
        u_start: int64 with room for all events and one more a line, receives where spans begin; behind those of a line
            stands the end of its last span.
        u_busy: int64 of the same shape, receives how much of the line is covered before each of these times.
    """
    cdef int64_t line, event, covered, stop, at = 0
    cdef bint is_open
    with nogil:
        for line in range(line_begin.shape[0]):
            first[line] = at
            covered, stop, is_open = 0, 0, False
            for event in range(line_begin[line], line_end[line]):
                if not drawn[event] or duration[event] == 0:
                    continue
                if is_open and start[event] <= stop:
                    stop = max(stop, start[event] + duration[event])
                    continue
                if is_open:
                    covered += stop - u_start[at - 1]
                u_start[at], u_busy[at] = start[event], covered
                at += 1
                stop, is_open = start[event] + duration[event], True
            if is_open:
                u_start[at], u_busy[at] = stop, covered + stop - u_start[at - 1]
                at += 1
        first[line_begin.shape[0]] = at


def cover(
    const int64_t[::1] first, const int64_t[::1] u_start, const int64_t[::1] u_busy, const int64_t[::1] lines,
    int64_t begin, int64_t level, double[::1] load,
):
    """Adds up how much of each cell lines cover.

    Args:
        first, u_start, u_busy: what `unite` made.
        lines: int64 of shape (n,), the lines to add up.
        begin: int64, ps, start of the first cell; level: a cell has 2^level ps.
        load: float64 of shape (cells,), receives the sums in ps.
    """
    cdef int64_t i, cell, low, stop, time, covered, earlier
    with nogil:
        for i in range(lines.shape[0]):
            low, stop, earlier = first[lines[i]], first[lines[i] + 1], 0
            if low == stop:
                continue
            for cell in range(load.shape[0] + 1):
                time = begin + (cell << level)
                low = _next_edge(u_start, low, stop, time, cell > 0)
                covered = _covered(u_start, u_busy, first[lines[i]], low, stop, time)
                if cell > 0:
                    load[cell - 1] += covered - earlier
                earlier = covered
                low = max(first[lines[i]], low - 1)


cdef int64_t _next_edge(const int64_t[::1] u_start, int64_t low, int64_t stop, int64_t time, bint is_near) except -1 nogil:
    """The first edge after a time, from `low` on; mostly it is near."""
    cdef int64_t step = 1, high = stop, middle
    if is_near:
        while low + step < stop and u_start[low + step] <= time:
            step *= 2
        high = min(stop, low + step)
    while low < high:
        middle = (low + high) // 2
        if u_start[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


cdef int64_t _covered(
    const int64_t[::1] u_start, const int64_t[::1] u_busy, int64_t first, int64_t edge, int64_t stop, int64_t time
) except? -1 nogil:
    """How much of a line is covered before a time, which lies just before an edge."""
    if edge == first:
        return 0
    if edge == stop:
        return u_busy[edge - 1]
    return u_busy[edge - 1] + min(time - u_start[edge - 1], u_busy[edge] - u_busy[edge - 1])
