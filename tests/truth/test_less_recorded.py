"""Recordings that lack a part of what they had give the same answer, or none: one of each kind that was false."""

from __future__ import annotations

import pytest

from bench.mutilation.jobs import FRAMEWORKS, draw
from bench.mutilation.judge import FALSE, ask
from bench.mutilations import judge_of, mutilate


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_a_loop_that_runs_ahead_of_a_lost_record_has_no_step_time(framework: str) -> None:
    recording, known = draw(framework, "ahead")
    made = mutilate(recording, f"{framework}/ahead", "device-ends")
    assert made is not None

    assert ask(made)["step_time_ms"]["mean"] is None
    assert judge_of(made, known, "device-ends").word != FALSE
