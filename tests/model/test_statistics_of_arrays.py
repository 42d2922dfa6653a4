"""Different values, medians and percentiles are those of numpy, to the last bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.model.arrays import distinct, median, percentiles

_numbers = st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=40)
_floats = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=40)


@given(_numbers, _floats)
def test_medians_are_those_of_numpy(numbers: list[int], floats: list[float]) -> None:
    assert median(numbers) == float(np.median(numbers))
    assert median(np.array(floats)) == float(np.median(floats))


@given(_numbers, _floats, st.lists(st.integers(0, 100), min_size=1, max_size=4))
def test_percentiles_are_those_of_numpy(numbers: list[int], floats: list[float], percents: list[int]) -> None:
    table = np.array(floats + floats[::-1]).reshape(-1, 2)

    assert percentiles(np.array(numbers), percents).tolist() == np.percentile(numbers, percents).tolist()
    assert percentiles(table, percents).tolist() == np.percentile(table, percents, axis=0).tolist()


@given(st.lists(st.integers(-5, 5), max_size=40))
def test_different_values_ascend(numbers: list[int]) -> None:
    assert distinct(np.array(numbers, np.int64)).tolist() == sorted(set(numbers))
