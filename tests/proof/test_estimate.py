"""The figure of pairs of blocks, and its interval, on drawn numbers."""

from __future__ import annotations

import math
import random

import pytest

from stepscope.proof.estimate import estimate, spread_of


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
        (10, 8),  # the published 9, and one less from here on: the interval is a little wider
        (15, 25),
        (20, 52),
        (25, 89),
    ],
)
def test_the_interval_ends_at_the_published_rank(count, row):
    values = [(-1) ** at * (10.0 + at * at) for at in range(count)]  # neighbours are not alike
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


def test_the_interval_is_wider_where_neighbours_are_alike():
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    drifting, apart = estimate(values), estimate([0.0, 7.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0])
    assert drifting is not None
    assert apart is not None
    assert drifting.value == apart.value
    assert drifting.half_width > 1.5 * apart.half_width


@pytest.mark.parametrize("alike", [0.0, 0.3])
def test_a_measurement_that_stops_when_it_is_narrow_holds_the_truth(alike):
    drawn = random.Random(35)

    def measure() -> bool:
        last, values = drawn.gauss(0, 1), []
        while True:
            last = alike * last + math.sqrt(1 - alike**2) * drawn.gauss(0, 1)
            values.append(last)
            found = estimate(values)
            if found is not None and len(values) >= 8 and (found.half_width < 0.7 or len(values) == 40):
                return found.least <= 0 <= found.most

    assert sum(measure() for _ in range(200)) / 200 >= 0.88
