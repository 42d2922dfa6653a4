"""The figure of pairs of blocks, and its interval, on drawn numbers."""

from __future__ import annotations

import math
import random

import pytest

from stepscope.proof.estimate import drift_of, estimate, spread_of


def test_the_figure_of_equal_differences_is_their_value():
    found = estimate([2.0] * 8)
    assert found is not None
    assert (found.value, found.least, found.most, found.pairs) == (2.0, 2.0, 2.0, 8)


def test_a_quarter_of_wild_values_moves_the_figure_within_the_others():
    found = estimate([1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 500.0, 900.0])
    assert found is not None
    assert 0.9 <= found.value <= 1.1


@pytest.mark.parametrize(
    ("count", "row"),
    [
        (6, 1),  # the published bounds of the signed ranks at 95 %: the row counts from the outermost mean
        (8, 4),
        (10, 9),
        (15, 26),
        (20, 53),
        (25, 90),
    ],
)
def test_the_interval_ends_at_the_published_rank(count, row):
    values = [2.0**at for at in range(count)]
    means = sorted((one + other) / 2 for at, one in enumerate(values) for other in values[at:])
    found = estimate(values)
    assert found is not None
    assert (found.least, found.most) == (means[row - 1], means[-row])


def test_five_pairs_have_no_interval():
    found = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found is not None
    assert (found.value, found.least, found.most) == (3.0, -math.inf, math.inf)


def test_no_difference_has_no_figure():
    assert estimate([]) is None


@pytest.mark.parametrize("count", [8, 40])
def test_the_interval_holds_the_truth_as_often_as_it_says(count):
    drawn = random.Random(count)
    noise = [
        [drawn.gauss(0, 1) + (drawn.random() < 0.1) * drawn.gauss(0, 30) for _ in range(count)] for _ in range(400)
    ]
    found = [estimate([3 + each for each in row]) for row in noise]
    holds = sum(each is not None and each.least <= 3 <= each.most for each in found)
    assert 0.92 <= holds / 400 <= 0.99


def test_the_spread_is_the_standard_deviation_without_outliers():
    drawn = random.Random(1)
    values = [drawn.gauss(10, 2) for _ in range(4000)]
    assert spread_of(values) == pytest.approx(2, rel=0.1)
    assert spread_of([*values[:100], 10_000.0]) == pytest.approx(spread_of(values[:100]), rel=0.1)


def test_the_drift_is_the_slope_without_outliers():
    assert drift_of([0, 1, 2, 3, 4], [10, 12, 14, 99, 18]) == 2
    assert drift_of([0], [10]) == 0
