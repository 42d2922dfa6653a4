"""Where the start of blocks ends, on drawn courses of step times."""

from __future__ import annotations

import random

import pytest

from stepscope.proof.pairs import Block, Pair, compare_pairs
from stepscope.proof.settling import FEWEST, find_settled


def draw_blocks(course, count=8, noise=0.3):
    drawn = random.Random(len(course))
    return [[drawn.gauss(step, noise) for step in course] for _ in range(count)]


@pytest.mark.parametrize(
    ("course", "least", "most"),
    [
        ([5.0] * 40, FEWEST, 20),  # nothing to leave out: whatever is left out does no harm
        ([9.0] * 12 + [5.0] * 40, 12, 26),  # a pipeline that fills its buffers takes processors from the step
        ([2.0] * 4 + [5.0] * 40, 4, 22),  # batches that lie ready
        ([9.0 - at / 4 for at in range(16)] + [5.0] * 40, 11, 28),
        ([5.0] * 3, FEWEST, FEWEST),
        ([5.0], 0, 0),
    ],
)
def test_what_a_block_shows_of_the_one_before_is_left_out(course, least, most):
    assert least <= find_settled(draw_blocks(course)) <= most


def pairs_of(plain, changed, count=8):
    blocks = zip(draw_blocks(plain, count), draw_blocks(changed, count), strict=True)
    return [Pair(Block(one), Block(other, [0.0] * len(other))) for one, other in blocks]


def test_the_gain_is_that_of_the_settled_steps():
    found = compare_pairs(pairs_of([5.0] * 5 + [12.0] * 30, [9.0] * 8 + [4.0] * 50), False, 0.0, 12.0)
    assert found.found.value == pytest.approx(3, rel=0.05)
    assert found.found.least <= 3 <= found.found.most
    assert found.is_settled


@pytest.mark.parametrize(
    ("plain", "changed", "usual_s"),
    [
        ([10.0] * 30, [9.0 - at / 10 for at in range(50)], 10.0),  # it still becomes quicker
        ([4.0] * 30, [4.0] * 30, 10.0),  # plain blocks live on what the changed ones left ready
    ],
)
def test_blocks_that_are_too_short_are_noticed(plain, changed, usual_s):
    assert not compare_pairs(pairs_of(plain, changed), False, 0.0, usual_s).is_settled


def test_waits_for_a_processor_are_taken_off_steps_with_delays():
    """The thread of the steps waits for a fifth of its time in the changed blocks, and for none in the others."""
    plain, changed = draw_blocks([10.0] * 30), draw_blocks([15.0] * 30)
    pairs = [
        Pair(Block(one), Block(other, [2.0] * 30, queued_s=0.2 * sum(other)))
        for one, other in zip(plain, changed, strict=True)
    ]
    assert compare_pairs(pairs, True, 0.0, 10.0).found.value == pytest.approx(1, abs=0.1)
