"""Settings in processes of their own: which are tried, and what the rounds say."""

from __future__ import annotations

import pytest

from stepscope.errors import UsageError
from stepscope.proof.knobs import Setting, TimedRun, choose_settings, order_of_round, parse_knob, prove_settings

ONE, TWO = Setting("workers", "0"), Setting("workers", "2")


def test_the_settings_of_what_a_program_has_are_tried():
    assert [each.name for each in choose_settings(("torch", "loaders"), 4, {"OMP_NUM_THREADS": "4"})] == [
        "OMP_NUM_THREADS=1", "OMP_NUM_THREADS=2", "workers=0", "workers=2", "workers=4",
    ]  # fmt: skip
    assert [each.name for each in choose_settings(("jax",), 2, {})] == ["NPROC=1", "NPROC=2"]
    assert choose_settings((), 8, {}) == []


def test_knobs_of_objects_are_no_variables_of_the_environment():
    assert parse_knob("workers=0,2") == [ONE, TWO]
    assert TWO.environment == {}
    assert parse_knob("XLA_FLAGS=--xla_a=1")[0].environment == {"XLA_FLAGS": "--xla_a=1"}


@pytest.mark.parametrize("text", ["workers", "workers=", "=2", "workers=two", "autotune=maybe"])
def test_a_knob_without_a_value_that_it_can_have_is_refused(text):
    with pytest.raises(UsageError):
        parse_knob(text)


def test_each_round_gives_a_ratio_and_six_an_interval():
    #            as it is  workers=0  workers=2
    step_ms = [
        (20.0, 20.0, 10.0),
        (22.0, 22.0, 11.0),
        (40.0, 40.0, 20.0),  # the machine was busy
        (20.0, 21.0, 9.0),
        (20.0, 19.0, 10.0),
        (20.0, 20.0, 10.0),
    ]
    rounds = [
        [TimedRun("", plain, 100), TimedRun(ONE.name, one, 100), TimedRun(TWO.name, two, 100)]
        for plain, one, two in step_ms
    ]
    best, same = prove_settings("train.py", [ONE, TWO], rounds)
    assert (best.place, best.value, best.pairs, best.steps) == ("workers=2", pytest.approx(2.0), 6, 1200)
    assert best.least <= 2.0 <= best.most
    assert (same.place, same.value) == ("workers=0", pytest.approx(1.0))
    few = prove_settings("train.py", [TWO], rounds[:5])[0]
    assert (few.value, few.least, few.most) == (pytest.approx(2.0), None, None)


def test_what_changed_nothing_or_failed_has_a_reason_and_no_figure():
    rounds = [[TimedRun("", 20.0, 100), TimedRun(ONE.name, 20.0, 100, note="the program did not create a DataLoader")]]
    proof = prove_settings("train.py", [ONE], rounds)[0]
    assert (proof.value, proof.note) == (None, "the program did not create a DataLoader")
    assert prove_settings("train.py", [ONE], [])[0].note == "no process ended with a time"


def test_the_order_of_a_round_is_random_and_the_same_on_every_machine():
    orders = [order_of_round((None, ONE, TWO), number) for number in range(20)]
    assert orders == [order_of_round((None, ONE, TWO), number) for number in range(20)]
    assert {each[0] for each in orders} == {None, ONE, TWO}


def test_the_answer_of_a_process_reads_back():
    run = TimedRun("workers=2", 12.5, 40, ("loaders", "torch"), "/logs/run", "")
    assert TimedRun.from_json(run.to_json()) == run
