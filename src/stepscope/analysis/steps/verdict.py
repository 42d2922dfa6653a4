"""A verdict as a value, and its thresholds, which are those of XProf's bottleneck analysis."""

from __future__ import annotations

from stepscope.records import dataclass

HIGHLY_INPUT_BOUND = 20.0
MODERATELY_INPUT_BOUND = 5.0
LEAST_PERCENT = 3.0  # of a step: a smaller gain is no bottleneck
LARGE_SHARE = 15.0  # percent of the step from which launches, collectives, compilation and host time matter


@dataclass(frozen=True)
class Verdict:
    """What limits the run.

    Attributes:
        name: one of the contract's verdicts.
        share_percent: the share of the step that the limit takes; None for an unknown one without a share.
        sentence: the headline: at most 14 words and one number.
        cause: the cause of the account that it is; None where no account was made.
        evidence: what stands behind the headline, a sentence each.
    """

    name: str
    share_percent: float | None
    sentence: str
    cause: str | None = None
    evidence: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The headline, and the evidence that it does not state already."""
        return (self.sentence, *(each for each in self.evidence if each not in self.sentence))


UNKNOWN = Verdict("unknown", None, "unknown: no steps in this profile take time")
