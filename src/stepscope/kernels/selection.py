"""Adds up what lies in a selection of the timeline."""

from __future__ import annotations

import numpy as np

from stepscope.kernels.compiling import compiled


@compiled(allocates=True)
def add_up(start, duration, drawn, key, line_begin, line_end, begin, end, count, total, own):  # type: ignore[no-untyped-def]
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
    events = 0
    stack_end = np.empty(64, np.int64)
    stack_key = np.empty(64, np.int64)
    for line in range(len(line_begin)):
        depth = 0
        for event in range(line_begin[line], line_end[line]):
            if start[event] >= end:
                break
            stop = start[event] + duration[event]
            if not drawn[event] or stop < begin or (stop == begin and start[event] < begin):
                continue
            while depth > 0 and (stack_end[depth - 1] < stop or stack_end[depth - 1] <= start[event]):
                depth -= 1
            part = min(stop, end) - max(start[event], begin)
            events += 1
            count[key[event]] += 1
            total[key[event]] += part
            own[key[event]] += part
            if depth > 0:
                own[stack_key[depth - 1]] -= part
            if depth == len(stack_end):
                stack_end = np.concatenate((stack_end, np.empty(depth, np.int64)))
                stack_key = np.concatenate((stack_key, np.empty(depth, np.int64)))
            stack_end[depth] = stop
            stack_key[depth] = key[event]
            depth += 1
    return events


@compiled
def enclosing(start, duration, drawn, first, event, around):  # type: ignore[no-untyped-def]
    """The events of a line that enclose one of its events.

    Args:
        start, duration, drawn: as above.
        first: row of the line's first event; event: row of the event.
        around: int64, room for rows, the outermost first.

    Returns:
        how many there are, also if there is room for fewer; those nearest to the event are then left out.
    """
    stop = start[event] + duration[event]
    count = 0
    for row in range(first, event):
        if drawn[row] and start[row] + duration[row] >= stop and start[row] + duration[row] > start[event]:
            if count < len(around):
                around[count] = row
            count += 1
    return count
