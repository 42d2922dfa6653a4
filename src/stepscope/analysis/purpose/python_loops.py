"""A loop of the program in the model, of rounds that do not need each other: all of them could be one op.

for graph in range(count):                        # 300 rounds a step
    pooled.append(h[owner == graph].mean(dim=0))  # takes nothing of the round before
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.asked_by import function_that_asked
from stepscope.analysis.account.statements import main_statement
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.analysis.trace.spans import is_outermost
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64
from stepscope.records import dataclass

_MANY = 50  # starts of one op in a step: fewer are layers, heads or parts of a model; as for functions beside it


@dataclass(frozen=True)
class PythonLoop:
    """A loop of independent rounds that most of the computing is for.

    Attributes:
        rows: the ops that it starts, and their backward work: rows of events.
        what: the loop and its most frequent op, in words.
    """

    rows: I64
    what: str


def loop_of_model(trace: HostTrace) -> PythonLoop | None:
    """The loop of independent rounds in the function that asked for most of what the loop's thread computes; None where
    there is none, or it was not recorded whether its rounds need each other."""
    line, seen = threads_of(trace).main, observed_time(trace)
    asked = function_that_asked(trace, line, seen) if line >= 0 and len(seen.start) else None
    if asked is None:
        return None
    said = main_statement(trace, line, trace.name_of(asked.function.frame), asked.function.spans)
    if said is None or not said.loop or said.carries or said.is_same:
        return None
    ops = events_of_kind(trace, EventKind.OP)
    ops = ops[trace.events.line[ops] == line]
    start = trace.events.start_ps[ops]
    outer = is_outermost(start, start + trace.events.duration_ps[ops])
    outer &= asked.function.certain.overlap_ps(start, start + 1) > 0
    rows, steps = ops[outer].astype(np.int64), max(len(whole_steps(trace).number), 1)
    types, calls = np.unique(trace.events.type[rows], return_counts=True)
    if not len(rows) or calls.max() < _MANY * steps:
        return None
    backward = events_of_kind(trace, EventKind.BACKWARD).astype(np.int64)
    rows = np.append(rows, backward[np.isin(forward_events(trace, backward), rows)])
    name = trace.name_of(int(ops[outer][trace.events.type[ops[outer]] == types[calls.argmax()]][0]))
    often = f"it starts {calls.max() / steps:,.0f} `{name}` a step, and no round needs the one before"
    return PythonLoop(rows, f"is a loop in Python at {said.file}:{said.loop}, with its gradients: {often}")
