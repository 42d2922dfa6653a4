"""Marks on the host and rows of steps on a device: which row is which step, and how much later."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import SORTS, draw

from stepscope.analysis.steps.step_clocks import step_clocks
from stepscope.model import HostTrace

PICTURE = """
    host main    | M10-----M11-----
    host main    |  L1      L2
    gpu0 s       |     K1--    K2--
    gpu0 Steps   |     W--     Q--
"""


def with_rows(first: str, second: str) -> HostTrace:
    """Two steps, and a row for each under names of the profiler's own."""
    return draw(PICTURE, {"W": replace(SORTS["W"], name=first), "Q": replace(SORTS["W"], name=second)})


@pytest.mark.parametrize(
    ("rows", "shift", "words"),
    [
        pytest.param(
            ("10", "11"),
            0,
            "numbers its steps as the marks do, and begins each step 4 ms after its mark on the host",
            id="same",
        ),
        pytest.param(("1", "2"), -9, "calls step 9 of the marks 0, and so on", id="from another number"),
        pytest.param(("7", "7"), None, "in its own way", id="no constant difference"),
    ],
)
def test_work_tells_which_row_is_which_step(rows, shift, words):
    clocks = step_clocks(with_rows(*rows))

    assert clocks is not None
    assert (clocks.rows, clocks.matched, clocks.shift) == (2, 2, shift)
    assert words in clocks.sentence()


def test_a_row_with_the_work_of_several_steps_is_none_of_them():
    clocks = step_clocks(draw(PICTURE.replace("W--     Q--", "W-----------"), {"W": replace(SORTS["W"], name="10")}))

    assert clocks is not None
    assert (clocks.matched, clocks.shift, clocks.delay_ps) == (0, None, None)
    assert "do not fit" in clocks.sentence()


@pytest.mark.parametrize("lost", ["host main", "gpu0 Steps"])
def test_one_clock_alone_has_nothing_to_be_compared_with(lost):
    rows = [row for row in PICTURE.splitlines() if lost not in row or "L1" in row]

    assert step_clocks(draw("\n".join(rows), {"Q": SORTS["W"]})) is None
