"""Recordings of AMD's rocprofv3: kernels, copies, calls and ranges of one process, as JSON."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.errors import UnreadableError
from stepscope.formats.rocprofiler.reader import read
from stepscope.formats.session import find_sessions
from stepscope.model import EventKind

STRINGS = {
    "buffer_records": [
        {"kind": "NONE", "operations": ["NONE"]},
        {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel", "hipDeviceSynchronize", "hipMemcpyAsync"]},
        {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
        {"kind": "MARKER_CORE_API", "operations": ["roctxThreadRangeA", "roctxMarkA"]},
    ],
    "marker_api": [{"key": 100 + step, "value": f"step {step}"} for step in range(4)] + [{"key": 200, "value": "here"}],
}
AGENTS = [
    {"id": {"handle": 5}, "type": 1, "node_id": 0, "name": "a processor"},
    {"id": {"handle": 8}, "type": 2, "node_id": 2, "product_name": "MI300X", "cu_count": 304},
    {"id": {"handle": 7}, "type": 2, "node_id": 1, "product_name": "MI300X", "cu_count": 304},
]
KERNELS = [{"kernel_id": 3, "kernel_name": "relu.kd", "formatted_kernel_name": "relu(float*)"}, {"kernel_id": 4}]
BOOT_NS = 295_000_000_000_000


def timed(start_us: int, us: int, number: int, **more: Any) -> dict[str, Any]:
    start = BOOT_NS + start_us * 1000
    ids = {"internal": number, "external": 0}
    return {"start_timestamp": start, "end_timestamp": start + us * 1000, "correlation_id": ids, "thread_id": 42} | more


def kernel(start_us: int, us: int, number: int, kernel_id: int = 3, agent: int = 8) -> dict[str, Any]:
    sizes = {"workgroup_size": {"x": 256, "y": 1, "z": 1}, "grid_size": {"x": 1000, "y": 2, "z": 1}}
    info = {"agent_id": {"handle": agent}, "queue_id": {"handle": 1}, "kernel_id": kernel_id, **sizes}
    return timed(start_us, us, number, kind=9, operation=1, dispatch_info=info)


def recording(**records: list[dict[str, Any]]) -> dict[str, Any]:
    process = {"metadata": {"pid": 1}, "agents": AGENTS, "strings": STRINGS, "kernel_symbols": KERNELS}
    return {"rocprofiler-sdk-tool": [process | {"buffer_records": records}]}


def training() -> dict[str, Any]:
    """Four steps of 100 us: a copy of 10, a kernel of 50, and a wait for it."""
    starts = [step * 100 for step in range(4)]
    to_gpu = {"kind": 2, "operation": 1, "dst_agent_id": {"handle": 8}, "src_agent_id": {"handle": 5}, "bytes": 4096}
    return recording(
        marker_api=[timed(at, 99, 100 + at // 100, kind=3, operation=0) for at in starts],
        hip_api=[
            each
            for at in starts
            for each in (
                timed(at + 1, 2, at + 3, kind=1, operation=2),
                timed(at + 4, 2, at + 1, kind=1, operation=0),
                timed(at + 8, 82, at + 2, kind=1, operation=1),
            )
        ],
        memory_copy=[timed(at + 20, 10, at + 3, **to_gpu) for at in starts],
        kernel_dispatch=[kernel(at + 30, 50, at + 1) for at in starts],
    )


def written(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_steps_kernels_and_their_launches(tmp_path: Path) -> None:
    profile = stepscope.load(written(tmp_path / "1234_results.json", training()))
    overview = profile.overview().to_dict()
    (row,) = profile.kernel_stats().to_dict()["rows"]

    assert (overview["steps_source"], [step["step"] for step in overview["steps"]]) == ("markers", [0, 1, 2, 3])
    assert [step["duration_ms"] for step in overview["steps"]][1:3] == [0.1, 0.1]
    assert overview["verdict_cause"] == "device_compute"
    assert (row["kernel"], row["occurrences"], row["total_us"]) == ("relu(float*)", 4, 200.0)
    assert (row["grid_dim"], row["block_dim"]) == ([4, 2, 1], [256, 1, 1])


def test_devices_are_numbered_by_their_nodes_and_a_copy_is_on_its_device() -> None:
    trace = read(json.dumps(training()).encode(), "r.json", "h")

    assert [trace.strings[row] for row in trace.planes.name.tolist()] == ["/host:CPU", "/device:GPU:1"]
    assert [trace.line_name(row) for row in range(len(trace.lines))] == [
        "thread 42", "Stream #0(Compute)", "Stream #1(Memcpy)",
    ]  # fmt: skip
    assert int((trace.events.kind == EventKind.COPY_HOST_TO_DEVICE).sum()) == 4


def test_a_mark_is_a_moment_and_a_kernel_without_a_symbol_is_unknown() -> None:
    content = recording(
        marker_api=[timed(0, 9, 200, kind=3, operation=1)], kernel_dispatch=[kernel(1, 5, 0, kernel_id=77)]
    )
    trace = read(json.dumps(content).encode(), "r.json", "h")

    found = {trace.name_of(row): int(trace.events.duration_ps[row]) for row in range(len(trace.events))}
    assert found == {"here": 0, "unknown": 5_000_000}


def test_several_processes_are_as_many_hosts(tmp_path: Path) -> None:
    (one,) = training()["rocprofiler-sdk-tool"]
    content = {"rocprofiler-sdk-tool": [one | {"metadata": {"pid": pid}} for pid in (7, 9)]}

    assert stepscope.load(written(tmp_path / "r.json", content)).hosts == ("process 7", "process 9")


def test_a_compressed_recording_says_the_same(tmp_path: Path) -> None:
    plain = json.dumps(training()).encode()
    (tmp_path / "1234_results.json.gz").write_bytes(gzip.compress(plain))

    packed = stepscope.load(tmp_path / "1234_results.json.gz").overview().to_dict()
    written(tmp_path / "r.json", training())
    assert packed["account"] == stepscope.load(tmp_path / "r.json").overview().to_dict()["account"] != []


def test_a_folder_with_one_is_a_session(tmp_path: Path) -> None:
    written(tmp_path / "1234_results.json", training())
    written(tmp_path / "results.json", {"accuracy": 0.5})
    (session,) = find_sessions(tmp_path)

    assert [file.format.name for file in session.files] == ["rocprofiler"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"rocprofiler-sdk-tool": [', "the JSON cannot be read"),
        (b'{"rocprofiler-sdk-tool": 3}', "rocprofv3 did not write this"),
        (json.dumps(recording(kernel_dispatch=[kernel(0, 0, 0) | {"start_timestamp": 0}])).encode(), "neither kernels"),
        (gzip.compress(json.dumps(training()).encode())[:-9], "cut short"),
        (json.dumps(recording(kernel_dispatch=[3, None, {}], hip_api={})).encode(), "neither kernels"),  # type: ignore[list-item, arg-type]
    ],
)
def test_what_holds_nothing_is_refused_with_its_reason(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        read(content, "r.json", "h")


def test_a_trace_of_another_tool_with_such_a_name_is_read_as_what_it_is(tmp_path: Path) -> None:
    rows = [{"ph": "X", "name": "work", "ts": 1, "dur": 5, "pid": 1, "tid": 1}]

    assert stepscope.load(written(tmp_path / "eval_results.json", {"traceEvents": rows})).hosts == ("eval_results",)
