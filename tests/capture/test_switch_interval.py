"""How soon a sampler gets the interpreter's lock, and that a program's own threads change places as before."""

from __future__ import annotations

import sys

import pytest

from stepscope.capture.tracers import switching
from stepscope.capture.tracers.switching import SwitchInterval
from stepscope.kernels.observe import switch_interval

USUAL_S = 0.005

# What each thread ran in the 10 ms before each of two samples, in ms -> whether the interval is short afterwards.
PROGRAMS = {
    "one thread computes": ({1: 9}, True),
    "one computes beside threads that wait": ({1: 9, 2: 0, 3: 0.1}, True),
    "two compete": ({1: 5, 2: 5}, False),
    "all wait": ({1: 0, 2: 0}, False),
}


@pytest.fixture(autouse=True)
def usual_interval():
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_S)
    yield
    sys.setswitchinterval(before)


def sampled(monkeypatch: pytest.MonkeyPatch, ran_ms: dict[int, float], switching_: SwitchInterval) -> None:
    for sample in (1, 2):
        monkeypatch.setattr(switching, "processor_time_ns", lambda number, at=sample: int(at * 1e6 * ran_ms[number]))
        switching_.adapt(ran_ms, sample * 10_000_000)


@pytest.mark.parametrize(("ran_ms", "is_short"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_interval_is_short_while_one_thread_computes(monkeypatch, ran_ms, is_short):
    interval = SwitchInterval()

    sampled(monkeypatch, ran_ms, interval)

    assert (switch_interval() < USUAL_S / 10) == is_short
    assert sys.getswitchinterval() == pytest.approx(USUAL_S)
    interval.give_back()
    assert switch_interval() == pytest.approx(USUAL_S)


def test_it_is_given_back_once_a_second_thread_computes(monkeypatch):
    interval = SwitchInterval()
    sampled(monkeypatch, {1: 9}, interval)

    sampled(monkeypatch, {1: 5, 2: 5}, interval)

    assert switch_interval() == pytest.approx(USUAL_S)


def test_an_interval_that_the_program_has_set_meanwhile_stays(monkeypatch):
    interval = SwitchInterval()
    sampled(monkeypatch, {1: 9}, interval)
    sys.setswitchinterval(0.02)

    interval.give_back()

    assert sys.getswitchinterval() == pytest.approx(0.02)


def test_a_system_that_counts_no_threads_keeps_its_interval(monkeypatch):
    def refuse(number: int) -> int:
        raise OSError(number)

    monkeypatch.setattr(switching, "processor_time_ns", refuse)

    SwitchInterval().adapt([1], 1)

    assert switch_interval() == pytest.approx(USUAL_S)
