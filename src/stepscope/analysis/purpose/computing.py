"""The computing work of a step that says what it is for: ops on the host's threads, and what surrounds them."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.columns import events_of_kind, is_inside, is_inside_another, is_thread_event
from stepscope.analysis.trace.grouping import enclosing_events, forest, self_times_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import OpTrait, RangeTrait

K = EventKind


@dataclass(frozen=True)
class Computing:
    """The ops of whole steps on the host's threads, without those that prepare input; columns of one length.

    Attributes:
        rows: int64, rows of events, ascending.
        own_ps: int64, self time of each.
        outer: bool, no other op is around it.
        backward: bool, it runs within backward work.
        updates: bool, it runs within the call of an optimizer, and not in the forward and backward pass that this may
            have been given to call.
        heavy: bool, it multiplies or convolves.
        number: int64, the number that autograd gave it or the op around it; -1 without one.
        learned: bool, it runs forward, and a backward pass follows it.
    """

    rows: I64
    own_ps: I64
    outer: Mask
    backward: Mask
    updates: Mask
    heavy: Mask
    number: I64
    learned: Mask

    def __len__(self) -> int:
        return len(self.rows)


def computing_of(trace: HostTrace) -> Computing:
    """The computing work of a host's threads, found once per trace."""
    return trace.derived("computing", _find_computing)


def _find_computing(trace: HostTrace) -> Computing:
    every = events_of_kind(trace, K.OP)
    chosen = is_thread_event(trace)[every] & (whole_steps(trace).label[every] >= 0)
    chosen &= ~is_inside(trace, every, K.INPUT_WAIT) & ~threads_of(trace).serves_input[trace.events.line[every]]
    rows, own = every[chosen], self_times_of(trace, every, trace.events.kind == K.OP)[chosen]
    backward = is_inside(trace, rows, K.BACKWARD)
    numbered = trace.has_stat(stat_names.SEQUENCE_NUMBER)
    number = sequence_numbers(trace, rows) if numbered else np.broadcast_to(np.int64(-1), len(rows))
    runs = backward_runs(trace)
    learned = (
        ~backward & (number >= 0) & np.isin(number, distinct(trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=runs)))
    )
    learned &= ~is_passed_over(trace, rows, number, ~backward)
    return Computing(
        rows=rows,
        own_ps=own,
        outer=~is_inside_another(trace, rows, K.OP),
        backward=backward,
        updates=_update(trace, rows, runs),
        heavy=has_trait(trace, trace.events.type[rows], OpTrait.MULTIPLIES),
        number=number,
        learned=learned,
    )


def _update(trace: HostTrace, rows: I64, runs: I64) -> Mask:
    start, calls = trace.events.start_ps[rows], update_ranges(trace)
    since = passed_since(trace, calls, runs)
    own = trace.events.start_ps[calls]
    given = calls[since > own]
    found = inside_any(trace, rows, calls)
    for call, after in zip(given.tolist(), since[since > own].tolist(), strict=True):
        found &= ~((start < after) & (start >= trace.events.start_ps[call]))
    return found


def passed_since(trace: HostTrace, calls: I64, runs: I64) -> I64:
    """Since when each call of an optimizer only updates: its start, or the end of the last backward work in it.

    int64 of shape (calls,), ps.
    """
    events = trace.events
    start, end = events.start_ps[calls], events.start_ps[calls] + events.duration_ps[calls]
    over = np.sort(events.start_ps[runs] + events.duration_ps[runs])
    last: I64 = np.append(over, 0)[np.searchsorted(over, end, side="right") - 1]
    return np.maximum(last, start)


def backward_runs(trace: HostTrace) -> I64:
    """Runs of autograd's nodes: rows of events, of the whole capture."""
    return events_of_kind(trace, K.BACKWARD)


def update_ranges(trace: HostTrace) -> I64:
    """Calls of optimizers in whole steps: rows of events."""
    rows = events_of_kind(trace, K.ANNOTATION)
    rows = rows[whole_steps(trace).label[rows] >= 0]
    return rows[has_trait(trace, trace.events.type[rows], RangeTrait.UPDATES_MODEL)]


def inside_any(trace: HostTrace, rows: I64, around: I64) -> Mask:
    """Whether each event is one of some others or lies inside one: bool of shape (rows,)."""
    if not len(around):
        return np.zeros(len(rows), np.bool_)
    among = np.zeros(len(trace.events), np.bool_)
    among[around] = True
    found: Mask = enclosing_events(trace, among)[rows] >= 0
    return found


def sequence_numbers(trace: HostTrace, ops: I64) -> I64:
    """The number that autograd gave to each op or to the op around it: int64 of shape (ops,), -1 without one."""
    parent = forest(trace).parent
    sequence = trace.stat_ints(stat_names.SEQUENCE_NUMBER)
    number, above = sequence[ops], parent[ops]
    while (going := (above >= 0) & (number < 0)).any():
        at = np.maximum(above, 0)
        number = np.where(going, sequence[at], number)
        above = np.where(going & (number < 0), parent[at], -1)
    return number


def is_passed_over(trace: HostTrace, ops: I64, number: I64, forward: Mask) -> Mask:
    """Whether autograd gave each op the number that it gave a later forward op again: it records nothing of the first.

    Args:
        number: of each op, -1 for none; forward: bool of shape (ops,), it runs outside of any backward pass.
    """
    start, known = trace.events.start_ps[ops], forward & (number >= 0)
    if not known.any():
        return known
    line = trace.events.line[ops].astype(np.int64) << 32
    keys, place = np.unique(line | np.maximum(number, 0), return_inverse=True)
    last = np.full(len(keys), -1, np.int64)
    np.maximum.at(last, place[known], start[known])
    found: Mask = known & (last[place] >= start + trace.events.duration_ps[ops])
    return found
