"""Steps that a program marks by ranges of its own, such as `record_function("train_step")`.

Where a program marks no steps in the way of its profiler, but names a range that repeats and holds most of the work of
its thread, each of these ranges is a step.  Ranges that repeat inside and fill them, such as the steps of an epoch, are
the steps instead.  Names that speak of a step may count it, as `warm-up step 3` does; such ranges are steps however
much they hold.  A server of language models names each batch after what is in it, and each batch is a step.  In a
profile of TensorFlow or JAX, whose own work may look like a range of the program, the name has to speak of a step, an
iteration or a batch.  The events then are of the kind `STEP_MARK`, so that every analysis treats them alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.steps.cycles import LEAST_STEPS
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.spans import spans_of
from stepscope.analysis.trace.user_ranges import user_ranges
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.ranges import says_evaluation, says_step, without_numbers
from stepscope.vocabulary.serving import served_batch
from stepscope.vocabulary.traits import CallTrait

_FEWEST_GRAPHS = 2  # launches of a graph that are a loop
_COVERS = 0.5  # of the thread's work: ranges that hold less are parts of a step, or something else
_FEWEST_ROUNDS = 5  # with fewer, ranges that come as often as each other may be the parts of a script
_ONCE_EACH = 0.9  # of the rounds of a loop: in so many each of its phases comes once
_FILLS = 0.8  # of a range: what holds as much of it and repeats in it is the smaller unit
_MARKS = (EventKind.STEP_MARK, EventKind.DEVICE_STEP)
_WORK = (
    EventKind.OP, EventKind.EXECUTOR, EventKind.FUNCTION_RUN, EventKind.EAGER_EXECUTE, EventKind.TRACED_FUNCTION,
    EventKind.RUNTIME_CALL, EventKind.BACKWARD, EventKind.INPUT_WAIT, EventKind.PYTHON_CALL, EventKind.COMPILE,
)  # fmt: skip


@dataclass(frozen=True)
class RangeGroup:
    """Ranges of one name on one thread, none inside another: rows of events in order of time."""

    name: str
    rows: I64
    total_ps: int


def mark_named_steps(trace: HostTrace) -> HostTrace:
    """The trace with its named steps as step marks; the same trace if it has marks, or no such ranges."""
    if any((trace.events.kind == kind).any() for kind in _MARKS):
        return trace
    steps = find_named_steps(trace)
    if not len(steps):
        return trace
    kind = trace.events.kind.copy()
    kind[np.append(steps, _other_loops(trace, steps))] = EventKind.STEP_MARK
    kind.setflags(write=False)
    return replace(trace, events=replace(trace.events, kind=kind), _derived={})


def _other_loops(trace: HostTrace, steps: I64) -> I64:
    """Ranges beside the steps on their thread whose names speak of steps or of an evaluation: loops of their own.

    main   |train_step|train_step|evaluate----|train_step|
    """
    found = user_ranges(trace)
    rows: I64 = found[(trace.events.line[found] == trace.events.line[steps[0]]) & ~np.isin(found, steps)]
    types, place = np.unique(trace.events.type[rows], return_inverse=True)
    names = trace.strings.texts(trace.event_types.name[types])
    says = np.array([says_step(name) or says_evaluation(name) for name in names], np.bool_)
    if not says.any():
        return rows[:0]
    rows = _outermost(trace, rows[says[place]])
    beside: I64 = rows[~_lie_inside(trace, rows, steps) & ~_hold_any(trace, rows, steps)]
    return beside


def find_named_steps(trace: HostTrace) -> I64:
    """Rows of the ranges that are the program's steps, in order of time; empty without such ranges."""
    served = _served_batches(trace)
    if len(served):  # a server says by the name that it is a batch: one of them is a step as well
        return served
    groups = _groups(trace)
    longest = _longest_unit(trace, groups)
    if longest is None or len(_phases_beside(trace, longest, groups)[0]):
        return np.empty(0, np.int64)
    counted = longest.name != trace.name_of(int(longest.rows[0]))  # as only steps are, whatever else the thread does
    return longest.rows if counted or _holds_work(trace, longest.rows) else longest.rows[:0]


def find_phases(trace: HostTrace) -> tuple[list[RangeGroup], float]:
    """The ranges that are the phases of one loop, the longest first, and in which share of its rounds each comes once;
    none where a single range is the step."""
    groups = _groups(trace)
    longest = _longest_unit(trace, groups)
    if longest is None:
        return [], 0.0
    beside, share = _phases_beside(trace, longest, groups)
    return ([longest, *beside], share) if beside else ([], 0.0)


def _longest_unit(trace: HostTrace, groups: list[RangeGroup]) -> RangeGroup | None:
    """The ranges with most time that are neither around smaller units nor parts of one call."""
    for longest in sorted(groups, key=lambda group: (-group.total_ps, len(group.rows))):
        others = [group for group in groups if group is not longest]
        if not _holds_smaller_unit(trace, longest, others) and not _is_part_of_one(trace, longest):
            return longest
    return None


def _phases_beside(trace: HostTrace, longest: RangeGroup, groups: list[RangeGroup]) -> tuple[list[RangeGroup], float]:
    """The ranges that come once between two of the longest, none inside another, if these do not fill the rounds by
    themselves and are not named as steps, and all together hold half of the time; and in which share of the rounds each
    does."""
    events, rows = trace.events, longest.rows
    span = int(events.start_ps[rows[-1]] - events.start_ps[rows[0]])
    if says_step(longest.name) or len(rows) < _FEWEST_ROUNDS or longest.total_ps >= _FILLS * span:
        return [], 0.0
    found: list[RangeGroup] = []
    least = 1.0
    for group in sorted(groups, key=lambda each: -each.total_ps):
        same_line = group is not longest and events.line[group.rows[0]] == events.line[rows[0]]
        if not same_line or abs(len(group.rows) - len(rows)) > 1:
            continue
        if any(_lie_inside(trace, group.rows, each.rows).any() for each in (longest, *found)):
            continue
        at = np.searchsorted(events.start_ps[group.rows], events.start_ps[rows])
        share = float(np.mean(np.diff(at) == 1))
        if share >= _ONCE_EACH:
            found.append(group)
            least = min(least, share)
    together = longest.total_ps + sum(each.total_ps for each in found)
    return (found, least) if together >= _COVERS * span else ([], 0.0)


def _served_batches(trace: HostTrace) -> I64:
    """Ranges that a server of language models names after the batch in them, none inside another, of one thread."""
    rows = user_ranges(trace)
    types, place = np.unique(trace.events.type[rows], return_inverse=True)
    names = trace.strings.texts(trace.event_types.name[types])
    rows = rows[np.array([served_batch(name) is not None for name in names], np.bool_)[place]]
    if not len(rows):
        return rows
    line = trace.events.line[rows]
    return _outermost(trace, rows[line == np.bincount(line).argmax()])


def _groups(trace: HostTrace) -> list[RangeGroup]:
    """Ranges that occur several times on a thread."""
    rows = user_ranges(trace)
    if len(rows) < _FEWEST_GRAPHS:
        return []
    keys = _names_without_counts(trace, rows) * len(trace.lines) + trace.events.line[rows]
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    found = []
    for at in np.flatnonzero(counts >= _FEWEST_GRAPHS).tolist():
        own = _outermost(trace, rows[inverse.reshape(-1) == at])
        name = _drop_count(trace.name_of(int(own[0])))
        certain = trace.events.kind[own[0]] == EventKind.ANNOTATION or says_step(name)
        if not says_step(name) and _is_served_beside(trace, own, rows[inverse.reshape(-1) != at]):
            continue
        enough = len(own) >= LEAST_STEPS or (len(own) >= _FEWEST_GRAPHS and _launch_graphs(trace, own))
        if enough and certain:
            found.append(RangeGroup(name, own, int(trace.events.duration_ps[own].sum())))
    return found


def _is_served_beside(trace: HostTrace, own: I64, others: I64) -> bool:
    """Whether ranges of the same name go on, on other threads, for most of their time: a server handles requests side
    by side, and those of one thread are no steps of the whole.

    thread 1 |handle|handle----|handle|
    thread 2 |handle----|handle|handle|
    """
    alike = others[trace.event_names(others) == trace.event_names(own[:1])[0]]
    spans = spans_of(trace, own)
    return 2 * (spans & spans_of(trace, alike)).total > spans.total


def _names_without_counts(trace: HostTrace, rows: I64) -> I64:
    """A number for what each range is called, the same for all steps that the program counts: int64 of shape (n,)."""
    names, place = np.unique(trace.event_names(rows), return_inverse=True)
    called = [_drop_count(name) for name in trace.strings.texts(names)]
    number = {name: at for at, name in enumerate(dict.fromkeys(called))}
    return np.array([number[name] for name in called], np.int64)[place]


def _drop_count(name: str) -> str:
    """The name of a range without the number that counts it, if it speaks of a step."""
    return without_numbers(name) if name[-1:].isdigit() and says_step(name) else name


def _launch_graphs(trace: HostTrace, ranges: I64) -> bool:
    """Whether each of some ranges launches as many whole graphs as the others: a graph holds all of a step that was
    captured, so that two of them are two steps."""
    calls = events_of_kind(trace, EventKind.RUNTIME_CALL)
    calls = calls[has_trait(trace, trace.events.type[calls], CallTrait.LAUNCHES_GRAPH)]
    start, end = trace.events.start_ps[ranges], trace.events.start_ps[ranges] + trace.events.duration_ps[ranges]
    begin = np.sort(trace.events.start_ps[calls])
    held = np.searchsorted(begin, end) - np.searchsorted(begin, start)
    return bool(held[0] > 0 and (held == held[0]).all())


def _outermost(trace: HostTrace, rows: I64) -> I64:
    """The ranges that none of the others encloses: a function that calls itself is one call."""
    rows = rows[np.lexsort((-trace.events.duration_ps[rows], trace.events.start_ps[rows]))]
    start = trace.events.start_ps[rows]
    latest = np.maximum.accumulate(start + trace.events.duration_ps[rows])
    free: I64 = rows[np.append(True, start[1:] >= latest[:-1])]
    return free


def _holds_smaller_unit(trace: HostTrace, outer: RangeGroup, others: list[RangeGroup]) -> bool:
    """Whether other ranges repeat inside `outer` and fill it, as steps fill an epoch."""
    if says_step(outer.name):
        return False
    return any(
        len(group.rows) >= 2 * len(outer.rows)
        and group.total_ps >= _FILLS * outer.total_ps
        and bool(_lie_inside(trace, group.rows, outer.rows).all())
        for group in others
    )


def _is_part_of_one(trace: HostTrace, group: RangeGroup) -> bool:
    """Whether the ranges lie in one of another name that occurs once, and leave most of it to others: they are parts of
    what it names, such as the layers of one forward pass.

    main   |Model_Forward-------------------------|
             |Attention|FeedForward|Attention|FeedForward|
    """
    if says_step(group.name):
        return False
    rows, events = user_ranges(trace), trace.events
    first, last = events.start_ps[group.rows[0]], events.start_ps[group.rows[-1]] + events.duration_ps[group.rows[-1]]
    around = (events.start_ps[rows] <= first) & (events.start_ps[rows] + events.duration_ps[rows] >= last)
    around &= events.line[rows] == events.line[group.rows[0]]
    names = trace.event_names(rows)
    return any(
        int((names == names[at]).sum()) == 1 and group.total_ps < _COVERS * events.duration_ps[rows[at]]
        for at in np.flatnonzero(around).tolist()
    )


def _holds_work(trace: HostTrace, rows: I64) -> bool:
    """Whether the ranges hold most of the calls of their thread; true if none was recorded."""
    line = int(trace.events.line[rows[0]])
    own = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    work = own[np.isin(trace.events.kind[own], _WORK)]
    return not len(work) or float(_lie_inside(trace, work, rows).mean()) >= _COVERS


def _lie_inside(trace: HostTrace, rows: I64, ranges: I64) -> Mask:
    """Whether each event starts inside one of some ranges, which are in order of time."""
    start = trace.events.start_ps
    at = np.searchsorted(start[ranges], start[rows], side="right") - 1
    held = ranges[np.maximum(at, 0)]
    inside: Mask = (at >= 0) & (start[rows] < start[held] + trace.events.duration_ps[held])
    return inside


def _hold_any(trace: HostTrace, ranges: I64, rows: I64) -> Mask:
    """Whether any of some events, which are in order of time, starts inside each range."""
    start = trace.events.start_ps
    first = np.searchsorted(start[rows], start[ranges])
    last = np.searchsorted(start[rows], start[ranges] + trace.events.duration_ps[ranges])
    held: Mask = last > first
    return held
