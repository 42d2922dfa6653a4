"""What stays from step to step: drawn traces of a few steps, with allocations that are freed and some that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draw_memory import MIB, MemoryHost, memory_report

from stepscope.model import EventKind, LineKind, PlaneKind

STEPS = 8


def draw(leaks_in: range | tuple[int, ...] = (), leak: int = MIB, weights: int = 0) -> dict[str, Any]:
    """Eight steps of 10 ms.  Each allocates 8 MiB and frees them; those in `leaks_in` leave something else."""
    host = MemoryHost()
    address = 1000
    host.allocate(0, weights, 2, "aten::empty")
    for number in range(STEPS):
        begin = 10 * number
        host.step(number, begin, begin + 9)
        host.allocate(begin + 1, 8 * MIB, 1, "aten::mm")
        if number in leaks_in:
            address += 1
            host.allocate(begin + 2, leak, address, "aten::cat")
        host.free(begin + 3, 8 * MIB, 1)
    return memory_report(host)


def test_what_every_step_leaves_is_found_with_its_op() -> None:
    found = draw(leaks_in=range(STEPS))

    (growth,) = found["growth"]
    assert growth["grows"] is True
    assert (growth["bytes_per_step"], growth["steps"]) == (MIB, STEPS - 1)
    assert (growth["first_bytes"], growth["last_bytes"]) == (2 * MIB, 8 * MIB)
    (row,) = found["staying"]
    assert (row["op"], row["bytes_per_step"], row["allocations"], row["steps"]) == ("aten::cat", MIB, 6, 6)


def test_the_sentence_names_what_stays() -> None:
    sentence = draw(leaks_in=range(STEPS))["sentences"][0]
    assert (
        sentence
        == "GPU_0_bfc grows by 1 MiB per step over 7 steps, from 2 MiB to 8 MiB: 1 MiB per step stays of aten::cat"
    )


def test_a_loop_that_frees_all_does_not_grow() -> None:
    found = draw()
    assert [(row["grows"], row["bytes_per_step"]) for row in found["growth"]] == [(False, 0)]
    assert found["staying"] == []
    assert not any("grows" in sentence for sentence in found["sentences"])


def test_what_the_first_step_makes_for_all_is_no_leak() -> None:
    found = draw(leaks_in=(0,), leak=64 * MIB)
    assert [row["grows"] for row in found["growth"]] == [False]
    assert found["staying"] == []


def test_one_step_that_leaves_something_is_no_leak() -> None:
    found = draw(leaks_in=(4,), leak=64 * MIB)
    assert [row["grows"] for row in found["growth"]] == [False]
    assert found["staying"] == []


def test_less_than_a_hundredth_is_no_growth() -> None:
    found = draw(leaks_in=range(STEPS), leak=64, weights=MIB)
    assert [row["grows"] for row in found["growth"]] == [False]


def test_every_second_step_is_enough() -> None:
    (growth,) = draw(leaks_in=range(0, STEPS, 2))["growth"]
    assert growth["grows"] is True
    assert growth["bytes_per_step"] == pytest.approx(MIB / 2, rel=0.1)


def test_few_steps_say_nothing() -> None:
    host = MemoryHost()
    for number in range(3):
        host.step(number, 10 * number, 10 * number + 9)
        host.allocate(10 * number + 1, MIB, number + 1, "aten::cat")
    found = memory_report(host)
    assert (found["growth"], found["staying"]) == ([], [])


def test_the_line_of_the_program_is_named_where_it_was_recorded() -> None:
    host = MemoryHost()
    for number in range(STEPS):
        begin = 10 * number
        host.step(number, begin, begin + 9)
        host.line.event("train.py(12): keep", (begin + 1) * 10**9, 7 * 10**9, EventKind.PYTHON_CALL)
        host.allocate(begin + 2, MIB, number + 1, "aten::cat")
    (row,) = memory_report(host)["staying"]
    assert row["place"] == "train.py(12): keep"


def test_the_memory_of_the_process_is_followed_by_its_counter() -> None:
    host = MemoryHost()
    plane = host.builder.plane("/device:CUSTOM:System (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    counters = host.builder.line(plane, "_counters_", kind=LineKind.COUNTERS)
    for number in range(STEPS):
        host.step(number, 10 * number, 10 * number + 9)
        value = 1.0 + 0.1 * number
        counters.event("Memory process GB", (10 * number + 5) * 10**9, 0, EventKind.OTHER, {"counter_value": value})
    (growth,) = memory_report(host)["growth"]
    assert (growth["memory"], growth["grows"]) == ("process (resident)", True)
    assert np.isclose(growth["bytes_per_step"], 1e8)
