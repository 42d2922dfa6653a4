"""The tool `op-stats`: what it counts, on pictures, and that it says what XProf says where XProf is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from draw import Sort, draw
from framework_captures import FrameworkCapture
from gallery import gallery
from reporting import reporter, table

import stepscope
from stepscope.analysis.ops import op_sides
from stepscope.analysis.ops import op_stats_tool as op_stats
from stepscope.analysis.ops.op_stats_tool import OpStatsReport
from stepscope.analysis.trace import op_work
from stepscope.model import EventKind, LineKind, PlaneKind, TraceBuilder, Trait

K = EventKind
MS = 1000.0  # us

SORTS = {
    "m": Sort(K.OP, "dense/MatMul:MatMul"),
    "n": Sort(K.OP, "other/MatMul:MatMul"),
    "k": Sort(K.KERNEL, "gemm", "correlation_id", {"tf_op": "dense/MatMul:MatMul"}),
    "b": Sort(K.KERNEL, "bias", "correlation_id", {"tf_op": "dense/MatMul:MatMul"}),
}


report = reporter(op_stats)


def figure(found: OpStatsReport, name: str) -> Any:
    """What a gallery expects: columns of the rows, with commas between, a total, or the warnings; times in ms."""
    if name == "warnings":
        return found.warnings
    us = name.replace("_ms", "_us").split(",")
    in_ms = [each.endswith("_ms") for each in name.split(",")]
    if us[0] in found.totals:
        return found.totals[us[0]] / MS
    return [tuple(cell / MS if ms else cell for cell, ms in zip(row, in_ms, strict=True)) for row in table(found, *us)]


COPY = {"bytes_accessed": 2**30}
DRAWN = SORTS | {
    "z": Sort(K.OP, "async", traits=Trait.ASYNC),
    "w": Sort(K.INPUT_WAIT, "IteratorGetNextOp::DoCompute"),
    "u": Sort(K.COPY_HOST_TO_DEVICE, "MemcpyH2D", stats={"tf_op": "dense/MatMul:MatMul", "bytes": 2**30}),
    "p": Sort(K.KERNEL, "fill", stats={"hlo_op": "custom-call.1"}),
    "q": Sort(K.KERNEL, "attention", stats={"hlo_op": "custom-call.1"}),
    "s": Sort(K.DEVICE_OP, "copy-start.1", stats=COPY),
    "d": Sort(K.DEVICE_OP, "copy-done.1", stats=COPY),
    "l": Sort(K.DEVICE_OP, "dot.2", stats={"device_duration_ps": 7 * 10**9, "flops": 4}),
}


@gallery("""
    waits for input alone are not all that a host does
        host main | I--A-----
        type,name,total_self_ms = [("annotation", "forward", 6), ("input wait", "IteratorGetNext", 3)]
    only ops take time away from the ops around them
        host main | g-----
        host main |  Y---
        host main |   h-
        name,total_self_ms = [("g", 4), ("h", 2)]
    ops that overlap without nesting keep their time
        host main | g----
        host main |    h----
        host main |  z-
        name,total_self_ms = [("g", 5), ("h", 5), ("async", 2)]
    threads do not take time from each other
        host main | g------
        host pool |   g--h-
        name,occurrences,total_self_ms = [("g", 2, 10), ("h", 1, 2)]
    idle is between the first and the last op of each thread: two ms on main, one on the other
        host main | M-----------
        host main |  g--  g-
        host pool |     h--- h-
        host_self_ms = 11
        host_idle_ms = 3
    a wait inside a wait is the same wait
        host main | I-------
        host main |  w------
        host main |   J----
        name,type,total_self_ms = [("Iterator::Map", "Dataset", 5), ("IteratorGetNext", "input wait", 3)]
    traced functions stand for the ops of a host that recorded none
        host main | F--- F---
        gpu0 s    |   k1
        side,name,type,occurrences = [
            ("device", "dense/MatMul", "MatMul", 1), ("host", "train_step", "traced function", 2)]
        warnings = ("a host recorded no ops: the traced functions that it called are listed instead",)
    a call that is recorded in Python and again in C++ counts once
        host main | F----F----
        host main |  F--- F---
        gpu0 s    |   k1
        side,name,occurrences,total_self_ms = [("device", "dense/MatMul", 1, 2), ("host", "train_step", 2, 10)]
    named ranges stand for the ops of a host that recorded none
        host main | A----
        host main |  Y--
        name,total_ms = [("forward", 5)]
        warnings = ("a host recorded no ops: the ranges that the program named are listed instead",)
    Python functions stand for the ops of a host that recorded nothing else
        host main | Y----
        name,total_ms = [("loop.py:1 train", 5)]
        warnings = ("a host recorded no ops: the Python functions that it ran are listed instead",)
""")
def test_ops_of_hosts(picture: str, expected: dict[str, Any]) -> None:
    found = report(draw(picture, DRAWN))

    assert {name: figure(found, name) for name in expected} == expected


@gallery("""
    the kernels of an op add up, and one run counts once
        host main | m------ m---
        host main |  L1L2    L3
        gpu0 s    |   k1-b2- k3--
        side,name,type,occurrences,total_ms,total_self_ms = [
            ("device", "dense/MatMul", "MatMul", 2, 10, 10), ("host", "dense/MatMul", "MatMul", 2, 11, 11)]
    without the runs on the host the most frequent kernel tells how often an op ran
        gpu0 s | k1b2k3b4k5
        name,occurrences = [("dense/MatMul", 3)]
    an XLA instruction ran as often as its rarest kernel
        gpu0 s | p-p-q-p-p-q-
        name,type,occurrences = [("custom-call.1", "custom-call", 2)]
    copies of an op are apart from its kernels and state their rate
        gpu0 s | k----u---
        name,type,total_ms,gib_per_s = [
            ("dense/MatMul", "MatMul", 5, None), ("dense/MatMul", "copy host to device", 4, 250.0)]
    work without an op has a row of its own
        gpu0 s | K1--K2-D3-
        name,type,occurrences = [("kernel", "kernel", 2), ("MemcpyD2H", "copy device to host", 1)]
    idle of a device is when none of its streams works
        gpu0 s | k--    k--
        gpu0 t |  K--
        gpu1 s |     k-  k-
        device_idle_ms = 5
    halves of an asynchronous copy have no rate: each states all the bytes, the copy runs between them
        tpu0 ops | s-   d----
        name,type,total_ms,gib_per_s = [
            ("copy-done.1", "copy-done", 5, None), ("copy-start.1", "copy-start", 2, None)]
    the clock of the device wins, and without stated peaks nothing is known to bind an op
        tpu0 ops | l--
        total_ms,total_self_ms,bound_by = [(7, 7, None)]
    idle time takes its place among the ops: 4 and 3 of work and 4 idle, and on the host 5 and 5 of ops and 4 idle
        host main | x---   y---- x
        gpu0 s    |   k---    K--
        self_percent_with_idle,cumulative_self_percent_with_idle = [
            (36.3636, 72.7273), (27.2727, 100), (35.7143, 35.7143), (35.7143, 71.4286)]
""")
def test_ops_of_devices(picture: str, expected: dict[str, Any]) -> None:
    found = report(draw(picture, DRAWN))

    assert {name: figure(found, name) for name in expected} == expected


def test_work_without_an_op_is_unattributed() -> None:
    assert report(draw("gpu0 s | K1--K2-D3-")).attribution["unattributed_percent"] == 100.0


# -- hosts ---------------------------------------------------------------------------------------------------------


def test_ops_outside_of_graphs_are_ops() -> None:
    sorts = SORTS | {
        "e": Sort(K.EAGER_EXECUTE, "EagerExecute: ConcatV2"),
        "c": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: ConcatV2"),
        "d": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: MatMul"),
        "f": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: __inference_step_7", stats={"is_func": 1}),
        "i": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: IteratorGetNext"),
        "w": Sort(K.INPUT_WAIT, "IteratorGetNextOp::DoCompute"),
    }
    found = report(
        draw(
            """
            host main | e---  d---  f---  i---
            host main | c---   m-    n-    w-
            """,
            sorts,
        )
    )

    assert sorted(table(found, "type", "name", "occurrences", "total_self_us")) == [
        ("ConcatV2", "ConcatV2", 1, 4 * MS),
        ("MatMul", "dense/MatMul", 1, 2 * MS),  # the op inside says more than its dispatch
        ("MatMul", "other/MatMul", 1, 2 * MS),
        ("input wait", "IteratorGetNextOp::DoCompute", 1, 2 * MS),
    ]


def test_self_time_leaves_out_the_ops_inside_and_total_time_does_not() -> None:
    found = report(
        draw(
            """
            host main | a--------- a---
            host main |  b---- c--
            host main |   c-
            """
        )
    )

    assert table(found, "name", "occurrences", "total_us", "total_self_us", "avg_us", "avg_self_us") == [
        ("a", 2, 14 * MS, 6 * MS, 7 * MS, 3 * MS),
        ("c", 2, 5 * MS, 5 * MS, 2.5 * MS, 2.5 * MS),
        ("b", 1, 5 * MS, 3 * MS, 5 * MS, 3 * MS),
    ]


def test_ops_of_one_type_and_ops_of_one_name_add_up() -> None:
    found = report(draw("host main | m---n---x--\nhost main |  n-\nhost main |         m-", SORTS))

    assert table(found, "name", "type", "total_self_us") == [
        ("other/MatMul", "MatMul", 6 * MS),
        ("dense/MatMul", "MatMul", 4 * MS),
        ("x", "x", 1 * MS),
    ]
    assert spread(found, "host", "type") == [("MatMul", 10 * MS, 90.9091), ("x", 1 * MS, 9.0909)]


# -- devices -------------------------------------------------------------------------------------------------------


def test_ops_on_a_tpu_nest_and_state_operations_and_bytes() -> None:
    costs = {"flops": 4 * 10**9, "bytes_accessed": 2**30}
    sorts = {"w": Sort(K.DEVICE_OP, "while.1"), "d": Sort(K.DEVICE_OP, "dot.2", stats=costs)}
    found = report(draw("tpu0 ops | w--------\ntpu0 ops |  d-- d--", sorts))

    assert table(found, "name", "occurrences", "total_us", "total_self_us", "gflop_per_s", "gib_per_s") == [
        ("dot.2", 2, 6 * MS, 6 * MS, pytest.approx(8000 / 6), pytest.approx(2000 / 6)),
        ("while.1", 1, 9 * MS, 3 * MS, None, None),
    ]
    assert found.rows[0]["flop_per_byte"] == pytest.approx(4 * 10**9 / 2**30)


def test_a_rate_is_unknown_where_some_of_the_work_tells_no_operations() -> None:
    sorts = {"d": Sort(K.DEVICE_OP, "dot.2", stats={"flops": 4 * 10**9}), "q": Sort(K.DEVICE_OP, "dot.2")}
    told, silent, both = (draw(f"tpu0 ops | {ops}", sorts, host=ops) for ops in ("d--", "q-----", "d-- q--"))

    assert table(report(told), "name", "gflop_per_s") == [("dot.2", pytest.approx(4000 / 3))]
    for hosts in ([told, silent], [both]):
        assert table(report(*hosts), "name", "gflop_per_s") == [("dot.2", None)]


@pytest.mark.parametrize(
    ("flops", "moved", "bound_by"),
    [
        (2 * 10**9, 10**9, "memory"),  # of 3 ms: 0.7 of 2 TFLOP/s is a third, 333 of 500 GB/s two thirds
        (6 * 10**9, 10**9, "compute"),
        (6 * 10**9, None, "compute"),
        (None, None, None),
    ],
)
def test_an_op_is_bound_by_the_peak_that_it_comes_closest_to(
    flops: int | None, moved: int | None, bound_by: str | None
) -> None:
    builder = TraceBuilder("host")
    peaks = {"peak_teraflops_per_second": 2.0, "peak_hbm_bw_gigabytes_per_second": 500.0}
    plane = builder.plane("/device:TPU:0", PlaneKind.TPU, 0, peaks)
    costs = {name: value for name, value in (("flops", flops), ("bytes_accessed", moved)) if value is not None}
    builder.line(plane, "ops", kind=LineKind.DEVICE_OPS).event("dot.2", 0, 3 * 10**9, K.DEVICE_OP, costs)

    assert table(report(builder.build()), "name", "bound_by") == [("dot.2", bound_by)]


def test_the_share_of_an_op_that_was_dispatched_op_by_op() -> None:
    sorts = {"D": Sort(K.EAGER_EXECUTE, "EagerExecute", "is_func")}
    trace = draw("host main | D0--- D1------ D1---\nhost main |  a--   a-----   b-", sorts)

    assert table(report(trace), "name", "eager_percent") == [("a", pytest.approx(100 / 3, abs=1e-4)), ("b", 0.0)]
    assert table(report(draw("host main | a--")), "eager_percent") == [(None,)]


@pytest.mark.parametrize(
    ("kernels", "share"),
    [({"k": "ampere_h16816gemm"}, 100.0), ({"k": "volta_sgemm_64x64_nn"}, 0.0), ({"k": "mystery"}, None)],
)
def test_share_of_an_ops_kernels_on_tensor_cores(kernels: dict[str, str], share: float | None) -> None:
    sorts = {letter: Sort(K.KERNEL, name, stats={"tf_op": "a/MatMul:MatMul"}) for letter, name in kernels.items()}
    found = report(draw("gpu0 s | k--k--", sorts))

    assert table(found, "tensor_core_percent") == [(share,)]


# -- shares --------------------------------------------------------------------------------------------------------


def spread(found: OpStatsReport, where: str, by: str, column: str = "percent") -> list[tuple[Any, Any, Any]]:
    """One distribution: name, self time, share."""
    rows = [row for row in found.distributions if (row["side"], row["by"]) == (where, by)]
    return [(row["name"], row["self_us"], row[column]) for row in rows]


TWO_SIDES = """
    host main | x---   y---- x
    gpu0 s    |   k---    K--
"""


def test_shares_are_of_one_side_and_0_on_the_other() -> None:
    found = report(draw(TWO_SIDES, SORTS))

    assert table(
        found,
        "rank", "side", "self_percent", "cumulative_self_percent", "device_self_percent",
        "device_cumulative_self_percent", "host_self_percent", "host_cumulative_self_percent",
    ) == [
        (1, "device", 57.1429, 57.1429, 57.1429, 57.1429, 0, 0),
        (2, "device", 42.8571, 100, 42.8571, 100, 0, 0),
        (3, "host", 50, 50, 0, 0, 50, 50),
        (4, "host", 50, 100, 0, 0, 50, 100),
    ]  # fmt: skip


def test_four_distributions_with_and_without_idle_time() -> None:
    found = report(draw(TWO_SIDES, SORTS))

    assert spread(found, "device", "op") == [
        ("dense/MatMul", 4 * MS, 57.1429), ("kernel", 3 * MS, 42.8571), ("IDLE", 4 * MS, None),
    ]  # fmt: skip
    assert spread(found, "device", "type", "percent_with_idle") == [
        ("MatMul", 4 * MS, 36.3636), ("kernel", 3 * MS, 27.2727), ("IDLE", 4 * MS, 36.3636),
    ]  # fmt: skip
    assert spread(found, "host", "type") == [("x", 5 * MS, 50.0), ("y", 5 * MS, 50.0), ("IDLE", 4 * MS, None)]
    assert spread(found, "host", "op", "percent_with_idle")[-1] == ("IDLE", 4 * MS, 28.5714)


def test_a_distribution_gathers_all_but_the_first_ten() -> None:
    letters = "abcdefghijkl"
    found = report(draw("host main | " + "".join(letter + "--" for letter in letters)))

    assert [name for name, _, _ in spread(found, "host", "op")] == [*letters[:10], "others"]
    assert spread(found, "host", "op")[-1][1:] == (6 * MS, 16.6667)


def test_hosts_add_up() -> None:
    one = draw("host main | m--\ngpu0 s    | k--- k", SORTS, host="one")
    two = draw("host main | m----\ngpu0 s    | b-", SORTS, host="two")
    found = report(one, two)

    assert found.hosts == ("one", "two")
    assert table(found, "side", "name", "occurrences", "total_us") == [
        ("device", "dense/MatMul", 3, 7 * MS),
        ("host", "dense/MatMul", 2, 8 * MS),
    ]
    assert found.totals["device_idle_us"] == 1 * MS


def keep_most(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    for module in (op_sides, op_stats):
        monkeypatch.setattr(module, "OPS", replace(op_sides.OPS, most=rows))


def test_ops_beyond_the_limit_are_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_most(monkeypatch, 1)
    found = report(draw("host main | a--------b"))

    assert table(found, "name", "self_percent") == [("a", 90.0)]
    assert found.totals["host_ops"] == 2
    assert found.warnings == ("1 ops on the host with 10 % of its self time are not listed",)


def test_how_many_ops_there_are_is_unknown_where_hosts_may_have_left_out_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep_most(monkeypatch, 1)
    one, two = draw("host main | a--------b"), draw("host main | a--------b", host="two")

    assert report(one, two).totals["host_ops"] is None
    keep_most(monkeypatch, 2)
    assert report(one, two).totals["host_ops"] == 2


def test_sampled_functions_stand_for_ops_where_nothing_else_was_recorded() -> None:
    builder = TraceBuilder("host")
    builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main", 7).event("train", 0, 20 * 10**9, K.STEP_MARK)
    samples = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    main, waiting = (builder.line(samples, name, kind=LineKind.OTHER) for name in ("MainThread", "pool_0"))
    main.event("$train.py:9 main", 0, 20 * 10**9, K.PYTHON_CALL)
    main.event("$train.py:1 load", 5 * 10**9, 10 * 10**9, K.PYTHON_CALL)
    waiting.event("$pool.py:3 wait", 0, 20 * 10**9, K.PYTHON_CALL)

    found = report(builder.build())

    assert table(found, "name", "total_self_us") == [("train.py:1 load", 10 * MS), ("train.py:9 main", 10 * MS)]
    assert found.warnings == ("a host recorded no ops: the Python functions that it ran are listed instead",)


def test_a_profile_without_ops_says_what_would_record_them() -> None:
    found = report(draw("host main | M0-----"))

    assert found.rows == ()
    assert "this file shows nothing of the host" in found.warnings[0]


# -- beside XProf --------------------------------------------------------------------------------------------------


def xplanes(folder: Path) -> list[Path]:
    """The files of a session, as XProf wants them."""
    return sorted(folder.rglob("*.xplane.pb"))


def differences(folder: Path, ignored: Sequence[str] = ()) -> tuple[list[str], int]:
    """Where the times of XProf's ops differ from ours by more than 1 % and 2 ns; and how many ops were compared.

    Types are left out of the comparison: XProf calls what it does not know `Unknown`.
    """
    ours: dict[tuple[object, object], list[float]] = {}
    for row in stepscope.load(folder).op_stats().rows:
        entry = ours.setdefault((row["side"], row["name"]), [0.0, 0.0])
        entry[0] += row["total_us"]
        entry[1] += row["total_self_us"]
    _, without_idle = oracle.framework_op_stats(xplanes(folder))
    theirs: dict[tuple[str, str], list[float]] = {}
    for row in without_idle.rows:
        entry = theirs.setdefault((row["host_or_device"].lower(), row["operation"]), [0.0, 0.0])
        entry[0] += row["total_time"]
        entry[1] += row["total_self_time"]
    found = [
        f"{where} {name}: {times}, ours {ours.get((where, name))}"
        for (where, name), times in theirs.items()
        if name not in ignored
        and max(times) > 0
        and ours.get((where, name)) != pytest.approx(times, rel=0.01, abs=0.002)
    ]
    return found, len(theirs)


@pytest.mark.parametrize(
    ("session", "ignored", "least"),
    [
        # XProf counts calls that launch an XLA program as ops named XlaModule; they are launches.
        ("jax-mi300x-attention", ("XlaModule",), 13),
        ("jax-mi300x-conv", (), 4),
        ("tpu-inference", (), 16),
        ("tf-gpu-multi-worker", (), 499),
    ],
)
def test_times_of_ops_are_those_of_xprof(session: str, ignored: Sequence[str], least: int, corpus: Path) -> None:
    found, compared = differences(corpus / session, ignored)

    assert found == []
    assert compared >= least


@pytest.mark.parametrize("name", ["tf_slow_map", "tf_keras_fit"])
def test_times_of_ops_in_a_fresh_capture_are_those_of_xprof(name: str, request: pytest.FixtureRequest) -> None:
    capture: FrameworkCapture = request.getfixturevalue(f"{name}_capture")
    found, compared = differences(capture.logdir)

    assert found == []
    assert compared > 10


@pytest.mark.parametrize("session", ["jax-mi300x-attention", "tpu-inference"])
def test_idle_time_of_devices_is_that_of_xprof(session: str, corpus: Path) -> None:
    with_idle, _ = oracle.framework_op_stats(xplanes(corpus / session))
    theirs = [row for row in with_idle.rows if (row["type"], row["host_or_device"]) == ("IDLE", "Device")]
    totals = stepscope.load(corpus / session).op_stats().totals

    assert totals["device_idle_us"] == pytest.approx(sum(row["total_self_time"] for row in theirs), rel=0.01)


def test_idle_time_of_threads_is_that_of_xprof(
    tf_slow_map_capture: FrameworkCapture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But for ops outside of graphs, which XProf does not count."""
    monkeypatch.setattr(op_work, "eager_ops", lambda trace: np.empty(0, np.int64))
    with_idle, _ = oracle.framework_op_stats(tf_slow_map_capture.paths)
    theirs = [row for row in with_idle.rows if (row["type"], row["host_or_device"]) == ("IDLE", "Host")]
    totals = stepscope.load(tf_slow_map_capture.logdir).op_stats().totals

    assert totals["host_idle_us"] == pytest.approx(sum(row["total_self_time"] for row in theirs), rel=0.01)


def test_shares_and_rates_are_those_of_xprof(corpus: Path) -> None:
    _, without_idle = oracle.framework_op_stats(xplanes(corpus / "tpu-inference"))
    ours = {row["name"]: row for row in stepscope.load(corpus / "tpu-inference").op_stats().rows}
    compared = 0
    for row in without_idle.rows:
        asynchronous = row["operation"].startswith("copy-")  # XProf divides all bytes by the time of the wait alone
        if row["host_or_device"] == "Device" and row["total_self_time"] > 10:
            mine = ours[row["operation"]]
            compared += 1
            assert mine["self_percent"] == pytest.approx(100 * row["device_total_self_time_percent"], rel=0.01)
            if asynchronous:
                assert (mine["gib_per_s"], mine["flop_per_byte"], mine["bound_by"]) == (None, None, None)
                continue
            assert {"compute": "Compute", "memory": "HBM"}[mine["bound_by"]] == row["bound_by"]
            assert [
                mine["cumulative_self_percent"],
                mine["gflop_per_s"],
                mine["gib_per_s"],
                mine["flop_per_byte"] or 0,
            ] == pytest.approx(
                [
                    100 * row["device_cumulative_total_self_time_percent"],
                    row["measured_flop_rate"],
                    row["measured_memory_bw"],
                    row["operational_intensity"],
                ],
                rel=0.01,
            )
    assert compared == 7


# -- where XProf is wrong or silent; see docs/differences.md ---------------------------------------------------------


def test_an_allocation_is_no_occurrence_of_the_op_that_makes_it(tf_slow_map_capture: FrameworkCapture) -> None:
    trace = draw(
        "host main | m--\nhost main |  z!\nhost main |   z!",
        SORTS | {"z": Sort(K.ALLOCATION, "MemoryAllocation", stats={"tf_op": "dense/MatMul"})},
    )
    assert table(report(trace), "occurrences") == [(1,)]

    ours = {(row["name"], row["type"]): row for row in stepscope.load(tf_slow_map_capture.logdir).op_stats().rows}
    _, without_idle = oracle.framework_op_stats(tf_slow_map_capture.paths)
    for row in without_idle.rows:
        mine = ours.get((row["operation"], row["type"]))
        assert mine is None or mine["occurrences"] <= row["occurrences"]


def test_the_kernels_of_one_xla_instruction_are_one_occurrence(corpus: Path) -> None:
    name = "jit(loss_fn)/transpose(jvp())/te_fused_attn_backward_ffi"
    _, without_idle = oracle.framework_op_stats(xplanes(corpus / "jax-mi300x-attention"))
    theirs = {row["operation"]: row["occurrences"] for row in without_idle.rows}
    ours = {row["name"]: row["occurrences"] for row in stepscope.load(corpus / "jax-mi300x-attention").op_stats().rows}

    assert (theirs[name], ours[name]) == (25, 5)  # in five steps
    assert ours["jit(loss_fn)/jvp(bsd,de->bse)/dot_general"] == theirs["jit(loss_fn)/jvp(bsd,de->bse)/dot_general"] == 5


def test_older_profiles_have_device_ops_too(corpus: Path) -> None:
    _, without_idle = oracle.framework_op_stats(xplanes(corpus / "tf-gpu-multi-worker"))
    ours = [row for row in stepscope.load(corpus / "tf-gpu-multi-worker").op_stats().rows if row["side"] == "device"]

    assert not [row for row in without_idle.rows if row["host_or_device"] == "Device"]
    assert len(ours) > 1300
    assert {row["type"] for row in ours} >= {"RandomUniform", "Cast", "GreaterEqual"}


def test_xla_ops_on_a_cpu_are_ops(jax_marked_capture: FrameworkCapture) -> None:
    _, without_idle = oracle.framework_op_stats(jax_marked_capture.paths)
    ours = stepscope.load(jax_marked_capture.logdir).op_stats().rows

    assert not without_idle.rows
    assert any(row["type"] == "dot_general" and row["name"].startswith("jit(") for row in ours)


def test_ops_of_pytorch(torch_marked_capture: FrameworkCapture) -> None:
    rows = {row["name"]: row for row in stepscope.load(torch_marked_capture.logdir).op_stats().rows}

    assert rows["aten::addmm"]["occurrences"] % 10 == 0
    assert (
        rows["aten::linear"]["total_us"] >= rows["aten::addmm"]["total_us"] > rows["aten::addmm"]["total_self_us"] * 0.5
    )
    assert rows["aten::linear"]["total_self_us"] < rows["aten::linear"]["total_us"]
