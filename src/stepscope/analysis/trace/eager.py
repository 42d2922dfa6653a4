"""The ops that TensorFlow dispatches one by one, outside any graph.

Only their dispatch is recorded.  On a CPU they run inside it; on other devices it launches them.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.devices_told_of import LONGEST_DISPATCH_PS
from stepscope.analysis.trace.grouping import enclosing_events, forest, is_device_work
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

K = EventKind

_MORE_DETAILED = (K.OP, K.BACKWARD, K.ITERATOR, K.CHECKPOINT, K.INPUT_WAIT, K.EXECUTOR)


def eager_ops(trace: HostTrace) -> I64:
    """Dispatches of single ops on host threads that contain no more detailed event, ascending."""
    return trace.derived("eager ops", _find_eager_ops)


def computing_eager_ops(trace: HostTrace) -> I64:
    """Those that last longer than a dispatch, where no device computes: their kernel runs inside; ascending."""
    rows = eager_ops(trace)
    if not len(rows) or is_device_work(trace).any():
        return rows[:0]
    found: I64 = rows[forest(trace).extent_ps[rows] >= LONGEST_DISPATCH_PS]
    return found


def _find_eager_ops(trace: HostTrace) -> I64:
    rows = events_of_kind(trace, K.EAGER_EXECUTE)
    rows = rows[is_thread_event(trace)[rows]]
    if not len(rows):
        return rows
    single = has_trait(trace, trace.events.type[rows], CallTrait.DISPATCHES_OP)
    single &= trace.stat_ints(stat_names.IS_FUNCTION, rows=rows) <= 0
    rows = rows[single]
    among = np.zeros(len(trace.events), np.bool_)
    among[rows] = True
    around = enclosing_events(trace, among)[is_any_kind(trace.events.kind, _MORE_DETAILED)]
    among[around[around >= 0]] = False
    return rows[among[rows]]
