"""Which programs of a step need each other, by the shapes of what they take and give."""

from __future__ import annotations

import numpy as np
import pytest
from hlo_build import computation, f32, op, program, tuple_of
from xspace_build import text

from stepscope.analysis.facts.data_flow import find_needed
from stepscope.analysis.hlo.module import Module, read_module

WEIGHTS, BATCH, STATE, SCALAR = f32(8, 8), f32(4, 8), f32(4, 9), f32()


def takes_and_gives(takes: list[bytes], *gives: bytes) -> Module:
    """A program that takes and gives arrays of these shapes."""
    result = gives[0] if len(gives) == 1 else tuple_of(*gives)
    shape = text(4, b"".join(text(1, taken) for taken in takes) + text(2, result))
    written = program(computation("main", op("r", "copy", result)), schedule=shape)
    return read_module(np.frombuffer(written, np.uint8))


TRAIN = takes_and_gives([WEIGHTS, BATCH, STATE], WEIGHTS, SCALAR)


@pytest.mark.parametrize(
    ("other", "needed"),
    [
        (takes_and_gives([WEIGHTS, BATCH], STATE), True),
        (takes_and_gives([WEIGHTS, BATCH], SCALAR), False),
        (takes_and_gives([WEIGHTS, BATCH], f32(3, 3)), False),
        (takes_and_gives([BATCH], STATE), False),
    ],
    ids=["solves for a state", "a loss", "a result that nothing takes", "the same for each batch"],
)
def test_a_program_is_needed_if_another_takes_its_result_and_it_takes_that_of_another(
    other: Module, needed: bool
) -> None:
    assert find_needed([TRAIN, other])[1] == needed


def test_what_a_program_keeps_for_itself_comes_from_no_other() -> None:
    assert find_needed([takes_and_gives([WEIGHTS], WEIGHTS), takes_and_gives([WEIGHTS, BATCH], WEIGHTS)]) == [
        False,
        False,
    ]


def test_a_program_that_the_trace_does_not_hold_needs_nothing() -> None:
    assert find_needed([TRAIN, None]) == [False, False]


def test_results_are_the_arrays_in_all_tuples() -> None:
    module = takes_and_gives([WEIGHTS], WEIGHTS, tuple_of(BATCH, SCALAR))

    assert module.results == ("f32[8,8]", "f32[4,8]", "f32[]")
    assert [shape for _, shape in module.parameters] == ["f32[8,8]"]
