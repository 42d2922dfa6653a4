"""The model of a host's steps, made from its trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.graph import NO_LINE, EdgeKind, Edges, Graph, NodeKind
from stepscope.analysis.account.nodes import NodeFinder, Nodes, cut_line
from stepscope.analysis.account.producers import Producers, producers_of
from stepscope.analysis.account.queues import NEVER, Queues, last_done, queues_of
from stepscope.analysis.account.step_bounds import StepBounds, bounds_of
from stepscope.analysis.account.sync_points import SyncPoints, sync_points_of
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import HostSteps, steps_of
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, median, offsets_of
from stepscope.records import dataclass

E = EdgeKind


def graph_of(trace: HostTrace) -> Graph | None:
    """The model of a host's steps, made once per trace; None where no steps were found."""
    return trace.derived("step graph", build_graph) if steps_of(trace).source != "none" else None


def build_graph(trace: HostTrace) -> Graph | None:
    """Makes the model; where no steps were found, that of the whole capture; None where nothing takes time."""
    steps = steps_of(trace)
    if not len(steps.number):
        return None
    zero = trace.span_ps()[0]
    queues, threads = queues_of(trace, zero), threads_of(trace)
    bounds = bounds_of(trace, steps)
    producers = producers_of(trace, threads, zero)
    contacts = sync_points_of(trace, threads, queues, bounds, producers)
    host = _host_nodes(contacts, threads.lines)
    nodes = _join_nodes(host, queues, producers, bounds)
    batches = len(host) + len(queues)
    finder = NodeFinder(host.line, host.start_ps, host.end_ps)
    begun = list[Edges]()
    if steps.source == "none" and threads.main >= 0:
        queues, begun = _begin_queues(queues, finder, threads.main, host.end_ps, len(host))
    edges = Edges.join(
        [
            *begun,
            *_launch_edges(trace, finder, queues, len(host)),
            *contacts.edges(finder, queues, len(host)),
            queue_edges(queues, len(host)),
            producers.edges(finder, threads.main, batches),
            *bounds.edges(finder, queues, len(host), batches + len(producers)),
        ]
    )
    step = np.concatenate(
        [
            bounds.step_of(host.line, host.start_ps),
            _steps_of_work(steps, queues, bounds),
            bounds.step_of(trace.events.line[producers.call], producers.ready_ps),
            np.arange(len(bounds.time_ps)) - 1,
        ]
    )
    return _graph(
        nodes,
        step.astype(np.int32),
        edges,
        _pauses(host, finder, contacts, threads.main, queues, producers, bounds, zero),
        bounds,
        zero,
    )


def _host_nodes(contacts: SyncPoints, lines: list[int]) -> Nodes:
    found = [cut_line(each, *contacts.line_contacts(each)) for each in sorted(lines)]
    line = np.concatenate([each[0] for each in found] or [np.empty(0, np.int32)])
    start, end = (np.concatenate([each[at] for each in found] or [np.empty(0, np.int64)]) for at in (1, 2))
    nodes = Nodes(line, start, end, np.zeros(len(line), np.uint8), np.full(len(line), -1, np.int32))
    at = NodeFinder(line, start, end).starting_at(contacts.call_line, contacts.call_start_ps)
    nodes.kind[at[at >= 0]] = NodeKind.CALL
    nodes.event[at[at >= 0]] = contacts.call[at >= 0]
    return nodes


def _join_nodes(host: Nodes, queues: Queues, producers: Producers, bounds: StepBounds) -> Nodes:
    count = len(bounds.time_ps)
    kinds = ((len(queues), NodeKind.WORK), (len(producers), NodeKind.BATCH), (count, NodeKind.BOUND))
    return Nodes(
        np.concatenate([host.line, queues.line, np.full(len(producers) + count, NO_LINE, np.int32)]),
        np.concatenate([host.start_ps, queues.start_ps, producers.start_ps, bounds.time_ps]),
        np.concatenate([host.end_ps, queues.end_ps, producers.ready_ps, bounds.time_ps]),
        np.concatenate([host.kind, *(np.full(number, kind, np.uint8) for number, kind in kinds)]),
        np.concatenate(
            [host.event, queues.event.astype(np.int32), producers.call.astype(np.int32), np.full(count, -1, np.int32)]
        ),
    )


def _launch_edges(trace: HostTrace, finder: NodeFinder, queues: Queues, first: int) -> list[Edges]:
    known = np.flatnonzero(queues.call >= 0)
    call = queues.call[known]
    begins = trace.events.start_ps[call]
    ends = begins + trace.events.duration_ps[call]
    line = trace.events.line[call]
    early, target = queues.after_start[known], first + known
    found = []
    for after_start in (True, False):
        at = early == after_start
        source = finder.starting_from(line[at], begins[at]) if after_start else finder.ending_by(line[at], ends[at])
        found.append(Edges.connect(source, target[at], queues.latency_ps[known][at], E.LAUNCH, False, after_start))
    return found


def _begin_queues(queues: Queues, finder: NodeFinder, main: int, end_ps: I64, first: int) -> tuple[Queues, list[Edges]]:
    """The first work of each queue, where nothing says what launched it, follows what the loop's thread did before it,
    as pages of unified memory move once a kernel touches them: no silence of the queue explains the time before."""
    rows = np.flatnonzero((queues.previous < 0) & (queues.call < 0))
    source = finder.ending_by(np.full(len(rows), main), queues.start_ps[rows])
    rows, source = rows[source >= 0], source[source >= 0]
    pause, unexplained = queues.pause_ps.copy(), queues.unexplained_ps.copy()
    pause[rows], unexplained[rows] = 0, 0
    lag = np.maximum(queues.start_ps[rows] - end_ps[source], 0)
    edges = Edges.connect(source, first + rows, lag, E.LAUNCH, False)
    return replace(queues, pause_ps=pause, unexplained_ps=unexplained), [edges]


@dataclass(frozen=True)
class _Pauses:
    own_ps: I64
    previous: I32
    pause_ps: I64
    unexplained_ps: I64


def _pauses(
    host: Nodes,
    finder: NodeFinder,
    contacts: SyncPoints,
    main: int,
    queues: Queues,
    producers: Producers,
    bounds: StepBounds,
    zero_ps: int,
) -> _Pauses:
    """What runs before each node, and the least pause after it."""
    first = np.flatnonzero(np.append(True, host.line[1:] != host.line[:-1]))[: len(host)]
    # A thread whose next start nothing explains starts after as long a time as recorded.
    unknown = contacts.starts_unexplained(finder, len(host))
    unknown[first[host.line[first] == main]] = True
    gap = host.start_ps.copy()
    gap[1:] -= host.end_ps[:-1]
    gap[first] = host.start_ps[first] - zero_ps
    gap *= unknown
    np.maximum(gap, 0, out=gap)
    batches, count = len(host) + len(queues), len(bounds.time_ps)
    none = np.zeros(len(producers) + count, np.int64)
    making = producers.ready_ps - producers.start_ps
    pause = np.concatenate([gap, queues.pause_ps, none])
    gap[first] = 0
    return _Pauses(
        np.concatenate([host.end_ps - host.start_ps, queues.own_ps, making, none[:count]]),
        _nodes_before(first, queues, len(host), (batches, batches + len(producers)), batches + len(none)),
        pause,
        np.concatenate([gap, queues.unexplained_ps, none]),
    )


def _nodes_before(first: I64, queues: Queues, host: int, chains: tuple[int, ...], count: int) -> I32:
    """The node before each node on its line: int32 of shape (nodes,), -1 for none.

    Args:
        first: the first node of each thread; host: how many nodes threads have, which come first.
        chains: where the nodes of other lines than threads and queues start, which come last.
        count: how many nodes there are.
    """
    before = np.arange(-1, count - 1, dtype=np.int32)
    before[first] = -1
    before[[each for each in chains if each < count]] = -1
    before[host : host + len(queues)] = np.where(queues.previous >= 0, queues.previous + host, -1)
    return before


def _graph(nodes: Nodes, step: I32, edges: Edges, pauses: _Pauses, bounds: StepBounds, zero_ps: int) -> Graph:
    into, kept = np.zeros(len(nodes) + 1, np.int64), np.empty(len(edges), np.int64)
    count = kernels.replay.sort_edges(
        edges.source, edges.target, edges.lag_ps, edges.after_start.view(np.uint8), nodes.start_ps, nodes.end_ps, into,
        kept,
    )  # fmt: skip
    lost = len(edges) - count
    edges = edges.take(kept[:count])
    order, bad = np.empty(len(nodes), np.int32), np.zeros(len(edges), np.uint8)
    kernels.replay.sort(
        pauses.previous, into, edges.source, np.zeros(len(nodes), np.uint8), np.empty(len(nodes) + 1, np.int32), order,
        bad,
    )  # fmt: skip
    if bad.any():
        edges = edges.take(bad == 0)
        into = offsets_of(np.bincount(edges.target, minlength=len(nodes)))
    count = len(bounds.time_ps)
    return Graph(
        nodes.line, step, nodes.event, nodes.kind, nodes.start_ps, nodes.end_ps, pauses.own_ps, pauses.previous,
        pauses.pause_ps, pauses.unexplained_ps, into, edges, order,
        (len(nodes) - count + np.arange(count)).astype(np.int32), bounds.steps, lost + int(bad.sum()), zero_ps,
    )  # fmt: skip


def _steps_of_work(steps: HostSteps, queues: Queues, bounds: StepBounds) -> I64:
    """The step that each piece of device work is for, else the one during which it starts."""
    label = steps.label[queues.event].astype(np.int64)
    return np.where((label >= 0) & (label < len(bounds.steps)), label, bounds.step_at(queues.start_ps))


# ---- edges between queues --------------------------------------------------------------------------------------------
# Edges from work of one queue to work of another that waits for it.
#
# What the trace states or the order of host calls shows comes first.  Work that starts later than all of that explains
# waits for the work of another queue that ended last before it, if that leaves little to explain; such edges count as
# inferred.


def queue_edges(queues: Queues, first: int) -> Edges:
    """What work waits for on other queues.

    Args:
        first: the node of the first work.
    """
    waits = queues.waits
    free = np.where(queues.previous >= 0, queues.end_ps[queues.previous] + queues.pause_ps, NEVER)
    ready = np.maximum(free, queues.arrival_ps)
    known = Edges.connect(
        first + waits.source, first + waits.target, _wait_lags(queues, ready), EdgeKind.QUEUE, not waits.recorded
    )
    explained = waits.target[queues.end_ps[waits.source] > ready[waits.target]]
    late = (queues.call >= 0) & (queues.start_ps > ready)
    late[explained] = False
    source, target = _sources_by_time(queues, ready, np.flatnonzero(late))
    rest = queues.start_ps[target] - queues.end_ps[source]
    lag = np.where(rest < 0, rest, int(median(rest)) if len(rest) else 0)
    return Edges.join([known, Edges.connect(first + source, first + target, lag, EdgeKind.QUEUE, True)])


def _wait_lags(queues: Queues, ready: I64) -> I64:
    """From the end of the work that is waited for to the start of what waits: the median over those that did wait.

    Times of devices are not exact, so work may seem to start before what it is stated to wait for has ended: then it is
    as much less.
    """
    source, target = queues.waits.source, queues.waits.target
    rest = queues.start_ps[target] - queues.end_ps[source]
    waited = (queues.end_ps[source] > ready[target]) & (rest >= 0)
    usual = int(median(rest[waited])) if waited.any() else 0
    early = (rest < 0) & (queues.start_ps[source] <= queues.start_ps[target]) & queues.waits.recorded
    return np.where(early, rest, usual)


def _sources_by_time(queues: Queues, ready: I64, late: I64) -> tuple[I64, I64]:
    """The work of another queue that ended last before each late work started, where that explains the start."""
    by_end = np.argsort(queues.end_ps, kind="stable")
    source = last_done(by_end, queues.end_ps, queues.start_ps[late], ready[late], queues.line, queues.line[late])
    explains = source >= 0
    return source[explains], late[explains]
