"""When the loop's thread was ready and had no processor, because other threads or processes used them all.

A trace shows such a thread as late, and the time as Python or as a long call.  Our own captures record, from reading to
reading, how long the thread ran and how long it was ready without running (`capture/tracers/thread_usage.py`).  Where
in that interval the time was lost is not recorded.  It is taken from the stretches in which the thread runs code that
nothing recorded, the longest first, since recorded calls are known to be short; then from the others.  No more is
taken than the thread did not run: while it waits for a device or a lock it is not ready.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.account.build import graph_of
from stepscope.analysis.account.graph import Graph
from stepscope.analysis.account.innermost import cut_by_events, intersect
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.own_tracers import Usage, usage_of_thread
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, Mask, distinct

_LEAST = 0.01  # of an interval: a thread that is woken waits for some microseconds on an idle machine, too


def lost_spans(trace: HostTrace) -> Spans | None:
    """When the loop's thread was ready and had no processor, found once; None where that was not recorded."""
    return trace.derived("contention", _lost_spans)


def cut_where_lost(trace: HostTrace, line: int, start: I64, end: I64) -> tuple[I64, I64, I64]:
    """Stretches of a thread, in order of time, cut where it loses or gets its processor: for each part the place of its
    stretch, start and end."""
    lost = lost_spans(trace)
    if lost is None or line != threads_of(trace).main or not len(lost.start) or not len(start):
        return np.arange(len(start)), start, end
    first, last = min(int(start[0]), int(lost.start[0])), max(int(end[-1]), int(lost.end[-1]))
    bounds = distinct(np.concatenate([[first], lost.start, lost.end, [last]]))
    place, _, begin, stop = intersect(start, end, bounds[:-1], bounds[1:])
    return place, begin, stop


def is_lost(trace: HostTrace, line: NDArray[np.integer], start: I64, end: I64) -> Mask:
    """Which stretches, already cut, lie where the loop's thread had no processor: bool of shape (n,)."""
    lost = lost_spans(trace)
    if lost is None:
        return np.zeros(len(line), np.bool_)
    found: Mask = (line == threads_of(trace).main) & lost.touches(start, end)
    return found


def lost_parts(trace: HostTrace, line: int, start: I64, end: I64) -> tuple[I64, I64, I64]:
    """The time that stretches of a thread, in order of time, lose: the place of the stretch, the innermost event there
    (-1 for none), and how long, in ps, for each part."""
    lost = lost_spans(trace)
    if lost is None or line != threads_of(trace).main or not len(lost.start) or not len(start):
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing
    place, _, begin, stop = intersect(start, end, lost.start, lost.end)
    at, low, high, event = cut_by_events(trace, line, begin, stop) if len(begin) else (place, begin, stop, place)
    return place[at], event, high - low


def _lost_spans(trace: HostTrace) -> Spans | None:
    main, graph = threads_of(trace).main, graph_of(trace)
    usage = usage_of_thread(trace, main) if main >= 0 else None
    if usage is None or graph is None:
        return None
    late = usage.take(usage.queued_ps >= _LEAST * (usage.end_ps - usage.start_ps))
    if not len(late.start_ps):
        return Spans(late.start_ps, late.end_ps)
    return _place_lost(late, *_stretches(trace, graph, main, late))


def _stretches(trace: HostTrace, graph: Graph, line: int, usage: Usage) -> tuple[I64, I64, I64, I64]:
    """The own time of a thread, cut by interval and innermost event: interval, start, end and event of each part."""
    own = np.flatnonzero((graph.line == line) & (graph.own_ps > 0))
    if not len(own):
        return own, own, own, own
    _, start, end, event = cut_by_events(trace, line, graph.start_ps[own], graph.end_ps[own])
    place, interval, start, end = intersect(start, end, usage.start_ps, usage.end_ps)
    return interval, start, end, event[place]


def _place_lost(usage: Usage, interval: I64, start: I64, end: I64, event: I64) -> Spans:
    """Where in the stretches of each interval the time is taken from: at their starts, since a thread that is woken
    waits before it runs."""
    length, count = end - start, len(usage.start_ps)
    worked = np.zeros(count, np.int64)
    np.add.at(worked, interval, length)
    lost = np.minimum(usage.queued_ps, np.maximum(worked - usage.ran_ps, 0))
    order = np.lexsort((-length, event >= 0, interval))
    before = np.cumsum(length[order]) - length[order]
    before -= (np.cumsum(worked) - worked)[interval[order]]
    taken = np.clip(lost[interval[order]] - before, 0, length[order])
    return Spans.union(start[order], start[order] + taken)
