"""Unmarked steps of PyTorch: each ends with an optimizer's update, which its profiler always records.

    main   a--b--c--U  a--b--c--U  a--b--c--U      U updates the parameters
    step   |-----------|-----------|-----------|

A loop with several optimizers has several updates in a step.  They are told apart by the work before each:

    main   a--b--U  d--e--U  a--b--U  d--e--U      two updates a step: the work before them alternates
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.cycles import LEAST_STEPS
from stepscope.analysis.steps.host_steps import WHOLE_STEP_SHARE, HostSteps, drop_enclosed, keep_fullest_line
from stepscope.analysis.steps.marked_steps import label_work
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.torch import is_update

K = EventKind

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
    in_step = _updates_per_batch(batches) or _updates_per_cycle(counts)
    last = np.arange(_first_last_update(batches, in_step), len(ends), in_step)
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
    types = np.unique(trace.events.type[events_of_kind(trace, K.ANNOTATION)]).astype(np.int64)
    wanted = [kind for kind, name in zip(types.tolist(), type_names(trace, types), strict=True) if is_update(name)]
    if not wanted:
        return np.empty(0, np.int64)
    is_one = np.isin(trace.events.type, wanted) & is_any_kind(trace.events.kind, (K.ANNOTATION,))
    return keep_fullest_line(trace, drop_enclosed(trace, np.flatnonzero(is_one), is_one))


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
