"""What if ranks had other amounts of work: the steps of a session, replayed with other arrivals at their meetings.

Ranks meet in collectives, so each of these starts when the last one has come.  With equal work the ways between
meetings have their mean length on every rank; without the extra work of one rank, nobody waits for that one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import CausesOfStep
from stepscope.analysis.account.model import MOST_ERROR_PERCENT
from stepscope.analysis.workers.joint_replay import (
    JointGraph,
    JointReplay,
    RankModel,
    join_ranks,
    joint_error_percent,
    replay_together,
    waits_in_steps,
)
from stepscope.analysis.workers.mean_rank import steps_of_mean_rank
from stepscope.model.arrays import I64
from stepscope.records import dataclass

_MOST_STEPS = (10, 90)  # percentiles of the steps: what most of them gain


@dataclass(frozen=True)
class Balanced:
    """The median step of a session, and what it would be with other amounts of own work on its ranks.

    Attributes:
        ranks: how many take part; steps: how many usual steps all of them have.
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


def balance_ranks(ranks: Sequence[RankModel]) -> Balanced | None:
    """The gain if each rank had the mean of their work; None without two ranks that have a usual step in common and
    meet in it, or where these cannot be replayed well enough."""
    found = _join(ranks)
    return _compare(found, steps_of_mean_rank(found.graph, found.now, found.place)) if found else None


def relieve_rank(ranks: Sequence[RankModel], name: str) -> Balanced | None:
    """The gain if nobody had to wait for one rank, for it has no more work than the others; None as for
    `balance_ranks`."""
    at = next((at for at, rank in enumerate(ranks) if rank.name == name), None)
    found = _join(ranks) if at is not None else None
    if found is None:
        return None
    steps = _pick(replay_together(found.graph, without=at).step_ps, found.place)
    return _compare(found, np.delete(steps, at or 0, axis=0).max(axis=0))


def side_by_side(steps_of_ranks: Mapping[str, Sequence[CausesOfStep]]) -> tuple[list[str], I64]:
    """The ranks with usual steps, and the time of their common steps by cause: int64 of shape (ranks, steps, causes),
    ps; matched by the steps' numbers."""
    by_number = {rank: {step.number: step for step in steps if step.usual} for rank, steps in steps_of_ranks.items()}
    by_number = {rank: steps for rank, steps in by_number.items() if steps}
    common = sorted(set.intersection(*map(set, by_number.values()))) if by_number else []
    spent = [[steps[number].causes_ps for number in common] for steps in by_number.values()]
    return list(by_number), np.array(spent, np.int64).reshape(len(by_number), len(common), len(Cause))


@dataclass(frozen=True)
class _Joined:
    """Ranks that are replayed together.

    Attributes:
        place: int64 of shape (ranks, steps), the places of the usual steps that all have.
        now: their replay; error_percent: the largest error of a rank.
    """

    graph: JointGraph
    place: I64
    now: JointReplay
    error_percent: float


def _join(ranks: Sequence[RankModel]) -> _Joined | None:
    graph = join_ranks(ranks) if len(ranks) > 1 else None
    if graph is None:
        return None
    place, now = _common_steps(graph), replay_together(graph)
    error = max((each for each in joint_error_percent(graph, now) if each is not None), default=0.0)
    return _Joined(graph, place, now, error) if place.shape[1] and error <= MOST_ERROR_PERCENT else None


def _common_steps(graph: JointGraph) -> I64:
    """The places of the usual steps that all ranks have: int64 of shape (ranks, steps)."""
    places = [
        {key: at for at, (key, usual) in enumerate(zip(keys, rank.graph.usual.tolist(), strict=True)) if usual}
        for rank, keys in zip(graph.ranks, graph.keys_of_steps(), strict=True)
    ]
    common = sorted(set.intersection(*map(set, places)))
    return np.array([[place[key] for key in common] for place in places], np.int64).reshape(len(places), len(common))


def _compare(found: _Joined, then: I64) -> Balanced:
    """Args:
    then: int64 of shape (steps,), the replayed steps after the change, ps.
    """
    graph, place, steps = found.graph, found.place, found.place.shape[1]
    slowest = _pick(waits_in_steps(graph, found.now), place).argmin(axis=0)
    name, times = Counter(slowest.tolist()).most_common(1)[0]
    now = _pick(found.now.step_ps, place)[slowest, np.arange(steps)]
    ratio = np.minimum(np.divide(then, now, out=np.ones(steps), where=now > 0), 1.0)
    least, usual, most = (float(np.percentile(ratio, at)) for at in (_MOST_STEPS[0], 50, _MOST_STEPS[1]))
    recorded = _pick([rank.graph.recorded_ps for rank in graph.ranks], place)[slowest, np.arange(steps)]
    step_ps, doubt = int(np.sort(recorded, kind="stable")[(steps - 1) // 2]), found.error_percent / 100.0
    return Balanced(
        len(place), steps, graph.ranks[name].name, times, step_ps, round(step_ps * usual),
        round(step_ps * max(least - doubt, 0.0)), round(step_ps * min(most + doubt, 1.0)), found.error_percent,
    )  # fmt: skip


def _pick(steps_of_ranks: Sequence[I64], place: I64) -> I64:
    """Some steps of each rank: int64 of shape (ranks, steps)."""
    return np.array([steps[here] for steps, here in zip(steps_of_ranks, place, strict=True)], np.int64)
