"""Changes of a model, and how long its steps take then: a pure function of a graph and a list of changes.

A change is about a part of the own time of nodes: that of an op, of a cause, of whatever `own_time_of` is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.replay import replay
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.grouping import enclosing_events, forest, is_device_work
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass


@dataclass(frozen=True)
class Scale:
    """The part takes another time.

    Attributes:
        part_ps: int64 of shape (nodes,), the part of each node's own time that the change is about.
        factor: of its length; 0 removes it, 0.5 makes it twice as fast.
    """

    part_ps: I64
    factor: float


@dataclass(frozen=True)
class Move:
    """The part is done by other threads or processes while the steps go on, which wait for it only where those cannot
    keep up.

    Attributes:
        part_ps: as of Scale.
        workers: how many do it side by side; their rate is so many times as high.
    """

    part_ps: I64
    workers: int = 1


@dataclass(frozen=True)
class ReplayAsGraph:
    """All device work of a step is launched by one call: what threads spend on launching it goes, but for the usual
    length of one launching call a step.

    Attributes:
        part_ps: as of Scale: the time that goes into dispatching.
    """

    part_ps: I64


Intervention = Scale | Move | ReplayAsGraph


def steps_after(graph: Graph, changes: Sequence[Intervention]) -> I64:
    """How long each step of a graph takes after some changes, all at once: int64 of shape (steps,), ps."""
    own = graph.own_ps.astype(np.float64)
    least = np.zeros(len(graph.steps))
    for change in changes:
        part = np.minimum(change.part_ps, graph.own_ps)
        if isinstance(change, Scale):
            own -= part * (1.0 - change.factor)
        elif isinstance(change, Move):
            own -= part
            least = np.maximum(least, _sum_by_step(graph, part) / change.workers)
        else:
            own -= part
            least = np.maximum(least, _longest_queue(graph))
            own[_first_launches(graph)] += _usual_call(graph)
    taken = replay(graph, np.maximum(own, 0.0).astype(np.int64)).step_ps
    return np.maximum(taken, least.astype(np.int64))


def gain_percent(graph: Graph, changes: Sequence[Intervention], steps: I64) -> float | None:
    """By how much of its time the replayed median of some steps gets shorter; None without steps."""
    before = replay(graph).step_ps[steps]
    if not len(before) or np.median(before) <= 0:
        return None
    after = steps_after(graph, changes)[steps]
    return 100.0 * (1.0 - float(np.median(after)) / float(np.median(before)))


def own_time_of(trace: HostTrace, graph: Graph, rows: I64) -> I64:
    """The part of each node's own time in which some events last: int64 of shape (nodes,), ps.

    Device work counts as a whole if it is among the events; the time of threads as far as events of theirs cover it.
    """
    chosen = np.zeros(len(trace.events), np.bool_)
    chosen[rows] = True
    part = np.zeros(len(graph), np.int64)
    work = np.flatnonzero(graph.kind == NodeKind.WORK)
    part[work] = np.where(chosen[graph.event[work]], graph.own_ps[work], 0)
    host = np.flatnonzero((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL))
    outer = rows[is_thread_event(trace)[rows]]
    outer = outer[enclosing_events(trace, chosen)[outer] == outer]
    for line in numbers_in(trace.events.line[outer]):
        events, nodes = outer[trace.events.line[outer] == line], host[graph.line[host] == line]
        start = trace.events.start_ps[events]
        spans = Spans.union(start, start + forest(trace).extent_ps[events])
        part[nodes] = spans.overlap_ps(graph.start_ps[nodes], graph.end_ps[nodes])
    return part


def work_launched_by(trace: HostTrace, rows: I64) -> I64:
    """Device work that calls inside some host events launched: rows of events."""
    chosen = np.zeros(len(trace.events), np.bool_)
    chosen[rows] = True
    inside = enclosing_events(trace, chosen) >= 0
    work = np.flatnonzero(is_device_work(trace))
    call = forest(trace).cause[work]
    found: I64 = work[(call >= 0) & inside[call]]
    return found


def _sum_by_step(graph: Graph, part: I64) -> I64:
    known = graph.step >= 0
    return np.bincount(graph.step[known], weights=part[known], minlength=len(graph.steps))[: len(graph.steps)].astype(
        np.int64
    )


def _longest_queue(graph: Graph) -> I64:
    """The time of the busiest queue in each step: no step is shorter."""
    work = np.flatnonzero((graph.kind == NodeKind.WORK) & (graph.step >= 0))
    longest = np.zeros(len(graph.steps), np.int64)
    for line in numbers_in(graph.line[work]):
        here = work[graph.line[work] == line]
        sums = np.bincount(graph.step[here], weights=graph.own_ps[here], minlength=len(graph.steps))
        longest = np.maximum(longest, sums[: len(graph.steps)].astype(np.int64))
    return longest


def _launching(graph: Graph) -> Mask:
    found = np.zeros(len(graph), np.bool_)
    found[graph.edges.source[graph.edges.kind == EdgeKind.LAUNCH]] = True
    return found


def _first_launches(graph: Graph) -> I64:
    """The first launching call of each step that has one: nodes."""
    calls = np.flatnonzero(_launching(graph) & (graph.step >= 0))
    calls = calls[np.argsort(graph.start_ps[calls], kind="stable")]
    _, first = np.unique(graph.step[calls], return_index=True)
    return calls[first]


def _usual_call(graph: Graph) -> float:
    calls = graph.own_ps[_launching(graph)]
    return float(np.median(calls)) if len(calls) else 0.0
