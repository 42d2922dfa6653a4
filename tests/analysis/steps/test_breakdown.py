"""Where the time of a step goes, what the verdict makes of it, and which ops took it."""

from __future__ import annotations

import pytest
from draw import MS, SORTS, Sort, draw

from stepscope.analysis.ops.top_ops import add_tables, device_ops, host_ops
from stepscope.analysis.steps.breakdown import CATEGORIES, CATEGORY_OF_RANK, MEANING, Breakdown, Rank, breakdown
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


def test_every_category_can_be_reached_and_is_explained() -> None:
    assert set(CATEGORY_OF_RANK) == set(Rank)
    assert set(CATEGORY_OF_RANK.values()) == set(CATEGORIES) == set(MEANING)


def test_work_on_several_devices_counts_once() -> None:
    trace = draw(
        """
        gpu0 Steps | W0--------
        gpu0 s     | K0----
        gpu1 s     |    K0----
        gpu1 t     |   D0-----
        """,
        GROUPED,
    )

    assert parts(trace) == [{"device_compute": 9.0, "other": 1.0}]


def test_memory_that_is_set_and_graphs_that_are_launched_are_compute() -> None:
    sorts = GROUPED | {
        "s": Sort(K.MEMSET, "Memset", "group_id"),
        "g": Sort(K.GRAPH_LAUNCH, "CudaGraphExec:1", "group_id"),
    }
    trace = draw("gpu0 Steps | W0--------\ngpu0 s | s0-  g0-", sorts)

    assert parts(trace) == [{"device_compute": 6.0, "other": 4.0}]


def test_copies_between_devices_and_of_unknown_direction_are_device_to_device() -> None:
    sorts = GROUPED | {
        "p": Sort(K.COPY_PEER, "MemcpyP2P", "group_id"),
        "o": Sort(K.COPY_OTHER, "Memcpy", "group_id"),
        "n": Sort(K.COLLECTIVE, "ncclAllReduce", "group_id"),
    }
    trace = draw("gpu0 Steps | W0----------\ngpu0 s | p0-o0---n0-", sorts)

    assert parts(trace) == [{"device_to_device": 8.0, "device_collectives": 3.0, "other": 1.0}]


def test_infeed_and_outfeed_of_a_tpu() -> None:
    sorts = {"w": Sort(K.DEVICE_STEP, "3"), "i": Sort(K.INFEED, "infeed"), "p": Sort(K.OUTFEED, "outfeed")}
    trace = draw("tpu0 Steps | w---------\ntpu0 ops | i-- a---p-", sorts)

    assert parts(trace) == [{"input": 3.0, "device_compute": 4.0, "output": 2.0, "other": 1.0}]


# -- host only, or with a device ---------------------------------------------------------------------------------


def test_a_run_without_a_device() -> None:
    trace = draw("""
        host main | M0------------------
        host main |  I1--- X---  a----
        host main |                 Y-
    """)

    assert parts(trace) == [{"input": 5.0, "compilation": 4.0, "host_compute": 5.0, "other": 6.0}]


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


def test_a_copy_that_blocks_is_no_launch_and_the_op_around_it_does_not_compute_meanwhile() -> None:
    trace = draw(
        """
        host main | M0--------------
        host main | o-----------L1
        host main |  m2-------
        gpu0 s    |         U2    K1
        """,
        WAITING,
    )
    assert parts(trace) == [{"host_compute": 3, "other": 7, "input": 2, "kernel_launch": 2, "device_compute": 2}]


def test_a_device_that_computes_while_the_host_waits_for_it_computes() -> None:
    trace = draw(
        """
        host main | M0--------
        host main | oL1-------
        host main |    s------
        gpu0 s    |    K1---
        """,
        WAITING,
    )
    assert parts(trace) == [{"host_compute": 1, "kernel_launch": 2, "device_compute": 5, "other": 2}]


def test_a_thread_that_launches_counts_while_another_waits() -> None:
    trace = draw(
        """
        host main | M0--------
        host main | P1s------
        host back |   C1-----
        host back |   L2--
        gpu0 s    |         K2
        """,
        WAITING,
    )
    assert parts(trace) == [{"host_compute": 4, "kernel_launch": 4, "device_compute": 2}]


def test_waits_one_after_another_leave_what_lies_between_them() -> None:
    trace = draw(
        """
        host main | M0----------
        host main | a-----------
        host main | b----- c----
        host main | s- s-- ss  s
        gpu0 s    |            K!
        """,
        WAITING,
    )
    assert parts(trace) == [{"host_compute": 4, "other": 8}]


def test_without_a_device_nothing_waits_for_one() -> None:
    assert parts(draw("host main | M0----\nhost main | a-----\nhost main |  s---", WAITING)) == [{"host_compute": 6}]


def test_python_calls_explain_nothing() -> None:
    trace = draw("""
        host main | M0--------
        host main |  Y-------
        host main |   a--
    """)

    assert parts(trace) == [{"host_compute": 3.0, "other": 7.0}]


def test_a_region_of_a_threadpool_counts_for_as_long_as_it_lasts() -> None:
    trace = draw("""
        host main | M0---------
        host main |  P1
        host pool |      S1!  T!
    """)

    assert parts(trace) == [{"host_compute": 7.0, "other": 4.0}]  # 2 of the producer, 5 of the region


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


def test_a_device_that_lags_is_busy_in_every_step() -> None:
    trace = draw("""
        host main | M0-M1-M2-
        host main |  L1 L2 L3
        gpu0 s    |    K1-----K2----K3-----
    """)

    assert parts(trace) == [
        {"kernel_launch": 2.0, "device_compute": 7.0, "other": 1.0},
        {"device_compute": 6.0},
        {"device_compute": 7.0},
    ]


def test_what_a_device_still_does_for_steps_before_the_capture_keeps_it_busy() -> None:
    trace = draw("""
        host main | M0--------M1--------
        host main | L1        L2
        gpu0 s    | k-----K1-  K2-------
    """)  # nobody knows which step started `k`

    assert parts(trace) == [
        {"device_compute": 9.0, "other": 1.0},
        {"kernel_launch": 1.0, "device_compute": 9.0},
    ]


def test_work_of_no_step_counts_for_none() -> None:
    trace = draw("""
        host main | M0------  M1------
        host data |  J-----------
        host data |     b--  b--
    """)

    assert parts(trace) == [{"other": 10.0}, {"other": 8.0}]


def test_time_after_a_mark_belongs_to_its_step_until_the_next_one_starts() -> None:
    trace = draw("""
        host main | M0---  I1--- Y-- M1---  X- M2---
        host data |      J------------------------
    """)

    assert parts(trace) == [
        {"input": 5.0, "other": 12.0},
        {"compilation": 2.0, "other": 8.0},
        {"other": 5.0},
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


def test_where_both_run_the_narrow_one_counts() -> None:
    trace = draw("gpu0 Steps | W0--------\ngpu0 s | K0------\ngpu0 t |   H0--", GROUPED)

    assert precision(trace) == (4.0, 4.0)


def test_precision_is_of_whole_events_also_where_the_step_ends_before_them() -> None:
    trace = draw("gpu0 Steps | W0---\ngpu0 s | K0----------", GROUPED)

    assert parts(trace) == [{"device_compute": 5.0}]
    assert precision(trace) == (0.0, 12.0)


# -- top ops -----------------------------------------------------------------------------------------------------


def ops(trace: HostTrace, where: str = "host") -> list[tuple[str, float, int]]:
    """Name, self time in ms and calls of every op."""
    table = host_ops(trace) if where == "host" else device_ops(trace)
    return [(op.name, op.self_ps / MS, op.calls) for op in table.ops]


def test_self_time_is_without_the_ops_inside() -> None:
    trace = draw("""
        host main | a-------- a-----
        host main |  b----     c--
        host main |   c--
        host pool | c---
    """)

    assert ops(trace) == [("c", 10.0, 3), ("a", 7.0, 2), ("b", 2.0, 1)]
    assert host_ops(trace).total_self_ps == 19 * MS
    assert host_ops(trace).total_calls == 6


def test_kernels_of_one_op_add_up() -> None:
    sorts = {
        "a": Sort(K.KERNEL, "kernel_1", stats={"tf_op": "model/dense/MatMul:MatMul"}),
        "b": Sort(K.KERNEL, "kernel_2", stats={"tf_op": "model/dense/MatMul:MatMul"}),
        "c": Sort(K.KERNEL, "kernel_3", stats={"tf_op": "x:Y", "hlo_op": "fusion.7"}),
    }
    trace = draw("gpu0 s | a---b-- c--\ngpu0 t | d-\ngpu0 Derived | a-------", sorts)

    assert ops(trace, "device") == [("model/dense/MatMul", 7.0, 1), ("fusion.7", 3.0, 1), ("d", 2.0, 1)]
    assert [op.category for op in device_ops(trace).ops] == ["MatMul", "fusion", "d"]


def test_ops_of_a_tpu_nest() -> None:
    trace = draw("tpu0 ops | a--------\ntpu0 ops |  b--- b-")

    assert ops(trace, "device") == [("b", 6.0, 2), ("a", 3.0, 1)]


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

    assert host_ops(trace).total_self_ps == 13 * MS
    assert host_ops(trace).eager_self_ps == 7 * MS
    silent = host_ops(draw("host main | a--"))
    assert silent.eager_self_ps is None
    assert add_tables([host_ops(trace), silent]).eager_self_ps is None  # of all of them nobody knows
    assert add_tables([host_ops(trace), host_ops(draw("gpu0 s | k-"))]).eager_self_ps == 7 * MS


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


def test_what_is_no_op_takes_nothing_from_an_op() -> None:
    trace = draw("""
        host main | a--------
        host main |  Y------
        host main |   b---
    """)

    assert ops(trace) == [("a", 5.0, 1), ("b", 4.0, 1)]


def test_self_time_is_never_negative() -> None:
    asynchronous = {"q": Sort(K.OP, "q", traits=Trait.ASYNC)}
    trace = draw("host main | a---\nhost main |  b--\nhost main |  q-------", asynchronous)

    assert ops(trace) == [("q", 8.0, 1), ("b", 3.0, 1), ("a", 1.0, 1)]
