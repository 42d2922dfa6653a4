"""A rank as its contracted graph: what a replay of all ranks together needs of it, small enough to be sent around."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from stepscope.analysis.account.build import graph_of
from stepscope.analysis.account.contraction import (
    CollectiveNodes,
    Contraction,
    Works,
    contract,
    find_meetings,
    find_works,
)
from stepscope.analysis.account.graph import Graph
from stepscope.analysis.account.model import model_of, usual_steps
from stepscope.analysis.trace.collective_events import collective_rows
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.workers.collectives import collectives_of
from stepscope.analysis.workers.work_kinds import OF_MICROBATCHES, kinds_of_nodes, ops_in_step
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, Mask, distinct
from stepscope.records import dataclass

MOST_MEETINGS = 4000  # of a rank; with their ways and what tells them apart half a megabyte
_LEAST_WORK = 1e-3  # of a step: what is shorter keeps its length; slowdowns of simulated jobs stay within 0.02 so
CONSIDERABLE = 0.01  # of a step: a third of what is worth naming


_NONE = np.empty(0, np.int64)
_NO_WORKS = Works(_NONE, _NONE, _NONE, _NONE, _NONE)


@dataclass(frozen=True)
class RankGraph:
    """A rank's steps between its meetings with others.

    Attributes:
        place: int64 of shape (meetings,), which of the rank's collectives each is.
        contraction: the ways to them, to stretches of own work, and to the bounds of steps.
        steps: int64 of shape (steps,), rows of the host's steps; usual: bool of shape (steps,).
        recorded_ps: int64 of shape (steps,), how long each took.
        left_out: collectives that are no meetings, as there are too many or the graph has no place for them.
        kinds: the kinds of own work; kind: int64 of shape (works,), places in them.
        work_step: int64 of shape (works,), the step of each, as a place in `steps`.
        work_ps, pieces: int64 of shape (works,), what of its length is work, and how many kernels it has.
        turn: int64 of shape (works,), how many sends and receives were launched before each.
        on_device: whether a device communicates, so that waiting is idle time of the device.
        ops: outermost ops, or kernels where there is a device, of a usual step on average; backward_ops: those of them
            that are of a backward pass; operands: the numbers that its ops take, 0 if not recorded.
    """

    place: I64
    contraction: Contraction
    steps: I64
    usual: Mask
    recorded_ps: I64
    left_out: int
    kinds: tuple[str, ...]
    kind: I64
    work_step: I64
    work_ps: I64
    pieces: I64
    turn: I64
    on_device: bool
    ops: float
    backward_ops: float
    operands: float


@dataclass(frozen=True)
class PackedGraph:
    """The same as plain lists, as it lies in the part of a report; attributes as of RankGraph and Contraction."""

    place: list[int]
    length_ps: list[int]
    into: list[int]
    source: list[int]
    weight_ps: list[int]
    lost: int
    steps: list[int]
    usual: list[bool]
    recorded_ps: list[int]
    left_out: int
    kinds: list[str]
    kind: list[int]
    work_step: list[int]
    work_ps: list[int]
    pieces: list[int]
    turn: list[int]
    on_device: bool
    ops: float
    backward_ops: float
    operands: float


def packed_graph_of(trace: HostTrace, with_work: bool) -> PackedGraph | None:
    """The contracted graph of a rank as plain lists; None as of `rank_graph_of`."""
    graph = rank_graph_of(trace, with_work)
    if graph is None:
        return None
    columns = {**vars(graph), **vars(graph.contraction), "kinds": list(graph.kinds)}
    columns = {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in columns.items()}
    return PackedGraph(**{each.name: columns[each.name] for each in fields(PackedGraph)})


def unpack(packed: PackedGraph) -> RankGraph:
    """The graph of plain lists."""
    types = {"source": np.int32, "usual": np.bool_}
    columns = {
        name: np.array(one, types.get(name, np.int64)) if isinstance(one, list) and name != "kinds" else one
        for name, one in vars(packed).items()
    }
    ways = Contraction(**{each.name: columns.pop(each.name) for each in fields(Contraction)})
    return RankGraph(**{**columns, "contraction": ways, "kinds": tuple(packed.kinds)})


def rank_graph_of(trace: HostTrace, with_work: bool) -> RankGraph | None:
    """The contracted graph of a rank, made once per trace; None without steps or collectives.

    Args:
        with_work: stretches of its own work are kept, so that their lengths may be changed in a joint replay.
    """
    if with_work:
        return trace.derived("rank graph with work", lambda each: _rank_graph(each, True))
    return trace.derived("rank graph", lambda each: _rank_graph(each, False))


def meetings_of(trace: HostTrace, graph: Graph) -> tuple[CollectiveNodes, int]:
    """The collectives of as many last steps as there is room for, as nodes of a graph, and how many are left out.

    Whole steps are left out, so that all ranks leave out the same.
    """
    rows = collective_rows(trace)
    rows = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]
    found = find_meetings(trace, graph, rows)
    if len(found) <= MOST_MEETINGS:
        return found, len(rows) - len(found)
    bounds = graph.end_ps[graph.bounds]
    step = np.searchsorted(bounds, graph.start_ps[found.first], side="right")
    count = np.bincount(step, minlength=len(bounds) + 1)
    since = int((np.cumsum(count[::-1]) <= MOST_MEETINGS).sum())
    found = found.take(step >= len(count) - since)
    return found, len(rows) - len(found)


def _rank_graph(trace: HostTrace, with_work: bool) -> RankGraph | None:
    graph = graph_of(trace) if len(collective_rows(trace)) else None
    if graph is None or not len(graph.steps):
        return None
    meetings, left_out = meetings_of(trace, graph)
    kinds, works = _works(trace, graph, meetings) if with_work else ((), _NO_WORKS)
    kept = CollectiveNodes(
        np.concatenate([meetings.place, np.full(len(works.first), -1)]),
        np.concatenate([meetings.first, works.first]),
        np.concatenate([meetings.last, works.last]),
    )
    usual = np.zeros(len(graph.steps), np.bool_)
    usual[usual_steps(trace, graph)] = True
    of_devices = bool(is_device_work(trace)[collective_rows(trace)].any())
    return RankGraph(
        meetings.place, contract(graph, kept), graph.steps, usual, graph.recorded_step_ps, left_out, kinds, works.kind,
        graph.step[works.first].astype(np.int64), works.work_ps, works.pieces, _turns(trace, graph.event[works.first]),
        of_devices, *ops_in_step(trace, graph.steps[usual]),
    )  # fmt: skip


def _works(trace: HostTrace, graph: Graph, meetings: CollectiveNodes) -> tuple[tuple[str, ...], Works]:
    """A rank's own work and its kinds."""
    model = model_of(trace)
    if model is None:
        return (), _NO_WORKS
    kinds, kind = kinds_of_nodes(model)
    step_ps = float(np.median(graph.recorded_step_ps))
    # A long kernel beside the passes over microbatches may be one in which ranks wait for each other.
    apart = (graph.own_ps >= CONSIDERABLE * step_ps) & ~np.isin(kind, [kinds.index(each) for each in OF_MICROBATCHES])
    return kinds, find_works(graph, meetings, kind, apart, max(int(_LEAST_WORK * step_ps), 1), MOST_MEETINGS)


def _turns(trace: HostTrace, works: I32) -> I64:
    """How many sends and receives were launched before each work: int64 of shape (n,)."""
    rows = collective_rows(trace)
    rows = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]
    transfers = rows[distinct(np.array(collectives_of(trace).transfers.collective, np.int64))]
    launched = [_launch_ps(trace, events) for events in (transfers, works.astype(np.int64))]
    return np.searchsorted(np.sort(launched[0]), launched[1], side="right")


def _launch_ps(trace: HostTrace, events: I64) -> I64:
    """When each event was launched, else when it starts: int64 of shape (n,), ps."""
    call = forest(trace).cause[events]
    return trace.events.start_ps[np.where(call >= 0, call, events)]
