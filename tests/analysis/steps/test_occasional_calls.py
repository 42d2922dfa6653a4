"""A loop without functions of its own: calls of libraries' functions are its rhythm, but for those that come rarely."""

from __future__ import annotations

import numpy as np
import pytest
from draw import Sort, draw

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder
from stepscope.vocabulary.python import PLAIN

MS = 10**9
CALLED = (("E", "environment"), ("A", "add"), ("N", "predict"), ("S", "sample"), ("U", "update"))
MEAN = "$numpy/_core/_methods.py:115 _mean"


def _loop(turns: int, every: int, rare: str, longer_ms: int = 0) -> HostTrace:
    """Turns of 10 ms that begin with `prod` and end with `max`; every so many a rare call, after which it is longer."""
    builder = TraceBuilder("host")
    builder.framework = PLAIN
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "MainThread", kind=LineKind.THREAD)
    at = 0
    for turn in range(turns):
        line.event("$numpy/_core/fromnumeric.py:3287 prod", at, MS // 10, EventKind.PYTHON_CALL)
        line.event("$numpy/_core/_methods.py:39 _amax", at + 6 * MS, MS // 10, EventKind.PYTHON_CALL)
        at += 10 * MS
        if turn % every == 0:
            line.event(rare, at - 3 * MS, MS // 5, EventKind.PYTHON_CALL)
            at += longer_ms * MS
    return builder.build()


@pytest.mark.parametrize(
    ("rare", "longer_ms", "steps"),
    [(MEAN, 0, 40), (MEAN, 20, 10), ("$train.py:7 update", 0, 10)],
    ids=["what is printed", "what the loop goes on with", "a function of the program"],
)
def test_what_a_loop_calls_now_and_then_starts_no_step(rare: str, longer_ms: int, steps: int) -> None:
    assert len(steps_of(_loop(40, 4, rare, longer_ms)).number) == pytest.approx(steps, abs=1)


def test_a_loop_before_that_calls_some_of_the_same_functions_is_none_of_its_turns() -> None:
    sorts = {letter: Sort(EventKind.PYTHON_CALL, f"$dqn.py:{at} {name}") for at, (letter, name) in enumerate(CALLED)}
    fills, turn = "E-A-" * 12, "N-E-A-S---------N-N-U---"

    steps = steps_of(draw(f"host main | {fills}{turn * 8}", sorts))

    assert (len(steps.number), float(np.median(steps.length_ps))) == (8, len(turn) * MS)


def test_a_loop_that_fills_less_than_half_of_the_calls_is_not_told_from_what_came_before() -> None:
    sorts = {letter: Sort(EventKind.PYTHON_CALL, f"$dqn.py:{at} {name}") for at, (letter, name) in enumerate(CALLED)}

    assert steps_of(draw(f"host main | {'E-A-' * 60}{'N-E-A-S---------N-N-U---' * 6}", sorts)).source == "none"
