"""The way back through a step: stretches of time, each with the one thing that the step waited for then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.account.stretches import bounds_of_stretches
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.grouping import forest
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, U8, Mask, count_below
from stepscope.records import dataclass

OWN, PAUSE = -1, -2  # in place of an edge: a node's own time, and the pause after the node before it on its line


@dataclass(frozen=True)
class Pieces:
    """Stretches of a step's time as columns; together they are the step, and no two overlap.

    Attributes:
        start_ps, end_ps: int64 of shape (n,).
        node: int32, the node that the time is of, or before whose start it is.
        edge: int32, OWN, PAUSE, or the edge that the node waited for.
        event: int64, the innermost event there; -1 where nothing is recorded.
    """

    start_ps: I64
    end_ps: I64
    node: I32
    edge: I32
    event: I64

    def __len__(self) -> int:
        return len(self.start_ps)

    def take(self, rows: I64 | Mask | slice) -> Pieces:
        """Some of the pieces."""
        return Pieces(*(column[rows] for column in vars(self).values()))


@dataclass(frozen=True)
class Way:
    """The way back through steps, from the end of each to its start: node, edge and bounds of each stretch, as in
    Pieces."""

    start_ps: I64
    end_ps: I64
    node: I32
    edge: I32


def way_through(graph: Graph, steps: I64, start_ps: I64, end_ps: I64) -> Way:
    """The way through some steps, one after the other, by the times of a replay, or by those recorded.

    Args:
        steps: int64 of shape (n,), steps of the graph.
        start_ps, end_ps: int64 of shape (nodes,).
    """
    found = kernels.replay.walk(
        steps, graph.bounds, graph.previous, graph.into, graph.edges.source, graph.edges.after_start.view(np.uint8),
        start_ps, end_ps,
    )  # fmt: skip
    columns = np.asarray(found).T
    node, edge, (start, end) = columns[0].astype(np.int32), columns[1].astype(np.int32), columns[2:].copy()
    return Way(start, end, node, edge)


def pieces_of_steps(trace: HostTrace, graph: Graph) -> Pieces:
    """The pieces of all steps in order of time, with the own time of threads inside of steps cut wherever the innermost
    event changes; which step each belongs to, its time tells.  Steps may be apart: pieces between them are left out."""
    steps, links, lines, main = steps_of(trace), forest(trace), trace.lines, threads_of(trace).main
    found = kernels.replay.pieces(
        graph.bounds, graph.previous, graph.into, graph.edges.source, graph.edges.after_start.view(np.uint8),
        graph.start_ps, graph.end_ps, graph.line, graph.event, graph.kind, NodeKind.WORK,
        steps.start_ps[graph.steps], steps.until_ps[graph.steps], lines.event_begin, lines.event_end,
        trace.events.start_ps, links.extent_ps, links.parent, main, *bounds_of_stretches(trace),
    )  # fmt: skip
    start, end, node, edge, event = map(np.asarray, found)
    return Pieces(start, end, node.astype(np.int32), edge.astype(np.int32), event)


def places_in_steps(graph: Graph, pieces: Pieces) -> I64:
    """The place of each piece's step among `graph.steps`: int64 of shape (pieces,)."""
    return count_below(graph.end_ps[graph.bounds], pieces.start_ps, with_limit=True) - 1


def clip_to_steps(trace: HostTrace, graph: Graph, pieces: Pieces) -> tuple[I64, Pieces]:
    """The place of each piece's step among `graph.steps`: int64 of shape (pieces,); and the pieces without what is
    outside of their steps, which end before they start if all of it is."""
    steps, place = steps_of(trace), places_in_steps(graph, pieces)
    start = np.maximum(pieces.start_ps, steps.start_ps[graph.steps][place])
    return place, replace(pieces, start_ps=start, end_ps=np.minimum(pieces.end_ps, steps.until_ps[graph.steps][place]))


def kinds_of(trace: HostTrace, events: I64) -> U8:
    """The kinds of some events; of -1 that of an event of no kind."""
    found: U8 = np.where(events >= 0, trace.events.kind[np.maximum(events, 0)], 0).astype(np.uint8)
    return found


def around(trace: HostTrace, events: I64, level: U8, top: int, by_kind: bool = False) -> I64:
    """The event of the highest level around each of some events, itself counted; among equals the nearest.

    Args:
        level: uint8 of shape (all events,), or `by_kind` of event of shape (256,); 0 for those that do not count.
        top: the highest level there is.

    Returns:
        int64 of shape (n,), -1 where none counts.
    """
    kind, level = (trace.events.kind, level) if by_kind else (level, np.arange(256).astype(np.uint8))
    found, parent = np.empty(len(events), np.int64), forest(trace).parent
    # In place of causes: an event without a parent has no parent as its cause, so the way ends there.
    kernels.ops.climb(events, parent, parent, kind, level, top, found)
    return found
