"""What the host does once an iteration tells which of a sequence's cycles are steps, and how sure that is.

    host   |launch a b a b a b a b   wait|launch a b a b a b a b   wait|
    gpu    |       a b a b a b a b       |       a b a b a b a b       |       the cycle is `a b`, the step four of them

A loop fetches a batch, calls its program, or waits for a result once per step.  Where such a call comes once per
cycle, the cycles are steps; where it comes once per several cycles, always as many, these together are.  Where the host
makes no such call, more work in one of several cycles, always as many, tells the same, as the lookup before the first
layer of a model, the loss after the last one and an update after several batches do; where nothing comes so, nothing
tells a step from a part of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stepscope.analysis.steps.cycles import LEAST_STEPS, Cycle
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, distinct
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

K = EventKind

_SIGNS = (
    K.TRACED_FUNCTION, K.FUNCTION_RUN, K.INPUT_WAIT, K.ITERATOR, K.SYNC, K.COPY_HOST_TO_DEVICE_CALL, K.CHECKPOINT,
)  # fmt: skip
_READS = CallTrait.WAITS | CallTrait.READS_VALUE  # Python calls that show the end of a step
_ENDS_STEP = (K.SYNC, K.PYTHON_CALL)  # the others start one
_EVEN = 0.8  # of the intervals between signs: so many hold the usual number of cycles
_AFTER = 1.0  # of the cycles: if the host does more after the last one, most steps are not among them
UNSUPPORTED = 0.5
"""How sure cycles are steps at most that no call of the host supports: they may as well be layers."""


def group_by_signs(trace: HostTrace, rows: I64, cycle: Cycle) -> Cycle | None:
    """The cycles that are steps by what the host does: those given, or each of several of them together; None where
    the host goes on for long after the last of them, so that they are those of a record that ended early.

    Args:
        rows: the events of the sequence, in order of time.
        cycle: its cycle, of which `anchors` are places in `rows`.
    """
    if (trace.events.kind[rows[cycle.anchors]] == K.MODULE).all():
        return cycle  # each is a program that the host called
    begun = _host_begins_ps(trace, rows[cycle.anchors])
    best: _Groups | None = None
    supported = True
    of_device = bool(is_device_work(trace)[rows[cycle.anchors]].all())
    is_bare = of_device  # without a call of the host nothing tells
    for times in _signs(trace):
        is_bare = True  # there are such calls, and they do not fit the cycles
        if _is_in_each(times, begun):
            after = len(times) - int(np.searchsorted(times, begun[-1], side="right"))
            per_cycle = (len(times) - after) / len(begun)
            ended_early = of_device and after > (_AFTER * len(begun) + 1) * max(per_cycle, 1)  # the last one's end, too
            return None if ended_early else cycle
        found = _groups_between(times, begun)
        best = found if best is None or (found is not None and found[0] > best[0]) else best
    if best is None and is_bare:
        supported = False
        best = _groups_between(_larger_cycles(rows, cycle), np.arange(len(cycle.anchors)) - 1)
    if best is None:
        return replace(cycle, confidence=min(cycle.confidence, UNSUPPORTED)) if is_bare else cycle
    even, first = best
    size = np.diff(np.append(first, len(cycle.anchors)))
    whole = cycle.last_is_whole and int(size[-1]) == int(np.median(size))
    sure = cycle.confidence * even if supported else min(cycle.confidence * even, UNSUPPORTED)
    return Cycle(cycle.anchors[first], round(sure, 3), whole)


def group_by_sizes(trace: HostTrace, rows: I64, cycle: Cycle) -> Cycle:
    """The cycles, or each round of them where their sizes count up and begin again, as in a server that makes one token
    after the other: a step is a request, not a token.

        sizes    1 2 3 4 1 2 3 4 1 2 3 4      the cycle is one of these, the step four
    """
    count = len(cycle.anchors)
    cycle_of = np.searchsorted(cycle.anchors, np.arange(len(rows)), side="right") - 1
    inside = cycle_of >= 0
    taken = sizes_of_groups(trace, rows[inside], cycle_of[inside], count)[:-1]  # the last is cut
    length = next((at for at in range(1, len(taken)) if taken[at] == taken[0]), 0)
    if not LEAST_STEPS <= length <= count // LEAST_STEPS:
        return cycle
    if np.mean([one == other for one, other in zip(taken, taken[length:], strict=False)]) < _EVEN:
        return cycle
    texts = (" ".join(map(trace.strings.__getitem__, each)) for each in taken[:length])
    sides = ("".join(each if each.isdigit() else " " for each in text).split() for text in texts)
    total = np.array([sum(map(float, each)) for each in sides])
    if np.mean(np.diff(np.roll(total, -int(total.argmin()))) > 0) < _EVEN:  # equal sizes may count once
        return cycle
    ends = _larger_cycles(rows, cycle) + 1  # what a round begins with stands before its first anchor
    first = int(ends[0]) % length if len(ends) and (np.diff(ends) % length == 0).all() else 0
    return Cycle(cycle.anchors[first::length], cycle.confidence, cycle.last_is_whole and (count - first) % length == 0)


def sizes_of_groups(trace: HostTrace, rows: I64, group: I64, count: int) -> list[tuple[int, ...]]:
    """The different sizes that the ops of each group take, as rows of strings; all empty where none were recorded.

    Args:
        group: int64 of shape (rows,), from 0 to `count` - 1.
    """
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return [()] * count
    size = np.maximum(trace.stat_strings(stat_names.INPUT_DIMS, rows=rows), 0)
    taken: list[list[int]] = [[] for _ in range(count)]
    for pair in distinct(group * len(trace.strings) + size).tolist():
        taken[pair // len(trace.strings)].append(pair % len(trace.strings))
    return [*map(tuple, taken)]


_Groups = tuple[float, I64]  # the share of the groups that have the usual number of cycles, and the first cycle of each


def _groups_between(times: I64, begun: I64) -> _Groups | None:
    """The cycles between some times, or places, as groups, if they are several and nearly always as many; else None."""
    group = np.searchsorted(times, begun, side="right")
    sizes = np.bincount(group)[1:-1]  # what lies before the first time or after the last may be cut
    if len(sizes) < LEAST_STEPS - 1:
        return None
    usual = int(np.median(sizes))
    even = float(np.mean(sizes == usual))
    if usual < 2 or even < _EVEN:
        return None
    return even, np.flatnonzero(np.append(True, group[1:] != group[:-1]))


def _larger_cycles(rows: I64, cycle: Cycle) -> I64:
    """The cycles with more work than is usual: int64, places among the anchors; the last one is cut."""
    size = np.diff(np.append(cycle.anchors, len(rows)))[:-1]
    found: I64 = np.flatnonzero(size > np.median(size))
    return found


def _host_begins_ps(trace: HostTrace, anchors: I64) -> I64:
    """When the host began each cycle: its call where it is known, else the event itself; ascending."""
    cause = forest(trace).cause[anchors]
    at = np.where(cause >= 0, cause, anchors)
    return np.maximum.accumulate(trace.events.start_ps[at])


def _is_in_each(times: I64, begun: I64) -> bool:
    """Whether the host makes a call between one cycle and the next, nearly always."""
    place = np.searchsorted(times, begun, side="right")
    return len(begun) >= LEAST_STEPS and float(np.mean(np.diff(place) >= 1)) >= _EVEN


def _signs(trace: HostTrace) -> Iterator[I64]:
    """The times of calls of one name on one thread that occur often enough to bound steps; ascending."""
    events = trace.events
    rows = np.flatnonzero(is_any_kind(events.kind, _SIGNS) & is_thread_event(trace))
    python = events_of_kind(trace, K.PYTHON_CALL)
    reads = python[has_trait(trace, events.type[python], _READS)] if len(python) else python
    rows = np.concatenate([rows, reads])
    keys = events.type[rows].astype(np.int64) * len(trace.lines) + events.line[rows]
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.append(True, keys[order][1:] != keys[order][:-1])) if len(rows) else order
    for own in np.split(rows[order], starts[1:]):
        if len(own) >= LEAST_STEPS:
            ends = events.duration_ps[own] if np.isin(events.kind[own[0]], _ENDS_STEP) else 0
            yield np.sort(events.start_ps[own] + ends)
