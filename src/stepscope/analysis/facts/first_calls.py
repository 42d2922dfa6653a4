"""Recognises a capture of first calls only: the program traced and compiled in it, and no later call followed.

Such a capture says what the start of a program costs.  It says nothing about the steps after it, so no advice about
"every step" can be based on it.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts.compiles import compiles_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass


@dataclass(frozen=True)
class FirstCalls:
    """A capture that holds first calls only.

    Attributes:
        percent: share of the captured time, or of the only step, that is tracing and compiling.
        name: the function or program that was traced or compiled; empty if unknown.
        is_step: a mark of the program surrounds it: it is one step, else the capture as a whole.
    """

    percent: float
    name: str
    is_step: bool


def first_calls_of(trace: HostTrace) -> FirstCalls | None:
    """The first calls if the capture holds nothing else; None otherwise.

    That is so if there is one step or none, a noticeable part of it compiles, and nothing is compiled again and again.
    """
    steps = steps_of(trace)
    facts = compiles_of(trace)
    if len(steps.number) != 1 or facts is None or facts.repeated:
        return None
    compiling = np.flatnonzero((trace.events.kind == EventKind.COMPILE) & (steps.label >= 0))
    whole = int((steps.end_ps - steps.start_ps).sum())
    if not len(compiling) or whole <= 0:
        return None
    percent = 100.0 * int(spans_of(trace, compiling).overlap_ps(steps.start_ps, steps.end_ps).sum()) / whole
    if percent < LARGE_SHARE:
        return None
    name = facts.programs[0].name if facts.programs else ""
    return FirstCalls(percent, name, steps.source == "markers")
