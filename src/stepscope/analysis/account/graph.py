"""The model as columns: nodes are lengths of work on lines, edges are what they wait for.

A line is a thread of the host or a queue of a device.  The nodes of a line run one after the other.  A node starts as
soon as the node before it on its line has ended, plus a pause, and everything that an edge leads from is done, plus the
edge's lag; it then takes its own length.  Waiting is no node: it is what the replay computes.  The bounds of steps are
nodes without length on a line of their own.
"""

from __future__ import annotations

import numpy as np

from stepscope.model import Kind
from stepscope.model.arrays import I32, I64, U8, Mask
from stepscope.records import dataclass

NO_LINE = -1  # of work that no recorded thread or queue runs


class NodeKind(Kind):
    """What a node is."""

    SEGMENT = 0  # a thread's own work between two points of contact
    CALL = 1  # a call that starts device work, or the own part of one that waits
    WORK = 2  # work of a device
    BOUND = 3  # where a step ends and the next one starts
    BATCH = 4  # work of worker processes, which are not in the trace, for a batch


class EdgeKind(Kind):
    """Why a node waits for another."""

    LAUNCH = 0  # a call starts device work
    QUEUE = 1  # work waits for work on another queue
    RETURN = 2  # a thread waits until a device is done
    HANDOVER = 3  # a thread starts on work that another one handed to it
    JOIN = 4  # a thread goes on once others are done
    BOUND = 5  # a step ends with what is done last


@dataclass(frozen=True)
class Edges:
    """Edges as columns, not sorted.

    Attributes:
        source, target: int32 of shape (edges,), nodes.
        lag_ps: int64 of shape (edges,), the least time from the source's end to the target's start; may be negative.
        kind: uint8 of shape (edges,), see EdgeKind.
        after_start: bool of shape (edges,), the lag counts from the source's start instead.
        inferred: bool of shape (edges,), the trace does not state the edge; times and order tell it.
    """

    source: I32
    target: I32
    lag_ps: I64
    kind: U8
    after_start: Mask
    inferred: Mask

    @staticmethod
    def connect(
        source: I64, target: I64, lag_ps: I64 | int, kind: EdgeKind, inferred: Mask | bool, after_start: bool = False
    ) -> Edges:
        """Edges of one kind; those with an end outside of the graph (-1) are left out."""
        kept = np.flatnonzero((source >= 0) & (target >= 0) & (source != target))
        return Edges(
            source[kept].astype(np.int32),
            target[kept].astype(np.int32),
            np.broadcast_to(np.asarray(lag_ps, np.int64), source.shape)[kept],
            np.full(len(kept), kind, np.uint8),
            np.full(len(kept), after_start),
            np.broadcast_to(np.asarray(inferred, np.bool_), source.shape)[kept],
        )

    @staticmethod
    def join(parts: list[Edges]) -> Edges:
        """All edges of several tables."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Edges(*(np.concatenate(column) for column in columns))

    def take(self, rows: I64 | Mask) -> Edges:
        """Some of the edges."""
        return Edges(*(column[rows] for column in vars(self).values()))

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class Graph:
    """The model of one host's steps.

    Attributes:
        line: int32 of shape (nodes,), row of the trace's lines; NO_LINE for bounds and batches.
        step: int32 of shape (nodes,), the step that the node is for, -1 for none.
        event: int32 of shape (nodes,), the event that the node is; -1 for a segment, which may hold many.
        kind: uint8 of shape (nodes,), see NodeKind.
        start_ps, end_ps: int64 of shape (nodes,), as recorded; no replay reads them.
        own_ps: int64 of shape (nodes,), the length.
        previous: int32 of shape (nodes,), the node before it on its line, or -1.
        pause_ps: int64 of shape (nodes,), the least pause after that one; of a line's first node from the start.
        unexplained_ps: int64 of shape (nodes,), the part of the recorded wait before it that has no known reason.
        into: int64 of shape (nodes + 1,), where the edges into each node are.
        edges: sorted by target.
        order: int32 of shape (nodes,), every node after all that it waits for.
        bounds: int32 of shape (steps + 1,), the nodes that bound the steps.
        steps: int64 of shape (steps,), rows of the host's steps.
        lost_edges: edges that contradict the recorded times and were left out.
        zero_ps: the time of the trace that is 0 in the replay.
    """

    line: I32
    step: I32
    event: I32
    kind: U8
    start_ps: I64
    end_ps: I64
    own_ps: I64
    previous: I32
    pause_ps: I64
    unexplained_ps: I64
    into: I64
    edges: Edges
    order: I32
    bounds: I32
    steps: I64
    lost_edges: int
    zero_ps: int

    def __len__(self) -> int:
        return len(self.line)

    @property
    def recorded_step_ps(self) -> I64:
        """How long each step took: int64 of shape (steps,)."""
        return np.diff(self.end_ps[self.bounds])
