"""A loop of the program in the model: of rounds that do not need each other, or of tiny ops, as a recurrence over time.

for graph in range(count):                        # 300 rounds a step
    pooled.append(h[owner == graph].mean(dim=0))  # takes nothing of the round before: all could be one op

for t in range(x.shape[1]):                       # 160 rounds a step
    h = torch.tanh(x[:, t] @ wx + h @ wh)         # needs `h` of the round before: one layer could run all
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.asked_by import function_that_asked
from stepscope.analysis.account.functions import LoopFunction
from stepscope.analysis.account.statements import carrying_loop, main_statement
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.purpose.loops import SHORT_PS
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.analysis.trace.spans import is_outermost
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64
from stepscope.records import dataclass

_MOST_OF = 0.5  # of the time of its ops is in tiny ones: with less it computes
_MANY = 50  # starts of one op in a step: fewer are layers, heads or parts of a model; as for functions beside it


@dataclass(frozen=True)
class PythonLoop:
    """A loop that most of the computing is for.

    Attributes:
        rows: the ops that it starts, and their backward work: rows of events.
        what: the loop and its most frequent op, in words.
    """

    rows: I64
    what: str


def loop_of_model(trace: HostTrace) -> PythonLoop | None:
    """The loop of independent rounds in the function that asked for most of what the loop's thread computes; None where
    there is none, or it was not recorded whether its rounds need each other."""
    asked = _asked_function(trace)
    if asked is None:
        return None
    line, function = asked
    said = main_statement(trace, line, trace.name_of(function.frame), function.spans)
    if said is None or not said.loop or said.carries or said.is_same:
        return None
    rows, often, _ = _started(trace, line, function)
    if not often:
        return None
    said_often = f"it starts {often}, and no round needs the one before"
    rows = np.append(rows, _gradients(trace, rows))
    return PythonLoop(rows, f"is a loop in Python at {said.file}:{said.loop}, with its gradients: {said_often}")


def recurrence_of_model(trace: HostTrace) -> PythonLoop | None:
    """The same of a loop whose rounds need each other, where most of what it computes is starting tiny ops: a layer
    that runs all rounds starts one."""
    asked = _asked_function(trace)
    if asked is None:
        return None
    line, function = asked
    loop = carrying_loop(trace, line, trace.name_of(function.frame), function.spans)
    if loop is None:
        return None
    rows, often, rounds = _started(trace, line, function)
    if not often:
        return None
    rows = np.append(rows, _gradients(trace, rows))
    if tiny_share(trace, rows) < _MOST_OF:
        return None
    ops = len(rows) / max(len(whole_steps(trace).number), 1)
    said = f"it starts {often}, {ops:,.0f} ops in all, most of them too small to take longer than being started"
    carries = f"each of about {rounds:,} rounds needs `{loop.carries}` of the one before"
    return PythonLoop(rows, f"is a loop in Python at {loop.file}:{loop.line}, with its gradients: {said}; {carries}")


def _asked_function(trace: HostTrace) -> tuple[int, LoopFunction] | None:
    """The loop's thread, and the function that asked for most of what it computes."""
    line, seen = threads_of(trace).main, observed_time(trace)
    asked = function_that_asked(trace, line, seen) if line >= 0 and len(seen.start) else None
    return None if asked is None else (line, asked.function)


def _started(trace: HostTrace, line: int, function: LoopFunction) -> tuple[I64, str, int]:
    """The outermost ops that a function starts; the most frequent one in words, such as "320 `aten::mm` a step", empty
    where none is started often; and how often it starts the least frequent one of those, as once in each round."""
    ops = events_of_kind(trace, EventKind.OP)
    ops = ops[trace.events.line[ops] == line]
    start = trace.events.start_ps[ops]
    outer = is_outermost(start, start + trace.events.duration_ps[ops])
    outer &= function.certain.overlap_ps(start, start + 1) > 0
    rows, steps = ops[outer].astype(np.int64), max(len(whole_steps(trace).number), 1)
    types, calls = np.unique(trace.events.type[rows], return_counts=True)
    if not len(rows) or calls.max() < _MANY * steps:
        return rows, "", 0
    name = trace.name_of(int(rows[trace.events.type[rows] == types[calls.argmax()]][0]))
    rounds = round(calls[calls >= _MANY * steps].min() / steps)
    return rows, f"{calls.max() / steps:,.0f} `{name}` a step", rounds


def _gradients(trace: HostTrace, rows: I64) -> I64:
    """The backward work of some ops."""
    backward = events_of_kind(trace, EventKind.BACKWARD).astype(np.int64)
    found: I64 = backward[np.isin(forward_events(trace, backward), rows)]
    return found


def tiny_share(trace: HostTrace, rows: I64) -> float:
    """The share of the time of some ops in those that are too short to do more than start.

    A busy machine and the recording stretch single calls, so each counts with the median of its type.
    """
    if not len(rows):
        return 0.0
    types, length = trace.events.type[rows], trace.events.duration_ps[rows]
    order = np.lexsort((length, types))
    first = np.flatnonzero(np.append(True, np.diff(types[order]) != 0))
    calls = np.diff(np.append(first, len(rows)))
    median = length[order][first + (calls - 1) // 2]
    whole = median * calls
    return float(whole[median < SHORT_PS].sum() / max(whole.sum(), 1))
