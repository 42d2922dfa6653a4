"""Replays of graphs beside traces of their capture, as PyTorch writes both: work gets the op that recorded it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.trace.attribution import HowKnown, attribute
from stepscope.analysis.trace.captured_graphs import merge_captures
from stepscope.formats.kineto.reader import read
from stepscope.model import HostTrace

Event = dict[str, Any]


def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> Event:
    pid = 0 if cat in ("kernel", "gpu_memset", "gpu_memcpy") else 7
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def capture(*work: tuple[str, str], names: bool = True, nodes: int = 0) -> list[Event]:
    """One capture: each op and what it launches; the call names that, as on ROCm, or has the id of its node."""
    events = [event("cuda_runtime", "hipStreamBeginCapture", 0, 1)]
    for k, (op, kernel) in enumerate(work):
        call = {"": "hipModuleLaunchKernel", "Memset": "hipMemsetAsync"}["Memset" if kernel == "Memset" else ""]
        named = {"kernel": kernel} if names and kernel != "Memset" else {}
        node = {"graph id": 3, "graph node id": nodes + k} if nodes else {}
        events += [
            event("cpu_op", op, 10 + 10 * k, 9, **{"External id": k + 1}),
            event("cuda_runtime", call, 12 + 10 * k, 2, correlation=k + 1, **named, **node),
        ]
    return [*events, event("cuda_runtime", "hipStreamEndCapture", 10 + 10 * len(work), 1)]


def replay(*launches: tuple[str, ...], nodes: int = 0) -> list[Event]:
    """A launch for each graph, and the work of each on one stream."""
    events = []
    for k, kernels in enumerate(launches):
        events.append(event("cuda_runtime", "hipGraphLaunch", 1000 * k, 20, correlation=50 + k))
        for at, name in enumerate(kernels):
            node = {"graph id": 3, "graph node id": nodes + at} if nodes else {}
            cat = "gpu_memset" if name == "Memset" else "kernel"
            events.append(event(cat, name, 1000 * k + 30 + 10 * at, 8, tid=3, correlation=50 + k, **node))
    return events


def trace(events: list[Event]) -> HostTrace:
    return read(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode(), "a.pt.trace.json", "h")


def ops(found: HostTrace) -> list[str]:
    """The op of each piece of work in the order of time, and the way it is known if that is another than its node."""
    found.check()
    known = attribute(found)
    order = found.events.start_ps[known.rows].argsort()
    return [
        known.ops[known.op[at]][0]
        + ("" if known.source[at] == HowKnown.GRAPH else f" ({HowKnown(known.source[at]).name})")
        for at in order.tolist()
    ]


SMALL = capture(("aten::mm", "gemm_1"), ("aten::zero_", "Memset"), ("aten::add", "add"))
LARGE = capture(("aten::mm", "gemm_8"), ("aten::add", "add"))


def test_work_gets_the_op_of_the_capture_with_the_same_kernels():
    found = merge_captures(trace(replay(("gemm_8", "add"), ("gemm_1", "Memset", "add"))), [trace(SMALL), trace(LARGE)])

    assert ops(found) == ["aten::mm", "aten::add", "aten::mm", "aten::zero_", "aten::add"]
    (problem,) = found.problems
    assert problem.reason == "2 of 2 graph replays got ops by position in a capture"


@pytest.mark.parametrize(
    "kernels", [("gemm_8",), ("add", "gemm_8"), ("gemm_8", "mul"), ("gemm_8", "add", "add")], ids=" ".join
)
def test_other_work_than_was_captured_keeps_its_graph(kernels: tuple[str, ...]):
    found = merge_captures(trace(replay(kernels)), [trace(LARGE)])

    assert ops(found) == ["graph (WHOLE_GRAPH)"] * len(kernels)
    assert "annotate the graphs" in str(found.problems[0].hint)


def test_captures_that_disagree_say_nothing():
    other = capture(("aten::matmul", "gemm_8"), ("aten::add", "add"))

    assert (
        ops(merge_captures(trace(replay(("gemm_8", "add"))), [trace(LARGE), trace(other)]))
        == ["graph (WHOLE_GRAPH)"] * 2
    )


def test_calls_that_do_not_name_their_kernels_are_told():
    """CUDA's: number and order alone would be a guess."""
    nameless = trace(capture(("aten::mm", "x"), ("aten::add", "y"), names=False))
    found = merge_captures(trace(replay(("gemm_8", "add"))), [nameless])

    assert ops(found) == ["graph (WHOLE_GRAPH)"] * 2
    assert found.problems[0].reason == (
        "0 of 1 graph replay got ops by position in a capture; the calls of 1 of 1 capture do not name their kernels"
    )


def test_ids_of_nodes_win_over_positions():
    recorded = capture(("aten::mm", "x"), ("aten::add", "y"), names=False, nodes=40)
    found = merge_captures(trace(replay(("gemm_8", "add"), nodes=40)), [trace(recorded)])

    assert ops(found) == ["aten::mm", "aten::add"]
    assert found.problems[0].reason.startswith("2 pieces of replayed work have the op of their captured node")


def test_a_folder_with_captures_is_read_as_one(tmp_path: Path):
    (tmp_path / "capture_traces").mkdir()
    for name, events in (
        ("rank0.1.pt.trace.json", replay(("gemm_8", "add"))),
        ("capture_traces/bs_8_rank0.1.pt.trace.json", LARGE),
    ):
        (tmp_path / name).write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    shares = stepscope.load(tmp_path).op_stats().to_dict()["attribution"]
    alone = stepscope.load(tmp_path / "rank0.1.pt.trace.json").op_stats().to_dict()["attribution"]

    assert (shares["graph_percent"], shares["whole_graph_percent"]) == (100.0, 0.0)
    assert (alone["graph_percent"], alone["whole_graph_percent"]) == (0.0, 100.0)
