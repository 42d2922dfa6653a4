"""Parts of a model that a change is about: a cause, or whatever some events stand for."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.causes import Cause, event_causes, unrecorded_causes
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.innermost import intersect
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.own_times import OwnTimes
from stepscope.analysis.account.recording import events_in_nodes
from stepscope.analysis.account.shares import time_by_cause, time_by_label
from stepscope.analysis.account.stretches import stretches_of
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.grouping import device_rows, enclosing_events, forest
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I32, I64, Mask, distinct, sum_groups
from stepscope.records import dataclass


@dataclass(frozen=True)
class Portion:
    """Time in a graph that a change is about.

    Attributes:
        own_ps: of each node's own time, by cause.
        lag_ps: int64 of shape (edges,), of the lag of each edge; None for nothing.
        pause_ps: int64 of shape (nodes,), of the pause before each node; None for nothing.
        waits: bool of shape (edges,), waiting that goes with the part as a whole; None for none.
        events: int64 of shape (nodes,), how many events of each node are the part's, which tells what recording cost
            it; None where that is not known.
    """

    own_ps: OwnTimes
    lag_ps: I64 | None = None
    pause_ps: I64 | None = None
    waits: Mask | None = None
    events: I64 | None = None


def part_of_cause(model: StepModel, cause: Cause) -> Portion:
    """All time with a cause: own time of nodes, what launches and returns take, pauses of queues, and what the loop's
    thread waits for in stretches of that cause."""
    graph, waits = model.graph, None
    lag = np.where(model.shares.edge_cause == cause, np.maximum(graph.edges.lag_ps, 0), 0)
    gap = (graph.kind == NodeKind.WORK) & (cause == Cause.DEVICE_GAP)
    pause = np.where(gap, np.maximum(graph.pause_ps - graph.unexplained_ps, 0), 0)
    known = stretches_of(model.trace).spans_of_cause(cause)
    if known.total and cause != Cause.CONTENTION:  # a thread that is not ready waits for no processor
        within = waits_in_stretches(model, model.threads.main, known)
        waits, pause = within.waits, pause if within.pause_ps is None else pause + within.pause_ps
    return Portion(model.shares.own_ps.only(cause), lag, pause, waits)


def part_of_stretches(model: StepModel, line: int, stretches: Spans) -> Portion:
    """What a thread does in some stretches of time: its own time, and what it waits for there.

    Left out, the thread goes on at once; what others do meanwhile they still do.
    """
    graph, trace = model.graph, model.trace
    rows = np.arange(trace.lines.event_begin[line], trace.lines.event_end[line], dtype=np.int64)
    start = trace.events.start_ps[rows]
    return replace(
        waits_in_stretches(model, line, stretches),
        own_ps=OwnTimes.gather(len(graph), _times_in_stretches(model, line, _nodes_in_order(graph, line), stretches)),
        events=events_in_nodes(trace, graph, rows[stretches.overlap_ps(start, start + 1) > 0]),
    )


def waits_in_stretches(model: StepModel, line: int, stretches: Spans) -> Portion:
    """What a thread waits for in some stretches of time, without its own time there."""
    graph = model.graph
    nodes = _nodes_in_order(graph, line)
    start, before = graph.start_ps[nodes], graph.previous[nodes]
    waits_from = np.where(before >= 0, np.minimum(graph.end_ps[before], start), start)
    waited = np.zeros(len(graph), np.bool_)
    waited[nodes] = 2 * stretches.overlap_ps(waits_from, start) > start - waits_from
    return Portion(OwnTimes(len(graph)), None, np.where(waited, graph.pause_ps, 0), waited[graph.edges.target])


def _nodes_in_order(graph: Graph, line: int) -> I64:
    """The nodes of a line, by their starts."""
    nodes = np.flatnonzero(graph.line == line)
    return nodes[np.argsort(graph.start_ps[nodes], kind="stable")]


def _times_in_stretches(
    model: StepModel, line: int, nodes: I64, stretches: Spans
) -> Iterator[tuple[I64, int, I64 | F64]]:
    """Nodes of a line, a cause, and what of their own time with that cause lies in the stretches."""
    trace, graph = model.trace, model.graph
    place, _, start, end = intersect(graph.start_ps[nodes], graph.end_ps[nodes], stretches.start, stretches.end)
    unrecorded = int(unrecorded_causes(trace, model.threads)[line])
    part, causes, ps = time_by_cause(trace, line, start, end, unrecorded)
    for cause in distinct(causes).tolist():
        here = causes == cause
        inside = sum_groups(place[part[here]], ps[here], len(nodes))
        yield nodes, cause, np.minimum(inside, model.shares.own_ps.column(cause)[nodes])


def part_of_batches(model: StepModel, of_pipeline: bool) -> Portion:
    """The work of worker processes for batches, with all waiting for it.

    Args:
        of_pipeline: also all waiting for threads of an input pipeline, even where a batch was ready in time: without
            its other waits a step may come before that.  What such a thread hands on is the step's own work, and stays.
    """
    graph, edges = model.graph, model.graph.edges
    is_batch, makes_input = graph.kind == NodeKind.BATCH, np.append(model.threads.serves_input, False)[graph.line]
    waits = is_batch[edges.source] | (makes_input[edges.source] & (edges.kind == EdgeKind.JOIN) & of_pipeline)
    return Portion(model.shares.own_ps.select_nodes(is_batch), waits=waits)


def join_parts(parts: Sequence[Portion]) -> Portion:
    """Several parts as one; time that is in two of them counts as often as it is there."""
    first, *others = parts
    ones = np.full(len(first.own_ps), -1.0)
    own = first.own_ps
    for other in others:
        own = own.subtract(other.own_ps, ones)
    return Portion(
        own,
        _add([part.lag_ps for part in parts]),
        _add([part.pause_ps for part in parts]),
        _add([part.waits for part in parts]),
        _add([part.events for part in parts]),
    )


_Column = TypeVar("_Column", I64, Mask)


def _add(columns: Sequence[_Column | None]) -> _Column | None:
    known = [column for column in columns if column is not None]
    return reduce(operator.add, known) if known else None


def part_of_events(model: StepModel, rows: I64) -> Portion:
    """The own time in which some events last.

    Device work counts as a whole if it is among the events; the time of threads as far as events of theirs cover it.
    """
    chosen = np.zeros(len(model.trace.events), np.uint8)
    chosen[rows] = 1
    kernels.nesting.inherit(chosen, forest(model.trace).parent)
    inside = np.flatnonzero(chosen) if len(rows) else rows
    return Portion(
        OwnTimes.gather(len(model.graph), _times_inside(model, rows)),
        events=events_in_nodes(model.trace, model.graph, inside),
    )


def _times_inside(model: StepModel, rows: I64) -> Iterator[tuple[I64 | I32, int, I64 | F64]]:
    """Nodes, a cause, and what of these nodes' own time with that cause some events cover."""
    trace, graph = model.trace, model.graph
    chosen = np.zeros(len(trace.events), np.uint8)
    chosen[rows] = 1
    works = (graph.kind == NodeKind.WORK) | (graph.kind == NodeKind.BATCH)
    yield from model.shares.own_ps.parts_of_nodes(works & (chosen[graph.event] > 0))
    lines = numbers_in(trace.events.line[rows[is_thread_event(trace)[rows]]])
    kernels.nesting.inherit(chosen, forest(trace).parent)
    label = chosen * np.uint8(len(Cause)) + event_causes(trace)
    host = np.flatnonzero((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL))
    for line in lines:
        nodes = host[graph.line[host] == line]
        place, of_label, ps = time_by_label(trace, line, graph.start_ps[nodes], graph.end_ps[nodes], label)
        covered = np.flatnonzero(of_label >= len(Cause))
        if model.threads.serves_input[line]:
            yield nodes, Cause.INPUT, sum_groups(place[covered], ps[covered], len(nodes))
        else:
            cause = of_label[covered] - np.uint8(len(Cause))
            yield from OwnTimes.split(nodes[place[covered]], cause, ps[covered])


def work_launched_by(trace: HostTrace, rows: I64) -> I64:
    """Device work that calls inside some host events launched: rows of events."""
    chosen = np.zeros(len(trace.events), np.bool_)
    chosen[rows] = True
    inside = enclosing_events(trace, chosen) >= 0
    work = device_rows(trace)
    call = forest(trace).cause[work]
    found: I64 = work[(call >= 0) & inside[call]]
    return found
