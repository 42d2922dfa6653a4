"""Which cause each piece of a step has, and each stretch that a node waits."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import Cause, causes_of_work, event_causes, unrecorded_causes
from stepscope.analysis.account.critical_path import OWN, PAUSE, Pieces, kinds_of
from stepscope.analysis.account.graph import EdgeKind, Edges, Graph, NodeKind
from stepscope.analysis.account.stretches import NO_STRETCH, causes_within
from stepscope.analysis.account.threads import Threads
from stepscope.analysis.trace.grouping import forest
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, U8, blocks_of, look_up

E = EdgeKind

_OF_EDGE: dict[EdgeKind, Cause] = {
    E.LAUNCH: Cause.LAUNCH, E.QUEUE: Cause.DEVICE_GAP, E.RETURN: Cause.SYNC, E.HANDOVER: Cause.LAUNCH,
    E.JOIN: Cause.LAUNCH, E.BOUND: Cause.UNKNOWN,
}  # fmt: skip


def causes_of(trace: HostTrace, graph: Graph, pieces: Pieces, threads: Threads) -> U8:
    """The cause of each piece: uint8 of shape (pieces,), see Cause."""
    line = graph.line[pieces.node]
    cause = causes_of_waiting(graph, threads, pieces.node, pieces.edge, pieces.end_ps - pieces.start_ps)
    own, work = pieces.edge == OWN, graph.kind[pieces.node] == NodeKind.WORK
    cause[_held_up_in_copies(trace, graph, pieces)] = Cause.SYNC
    cause[own & work] = causes_of_work(trace)[kinds_of(trace, pieces.event[own & work])]
    host = np.flatnonzero(own & ~work)
    event = pieces.event[host]
    cause[host] = np.where(event >= 0, event_causes(trace)[event], unrecorded_causes(trace, threads)[line[host]])
    cause[own & (line >= 0) & threads.serves_input[line]] = Cause.INPUT
    told = causes_within(trace, line, pieces.start_ps, pieces.end_ps, own)
    np.copyto(cause, told, where=(told != NO_STRETCH) & ~work)
    return cause


def _held_up_in_copies(trace: HostTrace, graph: Graph, pieces: Pieces) -> I64:
    """Pieces in which no work starts on a device and a thread waits in a call that has started a copy: longer than
    launch or pause takes and than the copy itself."""
    events, waits = trace.events, graph.edges.take(graph.edges.kind == E.RETURN)
    call, until = forest(trace).cause[graph.event[waits.source]], graph.start_ps[waits.target]
    itself = (call >= 0) & (events.line[call] == graph.line[waits.target])
    itself &= events.start_ps[call] + events.duration_ps[call] == until
    since, copy_ps, until = events.start_ps[call[itself]], graph.own_ps[waits.source[itself]], until[itself]
    rows = np.flatnonzero((pieces.edge != OWN) & (graph.kind[pieces.node] == NodeKind.WORK))
    if not len(since) or not len(rows):
        return np.empty(0, np.int64)
    order = np.argsort(since, kind="stable")
    since, copy_ps, until = since[order], copy_ps[order], until[order]
    node, edge, start, end = pieces.node[rows], pieces.edge[rows], pieces.start_ps[rows], pieces.end_ps[rows]
    usual = np.maximum(np.where(edge >= 0, graph.edges.lag_ps[np.maximum(edge, 0)], graph.pause_ps[node]), 0)
    at = np.maximum(np.searchsorted(since, end) - 1, 0)
    held = np.minimum(end, until[at]) - np.maximum(start + usual, since[at])
    late: I64 = rows[(2 * held > end - start) & (held > copy_ps[at])]
    return late


def causes_of_waiting(graph: Graph, threads: Threads, node: I32, edge: I32, length: I64) -> U8:
    """The causes of stretches that a node waits for an edge, or pauses: uint8 of shape (n,), 0 for own time.

    Args:
        node, edge, length: of shape (n,), as in Pieces; lengths in ps.
    """
    cause = np.zeros(len(node), np.uint8)
    waits = np.flatnonzero(edge >= 0)
    cause[waits] = edge_causes(graph.edges.take(edge[waits].astype(np.int64)), graph.line, threads)
    pause = np.flatnonzero((edge == PAUSE) & (graph.kind[node] == NodeKind.WORK))
    known = length[pause] > graph.unexplained_ps[node[pause]]
    cause[pause] = np.where(known, Cause.DEVICE_GAP, Cause.UNKNOWN)
    return cause


def edge_causes(edges: Edges, line_of_node: I32, threads: Threads) -> U8:
    """The cause of waiting for each of some edges: uint8 of shape (edges,)."""
    by_kind = np.zeros(256, np.uint8)
    by_kind[list(_OF_EDGE)] = list(_OF_EDGE.values())
    cause = look_up(by_kind, edges.kind)
    for part in blocks_of(len(cause)):
        line = line_of_node[edges.target[part]]
        cause[part][(line >= 0) & threads.serves_input[line] & (cause[part] != Cause.UNKNOWN)] = Cause.INPUT
    return cause
