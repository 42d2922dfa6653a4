"""A figure and its interval from pairs of blocks.

Blocks of a busy machine have outliers, and their noise has no known form.  But the two blocks of a pair run in random
order, so that without an effect their difference is as likely positive as negative.  That is all that the estimator
of Hodges and Lehmann (1963), the median of the means of all pairs of differences, and the interval of Tukey that
belongs to Wilcoxon's signed ranks need; both bear a quarter of wild values, and lose 5 % against means where the noise
is normal (Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, chapter 3).

A measurement that stops when its interval is narrow keeps the coverage, in the limit of narrow ones (Chow and Robbins,
1965): the width says nothing about which side the error is on.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement
from statistics import NormalDist, median

from stepscope.proof.record import Estimate

COVERAGE = 0.95
_EXACT = 30  # differences, up to which the distribution of the ranks is counted out


def estimate(differences: Sequence[float], coverage: float = COVERAGE) -> Estimate | None:
    """The centre of differences and its interval; None without any.

    >>> estimate([1.0, 1.1, 0.9, 1.2, 0.8, 1.05, 0.95, 40.0]).value
    1.025
    """
    if not differences:
        return None
    means = sorted((one + other) / 2 for one, other in combinations_with_replacement(differences, 2))
    outside = _rank_outside(len(differences), coverage)
    if outside == 0:
        return Estimate(median(means), -math.inf, math.inf, len(differences))
    return Estimate(median(means), means[outside - 1], means[-outside], len(differences))


def _rank_outside(count: int, coverage: float) -> int:
    """The number of the mean, from either end, that bounds the interval; 0 if even the outermost lie too close."""
    tail = (1 - coverage) / 2
    if count > _EXACT:
        mean = count * (count + 1) / 4
        deviation = math.sqrt(mean * (2 * count + 1) / 6)
        return max(math.floor(mean - NormalDist().inv_cdf(1 - tail) * deviation), 0)
    passed = 0.0
    for rank, ways in enumerate(_count_rank_sums(count)):
        passed += ways / 2**count
        if passed > tail:
            return rank
    raise AssertionError("the probabilities add up to one")


@functools.lru_cache
def _count_rank_sums(count: int) -> tuple[int, ...]:
    """In how many ways signs of the ranks 1 to `count` give each sum of the positive ones."""
    ways = [1]
    for rank in range(1, count + 1):
        ways = [
            (ways[at] if at < len(ways) else 0) + (ways[at - rank] if at >= rank else 0)
            for at in range(len(ways) + rank)
        ]
    return tuple(ways)


def spread_of(values: Sequence[float]) -> float:
    """The standard deviation that values would have without their outliers: from the median distance of the median."""
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)


def drift_of(times: Sequence[float], values: Sequence[float]) -> float:
    """By how much values grow with time: the median slope between any two of them (Theil and Sen)."""
    slopes = [
        (values[later] - values[earlier]) / (times[later] - times[earlier])
        for earlier, later in combinations(range(len(times)), 2)
        if times[later] != times[earlier]
    ]
    return median(slopes) if slopes else 0.0
