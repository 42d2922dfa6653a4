"""Loops of the program whose rounds start short ops of PyTorch one by one, with their backward pass."""

from __future__ import annotations

import pytest
from draw import MS, K
from sampling import sampled_thread

from stepscope.analysis.purpose.excess import Excess, excesses_of
from stepscope.model import HostTrace, TraceBuilder

US = MS // 1000
STEPS, OPS = 5, 60
NODE = "autograd::engine::evaluate_function: AddBackward0"
MAIN = "$train.py:1 main"
LOOP = "$net.py:20 pool @23 embed loop=22 to=24"


def trained(inner: str, op_us: int = 20) -> HostTrace:
    """Steps of 10 ms: 4 ms of forward ops in a line of the model, then their backward pass.

    Args:
        inner: the statement that samples show while the forward ops run.
    """
    builder = TraceBuilder("host")
    thread, frames, where, times = sampled_thread(builder)
    for step in range(STEPS):
        begin = 10 * step * MS
        thread.event("train", begin, 10 * MS, K.STEP_MARK, {"step_num": step})
        for at in range(OPS):
            stats = {"Sequence number": OPS * step + at}
            thread.event("aten::add", begin + at * 60 * US, op_us * US, K.OP, stats)
            thread.event(NODE, begin + 5 * MS + at * 60 * US, op_us * US, K.BACKWARD, stats)
        for at in range(10):
            start, is_forward = begin + at * MS, at < 4
            times.event("sample", start + MS // 2, 0, K.OTHER)
            frames.event(MAIN, start, MS, K.PYTHON_CALL)
            where.event(f"{MAIN} @{5 if is_forward else 6} step loop=4 to=", start, MS, K.OTHER)
            if is_forward:
                where.event(inner, start, MS, K.OTHER)
    return builder.build()


def rounds(trace: HostTrace) -> list[Excess]:
    return [each for each in excesses_of(trace) if each.kind == "one_by_one"]


def test_rounds_of_short_ops_are_found_with_their_backward_pass_and_line() -> None:
    (found,) = rounds(trained(LOOP))

    assert found.ps > 0.9 * 2 * STEPS * OPS * 20 * US  # samples tell edges only roughly
    assert found.asked_by == "$net.py:22 pool"
    assert "loop in line 22 of net.py, which start 56 short ops, mostly aten::add" in found.fact


@pytest.mark.parametrize(
    ("inner", "op_us"),
    [
        ("$net.py:20 pool @23 cell loop=22 carries=state to=24", 20),
        ("$net.py:20 pool @23 embed to=24", 20),
        (LOOP, 50),
    ],
    ids=["a round needs the one before", "there is no loop but that over steps", "the ops are long"],
)
def test_what_is_well_as_it_is(inner: str, op_us: int) -> None:
    assert rounds(trained(inner, op_us)) == []
