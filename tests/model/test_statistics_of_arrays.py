"""Different values, used rows, medians and percentiles are those of numpy, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.model.arrays import distinct, median, percentiles, union, used_rows

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
    assert union(np.array(numbers, np.int64), np.array([4, 4])).tolist() == sorted({*numbers, 4})


@given(st.lists(st.integers(0, 9), max_size=40))
def test_used_rows_ascend_for_an_index_of_any_type(rows: list[int]) -> None:
    for index in (np.array(rows, np.int32), np.array(rows, np.int64), np.array(rows, np.int32)[::2]):
        assert used_rows(index, 10).tolist() == np.unique(index).tolist()


def test_an_index_outside_of_the_table_is_refused() -> None:
    with pytest.raises(IndexError):
        used_rows(np.array([0, 10], np.int32), 10)
