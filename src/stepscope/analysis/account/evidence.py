"""How the cause of each piece of a step is known: recorded, inferred from something else that was recorded, or not."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import Cause, is_silent
from stepscope.analysis.account.critical_path import OWN, PAUSE, Pieces
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.silence import sampled_loop_time, silent_spans
from stepscope.analysis.account.stretches import NO_STRETCH, causes_within
from stepscope.analysis.account.threads import threads_of
from stepscope.model import HostTrace, Kind
from stepscope.model.arrays import U8, Mask, blocks_of
from stepscope.vocabulary.lookup import is_called
from stepscope.vocabulary.xla import AWAITS_PROGRAM


class Known(Kind):
    """How a cause is known."""

    RECORDED = 0  # an event of that thread or device says so, or its processor time or samples of its stack
    INFERRED = 1  # something else that was recorded implies it: what runs elsewhere, the order of work, a short gap
    NOT_RECORDED = 2


def known_of(trace: HostTrace, graph: Graph, pieces: Pieces, cause: U8) -> U8:
    """How the cause of each piece is known: uint8 of shape (pieces,), see Known.

    Time of a device is recorded, and so are launches, waits and hand-overs that the trace states.  A thread's own time
    is what an event says that is the innermost; without one it is inferred from what is around it.
    """
    found, awaits = np.empty(len(pieces), np.uint8), is_called(trace, (AWAITS_PROGRAM,))
    for part in blocks_of(len(pieces)):
        found[part] = _grade_pieces(trace, graph, pieces.take(part), cause[part], awaits)
    return found


def _grade_pieces(trace: HostTrace, graph: Graph, pieces: Pieces, cause: U8, awaits: Mask) -> U8:
    """The same of some pieces.

    Args:
        awaits: bool of shape (events,), calls that wait for a program.
    """
    found = np.full(len(pieces), Known.INFERRED, np.uint8)
    own, work = pieces.edge == OWN, graph.kind[pieces.node] == NodeKind.WORK
    found[own & (work | (graph.kind[pieces.node] == NodeKind.CALL))] = Known.RECORDED
    host = np.flatnonzero(own & ~work & (pieces.event >= 0))
    says = ~is_silent(trace, pieces.event[host])
    # A mark in a recorded function of Python says as much as the function.
    main = host[graph.line[pieces.node[host]] == threads_of(trace).main]
    spoken = silent_spans(trace).overlap_ps(pieces.start_ps[main], pieces.end_ps[main]) == 0
    found[main[spoken]] = Known.RECORDED
    found[host[says]] = Known.RECORDED
    found[host[awaits[pieces.event[host]]]] = Known.INFERRED
    line = graph.line[pieces.node]
    told = causes_within(trace, line, pieces.start_ps, pieces.end_ps, own) != NO_STRETCH
    found[told & ~work] = Known.INFERRED
    silent = np.flatnonzero(own & ~work & (found != Known.RECORDED) & (cause == Cause.PYTHON))
    read = sampled_loop_time(trace).overlap_ps(pieces.start_ps[silent], pieces.end_ps[silent])
    found[silent[2 * read > (pieces.end_ps - pieces.start_ps)[silent]]] = Known.RECORDED
    waits = np.flatnonzero(pieces.edge >= 0)
    edges = pieces.edge[waits]
    stated = ~graph.edges.inferred[edges] & np.isin(graph.edges.kind[edges], (EdgeKind.LAUNCH, EdgeKind.RETURN))
    found[waits[stated | (~graph.edges.inferred[edges] & (graph.edges.kind[edges] == EdgeKind.HANDOVER))]] = (
        Known.RECORDED
    )
    found[(pieces.edge == PAUSE) & ~work] = Known.NOT_RECORDED
    found[cause == Cause.UNKNOWN] = Known.NOT_RECORDED
    return found
