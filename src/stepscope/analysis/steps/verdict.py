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
        label: the first words of the headline, such as `input-bound`.
        said: what the headline says of the limit; empty where the label says all.
        cause: the cause of the account that it is; None where no account was made.
        evidence: what stands behind the headline, a sentence each.
        busy: of a busy machine, how much of the step waits for a free core, which is said before the limit.
        late: the rank, or the stage of a pipeline, that the others wait for; empty where none is.
    """

    name: str
    share_percent: float | None
    label: str
    said: str = ""
    cause: str | None = None
    evidence: tuple[str, ...] = ()
    busy: str = ""
    late: str = ""

    @property
    def head(self) -> str:
        """What the headline begins with: who is late, whether the machine is busy, and the label."""
        label = f"machine busy, else {self.label}" if self.busy else self.label
        return f"{self.late} holds up the others, {label}" if self.late else label

    @property
    def rest(self) -> str:
        """What follows it."""
        return f"{self.busy}; of the rest, {self.said}" if self.busy else self.said

    @property
    def sentence(self) -> str:
        """The headline: at most 14 words and one number."""
        return f"{self.head}: {self.rest}" if self.rest else self.head

    @property
    def lines(self) -> tuple[str, ...]:
        """The headline, and the evidence that it does not state already."""
        return (self.sentence, *(each for each in self.evidence if each not in self.sentence))


UNKNOWN = Verdict("unknown", None, "unknown", "no steps in this profile take time")
