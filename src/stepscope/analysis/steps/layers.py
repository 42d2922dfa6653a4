"""Tells layers from steps: both repeat the same work.

    host  |model-----------------|                     one range, which occurs once
    gpu   |k1 k2|k1 k2|k1 k2|k1 k2                     its cycles are layers

Cycles are layers where one launch of a graph holds several, where each lies under another instance of a module, or
holds ranges of another numbered part of the model (`blocks.3`), where they lie in one range of the program that occurs
once and the host does nothing once per cycle that a loop does, and where several lie in one call together with other
work.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.cycles import FOREIGN_SHARE, LEAST_STEPS, Cycle
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import enclosing_events, forest, is_device_work, nearest_above
from stepscope.analysis.trace.module_calls import module_calls
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64
from stepscope.vocabulary.ranges import numbered_part, without_numbers

K = EventKind

_CALLS = (K.OP, K.ANNOTATION, K.TRACED_FUNCTION, K.FUNCTION_RUN)
# What a loop does once per iteration and a layer does not: it calls a program, fetches a batch, reads a result, saves.
_OF_LOOPS = (
    K.TRACED_FUNCTION, K.FUNCTION_RUN, K.INPUT_WAIT, K.ITERATOR, K.SYNC, K.COPY_HOST_TO_DEVICE_CALL, K.CHECKPOINT,
    K.STEP_MARK,
)  # fmt: skip
_MOST = 0.9  # of the cycles: the first or the last may lie beside the range
_ONCE_EACH = 0.8  # of the cycles: so many have one


def cycles_are_layers(trace: HostTrace, rows: I64, cycle: Cycle) -> bool:
    """Whether the cycles of a sequence of events are layers rather than steps."""
    cause = forest(trace).cause[rows]
    return (
        _share_a_launch(trace, rows, cause, cycle)
        or _lie_under_many_modules(trace, np.where(cause >= 0, cause, rows)[cycle.anchors])
        or _hold_other_parts(trace, rows, cause, cycle)
        or _lie_in_one_range(trace, rows, cause, cycle)
        or _lie_beside_other_work(trace, rows, cause, cycle)
    )


def _share_a_launch(trace: HostTrace, rows: I64, cause: I32, cycle: Cycle) -> bool:
    """Whether most cycles share with others the call that launched them: the launch of a graph."""
    launch = cause[cycle.anchors]
    launch = launch[(launch >= 0) & is_device_work(trace)[rows[cycle.anchors]]]
    _, count = np.unique(launch, return_counts=True)
    return int(count[count >= LEAST_STEPS].sum()) >= _MOST * len(cycle.anchors)


def _lie_under_many_modules(trace: HostTrace, anchors: I64) -> bool:
    """Whether the cycles lie one after the other under different instances of a kind of module, such as `Block_0`,
    `Block_1`, and not under one that is called again and again."""
    modules = module_calls(trace)
    if not len(modules):
        return False
    is_module = np.zeros(len(trace.events), np.bool_)
    is_module[modules] = True
    above = nearest_above(trace, anchors, is_module)
    for _ in range(len(anchors)):  # from the innermost modules outwards
        if (above < 0).mean() > 1 - _MOST:
            return False
        names = trace.event_names(above[above >= 0])
        distinct_names = np.unique(names)
        stems = {without_numbers(trace.strings[name]) for name in distinct_names.tolist()}
        if len(stems) == 1 and len(distinct_names) >= LEAST_STEPS and (names[1:] != names[:-1]).all():
            return True
        above = nearest_above(trace, above, is_module)
    return False


def _hold_other_parts(trace: HostTrace, rows: I64, cause: I32, cycle: Cycle) -> bool:
    """Whether ranges of numbered parts of a model begin in the cycles, in each that of another part than in the next.

        host   |blocks.3---|blocks.4---|blocks.5---|      a step would begin with the same part as the step before
        gpu     a b a c     a b a c     a b a c

    Work of a device whose call is not recorded tells nothing, as it runs later than the ranges around its call.
    """
    anchors, called = rows[cycle.anchors], cause[cycle.anchors].astype(np.int64)
    if is_device_work(trace)[anchors].all():
        anchors = called[called >= 0]
    if len(anchors) < LEAST_STEPS:
        return False
    rows = events_of_kind(trace, K.ANNOTATION)
    types, place = np.unique(trace.events.type[rows], return_inverse=True)
    stems = [numbered_part(name) for name in trace.strings.texts(trace.event_types.name[types])]
    known = {stem: at for at, stem in enumerate(dict.fromkeys(stems))}
    kept = np.array([stem is not None for stem in stems], np.bool_)[place]
    part, rows = np.array([known[stem] for stem in stems], np.int64)[place][kept], rows[kept]
    begun = np.maximum.accumulate(trace.events.start_ps[anchors])
    place = np.searchsorted(begun, trace.events.start_ps[rows], side="right") - 1
    order = np.lexsort((trace.events.start_ps[rows], place, part))
    order = order[place[order] >= 0]
    for own in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        _, first = np.unique(place[own], return_index=True)
        names = trace.event_names(rows[own[first]])
        if len(names) >= max(_MOST * (len(anchors) - 1), LEAST_STEPS) and (names[1:] != names[:-1]).all():
            return True
    return False


def _lie_in_one_range(trace: HostTrace, rows: I64, cause: I32, cycle: Cycle) -> bool:
    """Whether the cycles lie in one range that occurs once, in which the host does nothing of loops once a cycle."""
    inner = (
        cause[cycle.anchors]
        if is_device_work(trace)[rows[cycle.anchors]].all()
        else forest(trace).parent[rows[cycle.anchors]]
    )
    call = _outermost_call(trace, inner)
    calls, count = np.unique(call[call >= 0], return_counts=True)
    if not len(calls) or count.max() < max(_MOST * len(cycle.anchors), LEAST_STEPS):
        return False
    around = int(calls[np.argmax(count)])
    if int((trace.event_names() == trace.event_names(np.array([around]))[0]).sum()) > 1:
        return False
    return not _host_loops_inside(trace, around, len(cycle.anchors))


def _host_loops_inside(trace: HostTrace, around: int, cycles: int) -> bool:
    """Whether some call inside a range occurs about once a cycle that layers do not make."""
    events = trace.events
    start = int(events.start_ps[around])
    end = start + int(events.duration_ps[around])
    inside = (events.start_ps >= start) & (events.start_ps < end) & is_thread_event(trace)
    signs = np.flatnonzero(inside & is_any_kind(events.kind, _OF_LOOPS))
    _, count = np.unique(trace.event_names(signs), return_counts=True)
    return bool((count >= _ONCE_EACH * cycles).any())


def _lie_beside_other_work(trace: HostTrace, rows: I64, cause: I32, cycle: Cycle) -> bool:
    """Whether several cycles lie in one host call, together with other work such as an embedding before and a head
    after them."""
    call = _outermost_call(trace, cause)
    calls, count = np.unique(call[cycle.anchors], return_counts=True)
    calls = calls[(calls >= 0) & (count >= LEAST_STEPS)]
    if not len(calls):
        return False
    names = trace.event_names(rows)
    rare = np.bincount(names)[names] < max(LEAST_STEPS, 2 * len(calls))
    foreign = int((rare & np.isin(call, calls)).sum())
    return foreign / len(calls) >= FOREIGN_SHARE * len(rows) / len(cycle.anchors)


def _outermost_call(trace: HostTrace, events: I32) -> I32:
    """The outermost op, function or annotation around each host event, or -1: int32 of shape of `events`."""
    outermost = enclosing_events(trace, is_any_kind(trace.events.kind, _CALLS))
    return np.where(events >= 0, outermost[events], -1)
