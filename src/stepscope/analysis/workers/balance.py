"""What if ranks had other amounts of work: the steps of a session, replayed with other lengths of their work.

With equal work each rank, or each stage, does the mean of what they do; without the extra work of one rank, nobody
waits for that one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import CausesOfStep
from stepscope.analysis.account.model import MOST_ERROR_PERCENT
from stepscope.analysis.workers.equal_work import Job
from stepscope.analysis.workers.joint_replay import (
    JointReplay,
    RankModel,
    join_ranks,
    joint_error_percent,
    waits_in_steps,
)
from stepscope.analysis.workers.layout import layout_of
from stepscope.analysis.workers.work_kinds import ON_DEVICE
from stepscope.errors import UsageError
from stepscope.model.arrays import I64
from stepscope.records import dataclass

_MOST_STEPS = (10, 90)  # percentiles of the steps: what most of them gain
RANKS, STAGES, KIND = "ranks", "stages", "kind="


@dataclass(frozen=True)
class Balanced:
    """The median step of a session, and what it would be with other amounts of own work on its ranks.

    Attributes:
        ranks: how many take part; steps: how many usual steps most of them have.
        slowest: the rank that waits least most often, and slowest_steps in how many steps.
        least_ps, most_ps: the range of `then_ps`, by what most steps gain and the replay error.
        error_percent: how far the median step of a rank is from the recorded one without a change, at most.
    """

    ranks: int
    steps: int
    slowest: str
    slowest_steps: int
    now_ps: int
    then_ps: int
    least_ps: int
    most_ps: int
    error_percent: float


def job_of(ranks: Sequence[RankModel]) -> Job | None:
    """The ranks as one job; None without two that have a usual step in common and meet."""
    graph = join_ranks(ranks) if len(ranks) > 1 else None
    if graph is None:
        return None
    job = Job(graph, layout_of([rank.collectives for rank in ranks], graph.pairs))
    return job if job.places.shape[1] else None


def error_of(job: Job) -> float:
    """How far the median step of the worst rank is from the recorded one, in percent."""
    return max((each for each in joint_error_percent(job.graph, job.now) if each is not None), default=0.0)


def balance(ranks: Sequence[RankModel], what: str = RANKS) -> Balanced | None:
    """The gain of equal work; None without ranks that can be replayed together well enough.

    Args:
        what: RANKS for all work of all ranks, STAGES for the mean of the stages of a pipeline, KIND and a kind of work.

    Raises:
        UsageError: there are no stages, or there is no such kind.
    """
    job = job_of(ranks)
    if job is None or error_of(job) > MOST_ERROR_PERCENT:
        return None
    if what == STAGES:
        return _compare(job, job.schedule.replay(_balance_stages(job)))
    equal = np.ones(len(job.rows.kind), np.bool_) if what == RANKS else job.rows.kind == _kind_of(job, what)
    return _compare(job, job.schedule.replay(np.where(equal, job.equal_ps, job.rows.own_ps)))


def _balance_stages(job: Job) -> I64:
    """The rows with the work of each stage scaled to the mean of all stages: int64 of shape (rows,), ps."""
    rows, layout = job.rows, job.layout
    if not layout.stages:
        raise UsageError("no rank sends to another one", hint="stages are those of a pipeline; try --balance ranks")
    name = np.array([*rows.kinds, ""])[rows.kind]
    stage = layout.stage[rows.rank]
    here = rows.is_work & np.isin(name, [*ON_DEVICE]) & (stage >= 0) & (rows.step >= 0)
    ranks = np.bincount(layout.stage[layout.stage >= 0], minlength=layout.stages)
    work = np.bincount(stage[here], weights=rows.work_ps[here], minlength=layout.stages) / np.maximum(ranks, 1)
    factor = np.divide(work.mean(), work, out=np.ones(layout.stages), where=work > 0)
    more = np.where(here, rows.work_ps * (factor[np.maximum(stage, 0)] - 1.0), 0.0)
    return np.maximum(rows.own_ps + more.astype(np.int64), 0)


def _kind_of(job: Job, what: str) -> int:
    kinds = [kind for at, kind in enumerate(job.rows.kinds) if (job.rows.kind == at).any()]
    kind = what.removeprefix(KIND)
    if not what.startswith(KIND) or kind not in kinds:
        raise UsageError(f"{what} cannot be balanced", hint=f"one of ranks, stages, kind={', kind='.join(kinds)}")
    return job.rows.kinds.index(kind)


def relieve_rank(ranks: Sequence[RankModel], name: str) -> Balanced | None:
    """The gain if nobody had to wait for one rank, for it has no more work than the others; None as for `balance`."""
    at = next((at for at, rank in enumerate(ranks) if rank.name == name), None)
    job = job_of(ranks) if at is not None else None
    if job is None or at is None or error_of(job) > MOST_ERROR_PERCENT:
        return None
    return _compare(job, job.schedule.replay(job.rows.own_ps, without=at), without=at)


def side_by_side(steps_of_ranks: Mapping[str, Sequence[CausesOfStep]]) -> tuple[list[str], I64]:
    """The ranks with usual steps, and the time of their common steps by cause: int64 of shape (ranks, steps, causes),
    ps; matched by the steps' numbers."""
    by_number = {rank: {step.number: step for step in steps if step.usual} for rank, steps in steps_of_ranks.items()}
    by_number = {rank: steps for rank, steps in by_number.items() if steps}
    common = sorted(set.intersection(*map(set, by_number.values()))) if by_number else []
    spent = [[steps[number].causes_ps for number in common] for steps in by_number.values()]
    return list(by_number), np.array(spent, np.int64).reshape(len(by_number), len(common), len(Cause))


def _compare(job: Job, then: JointReplay, without: int | None = None) -> Balanced:
    """The steps as they are and after a change, on the rank that waits least in each.

    Args:
        without: a rank that does not count after the change.
    """
    graph, place = job.graph, job.places
    error, steps = error_of(job), job.places.shape[1]
    waits = _pick(waits_in_steps(graph, job.now), place, np.iinfo(np.int64).max)
    slowest = waits.argmin(axis=0)
    name, times = Counter(slowest.tolist()).most_common(1)[0]
    counts = np.arange(len(place)) != (-1 if without is None else without)
    after = job.steps_of(then, counts)
    now = job.now_ps
    ratio = np.minimum(np.divide(after, now, out=np.ones(steps), where=now > 0), 1.0)
    least, usual, most = (float(np.percentile(ratio, at)) for at in (_MOST_STEPS[0], 50, _MOST_STEPS[1]))
    recorded = _pick([rank.graph.recorded_ps for rank in graph.ranks], place, 0)[slowest, np.arange(steps)]
    step_ps, doubt = int(np.sort(recorded, kind="stable")[(steps - 1) // 2]), error / 100.0
    return Balanced(
        len(place), steps, graph.ranks[name].name, times, step_ps, round(step_ps * usual),
        round(step_ps * max(least - doubt, 0.0)), round(step_ps * min(most + doubt, 1.0)), error,
    )  # fmt: skip


def _pick(steps_of_ranks: Sequence[I64], place: I64, missing: int) -> I64:
    """Some steps of each rank: int64 of shape (ranks, steps)."""
    return np.array(
        [np.where(here >= 0, steps[here], missing) for steps, here in zip(steps_of_ranks, place, strict=True)], np.int64
    )
