"""By how much a figure may differ by chance: half of a 95 % interval, from steps and from runs.

Within a session the steps are the sample.  Several sessions of one side are a sample of runs; runs differ by more than
the steps within one.  The wider interval counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepscope.analysis.compare.welch import Sample, half_width, quantile, sample_of


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
