"""A rank's graph contracted to where it meets other ranks: the starts of its collectives, and the bounds of its steps.

What is kept are the longest ways to each of those, from the start of the replay and from ends of collectives, that pass
no other collective.  That is all that a replay of several ranks together needs of each of them, and it is exact: the
longest way decides when something starts, whatever time the collectives take.
"""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.nodes import NodeFinder
from stepscope.analysis.account.replay import replay
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, Mask, offsets_of
from stepscope.records import dataclass

NEVER = np.iinfo(np.int64).min // 4
_MOST_WAYS = 16  # to a node; what has more keeps the latest
_WINDOW = 64  # collectives before each one to which the least time is kept, to see which ways another one explains


@dataclass(frozen=True)
class Meetings:
    """Collectives of a host as nodes of its graph, in order of time.

    Attributes:
        place: int64 of shape (n,), which of the asked collectives each is; the others have no nodes of their own.
        first, last: int64 of shape (n,), the nodes that start and end it; mostly the same.
    """

    place: I64
    first: I64
    last: I64

    def __len__(self) -> int:
        return len(self.place)

    def take(self, rows: I64 | Mask) -> Meetings:
        """Some of them."""
        return Meetings(self.place[rows], self.first[rows], self.last[rows])


@dataclass(frozen=True)
class Contraction:
    """The longest ways of a graph between meetings.

    Attributes:
        length_ps: int64 of shape (meetings,), from the start to the end of each, as this rank replays alone.
        into: int64 of shape (meetings + steps + 2,), where the ways are to each meeting, then to each bound of steps.
        source: int32 of shape (ways,), the meeting that a way comes from, -1 for the start of the replay.
        weight_ps: int64 of shape (ways,).
        lost: ways to nodes for which there was no room.
    """

    length_ps: I64
    into: I64
    source: I32
    weight_ps: I64
    lost: int


def find_meetings(trace: HostTrace, graph: Graph, rows: I64) -> Meetings:
    """The nodes of some collectives.

    Args:
        rows: their events, in order of time.
    """
    events, device = trace.events, is_device_work(trace)[rows]
    first, last = np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int64)
    work = np.flatnonzero(graph.kind == NodeKind.WORK)
    node = np.full(len(events), -1, np.int64)
    node[graph.event[work]] = work
    first[device] = last[device] = node[rows[device]]
    threads = np.flatnonzero(~device)
    if len(threads):
        hosts = int(((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL)).sum())  # they come first
        finder = NodeFinder(graph.line[:hosts], graph.start_ps[:hosts], graph.end_ps[:hosts])
        line, start = events.line[rows[threads]], events.start_ps[rows[threads]]
        end = start + events.duration_ps[rows[threads]]
        first[threads], last[threads] = finder.starting_from(line, start), finder.ending_by(line, end)
        last[threads] = _awaited(graph, first[threads], last[threads])
    sound = (first >= 0) & (last >= first)
    sound[sound] = _are_apart(first[sound], last[sound])
    return Meetings(np.flatnonzero(sound), first[sound], last[sound])


def _awaited(graph: Graph, first: I64, last: I64) -> I64:
    """Of some stretches of nodes, the first node after most of the time that another thread waits for, else the last:
    what a thread does after it has let others go on is no part of the meeting."""
    edges, order = graph.edges, np.argsort(first, kind="stable")
    joins = (edges.kind == EdgeKind.JOIN) & (graph.line[edges.source] != graph.line[edges.target])
    node = edges.source[joins].astype(np.int64)
    at = order[np.maximum(np.searchsorted(first[order], node, side="right") - 1, 0)]
    start, end = graph.start_ps[first[at]], graph.end_ps[last[at]]
    late = (node >= first[at]) & (node <= last[at]) & (2 * (graph.end_ps[node] - start) >= end - start)
    found = last.copy()
    np.minimum.at(found, at[late], node[late])
    return found


def _are_apart(first: I64, last: I64) -> Mask:
    """Which of some stretches of nodes share none with those before: bool of shape (n,)."""
    order = np.argsort(first, kind="stable")
    reached = np.append(-1, np.maximum.accumulate(last[order])[:-1]) if len(order) else order
    apart = np.empty(len(first), np.bool_)
    apart[order] = first[order] > reached
    return apart


@dataclass(frozen=True)
class Between:
    """The times between the meetings that are kept of a contraction, bounds of steps among them.

    Attributes:
        source, target: int32 of shape (ways,), places among the kept ones; source -1 for the start of the replay.
        weight_ps: int64 of shape (ways,).
        order: int64 of shape (kept,), the turn of each.
        least_ps: int64 of shape (kept, window) by turn, the longest way from each of those before, the nearest first;
            NEVER for none.
        since_zero_ps: int64 of shape (kept,) by turn, the same from the start of the replay.
    """

    source: I32
    target: I32
    weight_ps: I64
    order: I64
    least_ps: I64
    since_zero_ps: I64

    def longest(self, source: I64, target: I64) -> I64:
        """The longest way between each of some pairs, whatever lies on it: int64 of shape (n,), NEVER where none is
        known."""
        found = np.full(len(source), NEVER)
        turn, since = self.order[target], np.where(source >= 0, self.order[source], -1)
        back = turn - since - 1
        near = (since >= 0) & (back >= 0) & (back < self.least_ps.shape[1])
        found[near] = self.least_ps[turn[near], back[near]]
        found[source < 0] = self.since_zero_ps[turn[source < 0]]
        direct, count = self._keys(self.source, self.target), len(self.order)
        order = np.argsort(direct, kind="stable")
        wanted = (source + 1) * count + target
        at = np.minimum(np.searchsorted(direct[order], wanted), max(len(order) - 1, 0))
        known = direct[order[at]] == wanted if len(order) else np.zeros(len(wanted), np.bool_)
        found[known] = np.maximum(found[known], self.weight_ps[order[at[known]]])
        return found

    def _keys(self, source: I32, target: I32) -> I64:
        return (source.astype(np.int64) + 1) * len(self.order) + target


def between(found: Contraction, kept: I64) -> Between:
    """The longest ways between some rows of a contraction; its other meetings take as long as they do alone.

    Args:
        kept: int64, rows for meetings and bounds.
    """
    rows, count = len(found.into) - 1, len(kept)
    target = np.repeat(np.arange(rows), np.diff(found.into))
    pause = np.full(rows, NEVER)
    first = found.source < 0
    pause[target[first]] = found.weight_ps[first]
    source, lag, into = (
        found.source[~first],
        found.weight_ps[~first],
        offsets_of(np.bincount(target[~first], minlength=rows)),
    )
    own, previous = (
        np.append(found.length_ps, np.zeros(rows - len(found.length_ps), np.int64)),
        np.full(rows, -1, np.int32),
    )
    order, after_start = np.empty(rows, np.int32), np.zeros(len(source), np.uint8)
    kernels.replay.sort(
        previous, into, source, np.zeros(rows, np.uint8), np.empty(rows + 1, np.int32), order,
        np.zeros(len(source), np.uint8),
    )  # fmt: skip
    start, end, meeting = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.full(rows, -1, np.int32)
    kernels.replay.replay(order, previous, pause, own, into, source, lag, after_start, start, end)
    meeting[kept] = np.arange(count)
    way_source, way_weight = np.empty((rows, _MOST_WAYS), np.int32), np.empty((rows, _MOST_WAYS), np.int64)
    number, scratch = np.zeros(rows, np.uint8), np.zeros((4, count + 1), np.int64)
    least = np.empty((count + 1, _WINDOW), np.int64)
    kernels.ranks.contract(
        order, previous, pause, own, into, source, lag, after_start, meeting, meeting, np.append(end[kept], 0),
        way_source, way_weight, number, least, scratch, np.empty(count + 1, np.int32),
    )  # fmt: skip
    some = np.arange(_MOST_WAYS) < number[kept, None]
    return Between(
        way_source[kept][some], np.repeat(np.arange(count, dtype=np.int32), number[kept]), way_weight[kept][some],
        scratch[0, :count], least[:count], scratch[1, :count],
    )  # fmt: skip


def contract(
    graph: Graph, meetings: Meetings, own_ps: I64 | None = None, lag_ps: I64 | None = None, pause_ps: I64 | None = None
) -> Contraction:
    """Contracts a graph.

    Args:
        own_ps, lag_ps, pause_ps: lengths of nodes, edges and pauses instead of the graph's.
    """
    own = graph.own_ps if own_ps is None else own_ps
    lag = graph.edges.lag_ps if lag_ps is None else lag_ps
    pause = graph.pause_ps if pause_ps is None else pause_ps
    alone = replay(graph, own, None, lag, pause)
    nodes, count = len(graph), len(meetings)
    starts, ends = np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32)
    starts[meetings.first] = ends[meetings.last] = np.arange(count)
    source, weight = np.empty((nodes, _MOST_WAYS), np.int32), np.empty((nodes, _MOST_WAYS), np.int64)
    number = np.zeros(nodes, np.uint8)
    lost = kernels.ranks.contract(
        graph.order, graph.previous, pause, own, graph.into, graph.edges.source, lag,
        graph.edges.after_start.view(np.uint8), starts, ends, np.append(alone.end_ps[meetings.last], 0), source, weight,
        number, np.empty((count + 1, _WINDOW), np.int64), np.zeros((4, count + 1), np.int64),
        np.empty(count + 1, np.int32),
    )  # fmt: skip
    wanted = np.concatenate([meetings.first, graph.bounds])
    kept = np.arange(_MOST_WAYS) < number[wanted, None]
    length = alone.end_ps[meetings.last] - alone.start_ps[meetings.first]
    return Contraction(length, offsets_of(number[wanted]), source[wanted][kept], weight[wanted][kept], lost)
