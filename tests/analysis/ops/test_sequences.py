"""Repeated sequences of kernels, by op and on streams: drawn traces."""

from __future__ import annotations

from draw import Sort, draw
from reporting import reporter, table

from stepscope.analysis.ops import sequences_tool as sequences
from stepscope.model import EventKind

SORTS = {
    "O": Sort(EventKind.OP, "aten::softmax"),
    "K": Sort(EventKind.KERNEL, "exp", "correlation_id"),
    "H": Sort(EventKind.KERNEL, "sum", "correlation_id"),
    "D": Sort(EventKind.KERNEL, "divide", "correlation_id"),
}


report = reporter(sequences)


OPS = """
    host main | O----- O----- O----
    host main |  L1L2   L3L4   L5
    gpu0 s    |   K1-H2  K3-H4  K5-
"""


def test_what_an_op_launches_is_a_sequence():
    found = report(draw(OPS, SORTS))
    assert table(found.ops, "op", "kernels", "length", "count", "host_us", "device_us", "launches_saved") == [
        ("aten::softmax", "exp -> sum", 2, 2, 12000, 2 * (3 + 2) * 1000, 2)
    ]
    assert found.rows == ()  # twice is not often


def test_hosts_add_up():
    found = report(draw(OPS, SORTS, host="a"), draw(OPS, SORTS, host="b"))
    assert table(found.ops, "count", "avg_device_us", "percent") == [(4, 5000, round(100 * 10 / 13, 4))]


def test_a_call_that_launches_a_graph_stands_for_its_op():
    found = report(
        draw("""
            host main | L1   L2
            gpu0 s    |  K1H1 K2H2
        """, SORTS)
    )  # fmt: skip
    assert table(found.ops, "op", "kernels", "count") == [("launch", "exp -> sum", 2)]


def test_repeated_kernels_on_a_stream():
    """Three times exp, sum, divide; what is part of that as often is not listed again."""
    found = report(draw("gpu0 s | KHDaKHDbKHD", SORTS))
    assert table(found.rows, "kernels", "length", "count", "launches_saved") == [("exp -> sum -> divide", 3, 3, 6)]


def test_a_sequence_names_the_ops_of_its_kernels():
    found = report(
        draw("""
            host main | O-O-O-O-O-O-
            host main | L1L2L3L4L5L6
            gpu0 s    |  K1H2K3H4K5H6
        """, SORTS | {"O": Sort(EventKind.OP, "aten::mul")})
    )  # fmt: skip
    assert table(found.rows, "kernels", "ops", "count") == [("exp -> sum", "aten::mul -> aten::mul", 3)]


def test_the_sequence_that_takes_the_host_longest_to_start_comes_first():
    """What an op takes is divided equally among the kernels that it starts."""
    found = report(
        draw("""
            host main | O-O-O-O-O-O-P-----P-----P-----
            host main | L1L2L3L4L5L6L7L8  L9L10 L11L12
            gpu0 s    |  K1H2K3H4K5H6D7D8   D9D10  D11D12
        """, SORTS | {"O": Sort(EventKind.OP, "aten::mul"), "P": Sort(EventKind.OP, "aten::std")})
    )  # fmt: skip
    assert table(found.rows, "kernels", "count", "host_us") == [
        ("divide -> divide", 3, 18000),
        ("exp -> sum", 3, 12000),
    ]


def test_sequences_do_not_overlap_themselves():
    found = report(draw("gpu0 s | KKKKKKK", SORTS))
    assert table(found.rows, "kernels", "count") == [("exp -> exp", 3)]


def test_a_sequence_does_not_span_streams():
    found = report(draw("gpu0 s | K a K\ngpu0 t | HbH\ngpu0 u | K c"), draw("host main | a"))
    assert found.rows == ()


def test_a_sequence_several_times_is_the_shorter_one_as_often_and_a_first_launch_does_not_count():
    """Eight times exp, sum; the first launch takes the host six times as long."""
    found = report(
        draw("""
            host main | L1----------L2L3L4L5L6L7L8L9L10L11L12L13L14L15L16
            gpu0 s    |            K1H2K3H4K5H6K7H8K9H10K11H12K13H14K15H16
        """, SORTS)
    )  # fmt: skip
    assert table(found.rows, "kernels", "length", "count") == [("exp -> sum", 2, 8)]
    assert 8 * 4000 <= found.rows[0]["host_us"] <= 8 * 6000
