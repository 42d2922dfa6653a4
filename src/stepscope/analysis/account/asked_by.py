"""Which function of the program asked for what a thread computes: of a backward pass the one that ran the forward op.

    loss = criterion(model(x), y)     # samples in `Filter.forward` while its op runs
    loss.backward()                   # samples here while the gradient of that op is computed

Samples in a backward pass show the line that starts it, which nobody can make cheaper.  Autograd's work has the number
of its forward op, and samples tell which function ran that.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.functions import LoopFunction, functions_of_loop
from stepscope.analysis.steps.find_steps import observed_time
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.analysis.trace.spans import Spans, is_outermost, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass

_BACKWARD = 0.25  # of the time: with less of it in backward passes what samples show there says enough; judgement
_MOST_OF = 0.5  # of the time: a function further in that holds as much is where to look


@dataclass(frozen=True)
class AskedBy:
    """A function that asked for much of what a thread computes.

    Attributes:
        function: that; share: of the time that it asked for, 0 to 1.
    """

    function: LoopFunction
    share: float


@dataclass(frozen=True)
class AskedOps:
    """The outermost ops of a thread in the steps; columns of one length.

    Attributes:
        rows: int64, rows of events; ps: int64, how long each takes.
        asked: int64, of backward work the forward op, else the op itself; moment: int64, when that runs, ps.
        is_backward: bool.
    """

    rows: I64
    ps: I64
    asked: I64
    moment: I64
    is_backward: Mask

    def asked_in(self, spans: Spans) -> Mask:
        """Which of them were asked for in some time."""
        found: Mask = spans.overlap_ps(self.moment, self.moment + 1) > 0
        return found


def asked_ops_of(trace: HostTrace, line: int) -> AskedOps:
    """The ops of a thread with who asked for them, found once."""
    return trace.derived(f"asked ops of line {line}", lambda of: _find_asked(of, line))


def _find_asked(trace: HostTrace, line: int) -> AskedOps:
    rows, length = _ops_in(trace, line, observed_time(trace))
    rows, length = rows[length > 0], length[length > 0]
    asked = forward_events(trace, rows)
    own = trace.events.line[asked] == line
    moment = np.where(own, trace.events.start_ps[asked] + trace.events.duration_ps[asked] // 2, -1)
    return AskedOps(rows, length, asked, moment, asked != rows)


def function_that_asked(trace: HostTrace, line: int, spans: Spans) -> AskedBy | None:
    """The innermost function of the program that asked for most of what a thread computes in some time; None where
    little of that is a backward pass, or no function asked for as much."""
    if not functions_of_loop(trace):
        return None
    rows, length = _ops_in(trace, line, spans)
    asked = forward_events(trace, rows)
    if length[asked != rows].sum() < max(_BACKWARD * length.sum(), 1):
        return None
    backward = spans_of(trace, rows[asked != rows])
    moment, whole = trace.events.start_ps[asked] + trace.events.duration_ps[asked] // 2, int(length.sum())
    length = np.where(trace.events.line[asked] == line, length, 0)
    found = []
    for function in functions_of_loop(trace):
        share = int(length[function.spans.overlap_ps(moment, moment + 1) > 0].sum()) / whole
        starts_it = (function.spans & backward).total >= _MOST_OF * backward.total
        if share >= _MOST_OF and not starts_it:
            found.append(AskedBy(function, share))
    return min(found, key=lambda each: (each.function.spans.total, -each.function.frame), default=None)


def function_at(trace: HostTrace, times: I64) -> LoopFunction | None:
    """The innermost function of the program that runs at most of some times; None where none does, or nothing shows."""
    found = (
        each
        for each in functions_of_loop(trace)
        if 2 * (each.spans.overlap_ps(times, times + 1) > 0).sum() > len(times)
    )
    return min(found, key=lambda each: (each.spans.total, -each.frame), default=None)


def _ops_in(trace: HostTrace, line: int, spans: Spans) -> tuple[I64, I64]:
    """The outermost ops of a thread in some time, and for how long each is in it."""
    rows = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    rows = rows[is_any_kind(trace.events.kind[rows], (EventKind.OP, EventKind.BACKWARD))]
    start = trace.events.start_ps[rows]
    end = start + trace.events.duration_ps[rows]
    outer = is_outermost(start, end)
    return rows[outer], spans.overlap_ps(start[outer], end[outer])
