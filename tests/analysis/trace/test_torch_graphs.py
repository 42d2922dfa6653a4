"""Graphs of kernels that PyTorch replays: one launch, many kernels, and the op that each of them belongs to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from stepscope.analysis.ops import kernel_stats_tool as kernel_stats
from stepscope.analysis.ops import modules_tool as modules
from stepscope.analysis.trace.attribution import HowKnown, attribute, shares
from stepscope.analysis.waits import idle_tool as idle
from stepscope.formats.kineto.reader import read
from stepscope.model import EventKind, HostTrace

Event = dict[str, Any]


def host(category: str, name: str, ts: float, dur: float, **args: Any) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def launch(call: str, ts: float, dur: float, correlation: int) -> Event:
    return host("cuda_runtime", call, ts, dur, correlation=correlation)


def kernel(name: str, ts: float, dur: float, correlation: int, graph: int = 0, node: int = 0) -> Event:
    args = {"device": 0, "stream": 7, "correlation": correlation}
    of_graph = {"graph id": graph, "graph node id": node} if graph else {}
    return {
        "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args | of_graph
    }  # fmt: skip


def trace_of(events: Iterable[Event]) -> HostTrace:
    return read(json.dumps({"schemaVersion": 1, "traceEvents": list(events)}).encode(), "t.pt.trace.json", "rank0")


def ops(trace: HostTrace) -> list[tuple[str, str | None, str]]:
    """Kernel, op and how the op is known, in order of time."""
    found = attribute(trace)
    return [
        (
            trace.name_of(int(found.rows[at])),
            found.ops[found.op[at]][0] if found.op[at] >= 0 else None,
            HowKnown(found.source[at]).name,
        )
        for at in np.argsort(trace.events.start_ps[found.rows], kind="stable").tolist()
    ]


@pytest.mark.parametrize("call", ["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"])
def test_every_kernel_of_a_graph_belongs_to_the_op_around_its_launch(call: str) -> None:
    trace = trace_of(
        [
            host("cpu_op", "CompiledFunction", 100, 50, **{"External id": 5}),
            launch(call, 110, 20, 77),
            kernel("gemm", 125, 10, 77),
            kernel("relu", 136, 4, 77),
            kernel("softmax", 141, 6, 77),
            host("cpu_op", "aten::add", 160, 20, **{"External id": 6}),
            launch("cudaLaunchKernel", 165, 5, 78),
            kernel("add", 172, 2, 78),
        ]
    )

    assert ops(trace) == [
        ("gemm", "CompiledFunction", "OWN"),
        ("relu", "CompiledFunction", "OWN"),
        ("softmax", "CompiledFunction", "OWN"),
        ("add", "aten::add", "OWN"),
    ]


def test_without_an_op_the_range_or_the_frame_around_the_launch_counts() -> None:
    trace = trace_of(
        [
            host("user_annotation", "decode", 100, 50),
            launch("cudaGraphLaunch", 110, 20, 77),
            kernel("gemm", 125, 10, 77, graph=3, node=31),
            host("python_function", "torch/cuda/graphs.py(88): replay", 200, 50),
            launch("cudaGraphLaunch", 210, 20, 79),
            kernel("gemm", 225, 10, 79, graph=4, node=41),
        ]
    )

    assert ops(trace) == [
        ("gemm", "decode", "AROUND"),
        ("gemm", "torch/cuda/graphs.py(88): replay", "AROUND"),
    ]


def test_with_nothing_around_a_kernel_goes_by_its_graph() -> None:
    trace = trace_of(
        [
            launch("cudaGraphLaunch", 110, 20, 77),
            kernel("gemm", 125, 10, 77, graph=3, node=31),
            kernel("relu", 136, 4, 77, graph=3, node=32),
            launch("hipGraphLaunch", 210, 20, 79),
            kernel("gemm", 225, 10, 79),
            launch("cudaLaunchKernel", 310, 5, 80),
            kernel("stray", 325, 6, 80),
        ]
    )

    assert ops(trace) == [
        ("gemm", "graph 3", "WHOLE_GRAPH"),
        ("relu", "graph 3", "WHOLE_GRAPH"),
        ("gemm", "graph", "WHOLE_GRAPH"),
        ("stray", None, "NONE"),
    ]
    found = shares(trace)
    assert (found.time_ps[HowKnown.WHOLE_GRAPH], found.time_ps[HowKnown.NONE]) == (24_000_000, 6_000_000)


def test_a_replay_that_was_launched_before_the_recording_still_has_its_graph() -> None:
    trace = trace_of([kernel("gemm", 125, 10, 77, graph=3, node=31), launch("cudaGraphLaunch", 200, 9, 90)])

    assert ops(trace) == [("gemm", "graph 3", "WHOLE_GRAPH")]


def test_one_replay_whose_op_is_known_names_the_node_in_all_others() -> None:
    trace = trace_of(
        [
            host("cpu_op", "CompiledFunction", 100, 50, **{"External id": 5}),
            launch("cudaGraphLaunch", 110, 20, 77),
            kernel("gemm", 125, 10, 77, graph=3, node=31),
            launch("cudaGraphLaunch", 210, 20, 79),
            kernel("gemm", 225, 10, 79, graph=3, node=31),
        ]
    )

    assert ops(trace) == [("gemm", "CompiledFunction", "OWN"), ("gemm", "CompiledFunction", "GRAPH")]


def test_tools_take_one_launch_of_many_kernels() -> None:
    trace = trace_of(
        [
            host("user_annotation", "ProfilerStep#1", 90, 100),
            launch("cudaGraphLaunch", 100, 20, 77),
            *(kernel(f"k{at}", 125 + 10 * at, 8, 77, graph=3, node=at + 1) for at in range(4)),
        ]
    )

    rows = kernel_stats.merge([kernel_stats.partial(trace)]).to_dict()["rows"]
    assert sorted((row["kernel"], row["occurrences"], row["total_us"]) for row in rows) == [
        (f"k{at}", 1, 8) for at in range(4)
    ]
    found = idle.merge([idle.partial(trace)]).to_dict()
    (stream,) = found["rows"]
    assert (stream["busy_ms"], stream["idle_ms"]) == (0.032, 0.006)


# -- annotated graphs ----------------------------------------------------------------------------------------------


def annotated(kernel_name: str, ts: float, node: int, **annotations: Any) -> Event:
    event = kernel(kernel_name, ts, 10, 77, graph=3, node=node)
    return event | {"args": event["args"] | annotations}


ALLREDUCE = {"Collective name": "allreduce", "In msg nelems": "1024", "Group size": "2", "dtype": "Float"}


def test_a_replayed_kernel_has_the_module_the_phase_and_the_collective_of_its_node() -> None:
    trace = trace_of(
        [
            host("cpu_op", "CompiledFunction", 90, 50, **{"External id": 5}),
            launch("cudaGraphLaunch", 100, 20, 77),
            annotated("gemm", 125, 31, module_fqn="layers.0.wq"),
            annotated("gemm", 135, 32, module_fqn="layers.0.wq", autograd_phase="backward"),
            annotated("nccl", 145, 33, **ALLREDUCE),
            annotated("adam", 155, 34, name="optimizer"),
            annotated("rope", 165, 35, module_fqn="layers.0", str="rope"),
            kernel("plain", 175, 10, 77, graph=3, node=36),
        ]
    )

    found = attribute(trace)
    assert [found.ops[op] for op in found.op.tolist()] == [
        ("layers.0.wq", "forward"),
        ("layers.0.wq", "backward"),
        ("allreduce", "collective"),
        ("optimizer", "update"),
        ("layers.0/rope", "forward"),
        ("CompiledFunction", "CompiledFunction"),
    ]
    assert [HowKnown(source).name for source in found.source.tolist()] == ["GRAPH"] * 5 + ["OWN"]


def test_numbers_of_a_replayed_collective_are_numbers() -> None:
    trace = trace_of([annotated("nccl", 125, 33, **ALLREDUCE)])

    assert trace.stats_of_event(0)["In msg nelems"] == 1024
    assert trace.stats_of_event(0)["Group size"] == 2
    assert trace.events.kind.tolist() == [EventKind.COLLECTIVE]


def test_work_drawn_on_another_lane_is_on_the_stream_it_ran_on() -> None:
    moved = kernel("gemm", 125, 10, 77, graph=3, node=31)
    moved |= {"tid": 61, "args": moved["args"] | {"stream": 61, "original_stream": 23}}
    trace = trace_of([moved, kernel("add", 140, 5, 78)])

    assert [trace.line_name(row) for row in trace.events.line.tolist()] == ["Stream #7(Compute)", "Stream #23(Compute)"]
    assert {name: trace.stats_of_event(1)[name] for name in ("stream", "annotated_stream")} == {
        "stream": 23,
        "annotated_stream": 61,
    }


def test_annotated_modules_are_the_tree_of_modules_with_forward_and_backward_time() -> None:
    trace = trace_of(
        [
            annotated("gemm", 125, 31, module_fqn="layers.0.wq"),
            annotated("gemm", 135, 32, module_fqn="layers.0.wq", autograd_phase="backward"),
            annotated("gemm", 145, 33, module_fqn="layers.1"),
            kernel("plain", 155, 10, 77, graph=3, node=36),
        ]
    )

    report = modules.merge([modules.partial(trace)])
    assert [(row["module"], row["depth"], row["device_us"], row["backward_us"]) for row in report.rows] == [
        ("layers", 0, 20, 10),
        ("0", 1, 10, 10),
        ("wq", 2, 10, 10),
        ("1", 1, 10, 0),
    ]
    assert report.unassigned_device_us == 10
