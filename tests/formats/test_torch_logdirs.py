"""Logdirs as `tensorboard_trace_handler` writes them: several workers and spans in a folder, several devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.errors import UnreadableError

Event = dict[str, Any]
BASE_US = 1_700_000_000_000_000
STEPS = 3
DEVICES = {"cpu": (0, -1), "cuda:0": (1, 0), "cuda:1": (1, 1)}
MB = 1 << 20
REDUCE = {
    "Collective name": "allreduce", "In msg nelems": 250_000, "Out msg nelems": 250_000, "dtype": "Float",
    "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
}  # fmt: skip


def event(category: str, name: str, ts: float, dur: float, pid: int = 9, tid: int = 9, **args: Any) -> Event:
    return {
        "ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": BASE_US + ts, "dur": dur, "args": args
    }  # fmt: skip


def memory(device: str, ts: float, size: int, total: int) -> Event:
    kind, number = DEVICES[device]
    args = {"Addr": abs(size), "Bytes": size, "Device Type": kind, "Device Id": number, "Total Allocated": total}
    return {"ph": "i", "s": "t", "name": "[memory]", "pid": 9, "tid": 9, "ts": BASE_US + ts, "args": args}


def steps(first: int, length: float, reduce: float) -> list[Event]:
    """Steps of 1000 us in which a GPU computes for `length` us and takes part in a collective for `reduce` us."""
    found = []
    for at in range(STEPS):
        begin, number = 1000.0 * at, 10 * at + 1
        found += [
            event("user_annotation", f"ProfilerStep#{first + at}", begin, 1000),
            event("cpu_op", "aten::mm", begin + 10, 20, **{"External id": number}),
            event("cuda_runtime", "cudaLaunchKernel", begin + 15, 5, correlation=number, **{"External id": number}),
            event("kernel", "gemm", begin + 30, length, 0, 7, device=0, stream=7, correlation=number),
            event("cpu_op", "c10d::allreduce_", begin + 40, 20, **{"External id": number + 1}),
            event("cuda_runtime", "cudaLaunchKernelExC", begin + 45, 5, correlation=number + 1),
            event(
                "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + 30 + length, reduce, 0, 20, device=0,
                stream=20, correlation=number + 1,
                **REDUCE,
            ),
        ]  # fmt: skip
    return found


def write(folder: Path, worker: str, stamp: int, events: list[Event], **top: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {"schemaVersion": 1, **top, "traceEvents": events}
    (folder / f"{worker}.{stamp}.pt.trace.json").write_text(json.dumps(document))


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """Two ranks, two spans each; rank 1 computes longer, so rank 0 waits in the collective."""
    for rank, (length, reduce) in enumerate(((200, 500), (600, 100))):
        for span in range(2):
            info = {"backend": "nccl", "rank": rank, "world_size": 2}
            stamp = 1_700_000_000_000_000_000 + span * 60_000_000_000 + rank
            write(tmp_path / "log", f"node_{70 + rank}", stamp, steps(10 * span, length, reduce), distributedInfo=info)
    return tmp_path / "log"


def test_spans_are_sessions_and_workers_are_hosts_of_them(logdir: Path) -> None:
    newest = stepscope.load(str(logdir))
    first = stepscope.load(str(logdir), run="span_1")

    assert newest.overview().to_dict()["hosts"] == ["node_70", "node_71"]
    assert {row["step"] for row in newest.steps().to_dict()["rows"]} == {10, 11, 12}
    assert {row["step"] for row in first.steps().to_dict()["rows"]} == {0, 1, 2}


def test_one_worker_of_a_span_is_chosen_by_name(logdir: Path) -> None:
    one = stepscope.load(str(logdir), host="node_71")

    assert one.overview().to_dict()["hosts"] == ["node_71"]


def test_the_pod_viewer_has_every_step_of_every_worker(logdir: Path) -> None:
    rows = stepscope.load(str(logdir)).pod_viewer().to_dict()["rows"]

    assert sorted((row["step"], row["host"], row["device_compute"], row["device_collectives"]) for row in rows) == [
        (step, host, compute, reduce)
        for step in (10, 11, 12)
        for host, compute, reduce in (("node_70", 0.2, 0.5), ("node_71", 0.6, 0.1))
    ]  # fmt: skip


def test_the_distributed_view_splits_a_collective_into_transfer_and_waiting(logdir: Path) -> None:
    found = stepscope.load(str(logdir)).report("distributed").to_dict()

    assert found["slowest_rank"] == "rank 1"
    assert [(row["rank"], row["waiting_ms"], row["held_up_ms"]) for row in found["rows"]] == [(0, 1.2, 0), (1, 0, 1.2)]
    (reduce,) = found["collectives"]
    wanted = {"operation": "all_reduce", "count": 6, "bytes": 1_000_000, "transfer_us": 100, "waiting_us": 200}
    assert {key: reduce[key] for key in wanted} == wanted
    # An all-reduce of n ranks moves 2 (n - 1) / n of its bytes over each link.
    assert reduce["bus_gb_per_s"] == pytest.approx(1_000_000 / 100e-6 / 1e9)


def test_memory_of_each_device_stands_for_itself(tmp_path: Path) -> None:
    events = [
        event("user_annotation", "ProfilerStep#0", 0, 100),
        event("cpu_op", "aten::empty", 5, 80),
        memory("cpu", 10, 1 * MB, 5 * MB),
        memory("cuda:0", 20, 3 * MB, 3 * MB),
        memory("cuda:1", 30, 7 * MB, 9 * MB),
        memory("cuda:0", 40, 2 * MB, 5 * MB),
        memory("cuda:0", 50, -3 * MB, 2 * MB),
    ]
    write(tmp_path, "worker", 1, events)
    found = stepscope.load(str(tmp_path)).memory_profile().to_dict()["memories"]

    assert [(each["id"], each["allocations"], each["deallocations"]) for each in found] == [
        ("cpu", 1, 0), ("cuda:0", 2, 1), ("cuda:1", 1, 0),
    ]  # fmt: skip
    assert [(each["peak"]["heap_bytes"], each["peak"]["time_ms"]) for each in found] == [
        (5 * MB, 0.01), (5 * MB, 0.04), (9 * MB, 0.03),
    ]  # fmt: skip


def test_an_intel_gpu_and_its_runtime(tmp_path: Path) -> None:
    args = {"device": 0, "sycl queue": 2, "correlation": 5}
    events = [
        event("user_annotation", "ProfilerStep#0", 0, 100),
        event("cpu_op", "aten::mm", 10, 30, **{"External id": 3}),
        event("xpu_runtime", "urEnqueueKernelLaunch", 15, 5, correlation=5, **{"External id": 3}),
        event("kernel", "gemm_kernel", 30, 20, 0, 2, **args),
        event("xpu_runtime", "urEnqueueUSMMemcpy", 55, 2, correlation=6),
        event("gpu_memcpy", "zeCommandListAppendMemoryCopy(M2D)", 58, 4, 0, 2, device=0, correlation=6, bytes=400),
        event("xpu_sync", "zeEventHostSynchronize", 64, 6, 0, 2),
        event("xpu_runtime", "zeEventHostSynchronize", 64, 6, correlation=7),
    ]
    properties = [{"id": 0, "name": "Intel(R) Data Center GPU Max 1100", "totalGlobalMem": 48 << 30}]
    write(tmp_path, "worker", 1, events, deviceProperties=properties)
    profile = stepscope.load(str(tmp_path))

    overview = profile.overview().to_dict()
    (kernel,) = profile.kernel_stats().to_dict()["rows"]
    (copy,) = profile.input_pipeline().to_dict()["copies"]
    (wait,) = profile.report("syncs").to_dict()["rows"]
    assert overview["environment"]["device_type"] == "Intel(R) Data Center GPU Max 1100"
    assert (overview["breakdown_ms"]["device_compute"], overview["breakdown_ms"]["input"]) == (0.02, 0.004)
    assert (kernel["kernel"], kernel["op"], kernel["total_us"]) == ("gemm_kernel", "aten::mm", 20)
    assert (copy["count"], copy["bytes"], copy["total_ms"]) == (1, 400, 0.004)
    assert (wait["call"], wait["count"], wait["total_us"]) == ("zeEventHostSynchronize", 1, 6)


def test_a_trace_of_pytorch_1_9_through_the_tools(tmp_path: Path) -> None:
    events = [
        event("Operator", "ProfilerStep#4", 0, 100, **{"External id": 1}),
        event("Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 5, 20),
        event("Operator", "aten::mm", 30, 30, **{"External id": 3}),
        event("Runtime", "cudaLaunchKernel", 35, 5, correlation=5, **{"external id": 3}),
        event(
            "Kernel", "volta_sgemm", 45, 20, 0, 7, device=0, stream=7, correlation=5, grid=[4, 1, 1],
            **{"external id": 3, "blocks per SM": 0.05, "registers per thread": 40, "est. achieved occupancy %": 31},
        ),
        event("Memcpy", "Memcpy HtoD (Pageable -> Device)", 70, 10, 0, 7, device=0, stream=7, bytes=64),
    ]  # fmt: skip
    write(tmp_path, "worker", 1, events)
    profile = stepscope.load(str(tmp_path))

    (step,) = profile.steps().to_dict()["rows"]
    (kernel,) = profile.kernel_stats().to_dict()["rows"]
    pipeline = profile.input_pipeline().to_dict()
    assert (step["step"], step["duration_ms"], step["device_compute"], step["input"]) == (4, 0.1, 0.02, 0.03)
    assert (kernel["op"], kernel["registers_per_thread"], kernel["occupancy_percent"]) == ("aten::mm", 40, 31)
    assert [(row["calls"], row["total_ms"], row["workers"]) for row in pipeline["loaders"]] == [(1, 0.02, 0)]
    assert [(row["memory"], row["bytes"]) for row in pipeline["copies"]] == [("pageable", 64)]


def test_a_newest_trace_that_is_broken_names_the_one_beside_it(tmp_path):
    write(tmp_path, "w", BASE_US, steps(0, 100, 100))
    (tmp_path / f"w.{BASE_US + 1}.pt.trace.json").write_text('{"a": 1')

    with pytest.raises(UnreadableError, match=f"use an earlier run with --run: {tmp_path.name}/span_1$"):
        stepscope.load(tmp_path).overview()
    assert stepscope.load(tmp_path, run="span_1").overview().step_time_ms["count"] == STEPS
    with pytest.raises(UnreadableError, match=r"or a JSON array of events$"):
        stepscope.load(tmp_path, run="span_2").overview()
