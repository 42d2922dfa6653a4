"""The confidence interval of the difference of two means: Welch's, for samples of unequal size and spread.

B. L. Welch, "The generalization of 'Student's' problem when several different population variances are involved",
Biometrika 34 (1947); the degrees of freedom are those of Welch and Satterthwaite.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from stepscope.records import dataclass

CONFIDENCE = 0.95
_HALVINGS = 60  # of the range that holds a quantile: down to the last digit of a float
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Sample:
    """Size, mean and sample standard deviation (n - 1), which is unknown for fewer than two values."""

    count: int
    mean: float | None
    std: float | None


def sample_of(values: Sequence[float]) -> Sample:
    """The figures of some values."""
    mean = math.fsum(values) / len(values) if values else None
    return Sample(len(values), mean, statistics.stdev(values) if len(values) > 1 else None)


def half_width(one: Sample, other: Sample) -> float | None:
    """Half of the 95 % interval of the difference of the means; None where one side has fewer than two values."""
    if one.std is None or other.std is None:
        return None
    parts = [side.std**2 / side.count for side in (one, other) if side.std is not None]
    variance = sum(parts)
    if variance == 0:
        return 0.0
    # Shares, since squares of tiny variances underflow.
    spread = sum((part / variance) ** 2 / (side.count - 1) for part, side in zip(parts, (one, other), strict=True))
    return quantile(1 / spread) * math.sqrt(variance)


def quantile(freedom: float) -> float:
    """Student's t with `CONFIDENCE` of the values between it and its negative, for 1 or more degrees of freedom.

    With t = sqrt(freedom) * tan(a) the density becomes a power of cos(a), which is smooth, and is integrated as such.
    """
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    low, high = 0.0, math.atan(12.71 / math.sqrt(freedom))  # the quantile for 1 degree, the largest there is
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        between = angle * scale * float(_WEIGHTS @ np.cos(angle * (_NODES + 1) / 2) ** (freedom - 1))
        low, high = (angle, high) if between < CONFIDENCE else (low, angle)
    return math.sqrt(freedom) * math.tan(low)
