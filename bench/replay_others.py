"""A step replayed with what the other steps say: the test that a model predicts and does not only repeat.

Whatever runs in a step, an op, a call or a kernel, gets the length that the same thing has in the other steps: the
median of the so many-th of its name. What has its name more or less often than in most steps keeps its length, for
nothing tells which is which, and so does time in which nothing is recorded. The edges are those of the step.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.account.innermost import cut_by_events
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.replay import replay
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I64, Mask
from stepscope.records import dataclass


def replay_from_others(trace: HostTrace, graph: Graph, steps: I64) -> I64:
    """How long each of some steps takes with the lengths of the others: int64 of shape (steps,), ps."""
    parts = _parts(trace, graph)
    lengths, row = _lengths_by_step(trace, graph, parts, steps)
    return np.array([_replayed(graph, parts, steps, at, lengths, row) for at in range(len(steps))], np.int64)


@dataclass(frozen=True)
class _Parts:
    """Own time of nodes by event, as columns: nodes, events (-1 for none), and lengths in ps."""

    node: I64
    event: I64
    ps: I64


def _parts(trace: HostTrace, graph: Graph) -> _Parts:
    """All own time of all nodes, cut by events."""
    work = np.flatnonzero((graph.kind == NodeKind.WORK) | (graph.kind == NodeKind.BATCH))
    found = [_Parts(work, graph.event[work].astype(np.int64), graph.own_ps[work])]
    host = np.flatnonzero((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL))
    for line in numbers_in(graph.line[host]):
        nodes = host[graph.line[host] == line]
        place, start, end, event = cut_by_events(trace, line, graph.start_ps[nodes], graph.end_ps[nodes])
        found.append(_Parts(nodes[place], event, end - start))
    return _Parts(*(np.concatenate(column) for column in zip(*(vars(each).values() for each in found), strict=True)))


def _replayed(graph: Graph, parts: _Parts, steps: I64, at: int, lengths: F64, row: I64) -> int:
    here = np.flatnonzero((row >= 0) & (graph.step[parts.node] == steps[at]))
    others = np.delete(lengths, at, axis=1)
    usual = np.full(len(others), np.nan)
    shared = np.isfinite(others).any(axis=1)
    usual[shared] = np.nanmedian(others[shared], axis=1)
    factor = usual[row[here]] / lengths[row[here], at]
    here, factor = here[np.isfinite(factor)], factor[np.isfinite(factor)]
    own = graph.own_ps.astype(np.float64)
    np.add.at(own, parts.node[here], parts.ps[here] * (factor - 1.0))
    return int(replay(graph, np.maximum(own, 0.0).astype(np.int64)).step_ps[steps[at]])


def _lengths_by_step(trace: HostTrace, graph: Graph, parts: _Parts, steps: I64) -> tuple[F64, I64]:
    """The own time of each different event in each step, NaN where the step lacks it, and the row of each part; -1 for
    parts without an event or a step."""
    own = np.zeros(len(trace.events))
    known = parts.event >= 0
    np.add.at(own, parts.event[known], parts.ps[known])
    events = np.flatnonzero(own > 0)
    step = _steps_of_events(trace, graph, parts, steps)[events]
    events, step = events[step >= 0], step[step >= 0]
    name = trace.event_names(events)
    key = np.lexsort((trace.events.start_ps[events], step, name))
    events, name, step = events[key], name[key], step[key]
    fresh = np.append(True, np.diff(name) != 0)[: len(name)]
    begins = np.flatnonzero(fresh | np.append(True, np.diff(step) != 0)[: len(name)])
    nth = np.arange(len(events)) - np.repeat(begins, np.diff(np.append(begins, len(events))))
    usual = _has_usual_count(np.cumsum(fresh) - 1, step, len(steps))
    events, step, nth, group = events[usual], step[usual], nth[usual], np.cumsum(fresh)[usual]
    pair = group * (int(nth.max(initial=0)) + 1) + nth
    order = np.argsort(pair, kind="stable")
    place = np.cumsum(np.append(0, np.diff(pair[order]) != 0)[: len(order)])
    lengths = np.full((int(place.max(initial=-1)) + 1, len(steps)), np.nan)
    lengths[place, step[order]] = own[events[order]]
    row = np.full(len(trace.events) + 1, -1, np.int64)
    row[events[order]] = place
    return lengths, row[parts.event]


def _has_usual_count(name: I64, step: I64, steps: int) -> Mask:
    """Which events have a name that is as frequent in their step as in the median step: bool of shape (n,)."""
    counts = np.zeros((int(name.max(initial=-1)) + 1, steps), np.int64)
    np.add.at(counts, (name, step), 1)
    usual: Mask = counts[name, step] == np.median(counts, axis=1)[name]
    return usual


def _steps_of_events(trace: HostTrace, graph: Graph, parts: _Parts, steps: I64) -> I64:
    """The place of each event's step among some steps: that of the node it is in, -1 for none."""
    place = np.full(len(steps_of(trace).number) + 1, -1, np.int64)
    place[steps] = np.arange(len(steps))
    found = np.full(len(trace.events), -1, np.int64)
    known = parts.event >= 0
    found[parts.event[known][::-1]] = place[graph.step[parts.node[known]]][::-1]
    return found
