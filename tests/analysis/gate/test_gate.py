"""Budgets on drawn sessions: every expected figure is counted in the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from draw import draw

from stepscope.analysis.compare.sides import side_of
from stepscope.analysis.gate.budgets import Amount, Budget, make_budgets, parse_budgets
from stepscope.analysis.gate.figures import JudgedSession, figure_names, parse_figure, read_figure, step_samples
from stepscope.analysis.gate.gate_report import GateReport, make_gate_report
from stepscope.analysis.gate.judge import noise_of_difference
from stepscope.analysis.registry import tool_named
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.step_range import take_steps
from stepscope.errors import UsageError
from stepscope.model import HostTrace
from stepscope.report import Report

# Steps of 10 ms, of which 4 wait for input and 6 compute.
EVEN = draw("""
    host main | M0--------M1--------M2--------M3--------
    host main | I---a-----I---a-----I---a-----I---a-----
""")
SLOWER = draw("""
    host main | M0----------M1----------M2----------M3----------
    host main | I-----a-----I-----a-----I-----a-----I-----a-----
""")
UNEVEN = draw("""
    host main | M0--------M1------------M2--------M3----------
    host main | I---a-----I-------a-----I---a-----I-----a-----
""")
ON_GPU = draw("""
    host main | M0--------M1--------M2--------
    host main | L1        L2        L3
    gpu0 s    |   k1--      k2--      k3--
""")


def session(trace: HostTrace, run: str = "run") -> JudgedSession:
    """What tools say of a session of one host."""

    def ask(tool: str, steps: str | None) -> Report:
        seen = trace
        if steps == "all":
            seen = take_steps(trace, range(len(steps_of(trace).number)))
        elif steps:
            first, last = map(int, steps.split("-"))
            seen = take_steps(trace, range(first, last + 1))
        return tool_named(tool).merge([tool_named(tool).partial(seen)])

    def ask_all(names: Sequence[str], within_steps: bool) -> dict[str, Report]:
        return {name: ask(name, "all" if within_steps else None) for name in names}

    return JudgedSession(side_of(run, "logs", ask_all, ("op-stats",)), ask)


def judged(after: HostTrace, limits: dict[str, object], *before: HostTrace) -> GateReport:
    return make_gate_report([session(each) for each in before], [session(after)], make_budgets(limits))


def states(report: GateReport) -> list[Any]:
    return [row["state"] for row in report.rows]


# -- files -----------------------------------------------------------------------------------------------------------


def test_a_limit_is_a_number_a_text_or_a_table() -> None:
    text = """
        [budget]
        step_ms = "+5 %"
        input_percent = 10
        memory_bytes = "<= 8 GiB"
        "kernel-stats.rows[kernel=k].occupancy_percent" = ">= 40"
        "op-stats.rows[name=a].total_self_us" = { rise_percent = 10, noise_percent = 3, per_step = true, take = "sum" }
    """

    assert parse_budgets(text, "b.toml") == (
        Budget(figure="step_ms", rise_percent=5.0),
        Budget(figure="input_percent", most=Amount(10.0)),
        Budget(figure="memory_bytes", most=Amount(8.0, "GiB")),
        Budget(figure="kernel-stats.rows[kernel=k].occupancy_percent", least=Amount(40.0)),
        Budget(
            figure="op-stats.rows[name=a].total_self_us",
            rise_percent=10.0,
            noise_percent=3.0,
            per_step=True,
            take="sum",
        ),
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"budget": {"step_ms": "-5%"}}', "b.json"),
        ('{"step_ms": "-5 percent"}', "b.json"),
        ("step_ms = '- 5 %'", "b.toml"),
        ("[tool.stepscope.budget]\nstep_ms = '-5 %'\n[project]\nname = 'x'", "pyproject.toml"),
    ],
)
def test_a_file_is_toml_json_or_a_pyproject(text: str, name: str) -> None:
    assert parse_budgets(text, name) == (Budget(figure="step_ms", fall_percent=5.0),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("step_ms = ", "cannot be read"),
        ("", "there is no budget"),
        ("[budget]", "there is no budget"),
        ("budget = 3", "not a table"),
        ("step_ms = 'fast'", "'fast' is not a limit"),
        ("step_ms = '+5 ms'", "no % sign"),
        ("step_ms = -1", "-1 is not a limit"),
        ("step_ms = true", "True is not a limit"),
        ("step_ms = nan", "nan is not a limit"),
        ("step_ms = {mots = 3}", "did you mean most"),
        ("step_ms = {take = 'median', most = 1}", "sum, largest, smallest, mean"),
        ("step_ms = {noise_percent = 1}", "has no limit"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_budgets(text, "b.toml")


def test_amounts_are_converted_to_the_unit_of_the_figure() -> None:
    assert Amount(120, "ms").convert("us") == pytest.approx(120_000)
    assert Amount(2, "KiB").convert("bytes") == 2048
    assert Amount(5, "%").convert("percent") == 5
    with pytest.raises(UsageError, match="5 ms is not an amount of bytes"):
        Amount(5, "ms").convert("bytes")


# -- figures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("step_ms", 10.0),
        ("input_percent", 40.0),
        ("overview.step_time.mean", 10.0),
        ("overview.step_account[cause=input].ms", 4.0),
        ('overview.step_account[cause="input"].percent', 40.0),
        ("steps.rows.duration_ms", 10.0),  # the mean of the steps
        ("steps.rows[step=2].duration_ms", 10.0),
        ("op-stats.rows[name=a, side=host].total_self_us", 6000.0),  # per step
        ("op-stats.rows[name=a].occurrences", 4 / 4),
    ],
)
def test_a_figure_of_any_tool_has_an_id(figure: str, value: float) -> None:
    assert read_figure(session(EVEN), figure).value == pytest.approx(value)


def test_several_rows_become_one_value_only_as_asked() -> None:
    one = session(EVEN)
    with pytest.raises(UsageError, match=r"is in 2 rows; choose one with \[COLUMN=TEXT\]"):
        read_figure(one, "op-stats.rows.total_self_us")

    values = [
        read_figure(one, "op-stats.rows.total_self_us", take).value for take in ("sum", "largest", "smallest", "mean")
    ]
    assert values == [10_000, 6000, 4000, 5000]


@pytest.mark.parametrize(
    ("figure", "nearest"),
    [
        ("step_tme", "step_ms"),
        ("step", "nearest: step_ms; others are TOOL.TABLE.COLUMN"),
        ("overveiw.step_time.mean", "overview.step_time.mean"),
        ("overview.step_time.men", "overview.step_time.mean"),
        ("overview.steptime.mean", "overview.step_time.mean"),
        ("op-stats.rows[nam=a].total_self_us", "name"),
        ("op-stats.rows[name=\"a].total_self_us", "is not a condition"),
        ("overview.step_time[a=b].mean", "has no rows"),
    ],
)  # fmt: skip
def test_a_figure_that_is_not_there_gives_the_nearest_names(figure: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=nearest):
        read_figure(session(EVEN), figure)


def test_an_op_that_only_one_side_has_counts_as_zero_on_the_other() -> None:
    gone = draw("host main | M0--------M1--------\nhost main | b---------b---------")
    figure = "op-stats.rows[name=a].total_self_us"

    report = make_gate_report([session(EVEN)], [session(gone)], make_budgets({figure: "+0 %"}))

    assert [(row["before"], row["after"], row["state"]) for row in report.rows] == [(6000.0, 0.0, "kept")]


def test_every_number_of_a_report_is_a_figure() -> None:
    one = session(ON_GPU)
    for tool in ("overview", "idle", "kernel-stats"):
        for name in figure_names(one.ask(tool, None)):
            assert parse_figure(name).tool == tool
            read_figure(one, name, "sum")


# -- noise -----------------------------------------------------------------------------------------------------------


def test_the_noise_of_runs_counts_where_it_is_wider_than_that_of_steps() -> None:
    steps = [10.0, 10.1, 9.9, 10.0], [12.0, 12.1, 11.9, 12.0]
    assert noise_of_difference(*steps, [10.0], [12.0]) == pytest.approx(0.14, abs=0.01)
    # Three runs before, 1 ms apart: a new one lies within t(2) * sqrt(1 + 1/3) standard deviations.
    assert noise_of_difference(*steps, [9.0, 10.0, 11.0], [12.0]) == pytest.approx(4.303 * (4 / 3) ** 0.5, abs=0.01)
    assert noise_of_difference((), (), [1.0], [2.0]) is None


def test_a_figure_without_a_value_in_each_step_is_read_in_groups_of_steps() -> None:
    assert step_samples(session(UNEVEN), "op-stats.rows[name=a].total_self_us") == (6000.0,) * 4
    assert step_samples(session(UNEVEN), "input-pipeline.input.input_percent") == pytest.approx((40, 57.1429, 40, 50))
    assert step_samples(session(UNEVEN), "overview.step_account[cause=input].ms") == (4.0, 8.0, 4.0, 6.0)


# -- verdicts --------------------------------------------------------------------------------------------------------


def test_a_limit_is_kept_broken_or_within_the_noise() -> None:
    assert states(judged(SLOWER, {"step_ms": 12})) == ["kept"]
    assert states(judged(SLOWER, {"step_ms": 11.9})) == ["broken"]  # all steps are equal: no noise
    assert states(judged(UNEVEN, {"step_ms": 11})) == ["within_noise"]  # 11.5 +- 3.05
    assert states(judged(UNEVEN, {"step_ms": 8})) == ["broken"]
    assert states(judged(EVEN, {"step_ms": ">= 10.5"})) == ["broken"]


def test_a_relative_limit_is_judged_against_the_session_before() -> None:
    assert states(judged(SLOWER, {"step_ms": "+20 %"}, EVEN)) == ["kept"]
    [row] = judged(SLOWER, {"step_ms": "+10 %"}, EVEN).rows
    assert (row["state"], row["before"], row["after"], row["limit"]) == ("broken", 10.0, 12.0, pytest.approx(11.0))
    assert states(judged(UNEVEN, {"step_ms": "+10 %"}, EVEN)) == ["within_noise"]
    assert states(judged(SLOWER, {"step_ms": {"rise_percent": 10, "noise_percent": 10}}, EVEN)) == ["within_noise"]
    assert states(judged(EVEN, {"step_ms": "-5 %"}, SLOWER)) == ["broken"]  # it may not fall by more


def test_a_second_baseline_that_differs_makes_a_difference_noise() -> None:
    one = judged(SLOWER, {"step_ms": "+5 %"}, EVEN, EVEN)
    two = judged(SLOWER, {"step_ms": "+5 %"}, EVEN, UNEVEN)

    assert (states(one), states(two)) == (["broken"], ["within_noise"])


def test_a_figure_that_was_not_recorded_cannot_be_checked() -> None:
    report = judged(EVEN, {"memory_bytes": "1 GB", "step_ms": 20})

    assert (report.verdict, states(report)) == ("failed", ["unknown", "kept"])
    assert "record" in str(report.rows[0]["reason"])


def test_without_noise_a_difference_is_a_warning_that_says_what_to_do() -> None:
    once = draw("host main | M0----------\nhost main | I---a-------")
    report = judged(once, {"step_ms": 11})

    assert (report.verdict, states(report)) == ("warned", ["within_noise"])
    assert "record two steps or more" in report.verdict_text


def test_a_baseline_of_another_device_or_model_is_refused() -> None:
    with pytest.raises(UsageError, match=r"\[other-baseline\].*the device differs: CPU before, GPU after"):
        judged(ON_GPU, {"step_ms": "+5 %"}, EVEN)
    ops = "host main | M0--------M1--------\nhost main | {0}-{1}-{2}-{3}-{4}-{0}-{1}-{2}-{3}-{4}-"
    with pytest.raises(UsageError, match="the model, or how it is compiled, differs: 0 % of op names are the same"):
        judged(draw(ops.format(*"abcde")), {"step_ms": "+5 %"}, draw(ops.format(*"vwxyz")))

    accepted = make_gate_report([session(EVEN)], [session(ON_GPU)], make_budgets({"step_ms": "+5 %"}), True)
    assert "the device differs: CPU before, GPU after" in accepted.notes


def test_findings_are_broken_budgets_and_advice() -> None:
    report = judged(SLOWER, {"step_ms": "+5 %"}, EVEN)

    assert [(each.rule, each.level) for each in report.findings] == [
        ("budget/step_ms", "error"),
        ("advice/input_preprocessing", "note"),
    ]
    assert report.findings[0].message.startswith("step_ms: 12 ms (10 ms before) is above the limit of 10.500 ms")
