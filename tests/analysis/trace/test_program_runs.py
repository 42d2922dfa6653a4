"""Runs of programs on devices, and the ops in them."""

from __future__ import annotations

import numpy as np
from draw import SORTS, Sort, draw

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.lost_work import share_lost
from stepscope.analysis.trace.program_runs import ops_of_run, runs_on_devices
from stepscope.model import EventKind, HostTrace

SORTS = SORTS | {
    "F": Sort(EventKind.TRACED_FUNCTION, "PjitFunction(step)"),
    "R": Sort(EventKind.MODULE, "jit_step(1)"),
}
# The last op seems to start before its program: the clocks of two lines have noise.
CALLED = """
    host main    | F-    F-    F-
    tpu0 Modules |  R---  R---  R----
    tpu0 ops     |  a-b-  a-b- a---b-
"""
LOST = """
    tpu0 Modules | R-------  R-------
    tpu0 ops     | a-  c---  a---
"""
OP_BY_OP = """
    tpu0 Modules | R-R-R-R-  R-R-R-R-  R-R-R-R-  R-R-R-R-
    tpu0 ops     | e-m-m-u-  e-m-m-u-  e-m-m-u-  e-m-m-u-
"""


def runs(trace: HostTrace) -> np.ndarray:
    (found,) = runs_on_devices(trace).values()
    return found


def test_an_op_is_of_the_run_that_holds_most_of_it() -> None:
    trace = draw(CALLED, SORTS)
    calls = np.flatnonzero(trace.events.kind == EventKind.TRACED_FUNCTION)
    ops = np.flatnonzero(trace.events.kind == EventKind.DEVICE_OP)

    assert [trace.name_of(op) for op in ops_of_run(trace, runs(trace)).tolist()] == ["a", "a", "a"]
    assert forest(trace).cause[ops].tolist() == np.repeat(calls, 2).tolist()


def test_time_of_programs_without_ops_is_lost_work() -> None:
    trace = draw(LOST, SORTS)
    at = runs(trace)
    start = trace.events.start_ps[at]

    assert share_lost(trace, start, start + trace.events.duration_ps[at]) == 1 - 10 / 16


def test_programs_of_one_name_are_told_apart_by_their_first_op() -> None:
    found = steps_of(draw(OP_BY_OP, SORTS))

    assert (found.start_ps // 10**9).tolist() == [0, 10, 20, 30]
