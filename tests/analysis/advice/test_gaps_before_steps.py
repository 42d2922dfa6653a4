"""What precedes the first work of each step: the batch is made there if that work takes an array in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import Sort, draw

from stepscope.analysis.advice.items import Advice
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules import python_overhead, waiting
from stepscope.analysis.overview import overview_tool as overview
from stepscope.model import EventKind as K

STEPS = 6
TAKES_IN = {"V": Sort(K.COPY_HOST_TO_DEVICE_CALL, "DevicePut"), "c": Sort(K.OP, "aten::cat")}


def advice(rule: Rule, rows: list[tuple[str, str]], seen: bool, framework: str = "jax") -> Advice | None:
    """What a rule says of six alike steps of 8 ms, whose thread was seen to run all the time, or not."""
    usage = [(0, 8 * STEPS, 8 * STEPS, 0)] if seen else []
    picture = "\n".join(f"{place}| {events * STEPS}" for place, events in rows)
    trace = replace(draw(picture, TAKES_IN, usage=usage), framework=framework)
    report = overview.merge([overview.partial(trace)])
    assert isinstance(report, overview.OverviewReport)
    return rule(report.context)


GAP = [("host main ", "M---    "), ("host main ", "F---    "), ("host main ", "V       "), ("host pool ", " o--    ")]


def test_an_array_taken_in_after_silence_is_the_batch_but_nothing_says_that_python_made_it() -> None:
    found = advice(waiting.RULES[0], GAP, seen=False)

    assert found is not None
    assert "Python" not in found.title + found.evidence
    assert "takes in an array of the host" in found.evidence
    assert found.confidence < 0.5
    assert found.predicted_step_time_ms is None  # what was not recorded promises no gain
    assert "that gap was not recorded" in found.reasoning


def test_an_array_taken_in_after_python_is_the_batch_that_it_made() -> None:
    found = advice(waiting.RULES[0], GAP, seen=True)

    assert found is not None
    assert "Python before its first op or program" in found.evidence
    assert (found.step_time_ms, found.predicted_step_time_ms) == (8.0, 4.0)


@pytest.mark.parametrize("seen", [True, False])
def test_nothing_is_said_where_no_array_is_taken_in(seen: bool) -> None:
    assert advice(waiting.RULES[0], [row for row in GAP if "V" not in row[1]], seen) is None


def test_silence_after_an_op_that_moves_data_is_not_taken_off_the_python() -> None:
    rows = [("host main ", "M-------"), ("host main ", "c-  aY--")]

    found = advice(python_overhead.RULES[0], rows, seen=False, framework="pytorch")

    assert found is not None
    assert "for 37.5 % of each step Python runs and nothing computes" in found.evidence
