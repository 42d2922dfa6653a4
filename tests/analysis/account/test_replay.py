"""The replay of steps on drawn traces: what it gives back, and what it does not look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from draw import MS, Sort, draw, traces
from every_form import SESSIONS
from framework_captures import FRESH
from gallery import gallery
from hypothesis import given, settings
from hypothesis import strategies as st

import stepscope
from bench.replay_others import replay_from_others
from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.build import build_graph
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.critical_path import OWN, pieces_of_steps, way_through
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.innermost import cut_by_events
from stepscope.analysis.account.model import usual_steps
from stepscope.analysis.account.piece_causes import causes_of_waiting
from stepscope.analysis.account.replay import replay, replay_error_percent
from stepscope.analysis.account.shares import shares_of, spent_on
from stepscope.analysis.account.stretches import bounds_of_stretches
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import EventKind as K
from stepscope.model import HostTrace, LineKind, PlaneKind, TraceBuilder

SYNC = {"S": Sort(K.SYNC, "cudaStreamSynchronize")}


def graph_of(trace: HostTrace) -> Graph:
    graph = build_graph(trace)
    assert graph is not None
    return graph


def steps_ms(trace: HostTrace) -> list[float]:
    return [float(step) / MS for step in replay(graph_of(trace)).step_ps.tolist()]


@gallery("""
    a device that the host keeps ahead of gives the step its length
        host main | M0---------------M1---------------
        host main | L1L2L3S----------L4L5L6S----------
        gpu0 s    |   K1---K2--K3---   K4---K5--K6---
        steps_ms = [17, 17]
    a host that launches late gives the step its length
        host main | M0-----------------M1-----------------
        host main | a---L1     b--L2   a---L3     b--L4
        gpu0 s    |       K1       K2--      K3       K4--
        steps_ms = [19, 19]
    a thread that is handed work starts when it is handed, and the other waits for it
        host main | M0----------M1----------M2----------
        host main | aaR-------- aaR-------- aaR--------
        host pool |   P!          P!          P!
        host pool |    b-----       b-----      b-----
        steps_ms = [12, 12, 12]
        joins = True
    fetching between marks belongs to the step from start to start; when one would follow the last, nobody knows
        host main | M0---     M1---     M2---
        host main | aaaaaI----aaaaaI----aaaaa
        steps_ms = [10, 10, 5]
    device work without a launch is replayed as recorded, and told apart
        tpu0 Steps | W0------W1------
        tpu0 ops   | k--  k--k--  k--
        steps_ms = [8, 8]
        unexplained_ms = 4
""")
def test_a_step_is_replayed_as_long_as_it_was(picture, expected):
    trace = draw(picture, SYNC)
    graph = graph_of(trace)
    found = {
        "steps_ms": steps_ms(trace),
        "joins": EdgeKind.JOIN in graph.edges.kind,
        "unexplained_ms": graph.unexplained_ps.sum() / MS,
    }

    assert {name: found[name] for name in expected} == expected


# -- the replay looks neither at starts of device work nor at the lengths of waits -----------------------------------

STEPS, LAUNCHES = 7, 3


def program(late_ps: Mapping[tuple[int, int], int], waits_longer_ps: Mapping[int, int]) -> HostTrace:
    """A loop that launches three kernels a step and waits for them.

    Args:
        late_ps: how much later than it could some kernels start, by step and kernel.
        waits_longer_ps: how much longer than the device works the wait of some steps is recorded.
    """
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "s", kind=LineKind.STREAM)
    now, free = 0, 0
    for step in range(STEPS):
        begin = now
        for kernel in range(LAUNCHES):
            number = 1 + step * LAUNCHES + kernel
            main.event("op", now, MS, K.OP)
            main.event("cudaLaunchKernel", now + MS // 2, MS // 2, K.RUNTIME_CALL, {"correlation_id": number})
            now += MS
            free = max(now + MS // 10, free) + late_ps.get((step, kernel), 0)
            stream.event(f"kernel{kernel}", free, 2 * MS, K.KERNEL, {"correlation_id": number})
            free += 2 * MS
        wait = max(free - now, 0) + MS // 20 + waits_longer_ps.get(step, 0)
        main.event("cudaStreamSynchronize", now, wait, K.SYNC)
        now += wait
        main.event("python", now, MS, K.PYTHON_CALL)
        now += MS
        main.event("train", begin, now - begin, K.STEP_MARK, {"step_num": step})
    return builder.build()


# The shortest latency and the usual way back from a wait are what the capture shows; so most steps are left alone.
SOME = (1, 4)
a_while = st.integers(0, 20 * MS)
late_kernels = st.dictionaries(st.tuples(st.sampled_from(SOME), st.integers(0, LAUNCHES - 1)), a_while)
long_waits = st.dictionaries(st.sampled_from(SOME), a_while)


@given(late_kernels, long_waits)
@settings(max_examples=60)
def test_starts_of_device_work_and_lengths_of_waits_change_nothing(late_ps, waits_longer_ps):
    untouched, scrambled = program({}, {}), program(late_ps, waits_longer_ps)

    assert replay(graph_of(scrambled)).step_ps.tolist() == replay(graph_of(untouched)).step_ps.tolist()
    assert replay(graph_of(untouched)).step_ps.tolist() == graph_of(untouched).recorded_step_ps.tolist()


def test_a_replay_reads_no_recorded_time():
    graph = graph_of(program({}, {}))
    mixed = np.random.default_rng(1).permutation(graph.start_ps)
    hidden = replace(graph, start_ps=mixed, end_ps=mixed)

    assert replay(hidden).step_ps.tolist() == replay(graph).step_ps.tolist()


def test_a_step_is_predicted_from_the_median_lengths_of_the_others():
    def drawn(third: str) -> HostTrace:
        return draw(f"host main | M0-------M1-------M2-------\nhost main | a--b-----a--b-----{third}")

    even, odd = drawn("a--b-----"), drawn("a---b----")

    assert replay_from_others(even, graph_of(even), np.arange(3)).tolist() == [9 * MS] * 3
    # The others say 3 and 6 of the last step's a and b, of which 4 and 5 were recorded.
    assert replay_from_others(odd, graph_of(odd), np.arange(3)).tolist() == [9 * MS, 9 * MS, 9 * MS]


# -- any trace -------------------------------------------------------------------------------------------------------


@given(traces())
@settings(max_examples=60)
def test_any_trace_has_a_replay_and_an_account_that_adds_up(trace):
    graph = build_graph(trace)
    if graph is None:
        return
    again = replay(graph)

    assert (again.end_ps >= again.start_ps).all()
    assert sorted(graph.order.tolist()) == list(range(len(graph)))
    found = account_of(trace)
    assert found is None or sum(row.ps for row in found.rows) == found.step_ps


@given(traces())
@settings(max_examples=40)
def test_what_steps_are_spent_on_is_what_the_stretches_of_their_way_add_up_to(trace):
    graph = build_graph(trace)
    if graph is None or not len(graph.steps):
        return
    shares, steps = shares_of(trace, graph), np.arange(len(graph.steps))
    way = way_through(graph, steps, graph.start_ps, graph.end_ps)
    length, own = way.end_ps - way.start_ps, way.edge == OWN
    waits = causes_of_waiting(graph, threads_of(trace), way.node, way.edge, length)
    expected = np.bincount(waits[~own], length[~own], len(Cause)).astype(np.float64)
    whole = graph.own_ps[way.node[own]]
    share = np.divide(length[own], whole, out=np.zeros(len(whole)), where=whole > 0)
    expected += (share[:, None] * shares.own_ps.take(way.node[own])).sum(axis=0)

    found = spent_on(graph, shares, steps, graph.start_ps, graph.end_ps, graph.own_ps.astype(np.float64))

    assert found == pytest.approx(expected)


@given(traces())
@settings(max_examples=60)
def test_the_pieces_of_steps_are_their_ways_with_the_time_of_threads_cut_at_events(trace):
    graph = build_graph(trace)
    if graph is None or not len(graph.steps):
        return
    way, steps = way_through(graph, np.arange(len(graph.steps)), graph.start_ps, graph.end_ps), steps_of(trace)
    place = np.searchsorted(graph.end_ps[graph.bounds], way.start_ps, side="right") - 1
    start = np.maximum(way.start_ps, steps.start_ps[graph.steps][place])
    end = np.minimum(way.end_ps, steps.until_ps[graph.steps][place])
    line, cuts = graph.line[way.node], bounds_of_stretches(trace)
    on_thread = (way.edge == OWN) & (graph.kind[way.node] != NodeKind.WORK) & (line >= 0)
    others = np.flatnonzero(~on_thread & (end > start))
    columns = way.start_ps, way.end_ps, way.node, way.edge, graph.event[way.node]
    expected = list(zip(*(column[others].tolist() for column in columns), strict=True))
    for each in set(line[on_thread].tolist()):
        rows = np.flatnonzero(on_thread & (line == each) & (end > start))
        rows = rows[np.argsort(start[rows])]
        if len(rows):
            mine = cuts[0 if each == threads_of(trace).main else 1]
            at, *bounds, event = cut_by_events(trace, each, start[rows], end[rows], mine)
            columns = (*bounds, way.node[rows[at]], way.edge[rows[at]], event)
            expected += zip(*(column.tolist() for column in columns), strict=True)

    found = pieces_of_steps(trace, graph)

    assert list(zip(*(column.tolist() for column in vars(found).values()), strict=True)) == sorted(expected)


# -- real profiles -----------------------------------------------------------------------------------------------------

WITH_STEPS = [session for session in SESSIONS if session != "torch-sglang-qwen3"]


def errors_of(path: Path) -> list[float]:
    profile = stepscope.load(path)
    found = []
    for host in profile.hosts:
        trace = profile.trace(host)
        graph = graph_of(trace)
        error = replay_error_percent(graph, replay(graph), usual_steps(trace, graph))
        assert error is not None
        found.append(error)
    return found


@pytest.mark.parametrize("session", WITH_STEPS)
def test_the_replay_of_a_real_profile_is_within_a_tenth_of_it(corpus, session):
    assert max(errors_of(corpus / session)) <= 10.0


@pytest.mark.parametrize("name", FRESH)
def test_the_replay_of_a_fresh_capture_is_within_a_fifth_of_it(name, request):
    """On a busy machine threads lose their core while they work, which no trace records: 10.02 % was seen once."""
    assert max(errors_of(request.getfixturevalue(name).logdir)) <= 20.0


def test_the_replay_of_recorded_programs_is_right_on_average(bottleneck_captures):
    errors = [error for run in sorted(bottleneck_captures.glob("*/*/")) for error in errors_of(run)]

    assert max(errors) <= 10.0
    assert np.mean(errors) <= 3.3
