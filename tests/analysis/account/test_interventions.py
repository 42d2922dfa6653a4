"""What changes of a model give, on drawn traces."""

from __future__ import annotations

import numpy as np
import pytest
from draw import MS, Sort, draw

from stepscope.analysis.account.build import build_graph
from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.account.interventions import (
    Move,
    ReplayAsGraph,
    Scale,
    gain_percent,
    own_time_of,
    steps_after,
    work_launched_by,
)
from stepscope.model import EventKind as K
from stepscope.model import HostTrace

SYNC = {"S": Sort(K.SYNC, "cudaStreamSynchronize")}

FETCHES = """
    host main | M0---     M1---     M2---
    host main | aaaaaI----aaaaaI----aaaaa
"""
LAUNCHES_LATE = """
    host main | M0------------M1------------M2------------
    host main | b---L1b---L2S-b---L3b---L4S-b---L5b---L6S-
    gpu0 s    |       K1    K2      K3    K4      K5    K6
"""


def made(picture: str) -> tuple[HostTrace, Graph]:
    trace = draw(picture, SYNC)
    graph = build_graph(trace)
    assert graph is not None
    return trace, graph


def of_kind(trace: HostTrace, graph: Graph, kind: K) -> np.ndarray:
    return own_time_of(trace, graph, np.flatnonzero(trace.events.kind == kind))


def steps_ms(graph: Graph, *changes: Scale | Move | ReplayAsGraph) -> list[float]:
    return [step / MS for step in steps_after(graph, changes).tolist()]


def test_removing_input_leaves_the_rest_of_the_step():
    trace, graph = made(FETCHES)
    waits = of_kind(trace, graph, K.INPUT_WAIT)

    assert steps_ms(graph) == [10, 10]
    assert steps_ms(graph, Scale(waits, 0.0)) == [5, 5]
    assert gain_percent(graph, [Scale(waits, 0.5)], np.arange(2)) == pytest.approx(25)


def test_input_in_workers_is_as_fast_as_they_can_make_it():
    trace, graph = made(FETCHES)
    twice = of_kind(trace, graph, K.INPUT_WAIT)
    work = of_kind(trace, graph, K.OP)

    assert steps_ms(graph, Move(twice, 1)) == [5, 5]
    # Both halves take 5 ms: with the loop three times as fast, one worker limits it and two do not.
    assert steps_ms(graph, Move(twice, 1), Scale(work, 0.2)) == [5, 5]
    assert steps_ms(graph, Move(twice, 2), Scale(work, 0.2)) == [2.5, 2.5]


def test_a_faster_kernel_gains_nothing_where_the_host_is_what_limits():
    _, graph = made(LAUNCHES_LATE)
    kernels = np.where(graph.kind == NodeKind.WORK, graph.own_ps, 0)
    before, after = steps_ms(graph), steps_ms(graph, Scale(kernels, 0.5))

    assert before == [14, 14, 14]
    # Only the last kernel of a step is waited for: of its 2 ms one is left.
    assert after == [13, 13, 13]


def test_a_recorded_graph_of_kernels_is_launched_once():
    trace, graph = made(LAUNCHES_LATE)
    dispatch = own_time_of(trace, graph, np.flatnonzero(np.isin(trace.events.kind, (K.OP, K.RUNTIME_CALL))))
    before, after = steps_ms(graph), steps_ms(graph, ReplayAsGraph(dispatch))

    assert max(after) < min(before) / 2
    assert min(after) >= 4  # the device needs as long


def test_several_changes_at_once_give_more_than_each():
    trace, graph = made(FETCHES)
    waits, work = of_kind(trace, graph, K.INPUT_WAIT), of_kind(trace, graph, K.OP)

    assert steps_ms(graph, Scale(waits, 0.5), Scale(work, 0.5)) == [5, 5]


def test_work_is_found_by_the_call_that_launched_it():
    trace, graph = made(LAUNCHES_LATE)
    ops = np.flatnonzero(trace.events.kind == K.STEP_MARK)[:1]

    assert len(work_launched_by(trace, ops)) == 2
    assert own_time_of(trace, graph, work_launched_by(trace, ops)).sum() == 4 * MS
