"""What the workbench below the timeline shows of a selection: its longest events, how long events last, call trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.timeline.index import is_drawn, is_own_code
from stepscope.analysis.timeline.projection import streams_of, times_of
from stepscope.analysis.timeline.search import find_events
from stepscope.analysis.trace.grouping import nearest_above
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import F64, I32, I64, Mask, levels_of
from stepscope.records import dataclass

BINS_A_DECADE = 8
"""Of a histogram of durations, whose axis is logarithmic."""

MOST_NODES = 3_000
"""Nodes of a call tree; those with least time are left out."""

DEEPEST_CALLERS = 40
"""How far an inverted tree follows the callers."""


@dataclass(frozen=True)
class Selected:
    """Events of a selection.

    Attributes:
        rows: int64 of shape (n,), rows of the trace; of a search also numbers of scopes, see `projection`.
        inside_ps: int64 of shape (n,), their time inside the window.
    """

    rows: I64
    inside_ps: I64


@dataclass(frozen=True)
class Histogram:
    """How many events last how long.

    Attributes:
        edges_ps: float64 of shape (bins + 1,), ascending.
        counts: int64 of shape (bins,).
    """

    edges_ps: F64
    counts: I64


@dataclass(frozen=True)
class CallTree:
    """Events merged by name and by the names around them.  A node comes after its parent.

    Attributes:
        parent: int32 of shape (nodes,), -1 for a root.
        name: int32 of shape (nodes,), a row of the string table.
        events: int64 of shape (nodes,).
        total_ps, self_ps: int64 of shape (nodes,), with and without what is inside.
        left_out: how many nodes with less time there are.
    """

    parent: I32
    name: I32
    events: I64
    total_ps: I64
    self_ps: I64
    left_out: int


def select_events(
    trace: HostTrace, begin_ps: int, end_ps: int, lines: Sequence[int], text: str = "", regex: bool = False
) -> Selected:
    """The drawn events of some lines that overlap a window, and match a search if there is one; then scopes as well.

    Raises:
        UsageError: the window is empty, or the search is not valid.
    """
    if end_ps <= begin_ps:
        raise UsageError(f"the selection from {begin_ps} to {end_ps} ps is empty")
    chosen = np.zeros(len(trace.lines), np.bool_)
    chosen[np.asarray(lines, np.int64)] = True
    rows = find_events(trace, text, regex).rows if text else np.flatnonzero(is_drawn(trace))
    rows = rows[chosen[streams_of(trace, rows)]]
    start, duration = times_of(trace, rows)
    stop = start + duration
    inside = (start < end_ps) & ((stop > begin_ps) | (start >= begin_ps))
    rows, start, stop = rows[inside], np.maximum(start[inside], begin_ps), np.minimum(stop[inside], end_ps)
    return Selected(rows, np.maximum(stop - start, 0))


def longest_events(trace: HostTrace, rows: I64, most: int) -> I64:
    """The longest events of some, the longest first; the earlier first of equals."""
    start, duration = times_of(trace, rows)
    if len(rows) > most:
        least = np.partition(duration, len(rows) - most)[len(rows) - most]
        long = duration >= least
        rows, start, duration = rows[long], start[long], duration[long]
    return rows[np.lexsort((start, -duration))[:most]]


def duration_histogram(trace: HostTrace, rows: I64) -> Histogram:
    """How many events last how long, in bins of a logarithmic axis; events without a duration are left out."""
    _, durations = times_of(trace, rows)
    durations = durations[durations > 0]
    if not len(durations):
        return Histogram(np.empty(0), np.empty(0, np.int64))
    place = np.floor(np.log10(durations) * BINS_A_DECADE).astype(np.int64)
    first, last = int(place.min()), int(place.max())
    edges = 10.0 ** (np.arange(first, last + 2) / BINS_A_DECADE)
    return Histogram(edges, np.bincount(place - first, minlength=last - first + 1))


def build_call_tree(
    trace: HostTrace, selected: Selected, inverted: bool = False, own_code: bool = False, hidden: Sequence[str] = ()
) -> CallTree:
    """Merges events into a tree of names; marks of steps are left out, and scopes, which no thread calls.

    Args:
        trace: the trace.
        selected: the events.
        inverted: from each function to its callers, by own time, instead of from callers to callees.
        own_code: without the Python calls of libraries.
        hidden: names that are left out; what they enclose moves up.
    """
    is_event = selected.rows < len(trace.events)
    selected = Selected(selected.rows[is_event], selected.inside_ps[is_event])
    # Marks of steps frame the same calls again and again under other names.
    shown = _shown_types(trace, hidden)[trace.events.type[selected.rows]]
    shown &= trace.events.kind[selected.rows] != EventKind.STEP_MARK
    if own_code:
        shown &= is_own_code(trace)[selected.rows]
    rows, inside = selected.rows[shown], selected.inside_ps[shown]
    parent = _nearest_parents(trace, rows)
    names, name = _unique(trace.event_types.name[trace.events.type[rows]].astype(np.int64), len(trace.strings))
    children = np.bincount(parent[parent >= 0], inside[parent >= 0], minlength=len(rows)).astype(np.int64)
    own = np.maximum(inside - children, 0)
    tree, node = _merge_callees(parent, name, inside, own)
    if inverted:
        tree = _merge_callers(tree, np.bincount(node[own > 0], minlength=len(tree.parent)))
    return _drop_smallest(replace(tree, name=names[tree.name].astype(np.int32)))


def _shown_types(trace: HostTrace, hidden: Sequence[str]) -> Mask:
    shown = np.ones(len(trace.event_types), np.bool_)
    for name in hidden:
        shown &= np.array([trace.strings[at] != name for at in trace.event_types.name.tolist()], np.bool_)
    return shown


def _nearest_parents(trace: HostTrace, rows: I64) -> I32:
    """For each event the place in `rows` of the nearest one that encloses it; -1 without one."""
    place = np.full(len(trace.events) + 1, -1, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    return place[nearest_above(trace, rows, place >= 0)]


def _merge_callees(parent: I32, name: I64, inside: I64, own: I64) -> tuple[CallTree, I64]:
    """The tree from callers to callees, and the node of each event in it."""
    node = np.zeros(len(parent), np.int64)
    parts: list[tuple[I64, I64]] = []
    first = 0
    n_names = int(name.max(initial=0)) + 1
    for level in levels_of(parent):
        above = np.where(parent[level] >= 0, node[parent[level]], -1)
        keys, place = _unique((above + 1) * n_names + name[level], (first + 1) * n_names)
        node[level] = first + place
        parts.append((keys // n_names - 1, keys % n_names))
        first += len(keys)
    none = np.empty(0, np.int64)
    parents = np.concatenate([none, *(above for above, _ in parts)])
    names = np.concatenate([none, *(names for _, names in parts)])
    return _sum_nodes(parents, names, node, inside, own), node


_MOST_SPARSE = 1 << 20


def _unique(keys: I64, bound: int) -> tuple[I64, I64]:
    """The different keys, all below `bound`, ascending, and the place of each key among them."""
    if bound > _MOST_SPARSE + 4 * len(keys):
        found, place = np.unique(keys, return_inverse=True)
        return found, place
    seen = np.zeros(bound, np.bool_)
    seen[keys] = True
    found = np.flatnonzero(seen)
    places = np.empty(bound, np.int64)
    places[found] = np.arange(len(found))
    return found, places[keys]


def _merge_callers(tree: CallTree, working: I64) -> CallTree:
    """The inverted tree: each node with own time starts at its own name and goes up through its callers.

    Events with equal callers are one node of the tree already, so this looks at nodes, of which there are few.

    Args:
        tree: from callers to callees.
        working: int64 of shape (nodes,), the events of each node that have time of their own.
    """
    n_names = int(tree.name.max(initial=0)) + 1
    at = np.flatnonzero(tree.self_ps > 0)
    weight, events, above = tree.self_ps[at], working[at], np.full(len(at), -1, np.int64)
    parts: list[tuple[I64, I64, I64, I64, I64]] = []
    first = 0
    for depth in range(DEEPEST_CALLERS):
        if not len(at):
            break
        keys, place = _unique((above + 1) * n_names + tree.name[at], (first + 1) * n_names)
        count, time = (np.bincount(place, sums, minlength=len(keys)).astype(np.int64) for sums in (events, weight))
        self_time = time if depth == 0 else np.zeros(len(keys), np.int64)
        parts.append((keys // n_names - 1, keys % n_names, count, time, self_time))
        above, at = first + place, tree.parent[at].astype(np.int64)
        first += len(keys)
        going = at >= 0
        at, above, weight, events = at[going], above[going], weight[going], events[going]
    columns = [np.concatenate(part) for part in zip(*parts, strict=True)] if parts else [np.empty(0, np.int64)] * 5
    parents, names, count, total, self_time = columns
    return CallTree(parents.astype(np.int32), names.astype(np.int32), count, total, self_time, 0)


def _sum_nodes(parents: I64, names: I64, node: I64, inside: I64, own: I64) -> CallTree:
    n = len(parents)
    events = np.bincount(node, minlength=n).astype(np.int64)
    total, self_ps = (np.bincount(node, times, minlength=n).astype(np.int64) for times in (inside, own))
    return CallTree(parents.astype(np.int32), names.astype(np.int32), events, total, self_ps, 0)


def _drop_smallest(tree: CallTree) -> CallTree:
    """The tree with its nodes of most time; a parent has at least the time of each of its children."""
    n = len(tree.parent)
    if n <= MOST_NODES:
        return tree
    kept = np.sort(np.lexsort((np.arange(n), -tree.total_ps))[:MOST_NODES])
    place = np.full(n + 1, -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    return CallTree(
        parent=place[tree.parent[kept]],
        name=tree.name[kept],
        events=tree.events[kept],
        total_ps=tree.total_ps[kept],
        self_ps=tree.self_ps[kept],
        left_out=n - len(kept),
    )
