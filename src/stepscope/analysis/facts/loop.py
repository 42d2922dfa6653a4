"""What the training loop does: how the thread that runs it spends its time, and what work it asks for.

The thread of the step marks is looked at from the first step's begin to the last one's end, between the steps too.
Each instant belongs to one activity, the first in the order of `Activity` that covers it.  What nothing covers is a
gap; a gap while other threads compute for the step is waiting for them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stepscope.analysis.facts.loop_events import LONG_GAP_PS, Activity, Loop, loop_events, loop_line
from stepscope.analysis.facts.loop_time import first_at_or_after, helpers_of, parts_of
from stepscope.analysis.steps.find_steps import HostSteps, observed, whole_steps
from stepscope.analysis.trace.columns import of_kinds
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.torch import LIFTS_VALUES
from stepscope.vocabulary.traits import CallTrait, CodeTrait, OpTrait

K = EventKind

_OF_STARTS = 50  # percent of the kernels, from the shortest, that take no longer than it takes to start one
_LEAST_FREED = 0.005  # bytes in a ps of a gap, from which on it is giving them back that takes it: 5 GB a second
NEAR_FETCH_PS = 1_000_000_000  # from one fetched value to the next, where a program looks at many
MOST_NAMES = 12
MOST_SPANS = 3


@dataclass(frozen=True)
class Span:
    """A stretch of the trace: what happens and when, in ps from the session's start."""

    name: str
    start_ps: int
    end_ps: int


@dataclass(frozen=True)
class Named:
    """Things of one name: how often, for how long altogether."""

    name: str
    calls: int
    total_ps: int


@dataclass(frozen=True)
class Recorded:
    """What recording an activity cost time for.

    Attributes:
        events: what was recorded besides Python calls.
        python_calls: Python calls.
        python_ps: time in which Python code itself ran while calls were recorded; of gaps only, since elsewhere its
            frames stay around what it waits for.
    """

    events: int
    python_calls: int
    python_ps: int


@dataclass(frozen=True)
class LoopFacts:
    """How the loop of one host spends its time, all steps together.

    Attributes:
        steps: how many.
        observed_ps: the time that is looked at (`columns.observed`); what `activity_ps` adds up to.
        activity_ps: time by activity, in lower case.
        busy: by the number of each step, its time without that in collectives.
        spans: the longest stretches of each activity.
        calls: how many outermost events of each activity there are.
        input_from_python_ps: the time of input that Python functions claim by their names.
        input_reads_files, input_is_native: percent of that time in functions that read files, and in NumPy and the
            like; None without such functions.
        programs: compiled functions that the loop calls, by name; `eager_ops` those it dispatches one by one.
        gaps: what Python functions fill long gaps, longest first.
        python_calls: Python calls that were recorded on the thread, each of which the recording made slower.
        before_program_ps: the part of the long gaps that lies before a step's first program, op or transfer.
        after_moves_ps: the part that gives memory back: it follows an op which moved or converted data, or as much
            is freed in it as takes that time.
        recorded: by activity, what of it was recorded.
        helper_events: what was recorded of the work of other threads for the steps.
        eager_kernels_ps: of the ops that are dispatched one by one, the time in their kernels beyond their start.
        fetches_ps: time of bursts of fetched values, and of all that the thread does between two of a burst;
            `fetches_recorded` what of that was recorded.
        update_ps: time of ops, and between them, that follow the last backward pass of a step: the optimizer's;
            `update_recorded` what of that was recorded.
    """

    steps: int
    observed_ps: int
    activity_ps: dict[str, int]
    busy: dict[int, int]
    spans: dict[str, list[Span]]
    calls: dict[str, int]
    input_from_python_ps: int
    input_reads_files_percent: float | None
    input_is_native_percent: float | None
    programs: list[Named]
    eager_ops: list[Named]
    gaps: list[Named]
    python_calls: int
    before_program_ps: int
    after_moves_ps: int
    recorded: dict[str, Recorded]
    helper_events: int
    eager_kernels_ps: int
    fetches_ps: int
    fetches_recorded: int
    update_ps: int = 0
    update_recorded: int = 0


def loop_of(trace: HostTrace) -> LoopFacts | None:
    """How the loop of a host spends its time; None where no steps or no thread of the host were found."""
    return trace.derived("loop", _find)


def _find(trace: HostTrace) -> LoopFacts | None:
    steps = whole_steps(trace)
    line = loop_line(trace, steps)
    if steps.source == "none" or line < 0:
        return None
    seen = observed(trace)
    loop = loop_events(trace, line, seen)
    helpers = helpers_of(trace, steps, line)
    parts = parts_of(loop, helpers, steps, seen)
    fetches = _fetches(loop)
    update = _after_backward(loop, steps) & (parts[Activity.OP] | parts[Activity.DISPATCH])
    from_python = parts[Activity.INPUT] & _claimed_by_python(loop, Activity.INPUT)
    return LoopFacts(
        steps=len(steps.number),
        observed_ps=seen.total,
        activity_ps={activity.name.lower(): spans.total for activity, spans in parts.items()},
        busy=_busy(steps, parts[Activity.COLLECTIVE]),
        spans={activity.name.lower(): _longest(loop, spans, activity) for activity, spans in parts.items()},
        calls={activity.name.lower(): len(loop.outer(activity)) for activity in parts},
        input_from_python_ps=from_python.total,
        input_reads_files_percent=_share(loop, from_python, CodeTrait.READS_FILE),
        input_is_native_percent=_share(loop, from_python, CodeTrait.IS_NATIVE),
        programs=_by_name(loop, loop.outer(Activity.PROGRAM)),
        eager_ops=_by_name(loop, loop.of_kind(K.EAGER_EXECUTE)),
        gaps=_fillers(loop, parts[Activity.PYTHON]),
        python_calls=len(loop.of_kind(K.PYTHON_CALL)),
        before_program_ps=_before_work(loop, steps, parts[Activity.PYTHON]),
        after_moves_ps=_after_moves(loop, parts[Activity.PYTHON]),
        recorded=_recorded(loop, parts),
        helper_events=helpers.events,
        eager_kernels_ps=_eager_kernels(loop),
        fetches_ps=(fetches & seen).total,
        fetches_recorded=_events_in(loop, fetches),
        update_ps=update.total,
        update_recorded=_events_in(loop, update),
    )


# -- what was recorded -------------------------------------------------------------------------------------------


def _busy(steps: HostSteps, waiting: Spans) -> dict[int, int]:
    busy = steps.end_ps - steps.start_ps - waiting.covered(steps.start_ps, steps.end_ps)
    return dict(zip(steps.number.tolist(), busy.tolist(), strict=True))


def _recorded(loop: Loop, parts: Mapping[Activity, Spans]) -> dict[str, Recorded]:
    """Events by the activity in which they begin."""
    python = of_kinds(loop.kind, (K.PYTHON_CALL,))
    running = _running_python(loop, python)
    begins = np.concatenate([spans.start for spans in parts.values()])
    order = np.argsort(begins)
    owner = np.repeat(np.arange(len(parts)), [len(spans.start) for spans in parts.values()])[order]
    bounds = np.append(np.searchsorted(loop.start, begins[order]), len(python))
    called = np.diff(np.append(0, np.cumsum(python))[bounds])
    calls, events = np.zeros(len(parts), np.int64), np.zeros(len(parts), np.int64)
    np.add.at(calls, owner, called)
    np.add.at(events, owner, np.diff(bounds) - called)
    return {
        activity.name.lower(): Recorded(
            int(events[row]), int(calls[row]), (spans & running).total if activity >= Activity.DISPATCH else 0
        )
        for row, (activity, spans) in enumerate(parts.items())
    }


def _eager_kernels(loop: Loop) -> int:
    """Time of kernels that TensorFlow runs on the loop's thread; no other framework records them like this."""
    kernels = loop.rows(Activity.RUNTIME)
    kernels = kernels[has_trait(loop.trace, loop.type[kernels], CallTrait.RUNS_KERNEL)]
    length = loop.end[kernels] - loop.start[kernels]
    return int((length - np.percentile(length, _OF_STARTS)).clip(min=0).sum()) if len(length) else 0


def _fetches(loop: Loop) -> Spans:
    """Fetches of values, each from the end of the one before it where that is near; from its own begin else."""
    rows = loop.outer(Activity.SYNC)
    start, end = loop.start[rows], loop.end[rows]
    near = start[1:] - end[:-1] < NEAR_FETCH_PS
    return Spans.of(np.concatenate([start[:1], np.where(near, end[:-1], start[1:])]), end)


def _events_in(loop: Loop, spans: Spans) -> int:
    """How many events begin in some spans."""
    return int(np.diff(np.searchsorted(loop.start, np.stack([spans.start, spans.end])), axis=0).sum())


def _after_backward(loop: Loop, steps: HostSteps) -> Spans:
    """From the last backward work of each step to the step's end."""
    rows = loop.of_kind(K.BACKWARD)
    if not len(rows):
        return loop.at(rows)
    last = np.searchsorted(loop.start[rows], steps.end_ps) - 1
    there = (last >= 0) & (loop.start[rows[np.maximum(last, 0)]] >= steps.start_ps)
    done = np.maximum.accumulate(loop.end[rows])[last[there]]
    ends = steps.end_ps[there]
    return Spans.of(np.minimum(done, ends), ends)


def _running_python(loop: Loop, python: Mask) -> Spans:
    """When recorded Python code itself runs, rather than what it calls."""
    if not python.any():
        return Spans.of(loop.start[:0], loop.end[:0])
    code = python & has_trait(loop.trace, loop.type, CodeTrait.IS_CODE)
    return loop.where(code) - loop.where(~code & (python | (loop.activity > 0)))


# -- names and places --------------------------------------------------------------------------------------------


def _longest(loop: Loop, spans: Spans, activity: Activity) -> list[Span]:
    order = np.argsort(spans.start - spans.end, kind="stable")[:MOST_SPANS]
    found = []
    for at in order.tolist():
        start, end = int(spans.start[at]), int(spans.end[at])
        found.append(Span(_name_in(loop, start, end, activity), start, end))
    return found


def _name_in(loop: Loop, start: int, end: int, activity: Activity) -> str:
    """The longest event of the activity inside a span; for spans that no event covers the longest Python call."""
    first, last = np.searchsorted(loop.start, (start, end))
    near = slice(int(first), int(last))
    inside = loop.end[near] <= end
    rows = first + np.flatnonzero(inside & (loop.activity[near] == int(activity)))
    if not len(rows):
        rows = first + np.flatnonzero(inside & of_kinds(loop.kind[near], (K.PYTHON_CALL,)))
    return loop.name(int(rows[np.argmax(loop.end[rows] - loop.start[rows])])) if len(rows) else ""


def _by_name(loop: Loop, rows: I64) -> list[Named]:
    types, inverse = np.unique(loop.type[rows], return_inverse=True)
    calls = np.bincount(inverse, minlength=len(types))
    total = np.zeros(len(types), np.int64)
    np.add.at(total, inverse, loop.end[rows] - loop.start[rows])
    names = loop.trace.event_types.name[types]
    merged: dict[str, Named] = {}
    for name, count, time in zip(names.tolist(), calls.tolist(), total.tolist(), strict=True):
        text = loop.trace.strings[name]
        known = merged.get(text, Named(text, 0, 0))
        merged[text] = Named(text, known.calls + count, known.total_ps + time)
    return sorted(merged.values(), key=lambda named: (-named.total_ps, named.name))[:MOST_NAMES]


def _claimed_by_python(loop: Loop, activity: Activity) -> Spans:
    """When Python functions say by their names that they do something."""
    calls = loop.of_kind(K.PYTHON_CALL)
    return loop.at(calls[loop.activity[calls] == int(activity)])


def _share(loop: Loop, claimed: Spans, trait: CodeTrait) -> float | None:
    """Percent of the claimed time inside Python functions with a trait; None if nothing is claimed."""
    if not claimed.total:
        return None
    calls = loop.of_kind(K.PYTHON_CALL)
    calls = calls[has_trait(loop.trace, loop.type[calls], trait)]
    inside = claimed & Spans.of(loop.start[calls], loop.end[calls])
    return round(100.0 * inside.total / claimed.total, 2)


def _fillers(loop: Loop, gaps: Spans) -> list[Named]:
    """The Python functions that fill long gaps: for each the longest call that begins in it and fills most of it."""
    python = loop.of_kind(K.PYTHON_CALL)
    start, end = loop.start[python], loop.end[python]
    found: dict[str, Named] = {}
    for begin, stop in zip(gaps.start[:200].tolist(), gaps.end[:200].tolist(), strict=True):
        low, high = np.searchsorted(start, begin - LONG_GAP_PS // 10), np.searchsorted(start, stop)
        inside = np.minimum(end[low:high], stop) - np.maximum(start[low:high], begin)
        best = int(np.argmax(inside)) if len(inside) else -1
        if best < 0 or inside[best] < 0.3 * (stop - begin):
            continue
        name = loop.name(int(python[low + best]))
        known = found.get(name, Named(name, 0, 0))
        found[name] = Named(name, known.calls + 1, known.total_ps + int(inside[best]))
    return sorted(found.values(), key=lambda named: -named.total_ps)[:MOST_NAMES]


def _before_work(loop: Loop, steps: HostSteps, gaps: Spans) -> int:
    """Long gaps before the first program of each step, or the first op that is more than making a tensor of Python's
    numbers."""
    work = [loop.rows(each) for each in (Activity.PROGRAM, Activity.OP, Activity.TRANSFER, Activity.EAGER)]
    if loop.trace.strings.find(LIFTS_VALUES) > 0:
        work[1] = work[1][~has_trait(loop.trace, loop.type[work[1]], OpTrait.MAKES_TENSOR)]
    first = np.minimum.reduce([first_at_or_after(loop.start[rows], steps.start_ps) for rows in work])
    first = np.where(first < steps.end_ps, first, steps.start_ps)
    return (gaps & Spans.of(steps.start_ps, first)).total


def _after_moves(loop: Loop, gaps: Spans) -> int:
    """Long gaps in which memory is given back: they begin where an op that only moves data ends, or much is freed in
    them."""
    ops = loop.outer(Activity.OP)
    if not len(ops) or not len(gaps.start):
        return 0
    last = np.searchsorted(loop.start[ops], gaps.start, side="right") - 1
    moves = has_trait(loop.trace, loop.type[ops], OpTrait.MOVES_DATA | OpTrait.CONVERTS)
    follows = (last >= 0) & moves[last]
    length = gaps.end - gaps.start
    return int(length[follows | (_freed_in(loop, gaps) >= length * _LEAST_FREED)].sum())


def _freed_in(loop: Loop, gaps: Spans) -> I64:
    """Bytes that are freed in each gap, as far as that was recorded."""
    frees = loop.of_kind(K.DEALLOCATION)
    size = np.abs(loop.trace.stat_ints(stat_names.ALLOCATED_BYTES, rows=loop.row[frees]))
    freed = np.append(0, np.cumsum(size))
    found: I64 = np.diff(freed[np.searchsorted(loop.start[frees], np.stack([gaps.start, gaps.end]))], axis=0)[0]
    return found
