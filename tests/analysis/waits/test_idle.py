"""Gaps on streams by cause, queues, and idle devices: drawn traces with the expected figures beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from draw import MS, Sort, draw
from reporting import reporter

from stepscope.analysis.account.account import account_of
from stepscope.analysis.waits import idle_tool as idle
from stepscope.model import EventKind, LineKind, PlaneKind, TraceBuilder

report = reporter(idle)


def pick(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


CAUSES = ("idle_ms", "host_wait_ms", "kernel_wait_ms", "other_ms")


def test_a_gap_is_the_host_s_if_the_launch_began_after_the_stream_was_empty():
    found = report(
        draw("""
            host main | L1 L2 L3        L4
            gpu0 s7   |   K1--    K2--     K4--
            gpu0 s20  |       K3-----
        """)
    )

    s7, s20 = found.rows
    # What follows 6 to 10 was launched in time, but that is no short gap; what follows 14 to 19 was launched at 16.
    assert pick(s7, *CAUSES) == (4 + 5, 5, 0, 4)
    assert pick(s7, "host_wait_percent", "other_percent") == (55.5556, 44.4444)
    assert pick(s20, *CAUSES) == (0, 0, 0, 0)
    assert pick(s20, "host_wait_percent") == (None,)
    # Stream 20 is busy in the gap from 6 to 10.
    assert pick(dict(found.devices[0]), "span_ms", "busy_ms", "idle_ms") == (21, 16, 5)
    assert found.findings == ("the device is idle for 23.8 % of the time from first to last work",)


def test_only_idle_time_in_steps_is_told_where_there_are_steps():
    found = report(
        draw("""
            host main |                     M0------
            host main | L1                  L2   L3
            gpu0 s7   |  K1------           K2-  K3-
        """)
    )

    # From 1 to 28.  The step holds 20 to 28, 6 busy.
    assert found.findings == (
        "in the median step the device is idle for 25.0 %, mostly waiting for nothing that was recorded",
    )


def test_a_device_that_only_copies_is_told_apart_and_does_not_count():
    found = report(
        draw("""
            host main | L1 L2    V3   V4
            gpu0 s7   |   K1-- K2
            gpu1 s9   |           U3   U4
        """)
    )

    assert found.findings[:2] == (
        "the device is idle for 14.3 % of the time from first to last work",
        "1 more only copies data: this counts neither as busy nor as idle time here",
    )
    assert [pick(dict(row), "device", "idle_ms", "computes") for row in found.devices] == [
        ("GPU:0", 1, True),
        ("GPU:1", 3, False),
    ]


def test_the_longest_gaps_say_when_and_between_what():
    found = report(
        draw("""
            host main | L1 L2 L3        L4
            gpu0 s7   |   K1--    K2--     K4--
            gpu0 s20  |       K3-----
        """)
    )

    names = ("stream", "start_ms", "duration_ms", "cause", "before", "after")
    assert [pick(gap, *names) for gap in found.gaps] == [
        ("s7", 14, 5, "host wait", "kernel", "kernel"),
        ("s7", 6, 4, "other", "kernel", "kernel"),
    ]


def test_gaps_of_a_stream_that_only_communicates_are_listed_last():
    found = report(
        draw(
            """
            host main | L1 L2 L3        L4
            gpu0 s7   |   K1--    K2--
            gpu0 s20  |   C3-             C4--
            """,
            {"C": Sort(EventKind.COLLECTIVE, "all_reduce")},
        )
    )

    assert [pick(gap, "stream", "duration_ms") for gap in found.gaps] == [("s7", 4), ("s20", 13)]


def test_short_gaps_are_what_a_device_needs_between_kernels():
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "s", kind=LineKind.STREAM)
    for at, start_us in enumerate((10, 21, 61), 1):  # gaps of 1 and 30 us
        main.event("launch", at * 1_000_000, 500_000, EventKind.RUNTIME_CALL, {"correlation_id": at})
        stream.event("k", start_us * 1_000_000, 10_000_000, EventKind.KERNEL, {"correlation_id": at})

    [row] = report(builder.build()).rows
    assert pick(row, *CAUSES) == (0.031, 0, 0.001, 0.03)


def test_a_gap_before_work_of_unknown_launch_is_never_the_host_s():
    [row] = report(draw("gpu0 s7 | k-- k--")).rows
    assert pick(row, *CAUSES) == (1, 0, 0, 1)


def test_the_queue_grows_with_launches_and_shrinks_with_starts():
    found = report(
        draw("""
            host main | L1L2L3    L4
            gpu0 s7   |   K1----K2--K3--K4--
        """)
    )

    # Lengths: 1 (0-2), 1 (2-4), 2 (4-8), 1 (8-10), 2 (10-12), 1 (12-16).
    [row] = found.queues
    assert pick(row, "launched", "queue_max", "queue_mean", "empty_percent", "full_percent") == (
        4, 2, round((2 + 2 + 8 + 2 + 4 + 4) / 16, 4), 0, 0
    )  # fmt: skip
    assert found.launches["launches"] == 4


def test_a_launch_that_begins_as_the_stream_gets_empty_is_in_time():
    found = report(draw("host main | L1  L2\ngpu0 s7   |  K1-  K2-"))
    assert pick(found.rows[0], *CAUSES) == (2, 0, 0, 2)

    found = report(draw("host main | L1   L2\ngpu0 s7   |  K1-  K2-"))
    assert pick(found.rows[0], *CAUSES) == (2, 2, 0, 0)


def test_kernels_of_a_stream_may_overlap():
    """As on AMD's devices: a gap begins when the last of all kernels before it ends, and is named after that."""
    found = report(draw("gpu0 s7 | a-------   c--\ngpu0 s7 |  b--"))

    assert pick(found.rows[0], "busy_ms", "idle_ms") == (8 + 3, 3)
    assert [pick(gap, "start_ms", "duration_ms", "before", "after") for gap in found.gaps] == [(8, 3, "a", "c")]


def test_a_kernel_that_seems_to_start_before_its_launch_waits_in_no_queue():
    """The clocks of host and device disagree by a little."""
    found = report(draw("host main |   L1  L2\ngpu0 s7   |  K1-   K2-"))

    [row] = found.queues
    assert pick(row, "launched", "queue_max", "queue_mean", "empty_percent") == (2, 1, round(1 / 5, 4), 80)


LATE_INPUT = """
    host main | M0-------- M1-------- M2--------
    host main | I---L1S----I---L2S----I---L3S---
    gpu0 s7   |      K1--       K2--       K3--
"""
SYNC = {"S": Sort(EventKind.SYNC, "cudaStreamSynchronize")}


def test_what_the_step_waits_for_explains_why_the_device_idles():
    """The account of the step and the idle time of the device agree: the same causes with the same times."""
    trace = draw(LATE_INPUT, SYNC)
    found, account = report(trace), account_of(trace)
    assert account is not None

    assert [pick(row, "device", "cause", "ms", "idle_ms") for row in found.causes] == [
        ("GPU:0", "input", 4, 4), ("GPU:0", "sync", 2, 2), ("GPU:0", "launch", 1, 1), ("GPU:0", "device_compute", 4, 0),
    ]  # fmt: skip
    assert {row["cause"]: row["ms"] for row in found.causes} == {row.cause: row.ps / MS for row in account.rows}
    assert found.findings == ("in the median step the device is idle for 63.6 %, mostly waiting for input",)
    assert [pick(gap, "cause", "waits_for") for gap in found.gaps] == [("host wait", "input"), ("host wait", "input")]


def test_a_tpu_idles_between_its_ops():
    found = report(draw("tpu0 Steps | W0------W1------\ntpu0 ops   | k--  k--k--  k--"))

    assert [pick(row, "device", "span_ms", "idle_ms") for row in found.devices] == [("TPU:0", 16, 4)]
    assert {row["cause"]: (row["ms"], row["idle_ms"]) for row in found.causes} == {
        "device_compute": (6, 0), "unknown": (2, 2),
    }  # fmt: skip


def test_a_run_without_devices_has_no_idle_streams():
    found = report(draw("host main | a---"))
    assert (found.rows, found.devices, found.queues, found.findings, found.causes) == ((), (), (), (), ())


def test_streams_beyond_the_list_are_told(monkeypatch):
    monkeypatch.setattr(idle, "STREAMS", replace(idle.STREAMS, most=1))
    found = report(draw("gpu0 s7   | a b\ngpu0 s20  | a    b"), draw("gpu0 s7   | a  b", host="other"))

    assert [pick(row, "host", "stream", "idle_ms") for row in found.rows] == [("host", "s20", 4), ("other", "s7", 2)]
    assert found.warnings == ("1 stream with little idle time is not listed: only the device figures include it",)
