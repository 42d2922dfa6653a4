"""The memory profile: every rule on traces of a few allocations, and the figures beside XProf's on real profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reporting import reporter, table

import stepscope
from stepscope.analysis.overview import overview_tool
from stepscope.analysis.resources import memory_profile_tool as memory_profile
from stepscope.analysis.resources import memory_usage
from stepscope.analysis.resources.counted_memory import last_memory_sentence
from stepscope.analysis.resources.memory_usage import BREAKDOWN, MOST_POINTS, thin_out
from stepscope.analysis.resources.purposes import Held, shorten_held
from stepscope.errors import Problem
from stepscope.model import EventKind, HostTrace, LineBuilder, LineKind, PlaneKind, TraceBuilder
from stepscope.model.trace import StatValue
from stepscope.report import Rows
from stepscope.report.looks import visible_fields

if TYPE_CHECKING:
    from framework_captures import FrameworkCapture


MS = 10**9
MIB = 1 << 20
CAPACITY = 100


class Memory:
    """Draws what one allocator of TensorFlow or JAX records: sizes in bytes, times in ms."""

    def __init__(self, line: LineBuilder, name: str = "GPU_0_bfc", **more: StatValue) -> None:
        self.line, self.more, self.in_use, self.peak = line, {"allocator_name": name, **more}, 0, 0

    def starts_with(self, size: int) -> Memory:
        self.in_use = self.peak = size
        return self

    def allocate(self, at: float, size: int, addr: int, **stats: StatValue) -> None:
        self.in_use += size
        self.peak = max(self.peak, self.in_use)
        self._record(
            at, EventKind.ALLOCATION, {"allocation_bytes": size, "requested_bytes": size, "addr": addr} | stats
        )

    def free(self, at: float, size: int, addr: int, **stats: StatValue) -> None:
        self.in_use -= size
        self._record(
            at, EventKind.DEALLOCATION, {"allocation_bytes": size, "requested_bytes": size, "addr": addr} | stats
        )

    def _record(self, at: float, kind: EventKind, stats: dict[str, StatValue]) -> None:
        state: dict[str, StatValue] = {
            "bytes_reserved": 0,
            "bytes_allocated": self.in_use,
            "bytes_available": CAPACITY - self.in_use,
            "fragmentation": 0,
            "peak_bytes_in_use": self.peak,
        }
        name = "MemoryAllocation" if kind == EventKind.ALLOCATION else "MemoryDeallocation"
        self.line.event(name, round(at * MS), 0, kind, state | self.more | stats)


class Host:
    """A host with one thread."""

    def __init__(self, name: str = "host", framework: str = "tensorflow") -> None:
        self.builder = TraceBuilder(name)
        self.builder.framework = framework
        self.plane = self.builder.plane("/host:CPU", PlaneKind.HOST)
        self.line = self.builder.line(self.plane, "python")

    def thread(self, name: str) -> LineBuilder:
        return self.builder.line(self.plane, name)

    def step(self, number: int, begin: float, end: float) -> None:
        stats = {"step_num": number}
        self.line.event("train", round(begin * MS), round((end - begin) * MS), EventKind.STEP_MARK, stats)

    def torch(self, at: float, size: int, **stats: StatValue) -> None:
        """What PyTorch records: a negative size frees."""
        kind = EventKind.ALLOCATION if size > 0 else EventKind.DEALLOCATION
        self.line.event("[memory]", round(at * MS), 0, kind, {"Bytes": size} | stats)


def profile(*hosts: Host | HostTrace) -> memory_profile.MemoryProfileReport:
    traces = [host.builder.build() if isinstance(host, Host) else host for host in hosts]
    return reporter(memory_profile)(*traces)


def loaded(path: Path) -> memory_profile.MemoryProfileReport:
    report = stepscope.load(path).report("memory-profile")
    assert isinstance(report, memory_profile.MemoryProfileReport)
    return report


def only(report: memory_profile.MemoryProfileReport) -> dict[str, Any]:
    (memory,) = report.memories
    return memory


# -- the summary -------------------------------------------------------------------------------------------------


def test_the_peak_is_the_moment_of_most_memory_in_use() -> None:
    host = Host()
    memory = Memory(host.line)
    memory.allocate(1, 30, addr=1)
    memory.allocate(2, 40, addr=2)
    memory.free(3, 30, addr=1)
    memory.allocate(4, 10, addr=3)
    found = only(profile(host))
    assert (found["id"], found["host"], found["allocations"], found["deallocations"]) == ("GPU_0_bfc", "host", 3, 1)
    assert (found["capacity_bytes"], found["peak_heap_bytes"]) == (CAPACITY, 70)
    assert found["peak"] == {
        "time_ms": 2.0, "step": None, "in_use_bytes": 70, "stack_bytes": 0, "heap_bytes": 70, "free_bytes": 30,
        "reserved_bytes": None, "fragmentation_percent": 0.0,
    }  # fmt: skip


def test_the_peak_since_the_program_began_may_lie_before_the_capture() -> None:
    host = Host()
    memory = Memory(host.line)
    memory.peak = 95
    memory.allocate(1, 30, addr=1)
    found = only(profile(host))
    assert (found["peak_heap_bytes"], found["peak"]["heap_bytes"]) == (95, 30)


def test_stack_counts_as_memory_in_use_and_has_a_row_of_its_own() -> None:
    host = Host()
    memory = Memory(host.line, bytes_reserved=20)
    memory.allocate(1, 30, addr=1, bytes_available=50, tf_op="dense")
    found = only(profile(host))
    assert (found["peak"]["in_use_bytes"], found["capacity_bytes"]) == (50, 100)
    assert table(found["breakdown"], "op", "allocated_bytes", "region") == [
        ("dense", 30, None),
        ("stack", 20, "stack"),
    ]


def test_two_memories_are_told_apart_even_at_equal_addresses() -> None:
    host = Host()
    gpu, pinned = Memory(host.line, "GPU_0_bfc"), Memory(host.line, "gpu_host_bfc")
    gpu.allocate(1, 30, addr=1, tf_op="a")
    pinned.allocate(2, 5, addr=1, tf_op="b")
    gpu.free(3, 30, addr=1)
    found = profile(host).memories
    assert table(found, "id", "allocations", "deallocations") == [("GPU_0_bfc", 1, 1), ("gpu_host_bfc", 1, 0)]
    assert [table(memory["breakdown"], "op", "allocated_bytes") for memory in found] == [[("a", 30)], [("b", 5)]]


def test_lines_of_different_threads_are_put_in_order_of_time() -> None:
    host = Host()
    memory = Memory(host.line)
    memory.allocate(1, 30, addr=1, tf_op="first")
    memory.line = host.thread("tf_Compute")
    memory.free(2, 30, addr=1)
    memory.line = host.line
    memory.allocate(3, 20, addr=1, tf_op="second")
    found = only(profile(host))
    assert table(found["timeline"], "time_ms", "op") == [(1.0, "first"), (2.0, "first"), (3.0, "second")]


# -- the timeline ------------------------------------------------------------------------------------------------


def test_every_field_of_a_moment() -> None:
    host = Host()
    host.step(7, 0, 10)
    memory = Memory(host.line)
    tensor: dict[str, StatValue] = {"tf_op": "dense/MatMul", "region_type": "output", "data_type": 19, "shape": "[4,8]"}
    memory.allocate(1, 64, addr=1, requested_bytes=60, **tensor)
    memory.free(2, 64, addr=1, requested_bytes=60)
    first, second = only(profile(host))["timeline"]
    told = {"op": "dense/MatMul", "step": 7, "region": "output", "dtype": "float16", "shape": "[4,8]"}
    level = {"stack_bytes": 0, "reserved_bytes": None, "fragmentation_percent": 0.0}
    assert first == told | level | {
        "time_ms": 1.0, "event": "allocation", "requested_bytes": 60, "allocated_bytes": 64,
        "in_use_bytes": 64, "heap_bytes": 64, "free_bytes": 36,
    }  # fmt: skip
    assert second == told | level | {
        "time_ms": 2.0, "event": "deallocation", "requested_bytes": -60, "allocated_bytes": -64,
        "in_use_bytes": 0, "heap_bytes": 0, "free_bytes": 100,
    }  # fmt: skip


def test_a_deallocation_without_a_size_has_that_of_its_allocation() -> None:
    host = Host()
    memory = Memory(host.line, "0")
    memory.allocate(1, 30, addr=1)
    state: dict[str, StatValue] = {"allocator_name": "0", "bytes_allocated": 0, "bytes_available": CAPACITY, "addr": 1}
    host.line.event("MemoryDeallocation", 2 * MS, 0, EventKind.DEALLOCATION, state)
    moments = only(profile(host))["timeline"]
    assert table(moments, "requested_bytes", "allocated_bytes") == [(30, 30), (-30, -30)]


def test_an_event_outside_all_steps_has_no_step() -> None:
    host = Host()
    host.step(3, 10, 20)
    host.step(4, 30, 40)
    memory = Memory(host.thread("tf_data"))
    for at in (5, 15, 25, 35):
        memory.allocate(at, 1, addr=at)
    assert table(only(profile(host))["timeline"], "step") == [(None,), (3,), (None,), (4,)]


@pytest.mark.parametrize(
    ("levels", "most", "kept"),
    [
        ([5, 1, 9], 3, [0, 1, 2]),  # all fit
        ([5, 1, 9, 2], 2, [0, 2]),  # two groups of two
        ([5, 1, 9, 2, 3], 2, [0, 2]),  # a group of two, then one of three
        ([1, 1, 7, 7, 7], 2, [0, 2]),  # of equal ones the first
        ([0, 0, 0, 0, 0, 0, 0], 3, [0, 2, 4]),  # groups of two, two and three
        ([], 3, []),
    ],
)
def test_a_long_timeline_keeps_the_fullest_moment_of_each_group(levels: list[int], most: int, kept: list[int]) -> None:
    assert thin_out(np.array(levels, np.int64), most).tolist() == kept


def test_peak_and_breakdown_are_exact_whatever_the_timeline_leaves_out() -> None:
    host = Host()
    memory = Memory(host.line)
    for at in range(4 * MOST_POINTS):
        memory.allocate(at, 10, addr=at, tf_op="work", bytes_available=0)
        if at == 2345:
            memory.allocate(at + 0.5, 7, addr=-1, tf_op="rare", bytes_available=0)
        else:
            memory.free(at + 0.5, 10, addr=at, bytes_available=0)
    found = only(profile(host))
    assert (found["allocations"], found["deallocations"]) == (4 * MOST_POINTS + 1, 4 * MOST_POINTS - 1)
    assert len(found["timeline"]) == MOST_POINTS
    assert max(moment["in_use_bytes"] for moment in found["timeline"]) == found["peak"]["in_use_bytes"] == 27
    assert table(found["breakdown"], "op", "allocated_bytes", "occurrences") == [("work", 20, 2), ("rare", 7, 1)]


# -- the breakdown at the peak -----------------------------------------------------------------------------------


def test_allocations_that_are_alive_at_the_peak_are_added_up_by_op_region_type_and_shape() -> None:
    host = Host()
    memory = Memory(host.line)
    memory.allocate(1, 10, addr=1, tf_op="a", region_type="output", data_type=1, shape="[2]")
    memory.allocate(2, 12, addr=2, tf_op="a", region_type="output", data_type=1, shape="[2]", requested_bytes=10)
    memory.allocate(3, 5, addr=3, tf_op="a", region_type="temp", data_type=1, shape="[2]")
    memory.allocate(4, 9, addr=4, tf_op="gone")
    memory.free(5, 9, addr=4)
    memory.allocate(6, 40, addr=5, tf_op="b", data_type=0)
    memory.free(7, 40, addr=5)
    memory.allocate(8, 1, addr=6, tf_op="later")
    names = ("op", "allocated_bytes", "requested_bytes", "occurrences", "region", "dtype", "shape")
    assert table(only(profile(host))["breakdown"], *names) == [
        ("b", 40, 40, 1, None, None, None),
        ("a", 22, 20, 2, "output", "float32", "[2]"),
        ("a", 5, 5, 1, "temp", "float32", "[2]"),
    ]


def test_what_was_there_before_the_capture_has_a_row_of_its_own() -> None:
    host = Host()
    memory = Memory(host.line).starts_with(50)
    memory.allocate(1, 30, addr=1, tf_op="a")
    assert table(only(profile(host))["breakdown"], "op", "allocated_bytes") == [
        ("(allocated before the capture)", 50), ("a", 30),
    ]  # fmt: skip


def test_an_allocation_of_an_earlier_step_is_still_alive_at_the_peak() -> None:
    host = Host()
    host.step(0, 0, 10)
    host.step(1, 10, 20)
    memory = Memory(host.line)
    memory.allocate(1, 30, addr=1, tf_op="kept")
    memory.allocate(11, 40, addr=2, tf_op="new")
    found = only(profile(host))
    assert found["peak"]["step"] == 1
    assert table(found["breakdown"], "op", "allocated_bytes") == [("new", 40), ("kept", 30)]


def test_an_allocation_freed_after_the_capture_and_one_made_before_it() -> None:
    host = Host()
    memory = Memory(host.line).starts_with(20)
    memory.free(1, 20, addr=9)  # allocated before the capture: whatever its op was, the capture does not hold it
    memory.allocate(2, 30, addr=1, tf_op="never freed")
    found = only(profile(host))
    assert table(found["timeline"], "event", "allocated_bytes", "op") == [
        ("deallocation", -20, None), ("allocation", 30, "never freed"),
    ]  # fmt: skip
    assert table(found["breakdown"], "op", "allocated_bytes") == [("never freed", 30)]


def test_an_address_given_out_again_was_free_meanwhile() -> None:
    host = Host()
    memory = Memory(host.line)
    memory.allocate(1, 30, addr=1, tf_op="first")
    memory.in_use -= 30  # its deallocation was not recorded
    memory.allocate(2, 35, addr=1, tf_op="second")
    report = profile(host)
    assert table(only(report)["breakdown"], "op", "allocated_bytes") == [("second", 35)]
    assert report.warnings == ()


def test_lost_deallocations_are_told() -> None:
    host = Host()
    memory = Memory(host.line)
    memory.allocate(1, 30, addr=1, tf_op="first")
    memory.in_use -= 30
    memory.allocate(2, 35, addr=2, tf_op="second")
    assert profile(host).warnings == (
        "GPU_0_bfc: allocations alive at the peak exceed the memory in use: some deallocations were not recorded",
    )


def test_a_breakdown_of_very_many_rows_ends_with_one_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_usage, "BREAKDOWN", replace(BREAKDOWN, most=2))
    host = Host()
    memory = Memory(host.line)
    for size in (1, 2, 3, 4):
        memory.allocate(size, size, addr=size, tf_op=f"op{size}")
    assert table(only(profile(host))["breakdown"], "op", "allocated_bytes", "requested_bytes", "occurrences") == [
        ("op4", 4, 4, 1),
        ("op3", 3, 3, 1),
        ("(smaller ones)", 3, 3, 2),
    ]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=40))
def test_what_is_alive_is_what_a_plain_replay_leaves(events: list[tuple[bool, int]]) -> None:
    """With addresses an allocation ends with the next event at its address."""
    host = Host()
    alive: dict[int, int] = {}
    in_use, size = 0, 1
    for at, (is_allocation, address) in enumerate(events):
        if is_allocation:
            in_use += (size := size * 2 % 1009) - alive.get(address, 0)
            alive[address] = size
        else:
            in_use -= alive.pop(address, 0)
        kind = EventKind.ALLOCATION if is_allocation else EventKind.DEALLOCATION
        stats: dict[str, StatValue] = {
            "allocator_name": "m",
            "addr": address,
            "allocation_bytes": size,
            "bytes_allocated": in_use,
        }
        host.line.event("e", at * MS, 0, kind, stats)
    # A last event makes the end the peak, so that the breakdown holds all that is alive then.
    last: dict[str, StatValue] = {
        "allocator_name": "m",
        "addr": 99,
        "allocation_bytes": 1 << 20,
        "bytes_allocated": in_use + (1 << 20),
    }
    host.line.event("e", 1000 * MS, 0, EventKind.ALLOCATION, last)
    (row,) = only(profile(host))["breakdown"]
    assert (row["allocated_bytes"], row["occurrences"]) == (in_use + (1 << 20), len(alive) + 1)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3)), min_size=1, max_size=40))
def test_without_addresses_the_latest_allocation_of_a_size_is_freed_first(events: list[tuple[bool, int]]) -> None:
    host = Host(framework="pytorch")
    alive: dict[int, list[str]] = {size: [] for size in (1, 2, 3)}
    freed: list[str | None] = []
    for at, (is_allocation, size) in enumerate(events):
        stats: dict[str, StatValue] = {"Device Type": 1, "Device Id": 0, "tf_op": f"op{at}"}
        host.torch(at, size if is_allocation else -size, **stats)
        if is_allocation:
            alive[size].append(f"op{at}")
        else:
            freed.append(alive[size].pop() if alive[size] else f"op{at}")
    timeline = only(profile(host))["timeline"]
    assert [moment["op"] for moment in timeline if moment["event"] == "deallocation"] == freed
    assert all(moment["heap_bytes"] >= 0 for moment in timeline)


# -- whose memory it is ------------------------------------------------------------------------------------------


def test_without_a_stated_op_the_innermost_op_around_the_allocation_counts() -> None:
    host = Host(framework="pytorch")
    cpu = {"Device Type": 0, "Device Id": -1, "Total Reserved": 0}
    host.line.event("aten::linear", 0, 9 * MS, EventKind.OP)
    host.line.event("aten::empty_strided", MS, 4 * MS, EventKind.OP)
    host.line.event("aten::mm", 6 * MS, 2 * MS, EventKind.OP)
    host.torch(2, 8, Addr=1, **cpu, **{"Total Allocated": 8})
    host.torch(7, 4, Addr=2, **cpu, **{"Total Allocated": 12})
    host.torch(20, 1, Addr=3, **cpu, **{"Total Allocated": 13})
    assert table(only(profile(host))["timeline"], "op") == [("aten::linear",), ("aten::mm",), (None,)]


def test_the_op_may_be_on_the_thread_that_handed_the_work_over() -> None:
    host = Host(framework="jax")
    worker = host.thread("py_xla_execute")
    host.line.event("PjitFunction(step)", 0, 5 * MS, EventKind.TRACED_FUNCTION)
    host.line.event("Schedule", MS, MS, EventKind.OTHER, {"_pt": 15, "_p": 4})
    worker.event("Execute", 3 * MS, 5 * MS, EventKind.OTHER, {"_ct": 15, "_c": 4})
    memory = Memory(worker)
    memory.allocate(4, 10, addr=1, tf_op="(null)", region_type="(null)")
    memory.allocate(20, 10, addr=2)
    worker.event("BufferFromHost", 30 * MS, 5 * MS, EventKind.OTHER)
    worker.event("Allocate", 31 * MS, 2 * MS, EventKind.OTHER)
    memory.allocate(32, 10, addr=3)
    found = only(profile(host))
    assert table(found["timeline"], "op", "region") == [
        ("PjitFunction(step)", None), (None, None), ("BufferFromHost", None),
    ]  # fmt: skip


# -- PyTorch -----------------------------------------------------------------------------------------------------


def test_a_gpu_of_pytorch_has_the_size_of_its_device_and_a_pool() -> None:
    host = Host(framework="pytorch")
    gpu = host.builder.plane("/device:GPU:1", PlaneKind.GPU, 1, {"memory_size": 1000})
    host.builder.line(gpu, "stream 7", kind=LineKind.STREAM).event("kernel", 0, MS, EventKind.KERNEL)
    device = {"Device Type": 1, "Device Id": 1, "Total Reserved": 400}
    host.torch(1, 100, Addr=1, **device, **{"Total Allocated": 300})
    host.torch(2, -100, Addr=1, **device, **{"Total Allocated": 200})
    found = only(profile(host))
    assert (found["id"], found["capacity_bytes"], found["peak_heap_bytes"]) == ("cuda:1", 1000, None)
    assert table([found["peak"]], "heap_bytes", "free_bytes", "reserved_bytes", "stack_bytes") == [
        (300, 700, 400, None)
    ]
    assert table(found["breakdown"], "op", "allocated_bytes") == [
        ("(allocated before the capture)", 200),
        (None, 100),
    ]


def test_without_totals_and_addresses_memory_counts_from_the_start_and_sizes_tell_what_is_freed() -> None:
    host = Host(framework="pytorch")
    device = {"Device Type": 1, "Device Id": 0}
    host.line.event("aten::mm", 0, 4 * MS, EventKind.OP)
    host.line.event("aten::add", 5 * MS, 4 * MS, EventKind.OP)
    for at, size in ((1, 10), (2, -30), (3, 20), (6, 10), (7, -20), (8, -10)):
        host.torch(at, size, **device)
    report = profile(host)
    assert table(only(report)["timeline"], "heap_bytes", "op") == [
        (40, "aten::mm"), (10, None), (30, "aten::mm"), (40, "aten::add"), (20, "aten::mm"), (10, "aten::add"),
    ]  # fmt: skip
    assert table(only(report)["breakdown"], "op", "allocated_bytes") == [("aten::mm", 30), ("aten::add", 10)]
    assert report.warnings == (
        "cuda:0: the profile contains no totals: memory in use counts from the start of the capture",
        "cuda:0: the profile contains no addresses: "
        "deallocations are matched to allocations of equal size, which is a guess",
    )


# -- many hosts, and none ----------------------------------------------------------------------------------------


def test_memories_of_equal_names_on_two_hosts_stay_apart() -> None:
    hosts = [Host("a"), Host("b")]
    for host, size in zip(hosts, (10, 20), strict=True):
        Memory(host.line).allocate(1, size, addr=1, tf_op=f"of {host.builder.host}")
    report = profile(*hosts)
    assert report.hosts == ("a", "b")
    assert table(report.memories, "id", "host") == [("GPU_0_bfc", "a"), ("GPU_0_bfc", "b")]
    assert table(report.rows, "op", "allocated_bytes", "host") == [("of b", 20, "b"), ("of a", 10, "a")]


@pytest.mark.parametrize(
    ("framework", "remedy"),
    [
        (
            "tensorflow",
            "record with host_tracer_level=2 or more; for the CPU's memory also set TF_CPU_ALLOCATOR_USE_BFC=true"
            " before TensorFlow starts",
        ),
        ("jax", "on GPUs and TPUs record with host_tracer_level=2 or more; JAX records none on CPUs"),
        ("pytorch", "record with torch.profiler.profile(profile_memory=True)"),
        ("", "record the program with its framework's own profiler"),
    ],
)
def test_a_profile_without_allocations_says_how_to_record_them(framework: str, remedy: str) -> None:
    host = Host(framework=framework)
    host.step(0, 0, 1)
    report = profile(host)
    assert report.to_dict()["memories"] == []
    assert report.warnings == (f"no allocations were recorded on host: {remedy}",)
    assert report.summary_lines() == ["no allocations were recorded"]
    assert all(not section.rows for section in report.sections() if isinstance(section, Rows))


def test_a_host_without_allocations_is_named_beside_one_with_some() -> None:
    full, empty = Host("full"), Host("empty")
    Memory(full.line).allocate(1, 10, addr=1)
    report = profile(full, empty)
    assert table(report.memories, "host") == [("full",)]
    (warning,) = report.warnings
    assert warning.startswith("no allocations were recorded on empty: record with host_tracer_level=2 or more")


def test_what_the_terminal_shows_and_head_cuts() -> None:
    host = Host()
    memory = Memory(host.line).starts_with(3)
    memory.allocate(1, 20 * MIB, addr=1, tf_op="big", bytes_available=10 * MIB)
    memory.allocate(2, 10 * MIB - 3, addr=2, tf_op="small", bytes_available=0)
    report = profile(host)
    sentence, curve = report.summary_lines()
    largest = "20 MiB big, 10 MiB small, 3 B (allocated before the capture)"
    assert sentence == f"GPU_0_bfc: 30 MiB of 30 MiB (100.0 %) at 2.000 ms: {largest}"
    assert curve == f"GPU_0_bfc  {'▆' * 47}█  of 30 MiB"
    assert table(report.head(1).rows, "op") == table(report.head(1).memories[0]["breakdown"], "op") == [("big",)]
    peak = report.section("peak")
    assert isinstance(peak, Rows)
    assert [field.name for field in visible_fields(peak.split_for_screens()[0], one_host=True)] == [
        "memory", "time_ms", "heap_bytes", "free_bytes", "fragmentation_percent",
    ]  # fmt: skip


# -- beside XProf ------------------------------------------------------------------------------------------------

Row = tuple[str | None, str | None, str | None, str | None]
XPROF_TYPES = {"float": "float32", "half": "float16", "double": "float64", "INVALID": None}
SPECIAL = {"unused preallocated device memory": "(allocated before the capture)"}


def files(logdir: Path) -> list[Path]:
    return sorted(logdir.rglob("*.xplane.pb"))


def xprof(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = oracle.memory_profile(path)["memoryProfilePerAllocator"]
    return found


def ours(path: Path) -> dict[str, dict[str, Any]]:
    return {memory["id"]: memory for memory in loaded(path).memories}


def key(activity: dict[str, Any]) -> Row:
    """Op, region, type and shape as Stepscope names them; XProf's for what is not a tensor have neither."""
    op, region, shape = (activity[name] for name in ("tfOpName", "regionType", "tensorShape"))
    if op in SPECIAL:
        return SPECIAL[op], None, None, None
    dtype = XPROF_TYPES.get(activity["dataType"], activity["dataType"])
    return tuple(None if text in ("", "(null)", "unknown") else text for text in (op, region, dtype, shape))  # type: ignore[return-value]


def breakdown_of_xprof(memory: dict[str, Any]) -> dict[Row, tuple[int, int]]:
    """Bytes and number of allocations by row, added up where XProf has a row for every size."""
    found: dict[Row, tuple[int, int]] = {}
    for row in memory["activeAllocations"]:
        place, special, count = (int(row[name]) for name in ("snapshotIndex", "specialIndex", "numOccurrences"))
        activity = (
            memory["specialAllocations"][special]
            if special >= 0
            else memory["memoryProfileSnapshots"][place]["activityMetadata"]
        )
        size, number = found.get(key(activity), (0, 0))
        found[key(activity)] = size + count * int(activity["allocationBytes"]), number + count
    return found


def breakdown_of_ours(memory: dict[str, Any]) -> dict[Row, tuple[int, int]]:
    return {
        (row["op"], row["region"], row["dtype"], row["shape"]): (row["allocated_bytes"], row["occurrences"])
        for row in memory["breakdown"]
    }


def assert_equal_figures(theirs: dict[str, Any], memory: dict[str, Any]) -> None:
    """Capacity and the state at the peak to the byte; its time up to one constant, see `test_line_starts`."""
    summary, peak = theirs["profileSummary"], memory["peak"]
    stats = summary["peakStats"]
    assert memory["capacity_bytes"] == int(summary["memoryCapacity"])
    assert peak["stack_bytes"] == int(stats["stackReservedBytes"])
    assert peak["heap_bytes"] == int(stats["heapAllocatedBytes"])
    assert peak["free_bytes"] == int(stats["freeMemoryBytes"])
    assert peak["in_use_bytes"] == int(stats["peakBytesInUse"])
    assert any(
        peak["fragmentation_percent"] == (None if share == "NaN" else pytest.approx(100 * share, abs=1e-4))
        for share in fragmentations_at_the_peak(theirs)  # NaN is of no free memory at all
    )


def fragmentations_at_the_peak(theirs: dict[str, Any]) -> list[Any]:
    """What XProf states, and what it has of every moment as high: it takes the last of them in the order of threads,
    Stepscope the last in time."""
    stats = theirs["profileSummary"]["peakStats"]
    moments = [moment["aggregationStats"] for moment in theirs["sampledTimelineSnapshots"]]
    level = [int(stats["stackReservedBytes"]), int(stats["heapAllocatedBytes"])]
    tied = [each for each in moments if [int(each["stackReservedBytes"]), int(each["heapAllocatedBytes"])] == level]
    return [stats["fragmentation"], *(each["fragmentation"] for each in tied)]


def assert_equal_timelines(theirs: dict[str, Any], memory: dict[str, Any], line_start_ms: float) -> None:
    moments = theirs["sampledTimelineSnapshots"]
    assert len(moments) == len(memory["timeline"]) == min(memory["allocations"] + memory["deallocations"], MOST_POINTS)
    for theirs_then, then in zip(moments, memory["timeline"], strict=True):
        stats, activity = theirs_then["aggregationStats"], theirs_then["activityMetadata"]
        assert then["time_ms"] == pytest.approx(int(theirs_then["timeOffsetPs"]) / MS + line_start_ms, abs=1e-5)
        assert then["event"] == activity["memoryActivity"].lower()
        assert (then["heap_bytes"], then["free_bytes"]) == (
            int(stats["heapAllocatedBytes"]),
            int(stats["freeMemoryBytes"]),
        )
        if activity["memoryActivity"] == "ALLOCATION":
            assert then["allocated_bytes"] == int(activity["allocationBytes"])
            assert then["requested_bytes"] == int(activity["requestedBytes"])
        op, region, dtype, shape = key(activity)
        assert (then["region"], then["dtype"], then["shape"]) == (region, dtype, shape)
        assert op in (None, then["op"])  # where no op was recorded, Stepscope looks around the allocation


def line_start_ms(path: Path) -> float:
    """The start of the lines that hold allocations, which XProf leaves out; one for all, or the test needs care."""
    trace = stepscope.load(path).trace()
    memory = np.isin(trace.events.kind, (EventKind.ALLOCATION, EventKind.DEALLOCATION))
    (start,) = np.unique(trace.lines.start_ns[np.unique(trace.events.line[memory])]).tolist()
    return float(start) / 1e6


def level_jumps(changes: Sequence[tuple[int, int]]) -> int:
    """How often the heap after an event is not the heap before it and what the event adds."""
    return sum(heap != before + change for (before, _), (heap, change) in pairwise(changes))


CORPUS = ("tf-gpu-multi-worker", "jax-mi300x-attention", "tpu-inference")


@pytest.mark.parametrize("session", CORPUS)
def test_figures_and_timelines_are_those_of_xprof(session: str, corpus: Path) -> None:
    path = files(corpus / session)[0]
    theirs, found = xprof(path), ours(path)
    assert sorted(theirs) == sorted(found)
    for name, memory in found.items():
        assert_equal_figures(theirs[name], memory)
        assert_equal_timelines(theirs[name], memory, line_start_ms(path))


def test_difference_line_starts(corpus: Path) -> None:
    """XProf takes times from the start of each thread's line and so puts events of different threads in the wrong
    order; in the right order each level follows from the one before."""
    path = files(corpus / "jax-mi300x-conv")[0]
    theirs, found = xprof(path), ours(path)
    assert sorted(theirs) == sorted(found)
    jumps = 0
    for name, memory in found.items():
        assert_equal_figures(theirs[name], memory)
        assert level_jumps(table(memory["timeline"], "heap_bytes", "allocated_bytes")) == 0
        jumps += level_jumps([signed_change(moment) for moment in theirs[name]["sampledTimelineSnapshots"]])
    assert jumps > 0


def signed_change(moment: dict[str, Any]) -> tuple[int, int]:
    """Heap and what the event adds to it, of one of XProf's snapshots."""
    activity = moment["activityMetadata"]
    sign = 1 if activity["memoryActivity"] == "ALLOCATION" else -1
    return int(moment["aggregationStats"]["heapAllocatedBytes"]), sign * int(activity["allocationBytes"])


def test_the_breakdown_is_that_of_xprof_where_the_peak_is_in_the_first_step(corpus: Path) -> None:
    path = files(corpus / "tf-gpu-multi-worker")[0]
    theirs, found = xprof(path), ours(path)
    for name in ("GPU_1_bfc", "GPU_4_bfc", "GPU_6_bfc"):
        assert breakdown_of_ours(found[name]) == breakdown_of_xprof(theirs[name])


def test_fresh_tensorflow_captures_have_the_figures_of_xprof(tf_healthy_capture: FrameworkCapture) -> None:
    path = tf_healthy_capture.paths[0]
    theirs, found = xprof(path), ours(path)
    assert found
    assert sorted(theirs) == sorted(found)
    for name, memory in found.items():
        assert_equal_figures(theirs[name], memory)
        assert_equal_timelines(theirs[name], memory, line_start_ms(path))
        assert sum(row["allocated_bytes"] for row in memory["breakdown"]) == memory["peak"]["in_use_bytes"]


# -- figures that cannot be --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "memory"),
    [
        ({"device_ordinal": -1}, "memory"),
        ({"device_ordinal": 2**62}, str(2**40 - 1)),
        ({"Device Type": 1, "Device Id": -1}, "cuda"),
        ({"Device Type": 1, "Device Id": 2**62}, "cuda:65534"),
        ({"Device Type": -1}, "memory"),
        ({"Device Type": 2**62, "Device Id": 0}, f"device type {2**30}:0"),
    ],
)
def test_every_number_of_a_device_names_a_memory(place: dict[str, int], memory: str) -> None:
    host = Host()
    host.torch(1, 8, **place)

    assert only(profile(host))["id"] == memory


@pytest.mark.parametrize(("stated", "shown"), [(0.25, 25.0), (0, 0.0), (-1.0, None), (7.0, None), (float("inf"), None)])
def test_fragmentation_is_a_percentage_and_unknown_beyond_its_range(stated: float, shown: float | None) -> None:
    host = Host()
    Memory(host.line).allocate(1, 30, addr=1, fragmentation=stated)

    assert only(profile(host))["peak"]["fragmentation_percent"] == shown


# -- what the memory is for ---------------------------------------------------------------------------------------


def trained_host() -> Host:
    """Two steps of PyTorch, each with a forward pass, a backward pass on another thread, and an update."""
    host = Host(framework="pytorch")
    host.torch(0.5, 1000, Addr=1)
    autograd = host.thread("autograd")
    for number in range(2):
        begin = 10.0 * (number + 1)
        host.step(number, begin, begin + 10)

        def at(offset: float, begin: float = begin) -> int:
            return round((begin + offset) * MS)

        host.line.event("nn.Module: Linear_0", at(1), 3 * MS, EventKind.PYTHON_CALL)
        host.line.event("aten::linear", at(1), 3 * MS, EventKind.OP)
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        autograd.event(name, at(5), 2 * MS, EventKind.BACKWARD)
        host.line.event("Optimizer.step#Adam.step", at(8), 1 * MS, EventKind.ANNOTATION)
    return host


def allocate_in(line: LineBuilder, at: float, size: int, addr: int) -> None:
    kind = EventKind.ALLOCATION if size > 0 else EventKind.DEALLOCATION
    line.event("[memory]", round(at * MS), 0, kind, {"Bytes": size, "Addr": addr})


def test_where_memory_is_allocated_and_how_long_it_lives_says_what_it_is_for() -> None:
    host = trained_host()
    autograd = host.builder.line(host.plane, "autograd 2")
    autograd.event("autograd::engine::evaluate_function: Y", 15 * MS, 2 * MS, EventKind.BACKWARD)
    for at, size, addr in ((12, 70, 2), (12.1, 50, 3), (18.5, 20, 6), (19.5, -70, 2), (12.2, -50, 3)):
        allocate_in(host.line, at, size, addr)
    for at, size, addr in ((15.5, 30, 4), (15.6, 5, 5), (15.7, -5, 5), (28.9, -30, 4)):
        allocate_in(autograd, at, size, addr)
    found = only(profile(host))

    purposes = {row["purpose"]: row for row in found["purposes"]}
    assert {name: row["allocated_bytes"] for name, row in purposes.items()} == {
        "before_the_capture": 1000, "activations": 70, "gradients": 30, "optimizer_state": 20,
    }  # fmt: skip
    assert purposes["activations"]["layer"] == "Linear_0"
    assert sum(row["allocated_bytes"] for row in purposes.values()) == found["peak"]["in_use_bytes"]
    assert purposes["before_the_capture"]["percent"] == pytest.approx(100 * 1000 / 1120, abs=0.01)


def test_what_is_freed_before_its_op_ends_is_temporary() -> None:
    host = trained_host()
    for at, size, addr in ((12, 70, 2), (12.5, 500, 3), (12.9, -500, 3), (19.5, -70, 2)):
        allocate_in(host.line, at, size, addr)
    purposes = {row["purpose"]: row["allocated_bytes"] for row in only(profile(host))["purposes"]}

    assert purposes == {"before_the_capture": 1000, "temporary": 500, "activations": 70}


def test_what_the_next_step_still_finds_is_kept_from_step_to_step() -> None:
    host = trained_host()
    for at, size, addr in ((12, 70, 2), (12.5, 500, 3), (18, -70, 2), (21.5, -500, 3)):
        allocate_in(host.line, at, size, addr)
    purposes = {row["purpose"]: row["allocated_bytes"] for row in only(profile(host))["purposes"]}

    assert purposes == {"before_the_capture": 1000, "kept_over_steps": 500, "activations": 70}


@pytest.mark.parametrize(
    ("stats", "purpose", "layer"),
    [
        ({"region_type": "persist"}, "parameters", None),
        ({"region_type": "temp"}, "temporary", None),
        ({"tf_op": "gradient_tape/model/dense/MatMul"}, "gradients", "model/dense"),
        ({"tf_op": "adam/Mul"}, "optimizer_state", "adam"),
        ({"tf_op": "model/dense/Relu", "region_type": "output"}, "activations", "model/dense"),
        ({}, "unknown", None),
    ],
)
def test_what_tensorflow_records_says_what_memory_is_for(stats, purpose, layer) -> None:
    host = Host()
    Memory(host.line).allocate(1, 40, addr=1, **stats)

    assert table(only(profile(host))["purposes"], "purpose", "layer", "allocated_bytes", "percent") == [
        (purpose, layer, 40, 100.0)
    ]


def test_rows_after_the_most_are_summed_by_purpose() -> None:
    rows = [Held("activations", f"layer {at}", None, 100 - at, 1) for at in range(5)]

    assert shorten_held([*rows, Held("gradients", "layer 9", None, 1, 2)], 3) == [
        *rows[:3], Held("activations", None, None, 97 + 96, 2), Held("gradients", None, None, 1, 2),
    ]  # fmt: skip


def test_unsigned_sizes_and_addresses_count() -> None:
    host = Host()
    memory = Memory(host.line)
    high = (1 << 63) + 512  # only an unsigned integer holds it
    memory.allocate(1, 30, addr=high)
    memory.free(2, 30, addr=high)
    memory.allocate(3, 10, addr=high)
    found = only(profile(host))
    assert table(found["timeline"], "event", "heap_bytes") == [
        ("allocation", 30), ("deallocation", 0), ("allocation", 10),
    ]  # fmt: skip
    assert found["breakdown"][0]["occurrences"] == 1


def test_allocations_that_say_nothing_about_themselves_are_counted() -> None:
    host = Host(framework="")
    host.line.event("MemoryAllocation", MS, 0, EventKind.ALLOCATION)
    report = profile(host)
    found = only(report)
    assert (found["id"], found["allocations"], found["capacity_bytes"], found["breakdown"]) == ("memory", 1, None, [])
    assert found["peak"]["time_ms"] is None
    assert report.summary_lines() == ["memory: 1 allocation of unknown size"]


def test_of_equal_peaks_the_last_counts() -> None:
    host = Host()
    memory = Memory(host.line)
    memory.allocate(1, 30, addr=1)
    memory.free(2, 30, addr=1)
    memory.allocate(3, 30, addr=1)
    assert only(profile(host))["peak"]["time_ms"] == 3.0


def test_difference_the_breakdown_holds_what_earlier_steps_left(corpus: Path) -> None:
    """XProf looks at the step of the peak alone and calls all else preallocated."""
    path = files(corpus / "tf-gpu-multi-worker")[0]
    theirs, found = breakdown_of_xprof(xprof(path)["gpu_host_bfc"]), breakdown_of_ours(ours(path)["gpu_host_bfc"])
    before = ("(allocated before the capture)", None, None, None)
    assert found[before][0] < theirs[before][0]
    assert sum(size for size, _ in found.values()) == sum(size for size, _ in theirs.values()) == 605_952
    for row in theirs.keys() - {before}:
        assert found[row][0] >= theirs[row][0]


def test_difference_the_peak_since_the_start_is_the_largest_seen(corpus: Path) -> None:
    """XProf takes the last that it meets in the file, which here is below the peak of the capture."""
    path = files(corpus / "tf-gpu-multi-worker")[0]
    summary, memory = xprof(path)["GPU_4_bfc"]["profileSummary"], ours(path)["GPU_4_bfc"]
    assert int(summary["peakBytesUsageLifetime"]) < memory["peak"]["heap_bytes"] == memory["peak_heap_bytes"]


def test_difference_an_allocation_without_an_op_is_given_to_what_is_around_it(corpus: Path) -> None:
    path = files(corpus / "jax-mi300x-attention")[0]
    assert {op for op, *_ in breakdown_of_xprof(xprof(path)["GPU_0_bfc"])} == {None, "(allocated before the capture)"}
    assert {op for op, *_ in breakdown_of_ours(ours(path)["GPU_0_bfc"])} == {
        "PjitFunction(loss_fn)", "(allocated before the capture)",
    }  # fmt: skip


def test_jax_on_a_cpu_records_no_allocations_and_is_told_so(jax_marked_capture: FrameworkCapture) -> None:
    report = loaded(jax_marked_capture.logdir)
    assert report.memories == ()
    assert "JAX records none on CPUs" in report.warnings[0]


@pytest.mark.parametrize("session", ["torch-h100-qwen", "torch-h100-owlv2", "torch-v100-resnet50-workers0"])
def test_the_rows_of_a_breakdown_add_up_to_the_memory_in_use(session: str, corpus: Path) -> None:
    for memory in loaded(corpus / session).memories:
        assert sum(row["allocated_bytes"] for row in memory["breakdown"]) == memory["peak"]["in_use_bytes"] > 0


# -- what stays from step to step --------------------------------------------------------------------------------

STEPS = 8


def looped(leaks_in: range | tuple[int, ...] = (), leak: int = MIB, weights: int = 0) -> dict[str, Any]:
    """Eight steps of 10 ms.  Each allocates 8 MiB and frees them; those in `leaks_in` leave something else."""
    host = Host(framework="pytorch")
    memory = Memory(host.line)
    memory.allocate(0, weights, addr=2, tf_op="aten::empty")
    for number in range(STEPS):
        begin = 10 * number
        host.step(number, begin, begin + 9)
        memory.allocate(begin + 1, 8 * MIB, addr=1, tf_op="aten::mm")
        if number in leaks_in:
            memory.allocate(begin + 2, leak, addr=1001 + number, tf_op="aten::cat")
        memory.free(begin + 3, 8 * MIB, addr=1)
    return shown(host)


def shown(host: Host) -> dict[str, Any]:
    """The profile of a host as JSON, with its sentences."""
    report = profile(host)
    return {**report.to_dict(), "sentences": list(report.sections()[0].lines)}


def test_what_every_step_leaves_is_found_with_its_op() -> None:
    found = looped(leaks_in=range(STEPS))

    (growth,) = found["growth"]
    assert growth["grows"] is True
    assert (growth["bytes_per_step"], growth["steps"]) == (MIB, STEPS - 1)
    assert (growth["first_bytes"], growth["last_bytes"]) == (2 * MIB, 8 * MIB)
    (row,) = found["staying"]
    assert (row["op"], row["bytes_per_step"], row["allocations"], row["steps"]) == ("aten::cat", MIB, 6, 6)


def test_the_sentence_names_what_stays() -> None:
    sentence = looped(leaks_in=range(STEPS))["sentences"][0]
    assert (
        sentence
        == "GPU_0_bfc grows by 1 MiB per step over 7 steps, from 2 MiB to 8 MiB: 1 MiB per step stays of aten::cat"
    )


def test_a_loop_that_frees_all_does_not_grow() -> None:
    found = looped()
    assert [(row["grows"], row["bytes_per_step"]) for row in found["growth"]] == [(False, 0)]
    assert found["staying"] == []
    assert not any("grows" in sentence for sentence in found["sentences"])


def test_what_the_first_step_makes_for_all_is_no_leak() -> None:
    found = looped(leaks_in=(0,), leak=64 * MIB)
    assert [row["grows"] for row in found["growth"]] == [False]
    assert found["staying"] == []


def test_one_step_that_leaves_something_is_no_leak() -> None:
    found = looped(leaks_in=(4,), leak=64 * MIB)
    assert [row["grows"] for row in found["growth"]] == [False]
    assert found["staying"] == []


def test_less_than_a_hundredth_is_no_growth() -> None:
    found = looped(leaks_in=range(STEPS), leak=64, weights=MIB)
    assert [row["grows"] for row in found["growth"]] == [False]


def test_every_second_step_is_enough() -> None:
    (growth,) = looped(leaks_in=range(0, STEPS, 2))["growth"]
    assert growth["grows"] is True
    assert growth["bytes_per_step"] == pytest.approx(MIB / 2, rel=0.1)


def test_few_steps_say_nothing() -> None:
    host = Host(framework="pytorch")
    memory = Memory(host.line)
    for number in range(3):
        host.step(number, 10 * number, 10 * number + 9)
        memory.allocate(10 * number + 1, MIB, addr=number + 1, tf_op="aten::cat")
    found = shown(host)
    assert (found["growth"], found["staying"]) == ([], [])


def test_the_line_of_the_program_is_named_where_it_was_recorded() -> None:
    host = Host(framework="pytorch")
    memory = Memory(host.line)
    for number in range(STEPS):
        begin = 10 * number
        host.step(number, begin, begin + 9)
        host.line.event("train.py(12): keep", (begin + 1) * MS, 7 * MS, EventKind.PYTHON_CALL)
        memory.allocate(begin + 2, MIB, addr=number + 1, tf_op="aten::cat")
    (row,) = profile(host).staying
    assert row["place"] == "train.py(12): keep"


def test_the_memory_of_the_process_is_followed_by_its_counter() -> None:
    host = Host(framework="pytorch")
    plane = host.builder.plane("/device:CUSTOM:System (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    counters = host.builder.line(plane, "_counters_", kind=LineKind.COUNTERS)
    for number in range(STEPS):
        host.step(number, 10 * number, 10 * number + 9)
        value = 1.0 + 0.1 * number
        counters.event("Memory process GB", (10 * number + 5) * MS, 0, EventKind.OTHER, {"counter_value": value})
    (growth,) = profile(host).growth
    assert (growth["memory"], growth["grows"]) == ("process (resident)", True)
    assert np.isclose(growth["bytes_per_step"], 1e8)


# -- arrays that stay, as a capture counted them at its start and end ------------------------------------------------


def kept(*groups: str, steps: int = 20) -> HostTrace:
    """Steps of 10 ms, and what their capture counted."""
    host = Host()
    for step in range(steps):
        host.step(step, 10 * step, 10 * step + 10)
    host.builder.plane("/stepscope:capture", stats={f"kept:{at}": text for at, text in enumerate(groups)})
    return host.builder.build()


def test_what_is_kept_has_its_holder_line_and_kind():
    seen = "20\t8000000\tfloat32\t[100, 1000]\tseen\ttrain.py:9\tarrays"
    losses = "20\t80\tfloat32\t[]\tlosses\t\tarrays with their graph"
    report = profile(kept(seen, losses))

    (growth,) = report.growth
    assert (growth["grows"], growth["bytes_per_step"], growth["first_bytes"]) == (True, 400_004, None)
    columns = ("op", "place", "region", "allocations", "bytes_per_step", "shape")
    assert [tuple(row[name] for name in columns) for row in report.staying] == [
        ("seen", "train.py:9", "arrays", 20, 400_000, "[100, 1000]"),
        ("losses", None, "arrays with their graph", 20, 4, "[]"),
    ]
    assert report.summary_lines()[0] == (
        "memory of kept arrays grows by 390.6 KiB per step over 20 steps: 390.6 KiB per step stays in `seen` in"
        " train.py:9"
    )


@pytest.mark.parametrize(
    ("group", "steps", "said"),
    [
        (
            "20\t8000000\tfloat32\t[9]\tseen\ttrain.py:9\tarrays",
            20,
            "Keep less in seen (train.py:9): memory grows by 390.6 KiB a step",
        ),
        (
            "20\t80\tfloat32\t[]\tlosses\t\tarrays with their graph",
            20,
            "Keep less in losses: memory grows by 4 B a step",
        ),
        ("20\t80\tfloat32\t[]\tlosses\t\tarrays", 20, ""),
        ("8\t8000000\tfloat32\t[9]\tseen\ttrain.py:9\tarrays", 20, ""),
        ("8\t8000000\tfloat32\t[9]\tseen\ttrain.py:9\tarrays", 4, ""),
        ("8\t-1\tfloat32", 20, ""),
    ],
    ids=["much", "a graph", "little", "not in most steps", "few steps", "damaged"],
)
def test_the_summary_tells_of_what_fills_a_memory_or_keeps_a_graph(group, steps, said):
    report = overview_tool.merge([overview_tool.partial(kept(group, steps=steps))])

    assert [item.title for item in report.advice if item.id == "memory.growth"] == ([said] if said else [])


def test_a_killed_recording_says_how_full_the_memory_was():
    host = Host()
    host.step(0, 0, 10)
    for name, value in (("Memory process GB", 11.5), ("Memory available GB", 0.25)):
        line = host.builder.line(host.plane, "_counters_", kind=LineKind.COUNTERS)
        line.event(name, 5 * MS, 0, EventKind.COUNTER, {"value": value})
    host.builder.problems.append(Problem("unfinished", "the job was killed", path="a.partial"))

    assert last_memory_sentence(host.builder.build()) == (
        "when the recording stops, the process uses 11.50 GB of memory, and the machine has 0.25 GB left;"
        " when it runs out, the system kills the job without warning"
    )
