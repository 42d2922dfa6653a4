"""Proofs: figures of pairs of blocks, where blocks begin to count, what is tried, and proofs as files and sentences."""

from __future__ import annotations

import math
import os
import random

import pytest

from stepscope.errors import InputError, UsageError
from stepscope.proof import record
from stepscope.proof.estimate import estimate, spread_of
from stepscope.proof.knobs import Setting, TimedRun, choose_settings, order_of_round, parse_knob, prove_settings
from stepscope.proof.pairs import FEWEST, Block, Pair, compare_pairs, find_settled
from stepscope.proof.plan import changed_first, choose_delay, choose_dose, choose_steps
from stepscope.proof.record import ABLATION, DELAY, Proof, read_proofs, write_proofs


def test_the_figure_of_equal_differences_is_their_value():
    found = estimate([2.0] * 8)
    assert found is not None
    assert (found.value, found.least, found.most, found.pairs) == (2.0, 2.0, 2.0, 8)


def test_a_quarter_of_wild_values_moves_the_figure_within_the_others():
    found = estimate([1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 500.0, 900.0])
    assert found is not None
    assert 0.9 <= found.value <= 1.1


@pytest.mark.parametrize(
    ("count", "row"),
    [
        (6, 1),  # the published bounds of the signed ranks at 95 %: the row counts from the outermost mean
        (8, 4),
        (10, 8),  # the published 9, and one less from here on: the interval is a little wider
        (15, 25),
        (20, 52),
        (25, 89),
    ],
)
def test_the_interval_ends_at_the_published_rank(count, row):
    values = [(-1) ** at * (10.0 + at * at) for at in range(count)]  # neighbours are not alike
    means = sorted((one + other) / 2 for at, one in enumerate(values) for other in values[at:])
    found = estimate(values)
    assert found is not None
    assert (found.least, found.most) == (means[row - 1], means[-row])


def test_five_pairs_have_no_interval():
    found = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found is not None
    assert (found.value, found.least, found.most) == (3.0, -math.inf, math.inf)


def test_no_difference_has_no_figure():
    assert estimate([]) is None


@pytest.mark.parametrize("count", [8, 40])
def test_the_interval_holds_the_truth_as_often_as_it_says(count):
    drawn = random.Random(count)
    noise = [
        [drawn.gauss(0, 1) + (drawn.random() < 0.1) * drawn.gauss(0, 30) for _ in range(count)] for _ in range(400)
    ]
    found = [estimate([3 + each for each in row]) for row in noise]
    holds = sum(each is not None and each.least <= 3 <= each.most for each in found)
    assert 0.92 <= holds / 400 <= 0.99


def test_the_spread_is_the_standard_deviation_without_outliers():
    drawn = random.Random(1)
    values = [drawn.gauss(10, 2) for _ in range(4000)]
    assert spread_of(values) == pytest.approx(2, rel=0.1)
    assert spread_of([*values[:100], 10_000.0]) == pytest.approx(spread_of(values[:100]), rel=0.1)


def test_the_interval_is_wider_where_neighbours_are_alike():
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    drifting, apart = estimate(values), estimate([0.0, 7.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0])
    assert drifting is not None
    assert apart is not None
    assert drifting.value == apart.value
    assert drifting.half_width > 1.5 * apart.half_width


@pytest.mark.parametrize("alike", [0.0, 0.3])
def test_a_measurement_that_stops_when_it_is_narrow_holds_the_truth(alike):
    drawn = random.Random(35)

    def measure() -> bool:
        last, values = drawn.gauss(0, 1), []
        while True:
            last = alike * last + math.sqrt(1 - alike**2) * drawn.gauss(0, 1)
            values.append(last)
            found = estimate(values)
            if found is not None and len(values) >= 8 and (found.half_width < 0.7 or len(values) == 40):
                return found.least <= 0 <= found.most

    assert sum(measure() for _ in range(200)) / 200 >= 0.88


# -- where the start of blocks ends, on drawn courses of step times ---------------------------------------------------


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


# -- blocks, their order, and the delays of a plan --------------------------------------------------------------------


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


# -- settings in processes of their own: which are tried, and what the rounds say -------------------------------------


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


# -- proofs as files and as sentences ---------------------------------------------------------------------------------


DELAYED = Proof(
    "train.py", DELAY, "data.py:prepare", "/job/data.py", 7, 20.0, 21.9, 2.0, 0.95, 0.9, 1.0, 8.0, 1.0, 12, 96, 30.0
)
LEFT_OUT = Proof("train.py", ABLATION, "input", None, None, 19.4, 12.1, None, 1.6, 1.52, 1.69, 8.0, 1.0, 30, 240)


def test_a_later_proof_of_a_place_replaces_the_earlier_one(tmp_path):
    write_proofs([DELAYED, LEFT_OUT], tmp_path / "proofs.json")
    again = Proof("train.py", ABLATION, "input", step_ms=9, changed_ms=6, value=1.5, least=1.4, most=1.6)
    write_proofs([again], tmp_path / "proofs.json")
    assert read_proofs(tmp_path) == [DELAYED, again]
    assert [path.name for path in tmp_path.iterdir()] == ["proofs.json"]


def test_a_session_without_proofs_has_none(tmp_path):
    assert read_proofs(tmp_path) == []


@pytest.mark.parametrize("text", ["", "[]", '{"proofs": 3}', '{"proofs": [{"program": '])
def test_a_damaged_file_is_said(tmp_path, text):
    (tmp_path / "proofs.json").write_text(text)
    with pytest.raises(InputError, match="cannot be read"):
        read_proofs(tmp_path)


@pytest.mark.parametrize(
    ("proof", "sentence"),
    [
        (DELAYED, "data.py:prepare: each ms there costs the step 0.95 ms (0.90 to 1.00), over 96 steps"),
        (LEFT_OUT, "without input a step takes 19.4 -> 12.1 ms: 1.60x (1.52 to 1.69), over 240 steps"),
        (
            Proof("train.py", DELAY, "gone", note="it was never called in these steps"),
            "gone: nothing measured: it was never called in these steps",
        ),
    ],
)
def test_a_proof_is_a_sentence(proof, sentence):
    assert proof.sentence == sentence


def test_the_sensitivity_predicts_the_gain_of_the_time_at_the_place():
    assert DELAYED.speedup == pytest.approx((20 / (20 - 7.6), 20 / (20 - 7.2), 20 / (20 - 8)))
    assert LEFT_OUT.speedup == (1.6, 1.52, 1.69)
    assert Proof("train.py", DELAY, "prepare").speedup is None


def test_a_folder_that_somebody_has_locked_for_ever_is_written_all_the_same(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(record, "_LOCK_TRY_S", 0.001)
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        write_proofs([Proof("train.py", ABLATION, "input")], tmp_path / "proofs.json")
    finally:
        os.close(handle)
    assert [proof.place for proof in read_proofs(tmp_path)] == ["input"]
