"""The tool `memory-viewer`: the plan of a program's memory, drawn, damaged, and beside XProf."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest
from hlo_build import computation, f32, instruction_id, metadata, op, parameter, program
from hypothesis import given
from hypothesis import strategies as st
from reporting import reporter
from xla_traces import trace_of
from xspace_build import number, text

import stepscope
from stepscope.analysis.hlo.module import read_module
from stepscope.analysis.xla import memory_viewer_tool
from stepscope.analysis.xla.buffers import Memory, memory_of

ALLOCATE, FREE, SHARE = 0, 1, 2

MAIN = computation(
    "main",
    parameter("x", f32(25)),
    op("a", "add", f32(25), "x", "x", extra=metadata("jit(f)/jvp(layer)/add", "train.py", 3)),
    op("b", "add", f32(50), "a", "a", extra=metadata("jit(f)/transpose(jvp(layer))/mul", "train.py", 4)),
    op("out", "add", f32(25), "b", "a"),
)
X, A, B, OUT = (instruction_id(0, place) for place in range(4))


def buffer(number_of: int, size: int, instruction: int, space: int = 0) -> bytes:
    place = text(3, number(4, instruction))
    return text(1, number(1, number_of) + number(2, size) + place + number(4, space))


def allocation(index: int, size: int, *held: int, extra: bytes = b"") -> bytes:
    assigned = b"".join(text(9, number(1, each)) for each in held)
    return text(3, number(1, index) + number(2, size) + extra + assigned)


PARAMETER, RESULT, CONSTANT, HOST_SPACE = number(5, 1), number(7, 1), number(12, 1), number(8, 5)


def simulation(of: int, *events: tuple[int, ...]) -> bytes:
    """A heap's trace: what happens, to which buffer, with whose memory, at which instruction."""
    inside = b""
    for kind, held, *shared in events:
        share = number(5, shared[0]) if shared else b""
        inside += text(1, number(1, kind) + number(2, held) + text(4, f"at {held}") + share)
    return text(4, inside + number(3, of))


# x: 100 bytes of a parameter; out: 100 of a result; a (120, of which 20 padding) and b (200) share a block of 400.
PLAN = (
    buffer(1, 100, X) + buffer(2, 120, A) + buffer(3, 200, B) + buffer(4, 100, OUT)
    + allocation(0, 100, 1, extra=PARAMETER) + allocation(1, 100, 4, extra=RESULT) + allocation(2, 400, 2, 3)
    + allocation(3, 8, extra=CONSTANT) + allocation(4, 999, extra=HOST_SPACE)
    + simulation(2, (ALLOCATE, 2), (ALLOCATE, 3), (FREE, 2), (FREE, 3))
)  # fmt: skip


def memory(plan: bytes) -> Memory:
    found = memory_of(read_module(np.frombuffer(program(MAIN, assignment=plan), np.uint8)))
    assert found is not None
    return found


report = reporter(memory_viewer_tool)


def test_live_bytes_over_the_order_of_the_program() -> None:
    found = memory(PLAN)

    assert found.heap is not None
    assert found.heap.live.tolist() == [0, 120, 320, 200, 0]
    assert (found.lasting_bytes, found.temporary_bytes, found.heap_peak, found.peak_bytes) == (208, 400, 320, 528)
    assert found.alive_at_peak().tolist() == [1, 2]


def test_shared_memory_is_free_when_the_last_holder_is_gone() -> None:
    plan = PLAN.replace(
        simulation(2, (ALLOCATE, 2), (ALLOCATE, 3), (FREE, 2), (FREE, 3)),
        simulation(2, (ALLOCATE, 2), (SHARE, 3, 2), (FREE, 2), (FREE, 3)),
    )
    found = memory(plan)

    assert found.heap is not None
    assert found.heap.live.tolist() == [0, 120, 120, 120, 0]


def test_what_is_alive_at_the_peak_and_what_would_free_it() -> None:
    found = report(trace_of({"jit_f(1)": program(MAIN, assignment=PLAN)}, []))
    columns = ("buffer", "kind", "shape", "bytes", "padding_bytes", "source", "would_free")

    assert [tuple(row[column] for column in columns) for row in found.rows] == [
        ("b", "temporary", "f32[50]{0}", 200, 0, "train.py:4", None),
        ("a", "temporary", "f32[25]{0}", 120, 20, "train.py:3", "rematerialization"),
        ("x", "parameter", "f32[25]{0}", 100, None, None, "donation"),
        ("out", "output", "f32[25]{0}", 100, None, None, None),
        ("(not recorded)", "constant", None, 8, None, None, None),
    ]
    (program_row,) = found.programs
    assert program_row["peak_bytes"] == 528 == sum(int(str(row["bytes"])) for row in found.rows)
    assert program_row["fragmentation_percent"] == 20.0
    assert (program_row["padding_bytes"], program_row["donation_bytes"]) == (20, 100)
    assert (program_row["other_spaces_bytes"], program_row["peak_at"]) == (999, "at 3")
    assert [row["bytes"] for row in found.timeline] == [208, 328, 528, 408, 208]
    assert ("shape", "f32[25]{0}", 3, 320) in [
        (row["by"], row["name"], row["buffers"], row["bytes"]) for row in found.groups
    ]


def test_a_long_program_keeps_its_peak_in_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_viewer_tool, "MOST_POINTS", 3)
    found = report(trace_of({"jit_f(1)": program(MAIN, assignment=PLAN)}, []))

    assert len(found.timeline) == 3
    assert max(int(str(row["bytes"])) for row in found.timeline) == 528


def test_without_a_simulation_all_that_is_set_aside_counts() -> None:
    plan = allocation(0, 100, extra=PARAMETER) + allocation(2, 400)
    found = memory(plan)

    assert found.heap is None
    assert found.peak_bytes == 500


def test_programs_without_a_plan_are_named_and_a_capture_without_programs_says_so() -> None:
    both = report(trace_of({"jit_f(1)": program(MAIN, assignment=PLAN), "jit_g(2)": program(MAIN)}, []))
    none = report(trace_of({}, []))

    assert "no buffer assignment is recorded of jit_g(2)" in both.warnings
    assert none.rows == ()
    assert "enable_hlo_proto" in none.warnings[0]


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6))
def test_damage_anywhere_ends_in_no_error(changes: list[tuple[int, int]]) -> None:
    plan = bytearray(PLAN)
    for place, value in changes:
        plan[place % len(plan)] = value
    found = memory_of(read_module(np.frombuffer(program(MAIN, assignment=bytes(plan)), np.uint8)))

    assert found is None or found.alive_at_peak() is not None


@pytest.mark.parametrize("session", ["jax-mi300x-attention", "jax-mi300x-conv", "tpu-inference"])
def test_peaks_are_xprofs(corpus: Path, session: str) -> None:
    path = next((corpus / session).rglob("*.xplane.pb"))
    found = stepscope.load(path).report("memory-viewer").to_dict()["programs"]
    largest = [row for row in found if row["peak_bytes"] > 1000][:3]

    assert largest
    for row in largest:
        their = oracle.memory_viewer(path, row["program"].rpartition("(")[2][:-1], row["program"])
        assert row["peak_bytes"] / 2**20 == pytest.approx(their["peakHeapMib"], rel=0.01)
        assert row["parameter_bytes"] / 2**20 == pytest.approx(
            their.get("entryComputationParametersMib", 0.0), rel=0.01
        )
