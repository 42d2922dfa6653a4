"""What if ranks had equal work: the median step of a session with the mean of the work of its ranks or its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from stepscope.analysis.workers.answer import JobAnswer, answer_of
from stepscope.analysis.workers.equal_work import Job
from stepscope.analysis.workers.joint_replay import RankModel
from stepscope.analysis.workers.waiting import find_waits
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
        sentence: what is at fault.
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
    sentence: str


def balance(ranks: Sequence[RankModel], what: str = RANKS) -> Balanced | None:
    """The gain of equal work; None without ranks that can be replayed together well enough.

    Args:
        what: RANKS for all work of all ranks, STAGES for the mean of the stages of a pipeline, KIND and a kind of work.

    Raises:
        UsageError: there are no stages, or there is no such kind.
    """
    answer = answer_of(ranks)
    if answer is None:
        return None
    job = answer.job
    if what == RANKS:
        return equal_work_of(answer)
    if what == STAGES:
        return _compare(answer, job.steps_of(job.schedule.replay(_balance_stages(job))))
    return _compare(answer, job.steps_with(job.rows.kind == _kind_of(job, what)))


def equal_work_of(answer: JobAnswer) -> Balanced:
    """The gain of equal work on all ranks."""
    return _compare(answer, answer.job.best_ps)


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


def _compare(answer: JobAnswer, after: I64) -> Balanced:
    """The steps as they are and after a change, on the rank that waits least in each.

    Args:
        after: int64 of shape (steps,), ps.
    """
    job = answer.job
    graph, place, steps = job.graph, job.places, job.places.shape[1]
    found = zip(find_waits(job), graph.keys_of_steps(), strict=True)
    waited = [np.array([each.waiting[key] for key in keys], np.int64) for each, keys in found]
    waits = _pick(waited, place, np.iinfo(np.int64).max)
    slowest = waits.argmin(axis=0)
    name, times = Counter(slowest.tolist()).most_common(1)[0]
    now = job.now_ps
    usual = min(float(after.sum()) / max(float(now.sum()), 1.0), 1.0)
    ratio = np.minimum(np.divide(after, now, out=np.ones(steps), where=now > 0), 1.0)
    least, most = (float(np.percentile(ratio, at)) for at in _MOST_STEPS)
    recorded = _pick([rank.graph.recorded_ps for rank in graph.ranks], place, 0)[slowest, np.arange(steps)]
    step_ps, doubt = int(np.sort(recorded, kind="stable")[(steps - 1) // 2]), answer.error_percent / 100.0
    return Balanced(
        len(place), steps, graph.ranks[name].title, times, step_ps, round(step_ps * usual),
        round(step_ps * max(min(least, usual) - doubt, 0.0)), round(step_ps * min(max(most, usual) + doubt, 1.0)),
        answer.error_percent, answer.sentence([rank.title for rank in graph.ranks]),
    )  # fmt: skip


def _pick(steps_of_ranks: Sequence[I64], place: I64, missing: int) -> I64:
    """Some steps of each rank: int64 of shape (ranks, steps)."""
    return np.array(
        [np.where(here >= 0, steps[here], missing) for steps, here in zip(steps_of_ranks, place, strict=True)], np.int64
    )
