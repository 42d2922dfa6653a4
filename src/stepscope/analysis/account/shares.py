"""The own time of nodes by cause, and what a step is spent on: by the times recorded, or by those of a replay."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.causes import Cause, causes_of_work, event_causes, unrecorded_causes
from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.own_times import OwnTimes
from stepscope.analysis.account.piece_causes import edge_causes
from stepscope.analysis.account.stretches import stretches_of
from stepscope.analysis.account.threads import Threads, threads_of
from stepscope.analysis.trace.grouping import forest
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I64, U8, look_up
from stepscope.records import dataclass


@dataclass(frozen=True)
class CauseShares:
    """Causes of all time in a graph.

    Attributes:
        own_ps: each node's own time by cause; those of a node add up to it.
        edge_cause: uint8 of shape (edges,), the cause of waiting for each edge.
    """

    own_ps: OwnTimes
    edge_cause: U8


def shares_of(trace: HostTrace, graph: Graph) -> CauseShares:
    """The causes of all own time and of all waiting in the graph of a host, found once."""
    return trace.derived("shares of causes", lambda _: _shares(trace, graph))


def _shares(trace: HostTrace, graph: Graph) -> CauseShares:
    threads = threads_of(trace)
    nodes, cause, ps = map(np.concatenate, zip(*_own_times(trace, graph, threads), strict=True))
    return CauseShares(OwnTimes.of_causes(len(graph), nodes, cause, ps), edge_causes(graph, threads))


def _own_times(trace: HostTrace, graph: Graph, threads: Threads) -> Iterator[tuple[I64, U8, I64]]:
    """Nodes in ascending order, causes, and the own times of these nodes with these causes."""
    host = np.flatnonzero((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL))
    unrecorded, line_of = unrecorded_causes(trace, threads), graph.line[host]
    for line in numbers_in(line_of):
        nodes = host[line_of == line]
        if threads.serves_input[line]:
            yield nodes, np.full(len(nodes), Cause.INPUT, np.uint8), graph.own_ps[nodes]
        else:
            place, cause, ps = time_by_cause(trace, line, graph.start_ps[nodes], graph.end_ps[nodes], unrecorded[line])
            yield nodes[place], cause, ps
    work, batch = (np.flatnonzero(graph.kind == kind) for kind in (NodeKind.WORK, NodeKind.BATCH))
    yield work, look_up(causes_of_work(trace), trace.events.kind[graph.event[work]]), graph.own_ps[work]
    yield batch, np.full(len(batch), Cause.INPUT, np.uint8), graph.own_ps[batch]


def time_by_label(
    trace: HostTrace, line: int, start: I64, end: I64, label: U8, unrecorded: int = 0
) -> tuple[I64, U8, I64]:
    """How long a thread runs under each label of the innermost event, in some stretches in order of time: a stretch's
    place, a label, and the time in ps, for each that is not 0; int64, uint8 and int64 of shape (n,).

    Time of the loop's thread in a stretch of a known cause counts under the same label with that in place of its own.

    Args:
        label: uint8 of shape (events,): a cause, or a cause and a multiple of `len(Cause)`.
        unrecorded: the label of time without an event, and of events with the label 0.
    """
    links, lines, known = forest(trace), trace.lines, stretches_of(trace)
    here = slice(None if line == threads_of(trace).main else 0)
    found = kernels.replay.time_by_label(
        int(lines.event_begin[line]), int(lines.event_end[line]), trace.events.start_ps, links.extent_ps, links.parent,
        label, start, end, int(unrecorded), known.start_ps[here], known.end_ps[here], known.cause[here], len(Cause),
    )  # fmt: skip
    place, of_label, ps = map(np.asarray, found)
    return place, of_label.astype(np.uint8), ps


def time_by_cause(trace: HostTrace, line: int, start: I64, end: I64, unrecorded: int) -> tuple[I64, U8, I64]:
    """How long a thread spends on each cause in some stretches in order of time, as `time_by_label`.

    Args:
        unrecorded: the cause of time in which nothing is recorded.
    """
    return time_by_label(trace, line, start, end, event_causes(trace), unrecorded)


def spent_on(graph: Graph, shares: CauseShares, steps: I64, start_ps: I64, end_ps: I64, whole_ps: F64) -> F64:
    """What the way back through some steps is spent on: float64 of shape (causes,), ps.

    Args:
        shares: those of the graph, or what is left of them after a change.
        steps: int64 of shape (n,), steps of the graph.
        start_ps, end_ps: int64 of shape (nodes,), the times of a replay, or those recorded.
        whole_ps: float64 of shape (nodes,), the own time of nodes of all causes together.
    """
    spent, share = np.zeros(len(Cause)), np.zeros(len(graph))
    kernels.replay.spend(
        steps, graph.bounds, graph.previous, graph.into, graph.edges.source, graph.edges.after_start.view(np.uint8),
        start_ps, end_ps, whole_ps, shares.edge_cause, graph.unexplained_ps,
        (graph.kind == NodeKind.WORK).view(np.uint8), Cause.DEVICE_GAP, spent, share,
    )  # fmt: skip
    return spent + shares.own_ps.sum_weighted(share)
