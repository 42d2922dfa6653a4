"""Adds up what lies in a selection of the timeline."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from stepscope.kernels.growing cimport Growing, push
from stepscope.kernels.memory cimport free


def add_up(
    const int64_t[::1] start, const int64_t[::1] duration, const uint8_t[::1] drawn, const int32_t[::1] key,
    const int64_t[::1] line_begin, const int64_t[::1] line_end, int64_t begin, int64_t end,
    int64_t[::1] count, int64_t[::1] total, int64_t[::1] own,
):
    """Adds up the parts of events that lie in a window, by key.

    An event's own time is its part of the window less those of the events that it encloses directly.

    Args:
        start, duration: int64 of shape (events,), ps; sorted within each line by start, at one start the longer first.
        drawn: bool of shape (events,): the events that count.
        key: int32 of shape (events,), what to add up by.
        line_begin, line_end: int64 of shape (lines,), event rows.
        begin, end: int64, ps.
        count, total, own: int64 of shape (keys,), receive the sums, times in ps.

    Returns:
        how many events overlap the window.
    """
    cdef Growing around = Growing(NULL, 0, 0)  # the events that are open
    cdef int64_t line, event, stop, part, outer, events = 0
    try:
        with nogil:
            for line in range(line_begin.shape[0]):
                around.size = 0
                for event in range(line_begin[line], line_end[line]):
                    if start[event] >= end:
                        break
                    stop = start[event] + duration[event]
                    if not drawn[event] or stop < begin or (stop == begin and start[event] < begin):
                        continue
                    while around.size > 0:
                        outer = around.items[around.size - 1]
                        if start[outer] + duration[outer] >= stop and start[outer] + duration[outer] > start[event]:
                            break
                        around.size -= 1
                    part = min(stop, end) - max(start[event], begin)
                    events += 1
                    count[key[event]] += 1
                    total[key[event]] += part
                    own[key[event]] += part
                    if around.size > 0:
                        own[key[around.items[around.size - 1]]] -= part
                    push(&around, event)
    finally:
        free(around.items)
    return events
