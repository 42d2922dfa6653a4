"""Columns of events in one pass, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.kernels import columns


@given(st.lists(st.sampled_from([0, 1, 7, 254, 255]), max_size=60))
def test_rows_by_value_are_those_of_a_stable_sort(drawn: list[int]) -> None:
    values, offsets, rows = np.array(drawn, np.uint8), np.empty(257, np.int64), np.empty(len(drawn), np.int32)
    columns.order_by(values, offsets, rows)
    assert rows.tolist() == np.argsort(values, kind="stable").tolist()
    assert np.diff(offsets).tolist() == np.bincount(values, minlength=256).tolist()


def test_rows_by_value_need_room() -> None:
    with pytest.raises(IndexError, match="no room"):
        columns.order_by(np.zeros(3, np.uint8), np.empty(256, np.int64), np.empty(3, np.int32))
