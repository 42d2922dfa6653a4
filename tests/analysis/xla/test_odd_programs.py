"""Programs that are missing, cut, newer, recursive or of one name: every XLA tool reports what there is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hlo_build import computation, f32, fusion, op, parameter, program
from xla_sessions import OTHER, STEP, US_OF
from xla_traces import Ran, trace_of
from xspace_build import number, text

from stepscope.analysis.registry import tool_named
from stepscope.analysis.xla import hlo_stats_tool
from stepscope.analysis.xla.picture import draw_around, draw_path
from stepscope.model import HostTrace

TOOLS = ["graph-viewer", "hlo-stats", "inference", "memory-viewer", "op-profile", "roofline"]


def ran(module: str = "jit_step", number_of_program: int = 7) -> list[Ran]:
    """A run of the program, as its kernels name it."""
    events, at = [], 0
    for name, us in US_OF.items():
        stats = {"hlo_op": name, "hlo_module": module, "program_id": number_of_program}
        events.append(Ran("Stream #1(Kernel)", f"k_{name}", at, us, stats))
        at += us
    return events


def report_of(tool: str, trace: HostTrace) -> dict[str, object]:
    found = tool_named(tool)
    return found.merge([found.partial(trace)]).to_dict()


def times(trace: HostTrace) -> dict[str, float]:
    rows = hlo_stats_tool.merge([hlo_stats_tool.partial(trace)]).rows
    return {f"{row['program']} {row['name']}": float(str(row["self_us"])) for row in rows}


def circular() -> bytes:
    """Two computations that call each other, and operands in a circle."""
    one = computation(
        "one", op("a", "fusion", f32(8), "b", calls=("two",)), op("b", "fusion", f32(8), "a", calls=("two",))
    )
    two = computation("two", op("c", "fusion", f32(8), "c", calls=("one",)))
    main = computation(
        "main",
        parameter("x", f32(8)),
        fusion("dot.1", f32(8), "x", calls="one"),
        op("add_fusion", "while", f32(8), "dot.1", calls=("main", "two")),
        op("side", "call", f32(8), "add_fusion", calls=("main",)),
        op("out", "add", f32(8), "side", "out"),
    )
    return program(one, two, main, name="jit_step")


def newer() -> bytes:
    """A program with fields, opcodes and element types that nobody knows yet, at every level."""
    unknown = number(900, 7) + text(901, "new")
    strange = op("dot.1", "quantum-dot", number(2, 250) + text(3, b"\x08") + unknown, "x", extra=unknown)
    main = computation("main", parameter("x", f32(8)), strange, op("out", "add", f32(8), "dot.1", "x"))
    return program(main, name="jit_step", schedule=unknown) + unknown


BROKEN: dict[str, Callable[[], bytes]] = {
    "circular": circular,
    "newer": newer,
    "empty": lambda: b"",
    "noise": lambda: bytes(range(256)) * 8,
    **{f"cut at {keep}": lambda keep=keep: STEP[:keep] for keep in range(1, len(STEP), 61)},
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_program_stops_no_tool_and_costs_no_time_of_the_others(tool: str, kind: str) -> None:
    trace = trace_of({"jit_step(7)": BROKEN[kind](), "jit_eval(9)": OTHER}, ran())

    assert report_of(tool, trace)["tool"]
    assert sum(times(trace).values()) == sum(US_OF.values())


@pytest.mark.parametrize("kind", ["circular", "newer", "cut at 245"])
def test_a_broken_program_can_be_drawn(kind: str) -> None:
    trace = trace_of({"jit_step(7)": BROKEN[kind]()}, ran())

    found = [draw_path(trace, ""), draw_around(trace, "", "", 5, opened=range(20))]

    assert all(picture.program == "jit_step(7)" for picture in found)


def test_programs_of_one_name_keep_their_own_instructions() -> None:
    trace = trace_of({"jit_step(7)": STEP, "jit_step(8)": STEP}, [*ran(), *ran(number_of_program=8)[:1]])

    found = times(trace)

    assert (found["jit_step(7) dot.1"], found["jit_step(8) dot.1"]) == (40, 40)
    assert "jit_step(8) out" not in found


def test_work_of_a_name_that_several_programs_have_belongs_to_none_of_them() -> None:
    stats = {"hlo_op": "dot.1", "hlo_module": "jit_step"}
    trace = trace_of({"jit_step(7)": STEP, "jit_step(8)": STEP}, [Ran("Stream #1(Kernel)", "k", 0, 5, stats)])

    assert times(trace) == {"jit_step dot.1": 5}
    assert "no instructions are recorded of jit_step" in " ".join(
        hlo_stats_tool.merge([hlo_stats_tool.partial(trace)]).warnings
    )


def test_a_kernel_whose_name_fits_two_instructions_belongs_to_neither() -> None:
    twins = program(
        computation("body", parameter("p", f32(8)), op("n", "negate", f32(8), "p")),
        computation(
            "main",
            parameter("x", f32(8)),
            fusion("loop_fusion.1", f32(8), "x", calls="body"),
            fusion("loop_fusion_1", f32(8), "loop_fusion.1", calls="body"),
            fusion("other.2", f32(8), "loop_fusion_1", calls="body"),
        ),
        name="jit_twins",
    )
    names = ("loop_fusion_1", "other_2")
    events = [Ran("Stream #1(Kernel)", name, 9 * at, 5, {"correlation_id": at + 1}) for at, name in enumerate(names)]

    assert times(trace_of({"jit_twins(1)": twins}, events)) == {"jit_twins(1) other.2": 5}
