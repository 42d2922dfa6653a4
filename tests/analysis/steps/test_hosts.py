"""Several hosts: which steps are the same step, who decides how long it took, and who does not take part."""

from __future__ import annotations

import pytest
from draw import MS, Sort, draw
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analysis.account import steps_tool as steps
from stepscope.analysis.input import input_pipeline_tool as input_pipeline
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.analysis.steps.session_steps import Aligned, StepRow, StepsOfHost, align, steps_of_host
from stepscope.analysis.workers import pod_viewer_tool as pod_viewer
from stepscope.model import EventKind, HostTrace

CLOCK_NS = 1_700_000_000_000_000_000  # some time in 2023
MS_NS = 1_000_000


def hosts(*pictures: str, late_ms: tuple[int | None, ...] = ()) -> list[HostTrace]:
    """One trace per picture, named a, b, ...; `late_ms`: start of each session after the first, None if unknown."""
    found = []
    for at, (name, picture) in enumerate(zip("abcdef", pictures, strict=False)):
        late = late_ms[at] if late_ms else None
        start = None if late is None else CLOCK_NS + late * MS_NS
        found.append(draw(picture, {"S": Sort(EventKind.STEP_MARK, "step")}, host=name, start_unix_ns=start))
    return found


def aligned(traces: list[HostTrace]) -> Aligned:
    """Their steps side by side."""
    return align([steps_of_host(trace) for trace in traces])


def table(found: Aligned) -> list[tuple[str, ...]]:
    """The names of the steps on each host."""
    return [tuple(row.name for row in rows) for rows in found.steps]


def overview_of(traces: list[HostTrace]) -> OverviewReport:
    """The overview of a session."""
    report = overview.merge([overview.partial(trace) for trace in traces])
    assert isinstance(report, OverviewReport)
    return report


# -- which steps are the same ------------------------------------------------------------------------------------


def test_equal_numbers_are_the_same_step() -> None:
    found = aligned(hosts("host main | M1-- M2-- M3--", "host main |    M1-- M2-- M3--"))

    assert table(found) == [("train 1", "train 1"), ("train 2", "train 2"), ("train 3", "train 3")]
    assert (found.hosts, found.warnings) == (("a", "b"), ())


def test_steps_that_one_host_lacks_are_left_out_and_counted() -> None:
    found = aligned(hosts("host main | M1-- M2-- M3--", "host main | M2-- M3-- M4--"))

    assert table(found) == [("train 2", "train 2"), ("train 3", "train 3")]
    assert found.warnings == ("2 steps are left out: not on every host",)


def test_hosts_without_a_number_in_common_are_laid_side_by_side() -> None:
    found = aligned(hosts("host main | M1-- M2--", "host main | M3-- M4--", late_ms=(0, 0)))

    assert table(found) == [("train 1", "train 3"), ("train 2", "train 4")]
    assert found.warnings == ("the hosts share no step numbers (a: 1-2, b: 3-4): their steps are matched by time",)


def test_without_numbers_steps_are_laid_side_by_side_by_the_clock() -> None:
    found = aligned(
        hosts(
            "host main | S---- S----- S------ S-------",
            "host main |        S----- S------ S-------",
            late_ms=(0, 0),
        )
    )

    assert table(found) == [("step 1", "step 0"), ("step 2", "step 1"), ("step 3", "step 2")]
    assert found.warnings == ("1 step is left out: not on every host",)


def test_the_session_of_one_host_may_begin_later() -> None:
    found = aligned(
        hosts(
            "host main | S---- S----- S------ S-------",
            "host main | S----- S------ S-------",  # as before, cut from the host's own start
            late_ms=(0, 7),
        )
    )

    assert table(found) == [("step 1", "step 0"), ("step 2", "step 1"), ("step 3", "step 2")]


def test_without_clocks_steps_are_laid_side_by_side_one_by_one() -> None:
    found = aligned(
        hosts("host main | S---- S-----", "host main |               S---- S----- S------", late_ms=(0, None))
    )

    assert table(found) == [("step 0", "step 0"), ("step 1", "step 1")]


def test_clocks_of_sessions_that_do_not_meet_align_nothing_by_time() -> None:
    found = aligned(hosts("host main | S---- S-----", "host main | S---- S-----", late_ms=(0, 100_000)))

    assert table(found) == [("step 0", "step 0"), ("step 1", "step 1")]


def test_numbers_that_repeat_are_no_numbers() -> None:
    found = aligned(hosts("host main | M0-- M1-- M0-- M1--", "host main | M0-- M1-- M0-- M1--", late_ms=(0, 0)))

    assert table(found) == [("train 0",) * 2, ("train 1",) * 2, ("train 0",) * 2, ("train 1",) * 2]
    assert found.warnings == ()


@given(st.lists(st.tuples(st.integers(0, 60), st.lists(st.integers(1, 9), max_size=6)), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_every_row_of_an_alignment_is_one_row_of_every_host(drawn: list[tuple[int, list[int]]]) -> None:
    parts = [part_of(name, late, lengths) for name, (late, lengths) in zip("abcd", drawn, strict=False)]
    found = align(parts)
    by_host = {part.host: part.rows for part in parts}

    assert list(found.hosts) == [part.host for part in parts if part.rows]
    for at, name in enumerate(found.hosts):
        positions = [by_host[name].index(rows[at]) for rows in found.steps]
        assert positions == list(range(positions[0], positions[0] + len(positions))) if positions else True


def part_of(name: str, late_ms: int, lengths: list[int]) -> StepsOfHost:
    """A host with steps of those lengths, one after the other."""
    rows, at = [], 0
    for number, length in enumerate(lengths):
        rows.append(StepRow(number, f"{name}{number}", at * MS, length * MS, True, True, 0, [0] * len(CATEGORIES)))
        at += length
    return StepsOfHost(
        host=name,
        source="markers",
        how="",
        confidence=None,
        numbered=False,
        start_unix_ns=CLOCK_NS + late_ms * MS_NS,
        has_device=False,
        rows=rows,
        on_thread=True,
        problems=[],
        partial=False,
    )


# -- who takes part ----------------------------------------------------------------------------------------------

WORKER = """
    host main | M0---- M1----
    host main |  L1     L2
    gpu0 s    |   K1     K2
"""


def test_a_coordinator_without_a_device_does_not_step() -> None:
    traces = hosts("host main | M0------------------- M1-------------------", WORKER)
    found = aligned(traces)

    assert found.hosts == ("b",)
    assert found.warnings == ("no steps from a",)
    assert overview_of(traces).step_time_ms["mean"] == 7.0
    assert overview_of(traces).environment["host_count"] == 2


def test_a_host_on_which_no_steps_were_found_does_not_hide_those_of_others() -> None:
    traces = hosts("host main |  a--  b-----  c-", "host main | M0-- M1-- M2--")
    report = overview_of(traces)

    assert (report.steps_source, report.step_time_ms["count"]) == ("markers", 2)
    assert report.warnings == ("no steps from a",)
    assert [row["host"] for row in steps.merge([steps.partial(trace) for trace in traces]).rows] == ["b"] * 3


def test_without_any_marked_host_each_counts_as_one_span() -> None:
    report = overview_of(hosts("host main | a-- b---", "host main | c------- d-"))

    assert (report.steps_source, report.step_time_ms["count"], report.step_time_ms["mean"]) == ("none", 1, 11.0)


MARKED = "host main | M1--- M2--- M3---"
INFERRED = "host main | I a-- I a-- I a-- I a-- I a-- I a--"


@pytest.mark.parametrize("order", [1, -1], ids=["marked-first", "inferred-first"])
def test_steps_of_several_hosts_are_as_certain_as_those_of_the_least_certain(order: int) -> None:
    traces = hosts(MARKED, INFERRED, late_ms=(0, 0))[::order]
    report, inferred = overview_of(traces), steps_of_host(traces[::order][1])

    assert (report.steps_source, report.confidence) == ("inferred", inferred.confidence)
    assert report.steps_how == f"b: {inferred.how}; a: 3 step marks such as 'train 1' on thread 'main'"
    assert report.warnings[0].startswith(f"b: {inferred.how}")
    for tool in (steps, pod_viewer, input_pipeline):
        assert tool.merge([tool.partial(trace) for trace in traces]).to_dict()["steps_source"] == "inferred"


def test_warm_up_that_lies_before_the_steps_of_all_hosts_is_none_of_theirs() -> None:
    early = "host main | M0-------- M1-- M2-- M3-- M4-- M5-- M6-- M7-- M8--\nhost main | X-------"
    late = "host main |            M1-- M2-- M3-- M4-- M5-- M6-- M7-- M8--"

    assert any("leave out this warm-up" in warning for warning in overview_of(hosts(early)).warnings)
    report = overview_of(hosts(early, late))
    assert report.warnings == ("1 step is left out: not on every host",)
    assert report.step_time_ms["count"] == 7


# -- what the report says ----------------------------------------------------------------------------------------


def test_steps_last_as_long_as_on_the_host_that_sets_the_pace_and_parts_are_those_of_the_slowest() -> None:
    report = overview_of(
        hosts(
            """
            host main | M1---M2--------
            host main |  a--  a-
            """,
            """
            host main | M1-----M2---
            host main |  I-     I-
            """,
        )
    )

    assert [(row["slowest_host"], row["duration_ms"]) for row in report.step_rows] == [("a", 5.0), ("a", 10.0)]
    assert report.step_time_ms["mean"] == 7.5
    assert report.step_time_ms["std"] == pytest.approx(3.535534, abs=1e-6)
    assert report.breakdown_ms["host_compute"] == 1.0  # of the slowest host of each step: 0 and 2
    assert report.breakdown_ms["input"] == 1.0  # 2 and 0
    assert sum(report.breakdown_ms.values()) == 8.5


def test_a_step_that_one_host_cuts_counts_for_none() -> None:
    whole = """
        host main | M0------ M1------ M2------
        host main |  L1       L2       L3
        gpu0 s    |   K1KKK    K2KKK    K3KKK
    """
    cut = whole.replace("K3KKK", "K3")
    report = overview_of(hosts(whole, cut))

    assert report.step_time_ms["count"] == 2
    assert [row["complete"] for row in report.step_rows] == [True, True, False]
    assert report.warnings == ("1 step is cut by the edge of the capture and left out of the statistics",)


def test_a_step_that_every_host_cuts_is_one_step() -> None:
    cut = """
        host main | M0------ M1------ M2------
        host main |  L1       L2       L3
        gpu0 s    |   K1KKK    K2KKK    K3
    """

    assert overview_of(hosts(cut, cut)).warnings == (
        "1 step is cut by the edge of the capture and left out of the statistics",
    )


def test_the_steps_tool_lists_every_host_of_every_step() -> None:
    report = steps.merge([steps.partial(trace) for trace in hosts("host main | M1-- M2--", "host main | M1--- M2-")])

    assert [(row["name"], row["host"], row["duration_ms"]) for row in report.rows] == [
        ("train 1", "a", 5.0), ("train 1", "b", 6.0), ("train 2", "a", 4.0), ("train 2", "b", 3.0),
    ]  # fmt: skip


def test_time_between_steps_is_the_mean_of_the_hosts() -> None:
    report = overview_of(hosts("host main | M1---     M2----", "host main | M1---M2---"))

    assert report.step_time_ms["between_steps_percent"] == 25.0  # 5 of 10, and nothing
