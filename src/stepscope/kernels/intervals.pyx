"""Sweeps over intervals."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from stepscope.kernels.growing cimport Growing, as_table, push
from stepscope.kernels.memory cimport free

cdef enum:
    _MOST_SETS = 16  # of `cover`


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


def union(const int64_t[::1] start, const int64_t[::1] end):
    """Unites intervals that overlap or touch; empty ones count for nothing.

    Args:
        start, end: int64 of shape (n,).

    Returns:
        int64 of shape (united, 2), start and end of each, by start; None if the intervals are not sorted by start.
    """
    cdef Growing found = Growing(NULL, 0, 0)
    cdef bint sorted
    if start.shape[0] != end.shape[0]:
        raise IndexError("the columns are not of one length")
    try:
        with nogil:
            sorted = _unite(start, end, &found)
        return as_table(&found, 2) if sorted else None
    finally:
        free(found.items)


cdef int _unite(const int64_t[::1] start, const int64_t[::1] end, Growing* found) except -1 nogil:
    """Whether the intervals are sorted; if so, the bounds of the united ones."""
    cdef int64_t i
    for i in range(start.shape[0]):
        if i > 0 and start[i] < start[i - 1]:
            return 0
        _append(start[i], end[i], found)
    return 1


cdef inline int _append(int64_t start, int64_t end, Growing* found) except -1 nogil:
    """Adds an interval to united ones, none of which starts later; an empty one counts for nothing."""
    if end <= start:
        return 0
    if found.size and start <= found.items[found.size - 1]:
        found.items[found.size - 1] = max(found.items[found.size - 1], end)
        return 0
    push(found, start)
    push(found, end)
    return 0


def either(
    const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] other_start, const int64_t[::1] other_end,
):
    """The instants that are in one of two sets or in both, each given as sorted intervals that do not touch each other.

    Args:
        start, end: int64 of shape (n,); other_start, other_end: int64 of shape (m,).

    Returns:
        int64 of shape (united, 2), start and end of each, by start.
    """
    cdef Growing found = Growing(NULL, 0, 0)
    cdef int64_t i = 0, j = 0
    if start.shape[0] != end.shape[0] or other_start.shape[0] != other_end.shape[0]:
        raise IndexError("the columns are not of one length")
    try:
        with nogil:
            while i < start.shape[0] or j < other_start.shape[0]:
                if j == other_start.shape[0] or (i < start.shape[0] and start[i] <= other_start[j]):
                    _append(start[i], end[i], &found)
                    i += 1
                else:
                    _append(other_start[j], other_end[j], &found)
                    j += 1
        return as_table(&found, 2)
    finally:
        free(found.items)


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
            near = _count_below(values, near, limits[i] + with_limit)
            out[i] = near


cdef inline int64_t _count_below(const int64_t[::1] values, int64_t near, int64_t limit) noexcept nogil:
    """How many ascending values are below a limit, looked for from a place on that is probably near."""
    cdef int64_t low, high, middle, step = 1, count = values.shape[0]
    if near < count and values[near] < limit:
        low, high = near, near + 1
        while high < count and values[high] < limit:
            low = high
            high += step
            step *= 2
        high = min(high, count)
    else:
        low, high = near - 1, near
        while low >= 0 and values[low] >= limit:
            high = low
            low -= step
            step *= 2
        low = max(low, -1)
    while high - low > 1:  # the value at `low` is below the limit, that at `high` is not
        middle = (low + high) >> 1
        if values[middle] < limit:
            low = middle
        else:
            high = middle
    return high


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
                first = _count_below(high, first, start[i] + 1)
                last = _count_below(low, last if last >= first else first, end[i])
                for at in range(first, last):
                    push(&found, i)
                    push(&found, at)
                    push(&found, max(low[at], start[i]))
                    push(&found, min(high[at], end[i]))
        return as_table(&found, 4)
    finally:
        free(found.items)


def cover(
    const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] low, const int64_t[::1] high,
    const int64_t[::1] first,
):
    """Intervals cut wherever one of some sets of instants begins or ends, and the first set that each part is in.

    Args:
        start, end: int64 of shape (n,), in order of time; no two overlap.
        low, high: int64 of shape (m,), the sets one after the other, each as sorted intervals that do not touch.
        first: int64 of shape (sets + 1,), where each set is in them.

    Returns:
        int64 of shape (parts, 4): the place of the interval, start and end of the part, and the set, -1 for none;
        intervals that lie in no set at all are left out.
    """
    cdef Growing found = Growing(NULL, 0, 0)
    cdef int64_t[_MOST_SETS] near
    cdef int64_t i, at, sets = first.shape[0] - 1, moment, until, before, inside, shared
    if start.shape[0] != end.shape[0] or low.shape[0] != high.shape[0]:
        raise IndexError("the columns are not of one length")
    if not 0 <= sets <= _MOST_SETS:
        raise IndexError("too many sets")
    for at in range(sets):
        near[at] = first[at]
        if not 0 <= first[at] <= first[at + 1] <= low.shape[0]:
            raise IndexError("there is no such interval")
    try:
        with nogil:
            for i in range(start.shape[0]):
                before, shared, moment = found.size, 0, start[i]
                while moment < end[i]:
                    inside, until = -1, end[i]
                    for at in range(sets - 1, -1, -1):
                        while near[at] < first[at + 1] and high[near[at]] <= moment:
                            near[at] += 1
                        if near[at] == first[at + 1]:
                            continue
                        if low[near[at]] <= moment:
                            inside, until = at, min(until, high[near[at]])
                        else:
                            until = min(until, low[near[at]])
                    shared += inside >= 0
                    push(&found, i)
                    push(&found, moment)
                    push(&found, until)
                    push(&found, inside)
                    moment = until
                if not shared:
                    found.size = before
        return as_table(&found, 4)
    finally:
        free(found.items)


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
            near = _count_below(start, near, begin[i])
            at_begin = before[near]
            if near > 0:
                at_begin -= max(end[near - 1] - begin[i], 0)
            until = _count_below(start, near if until < near else until, stop[i])
            at_stop = before[until]
            if until > 0:
                at_stop -= max(end[until - 1] - stop[i], 0)
            out[i] = at_stop - at_begin


def highest_rank_time(
    const int32_t[::1] group, const uint8_t[::1] rank, const int64_t[::1] time, const uint8_t[::1] is_end,
    int64_t[::1] open_count, int64_t[:, ::1] totals,
):
    """Adds up, for each group, the time during which each rank is the highest of the open intervals.

    Args:
        group, rank, time, is_end: boundaries of shape (2n,), sorted by group, then time, ends before starts.
        open_count: int64 of shape (ranks,); scratch.
        totals: int64 of shape (groups, ranks), receives the sums.
    """
    cdef int64_t i, r, last = 0, current = -1
    with nogil:
        for i in range(time.shape[0]):
            if group[i] != current:
                current = group[i]
                open_count[:] = 0
                last = time[i]
            if time[i] > last:
                for r in range(open_count.shape[0] - 1, -1, -1):
                    if open_count[r] > 0:
                        totals[current, r] += time[i] - last
                        break
                last = time[i]
            open_count[rank[i]] += -1 if is_end[i] else 1
