"""Columns of events in one pass, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.kernels import columns, nesting


@given(st.lists(st.sampled_from([0, 1, 7, 254, 255]), max_size=60))
def test_rows_by_value_are_those_of_a_stable_sort(drawn: list[int]) -> None:
    values, offsets, rows = np.array(drawn, np.uint8), np.empty(257, np.int64), np.empty(len(drawn), np.int32)
    columns.order_by(values, offsets, rows)
    assert rows.tolist() == np.argsort(values, kind="stable").tolist()
    assert np.diff(offsets).tolist() == np.bincount(values, minlength=256).tolist()


def test_rows_by_value_need_room() -> None:
    with pytest.raises(IndexError, match="no room"):
        columns.order_by(np.zeros(3, np.uint8), np.empty(256, np.int64), np.empty(3, np.int32))


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 5), st.booleans()), max_size=9))
def test_the_extent_of_events_is_from_their_first_start_to_their_last_end(drawn: list[tuple[int, int, bool]]) -> None:
    start, duration = (np.array([each[at] for each in drawn], np.int64) for at in (0, 1))
    chosen = np.array([each[2] for each in drawn], np.bool_)
    first, last = columns.extent(start, duration, chosen)
    if chosen.any():
        assert (first, last) == (start[chosen].min(), (start + duration)[chosen].max())
    else:
        assert first > last


@given(st.lists(st.tuples(st.integers(-1, 8), st.integers(0, 3)), max_size=20))
def test_ranked_events_inside_one_of_at_least_their_rank_are_no_outer_ones(drawn: list[tuple[int, int]]) -> None:
    parent = [min(above, at - 1) for at, (above, _) in enumerate(drawn)]
    rank = [rank for _, rank in drawn]
    found = np.asarray(nesting.outer_rows(np.array(rank, np.uint8), np.array(parent, np.int32)))
    inside = [above >= 0 and rank[above] >= own for above, own in zip(parent, rank, strict=True)]
    assert found.tolist() == [at for at, own in enumerate(rank) if own and not inside[at]]
