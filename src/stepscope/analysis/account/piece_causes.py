"""Which cause each piece of a step has, and each stretch that a node waits."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.causes import Cause, causes_of_work, event_causes, unrecorded_causes
from stepscope.analysis.account.critical_path import OWN, Pieces, kinds_of
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.stretches import NO_STRETCH, causes_within
from stepscope.analysis.account.threads import Threads
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import COPIES, forest
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, U8, Mask

E = EdgeKind

# By the kind of an edge: the cause of waiting for it, and whether that is unknown where a part is unexplained.
_OF_EDGE, _DOUBTED = np.zeros((2, 256), np.uint8)
_OF_EDGE[[E.LAUNCH, E.QUEUE, E.RETURN, E.HANDOVER, E.JOIN]] = (
    Cause.LAUNCH, Cause.DEVICE_GAP, Cause.SYNC, Cause.LAUNCH, Cause.LAUNCH,
)  # fmt: skip
_DOUBTED[[E.LAUNCH, E.QUEUE]] = True


def causes_of(trace: HostTrace, graph: Graph, pieces: Pieces, threads: Threads) -> U8:
    """The cause of each piece: uint8 of shape (pieces,), see Cause."""
    cause = causes_of_waiting(graph, threads, pieces.node, pieces.edge, pieces.end_ps - pieces.start_ps)
    cause[_find_waits_in_copies(trace, graph, pieces)] = Cause.SYNC
    kernels.causes.of_own_time(
        pieces.node, pieces.edge, pieces.event, graph.line, graph.kind, NodeKind.WORK, trace.events.kind,
        causes_of_work(trace), event_causes(trace), unrecorded_causes(trace, threads),
        threads.serves_input.view(np.uint8), Cause.INPUT, cause,
    )  # fmt: skip
    told = causes_within(trace, graph.line[pieces.node], pieces.start_ps, pieces.end_ps, pieces.edge == OWN)
    np.copyto(cause, told, where=(told != NO_STRETCH) & (graph.kind[pieces.node] != NodeKind.WORK))
    return cause


def awaits_silent_device(trace: HostTrace, graph: Graph, pieces: Pieces, cause: U8) -> Mask:
    """Pieces in which work that was launched waits, though nothing that it is known to wait for runs: bool of shape
    (pieces,)."""
    event = graph.event[pieces.node]
    launched = (graph.kind[pieces.node] == NodeKind.WORK) & (forest(trace).cause[event] >= 0)
    found: Mask = launched & (cause == Cause.UNKNOWN) & (graph.unexplained_ps[pieces.node] > 0)
    return found


def _find_waits_in_copies(trace: HostTrace, graph: Graph, pieces: Pieces) -> I64:
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
    kernels.causes.of_waiting(
        node, edge, length, graph.edges.kind, _OF_EDGE, _DOUBTED, graph.line, graph.kind, NodeKind.WORK,
        graph.unexplained_ps, threads.serves_input.view(np.uint8), Cause.INPUT, Cause.DEVICE_GAP, cause,
    )  # fmt: skip
    return cause


def edge_causes(graph: Graph, threads: Threads) -> U8:
    """The cause of waiting for each edge of a graph: uint8 of shape (edges,)."""
    count = len(graph.edges)
    return causes_of_waiting(
        graph, threads, graph.edges.target, np.arange(count, dtype=np.int32), np.zeros(count, np.int64)
    )
