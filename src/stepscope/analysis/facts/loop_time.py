"""Where the time of the training loop goes: every instant belongs to one activity.

The events of the loop's thread do not explain everything.  Other threads, the devices and the order of events explain
more: a save, for example, is rarely recorded as one event.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.account.saves import LONG_GAP_PS, saves_of
from stepscope.analysis.facts.loop_events import Activity, Loop
from stepscope.analysis.facts.work import takes_in
from stepscope.analysis.steps.find_steps import HostSteps
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait, is_called
from stepscope.vocabulary.traits import CallTrait, OpTrait
from stepscope.vocabulary.xla import RUNS_PROGRAM

K = EventKind

SEVERAL_STEPS = 5  # from this number on, a gap without a counterpart in other steps is chance

# What other threads do that matters to the loop.
_HELPING = (
    K.OP, K.BACKWARD, K.EXECUTOR, K.COLLECTIVE_CALL, K.COMPILE, K.COPY_HOST_TO_DEVICE_CALL, K.INPUT_WAIT,
)  # fmt: skip


@dataclass(frozen=True)
class Helpers:
    """What other threads and the devices do for the steps.

    Attributes:
        on_device: a device works.
        copies: what copies data in for the steps: rows of events.
    """

    on_device: bool
    copies: I64
    compute: Spans
    collective: Spans
    compile: Spans
    transfer: Spans
    input: Spans


def helpers_of(trace: HostTrace, steps: HostSteps, line: int) -> Helpers:
    """What the devices and all threads except that of the loop, `line`, do."""
    running = is_called(trace, RUNS_PROGRAM)
    other = is_thread_event(trace) & (is_any_kind(trace.events.kind, _HELPING) | running)
    other[trace.lines.event_begin[line] : trace.lines.event_end[line]] = False
    rows = np.flatnonzero(other | is_device_work(trace))
    kind, device, running = trace.events.kind[rows], ~other[rows], running[rows] & other[rows]
    working = (steps.label[rows] >= 0) | running
    compiling = ~device & is_any_kind(kind, (K.COMPILE,))
    working &= ~device & ~compiling
    talking = (working & is_any_kind(kind, (K.COLLECTIVE_CALL,))) | (device & is_any_kind(kind, (K.COLLECTIVE,)))
    copying = working & is_any_kind(kind, (K.COPY_HOST_TO_DEVICE_CALL,))
    copying |= device & is_any_kind(kind, (K.COPY_HOST_TO_DEVICE,))
    copying |= working & _is_taking_in(trace, rows, running)
    waiting = working & is_any_kind(kind, (K.INPUT_WAIT,))
    compute = (working | device) & ~talking & ~copying & ~waiting
    start = trace.events.start_ps[rows]
    end = _cut_executor_tails(trace, rows, start + forest(trace).extent_ps[rows])
    chosen = (compute, talking, compiling, copying, waiting)
    spans = [Spans.union(start[each], end[each]) for each in chosen]
    return Helpers(bool(device.any()), rows[copying], *spans)


def _is_taking_in(trace: HostTrace, rows: I64, running: Mask) -> Mask:
    """Programs that only take in an array: their ops, and the copying that XLA continues after the op has ended."""
    every = events_of_kind(trace, K.OP)
    ops = every[takes_in(trace, every)]
    if not len(ops):
        return np.zeros(len(rows), np.bool_)
    taking = np.isin(rows, ops)
    last = every[np.maximum(np.searchsorted(every, rows[running], side="right") - 1, 0)]  # op before each run continues
    line = trace.events.line
    taking[running] = np.isin(last, ops) & (line[last] == line[rows[running]]) & (last < rows[running])
    return taking


def _cut_executor_tails(trace: HostTrace, rows: I64, end: I64) -> I64:
    """When events end.  TensorFlow executors end with the last event in them if much time follows it.

    In that time the thread waits for a core, and the step does not wait for it.
    """
    events = trace.events
    long = is_any_kind(events.kind[rows], (K.EXECUTOR,)) & (end - events.start_ps[rows] >= LONG_GAP_PS)
    clipped = end.copy()
    executors = np.flatnonzero(long)
    line = events.line[rows[executors]]
    for each in distinct(line).tolist():
        here = executors[line == each]
        first, stop = int(trace.lines.event_begin[each]), int(trace.lines.event_end[each])
        last = first + np.searchsorted(events.start_ps[first:stop], end[here]) - 1
        done = events.start_ps[last] + events.duration_ps[last]
        waits = (last > rows[here]) & (end[here] - done >= LONG_GAP_PS)
        clipped[here[waits]] = done[waits]
    return clipped


def parts_of(loop: Loop, helpers: Helpers, steps: HostSteps, seen: Spans) -> dict[Activity, Spans]:
    """Splits the observed time by activity: every instant belongs to exactly one."""
    parts: dict[Activity, Spans] = {}
    rest = seen
    for activity in (each for each in Activity if each <= Activity.RUNTIME):
        covered = loop.activity_spans(activity)
        if activity == Activity.INPUT:
            covered = covered | helpers.input | _lock_waits(loop)
        if activity == Activity.COMPILE:
            covered = covered | helpers.compile
        if activity == Activity.SYNC:
            covered = covered - helpers.compute  # the awaited work would take its time anyway
        if activity == Activity.CHECKPOINT:
            covered = saves_of(loop.trace)
        parts[activity] = rest & covered
        rest = rest - covered
    if not helpers.on_device:
        blocked = parts[Activity.PROGRAM] & (helpers.transfer - helpers.compute)
        parts[Activity.TRANSFER] = parts[Activity.TRANSFER] | blocked
        parts[Activity.PROGRAM] = parts[Activity.PROGRAM] - blocked
    computing = helpers.compute
    parts[Activity.WAIT] = rest & computing
    rest = rest - computing
    for activity, covered in ((Activity.COLLECTIVE, helpers.collective), (Activity.TRANSFER, helpers.transfer)):
        parts[activity] = parts[activity] | (rest & covered)
        rest = rest - covered
    parts[Activity.WAIT] = parts[Activity.WAIT] | (rest & loop.activity_spans(Activity.WAIT))
    rest = rest - loop.activity_spans(Activity.WAIT)
    parts[Activity.PYTHON] = _keep_recurring(loop, steps, rest.drop_shorter(LONG_GAP_PS))
    parts[Activity.DISPATCH] = rest - parts[Activity.PYTHON]
    return parts


def _lock_waits(loop: Loop) -> Spans:
    """Calls of TensorFlow that have finished their work and wait for Python's lock, held by a dataset function."""
    calls = np.flatnonzero(loop.end - loop.start >= LONG_GAP_PS)
    calls = calls[has_trait(loop.trace, loop.type[calls], CallTrait.LEAVES_PYTHON)]
    inner = loop.event_spans(loop.kind_events(K.EAGER_EXECUTE)) if len(calls) else loop.event_spans(calls)
    done = np.maximum(
        np.append(0, inner.end)[np.searchsorted(inner.end, loop.end[calls], side="right")], loop.start[calls]
    )
    after = Spans.union(done, loop.end[calls]).drop_shorter(LONG_GAP_PS)
    return after & _dataset_python_spans(loop.trace) if len(after.start) else after


def _dataset_python_spans(trace: HostTrace) -> Spans:
    """When an op that calls Python is running."""
    ops = events_of_kind(trace, K.OP)
    return spans_of(trace, ops[has_trait(trace, trace.events.type[ops], OpTrait.CALLS_PYTHON)])


def _keep_recurring(loop: Loop, steps: HostSteps, gaps: Spans) -> Spans:
    """Drops gaps in places where no other step has a gap: there, other programs used the core.

    A place is the event before the gap: the n-th of its name, counted from the start or from the end of the step.
    """
    if len(steps.number) < SEVERAL_STEPS or not len(gaps.start):
        return gaps
    before = np.maximum(np.searchsorted(loop.start, gaps.start, side="right") - 1, 0)
    since_begin, until_end = _places(loop, steps, distinct(loop.type[before]))
    kept = np.zeros(len(before), np.bool_)
    for place in (since_begin[before], until_end[before]):
        _, inverse, times = np.unique(
            np.stack([loop.type[before].astype(np.int64), place]), axis=1, return_inverse=True, return_counts=True
        )
        kept |= times[inverse.reshape(-1)] > 1
    return Spans(gaps.start[kept], gaps.end[kept])


def _places(loop: Loop, steps: HostSteps, types: NDArray[np.integer]) -> tuple[I64, I64]:
    """For each event of `types`, how many of its type precede it in its step, and how many follow, itself included.

    Entries of other events have no meaning.
    """
    wanted = np.zeros(len(loop.trace.event_types.name), np.bool_)
    wanted[types] = True
    rows = np.flatnonzero(wanted[loop.type])
    step = np.searchsorted(steps.start_ps, loop.start[rows], side="right")
    group = loop.type[rows].astype(np.int64) * (len(steps.number) + 1) + step
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))
    count = np.diff(np.append(begins, len(order)))
    since_begin, until_end = np.zeros(len(loop.type), np.int64), np.zeros(len(loop.type), np.int64)
    since_begin[rows[order]] = np.arange(len(order)) - np.repeat(begins, count)
    until_end[rows[order]] = np.repeat(count, count) - since_begin[rows[order]]
    return since_begin, until_end
