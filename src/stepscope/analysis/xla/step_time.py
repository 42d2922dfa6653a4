"""The steps that utilization is measured over, and how much of each op's work lies in them."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of, steps_of_events, whole_steps
from stepscope.analysis.xla.op_time import OpTime
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I64
from stepscope.records import dataclass


@dataclass(frozen=True)
class StepTime:
    """Steps that are wholly in the capture: how many, and their time together in ps."""

    steps: int
    total_ps: int


def step_time(trace: HostTrace) -> StepTime | None:
    """The whole steps of a trace; None if there are none."""
    steps = whole_steps(trace)
    total = int(steps.length_ps.sum())
    return StepTime(len(steps.number), total) if total > 0 else None


def share_in_steps(trace: HostTrace, rows: I64, op: I64, size: int) -> F64:
    """The share of each op's events that belong to whole steps, 0 to 1: float64 of shape (size,).

    Args:
        rows: int64 of shape (n,), events.
        op: int64 of shape (n,), the op of each, less than `size`.
    """
    steps = whole_steps(trace)
    if not len(steps.number):
        return np.zeros(size)
    step = steps_of_events(trace, rows)
    numbers = np.append(steps_of(trace).number, -1)
    inside = (step >= 0) & np.isin(numbers[np.maximum(step, 0)], steps.number)
    every = np.bincount(op, minlength=size)
    return np.bincount(op, weights=inside, minlength=size) / np.maximum(every, 1)


def op_share_in_steps(trace: HostTrace, done: OpTime) -> F64:
    """`share_in_steps` of instructions."""
    return share_in_steps(trace, done.rows, done.op, len(done))
