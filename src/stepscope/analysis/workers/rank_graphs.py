"""A rank as its contracted graph: what a replay of all ranks together needs of it, small enough to be sent around."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.build import graph_of
from stepscope.analysis.account.contraction import Contraction, Meetings, contract, find_meetings
from stepscope.analysis.account.graph import Graph
from stepscope.analysis.account.model import usual_steps
from stepscope.analysis.trace.collective_events import collective_rows
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass

MOST_MEETINGS = 4000  # of a rank; with their ways and what tells them apart half a megabyte


@dataclass(frozen=True)
class RankGraph:
    """A rank's steps between its meetings with others.

    Attributes:
        place: int64 of shape (meetings,), which of the rank's collectives each is.
        contraction: the ways to them and to the bounds of steps.
        steps: int64 of shape (steps,), rows of the host's steps; usual: bool of shape (steps,).
        recorded_ps: int64 of shape (steps,), how long each took.
        left_out: collectives that are no meetings, as there are too many or the graph has no place for them.
    """

    place: I64
    contraction: Contraction
    steps: I64
    usual: Mask
    recorded_ps: I64
    left_out: int


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


def packed_graph_of(trace: HostTrace) -> PackedGraph | None:
    """The contracted graph of a rank as plain lists; None as of `rank_graph_of`."""
    graph = rank_graph_of(trace)
    if graph is None:
        return None
    ways = graph.contraction
    return PackedGraph(
        graph.place.tolist(), ways.length_ps.tolist(), ways.into.tolist(), ways.source.tolist(),
        ways.weight_ps.tolist(), ways.lost, graph.steps.tolist(), graph.usual.tolist(), graph.recorded_ps.tolist(),
        graph.left_out,
    )  # fmt: skip


def unpack(packed: PackedGraph) -> RankGraph:
    """The graph of plain lists."""
    place, length, into, weight, steps, recorded = (
        np.array(column, np.int64)
        for column in (
            packed.place, packed.length_ps, packed.into, packed.weight_ps, packed.steps, packed.recorded_ps
        )
    )  # fmt: skip
    contraction = Contraction(length, into, np.array(packed.source, np.int32), weight, packed.lost)
    return RankGraph(place, contraction, steps, np.array(packed.usual, np.bool_), recorded, packed.left_out)


def rank_graph_of(trace: HostTrace) -> RankGraph | None:
    """The contracted graph of a rank, made once per trace; None without steps or collectives."""
    return trace.derived("rank graph", _rank_graph)


def meetings_of(trace: HostTrace, graph: Graph) -> tuple[Meetings, int]:
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


def _rank_graph(trace: HostTrace) -> RankGraph | None:
    graph = graph_of(trace) if len(collective_rows(trace)) else None
    if graph is None or not len(graph.steps):
        return None
    meetings, left_out = meetings_of(trace, graph)
    usual = np.zeros(len(graph.steps), np.bool_)
    usual[usual_steps(trace, graph)] = True
    return RankGraph(meetings.place, contract(graph, meetings), graph.steps, usual, graph.recorded_step_ps, left_out)
