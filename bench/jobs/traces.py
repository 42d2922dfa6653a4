"""Simulated processes as PyTorch writes them down: one Kineto trace a rank, gzipped, by the clock of its machine."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from bench.jobs.simulate import F64, Process, Record

if TYPE_CHECKING:
    from bench.jobs.plan import Group, Job, Plan

START_US = 4_000_000_000.0  # behind the time from which Kineto counts
BASE_NS = 1_790_857_026_000_000_000
LISTED_RANKS = 30  # PyTorch writes no more ranks of a group into an op
SYNC_LINE = 1_000_000  # Kineto draws what a stream waits for on a line of its own
NCCL = {
    "allreduce": "AllReduce_Sum_bf16_RING_LL",
    "_allgather_base": "AllGather_RING_LL",
    "_reduce_scatter_base": "ReduceScatter_Sum_bf16_RING_LL",
    "all_to_allv": "SendRecv",
    "send_recv": "SendRecv",
}
AXIS_NAMES = {
    "tensor": "TENSOR_MODEL_PARALLEL_GROUP",
    "context": "CONTEXT_PARALLEL_GROUP",
    "expert": "EXPERT_MODEL_PARALLEL_GROUP",
    "data": "DATA_PARALLEL_GROUP",
    "pipeline": "PIPELINE_MODEL_PARALLEL_GROUP",
    "embedding": "EMBEDDING_GROUP",
}


def write_traces(folder: Path, plan: Plan, times: F64) -> list[float]:
    """One file a rank; how wrong the clock of each machine is, in us."""
    job = plan.job
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([job.seed, 9])
    skew = rng.uniform(-1, 1, job.world // job.per_host) * job.skew_ms * 1e3
    for process in plan.processes:
        host = process.rank // job.per_host
        path = folder / f"node{host:03}_{4000 + process.rank}.{BASE_NS + process.rank}.pt.trace.json.gz"
        trace = describe_process(job, process, times + START_US + skew[host], path.name)
        path.write_bytes(gzip.compress(msgspec.json.encode(trace), 1))
    return skew.tolist()


def describe_process(job: Job, process: Process, times: F64, name: str) -> dict[str, Any]:
    """The trace of one rank as a JSON object."""
    groups = {one.args["group"].name: one.args["group"] for one in process.records if "group" in one.args}
    config = [
        {"pg_name": at, "pg_desc": AXIS_NAMES[group.axis], "backend_config": "cuda:nccl", "pg_size": len(group.ranks),
         "ranks": list(group.ranks)}
        for at, group in groups.items()
    ]  # fmt: skip
    gpu = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{**gpu, "totalGlobalMem": 85_029_158_912, "warpSize": 32}],
        "distributedInfo": {
            "backend": "nccl", "rank": process.rank, "world_size": job.world, "pg_count": len(config),
            "pg_config": config, "nccl_version": "2.21.5",
        },
        "host_name": name.split("_")[0],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": [*_names(process), *_events(job, process, times)],
        "traceName": name,
    }  # fmt: skip


def _names(process: Process) -> Iterator[dict[str, Any]]:
    pid = 4000 + process.rank
    for name, at, tid, args in (
        ("process_name", pid, 0, {"name": "python"}),
        ("process_labels", pid, 0, {"labels": "CPU"}),
        ("thread_name", pid, pid, {"name": f"thread {pid} (python)"}),
        ("thread_name", pid, pid + 1, {"name": f"thread {pid + 1} (pt_autograd_0)"}),
        ("process_name", 0, 0, {"name": "python"}),
        ("process_labels", 0, 0, {"labels": "GPU 0"}),
    ):
        yield {"ph": "M", "name": name, "ts": START_US, "pid": at, "tid": tid, "args": args}


def _events(job: Job, process: Process, times: F64) -> Iterator[dict[str, Any]]:
    """What the profiler writes of each record; a kernel comes right after the call that started it."""
    pid = 4000 + process.rank
    calls: dict[int, Record] = {}
    for record in process.records:
        thread = _timed(record, times, pid, pid + record.thread)
        number = {"correlation": record.correlation}
        if record.what == "kernel":
            yield from _kernel(job, record, calls[record.correlation], times, pid)
        elif record.what in ("note", "op"):
            cat = "user_annotation" if record.what == "note" else "cpu_op"
            yield {**thread, "cat": cat, "name": record.name, "args": {"External id": record.correlation}}
        elif record.what == "comm":
            args = {"External id": record.correlation, **_communication(job, record.args)}
            yield {**thread, "cat": "cpu_op", "name": record.name, "args": args}
        elif record.what != "python":
            calls[record.correlation] = record
            yield {**thread, "cat": "cuda_runtime", "name": record.name, "args": {"cbid": 211, **number}}
            if record.what != "call":
                yield _synchronization(record, times)


def _timed(record: Record, times: F64, pid: int, tid: int) -> dict[str, Any]:
    begin, end = float(times[record.begin]), float(times[record.end])
    return {"ph": "X", "pid": pid, "tid": tid, "ts": round(begin, 3), "dur": round(end - begin, 3)}


def _kernel(job: Job, record: Record, call: Record, times: F64, pid: int) -> Iterator[dict[str, Any]]:
    """A kernel with its flow, and the op that started it around the call."""
    device = _timed(record, times, 0, record.stream)
    outer = _timed(call, times, pid, pid + call.thread)
    args: dict[str, Any] = {"queued": 0, "device": 0, "context": 1, "stream": record.stream}
    args |= {"correlation": record.correlation, "grid": [132, 1, 1], "block": [256, 1, 1]}
    name = record.name
    if record.name in NCCL:
        name = f"ncclDevKernel_{NCCL[record.name]}(ncclDevKernelArgsStorage<4096ul>)"
    if "way" in record.args and record.args["way"] is None:
        yield {**outer, "cat": "user_annotation", "name": "nccl:coalesced", "args": {}}
    else:
        about = _communication(job, {"name": record.name, **record.args}) if record.args else {}
        op = "record_param_comms" if about else "aten::mm"
        yield {**outer, "cat": "cpu_op", "name": op, "args": {"External id": record.correlation, **about}}
        args |= {"External id": record.correlation, **about}
    yield {**device, "cat": "kernel", "name": name, "args": args}
    flow = {"id": record.correlation, "cat": "ac2g", "name": "ac2g"}
    yield {**flow, "ph": "s", "pid": pid, "tid": outer["tid"], "ts": outer["ts"]}
    yield {**flow, "ph": "f", "bp": "e", "pid": 0, "tid": record.stream, "ts": device["ts"]}


def _communication(job: Job, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `record_param_comms`; a send or receive names its partner, where the job has that recorded."""
    group: Group = args["group"]
    ranks, name, size = group.ranks, args.get("name"), group.name
    found: dict[str, Any] = {}
    if args.get("way") is not None:
        is_send, other = args["way"]
        name = "send" if is_send else "recv"
        if job.peers:
            found = {"Rank": ranks.index(other), "Dst Rank" if is_send else "Src Rank": other}
    listed = [str(rank) for rank in ranks[:LISTED_RANKS]] + ["..."] * (len(ranks) > LISTED_RANKS)
    elements = 1 << (24 if group.axis in ("data", "embedding") else 22)
    return {
        "Collective name": name, "In msg nelems": elements, "Out msg nelems": elements, "Group size": len(ranks),
        "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]", "Process Group Name": size,
        "Process Group Description": AXIS_NAMES[group.axis], "Process Group Ranks": f"[{', '.join(listed)}]", **found,
    }  # fmt: skip


def _synchronization(record: Record, times: F64) -> dict[str, Any]:
    stream, is_wait = record.args["stream"], record.what == "wait"
    args = {
        "cuda_sync_kind": "Stream Wait Event" if is_wait else "Stream Sync",
        "stream": stream,
        "correlation": record.correlation,
        "device": 0,
        "context": 1,
    }
    if is_wait:
        on = record.args["wait_on"]
        args |= {"wait_on_stream": on, "wait_on_cuda_event_record_corr_id": record.args["record"]}
        args["wait_on_cuda_event_id"] = record.args["record"]
    timed = _timed(record, times, 0, SYNC_LINE + stream)
    return {**timed, "cat": "cuda_sync", "name": args["cuda_sync_kind"], "args": args}
