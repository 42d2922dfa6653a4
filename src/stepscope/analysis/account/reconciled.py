"""The account held against what is counted without any model: when the devices work.

    main    M0-a----------------M1-      nothing tells what the thread waits for in a: taken for its own time, it would
    gpu       k--------k--------         be all of the step, of which the device works nearly all of the time

Where a queue of a device works for nearly all of a step, no change of the host can make it much shorter, whatever the
way back through the step says.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import Cause, causes_of_work
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.innermost import intersect
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.pieces import OWN, Pieces, clip_to_steps, kinds_of
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I64, U8, distinct

_OF_HOST = (Cause.LAUNCH, Cause.PYTHON, Cause.SYNC, Cause.UNKNOWN, Cause.HOST_COMPUTE)
_ON_DEVICES = (Cause.DEVICE_COMPUTE, Cause.COMMUNICATION, Cause.COPY)  # at one moment the first of these counts


def give_way(trace: HostTrace, graph: Graph, pieces: Pieces, cause: U8) -> tuple[Pieces, U8]:
    """Pieces and their causes, of the devices' work instead of the host's in steps of which that leaves less than what
    makes a cause a limit."""
    place, inside = clip_to_steps(trace, graph, pieces)
    length = np.maximum(inside.end_ps - inside.start_ps, 0)
    work = np.flatnonzero(graph.kind == NodeKind.WORK)
    if not len(work):
        return pieces, cause
    work = work[np.argsort(graph.start_ps[work], kind="stable")]
    step = np.bincount(place, weights=length, minlength=len(graph.steps))
    busy = _busy_ps(graph, work, place, inside, len(step))
    rows = np.flatnonzero(((1 - LARGE_SHARE / 100) * step < busy)[place] & np.isin(cause, _OF_HOST) & (length > 0))
    if not len(rows):
        return pieces, cause
    rows = rows[np.argsort(pieces.start_ps[rows], kind="stable")]
    start, end = pieces.start_ps[rows], pieces.end_ps[rows]
    does = causes_of_work(trace)[kinds_of(trace, graph.event[work].astype(np.int64))]
    spans = {each: _spans(graph, work[does == each]) for each in _ON_DEVICES}
    bounds = distinct(
        np.concatenate([start, end, *(side for each in spans.values() for side in (each.start, each.end))])
    )
    at, _, begin, until = intersect(start, end, bounds[:-1], bounds[1:])
    parts = Pieces(begin, until, pieces.node[rows[at]], pieces.edge[rows[at]], pieces.event[rows[at]])
    became = cause[rows[at]]
    for each in reversed(_ON_DEVICES):
        here = np.flatnonzero(spans[each].overlap_ps(begin, until) > 0)
        mine = work[does == each]
        if len(here):
            node = mine[np.searchsorted(graph.start_ps[mine], begin[here], side="right") - 1]
            parts.node[here], parts.edge[here], parts.event[here] = node, OWN, graph.event[node]
            became[here] = each
    kept = np.ones(len(pieces), np.bool_)
    kept[rows] = False
    rest = pieces.take(kept)
    joined = (np.concatenate(both) for both in zip(vars(rest).values(), vars(parts).values(), strict=True))
    return Pieces(*joined), np.append(cause[kept], became)


def _busy_ps(graph: Graph, work: I64, place: I64, inside: Pieces, steps: int) -> F64:
    """How long devices work in each step at least, whatever else changes: float64 of shape (steps,), ps.

    It is the time of the busiest queue, as work of several could overlap more; and that of all of them where nothing
    tells what launched their work, so that there is no telling what it could overlap with.
    """
    launched = np.zeros(len(graph.kind), np.bool_)
    launched[graph.edges.target[graph.edges.kind == EdgeKind.LAUNCH]] = True
    taken = graph.end_ps[work] - graph.start_ps[work]
    lines = (
        [work]
        if 2 * taken[launched[work]].sum() < taken.sum()
        else [work[graph.line[work] == line] for line in numbers_in(graph.line[work])]
    )
    busiest = np.zeros(steps)
    for each in lines:
        ps = _spans(graph, each).overlap_ps(inside.start_ps, np.maximum(inside.end_ps, inside.start_ps))
        busiest = np.maximum(busiest, np.bincount(place, weights=ps, minlength=steps))
    return busiest


def _spans(graph: Graph, work: I64) -> Spans:
    return Spans.union(graph.start_ps[work], graph.end_ps[work])
