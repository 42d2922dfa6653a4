"""What the training loop does: how its thread spends time, and what work it starts.

The thread with the step marks is observed from the start of the first step to the end of the last, gaps between steps
included.  Each instant belongs to one activity, the first in the order of `Activity` that covers it.  Uncovered time is
a gap.  A gap while other threads compute for the step counts as waiting for them.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.contention import asleep_ps
from stepscope.analysis.facts.loop_events import Activity, Loop, loop_events
from stepscope.analysis.facts.loop_time import helpers_of, parts_of
from stepscope.analysis.steps.find_steps import HostSteps, observed_time, whole_steps
from stepscope.analysis.steps.loop_thread import find_loop_line
from stepscope.analysis.steps.stack_samples import spans_of_others
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.torch import LIFTS_VALUES
from stepscope.vocabulary.traits import CodeTrait, OpTrait

K = EventKind

_LEAST_FREED = 0.005  # bytes freed per ps of a gap from which freeing explains the gap: 5 GB per second
NEAR_FETCH_PS = 1_000_000_000  # largest distance between two fetched values of a burst
FETCHES, BEFORE_WORK, OWN_COPIES, FREEING = "fetches", "before_work", "own_copies", "freeing"
MOST_NAMES = 12
MOST_SPANS = 3


@dataclass(frozen=True)
class Span:
    """An interval of the trace: what happens and when, in ps from the start of the session."""

    name: str
    start_ps: int
    end_ps: int


@dataclass(frozen=True)
class Named:
    """Events of one name: count and total time in ps."""

    name: str
    calls: int
    total_ps: int


@dataclass(frozen=True)
class LoopFacts:
    """How the loop of one host spends its time, summed over the steps.

    Attributes:
        steps: number of steps.
        observed_ps: the observed time (`find_steps.observed_time`), which `activity_ps` adds up to.
        activity_ps: time by activity, keyed in lower case.
        spans: the longest intervals of each activity.
        calls: number of outermost events of each activity.
        input_from_python_ps: time of Python functions that count as input because of their names.
        input_reads_files_percent, input_is_native_percent: percent of that time in functions that read files, and in
            native code such as NumPy; None without such functions.
        input_sleeps_percent, python_sleeps_percent: percent of the time of input and of Python in which the thread
            neither runs nor waits for a processor, as while it waits for a disk or a server; None if nothing shows
            that.
        programs: compiled functions that the loop calls, by name.
        eager_ops: ops that the loop dispatches one by one, by name.
        python_calls: Python calls recorded on the thread; recording slowed down each of them.
        before_program_ps: the part of long gaps before a step's first program, op or transfer, in which the loop makes
            its batch as far as is known.
        after_moves_ps: the part of long gaps spent freeing memory: it follows an op that moved or converted data, or
            enough bytes are freed in it to explain it.
        fetches_ps: time of bursts of fetched values, including the time between fetches of a burst.
    """

    steps: int
    observed_ps: int
    activity_ps: dict[str, int]
    spans: dict[str, list[Span]]
    calls: dict[str, int]
    input_from_python_ps: int
    input_reads_files_percent: float | None
    input_is_native_percent: float | None
    input_sleeps_percent: float | None
    python_sleeps_percent: float | None
    programs: list[Named]
    eager_ops: list[Named]
    python_calls: int
    before_program_ps: int
    after_moves_ps: int
    fetches_ps: int


@dataclass(frozen=True)
class LoopTime:
    """When the loop's thread does what.

    Attributes:
        line: of the thread.
        spans: the time of each activity, and of `FETCHES`, `BEFORE_WORK`, `OWN_COPIES` and `FREEING`: bursts of fetched
            values, the long gaps before the first work of each step that may be input, the transfers of this thread,
            and long gaps in which it frees memory.
        copies: what other threads copy in for the steps: rows of events.
        starts: the outermost ops, programs and single ops that it starts: rows of events.
    """

    line: int
    spans: dict[str, Spans]
    starts: I64
    copies: I64


def loop_of(trace: HostTrace) -> LoopFacts | None:
    """How the loop of a host spends its time; None if no steps or no host thread were found."""
    found = trace.derived("loop", _find_loop_facts)
    return found[0] if found else None


def loop_time_of(trace: HostTrace) -> LoopTime | None:
    """When it does what; None where `loop_of` is None."""
    found = trace.derived("loop", _find_loop_facts)
    return found[1] if found else None


def _find_loop_facts(trace: HostTrace) -> tuple[LoopFacts, LoopTime] | None:
    steps = whole_steps(trace)
    line = find_loop_line(trace, steps)
    if steps.source == "none" or line < 0:
        return None
    seen = observed_time(trace)
    loop = loop_events(trace, line, seen)
    helpers = helpers_of(trace, steps, line)
    parts = parts_of(loop, helpers, steps, seen)
    fetches = _fetch_spans(loop)
    from_python = parts[Activity.INPUT] & _python_claims(loop, Activity.INPUT)
    before = _gaps_before_work(loop, steps, parts[Activity.PYTHON], spans_of_others(trace, line))
    starts = np.concatenate([loop.outer_events(each) for each in (Activity.PROGRAM, Activity.EAGER, Activity.OP)])
    spans = {activity.name.lower(): spans for activity, spans in parts.items()}
    freeing = _gaps_freeing(loop, parts[Activity.PYTHON])
    copies = parts[Activity.TRANSFER] & loop.activity_spans(Activity.TRANSFER)
    spans |= {FETCHES: fetches & seen, BEFORE_WORK: before, OWN_COPIES: copies, FREEING: freeing}
    time = LoopTime(line, spans, loop.row[np.sort(starts)], helpers.copies)
    facts = LoopFacts(
        steps=len(steps.number),
        observed_ps=seen.total,
        activity_ps={activity.name.lower(): spans.total for activity, spans in parts.items()},
        spans={activity.name.lower(): _longest_spans(loop, spans, activity) for activity, spans in parts.items()},
        calls={activity.name.lower(): len(loop.outer_events(activity)) for activity in parts},
        input_from_python_ps=from_python.total,
        input_reads_files_percent=_share_with_trait(loop, from_python, CodeTrait.READS_FILE),
        input_is_native_percent=_share_with_trait(loop, from_python, CodeTrait.IS_NATIVE),
        input_sleeps_percent=_asleep_percent(loop, line, parts[Activity.INPUT], from_python),
        python_sleeps_percent=_asleep_percent(loop, line, parts[Activity.PYTHON], parts[Activity.PYTHON]),
        programs=_sum_by_name(loop, loop.outer_events(Activity.PROGRAM)),
        eager_ops=_sum_by_name(loop, loop.kind_events(K.EAGER_EXECUTE)),
        python_calls=len(loop.kind_events(K.PYTHON_CALL)),
        before_program_ps=before.total,
        after_moves_ps=freeing.total,
        fetches_ps=(fetches & seen).total,
    )
    return facts, time


def _fetch_spans(loop: Loop) -> Spans:
    """Fetches of values: each from the end of the previous one if that is near, else from its own start."""
    rows = loop.outer_events(Activity.SYNC)
    start, end = loop.start[rows], loop.end[rows]
    near = start[1:] - end[:-1] < NEAR_FETCH_PS
    return Spans.union(np.concatenate([start[:1], np.where(near, end[:-1], start[1:])]), end)


# -- names and places --------------------------------------------------------------------------------------------


def _longest_spans(loop: Loop, spans: Spans, activity: Activity) -> list[Span]:
    order = np.argsort(spans.start - spans.end, kind="stable")[:MOST_SPANS]
    found = []
    for at in order.tolist():
        start, end = int(spans.start[at]), int(spans.end[at])
        found.append(Span(_span_name(loop, start, end, activity), start, end))
    return found


def _span_name(loop: Loop, start: int, end: int, activity: Activity) -> str:
    """The name of the longest event of the activity inside a span, else of the longest Python call."""
    first, last = np.searchsorted(loop.start, (start, end))
    near = slice(int(first), int(last))
    inside = loop.end[near] <= end
    rows = first + np.flatnonzero(inside & (loop.activity[near] == int(activity)))
    if not len(rows):
        rows = first + np.flatnonzero(inside & is_any_kind(loop.kind[near], (K.PYTHON_CALL,)))
    return loop.name(int(rows[np.argmax(loop.end[rows] - loop.start[rows])])) if len(rows) else ""


def _sum_by_name(loop: Loop, rows: I64) -> list[Named]:
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


def _python_claims(loop: Loop, activity: Activity) -> Spans:
    """When Python functions run that count as the activity because of their names."""
    calls = loop.kind_events(K.PYTHON_CALL)
    return loop.event_spans(calls[loop.activity[calls] == int(activity)])


def _share_with_trait(loop: Loop, claimed: Spans, trait: CodeTrait) -> float | None:
    """Percent of the claimed time inside Python functions with a trait; None without claimed time."""
    if not claimed.total:
        return None
    calls = loop.kind_events(K.PYTHON_CALL)
    calls = calls[has_trait(loop.trace, loop.type[calls], trait)]
    inside = claimed & Spans.union(loop.start[calls], loop.end[calls])
    return round(100.0 * inside.total / claimed.total, 2)


def _asleep_percent(loop: Loop, line: int, spans: Spans, from_python: Spans) -> float | None:
    """By what the thread used of the processors, else by the recorded Python calls in a part of that time."""
    asleep = asleep_ps(loop.trace, line, spans) if spans.total else None
    if asleep is None:
        return _share_with_trait(loop, from_python, CodeTrait.SLEEPS) or None
    return round(100.0 * asleep / spans.total, 2)


def _gaps_before_work(loop: Loop, steps: HostSteps, gaps: Spans, others: Spans) -> Spans:
    """The long gaps in which the loop makes its batch, as far as is known: those before a step's first program,
    transfer or op, from its mark on, but for what samples of the stack show there.

    Where that first work copies an array of the host in, the array comes from the whole gap, also from before the mark.
    If the loop reads a value in that gap, Python may be busy with that value instead.

        marks    M0---      M1---      M2---
        loop     TP   ppppppTP   ppppppTP           T copies a batch in, p makes it

    Args:
        others: when the samples show functions that make no input by their names.
    """
    rows = _first_work(loop)
    at = np.searchsorted(loop.start[rows], steps.start_ps)
    step = np.flatnonzero(at < len(rows))
    step = step[loop.start[rows[at[step]]] < steps.end_ps[step]]
    first = steps.start_ps.copy()
    first[step] = loop.start[rows[at[step]]]
    ends = np.append(np.maximum.accumulate(loop.end[rows]), steps.start_ps[:1])
    after = np.where(at > 0, ends[at - 1], steps.start_ps)[step]
    reads = loop.start[loop.outer_events(Activity.SYNC)]
    made = _takes_array_in(loop, rows[at[step]])
    made &= np.searchsorted(reads, after) == np.searchsorted(reads, first[step])
    making = Spans.union(np.minimum(after, steps.start_ps[step])[made], first[step][made])
    return gaps & (making | (Spans.union(steps.start_ps, first) - others))


def _first_work(loop: Loop) -> I64:
    """What a step may start with: programs, transfers and ops, but for those that make a tensor from Python numbers."""
    work = [loop.activity_events(each) for each in (Activity.PROGRAM, Activity.OP, Activity.TRANSFER, Activity.EAGER)]
    if loop.trace.strings.find(LIFTS_VALUES) > 0:
        work[1] = work[1][~has_trait(loop.trace, loop.type[work[1]], OpTrait.MAKES_TENSOR)]
    return np.sort(np.concatenate(work))


def _takes_array_in(loop: Loop, rows: I64) -> Mask:
    """Whether an array of the host is copied in during each of some events, such as the call of a program."""
    copies = loop.start[loop.kind_events(K.COPY_HOST_TO_DEVICE_CALL)]
    found: Mask = np.searchsorted(copies, loop.start[rows]) < np.searchsorted(copies, loop.end[rows])
    return found


def _gaps_freeing(loop: Loop, gaps: Spans) -> Spans:
    """The long gaps in which memory is freed: they follow an op that only moves data, or many bytes are freed in
    them."""
    ops = loop.outer_events(Activity.OP)
    if not len(ops) or not len(gaps.start):
        return Spans(gaps.start[:0], gaps.end[:0])
    last = np.searchsorted(loop.start[ops], gaps.start, side="right") - 1
    moves = has_trait(loop.trace, loop.type[ops], OpTrait.MOVES_DATA | OpTrait.CONVERTS)
    follows = (last >= 0) & moves[last]
    length = gaps.end - gaps.start
    freeing = follows | (_freed_bytes(loop, gaps) >= length * _LEAST_FREED)
    return Spans(gaps.start[freeing], gaps.end[freeing])


def _freed_bytes(loop: Loop, gaps: Spans) -> I64:
    """Recorded bytes freed in each gap."""
    frees = loop.kind_events(K.DEALLOCATION)
    size = np.abs(loop.trace.stat_ints(stat_names.ALLOCATED_BYTES, rows=loop.row[frees]))
    freed = np.append(0, np.cumsum(size))
    found: I64 = np.diff(freed[np.searchsorted(loop.start[frees], np.stack([gaps.start, gaps.end]))], axis=0)[0]
    return found
