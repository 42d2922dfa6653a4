"""Sweeps over intervals."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from stepscope.kernels.growing cimport Growing, as_column, as_table, push, push_row
from stepscope.kernels.memory cimport free
from stepscope.kernels.searching cimport place_of

cdef enum:
    _MOST_CAUSES = 16  # of `give_way`


def merge_runs(
    const int32_t[::1] group, const uint8_t[::1] rank, const int64_t[::1] start, const int64_t[::1] end,
    int64_t[:, ::1] slot, int32_t[::1] out_group, uint8_t[::1] out_rank, int64_t[::1] out_start, int64_t[::1] out_end,
):
    """Unites overlapping intervals of equal group and rank.

    Args:
        group, rank: int32 and uint8 of shape (n,); start, end: int64 of shape (n,), sorted by start.
        slot: int64 of shape (groups, ranks), all -1; scratch.
        out_group, out_rank, out_start, out_end: room for n intervals; receive the united ones, by start.

    Returns:
        number of united intervals.
    """
    cdef int64_t i, last, count = 0
    with nogil:
        for i in range(start.shape[0]):
            last = slot[group[i], rank[i]]
            if last >= 0 and start[i] <= out_end[last]:
                out_end[last] = max(out_end[last], end[i])
                continue
            slot[group[i], rank[i]] = count
            out_group[count] = group[i]
            out_rank[count] = rank[i]
            out_start[count] = start[i]
            out_end[count] = end[i]
            count += 1
    return count


cdef struct Spans:
    # United intervals.
    Growing start
    Growing end


cdef struct Runs:
    # Intervals united within runs that ascend, where each run begins, and room to join runs in.
    Spans united
    Growing begin
    Spans room


def union(const int64_t[::1] start, const int64_t[::1] end):
    """Unites intervals that overlap or touch; empty ones count for nothing.

    Args:
        start, end: int64 of shape (n,), in any order; best in that of their starts, or of those of each thread.

    Returns:
        Two of int64 of shape (united,): start and end of each, by start.
    """
    cdef Runs runs
    cdef int64_t i
    if start.shape[0] != end.shape[0]:
        raise IndexError("the columns are not of one length")
    memset(&runs, 0, sizeof(runs))
    try:
        with nogil:
            for i in range(start.shape[0]):
                _take(start[i], end[i], &runs)
            _join_runs(&runs)
        return as_column(&runs.united.start), as_column(&runs.united.end)
    finally:
        _free_runs(&runs)


def union_of(const int64_t[::1] start, const int64_t[::1] duration, const int64_t[::1] rows):
    """Unites some of the intervals of a table, as `union`.

    Args:
        start, duration: int64 of shape (intervals,).
        rows: int64 of shape (n,), which of them.
    """
    cdef Runs runs
    cdef int64_t i, row, size = start.shape[0]
    if size != duration.shape[0]:
        raise IndexError("the columns are not of one length")
    memset(&runs, 0, sizeof(runs))
    try:
        with nogil:
            for i in range(rows.shape[0]):
                row = rows[i]
                if not 0 <= row < size:
                    with gil:
                        raise IndexError("there is no such interval")
                _take(start[row], start[row] + duration[row], &runs)
            _join_runs(&runs)
        return as_column(&runs.united.start), as_column(&runs.united.end)
    finally:
        _free_runs(&runs)


cdef void _free_runs(Runs* runs) noexcept:
    free(runs.united.start.items)
    free(runs.united.end.items)
    free(runs.begin.items)
    free(runs.room.start.items)
    free(runs.room.end.items)


cdef inline int _take(int64_t start, int64_t end, Runs* runs) except -1 nogil:
    """Adds an interval to the last run, or begins another one with it."""
    cdef Growing* known = &runs.united.start
    if end <= start:
        return 0
    if known.size == 0 or start < known.items[known.size - 1]:
        push(&runs.begin, known.size)
    return _append(start, end, &runs.united, runs.begin.items[runs.begin.size - 1])


cdef int _join_runs(Runs* runs) except -1 nogil:
    """Joins runs two by two, until all are one."""
    cdef Growing* begin = &runs.begin
    cdef int64_t at, second, end, floor, count
    while begin.size > 1:
        runs.room.start.size = runs.room.end.size = count = 0
        for at in range(0, begin.size, 2):
            floor = runs.room.start.size
            second = begin.items[at + 1] if at + 1 < begin.size else runs.united.start.size
            end = begin.items[at + 2] if at + 2 < begin.size else runs.united.start.size
            _join(&runs.united, begin.items[at], second, end, &runs.room, floor)
            begin.items[count] = floor
            count += 1
        begin.size = count
        runs.united, runs.room = runs.room, runs.united
    return 0


cdef int _join(
    const Spans* spans, int64_t first, int64_t second, int64_t end, Spans* into, int64_t floor
) except -1 nogil:
    """Joins two runs, of which the second begins where the first ends."""
    cdef int64_t one = first, other = second
    while one < second or other < end:
        if other == end or (one < second and spans.start.items[one] <= spans.start.items[other]):
            _append(spans.start.items[one], spans.end.items[one], into, floor)
            one += 1
        else:
            _append(spans.start.items[other], spans.end.items[other], into, floor)
            other += 1
    return 0


cdef inline int _append(int64_t start, int64_t end, Spans* found, int64_t floor) except -1 nogil:
    """Adds an interval to united ones, none of which starts later, from a place on; an empty one counts for nothing."""
    cdef int64_t last = found.end.size - 1
    if end <= start:
        return 0
    if last >= floor and start <= found.end.items[last]:
        found.end.items[last] = max(found.end.items[last], end)
        return 0
    push(&found.start, start)
    push(&found.end, end)
    return 0


def either(
    const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] other_start, const int64_t[::1] other_end,
):
    """The instants that are in one of two sets or in both, each given as sorted intervals that do not touch each other.

    Args:
        start, end: int64 of shape (n,); other_start, other_end: int64 of shape (m,).

    Returns:
        Two of int64 of shape (united,): start and end of each, by start.
    """
    cdef Spans found
    cdef int64_t i = 0, j = 0
    if start.shape[0] != end.shape[0] or other_start.shape[0] != other_end.shape[0]:
        raise IndexError("the columns are not of one length")
    memset(&found, 0, sizeof(found))
    try:
        with nogil:
            while i < start.shape[0] or j < other_start.shape[0]:
                if j == other_start.shape[0] or (i < start.shape[0] and start[i] <= other_start[j]):
                    _append(start[i], end[i], &found, 0)
                    i += 1
                else:
                    _append(other_start[j], other_end[j], &found, 0)
                    j += 1
        return as_column(&found.start), as_column(&found.end)
    finally:
        free(found.start.items)
        free(found.end.items)


def count_crossings(
    const int64_t[::1] start, const int64_t[::1] duration, const int32_t[::1] line, const uint8_t[::1] chosen,
    int64_t least,
):
    """Counts the chosen events of a line that start within the chosen one before and end after it, both by more than a
    time.

    Args:
        start, duration, line, chosen: int64, int64, int32 and bool of shape (events,), by line and start.
        least: that time.

    Returns:
        How many of them, and how many events are chosen.
    """
    cdef int64_t at, stop, before = 0, crossing = 0, count = 0
    cdef int32_t on = -1
    with nogil:
        for at in range(start.shape[0]):
            if not chosen[at]:
                continue
            stop = start[at] + duration[at]
            crossing += line[at] == on and start[at] + least < before and stop > before + least
            before, on = stop, line[at]
            count += 1
    return crossing, count


def common(
    const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] other_start, const int64_t[::1] other_end,
    int64_t[::1] out_start, int64_t[::1] out_end,
):
    """What two sets of instants have in common, each given as sorted intervals that do not touch each other.

    Args:
        start, end: int64 of shape (n,); other_start, other_end: int64 of shape (m,).
        out_start, out_end: int64, room for n + m; receive the common intervals, by start.

    Returns:
        number of common intervals.
    """
    cdef int64_t i = 0, j = 0, count = 0, first, stop
    with nogil:
        while i < start.shape[0] and j < other_start.shape[0]:
            first = max(start[i], other_start[j])
            stop = min(end[i], other_end[j])
            if first < stop:
                out_start[count] = first
                out_end[count] = stop
                count += 1
            if end[i] < other_end[j]:
                i += 1
            else:
                j += 1
    return count


def count_below(const int64_t[::1] values, const int64_t[::1] limits, bint with_limit, int64_t[::1] out):
    """How many ascending values are below each limit, or at it as well.

    Args:
        values: int64 of shape (m,); limits: int64 of shape (n,), in any order; best in an ascending one.
        out: int64 of shape (n,), receives the numbers.
    """
    cdef int64_t i, near = 0
    if limits.shape[0] != out.shape[0]:
        raise IndexError("the columns are not of one length")
    with nogil:
        for i in range(limits.shape[0]):
            near = place_of(values, 0, values.shape[0], near, limits[i] + with_limit)
            out[i] = near


def find_by_line(
    const int64_t[::1] values, const int64_t[::1] first, const int32_t[::1] line, const int64_t[::1] limits,
    bint before, int64_t[::1] near, int64_t[::1] out,
):
    """The places of limits among the values of lines, which ascend on each.

    Args:
        values: int64 of shape (m,); first: int64 of shape (lines + 1,), where those of each line are.
        line, limits: int32 and int64 of shape (n,), the lines that are asked about.
        before: whether the last value that is at most the limit is asked for, else the first that is not below it.
        near: int64 of shape (lines + 1,), as `first`; scratch.
        out: int64 of shape (n,), receives the places, -1 for none.
    """
    cdef int64_t i, place
    cdef int32_t on
    if not (line.shape[0] == limits.shape[0] == out.shape[0] and first.shape[0] == near.shape[0]):
        raise IndexError("the columns are not of one length")
    with nogil:
        for i in range(limits.shape[0]):
            on, out[i] = line[i], -1
            if on < 0 or on + 1 >= first.shape[0]:
                continue
            place = near[on] = place_of(values, first[on], first[on + 1], near[on], limits[i] + before)
            if before and place > first[on]:
                out[i] = place - 1
            elif not before and place < first[on + 1]:
                out[i] = place


def intersect(const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] low, const int64_t[::1] high):
    """The parts that intervals share with others; both are best in order of time, since each is looked for from the last.

    Args:
        start, end: int64 of shape (n,); low, high: int64 of shape (m,), ascending each, so that no two overlap.

    Returns:
        int64 of shape (parts, 4): the place of the one and of the other interval, start and end of what they share.
    """
    cdef Growing found = Growing(NULL, 0, 0)
    cdef int64_t i, at, first = 0, last = 0
    if start.shape[0] != end.shape[0] or low.shape[0] != high.shape[0]:
        raise IndexError("the columns are not of one length")
    try:
        with nogil:
            for i in range(start.shape[0]):
                first = place_of(high, 0, high.shape[0], first, start[i] + 1)
                last = place_of(low, 0, low.shape[0], max(first, last), end[i])
                for at in range(first, last):
                    push(&found, i)
                    push(&found, at)
                    push(&found, max(low[at], start[i]))
                    push(&found, min(high[at], end[i]))
        return as_table(&found, 4)
    finally:
        free(found.items)


cdef struct Work:
    # The work of a cause in the order of its starts, and when it runs.
    Growing nodes
    Spans spans
    int64_t near  # the first work that has not started yet
    int64_t here  # the first span that is not over yet


def give_way(
    const int64_t[::1] start, const int64_t[::1] end, const uint8_t[::1] cause, const int64_t[::1] bounds,
    const uint8_t[::1] manner, const uint8_t[:, ::1] yields, const uint8_t[:, ::1] order, const int64_t[::1] work,
    const uint8_t[::1] does, const int64_t[::1] begun, const int64_t[::1] done,
):
    """Pieces of time, some of them cut wherever some work begins or ends, and the work's own where it runs.

    Args:
        start, end, cause: int64, int64 and uint8 of shape (pieces,): the pieces, in order of time, and their causes.
        bounds: int64 of shape (steps + 1,), ps, where steps begin; manner: uint8 of shape (steps,), how each is treated.
        yields: uint8 of shape (manners, causes), pieces of which causes give way.
        order: uint8 of shape (manners, n), the causes of work that counts, at one moment the first.
        work: int64 of shape (m,), nodes in the order of their starts; does: uint8 of shape (m,), their causes.
        begun, done: int64 of shape (nodes,), when each node starts and ends.

    Returns:
        Five of int64 of shape (parts,), in order of time: the piece, start, end, the node whose time it is now, -1 where
        it stays the piece's, and the cause.
    """
    cdef Growing[5] found
    cdef Work[_MOST_CAUSES] of_cause
    cdef int64_t at, place = 0
    cdef int column
    if not (start.shape[0] == end.shape[0] == cause.shape[0] and work.shape[0] == does.shape[0]):
        raise IndexError("the columns are not of one length")
    if not (manner.shape[0] == bounds.shape[0] - 1 > 0 and yields.shape[1] == _MOST_CAUSES):
        raise IndexError("there are not as many steps or causes")
    memset(found, 0, sizeof(found))
    memset(of_cause, 0, sizeof(of_cause))
    try:
        with nogil:
            for at in range(work.shape[0]):
                push(&of_cause[does[at] % _MOST_CAUSES].nodes, work[at])
                _append(begun[work[at]], done[work[at]], &of_cause[does[at] % _MOST_CAUSES].spans, 0)
            for at in range(start.shape[0]):
                while place + 2 < bounds.shape[0] and bounds[place + 1] <= start[at]:
                    place += 1
                if yields[manner[place], cause[at]]:
                    _cover(at, start[at], end[at], cause[at], order, manner[place], of_cause, begun, found)
                else:
                    push_row(found, at, start[at], end[at], -1, cause[at])
        return tuple([as_column(&found[column]) for column in range(5)])
    finally:
        for column in range(5):
            free(found[column].items)
        for column in range(_MOST_CAUSES):
            free(of_cause[column].nodes.items)
            free(of_cause[column].spans.start.items)
            free(of_cause[column].spans.end.items)


cdef int _cover(
    int64_t piece, int64_t begin, int64_t stop, int cause, const uint8_t[:, ::1] order, int manner, Work* of_cause,
    const int64_t[::1] begun, Growing* found,
) except -1 nogil:
    """A piece cut wherever work begins or ends."""
    cdef int64_t until, at
    cdef Work* each
    cdef Work* inside
    while begin < stop:
        inside, until = NULL, stop
        for at in range(order.shape[1] - 1, -1, -1):
            each = &of_cause[order[manner, at]]
            while each.here < each.spans.end.size and each.spans.end.items[each.here] <= begin:
                each.here += 1
            if each.here == each.spans.end.size:
                continue
            if each.spans.start.items[each.here] <= begin:
                inside, until = each, min(until, each.spans.end.items[each.here])
            else:
                until = min(until, each.spans.start.items[each.here])
        if inside == NULL:
            push_row(found, piece, begin, until, -1, cause)
        else:
            while inside.near < inside.nodes.size and begun[inside.nodes.items[inside.near]] <= begin:
                inside.near += 1
            push_row(found, piece, begin, until, inside.nodes.items[inside.near - 1], inside - of_cause)
        begin = until
    return 0


def overlap(
    const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] before, const int64_t[::1] begin,
    const int64_t[::1] stop, int64_t[::1] out,
):
    """The time that each of some intervals shares with a set of instants.

    Intervals in order of time are found from one to the next; those in any other order by searching.

    Args:
        start, end: int64 of shape (n,), the set as sorted intervals that do not touch each other.
        before: int64 of shape (n + 1,), the length of all intervals of the set before each, and of all.
        begin, stop: int64 of shape (m,), the intervals that are asked about.
        out: int64 of shape (m,), receives the shared time.
    """
    cdef int64_t i, near = 0, until = 0, at_begin, at_stop
    if before.shape[0] != start.shape[0] + 1 or end.shape[0] != start.shape[0]:
        raise IndexError("the columns of the set are not of one length")
    if not begin.shape[0] == stop.shape[0] == out.shape[0]:
        raise IndexError("the columns of intervals are not of one length")
    with nogil:
        for i in range(begin.shape[0]):
            near = place_of(start, 0, start.shape[0], near, begin[i])
            at_begin = before[near]
            if near > 0:
                at_begin -= max(end[near - 1] - begin[i], 0)
            until = place_of(start, 0, start.shape[0], max(near, until), stop[i])
            at_stop = before[until]
            if until > 0:
                at_stop -= max(end[until - 1] - stop[i], 0)
            out[i] = at_stop - at_begin
