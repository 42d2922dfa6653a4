"""The events of the thread that runs the training loop, and the activity that each belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property, reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.account.saves import LONG_GAP_PS
from stepscope.analysis.steps.find_steps import holds_step
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.spans import Spans, is_outermost
from stepscope.model import EventKind, HostTrace, Kind, stat_names
from stepscope.model.arrays import I64, Mask, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait, traits_by_type
from stepscope.vocabulary.traits import CallTrait

K = EventKind


class Activity(Kind):
    """What the loop's thread does; if several activities cover an instant, the smallest number wins."""

    INPUT = 1
    CHECKPOINT = 2
    COMPILE = 3
    COLLECTIVE = 4
    TRANSFER = 5
    SYNC = 6
    PROGRAM = 7  # a compiled function: tf.function, jax.jit
    EAGER = 8  # a single op dispatched from Python
    OP = 9  # an op that computes on this thread
    RUNTIME = 10  # other calls of the framework
    WAIT = 11  # idle while other threads or a device work for the step
    DISPATCH = 12  # a short gap: Python between two calls
    PYTHON = 13  # a long gap


_ACTIVITY_OF_KIND: Mapping[EventKind, Activity] = {
    K.INPUT_WAIT: Activity.INPUT,
    K.CHECKPOINT: Activity.CHECKPOINT,
    K.COMPILE: Activity.COMPILE,
    K.COLLECTIVE_CALL: Activity.COLLECTIVE,
    K.COPY_HOST_TO_DEVICE_CALL: Activity.TRANSFER,
    K.SYNC: Activity.SYNC,
    K.TRACED_FUNCTION: Activity.PROGRAM,
    K.FUNCTION_RUN: Activity.PROGRAM,
    K.EAGER_EXECUTE: Activity.EAGER,
    K.OP: Activity.OP,
    K.BACKWARD: Activity.OP,
    K.EXECUTOR: Activity.OP,
    K.GRAPH_LAUNCH: Activity.OP,
    K.RUNTIME_CALL: Activity.RUNTIME,
    K.OTHER: Activity.RUNTIME,
}
# The activity of a call by its name; its first trait in this order counts.
_ACTIVITY_OF_TRAIT: tuple[tuple[CallTrait, Activity], ...] = (
    (CallTrait.SAVES_STATE, Activity.CHECKPOINT),
    (CallTrait.MAKES_INPUT, Activity.INPUT),
    (CallTrait.READS_VALUE, Activity.SYNC),
    (CallTrait.WAITS, Activity.WAIT),
    (CallTrait.COPIES_IN, Activity.TRANSFER),
)
_ANY_TRAIT = reduce(or_, (trait for trait, _ in _ACTIVITY_OF_TRAIT))
# Calls that the thread of a loop makes.


@dataclass(frozen=True)
class Loop:
    """The events of the loop's thread in the observed time, as columns."""

    trace: HostTrace = field(repr=False)
    row: I64
    kind: NDArray[np.uint8]
    start: I64
    end: I64
    type: NDArray[np.integer]
    activity: NDArray[np.uint8]

    def name(self, event: int) -> str:
        """The name of an event."""
        return self.trace.strings[self.trace.event_types.name[self.type[event]]]

    @cached_property
    def _events_by_activity(self) -> list[I64]:
        """The events of each activity, in order of time."""
        return [np.flatnonzero(self.activity == each) for each in range(max(Activity) + 1)]

    @cached_property
    def _outer_by_activity(self) -> list[I64]:
        """The outermost events of each activity, in order of time."""
        none, *others = self._events_by_activity
        return [none[:0], *(rows[is_outermost(self.start[rows], self.end[rows])] for rows in others)]

    def activity_events(self, activity: Activity) -> I64:
        """The events of an activity, in order of time."""
        return self._events_by_activity[activity]

    def kind_events(self, kind: EventKind) -> I64:
        """The events of a kind, in order of time."""
        return np.flatnonzero(is_any_kind(self.kind, (kind,)))

    def event_spans(self, rows: I64) -> Spans:
        """When the given events are running."""
        return Spans.union(self.start[rows], self.end[rows])

    def activity_spans(self, *activities: Activity) -> Spans:
        """When events of the given activities are running."""
        return self.event_spans(np.concatenate([self.outer_events(activity) for activity in activities]))

    def mask_spans(self, chosen: Mask) -> Spans:
        """When the chosen events are running; `chosen` is bool of shape (events,)."""
        return Spans.union(self.start[chosen], self.end[chosen])

    def outer_events(self, activity: Activity) -> I64:
        """The outermost events of an activity, in order of time."""
        return self._outer_by_activity[activity]


def loop_events(trace: HostTrace, line: int, seen: Spans) -> Loop:
    """The events of a thread in the observed time, with their activities; `seen` holds at least one interval."""
    rows = slice(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    start = trace.events.start_ps[rows]
    end = start + forest(trace).extent_ps[rows]
    inside = (end > seen.start[0]) & (start < seen.end[-1])
    chosen: slice | Mask = slice(None) if inside.all() else inside
    kind, types = trace.events.kind[rows][chosen], trace.events.type[rows][chosen]
    start, end = start[chosen], end[chosen]
    row = np.arange(rows.start, rows.stop)[chosen]
    activity = look_up(_activity_table(), kind)
    activity[_single_programs(trace, rows)[chosen]] = Activity.PROGRAM
    _set_activity_by_name(trace, kind, types, end - start, activity)
    activity[_find_reassignments(trace, types, start, end, activity)] = Activity.TRANSFER
    return _drop_claims_on_programs(Loop(trace, row, kind, start, end, types, activity))


def _activity_table() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for kind, activity in _ACTIVITY_OF_KIND.items():
        table[kind] = activity
    return table


def _single_programs(trace: HostTrace, rows: slice) -> Mask:
    """Whether each event dispatches a whole function rather than one op."""
    eager = is_any_kind(trace.events.kind[rows], (K.EAGER_EXECUTE,))
    calls = np.flatnonzero(eager)
    eager[calls] = trace.stat_ints(stat_names.IS_FUNCTION, rows=calls + rows.start) > 0
    return eager


def _set_activity_by_name(
    trace: HostTrace, kind: NDArray[np.uint8], types: NDArray[np.integer], length: I64, activity: NDArray[np.uint8]
) -> None:
    """Sets activities known only from names: Python functions, ops that fetch a value, copies of large constants."""
    looked_at = is_any_kind(kind, (K.PYTHON_CALL, K.OP, K.OTHER, K.EAGER_EXECUTE, K.TRACED_FUNCTION))
    traits = traits_by_type(trace, types, _ANY_TRAIT)
    by_type = np.zeros(len(traits), np.uint8)
    for trait, meant in reversed(_ACTIVITY_OF_TRAIT):
        by_type[(traits & np.uint64(trait)) != 0] = meant
    named = look_up(by_type, types) * looked_at
    named[(named == Activity.TRANSFER) & (length < LONG_GAP_PS)] = 0
    np.copyto(activity, named, where=named > 0)


def _find_reassignments(
    trace: HostTrace, types: NDArray[np.integer], start: I64, end: I64, activity: NDArray[np.uint8]
) -> I64:
    """Assignments of variables that copy an array again right after it was copied in."""
    came = np.maximum.accumulate(end[activity == Activity.TRANSFER])
    rows = np.flatnonzero((activity == Activity.EAGER) & (end - start >= LONG_GAP_PS)) if len(came) else came
    rows = rows[has_trait(trace, types[rows], CallTrait.ASSIGNS_VARIABLE)]
    before = np.searchsorted(came, start[rows], side="right") - 1
    return rows[(before >= 0) & (start[rows] - came[np.maximum(before, 0)] < LONG_GAP_PS)]


def _drop_claims_on_programs(loop: Loop) -> Loop:
    """Drops the activity of Python functions that run programs: their names are misleading."""
    claims = loop.kind_events(K.PYTHON_CALL)
    claims = claims[loop.activity[claims] > 0]
    if not len(claims):
        return loop
    work = loop.activity_spans(Activity.PROGRAM, Activity.EAGER, Activity.OP)
    held = work.overlap_ps(loop.start[claims], loop.end[claims])
    around = holds_step(loop.trace, loop.start[claims], loop.end[claims])  # a loop over steps, whatever its name
    busy = (held > 0.3 * (loop.end[claims] - loop.start[claims])) & (loop.activity[claims] != Activity.SYNC)
    lost = claims[around | busy]
    activity = loop.activity.copy()
    activity[lost] = 0
    return replace(loop, activity=activity)
