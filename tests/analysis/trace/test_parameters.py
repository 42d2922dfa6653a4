"""What a capture wrote down about the parameters that a program trains, and what that says of its ops."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest
from draw import Sort, draw

from stepscope.analysis.purpose.operands import ops_in_64_bits
from stepscope.analysis.trace.program_facts import Parameters, parameters_of
from stepscope.capture import program_facts
from stepscope.capture.steps.step_loop import StepLoop
from stepscope.model import EventKind, HostTrace

K = EventKind
FORWARD = {"f": Sort(K.OP, "aten::mm", "Sequence number"), "x": Sort(K.OP, "aten::randn"),
           "b": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0", "Sequence number")}  # fmt: skip


def told(monkeypatch: pytest.MonkeyPatch, trace: HostTrace, **facts: object) -> HostTrace:
    """The trace with facts of a capture."""
    for home in ("stepscope.analysis.trace.program_facts.capture_facts",):
        monkeypatch.setattr(home, lambda _: facts)
    return replace(trace, framework="pytorch")


def test_types_and_the_largest_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"parameters:float64": 900, "parameters:float32": 100, "largest_parameter": "30x30"}
    found = parameters_of(told(monkeypatch, draw("host main | M0--"), **facts))

    assert found == Parameters({"float64": 900, "float32": 100}, (30, 30))
    assert (found.are_double, found.are_one_table) == (True, True)
    assert parameters_of(told(monkeypatch, draw("host main | M0--"))) == Parameters({}, ())


def test_what_trains_parameters_of_64_bits_computes_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = draw("host main | M0--------M1--------\nhost main | x-f0--b0  x-f1--b1 ", FORWARD)
    ops = np.flatnonzero(trace.events.kind == K.OP).astype(np.int64)
    wide = ops_in_64_bits(told(monkeypatch, trace, **{"parameters:float64": 10}), ops)

    assert [trace.name_of(row) for row in ops[wide].tolist()] == ["aten::mm"] * 2


def test_a_capture_describes_the_parameters_of_optimizers_that_step_and_keeps_none_alive() -> None:
    torch = pytest.importorskip("torch")
    from stepscope.capture.steps.finding import OptimizerCalls

    weights = torch.nn.Parameter(torch.zeros(6, 4, dtype=torch.float64))
    optimizer = torch.optim.SGD([weights], lr=0.1)
    loop = StepLoop()
    calls = OptimizerCalls(loop, "one per step")
    calls._source(optimizer)
    facts = program_facts.collect_program_facts()

    assert facts["parameters:float64"] >= 24
    assert facts["largest_parameter"] == "6x4"

    del optimizer, calls
    gc.collect()
    assert program_facts.collect_program_facts().get("largest_parameter") != "6x4"
