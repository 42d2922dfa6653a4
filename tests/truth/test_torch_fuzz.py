"""Damaged PyTorch traces through every tool: a report or a plain error, and nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.registry import TOOLS
from stepscope.errors import StepscopeError, UnreadableError
from stepscope.formats.kineto.reader import read

Event = dict[str, Any]
TURNS = 30
HOSTILE: tuple[Any, ...] = (
    None, -1, 0, 1 << 31, 1 << 63, 1 << 70, -(1 << 63), 1e308, -1e308, float("nan"), float("inf"), 1e-300,
    "", "0", "-7", "\ud83d", "\x00", "x" * 5000, [], [[]], {}, {"a": {"b": 1}}, True, [1, None, "x"],
)  # fmt: skip


def event(category: str, name: str, ts: float, dur: float, pid: int = 1, tid: int = 1, **args: Any) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def step(number: int) -> list[Event]:
    """A step with something of everything that PyTorch's profiler records."""
    at, key = 1000.0 * number, 100 * number
    shapes = {"Input Dims": [[64, 32], [32, 32]], "Input type": ["float", "c10::BFloat16"]}
    device = {
        "device": 0,
        "stream": 7,
        "context": 1,
        "registers per thread": 32,
        "grid": [8, 1, 1],
        "block": [64, 1, 1],
    }
    reduce = {
        "Collective name": "allreduce", "In msg nelems": 4096, "Out msg nelems": 4096, "dtype": "Float",
        "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
    }  # fmt: skip
    memory = {
        "Addr": 77,
        "Bytes": 512,
        "Device Type": 1,
        "Device Id": 0,
        "Total Allocated": 512,
        "Total Reserved": 2048,
    }
    return [
        event("user_annotation", f"ProfilerStep#{number}", at, 990, **{"External id": key}),
        event("python_function", "train.py(12): step", at + 1, 980, **{"Python id": key, "Python parent id": 0}),
        event("python_function", "nn.Module: Linear_0", at + 100, 300, **{"Python id": key + 1, "Python module id": 0}),
        event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at + 5, 80),
        event("cpu_op", "aten::linear", at + 110, 100, **{"External id": key + 1, "Sequence number": number, **shapes}),
        event("cuda_runtime", "cudaLaunchKernel", at + 120, 9, correlation=key + 1, **{"External id": key + 1}),
        event("kernel", "sm80_xmma_gemm", at + 140, 90, 0, 7, correlation=key + 1, **device),
        event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", at + 300, 50, 1, 2, **shapes),
        event("cuda_runtime", "cudaGraphLaunch", at + 310, 9, 1, 2, correlation=key + 2),
        event(
            "kernel", "relu", at + 330, 20, 0, 7, correlation=key + 2, **device, **{"graph id": 3, "graph node id": 4}
        ),
        event("cpu_op", "aten::item", at + 400, 90, **{"External id": key + 3}),
        event("cuda_runtime", "cudaStreamSynchronize", at + 410, 70, correlation=key + 3),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 470, 5, 0, 7, device=0, stream=7, bytes=4),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", at + 60, 5, 0, 7, device=0, stream=7, bytes=4096),
        event("cpu_op", "record_param_comms", at + 500, 20, **reduce),
        event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 520, 60, 0, 9, **reduce, **device),
        {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": at + 130, "s": "t", "args": memory},
        {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": at + 230, "s": "t", "args": memory | {"Bytes": -512}},
        {"ph": "s", "id": key, "pid": 1, "tid": 1, "ts": at + 110, "cat": "fwdbwd", "name": "fwdbwd"},
        {"ph": "f", "id": key, "pid": 1, "tid": 2, "ts": at + 300, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"},
        {"ph": "B", "name": "half", "pid": 1, "tid": 3, "ts": at + 600},
        {"ph": "E", "name": "half", "pid": 1, "tid": 3, "ts": at + 650},
        {"ph": "C", "name": "GPU 0 power", "pid": 1, "ts": at, "args": {"W": 300.5}},
    ]


def document() -> dict[str, Any]:
    gpu = {"id": 0, "name": "NVIDIA A100", "numSms": 108, "computeMajor": 8, "totalGlobalMem": 1 << 36}
    return {
        "schemaVersion": 1,
        "deviceProperties": [gpu],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceEvents": [each for number in range(1, 4) for each in step(number)],
    }  # fmt: skip


def hostile(rng: random.Random) -> bytes:
    """The trace with some values that make no sense."""
    whole = document()
    for _ in range(rng.randrange(1, 12)):
        target = whole if rng.random() < 0.05 else rng.choice(whole["traceEvents"])
        if isinstance(target, dict) and isinstance(target.get("args"), dict) and rng.random() < 0.5:
            target = target["args"]
        if target is whole:
            key = rng.choice(["schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds"])
        else:
            key = rng.choice(list(target) or ["ts"])
        if rng.random() < 0.2:
            target.pop(key, None)
        else:
            target[key] = rng.choice(HOSTILE)
    return json.dumps(whole).encode("utf-8", "surrogatepass")


def damaged(rng: random.Random) -> bytes:
    """The text of the trace with bytes changed, lost and put in."""
    changed = bytearray(json.dumps(document()).encode())
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(changed))
        if rng.random() < 0.4:
            changed[at] = rng.randrange(256)
        elif rng.random() < 0.5:
            del changed[at : at + rng.randrange(1, 60)]
        else:
            changed[at:at] = rng.choice([b"{", b"}", b"[", b"]", b'"', b"\\", b"1e999", b"-", b",,", b"NaN", b"\xff"])
    if rng.random() < 0.2:
        del changed[rng.randrange(len(changed)) :]
    return bytes(changed)


def every_report(data: bytes) -> None:
    """Puts a trace through every tool.  Raises StepscopeError where it is refused, anything else on a bug."""
    trace = read(data, "x.pt.trace.json", "rank0")
    trace.check()
    for tool in TOOLS:
        body = tool.merge([tool.partial(trace)]).to_dict()
        json.dumps(body, allow_nan=False)


@pytest.mark.parametrize("make", [hostile, damaged])
def test_no_damage_makes_a_tool_fail(make: Any) -> None:
    rng = random.Random(make.__name__)
    refused = 0
    for _ in range(TURNS):
        data = make(rng)
        try:
            every_report(data)
        except StepscopeError:
            refused += 1
    assert refused < TURNS / 2


def test_a_file_that_is_still_being_written_grows_between_two_looks(tmp_path: Path) -> None:
    path, text = tmp_path / "w.1.pt.trace.json", json.dumps(document())
    marks = ("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3")
    seen = []
    for end in (text.index(marks[1]) - 40, text.index(marks[2]) - 40, len(text)):
        path.write_text(text[:end])
        report = stepscope.load(str(tmp_path)).steps()
        said = any("still being written" in warning for warning in report.warnings)
        seen.append((len(report.to_dict()["rows"]), report.partial, said))

    assert seen == [(1, True, True), (2, True, True), (3, False, False)]


def test_a_file_without_a_whole_event_yet_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "w.1.pt.trace.json"
    path.write_text('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "na')
    with pytest.raises(UnreadableError, match="ends in the middle of an event, before the first whole event"):
        stepscope.load(str(tmp_path)).overview()


def test_the_whole_trace_goes_through_every_tool() -> None:
    every_report(json.dumps(document()).encode())
