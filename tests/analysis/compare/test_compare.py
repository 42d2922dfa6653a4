"""Two sessions side by side.  Traces are pictures; every expectation is counted in them by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from draw import draw
from every_form import exercise
from reporting import table

import stepscope
from stepscope.analysis.compare.compare import DEFAULT_TOOLS, _describe_changes, choose_tools, comparable_tools, compare
from stepscope.analysis.compare.compare_report import CompareReport
from stepscope.analysis.compare.sides import Side, side_of
from stepscope.analysis.compare.step_times import step_times
from stepscope.analysis.compare.verdict import compare_means
from stepscope.analysis.compare.welch import Sample, half_width, quantile, sample_of
from stepscope.analysis.registry import tool_named
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.profiling_cost import ProfilingCost
from stepscope.analysis.steps.step_range import take_steps
from stepscope.cli.main import run
from stepscope.errors import NotFoundError, UsageError
from stepscope.formats.xspace.writer import write
from stepscope.model import HostTrace, TraceBuilder
from stepscope.report import Report

UNCHANGED = ("jax_dense", "tf_convnet", "torch_transformer")

BEFORE = draw("""
    host main | M0--------M1--------M2--------
    host main | I---a-----I---a-----I---a-----
""")
AFTER = draw("""
    host main | M0------M1------M2------
    host main | I-a--b--I-a--b--I-a--b--
""")
LONGER = draw("""
    host main | M0--------M1--------M2--------M3--------M4--------M5--------
    host main | I---a-----I---a-----I---a-----I---a-----I---a-----I---a-----
""")
WAITS_BETWEEN = draw("""
    host main | M0----    M1----    M2----
    host main | a-----I---a-----I---a-----
""")
UNEVEN = draw("""
    host main | M0-------M1----------M2--------
    host main | a--------a-----------a---------
""")
ONE_STEP = draw("""
    host main | M0--------
    host main | I---a-----
""")
NO_STEPS = draw("""
    host main | a----b----
""")
ON_GPU = draw("""
    host main | M0--------M1--------M2--------
    host main | L1        L2        L3
    gpu0 s    |   k1--      k2--      k3--
""")
ON_GPU_IN_TWO = draw("""
    host main | M0--------M1--------M2--------
    host main | L1L2      L3L4      L5L6
    gpu0 s    |   k1k2      k3k4      k5k6
""")


def side(*traces: HostTrace, name: str = "run", tools: Sequence[str] = DEFAULT_TOOLS) -> Side:
    """What tools say of a session of these hosts."""

    def ask(names: Sequence[str], within_steps: bool) -> dict[str, Report]:
        seen = [take_steps(t, range(len(steps_of(t).number))) if within_steps else t for t in traces]
        asked = [tool_named(each) for each in names]
        return {tool.name: tool.merge([tool.partial(trace) for trace in seen]) for tool in asked}

    return side_of(name, "logs", ask, tools)


def with_report(of: Side, tool: str, **changes: Any) -> Side:
    """The side with other attributes in the report of one tool."""
    return replace(of, reports={**of.reports, tool: replace(of.reports[tool], **changes)})


def compared(before: HostTrace, after: HostTrace) -> CompareReport:
    return compare(side(before, name="old"), side(after, name="new"))


TIMES = ("before_ms", "after_ms", "difference_ms", "change_percent")


# -- what lies between steps -----------------------------------------------------------------------------------------


def test_a_step_that_was_left_out_makes_no_other_longer() -> None:
    whole = draw("host main | M0-- M1-- M2-- M3-- M4--", host="a")
    without_2 = draw("host main | M0-- M1--      M3-- M4--", host="b")

    assert step_times(side(whole)) == [5, 5, 5, 5]
    assert step_times(side(whole, without_2)) == [5, 5]


def test_totals_belong_to_all_steps_that_hosts_recorded() -> None:
    """Each of the steps takes 3 ms in `a`; one host lacks the first and the other the last."""
    picture = "host main | {}\nhost main | a--  a--  a--  a--"
    whole = draw(picture.format("M0-- M1-- M2-- M3--"))
    early, late = (
        draw(picture.format(marks), host=marks[:2]) for marks in ("M0-- M1-- M2-- M3--", "M1-- M2-- M3-- M4--")
    )

    two = side(early, late)
    [row] = compare(side(whole), two).rows
    assert two.overview.to_dict()["steps_a_host"] == 4.0  # 3 of them are steps of both
    assert (row["name"], row["before_ms"], row["after_ms"]) == ("a", 3.0, 6.0)  # of both hosts together


def test_steps_of_one_number_that_are_looked_at_alone_last_as_long() -> None:
    twice = draw("host main | M0-- M1-- M2-- M0-- M1-- M2--")

    assert step_times(side(twice)) == [5] * 5
    assert step_times(side(take_steps(twice, [1, 4]))) == [5, 5]


def test_numbers_may_count_in_tens() -> None:
    assert step_times(side(draw("host main | M10-- M20-- M30--"))) == [6, 6]


# -- the verdict -----------------------------------------------------------------------------------------------------


def test_a_faster_step_says_by_how_much_and_what_fell() -> None:
    report = compared(BEFORE, AFTER)

    assert report.verdict_text == "20.0 % faster (mean 10.00 -> 8.00 ms, ±0.00): input fell by 2.00 ms"
    assert report.difference.verdict == "faster"
    assert report.to_dict()["difference_ms"] == -2.0
    assert report.to_dict()["speedup"] == 1.25
    assert report.to_dict()["before"] == {
        "run": "old", "mean_ms": 10.0, "std_ms": 0.0, "steps": 3, "input_bound_percent": 40.0,
        "first_advice": report.sides[0]["first_advice"],
    }  # fmt: skip


def test_a_slower_step_says_what_rose() -> None:
    text = compared(AFTER, BEFORE).verdict_text

    assert text == "25.0 % slower (mean 8.00 -> 10.00 ms, ±0.00): input rose by 2.00 ms"


def test_what_changed_is_named_with_what_it_is_spent_in() -> None:
    assert compared(BEFORE, AFTER).changes == ("input -2.00 ms: `IteratorGetNext`, 4.00 ms -> 2.00 ms",)
    assert compared(UNEVEN, AFTER).changes == (
        "computation on the host -4.33 ms: `a`, 10.00 ms -> 3.00 ms",
        "input +2.00 ms: `IteratorGetNext`, 2.00 ms after",
    )
    assert compared(BEFORE, BEFORE).changes == ()


def test_what_is_not_named_is_added_up_where_the_changes_do_not_explain_the_step() -> None:
    rows = [
        {"cause": "input", "difference_ms": -68.0, "verdict": "better"},
        {"cause": "launch", "difference_ms": 10.0, "verdict": "within_noise"},
        {"cause": "sync", "difference_ms": 6.0, "verdict": "within_noise"},
        {"cause": "python", "difference_ms": 0.5, "verdict": "within_noise"},
    ]
    of = side(BEFORE)

    assert [*_describe_changes(of, of, rows)] == [
        "input -68.00 ms",
        "all others +16.50 ms, within the noise: first waiting for launches +10.00 ms, "
        "synchronising with idle devices +6.00 ms",
    ]
    assert [*_describe_changes(of, of, [rows[0], rows[3]])] == ["input -68.00 ms"]


def test_a_step_of_half_the_time_is_twice_as_fast() -> None:
    half = draw("""
        host main | M0---M1---M2---
        host main | a----a----a----
    """)

    assert compared(BEFORE, half).verdict_text == (
        "50.0 % faster, 2.00 times as fast (mean 10.00 -> 5.00 ms, ±0.00): input fell by 4.00 ms"
    )


def test_steps_that_scatter_more_than_they_differ_are_within_the_noise() -> None:
    """9, 12 and 10 ms against 10, 10 and 10: 1/3 ms apart, with a standard error of sqrt(7/3 / 3) = 0.8819 and 2
    degrees of freedom, for which t is 4.3027."""
    report = compared(UNEVEN, BEFORE)

    assert report.difference.verdict == "within_noise"
    assert report.difference.uncertainty_ms == pytest.approx(4.302653 * (7 / 9) ** 0.5, abs=1e-5)
    assert report.verdict_text == "within the noise: mean 10.33 -> 10.00 ms (-3.2 %, -0.33 ms ±3.79)"


def test_a_profile_against_itself_is_all_zeros_and_within_the_noise() -> None:
    report = compared(UNEVEN, UNEVEN)

    assert report.difference.verdict == "within_noise"
    assert (report.difference.ms, report.difference.change_percent, report.difference.speedup) == (0.0, 0.0, 1.0)
    for rows in (report.table("breakdown").rows, report.rows, report.table("kernels").rows):
        assert [row["difference_ms"] for row in rows] == [0.0] * len(rows)
    assert {row["status"] for row in report.rows} == {"both"}


def test_one_step_tells_no_noise() -> None:
    report = compared(BEFORE, ONE_STEP)

    assert report.difference.verdict == "unknown"
    assert report.difference.uncertainty_ms is None
    assert "noise unknown" in compared(ONE_STEP, AFTER).verdict_text
    assert compared(ONE_STEP, AFTER).verdict_text.startswith(
        "20.0 % faster (mean 10.00 -> 8.00 ms, noise unknown), which"
    )


def test_one_step_against_itself_is_neither_faster_nor_slower() -> None:
    text = compared(ONE_STEP, ONE_STEP).verdict_text

    assert text.startswith("no difference (mean 10.00 -> 10.00 ms, noise unknown), which may be chance")


def test_without_steps_the_verdict_is_unknown_and_the_ops_are_totals() -> None:
    report = compared(BEFORE, NO_STEPS)

    assert report.verdict_text == "unknown: the session after has no steps to compare; mark the steps"
    assert report.difference.ms is None
    assert report.table("breakdown").rows == ()
    assert table(report.rows, "name", *TIMES) == [
        ("a", 18.0, 5.0, -13.0, -72.2222),
        ("IteratorGetNext", 12.0, None, -12.0, None),
        ("b", None, 5.0, 5.0, None),
    ]
    assert any("one side has no steps" in note for note in report.notes)


def test_captures_are_compared_by_the_figures_of_their_summaries() -> None:
    before, after = side(NO_STEPS), side(draw("host main | a--a-b----"))

    rows = compare(before, after).table("breakdown").rows
    for each, name in ((before, "before_ms"), (after, "after_ms")):
        account = {row["cause"]: row["ms"] for row in each.overview.to_dict()["account"]}
        assert account and {row["cause"]: row[name] for row in rows if row[name]} == account


def test_windows_of_one_length_with_less_work_do_not_tell_which_is_faster() -> None:
    """A recorder that cuts at a time holds less of slower work, in captures that are equally long."""
    report = compared(draw("host main | a--a-b----"), NO_STEPS)

    assert report.verdict_text.startswith("not known which is faster: both captures are windows")
    assert report.difference.verdict == "unknown"


def test_without_steps_on_both_sides_the_captures_are_compared() -> None:
    report = compared(NO_STEPS, NO_STEPS)

    assert report.verdict_text == "unknown: both captures last 10.00 ms, as windows of one length do; mark the steps"
    assert any("both sides have no steps" in note for note in report.notes)


# -- where the time went ---------------------------------------------------------------------------------------------


def test_the_parts_of_the_step_add_up_to_its_difference() -> None:
    report = compared(BEFORE, AFTER)

    assert table(report.table("breakdown").rows, "cause", *TIMES) == [
        ("host_compute", 6.0, 6.0, 0.0, 0.0),
        ("input", 4.0, 2.0, -2.0, -50.0),
    ]


def test_time_between_steps_counts() -> None:
    """A loop that waits for its input before it begins the step: 6 ms of step and 4 before the next."""
    report = compared(WAITS_BETWEEN, AFTER)

    assert report.verdict_text == "20.0 % faster (mean 10.00 -> 8.00 ms, ±0.00): input fell by 2.00 ms"
    assert table(report.table("breakdown").rows, "cause", *TIMES) == [
        ("host_compute", 6.0, 6.0, 0.0, 0.0),
        ("input", 4.0, 2.0, -2.0, -50.0),
    ]


def test_the_spread_is_that_of_the_times_from_step_to_step() -> None:
    """Steps of 9, 12 and 10 ms in a row, against steps of 6 ms with 4 between them."""
    assert table(compared(UNEVEN, WAITS_BETWEEN).table("spread").rows, "step_time", *TIMES) == [
        ("mean", 10.333333, 10.0, -0.333333, -3.2258),
        ("shortest", 9.0, 10.0, 1.0, 11.1111),
        ("25th percentile", 9.5, 10.0, 0.5, 5.2632),
        ("median", 10.0, 10.0, 0.0, 0.0),
        ("75th percentile", 11.0, 10.0, -1.0, -9.0909),
        ("90th percentile", 11.6, 10.0, -1.6, -13.7931),
        ("longest", 12.0, 10.0, -2.0, -16.6667),
        ("standard deviation", 1.527525, 0.0, -1.527525, -100.0),
    ]
    assert compared(BEFORE, NO_STEPS).table("spread").rows == ()


def test_ops_are_per_step_and_the_largest_difference_comes_first() -> None:
    columns = ("side", "name", "status", *TIMES, "before_calls", "after_calls")

    assert table(compared(BEFORE, AFTER).rows, *columns) == [
        ("host", "a", "both", 6.0, 3.0, -3.0, -50.0, 1.0, 1.0),
        ("host", "b", "added", None, 3.0, 3.0, None, None, 1.0),
        ("host", "IteratorGetNext", "both", 4.0, 2.0, -2.0, -50.0, 1.0, 1.0),
    ]
    assert [row["status"] for row in compared(AFTER, BEFORE).rows if row["name"] == "b"] == ["removed"]


def test_a_capture_of_more_steps_is_no_change() -> None:
    report = compared(BEFORE, LONGER)

    assert [side["steps"] for side in report.sides] == [3, 6]
    assert [row["difference_ms"] for row in (*report.rows, *report.table("breakdown").rows)] == [0.0] * 4


def test_kernels_are_matched_by_name() -> None:
    report = compared(ON_GPU, ON_GPU_IN_TWO)

    assert table(report.table("kernels").rows, "kernel", "status", *TIMES, "before_calls", "after_calls") == [
        ("k", "both", 4.0, 4.0, 0.0, 0.0, 1.0, 2.0),
    ]
    assert compared(BEFORE, AFTER).table("kernels").rows == ()


def test_memories_are_compared_at_their_peaks() -> None:
    one, other = side(BEFORE), side(AFTER)
    peaks = ([("gpu", 300), ("cpu", 5)], [("gpu", 100), ("gpu", 150), ("cpu", None)])
    one, other = (
        with_report(each, "memory-profile", memories=tuple(
            {"id": name, "peak": {"in_use_bytes": full}} for name, full in found
        ))
        for each, found in zip((one, other), peaks, strict=True)
    )  # fmt: skip

    assert table(
        compare(one, other).table("memories").rows, "memory", "before_bytes", "after_bytes", "difference_bytes"
    ) == [
        ("gpu", 300, 250, -50),
        ("cpu", 5, None, -5),
    ]


# -- whether they can be compared --------------------------------------------------------------------------------------


def with_shapes(trace: HostTrace, **shapes: str) -> Side:
    found = side(trace)
    listed = tuple({"name": name, "input_shapes": shape} for name, shape in shapes.items())
    return with_report(found, "op-shapes", rows=listed)


def test_what_else_differs_is_told() -> None:
    one = draw("""
        host main | a----
    """)
    other = draw("""
        host main | M0--------M1--------
        host main | L1        L2
        gpu0 s    |   k1--      k2--
    """)
    report = compared(replace(one, framework="jax"), replace(other, framework="pytorch"))

    assert report.mismatches == (
        "the framework differs: jax before, pytorch after",
        "the device differs: CPU before, GPU after",
    )
    assert report.notes[:2] == (
        "the number of devices that computed differs: 0 before, 1 after",
        "steps were found in different ways: before, no step marks and no repeating sequence were found; the whole "
        "capture counts as one span; after, 2 step marks such as 'train 0' on thread 'main'",
    )


def test_no_advice_made_the_difference_between_two_devices() -> None:
    slow = draw("""
        host main | M0--------M1--------M2--------
        host main | I-------a-I-------a-I-------a-
    """)
    fast = draw("""
        host main | M0--M1--M2--
        host main | a---a---a---
    """)
    gpu = draw("""
        host main | M0--M1--M2--
        host main | L1  L2  L3
        gpu0 s    | k1--k2--k3--
    """)

    def came(after: HostTrace) -> list[bool]:
        return [row["measured_speedup"] is not None for row in compared(slow, after).foretold]

    assert came(fast) == [True]
    assert came(gpu) == []


def test_what_an_advice_gained_has_the_noise_of_the_verdict() -> None:
    """Three of four steps are half as long; one that stalled moves the mean, and leaves room for any gain."""
    slow = draw("""
        host main | M0--------M1--------M2--------M3--------
        host main | I-------a-I-------a-I-------a-I-------a-
    """)
    stalled = draw("""
        host main | M0---M1---M2---M3------------------------
        host main | a----a----a----a-------------------------
    """)

    [row] = compared(slow, stalled).foretold
    assert (row["measured_speedup"], row["measured_speedup_most"]) == (0.9756, None)
    assert 0 < row["measured_speedup_least"] < 0.5  # type: ignore[operator]


def test_other_shapes_of_inputs_are_told_and_equal_ones_are_not() -> None:
    one = with_shapes(BEFORE, **{"aten::mm": "[32, 8]", "b": "[8]"})
    other = with_shapes(AFTER, **{"aten::mm": "[64, 8]", "b": "[8]"})

    assert compare(one, other).notes == (
        "both sides are the session run",
        "1 of 2 ops on both sides have other input shapes, first aten::mm: with another batch size or model, a step is "
        "not the same work",
    )
    assert compare(one, replace(one, run="again")).notes == ()
    assert compare(one, side(AFTER, name="new")).notes == (
        "input shapes were not recorded after, so the batch sizes may differ",
    )


def test_another_cost_of_profiling_is_told() -> None:
    one, other = with_shapes(BEFORE, a="[8]"), replace(with_shapes(AFTER, a="[8]"), run="new")
    one, other = (
        with_report(each, "overview", profiling=ProfilingCost(10.0, inside, 5, 5))
        for each, inside in ((one, 10.1), (other, 12.0))
    )
    shorter = with_report(other, "overview", profiling=ProfilingCost(10.0, 4.0, 5, 5))  # which profiling makes no step

    told = "the recordings cost differently: before, profiling cost 1 %; after, profiling cost 20 %"
    assert (compare(one, other).notes, compare(one, shorter).notes) == ((told,), ())


def test_warnings_tell_which_side_they_are_of() -> None:
    one, other = side(BEFORE), side(AFTER, name="new")
    one = with_report(one, "overview", warnings=("cut", "slow disk"))
    other = with_report(other, "overview", warnings=("slow disk", "no clock"))

    assert compare(one, other).warnings == ("before: cut", "both: slow disk", "after: no clock")


# -- the statistics ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("freedom", "tabulated"),
    [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (30, 2.042), (100, 1.984), (1e6, 1.960)],
)
def test_quantiles_are_those_of_the_tables(freedom: float, tabulated: float) -> None:
    assert quantile(freedom) == pytest.approx(tabulated, abs=5e-4)


def test_the_interval_of_two_samples_of_unlike_spread() -> None:
    """Means 3 and 6, variances 2.5 and 10: a standard error of sqrt(2.5), and 6.25 / (0.25 / 4 + 4 / 4) = 5.882 degrees
    of freedom, for which t is 2.4590."""
    width = half_width(sample_of([1, 2, 3, 4, 5]), sample_of([2, 4, 6, 8, 10]))

    assert width == pytest.approx(3.887742, abs=1e-6)
    assert width == pytest.approx(2.4590 * 2.5**0.5, abs=1e-3)


def test_samples_without_spread_or_of_one_value() -> None:
    assert half_width(Sample(3, 10.0, 0.0), Sample(3, 8.0, 0.0)) == 0.0
    assert half_width(Sample(1, 10.0, None), Sample(3, 8.0, 0.0)) is None
    assert compare_means(sample_of([]), sample_of([1.0])).verdict == "unknown"
    assert half_width(Sample(3, 1.0, 1e-170), Sample(3, 1.0, 0.0)) == 0.0  # whose square is no number any more


# -- other tools and work outside of the steps -------------------------------------------------------------------------

BEYOND = draw("""
    host main |          M0--------M1--------
    host main | L1       L2        L3          L4
    gpu0 s    |   k1---    k2--      k3--        k4
""")


def test_totals_per_step_leave_out_what_ran_before_and_after_the_steps() -> None:
    """Of 15 ms of kernels, 5 run before the first step and 2 after the last."""
    report = compared(ON_GPU, BEYOND)

    assert table(report.table("kernels").rows, "kernel", "before_ms", "after_ms", "before_calls", "after_calls") == [
        ("k", 4.0, 4.0, 1.0, 1.0),
    ]
    assert "46.7 % of the device op time after ran outside of the steps" in report.notes[0]


def test_without_steps_on_a_side_totals_are_those_of_whole_captures() -> None:
    report = compared(NO_STEPS, BEYOND)

    assert report.table("kernels").steps is None
    assert not any("outside of the steps" in note for note in report.notes)


def test_only_the_tools_that_were_asked_for_are_compared() -> None:
    tools = ("steps", "idle")
    report = compare(side(ON_GPU, tools=tools), side(ON_GPU_IN_TWO, name="new", tools=tools), tools)

    assert [table.id for table in report.tables] == ["spread", "idle"]
    assert report.main == "spread"
    assert {"spread", "idle"} <= report.to_dict().keys()
    assert not {"rows", "kernels", "breakdown"} & report.to_dict().keys()
    exercise(report)


def test_the_breakdown_says_which_differences_are_noise() -> None:
    """Steps of 9, 12 and 10 ms in an op, against 10, 10 and 10 ms of which 4 are input."""
    [op_row, input_row] = compared(UNEVEN, BEFORE).table("breakdown").rows

    assert (input_row["cause"], input_row["difference_ms"], input_row["verdict"]) == ("input", 4.0, "worse")
    assert (op_row["difference_ms"], op_row["uncertainty_ms"], op_row["verdict"]) == (-4.333333, 3.794583, "better")


def test_a_tool_that_cannot_be_compared_says_so() -> None:
    with pytest.raises(UsageError, match="there is no tool named 'zork'"):
        choose_tools(["zork"])


# -- files, command and gate ------------------------------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Logdirs `before` and `after`, and one that holds both as `both/old` and, newer, `both/new`."""
    for name, trace in (("before/r", BEFORE), ("after/r", AFTER), ("both/old", BEFORE), ("both/new", AFTER)):
        logdir, _, session = name.partition("/")
        folder = tmp_path / logdir / "plugins" / "profile" / session
        folder.mkdir(parents=True)
        (folder / "host.xplane.pb").write_bytes(write(replace(trace, framework="tensorflow")))
    (tmp_path / "one.xplane.pb").write_bytes(write(replace(ONE_STEP, framework="tensorflow")))
    return tmp_path


def test_paths_and_loaded_profiles_are_compared_alike(logs: Path) -> None:
    report = stepscope.compare(logs / "before", logs / "after")
    again = stepscope.compare(stepscope.load(logs / "before"), stepscope.load(logs / "after"))

    assert report.verdict_text == "20.0 % faster (mean 10.00 -> 8.00 ms, ±0.00): input fell by 2.00 ms"
    assert report.to_dict() == again.to_dict()
    assert {"tool": "compare", "schema_version": 1, "hosts": ["host"], "partial": False}.items() <= (
        report.to_dict().items()
    )
    exercise(report)


def test_some_steps_of_both(logs: Path) -> None:
    report = stepscope.compare(logs / "before", logs / "after", steps="0-1")

    assert [side["steps"] for side in report.sides] == [2, 2]
    assert report.warnings == ("both: [steps] only steps 0 to 1 of the capture",)


def test_the_command_says_the_verdict_first(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(logs / "before"), str(logs / "after")]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]

    assert lines[:2] == ["Verdict", "20.0 % faster (mean 10.00 -> 8.00 ms, ±0.00): input fell by 2.00 ms"]


def test_the_command_compares_the_tools_that_are_asked_for(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [str(logs / "before"), str(logs / "after")]
    assert run(["compare", *sides, "--tool", "pod-viewer", "--tool", "advice", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [table["id"] for table in answer["tables"]] == ["workers", "advice"]
    assert [row["difference_ms"] for row in answer["workers"]] == [-2.0]

    assert run(["compare", *sides, "--all", "--format", "json"]) == 0
    every = {table["tool"] for table in json.loads(capsys.readouterr().out)["tables"]}
    assert every == {tool.name for tool in comparable_tools()}
    assert run(["compare", *sides, "--all"]) == 0
    assert "Kernels" not in capsys.readouterr().out  # there are none
    assert run(["compare", *sides, "--all", "--tool", "idle"]) == 2
    assert run(["compare", *sides, "--tool", "zork"]) == 2


def test_a_profile_compares_itself_with_a_later_one(logs: Path) -> None:
    before = stepscope.load(logs / "before")

    report = before.compare(logs / "after", tools=["steps"])
    assert report == stepscope.compare(before, logs / "after", tools=["steps"])
    assert table(report.rows[:1], "step_time", *TIMES) == [("mean", 10.0, 8.0, -2.0, -20.0)]


def test_sessions_of_one_logdir_are_told_by_name(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = str(logs / "both")
    arguments = ["compare", both, both, "--run-before", "old", "--run-after", "new", "--format", "json", "--top", "1"]

    assert run(arguments) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["before"]["run"], answer["after"]["run"], answer["verdict"]) == ("old", "new", "faster")
    assert len(answer["rows"]) == 1


@pytest.mark.parametrize(
    ("before", "after", "allowed", "status"),
    [("before", "after", "0", 0), ("after", "before", "30", 0), ("after", "before", "25", 0),
     ("after", "before", "24", 1), ("after", "after", "0", 0), ("one.xplane.pb", "after", "50", 1)],
    ids=["faster", "slower-by-less", "slower-by-as-much", "slower-by-more", "the-same", "nothing-tells"],
)  # fmt: skip
def test_the_gate(
    logs: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, allowed: str, status: int
) -> None:
    assert run(["compare", str(logs / before), str(logs / after), "--fail-above", allowed]) == status

    told = capsys.readouterr()
    assert "Account of the mean step" in told.out
    assert len(told.err.splitlines()) == status
    if before == "after" and status:
        assert told.err == (
            "stepscope: [slower] more than the 24 % of --fail-above: 25.0 % slower (mean 8.00 -> 10.00 ms, ±0.00): "
            "input rose by 2.00 ms\n"
        )


def test_what_is_within_the_noise_passes_the_gate(tmp_path: Path) -> None:
    for name, trace in (("before", BEFORE), ("after", UNEVEN)):
        (tmp_path / f"{name}.xplane.pb").write_bytes(write(replace(trace, framework="tensorflow")))
    paths = [str(tmp_path / f"{name}.xplane.pb") for name in ("before", "after")]

    assert stepscope.compare(*paths).difference.change_percent == pytest.approx(3.3333)
    assert run(["compare", *paths, "--fail-above", "1"]) == 0


def test_bad_input_is_one_line(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(logs / "before")]) == 2
    capsys.readouterr()
    assert run(["compare", str(logs / "before"), str(logs / "nowhere")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    with pytest.raises(NotFoundError):
        stepscope.compare(logs / "nowhere", logs / "after")
    with pytest.raises(UsageError, match="no host"):
        stepscope.compare(logs / "before", logs / "after", host="other")


def test_each_of_several_hosts_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, trace in (("old", BEFORE), ("new", AFTER)):
        folder = tmp_path / name / "plugins" / "profile" / "run"
        folder.mkdir(parents=True)
        for host in ("a", "b"):
            (folder / f"{host}.xplane.pb").write_bytes(write(replace(trace, framework="tensorflow", host=host)))
    read: list[str] = []
    profiles = [stepscope.load(tmp_path / name, progress=read.append) for name in ("old", "new")]

    assert stepscope.compare(*profiles).hosts == ("a", "b")
    hosts = sorted(
        text.split()[1] for text in read if text.startswith("reading")
    )  # both profiles are read side by side
    assert hosts == ["a", "a", "b", "b"]


def test_an_empty_trace_is_compared_without_an_error() -> None:
    empty = TraceBuilder("host").build()

    exercise(compared(empty, empty))
    assert compared(empty, empty).verdict_text.startswith("unknown: neither session has steps to compare")


# -- real pairs --------------------------------------------------------------------------------------------------------

CAUSES = {
    "jax_python_report": "Python in the loop fell",
    "jax_table_argument": "copying data in fell",
    "tf_fit_augment": "input fell",
    "tf_schedule_argument": "compiling fell",
    "torch_python_dataset": "input fell",
    "torch_memory_bank": "computation on the host fell",
    "torch_reduce_each_tensor": "communication fell",
}


@pytest.mark.parametrize("case", CAUSES)
def test_a_fix_is_faster_by_about_what_was_measured(
    case: str, bottleneck_captures: Path, bottleneck_cases: list[dict[str, Any]]
) -> None:
    report = stepscope.compare(bottleneck_captures / case / "slow", bottleneck_captures / case / "fixed")
    measured = next(known["measured_ratio"] for known in bottleneck_cases if known["id"] == case)

    assert report.difference.verdict == "faster"
    assert report.verdict_text.rpartition(": ")[2].startswith(CAUSES[case])
    assert report.difference.speedup is not None
    assert 1 / 1.75 < report.difference.speedup / measured < 1.75  # the measured runs were others, without a profiler
    parts = sum(row["difference_ms"] for row in report.table("breakdown").rows)  # type: ignore[misc]
    assert parts == pytest.approx(report.difference.ms, abs=1e-4)
    exercise(report)


@pytest.mark.parametrize("case", UNCHANGED)
def test_two_runs_of_one_program_are_within_the_noise(case: str, bottleneck_captures: Path) -> None:
    report = stepscope.compare(bottleneck_captures / case / "slow", bottleneck_captures / case / "fixed")

    assert report.difference.verdict == "within_noise"
