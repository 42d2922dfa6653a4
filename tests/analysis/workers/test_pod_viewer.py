"""The pod viewer on drawn traces of several hosts and devices, and beside XProf on real profiles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import oracle
import pytest
from draw import Sort, draw
from framework_captures import FrameworkCapture
from reporting import reporter, table

import stepscope
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.analysis.workers import pod_viewer_tool as pod_viewer
from stepscope.model import EventKind
from stepscope.report import Cell

SECOND_NS = 10**9
Table = list[tuple[Any, ...]]


viewed = reporter(pod_viewer)


def loaded(path: Path) -> pod_viewer.PodViewerReport:
    report = stepscope.load(path).report("pod-viewer")
    assert isinstance(report, pod_viewer.PodViewerReport)
    return report


def dicts(rows: Iterable[dict[str, Cell]]) -> list[dict[str, Any]]:
    return [dict(row) for row in rows]


def parts(report: pod_viewer.PodViewerReport) -> Table:
    """Step, host, device, duration and what it consists of."""
    return [
        (row["step"], row["host"], row["device"], row["duration_ms"], {c: row[c] for c in CATEGORIES if row[c]})
        for row in dicts(report.rows)
    ]


FAST = """
    host main | M0-------M1-------M2-------
    host main | I-b------I-b------I-b------
"""
SLOW_INPUT = """
    host main | M0-----------M1-----------M2-----------
    host main | I-----b------I-----b------I-----b------
"""


# -- one host ----------------------------------------------------------------------------------------------------


def test_a_host_without_a_device_is_one_worker() -> None:
    report = viewed(draw(FAST, host="a"))
    assert parts(report) == [
        (step, "a", "CPU", 9.0, {"input": 2.0, "host_compute": 7.0}) for step in (0, 1, 2)
    ]  # fmt: skip
    assert report.findings == ("only one worker took part: there is nothing to compare",)
    assert table(report.slowest, "host", "device", "bottleneck", "bottleneck_ms", "behind_ms", "extra")[0] == (
        "a", "CPU", "host_compute", 7.0, None, None,
    )  # fmt: skip


def test_a_host_with_one_device_has_one_row_a_step_named_by_the_device() -> None:
    report = viewed(
        draw("""
            host main | M0-------M1-------
            host main | L1       L2
            gpu3 s    |   K1----   K2----
        """)
    )
    assert parts(report) == [
        (step, "host", "GPU:3", 9.0, {"kernel_launch": 2.0, "device_compute": 6.0, "other": 1.0}) for step in (0, 1)
    ]


TWO_DEVICES = draw("""
    host main | M0-----------------M1-----------------
    host main | L1L2               L3L4
    gpu0 s    |   K1----             K3----
    gpu1 s    |     K2----------       K4----------
""")


def test_each_device_of_a_host_has_rows_of_its_own_that_end_with_its_work() -> None:
    report = viewed(TWO_DEVICES)
    assert parts(report)[:3] == [
        (0, "host", "all", 19.0, {"kernel_launch": 2.0, "device_compute": 14.0, "other": 3.0}),
        (0, "host", "GPU:0", 8.0, {"kernel_launch": 2.0, "device_compute": 6.0}),
        (0, "host", "GPU:1", 16.0, {"kernel_launch": 4.0, "device_compute": 12.0}),
    ]
    assert [row["device"] for row in dicts(report.rows)] == ["all", "GPU:0", "GPU:1"] * 2


def test_on_one_host_its_devices_are_compared() -> None:
    report = viewed(TWO_DEVICES)
    names = ("step", "device", "duration_ms", "behind_ms", "behind_percent", "extra", "extra_ms")
    assert table(report.slowest, *names) == [
        (0, "GPU:1", 16.0, 8.0, 50.0, "device_compute", 6.0),
        (1, "GPU:1", 16.0, 8.0, 50.0, "device_compute", 6.0),
    ]
    assert report.findings[0] == (
        "without communication GPU:1 of host takes longest in 2 of 2 steps, 8.00 ms longer than the median of the "
        "others (50.0 % of the step), mostly with computation on the device; the replay cannot show "
        "whether others wait for it"
    )
    assert table(report.workers, "device", "steps", "mean_ms", "slowest_count") == [
        ("all", 2, 19.0, 2), ("GPU:0", 2, 8.0, 0), ("GPU:1", 2, 16.0, 2),
    ]  # fmt: skip


def test_what_another_device_computes_is_in_no_cause_of_one_that_idles() -> None:
    """The step waits for GPU:1 until 16 ms, GPU:0 has done its 6 ms of work at 8 ms; the last 3 ms nothing runs."""
    rows = viewed(TWO_DEVICES).rows[:3]
    assert table(rows, "device", "launch_ms", "device_compute_ms", "unknown_ms") == [
        ("all", 4.0, 12.0, 3.0), ("GPU:0", 2.0, 6.0, 3.0), ("GPU:1", 4.0, 12.0, 3.0),
    ]  # fmt: skip


def test_a_device_that_does_nothing_for_a_step_has_no_row_there() -> None:
    report = viewed(
        draw("""
            host main | M0--------- M1---------
            host main | L1L2        L3
            gpu0 s    |   K1----      K3----
            gpu1 s    |     K2----
        """)
    )
    assert table(report.rows, "step", "device") == [(0, "all"), (0, "GPU:0"), (0, "GPU:1"), (1, "all"), (1, "GPU:0")]


def test_a_device_that_lags_begins_its_step_when_it_is_done_with_the_last() -> None:
    report = viewed(
        draw("""
            host main | M0----M1----
            host main | L1L2  L3L4
            gpu0 s    |   K1-   K3-
            gpu1 s    |     K2----K4----
        """)
    )
    spans = {(row["step"], row["device"]): row["duration_ms"] for row in dicts(report.rows)}
    assert (spans[0, "GPU:1"], spans[1, "GPU:1"]) == (10.0, 6.0)
    assert spans[1, "GPU:0"] <= spans[1, "all"]


def test_host_work_counts_only_while_the_device_does_nothing() -> None:
    report = viewed(
        draw("""
            host main | M0--------- M1---------
            host main | I-L1L2b---- I-L3L4b----
            gpu0 s    |     K1--        K3--
            gpu1 s    |       K2--        K4--
        """)
    )
    rows = {row["device"]: row for row in dicts(report.rows[:3])}
    assert (rows["GPU:0"]["input"], rows["GPU:0"]["kernel_launch"]) == (2.0, 2.0)
    assert (rows["GPU:1"]["input"], rows["GPU:1"]["kernel_launch"]) == (2.0, 4.0)
    for row in dicts(report.rows):
        assert sum(row[category] for category in CATEGORIES) == pytest.approx(row["duration_ms"])


# -- several hosts -----------------------------------------------------------------------------------------------


def test_the_slowest_host_is_named_with_what_it_spends_the_time_on() -> None:
    report = viewed(draw(FAST, host="a"), draw(SLOW_INPUT, host="b"), draw(FAST, host="c"))
    assert report.hosts == ("a", "b", "c")
    assert table(report.rows, "step", "host", "duration_ms")[:3] == [(0, "a", 9.0), (0, "b", 13.0), (0, "c", 9.0)]
    names = ("step", "host", "device", "duration_ms", "bottleneck", "behind_ms", "behind_percent", "extra", "extra_ms")
    assert table(report.slowest, *names) == [
        (step, "b", "CPU", 13.0, "host_compute", 4.0, pytest.approx(100 * 4 / 13, abs=1e-3), "input", 4.0)
        for step in (0, 1, 2)
    ]  # fmt: skip
    assert report.findings == (
        "without communication b takes longest in 3 of 3 steps, 4.00 ms longer than the median of the "
        "others (30.8 % of the step), mostly with input; the replay cannot show whether others wait for it",
    )
    assert table(report.workers, "host", "slowest_count") == [("a", 0), ("b", 3), ("c", 0)]


def test_hosts_that_are_equally_fast_are_told_so() -> None:
    report = viewed(draw(FAST, host="a"), draw(FAST, host="b"))
    assert report.findings == ("all workers take equally long without communication",)


def test_who_waits_for_others_is_not_the_slowest_even_if_its_step_takes_longest() -> None:
    report = viewed(
        draw("""
            host main | M0-------- M1--------
            host main | b-------G- b-------G-
        """, host="works"),
        draw("""
            host main | M0--------- M1---------
            host main | b--G------- b--G-------
        """, host="waits"),
    )  # fmt: skip
    assert table(report.slowest, "host", "duration_ms", "busy_ms", "behind_ms", "extra") == [
        ("works", 11.0, 9.0, 5.0, "host_compute"),  # to the start of the next step
        ("works", 10.0, 8.0, 5.0, "host_compute"),
    ]
    assert report.findings[-1] == (
        "works is the straggler, whose work takes 45 % longer than the mean of all ranks: with equal work the job would"
        " be 1.29x as fast"
    )


def test_the_slowest_device_of_the_slowest_host_is_named() -> None:
    other = draw("""
        host main | M0------ M1------
        host main | L1L2     L3L4
        gpu0 s    |   K1-      K3-
        gpu1 s    |     K2-      K4-
    """, host="quick")  # fmt: skip
    report = viewed(other, replace(TWO_DEVICES, host="late"))
    assert table(report.slowest, "host", "device", "duration_ms") == [("late", "GPU:1", 19.0)] * 2
    assert table(report.rows, "host", "device")[:6] == [
        ("quick", "all"), ("quick", "GPU:0"), ("quick", "GPU:1"), ("late", "all"), ("late", "GPU:0"), ("late", "GPU:1"),
    ]  # fmt: skip


LATE = """
    host main | M1------- M2------- M3-------
    host main | I-b------ I-b------ I-b------
"""


def test_steps_that_a_host_lacks_are_named_and_left_out() -> None:
    report = viewed(draw(FAST, host="a"), draw(LATE, host="b"))
    assert table(report.rows, "step", "host") == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    lacking = "step 0 by 1 of 2 ranks, step 3 by 1 of 2 ranks"
    assert f"not all ranks recorded the same steps: {lacking}; the other ones are compared" in report.warnings


@pytest.mark.parametrize(
    ("ahead_ns", "told"),
    [(0, None), (8 * SECOND_NS // 1000, None), (3 * SECOND_NS, "later"), (-3 * SECOND_NS, "earlier")],
)
def test_numbered_steps_are_matched_whatever_the_clocks_say(ahead_ns: int, told: str | None) -> None:
    """A step takes 9 ms; workers that wait for each other cannot be further apart."""
    noon = 10**18
    report = viewed(draw(FAST, host="a", start_unix_ns=noon), draw(FAST, host="b", start_unix_ns=noon + ahead_ns))
    assert table(report.rows, "step", "host") == [(step, host) for step in (0, 1, 2) for host in "ab"]
    assert table(report.workers, "host", "start_offset_ms") == [("a", 0.0), ("b", ahead_ns / 1e6)]
    sentence = (
        f"by its clock b starts the same steps 3,000.000 ms {told} than a: their clocks differ, or they do not wait "
        "for each other; steps are matched by number"
    )
    assert report.warnings == ((sentence,) if told else ())


UNNUMBERED = """
    host main | M-------- M-------- M--------
    host main | I-b------ I-b------ I-b------
"""


TRAINING = """
    host main | M0-------- M1-------- M2--------
    gpu0 s7   |  k---N----  k---N----  k---N----
"""
REDUCES = {"N": Sort(EventKind.COLLECTIVE, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "correlation_id")}


def test_clocks_are_set_right_by_the_collectives_that_end_together() -> None:
    noon = 1_700_000_000 * SECOND_NS
    first = draw(TRAINING, REDUCES, host="a", start_unix_ns=noon)
    report = viewed(first, draw(TRAINING, REDUCES, host="b", start_unix_ns=noon + 3 * SECOND_NS))
    assert table(report.workers, "host", "start_offset_ms") == [("a", 0.0), ("b", 0.0)]
    assert report.findings[-1] == "clocks differ by up to 3,000.00 ms, and were set right"  # as `distributed` says it
    assert not [said for said in report.warnings if "clock" in said]


def test_steps_without_numbers_are_matched_by_the_clocks() -> None:
    noon = 10**18
    later = noon + 10 * 10**6  # b's capture begins with a's second step
    report = viewed(draw(UNNUMBERED, host="a", start_unix_ns=noon), draw(UNNUMBERED, host="b", start_unix_ns=later))
    assert len(report.rows) == 4
    assert table(report.workers, "host", "steps", "start_offset_ms") == [("a", 1, 0.0), ("b", 1, 0.0)]
    assert any(warning.startswith("1 step") and "not on every host" in warning for warning in report.warnings)


def test_hosts_without_numbers_and_clocks_are_compared_one_by_one() -> None:
    report = viewed(draw(UNNUMBERED, host="a"), draw(UNNUMBERED, host="b"))
    assert len(report.rows) == 6
    assert report.warnings == (
        "the hosts record neither step numbers nor clocks: steps are matched in order, from the first",
    )


def test_a_host_that_only_coordinates_is_left_out_and_named() -> None:
    report = viewed(draw(FAST, host="chief"), replace(TWO_DEVICES, host="worker"))
    assert {row["host"] for row in dicts(report.rows)} == {"worker"}
    assert "no steps from chief" in report.warnings


def test_a_profile_without_events_has_no_rows() -> None:
    report = viewed(draw("host main |"))
    assert (report.rows, report.slowest, report.workers, report.findings) == ((), (), (), ())
    assert report.to_dict()["rows"] == []


def test_a_cut_step_is_shown_but_in_no_statistics() -> None:
    report = viewed(
        draw("""
            host main | M0----- M1----- M2-----
            host main | L1L2L3  L4L5L6  L7
            gpu0 s    | K1K2K3  K4K5K6  K7
        """)
    )
    assert table(report.rows, "step", "complete") == [(0, True), (1, True), (2, False)]
    assert table(report.workers, "steps") == [(2,)]


# -- real profiles, beside XProf ---------------------------------------------------------------------------------


def xprof_steps(paths: list[Path]) -> list[list[dict[str, Any]]]:
    """XProf's record of each step and core, in order."""
    steps = oracle.pod_viewer(paths)["podStatsSequence"]["podStatsMap"]
    return [list(step["podStatsPerCore"].values()) for step in steps]


def test_steps_of_a_fresh_capture_are_those_of_xprof(tf_healthy_capture: FrameworkCapture) -> None:
    theirs = {step[0]["stepNum"]: step[0] for step in xprof_steps(list(tf_healthy_capture.paths))}
    rows = loaded(tf_healthy_capture.logdir).rows
    ours = {row["step"]: row for row in rows}
    assert len(theirs) == 10
    for record, (number, row) in zip(theirs.values(), sorted(ours.items()), strict=True):
        assert row["duration_ms"] == pytest.approx(record["totalDurationUs"] / 1e3, rel=0.01), number
        assert row["input"] == pytest.approx(record["stepBreakdownUs"]["6"] / 1e3, rel=0.01, abs=0.001)


def test_two_gpu_hosts_beside_xprof(corpus: Path) -> None:
    """XProf has a core a host with its device work; the rest of the step it calls `All others`."""
    session = corpus / "tf-gpu-multi-worker"
    ((first, second),) = xprof_steps(sorted(session.rglob("*.xplane.pb")))
    report = loaded(session)
    whole = [row for row in dicts(report.rows) if row["device"] == "all"]
    assert len(whole) == 2
    for record, row in zip((first, second), whole, strict=True):
        assert row["duration_ms"] == pytest.approx(record["totalDurationUs"] / 1e3, rel=0.01)
        assert row["device_compute"] == pytest.approx(record["stepBreakdownUs"]["1"] / 1e3, rel=0.01)
        assert record["bottleneck"] == "Device compute"
        assert max(CATEGORIES, key=lambda category: row[category]) == row["bottleneck"] == "device_compute"
    assert [row["device"] for row in dicts(report.rows)] == ["all", "GPU:4", "GPU:6"] * 2


def test_devices_whose_work_nothing_ties_to_a_step_make_no_cpu_of_their_host() -> None:
    found = viewed(draw("host main | M1---- M2----\ngpu0 s    | k---   k---\ngpu1 s    |  k---   k---"))

    assert [row["device"] for row in found.rows] == ["all", "all"]
