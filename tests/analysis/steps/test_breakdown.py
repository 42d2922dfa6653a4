"""Where the time of a step goes, what the verdict makes of it, and which ops took it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draw import MS, SORTS, Sort, draw
from gallery import gallery
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analysis.ops.top_ops import OPS, CountedOps, device_ops, host_ops
from stepscope.analysis.steps.breakdown import Breakdown, Rank, breakdown, time_by_rank
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import EventKind, HostTrace, Trait
from stepscope.vocabulary.op_names import parse_op

K = EventKind


def parts(trace: HostTrace) -> list[dict[str, float]]:
    """The breakdown of every step in ms, without what is 0."""
    by_category = breakdown(trace, steps_of(trace)).categories_ps()
    rows = zip(*by_category.values(), strict=True)
    return [{name: time / MS for name, time in zip(by_category, row, strict=True) if time} for row in rows]


def precision(trace: HostTrace) -> tuple[float, float]:
    """Device compute in ms at 16 bits and at 32."""
    found: Breakdown = breakdown(trace, steps_of(trace))
    return found.compute_16bit_ps / MS, found.compute_32bit_ps / MS


# -- what wins ---------------------------------------------------------------------------------------------------

# From the most important down: a letter, its category, and where it is drawn.
ORDER = [
    ("K", "device_compute", "gpu0"),
    ("D", "output", "gpu0"),
    ("E", "device_to_device", "gpu0"),
    ("I", "input", "host"),
    ("N", "device_collectives", "gpu0"),
    ("L", "kernel_launch", "host"),
    ("U", "input", "gpu0"),
    ("X", "compilation", "host"),
    ("o", "host_compute", "host"),
    ("Y", "other", "host"),
]
PAIRS = [(high, low) for at, high in enumerate(ORDER) for low in ORDER[at + 1 :] if high[1] != low[1]]

# Grouped by the writer, so that no launch is needed to say which step an event belongs to.
GROUPED = {
    letter: Sort(sort.kind, sort.name, "group_id", traits=sort.traits)
    for letter, sort in (SORTS | {"o": Sort(K.OP, "op"), "P": Sort(K.EXECUTOR, "executor")}).items()
}


@pytest.mark.parametrize(("high", "low"), PAIRS, ids=[f"{high[0]}>{low[0]}" for high, low in PAIRS])
def test_where_two_things_overlap_the_more_important_counts(
    high: tuple[str, str, str], low: tuple[str, str, str]
) -> None:
    trace = draw(
        f"""
        gpu0 Steps  | W0--------
        {high[2]} x |  {high[0]}0----
        {low[2]} y  |     {low[0]}0---
        """,
        GROUPED,
    )

    expected = {"other": 2.0, high[1]: 6.0}
    expected[low[1]] = expected.get(low[1], 0.0) + 2.0  # 5 long, 3 of them hidden
    assert parts(trace) == [expected]


def figures(trace: HostTrace) -> dict[str, Any]:
    """What the pictures below expect."""
    return {"parts": parts(trace), "precision": precision(trace), "ops": ops(trace), "device_ops": ops(trace, "device")}


@gallery("""
    work on several devices counts once
        gpu0 Steps | W0--------
        gpu0 s     | K0----
        gpu1 s     |    K0----
        gpu1 t     |   D0-----
        parts = [{"device_compute": 9.0, "other": 1.0}]
    memory that is set and graphs that are launched are compute
        gpu0 Steps | W0--------
        gpu0 s | s0-  g0-
        parts = [{"device_compute": 6.0, "other": 4.0}]
    copies between devices and of unknown direction are device to device
        gpu0 Steps | W0----------
        gpu0 s | p0-o0---n0-
        parts = [{"device_to_device": 8.0, "device_collectives": 3.0, "other": 1.0}]
    where both run the narrow one counts
        gpu0 Steps | W0--------
        gpu0 s | K0------
        gpu0 t |   H0--
        precision = (4.0, 4.0)
    precision is of whole events also where the step ends before them
        gpu0 Steps | W0---
        gpu0 s | K0----------
        parts = [{"device_compute": 5.0}]
        precision = (0.0, 12.0)
""")
def test_kinds_of_device_work(picture: str, expected: dict[str, Any]) -> None:
    found = figures(
        draw(
            picture,
            GROUPED
            | {
                "s": Sort(K.MEMSET, "Memset", "group_id"),
                "g": Sort(K.GRAPH_LAUNCH, "CudaGraphExec:1", "group_id"),
                "p": Sort(K.COPY_PEER, "MemcpyP2P", "group_id"),
                "o": Sort(K.COPY_OTHER, "Memcpy", "group_id"),
                "n": Sort(K.COLLECTIVE, "ncclAllReduce", "group_id"),
            },
        )
    )

    assert {name: found[name] for name in expected} == expected


def test_infeed_and_outfeed_of_a_tpu() -> None:
    sorts = {"w": Sort(K.DEVICE_STEP, "3"), "i": Sort(K.INFEED, "infeed"), "p": Sort(K.OUTFEED, "outfeed")}
    trace = draw("tpu0 Steps | w---------\ntpu0 ops | i-- a---p-", sorts)

    assert parts(trace) == [{"input": 3.0, "device_compute": 4.0, "output": 2.0, "other": 1.0}]


# -- host only, or with a device ---------------------------------------------------------------------------------


@gallery("""
    a run without a device
        host main | M0------------------
        host main |  I1--- X---  a----
        host main |                 Y-
        parts = [{"input": 5.0, "compilation": 4.0, "host_compute": 5.0, "other": 6.0}]
    python calls explain nothing
        host main | M0--------
        host main |  Y-------
        host main |   a--
        parts = [{"host_compute": 3.0, "other": 7.0}]
    a region of a threadpool counts for as long as it lasts
        # 2 of the producer, 5 of the region
        host main | M0---------
        host main |  P1
        host pool |      S1!  T!
        parts = [{"host_compute": 7.0, "other": 4.0}]
    a device that lags is busy in every step
        host main | M0-M1-M2-
        host main |  L1 L2 L3
        gpu0 s    |    K1-----K2----K3-----
        parts = [{"kernel_launch": 2.0, "device_compute": 7.0, "other": 1.0}, {"device_compute": 6.0},
            {"device_compute": 7.0}]
    what a device still does for steps before the capture keeps it busy
        # nobody knows which step started `k`
        host main | M0--------M1--------
        host main | L1        L2
        gpu0 s    | k-----K1-  K2-------
        parts = [{"device_compute": 9.0, "other": 1.0}, {"kernel_launch": 1.0, "device_compute": 9.0}]
    work of no step counts for none
        host main | M0------  M1------
        host data |  J-----------
        host data |     b--  b--
        parts = [{"other": 10.0}, {"other": 8.0}]
    time after a mark belongs to its step until the next one starts
        host main | M0---  I1--- Y-- M1---  X- M2---
        host data |      J------------------------
        parts = [{"input": 5.0, "other": 12.0}, {"compilation": 2.0, "other": 8.0}, {"other": 5.0}]
    ops of a tpu nest
        tpu0 ops | a--------
        tpu0 ops |  b--- b-
        device_ops = [("b", 6.0, 2), ("a", 3.0, 1)]
    what is no op takes nothing from an op
        host main | a--------
        host main |  Y------
        host main |   b---
        ops = [("a", 5.0, 1), ("b", 4.0, 1)]
    self time is never negative
        host main | a---
        host main |  b--
        host main |  q-------
        ops = [("q", 8.0, 1), ("b", 3.0, 1), ("a", 1.0, 1)]
""")
def test_parts_of_a_step(picture: str, expected: dict[str, Any]) -> None:
    found = figures(draw(picture, {"q": Sort(K.OP, "q", traits=Trait.ASYNC)}))

    assert {name: found[name] for name in expected} == expected


def test_a_graph_executor_computes_on_a_host_and_launches_beside_a_device() -> None:
    alone = draw("host main | M0--------\nhost main |   P0---", {"P": Sort(K.EXECUTOR, "executor")})
    beside = draw("gpu0 Steps | W0--------\nhost main |   P0---", GROUPED)

    assert parts(alone) == [{"host_compute": 5.0, "other": 5.0}]
    assert parts(beside) == [{"kernel_launch": 5.0, "other": 5.0}]


def test_computing_hides_collectives_on_a_host_too() -> None:
    trace = draw("""
        host main | M0------------
        host main |  a---    b---
        host gloo |   G-----
    """)

    assert parts(trace) == [{"host_compute": 8.0, "device_collectives": 3.0, "other": 3.0}]


# -- waiting for a device ----------------------------------------------------------------------------------------

WAITING = {
    "s": Sort(K.SYNC, "cudaStreamSynchronize"),
    "m": Sort(K.RUNTIME_CALL, "hipMemcpyWithStream", "correlation_id"),
    "q": Sort(K.RUNTIME_CALL, "hipMemcpyAsync", "correlation_id"),
}


@gallery("""
    a copy that blocks is no launch and the op around it does not compute meanwhile
        host main | M0--------------
        host main | o-----------L1
        host main |  m2-------
        gpu0 s    |         U2    K1
        parts = [{"host_compute": 3, "other": 7, "input": 2, "kernel_launch": 2, "device_compute": 2}]
    a device that computes while the host waits for it computes
        host main | M0--------
        host main | oL1-------
        host main |    s------
        gpu0 s    |    K1---
        parts = [{"host_compute": 1, "kernel_launch": 2, "device_compute": 5, "other": 2}]
    a thread that launches counts while another waits
        host main | M0--------
        host main | P1s------
        host back |   C1-----
        host back |   L2--
        gpu0 s    |         K2
        parts = [{"host_compute": 4, "kernel_launch": 4, "device_compute": 2}]
    waits one after another leave what lies between them
        host main | M0----------
        host main | a-----------
        host main | b----- c----
        host main | s- s-- ss  s
        gpu0 s    |            K!
        parts = [{"host_compute": 4, "other": 8}]
    without a device nothing waits for one
        host main | M0----
        host main | a-----
        host main |  s---
        parts = [{"host_compute": 6}]
""")
def test_the_host_waits_for_its_device(picture: str, expected: dict[str, Any]) -> None:
    found = figures(draw(picture, WAITING))

    assert {name: found[name] for name in expected} == expected


# -- which step --------------------------------------------------------------------------------------------------


def test_work_counts_for_the_step_during_which_it_runs() -> None:
    trace = draw("""
        host main | M0------M1------M2------
        host main |  P1      P2
        host pool |      C1-----C2----
    """)  # each call returns before its work is done

    assert steps_of(trace).label[-2:].tolist() == [0, 1]
    assert parts(trace) == [
        {"host_compute": 5.0, "other": 3.0},
        {"host_compute": 8.0},
        {"host_compute": 2.0, "other": 6.0},
    ]


# -- precision ---------------------------------------------------------------------------------------------------


def test_narrow_and_wide_compute() -> None:
    trace = draw(
        """
        gpu0 Steps | W0------------------
        gpu0 s     | H0-- K0---- D0-
        gpu0 t     |            K0--  H0
        """,
        GROUPED,
    )

    assert precision(trace) == (6.0, 10.0)


# -- top ops -----------------------------------------------------------------------------------------------------


def ops(trace: HostTrace, where: str = "host") -> list[tuple[str, float, int]]:
    """Name, self time in ms and calls of every op."""
    found = OPS.merge([(host_ops(trace) if where == "host" else device_ops(trace)).ops])
    return [*zip(found["name"], [ps / MS for ps in found["self_ps"]], found["calls"], strict=True)]


def total(measure: str, *hosts: CountedOps) -> int | None:
    return OPS.merge([host.ops for host in hosts]).total(measure)


def test_self_time_is_without_the_ops_inside() -> None:
    trace = draw("""
        host main | a-------- a-----
        host main |  b----     c--
        host main |   c--
        host pool | c---
    """)

    assert ops(trace) == [("c", 10.0, 3), ("a", 7.0, 2), ("b", 2.0, 1)]
    assert (total("self_ps", host_ops(trace)), total("calls", host_ops(trace))) == (19 * MS, 6)


def test_kernels_of_one_op_add_up() -> None:
    sorts = {
        "a": Sort(K.KERNEL, "kernel_1", stats={"tf_op": "model/dense/MatMul:MatMul"}),
        "b": Sort(K.KERNEL, "kernel_2", stats={"tf_op": "model/dense/MatMul:MatMul"}),
        "c": Sort(K.KERNEL, "kernel_3", stats={"tf_op": "x:Y", "hlo_op": "fusion.7"}),
    }
    trace = draw("gpu0 s | a---b-- c--\ngpu0 t | d-\ngpu0 Derived | a-------", sorts)

    assert ops(trace, "device") == [("model/dense/MatMul", 7.0, 1), ("fusion.7", 3.0, 1), ("d", 2.0, 1)]
    assert OPS.merge([device_ops(trace).ops])["category"] == ["MatMul", "fusion", "d"]


def test_a_trace_without_ops_is_ranked_by_what_it_has() -> None:
    assert ops(draw("host main | A----\nhost main |  Y--")) == [("forward", 5.0, 1)]
    assert ops(draw("host main | Y----")) == [("loop.py:1 train", 5.0, 1)]
    assert ops(draw("host main | L1")) == []


def test_the_share_of_eager_ops() -> None:
    sorts = {
        "D": Sort(K.EAGER_EXECUTE, "EagerExecute", "is_func"),
        "F": Sort(K.TRACED_FUNCTION, "step"),
    }
    trace = draw(
        """
        host main | D0--- D0---- D1------
        host main |  a--   a---   b-----
        host main |                c--
        """,
        sorts,
    )

    told, silent = host_ops(trace), host_ops(draw("host main | a--"))
    assert (total("self_ps", told), total("eager_ps", told), total("eager_ps", silent)) == (13 * MS, 7 * MS, None)
    assert total("eager_ps", told, silent) is None  # of all of them nobody knows
    assert total("eager_ps", told, host_ops(draw("gpu0 s | k-"))) == 7 * MS


COPY_DONE = "%copy-done = f32[5,1024]{3,2,1,0:T(8,128)} copy-done((f32[5,1024]{1,0}, u32[]{:S(2)}) %copy-start)"


@pytest.mark.parametrize(
    ("text", "kind", "name", "category"),
    [
        ("model/dense/MatMul:MatMul", K.OP, "model/dense/MatMul", "MatMul"),
        ("model/dense/MatMul_3:", K.OP, "model/dense/MatMul_3", "MatMul"),
        ("jit(step)/dot:dot_general[dims=((1,), (0,))]", K.KERNEL, "jit(step)/dot", "dot_general"),
        ("MatMul:MatMul#id=7,step=3#", K.OP, "MatMul", "MatMul"),
        ("RestoreV2", K.OP, "RestoreV2", "RestoreV"),
        ("aten::addmm", K.OP, "aten::addmm", "addmm"),
        (COPY_DONE, K.DEVICE_OP, "copy-done", "copy-done"),
        ("%copy-start.3 = (f32[5]{0:T(256)}, u32[]) copy-start(f32[5] %p)", K.DEVICE_OP, "copy-start.3", "copy-start"),
        ("%fusion.12 = bf16[8,128]{1,0} fusion(bf16[8] %a), kind=kLoop", K.DEVICE_OP, "fusion.12", "fusion"),
        ("%while.2", K.DEVICE_OP, "while.2", "op"),
        ("loop_add_fusion.4", K.KERNEL, "loop_add_fusion.4", "loop_add_fusion"),
        ("dot.3", K.OP, "dot.3", "dot"),
        ("void at::native::reduce<int>(int)", K.KERNEL, "void at::native::reduce<int>(int)", "kernel"),
        ("MEMCPYHtoD", K.COPY_HOST_TO_DEVICE, "MEMCPYHtoD", "copy host to device"),
        ("MemcpyD2H", K.COPY_DEVICE_TO_HOST, "MemcpyD2H", "copy device to host"),
        ("Memset (Device)", K.MEMSET, "Memset (Device)", "memset"),
        ("ncclDevKernel_AllReduce", K.COLLECTIVE, "ncclDevKernel_AllReduce", "collective"),
        ("$train.py:12 step", K.PYTHON_CALL, "train.py:12 step", "Python"),
        ("12:34", K.OP, "12:34", "op"),
        ("#", K.OP, "#", "op"),
        (":", K.OP, ":", "op"),
        ("", K.OP, "", "op"),
    ],
)
def test_names_and_categories_of_ops(text: str, kind: EventKind, name: str, category: str) -> None:
    assert parse_op(text, kind) == (name, category)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40), st.integers(0, 9)), max_size=25))
@settings(deadline=None)
def test_each_instant_goes_to_the_highest_rank(events: list[tuple[int, int, int]]) -> None:
    rank, start, length = np.array(events, np.int64).reshape(-1, 3).T.copy()
    begin, stop = np.array([3, 12, 30]), np.array([12, 25, 30])
    found = time_by_rank(rank.astype(np.uint8), start, start + length, begin, stop)

    expected = np.zeros((3, len(Rank)), np.int64)
    for step in range(3):
        for at in range(begin[step], stop[step]):
            expected[step, max((r for r, first, ps in events if first <= at < first + ps), default=0)] += 1
    assert found.tolist() == expected.tolist()
