"""Which cause each piece of a step has, and each stretch that a node waits."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import Cause, causes_of_work, event_causes, unrecorded_causes
from stepscope.analysis.account.critical_path import OWN, PAUSE, Pieces, kinds_of
from stepscope.analysis.account.graph import EdgeKind, Edges, Graph, NodeKind
from stepscope.analysis.account.stretches import NO_STRETCH, causes_within
from stepscope.analysis.account.threads import Threads
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import COPIES, forest
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, U8, Mask, blocks_of, look_up

E = EdgeKind

_OF_EDGE: dict[EdgeKind, Cause] = {
    E.LAUNCH: Cause.LAUNCH, E.QUEUE: Cause.DEVICE_GAP, E.RETURN: Cause.SYNC, E.HANDOVER: Cause.LAUNCH,
    E.JOIN: Cause.LAUNCH, E.BOUND: Cause.UNKNOWN,
}  # fmt: skip


def causes_of(trace: HostTrace, graph: Graph, pieces: Pieces, threads: Threads) -> U8:
    """The cause of each piece: uint8 of shape (pieces,), see Cause."""
    cause = np.empty(len(pieces), np.uint8)
    for part in blocks_of(len(pieces)):
        cause[part] = _causes_of_some(trace, graph, pieces.take(part), threads)
    return cause


def _causes_of_some(trace: HostTrace, graph: Graph, pieces: Pieces, threads: Threads) -> U8:
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


def awaits_silent_device(trace: HostTrace, graph: Graph, pieces: Pieces, cause: U8) -> Mask:
    """Pieces in which work that was launched waits, though nothing that it is known to wait for runs: bool of shape
    (pieces,)."""
    event = graph.event[pieces.node]
    launched = (graph.kind[pieces.node] == NodeKind.WORK) & (forest(trace).cause[event] >= 0)
    found: Mask = launched & (cause == Cause.UNKNOWN) & (graph.unexplained_ps[pieces.node] > 0)
    return found


def _held_up_in_copies(trace: HostTrace, graph: Graph, pieces: Pieces) -> I64:
    """Pieces before a copy that starts late in the call that has started it: the call waits then, for longer than
    launch or pause takes and than the copy itself."""
    rows = np.flatnonzero((pieces.edge != OWN) & (graph.kind[pieces.node] == NodeKind.WORK))
    rows = rows[is_any_kind(kinds_of(trace, graph.event[pieces.node[rows]].astype(np.int64)), COPIES)]
    node, edge, start, end = pieces.node[rows], pieces.edge[rows], pieces.start_ps[rows], pieces.end_ps[rows]
    call = forest(trace).cause[graph.event[node]]
    since, until = trace.events.start_ps[call], trace.events.start_ps[call] + trace.events.duration_ps[call]
    usual = np.maximum(np.where(edge >= 0, graph.edges.lag_ps[np.maximum(edge, 0)], graph.pause_ps[node]), 0)
    held = np.minimum(end, until) - np.maximum(start + usual, since)
    late: I64 = rows[(call >= 0) & (2 * held > end - start) & (held > graph.own_ps[node])]
    return late


def causes_of_waiting(graph: Graph, threads: Threads, node: I32, edge: I32, length: I64) -> U8:
    """The causes of stretches that a node waits for an edge, or pauses: uint8 of shape (n,), 0 for own time.

    Args:
        node, edge, length: of shape (n,), as in Pieces; lengths in ps.
    """
    cause = np.zeros(len(node), np.uint8)
    waits = np.flatnonzero(edge >= 0)
    cause[waits] = edge_causes(graph, graph.edges.take(edge[waits].astype(np.int64)), threads)
    pause = np.flatnonzero((edge == PAUSE) & (graph.kind[node] == NodeKind.WORK))
    known = length[pause] > graph.unexplained_ps[node[pause]]
    cause[pause] = np.where(known, Cause.DEVICE_GAP, Cause.UNKNOWN)
    return cause


def edge_causes(graph: Graph, edges: Edges, threads: Threads) -> U8:
    """The cause of waiting for each of some edges of a graph: uint8 of shape (edges,)."""
    by_kind = np.zeros(256, np.uint8)
    by_kind[list(_OF_EDGE)] = list(_OF_EDGE.values())
    cause = look_up(by_kind, edges.kind)
    for part in blocks_of(len(cause)):
        line, kind = graph.line[edges.target[part]], edges.kind[part]
        held = ((kind == E.LAUNCH) | (kind == E.QUEUE)) & (graph.unexplained_ps[edges.target[part]] > 0)
        cause[part][held] = Cause.UNKNOWN
        cause[part][(line >= 0) & threads.serves_input[line] & (cause[part] != Cause.UNKNOWN)] = Cause.INPUT
    return cause
