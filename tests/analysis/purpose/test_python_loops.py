"""A loop of the program in the model whose rounds do not need each other."""

from __future__ import annotations

import pytest
from draw import MS, K
from sampling import sampled_thread

from stepscope.analysis.purpose.python_loops import loop_of_model, recurrence_of_model
from stepscope.model import HostTrace, TraceBuilder

READOUT = "$train.py:9 readout"


def looping(flow: str, rounds: int = 60, op_us: int = 0) -> HostTrace:
    """Steps of 20 ms: `readout` starts ops for 6 ms, and their gradients take 12.

    Args:
        flow: what is said of the line in it; rounds: ops in a step; op_us: how long an op takes, 0 for all of its time.
    """
    builder = TraceBuilder("host")
    thread, frames, where, times = sampled_thread(builder)
    for step in range(6):
        at = 20 * step * MS
        thread.event("train", at, 20 * MS, K.STEP_MARK, {"step_num": step})
        frames.event("$train.py:20 main", at, 20 * MS, K.PYTHON_CALL)
        frames.event(READOUT, at + MS, 6 * MS, K.PYTHON_CALL)
        where.event(f"{READOUT} @12 mean {flow}", at + MS, 6 * MS, K.OTHER)
        for sample in range(20):
            times.event("sample", at + sample * MS + MS // 2, 0, K.OTHER)
        for number in range(rounds):
            said = {"Sequence number": rounds * step + number}
            thread.event(
                "aten::index", at + MS + number * 6 * MS // rounds, op_us * MS // 1000 or 5 * MS // rounds, K.OP, said
            )
            start = at + 7 * MS + number * 12 * MS // rounds
            length = 2 * op_us * MS // 1000 or 11 * MS // rounds
            thread.event("autograd::engine::evaluate_function: X", start, length, K.BACKWARD, said)
    return builder.build()


def test_rounds_that_do_not_need_each_other_are_one_op() -> None:
    found = loop_of_model(looping("loop=11 to=13,return"))

    assert found is not None
    assert found.what.startswith("is a loop in Python at train.py:11, with its gradients: it starts")
    assert found.what.endswith("`aten::index` a step, and no round needs the one before")
    assert {looping("").events.kind[row] for row in found.rows.tolist()} == {K.OP, K.BACKWARD}


@pytest.mark.parametrize(
    "trace",
    [looping("loop=11 carries=state to=13"), looping("to=13"), looping("loop=11 to=13", rounds=20)],
    ids=["a recurrence", "no loop", "a few layers"],
)
def test_what_is_none(trace: HostTrace) -> None:
    assert loop_of_model(trace) is None


def test_a_recurrence_of_tiny_ops_is_one_layer() -> None:
    found = recurrence_of_model(looping("loop=11 carries=state to=13", op_us=10))

    assert found is not None
    assert found.what.startswith("is a loop in Python at train.py:11, with its gradients: it starts")
    assert "rounds needs `state` of the one before" in found.what
    assert {looping("").events.kind[row] for row in found.rows.tolist()} == {K.OP, K.BACKWARD}


@pytest.mark.parametrize(
    "trace",
    [
        looping("loop=11 carries=state to=13"),
        looping("loop=11 to=13,return", op_us=10),
        looping("loop=11 carries=state to=13", rounds=20, op_us=10),
    ],
    ids=["its ops compute", "no recurrence", "a few rounds"],
)
def test_what_is_no_recurrence_of_tiny_ops(trace: HostTrace) -> None:
    assert recurrence_of_model(trace) is None
