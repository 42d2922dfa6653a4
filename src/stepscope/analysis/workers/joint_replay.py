"""All ranks replayed together: a collective is done so long after the last of its ranks has come to it, and so are a
send and its receive.

Each rank's graph is contracted to its meetings.  What a collective takes by itself is its shortest length on any rank:
that of the rank which came last and waited for nobody.  A kernel that sends and receives at once waits for all of its
partners, with each of which its transfer takes a time of its own, but these do not wait for each other.  Clocks of
ranks are not compared: the replays of the single ranks are laid side by side so that their first common meetings end
together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.contraction import Contraction
from stepscope.analysis.steps.session_steps import StepsOfHost, steps_of_host
from stepscope.analysis.workers.collectives import Collectives, collectives_of, rank_title
from stepscope.analysis.workers.matching import Matched, Pair, StepKey, match_collectives, match_steps, match_transfers
from stepscope.analysis.workers.rank_graphs import CONSIDERABLE, PackedGraph, RankGraph, packed_graph_of, unpack
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I32, I64, distinct, offsets_of
from stepscope.records import dataclass

_SHORTER, _ALMOST_ALL = 25, 75  # percentiles: the quarters of noise around a median
_TOGETHER = 0.1  # of what lengths differ by: ends of independent work would differ by about as much as the lengths do
_FIRST = 16  # common collectives of two ranks that are laid side by side: their median is a quarter as uncertain as one


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

    @property
    def title(self) -> str:
        """What sentences call it."""
        return rank_title(self.collectives.rank, self.name)


def rank_of(trace: HostTrace, with_work: bool = True) -> RankModel | None:
    """What a joint replay needs of a host; None where it has no steps or meets nobody.

    Args:
        with_work: also what work it does between its meetings.
    """
    graph = packed_graph_of(trace, with_work)
    return RankModel(steps_of_host(trace), collectives_of(trace), graph) if graph is not None else None


@dataclass(frozen=True)
class Member:
    """A rank that is replayed with others."""

    name: str
    collectives: Collectives
    graph: RankGraph

    @property
    def title(self) -> str:
        """What sentences call it."""
        return rank_title(self.collectives.rank, self.name)


@dataclass(frozen=True)
class JointGraph:
    """The meetings of ranks, matched.

    Attributes:
        ranks: those that are replayed, in the order of the session.
        keys: of each rank the keys of its steps, equal for the same step on other ranks.
        meeting: int32 of shape (rows,), the meeting of each rank's own ones, works and bounds, rank after rank.
        first_row: int64 of shape (ranks + 1,), where each rank's rows are: its meetings, its works, then its bounds.
        also_row, also_for: int64 of shape (n,), rows for whose meetings others wait as well: the row that comes, and a
            row of the meeting that waits for it; also_share: float64 of shape (n,), how long the transfer
            between them takes, of the longest transfer of the row that waits.
        common: how many meetings several ranks have; uneven: collectives, sends and receives that could not be matched.
        crossed: of these the ones to which ranks come in another order.
        unknown: sends and receives that do not say with whom.
        share: float64 of shape (rows,), what of the length of each row can be its own; the rest waits for partners.
        pairs: sends with their receives.
        offset_ps: int64 of shape (ranks,), how far the start of each rank's replay is after that of the common one.
    """

    ranks: tuple[Member, ...]
    keys: list[list[StepKey]]
    meeting: I32
    first_row: I64
    also_row: I64
    also_for: I64
    also_share: F64
    common: int
    uneven: int
    crossed: int
    unknown: int
    share: F64
    pairs: list[Pair]
    offset_ps: I64

    @property
    def meetings(self) -> int:
        """How many meetings there are, those of one rank and bounds included."""
        return int(self.meeting.max()) + 1

    @property
    def met(self) -> int:
        """How many meetings several ranks come to."""
        return self.common + len(distinct(self.also_for))

    def arrivals(self) -> tuple[I64, I64, F64]:
        """Who comes to what: rows and meetings, in order of the meetings, and `also_share`, 1 where a row comes to a
        meeting of its own."""
        row = np.append(np.arange(len(self.meeting)), self.also_row)
        meeting = np.append(self.meeting, self.meeting[self.also_for]).astype(np.int64)
        share = np.append(np.ones(len(self.meeting)), self.also_share)
        order = np.argsort(meeting, kind="stable")
        return row[order], meeting[order], share[order]

    def rank_of_rows(self) -> I64:
        """The place of the rank of each row: int64 of shape (rows,)."""
        return np.repeat(np.arange(len(self.ranks)), np.diff(self.first_row))

    def keys_of_steps(self) -> list[list[StepKey]]:
        """The keys of each rank's replayed steps."""
        return [
            [keys[row] for row in rank.graph.steps.tolist()]
            if keys
            else [(0, row) for row in rank.graph.steps.tolist()]
            for rank, keys in zip(self.ranks, self.keys, strict=True)
        ]

    def separate(self, meetings: I32 | I64) -> JointGraph:
        """The same with each rank alone in some of the meetings."""
        apart = np.isin(self.meeting, meetings)
        meeting, common = _renumber(np.where(apart, -1, self.meeting).astype(np.int64))
        kept = ~(apart[self.also_row] | apart[self.also_for])
        also = {name: getattr(self, name)[kept] for name in ("also_row", "also_for", "also_share")}
        return replace(self, meeting=meeting, common=common, **also)


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
    transfers = match_transfers(collectives, keys)
    members = tuple(Member(rank.name, rank.collectives, unpack(rank.graph)) for rank in ranks)
    first = offsets_of([len(rank.graph.contraction.into) - 1 for rank in members])
    rows = [_rows_of_collectives(rank, begin) for rank, begin in zip(members, first.tolist(), strict=False)]
    number = _number_collectives(rows, [same for _, same in matched], int(first[-1]))
    also = _number_transfers(rows, transfers.pairs, len(matched), number)
    meeting, common = _renumber(number)
    whole, none = np.ones(len(meeting)), np.zeros(len(ranks), np.int64)
    graph = JointGraph(
        members, keys, meeting, first, *also, np.ones(len(also[0])), common, uneven + transfers.uneven, 0,
        transfers.unknown, whole, transfers.pairs, none,
    )  # fmt: skip
    graph, crossed = _separate_circles(graph)
    if not graph.met:
        return None
    graph = replace(graph, uneven=graph.uneven + crossed, crossed=crossed, offset_ps=_lay_side_by_side(graph))
    graph, _ = _separate_circles(_join_hidden_meetings(graph))
    return _split_transfers(graph)


@dataclass(frozen=True)
class Schedule:
    """A joint graph made ready to be replayed again and again with other lengths.

    Attributes:
        ways: of all ranks; order: int32 of shape (meetings,), every meeting after all that it waits for.
        first: int64 of shape (meetings + 1,), where the arrivals at each meeting are.
        row: int32 of shape (arrivals,), the rows that come, in the order of the meetings.
        of, share: int64 and float64 of shape (arrivals,), see `JointGraph.arrivals`.
    """

    graph: JointGraph
    ways: _Ways
    order: I32
    first: I64
    row: I32
    of: I64
    share: F64

    def replay(self, length_ps: I64 | None = None) -> JointReplay:
        """Replays all ranks.

        Args:
            length_ps: int64 of shape (rows,), how long each rank's meetings and works take by themselves; None for as
                long as recorded.
        """
        graph, ways = self.graph, self.ways
        length = self._shortest_meeting(self.own_ps if length_ps is None else length_ps)
        arrival, done = np.empty(len(graph.meeting), np.int64), np.empty(graph.meetings, np.int64)
        kernels.ranks.meet(
            self.order, self.first, self.row, ways.into, ways.source, ways.weight_ps, length, arrival, done
        )
        done = done[graph.meeting]
        step_ps = tuple(
            np.diff(done[last - len(rank.graph.steps) - 1 : last])
            for rank, last in zip(graph.ranks, graph.first_row[1:].tolist(), strict=True)
        )
        return JointReplay(arrival, done, step_ps)

    @cached_property
    def own_ps(self) -> I64:
        """How long each row takes on its rank, without what it certainly waits: int64 of shape (rows,)."""
        own: I64 = (self.ways.length_ps * self.graph.share).astype(np.int64)
        return own

    def shortest(self, length_ps: I64) -> I64:
        """The shortest length of each meeting on any rank, which came last and waited for nobody: int64 of shape
        (meetings,)."""
        found = np.full(self.graph.meetings, np.iinfo(np.int64).max)
        np.minimum.at(found, self.graph.meeting, length_ps)
        return found

    def _shortest_meeting(self, length_ps: I64) -> I64:
        """How long after each arrival a meeting is done at the earliest: int64 of shape (arrivals,), ps."""
        now, usual = (self.shortest(each)[self.of] for each in (length_ps, self.own_ps))
        transfer = np.minimum((usual * self.share).astype(np.int64), now)
        found: I64 = np.where((self.share == 1.0) | (now > usual), now, transfer)
        return found


def schedule_of(graph: JointGraph, contractions: Sequence[Contraction] | None = None) -> Schedule:
    """Makes a graph ready to be replayed.

    Args:
        contractions: of each rank, instead of its own, such as those after a change.
    """
    ways = _join_ways(graph, contractions or [rank.graph.contraction for rank in graph.ranks])
    row, of, share = graph.arrivals()
    first = offsets_of(np.bincount(of, minlength=graph.meetings))
    return Schedule(graph, ways, _sort_meetings(graph, ways)[0], first, row.astype(np.int32), of, share)


def replay_together(graph: JointGraph, contractions: Sequence[Contraction] | None = None) -> JointReplay:
    """Replays all ranks once; see `schedule_of` and `Schedule.replay`."""
    return schedule_of(graph, contractions).replay()


def meeting_lengths(graph: JointGraph) -> list[I64]:
    """How long each meeting and work of each rank takes by itself: int64 of shape (n,), ps."""
    schedule = schedule_of(graph)
    shortest = schedule.shortest(schedule.own_ps)[graph.meeting]
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
    """Every meeting after all that it waits for, and common ones for which there is no such order."""
    count = np.diff(ways.into)
    row, of, _ = graph.arrivals()
    target = np.repeat(of, count[row])
    edge = np.repeat(ways.into[row], count[row]) + _count_up(count[row])
    known = ways.source[edge] >= 0
    target, source = target[known], ways.source[edge[known]]
    into = offsets_of(np.bincount(target, minlength=graph.meetings))
    order, bad = np.empty(graph.meetings, np.int32), np.zeros(len(source), np.uint8)
    kernels.replay.sort(
        np.full(graph.meetings, -1, np.int32), into, source, np.zeros(graph.meetings, np.uint8),
        np.empty(graph.meetings + 1, np.int32), order, bad,
    )  # fmt: skip
    return order, _next_common(graph, source, target, target[bad > 0]).astype(np.int32)


def _next_common(graph: JointGraph, source: I32, target: I64, crossed: I64) -> I64:
    """The first meetings of several ranks from some on: what closes a circle may lie between two of them."""
    shared = np.zeros(graph.meetings, np.bool_)
    shared[: graph.common] = True
    shared[graph.meeting[graph.also_row]] = shared[graph.meeting[graph.also_for]] = True
    found, rest = crossed[shared[crossed]], crossed[~shared[crossed]]
    for _ in range(graph.meetings if len(rest) and not len(found) else 0):
        rest = distinct(target[np.isin(source, rest)])
        if shared[rest].any() or not len(rest):
            return rest[shared[rest]]
    return found


def _count_up(counts: I64) -> I64:
    """0, 1, ... for each of some counts, one after the other."""
    return np.arange(int(counts.sum())) - np.repeat(offsets_of(counts)[:-1], counts)


def _separate_circles(graph: JointGraph) -> tuple[JointGraph, int]:
    """The graph without common meetings to which ranks come in another order, and how many these are."""
    ways = [rank.graph.contraction for rank in graph.ranks]
    before = graph.met
    while len(crossed := _sort_meetings(graph, _join_ways(graph, ways))[1]):
        graph = graph.separate(crossed)
    return graph, before - graph.met


def _split_transfers(graph: JointGraph) -> JointGraph:
    """The graph with the own times of transfers of kernels that have several partners.

    The transfer between two kernels begins when the second of them comes and is through when the first of them ends,
    by times that collectives of both ranks, which end together, lay side by side.  A kernel that ends after a further
    partner has come waits for that one, so of the transfers between two ranks those count after which nobody comes; and
    the shorter quarter of these, as even they may hold a wait.
    """
    if not len(graph.also_row):
        return graph
    length = np.concatenate([_lengths(rank.graph.contraction) for rank in graph.ranks])
    rank, one, other = graph.rank_of_rows(), graph.also_row, graph.also_for
    pair = np.minimum(rank[one], rank[other]) * len(graph.ranks) + np.maximum(rank[one], rank[other])
    came, done = _recorded(graph)
    offset, part, apart_ps = _align(graph, done, False)
    came, done = came + offset[rank], done + offset[rank]
    begin, last = np.maximum(came[one], came[other]), came.copy()
    np.maximum.at(last, other, came[one])
    transfer = np.minimum(length[one], length[other])
    known = part[rank[one]] == part[rank[other]]
    both_ps = np.minimum(done[one], done[other]) - begin + apart_ps
    transfer = np.where(known, np.clip(both_ps, 0, transfer), transfer)
    counts = ~known | (begin + apart_ps >= np.maximum(last[one], last[other]))
    for each in distinct(pair).tolist():
        here = pair == each
        usual = transfer[here & counts] if (here & counts).any() else transfer[here]
        transfer[here] = np.minimum(transfer[here], np.percentile(usual, _SHORTER, method="lower"))
    longest = np.zeros(len(length), np.int64)
    np.maximum.at(longest, other, transfer)
    waits = distinct(other)
    share, of_longest = np.ones(len(length)), np.ones(len(transfer))
    np.divide(longest, length, out=share, where=(longest > 0) & np.isin(np.arange(len(length)), waits))
    np.divide(transfer, longest[other], out=of_longest, where=longest[other] > 0)
    return replace(graph, share=share, also_share=of_longest)


def _recorded(graph: JointGraph) -> tuple[I64, I64]:
    """When each row was recorded to start and to end: int64 of shape (rows,), 0 for what is no collective."""
    start, end = np.zeros(len(graph.meeting), np.int64), np.zeros(len(graph.meeting), np.int64)
    for rank, first in zip(graph.ranks, graph.first_row.tolist(), strict=False):
        rows, place = slice(first, first + len(rank.graph.place)), rank.graph.place
        start[rows] = np.array(rank.collectives.start_ps, np.int64)[place]
        end[rows] = start[rows] + np.array(rank.collectives.duration_ps, np.int64)[place]
    return start, end


def _number_collectives(rows: Sequence[Sequence[int]], matched: Sequence[Matched], count: int) -> I64:
    """The meeting of each row: int64 of shape (count,), -1 for rows of one rank alone."""
    meeting = np.full(count, -1, np.int64)
    for number, same in enumerate(matched):
        here = [rows[rank][place] for rank, place in same.items()]
        meeting[[row for row in here if row >= 0]] = number
    return meeting


def _number_transfers(
    rows: Sequence[Sequence[int]], pairs: Sequence[Pair], number: int, meeting: I64
) -> tuple[I64, I64]:
    """Gives kernels that send and receive the meeting of their partner, if both have no other one; else they stay
    alone, and wait for each of their partners: the rows that come, and those that wait for them.

    Args:
        number: of the first meeting that is free; meeting: see `_number_collectives`, receives the numbers.
    """
    ends = np.array([(rows[a][at], rows[b][to]) for (a, at), (b, to) in pairs], np.int64).reshape(-1, 2)
    ends = np.unique(np.sort(ends[(ends >= 0).all(axis=1)], axis=1), axis=0)
    partners = np.bincount(ends.ravel(), minlength=len(meeting))
    alone = (partners[ends] == 1).all(axis=1)
    meeting[ends[alone]] = number + np.arange(int(alone.sum()))[:, None]
    left, right = ends[~alone].T
    return np.concatenate([left, right]), np.concatenate([right, left])


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
    """The row of each collective of a rank; -1 for those that are not replayed."""
    row = np.full(len(rank.collectives.name), -1, np.int64)
    row[rank.graph.place] = first + np.arange(len(rank.graph.place))
    found: list[int] = row.tolist()
    return found


def _lay_side_by_side(graph: JointGraph) -> I64:
    """The offset of each rank with which its first meetings with others end together, as each rank replays alone."""
    return _align(graph, replay_together(graph.separate(graph.meeting)).done_ps, True)[0]


def _align(graph: JointGraph, end_ps: I64, also_several: bool) -> tuple[I64, I64, int]:
    """By how much later meetings would have to end on each rank to end together, a number for each set of ranks that
    they connect, both int64 of shape (ranks,), and how far ends are apart in spite of it, in ps.

    Args:
        end_ps: of each row, 0 for what does not count.
        also_several: kernels with several partners count between ranks that nothing else connects, though they end with
            the last of their partners.
    """
    rank, (row, of, _), ranks = graph.rank_of_rows(), graph.arrivals(), len(graph.ranks)
    one, other = row[:-1], row[1:]  # of the arrivals at a meeting each with the next one: enough to connect all
    counts = (of[:-1] == of[1:]) & (end_ps[one] > 0) & (end_ps[other] > 0) & (rank[one] != rank[other])
    several = of[1:] >= graph.common
    pairs = np.flatnonzero(counts & (also_several | ~several))
    one, other, several = one[pairs], other[pairs], several[pairs]
    low, high = (choose(rank[one], rank[other]).astype(np.int64) for choose in (np.minimum, np.maximum))
    behind = (end_ps[one] - end_ps[other]) * np.where(rank[one] < rank[other], 1, -1)
    key = (several * ranks + low) * ranks + high
    order = np.lexsort((end_ps[one], key))
    offset, part = np.zeros(ranks, np.int64), np.arange(ranks)
    for each, begin, count in zip(*np.unique(key[order], return_index=True, return_counts=True), strict=True):
        a, b = divmod(int(each) % (ranks * ranks), ranks)
        if part[a] != part[b]:
            by = int(np.median(behind[order[begin : begin + min(count, _FIRST)]]))
            joins = part == part[b]
            offset[joins] += offset[a] + by - offset[b]
            part[joins] = part[a]
    left = np.abs(behind + offset[low] - offset[high])
    return offset - offset[0], part, int(np.percentile(left, _ALMOST_ALL)) if len(left) else 0


def _join_hidden_meetings(graph: JointGraph) -> JointGraph:
    """The graph with the same meeting for works in which ranks wait for each other though the trace does not say so.

    In each step such work ends on all ranks together, however long it takes on each: an all-reduce inside of another
    kernel, or one that the vocabulary does not know.
    """
    done = replay_together(graph.separate(graph.meeting)).done_ps
    ends: dict[tuple[str, int, int], dict[StepKey, list[tuple[int, int, int]]]] = defaultdict(lambda: defaultdict(list))
    for rank, first, keys in zip(graph.ranks, graph.first_row.tolist(), graph.keys_of_steps(), strict=False):
        mine, row = rank.graph, first + len(rank.graph.place)
        bounds = row + len(mine.kind) + np.arange(len(mine.steps) + 1)
        drift = (
            done[bounds] - done[bounds[0]] - offsets_of(mine.recorded_ps)
        )  # of the replay, at the start of each step
        turn: Counter[tuple[int, int]] = Counter()
        slots = list(zip(mine.kind.tolist(), mine.work_step.tolist(), strict=True))
        count = Counter(slots)
        for at, slot in enumerate(slots):
            if mine.usual[slot[1]]:
                which = (mine.kinds[slot[0]], count[slot], turn[slot])
                length = int(mine.contraction.length_ps[len(mine.place) + at])
                ends[which][keys[slot[1]]].append((row + at, int(done[row + at] - drift[slot[1]]), length))
            turn[slot] += 1
    step_ps = float(np.median(np.concatenate([rank.graph.recorded_ps for rank in graph.ranks])))
    number = graph.meeting.astype(np.int64)
    free = graph.meetings
    for steps in ends.values():
        found = [np.array(works, np.int64) for works in steps.values()]
        if all(len(works) == len(graph.ranks) for works in found) and _end_together(np.array(found), step_ps):
            for works in found:
                number[works[:, 0]] = free
                free += 1
    meeting, common = _renumber(number)
    return replace(graph, meeting=meeting, common=common)


def _end_together(works: I64, step_ps: float) -> bool:
    """Whether works of all ranks end at one moment in each step though their lengths differ considerably.

    Args:
        works: int64 of shape (steps, ranks, 3): of each the row, the end, the length.
    """
    apart, longer = (float(np.ptp(works[:, :, at], axis=1).sum()) for at in (1, 2))
    return longer >= CONSIDERABLE * step_ps * len(works) and apart <= _TOGETHER * longer
