"""Edges from work of one queue to work of another that waits for it.

What the trace states or the order of host calls shows comes first.  Work that starts later than all of that explains
waits for the work of another queue that ended last before it, if that leaves little to explain; such edges count as
inferred.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.graph import EdgeKind, Edges
from stepscope.analysis.account.queues import NEVER, Queues, last_done
from stepscope.model.arrays import I64, Mask, median


def queue_edges(queues: Queues, first: int) -> Edges:
    """What work waits for on other queues.

    Args:
        first: the node of the first work.
    """
    waits = queues.waits
    free = np.where(queues.previous >= 0, queues.end_ps[queues.previous] + queues.pause_ps, NEVER)
    ready = np.maximum(free, queues.arrival_ps)
    known = Edges.connect(
        first + waits.source, first + waits.target, _wait_lags(queues, ready), EdgeKind.QUEUE, not waits.recorded
    )
    explained = waits.target[queues.end_ps[waits.source] > ready[waits.target]]
    late = (queues.call >= 0) & (queues.start_ps > ready)
    late[explained] = False
    source, target = _sources_by_time(queues, ready, np.flatnonzero(late))
    rest = queues.start_ps[target] - queues.end_ps[source]
    lag = np.where(rest < 0, rest, int(median(rest)) if len(rest) else 0)
    return Edges.join([known, Edges.connect(first + source, first + target, lag, EdgeKind.QUEUE, True)])


def _wait_lags(queues: Queues, ready: I64) -> I64:
    """From the end of the work that is waited for to the start of what waits: the median over those that did wait.

    Times of devices are not exact, so work may seem to start before what it is stated to wait for has ended: then it is
    as much less.
    """
    source, target = queues.waits.source, queues.waits.target
    rest = queues.start_ps[target] - queues.end_ps[source]
    waited = (queues.end_ps[source] > ready[target]) & (rest >= 0)
    usual = int(median(rest[waited])) if waited.any() else 0
    early = (rest < 0) & (queues.start_ps[source] <= queues.start_ps[target]) & queues.waits.recorded
    return np.where(early, rest, usual)


def _sources_by_time(queues: Queues, ready: I64, late: I64) -> tuple[I64, I64]:
    """The work of another queue that ended last before each late work started, where that explains the start."""
    by_end = np.argsort(queues.end_ps, kind="stable")
    source = last_done(by_end, queues.end_ps, queues.start_ps[late], ready[late], queues.line, queues.line[late])
    explains: Mask = (source >= 0) & (queues.end_ps[source] > ready[late])
    # It is this work that was waited for if nothing but what a start takes is left to explain.
    rest = queues.start_ps[late] - queues.end_ps[source]
    explains &= rest <= (queues.start_ps[late] - ready[late]) // 2
    return source[explains], late[explains]
