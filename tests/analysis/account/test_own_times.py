"""The table of own times by node and cause, held against a whole table of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.own_times import OwnTimes
from stepscope.model.arrays import F64

NODES = 6


def times(*parts: tuple[list[int], Cause, list[int]]) -> OwnTimes:
    return OwnTimes.gather(NODES, [(np.array(nodes), cause, np.array(ps)) for nodes, cause, ps in parts])


def table(own: OwnTimes) -> list[list[float]]:
    """For each node its times with input and Python."""
    found: list[list[float]] = own.take(np.arange(NODES, dtype=np.int32))[:, [Cause.INPUT, Cause.PYTHON]].tolist()
    return found


#    node 0  1  2  3  4  5
# input   4  .  7  .  .  1
# Python  .  5  2  .  .  .
OWN = times(([5], Cause.INPUT, [1]), ([0, 2, 3], Cause.INPUT, [4, 7, 0]), ([1, 2], Cause.PYTHON, [5, 2]))
FACTOR = np.array([0.5, 1.0, 2.0, 1.0, 1.0, 0.0])


def test_parts_in_any_order_become_one_table() -> None:
    assert table(OWN) == [[4, 0], [0, 5], [7, 2], [0, 0], [0, 0], [1, 0]]
    assert OWN.column(Cause.INPUT).tolist() == [4, 0, 7, 0, 0, 1]
    assert OWN.column(Cause.COMPILE).tolist() == [0] * NODES
    assert OWN.take(np.array([2, 2, 4]))[:, Cause.PYTHON].tolist() == [2, 2, 0]


def test_sums() -> None:
    chosen = np.array([True, False, True, True, False, False])

    assert OWN.sum() == 19
    assert OWN.sum_by_node().tolist() == [4, 5, 9, 0, 0, 1]
    assert OWN.sum_by_cause(chosen)[[Cause.INPUT, Cause.PYTHON]].tolist() == [11, 2]


def test_some_of_it() -> None:
    assert table(OWN.only(Cause.PYTHON)) == [[0, 0], [0, 5], [0, 2], [0, 0], [0, 0], [0, 0]]
    kept = OWN.select_nodes(np.array([True, False, False, True, True, True]))
    assert table(kept) == [[4, 0], [0, 0], [0, 0], [0, 0], [0, 0], [1, 0]]
    assert table(OWN.only(Cause.COMPILE)) == [[0, 0]] * NODES


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (OWN.scale(FACTOR), [[2, 0], [0, 5], [14, 4], [0, 0], [0, 0], [0, 0]]),
        (OWN.add(np.array([4, 0]), Cause.INPUT, 3), [[7, 0], [0, 5], [7, 2], [0, 0], [3, 0], [1, 0]]),
        (OWN.subtract(OWN, FACTOR), [[2, 0], [0, 0], [-7, -2], [0, 0], [0, 0], [1, 0]]),
        (OWN.subtract(OWN, FACTOR).drop_negative(), [[2, 0], [0, 0], [0, 0], [0, 0], [0, 0], [1, 0]]),
        (
            OWN.subtract(times(([3, 1], Cause.PYTHON, [1, 1])), FACTOR),
            [[4, 0], [0, 4], [7, 2], [0, -1], [0, 0], [1, 0]],
        ),
    ],
)
def test_changes(changed: OwnTimes, expected: list[list[float]]) -> None:
    assert table(changed) == expected


def test_a_change_leaves_the_table_that_it_is_made_from() -> None:
    before: F64 = OWN.take(np.arange(NODES))
    OWN.add(np.array([0]), Cause.INPUT, 9), OWN.subtract(OWN, FACTOR)

    assert (OWN.take(np.arange(NODES)) == before).all()
