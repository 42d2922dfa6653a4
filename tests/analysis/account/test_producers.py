"""Worker processes of a loader, of which a trace shows only the waits for them."""

from __future__ import annotations

import numpy as np
from draw import MS, Sort, draw

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.interventions import Intervention, Move, Overlap, Scale, replay_after
from stepscope.analysis.account.model import StepModel, model_of
from stepscope.analysis.account.selectors import Portion, part_of_events
from stepscope.model import EventKind as K

SORTS = {"N": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")}
# The workers need 9 ms for a batch; the third was there already, since the second step was a long one.
WAITS = """
    host main | M0-------M1------------M2--M3--------M4-------M5-------
    host main | N-----aaaN-----aaaaaaa-NaaaN------aaaN-----aaaN-----aaa
"""
READY = """
    host main | M0---M1---M2---M3---
    host main | NaaaaNaaaaNaaaaNaaaa
"""


def made(picture: str) -> StepModel:
    model = model_of(draw(picture, SORTS))
    assert model is not None
    return model


def of_kind(model: StepModel, kind: K) -> Portion:
    return part_of_events(model, np.flatnonzero(model.trace.events.kind == kind))


def steps_ms(model: StepModel, *changes: Intervention) -> list[float]:
    return [step / MS for step in replay_after(model, changes).step_ps.tolist()]


def test_the_replay_gives_the_steps_back():
    model = made(WAITS)

    assert steps_ms(model) == [step / MS for step in model.graph.recorded_step_ps.tolist()]


def test_a_faster_loop_waits_longer_for_its_workers():
    model = made(WAITS)
    after = steps_ms(model, Scale(of_kind(model, K.OP), 0.0))

    assert after[4:5] == [9]  # no faster than the batches come
    assert sum(after) > sum(steps_ms(model)) - 8


def test_more_workers_take_the_waiting_away():
    model = made(WAITS)
    batches = of_kind(model, K.INPUT_WAIT)

    assert steps_ms(model, Scale(batches, 0.0))[4] == 4 - 1
    assert steps_ms(model, Move(batches, 3))[4] < 9
    assert steps_ms(model, Overlap(batches))[4] == 9


def test_waiting_for_workers_is_input():
    found = account_of(made(WAITS).trace)
    assert found is not None

    assert found.rows[0].cause == "input"
    assert found.rows[0].culprit is not None and found.rows[0].culprit.op == SORTS["N"].name


def test_workers_that_every_step_waits_for_as_long_are_producers():
    model = made(
        """
        host main | M0-------M1-------M2-------M3-------
        host main | N-----aaaN-----aaaN-----aaaN-----aaa
        """
    )
    assert steps_ms(model) == [9, 9, 9, 9]
    assert steps_ms(model, Scale(of_kind(model, K.OP), 0.0))[1:3] == [9, 9]


def test_batches_that_are_there_make_no_producer():
    model = made(READY)

    assert steps_ms(model, Scale(of_kind(model, K.OP), 0.0))[1:3] == [1, 1]
