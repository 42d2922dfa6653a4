"""What the computing of a step is for: forward, backward, update and so on, by what was recorded of each op."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.hlo.framework_ops import framework_ops_of_events
from stepscope.analysis.purpose.computing import Computing, backward_runs, computing_of, inside_any, update_ranges
from stepscope.analysis.purpose.forward import forward_only_of, recomputed_ops
from stepscope.analysis.purpose.graphs import trained_types
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import is_device_work, spread_labels
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I32, I64, used_rows
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.purposes import (
    BACKWARD,
    FORWARD,
    LOSS,
    METRICS,
    UPDATE,
    purpose_by_traits,
    purpose_in_scopes,
    purpose_of_op,
)
from stepscope.vocabulary.traits import OpTrait, PurposeTrait

K = EventKind

RECOMPUTING, ALONE, SAVING, MOVING, UNKNOWN = "recomputing", "forward_only", "saving", "moving", "unknown"
PURPOSES = (FORWARD, BACKWARD, UPDATE, LOSS, METRICS, RECOMPUTING, ALONE, SAVING, MOVING, UNKNOWN)
"""`recomputing` is forward work that runs again within a backward pass, to save memory; `forward_only` is forward work
that no backward pass follows, as of a teacher; `unknown` is what nothing recorded tells."""

_NUMBER = {name: at for at, name in enumerate(PURPOSES)}


def purposes_of(trace: HostTrace) -> dict[str, int]:
    """The time per step of each purpose that the computing of a host has, in ps: of the devices' work where a device
    computes, else the self time of ops on the host's threads.  Empty without steps or ops; computed once per trace."""
    return trace.derived("purposes", _find_purposes)


def _find_purposes(trace: HostTrace) -> dict[str, int]:
    steps = len(whole_steps(trace).number)
    if not steps:
        return {}
    label, rows, ps = _label_work(trace)
    total = np.bincount(label, weights=ps, minlength=len(PURPOSES)) / steps
    return (
        {name: round(each) for name, each in zip(PURPOSES, total.tolist(), strict=True) if round(each)}
        if len(rows)
        else {}
    )


def _label_work(trace: HostTrace) -> tuple[I32, I64, I64]:
    """A number of PURPOSES for each piece of computing work, the rows of their events, and their times in ps."""
    work = computing_of(trace)
    if not is_device_work(trace).any():
        return _label_ops(trace, work), work.rows, work.own_ps
    label = np.full(len(trace.events), -1, np.int32)
    label[work.rows] = _label_ops(trace, work)
    label[work.rows[label[work.rows] == _NUMBER[UNKNOWN]]] = -1  # the op around it may know
    label[update_ranges(trace)] = _NUMBER[UPDATE]
    label[backward_runs(trace)] = _NUMBER[BACKWARD]
    spread_labels(trace, label)
    rows = np.flatnonzero(is_device_work(trace) & (whole_steps(trace).label >= 0))
    found = label[rows]
    unknown = np.flatnonzero(found < 0)
    found[unknown] = _label_by_name(trace, rows[unknown])
    return found, rows, trace.events.duration_ps[rows]


def _label_ops(trace: HostTrace, work: Computing) -> I32:
    """The purposes of ops of threads, the surest facts last."""
    types = trace.events.type[work.rows]
    label = np.full(len(work), _NUMBER[UNKNOWN], np.int32)
    if not len(events_of_kind(trace, K.BACKWARD)):  # numbers of autograd tell more than names
        label = _label_by_name(trace, work.rows)
    moves = has_trait(trace, types, OpTrait.MOVES_DATA | OpTrait.CONVERTS)
    label[moves & (label == _NUMBER[UNKNOWN])] = _NUMBER[MOVING]
    label[work.learned] = _NUMBER[FORWARD]
    losses = work.rows[work.learned & has_trait(trace, types, PurposeTrait.IS_LOSS)]
    label[inside_any(trace, work.rows, losses)] = _NUMBER[LOSS]
    alone = forward_only_of(trace)
    if alone is not None:
        label[alone.every] = _NUMBER[ALONE]
        label[alone.measures] = _NUMBER[METRICS]
    label[work.backward] = _NUMBER[BACKWARD]
    label[inside_any(trace, work.rows, recomputed_ops(trace))] = _NUMBER[RECOMPUTING]
    label[work.updates & ~work.backward & ~work.learned] = _NUMBER[UPDATE]  # an update may call the model itself
    label[inside_any(trace, work.rows, events_of_kind(trace, K.CHECKPOINT))] = _NUMBER[SAVING]
    return label


def _purposes_of_types(trace: HostTrace, types: I64) -> list[str]:
    """What the ops of some event types are for, by their names; empty where these do not say it."""
    colon, slash = trace.strings.find_types(trace.event_types.name[types])
    stated = zip(
        type_names(trace, types),
        has_trait(trace, types, OpTrait.OF_GRADIENT).tolist(),
        has_trait(trace, types, OpTrait.WRITES_VARIABLE).tolist(),
        np.where(colon >= 0, slash, -1).tolist(),
        strict=True,
    )
    return [
        purpose_by_traits(name, of_gradient, writes)
        if at < 0 or of_gradient
        else purpose_in_scopes(name[: at + 1], writes) or FORWARD  # as of all ops of TensorFlow with scopes
        for name, of_gradient, writes, at in stated
    ]


def _label_by_name(trace: HostTrace, rows: I64) -> I32:
    """The purposes of events by their names in a graph or a compiled program."""
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    of_type = np.full(len(trace.event_types), _NUMBER[UNKNOWN], np.int32)
    of_type[types] = [_NUMBER[purpose or UNKNOWN] for purpose in _purposes_of_types(trace, types)]
    if (of_type[types] == _NUMBER[UNKNOWN]).any():
        trained = trained_types(trace, types)
        of_type[trained[of_type[trained] == _NUMBER[UNKNOWN]]] = _NUMBER[FORWARD]
    label = of_type[trace.events.type[rows]]
    instruction = trace.stat_strings(stat_names.HLO_OP, rows=rows)
    inside = np.flatnonzero(instruction > 0)
    if len(inside):
        op, names = framework_ops_of_events(trace, rows[inside], instruction[inside])
        of_op = np.array([_NUMBER.get(purpose_of_op(name), _NUMBER[UNKNOWN]) for name in names], np.int32)
        label[inside] = of_op[op]
    return label
