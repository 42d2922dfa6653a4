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
        share_percent: the share of the time that decided the verdict; None for "unknown".
        threshold_percent: the threshold that the share exceeded; None without one.
        sentence: the verdict in words.
        between: the two verdicts that cannot be told apart, if the shares are within the noise; else empty.
    """

    name: str
    share_percent: float | None
    threshold_percent: float | None
    sentence: str
    between: tuple[str, ...] = ()


UNKNOWN = Verdict("unknown", None, None, "unknown: the profile holds no steps that take time")


def judge_first_calls(percent: float, has_steps: bool, only: bool) -> Verdict:
    """The verdict on a capture of first calls, of which `percent` is tracing and compiling.

    Args:
        has_steps: they are a marked step; else the whole capture.
        only: no later call was recorded.
    """
    where = "the only step" if has_steps else "the capture"
    return Verdict(
        "unknown",
        round(percent, 4),
        None,
        f"unknown: {'only first calls were captured' if only else 'hardly more than first calls was captured'}, and"
        f" {percent:.1f} % of {where} is tracing and compiling, which happens once; what limits later steps was not"
        " recorded",
    )
