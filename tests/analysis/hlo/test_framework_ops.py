"""Which op of the framework an XLA instruction was made from, and what a program takes."""

from __future__ import annotations

import numpy as np
import pytest
from hlo_build import array, computation, f32, metadata, op, program
from xla_traces import Ran, trace_of
from xspace_build import fixed, number, text

from stepscope.analysis.hlo.framework_ops import framework_ops, framework_ops_of_events
from stepscope.analysis.hlo.module import read_module
from stepscope.analysis.hlo.programs import programs_of
from stepscope.model import HostTrace

STEP = program(
    computation(
        "main",
        op("fusion.1", "fusion", f32(8), extra=metadata("jit(step)/dot_general")),
        op("fusion.2", "fusion", f32(8), extra=metadata("layer/MatMul_3", op_type="MatMul")),
        op("fusion.3", "fusion", f32(8)),
    )
)


def ran(instruction: str, module: str, number_of_program: int, proto: bytes = STEP) -> HostTrace:
    """A kernel that carries its instruction."""
    stats = {"hlo_op": instruction, "hlo_module": module, "program_id": number_of_program}
    return trace_of({"jit_step(17)": proto}, [Ran("Stream #1(Kernel)", "kernel", 0, 5, stats)])


def op_of(trace: HostTrace) -> str:
    event = np.flatnonzero(trace.has_stat(("hlo_op",)) & (trace.stat_strings(("hlo_op",)) > 0))
    code, ops = framework_ops_of_events(trace, event, trace.stat_strings(("hlo_op",), rows=event))
    return ops[int(code[0])]


@pytest.mark.parametrize(
    ("number_of_program", "module", "instruction", "expected"),
    [
        (17, "", "fusion.1", "jit(step)/dot_general:"),
        (17, "", "fusion.2", "layer/MatMul_3:MatMul"),
        (17, "", "fusion.3", ""),
        (17, "", "fusion.4", ""),
        (-1, "jit_step", "fusion.1", "jit(step)/dot_general:"),
        (-1, "jit_other", "fusion.1", ""),
    ],
)
def test_a_program_knows_the_ops_of_its_instructions(
    number_of_program: int, module: str, instruction: str, expected: str
) -> None:
    assert op_of(ran(instruction, module, number_of_program)) == expected


def test_all_ops_of_a_program() -> None:
    programs = programs_of(ran("fusion.1", "", 17))

    assert framework_ops(programs, 0) == {"jit(step)/dot_general:", "layer/MatMul_3:MatMul"}
    assert framework_ops(programs, -1) == set()


def test_instructions_of_one_name_in_two_programs_are_told_apart() -> None:
    other = program(computation("main", op("fusion.1", "fusion", f32(8), extra=metadata("jit(eval)/add"))))
    stats = [{"hlo_op": "fusion.1", "hlo_module": "jit_step", "program_id": number_of} for number_of in (17, 18)]
    events = [Ran("Stream #1(Kernel)", "kernel", at, 1, each) for at, each in enumerate(stats)]
    trace = trace_of({"jit_step(17)": STEP, "jit_step(18)": other}, events)
    rows = np.flatnonzero(trace.stat_strings(("hlo_op",)) > 0)

    code, ops = framework_ops_of_events(trace, rows, trace.stat_strings(("hlo_op",), rows=rows))

    assert [ops[each] for each in code.tolist()] == ["jit(step)/dot_general:", "jit(eval)/add:"]


@pytest.mark.parametrize("keep", range(0, len(STEP), 7))
def test_a_cut_program_gives_what_comes_before_the_cut(keep: int) -> None:
    assert op_of(ran("fusion.1", "", 17, STEP[:keep])) in {"", "jit(step)/dot_general:"} | {
        f"{'jit(step)/dot_general'[:length]}:" for length in range(1, 22)
    }


def test_a_program_of_random_bytes_does_no_harm() -> None:
    noise = np.random.default_rng(7).integers(0, 256, 20_000, np.uint8).tobytes()

    assert op_of(ran("fusion.1", "", 17, noise)) == ""


# -- what a program takes ----------------------------------------------------------------------------------------------


def taking(*shapes: bytes, names: tuple[str, ...] = ()) -> bytes:
    """A serialized program whose parameters are of these shapes."""
    parameters = b"".join(text(1, shape) for shape in shapes) + text(2, b"") + b"".join(text(3, name) for name in names)
    return text(1, text(1, "jit_step") + text(4, parameters))


def parameters(proto: bytes) -> tuple[tuple[str, str], ...]:
    return read_module(np.frombuffer(proto, np.uint8)).parameters


def test_a_program_knows_what_it_takes() -> None:
    assert parameters(taking(f32(4, 2), array(4), names=("batch", "n"))) == (("batch", "f32[4,2]"), ("n", "s32[]"))
    assert parameters(taking(array(99, 1))) == (("", "?[1]"),)
    assert parameters(STEP) == ()


def test_sizes_of_a_program_may_stand_one_by_one_and_be_large() -> None:
    noise = fixed(9, bytes(8)) + fixed(9, bytes(4))

    assert parameters(taking(number(2, 16) + noise + number(3, 132) + number(3, 7))) == (("", "bf16[132,7]"),)


@pytest.mark.parametrize("keep", range(1, len(taking(f32(4, 2)))))
def test_a_cut_program_has_no_parameters(keep: int) -> None:
    assert parameters(taking(f32(4, 2))[:keep]) == ()


def test_a_number_that_has_no_end_ends_the_program() -> None:
    assert parameters(b"\x80" * 11 + b"\x01" + taking(f32(4, 2))) == ()
