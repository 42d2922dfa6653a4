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
from stepscope.model.arrays import I32, I64, U8, Mask, offsets_of
from stepscope.records import dataclass

_MOST_WAYS = 16  # to a node; what has more keeps the latest
_WINDOW = 64  # collectives before each one to which the least time is kept, to see which ways another one explains


@dataclass(frozen=True)
class CollectiveNodes:
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

    def take(self, rows: I64 | Mask) -> CollectiveNodes:
        """Some of them."""
        return CollectiveNodes(self.place[rows], self.first[rows], self.last[rows])


@dataclass(frozen=True)
class Contraction:
    """The longest ways of a graph between meetings; stretches of work may be kept as meetings of one rank.

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


def find_meetings(trace: HostTrace, graph: Graph, rows: I64) -> CollectiveNodes:
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
    return CollectiveNodes(np.flatnonzero(sound), first[sound], last[sound])


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


def contract(
    graph: Graph,
    meetings: CollectiveNodes,
    own_ps: I64 | None = None,
    lag_ps: I64 | None = None,
    pause_ps: I64 | None = None,
) -> Contraction:
    """Contracts a graph.

    Args:
        own_ps, lag_ps, pause_ps: lengths of nodes, edges and pauses instead of the graph's.
    """
    ways = _find_ways(graph, meetings, own_ps, lag_ps, pause_ps)
    wanted = np.concatenate([meetings.first, graph.bounds])
    kept = np.arange(_MOST_WAYS) < ways.count[wanted, None]
    source, weight = ways.source[wanted][kept], ways.weight_ps[wanted][kept]
    return Contraction(ways.length_ps, offsets_of(ways.count[wanted]), source, weight, ways.lost)


@dataclass(frozen=True)
class _Ways:
    """The longest ways to all nodes.

    Attributes:
        source, weight_ps: of shape (nodes, _MOST_WAYS); count: uint8 of shape (nodes,), how many of them there are.
        length_ps, lost: as of a Contraction.
    """

    source: I32
    weight_ps: I64
    count: U8
    length_ps: I64
    lost: int


def _find_ways(
    graph: Graph, meetings: CollectiveNodes, own_ps: I64 | None, lag_ps: I64 | None, pause_ps: I64 | None
) -> _Ways:
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
    return _Ways(source, weight, number, alone.end_ps[meetings.last] - alone.start_ps[meetings.first], lost)


@dataclass(frozen=True)
class Works:
    """Stretches of a host's own work whose length may change in a joint replay.

    Attributes:
        first, last: int64 of shape (n,), the nodes that start and end each.
        kind: int64 of shape (n,), as its nodes have.
        work_ps: int64 of shape (n,), what of its length is work; the rest are gaps in which its device waits for calls.
        pieces: int64 of shape (n,), how many nodes it is made of.
    """

    first: I64
    last: I64
    kind: I64
    work_ps: I64
    pieces: I64


def find_works(graph: Graph, meetings: CollectiveNodes, kind: I64, apart: Mask, least_ps: int, most: int) -> Works:
    """The longest stretches of work: of a device from one contact with others to the next, single nodes of threads.

    Work of a queue is one stretch as long as each piece starts a fixed time after the one before, whatever other ranks
    do, nothing waits for its middle, and no gap is as long as work that is kept: a thread's work lies in such a gap,
    and that may change by itself.

    Args:
        kind: int64 of shape (nodes,), work of different kinds is in different stretches; -1 for none.
        apart: bool of shape (nodes,), nodes that are stretches of their own.
        least_ps: shorter ones are left out; most: how many are kept.
    """
    ways = _find_ways(graph, meetings, None, None, None)
    counts = (kind >= 0) & (graph.step >= 0) & ~_nodes_of(graph, meetings)
    alike = np.where(apart, -1 - np.arange(len(graph)), kind)
    follows, without_gap = _follow_rigidly(graph, ways, alike, counts, least_ps)
    node = np.flatnonzero(counts)
    run = np.cumsum(~follows[node]) - 1
    first = node[~follows[node]]
    last = np.zeros(len(first), np.int64)
    np.maximum.at(last, run, node)
    inside = np.append(~follows[node[1:]] | without_gap[node[1:]], True) if len(node) else np.zeros(0, np.bool_)
    work = np.bincount(run, weights=graph.own_ps[node] * inside, minlength=len(first)).astype(np.int64)
    kept = np.flatnonzero(work >= least_ps)
    kept = np.sort(kept[np.argsort(-work[kept], kind="stable")[:most]])
    return Works(first[kept], last[kept], kind[first[kept]], work[kept], np.bincount(run, minlength=len(first))[kept])


def _nodes_of(graph: Graph, meetings: CollectiveNodes) -> Mask:
    """The nodes that lie in meetings: bool of shape (nodes,)."""
    turn = np.zeros(len(graph) + 1, np.int64)
    np.add.at(turn, meetings.first, 1)
    np.add.at(turn, meetings.last + 1, -1)
    inside: Mask = np.cumsum(turn)[:-1] > 0
    return inside


def _follow_rigidly(graph: Graph, ways: _Ways, kind: I64, counts: Mask, most_gap_ps: int) -> tuple[Mask, Mask]:
    """Which nodes of queues go on with the work before them after no longer gap than that, and which of these start
    when that ends: bool of shape (nodes,)."""
    awaited = np.zeros(len(graph), np.bool_)
    awaited[graph.edges.source[graph.edges.kind != EdgeKind.LAUNCH]] = True
    before = graph.previous.astype(np.int64)
    node = np.flatnonzero(counts & (graph.kind == NodeKind.WORK) & (before >= 0))
    last = before[node]
    alike = counts[last] & (graph.kind[last] == NodeKind.WORK) & ~awaited[last] & (kind[node] == kind[last])
    node = node[alike & (graph.step[node] == graph.step[last]) & (ways.count[node] == ways.count[last])]
    last = before[node]
    shift = ways.weight_ps[node] - ways.weight_ps[last]
    same = (ways.source[node] == ways.source[last]) & (shift == shift[:, :1])
    gap = shift[:, 0] - graph.own_ps[last] - graph.pause_ps[node]
    fixed = (same | (np.arange(_MOST_WAYS) >= ways.count[node, None])).all(axis=1) & (gap < most_gap_ps)
    follows, without_gap = np.zeros(len(graph), np.bool_), np.zeros(len(graph), np.bool_)
    follows[node[fixed]] = True
    without_gap[node[fixed]] = gap[fixed] <= 0
    return follows, without_gap
