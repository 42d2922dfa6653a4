"""Judges budgets: is each kept, and if not, by more than the noise?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stepscope.analysis.compare.notes import find_doubts, find_mismatches
from stepscope.analysis.compare.welch import Sample, half_width, quantile, sample_of
from stepscope.analysis.gate.budgets import Budget
from stepscope.analysis.gate.figures import JudgedSession, Reading, no_row, read_figure, step_samples
from stepscope.errors import UsageError
from stepscope.records import dataclass
from stepscope.report import Field, value_with_unit

# ---- By how much a figure may differ by chance -----------------------------------------------------------------------
# half of a 95 % interval, from steps and from runs.  Within a session the steps are the sample.  Several sessions of
# one side are a sample of runs; runs differ by more than the steps within one.  The wider interval counts.


def noise_of_mean(values: Sequence[float]) -> float | None:
    """Half of the interval of a mean; None for fewer than two values."""
    sample = sample_of(values)
    return None if sample.std is None else quantile(sample.count - 1) * sample.std / math.sqrt(sample.count)


def noise_of_difference(
    before: Sequence[float], after: Sequence[float], runs_before: Sequence[float], runs_after: Sequence[float]
) -> float | None:
    """Half of the interval of the difference of two means; None if nothing is known of the noise.

    Args:
        before, after: the figure in the steps of each side; empty if it has no values for steps.
        runs_before, runs_after: the figure in each session of a side.
    """
    known = [
        half_width(sample_of(before), sample_of(after)),
        _noise_between_runs(sample_of(runs_before), sample_of(runs_after)),
    ]
    return max((width for width in known if width is not None), default=None)


def _noise_between_runs(before: Sample, after: Sample) -> float | None:
    """From runs on both sides; a side with a single run is expected to spread as the other does."""
    if before.std is not None and after.std is not None:
        return half_width(before, after)
    spread = before if before.std is not None else after
    if spread.std is None:
        return None
    return quantile(spread.count - 1) * spread.std * math.sqrt(1 + 1 / spread.count)


KEPT, WITHIN_NOISE, BROKEN, UNKNOWN = "kept", "within_noise", "broken", "unknown"
STATES = {
    KEPT: "the figure is within its limit",
    WITHIN_NOISE: "the figure is beyond its limit, but by no more than the noise; a warning",
    BROKEN: "the figure is beyond its limit by more than the noise",
    UNKNOWN: "the figure is not in the capture, so the budget cannot be checked",
}


@dataclass(frozen=True)
class BudgetCheck:
    """One limit of a budget, and how it was kept.

    Attributes:
        figure: the figure's id, as in the budget.
        state: one of STATES.
        field: the figure's declaration.
        before, after: its mean over the sessions of each side; None if it is unknown or not needed.
        limit: the largest value allowed, or the smallest if `is_least`.
        noise: half of the 95 % interval; None if it was not needed or is unknown.
        is_least: whether the limit is a lower one.
        reason: why the state is what it is, in a sentence.
    """

    figure: str
    state: str
    field: Field
    before: float | None
    after: float | None
    limit: float | None
    noise: float | None
    is_least: bool
    reason: str


def check_budgets(
    before: Sequence[JudgedSession], after: Sequence[JudgedSession], budgets: Sequence[Budget]
) -> tuple[BudgetCheck, ...]:
    """Checks every limit of every budget.

    Args:
        before: the sessions to compare with, of one job; may be empty if no budget is relative.
        after: one or more runs of what is judged.
        budgets: the budgets.

    Raises:
        UsageError: a budget names no figure, or needs a session before and there is none.
    """
    return tuple(check for budget in budgets for check in _check(before, after, budget))


def refuse_other_jobs(before: Sequence[JudgedSession], after: Sequence[JudgedSession]) -> None:
    """Raises UsageError if a session before is of another model, framework or device than the first one after."""
    for session in before:
        reasons = find_mismatches(session.side, after[0].side)
        if reasons:
            raise UsageError(
                f"the baseline {session.side.run} is not of the same job: {'; '.join(reasons)}",
                code="other-baseline",
                hint="give a baseline of this model on this device, or --accept-other to compare all the same",
            )


def find_all_doubts(before: Sequence[JudgedSession], after: Sequence[JudgedSession]) -> tuple[str, ...]:
    """Why the sessions before may be of another model, each reason once."""
    return tuple(dict.fromkeys(doubt for one in before for doubt in find_doubts(one.side, after[0].side)))


# -- one budget ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Side:
    """The sessions of a side, and the figure in each."""

    sessions: Sequence[JudgedSession]
    readings: tuple[Reading, ...]

    @property
    def values(self) -> list[float]:
        return [reading.value for reading in self.readings if reading.value is not None]

    @property
    def mean(self) -> float | None:
        return sum(self.values) / len(self.values) if self.values else None

    def samples(self, budget: Budget) -> list[float]:
        """The figure in the steps of all sessions."""
        asked = budget.figure, budget.take, budget.per_step
        return [value for session in self.sessions for value in step_samples(session, *asked)]


def _check(before: Sequence[JudgedSession], after: Sequence[JudgedSession], budget: Budget) -> Iterator[BudgetCheck]:
    asked = budget.figure, budget.take, budget.per_step
    one, other = (_Side(side, tuple(read_figure(session, *asked) for session in side)) for side in (before, after))
    readings = (*one.readings, *other.readings)
    if all(reading.is_absent for reading in readings):
        raise no_row(budget.figure, readings[-1])
    if budget.is_relative and not before:
        raise UsageError(f"the budget of {budget.figure} needs a session to compare with", hint="give a baseline")
    unknown = next(
        (r for r in (*other.readings, *(one.readings if budget.is_relative else ())) if r.value is None), None
    )
    if unknown is not None:
        yield BudgetCheck(
            budget.figure, UNKNOWN, unknown.field, one.mean, other.mean, None, None, False, unknown.why_unknown
        )
        return
    unit = other.readings[0].field.unit
    if budget.most is not None:
        yield _check_absolute(one, other, budget, budget.most.convert(unit), is_least=False)
    if budget.least is not None:
        yield _check_absolute(one, other, budget, budget.least.convert(unit), is_least=True)
    if budget.rise_percent is not None:
        yield _check_relative(one, other, budget, 1 + budget.rise_percent / 100, is_least=False)
    if budget.fall_percent is not None:
        yield _check_relative(one, other, budget, 1 - budget.fall_percent / 100, is_least=True)


def _check_absolute(before: _Side, after: _Side, budget: Budget, limit: float, is_least: bool) -> BudgetCheck:
    check = _check_limit(before, after, budget, limit, is_least)
    if check.state == KEPT:
        return check
    return _judge(check, _noise_of_value(after, budget), budget)


def _noise_of_value(side: _Side, budget: Budget) -> float | None:
    """Half of the interval of the mean of a side: over its runs, or over the steps of a single one."""
    if len(side.values) > 1:
        return noise_of_mean(side.values)
    return 0.0 if side.readings[0].is_exact else noise_of_mean(side.samples(budget))


def _check_relative(before: _Side, after: _Side, budget: Budget, factor: float, is_least: bool) -> BudgetCheck:
    """The limit is a multiple of the figure before, and so is its noise."""
    check = _check_limit(before, after, budget, factor * (before.mean or 0.0), is_least)
    if check.state == KEPT:
        return check
    runs = [factor * value for value in before.values], after.values
    if after.readings[0].is_exact:
        return _judge(check, noise_of_difference((), (), *runs) or 0.0, budget)
    steps = [factor * value for value in before.samples(budget)], after.samples(budget)
    return _judge(check, noise_of_difference(*steps, *runs), budget)


def _check_limit(before: _Side, after: _Side, budget: Budget, limit: float, is_least: bool) -> BudgetCheck:
    """The check as kept or, for now, as broken; rounding errors break nothing."""
    value, field = after.mean or 0.0, after.readings[0].field
    beyond = limit - value if is_least else value - limit
    state = BROKEN if beyond > 1e-9 * max(abs(limit), 1.0) else KEPT
    check = BudgetCheck(budget.figure, state, field, before.mean, value, limit, None, is_least, "")
    return replace(check, reason=f"{_value_words(check)} is within {_limit_words(check)}")


def _judge(check: BudgetCheck, noise: float | None, budget: Budget) -> BudgetCheck:
    """Whether a figure beyond its limit is so by more than the noise."""
    value, limit = check.after or 0.0, check.limit or 0.0
    beyond = abs(value - limit)
    allowed = budget.noise_percent / 100 * abs(check.before if check.before is not None else limit)
    if noise is None and not allowed:
        why = "the noise is unknown: record two steps or more, or give a second baseline"
        return replace(check, state=WITHIN_NOISE, reason=f"{_beyond_words(check)}, but {why}")
    width = max(noise or 0.0, allowed)
    state = BROKEN if beyond > width else WITHIN_NOISE
    more = "more than" if state == BROKEN else "no more than"
    reason = f"{_beyond_words(check)}, by {more} the noise of \N{PLUS-MINUS SIGN}{value_with_unit(check.field, width)}"
    return replace(check, state=state, noise=width, reason=reason)


def _beyond_words(check: BudgetCheck) -> str:
    return f"{_value_words(check)} is {'below' if check.is_least else 'above'} {_limit_words(check)}"


def _value_words(check: BudgetCheck) -> str:
    value = value_with_unit(check.field, check.after)
    return value if check.before is None else f"{value} ({value_with_unit(check.field, check.before)} before)"


def _limit_words(check: BudgetCheck) -> str:
    return f"the limit of {value_with_unit(check.field, check.limit)}"
