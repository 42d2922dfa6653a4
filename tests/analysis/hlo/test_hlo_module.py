"""Programs as columns: what is read of them, whole, damaged and strange."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hlo_build import (
    Computation,
    Op,
    array,
    bf16,
    computation,
    contracting,
    f32,
    fusion,
    metadata,
    op,
    parameter,
    program,
    tuple_of,
)
from hypothesis import given
from hypothesis import strategies as st
from warm_python import WARM
from xspace_build import number, text, varint

import stepscope
from stepscope.analysis.hlo.module import Module, read_module
from stepscope.analysis.hlo.programs import Programs, program_at, programs_of
from stepscope.analysis.xla.costs import costs_of
from stepscope.analysis.xla.text import instruction_text

ADD = computation("add", parameter("a", f32()), parameter("b", f32(), 1), op("sum", "add", f32(), "a", "b"))
BODY = computation("body", parameter("p", f32(2, 3)), op("twice", "add", f32(2, 3), "p", "p"))
MAIN = computation(
    "main",
    parameter("x", f32(2, 3)),
    parameter("w", f32(3, 4), 1),
    op("dot.1", "dot", f32(2, 4), "x", "w", extra=contracting(1) + metadata("jit(f)/dot", "train.py", 7)),
    fusion("add_fusion", f32(2, 3), "x", calls="body"),
    op("both", "tuple", tuple_of(f32(2, 4), f32(2, 3)), "dot.1", "add_fusion"),
)


def read(data: bytes) -> Module:
    return read_module(np.frombuffer(data, np.uint8))


def names(module: Module) -> list[str]:
    return [module.instruction_name(row) for row in range(len(module))]


def everything(module: Module) -> None:
    """Asks for all that a tool may ask for."""
    costs_of(module)
    rows = list(range(len(module)))
    assert len(module.sources.read(rows)) == len(rows)
    for row in rows:
        instruction_text(module, row)
    assert len(module.users.offsets) == len(module.is_fused) + 1 == len(module) + 1
    assert module.row_of("no such name") == -1
    assert isinstance(module.schedule, dict)


def test_instructions_and_their_links() -> None:
    module = read(program(ADD, BODY, MAIN))

    assert module.name == "jit_f"
    assert module.computation_names == ("add", "body", "main")
    assert module.computation_names[module.entry] == "main"
    assert names(module) == ["a", "b", "sum", "p", "twice", "x", "w", "dot.1", "add_fusion", "both"]
    dot, fused, both = (module.row_of(name) for name in ("dot.1", "add_fusion", "both"))
    assert [names(module)[row] for row in module.operands.linked(dot)] == ["x", "w"]
    assert [names(module)[row] for row in module.users.linked(module.row_of("x"))] == ["dot.1", "add_fusion"]
    assert module.callees.linked(fused) == [1]
    assert module.roots.tolist() == [2, 4, both]
    assert module.fusion_kind_of(fused) == "kLoop"
    assert not module.damaged


def test_shapes_are_as_xla_writes_them() -> None:
    module = read(program(MAIN))

    assert [module.shapes.text(row) for row in (2, 4)] == ["f32[2,4]", "(f32[2,4], f32[2,3])"]
    assert module.shapes.nbytes[:5].tolist() == [24, 48, 32, 24, 56]
    assert instruction_text(module, 2) == "%dot.1 = f32[2,4]{1,0} dot(f32[2,3]{1,0} %x, f32[3,4]{1,0} %w)"


def test_a_layout_with_tiles_and_a_memory_space() -> None:
    tiled = text(1, varint(1) + varint(0)) + text(6, text(1, varint(8) + varint(128))) + number(8, 5)
    module = read(program(computation("main", parameter("x", array(11, 16, 256, layout=tiled)))))

    assert module.shapes.text(0, layout=True) == "f32[16,256]{1,0:T(8,128)S(5)}"


def test_where_an_instruction_comes_from() -> None:
    module = read(program(MAIN))
    (source,) = module.sources.read([2])

    assert (source.op_name, source.line) == ("jit(f)/dot", "train.py:7")


def test_stack_frames_give_line_and_calls_and_a_circle_of_them_ends() -> None:
    def location(file: int, function: int, line: int) -> bytes:
        return text(3, number(1, file) + number(2, function) + number(3, line))

    def frame(place: int, parent: int) -> bytes:
        return text(4, number(1, place) + number(2, parent))

    frames = text(1, "a.py") + text(1, "b.py") + text(2, "main") + text(2, "layer")
    frames += location(1, 1, 10) + location(2, 2, 20) + frame(1, 0) + frame(2, 1) + frame(1, 4) + frame(1, 3)
    main = computation("main", *(op(f"x{at}", "add", f32(), extra=text(7, number(15, at))) for at in (2, 3)))
    module = read(program(main, schedule=text(17, frames)))
    nested, circle = module.sources.read([0, 1])

    assert nested.line == "b.py:20"
    assert nested.stack == ("b.py:20 layer", "a.py:10 main")
    assert len(circle.stack) < 1000


def test_dimensions_written_one_by_one_are_the_same() -> None:
    shape = number(2, 11) + number(3, 2) + number(3, 5)
    assert read(program(computation("main", parameter("x", shape)))).shapes.text(0) == "f32[2,5]"


def test_unknown_fields_types_and_opcodes_are_no_damage() -> None:
    strange = Op("x", "teleport", number(2, 99) + text(3, varint(2)), extra=text(4711, "new") + number(4712, 1))
    module = read(program(computation("main", strange)))

    assert not module.damaged
    assert module.opcode_of(0) == "teleport"
    assert module.shapes.text(0) == "?[2]"


def test_names_and_ids_that_repeat_stay_in_their_computation() -> None:
    inner = computation("body", parameter("x", f32(2)), op("y", "add", f32(2), "x", "x"))
    main = computation("main", parameter("x", f32(3)), op("y", "add", f32(3), "x", "x"))
    data = program(inner, main)
    old_ids = data.replace(varint((2 << 32) | 1), varint((1 << 32) | 1)).replace(
        varint((2 << 32) | 2), varint((1 << 32) | 2)
    )
    module = read(old_ids)

    assert module.operands.rows.tolist() == [0, 0, 2, 2]
    assert module.row_of("y") == 3  # what runs by itself


def test_functions_that_call_each_other_in_a_circle_end() -> None:
    one = computation("one", fusion("f", f32(2), calls="two"))
    two = computation("two", fusion("g", f32(2), calls="one"), op("e", "add", f32(2)))
    module = read(program(one, two))
    everything(module)

    assert np.isnan(costs_of(module).flops[:2]).all()


def test_links_to_what_is_not_there() -> None:
    main = computation("main", op("y", "add", f32(2), "nobody"), fusion("f", f32(2), "y", calls="nothing"))
    module = read(program(main))
    everything(module)

    assert module.operands.linked(0) == []
    assert module.callees.linked(1) == []


@pytest.mark.parametrize("data", [b"", b"\x0a", b"\xff" * 50, program(Computation("main"))])
def test_what_is_no_program_has_no_instructions(data: bytes) -> None:
    module = read(data)

    assert len(module) == 0
    everything(module)


def test_a_program_that_is_cut_keeps_what_lies_before_the_cut() -> None:
    whole = program(ADD, BODY, MAIN)
    counts = []
    for end in range(0, len(whole), 3):
        module = read(whole[:end])
        everything(module)
        counts.append(len(module))

    assert counts[0] == 0
    assert counts[-1] >= 9
    assert all(after >= before - 1 for before, after in pairwise(counts))


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8))
def test_damage_anywhere_ends_in_no_error(changes: list[tuple[int, int]]) -> None:
    data = bytearray(program(ADD, BODY, MAIN))
    for place, value in changes:
        data[place % len(data)] = value

    everything(read(bytes(data)))


# -- programs of a trace ---------------------------------------------------------------------------------------------


def test_programs_are_found_by_number_and_name() -> None:
    entries = tuple(program_at(label, 0, 0) for label in ("jit_f(1)", "jit_f(2)", "jit_g(2)", "jit_h"))
    programs = Programs(np.zeros(0, np.uint8), entries)

    assert programs.find(1, "jit_f") == 0
    assert programs.find(2, "jit_f") == 1  # two programs of one number: the name tells
    assert programs.find(2, "jit_g") == 2
    assert programs.find(2, "renamed") == 2
    assert programs.find(None, "jit_h") == 3
    assert programs.find(9, "jit_f") == -1  # two programs of one name: nothing tells
    assert programs.find(9, "jit_g") == 2


def test_programs_from_a_cache_on_disk_are_matched_in_order() -> None:
    labels = ("jit_f(11)", "jit_f(47)", "jit_f(23)", "jit_g(8)", "jit_g(9)")
    entries = tuple(program_at(label, 0, 0) for label in labels)
    programs = Programs(np.zeros(0, np.uint8), entries)

    assert programs.find_all([(45, "jit_f"), (9, "jit_f"), (21, "jit_f")]) == [1, 0, 2]
    assert programs.find_all([(45, "jit_f"), (9, "jit_f")]) == [-1, -1]  # one of the three did not run
    assert programs.find_all([(9, "jit_g"), (3, "jit_g")]) == [4, -1]  # some numbers fit: they are no old ones
    assert programs.find_all([(None, "jit_g"), (None, "jit_g")]) == [-1, -1]


def test_numbers_of_64_bits_are_the_ones_of_the_events() -> None:
    assert program_at("jit_f(12190760917235803885)", 0, 0).number == 12190760917235803885 - (1 << 64)


WORKER = """
import json, sys
from tensorflow.compiler.xla.service import hlo_pb2
proto = hlo_pb2.HloProto.FromString(open(sys.argv[1], "rb").read()).hlo_module
rows = [i for c in proto.computations for i in c.instructions]
place = {i.id: at for at, i in enumerate(rows)}
computations = {c.id: at for at, c in enumerate(proto.computations)}
print(json.dumps({
    "name": proto.name, "entry": proto.entry_computation_name,
    "rows": [[i.name, i.opcode, list(i.shape.dimensions), len(i.shape.tuple_shapes),
              [place[o] for o in i.operand_ids], [computations[c] for c in i.called_computation_ids],
              i.custom_call_target, i.fusion_kind, i.metadata.op_name] for i in rows],
    "schedule": {computations[c]: [place[i] for i in s.instruction_ids] for c, s in proto.schedule.sequences.items()},
}))
"""


@pytest.mark.parametrize("session", ["jax-mi300x-attention", "jax-mi300x-conv", "tpu-inference"])
def test_real_programs_are_what_protobuf_reads(corpus: Path, session: str, tmp_path: Path) -> None:
    programs = programs_of(stepscope.load(corpus / session).trace())
    largest = max(programs.entries, key=lambda entry: entry.stop - entry.start)
    data = programs.blob[largest.start : largest.stop].tobytes()
    (tmp_path / "program").write_bytes(data)
    done = WARM.run("tensorflow", ["-c", WORKER, str(tmp_path / "program")], os.environ, timeout=600)
    assert done.returncode == 0, done.stderr
    expected = json.loads(done.stdout)
    module = read(data)
    everything(module)

    sources = module.sources.read(list(range(len(module))))
    found = [
        [
            module.instruction_name(row),
            module.opcode_of(row),
            module.shapes.dims_of(row),
            len(module.shapes.children_of(row)),
            module.operands.linked(row),
            module.callees.linked(row),
            module.target_of(row),
            module.fusion_kind_of(row),
            sources[row].op_name,
        ]
        for row in range(len(module))
    ]
    assert found == expected["rows"]
    assert (module.name, module.computation_names[module.entry]) == (expected["name"], expected["entry"])
    assert {str(at): rows.tolist() for at, rows in module.schedule.items()} == expected["schedule"]


def test_types_that_are_not_read() -> None:
    module = read(program(computation("main", parameter("x", bf16(4)))))

    assert module.shapes.type_name(0) == "bf16"
    assert module.backend_config_of(0) == ""
