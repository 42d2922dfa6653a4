"""The calls of a model's modules."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import spread_labels
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I32, I64, distinct
from stepscope.vocabulary.torch import MODULE_PREFIX


def module_calls(trace: HostTrace) -> I64:
    """Rows of the calls of modules, in the order of the events; PyTorch records them with its Python calls."""
    python = events_of_kind(trace, EventKind.PYTHON_CALL)
    types = trace.events.type[python]
    names = trace.event_types.name
    of_modules = [kind for kind in distinct(types).tolist() if trace.strings[names[kind]].startswith(MODULE_PREFIX)]
    return python[np.isin(types, of_modules)]


def backward_modules(trace: HostTrace, inside: I32) -> I32:
    """The module call of each backward event, that of its linked forward op: int32 of shape (events,), -1 without one.

    Args:
        trace: the trace.
        inside: int32 of shape (events,), the module call around each event, -1 without one.
    """
    label = np.full(len(trace.events), -1, np.int32)
    if trace.has_stat(stat_names.FORWARD_BACKWARD_ID):
        number = trace.stat_ints(stat_names.FORWARD_BACKWARD_ID)
        linked = np.flatnonzero(number >= 0)
        order = linked[np.lexsort((trace.events.start_ps[linked], number[linked]))]
        pair = np.flatnonzero(number[order][1:] == number[order][:-1])
        label[order[pair + 1]] = inside[order[pair]]
        spread_labels(trace, label)
    return label
