"""The fetches of batches that start a step.

A loop over a data set fetches once more than it gets batches: the last fetch of an epoch only learns that nothing is
left.  What follows it is the pause between two epochs, an evaluation, or the end of the loop, and not a step.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import RangeTrait

_WORK = (
    EventKind.OP, EventKind.EXECUTOR, EventKind.FUNCTION_RUN, EventKind.EAGER_EXECUTE, EventKind.TRACED_FUNCTION,
    EventKind.RUNTIME_CALL,
)  # fmt: skip
_LEAST_WORK = 0.2  # of the usual number of calls after a fetch: with fewer, no step follows it


def fetches_of_steps(trace: HostTrace, fetches: I64) -> I64:
    """The fetches that a step follows: the optimizer updates the model, or, where no update is recorded, work runs.

    Args:
        fetches: int64 of shape (n,), rows of waits for input in order of time.
    """
    updates = _count_starts(trace, fetches, _updates(trace))
    work = updates if updates.any() else _count_starts(trace, fetches, _outer_work(trace))
    usual = float(np.median(work)) if len(work) else 0.0
    kept: I64 = fetches[work >= max(_LEAST_WORK * usual, 1)] if usual else fetches
    return kept


def has_one_update_each(trace: HostTrace, fetches: I64) -> bool:
    """Whether the optimizer updates the model exactly once after each of these fetches: then they are steps."""
    if not len(fetches) or (trace.events.kind[fetches] != EventKind.INPUT_WAIT).any():
        return False
    return bool((_count_starts(trace, fetches, _updates(trace))[:-1] == 1).all())


def next_fetch_start(trace: HostTrace, start: I64, end: I64) -> I64:
    """The start of the first fetch of any kind after each time of `start`, ps; `end` where none follows."""
    times = np.sort(trace.events.start_ps[events_of_kind(trace, EventKind.INPUT_WAIT)])
    at = np.searchsorted(times, start, side="right")
    return np.where(at < len(times), np.append(times, 0)[at], end)


def _count_starts(trace: HostTrace, fetches: I64, rows: I64) -> I64:
    """How many of `rows` start after each fetch and before the next one: int64 of shape (fetches,)."""
    times = np.sort(trace.events.start_ps[rows])
    bounds = np.append(trace.events.start_ps[fetches], np.iinfo(np.int64).max)
    counts: I64 = np.diff(np.searchsorted(times, bounds))
    return counts


def _updates(trace: HostTrace) -> I64:
    """Updates of the model by an optimizer, as PyTorch marks them."""
    rows = events_of_kind(trace, EventKind.ANNOTATION)
    return rows[has_trait(trace, trace.events.type[rows], RangeTrait.UPDATES_MODEL)] if len(rows) else rows


def _outer_work(trace: HostTrace) -> I64:
    """Outermost calls on threads, outside of any fetch."""
    parent, kind = forest(trace).parent, trace.events.kind
    threads = is_thread_event(trace)
    free = parent < 0
    inner = np.flatnonzero(~free)
    free[inner] = ~np.isin(kind[parent[inner]], (*_WORK, EventKind.INPUT_WAIT, EventKind.ITERATOR))
    return np.flatnonzero(is_any_kind(kind, _WORK) & threads & free)
