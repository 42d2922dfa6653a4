"""Saves are a cause of the account also where the order of events alone tells them."""

from __future__ import annotations

import pytest
from draw import MS, Sort, draw
from sampling import sampled_thread

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.interventions import Scale, replay_after
from stepscope.analysis.account.model import model_of
from stepscope.analysis.account.saves import saves_of
from stepscope.analysis.account.selectors import part_of_cause
from stepscope.model import EventKind as K
from stepscope.model import PlaneKind, TraceBuilder

SORTS = {
    "d": Sort(K.OP, "aten::detach"),
    "m": Sort(K.OP, "aten::mm"),
    "s": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: SaveV2"),
    "r": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: ReadVariableOp"),
    "w": Sort(K.OP, "SaveV2:SaveV2"),
    "u": Sort(K.INPUT_WAIT, "IteratorGetNext"),
}
TORCH = """
    host main | M0-------------M1-------------
    host main | m---dddd       m---dddd
"""
CHECKPOINT = """
    host main | M0------------M1------------
    host main | F---  s---  uuF---  s---  uu
    host pool |        ww            ww
"""
READS = """
    host main | M0----------------M1----------------
    host main | F---   r r r r    F---   r r r r
"""


@pytest.mark.parametrize(
    ("picture", "saving"),
    [(TORCH, 11), (CHECKPOINT, 8)],
    ids=["state_dict", "writing op"],
)
def test_a_save_is_one_cause_from_the_work_before_it_to_the_work_after_it(picture, saving):
    account = account_of(draw(picture, SORTS))

    assert {row.cause: row.ps / MS for row in account.rows}["checkpoint"] == saving


@pytest.mark.parametrize(
    ("frames", "saving"),
    [
        (["$train.py:9 keep", "/x/site-packages/torch/serialization.py(943): save"], 24),
        (["$train.py:9 note", "/x/site-packages/numpy/lib/_histograms_impl.py(687): histogram"], 0),
        ([], 24),  # then only the order of events is known
    ],
    ids=["save", "statistics", "no samples"],
)
def test_after_detached_tensors_samples_of_the_stack_say_whether_that_is_a_save(frames, saving):
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", 7)
    stacks = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    sampled = builder.line(stacks, "MainThread", 7)
    for begin in (0, 16 * MS):
        main.event("train", begin, 16 * MS, K.STEP_MARK, {"step_num": begin // (16 * MS)})
        main.event("aten::mm", begin, 4 * MS, K.OP)
        for at in range(4, 8):
            main.event("aten::detach", begin + at * MS, MS, K.OP)
        for frame in frames:
            sampled.event(frame, begin + 10 * MS, 2 * MS, K.PYTHON_CALL)

    assert saves_of(builder.build()).total == saving * MS


def test_reading_variables_is_no_saving():
    """What follows it is the loop's Python: something has to say that state is written."""
    assert saves_of(draw(READS, SORTS)).total == 0


def test_three_detached_tensors_are_no_state_dict():
    assert saves_of(draw("host main | M0-------------\nhost main | m---ddd", SORTS)).total == 0


def test_a_pause_after_each_tensor_is_what_the_loop_does_with_its_values():
    """A histogram of each parameter reads them one by one; a state_dict is written once it is whole."""
    one_by_one = "host main | M0------------------------\nhost main | m---d   d   d   d   d   d  "

    assert saves_of(draw(one_by_one, SORTS)).total == 0


@pytest.mark.parametrize("picture", [TORCH, CHECKPOINT])
def test_without_its_saves_a_step_is_what_the_account_gives_other_causes(picture):
    trace = draw(picture, SORTS)
    account, model = account_of(trace), model_of(trace)
    others = sum(row.ps for row in account.rows if row.cause != "checkpoint")

    after = replay_after(model, [Scale(part_of_cause(model, Cause.CHECKPOINT))])

    assert int(after.step_ps[model.median]) == others


@pytest.mark.parametrize(
    ("frame", "saving"),
    [
        ("/x/site-packages/keras/src/saving/saving_lib.py(768): _save_state", 10),
        ("/x/site-packages/matplotlib/figure.py(9): savefig", 0),  # a picture is no state of a model
    ],
)
def test_samples_of_a_library_that_writes_models_show_a_save_beside_the_work_of_the_step(frame, saving):
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "thread 7 (python)", 7)
    stacks = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    samples = builder.line(stacks, "MainThread", 7)
    for step in range(2):
        main.event("train", step * 17 * MS, 17 * MS, K.STEP_MARK, {"step_num": step})
        main.event("aten::mm", step * 17 * MS, 7 * MS, K.OP)
        samples.event(frame, (step * 17 + 5) * MS, 12 * MS, K.PYTHON_CALL)

    assert saves_of(builder.build()).total / MS == 2 * saving


@pytest.mark.parametrize(
    ("second", "saving"),
    [
        ("$best.py:29 update @35 os.replace", 80),  # of the function that made the bytes
        ("$best.py:29 update @36 text.replace", 40),
        ("$log.py:3 note @5 os.replace", 40),
    ],
)
def test_a_function_that_makes_the_bytes_of_a_state_saves_in_its_calls_that_write_the_file(second, saving):
    """Steps of 60 ms, sampled each 10 ms: two samples show what serializes, and two a second line."""
    builder, serializes = TraceBuilder("host"), "/x/site-packages/flax/serialization.py:9 to_bytes"
    thread = sampled_thread(builder)
    first = "$best.py:29 update @32 serialization.to_bytes"
    for begin in (0, 60 * MS):
        thread.events.event("train", begin, 60 * MS, K.STEP_MARK, {"step_num": begin // (60 * MS)})
        for at, said in enumerate((None, None, first, first, second, second)):
            now = begin + at * 10 * MS
            thread.times.event("sample", now + 5 * MS, 0, K.OTHER)
            thread.functions.event("$best.py:3 main", now, 10 * MS, K.PYTHON_CALL)
            if said is not None:
                thread.functions.event(said.partition(" @")[0], now, 10 * MS, K.PYTHON_CALL)
                thread.statements.event(said, now, 10 * MS, K.PYTHON_CALL)
            if said == first:
                thread.functions.event(serializes, now, 10 * MS, K.PYTHON_CALL)

    assert saves_of(builder.build()).total == saving * MS


@pytest.mark.parametrize(("called", "saving"), [("np.savez_compressed", 40), ("numpy.save", 40), ("plt.savefig", 0)])
def test_a_line_of_the_program_that_writes_arrays_of_numpy_saves(called, saving):
    builder = TraceBuilder("host")
    thread = sampled_thread(builder)
    for begin in (0, 60 * MS):
        thread.events.event("train", begin, 60 * MS, K.STEP_MARK, {"step_num": begin // (60 * MS)})
        for at in range(6):
            now = begin + at * 10 * MS
            thread.times.event("sample", now + 5 * MS, 0, K.OTHER)
            thread.functions.event("$best.py:3 main", now, 10 * MS, K.PYTHON_CALL)
            if at in (2, 3):
                thread.functions.event("$best.py:60 offer", now, 10 * MS, K.PYTHON_CALL)
                thread.statements.event(f"$best.py:60 offer @66 {called}", now, 10 * MS, K.PYTHON_CALL)

    assert saves_of(builder.build()).total == saving * MS
