"""A drawn session of a JAX program on a GPU: instructions, a fusion that opens, times, and the plan of its memory."""

from __future__ import annotations

from hlo_build import computation, contracting, f32, fusion, instruction_id, metadata, op, parameter, program
from xla_traces import Ran, trace_of
from xspace_build import number, text

from stepscope.model import HostTrace

US_OF = {"dot.1": 40, "add_fusion": 20, "side": 5, "out": 10}


def _buffer(number_of: int, size: int, place: int) -> bytes:
    defined = number(4, instruction_id(1, place))
    return text(1, number(1, number_of) + number(2, size) + text(3, defined))


def _allocation(index: int, size: int, *held: int, flags: bytes = b"") -> bytes:
    return text(3, number(1, index) + number(2, size) + b"".join(text(9, number(1, each)) for each in held) + flags)


def _heap(allocation: int, *events: tuple[int, int, str]) -> bytes:
    steps = b"".join(text(1, number(1, kind) + number(2, buffer) + text(4, name)) for kind, buffer, name in events)
    return text(4, steps + number(3, allocation))


#  x, w -> dot.1 -> add_fusion -> out
#               \\-> side ------/
BODY = computation("fused", parameter("p0", f32(64, 64)), op("deep", "tanh", f32(64, 64), "p0"))
MAIN = computation(
    "main",
    parameter("x", f32(64, 64), 0),
    parameter("w", f32(64, 64), 1),
    op("dot.1", "dot", f32(64, 64), "x", "w", extra=contracting(1) + metadata("jit(step)/layer/dot", "model.py", 12)),
    fusion("add_fusion", f32(64, 64), "dot.1", calls="fused", extra=metadata("jit(step)/layer/add", "model.py", 13)),
    op("side", "negate", f32(64, 64), "dot.1"),
    op("out", "add", f32(64, 64), "add_fusion", "side"),
)
SIZE = 64 * 64 * 4
PLAN = (
    _buffer(1, SIZE, 0) + _buffer(2, SIZE, 1) + _buffer(3, SIZE, 2) + _buffer(4, SIZE, 3) + _buffer(5, SIZE, 5)
    + _allocation(0, SIZE, 1, flags=number(5, 1) + number(6, 0))
    + _allocation(1, SIZE, 2, flags=number(5, 1) + number(6, 1))
    + _allocation(2, SIZE, 5, flags=number(7, 1))
    + _allocation(3, 2 * SIZE, 3, 4)
    + _heap(3, (0, 3, "dot.1"), (0, 4, "add_fusion"), (1, 3, "out"), (1, 4, "out"))
)  # fmt: skip
STEP = program(BODY, MAIN, name="jit_step", assignment=PLAN)
OTHER = program(computation("main", parameter("y", f32(8)), op("neg", "negate", f32(8), "y")), name="jit_eval")


def xla_trace(device: str = "NVIDIA H100 80GB HBM3") -> HostTrace:
    """Two runs of `jit_step(7)`; `jit_eval(9)` is recorded and does not run."""
    events, at = [], 0
    for _ in range(2):
        for name, us in US_OF.items():
            stats = {"hlo_op": name, "hlo_module": "jit_step", "program_id": 7}
            events.append(Ran("Stream #1(Kernel)", f"k_{name}", at, us, stats))
            at += us
    return trace_of({"jit_step(7)": STEP, "jit_eval(9)": OTHER}, events, facts={"gpu_device_name": device})
