"""What changes of a model give, on drawn traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from draw import MS, Sort, draw

from stepscope.analysis.account.interventions import (
    Intervention,
    Move,
    Overlap,
    ReplayAsGraph,
    Scale,
    Uncertain,
    replay_after,
)
from stepscope.analysis.account.model import StepModel, model_of
from stepscope.analysis.account.predict import Predicted, predict
from stepscope.analysis.account.selectors import Portion, part_of_batches, part_of_events, work_launched_by
from stepscope.model import EventKind as K

SYNC = {"S": Sort(K.SYNC, "cudaStreamSynchronize"), "Z": Sort(K.RUNTIME_CALL, "cudaMemcpyAsync", "correlation_id")}

FETCHES = """
    host main | M0---     M1---     M2---
    host main | aaaaaI----aaaaaI----aaaaa
"""
LAUNCHES_LATE = """
    host main | M0------------M1------------M2------------
    host main | b---L1b---L2S-b---L3b---L4S-b---L5b---L6S-
    gpu0 s    |       K1    K2      K3    K4      K5    K6
"""


def made(picture: str) -> StepModel:
    model = model_of(draw(picture, SYNC))
    assert model is not None
    return model


def of_kind(model: StepModel, *kinds: K) -> Portion:
    return part_of_events(model, np.flatnonzero(np.isin(model.trace.events.kind, kinds)))


def steps_ms(model: StepModel, *changes: Intervention) -> list[float]:
    return [step / MS for step in replay_after(model, changes).step_ps[model.steps].tolist()]


def test_removing_input_leaves_the_rest_of_the_step():
    model = made(FETCHES)
    waits = of_kind(model, K.INPUT_WAIT)

    assert steps_ms(model) == [10, 10]
    assert steps_ms(model, Scale(waits, 0.0)) == [5, 5]
    assert steps_ms(model, Scale(waits, 0.5)) == [7.5, 7.5]


def test_a_call_that_copies_from_memory_that_is_not_pinned_waits_for_what_is_queued_before_its_copy():
    model = made("""
        host main | M0-------------M1-------------
        host main | L1Z2--------bbbL3Z4--------bbb
        gpu0 s    |   K1-----D2--    K3-----D4--
    """)

    assert steps_ms(model) == [15, 15]
    assert steps_ms(model, Scale(of_kind(model, K.KERNEL), 0.5)) == [11.5, 11.5]


def test_a_thread_whose_ops_run_only_while_the_main_one_is_silent_is_what_that_waits_for():
    trace = draw("""
        host main | M0----------------M1----------------
        host main | bbbb            bbbbbb            bb
        host auto |     bbb bbb bbbb      bbb bbb bbbb
    """)
    model = model_of(replace(trace, framework="pytorch"))
    assert model is not None
    ops = np.flatnonzero(trace.events.kind == K.OP)
    elsewhere = part_of_events(model, ops[trace.events.line[ops] != model.threads.main])

    assert steps_ms(model) == [18, 18]
    assert steps_ms(model, Scale(elsewhere, 0.5)) == [13, 13]


def test_what_shortens_work_makes_no_step_longer_though_the_first_gains_what_the_next_loses():
    model = made("""
        host main | M0------M1-----------M2-----------
        host main | L1S-----bbbbbbbbbbbbL3bbbbbbbbbbbL5
        gpu0 s    |   K1-----------------K3-          K5
    """)
    faster = predict(model, [Scale(of_kind(model, K.KERNEL), 0.5)])

    assert faster is not None
    assert faster.then_ps <= faster.now_ps


def test_without_waiting_for_the_pipeline_its_threads_keep_their_own_work():
    picture = """
        host main                        | M0----------M1----M2----------M3----M4----------M5----
        host main                        | aaI-------- aaI-- aaI-------- aaI-- aaI-------- aaI--
        host tf_data_iterator_resource   |   Q--------         Q--------         Q--------
        host tf_data_iterator_resource   |   P1!               P2!               P3!
        host tf_data_private_threadpool  |    S1------T         S2------T         S3------T
        host tf_data_private_threadpool  |    b-------          b-------          b-------
    """
    model = model_of(draw(picture, {"Q": Sort(K.INPUT_CALLBACK, "InstantiatedCapturedFunction::Run")}))
    assert model is not None
    without = part_of_batches(model, of_pipeline=True)

    assert steps_ms(model) == [12, 6, 12, 6, 12, 6]
    assert steps_ms(model, Scale(without, 0.0)) == [3, 6, 3, 6, 3, 6]
    assert without.own_ps.sum() == 0


def test_input_in_workers_is_as_fast_as_they_can_make_it():
    model = made(FETCHES)
    waits, work = of_kind(model, K.INPUT_WAIT), of_kind(model, K.OP)

    assert steps_ms(model, Move(waits, 1)) == [5, 5]
    # Both halves take 5 ms: with the loop five times as fast, one worker limits it, and two do so at twice the rate.
    assert steps_ms(model, Move(waits, 1), Scale(work, 0.2)) == [5, 5]
    assert steps_ms(model, Move(waits, 2), Scale(work, 0.2)) == [2.5, 2.5]


def test_work_beside_everything_else_still_takes_as_long_as_it_takes():
    model = made(FETCHES)
    waits, work = of_kind(model, K.INPUT_WAIT), of_kind(model, K.OP)

    assert steps_ms(model, Overlap(waits)) == [5, 5]
    assert steps_ms(model, Overlap(waits), Scale(work, 0.2)) == [5, 5]


def test_a_faster_kernel_gains_nothing_where_the_host_is_what_limits():
    model = made(LAUNCHES_LATE)

    assert steps_ms(model) == [14, 14, 14]
    # Only the last kernel of a step is waited for: of its 2 ms one is left.
    assert steps_ms(model, Scale(of_kind(model, K.KERNEL), 0.5)) == [13, 13, 13]


def test_a_recorded_graph_of_kernels_is_launched_once():
    model = made(LAUNCHES_LATE)
    after = steps_ms(model, ReplayAsGraph(of_kind(model, K.OP, K.RUNTIME_CALL)))

    assert max(after) < 7
    assert min(after) >= 4  # the device needs as long


def test_work_is_found_by_the_call_that_launched_it():
    model = made(LAUNCHES_LATE)
    first = np.flatnonzero(model.trace.events.kind == K.STEP_MARK)[:1]
    launched = work_launched_by(model.trace, first)

    assert len(launched) == 2
    assert part_of_events(model, launched).own_ps.sum() == 4 * MS


# -- the range of a forecast ---------------------------------------------------------------------------------------


def predicted(model: StepModel, *changes: Intervention) -> Predicted:
    found = predict(model, changes)
    assert found is not None
    return found


def test_a_forecast_holds_the_ends_of_uncertain_numbers():
    model = made(FETCHES)
    found = predicted(model, Scale(of_kind(model, K.INPUT_WAIT), Uncertain(0.2, 0.4, 0.8, "a table of devices")))

    assert (found.now_ps, found.then_ps) == (10 * MS, 7 * MS)
    assert (found.least_ps, found.most_ps) == (5.22 * MS, 9 * MS)  # 22 % of 7 ms and 8 % of 3 ms are the usual error
    assert "a table of devices" in found.reasons


def test_steps_that_gain_differently_widen_the_range():
    model = made(
        """
        host main | M0---  M1---     M2---        M3---
        host main | aaaaaI-aaaaaI----aaaaaI-------aaaaa
        """
    )
    found = predicted(model, Scale(of_kind(model, K.INPUT_WAIT)))

    # Steps of 10 and 13 ms become 5 ms each; the first one, before which nothing is known, does not count.
    assert (found.now_ps, found.then_ps) == (10 * MS, round(10 * MS * 5 / 11.5))
    assert found.least_ps < found.then_ps < found.most_ps < 10 * MS


def test_what_is_critical_then_is_what_remains():
    model = made(LAUNCHES_LATE)

    assert list(predicted(model, Scale(of_kind(model, K.KERNEL))).causes) == ["host_compute", "launch"]


def test_a_model_that_does_not_carry_predicts_nothing():
    model = made("tpu0 Steps | W0------W1------\ntpu0 ops   | k--    kk--    k")

    assert model.why_not is not None and "50.0 % of the step is unexplained" in model.why_not
    assert predict(model, [Scale(of_kind(model, K.DEVICE_OP))]) is None


def test_a_forecast_of_which_nearly_all_would_be_what_nobody_recorded_promises_nothing():
    predicted = Predicted(100, 40, 40, 40, {"unknown": 38, "launch": 2}, (), {})

    assert predicted.why_not == "95 % of what would be left of the step is unexplained"
    assert replace(predicted, causes={"unknown": 25, "launch": 15}).why_not is None
    assert replace(predicted, then_ps=100).why_not is None  # it promises nothing anyway
