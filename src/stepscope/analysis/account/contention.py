"""When the loop's thread was ready and had no processor, because other threads or processes used them all.

A trace shows such a thread as late, and the time as Python or as a long call.  Our own captures record, from reading to
reading, how long the thread ran and how long it was ready without running (`capture/tracers/thread_usage.py`).  Where
in that interval the time was lost is not recorded.  It is taken from the stretches in which the thread runs code that
nothing recorded, the longest first, since recorded calls are known to be short; then from the others.  No more is
taken than the thread did not run: while it waits for a device or a lock it is not ready.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.build import graph_of
from stepscope.analysis.account.graph import Graph
from stepscope.analysis.account.innermost import cut_by_events, intersect
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.own_tracers import Usage, usage_of_thread
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace
from stepscope.model.arrays import I64

_LEAST = 0.01  # of an interval: a thread that is woken waits for some microseconds on an idle machine, too


def lost_spans(trace: HostTrace) -> Spans | None:
    """When the loop's thread was ready and had no processor, found once; None where that was not recorded."""
    return trace.derived("contention", _lost_spans)


def asleep_ps(trace: HostTrace, line: int, spans: Spans) -> int | None:
    """How much of some time of a thread it neither ran nor was ready: it slept, or waited for a lock, a file or a peer;
    None where that was not recorded."""
    usage = usage_of_thread(trace, line)
    if usage is None:
        return None
    _, interval, start, stop = intersect(spans.start, spans.end, usage.start_ps, usage.end_ps)
    taken = np.bincount(interval, stop - start, len(usage.start_ps))
    return int(np.minimum(taken, (usage.end_ps - usage.start_ps - usage.ran_ps - usage.queued_ps).clip(min=0)).sum())


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
