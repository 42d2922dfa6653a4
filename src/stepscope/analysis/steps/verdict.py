"""A verdict as a value, its thresholds, which are those of XProf's bottleneck analysis, and the verdict on a capture of
which no account tells anything.
"""

from __future__ import annotations

from stepscope.records import dataclass

HIGHLY_INPUT_BOUND = 20.0
MODERATELY_INPUT_BOUND = 5.0
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


UNKNOWN = Verdict("unknown", None, "unknown: no steps in this profile take time")


def judge_first_calls(percent: float, has_steps: bool, only: bool) -> Verdict:
    """The verdict on a capture of first calls, of which `percent` is tracing and compiling.

    Args:
        has_steps: they are a marked step; else the whole capture.
        only: no later call was recorded.
    """
    where = "the step" if has_steps else "the capture"
    return Verdict(
        "unknown",
        round(percent, 4),
        f"unknown: {'only first calls were' if only else 'hardly more than first calls was'} captured; {percent:.1f} %"
        f" of {where} compiles",
        "compile",
        ("tracing and compiling happen once, so what limits later steps was not recorded",),
    )
