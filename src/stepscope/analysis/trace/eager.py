"""The ops that TensorFlow dispatches one by one, outside of any graph.

Nothing but their dispatch is recorded: on a CPU they run inside it, on other devices it launches them.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import of_kinds, on_threads, rows_of
from stepscope.analysis.trace.grouping import enclosing
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

K = EventKind

_SAY_MORE = (K.OP, K.BACKWARD, K.ITERATOR, K.CHECKPOINT, K.INPUT_WAIT, K.EXECUTOR)


def eager_ops(trace: HostTrace) -> I64:
    """The dispatches of single ops on the host's threads that hold no event which tells more of the op: ascending."""
    return trace.derived("eager ops", _find)


def _find(trace: HostTrace) -> I64:
    rows = rows_of(trace, K.EAGER_EXECUTE)
    rows = rows[on_threads(trace)[rows]]
    if not len(rows):
        return rows
    single = has_trait(trace, trace.events.type[rows], CallTrait.DISPATCHES_OP)
    single &= trace.stat_ints(stat_names.IS_FUNCTION, rows=rows) <= 0
    rows = rows[single]
    among = np.zeros(len(trace.events), np.bool_)
    among[rows] = True
    around = enclosing(trace, among)[of_kinds(trace.events.kind, _SAY_MORE)]
    among[around[around >= 0]] = False
    return rows[among[rows]]
