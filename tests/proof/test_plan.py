"""Blocks, their order, and the delays of a plan."""

from __future__ import annotations

import pytest

from stepscope.proof.plan import changed_first, choose_delay, choose_dose, choose_steps


@pytest.mark.parametrize(
    ("step_s", "block_s", "steps"),
    [(0.05, 0.5, 10), (0.05, 1.5, 30), (0.0001, 0.5, 1000), (3.0, 0.5, 6)],
)
def test_a_block_takes_about_as_long_as_it_is_meant_to(step_s, block_s, steps):
    assert choose_steps(step_s, block_s) == steps


def test_the_order_is_random_and_the_same_for_all_who_count_alike():
    order = [changed_first(number) for number in range(200)]
    assert order == [changed_first(number) for number in range(200)]
    assert 70 < sum(order) < 130
    assert order != [changed_first(number, seed=1) for number in range(200)]


def test_a_delay_grows_with_the_noise_and_stays_within_half_a_step():
    calm = choose_delay([0.1, 0.1001, 0.0999] * 5, 4)
    noisy = choose_delay([0.1, 0.102, 0.098] * 5, 4)
    wild = choose_delay([0.1, 0.19, 0.01] * 5, 4)
    assert calm == pytest.approx(0.005)
    assert calm < noisy < wild == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("calls", "seconds", "every"),
    [
        (1.0, 0.004, 1),
        (4.0, 0.001, 1),
        (1000.0, 0.0005, 125),  # 8 delays in a step, none too short
        (0.1, 0.04, 1),  # called in every tenth step
    ],
)
def test_the_delays_of_a_step_add_up(calls, seconds, every):
    dose = choose_dose(0.004, calls)
    assert (dose.seconds, dose.every) == (pytest.approx(seconds), every)
