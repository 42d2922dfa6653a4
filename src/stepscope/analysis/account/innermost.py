"""What is innermost on a thread at each moment, and stretches of time cut by other stretches."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.grouping import forest
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, run_rows


def cut_by_events(trace: HostTrace, line: int, start: I64, end: I64) -> tuple[I64, I64, I64, I64]:
    """Stretches of a thread, in order of time, cut wherever the innermost event changes: for each part the place of its
    stretch, start, end and event, -1 for none."""
    links, events = forest(trace), trace.events
    first, last = _starting_between(trace, line, int(start[0]), int(end[-1]))
    around, depth = _events_around(trace, first, int(trace.lines.event_begin[line]), int(start[0]))
    room = 2 * max(last - first, 0) + depth + 1 + len(start)
    parts = [np.empty(room, np.int64) for _ in range(4)]
    count = kernels.replay.cut(
        first, max(last, first), around, events.start_ps, links.extent_ps, links.parent, start, end, *parts
    )
    place, begin, stop, event = (part[:count].copy() for part in parts)
    return place, begin, stop, event


def _starting_between(trace: HostTrace, line: int, begin_ps: int, end_ps: int) -> tuple[int, int]:
    """The rows of a thread's events that start after a time and before another one: the first, and that after them."""
    offset, stop = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
    starts = trace.events.start_ps[offset:stop]
    after, before = np.searchsorted(starts, begin_ps, side="right"), np.searchsorted(starts, end_ps, side="left")
    return offset + int(after), offset + int(before)


def _events_around(trace: HostTrace, first: int, offset: int, time_ps: int) -> tuple[int, int]:
    """The innermost event around a time, -1 for none, and how many there are; `first` starts after that time, and the
    thread's events start at row `offset`."""
    links, starts = forest(trace), trace.events.start_ps
    around, depth = first - 1 if first > offset else -1, 0
    while around >= 0 and starts[around] + links.extent_ps[around] <= time_ps:
        around = int(links.parent[around])
    above = around
    while above >= 0:
        above, depth = int(links.parent[above]), depth + 1
    return around, depth


def intersect(start: I64, end: I64, low: I64, high: I64) -> tuple[I64, I64, I64, I64]:
    """What stretches share with others, both in order of time and without overlap: for each shared part the place of
    the one and of the other, start and end."""
    first = np.searchsorted(high, start, side="right")
    last = np.searchsorted(low, end, side="left")
    count = np.maximum(last - first, 0)
    at, place = run_rows(first, count), np.repeat(np.arange(len(start)), count)
    return place, at, np.maximum(low[at], start[place]), np.minimum(high[at], end[place])
