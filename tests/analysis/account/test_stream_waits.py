"""Waits between queues, and of the host for one of them: as recorded, in the order of calls, or by times alone."""

from __future__ import annotations

import numpy as np
from draw import MS, Sort, draw

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.build import build_graph
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.replay import replay
from stepscope.model import EventKind as K
from stepscope.model import HostTrace, LineKind, PlaneKind, TraceBuilder

SORTS = {
    "R": Sort(K.RUNTIME_CALL, "cudaEventRecord", "correlation_id"),
    "Q": Sort(K.RUNTIME_CALL, "cudaStreamWaitEvent", "correlation_id"),
    "S": Sort(K.SYNC, "cudaStreamSynchronize"),
}
# The second stream's kernel waits for the first kernel of the first stream, though the second one ends right before it
# starts as well: times alone point to the wrong one.
PICTURE = """
    host main | M0----------------------M1----------------------
    host main | L1R2Q3L4L5--------------L6R7Q8L9L10-------------
    gpu0 s    |   K1------                K6------
    gpu0 s    |           K5--                    K10-
    gpu0 t    |           K4------                K9------
"""


def graph_of(trace: HostTrace) -> Graph:
    graph = build_graph(trace)
    assert graph is not None
    return graph


def queue_edges(trace: HostTrace, graph: Graph) -> set[tuple[int, int, bool]]:
    """Edges between queues: the correlation ids of both kernels, and whether they are inferred."""
    edges = graph.edges.take(graph.edges.kind == EdgeKind.QUEUE)
    ids = trace.stat_ints(("correlation_id",))
    source, target = (ids[graph.event[at]] for at in (edges.source, edges.target))
    return set(zip(source.tolist(), target.tolist(), edges.inferred.tolist(), strict=True))


def test_without_a_record_the_order_of_calls_tells_what_a_stream_waits_for():
    trace = draw(PICTURE, SORTS)

    assert queue_edges(trace, graph_of(trace)) == {(1, 4, True), (6, 9, True)}


def test_a_wait_that_the_order_of_calls_shows_is_replayed():
    trace = draw(PICTURE, SORTS)
    graph = graph_of(trace)
    work = np.flatnonzero(graph.kind == NodeKind.WORK)
    own, number = graph.own_ps.copy(), trace.stat_ints(("correlation_id",))[graph.event[work]]
    own[work[np.isin(number, (1, 6))]] += 5 * MS
    later = replay(graph, own).start_ps - replay(graph).start_ps

    assert later[work[number == 4]].tolist() == [5 * MS]


def test_work_without_length_stays_between_what_was_launched_before_and_after_it():
    trace = draw("""
        host main | M0--------M1--------
        host main | L1L2L3----L4L5L6----
        gpu0 s    |   K1--      K4--
        gpu0 s    |       K2!       K5!
        gpu0 s    |       K3--      K6--
    """)
    graph = graph_of(trace)
    work = np.flatnonzero(graph.kind == NodeKind.WORK)

    assert trace.stat_ints(("correlation_id",))[graph.event[work]].tolist() == [1, 2, 3, 4, 5, 6]


def test_time_until_an_event_of_another_stream_is_no_time_that_a_queue_needs_to_go_on():
    trace = draw(
        """
        host main | M0----------------------------------M1------
        host main | L1R2Q3L4L5R6Q7L8
        gpu0 s    |   K1------------------K5------
        gpu0 t    |                       K4--    K8--
        """,
        SORTS,
    )
    graph = graph_of(trace)

    assert graph.pause_ps[graph.kind == NodeKind.WORK].tolist() == [0, 0, 0, 0]


# -- as CUPTI records them ---------------------------------------------------------------------------------------------

STEPS = 4


def recorded(waits_for: int, host_waits_for: int | None = None, ends_early_ps: int = 0) -> HostTrace:
    """Each step launches a kernel on streams 7 and 13 and one on 20, which waits for one of those streams.

    Args:
        waits_for: the stream that stream 20 waits for.
        host_waits_for: the stream that the host waits for at the end of the step, if that is recorded.
        ends_early_ps: how much earlier the waiting kernel starts than one ms after all others.
    """
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    gpu = builder.plane("/device:GPU:0", PlaneKind.GPU, 0)
    streams = {number: builder.line(gpu, f"Stream #{number}", number, kind=LineKind.STREAM) for number in (7, 13, 20)}
    aside = builder.line(gpu, "Stream #20 waits", kind=LineKind.OTHER)
    for step in range(STEPS):
        start, first = step * 20 * MS, 100 * step
        ids = {7: first + 1, 13: first + 2, 20: first + 3}
        records = {7: first + 11, 13: first + 12}
        main.event("train", start, 20 * MS, K.STEP_MARK, {"step_num": step})
        for at, number in enumerate((7, 13)):
            begin = start + 2 * at * MS
            main.event("cudaLaunchKernel", begin, MS, K.RUNTIME_CALL, {"correlation_id": ids[number]})
            main.event("cudaEventRecord", begin + MS, MS, K.RUNTIME_CALL, {"correlation_id": records[number]})
            streams[number].event("work", begin + MS, (4 + 4 * at) * MS, K.KERNEL, {"correlation_id": ids[number]})
        main.event("cudaStreamWaitEvent", start + 4 * MS, MS, K.RUNTIME_CALL, {"correlation_id": first + 20})
        waited = {"wait_on_stream": waits_for, "wait_on_cuda_event_record_corr_id": records[waits_for], "stream": 20}
        aside.event("Stream Wait Event", start + 4 * MS, MS, K.OTHER, waited | {"correlation_id": first + 20})
        main.event("cudaLaunchKernel", start + 5 * MS, MS, K.RUNTIME_CALL, {"correlation_id": ids[20]})
        streams[20].event("late", start + 11 * MS - ends_early_ps, 3 * MS, K.KERNEL, {"correlation_id": ids[20]})
        main.event("cudaStreamSynchronize", start + 6 * MS, 9 * MS, K.SYNC, {"correlation_id": first + 30})
        if host_waits_for is not None:
            sync = {"correlation_id": first + 30, "stream": host_waits_for}
            aside.event("Stream Sync", start + 6 * MS, 9 * MS, K.SYNC, sync)
    return builder.build()


def test_a_recorded_wait_names_the_stream():
    for stream, kernel in ((7, 1), (13, 2)):
        trace = recorded(stream)
        found = {
            (source % 100, target % 100, inferred) for source, target, inferred in queue_edges(trace, graph_of(trace))
        }

        assert (kernel, 3, False) in found


def test_a_recorded_wait_of_the_host_is_for_one_stream_alone():
    trace = recorded(13, host_waits_for=20)
    graph = graph_of(trace)
    returns = graph.edges.take(graph.edges.kind == EdgeKind.RETURN)
    names = {trace.name_of(event) for event in graph.event[returns.source].tolist()}

    assert names == {"late"}
    assert not returns.inferred.any()
    assert {trace.name_of(event) for event in _awaited(recorded(13))} == {"late", "work"}


def _awaited(trace: HostTrace) -> list[int]:
    graph = graph_of(trace)
    events: list[int] = graph.event[graph.edges.source[graph.edges.kind == EdgeKind.RETURN]].tolist()
    return events


def test_work_that_starts_a_little_before_what_it_is_stated_to_wait_for_ends_waits_for_it():
    trace = recorded(13, ends_early_ps=2 * MS)
    graph = graph_of(trace)

    assert graph.lost_edges == 0
    assert {(source % 100, target % 100) for source, target, _ in queue_edges(trace, graph)} == {(2, 3)}
    assert replay(graph).step_ps.tolist() == graph.recorded_step_ps.tolist()


# The result is copied on a stream of its own, as JAX and TensorFlow do, and no event says that the copy waits for the
# kernels: in each step it is launched at once, and starts as they end.
COPIED = """
    host main | M0------------------M1------------------
    host main | L1V2                L3V4
    host main |     S-------------      S-------------
    gpu0 s    |   K1------------      K3------------
    gpu0 t    |                 D2                  D4
"""


def test_a_copy_that_starts_as_the_kernels_end_waits_for_them_however_often_it_does():
    trace = draw(COPIED, SORTS | {"V": Sort(K.RUNTIME_CALL, "cuMemcpyDtoHAsync", "correlation_id")})

    assert queue_edges(trace, graph_of(trace)) == {(1, 2, True), (3, 4, True)}
    account = account_of(trace)
    assert account is not None
    shares = {str(row.cause): row.ps / account.step_ps for row in account.rows}
    assert shares["device_compute"] > 0.6, "and is no time of launching"


def test_a_gap_of_a_queue_in_which_another_communicates_is_communication():
    trace = draw("""
        host main | M0------------------------M1------------------------
        host main | L1L2L3L4                  L5L6L7L8
        host main |         S---------------          S---------------
        gpu0 s    |   K1--    K3--      K4--    K5--    K7--      K8--
        gpu0 t    |     N2------------------      N6------------------
    """, SORTS)  # fmt: skip
    account = account_of(trace)
    assert account is not None
    shares = {str(row.cause): row.ps for row in account.rows}

    assert "device_gap" not in shares, "the device reduces gradients while its first stream has nothing to do"
    assert shares["communication"] == 10 * MS
