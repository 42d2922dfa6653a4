"""Traces of garbage: whatever a damaged file or a hostile program writes, every tool answers, and with figures only."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest

from stepscope.analysis.registry import TOOLS
from stepscope.export import pieces
from stepscope.formats.xspace import reader, writer
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder, Trait, stat_names
from stepscope.model.trace import StatValue
from stepscope.report.export import SHEETS

NAMES = (
    "", "train", "7", "²", "aten::mm", "aten::item", "MatMul:MatMul", "fusion.3", "jit_step(4)", "cudaLaunchKernel",
    "cudaMemcpy", "ncclDevKernel_AllReduce", "gloo:all_reduce", "Memcpy HtoD (Pageable -> Device)", "[memory]",
    "Iterator::Root", "Iterator::Root::Map", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    "nn.Module: Linear_0", "train.py(12): step", "aten::pin_memory", "SaveV2:SaveV2",
)  # fmt: skip
PLANES = ("/host:CPU", "/device:GPU:0", "/device:GPU:1", "/device:TPU:0", "/stepscope:capture", "/host:metadata")
STATS = tuple(
    sorted({name for names in vars(stat_names).values() if isinstance(names, tuple) for name in names} | {"value"})
)
FACTS = ("rank", "world_size", "memory_size", "compute_cap_major", "compute_cap_minor", "step_ms_before",
         "step_ms_inside", "peak_teraflops_per_second", "peak_hbm_bw_gigabytes_per_second")  # fmt: skip
VALUES: tuple[StatValue, ...] = (
    0, 1, 2, 3, 7, -1, 10**12, 2**62, -(2**62), 2**64 - 1, 2**70, 0.0, 1.5, -2.0, float("nan"), float("inf"),
    "", "1", "[[16,2]]", '["float"]', "[2,1,1]", "traced-xla", "size:4096 kind_src:pageable", "regs:9 grid:2,1,1",
    "size:1e30 kind_src:pageable", "regs:1e300 grid:1e30,1,1", b"\x0a\x03abc",
)  # fmt: skip
LINES = {
    PlaneKind.HOST: (LineKind.THREAD, LineKind.THREAD, LineKind.THREAD, LineKind.COUNTERS),
    PlaneKind.GPU: (LineKind.STREAM, LineKind.STREAM, LineKind.STEPS, LineKind.MODULES, LineKind.DERIVED),
    PlaneKind.TPU: (LineKind.DEVICE_OPS, LineKind.DEVICE_OPS, LineKind.STEPS, LineKind.MODULES),
}


def garbage(seed: int) -> HostTrace:
    """A small trace in which nothing need make sense: any kind on any line, at any time, with any stats."""
    rng = random.Random(seed)
    builder = TraceBuilder("host", rng.choice([None, 0, 1_700_000_000_000_000_000]))
    builder.framework = rng.choice(["", "pytorch", "tensorflow", "jax"])
    scale = rng.choice([1, 1000, 10**9, 2**50])
    for _ in range(rng.randrange(1, 5)):
        kind = rng.choice([*LINES, *PlaneKind])
        plane = builder.plane(rng.choice(PLANES), kind, rng.choice([-1, 0, 1, 7]), _stats(rng, FACTS))
        for _ in range(rng.randrange(4)):
            _fill(builder, plane, rng.choice(LINES.get(kind, tuple(LineKind))), rng, scale)
    return builder.build()


def _fill(builder: TraceBuilder, plane: int, kind: LineKind, rng: random.Random, scale: int) -> None:
    line = builder.line(plane, rng.choice(["python", "Stream #1", "Steps", ""]), kind=kind)
    kinds = rng.sample(list(EventKind), rng.choice([1, 3, len(EventKind)]))
    for _ in range(rng.choice([0, 1, 5, 20])):
        stats = _stats(rng, STATS) | ({"correlation_id": rng.randrange(5)} if rng.random() < 0.3 else {})
        traits = rng.choice([Trait.NONE, Trait.NONE, Trait.COMPUTES_16BIT, Trait.ASYNC, Trait.EAGER, Trait.FILE_READ])
        start, length = rng.randrange(-5, 15), rng.choice([0, 0, 1, 2, 12])
        line.event(rng.choice(NAMES), start * scale, length * scale, rng.choice(kinds), stats, traits)


def _stats(rng: random.Random, names: tuple[str, ...]) -> dict[str, StatValue]:
    return {name: rng.choice(VALUES) for name in rng.sample(names, rng.choice([0, 0, 1, 4]))}


def refuse(name: str) -> None:
    raise AssertionError(f"JSON holds {name}")


@pytest.mark.parametrize("seed", range(25))
def test_every_tool_answers_with_figures(seed: int) -> None:
    trace = garbage(seed)
    for tool in TOOLS:
        kept = msgspec.msgpack.encode(tool.partial(trace))
        report = tool.merge([msgspec.msgpack.decode(kept, type=tool.partial_type)])
        json.loads(json.dumps(report.to_dict()), parse_constant=refuse)
        assert report.to_arrow().num_rows == len(report.main_table().rows), tool.name
        assert all(isinstance(line, str) for line in report.summary_lines())
        assert str(report) and all(sheet(report, 5) for sheet in SHEETS.values())


@pytest.mark.parametrize("seed", range(25))
def test_every_form_of_file_takes_it(seed: int) -> None:
    trace = garbage(seed)
    again = reader.read(writer.write(trace), "x", "")
    written: dict[str, Any] = json.loads(b"".join(pieces([trace], "chrome")), parse_constant=refuse)

    assert len(again.events) == len(trace.events)
    assert all(event["ts"] >= 0 for event in written["traceEvents"] if event["ph"] == "X")
    assert b"".join(pieces([trace], "perfetto"))
