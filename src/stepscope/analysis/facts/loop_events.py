"""The events of the thread that runs the training loop, and what each of them is to the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property, reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.steps.find_steps import HostSteps
from stepscope.analysis.trace.columns import of_kinds
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.spans import Spans, outermost
from stepscope.model import EventKind, HostTrace, Kind, LineKind, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait, traits_by_type
from stepscope.vocabulary.traits import CallTrait

K = EventKind

LONG_GAP_PS = 300_000_000  # dispatching one op leaves shorter gaps; longer ones are a program's own Python


class Activity(Kind):
    """What the loop's thread does; where several cover an instant the smallest number counts."""

    INPUT = 1
    CHECKPOINT = 2
    COMPILE = 3
    COLLECTIVE = 4
    TRANSFER = 5
    SYNC = 6
    PROGRAM = 7  # a compiled function: tf.function, jax.jit
    EAGER = 8  # a single op that is dispatched from Python
    OP = 9  # an op that computes on this very thread
    RUNTIME = 10  # calls of the framework that are none of these
    WAIT = 11  # nothing here, while other threads or a device work for the step
    DISPATCH = 12  # nothing, for a moment: Python between two calls
    PYTHON = 13  # nothing, for long


_OF_KIND: Mapping[EventKind, Activity] = {
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
# What a call is to the loop by its name; the first trait that it has counts.
_OF_TRAIT: tuple[tuple[CallTrait, Activity], ...] = (
    (CallTrait.SAVES_STATE, Activity.CHECKPOINT),
    (CallTrait.MAKES_INPUT, Activity.INPUT),
    (CallTrait.READS_VALUE, Activity.SYNC),
    (CallTrait.WAITS, Activity.WAIT),
    (CallTrait.COPIES_IN, Activity.TRANSFER),
)
_ANY_TRAIT = reduce(or_, (trait for trait, _ in _OF_TRAIT))
# What the thread of a loop does.
_CALLING_PROGRAMS = (K.TRACED_FUNCTION, K.EAGER_EXECUTE)
_CALLING = (K.TRACED_FUNCTION, K.EAGER_EXECUTE, K.RUNTIME_CALL, K.BACKWARD, K.PYTHON_CALL, K.OP)


@dataclass(frozen=True)
class Loop:
    """The events of the loop's thread while it is observed, as columns."""

    trace: HostTrace = field(repr=False)
    row: I64
    kind: NDArray[np.uint8]
    start: I64
    end: I64
    type: NDArray[np.integer]
    activity: NDArray[np.uint8]

    def name(self, event: int) -> str:
        """What an event is called."""
        return self.trace.strings[self.trace.event_types.name[self.type[event]]]

    @cached_property
    def _by_activity(self) -> list[I64]:
        """The events of each activity, in order of time."""
        order = np.argsort(self.activity, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.activity, minlength=max(Activity) + 1))[:-1])

    @cached_property
    def _outer(self) -> list[I64]:
        """The same without those that lie in another one of their activity."""
        none, *others = self._by_activity
        return [none[:0], *(rows[outermost(self.start[rows], self.end[rows])] for rows in others)]

    def rows(self, activity: Activity) -> I64:
        """The events of an activity, in order of time."""
        return self._by_activity[activity]

    def of_kind(self, kind: EventKind) -> I64:
        """The events of a kind, in order of time."""
        return np.flatnonzero(of_kinds(self.kind, (kind,)))

    def at(self, rows: I64) -> Spans:
        """When some of the events last."""
        return Spans.of(self.start[rows], self.end[rows])

    def of(self, *activities: Activity) -> Spans:
        """When events of some activities last."""
        return self.at(np.concatenate([self.outer(activity) for activity in activities]))

    def where(self, chosen: Mask) -> Spans:
        """When the chosen events last; `chosen` is bool of shape (events,)."""
        return Spans.of(self.start[chosen], self.end[chosen])

    def outer(self, activity: Activity) -> I64:
        """Events of an activity that lie in no other of it."""
        return self._outer[activity]


def loop_line(trace: HostTrace, steps: HostSteps) -> int:
    """The line of the step marks; without marks the thread that calls most programs in steps, without programs most
    ops.  A thread that runs the ops of a program is nobody's loop."""
    if steps.line >= 0 and trace.lines.kind[steps.line] == LineKind.THREAD:
        return steps.line
    lines = trace.lines_of(LineKind.THREAD)
    bounds = list(zip(trace.lines.event_begin[lines].tolist(), trace.lines.event_end[lines].tolist(), strict=True))
    for kinds in (_CALLING_PROGRAMS, _CALLING):
        calls = of_kinds(trace.events.kind, kinds) & (steps.label >= 0)
        count = [np.count_nonzero(calls[begin:end]) for begin, end in bounds]
        if any(count):
            return int(lines[np.argmax(count)])
    return -1


def loop_events(trace: HostTrace, line: int, seen: Spans) -> Loop:
    """The events of a thread that lie in the time that is looked at, at least one interval, and their activities."""
    rows = slice(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    start = trace.events.start_ps[rows]
    end = start + forest(trace).extent_ps[rows]
    inside = (end > seen.start[0]) & (start < seen.end[-1])
    chosen: slice | Mask = slice(None) if inside.all() else inside
    kind, types = trace.events.kind[rows][chosen], trace.events.type[rows][chosen]
    start, end = start[chosen], end[chosen]
    row = np.arange(rows.start, rows.stop)[chosen]
    activity = _by_kind()[kind]
    activity[_single_programs(trace, rows)[inside]] = Activity.PROGRAM
    _set_by_names(trace, kind, types, end - start, activity)
    activity[_assigns_what_came_in(trace, types, start, end, activity)] = Activity.TRANSFER
    return _without_claims_on_programs(Loop(trace, row, kind, start, end, types, activity))


def _by_kind() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for kind, activity in _OF_KIND.items():
        table[kind] = activity
    return table


def _single_programs(trace: HostTrace, rows: slice) -> Mask:
    """Dispatches of a whole function rather than of one op."""
    eager = of_kinds(trace.events.kind[rows], (K.EAGER_EXECUTE,))
    return eager & (trace.stat_ints(stat_names.IS_FUNCTION)[rows] > 0) if eager.any() else eager


def _set_by_names(
    trace: HostTrace, kind: NDArray[np.uint8], types: NDArray[np.integer], length: I64, activity: NDArray[np.uint8]
) -> None:
    """What only names tell: Python functions, ops that fetch a value, large constants that are copied."""
    looked_at = of_kinds(kind, (K.PYTHON_CALL, K.OP, K.OTHER, K.EAGER_EXECUTE, K.TRACED_FUNCTION))
    traits = traits_by_type(trace, types, _ANY_TRAIT)
    by_type = np.zeros(len(traits), np.uint8)
    for trait, meant in reversed(_OF_TRAIT):
        by_type[(traits & np.uint32(trait)) != 0] = meant
    named = by_type[types] * looked_at
    named[(named == Activity.TRANSFER) & (length < LONG_GAP_PS)] = 0
    np.copyto(activity, named, where=named > 0)


def _assigns_what_came_in(
    trace: HostTrace, types: NDArray[np.integer], start: I64, end: I64, activity: NDArray[np.uint8]
) -> I64:
    """Assignments of a variable that copy, once more, an array which was copied in right before."""
    came = np.maximum.accumulate(end[activity == Activity.TRANSFER])
    rows = np.flatnonzero((activity == Activity.EAGER) & (end - start >= LONG_GAP_PS)) if len(came) else came
    rows = rows[has_trait(trace, types[rows], CallTrait.ASSIGNS_VARIABLE)]
    before = np.searchsorted(came, start[rows], side="right") - 1
    return rows[(before >= 0) & (start[rows] - came[np.maximum(before, 0)] < LONG_GAP_PS)]


def _without_claims_on_programs(loop: Loop) -> Loop:
    """A Python function that runs programs is no input, however it is called."""
    claims = loop.of_kind(K.PYTHON_CALL)
    claims = claims[loop.activity[claims] > 0]
    if not len(claims):
        return loop
    work = loop.of(Activity.PROGRAM, Activity.EAGER, Activity.OP)
    held = work.covered(loop.start[claims], loop.end[claims])
    lost = claims[(held > 0.3 * (loop.end[claims] - loop.start[claims])) & (loop.activity[claims] != Activity.SYNC)]
    activity = loop.activity.copy()
    activity[lost] = 0
    return replace(loop, activity=activity)
