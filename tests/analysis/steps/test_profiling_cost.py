"""What profiling cost is in the profile, and every face tells it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browsing import profiled_trace, store_profile

import stepscope
from stepscope import ProfilerOptions
from stepscope.analysis.steps.profiling_cost import ProfilingCost, profiling_cost
from stepscope.cli.main import run
from stepscope.model import EventKind, PlaneKind, TraceBuilder

# The medians of the steps before a capture and inside it -> what is said of them.
COSTS = [
    ({"steps_before": 20, "step_ms_before": 100.0, "steps_inside": 4, "step_ms_inside": 112.5}, 12.5),
    ({"steps_before": 20, "step_ms_before": 100.0, "steps_inside": 4, "step_ms_inside": 95.0}, -5.0),
    ({"steps_before": 2, "steps_inside": 4, "step_ms_inside": 112.5}, 0.0),  # by four marks in 400 ms
    ({"steps_before": 20, "step_ms_before": 100.0, "steps_inside": 4, "step_ms_inside": float("nan")}, 0.0),
    ({}, None),
]


@pytest.fixture(params=COSTS, ids=["longer", "shorter", "too few before", "no number", "not measured"])
def profiled(request, tmp_path) -> tuple[Path, float | None]:
    """A session of four steps and what profiling cost in it."""
    cost, percent = request.param
    return store_profile(tmp_path, "run", profiled_trace(**cost)), percent


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(words) == 0
    return capsys.readouterr().out


NOISE = [
    # quartiles before and inside, of medians 100 and 112.5 -> whether the difference tells anything
    ((98.0, 102.0), (110.0, 115.0), True),
    ((90.0, 120.0), (110.0, 115.0), False),
    ((98.0, 102.0), (95.0, 130.0), False),
    (None, None, True),  # an older profile
]


@pytest.mark.parametrize(("before", "inside", "is_clear"), NOISE)
def test_a_cost_within_the_normal_variation_is_not_clear(tmp_path, capsys, before, inside, is_clear):
    cost = dict(COSTS[0][0])
    for name, spread in (("before", before), ("inside", inside)):
        if spread:
            cost |= {f"step_ms_{name}_low": spread[0], f"step_ms_{name}_high": spread[1]}
    path = store_profile(tmp_path, "run", profiled_trace(**cost))
    report = stepscope.load(path).overview()

    assert report.to_dict()["profiling_cost_is_clear"] == is_clear
    least, most = report.to_dict()["profiling_cost_limits_percent"]
    assert (least == 0.0) != is_clear or before is None
    assert f"({least:.0f} to {most:.0f})" in (said := printed(capsys, "summary", str(path))) or f"{most:.0f} %" in said
    assert ("within their normal variation" in report._repr_html_()) != is_clear


def test_a_step_that_got_no_longer_is_no_cost_with_a_sign(tmp_path, capsys):
    cost = COSTS[1][0] | {"step_ms_before_low": 90.0, "step_ms_before_high": 120.0}
    cost |= {"step_ms_inside_low": 94.0, "step_ms_inside_high": 96.0}
    said = printed(capsys, "summary", str(store_profile(tmp_path, "run", profiled_trace(**cost))))

    assert ", profiling cost 0 to 7 %" in said
    assert "-5.0 %" not in said


SENTENCES = {
    12.5: "cost of profiling: steps inside the capture were 12.5 % longer than the 20 before it (median 100 ms)",
    -5.0: "cost of profiling: steps inside the capture were 5.0 % shorter than the 20 before it (median 100 ms)",
    0.0: "cost of profiling: recording events made the program 0.0 to 0.0 % slower, by their number",
}


# Profiling speeds nothing up: steps that were longer before were so for another reason.
BESIDE_THE_STEP_TIME = {
    12.5: ", profiling cost 12 %", -5.0: ", cost of profiling not measured", 0.0: ", profiling cost 0 %", None: "",
}  # fmt: skip


def test_every_face_tells_it(profiled, capsys):
    path, percent = profiled
    report = stepscope.load(path).overview()

    assert report.to_dict()["profiling_cost_percent"] == percent
    assert json.loads(printed(capsys, "overview", str(path), "--format", "json"))["profiling_cost_percent"] == percent
    for shown in (printed(capsys, "overview", str(path)), report._repr_html_()):
        assert SENTENCES.get(percent, "") in " ".join(shown.split())
        assert ("cost of profiling" in shown) == (percent is not None)
    (line,) = (line for line in printed(capsys, "summary", str(path)).splitlines() if line.startswith("step time"))
    assert line.endswith(f"){BESIDE_THE_STEP_TIME[percent]}")


def test_what_was_recorded_is_said_beside_the_cost(tmp_path, capsys):
    path = store_profile(tmp_path, "run", profiled_trace(**COSTS[0][0], recorded="ops, Python calls"))

    assert "steps inside the capture with ops, Python calls were" in " ".join(
        printed(capsys, "overview", str(path)).split()
    )


@pytest.mark.parametrize(
    ("framework", "level", "python", "said"),
    [
        ("torch", 3, 1, "ops, shapes and memory, Python calls, stack samples"),
        ("torch", 2, 0, "ops, shapes, stack samples"),
        ("jax", 2, 0, "ops, stack samples"),
    ],
)
def test_options_say_what_they_record(framework, level, python, said):
    assert ProfilerOptions(host_tracer_level=level, python_tracer_level=python).describe(framework) == said


@pytest.mark.parametrize(
    ("framework", "events", "percent"),
    [("pytorch", "oooo", 3.9), ("tensorflow", "oooo", 4.71), ("jax", "oooo", 1.27), ("jax", "pppp", 2.09)],
)
def test_too_few_steps_to_compare_leave_the_number_of_events_to_tell_the_cost(framework, events, percent):
    builder = TraceBuilder("host")
    builder.framework = framework
    builder.plane("/stepscope:capture", stats={"steps_before": 1, "step_ms_before": 0.0})
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for at, kind in enumerate(events):
        line.event("f", at * 25 * 10**6, 20 * 10**6, EventKind.OP if kind == "o" else EventKind.PYTHON_CALL)
    line.event("last of 100 us", 99 * 10**6, 10**6, EventKind.ANNOTATION)

    cost = profiling_cost(builder.build())

    assert cost is not None
    assert cost.is_counted
    assert cost.percent == pytest.approx(percent)


def test_without_steps_before_the_number_of_python_calls_tells_the_cost():
    builder = TraceBuilder("host")
    builder.framework = "python"
    builder.plane("/stepscope:capture", stats={"python_calls_ms": 20.0})
    builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main").event("f", 0, 120 * 10**9, EventKind.PYTHON_CALL)

    cost = profiling_cost(builder.build())

    assert cost is not None
    assert cost.sentence() == "recording Python calls made the program 20.0 to 100.0 % slower, by their number"


@pytest.mark.parametrize(
    ("steps_before", "ms_queued", "is_clear"),
    [(20, 0.0, True), (20, 20.0, True), (20, 40.0, False), (3, 0.0, False)],
    ids=["recording", "a little waiting", "half of it is waiting for a processor", "three steps, from a full queue"],
)
def test_a_job_is_disturbed_only_by_what_waiting_does_not_explain(steps_before, ms_queued, is_clear):
    cost = ProfilingCost(100.0, 170.0, steps_before, 10, (98.0, 102.0), (165.0, 175.0), ms_queued=ms_queued)

    assert (cost.is_clear, cost.disturbs) == (is_clear, is_clear)
    assert cost.short_text() == ("profiling cost 70 % (62 to 79)" if is_clear else "cost of profiling not measured")


def test_a_cost_beside_a_few_steps_is_known_where_the_number_of_events_explains_it():
    cost = ProfilingCost(100.0, 170.0, 3, 10, (98.0, 102.0), (165.0, 175.0), ms_recording=40.0)

    assert (cost.short_text(), cost.disturbs) == ("profiling cost 70 % (62 to 79)", False)
