"""Cells of whole columns, held against those of one value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.report.columns import percents, rows_in_ms
from stepscope.report.sections import percent, round_ms

TIMES = st.integers(0, 1 << 60)


@given(st.lists(TIMES), st.integers(-1, 1 << 60))
def test_percents_of_a_column_are_those_of_its_parts(parts: list[int], whole: int) -> None:
    assert percents(parts, whole) == [percent(part, whole) for part in parts]


@given(st.lists(st.tuples(TIMES, TIMES, TIMES)))
def test_times_of_rows_are_those_of_each(rows: list[tuple[int, int, int]]) -> None:
    assert rows_in_ms(rows) == [[round_ms(ps) for ps in row] for row in rows]
