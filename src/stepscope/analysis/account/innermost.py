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
    low, high, event = innermost_events(trace, line, int(start[0]), int(end[-1]))
    place, at, begin, stop = intersect(start, end, low, high)
    return place, begin, stop, event[at]


def intersect(start: I64, end: I64, low: I64, high: I64) -> tuple[I64, I64, I64, I64]:
    """What stretches share with others, both in order of time and without overlap: for each shared part the place of
    the one and of the other, start and end."""
    first = np.searchsorted(high, start, side="right")
    last = np.searchsorted(low, end, side="left")
    count = np.maximum(last - first, 0)
    at, place = run_rows(first, count), np.repeat(np.arange(len(start)), count)
    return place, at, np.maximum(low[at], start[place]), np.minimum(high[at], end[place])


def innermost_events(trace: HostTrace, line: int, begin_ps: int, end_ps: int) -> tuple[I64, I64, I64]:
    """What is innermost on a thread from a time to a time: starts, ends and events (-1 for none), without gaps."""
    links, events = forest(trace), trace.events
    offset, stop = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
    starts = events.start_ps[offset:stop]
    first = offset + int(np.searchsorted(starts, begin_ps, side="right"))
    last = offset + int(np.searchsorted(starts, end_ps, side="left"))
    around = first - 1 if first > offset else -1
    while around >= 0 and events.start_ps[around] + links.extent_ps[around] <= begin_ps:
        around = int(links.parent[around])
    found = kernels.replay.stretches(
        first, max(last, first), begin_ps, around, events.start_ps, links.extent_ps, links.parent,
        np.empty(0, np.uint8), 1,
    )  # fmt: skip
    low, high, event = np.asarray(found).T.copy()
    high = np.minimum(high, end_ps)
    kept = high > low
    return _fill_gaps(low[kept], high[kept], event[kept], begin_ps, end_ps)


def _fill_gaps(low: I64, high: I64, event: I64, begin_ps: int, end_ps: int) -> tuple[I64, I64, I64]:
    """The same stretches with what lies between them, in which nothing is recorded."""
    starts, ends = np.append(begin_ps, high), np.append(low, end_ps)
    gap = ends > starts
    low, high = np.append(low, starts[gap]), np.append(high, ends[gap])
    event = np.append(event, np.full(int(gap.sum()), -1))
    order = np.argsort(low, kind="stable")
    return low[order], high[order], event[order]
