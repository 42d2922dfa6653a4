"""Stats as columns, held against the slow and obvious way to say the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.kernels import stats

OwnStats = list[tuple[int, int, int]]  # name, tag and value of each stat of an owner

owners = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2, 6, 33]), st.integers(-5, 5)), max_size=5),
    max_size=40,
)


def columns(table: list[OwnStats]) -> tuple[np.ndarray, ...]:
    rows = [stat for own in table for stat in own]
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in table])]).astype(np.int64)
    kinds = (np.int32, np.uint8, np.int64)
    return offsets, *(np.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds))


def wanted_of(own: OwnStats, name: int, tags: set[int]) -> int:
    return next((value for other, tag, value in reversed(own) if other == name and tag in tags), -1)


@given(owners, st.integers(0, 3), st.sets(st.sampled_from([0, 1, 2, 6])))
def test_a_stat_becomes_a_column(table: list[OwnStats], name: int, tags: set[int]) -> None:
    offsets, names, tag, value = columns(table)
    out = np.full(len(table), -1, np.int64)

    stats.put(offsets, names, tag, value, name, sum(1 << each for each in tags), out)

    assert out.tolist() == [wanted_of(own, name, tags) for own in table]


@given(owners.filter(bool), st.data())
def test_a_stat_of_some_owners_becomes_a_column(table: list[OwnStats], data: st.DataObject) -> None:
    offsets, names, tag, value = columns(table)
    rows = data.draw(st.lists(st.integers(0, len(table) - 1)))
    out = np.full(len(rows), -1, np.int64)

    stats.put_some(offsets, np.array(rows, np.int64), names, tag, value, 2, 1 << 1, out)

    assert out.tolist() == [wanted_of(table[row], 2, {1}) for row in rows]


@given(owners, st.integers(0, 3), st.integers(-5, 5))
def test_the_owners_of_a_stat_of_so_much_are_found(table: list[OwnStats], name: int, least: int) -> None:
    owner, value = stats.find(*columns(table), name, 1 << 1, least)

    last = [[value for other, tag, value in own if (other, tag) == (name, 1)][-1:] for own in table]
    expected = [(at, value) for at, values in enumerate(last) for value in values if value >= least]
    assert list(zip(np.asarray(owner).tolist(), np.asarray(value).tolist(), strict=True)) == expected


def test_columns_that_do_not_belong_together_are_refused() -> None:
    offsets, names, tag, value = columns([[(1, 1, 5)], [(1, 1, 6)]])

    with pytest.raises(IndexError, match="one length"):
        stats.put(offsets, names[:1], tag, value, 1, 2, np.zeros(2, np.int64))
    with pytest.raises(IndexError, match="a place for each owner"):
        stats.put(offsets, names, tag, value, 1, 2, np.zeros(1, np.int64))
    with pytest.raises(IndexError, match="no such owner"):
        stats.put_some(offsets, np.array([2]), names, tag, value, 1, 2, np.zeros(1, np.int64))
