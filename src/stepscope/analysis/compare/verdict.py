"""Whether the step time changed: the difference of two means, its noise, and both in one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stepscope.analysis.account.account_text import cause_words
from stepscope.analysis.compare.differences import percent_of
from stepscope.analysis.compare.welch import Sample, half_width
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, amount, duration_text, number_text, round_6

_SAME_WINDOW = 1.0  # percent: two runs of one script differ by more, two windows of a recorder hardly by as much
_TWICE = 2.0  # the sentence states the ratio of step times from this ratio on

DIFFERENCE_FIELDS: tuple[Field, ...] = (
    Field("difference_ms", "ms", "difference of the mean step times", role=Role.CHANGE),
    Field(
        "uncertainty_ms",
        "ms",
        "half of the 95 % interval of the difference (Welch); a smaller or equal difference is within the noise; "
        "unknown if one side has fewer than two steps",
    ),
    Field("change_percent", "percent", "the difference as a share of the step time before", role=Role.CHANGE),
    Field("speedup", "ratio", "step time before over step time after"),
)


@dataclass(frozen=True)
class StepTimeDifference:
    """How the mean step times differ: after minus before.

    Attributes:
        verdict: "faster", "slower", "within_noise", or "unknown" where a side has no steps or fewer than two.
        ms, uncertainty_ms, change_percent, speedup: see DIFFERENCE_FIELDS.
    """

    verdict: str
    ms: float | None
    uncertainty_ms: float | None
    change_percent: float | None
    speedup: float | None

    @property
    def slower_percent(self) -> float | None:
        """Percent by which the step got slower beyond the noise; 0 if it did not, None if the noise is unknown."""
        return slower_percent(self.verdict, self.change_percent)

    @property
    def figures(self) -> dict[str, Cell]:
        """The figures by the names of DIFFERENCE_FIELDS."""
        values: tuple[Cell, ...] = (self.ms, self.uncertainty_ms, self.change_percent, self.speedup)
        return {field.name: value for field, value in zip(DIFFERENCE_FIELDS, values, strict=True)}


def slower_percent(verdict: str, change_percent: float | None) -> float | None:
    """See `StepTimeDifference.slower_percent`; for who has the two figures only, such as a row of several sessions."""
    if verdict == "unknown":
        return None
    return (change_percent or 0.0) if verdict == "slower" else 0.0


def compare_means(before: Sample, after: Sample) -> StepTimeDifference:
    """How the means of two samples differ, and whether by more than the noise."""
    if before.mean is None or after.mean is None:
        return StepTimeDifference("unknown", None, None, None, None)
    change, width = round_6(after.mean - before.mean), half_width(before, after)
    noise = None if width is None else round_6(width)  # rounded like the difference, to nanoseconds
    if noise is None:
        verdict = "unknown"
    elif abs(change) <= noise:
        verdict = "within_noise"
    else:
        verdict = "faster" if change < 0 else "slower"
    return StepTimeDifference(
        verdict=verdict,
        ms=change,
        uncertainty_ms=noise,
        change_percent=percent_of(change, before.mean),
        speedup=round(before.mean / after.mean, 4) if after.mean > 0 else None,
    )


def verdict_text(
    found: StepTimeDifference,
    before: Sample,
    after: Sample,
    breakdown: Sequence[Mapping[str, Cell]],
    of_captures: bool = False,
) -> str:
    """The difference in one sentence, with the cause that explains most of it.

    Args:
        found, before, after: the difference, and the step times of both sides.
        breakdown: the mean step by cause.
        of_captures: whether the captures are compared, and not steps.
    """
    if before.mean is None or after.mean is None or found.ms is None or found.change_percent is None:
        lacking = [name for name, side in (("before", before), ("after", after)) if not side.mean]
        who = "neither session has" if len(lacking) == 2 else f"the session {lacking[0]} has no"
        return f"unknown: {who} steps to compare; mark the steps"
    if of_captures and abs(found.change_percent) < _SAME_WINDOW:
        return f"unknown: both captures last {number_text(before.mean)} ms, as windows of one length do; mark the steps"
    times = f"{'capture' if of_captures else 'mean'} {number_text(before.mean)} -> {number_text(after.mean)} ms"
    noise = None if found.uncertainty_ms is None else f"\N{PLUS-MINUS SIGN}{number_text(found.uncertainty_ms)}"
    if found.verdict == "within_noise":
        return f"within the noise: {times} ({found.change_percent:+.1f} %, {_signed_text(found.ms)} ms {noise})"
    text = f"{_size_text(found)} ({times}, {noise or ('one run each' if of_captures else 'noise unknown')})"
    if noise is None and not of_captures:
        text += ", which may be chance: one side has fewer than two steps"
    cause = _cause_text(found.ms, breakdown)
    return f"{text}: {cause}" if cause else text


def _size_text(found: StepTimeDifference) -> str:
    """How much faster or slower."""
    if not found.ms or found.change_percent is None:
        return "no difference"
    words = f"{abs(found.change_percent):.1f} % {'faster' if found.ms < 0 else 'slower'}"
    is_much = found.speedup is not None and found.speedup >= _TWICE
    return f"{words}, {found.speedup:.2f} times as fast" if is_much else words


def _signed_text(value: float) -> str:
    return ("-" if value < 0 else "+") + number_text(abs(value))


def _cause_text(change_ms: float, breakdown: Sequence[Mapping[str, Cell]]) -> str:
    """The cause that changed most in the direction of the step time, in words."""
    direction = math.copysign(1.0, change_ms)
    most = max(breakdown, key=lambda row: direction * amount(row["difference_ms"]), default=None)
    change = amount(most["difference_ms"]) if most else 0.0
    if most is None or direction * change <= 0:
        return ""
    return f"{cause_words(str(most['cause']))} {'fell' if change < 0 else 'rose'} by {duration_text(abs(change))}"
