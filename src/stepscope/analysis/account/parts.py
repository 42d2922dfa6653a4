"""Parts of a model that a change is about: a cause, or whatever some events stand for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.causes import Cause, event_causes
from stepscope.analysis.account.graph import NodeKind
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.own_times import OwnTimes
from stepscope.analysis.account.shares import time_by_label
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.grouping import enclosing_events, forest, is_device_work
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I64
from stepscope.records import dataclass


@dataclass(frozen=True)
class Part:
    """Time in a graph that a change is about.

    Attributes:
        own_ps: of each node's own time, by cause.
        lag_ps: int64 of shape (edges,), of the lag of each edge; None for nothing.
        pause_ps: int64 of shape (nodes,), of the pause before each node; None for nothing.
    """

    own_ps: OwnTimes
    lag_ps: I64 | None = None
    pause_ps: I64 | None = None


def part_of_cause(model: StepModel, cause: Cause) -> Part:
    """All time with a cause: own time of nodes, what launches and returns take, and pauses of queues."""
    return Part(model.shares.own_ps.only(cause), *waiting_of_cause(model, cause))


def waiting_of_cause(model: StepModel, cause: Cause) -> tuple[I64, I64]:
    """The lags of edges and the pauses of nodes with a cause: int64 of shapes (edges,) and (nodes,), ps."""
    graph = model.graph
    lag = np.where(model.shares.edge_cause == cause, np.maximum(graph.edges.lag_ps, 0), 0)
    gap = (graph.kind == NodeKind.WORK) & (cause == Cause.DEVICE_GAP)
    return lag, np.where(gap, graph.pause_ps - graph.unexplained_ps, 0)


def part_of_events(model: StepModel, rows: I64) -> Part:
    """The own time in which some events last.

    Device work counts as a whole if it is among the events; the time of threads as far as events of theirs cover it.
    """
    return Part(OwnTimes.gather(len(model.graph), _times_inside(model, rows)))


def _times_inside(model: StepModel, rows: I64) -> Iterator[tuple[I64, int, I64 | F64]]:
    """Nodes, a cause, and what of these nodes' own time with that cause some events cover."""
    trace, graph = model.trace, model.graph
    chosen = np.zeros(len(trace.events), np.uint8)
    chosen[rows] = 1
    work = np.flatnonzero((graph.kind == NodeKind.WORK) | (graph.kind == NodeKind.BATCH))
    work = work[chosen[graph.event[work]] > 0]
    own = model.shares.own_ps.take(work)
    yield from ((work, cause, own[:, cause]) for cause in Cause)
    lines = numbers_in(trace.events.line[rows[is_thread_event(trace)[rows]]])
    kernels.nesting.inherit(chosen, forest(trace).parent)
    label = chosen * np.uint8(len(Cause)) + event_causes(trace)
    host = np.flatnonzero((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL))
    for line in lines:
        nodes = host[graph.line[host] == line]
        inside = time_by_label(trace, graph, line, nodes, label, 2 * len(Cause))[:, len(Cause) :]
        if model.threads.serves_input[line]:
            yield nodes, Cause.INPUT, inside.sum(axis=1)
        else:
            yield from ((nodes, cause, inside[:, cause]) for cause in Cause)


def work_launched_by(trace: HostTrace, rows: I64) -> I64:
    """Device work that calls inside some host events launched: rows of events."""
    chosen = np.zeros(len(trace.events), np.bool_)
    chosen[rows] = True
    inside = enclosing_events(trace, chosen) >= 0
    work = np.flatnonzero(is_device_work(trace))
    call = forest(trace).cause[work]
    found: I64 = work[(call >= 0) & inside[call]]
    return found
