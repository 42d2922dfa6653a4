"""How many batches a step is."""

from __future__ import annotations

import pytest

from stepscope.analysis.account import steps_tool
from stepscope.analysis.steps.batches import Batches, batches_of
from stepscope.model import EventKind
from tests.helpers.draw import Sort, draw

_UPDATE = {"U": Sort(EventKind.ANNOTATION, "Optimizer.step#SGD.step")}


@pytest.mark.parametrize(
    ("picture", "found"),
    [
        ("host main | M0------M1------M2------M3------\nhost main | I-a-    I-a-    I-a-    I-a-", Batches()),
        ("host main | M0------M1------M2------M3------\nhost main | I-a-I-a-I-a-I-a-I-a-I-a-I-a-I-a-", Batches(2)),
        ("host main | M0------M1------M2------M3------\nhost main | I-a-I-a-I-a-    I-a-    I-a-I-a-", Batches()),
        ("host main | M0--M1--M2--M3--M4--M5--\nhost main | aa  aaU-aa  aaU-aa  aaU-", Batches(1, 2)),
        ("host main | M0--M1--M2--M3--M4--M5--\nhost main | aaU-aaU-aaU-aaU-aaU-aaU-", Batches()),
    ],
    ids=["one", "two", "no regular number", "micro-batches", "an update each"],
)
def test_batches_of_a_step(picture: str, found: Batches) -> None:
    assert batches_of(draw(picture, _UPDATE)) == found


def test_a_report_of_steps_says_of_how_many_batches_they_are() -> None:
    trace = draw("host main | M0------M1------M2------M3------\nhost main | I-a-I-a-I-a-I-a-I-a-I-a-I-a-I-a-")
    report = steps_tool.merge([steps_tool.partial(trace)])

    assert report.to_dict()["batches_a_step"] == 2
    assert "each step is 2 batches: its time is that of all of them" in report.warnings


def test_times_of_steps_of_other_numbers_of_batches_are_compared_per_batch(tmp_path) -> None:
    from stepscope.analysis.compare.compare import compare
    from stepscope.analysis.compare.sides import side_of
    from stepscope.analysis.registry import tool_named

    def side(picture: str):
        trace = draw(picture)
        return side_of("run", "path", lambda tools, _: {each: _report(tool_named(each), trace) for each in tools}, ())

    one = side("host main | M0--M1--M2--M3--M4--M5--\nhost main | I-a-I-a-I-a-I-a-I-a-I-a-")
    two = side("host main | M0------M1------M2------M3------\nhost main | I-a-I-a-I-a-I-a-I-a-I-a-I-a-I-a-")
    report = compare(one, two, ["steps"])

    assert report.difference.ms == pytest.approx(0.0, abs=0.01)
    assert "a step is 1 batches before and 2 after: step times are compared per batch" in report.notes


def _report(tool, trace):
    return tool.merge([tool.partial(trace)])
