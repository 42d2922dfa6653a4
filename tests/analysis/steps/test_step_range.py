"""A profile seen through some of its steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from draw import MS, draw, traces
from hypothesis import given, settings

import stepscope
from stepscope.analysis.account import steps_tool
from stepscope.analysis.ops import op_stats_tool as op_stats
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.registry import TOOLS
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.analysis.steps.device_steps import device_steps
from stepscope.analysis.steps.session_steps import steps_of_host
from stepscope.analysis.steps.step_range import StepRange, choose_steps, take_steps
from stepscope.errors import UsageError
from stepscope.formats.xspace.writer import write
from stepscope.model import HostTrace

# The host runs ahead: it launches the work of step 2 while the device still does that of step 1.
AHEAD = """
    host main | M0----M1----M2----M3----
    host main | aL1    aL2    aL3   aL4
    host io   |  p-----p----------p-
    gpu0 s    |     K1----K2----K3----K4
"""


def names_of(trace: HostTrace) -> list[str]:
    return sorted(trace.name_of(event) for event in range(len(trace.events)))


@pytest.mark.parametrize(
    ("text", "first", "last"), [("3-9", 3, 9), (" 7 ", 7, 7), ("0-0", 0, 0), ("10 - 12", 10, 12)], ids=str
)
def test_ranges_are_read(text: str, first: int, last: int) -> None:
    assert StepRange.parse(text) == StepRange(first, last)


@pytest.mark.parametrize("text", ["", "-", "9-3", "a-b", "1-2-3", "-5", "1.5", "9" * 30])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a range of steps"):
        StepRange.parse(text)


def test_all_steps_leave_out_what_ran_before_and_after(tmp_path: Path) -> None:
    """10 ms of input: 2 before the steps, 3 in each of two steps, 2 after them."""
    trace = draw("""
        host main |     M0-- M1--
        host main | I-  I--  I--   I-
    """)
    (tmp_path / "run.xplane.pb").write_bytes(write(replace(trace, framework="tensorflow")))
    profile = stepscope.load(tmp_path)

    (whole,), (within,) = (profile.op_stats(steps=steps).rows for steps in (None, "all"))
    assert (whole["total_us"], whole["occurrences"]) == (10_000.0, 4)
    assert (within["total_us"], within["occurrences"]) == (6_000.0, 2)
    assert profile.op_stats(steps="all").warnings == (
        "[steps] only the steps, without what ran before the first and after the last",
    )
    assert stepscope.load(tmp_path).op_stats(steps="all") == profile.op_stats(steps="all")  # from the cache


def test_steps_of_a_part_are_those_of_the_whole() -> None:
    whole = draw(AHEAD)
    rows = steps_of_host(whole).rows

    part = take_steps(whole, [1, 2])

    part.check()
    assert steps_of_host(part).rows == rows[1:3]


def test_a_part_holds_the_work_of_its_steps_wherever_it_lies_and_nothing_of_others() -> None:
    part = take_steps(draw(AHEAD), [1])

    # `p` is the work of another thread that belongs to no step: what of it lies within the step.
    assert names_of(part) == ["a", "kernel", "launch", "p", "train"]
    steps = steps_of_host(part)
    helper = next(event for event in range(len(part.events)) if part.name_of(event) == "p")
    start, length = int(part.events.start_ps[helper]), int(part.events.duration_ps[helper])
    assert steps.rows[0].start_ps <= start
    assert start + length <= steps.rows[0].start_ps + steps.rows[0].duration_ps


@pytest.mark.parametrize("chosen", [[0], [1], [0, 1]], ids=str)
def test_steps_of_each_device_in_a_part_are_those_of_the_whole(chosen: list[int]) -> None:
    whole = draw("""
        host main | M1-------- M2------
        host main |  L6L8       L7L9
        gpu0 s    | K3--K6------ K7----
        gpu1 s    | K4------K8---- K9--
    """)  # K3 and K4 were launched before the first step

    part = take_steps(whole, chosen)

    for mine, of_whole in zip(device_steps(part), device_steps(whole), strict=True):
        assert mine.start_ps == [of_whole.start_ps[step] for step in chosen]
        assert mine.duration_ps == [of_whole.duration_ps[step] for step in chosen]


def test_ops_of_single_steps_add_up_to_those_of_all() -> None:
    whole = draw(AHEAD)

    def calls(trace: HostTrace) -> int:
        rows = op_stats.merge([op_stats.partial(trace)]).rows
        return sum(row["occurrences"] for row in rows if row["name"] in ("a", "kernel"))  # type: ignore[misc]

    assert calls(whole) == sum(calls(take_steps(whole, [step])) for step in range(4)) == 8


def test_inferred_steps_keep_their_numbers_where_a_part_could_not_be_inferred() -> None:
    whole = draw("gpu0 s | ab--c-ab--c-ab--c-ab--c-ab--c-ab--c-")
    assert steps_of_host(whole).source == "inferred"

    report = steps_tool.merge([steps_tool.partial(take_steps(whole, [3]))])

    assert [(row["step"], row["start_ms"]) for row in report.rows] == [(3, 18.0)]


def test_hosts_that_count_differently_are_brought_together_before_steps_are_chosen() -> None:
    one = draw("host main | M0--M1--M2--M3--", host="a", start_unix_ns=10**18)
    other = draw("host main | M5--M6--M7--", host="b", start_unix_ns=10**18)
    parts = [steps_of_host(one), steps_of_host(other)]
    # The programs numbered them, and no number is common: the hosts' steps are laid side by side, and counted from 0.
    assert choose_steps(parts, StepRange(1, 2)) == {"a": (1, 2), "b": (1, 2)}

    same = [steps_of_host(one), steps_of_host(draw("host main | M2--M3--M4--", host="b"))]
    assert choose_steps(same, StepRange(3, 9)) == {"a": (3,), "b": (1,)}


def test_steps_of_one_number_that_lie_apart_last_as_long_as_in_the_whole() -> None:
    whole = draw("host main | M0--- M1--- M2---   M0--- M1--- M2---")
    rows = choose_steps([steps_of_host(whole)], StepRange(1, 1))["host"]
    assert rows == (1, 4)

    report = overview.merge([overview.partial(take_steps(whole, rows))])
    assert report.step_time_ms["count"] == 2
    assert report.step_time_ms["between_steps_percent"] == 16.6667


def test_chosen_steps_last_as_long_as_in_the_whole() -> None:
    part = take_steps(draw("host main | M0-- M1-- I- M2-- M3--"), [1, 2])

    rows = steps_of_host(part).rows
    assert [(row.duration_ps // MS, row.gap_ps // MS) for row in rows] == [(8, 4), (5, 1)]
    assert [row.parts_ps[CATEGORIES.index("input")] // MS for row in rows] == [2, 0]


def test_a_step_that_the_edge_cuts_is_told_where_it_is_all_there_is() -> None:
    cut = draw("""
        host main | M0------ M1------ M2------
        host main |  L1       L2       L3
        gpu0 s    |   K1KKK    K2KKK    K3
    """)
    report = overview.merge([overview.partial(take_steps(cut, [2]))])

    assert (report.step_time_ms["count"], report.warnings) == (
        1, ("1 step is cut by the edge of the capture but kept in the statistics: no step is complete",)
    )  # fmt: skip


def test_unknown_steps_are_told_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="the steps are 0 to 3"):
        choose_steps([steps_of_host(draw(AHEAD))], StepRange(40, 50))


@settings(max_examples=20, deadline=None)
@given(trace=traces())
def test_any_steps_of_any_trace_go_through_every_tool(trace: HostTrace) -> None:
    rows = steps_of_host(trace).rows
    for at in {0, len(rows) - 1} if rows else ():
        part = take_steps(trace, [at])
        part.check()
        assert steps_of_host(part).rows == [rows[at]]
        for tool in TOOLS:
            tool.merge([tool.partial(part)])


def test_the_whole_range_is_the_whole() -> None:
    whole = draw(AHEAD)
    part = take_steps(draw(AHEAD), range(4))

    all_of_it = overview.merge([overview.partial(whole)])
    of_steps = overview.merge([overview.partial(part)])

    assert of_steps.step_time_ms == all_of_it.step_time_ms
    assert of_steps.breakdown_ms == all_of_it.breakdown_ms
    assert of_steps.top_ops == all_of_it.top_ops
