"""What if ranks had other amounts of work: the steps of a session, with their ranks side by side.

Ranks meet in collectives, so a step of all of them takes as long as the own work of the slowest rank and what that one
still spends on communication; the others wait in the same collectives for it.  Own work is what the account of a rank's
step holds besides communication.  Steps are compared as a whole: where ranks are late in turn to the collectives of one
step, the gain is larger than said here.  Which part of a step lies between two collectives is known of collectives that
the host waits for, not of those that run beside its work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from stepscope.analysis.account.causes import Cause, own_work_of_steps
from stepscope.analysis.account.every_step import CausesOfStep
from stepscope.model.arrays import F64, I64
from stepscope.records import dataclass

_MOST_STEPS = (10, 90)  # percentiles of the steps: what most of them gain


@dataclass(frozen=True)
class Balanced:
    """The median step of a session, and what it would be with other amounts of own work on its ranks.

    Attributes:
        ranks: how many take part; steps: how many steps all of them have.
        slowest: the rank that is slowest most often, and slowest_steps in how many steps.
        least_ps, most_ps: the range of `then_ps`, by what most steps gain.
        causes: what the slowest rank's step is spent on then, in ps, the longest first; they add up to about `then_ps`.
    """

    ranks: int
    steps: int
    slowest: str
    slowest_steps: int
    now_ps: int
    then_ps: int
    least_ps: int
    most_ps: int
    causes: dict[str, int]


def balance_ranks(steps_of_ranks: Mapping[str, Sequence[CausesOfStep]]) -> Balanced | None:
    """The gain if each rank had the mean of their own work; None without two ranks that have a step in common and meet
    in it.

    Args:
        steps_of_ranks: the account of every step, by rank.
    """
    ranks, spent = side_by_side(steps_of_ranks)
    return _compare(ranks, spent, own_work_of_steps(spent).mean(axis=0)) if _meet(spent) else None


def relieve_rank(steps_of_ranks: Mapping[str, Sequence[CausesOfStep]], rank: str) -> Balanced | None:
    """The gain if one rank had no more own work than the busiest of the others; None as for `balance_ranks`."""
    ranks, spent = side_by_side(steps_of_ranks)
    if not _meet(spent) or rank not in ranks:
        return None
    others = np.delete(own_work_of_steps(spent), ranks.index(rank), axis=0)
    return _compare(ranks, spent, others.max(axis=0).astype(np.float64))


def side_by_side(steps_of_ranks: Mapping[str, Sequence[CausesOfStep]]) -> tuple[list[str], I64]:
    """The ranks with usual steps, and the time of their common steps by cause: int64 of shape (ranks, steps, causes),
    ps; matched by the steps' numbers."""
    by_number = {rank: {step.number: step for step in steps if step.usual} for rank, steps in steps_of_ranks.items()}
    by_number = {rank: steps for rank, steps in by_number.items() if steps}
    common = sorted(set.intersection(*map(set, by_number.values()))) if by_number else []
    spent = [[steps[number].causes_ps for number in common] for steps in by_number.values()]
    return list(by_number), np.array(spent, np.int64).reshape(len(by_number), len(common), len(Cause))


def _meet(spent: I64) -> bool:
    """Whether there are several ranks, and they communicate."""
    return len(spent) > 1 and bool(spent[:, :, Cause.COMMUNICATION].any())


def _compare(ranks: list[str], spent: I64, own_then: F64) -> Balanced:
    """Args:
    spent: int64 of shape (ranks, steps, causes), ps.
    own_then: float64 of shape (steps,), the own work of the slowest rank after the change, ps.
    """
    own = own_work_of_steps(spent)
    last, steps = own.argmax(axis=0), np.arange(spent.shape[1])
    slowest = spent[last, steps]
    now, longest = slowest.sum(axis=1), own[last, steps]
    then = now - longest + np.minimum(own_then, longest)
    median = int(np.argsort(now, kind="stable")[(len(now) - 1) // 2])
    ratio = np.divide(then, now, out=np.ones(len(now)), where=now > 0)
    least, usual, most = (float(np.percentile(ratio, at)) for at in (_MOST_STEPS[0], 50, _MOST_STEPS[1]))
    name, times = Counter(last.tolist()).most_common(1)[0]
    left = float(then[median] - slowest[median, Cause.COMMUNICATION]) / max(int(longest[median]), 1)
    step_ps = int(now[median])
    return Balanced(
        len(ranks), len(now), ranks[name], times, step_ps, round(step_ps * usual), round(step_ps * least),
        round(step_ps * most), _causes_then(slowest[median], left),
    )  # fmt: skip


def _causes_then(spent: I64, left: float) -> dict[str, int]:
    """The causes of a step of which only a share of the own work is left, the longest first."""
    then = {cause: round(int(spent[cause]) * (1.0 if cause == Cause.COMMUNICATION else left)) for cause in Cause}
    return {cause.name.lower(): ps for cause, ps in sorted(then.items(), key=lambda each: -each[1]) if ps > 0}
