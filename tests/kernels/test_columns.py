"""Columns made from other columns in one pass."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.kernels import columns


def test_the_latest_end_and_how_often_each_value_occurs() -> None:
    start, duration = np.array([-5, 3, 1], np.int64), np.array([2, 1, 9], np.int64)
    counts = np.zeros(256, np.int64)
    columns.count(np.array([7, 0, 7], np.uint8), counts)

    assert columns.latest_end(start, duration) == 10
    assert (counts[0], counts[7], counts.sum()) == (1, 2, 3)


def test_a_row_that_is_not_in_the_table_is_refused() -> None:
    for row in (-1, 2):
        with pytest.raises(IndexError, match="no such row"):
            columns.look_up_rows(np.zeros(2, np.uint8), np.array([0, row], np.int32), np.zeros(2, np.uint8))
