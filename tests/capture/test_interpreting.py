"""What the instruction of a sampled frame tells: Python, compiled code, or either."""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence

import pytest

from stepscope.capture.tracers.interpreting import MEANINGS, Instructions, SampledRuns


def straight(a: object, b: object) -> object:
    return len(str(a)) * len(str(b))


def looping(numbers: Sequence[int]) -> int:
    found = 0
    for each in numbers:
        found += abs(each)
    return found


def _meanings(function: Callable[..., object], starts: str) -> set[str]:
    places = [each.offset for each in dis.get_instructions(function) if each.opname.startswith(starts)]
    return {MEANINGS[Instructions().find(function.__code__, place)] for place in places}


@pytest.mark.parametrize(
    ("function", "instruction", "meaning"),
    [
        (looping, "JUMP_BACKWARD", "python"),
        (looping, "RESUME", "python"),
        (looping, "CALL", "either"),
        (straight, "CALL", "call"),
        (straight, "BINARY_OP", "call"),
        (looping, "BINARY_OP", "call"),  # it lets go of the interpreter only in compiled code
    ],
)
def test_what_an_instruction_tells(function: Callable[..., object], instruction: str, meaning: str) -> None:
    assert _meanings(function, instruction) == {meaning}


def test_samples_that_find_the_same_are_one_range() -> None:
    runs = SampledRuns()
    for what, now in (("call", 10), ("call", 20), ("python", 30), ("call", 40)):
        runs.note(MEANINGS.index(what), now - 10, now)
    runs.end(45)

    assert runs.take() == [("call", 10, 25), ("python", 25, 35), ("call", 35, 45)]
    assert runs.take() == []
