"""Recognises a capture of first calls: the program traced and compiled in it, and hardly any later call followed.

Such a capture says what the start of a program costs.  It says nothing about the steps after it, so no advice about
"every step" can be based on it.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts.compiles import compiles_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.compilations import function_of_program
from stepscope.analysis.trace.grouping import enclosing_events
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import distinct
from stepscope.records import dataclass
from stepscope.vocabulary.jax import function_of_call
from stepscope.vocabulary.lookup import type_names


@dataclass(frozen=True)
class FirstCalls:
    """A capture that holds first calls only.

    Attributes:
        percent: share of the captured time, or of the only step, that is tracing and compiling.
        name: the function or program that was traced or compiled; empty if unknown.
        is_step: a mark of the program surrounds it: it is one step, else the capture as a whole.
        later_calls: how many calls of that function were recorded that neither traced nor compiled it.
    """

    percent: float
    name: str
    is_step: bool
    later_calls: int = 0


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
    later = _count_calls(trace, name) - facts.programs[0].times if name else 0
    return FirstCalls(percent, name, steps.source == "markers", max(later, 0))


def _count_calls(trace: HostTrace, program: str) -> int:
    """How often a traced function, or the function of a compiled program, was called; JAX may record a call twice, one
    inside the other."""
    calls = events_of_kind(trace, EventKind.TRACED_FUNCTION)
    wanted = {program, function_of_program(program)}
    types = distinct(trace.events.type[calls]).astype(np.int64)
    names = zip(types.tolist(), type_names(trace, types), strict=True)
    mine = [type_ for type_, name in names if name in wanted or function_of_call(name) in wanted]
    calls = calls[np.isin(trace.events.type[calls], mine)]
    among = np.zeros(len(trace.events), np.bool_)
    among[calls] = True
    return len(distinct(enclosing_events(trace, among)[calls]))
