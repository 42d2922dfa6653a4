"""The line of the program that an instruction of XLA was traced from."""

from __future__ import annotations

import numpy as np
from hlo_build import computation, f32, metadata, op, program
from xla_traces import Ran, trace_of
from xspace_build import number, text

from stepscope.analysis.trace.source_lines import SourceLine, source_lines
from stepscope.formats.spool.layout import GRAPH_LINES_PLANE
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder


def location(file: int, function: int, line: int) -> bytes:
    return text(3, number(1, file) + number(2, function) + number(3, line))


def frame(place: int, parent: int) -> bytes:
    return text(4, number(1, place) + number(2, parent))


# train.py:7 step calls flax's Dense, which calls dot_general.
STACKS = (
    text(1, "/x/site-packages/flax/linear.py") + text(1, "/home/me/train.py") + text(2, "Dense")
    + text(2, "f.<locals>.step") + location(1, 1, 50) + location(2, 2, 7) + frame(2, 0) + frame(1, 1)
)  # fmt: skip
PROGRAM = program(
    computation(
        "main",
        op("dot.1", "dot", f32(), extra=text(7, number(15, 2))),
        op("add.1", "add", f32(), extra=text(7, number(15, 1))),
        op("mul.1", "multiply", f32(), extra=metadata("jit(f)/mul", "model.py", 12)),
        op("sub.1", "subtract", f32()),
    ),
    schedule=text(17, STACKS),
)


def ran(*instructions: str) -> HostTrace:
    stats = ({"hlo_op": name, "hlo_module": "jit_f", "program_id": 1} for name in instructions)
    return trace_of(
        {"jit_f(1)": PROGRAM}, [Ran("Stream #1(Kernel)", "kernel", 10 * at, 5, each) for at, each in enumerate(stats)]
    )


def test_the_innermost_line_of_the_user_is_found_behind_a_library() -> None:
    trace = ran("dot.1", "add.1", "mul.1", "sub.1", "dot.1")
    line, lines = source_lines(trace, np.arange(5))

    step = SourceLine("f.step", "/home/me/train.py", 7)
    found = [lines[each] if each >= 0 else None for each in line.tolist()]
    assert found == [step, step, SourceLine("", "model.py", 12), None, step]


def test_events_of_no_program_have_no_line() -> None:
    trace = trace_of({}, [Ran("Stream #1(Kernel)", "kernel", 0, 5, {"hlo_op": "dot.1"})])
    line, lines = source_lines(trace, np.arange(1))

    assert (line.tolist(), lines) == ([-1], [])


def test_ops_of_tensorflow_graphs_have_the_lines_that_the_capture_was_told() -> None:
    builder = TraceBuilder("host")
    host, told_of = (
        builder.plane("/host:CPU", PlaneKind.HOST),
        builder.plane(GRAPH_LINES_PLANE, PlaneKind.CUSTOM_DEVICE),
    )
    thread = builder.line(host, "tf_Compute/1", 1, kind=LineKind.THREAD)
    ops = ["StatefulPartitionedCall/dense/MatMul:MatMul", "gradient_tape/dense/MatMul/MatMul_1:MatMul", "add:AddV2"]
    for at, name in enumerate(ops):
        thread.event(name, at, 1, EventKind.OP)
    builder.line(told_of, "graphs", 0).event("dense/MatMul train.py:8 step", 9, 0, EventKind.OTHER)

    line, lines = source_lines(builder.build(), np.arange(3))

    assert (line.tolist(), lines) == ([0, 0, -1], [SourceLine("step", "train.py", 8)])
