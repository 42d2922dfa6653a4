"""Which forward op each event of a backward pass belongs to.

Autograd numbers the ops that it records for a backward pass, and the backward work has the number of its forward op.
What a backward pass does is no line of the program; the line that ran the forward op is.
"""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I32, I64, places_of

K = EventKind


def forward_events(trace: HostTrace, rows: I64) -> I64:
    """For each event within backward work the forward op of that work; every other event itself.

    Args:
        rows: int64 of shape (n,), rows of events, -1 for none.
    """
    if not len(events_of_kind(trace, K.BACKWARD)) or not trace.has_stat(stat_names.SEQUENCE_NUMBER):
        return rows
    backward = trace.derived("nearest backward work", _nearest_backward)[rows]
    inside = np.flatnonzero((rows >= 0) & (backward >= 0))
    number, op = trace.derived("forward ops by number", _forward_ops)
    if not len(inside) or not len(op):
        return rows
    wanted = trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=backward[inside].astype(np.int64))
    at, found = places_of(number, wanted), rows.copy()
    found[inside[at >= 0]] = op[at[at >= 0]]
    return found


def _nearest_backward(trace: HostTrace) -> I32:
    nearest = np.empty(len(trace.events), np.int32)
    kernels.nesting.nearest(forest(trace).parent, is_any_kind(trace.events.kind, (K.BACKWARD,)), nearest)
    return nearest


def _forward_ops(trace: HostTrace) -> tuple[I64, I64]:
    """The numbers of all forward ops, ascending, and the ops: rows of events, of one number the one to take first.

    PyTorch gives each op the number of the next node of autograd, so that ops without a gradient have the number of the
    op after them: the last one made the node.  It stands for the outermost op around it that has its number, too.
    """
    ops = events_of_kind(trace, K.OP)
    ops = ops[trace.derived("nearest backward work", _nearest_backward)[ops] < 0]
    number = trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=ops)
    ops, number = ops[number >= 0], number[number >= 0]
    order = np.lexsort((trace.events.start_ps[ops], number))
    number, ops = number[order].astype(np.int64), ops[order].astype(np.int64)
    last = np.searchsorted(number, number, side="right") - 1
    start, line = trace.events.start_ps[ops], trace.events.line[ops]
    holds = (start + trace.events.duration_ps[ops] > start[last]) & (line == line[last])
    holds[last] = True
    return number[holds], ops[holds]
