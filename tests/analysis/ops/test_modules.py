"""The module tree: drawn, in Kineto JSON with a backward pass, and from real traces."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from draw import Sort, draw
from reporting import reporter

from stepscope.analysis.ops import modules_tool as modules
from stepscope.formats.kineto.reader import read
from stepscope.model import EventKind

SORTS = {
    letter: Sort(EventKind.PYTHON_CALL, f"nn.Module: {name}")
    for letter, name in (("Q", "Net_0"), ("O", "Linear_0"), ("Z", "ReLU_0"))
}


report = reporter(modules)


def tree(found: modules.ModulesReport, *names: str) -> list[tuple[Any, ...]]:
    return [("  " * int(str(row["depth"])) + str(row["module"]), *(row[name] for name in names)) for row in found.rows]


PICTURE = """
    host main | Q---------------   Q---
    host main |  O----  Z--- O--
    host main |  L1 L2  L3   L4     L5
    gpu0 s7   |   K1--K2K3----K4K5----K6
"""


def test_a_module_holds_the_modules_it_calls_and_the_work_it_launches():
    found = report(draw(PICTURE, SORTS))

    assert tree(found, "calls", "host_us", "host_self_us", "device_us", "device_self_us", "kernels") == [
        ("Net_0", 2, 20_000, 20_000 - 5000 - 4000 - 3000, 20_000, 6000, 5),
        ("  Linear_0", 2, 8000, 8000, 4000 + 2000 + 2000, 8000, 3),
        ("  ReLU_0", 1, 4000, 4000, 6000, 6000, 1),
    ]
    assert [(row["id"], row["parent"], row["percent"]) for row in found.rows] == [
        (0, None, 100),
        (1, 0, 40),
        (2, 0, 30),
    ]
    assert found.unassigned_device_us == 2000  # K6, which nothing launches


def test_hosts_add_up():
    found = report(draw(PICTURE, SORTS, host="a"), draw(PICTURE, SORTS, host="b"))
    assert tree(found, "calls", "device_us") == [
        ("Net_0", 4, 40_000), ("  Linear_0", 4, 16_000), ("  ReLU_0", 2, 12_000),
    ]  # fmt: skip


def test_without_modules_it_says_what_to_record():
    found = report(replace(draw("host main | a--"), framework="pytorch"))
    assert found.rows == ()
    assert found.warnings == ("no modules: record with torch.profiler.profile(with_stack=True)",)


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_nobody_is_sent_to_the_profiler_of_another_framework(framework):
    found = report(replace(draw("host main | a--"), framework=framework))
    assert "torch" not in found.main_table().empty


def test_the_backward_pass_belongs_to_the_module_of_its_forward_op():
    def whole(name: str, ts: int, dur: int, cat: str = "cpu_op", tid: int = 7, **args: Any) -> dict[str, Any]:
        return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur, "args": args}

    events = [
        whole("nn.Module: Linear_0", 0, 20, "python_function"),
        whole("aten::linear", 5, 10),
        whole("autograd::engine::evaluate_function: AddmmBackward0", 50, 20, tid=8),
        whole("cudaLaunchKernel", 55, 2, "cuda_runtime", tid=8, correlation=3),
        whole("gemm", 60, 11, "kernel", tid=4, correlation=3, device=0, stream=4),
        {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 7, "tid": 7, "ts": 5},
        {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 7, "tid": 8, "ts": 50, "bp": "e"},
    ]
    found = report(read(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode(), "x", "h"))

    assert tree(found, "device_us", "backward_us", "backward_self_us") == [("Linear_0", 0, 11, 11)]
    assert found.unassigned_device_us == 0
