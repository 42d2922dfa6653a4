"""Memory snapshots of PyTorch: what becomes of them, and that nothing in a pickle is ever executed."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.errors import UnreadableError
from stepscope.formats.session import find_sessions
from stepscope.formats.sniffing import sniff
from stepscope.formats.torch_memory.reader import read

MIB = 1 << 20


def frames(*names: str) -> list[dict[str, Any]]:
    return [{"filename": name.split(":")[0], "line": int(name.split(":")[1]), "name": "f"} for name in names]


def entry(action: str, address: int, size: int, time_us: int | None, *stack: str) -> dict[str, Any]:
    made = {"action": action, "addr": address, "size": size, "stream": 0, "frames": frames(*stack)}
    return made if time_us is None else made | {"time_us": time_us}


def block(address: int, size: int, state: str = "active_allocated", *stack: str) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size - 8, "state": state, "frames": frames(*stack)}


def snapshot(*entries: dict[str, Any], blocks: tuple[dict[str, Any], ...] = (), pool: int = 0) -> dict[str, Any]:
    segment = {"device": 0, "address": 0, "total_size": pool, "blocks": list(blocks), "segment_type": "large"}
    return {"segments": [segment], "device_traces": [list(entries)], "allocator_settings": {"PYTORCH": ""}}


# 2 MiB of weights are older than the history.  An activation of 3 MiB comes and goes, one of 4 MiB stays.
HISTORY = snapshot(
    entry("segment_alloc", 0, 4 * MIB, 1_000_100),
    entry("alloc", 100, 3 * MIB, 1_000_200, "/opt/site-packages/torch/nn/linear.py:3", "net.py:12"),
    entry("free_requested", 100, 3 * MIB, 1_000_300),
    entry("free_completed", 100, 3 * MIB, 1_000_400),
    entry("alloc", 100, 4 * MIB, 1_000_500, "net.py:20"),
    blocks=(block(100, 4 * MIB), block(900, 2 * MIB, "active_allocated", "init.py:7"), block(950, MIB, "inactive")),
    pool=10 * MIB,
)


def memory(path: Path) -> dict[str, Any]:
    [found] = stepscope.load(path).memory_profile().to_dict()["memories"]
    return dict(found)


def saved(folder: Path, value: object, name: str = "snapshot.pickle") -> Path:
    path = folder / name
    path.write_bytes(pickle.dumps(value))
    return path


def test_a_snapshot_in_the_memory_tool(tmp_path: Path) -> None:
    found = memory(saved(tmp_path, HISTORY))

    assert (found["id"], found["allocations"], found["deallocations"]) == ("cuda:0", 3, 1)
    assert [(row["time_ms"], row["event"], row["in_use_bytes"]) for row in found["timeline"]] == [
        (0, "allocation", 2 * MIB),
        (0.1, "allocation", 5 * MIB),
        (0.3, "deallocation", 2 * MIB),
        (0.4, "allocation", 6 * MIB),
    ]
    assert found["peak"]["heap_bytes"] == 6 * MIB
    assert {row["op"]: row["allocated_bytes"] for row in found["breakdown"] if row["op"]}.items() >= {
        "net.py(20): f": 4 * MIB,
        "init.py(7): f": 2 * MIB,
    }.items()


def test_the_pool_is_that_of_the_segments() -> None:
    trace = read(pickle.dumps(HISTORY), "x", "h")
    assert trace.stat_ints(("Total Reserved",)).tolist() == [6 * MIB] + [10 * MIB] * 3
    assert trace.start_unix_ns == 1_000_100_000
    assert trace.problems == ()


def test_older_snapshots_without_times_keep_their_order() -> None:
    old = snapshot(entry("alloc", 1, 512, None, "a.py:1"), entry("free_completed", 1, 512, None))
    trace = read(pickle.dumps(old), "x", "h")
    assert trace.stat_ints(("Bytes",), 0).tolist() == [512, -512]
    assert trace.stat_ints(("Total Allocated",)).tolist() == [512, 0]
    assert [problem.code for problem in trace.problems] == ["no-time"]


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_is_read(protocol: int) -> None:
    trace = read(pickle.dumps(HISTORY, protocol), "x", "h")
    assert len(trace.events) == 4


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch executed",)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_in_a_pickle_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableError, match=r"asks for \w+\.system, which is never imported"):
        read(pickle.dumps({"segments": [Evil()], "device_traces": []}, protocol), "x", "h")
    assert not Path("executed").exists()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cannot be read"),
        (b"no pickle", "cannot be read"),
        (pickle.dumps(HISTORY)[:-20], "cannot be read"),
        (pickle.dumps({"weights": [1]}), "is not a memory snapshot"),
        (pickle.dumps([1, 2]), "is not a memory snapshot"),
        (b"\x80\x04\x8c\x01xQ.", "refers to something outside itself"),
        (b"\x80\x04Nr\xff\xff\xff\xff.", "claims to hold more than it has bytes"),
    ],
    ids=["empty", "text", "cut", "other", "list", "persistent", "gigabytes"],
)
def test_what_is_no_snapshot_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        read(data, "x", "h")


def test_hostile_values_are_left_out() -> None:
    odd = {
        "segments": [None, {"device": 10**9, "total_size": -1}, {"device": 0, "blocks": ["x", {"state": "inactive"}]}],
        "device_traces": [[None, {"action": "alloc", "addr": 1 << 200, "size": "?", "time_us": 5, "frames": 7}], 3],
    }
    trace = read(pickle.dumps(odd), "x", "h")
    assert trace.stat_ints(("Bytes",)).tolist() == [0]


def test_lists_are_no_states_and_half_characters_no_harm() -> None:
    """What cannot be looked up in a set, and what cannot be written as UTF-8."""
    odd = snapshot(
        entry("alloc", 1, 8, 5, "half_\ud800.py:7") | {"action": ["alloc"]},
        entry("alloc", 2, 16, 6, "half_\ud800.py:7"),
        blocks=(block(1, 8) | {"state": ["active_allocated"]},),
    )
    trace = read(pickle.dumps(odd), "x", "h")
    assert [trace.stats_of_event(row)["Bytes"] for row in range(len(trace.events))] == [16]
    assert "half_?.py(7): f" in trace.stats_of_event(0).values()


@pytest.mark.parametrize(
    ("first", "second", "codes"),
    [(1_000_000, 1_000_007, []), (0, 1_700_000_000_000_000, ["no-time"]), (10**30, 10**30, ["no-time"])],
    ids=["one clock", "two clocks", "no clock's"],
)
def test_times_of_no_one_clock_are_none(first: int, second: int, codes: list[str]) -> None:
    trace = read(pickle.dumps(snapshot(entry("alloc", 1, 8, first), entry("alloc", 2, 8, second))), "x", "h")
    assert [problem.code for problem in trace.problems] == codes
    assert trace.events.start_ps.tolist() == ([0, 1_000_000] if codes else [0, 7_000_000])


def test_devices_whose_clocks_are_too_far_apart_lose_their_times() -> None:
    two = {"device_traces": [[entry("alloc", 1, 8, 5)], [entry("alloc", 1, 8, 1 << 50)]]}
    trace = read(pickle.dumps(two), "x", "h")
    assert [problem.code for problem in trace.problems] == ["no-time"]
    assert trace.events.start_ps.tolist() == [0, 0]


def test_pickles_in_a_folder_are_left_alone(tmp_path: Path) -> None:
    """A folder of weights is no folder of profiles."""
    saved(tmp_path, HISTORY)
    (tmp_path / "a.pt.trace.json").write_text('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]}')
    [session] = find_sessions(tmp_path)
    assert session.hosts == ("a",)


def test_a_snapshot_is_known_by_its_content(tmp_path: Path) -> None:
    path = saved(tmp_path, HISTORY, "dump")
    assert memory(path)["allocations"] == 3
    fmt = sniff(path.read_bytes())
    assert fmt is not None
    assert fmt.name == "torch-memory"


def test_stacks_say_what_memory_is_for(tmp_path: Path) -> None:
    def kept(address: int, size: int, *stack: tuple[str, str]) -> dict[str, Any]:
        made = [{"filename": file, "line": 5, "name": name} for file, name in (*stack, ("train.py", "main"))]
        return block(address, size) | {"frames": made}

    torch = "/opt/site-packages/torch/"
    blocks = (
        kept(1, 4 * MIB, (f"{torch}nn/modules/module.py", "_apply")),
        kept(2, 3 * MIB, (f"{torch}optim/adam.py", "_init_group"), (f"{torch}optim/optimizer.py", "wrapper")),
        kept(3, 2 * MIB, (f"{torch}autograd/graph.py", "_engine_run_backward"), (f"{torch}_tensor.py", "backward")),
        kept(4, MIB, ("net.py", "forward"), (f"{torch}nn/modules/module.py", "_call_impl")),
    )
    rows = memory(saved(tmp_path, snapshot(blocks=blocks, pool=10 * MIB)))["purposes"]

    assert [(row["purpose"], row["line"], row["allocated_bytes"] // MIB) for row in rows] == [
        ("parameters", "train.py(5): main", 4),
        ("optimizer_state", "train.py(5): main", 3),
        ("gradients", "train.py(5): main", 2),
        ("activations", "net.py(5): forward", 1),
    ]


@pytest.mark.parametrize("tool", ["steps", "op-stats"])
def test_other_tools_point_to_the_one_that_has_an_answer(tmp_path: Path, tool: str) -> None:
    path = saved(tmp_path, HISTORY)
    with pytest.raises(UnreadableError, match=f"a memory snapshot .* holds nothing for {tool}") as caught:
        stepscope.load(path).report(tool)
    assert f"`stepscope memory-profile {path}`" in str(caught.value)


def test_what_was_refused_and_who_asked_is_said(tmp_path: Path) -> None:
    refused = entry("oom", 0, 2 * MIB, 1_000_600, "/opt/site-packages/torch/nn/linear.py:3", "net.py:31") | {
        "device_free": MIB
    }
    history = {**HISTORY, "device_traces": [[*HISTORY["device_traces"][0], refused]]}
    warnings = stepscope.load(saved(tmp_path, history)).memory_profile().to_dict()["warnings"]
    assert any(
        "GPU 0 was out of memory: 2,097,152 bytes were refused and 1,048,576 were free, asked for by net.py(31): f"
        in text
        for text in warnings
    ), warnings


@pytest.mark.parametrize(
    ("below", "owner"),
    [
        ((), "at::native::bmm_out(at::Tensor const&)"),
        (("net.py:12",), "net.py(12): f"),
    ],
    ids=["without-python", "with-python"],
)
def test_the_owner_is_the_first_frame_below_the_unwinder_and_the_allocator(below: tuple[str, ...], owner: str) -> None:
    machinery = [
        "torch::unwind::unwind()", "torch::CapturedTraceback::gather(bool, bool, bool)",
        "torch::cuda::(anonymous namespace)::gather_with_cpp()",
        "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long)",
        "at::detail::empty_cuda(c10::ArrayRef<long>)", "at::native::bmm_out(at::Tensor const&)",
    ]  # fmt: skip
    made = entry("alloc", 100, MIB, 1_000_100)
    made["frames"] = [{"filename": "??", "line": 0, "name": name} for name in machinery] + frames(*below)
    trace = read(pickle.dumps(snapshot(made)), "s.pickle", "h")
    assert trace.stats_of_event(0)["tf_op"] == owner


def test_parts_that_refer_to_each_other_claim_no_more_entries_than_bytes() -> None:
    shared = [entry("alloc", 1, 1, 1)] * 1000
    with pytest.raises(UnreadableError, match="bytes claim 1,000,000 entries"):
        read(pickle.dumps({"segments": [], "device_traces": [shared] * 1000}), "s.pickle", "h")
