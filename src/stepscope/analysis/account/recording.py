"""What recording adds to the work of threads, where no steps from before the capture tell it.

The costs of events hold for hosts without a device.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.shares import time_by_label
from stepscope.analysis.steps.profiling_cost import EVENT_PS, LEAST_EVENT_PS, PYTHON_CALL_PS
from stepscope.analysis.trace.columns import events_of_kind, is_thread_event
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import F64, I64, U8, sum_groups
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CodeTrait

# Even with few calls Python takes 1.5 times as long while calls are recorded: CPython (up to 3.11) looks for a recorder
# after every instruction.
_OF_PYTHON = 1 - 1 / 1.5
# What an op of PyTorch takes longer for each of its events right after Python ran for some milliseconds, which leaves
# caches and branch predictors cold: a step of 275 events took 0.70 ms of its thread alone, 1.45 ms after each 5 ms of
# `ast.literal_eval`.
_COLD_PS = {"pytorch": 2_700_000}
MOST_OF_NODE = 0.75  # of a node: at least the rest is its own
_MEASURABLE = 0.01  # of the step: less is within what any two runs differ by


def share_without_recording(trace: HostTrace, graph: Graph) -> F64 | None:
    """What is left of the own time of each node without the cost of recording: float64 of shape (nodes,); None where
    the cost is not known, or too small to be measured."""
    event_ps = float(EVENT_PS.get(trace.framework, LEAST_EVENT_PS))
    cost = None if is_device_work(trace).any() else _cost_of_events(trace, graph, event_ps, _python_code(trace))
    if cost is None or cost.sum() < _MEASURABLE * graph.recorded_step_ps.sum():
        return None
    return _share_without(graph, cost)


def share_uninterrupted(trace: HostTrace, graph: Graph) -> F64 | None:
    """What is left of the own time of each node where nothing runs between the ops of one step and of the next:
    float64 of shape (nodes,); None where that was not measured."""
    event_ps = float(_COLD_PS.get(trace.framework, 0))
    if is_device_work(trace).any() or not event_ps:
        return None
    return _share_without(graph, _cost_of_events(trace, graph, event_ps, None))


def events_in_nodes(trace: HostTrace, graph: Graph, rows: I64) -> I64:
    """How many of some events of threads begin in each node: int64 of shape (nodes,)."""
    found = np.zeros(len(graph), np.int64)
    rows = rows[is_thread_event(trace)[rows]]
    line, start = trace.events.line[rows], trace.events.start_ps[rows]
    host = np.flatnonzero((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL))
    for each in numbers_in(line):
        nodes = host[graph.line[host] == each]
        nodes = nodes[np.argsort(graph.start_ps[nodes], kind="stable")]
        at = start[line == each]
        place = np.searchsorted(graph.start_ps[nodes], at, side="right") - 1
        inside = place >= 0
        inside[inside] = at[inside] < graph.end_ps[nodes[place[inside]]]
        found += np.bincount(nodes[place[inside]], minlength=len(graph))
    return found


def _share_without(graph: Graph, cost: F64) -> F64:
    share: F64 = np.divide(graph.own_ps - cost, graph.own_ps, out=np.ones(len(graph)), where=graph.own_ps > 0)
    return share


def _cost_of_events(trace: HostTrace, graph: Graph, event_ps: float, code: U8 | None) -> F64:
    """What events cost the nodes that hold them: float64 of shape (nodes,), ps, no more than most of a node."""
    cost = np.zeros(len(graph))
    host = np.flatnonzero((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL))
    for line in numbers_in(graph.line[host]):
        nodes = host[graph.line[host] == line]
        cost[nodes] = _cost_on_line(trace, graph, line, nodes, event_ps, code)
    least: F64 = np.minimum(cost, MOST_OF_NODE * graph.own_ps)
    return least


def _cost_on_line(trace: HostTrace, graph: Graph, line: int, nodes: I64, event_ps: float, code: U8 | None) -> F64:
    """What events cost nodes of a thread: float64 of shape (n,), ps; calls of Python as much as recording them."""
    first, last = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
    start, kind = trace.events.start_ps[first:last], trace.events.kind[first:last]
    bounds = np.searchsorted(start, np.stack([graph.start_ps[nodes], graph.end_ps[nodes]]))
    called = np.append(0, np.cumsum(kind == EventKind.PYTHON_CALL))
    calls = np.diff(called[bounds], axis=0)[0]
    events = np.diff(bounds, axis=0)[0] - calls
    python = calls * float(PYTHON_CALL_PS)
    if code is not None:
        place, label, ps = time_by_label(trace, line, graph.start_ps[nodes], graph.end_ps[nodes], code)
        running = sum_groups(place, np.where(label >= len(Cause), ps, 0), len(nodes))
        python = np.maximum(python, running * _OF_PYTHON)
    cost: F64 = events * event_ps + python
    return cost


def _python_code(trace: HostTrace) -> U8 | None:
    """Which events are calls of Python code, as labels of `time_by_label`: uint8 of shape (events,); None without."""
    rows = events_of_kind(trace, EventKind.PYTHON_CALL)
    if not len(rows):
        return None
    label = np.zeros(len(trace.events), np.uint8)
    label[rows[has_trait(trace, trace.events.type[rows], CodeTrait.IS_CODE)]] = len(Cause)
    return label
