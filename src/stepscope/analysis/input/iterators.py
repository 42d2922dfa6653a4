"""The calls of input iterators (tf.data) and their tree.

An iterator that needs an element calls the iterator it reads from.  On the same thread the inner call is nested in the
outer one.  On another thread the inner iterator works ahead and hands elements over.

    python    | Root--------------------      the step asks for a batch
    python    |  Prefetch--------------c      Prefetch waits until element 7 is handed over: c consumes 7
    thread A  | p-----------------------      p produces 7
    thread A  |  Batch-----------------
    thread A  |   Map----  Map----            Batch calls Map for each of its elements

Markers with the number of the element record a hand-over: the call that consumed an element is the parent of the calls
that produced it.  Without markers, the parent is a call of the parent iterator that is running at that time.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import nearest_above
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I32, I64, Mask, distinct, last_below, places_of, run_rows
from stepscope.records import dataclass
from stepscope.vocabulary import tf_data

MOST_PARTS = 100  # of a long name; deeper calls have no parent
_UNKNOWN = -1


@dataclass(frozen=True)
class IteratorCalls:
    """Calls of iterators; all arrays have the shape (calls,).

    Attributes:
        names: the distinct long names, see `tf_data.plain_name`.
        row: int64, the call's event.
        name: int32, index into `names`.
        iterator: int64, the iterator's id, -1 if unknown.
        dataset: int64, string row of the dataset op that the iterator runs, -1 if unknown.
        parent: int32, the call that this one was made for, or -1.
        elsewhere: bool, the parent runs on another thread.
        root: int32, the call of the pipeline's outermost iterator that this one serves; a root serves itself, -1 if
            none.
        blocks: bool, the root call waited for this one: each call on the path from the root overlaps the next in time.
        unexplained: bool, the call took an element that another thread started before the capture, so the cause of its
            wait is unknown.
        start_ps, duration_ps: int64.
        self_ps: int64, the duration without the run time of calls made for this one; for a parallel interleave, of
            calls made for its iterator.
        waiting_ps: int64, the part of that run time on other threads only.
        has_roots: the outermost calls belong to the pipelines' outermost iterators.  False if no call of those ended
            during the capture; then the outermost recorded calls replace them.
    """

    names: tuple[str, ...]
    row: I64
    name: I32
    iterator: I64
    dataset: I64
    parent: I32
    elsewhere: Mask
    root: I32
    blocks: Mask
    unexplained: Mask
    start_ps: I64
    duration_ps: I64
    self_ps: I64
    waiting_ps: I64
    has_roots: bool


def iterator_calls(trace: HostTrace) -> IteratorCalls:
    """The iterator calls of a host, computed once per trace."""
    return trace.derived("iterator calls", _iterator_calls)


def _iterator_calls(trace: HostTrace) -> IteratorCalls:
    row = events_of_kind(trace, EventKind.ITERATOR)
    names, name, depth = _names(trace, row)
    start, duration = trace.events.start_ps[row], trace.events.duration_ps[row]
    ids, above = (_column(trace, stat, row) for stat in (stat_names.ITERATOR_ID, stat_names.PARENT_ITERATOR_ID))
    outermost = (above == _UNKNOWN) | (depth <= 2)
    has_roots = bool(outermost.any()) or not len(row)
    if not has_roots:
        outermost = depth == depth.min()
    links = _Links(trace, row, ids, above, start, start + duration)
    parent, elsewhere = links.parents()
    loose = outermost & ~((above == _UNKNOWN) & (depth > 2))  # without ids only the enclosing call is known
    parent[loose | ((parent >= 0) & (depth[parent] >= depth))] = -1
    elsewhere &= parent >= 0
    shared = np.array([tf_data.shares_workers(text) for text in names], np.bool_)[name]
    overlapping = _find_overlapping(np.flatnonzero(shared), ids, above, start, start + duration)
    self_ps, waiting_ps, overlap = _self_times(parent, elsewhere, start, duration, overlapping)
    root, blocks = _find_roots(parent, depth, outermost & (parent < 0), overlap > 0)
    dataset = trace.stat_strings(stat_names.DATASET_OP, rows=row) if len(row) else row
    return IteratorCalls(
        names=names, row=row, name=name, iterator=ids, dataset=dataset, parent=parent, elsewhere=elsewhere, root=root,
        blocks=blocks, unexplained=links.unexplained, start_ps=start, duration_ps=duration, self_ps=self_ps,
        waiting_ps=waiting_ps, has_roots=has_roots,
    )  # fmt: skip


def _column(trace: HostTrace, names: tuple[str, ...], row: I64) -> I64:
    return trace.stat_ints(names, _UNKNOWN, rows=row) if len(row) else row


def _names(trace: HostTrace, row: I64) -> tuple[tuple[str, ...], I32, I32]:
    """Distinct plain names, then for each call the index of its name and the number of the name's parts."""
    stored, inverse = np.unique(trace.event_names(row), return_inverse=True)
    plain = [tf_data.plain_name(trace.strings[at]) for at in stored.tolist()]
    index = {text: at for at, text in enumerate(dict.fromkeys(plain))}
    of_stored = np.array([index[text] for text in plain], np.int32)
    parts = np.array([len(tf_data.parts(text)) for text in index], np.int32)
    name = of_stored[inverse.reshape(-1)] if len(row) else np.empty(0, np.int32)
    return tuple(index), name, np.minimum(parts[name], MOST_PARTS) if len(row) else np.empty(0, np.int32)


# -- who called whom ---------------------------------------------------------------------------------------------


class _Links:
    """Finds the call that each call was made for."""

    def __init__(self, trace: HostTrace, row: I64, ids: I64, above: I64, start: I64, end: I64) -> None:
        self.trace, self.row, self.ids, self.above, self.start, self.end = trace, row, ids, above, start, end
        kind = trace.events.kind
        self.is_iterator = kind == EventKind.ITERATOR
        self.is_mark = kind == EventKind.INPUT_HANDOVER
        self.call_of = np.full(len(kind), -1, np.int32)
        self.call_of[row] = np.arange(len(row))
        self.unexplained = np.zeros(len(row), np.bool_)
        none = np.empty(0, np.int64)
        self.has_marks = bool(self.is_mark.any())
        self.element = trace.stat_ints(stat_names.ELEMENT_ID, _UNKNOWN) if self.has_marks else none
        self.source = trace.stat_ints(stat_names.INPUT_ELEMENT_ID, _UNKNOWN) if self.has_marks else none

    def parents(self) -> tuple[I32, Mask]:
        """The call that each call was made for, or -1, and whether that runs on another thread."""
        near = nearest_above(self.trace, self.row, self.is_iterator | self.is_mark)
        mark = np.where((near >= 0) & self.is_mark[near], near, -1)
        enclosing = np.where(mark >= 0, nearest_above(self.trace, mark, self.is_iterator), near)
        parent = np.where(enclosing >= 0, self.call_of[enclosing], -1).astype(np.int32)
        foreign = (parent >= 0) & (self.above != _UNKNOWN) & (self.ids[parent] != self.above)
        parent[foreign] = -1
        elsewhere = np.zeros(len(parent), np.bool_)
        self._link_elements(mark, parent, elsewhere)
        self._link_unmarked(parent, elsewhere)
        return parent, elsewhere

    def _link_elements(self, mark: I64, parent: I32, elsewhere: Mask) -> None:
        """Links calls inside a produce marker to the call that consumed the element."""
        if not self.has_marks:
            return
        marks = np.flatnonzero(self.is_mark)
        consumer = nearest_above(self.trace, marks, self.is_iterator)
        eats = (consumer >= 0) & (self.element[marks] != _UNKNOWN)
        consumer = self.call_of[consumer[eats]]
        key = _pair(self.ids[consumer], self.element[marks[eats]])
        order = np.lexsort((self.start[consumer], key))
        key, consumer = key[order], consumer[order]
        made = np.flatnonzero((parent < 0) & (mark >= 0))
        wanted = self._element_of(mark, made)
        known = wanted != _UNKNOWN
        made, wanted = made[known], wanted[known]
        wanted = _pair(self.above[made], wanted)
        self.unexplained[consumer] = True
        self.unexplained[consumer[np.isin(key, wanted)]] = False
        at = places_of(key, wanted)
        parent[made[at >= 0]] = consumer[at[at >= 0]]
        elsewhere[made[at >= 0]] = True

    def _element_of(self, mark: I64, made: I64) -> I64:
        """The element that each call in `made` helped to produce.

        For a call that opened an input of an interleave, the first element read from this input.
        """
        element, source = self.element[mark[made]].copy(), self.source[mark[made]]
        opens = np.flatnonzero((element == _UNKNOWN) & (source != _UNKNOWN))
        reads = np.flatnonzero((element != _UNKNOWN) & (source != _UNKNOWN))
        if len(opens) and len(reads):
            key = _pair(self.above[made[reads]], source[reads])
            order = np.lexsort((self.start[made[reads]], key))
            at = places_of(key[order], _pair(self.above[made[opens]], source[opens]))
            element[opens] = np.where(at >= 0, element[reads[order]][at], _UNKNOWN)
        return element

    def _link_unmarked(self, parent: I32, elsewhere: Mask) -> None:
        """Links calls without markers by time, to a running call of their parent iterator."""
        marked = distinct(self.above[elsewhere])
        left = np.flatnonzero((parent < 0) & (self.above != _UNKNOWN) & ~np.isin(self.above, marked))
        if not len(left):
            return
        order = np.lexsort((self.start, self.ids))
        first = np.searchsorted(self.ids[order], self.above[left], side="left")
        last = np.searchsorted(self.ids[order], self.above[left], side="right")
        chosen = last_below(self.start[order], first, last, self.end[left])
        found = (chosen >= 0) & (self.end[order[chosen]] > self.start[left])
        parent[left[found]] = order[chosen[found]]
        elsewhere[left[found]] = True


def _pair(left: I64, right: I64) -> I64:
    with np.errstate(over="ignore"):
        return left ^ (right * np.int64(-7046029254386353131))


# -- times -------------------------------------------------------------------------------------------------------


def _find_overlapping(calls: I64, ids: I64, above: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """Pairs of (call in `calls`, call made for the same iterator) that overlap in time."""
    served = np.flatnonzero(np.isin(above, ids[calls]) & (above != _UNKNOWN)) if len(calls) else calls
    if not len(served):
        return served, served
    calls = calls[np.lexsort((start[calls], ids[calls]))]
    low = np.searchsorted(ids[calls], above[served], side="left")
    high = np.searchsorted(ids[calls], above[served], side="right")
    ended = last_below(end[calls], low, high, start[served] + 1)
    first = np.where(ended >= 0, ended + 1, low)
    count = np.maximum(last_below(start[calls], low, high, end[served]) + 1 - first, 0)
    return calls[run_rows(first, count)], np.repeat(served, count)


def _self_times(
    parent: I32, elsewhere: Mask, start: I64, duration: I64, overlapping: tuple[I64, I64]
) -> tuple[I64, I64, I64]:
    """Self time, waiting time, and the overlap of each call with its parent.

    `overlapping` adds pairs of a call and another call that counts as made for it.
    """
    end = start + duration
    made = np.flatnonzero(parent >= 0)
    above: I64 = np.append(parent[made].astype(np.int64), overlapping[0])
    below: I64 = np.append(made, overlapping[1])
    low, high = np.maximum(start[below], start[above]), np.minimum(end[below], end[above])
    overlap = np.zeros(len(parent), np.int64)
    overlap[made] = np.maximum(high - low, 0)[: len(made)]
    seen = np.flatnonzero(high > low)
    covered = _union_lengths(above[seen], low[seen], high[seen], len(parent))
    inside = np.zeros(len(parent), np.int64)
    own = np.flatnonzero((parent >= 0) & ~elsewhere)
    np.add.at(inside, parent[own], overlap[own])
    return duration - covered, np.maximum(covered - inside, 0), overlap


def _union_lengths(group: I64, low: I64, high: I64, n_groups: int) -> I64:
    """The length of the union of the intervals of each group: int64 of shape (n_groups,)."""
    total = np.zeros(n_groups, np.int64)
    if not len(group):
        return total
    order = np.lexsort((low, group))
    group, low, high = group[order], low[order], high[order]
    # The running maximum of `high` within a group: one integer holds the group and the rank of `high`.
    values, rank = np.unique(high, return_inverse=True)
    reached = np.maximum.accumulate(group.astype(np.int64) * len(values) + rank.reshape(-1))
    before = np.empty_like(reached)
    before[0], before[1:] = -1, reached[:-1]
    same = before >= group.astype(np.int64) * len(values)
    first = np.where(same, np.maximum(low, values[before % len(values)]), low)
    np.add.at(total, group, np.maximum(high - first, 0))
    return total


def _find_roots(parent: I32, depth: I32, is_root: Mask, overlaps: Mask) -> tuple[I32, Mask]:
    """The root call that each call serves, or -1, and whether the root waited for it."""
    root = np.where(is_root, np.arange(len(parent)), -1).astype(np.int32)
    blocks = is_root.copy()
    order = np.argsort(depth, kind="stable")  # a parent's name is shorter, so parents come first
    bounds = np.flatnonzero(np.diff(depth[order])) + 1
    for calls in np.split(order, bounds):
        made = calls[parent[calls] >= 0]
        root[made] = root[parent[made]]
        blocks[made] = blocks[parent[made]] & overlaps[made]
    return root, blocks
