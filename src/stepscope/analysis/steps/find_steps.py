"""The steps of one host: where each starts and ends, and which events belong to it.

Sources, in this order:

1. marks that the user or the framework set on a host thread (source "markers"); where there are none, repeated ranges
   of the program around its work count as marks (`named_steps`, when a trace is loaded);
2. steps that the writer of the file derived for its devices (also "markers", since they come from marks);
3. the updates of PyTorch's optimizers ("inferred", with a confidence);
4. ranges of the program that are the phases of its loop ("inferred", too);
5. the repeating cycle of device work, of function calls, of input iterator calls or of ops ("inferred", too);
6. nothing: the whole capture is one span ("none").
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.steps.cycles import LEAST_STEPS
from stepscope.analysis.steps.host_steps import (
    WHOLE_STEP_SHARE,
    HostSteps,
    close_gaps,
    drop_enclosed,
    keep_fullest_line,
)
from stepscope.analysis.steps.loop_signs import UNSUPPORTED, sizes_of_groups
from stepscope.analysis.steps.marked_steps import find_device_steps, find_marked_steps, label_work
from stepscope.analysis.steps.phases import find_phase_steps
from stepscope.analysis.steps.unmeasured import why_unmeasured
from stepscope.analysis.trace.columns import events_of_kind, holds_sums_only, is_any_kind
from stepscope.analysis.trace.environment import steps_awaited_s
from stepscope.analysis.trace.event_kinds import count_kinds
from stepscope.analysis.trace.grouping import device_spans
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I32, I64, Mask, distinct, look_up
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import RangeTrait

# ---- Unmarked steps of PyTorch ---------------------------------------------------------------------------------------
# each ends with an optimizer's update, which its profiler always records.      main   a--b--c--U  a--b--c--U  a--b--c
# --U      U updates the parameters     step   |-----------|-----------|-----------|  A loop with several optimizers
# has several updates in a step.  They are told apart by the work before each:      main   a--b--U  d--e--U  a--b--U
# d--e--U      two updates a step: the work before them alternates


K = EventKind

_COMPUTES = (K.OP, K.BACKWARD, K.EXECUTOR, K.FUNCTION_RUN, K.EAGER_EXECUTE)
_MEASURED = (LineKind.THREAD, LineKind.STREAM, LineKind.DEVICE_OPS)
_WORK = (K.OP, K.BACKWARD, K.ANNOTATION, K.INPUT_WAIT, K.COLLECTIVE_CALL)
_MOST_UPDATES = 6  # in a step
_CLEARLY_LIKER = 0.08  # how much more alike cycles of several updates have to be than those of one
_REGULAR = 0.8  # of the batches: so many have the usual number of updates after them
_ALIKE = 0.5  # of the work: below that the updates are of no common loop
_NEARLY_SURE, _DOUBT = 0.97, 0.5  # how sure an update ends a step, and how much unlike steps take from that


def find_update_steps(trace: HostTrace) -> HostSteps | None:
    """The steps between the updates of a PyTorch loop; None with too few updates, or if what lies between them differs
    too much."""
    updates = _find_updates(trace)
    if len(updates) < LEAST_STEPS:
        return None
    line = int(trace.events.line[updates[0]])
    begin = int(trace.lines.event_begin[line])
    ends = trace.events.start_ps[updates] + trace.events.duration_ps[updates]
    counts = _count_work(trace, line, ends, updates)
    batches = _count_batches(trace, line, ends)
    in_step, first = _updates_of_optimizers(_find_optimizers(trace, updates))
    if not in_step:
        in_step = _updates_per_batch(batches) or _updates_per_cycle(counts)
        first = _first_last_update(batches, in_step)
    last = np.arange(first, len(ends), in_step)
    if len(last) < LEAST_STEPS:
        return None
    end = ends[last]
    start = np.append(trace.events.start_ps[begin : begin + 1], end[:-1])
    similar = _similarity(counts, in_step, contained=True)
    if similar < _ALIKE:
        return None
    label = np.full(len(trace.events), -1, np.int32)
    bounds = label_work(trace, label, line, start, end)
    return HostSteps(
        source="inferred",
        how=f"no step marks found; {len(start)} steps were inferred, each ending with "
        + (f"{trace.name_of(int(updates[0]))!r}" if in_step == 1 else f"the last of {in_step} updates by optimizers"),
        confidence=round(_NEARLY_SURE - _DOUBT * (1.0 - similar), 3),
        number=np.arange(len(start)),
        name=tuple(str(row) for row in range(len(start))),
        start_ps=bounds.start_ps,
        end_ps=bounds.end_ps,
        complete=_find_complete(counts, last) & bounds.finished,
        label=label,
        line=line,
        backlog=bounds.backlog,
    )


def _find_updates(trace: HostTrace) -> I64:
    """The outermost updates on the thread that makes most of them, in order of time."""
    rows = events_of_kind(trace, K.ANNOTATION)
    rows = rows[has_trait(trace, trace.events.type[rows], RangeTrait.UPDATES_MODEL)]
    if not len(rows):
        return rows
    is_one = np.zeros(len(trace.events), np.bool_)
    is_one[rows] = True
    return keep_fullest_line(trace, drop_enclosed(trace, rows, is_one))


def _find_optimizers(trace: HostTrace, updates: I64) -> I64:
    """A number for the parameters of each update, by the sizes of what its ops take: int64 of shape (updates,)."""
    ops = events_of_kind(trace, K.OP)
    ops = ops[trace.events.line[ops] == trace.events.line[updates[0]]]
    start, ends = trace.events.start_ps[ops], trace.events.start_ps[updates] + trace.events.duration_ps[updates]
    at = np.searchsorted(trace.events.start_ps[updates], start, side="right") - 1
    inside = (at >= 0) & (start < ends[at])
    taken = sizes_of_groups(trace, ops[inside], at[inside], len(updates))
    numbers = {sizes: number for number, sizes in enumerate(dict.fromkeys(taken))}
    return np.array([numbers[sizes] for sizes in taken], np.int64)


def _updates_of_optimizers(kind: I64) -> tuple[int, int]:
    """How many updates a step has, and which one ends the first, where several optimizers take turns in equal rounds,
    such as three updates of a critic and one of a generator; 0 and 0 where they do not.

    A round ends with the optimizer that has the fewest updates in it, if there is one.

    >>> _updates_of_optimizers(np.array([0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0]))
    (4, 2)
    """
    most = min(_MOST_UPDATES, len(kind) // LEAST_STEPS)
    rounds = (n for n in range(2, most + 1) if (kind[n:] == kind[:-n]).all() and len(distinct(kind[:n])) > 1)
    in_step = next(rounds, 0)
    if not in_step:
        return 0, 0
    calls = np.bincount(kind[:in_step])[kind[:in_step]]
    is_one = (calls == 1).sum() == 1
    return in_step, int(calls.argmin()) if is_one else in_step - 1


def _count_work(trace: HostTrace, line: int, ends: I64, updates: I64) -> I32:
    """How often each outermost op occurs between updates: int32 of shape (updates, names)."""
    rows = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    is_work = is_any_kind(trace.events.kind, _WORK)
    rows = drop_enclosed(trace, rows[is_work[rows]], is_work)
    rows = rows[~np.isin(rows, updates)]
    at = np.searchsorted(ends, trace.events.start_ps[rows], side="right")
    rows, at = rows[at < len(ends)], at[at < len(ends)]
    names, name = np.unique(trace.event_names(rows), return_inverse=True)
    counts = np.bincount(at * max(len(names), 1) + name, minlength=len(ends) * max(len(names), 1))
    return counts.reshape(len(ends), -1).astype(np.int32)


def _count_batches(trace: HostTrace, line: int, ends: I64) -> I64:
    """How many batches the thread takes from a loader before each update: int64 of shape (updates,)."""
    waits = events_of_kind(trace, K.INPUT_WAIT)
    waits = waits[trace.events.line[waits] == line]
    at = np.searchsorted(ends, trace.events.start_ps[waits], side="right")
    return np.bincount(at[at < len(ends)], minlength=len(ends))


def _updates_per_batch(batches: I64) -> int:
    """How many updates follow each batch; 0 if batches do not say, or come with no regular number of updates."""
    taken = np.flatnonzero(batches[1:]) + 1  # a recording may start after the first batch was taken
    if len(taken) < LEAST_STEPS - 1:
        return 0
    apart = np.diff(taken)
    usual = int(np.median(apart)) if len(apart) else 0
    return usual if usual <= _MOST_UPDATES and np.mean(apart == usual) >= _REGULAR else 0


def _updates_per_cycle(counts: I32) -> int:
    """How many updates a step has by the work between them: more than one only if that repeats much more closely."""
    one = _similarity(counts, 1, contained=True)
    more = {n: _similarity(counts, n) for n in range(2, min(_MOST_UPDATES, len(counts) // LEAST_STEPS) + 1)}
    best = max(more.values(), default=0.0)
    if best < one + _CLEARLY_LIKER:
        return 1
    return next(n for n, similar in more.items() if similar >= best - _CLEARLY_LIKER / 2)


def _similarity(counts: I32, apart: int, contained: bool = False) -> float:
    """How alike the work before updates is that are some updates apart, in the median, 0 to 1.

    Args:
        contained: work counts as alike if one holds all of the other, such as a step that also saves or evaluates.
    """
    if len(counts) <= apart:
        return 0.0
    ours, theirs = counts[:-apart], counts[apart:]
    least = np.minimum(ours.sum(axis=1), theirs.sum(axis=1)) if contained else np.maximum(ours, theirs).sum(axis=1)
    empty = (ours.sum(axis=1) == 0) & (theirs.sum(axis=1) == 0)
    shared = np.minimum(ours, theirs).sum(axis=1) / np.maximum(least, 1)
    return float(np.median(np.where(empty, 1.0, shared)))


def _first_last_update(batches: I64, in_step: int) -> int:
    """The first update that ends a step: the one before a batch is taken, else the last of the first cycle, since a
    recording usually starts with a step."""
    taken = np.flatnonzero(batches[1:]) + 1
    return int(taken[0] - 1) % in_step if len(taken) else in_step - 1


def _find_complete(counts: I32, last: I64) -> np.ndarray:
    """False for a first step with much less work than the others: the recording started in the middle of it."""
    work = counts.sum(axis=1)
    of_step = np.add.reduceat(work, np.append(0, last[:-1] + 1))
    complete = np.ones(len(last), np.bool_)
    complete[0] = of_step[0] >= WHOLE_STEP_SHARE * np.median(of_step)
    return complete


__all__ = ["HostSteps", "count_warm_up_steps", "observed_time", "steps_of", "steps_of_events", "whole_steps"]

_STEPS_A_WARM_UP = 4  # whole steps needed per warm-up step after the first one
_COMPILES = 0.1  # share of a step; compiling for less is usual
_STARTS_UP = (
    3.0  # times the longest other step: one that stalls as other steps may is hardly ever the first and so long
)


def steps_of(trace: HostTrace) -> HostSteps:
    """The steps of a host, computed once per trace."""
    return trace.derived("steps", _find_steps)


def steps_of_events(trace: HostTrace, rows: I64) -> I64:
    """The step that each event belongs to, else the step during which it starts.

    int64 of shape (n,): rows of the steps, -1 without one.
    """
    steps, start = steps_of(trace), trace.events.start_ps[rows]
    at = np.searchsorted(steps.start_ps, start, side="right") - 1
    during = np.where((at >= 0) & (start < np.append(steps.end_ps, 0)[at]), at, -1)
    return np.where(steps.label[rows] >= 0, steps.label[rows], during)


def whole_steps(trace: HostTrace) -> HostSteps:
    """The steps that advice is based on: those not cut by the edges of the capture, without warm-up steps.

    If the capture cuts every step, all of them count.
    """
    return trace.derived("whole steps", _drop_cut_steps)


def observed_time(trace: HostTrace) -> Spans:
    """The observed time: from the start of the first whole step to the end of the last one.

    Steps without marks on a thread may not belong to one loop, so the time between them is left out.
    """
    steps = whole_steps(trace)
    if not len(steps.number) or steps.line < 0:
        return Spans.union(steps.start_ps, steps.end_ps)
    return Spans(steps.start_ps[:1], steps.end_ps.max(keepdims=True))


def is_usual(trace: HostTrace) -> Mask:
    """Which steps statistics count: bool of shape (steps,).

    They are those of `whole_steps` without any of which it is not known how long they last.
    """
    return trace.derived("usual steps", _find_usual_steps)


def _find_usual_steps(trace: HostTrace) -> Mask:
    steps = steps_of(trace)
    kept, rows = _complete_range(steps), np.arange(len(steps.number))
    whole: Mask = (rows >= kept.start + count_warm_up_steps(trace)) & (rows < kept.stop)
    usual = whole & ~steps.cut_short
    return usual if usual.any() else whole


def count_warm_up_steps(trace: HostTrace) -> int:
    """How many of the first whole steps trace or compile, if the steps after them do not; and a first step counts that
    is much longer than any other, as libraries and devices start up in it."""
    return trace.derived("warm-up", lambda each: _count_compiling(each) or int(starts_up(each)))


def starts_up(trace: HostTrace) -> bool:
    """Whether the first whole step is a warm-up that compiles nothing, see `count_warm_up_steps`."""
    steps = steps_of(trace)
    length = steps.length_ps[_complete_range(steps)]
    is_long = len(length) >= _STEPS_A_WARM_UP and bool(length[0] > _STARTS_UP * length[1:].max())
    return is_long and not _count_compiling(trace) and not mostly_computes(trace)[_complete_range(steps)][0]


def mostly_computes(trace: HostTrace) -> Mask:
    """Which steps devices work in for most of the time, such as a first request that is longer than the others: bool of
    shape (steps,)."""
    steps = steps_of(trace)
    return 2 * device_spans(trace).overlap_ps(steps.start_ps, steps.until_ps) > steps.until_ps - steps.start_ps


def _count_compiling(trace: HostTrace) -> int:
    steps = steps_of(trace)
    kept = _complete_range(steps)
    start, end = steps.start_ps[kept], steps.until_ps[kept]
    most = max(len(start) // _STEPS_A_WARM_UP, int(len(start) > 1))
    compiling = spans_of(trace, events_of_kind(trace, EventKind.COMPILE)) if most else None
    if compiling is None or not len(compiling.start):
        return 0
    compiled = np.flatnonzero(compiling.overlap_ps(start, end) >= _COMPILES * (end - start))
    first = len(compiled)
    rest = compiling.overlap_ps(start[first:], end[first:]).sum() if first <= most else 0
    return first if 0 < first <= most and compiled[-1] == first - 1 and not rest else 0


def _complete_range(steps: HostSteps) -> slice:
    """The steps that the capture does not cut, or all if it cuts each; only the first and last can be cut."""
    kept = np.flatnonzero(steps.complete)
    return slice(int(kept[0]), int(kept[-1]) + 1) if len(kept) else slice(0, len(steps.complete))


def _drop_cut_steps(trace: HostTrace) -> HostSteps:
    steps = steps_of(trace)
    kept = _complete_range(steps)
    first = kept.start + count_warm_up_steps(trace)
    if kept.stop - first == len(steps.complete):
        return steps
    ours = (steps.label >= first) & (steps.label < kept.stop)
    return steps.take(np.arange(first, kept.stop), np.where(ours, steps.label - first, -1).astype(np.int32))


def _find_steps(trace: HostTrace) -> HostSteps:
    found = find_marked_steps(trace) or find_device_steps(trace) or find_update_steps(trace) or find_phase_steps(trace)
    if not found:
        from stepscope.analysis.steps.inferred_steps import infer_steps  # which a trace with marks does without

        found, whole = None if holds_sums_only(trace) else infer_steps(trace), _capture_as_step(trace)
        found = whole if found is None or _are_parts(trace, found, whole) else found
    return close_gaps(_doubt_unmeasured(trace, found))


def _are_parts(trace: HostTrace, found: HostSteps, whole: HostSteps) -> bool:
    """Whether what repeats, for which nothing of the host speaks, is no loop: it takes less than half of the capture,
    as layers of one call do, or occurs twice in so different times that none tells how long another one takes.  Where
    steps were awaited and none came, what takes less than half is a part of the set-up, such as parameters that are
    made one after the other, however alike its turns are."""
    doubted, awaited = found.confidence is not None and found.confidence <= UNSUPPORTED, steps_awaited_s(trace)
    if not doubted and awaited is None:
        return False
    length = (found.end_ps - found.start_ps)[found.complete]
    differ = doubted and 0 < len(length) < LEAST_STEPS and bool(length.max() > _STARTS_UP * length.min())
    recorded, last = int((whole.end_ps - whole.start_ps).sum()), int(found.end_ps[-1])
    if awaited is not None:  # imports are no work, and the last turn is as long as others, whatever comes after it
        recorded = max(recorded, int(trace.events.start_ps.max() - trace.events.start_ps.min()))
        last = min(last, int(found.start_ps[-1] + np.diff(found.start_ps).max(initial=0)))
    return differ or 2 * (last - int(found.start_ps[0])) < recorded


def _doubt_unmeasured(trace: HostTrace, found: HostSteps) -> HostSteps:
    """The steps, with a doubt where their bounds do not measure how long they last."""
    why = None if found.source == "none" else why_unmeasured(trace, found.start_ps, found.end_ps)
    if why is None:
        return found
    sure = UNSUPPORTED if found.confidence is None else min(found.confidence, UNSUPPORTED)
    return replace(found, confidence=sure, how=f"{found.how}; they are {why}", measured=False)


def _capture_as_step(trace: HostTrace) -> HostSteps:
    """The whole capture as one span: from the first to the last piece of work; what the recorder wrote about itself
    takes no part in it, unless nothing else was recorded."""
    works = look_up(np.isin(trace.lines.kind, _MEASURED), trace.events.line)
    lasts = look_up(~np.isin(trace.lines.kind, (LineKind.COUNTERS, LineKind.OVERHEAD)), trace.events.line)
    rows = np.flatnonzero(works if works.any() else lasts)
    start, duration = trace.events.start_ps[rows], trace.events.duration_ps[rows]
    begin = int(start.min()) if len(rows) else 0
    end = int((start + duration).max()) if len(rows) else 0
    steps = 1 if end > begin else 0
    return HostSteps(
        source="none",
        how="no step marks and no repeating sequence were found; the whole capture counts as one span"
        if steps
        else "the profile holds no events that take time",
        confidence=None,
        number=np.zeros(steps, np.int64),
        name=("capture",) * steps,
        start_ps=np.full(steps, begin, np.int64),
        end_ps=np.full(steps, end, np.int64),
        complete=np.ones(steps, np.bool_),
        label=np.full(len(trace.events), steps - 1, np.int32),
    )


def holds_only_dispatch(trace: HostTrace) -> bool:
    """Whether the steps call programs of which nothing was recorded but the calls.

    A loop that reads no result calls far ahead of what its programs compute, and may have called all before the first
    has run: its steps are then as long as the calls.
    """
    return trace.derived("only dispatch", _holds_only_dispatch)


def _holds_only_dispatch(trace: HostTrace) -> bool:
    seen = count_kinds(trace) > 0
    return bool(
        seen[K.TRACED_FUNCTION]
        and len(steps_of(trace).number) > 1
        and not seen[[*_COMPUTES]].any()
        and not trace.device_planes()
    )


def holds_step(trace: HostTrace, start_ps: I64, end_ps: I64) -> Mask:
    """Which stretches of time hold at least one step from its start to its end: bool of shape (n,)."""
    steps = steps_of(trace)
    order = np.argsort(steps.start_ps, kind="stable")
    ends = np.append(steps.end_ps[order], np.iinfo(np.int64).max)
    held: Mask = end_ps >= ends[np.searchsorted(steps.start_ps[order], start_ps)]
    return held
