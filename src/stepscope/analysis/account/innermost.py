"""What is innermost on a thread at each moment, and stretches of time cut by other stretches."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.grouping import forest
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, count_below


def cut_by_events(
    trace: HostTrace, line: int, start: I64, end: I64, cuts: I64 | None = None
) -> tuple[I64, I64, I64, I64]:
    """Stretches of a thread, in order of time, cut wherever the innermost event changes and at some other times, which
    ascend: for each part the place of its stretch, start, end and event, -1 for none."""
    links, events = forest(trace), trace.events
    offset, stop = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
    starts = events.start_ps[offset:stop]
    first = offset + int(np.searchsorted(starts, start[0], side="right"))
    last = offset + int(np.searchsorted(starts, end[-1], side="left"))
    around = first - 1 if first > offset else -1
    while around >= 0 and events.start_ps[around] + links.extent_ps[around] <= start[0]:
        around = int(links.parent[around])
    parts = kernels.replay.cut(
        first, max(last, first), around, events.start_ps, links.extent_ps, links.parent, start, end,
        np.empty(0, np.int64) if cuts is None else cuts,
    )  # fmt: skip
    place, begin, until, event = map(np.asarray, parts)
    return place, begin, until, event


def places_around(low: I64, high: I64, start: I64, end: I64) -> I64:
    """The one of some intervals, which ascend and do not overlap, that each other one lies in: int64 of the shape of
    `start`, -1 for none."""
    at = count_below(low, start, with_limit=True) - 1
    at[end > np.append(high, np.iinfo(np.int64).min)[at]] = -1
    return at


def intersect(start: I64, end: I64, low: I64, high: I64) -> tuple[I64, I64, I64, I64]:
    """What stretches share with others, both in order of time and without overlap: for each shared part the place of
    the one and of the other, start and end."""
    place, at, begin, until = np.asarray(kernels.intervals.intersect(start, end, low, high)).T.copy()
    return place, at, begin, until
