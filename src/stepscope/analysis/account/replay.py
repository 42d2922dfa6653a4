"""The replay of a graph: when everything would start and end, and how far that is from what was recorded."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.graph import Graph
from stepscope.model.arrays import I64, Mask, median
from stepscope.records import dataclass


@dataclass(frozen=True)
class Replay:
    """The times of a replay in ps.

    Attributes:
        start_ps, end_ps: int64 of shape (nodes,).
        step_ps: int64 of shape (steps,), how long each step takes.
    """

    start_ps: I64
    end_ps: I64
    step_ps: I64


def replay(
    graph: Graph,
    own_ps: I64 | None = None,
    cut: Mask | None = None,
    lag_ps: I64 | None = None,
    pause_ps: I64 | None = None,
) -> Replay:
    """Replays a graph.

    Args:
        own_ps, lag_ps, pause_ps: lengths of nodes, edges and pauses instead of the graph's.
        cut: bool of shape (edges,), edges that nothing waits for any more.
    """
    edges, count = graph.edges, len(graph)
    lag = edges.lag_ps if lag_ps is None else lag_ps
    lag = lag if cut is None else np.where(cut, np.iinfo(np.int64).min // 4, lag)
    start, end = np.zeros(count, np.int64), np.zeros(count, np.int64)
    kernels.replay.replay(
        graph.order, graph.previous, graph.pause_ps if pause_ps is None else pause_ps,
        graph.own_ps if own_ps is None else own_ps, graph.into, edges.source, lag, edges.after_start.view(np.uint8),
        start, end,
    )  # fmt: skip
    return Replay(start, end, np.diff(end[graph.bounds]))


def replay_error_percent(graph: Graph, replayed: Replay, steps: I64) -> float | None:
    """How far the replayed median step is from the recorded one, in percent of that, over some steps; None without."""
    recorded = graph.recorded_step_ps[steps]
    if not len(recorded) or median(recorded) <= 0:
        return None
    usual = median(recorded)
    return abs(median(replayed.step_ps[steps]) - usual) / usual * 100.0
