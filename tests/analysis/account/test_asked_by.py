"""Which function asked for what a backward pass computes: the one that ran the forward op."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.asked_by import function_that_asked
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder

K = EventKind
MS = 10**9


def trace(backward_ms: int) -> HostTrace:
    """Steps of 20 ms: an op of 2 ms in `Filter.forward`, and its gradient while `main` alone runs."""
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "thread 7 (python)", 7)
    for step in range(6):
        at = 20 * step * MS
        main.event("ProfilerStep", at, 20 * MS, K.STEP_MARK, {"step_num": step})
        main.event("train.py(30): main", at, 20 * MS, K.PYTHON_CALL)
        main.event("train.py(9): Filter.forward", at + MS, 2 * MS, K.PYTHON_CALL)
        main.event("aten::conv1d", at + MS, 2 * MS, K.OP, {"Sequence number": step})
        name = "autograd::engine::evaluate_function: ConvolutionBackward0"
        main.event(name, at + 4 * MS, backward_ms * MS, K.BACKWARD, {"Sequence number": step})
    return builder.build()


def asked(backward_ms: int) -> tuple[str, float] | None:
    shown = trace(backward_ms)
    found = function_that_asked(shown, 0, Spans.union(np.array([0]), np.array([120 * MS])))
    return None if found is None else (shown.name_of(found.function.frame), round(found.share, 2))


def test_the_gradient_of_an_op_belongs_to_the_function_that_ran_it() -> None:
    assert asked(10) == ("train.py(9): Filter.forward", 1.0)


def test_with_little_of_a_backward_pass_samples_say_enough() -> None:
    assert asked(0) is None
