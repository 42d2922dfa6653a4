"""Time in which the loop's thread was ready and had no processor: a cause of its own, and not Python."""

from __future__ import annotations

import numpy as np
import pytest
from draw import MS, Sort, draw

from stepscope.analysis.account import contention
from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.account_text import judge_account
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.contention import asleep_ps, late_peers, lost_spans
from stepscope.analysis.account.every_step import causes_of_steps
from stepscope.analysis.account.interventions import Scale
from stepscope.analysis.account.model import model_of
from stepscope.analysis.account.predict import predict
from stepscope.analysis.account.selectors import part_of_cause
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind as K
from stepscope.model import HostTrace

SYNC = Sort(K.SYNC, "cudaStreamSynchronize")
LOOP = """
host main | M0--------------M1--------------M2--------------
host main | a---            a---            a---
"""
DEVICE = """
host main | M0----------------M1----------------
host main | L1S---------      L2S---------
gpu0 s    |   K1------          K2------
"""


def causes(trace: HostTrace) -> dict[str, float]:
    """The causes of the median step in ms."""
    account = account_of(trace)
    assert account is not None
    assert sum(row.ps for row in account.rows) == account.step_ps
    return {row.cause: row.ps / MS for row in account.rows}


RANKS = """
host main | M0--------------M1--------------M2--------------M3--------------
host main | a---G-          a---G---------  a---G-          a---G---------
"""


@pytest.mark.parametrize(("queued_ms", "late_ms", "communication_ms"), [(4, 16, 2), (0, 0, 10)], ids=["busy", "quiet"])
def test_a_collective_that_lasts_longer_than_in_other_steps_waits_for_a_rank_without_a_core(
    queued_ms: int, late_ms: int, communication_ms: int
) -> None:
    ends = [(16 * step, 16 * step + 16, 8, queued_ms) for step in range(4)]
    trace = draw(RANKS, usage=ends)
    longest = next(step for step in causes_of_steps(trace) if step.number == 3)

    assert late_peers(trace).total == late_ms * MS
    assert longest.causes_ps[Cause.COMMUNICATION] <= communication_ms * MS
    assert (longest.causes_ps[Cause.CONTENTION] >= 8 * MS) == bool(late_ms)


def test_what_the_thread_had_no_processor_for_is_taken_from_all_that_it_runs():
    usage = [(0, 16, 8, 8), (16, 32, 8, 8), (32, 48, 8, 8)]

    assert causes(draw(LOOP)) == {"host_compute": 4, "unknown": 12}
    assert causes(draw(LOOP, usage=usage)) == {"host_compute": 2, "python": 6, "contention": 8}


def test_neighbours_of_very_many_stretches_lose_their_time_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "_MOST_PLACES", 3)
    usage = [(0, 16, 8, 8), (16, 32, 8, 8), (32, 48, 8, 8)]  # each with an op and with the Python after it
    trace = draw(LOOP, usage=usage)

    assert causes(trace) == {"python": 8, "contention": 8}
    assert lost_spans(trace).start.tolist() == [0, 16 * MS, 32 * MS]


def test_no_more_is_taken_than_the_thread_did_not_run():
    usage = [(0, 16, 15, 14), (16, 32, 15, 14), (32, 48, 15, 14)]

    assert causes(draw(LOOP, usage=usage)) == {"host_compute": 3.75, "python": 11.25, "contention": 1}


def test_a_wait_that_is_counted_when_it_is_over_is_no_sleep_before():
    # 12 ms of waiting, 8 of them in the second interval, are counted in the third.
    usage = [(0, 16, 16, 0), (16, 32, 8, 0), (32, 48, 12, 12)]
    trace = draw(LOOP, usage=usage)

    assert asleep_ps(trace, 0, Spans(np.array([0]), np.array([48 * MS]))) == 0
    assert lost_spans(trace).total == 12 * MS


# In the first interval one function takes a quarter, in the second three quarters: the more of it, the more sleep.
MIXED = """
host main | M0--------------M1--------------M2--------------
host main | l---t-----------l-----------t---l---t-----------
"""


def test_of_two_functions_in_one_interval_the_one_sleeps_that_explains_all_intervals():
    calls = {"l": Sort(K.PYTHON_CALL, "$a.py:1 load"), "t": Sort(K.PYTHON_CALL, "$a.py:5 train")}
    trace = draw(MIXED, calls, usage=[(0, 16, 12, 0), (16, 32, 4, 0), (32, 48, 12, 0)])
    load, train = (Spans(np.array([begin * MS]), np.array([end * MS])) for begin, end in ((16, 28), (28, 32)))

    assert asleep_ps(trace, 0, load) == pytest.approx(12 * MS, rel=0.02)
    assert asleep_ps(trace, 0, train) == pytest.approx(0, abs=0.3 * MS)


SLEEP = """
host main | M0--------------M1--------------M2--------------
host main | a---s-----------a---s-----------a---s-----------
"""


@pytest.mark.parametrize(
    ("picture", "usage", "said"),
    [
        (
            LOOP,
            [(0, 16, 6, 0), (16, 32, 6, 0), (32, 48, 6, 0)],
            "host-bound: 75.0 % of each step is sleeping or waiting",
        ),
        (
            LOOP,
            [(0, 16, 15, 0), (16, 32, 15, 0), (32, 48, 15, 0)],
            "host-bound: 75.0 % of each step is Python in the loop",
        ),
        (LOOP, [], "unknown: 75.0 % of each step is unexplained, the rest mostly computation on the host"),
        (SLEEP, [], "host-bound: 75.0 % of each step is sleeping or waiting, mostly `<built-in function sleep>`"),
    ],
    ids=["no processor used", "a processor used", "nothing tells", "a recorded call"],
)
def test_a_loop_that_sleeps_is_not_called_python(picture, usage, said):
    calls = {"s": Sort(K.PYTHON_CALL, "<built-in function sleep>")}
    account = account_of(draw(picture, calls, usage=usage))

    assert account is not None
    assert judge_account(account).sentence == said


def test_waiting_for_a_device_is_not_contention():
    found = causes(draw(DEVICE, {"S": SYNC}, usage=[(0, 18, 8, 2), (18, 36, 8, 2)]))

    assert found["device_compute"] == 8
    assert found["contention"] == 2
    assert "contention" not in causes(draw(DEVICE, {"S": SYNC}, usage=[(0, 18, 12, 6), (18, 36, 12, 6)]))


def test_moments_after_each_wake_up_are_not_worth_a_cause():
    seldom = [(0, 16_000, 15_900, 100)]  # 0.6 %

    assert "contention" not in causes(draw(LOOP, usage=seldom))


def test_without_readings_nothing_is_said():
    assert lost_spans(draw(LOOP)) is None


def test_the_verdict_names_it_beside_the_limit_of_the_program():
    account = account_of(draw(LOOP, usage=[(0, 16, 6, 10), (16, 32, 6, 10), (32, 48, 6, 10)]))
    assert account is not None
    verdict = judge_account(account)

    assert (verdict.name, verdict.cause) == ("host_bound", "python")
    assert verdict.sentence == (
        "machine busy, else host-bound: 62.5 % of each step waits for a free core; of the rest, 75.0 % is "
        "Python in the loop"
    )
    assert account.rows[0].culprit is None


def test_the_model_predicts_the_step_on_a_quiet_machine():
    model = model_of(draw(LOOP, usage=[(0, 16, 8, 8), (16, 32, 8, 8), (32, 48, 8, 8)]))
    assert model is not None
    predicted = predict(model, [Scale(part_of_cause(model, Cause.CONTENTION))], of_machine=True)

    assert predicted is not None
    assert predicted.then_ps == pytest.approx(8 * MS)
    assert model.shares.own_ps.sum_by_cause(model.graph.step >= 0)[Cause.PYTHON] == pytest.approx(18 * MS)


@pytest.mark.parametrize(("ran_ms", "least_ms"), [(16, 9.9), (6, 0)])
def test_what_other_threads_wait_for_a_core_bounds_no_gain(ran_ms: int, least_ms: float) -> None:
    """The program's thread, which waits for a core unseen, holds the step up in the replay without the save; where the
    loop waits for one, it is not known that the program needs all that time."""
    sorts = {
        "F": Sort(K.TRACED_FUNCTION, "PjitFunction(train)"),
        "r": Sort(K.OP, "dot", "run_id", {"hlo_module": "jit_train"}),
        "s": Sort(K.CHECKPOINT, "Save"),
    }
    picture = """
        host main | M0--------------M1--------------M2--------------
        host main | Fs-----------   Fs-----------   Fs-----------
        host xla  |  r1-----------   r2-----------   r3-----------
    """
    usage = [(16 * step, 16 * step + 16, ran_ms, 16 - ran_ms) for step in range(3)]
    model = model_of(draw(picture, sorts, usage=usage))
    assert model is not None
    predicted = predict(model, [Scale(part_of_cause(model, Cause.CHECKPOINT))])

    assert predicted is not None
    assert predicted.least_ps / MS == pytest.approx(least_ms, abs=0.1)


PAUSED = """
host main | M0---M1---M2---             M3---M4---
host main | a--- a--- a---              a--- a---
"""


def test_a_pause_between_marks_that_adjoin_is_the_recorders():
    trace = draw(PAUSED, usage=[(0, 16, 16, 0), (16, 26, 10, 0), (26, 38, 12, 0)])

    assert lost_spans(trace).total == 13 * MS


BUSY = """
host main | M0--------------M1--------------M2--------------M3--------------
host main | ppppaaaa        ppppaaaa        ppppppppaaaa    ppppaaaa
"""


@pytest.mark.parametrize("ran_ms", [2, 6, 10, 15])
@pytest.mark.parametrize("cause", [Cause.PYTHON, Cause.HOST_COMPUTE])
def test_no_gain_is_larger_than_the_part_that_it_is_said_of(ran_ms, cause):
    calls = {"p": Sort(K.PYTHON_CALL, "$a.py:1 prepare")}
    trace = draw(BUSY, calls, usage=[(16 * at, 16 * at + 16, ran_ms, 16 - ran_ms) for at in range(4)])
    model, account = model_of(trace), account_of(trace)
    predicted = predict(model, [Scale(part_of_cause(model, cause))])
    quiet = 100 - account.mean_percent["contention"]

    assert predicted.now_ps / predicted.then_ps <= 1.001 / (1 - account.mean_percent[cause.name.lower()] / quiet)
