"""What if ranks had equal work: the questions of a published study ("Understanding Stragglers in Large Model Training
Using What-if Analysis", OSDI 2025), answered by joint replays.

With equal work each op of a kind takes as long as the mean of its kind over all ranks in its step, each transfer as
long as the median of its kind.  Threads of the host, of which the study knows nothing, take as long as on the usual
rank: ranks can share what they compute, but not a pause or a slow disk.  Nor do they share what one rank alone does,
such as evaluating: it is not in the mean, and this rank has the mean of the others.  The slowdown of a job is how many
times as long its steps are as with equal work.  The slowdown of a worker, a stage, a replica or a kind is the same
where all but its own work is equal.  What a part explains is the share of the whole gain that equal work of this part
alone gives; it may be more than all of it, where other work is shorter than the mean.

Where ranks send to each other and receive, an op is a pass over a microbatch, whose kernels keep their shares, and the
ops of a kind have one length.  Elsewhere works are compared place by place in the step, since layers differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from stepscope.analysis.workers.joint_replay import JointGraph, JointReplay, Member, Schedule, schedule_of
from stepscope.analysis.workers.layout import Layout
from stepscope.analysis.workers.work_kinds import OF_MICROBATCHES, SHARED, WEIGHTS
from stepscope.model.arrays import F64, I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.collectives import PIPELINE_OPERATION

MOSTLY = 0.5  # more than half: the study's limit for what explains a slow job
_FEWEST_STEPS = 3  # in common: of so few none is left out, as two say little
_FEWEST_MET = 2  # steps in which all ranks met: one alone may be any, and a hidden wait in the others is surely false
# Of the usual step: recorded pairs of ranks begin their other steps up to 0.03 of it apart, and the first 0.9 where a
# busy machine lets one begin to record late.
_APART = 0.1
MORE_OPS = 0.05  # that a rank runs more than the others: recorded ranks with the same work differ by up to 0.046


@dataclass(frozen=True)
class JointRows:
    """The rows of a joint graph with what they are.

    Attributes:
        rank: int64 of shape (rows,), places of ranks; step: places in the job's steps, -1 for none of them.
        kind: int64 of shape (rows,), places in `kinds`, -1 for bounds of steps.
        is_work: whether it is own work of one rank, else a transfer.
        work_ps: int64 of shape (rows,), what of the length may change: of gaps in which a device waits nothing.
        own_ps: int64 of shape (rows,), how long each takes by itself.
        pieces: int64 of shape (rows,), how many kernels the work has; turn: see `RankGraph`.
        kinds: the kinds of work, then of transfers.
    """

    rank: I64
    step: I64
    kind: I64
    is_work: Mask
    work_ps: I64
    own_ps: I64
    pieces: I64
    turn: I64
    kinds: tuple[str, ...]


class Job:
    """All ranks of a job, ready to be replayed with other amounts of work.

    Args:
        graph: the ranks; layout: where these are in the job.
    """

    def __init__(self, graph: JointGraph, layout: Layout) -> None:
        self.graph, self.layout = graph, layout
        self.schedule: Schedule = schedule_of(graph)
        self.places = self._leave_out_unmet(self._leave_out_uneven_start(common_steps(graph)))
        self.rows = _rows_of(graph, self.schedule, self.places)

    @cached_property
    def now(self) -> JointReplay:
        """The replay of the job as it is."""
        return self.schedule.replay(self.schedule.own_ps)

    def _leave_out_uneven_start(self, places: I64) -> I64:
        """The common steps without the first, where ranks begin it far apart and no other: one began to record when
        another already worked in it, so that its length says when they began to record."""
        if places.shape[1] <= _FEWEST_STEPS:
            return places
        starts, ends = self._bounds(self.now, places)
        apart = np.nanmax(starts, axis=0) - np.nanmin(starts, axis=0)
        usual = np.median(np.nanmax(ends, axis=0) - np.nanmax(starts, axis=0))
        return places[:, 1:] if apart[0] - apart[1:].max() > _APART * usual else places

    def _leave_out_unmet(self, places: I64) -> I64:
        """The common steps without those in which one rank has fewer collectives than it usually has and a rank of the
        same stage has not: not all were recorded (of the threads of gloo PyTorch's profiler misses one now and then),
        and the wait in one that was not looks like work."""
        count = np.array([_count_meetings(rank, own) for rank, own in zip(self.graph.ranks, places, strict=True)])
        lacks = (count >= 0) & (count < np.median(count, axis=1, keepdims=True))
        unmet = np.zeros(places.shape[1], np.bool_)
        for stage in distinct(self.layout.stage).tolist():
            mates = lacks[self.layout.stage == stage]
            unmet |= mates.any(axis=0) & ~mates.all(axis=0)
        return places[:, ~unmet] if np.count_nonzero(~unmet) >= _FEWEST_MET else places

    @cached_property
    def now_ps(self) -> I64:
        """The steps of the job as it is: int64 of shape (steps,)."""
        return self.steps_with(np.zeros(len(self.rows.kind), np.bool_))

    @cached_property
    def partnerless(self) -> Mask:
        """Sends and receives whose partner is not here: bool of shape (rows,).  How long they wait for it would hide
        what others gain, so they take as long as the usual one."""
        rows, graph = self.rows, self.graph
        transfers = np.array([kind.startswith(PIPELINE_OPERATION) for kind in (*rows.kinds, "")])[rows.kind]
        meets = graph.meeting < graph.common
        meets[graph.also_row] = True
        found: Mask = transfers & ~rows.is_work & ~meets
        return found if (transfers & meets).any() else np.zeros_like(found)

    @cached_property
    def equal_ps(self) -> I64:
        """How long each row takes with equal work: int64 of shape (rows,)."""
        return _equal_lengths(self.rows, self.layout, self.does_more)

    @cached_property
    def does_more(self) -> Mask:
        """Ranks that run more ops than others of their stage though not in the backward pass, so that they do not have
        more data: bool of shape (ranks,)."""
        ops, backward = (
            np.array([getattr(rank.graph, name) for rank in self.graph.ranks]) for name in ("ops", "backward_ops")
        )
        grown, learned = self._more_than_mates(ops), self._more_than_mates(backward)
        return (grown > MORE_OPS) & (learned < MOSTLY * grown)

    @cached_property
    def has_more_data(self) -> Mask:
        """Ranks whose ops take more numbers than those of others of their stage, of all of which that is known: bool of
        shape (ranks,)."""
        operands = np.array([rank.graph.operands for rank in self.graph.ranks])
        unknown = np.isin(self.layout.stage, self.layout.stage[operands == 0])
        return (self._more_than_mates(operands) > MORE_OPS) & ~unknown & ~self.does_more

    def _more_than_mates(self, amount: F64) -> F64:
        """How much more of something each rank has than the others of its stage, as a share of theirs; 0 without
        others: float64 of shape (ranks,)."""
        found = np.zeros(len(amount))
        for stage in distinct(self.layout.stage).tolist():
            mates = np.flatnonzero(self.layout.stage == stage)
            for rank in mates.tolist() if len(mates) > 1 else ():
                found[rank] = amount[rank] / max(np.median(amount[mates[mates != rank]]), 1.0) - 1.0
        return found

    @cached_property
    def best_ps(self) -> I64:
        """The steps with equal work: int64 of shape (steps,)."""
        return self.steps_with(np.ones(len(self.rows.kind), np.bool_))

    def steps_with(self, equal: Mask) -> I64:
        """The steps where some rows have equal work: int64 of shape (steps,)."""
        return self.steps_of(self.schedule.replay(np.where(equal | self.partnerless, self.equal_ps, self.rows.own_ps)))

    def steps_of(self, replayed: JointReplay) -> I64:
        """The steps that most ranks have in common, each until the last rank is done with it: int64 of shape
        (steps,)."""
        starts, ends = self._bounds(replayed, self.places)
        found: I64 = (np.nanmax(ends, axis=0) - np.nanmax(starts, axis=0)).astype(np.int64)
        return found

    def _bounds(self, replayed: JointReplay, places: I64) -> tuple[F64, F64]:
        """When each rank comes to the starts and to the ends of its steps: float64 of shape (ranks, steps), not a
        number where a rank lacks a step."""
        starts, ends = np.full(places.shape, np.nan), np.full(places.shape, np.nan)
        for at, (rank, place) in enumerate(zip(self.graph.ranks, places, strict=True)):
            has = place >= 0
            row = self.graph.first_row[at + 1] - len(rank.graph.steps) - 1 + place[has]
            starts[at, has], ends[at, has] = replayed.done_ps[row], replayed.done_ps[row + 1]
        return starts, ends

    @cached_property
    def slowdown(self) -> float:
        """How many times as long the steps are as with equal work."""
        return _ratio(self.now_ps, self.best_ps)

    def slowdown_of(self, part: Mask) -> float:
        """The same where all but some rows have equal work."""
        return _ratio(self.steps_with(~part), self.best_ps)

    def ratios_of(self, part: Mask) -> F64:
        """The slowdown of each step where all but some rows have equal work: float64 of shape (steps,)."""
        known = self.best_ps > 0
        return np.where(known, self.steps_with(~part) / np.where(known, self.best_ps, 1), 1.0)

    @property
    def step_numbers(self) -> list[int]:
        """The numbers of the steps that most ranks have in common."""
        keys = self.graph.keys_of_steps()
        found = []
        for column in self.places.T:
            rank = int((column >= 0).argmax())
            found.append(keys[rank][int(column[rank])][1])
        return found

    def explains(self, part: Mask) -> float:
        """What share of the gain of equal work these rows alone give; 0 where nothing is to be gained."""
        gain = int(self.now_ps.sum() - self.best_ps.sum())
        return float(self.now_ps.sum() - self.steps_with(part).sum()) / gain if gain > 0 else 0.0

    def rows_of_ranks(self, ranks: Mask) -> Mask:
        """The rows of some ranks: bool of shape (rows,)."""
        return ranks[self.rows.rank]

    def rows_of_places(self, ranks: Sequence[int]) -> Mask:
        """The rows of ranks at some places: bool of shape (rows,)."""
        found: Mask = np.isin(self.rows.rank, ranks)
        return found


def common_steps(graph: JointGraph) -> I64:
    """The places of the usual steps that most ranks have: int64 of shape (ranks, steps), -1 where a rank lacks one."""
    places = [
        {key: at for at, (key, usual) in enumerate(zip(keys, rank.graph.usual.tolist(), strict=True)) if usual}
        for rank, keys in zip(graph.ranks, graph.keys_of_steps(), strict=True)
    ]
    count = {key: sum(key in mine for mine in places) for mine in places for key in mine}
    most = max(count.values(), default=0)
    common = sorted(key for key, times in count.items() if times == most and times > 1)
    return np.array([[mine.get(key, -1) for key in common] for mine in places], np.int64).reshape(len(places), -1)


def _count_meetings(rank: Member, places: I64) -> I64:
    """How many collectives, sends and receives a rank has in each of its steps: int64 of shape (steps,), -1 where it
    lacks a step."""
    steps = np.array(rank.collectives.step, np.int64)[rank.graph.place]
    count = np.bincount(steps[steps >= 0], minlength=int(rank.graph.steps.max(initial=0)) + 1)
    return np.where(places >= 0, count[rank.graph.steps[places]], -1)


def _ratio(steps: I64, best: I64) -> float:
    """How many times as long; once where equal work would leave nothing of the steps, as of work that is not known."""
    whole = float(best.sum())
    return float(steps.sum()) / whole if whole > 0 else 1.0


def _rows_of(graph: JointGraph, schedule: Schedule, places: I64) -> JointRows:
    count = len(graph.meeting)
    own = schedule.own_ps
    shortest = schedule.shortest(own)[graph.meeting]
    kind, step, work = np.full(count, -1, np.int64), np.full(count, -1, np.int64), np.zeros(count, np.int64)
    is_work, pieces, turn = np.zeros(count, np.bool_), np.zeros(count, np.int64), np.zeros(count, np.int64)
    kinds: dict[str, int] = {}
    for at, (rank, first) in enumerate(zip(graph.ranks, graph.first_row.tolist(), strict=False)):
        of, mine = rank.collectives, rank.graph
        number = np.full(max(int(mine.steps.max(initial=0)), max(of.step, default=0)) + 2, -1, np.int64)
        known = places[at] >= 0
        number[mine.steps[places[at][known]]] = np.flatnonzero(known)
        meets, works = first + np.arange(len(mine.place)), first + len(mine.place) + np.arange(len(mine.work_ps))
        names = [
            " ".join(str(each) for each in (of.names[of.name[k]], of.purposes[of.group[k]], of.bytes[k]) if each)
            for k in mine.place.tolist()
        ]
        kind[meets] = [kinds.setdefault(name, len(kinds)) for name in names]
        step[meets] = number[np.array(of.step, np.int64)[mine.place]]
        meets_others = graph.meeting[works] < graph.common
        named = [
            mine.kinds[k] + " together" * meets
            for k, meets in zip(mine.kind.tolist(), meets_others.tolist(), strict=True)
        ]
        kind[works] = [kinds.setdefault(name, len(kinds)) for name in named]
        step[works] = number[mine.steps[mine.work_step]]
        work[works], is_work[works] = mine.work_ps, ~meets_others
        pieces[works], turn[works] = mine.pieces, mine.turn
    work = np.where(is_work, np.minimum(work, own), shortest)
    return JointRows(graph.rank_of_rows(), step, kind, is_work, work, own, pieces, turn, tuple(kinds))


def _equal_lengths(rows: JointRows, layout: Layout, does_more: Mask) -> I64:
    """How long each row takes with equal work: int64 of shape (rows,), ps."""
    target = rows.work_ps.astype(np.float64)
    for kind in distinct(rows.kind[(rows.kind >= 0) & (rows.step >= 0)]).tolist():
        here = np.flatnonzero((rows.kind == kind) & (rows.step >= 0))
        is_work = rows.is_work[here[0]]
        target[here] = _mean_work(rows, layout, here, does_more) if is_work else np.median(rows.work_ps[here])
    return np.maximum(rows.own_ps + (target - rows.work_ps).astype(np.int64), 0)


def _mean_work(rows: JointRows, layout: Layout, here: I64, does_more: Mask) -> F64:
    """The lengths of all works of one kind with the mean of all ranks in each step: float64 of shape (n,)."""
    name, ranks, steps = rows.kinds[rows.kind[here[0]]], len(layout.stage), int(rows.step.max()) + 1
    slot = rows.rank[here] * steps + rows.step[here]
    count = np.bincount(slot, minlength=ranks * steps)
    total = np.bincount(slot, weights=rows.work_ps[here], minlength=ranks * steps).reshape(ranks, steps)
    takes_part = count.reshape(ranks, steps).any(axis=1)
    shares = takes_part & ~does_more if (takes_part & ~does_more).any() else takes_part
    # Of two ranks the one that does not do more; of each its usual step, as one of them may hide a wait.
    usual_ps = np.percentile(np.median(total, axis=1), 50, method="lower")
    mean = total[shares].mean(axis=0) if name in SHARED else np.full(steps, usual_ps)
    order = np.argsort(slot, kind="stable")
    place = np.empty(len(here), np.int64)
    place[order] = np.arange(len(here)) - np.repeat(np.cumsum(count) - count, count)
    profile = count[slot] * (int(count.max()) + 1) + place
    usual = np.bincount(profile, weights=rows.work_ps[here]) / np.maximum(np.bincount(profile), 1)
    stage = layout.stage[rows.rank[here]]
    counts, times = np.unique(count[count > 0], return_counts=True)
    is_cut_otherwise = count[slot] != counts[times.argmax()]
    shape = np.where(is_cut_otherwise, rows.work_ps[here], usual[profile])
    if name in OF_MICROBATCHES:
        shape = np.where(stage >= 0, _shares_of_passes(rows, here, slot), shape)
    elif name == WEIGHTS:  # nothing divides those of microbatches that follow each other
        shape = rows.pieces[here].astype(np.float64)
    whole = np.bincount(slot, weights=shape, minlength=ranks * steps)
    found: F64 = shape * mean[rows.step[here]] / np.maximum(whole[slot], 1.0)
    return found


def _shares_of_passes(rows: JointRows, here: I64, slot: I64) -> F64:
    """What each work is of the pass over its microbatch, which ends where the rank sends or receives: float64 of shape
    (n,)."""
    each = np.unique(np.stack([slot, rows.turn[here]]), axis=1, return_inverse=True)[1].reshape(-1)
    found: F64 = rows.work_ps[here] / np.maximum(np.bincount(each, weights=rows.work_ps[here]), 1.0)[each]
    return found
