"""Nesting on a line, links between lines, and what follows from them: parents, self times, membership in steps."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t

from stepscope.kernels.growing cimport Growing, as_column, push
from stepscope.kernels.memory cimport free


def parents(
    const int64_t[::1] start, const int64_t[::1] duration, const int64_t[::1] line_begin, const int64_t[::1] line_end,
    const uint8_t[::1] kind, const uint8_t[::1] is_async, uint8_t region_begin, uint8_t region_end,
    int32_t[::1] parent, int64_t[::1] extent,
):
    """The event that encloses each event on its line.

    An event encloses what starts and ends inside it.  A region, told by a begin and an end mark, encloses what lies
    between them.  Asynchronous events neither enclose nor are enclosed.

    Args:
        start, duration: int64 of shape (events,), ps; sorted within each line by start, at one start the longer first.
        line_begin, line_end: int64 of shape (lines,), the event rows of the lines to look at.
        kind: uint8 of shape (events,); is_async: bool of shape (events,).
        region_begin, region_end: the kinds that mark regions.
        parent: int32 of shape (events,), receives the row of the parent or -1; other lines are left alone.
        extent: int64 of shape (events,), receives the length of each region at its begin mark; other events are left
            alone, so that it may be empty where no event marks a region.
    """
    cdef int64_t line, event, end, stop
    cdef int32_t top  # the innermost event that may still enclose; the others are its parents
    with nogil:
        for line in range(line_begin.shape[0]):
            top = -1
            for event in range(line_begin[line], line_end[line]):
                parent[event] = -1
                if is_async[event]:
                    continue
                if kind[event] == region_end:
                    top = _close_region(event, top, start, kind, region_begin, parent, extent)
                    parent[event] = top
                    continue
                end = start[event] + duration[event]
                while top >= 0:
                    stop = INT64_MAX if kind[top] == region_begin else start[top] + duration[top]
                    if stop >= end:
                        break
                    top = parent[top]
                parent[event] = top
                top = <int32_t>event


cdef int32_t _close_region(
    int64_t event, int32_t top, const int64_t[::1] start, const uint8_t[::1] kind, uint8_t region_begin,
    const int32_t[::1] parent, int64_t[::1] extent,
) except? -2 nogil:
    """What still may enclose after an end mark: what encloses the region, or all as before if none is open."""
    cdef int32_t at = top
    while at >= 0 and kind[at] != region_begin:
        at = parent[at]
    if at < 0:
        return top
    extent[at] = start[event] - start[at]
    return parent[at]


def self_times(
    const int64_t[::1] rows, const int64_t[::1] duration, const int32_t[::1] parent, const uint8_t[::1] counts,
    int64_t[::1] out,
):
    """Duration of each counted event minus that of the nearest counted events inside it.

    Args:
        rows: int64 of shape (n,), the counted events, ascending.
        duration: int64 of shape (events,), ps.
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
        counts: bool of shape (events,), whether an event is among these.
        out: int64 of shape (n,), receives the self times; may be negative where children overlap each other.
    """
    cdef int64_t at, place
    cdef int32_t above
    if rows.shape[0] != out.shape[0]:
        raise IndexError("the columns are not of one length")
    with nogil:
        for at in range(rows.shape[0]):
            if not 0 <= rows[at] < duration.shape[0]:
                with gil:
                    raise IndexError("there is no such event")
            out[at] = duration[rows[at]]
            above = parent[rows[at]]
            while above >= 0 and not counts[above]:
                above = parent[above]
            if above >= 0:
                place = _place_before(rows, at, above)
                if place >= 0:
                    out[place] -= duration[rows[at]]


cdef inline int64_t _place_before(const int64_t[::1] rows, int64_t at, int64_t row) noexcept nogil:
    """The place of a row among those before a place, -1 if it is not there: near the end in most cases, as what encloses
    an event is."""
    cdef int64_t low, high = at, step = 1, middle
    while high - step >= 0 and rows[high - step] > row:
        high -= step
        step *= 2
    low = max(high - step, 0)
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low if low < at and rows[low] == row else -1


cdef enum:
    _ASKS_PARENT = 1
    _ASKS_CAUSE = 2
    _DONE = 3


def spread(
    int32_t[::1] label, const int32_t[::1] parent, const int32_t[::1] link, uint8_t[::1] state, int32_t[::1] stack
):
    """Gives every event the label of what it belongs to: its own, else its parent's, else that of what caused it.

    Args:
        label: int32 of shape (events,), -1 where unknown; filled in place.
        parent: int32 of shape (events,), the enclosing event or -1.
        link: int32 of shape (events,), the event on another line that caused it, or -1.
        state: uint8 of shape (events,), zeros; scratch.
        stack: int32 of shape (events + 1,); scratch.
    """
    cdef int64_t first, depth
    cdef int32_t event, asked
    with nogil:
        for first in range(label.shape[0]):
            if state[first] == _DONE:
                continue
            asked = parent[first]
            if label[first] < 0 and asked >= 0 and label[asked] >= 0:
                label[first] = label[asked]
            if label[first] >= 0 or (link[first] < 0 and (asked < 0 or state[asked] == _DONE)):  # as most are
                state[first] = _DONE
                continue
            depth = 1
            stack[0] = <int32_t>first
            while depth > 0:
                event = stack[depth - 1]
                if label[event] < 0 and state[event] < _DONE:
                    asked = parent[event] if state[event] == _ASKS_PARENT else link[event]
                    if state[event] > 0 and asked >= 0 and label[asked] >= 0:
                        label[event] = label[asked]
                if label[event] >= 0 or state[event] >= _DONE:
                    state[event] = _DONE
                    depth -= 1
                    continue
                state[event] += 1
                if state[event] == _DONE:
                    continue
                asked = parent[event] if state[event] == _ASKS_PARENT else link[event]
                if asked >= 0 and state[asked] == 0:
                    stack[depth] = asked
                    depth += 1


def add_to_ancestors(int64_t[::1] value, const int32_t[::1] parent):
    """Adds the value of every event to all events that enclose it, in place.

    Args:
        value: int64 of shape (events,).
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
    """
    cdef int64_t event
    with nogil:
        for event in range(value.shape[0] - 1, -1, -1):
            if parent[event] >= 0:
                value[parent[event]] += value[event]


def mark_ancestors(uint8_t[::1] marked, const int32_t[::1] parent):
    """Marks all that encloses something marked, in place.

    Args:
        marked: uint8 of shape (events,), 0 or 1.
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
    """
    cdef int64_t event
    with nogil:
        for event in range(marked.shape[0] - 1, -1, -1):
            if marked[event] and parent[event] >= 0:
                marked[parent[event]] = 1


def outermost(const int32_t[::1] parent, const uint8_t[::1] counts, int32_t[::1] out):
    """The outermost counted event around each event, itself included.

    Args:
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
        counts: bool of shape (events,).
        out: int32 of shape (events,), receives the row or -1.
    """
    cdef int64_t event
    cdef int32_t above
    with nogil:
        for event in range(parent.shape[0]):
            above = out[parent[event]] if parent[event] >= 0 else -1
            out[event] = above if above >= 0 else <int32_t>event if counts[event] else -1


def outer_rows(const uint8_t[::1] rank, const int32_t[::1] parent):
    """The rows of ranked events that are in no event of the same rank or a higher one: int64 of shape (n,), ascending.

    Args:
        rank: uint8 of shape (events,), 0 for those that have none; parent: as of `outermost`.
    """
    cdef Growing found = Growing(NULL, 0, 0)
    cdef int64_t event
    if rank.shape[0] != parent.shape[0]:
        raise IndexError("the columns are not of one length")
    try:
        with nogil:
            for event in range(rank.shape[0]):
                if rank[event] and (parent[event] < 0 or rank[parent[event]] < rank[event]):
                    push(&found, event)
        return as_column(&found)
    finally:
        free(found.items)


def around(const uint8_t[::1] kind, const int32_t[::1] parent, const uint8_t[::1] bit_of_kind, uint8_t[::1] out):
    """Which kinds each event is of or has around it, one bit each.

    Args:
        kind: uint8 of shape (events,).
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
        bit_of_kind: uint8 of shape (256,).
        out: uint8 of shape (events,), receives the bits.
    """
    cdef int64_t event
    with nogil:
        for event in range(kind.shape[0]):
            out[event] = bit_of_kind[kind[event]] | (out[parent[event]] if parent[event] >= 0 else 0)


def inherit(uint8_t[::1] label, const int32_t[::1] parent):
    """Gives every event without a label that of the nearest event around it that has one, in place.

    Args:
        label: uint8 of shape (events,), 0 where there is none.
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
    """
    cdef int64_t event
    with nogil:
        for event in range(label.shape[0]):
            if label[event] == 0 and parent[event] >= 0:
                label[event] = label[parent[event]]


def nearest(const int32_t[::1] parent, const uint8_t[::1] counts, int32_t[::1] out):
    """The nearest counted event around each event, itself included.

    Args:
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
        counts: bool of shape (events,).
        out: int32 of shape (events,), receives the row or -1.
    """
    cdef int64_t event
    with nogil:
        for event in range(parent.shape[0]):
            if counts[event]:
                out[event] = <int32_t>event
            else:
                out[event] = out[parent[event]] if parent[event] >= 0 else -1


def inherit_by_kind(
    const uint8_t[::1] kind, const int32_t[::1] parent, const uint8_t[::1] label_of_kind, uint8_t other,
    uint8_t[::1] out,
):
    """The label of each event by its kind, else that of the nearest event around it that has one.

    Args:
        kind: uint8 of shape (events,).
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
        label_of_kind: uint8 of shape (256,), 0 where there is none.
        other: the label of events that none is found for.
        out: uint8 of shape (events,), receives the labels.
    """
    cdef int64_t event
    cdef uint8_t label
    with nogil:
        for event in range(kind.shape[0]):
            label = label_of_kind[kind[event]]
            if label == 0:
                label = out[parent[event]] if parent[event] >= 0 else other
            out[event] = label


cdef enum:
    _IS_MARKED = 1
    _IS_INSIDE = 2


def outermost_mark(
    const uint8_t[::1] kind, const int32_t[::1] parent, const uint8_t[::1] counts, const uint8_t[::1] mark,
    uint8_t[::1] out,
):
    """Whether the outermost counted event around each event, itself included, is marked; without one the event itself.

    Args:
        kind: uint8 of shape (events,).
        parent: int32 of shape (events,), row of the enclosing event or -1; a parent precedes its children.
        counts: uint8 of shape (256,), 1 for kinds that count.
        mark: uint8 of shape (events,), 0 or 1.
        out: uint8 of shape (events,), receives 1 in the lowest bit where it is marked.
    """
    cdef int64_t event
    with nogil:
        for event in range(kind.shape[0]):
            if parent[event] >= 0 and out[parent[event]] & _IS_INSIDE:
                out[event] = out[parent[event]]
            else:
                out[event] = (_IS_MARKED if mark[event] else 0) | (_IS_INSIDE if counts[kind[event]] else 0)
