"""Ops by shape and by line: drawn traces, and real ones recomputed from their JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import MS, Sort, draw
from reporting import reporter, table
from sampling import sampled_thread

from stepscope.analysis.ops import op_shapes_tool as op_shapes
from stepscope.formats.spool.layout import GRAPH_LINES_PLANE
from stepscope.model import EventKind, LineKind, PlaneKind, TraceBuilder

K = EventKind


def mm(shape: str) -> Sort:
    return Sort(K.OP, "aten::mm", "", {"Input Dims": shape, "Input type": '["float","float"]'})


SORTS = {
    "Y": Sort(K.PYTHON_CALL, "net.py(3): forward"),
    "Z": Sort(K.PYTHON_CALL, "net.py(4): forward"),
    "Q": mm("[[2,3],[3,4]]"),
    "O": mm("[[9,9],[9,9]]"),
    "S": Sort(K.OP, "aten::linear", "", {"Input Dims": "[[2,3]]"}),
}
PICTURE = """
    host main | Y------------Z---
    host main | S----- O---- Q---
    host main |  Q---- L2    L3
    host main |  L1
    gpu0 s7   |   K1--K2-- K3-----
"""


report = reporter(op_shapes)


TIMES = ("calls", "host_total_us", "host_self_us", "device_total_us", "device_self_us", "percent")


def test_rows_that_are_left_out_are_counted_in_both_tables(monkeypatch: pytest.MonkeyPatch):
    for name in ("SHAPES", "SITES"):
        monkeypatch.setattr(op_shapes, name, replace(getattr(op_shapes, name), most=2))
    found = report(draw(PICTURE, SORTS))  # three ops by shape, three by line

    assert (len(found.rows), len(found.call_sites)) == (2, 2)
    assert found.warnings == ("2 rows of ops with the least time are not listed",)


def test_ops_of_one_name_are_apart_by_shape():
    found = report(draw(PICTURE, SORTS))

    assert table(found.rows, "name", "input_shapes", *TIMES) == [
        ("aten::mm", "[[2,3],[3,4]]", 2, 9000, 9000, 4000 + 7000, 11000, round(100 * 11 / 15, 4)),
        ("aten::mm", "[[9,9],[9,9]]", 1, 5000, 5000, 4000, 4000, round(100 * 4 / 15, 4)),
        ("aten::linear", "[[2,3]]", 1, 6000, 1000, 4000, 0, 0),
    ]
    assert found.rows[0]["input_types"] == '["float","float"]'
    assert found.warnings == ()


def test_ops_by_line():
    found = report(draw(PICTURE, SORTS))
    assert table(found.call_sites, "name", "call_site", "calls", "device_self_us") == [
        ("aten::mm", "net.py(3): forward", 2, 8000),
        ("aten::mm", "net.py(4): forward", 1, 7000),
        ("aten::linear", "net.py(3): forward", 1, 0),
    ]


def test_one_line_for_nearly_everything_gives_way_to_the_lines_of_the_library_inside():
    sorts = SORTS | {
        "Y": Sort(K.PYTHON_CALL, "run.py(3): main"),
        "A": Sort(K.PYTHON_CALL, "transformers/models/owl.py(7): forward"),
        "B": Sort(K.PYTHON_CALL, "torch/nn/modules/linear.py(2): forward"),
    }
    found = report(
        draw("""
            host main | Y---------------
            host main |  A----- B-----
            host main |  Q----- O-----
            host main |  L1     L2
            gpu0 s7   |   K1--   K2-----
        """, sorts)
    )  # fmt: skip

    assert table(found.lines, "call_site", "device_self_us") == [
        ("run.py(3): main", 7000),
        ("transformers/models/owl.py(7): forward", 4000),
    ]


def test_all_ops_of_a_line_are_one_row_and_what_has_no_line_is_another():
    found = report(draw(PICTURE, SORTS))
    assert table(found.lines, "call_site", "calls", "device_self_us", "percent") == [
        ("net.py(3): forward", 3, 8000, round(100 * 8 / 15, 4)),
        ("net.py(4): forward", 1, 7000, round(100 * 7 / 15, 4)),
    ]
    half = report(draw(PICTURE, SORTS), draw("host main | a---", host="b"))
    assert table(half.lines, "call_site", "calls", "host_self_us")[-1] == (None, None, 4000)
    assert report(draw("host main | a---")).lines == ()


def test_a_gradient_has_the_line_of_its_forward_op_and_all_device_time_counts():
    sorts = SORTS | {
        "f": Sort(K.OP, "aten::mm", "Sequence number"),
        "B": Sort(K.BACKWARD, "MmBackward0", "Sequence number"),
        "g": Sort(K.OP, "aten::mm"),
        "n": Sort(K.OP, "nccl:all_reduce"),
    }
    found = report(
        draw("""
            host main | Y---
            host main | f7--
            host main | L1
            host auto |     B7--n---
            host auto |     g---L3
            host auto |     L2
            gpu0 s7   |  K1-  K2--K3------K4
        """, sorts)
    )  # fmt: skip

    assert table(found.lines, "call_site", "device_self_us") == [
        ("net.py(3): forward", 7000),
        (None, 10000),  # of the collective, and of a kernel of no op
    ]
    assert table(found.call_sites, "name", "call_site", "device_self_us")[:2] == [
        ("nccl:all_reduce", None, 8000),
        ("aten::mm", "net.py(3): forward", 7000),
    ]


def test_without_devices_host_time_counts():
    found = report(replace(draw("host main | a--- b-"), framework="pytorch"))
    assert table(found.rows, "name", "percent", "avg_device_us") == [
        ("a", pytest.approx(66.6667), None), ("b", pytest.approx(33.3333), None),
    ]  # fmt: skip
    assert found.warnings == (
        "no shapes were recorded: record with torch.profiler.profile(record_shapes=True)",
        "no Python calls were recorded: record with torch.profiler.profile(with_stack=True) to see lines",
    )


def test_hosts_add_up():
    found = report(draw(PICTURE, SORTS, host="a"), draw(PICTURE, SORTS, host="b"))
    assert table(found.rows, "calls", "device_self_us", "percent")[0] == (4, 22000, round(100 * 11 / 15, 4))


def test_without_recorded_calls_samples_of_the_stack_tell_the_lines():
    """Steps of 10 ms, a sample each ms: `aten::cat` runs under line 23 and `aten::mm` under line 24."""
    builder = TraceBuilder("host")
    thread, frames, where, times = sampled_thread(builder)
    frames.event("$bank.py:9 step", 0, 60 * MS, K.PYTHON_CALL)
    for step in range(6):
        begin = 10 * step * MS
        thread.event("train", begin, 10 * MS, K.STEP_MARK, {"step_num": step})
        thread.event("aten::cat", begin, 7 * MS, K.OP)
        thread.event("aten::mm", begin + 7 * MS, 3 * MS, K.OP)
        where.event("$bank.py:9 step @23 torch.cat", begin, 7 * MS, K.OTHER)
        where.event("$bank.py:9 step @24 ", begin + 7 * MS, 3 * MS, K.OTHER)
        for at in range(10):
            times.event("sample", begin + at * MS + MS // 2, 0, K.OTHER)

    assert table(report(builder.build()).lines, "call_site", "calls", "host_self_us", "percent") == [
        ("bank.py(23): step", 6, 42_000, 70),
        ("bank.py(24): step", 6, 18_000, 30),
    ]


def test_functions_and_lines_have_the_time_of_the_loops_thread():
    """Steps of 10 ms, a sample each ms: `fit` calls `decode`, a loop without ops, for 6 ms of each, then computes."""
    builder = TraceBuilder("host")
    thread, frames, where, times = sampled_thread(builder)
    frames.event("$train.py:9 fit", 0, 60 * MS, K.PYTHON_CALL)
    for step in range(6):
        begin = 10 * step * MS
        thread.event("train", begin, 10 * MS, K.STEP_MARK, {"step_num": step})
        thread.event("aten::mm", begin + 6 * MS, 4 * MS, K.OP)
        frames.event("$data.py:20 decode", begin, 6 * MS, K.PYTHON_CALL)
        where.event("$train.py:9 fit @12 decode", begin, 6 * MS, K.OTHER)
        where.event("$data.py:20 decode @22 ", begin, 6 * MS, K.OTHER)
        where.event("$train.py:9 fit @14 loss.backward", begin + 6 * MS, 4 * MS, K.OTHER)
        for at in range(10):
            times.event("sample", begin + at * MS + MS // 2, 0, K.OTHER)
    found = report(builder.build())

    assert table(found.statements, "call_site", "self_us", "self_percent", "total_us", "total_percent") == [
        ("data.py(22): decode", 36_000, 60, 36_000, 60),
        ("train.py(14): fit", 24_000, 40, 24_000, 40),
        ("train.py(12): fit", 0, 0, 36_000, 60),
    ]
    assert table(found.functions, "call_site", "total_us", "total_percent") == [
        ("train.py(9): fit", 60_000, 100),
        ("data.py(20): decode", 36_000, 60),
    ]


def test_ops_of_graphs_have_the_lines_that_they_were_traced_at():
    """On any thread, as threads of a pool run them: a product of 4 ms, and 1 ms of an op that no line is known of."""
    builder = TraceBuilder("host")
    pool = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "tf_Compute/1", 1, kind=LineKind.THREAD)
    pool.event("StatefulPartitionedCall/dense/MatMul:MatMul", 0, 4 * MS, K.OP)
    pool.event("add:AddV2", 4 * MS, MS, K.OP)
    lines = builder.line(builder.plane(GRAPH_LINES_PLANE, PlaneKind.CUSTOM_DEVICE), "graphs", 0)
    lines.event("dense/MatMul train.py:8 step", 9 * MS, 0, K.OTHER)

    assert table(report(builder.build()).lines, "call_site", "calls", "host_self_us") == [
        ("train.py(8): step", 1, 4_000),
        (None, None, 1_000),
    ]
