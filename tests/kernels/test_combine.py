"""Kinds and traits of events by combinations, held against the slow and obvious way to say the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.kernels import combine

events = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([0, 1, 0x8000, 0xFFFF])), max_size=30)


def columns(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kinds = (np.int32, np.int32, np.uint16)
    event_type, line, flags = (np.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds))
    return event_type, line, flags


@given(events)
def test_each_event_gets_the_kind_of_its_combination(rows: list[tuple[int, int, int]]) -> None:
    event_type, line, flags = columns(rows)
    of_type, of_line, of_flags = (np.array(each, np.int32) for each in ([0, 1, 2, 3], [0, 4, 8], [0] * (1 << 16)))
    of_flags[[0, 1, 0x8000, 0xFFFF]] = [0, 12, 24, 36]
    cell, found, seen = np.empty(len(rows), np.int32), np.zeros(48, np.uint8), np.zeros(1 << 16, np.uint8)
    kind, traits = np.empty(len(rows), np.uint8), np.empty(len(rows), np.uint8)

    combine.seen(flags, seen)
    combine.combine(event_type, line, flags, of_type, of_line, of_flags, cell, found)
    of_cell = np.arange(48, dtype=np.uint8)
    combine.apply(cell, event_type, of_cell, of_cell << 1, np.array([0, 1, 0, 1], np.uint8), kind, traits)

    sums = [of_type[a] + of_line[b] + of_flags[c] for a, b, c in rows]
    assert np.flatnonzero(seen).tolist() == sorted({row[2] for row in rows})
    assert np.flatnonzero(found).tolist() == sorted(set(sums))
    assert kind.tolist() == sums
    assert traits.tolist() == [2 * cell | a % 2 for cell, (a, _, _) in zip(sums, rows, strict=True)]


@pytest.mark.parametrize("row", [(4, 0, 0), (-1, 0, 0), (0, 3, 0), (0, 0, 7)])
def test_a_type_a_line_and_a_combination_that_do_not_exist_are_refused(row: tuple[int, int, int]) -> None:
    of_flags = np.zeros(1 << 16, np.int32)
    of_flags[7] = 100

    with pytest.raises(IndexError, match="there is no such"):
        combine.combine(
            *columns([row]), np.zeros(4, np.int32), np.zeros(3, np.int32), of_flags, np.empty(1, np.int32),
            np.zeros(10, np.uint8),
        )  # fmt: skip
