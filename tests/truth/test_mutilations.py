"""Recordings with less in them: the same answer, or none, and never another confident one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.mutilation.changes import CHANGES
from bench.mutilation.jobs import FRAMEWORKS, KINDS, draw, play
from bench.mutilation.judge import FALSE, HONEST, RIGHT, ask, judge
from bench.mutilation.known import Known
from bench.mutilation.rows import DEVICE, MARK, Recording, read
from bench.mutilations import judge_of, mutilate, still_false

SAMPLE = 12


def report(verdict: str, advice: str, step: float | None, gain: float | None = None) -> dict[str, object]:
    return {
        "verdict": verdict,
        "advice": [{"class": advice, "predicted_speedup": gain}],
        "step_time_ms": {"mean": step},
        "steps_source": "markers",
        "steps_confidence": None,
    }


INPUT = Known(("input_bound",), ("input_python", "input_no_prefetch"), (16.0, 16.0), gain=4.0)


ASKED = [(framework, kind, change) for framework in sorted(FRAMEWORKS) for kind in sorted(KINDS)
         for change in sorted(CHANGES) if f"{framework}/{kind}/{change}" not in still_false()]  # fmt: skip


@settings(max_examples=SAMPLE)
@given(st.sampled_from(ASKED))
def test_no_mutilation_gets_another_confident_answer(asked: tuple[str, str, str]) -> None:
    framework, kind, change = asked
    recording, known = draw(framework, kind)
    made = mutilate(recording, f"{framework}/{kind}", change)
    assume(made is not None)
    assert made is not None
    found = judge_of(made, known, change)
    assert found.word != FALSE, f"python -m bench.mutilations {'/'.join(asked)}: {found.said}; {found.why}"


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_a_drawn_recording_reads_back_as_it_was_written(framework: str, tmp_path: Path) -> None:
    recording, _ = draw(framework, "communication", steps=2)
    path = tmp_path / ("recording" + recording.suffix)
    path.write_bytes(recording.encode())
    assert comparable(read(path)) == comparable(recording)


def comparable(recording: Recording) -> list[tuple[object, ...]]:
    rows = recording.rows
    return sorted((row.what, str(row.line), row.name, row.start, row.duration or 0, str(row.stats)) for row in rows)


def test_a_name_stands_for_one_file() -> None:
    first, second = (mutilate(draw("torch", "input")[0], "torch/input", "noise") for _ in range(2))
    assert first is not None and second is not None
    assert first.encode() == second.encode()


def test_a_change_leaves_the_recording_that_it_was_made_from() -> None:
    recording, _ = draw("jax-gpu", "input", steps=3)
    before = recording.encode()
    for change in CHANGES:
        mutilate(recording, "jax-gpu/input", change)
    assert recording.encode() == before


def test_the_device_ends_after_two_steps() -> None:
    recording, _ = draw("torch", "healthy")
    made = mutilate(recording, "torch/healthy", "device-ends")
    assert made is not None
    second = sorted(row.end for row in recording.rows if row.what == MARK)[1]
    assert max(row.start for row in made.rows if row.what == DEVICE) < second
    assert max(row.start for row in recording.rows if row.what == DEVICE) > second


def test_the_answer_of_a_drawn_job_follows_from_its_times() -> None:
    pieces, known = play("input")
    assert known.step_ms is not None and known.gain is not None
    waits = sum(one.end - one.start for one in pieces if one.what == "input")
    assert waits / 8 / 1000 / known.step_ms[0] > 0.7, "most of the step is waiting for a batch"
    kernels = sum(one.end - one.start for one in pieces if one.what == "kernel")
    assert known.gain == pytest.approx(known.step_ms[0] / (kernels / 8 / 1000))


def test_right_honest_and_false_are_told_apart() -> None:
    assert judge(report("input_bound", "input_python", 16.1, 3.8), INPUT).word == RIGHT
    assert judge(report("unknown", "none", None), INPUT).word == HONEST
    assert judge(report("input_bound", "none", 16.1), INPUT).word == HONEST
    assert judge(report("host_bound", "python_overhead", 16.1, 3.8), INPUT).word == FALSE
    assert judge(report("input_bound", "input_python", 8.0, 3.8), INPUT).why == "a step is 16.00 to 16.00 ms"
    assert judge(report("input_bound", "input_python", 16.1, 12.5), INPUT).why == "at most 4.00x is possible"
    assert judge(report("input_bound", "input_python", 80.5, 3.8), INPUT, longer=(5.0, 5.0)).word == RIGHT


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_a_loop_that_runs_ahead_of_a_lost_record_has_no_step_time(framework: str) -> None:
    recording, known = draw(framework, "ahead")
    made = mutilate(recording, f"{framework}/ahead", "device-ends")
    assert made is not None

    assert ask(made)["step_time_ms"]["mean"] is None
    assert judge_of(made, known, "device-ends").word != FALSE
