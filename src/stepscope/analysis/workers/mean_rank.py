"""A rank with the mean work of all: the longest ways between meetings, each the mean over the ranks that have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.contraction import NEVER, Between, between
from stepscope.analysis.workers.joint_replay import JointGraph, JointReplay, meeting_lengths
from stepscope.model.arrays import I64, distinct, offsets_of
from stepscope.records import dataclass


def steps_of_mean_rank(graph: JointGraph, now: JointReplay, place: I64) -> I64:
    """How long some steps take if all ranks have the mean of their work: int64 of shape (steps,), ps.

    Args:
        now: the replay of the ranks as they are.
        place: int64 of shape (ranks, steps), where the steps are on each rank.
    """
    bounds = _number_bounds(graph, place)
    count = graph.common + 2 * place.shape[1]
    ranks = [_ways_of_rank(graph, now, at, mine) for at, mine in enumerate(bounds)]
    source, target, weight = _mean_ways(ranks, count)
    done = _replay(source, target, weight, _lengths(graph, count))
    first, last = (graph.common + bounds[0][place[0] + by] for by in (0, 1))
    steps: I64 = done[last] - done[first]
    return steps


@dataclass(frozen=True)
class _RankWays:
    """The ways of one rank between what it has in common with others.

    Attributes:
        number: int64 of shape (kept,), the common number of each.
        ways: between them, by their places; offset_ps: how far the start of the rank is after the common one.
        arrival_ps, done_ps: int64 of shape (kept,), when the rank comes to each, and when that is done, in the replay
            of the ranks as they are.
    """

    number: I64
    ways: Between
    offset_ps: int
    arrival_ps: I64
    done_ps: I64

    def longest(self, source: I64, target: I64) -> I64:
        """The longest ways between places, -1 for the start of the replay.  Where nothing is known to lead from one to
        the other, as a trace need not say who waited, it is the time from the one to the other."""
        known = self.ways.longest(source, target) + np.where(source < 0, self.offset_ps, 0)
        lies_between = self.arrival_ps[target] - np.where(source < 0, 0, self.done_ps[source])
        return np.where(known > NEVER // 2, known, np.maximum(lies_between, 0))


def _ways_of_rank(graph: JointGraph, now: JointReplay, at: int, bounds: I64) -> _RankWays:
    """Args:
    bounds: int64 of shape (bounds,), the common numbers of the rank's bounds, -1 for none.
    """
    contraction, first = graph.ranks[at].graph.contraction, int(graph.first_row[at])
    meetings = len(contraction.length_ps)
    mine = graph.meeting[first : first + meetings]
    common, known = np.flatnonzero(mine < graph.common), np.flatnonzero(bounds >= 0)
    rows = np.concatenate([common, meetings + known])
    number = np.concatenate([mine[common].astype(np.int64), graph.common + bounds[known]])
    offset = int(graph.offset_ps[at])
    return _RankWays(
        number, between(contraction, rows), offset, now.arrival_ps[first + rows], now.done_ps[first + rows]
    )


def _number_bounds(graph: JointGraph, place: I64) -> list[I64]:
    """The common number of each rank's bounds of the steps: int64 of shape (bounds,), -1 for bounds of other steps."""
    starts = np.arange(place.shape[1])
    found = []
    for rank, mine in zip(graph.ranks, place, strict=True):
        number = np.full(len(rank.graph.steps) + 1, -1, np.int64)
        number[mine + 1] = place.shape[1] + starts
        number[mine] = starts  # the end of a step is mostly the start of the next one
        found.append(number)
    return found


def _mean_ways(ranks: Sequence[_RankWays], count: int) -> tuple[I64, I64, I64]:
    """All ways that some rank has, by common numbers, and their mean lengths over the ranks that have both ends.

    Args:
        count: of common numbers.
    """
    pairs = []
    for each in ranks:
        source = np.where(each.ways.source >= 0, each.number[each.ways.source], -1)
        pairs.append((source + 1) * count + each.number[each.ways.target])
    pair = distinct(np.concatenate(pairs))
    source, target = pair // count - 1, pair % count
    total, number = np.zeros(len(pair)), np.zeros(len(pair), np.int64)
    for each in ranks:
        place = np.full(count, -1, np.int64)
        place[each.number] = np.arange(len(each.number))
        here = np.flatnonzero((place[target] >= 0) & ((source < 0) | (place[source] >= 0)))
        total[here] += each.longest(np.where(source[here] < 0, -1, place[source[here]]), place[target[here]])
        number[here] += 1
    return source, target, (total / number).astype(np.int64)


def _lengths(graph: JointGraph, count: int) -> I64:
    """The length of each common meeting, and none of bounds: int64 of shape (meetings,), ps."""
    length = np.zeros(count, np.int64)
    for first, own_ps in zip(graph.first_row.tolist(), meeting_lengths(graph), strict=False):
        meeting = graph.meeting[first : first + len(own_ps)]
        length[meeting[meeting < graph.common]] = own_ps[meeting < graph.common]
    return length


def _replay(source: I64, target: I64, weight: I64, length: I64) -> I64:
    """When each meeting is done: int64 of shape (meetings,), ps."""
    count = len(length)
    order = np.argsort(target, kind="stable")
    source, target, weight = source[order], target[order], weight[order]
    pause = np.full(count, NEVER)
    pause[target[source < 0]] = weight[source < 0]
    edge = np.flatnonzero(source >= 0)
    into = offsets_of(np.bincount(target[edge], minlength=count))
    previous, turn, bad = np.full(count, -1, np.int32), np.empty(count, np.int32), np.zeros(len(edge), np.uint8)
    from_, lag = source[edge].astype(np.int32), weight[edge]
    kernels.replay.sort(previous, into, from_, np.zeros(count, np.uint8), np.empty(count + 1, np.int32), turn, bad)
    lag = np.where(bad > 0, NEVER, lag)
    start, done = np.zeros(count, np.int64), np.zeros(count, np.int64)
    kernels.replay.replay(turn, previous, pause, length, into, from_, lag, np.zeros(len(edge), np.uint8), start, done)
    return done
