"""How soon a sampler gets the interpreter's lock, and that a program's own threads change places as before."""

from __future__ import annotations

import sys

import pytest

from stepscope.capture.tracers.stack_samples import SwitchInterval
from stepscope.kernels.observe import switch_interval

USUAL_S = 0.005


@pytest.fixture(autouse=True)
def usual_interval():
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_S)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize(("computing", "is_short"), [(-1, False), (1, True), (2, False)])
def test_the_interval_is_short_while_one_thread_computes(computing, is_short):
    interval = SwitchInterval()

    interval.adapt(computing)

    assert (switch_interval() < USUAL_S / 10) == is_short
    assert sys.getswitchinterval() == pytest.approx(USUAL_S)
    interval.give_back()
    assert switch_interval() == pytest.approx(USUAL_S)


def test_it_is_given_back_once_a_second_thread_computes():
    interval = SwitchInterval()
    interval.adapt(1)

    interval.adapt(2)

    assert switch_interval() == pytest.approx(USUAL_S)


def test_an_interval_that_the_program_has_set_meanwhile_stays():
    interval = SwitchInterval()
    interval.adapt(1)
    sys.setswitchinterval(0.02)

    interval.give_back()

    assert sys.getswitchinterval() == pytest.approx(0.02)
