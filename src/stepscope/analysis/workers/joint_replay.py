"""Several ranks replayed together: a collective is done so long after the last of its ranks has come to it.

Each rank's graph is contracted to its meetings.  What a collective takes by itself is its shortest length on any rank:
that of the rank which came last and waited for nobody.  Clocks of ranks are not compared: the replays of the single
ranks are laid side by side so that their first common collectives end together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.contraction import Contraction
from stepscope.analysis.steps.session_steps import StepsOfHost, steps_of_host
from stepscope.analysis.workers.collectives import Collectives, collectives_of
from stepscope.analysis.workers.matching import Matched, StepKey, match_collectives, match_steps
from stepscope.analysis.workers.rank_graphs import PackedGraph, RankGraph, packed_graph_of, unpack
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, offsets_of
from stepscope.records import dataclass
from stepscope.vocabulary.collectives import PIPELINE_OPERATION

_NEVER = np.iinfo(np.int64).min
_FIRST = 16  # common collectives of two ranks that are laid side by side


@dataclass(frozen=True)
class RankModel:
    """What a joint replay needs of a rank, as it lies in the part of a report."""

    steps: StepsOfHost
    collectives: Collectives
    graph: PackedGraph

    @property
    def name(self) -> str:
        """The rank's host."""
        return self.steps.host


def rank_of(trace: HostTrace) -> RankModel | None:
    """What a joint replay needs of a host; None where it has no steps or meets nobody."""
    graph = packed_graph_of(trace)
    return RankModel(steps_of_host(trace), collectives_of(trace), graph) if graph is not None else None


@dataclass(frozen=True)
class Member:
    """A rank that is replayed with others."""

    name: str
    collectives: Collectives
    graph: RankGraph


@dataclass(frozen=True)
class JointGraph:
    """The meetings of ranks, matched.

    Attributes:
        ranks: those that are replayed, in the order of the session.
        keys: of each rank the keys of its steps, equal for the same step on other ranks.
        meeting: int32 of shape (rows,), the common meeting of each rank's own ones and bounds, rank after rank.
        first_row: int64 of shape (ranks + 1,), where each rank's rows are: its meetings, then its bounds.
        common: how many meetings several ranks have; uneven: collectives that could not be matched.
        offset_ps: int64 of shape (ranks,), how far the start of each rank's replay is after that of the common one.
    """

    ranks: tuple[Member, ...]
    keys: list[list[StepKey]]
    meeting: I32
    first_row: I64
    common: int
    uneven: int
    offset_ps: I64

    @property
    def meetings(self) -> int:
        """How many meetings there are, those of one rank and bounds included."""
        return int(self.meeting.max()) + 1

    def keys_of_steps(self) -> list[list[StepKey]]:
        """The keys of each rank's replayed steps."""
        return [
            [keys[row] for row in rank.graph.steps.tolist()]
            if keys
            else [(0, row) for row in rank.graph.steps.tolist()]
            for rank, keys in zip(self.ranks, self.keys, strict=True)
        ]

    def separate(self, meetings: I32) -> JointGraph:
        """The same with each rank alone in some of the meetings."""
        alone = np.where(np.isin(self.meeting, meetings), -1, self.meeting).astype(np.int64)
        meeting, common = _renumber(alone)
        return replace(self, meeting=meeting, common=common)


@dataclass(frozen=True)
class JointReplay:
    """The times of a joint replay, by the rows of a JointGraph.

    Attributes:
        arrival_ps: int64 of shape (rows,), when each rank comes to its meetings and bounds.
        done_ps: int64 of shape (rows,), when these are done.
        step_ps: of each rank how long its steps take: int64 of shape (steps,).
    """

    arrival_ps: I64
    done_ps: I64
    step_ps: tuple[I64, ...]


def join_ranks(ranks: Sequence[RankModel]) -> JointGraph | None:
    """Matches the meetings of ranks; None where no two ranks have one in common."""
    hosts, collectives = [rank.steps for rank in ranks], [rank.collectives for rank in ranks]
    keys = match_steps(hosts)
    matched, uneven = match_collectives(hosts, collectives, keys)
    members = tuple(Member(rank.name, rank.collectives, unpack(rank.graph)) for rank in ranks)
    first = offsets_of([len(rank.graph.contraction.into) - 1 for rank in members])
    meeting, common = _number_meetings(members, [rows for _, rows in matched], first)
    none = np.zeros(len(ranks), np.int64)
    graph = JointGraph(members, keys, meeting, first, common, uneven, none)
    graph, crossed = _separate_circles(graph)
    if not graph.common:
        return None
    return replace(graph, uneven=uneven + crossed, offset_ps=_lay_side_by_side(graph))


def replay_together(
    graph: JointGraph,
    contractions: Sequence[Contraction] | None = None,
    without: int | None = None,
) -> JointReplay:
    """Replays all ranks.

    Args:
        contractions: of each rank, instead of its own, such as those after a change.
        without: a rank that no other one waits for.
    """
    ways = _join_ways(graph, contractions or [rank.graph.contraction for rank in graph.ranks])
    length = _shortest(graph, ways.length_ps)
    row = np.argsort(graph.meeting, kind="stable").astype(np.int32)
    counts = np.ones(len(row), np.uint8)
    if without is not None:
        counts[graph.first_row[without] : graph.first_row[without + 1]] = 0
    arrival, done = np.empty(len(row), np.int64), np.empty(graph.meetings, np.int64)
    kernels.ranks.meet(
        _sort_meetings(graph, ways)[0], offsets_of(np.bincount(graph.meeting)), row, counts, ways.into, ways.source,
        ways.weight_ps, length, arrival, done,
    )  # fmt: skip
    done = done[graph.meeting]
    step_ps = tuple(
        np.diff(done[last - len(rank.graph.steps) - 1 : last])
        for rank, last in zip(graph.ranks, graph.first_row[1:].tolist(), strict=True)
    )
    return JointReplay(arrival, done, step_ps)


def meeting_lengths(graph: JointGraph) -> list[I64]:
    """How long each meeting of each rank takes by itself: int64 of shape (meetings,), ps."""
    recorded = np.concatenate([_lengths(rank.graph.contraction) for rank in graph.ranks])
    shortest = _shortest(graph, recorded)[graph.meeting]
    return [
        shortest[first : first + len(rank.graph.contraction.length_ps)]
        for rank, first in zip(graph.ranks, graph.first_row.tolist(), strict=False)
    ]


def joint_error_percent(graph: JointGraph, replayed: JointReplay) -> list[float | None]:
    """How far each rank's median step in a joint replay is from the recorded one; None without usual steps."""
    found: list[float | None] = []
    for rank, steps in zip(graph.ranks, replayed.step_ps, strict=True):
        recorded = rank.graph.recorded_ps[rank.graph.usual]
        median = float(np.median(recorded)) if len(recorded) else 0.0
        off = abs(float(np.median(steps[rank.graph.usual])) - median) if median > 0 else 0.0
        found.append(100.0 * off / median if median > 0 else None)
    return found


def waits_in_steps(graph: JointGraph, replayed: JointReplay) -> list[I64]:
    """How long each rank waits for others in each of its steps: int64 of shape (steps,) of each rank, ps."""
    found = []
    lengths = zip(graph.ranks, graph.first_row.tolist(), meeting_lengths(graph), strict=False)
    for rank, first, length in lengths:
        rows = slice(first, first + len(length))
        waits = replayed.done_ps[rows] - length - replayed.arrival_ps[rows]
        last = max(max(rank.collectives.step, default=-1), int(rank.graph.steps.max())) + 2
        place = np.full(last, -1, np.int64)  # the last one for no step
        place[rank.graph.steps] = np.arange(len(rank.graph.steps))
        step = place[np.array(rank.collectives.step, np.int64)[rank.graph.place]]
        summed = np.bincount(step[step >= 0], weights=waits[step >= 0], minlength=len(rank.graph.steps))
        found.append(summed.astype(np.int64))
    return found


def separate_removed(graph: JointGraph, contractions: Sequence[Contraction]) -> JointGraph:
    """The graph without the meetings of which some contractions have left nothing: nobody waits in them any more."""
    before, after = (
        np.concatenate([_lengths(each) for each in found])
        for found in ([rank.graph.contraction for rank in graph.ranks], contractions)
    )
    gone = (before > 0) & (after <= 0) & (graph.meeting < graph.common)
    return graph.separate(graph.meeting[gone]) if gone.any() else graph


@dataclass(frozen=True)
class _Ways:
    """The ways of all ranks, by the rows of a JointGraph; sources are common meetings."""

    into: I64
    source: I32
    weight_ps: I64
    length_ps: I64


def _shortest(graph: JointGraph, length_ps: I64) -> I64:
    """The shortest of the lengths of each meeting's rows: that of the rank which came last and waited for nobody."""
    shortest = np.full(graph.meetings, np.iinfo(np.int64).max)
    np.minimum.at(shortest, graph.meeting, length_ps)
    return shortest


def _lengths(contraction: Contraction) -> I64:
    """The length of each row of a contraction; bounds have none."""
    bounds = len(contraction.into) - 1 - len(contraction.length_ps)
    return np.append(contraction.length_ps, np.zeros(bounds, np.int64))


def _join_ways(graph: JointGraph, contractions: Sequence[Contraction]) -> _Ways:
    source, weight = [], []
    for first, offset, each in zip(graph.first_row.tolist(), graph.offset_ps.tolist(), contractions, strict=False):
        known = each.source >= 0
        source.append(np.where(known, graph.meeting[first + each.source], -1).astype(np.int32))
        weight.append(each.weight_ps + np.where(known, 0, offset))
    return _Ways(
        offsets_of(np.concatenate([np.diff(each.into) for each in contractions])),
        np.concatenate(source),
        np.concatenate(weight),
        np.concatenate([_lengths(each) for each in contractions]),
    )


def _sort_meetings(graph: JointGraph, ways: _Ways) -> tuple[I32, I32]:
    """Every meeting after all that it waits for, and those for which there is no such order."""
    target = np.repeat(graph.meeting, np.diff(ways.into))
    edge = np.flatnonzero(ways.source >= 0)
    edge = edge[np.argsort(target[edge], kind="stable")]
    into = offsets_of(np.bincount(target[edge], minlength=graph.meetings))
    order, bad = np.empty(graph.meetings, np.int32), np.zeros(len(edge), np.uint8)
    kernels.replay.sort(
        np.full(graph.meetings, -1, np.int32), into, ways.source[edge], np.zeros(graph.meetings, np.uint8),
        np.empty(graph.meetings + 1, np.int32), order, bad,
    )  # fmt: skip
    return order, target[edge[bad > 0]]


def _separate_circles(graph: JointGraph) -> tuple[JointGraph, int]:
    """The graph without common meetings to which ranks come in another order, and how many these are."""
    ways = [rank.graph.contraction for rank in graph.ranks]
    before = graph.common
    while len(crossed := _sort_meetings(graph, _join_ways(graph, ways))[1]):
        graph = graph.separate(crossed)
    return graph, before - graph.common


def _number_meetings(ranks: Sequence[Member], matched: Sequence[Matched], first: I64) -> tuple[I32, int]:
    """The meeting of each row, those of several ranks first, and how many these are."""
    meeting = np.full(int(first[-1]), -1, np.int64)
    rows = [_rows_of_collectives(rank, begin) for rank, begin in zip(ranks, first.tolist(), strict=False)]
    for number, same in enumerate(matched):
        here = [rows[rank][place] for rank, place in same.items()]
        meeting[[row for row in here if row >= 0]] = number
    return _renumber(meeting)


def _renumber(meeting: I64) -> tuple[I32, int]:
    """Meetings numbered from 0, those of one row, or with a number below 0, last."""
    count = np.bincount(meeting[meeting >= 0], minlength=1)
    common = (meeting >= 0) & (count[np.maximum(meeting, 0)] > 1)
    number = np.cumsum(count > 1) - 1
    found = np.where(common, number[np.maximum(meeting, 0)], -1)
    several = int((count > 1).sum())
    found[~common] = several + np.arange(int((~common).sum()))
    return found.astype(np.int32), several


def _rows_of_collectives(rank: Member, first: int) -> list[int]:
    """The row of each collective of a rank; -1 for those that are not replayed, and for what one rank sends to another,
    which do not wait for each other in the same way."""
    row = np.full(len(rank.collectives.name), -1, np.int64)
    row[rank.graph.place] = first + np.arange(len(rank.graph.place))
    sends = np.array([name == PIPELINE_OPERATION for name in rank.collectives.names], np.bool_)
    row[sends[rank.collectives.name]] = -1
    found: list[int] = row.tolist()
    return found


def _lay_side_by_side(graph: JointGraph) -> I64:
    """The offset of each rank with which the first common meetings end together, as each rank replays alone."""
    done = replay_together(graph.separate(graph.meeting)).done_ps
    ends = np.full((len(graph.ranks), graph.common), _NEVER)
    for at, first in enumerate(graph.first_row[:-1].tolist()):
        rows = np.arange(first, graph.first_row[at + 1])
        rows = rows[graph.meeting[rows] < graph.common]
        ends[at, graph.meeting[rows]] = done[rows]
    return _offsets(ends)


def _offsets(ends: I64) -> I64:
    """How far each rank is behind another one that is reached earlier, over the ranks that it meets.

    Args:
        ends: int64 of shape (ranks, meetings), when each ends on each rank, as the rank counts; _NEVER for none.
    """
    offset, rest = np.zeros(len(ends), np.int64), list(range(len(ends)))
    while rest:
        reached = [rest.pop(0)]
        for here in reached:  # grows
            for other in [*rest]:
                shared = np.flatnonzero((ends[here] != _NEVER) & (ends[other] != _NEVER))
                if len(shared):
                    early = shared[np.argsort(ends[here, shared], kind="stable")[:_FIRST]]
                    offset[other] = offset[here] + int(np.median(ends[here, early] - ends[other, early]))
                    rest.remove(other)
                    reached.append(other)
    return offset
