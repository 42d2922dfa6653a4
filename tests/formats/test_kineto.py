"""The reader of Kineto and Chrome trace JSON: small traces drawn inline, damaged ones, and real ones recomputed with
plain JSON."""

from __future__ import annotations

import functools
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from framework_captures import FrameworkCapture
from hypothesis import example, given
from hypothesis import strategies as st
from places import TORCH_TRACES

from stepscope import api
from stepscope.engines import host_work
from stepscope.errors import UnreadableError
from stepscope.formats.base import require_format
from stepscope.formats.kineto import classify, document, text
from stepscope.formats.kineto.reader import read
from stepscope.formats.kineto.scanning import PartScanner
from stepscope.formats.store import local
from stepscope.formats.xspace.reader import read as read_xspace
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, Trait

K = EventKind


# -- drawing and looking -----------------------------------------------------------------------------------------------


def event(name: str, ts: float, dur: float | None = None, cat: str = "cpu_op", **fields: Any) -> dict[str, Any]:
    """A whole event of thread 7 of process 7, unless `fields` say otherwise; args go by `args`."""
    base: dict[str, Any] = {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": 7, "ts": ts}
    return base | ({} if dur is None else {"dur": dur}) | fields


def kineto(*events: dict[str, Any], **top: Any) -> bytes:
    """A trace of PyTorch."""
    return json.dumps({"schemaVersion": 1, **top, "traceEvents": list(events)}).encode()


def load(data: bytes | str) -> HostTrace:
    trace = read(data.encode() if isinstance(data, str) else data, "x.json", "h")
    trace.check()
    return trace


def rows(trace: HostTrace) -> list[tuple[str, str, str, float, float]]:
    """Every event as (line, name, kind, start in us, length in us), in the order of the tables."""
    events = trace.events
    return [
        (
            trace.strings[trace.lines.name[events.line[row]]],
            trace.name_of(row),
            EventKind(events.kind[row]).name,
            int(events.start_ps[row]) / 1e6,
            int(events.duration_ps[row]) / 1e6,
        )
        for row in range(len(events))
    ]


def kinds(trace: HostTrace) -> dict[str, str]:
    """The kind of each event by name."""
    return {name: kind for _, name, kind, _, _ in rows(trace)}


def stats(trace: HostTrace, name: str) -> dict[str, Any]:
    """The stats of the first event of this name, without its category."""
    row = next(row for row in range(len(trace.events)) if trace.name_of(row) == name)
    found = dict(trace.stats_of_event(row))
    found.pop("category", None)
    return found


def codes(trace: HostTrace) -> list[str]:
    return [problem.code for problem in trace.problems]


# -- what a trace becomes ----------------------------------------------------------------------------------------------


def test_the_registry_reads_through_it() -> None:
    found = require_format("node_1.1623143089861.pt.trace.json.gz", "p").read(kineto(event("a", 1, 1)), "p", "node_1")
    assert (found.host, found.framework, len(found.events)) == ("node_1", "pytorch", 1)


@pytest.mark.parametrize(
    ("metadata", "framework", "told"),
    [({"highres-ticks": True}, "jax", ["copy"]), ({}, "", ["not-events"])],
    ids=["xla", "any"],
)
def test_the_copy_that_is_made_of_an_xplane_file_is_told_as_such(metadata, framework, told) -> None:
    call = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "PjitFunction(step)"}
    written = {"displayTimeUnit": "ns", "metadata": metadata, "traceEvents": [call, {}]}

    trace = read(json.dumps(written).encode(), "vm.trace.json", "vm")

    assert (trace.framework, codes(trace), trace.partial) == (framework, told, False)


def test_a_step_on_a_host_thread_and_a_stream() -> None:
    trace = load(
        kineto(
            event("ProfilerStep#3", 100, 50, "user_annotation", args={"External id": 1}),
            event("aten::mm", 110, 20, args={"External id": 2, "Input type": ["c10::BFloat16", "c10::BFloat16"]}),
            event("cudaLaunchKernel", 115, 5, "cuda_runtime", args={"External id": 2, "correlation": 9}),
            event(
                "gemm", 125.5, 10, "kernel", pid=0, tid=20, args={"External id": 2, "correlation": 9, "grid": [4, 1, 1]}
            ),
            event("ProfilerStep#3", 125.499, 10.002, "gpu_user_annotation", pid=0, tid=20),
            {"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": {"name": "thread 7 (python)"}},
        )
    )
    assert rows(trace) == [
        ("thread 7 (python)", "ProfilerStep#3", "STEP_MARK", 0.0, 50.0),
        ("thread 7 (python)", "aten::mm", "OP", 10.0, 20.0),
        ("thread 7 (python)", "cudaLaunchKernel", "RUNTIME_CALL", 15.0, 5.0),
        ("Stream #20(Compute)", "gemm", "KERNEL", 25.5, 10.0),
        ("Stream #20 annotations", "ProfilerStep#3", "SCOPE", 25.499, 10.002),
    ]
    assert stats(trace, "gemm") == {"External id": 2, "correlation_id": 9, "grid": "[4,1,1]", "tf_op": "aten::mm"}
    assert stats(trace, "cudaLaunchKernel")["correlation_id"] == 9
    assert trace.stats_of_event(0) == {"category": "user_annotation", "External id": 1, "step_num": 3}
    assert [trace.plane_name(row) for row in range(2)] == ["/host:CPU", "/device:GPU:0"]
    assert trace.device_planes() == [1]
    assert [LineKind(kind).name for kind in trace.lines.kind] == ["THREAD", "STREAM", "DERIVED"]


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("cpu_op", "aten::mm", K.OP),
        ("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", K.BACKWARD),
        ("cpu_op", "AddmmBackward0", K.OP),
        ("Operator", "ProfilerStep#12", K.STEP_MARK),
        ("user_annotation", "ProfilerStep#12", K.STEP_MARK),
        ("user_annotation", "ProfilerStep#12 warm", K.ANNOTATION),
        ("gpu_user_annotation", "ProfilerStep#12", K.SCOPE),
        ("user_annotation", "Optimizer.step#SGD.step", K.ANNOTATION),
        ("Operator", "Optimizer.step#SGD.step", K.ANNOTATION),
        ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", K.INPUT_WAIT),
        ("user_annotation", "gloo:all_reduce", K.COLLECTIVE_CALL),
        ("cpu_op", "c10d::allreduce_", K.COLLECTIVE_CALL),
        ("cpu_op", "record_param_comms", K.COLLECTIVE_CALL),
        ("cpu_op", "_compile.compile_inner (dynamo_timed)", K.COMPILE),
        ("cpu_op", "entire_frame_compile", K.COMPILE),
        ("user_annotation", "inductor_compile_data: fn_name=compile_fx_inner, compile_id=0/0", K.COMPILE),
        ("cpu_op", "Torch-Compiled Region: 0/0", K.ANNOTATION),
        ("user_annotation", "## Call CompiledFxGraph fu5eahaf ##", K.ANNOTATION),
        ("user_annotation", "save checkpoint", K.CHECKPOINT),
        ("user_annotation", "checkpointed block", K.ANNOTATION),
        ("python_function", "train.py(10): main", K.PYTHON_CALL),
        ("python_function", "/opt/lib/torch/serialization.py(944): save", K.CHECKPOINT),
        ("cuda_runtime", "cudaStreamSynchronize", K.SYNC),
        ("cuda_runtime", "cudaStreamWaitEvent", K.RUNTIME_CALL),
        ("cuda_runtime", "hipDeviceSynchronize", K.SYNC),
        ("cuda_driver", "cuLaunchKernel", K.RUNTIME_CALL),
        ("Runtime", "cudaEventSynchronize", K.SYNC),
        ("xpu_runtime", "urEnqueueKernelLaunch", K.RUNTIME_CALL),
        ("xpu_runtime", "piEventsWait", K.SYNC),  # oneAPI before 2025
        ("xpu_driver", "zeEventHostSynchronize", K.SYNC),
        ("collective_comm", "xccl::allreduce", K.COLLECTIVE_CALL),
        ("cuda_sync", "Stream Sync", K.SYNC),
        ("cuda_sync", "Stream Wait Event", K.OTHER),
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", K.COLLECTIVE),
        ("kernel", "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(RankData*)", K.COLLECTIVE),
        ("cpu_op", "_C::shm_allreduce", K.COLLECTIVE_CALL),
        ("kernel", "void deep_ep::internode::dispatch<false, 8, true, 8>(int4*, float*)", K.COLLECTIVE),
        ("kernel", "void cutlass::device_kernel<flash::FlashAttnBwd<flash::CollectiveMainloopBwd<2> > >()", K.KERNEL),
        ("Kernel", "volta_sgemm_128x64_nn", K.KERNEL),
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", K.COPY_HOST_TO_DEVICE),
        ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", K.COPY_DEVICE_TO_HOST),
        ("Memcpy", "Memcpy DtoD (Device -> Device)", K.COPY_DEVICE_TO_DEVICE),
        ("gpu_memcpy", "Memcpy PtoP (Device -> Device)", K.COPY_PEER),
        ("gpu_memcpy", "Memcpy HtoH (Pinned -> Pageable)", K.COPY_HOST_TO_HOST),
        ("gpu_memcpy", "Memcpy ??? (Unknown -> Unknown)", K.COPY_OTHER),
        ("gpu_memset", "Memset (Device)", K.MEMSET),
        ("overhead", "Command Buffer Full", K.OVERHEAD),
    ],
)
def test_kinds(category: str, name: str, kind: EventKind) -> None:
    assert kinds(load(kineto(event(name, 1, 1, category)))) == {name: kind.name}


def test_kernels_of_a_collective_need_no_telling_name() -> None:
    trace = load(kineto(event("reduce<float>", 1, 1, "kernel", pid=0, args={"Collective name": "allreduce"})))
    assert kinds(trace) == {"reduce<float>": "COLLECTIVE"}


def test_allocations_stand_on_their_thread_without_length() -> None:
    freed, taken = {"Bytes": -64, "Device Type": 0}, {"Bytes": 64, "Device Type": 0}
    trace = load(
        kineto(
            event("aten::empty", 10, 5),
            event("[memory]", 11, cat="cpu_instant_event", ph="i", s="t", args=taken),
            event("[memory]", 14, 1_000_000, "cpu_instant_event", args=freed),
        )
    )
    assert rows(trace)[1:] == [
        ("thread 7", "[memory]", "ALLOCATION", 1.0, 0.0),
        ("thread 7", "[memory]", "DEALLOCATION", 4.0, 0.0),
    ]


def test_events_of_a_line_are_sorted_the_longer_first() -> None:
    trace = load(kineto(event("inner", 10, 2), event("late", 30, 1), event("outer", 10, 15), event("first", 5, 1)))
    assert [name for _, name, *_ in rows(trace)] == ["first", "outer", "inner", "late"]


def test_the_schema_of_pytorch_1_9() -> None:
    trace = load(
        kineto(
            event("ProfilerStep#5", 1623143089000000, 90, "Operator", tid="7", args={"External id": 1}),
            event("aten::relu", 1623143089000010, 30, "Operator", tid="7", args={"External id": 4}),
            event(
                "cudaLaunchKernel", 1623143089000015, 5, "Runtime", tid="7", args={"correlation": 3, "external id": 4}
            ),
            event(
                "relu", 1623143089000060, 0, "Kernel", pid=0, tid="stream 7", args={"correlation": 3, "external id": 4}
            ),
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": 1623143089000012, "args": {"Bytes": 4}},
        )
    )
    assert rows(trace) == [
        ("thread 7", "ProfilerStep#5", "STEP_MARK", 0.0, 90.0),
        ("thread 7", "aten::relu", "OP", 10.0, 30.0),
        ("thread 7", "[memory]", "ALLOCATION", 12.0, 0.0),
        ("thread 7", "cudaLaunchKernel", "RUNTIME_CALL", 15.0, 5.0),
        ("Stream #7(Compute)", "relu", "KERNEL", 60.0, 0.0),
    ]
    assert stats(trace, "relu") == {"correlation_id": 3, "External id": 4, "tf_op": "aten::relu"}
    assert trace.start_unix_ns == 1623143089000000000


def test_waits_and_overhead_stand_beside_the_work() -> None:
    trace = load(
        kineto(
            event("k", 1, 1, "kernel", pid=0, tid=7),
            event("Stream Wait Event", 2, 1, "cuda_sync", pid=0, tid=1_000_007),
            event("Context Sync", 4, 1, "cuda_sync", pid=0, tid=999_999, args={"stream": -1}),
            event("Buffer Flush", 3, 1, "overhead", pid=-1, tid=0),
            event("PyTorch Profiler (0)", 0, 9, "Trace", pid="Spans", tid="PyTorch Profiler"),
            event("Record Window End", 900_000, ph="i", s="g", pid="", tid="", cat=""),
        )
    )
    lines = [
        (trace.strings[name], LineKind(kind).name)
        for name, kind in zip(trace.lines.name, trace.lines.kind, strict=True)
    ]
    assert lines == [
        ("profiler overhead", "OVERHEAD"),
        ("PyTorch Profiler", "OTHER"),
        ("Stream #7(Compute)", "STREAM"),
        ("waits for all streams", "OTHER"),
        ("Stream #7 waits", "OTHER"),
    ]
    assert trace.span_ps() == (0, 9_000_000)


def test_host_events_of_process_0_are_no_device_work() -> None:
    trace = load(
        kineto(event("train.py(1): f", 1, 5, "python_function", pid=0, tid=0), event("k", 2, 1, "kernel", pid=0))
    )
    assert [trace.plane_name(row) for row in trace.lines.plane] == ["/host:CPU", "/device:GPU:0"]


# -- times -------------------------------------------------------------------------------------------------------------


def test_times_count_from_the_base_exactly() -> None:
    trace = load(
        kineto(
            event("a", 4375649088706.738, 0.001),
            event("b", 4375649088707.739, 1234567.891),
            baseTimeNanoseconds=1790857026000000000,
        )
    )
    assert trace.events.start_ps.tolist() == [0, 1_001_000]
    assert trace.events.duration_ps.tolist() == [1_000, 1_234_567_891_000]
    assert trace.start_unix_ns == 1790857026000000000 + 4375649088706738
    assert trace.stop_unix_ns == trace.start_unix_ns + 1_001 + 1_234_567_891


@pytest.mark.parametrize(("ts", "base"), [(5, 10**30), (10**18, 0), (4 * 10**18, 1790857026000000000)])
def test_a_clock_that_no_calendar_holds_tells_no_time(ts: int, base: int) -> None:
    trace = load(kineto(event("a", ts, 1), event("b", ts + 10, 1), baseTimeNanoseconds=base))
    assert (trace.start_unix_ns, trace.stop_unix_ns) == (None, None)
    assert trace.events.start_ps.tolist() == [0, 10_000_000]


def test_documents_whose_bases_are_damage_keep_their_own_times() -> None:
    first, second = (kineto(event("a", ts, 1), baseTimeNanoseconds=base) for ts, base in ((10, 1), (20, 10**40)))
    assert load(first + second).events.start_ps.tolist() == [0, 10_000_000]


_DIGITS = st.text("0123456789", min_size=1, max_size=13)


@example(whole="1900000000000", fraction="0000006", exponent="e0")  # more digits than 64 bits hold
@given(whole=_DIGITS, fraction=_DIGITS | st.just(""), exponent=st.sampled_from(["", "e0", "E+0", "e3", "e-7", "e-20"]))
def test_a_decimal_time_is_read_to_the_picosecond(whole: str, fraction: str, exponent: str) -> None:
    written = whole + ("." + fraction if fraction else "") + exponent
    exact = Decimal(written)
    zero = 5 * 10**11  # far enough from 0 that no time looks unknown, and near enough to them all
    data = (
        f'[{{"ph":"X","ts":{zero + int(exact) % 10**12}.{fraction or 0},"dur":{written},"name":"a","pid":1,"tid":1}}]'
    )
    if exact > 2 * 10**12:
        assert codes(load(data)) == ["impossible-durations"]
    else:
        shortfall = Decimal(int(load(data).events.duration_ps[0])) - exact * 10**6
        # Of more digits than 64 bits hold, 19 at least, the last is rounded before: that is a tenth more at most.
        is_long = len(whole + fraction) > 19
        assert abs(shortfall) <= Decimal("0.55" if is_long else "0.5")


def test_quoted_times_and_exponents_count() -> None:
    trace = load('[{"ph":"X","ts":"10.5","dur":"2","name":"a","pid":1,"tid":1},'
                 '{"ph":"X","ts":1.25e1,"dur":3.5E-1,"name":"b","pid":1,"tid":1}]')  # fmt: skip
    assert rows(trace) == [("thread 1", "a", "ANNOTATION", 0.0, 2.0), ("thread 1", "b", "ANNOTATION", 2.0, 0.35)]


@pytest.mark.parametrize(
    ("ts", "later_ps"),
    [
        ("1.6231430898614251e+15", 100_000),
        ("1.6231430898614255E15", 500_000),
        ("16231430898614260e-1", 1_000_000),
        ("0.0000016231430898614265e21", 1_500_000),
    ],
)
def test_a_time_with_an_exponent_keeps_all_its_digits(ts: str, later_ps: int) -> None:
    trace = load(f'[{{"ph":"X","ts":1623143089861425,"dur":1,"name":"first","pid":1,"tid":1}},'
                 f'{{"ph":"X","ts":{ts},"dur":1,"name":"second","pid":1,"tid":1}}]')  # fmt: skip
    assert trace.events.start_ps.tolist() == [0, later_ps]


@pytest.mark.parametrize("ts", ["1e19", "1e9999", "9e18", "1.5e+9999"])
def test_an_exponent_that_makes_no_time_is_damage(ts: str) -> None:
    trace = load(kineto(event("a", 10, 1), event("b", 11, 1)).replace(b'"ts": 11', f'"ts": {ts}'.encode()))
    assert [name for _, name, *_ in rows(trace)] == ["a"]


def test_a_time_of_zero_beside_real_ones_is_no_time() -> None:
    trace = load(kineto(*(event(f"e{at}", 4375649088706.5 + at, 1) for at in range(3)), event("lost", 0, 1)))
    assert [name for _, name, *_ in rows(trace)] == ["e0", "e1", "e2"]
    assert codes(trace) == ["impossible-times"]


def test_a_clock_that_starts_at_zero_is_kept() -> None:
    assert rows(load(kineto(event("a", 0, 1), event("b", 5, 1))))[0] == ("thread 7", "a", "OP", 0.0, 1.0)


# -- stats -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("12", 12),
        ("-12", -12),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", -(2**63) + 1),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("1e400", sys.float_info.max),
        ("18446744073709551614", 2**64 - 2),
        ("0.03551136363636364", 0.03551136363636364),
        ("9.927016204653041", 9.927016204653041),
        ("-5e-324", -5e-324),
        ("1.0", 1.0),
        ("true", 1),
        ("false", 0),
        ('""', ""),
        ('"a\\n\\u00e9\\/\\ud83d\\ude00"', "a\né/\U0001f600"),
        ('"half \\ud83d"', "half ?"),
        ("[4, 1,\n 1]", "[4,1,1]"),
        ('{"a": [ "x, ]\\" y" ]}', '{"a":["x, ]\\" y"]}'),
        ("[]", "[]"),
    ],
)
def test_args_become_stats(written: str, value: object) -> None:
    trace = load(f'[{{"ph":"X","ts":1,"dur":1,"name":"a","pid":1,"tid":1,"args":{{"k":{written}}}}}]')
    found = trace.stats_of_event(0)["k"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "written",
    [
        "null",
        "NaN",
        "Infinity",
        "-Infinity",
        "N/A",
        "undefined",
        "failed",
        "trues",
        "fals",
        "1e",
        "12345678901234567890123e+",
    ],
)
def test_what_is_not_known_is_no_stat(written: str) -> None:
    trace = load(f'[{{"ph":"X","ts":1,"dur":1,"name":"a","pid":1,"tid":1,"args":{{"k": {written}, "l": 2}}}}]')
    assert trace.stats_of_event(0) == {"l": 2}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_read_to_the_last_bit(value: float) -> None:
    trace = load(f'[{{"ph":"X","ts":1,"dur":1,"name":"a","pid":1,"tid":1,"args":{{"k":{value!r}}}}}]')
    assert trace.stats_of_event(0)["k"] == value


def test_texts_are_stored_once_however_they_are_spelled() -> None:
    trace = load(
        '[{"ph":"X","ts":1,"dur":1,"name":"\\u0061/b","pid":1,"tid":1,"args":{"x":"a\\/b"}},'
        '{"ph":"X","ts":2,"dur":1,"name":"a/b","pid":1,"tid":1}]'
    )
    assert len(set(trace.event_names().tolist())) == 1
    assert len({trace.strings.raw(row) for row in range(len(trace.strings))}) == len(trace.strings)


# -- links -------------------------------------------------------------------------------------------------------------


def test_paths_of_windows_may_lack_their_escapes() -> None:
    """As older releases of PyTorch wrote them: a newline and a form feed are no part of a file's name."""
    names = r"""
        {"ph": "X", "cat": "python_function", "name": "torch\nn\functional.py(3029): dropout", "ts": 1, "dur": 9},
        {"ph": "X", "cat": "python_function", "name": "torch\\nn\\modules.py(7): forward", "ts": 2, "dur": 5},
        {"ph": "X", "cat": "user_annotation", "name": "two\nlines", "ts": 3, "dur": 1}"""
    found = [name for _, name, _, _, _ in rows(load(f'{{"traceEvents": [{names}]}}'))]

    assert found == [r"torch\nn\functional.py(3029): dropout", r"torch\nn\modules.py(7): forward", "two\nlines"]


def test_a_kernel_without_external_id_finds_its_op_through_its_call() -> None:
    trace = load(
        kineto(
            event("aten::conv2d", 1, 9, args={"External id": 5}),
            event("hipLaunchKernel", 2, 1, "cuda_runtime", args={"External id": 5, "correlation": 8}),
            event("conv", 20, 5, "kernel", pid=2, args={"correlation": 8}),
        )
    )
    assert stats(trace, "conv")["tf_op"] == "aten::conv2d"


def test_a_call_without_external_id_belongs_to_the_innermost_op_around_it() -> None:
    trace = load(
        kineto(
            event("aten::linear", 1, 9, args={"External id": 5}),
            event("aten::addmm", 2, 4, args={"External id": 6}),
            event("elsewhere", 2, 4, tid=8, args={"External id": 7}),
            event("cudaLaunchKernel", 3, 1, "cuda_runtime", args={"External id": 70, "correlation": 70}),
            event("gemm", 20, 5, "kernel", pid=0, args={"External id": 70, "correlation": 70}),
            event("alone", 30, 5, "kernel", pid=0, args={"correlation": 71}),
        )
    )
    assert stats(trace, "gemm")["tf_op"] == "aten::addmm"
    assert "tf_op" not in stats(trace, "alone")


def test_an_op_that_a_dispatch_mode_passes_on_is_counted_once() -> None:
    trace = load(
        kineto(
            event("aten::mm", 10, 50), event("PythonDispatchMode", 12, 46), event("aten::mm", 20, 30),
            event("aten::add", 70, 20), event("PythonDispatchMode", 72, 16), event("aten::empty", 75, 2),
        )
    )  # fmt: skip
    found = [(name, kind, start) for _, name, kind, start, _ in rows(trace)]
    assert found == [
        ("aten::mm", "OTHER", 0.0), ("PythonDispatchMode", "OTHER", 2.0), ("aten::mm", "OP", 10.0),
        ("aten::add", "OP", 60.0), ("PythonDispatchMode", "OTHER", 62.0), ("aten::empty", "OP", 65.0),
    ]  # fmt: skip


def test_forward_and_backward_ops_share_the_number_of_their_arrow() -> None:
    arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 41, "pid": 7}
    trace = load(
        kineto(
            event("aten::mm", 10.125, 5),
            event("MmBackward0", 30.25, 5, tid=8),
            {**arrow, "ph": "s", "tid": 7, "ts": 10.125},
            {**arrow, "ph": "f", "bp": "e", "tid": 8, "ts": 30.25},
        )
    )
    assert stats(trace, "aten::mm") == stats(trace, "MmBackward0") == {"fwdbwd_id": 41}


@pytest.mark.parametrize(
    ("name", "narrow"),
    [
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas", True),
        ("sm80_xmma_dgrad_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16", False),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>", True),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>", False),
        ("ampere_sgemm_128x64_nn", False),
        ("volta_h884gemm_256x64_ldg8_nn", True),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn", True),
        ("Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT16x16x256_MI16x16x1_SN", True),
        ("Cijk_Ailk_Bljk_HHS_BH_MT64x64x64_MI16x16x16x1_SN", True),
        ("Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT64x32x32_MI16x16x1_SN", False),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTN", True),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::Half>>", True),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>", False),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0EEEvPT0_", True),
        ("_ZN2at6native12_GLOBAL__N_1Z4copyIN3c104HalfEEEv", True),
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8", True),
        ("batched_transpose_16x32_half", True),
        ("upsample_half_pixel_kernel", None),
        ("compute_position_kernel", None),
        ("_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3ItttEE", None),
    ],
)
def test_precision_told_by_kernel_names(name: str, narrow: bool | None) -> None:
    assert classify.kernel_computes_16bit(name) is narrow


@pytest.mark.parametrize(
    ("types", "narrow"),
    [
        (["c10::BFloat16", "c10::BFloat16", "Scalar"], True),
        (["c10::Half", "long int", ""], True),
        (["c10::Half", "float"], False),
        (["float", "float"], False),
        (["long int"], False),
    ],
)
def test_precision_of_ops_and_of_kernels_that_do_not_tell(types: list[str], narrow: bool) -> None:
    trace = load(
        kineto(
            event("aten::conv2d", 1, 9, args={"External id": 5, "Input type": types}),
            event("kernel_grouped_conv_fwd", 20, 5, "kernel", pid=0, args={"External id": 5}),
            event("scale<float>", 30, 5, "kernel", pid=0, args={"External id": 5}),
        )
    )
    assert [bool(traits & Trait.COMPUTES_16BIT) for traits in trace.events.traits] == [narrow, narrow, False]


# -- facts about host and devices --------------------------------------------------------------------------------------


def _device(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": "AMD Instinct MI300X", "totalGlobalMem": 206141652992, "numSms": 304} | more


def test_device_properties_become_stats_of_their_plane() -> None:
    devices = [_device(0), {"id": 1, "name": "NVIDIA H100", "numSms": 132, "computeMajor": 9, "computeMinor": 0}]
    trace = load(kineto(event("k", 1, 1, "kernel", pid=1), deviceProperties=devices))
    assert (trace.plane_name(0), PlaneKind(trace.planes.kind[0]), trace.planes.ordinal[0]) == (
        "/device:GPU:1",
        PlaneKind.GPU,
        1,
    )
    assert trace.stats_of_plane(0) == {
        "gpu_device_name": "NVIDIA H100",
        "core_count": 132,
        "compute_cap_major": 9,
        "compute_cap_minor": 0,
        "device_vendor": "Nvidia",
    }


def test_a_driver_number_without_properties_takes_those_that_all_devices_share() -> None:
    shared = load(kineto(event("k", 1, 1, "kernel", pid=9), deviceProperties=[_device(0), _device(1)]))
    assert shared.stats_of_plane(0) == {
        "gpu_device_name": "AMD Instinct MI300X",
        "memory_size": 206141652992,
        "core_count": 304,
        "device_vendor": "AMD",
    }
    mixed = load(kineto(event("k", 1, 1, "kernel", pid=9), deviceProperties=[_device(0), _device(1, numSms=8)]))
    assert mixed.stats_of_plane(0) == {}


def test_facts_about_the_job_are_kept_and_the_environment_is_not() -> None:
    trace = load(
        kineto(
            event("a", 1, 1),
            host_name="node-3",
            record_shapes=1,
            distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"pg_name": "0"}]},
            metadata={"env": {"TOKEN": "secret"}},
            WARNING=["lost 3 records"],
            ERROR=["ERROR:2024-11-11 10:03:10 31:31 DeviceProperties.cpp:47] gpuGetDeviceCount failed with code 35"]
            * 2,
        )
    )
    assert trace.stats_of_plane(0) == {
        "schemaVersion": 1,
        "host_name": "node-3",
        "record_shapes": 1,
        "backend": "nccl",
        "rank": 3,
        "world_size": 8,
        "pg_config": '[{"pg_name":"0"}]',
    }
    assert trace.recorder_messages == (
        "the profiler itself says: gpuGetDeviceCount failed with code 35",
        "lost 3 records",
    )
    assert b"secret" not in trace.strings.blob.tobytes()


@pytest.mark.parametrize("rank", [3, "3"], ids=["number", "text"])
def test_the_place_in_a_job_of_very_many_processes(rank: object) -> None:
    groups = [{"pg_name": str(number), "ranks": list(range(16_384))} for number in range(12)]  # more than a megabyte
    trace = load(kineto(event("a", 1, 1), distributedInfo={"rank": rank, "world_size": 16_384, "pg_config": groups}))

    facts = trace.stats_of_plane(0)
    assert (facts["rank"], facts["world_size"], json.loads(str(facts["pg_config"]))) == (3, 16_384, groups)


# -- Chrome's format ---------------------------------------------------------------------------------------------------


def test_begin_and_end_nest_by_thread() -> None:
    trace = load(
        """[{"ph":"B","name":"outer","pid":1,"tid":1,"ts":10,"args":{"a":1}},
            {"ph":"B","name":"inner","pid":1,"tid":1,"ts":12},
            {"ph":"B","name":"other","pid":1,"tid":2,"ts":13},
            {"ph":"E","pid":1,"tid":1,"ts":15},
            {"ph":"E","pid":1,"tid":2,"ts":18},
            {"ph":"E","pid":1,"tid":1,"ts":20,"args":{"b":2}}]"""
    )
    assert rows(trace) == [
        ("thread 1", "outer", "ANNOTATION", 0.0, 10.0),
        ("thread 1", "inner", "ANNOTATION", 2.0, 3.0),
        ("thread 2", "other", "ANNOTATION", 3.0, 5.0),
    ]
    assert stats(trace, "outer") == {"a": 1, "b": 2}
    assert (trace.framework, trace.problems, trace.start_unix_ns) == ("", (), None)


def test_ends_without_partner_are_counted() -> None:
    trace = load('[{"ph":"E","pid":1,"tid":1,"ts":5},{"ph":"B","name":"open","pid":1,"tid":1,"ts":10}]')
    assert rows(trace) == [("thread 1", "open", "ANNOTATION", 5.0, 0.0)]
    assert codes(trace) == ["unmatched-begins", "unmatched-ends"]


def test_asynchronous_events_go_by_id_not_by_thread() -> None:
    trace = load(
        """[{"ph":"b","cat":"io","id":1,"name":"read 1","pid":1,"tid":1,"ts":10},
            {"ph":"b","cat":"io","id":"0x2","name":"read 2","pid":1,"tid":1,"ts":11},
            {"ph":"e","cat":"io","id":1,"name":"read 1","pid":1,"tid":9,"ts":15},
            {"ph":"e","cat":"io","id":"0x2","name":"read 2","pid":1,"tid":9,"ts":19}]"""
    )
    assert [row[1:] for row in rows(trace)] == [("read 1", "ANNOTATION", 0.0, 5.0), ("read 2", "ANNOTATION", 1.0, 8.0)]
    assert trace.events.traits.tolist() == [Trait.ASYNC, Trait.ASYNC]


def test_local_ids_of_asynchronous_events_count_within_their_process() -> None:
    def end(phase: str, ts: float, pid: int, **id2: str) -> dict[str, Any]:
        return {"ph": phase, "cat": "io", "name": f"read of {pid}", "id2": id2, "pid": pid, "tid": ts, "ts": ts}

    trace = load(
        json.dumps([
            end("b", 0, 1, local="0x1"),
            end("b", 1, 2, local="0x1"),
            end("b", 2, 3, **{"global": "0x1"}),
            end("e", 10, 1, local="0x1"),
            end("e", 30, 2, local="0x1"),
            end("e", 50, 4, **{"global": "0x1"}),
        ])
    )  # fmt: skip
    assert {name: length for _, name, _, _, length in rows(trace)} == {
        "read of 1": 10,
        "read of 2": 29,
        "read of 3": 48,
    }
    assert codes(trace) == []


def test_counters_have_lines_of_their_own() -> None:
    trace = load(
        """[{"ph":"C","name":"queue","pid":1,"ts":10,"args":{"length":3}},
            {"ph":"C","name":"queue","pid":1,"ts":20,"args":{"length":4.5}},
            {"ph":"C","name":"power","pid":"GPU 2 Counters","ts":20,"args":{"W":300}}]"""
    )
    assert rows(trace) == [
        ("queue", "queue", "COUNTER", 0.0, 0.0),
        ("queue", "queue", "COUNTER", 10.0, 0.0),
        ("power", "power", "COUNTER", 10.0, 0.0),
    ]
    assert [LineKind(kind).name for kind in trace.lines.kind] == ["COUNTERS", "COUNTERS"]
    assert trace.plane_name(int(trace.lines.plane[1])) == "/device:GPU:2"
    assert (stats(trace, "queue"), trace.problems) == ({"length": 3}, ())


def test_processes_of_a_trace_by_anyone_are_planes() -> None:
    trace = load(
        """[{"ph":"M","name":"process_name","pid":1,"args":{"name":"server"}},
            {"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},{"ph":"X","name":"b","pid":2,"tid":1,"ts":1,"dur":1}]"""
    )
    assert [trace.plane_name(row) for row in range(2)] == ["server [1]", "process [2]"]


def test_a_trace_converted_from_xspace_gets_its_kinds_back() -> None:
    trace = load(
        """{"displayTimeUnit":"ns","traceEvents":[
            {"ph":"M","name":"process_name","pid":1,"args":{"name":"/device:GPU:0"}},
            {"ph":"M","name":"process_name","pid":701,"args":{"name":"/host:CPU"}},
            {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"Stream #13(Compute)"}},
            {"ph":"M","name":"thread_name","pid":1,"tid":3,"args":{"name":"XLA Modules"}},
            {"ph":"X","name":"fusion_3","pid":1,"tid":2,"ts":5,"dur":2},
            {"ph":"X","name":"MemcpyH2D","pid":1,"tid":2,"ts":8,"dur":2},
            {"ph":"X","name":"jit_f","pid":1,"tid":3,"ts":5,"dur":5},
            {"ph":"X","name":"$train.py:3 f","pid":701,"tid":4,"ts":1,"dur":9}]}"""
    )
    assert kinds(trace) == {
        "fusion_3": "KERNEL",
        "MemcpyH2D": "COPY_HOST_TO_DEVICE",
        "jit_f": "MODULE",
        "$train.py:3 f": "PYTHON_CALL",
    }
    assert [trace.plane_name(row) for row in range(2)] == ["/host:CPU", "/device:GPU:0"]


# -- bad input: repaired -----------------------------------------------------------------------------------------------

THREE = [event("a", 1, 1), event("b", 2, 1, args={"k": [1, 2]}), event("c", 3, 1)]


def names(trace: HostTrace) -> list[str]:
    return [name for _, name, *_ in rows(trace)]


def test_a_cut_keeps_every_whole_event_and_tells_where() -> None:
    whole = kineto(*THREE)
    last = whole.rindex(b'{"ph"')
    for cut in range(last + 1, len(whole) - 2):
        trace = load(whole[:cut])
        (problem,) = trace.problems
        assert names(trace) == ["a", "b"]
        assert (trace.partial, problem.code, problem.offset, problem.kept) == (True, "truncated", last, "2 events")
        assert problem.lost
    assert names(load(whole[:-1])) == ["a", "b", "c"]  # only the closing brace is missing
    assert load(whole[:-1]).partial
    assert not load(whole).partial


def test_an_array_may_lack_its_end() -> None:
    """Chrome's format allows it, so that programs can append to a file."""
    text_ = ",\n".join(json.dumps(each) for each in THREE)
    for data in (f"[{text_}]", f"[{text_},\n", f"[{text_}\n"):
        trace = load(data)
        assert (names(trace), trace.problems) == (["a", "b", "c"], ())


def test_a_cut_after_the_events_loses_none() -> None:
    data = kineto(*THREE)[:-1] + b', "traceName": "/tmp/x'
    assert (names(load(data)), codes(load(data))) == (["a", "b", "c"], ["truncated"])


def test_a_cut_gzip_file_keeps_what_unpacks() -> None:
    noise = random.Random(0)
    many = [event(f"op{at} {noise.random()}", at, 1) for at in range(5000)]
    packed = gzip.compress(kineto(*many))
    trace = load(packed[: len(packed) // 2])
    assert codes(trace) == ["truncated"]
    assert "gzip" in trace.problems[0].reason
    assert 2000 < len(trace.events) < 3000
    assert names(trace) == [each["name"] for each in many][: len(trace.events)]


def test_a_damaged_gzip_file_keeps_what_unpacks() -> None:
    noise = random.Random(0)
    packed = bytearray(gzip.compress(kineto(*(event(f"op{at} {noise.random()}", at, 1) for at in range(5000)))))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    trace = load(bytes(packed))
    assert trace.partial
    assert len(trace.events) > 2000


@pytest.mark.parametrize(
    "damage",
    [
        ('"name": "b"', '"name": "b'),
        ('"name": "b"', '"name" "b"'),
        ('"k": [1, 2]}}', '"k": [1, 2]'),
        ('"k": [1, 2]}}', '"k": }}}}'),
        ('"ph": "X", "cat": "cpu_op", "name": "b"', 'x"ph": "X", "cat": "cpu_op", "name": "b"'),
    ],
)
def test_damage_in_one_event_costs_that_event(damage: tuple[str, str]) -> None:
    data = kineto(*THREE).decode()
    assert damage[0] in data
    trace = load(data.replace(*damage))
    assert {"a", "c"} <= set(names(trace))
    assert (trace.partial, codes(trace)[0]) == (True, "damaged")


def test_damage_at_the_end_costs_what_follows() -> None:
    trace = load(kineto(*THREE).decode().replace('"name": "c"', '"name" "c"'))
    assert names(trace) == ["a", "b"]
    assert [(problem.code, problem.reason) for problem in trace.problems] == [
        ("truncated", "nothing after the damage can be read as an event"),
        ("damaged", "1 place could not be read as JSON"),
    ]


def test_damage_is_located() -> None:
    data = kineto(*THREE).decode()
    place = data.index('{"ph": "X", "cat": "cpu_op", "name": "b"')
    (problem,) = load(data.replace('"name": "b"', '"name" "b"')).problems
    assert (problem.code, problem.offset, problem.reason) == ("damaged", place, "1 place could not be read as JSON")


@pytest.mark.parametrize(
    "data",
    [
        '{"traceEvents": [%s,], }',
        '{"traceEvents": [,%s]}',
        '{"x": N/A, "y": NaN, "traceEvents": [%s], "z": -Infinity}',
        '{"x": "tab\there \x01", "traceEvents": [%s]}',
        '\ufeff {"traceEvents": [%s]}\n\n\0\0',
        '{"x": {"traceEvents": []}, "traceEvents": [%s]}',
        '{"x": "\\"}]", "traceEvents": [%s]}',
    ],
)
def test_json_as_it_is_found_in_the_wild(data: str) -> None:
    trace = load(data % ", ".join(json.dumps(each) for each in THREE))
    assert (names(trace), trace.problems) == (["a", "b", "c"], ())


def test_damage_before_the_events_does_not_hide_them() -> None:
    trace = load('{"x" "y", ' + kineto(*THREE).decode()[1:])
    assert (names(trace), codes(trace)) == (["a", "b", "c"], ["damaged"])


def test_documents_after_one_another_are_one_trace() -> None:
    base = 1790857026000000000
    first = kineto(event("a", 1000, 1), baseTimeNanoseconds=base)
    second = kineto(event("b", 500, 1), baseTimeNanoseconds=base + 1_000_000)
    trace = load(first + b"\n" + second)
    assert rows(trace) == [("thread 7", "a", "OP", 0.0, 1.0), ("thread 7", "b", "OP", 500.0, 1.0)]
    assert codes(trace) == ["concatenated"]


def test_events_that_lack_something() -> None:
    trace = load(
        """{"schemaVersion": 1, "traceEvents": [
            {"ph":"X","name":"whole","pid":1,"tid":1,"ts":10,"dur":2},
            {"ph":"X","name":"no ts","pid":1,"tid":1,"dur":2},
            {"ph":"X","name":"NaN ts","pid":1,"tid":1,"ts":NaN,"dur":2},
            {"ph":"X","name":"no dur","pid":1,"tid":1,"ts":11},
            {"ph":"X","name":"no thread","ts":12,"dur":1},
            {"name":"no phase","pid":1,"tid":1,"ts":13,"dur":1},
            {"name":"nothing"}, {},
            {"ph":"X","name":"negative","pid":1,"tid":1,"ts":14,"dur":-0.5},
            {"ph":"X","name":"endless","pid":1,"tid":1,"ts":15,"dur":1e30},
            {"ph":"X","name":"far","pid":1,"tid":1,"ts":9e17,"dur":1},
            {"ph":"X","name":"farther","pid":1,"tid":1,"ts":99999999999999999999999,"dur":1}]}"""
    )
    assert {(name, start, length) for _, name, _, start, length in rows(trace)} == {
        ("whole", 0.0, 2.0),
        ("no dur", 1.0, 0.0),
        ("no thread", 2.0, 1.0),
        ("no phase", 3.0, 1.0),
        ("negative", 4.0, 0.0),
        ("endless", 5.0, 0.0),
    }
    assert {problem.code: problem.reason.split()[0] for problem in trace.problems} == {
        "not-events": "2",
        "no-time": "3",
        "impossible-times": "1",
        "negative-durations": "1",
        "no-duration": "2",
        "no-thread": "1",
    }
    assert {problem.code for problem in trace.problems if problem.lost} == {"negative-durations", "no-duration"}


# -- bad input: refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (b"", "empty", "the file is empty"),
        (b"hello", "unreadable", "this is text, not a JSON trace"),
        (
            b"<!DOCTYPE html>",
            "unreadable",
            "this is HTML or XML, such as the page of a login or of an error, not a JSON trace",
        ),
        (b"\n\xfb\x01\x12\x09", "unreadable", "this is binary data, not a JSON trace"),
        (b"   \n", "unreadable", "this is nothing but blanks, not a JSON trace"),
        ("{}".encode("utf-16"), "unreadable", "this is UTF-16 text, not a JSON trace"),
        (b'{"a": 1, "b": [2]}', "unreadable", "a JSON object with the keys 'a', 'b', but no events"),
        (b"{}", "unreadable", "an empty JSON object, but no events"),
        (b"[]", "unreadable", "a JSON array without events"),
        (b'[{"a": 1}, {"b": 2}]', "unreadable", "a JSON array without events"),
        (b"[1, 2, 3]", "unreadable", "a JSON array without events"),
        (b'{"traceEvents": [{"ph": "X", "na', "unreadable", "the JSON ends in the middle of an event, before"),
        (b'{"traceEvents": 5}', "unreadable", "a JSON object with the keys 'traceEvents', but no events"),
        (
            gzip.compress(b'{"traceEvents": [' + b" " * 99, mtime=0)[:30],
            "unreadable",
            "the gzip data ends early before the",
        ),
    ],
)
def test_what_is_no_trace_is_named(data: bytes, code: str, reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        read(data, "x.json", "h")
    problem = caught.value.problem
    assert (problem.code, problem.path) == (code, "x.json")
    assert problem.reason.startswith(reason)
    assert problem.hint


def test_a_bomb_is_refused_and_the_limit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    data = gzip.compress(b'{"traceEvents": [' + b" " * 10_000 + b"]}")
    assert len(load(data).events) == 0
    monkeypatch.setenv("STEPSCOPE_MAX_JSON_BYTES", "5000")
    with pytest.raises(UnreadableError, match=r"unpack to more than 5,000 bytes.*set STEPSCOPE_MAX_JSON_BYTES"):
        load(data)


def test_the_limit_follows_the_size_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPSCOPE_MAX_JSON_BYTES", raising=False)
    assert text.size_limit(1_000) == 256 << 20
    assert text.size_limit(10 << 20) == 1000 << 20
    assert text.size_limit(1 << 40) == 64 << 30


def test_a_limit_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_MAX_JSON_BYTES", "much")
    with pytest.raises(UnreadableError, match="STEPSCOPE_MAX_JSON_BYTES is 'much'"):
        load(gzip.compress(kineto(*THREE)))


def _mutated(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    at = rng.randrange(len(changed))
    match rng.randrange(4):
        case 0:
            del changed[at:]
        case 1:
            for _ in range(rng.randrange(1, 20)):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
        case 2:
            del changed[at : at + rng.randrange(1, 200)]
        case _:
            changed[at:at] = rng.choice([b"{", b"}", b"[", b"]", b'"', b"\\", b"1e999", b"NaN", b'{"ph":', b"[[[["])
    return bytes(changed)


def test_mutations_give_a_sound_trace_or_a_plain_error(corpus: Path) -> None:
    whole = json.loads(gzip.decompress((corpus / TORCH_TRACES[3]).read_bytes()))
    whole["traceEvents"] = whole["traceEvents"][:60] + whole["traceEvents"][-60:]
    plain = json.dumps(whole).encode()
    packed = gzip.compress(plain, 1)
    rng = random.Random(7)
    kept = []
    for turn in range(300):
        try:
            trace = load(_mutated(packed if turn % 5 == 0 else plain, rng))
        except UnreadableError:
            continue
        assert (trace.events.duration_ps >= 0).all()
        assert all(
            (np.diff(trace.events.start_ps[begin:end]) >= 0).all()
            for begin, end in zip(trace.lines.event_begin, trace.lines.event_end, strict=True)
        )
        kept.append(len(trace.events))
    assert len(kept) > 240
    assert np.mean(kept) > 60


# -- reading in pieces -------------------------------------------------------------------------------------------------


def _same(one: HostTrace, other: HostTrace) -> bool:
    return rows(one) == rows(other) and all(
        one.stats_of_event(row) == other.stats_of_event(row) for row in range(len(one.events))
    )


def test_the_size_of_the_pieces_does_not_matter(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows smaller than an event, and parts of them that hold one or two: all give the same trace."""
    packed = (corpus / TORCH_TRACES[3]).read_bytes()
    whole = load(packed)
    monkeypatch.setattr(text, "_PIECE_BYTES", 1000)
    monkeypatch.setattr(text, "_INPUT_BYTES", 700)
    monkeypatch.setattr(document, "PartScanner", lambda: PartScanner(part_bytes=300, threads=3))
    assert _same(load(packed), whole)
    assert _same(load(gzip.decompress(packed)), whole)
    assert _same(read(_pieces(gzip.decompress(packed), 999), "x.json", "h"), whole)
    assert _same(read(_pieces(packed, 999), "x.json", "h"), whole)


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def test_a_large_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "worker.pt.trace.json"
    path.write_bytes(kineto(*THREE))
    monkeypatch.setattr(host_work, "_LARGE_FILE_BYTES", 1)
    monkeypatch.setattr(api.store, "read_bytes", None)
    monkeypatch.setattr(local, "_PIECE_BYTES", 50)
    assert names(api.load(path).trace()) == ["a", "b", "c"]


@pytest.mark.parametrize("piece", [3, 50, 4 << 20])
@pytest.mark.parametrize("after", ["", "padding", "another"])
def test_a_gzip_member_ends_where_it_ends(after: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_PIECE_BYTES", piece)
    packed = gzip.compress(b"0123456789" * 30, mtime=0)
    inflater = text.Inflater(packed + {"": b"", "padding": b"\0" * 9, "another": packed}[after], "x")
    pieces = list(islice(inflater.pieces(), 1000))  # it used to go on for ever
    assert (b"".join(pieces), inflater.damage) == (b"0123456789" * (60 if after == "another" else 30), "")


def test_files_in_several_gzip_members_are_one() -> None:
    data = kineto(*THREE)
    assert names(load(gzip.compress(data[:50]) + gzip.compress(data[50:]))) == ["a", "b", "c"]


# -- real traces, recomputed with plain JSON ---------------------------------------------------------------------------

_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")


def _plain(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text_of = gzip.decompress(data) if path.suffix == ".gz" else data
    return json.loads(text_of, parse_float=Decimal, strict=False)["traceEvents"]


def _ps(value: Decimal | int) -> int:
    return int(Decimal(value) * 1_000_000)


def _device_rows(trace: HostTrace) -> np.ndarray[Any, Any]:
    return np.flatnonzero(np.isin(trace.events.line, trace.lines_of(LineKind.STREAM)))


@functools.cache
def real_trace(path: Path) -> HostTrace:
    """The trace of a file that nothing changes; several tests look at it."""
    return load(path.read_bytes())


@pytest.mark.parametrize("name", TORCH_TRACES)
def test_a_real_trace_and_its_links_equal_its_json(corpus: Path, name: str) -> None:
    trace, plain = real_trace(corpus / name), _plain(corpus / name)
    require_equal_to_json(trace, plain)
    require_links_of_json(trace, plain, share=0.98 if "multirank" in name else 1.0)


def test_a_fresh_trace_equals_its_json(torch_marked_capture: FrameworkCapture) -> None:
    path = torch_marked_capture.paths[0]
    require_equal_to_json(load(path.read_bytes()), _plain(path))


def require_equal_to_json(trace: HostTrace, plain: list[dict[str, Any]]) -> None:
    whole = [each for each in plain if each["ph"] == "X"]
    device = [each for each in whole if each["cat"].lower() in _DEVICE]
    memory = [each for each in plain if each["name"] == "[memory]"]
    zero = min(_ps(each["ts"]) for each in [*whole, *memory])
    assert trace.problems == ()

    # Every event, with its time to the picosecond.
    wanted = Counter((each["name"], _ps(each["ts"]) - zero, _ps(each["dur"])) for each in whole)
    wanted.update(("[memory]", _ps(each["ts"]) - zero, 0) for each in memory)
    columns = (trace.event_names(), trace.events.start_ps, trace.events.duration_ps)
    found = zip(*(column.tolist() for column in columns), strict=True)
    assert Counter((trace.strings[name_row], start, length) for name_row, start, length in found) == wanted

    # Device work by stream, and kernels by name.
    by_stream: Counter[tuple[int, str]] = Counter()
    by_kernel: Counter[str] = Counter()
    for each in device:
        by_stream[each["args"]["device"], str(each["args"]["stream"])] += _ps(each["dur"])
        by_kernel[each["name"]] += _ps(each["dur"])
    lines = trace.lines_of(LineKind.STREAM).tolist()
    assert {
        (
            int(trace.planes.ordinal[trace.lines.plane[line]]),
            str(trace.lines.line_id[line]),
        ): int(trace.events.duration_ps[trace.lines.event_begin[line] : trace.lines.event_end[line]].sum())
        for line in lines
    } == dict(by_stream)
    totals: Counter[str] = Counter()
    for row in _device_rows(trace).tolist():
        totals[trace.name_of(row)] += int(trace.events.duration_ps[row])
    assert totals == by_kernel

    # Steps.
    marks = np.flatnonzero(trace.events.kind == K.STEP_MARK)
    steps = [each["name"] for each in whole if each["cat"] in ("user_annotation", "Operator")]
    steps = [each for each in steps if each.startswith("ProfilerStep#")]
    assert sorted(trace.name_of(row) for row in marks.tolist()) == sorted(steps)
    assert trace.stat_ints(("step_num",))[marks].tolist() == [int(trace.name_of(row)[13:]) for row in marks.tolist()]


def require_links_of_json(trace: HostTrace, plain: list[dict[str, Any]], share: float) -> None:
    """Holds the op of each piece of device work against the ids; of `share` of them, where kernels know no op."""
    ops: dict[int, str] = {}
    wanted: Counter[tuple[int, str]] = Counter()
    for each in plain:
        if each.get("cat") in ("cpu_op", "Operator"):
            ops[each["args"]["External id"]] = each["name"]
    for each in plain:
        if each["ph"] == "X" and each["cat"].lower() in _DEVICE:
            args = each["args"]
            external = args.get("External id", args.get("external id"))
            if external in ops and external != args["correlation"]:
                wanted[args["correlation"], ops[external]] += 1
    device = _device_rows(trace)
    correlation, op = trace.stat_ints(("correlation_id",))[device], trace.stat_strings(("tf_op",))[device]
    pairs = zip(correlation.tolist(), op.tolist(), strict=True)
    found = Counter((number, trace.strings[row]) for number, row in pairs if row >= 0)
    assert not wanted - found
    if share < 1:  # its kernels know no op, and each has a launch inside of one
        assert sum(found.values()) / len(device) > share
    else:
        assert found == wanted


@pytest.mark.parametrize(
    ("name", "plane", "facts"),
    [
        (TORCH_TRACES[0], "/device:GPU:0", {"gpu_device_name": "Tesla V100-DGXS-32GB", "core_count": 80}),
        (TORCH_TRACES[5], "/device:GPU:0", {"gpu_device_name": "NVIDIA H100 80GB HBM3", "device_vendor": "Nvidia"}),
        (TORCH_TRACES[7], "/device:GPU:2", {"gpu_device_name": "AMD Instinct MI300X", "device_vendor": "AMD"}),
        (TORCH_TRACES[8], "/device:GPU:9", {"memory_size": 206141652992, "core_count": 304}),
        (TORCH_TRACES[3], "/host:CPU", {"rank": 0, "world_size": 128}),
    ],
)
def test_facts_of_real_devices(corpus: Path, name: str, plane: str, facts: dict[str, Any]) -> None:
    trace = real_trace(corpus / name)
    at = [trace.plane_name(row) for row in range(len(trace.planes))].index(plane)
    found = trace.stats_of_plane(at)
    assert {key: found.get(key) for key in facts} == facts


def test_work_of_mtia_is_work_of_a_device_of_its_kind():
    """An op, the call that launches it, and its work on an accelerator that is no GPU."""
    trace = load(
        kineto(
            event("ProfilerStep#1", 0, 90, "user_annotation"),
            event("aten::mm", 10, 20, args={"External id": 5}),
            event("launchKernel", 12, 4, "mtia_runtime", args={"correlation": 9, "External id": 5}),
            event("fba_mm", 20, 30, "mtia_ccp_events", pid=0, tid=3, args={"correlation": 9}),
            event("event_wait", 50, 30, "mtia_ccp_events", pid=0, tid=3, args={"wait_on_stream": 2}),
            event("dma_request", 81, 4, "mtia_ccp_events", pid=0, tid=3, args={"direction": "HOST_TO_DEVICE"}),
            event("dma_request", 83, 5, "mtia_ccp_events", pid=0, tid=3, args={"direction": "HOST_TO_DEVICE"}),
        )
    )

    assert ("Stream #3(Compute,Memcpy)", "fba_mm", "KERNEL", 20.0, 30.0) in rows(trace)
    assert (kinds(trace)["launchKernel"], kinds(trace)["event_wait"]) == ("RUNTIME_CALL", "OTHER")
    assert [row[2:] for row in rows(trace) if row[1] == "dma_request"] == [("COPY_OTHER", 81, 4), ("COPY_OTHER", 83, 5)]
    assert stats(trace, "fba_mm")["tf_op"] == "aten::mm"
    (device,) = np.flatnonzero(trace.planes.kind == PlaneKind.GPU).tolist()
    assert trace.plane_name(device) == "/device:MTIA:0"
    back = read_xspace(write(trace), "a.xplane.pb", "h")
    assert back.planes.kind.tolist() == trace.planes.kind.tolist()


def test_repeated_keys() -> None:
    trace = load('[{"ph":"X","ts":1,"ts":5,"dur":1,"name":"a","name":"b","pid":1,"tid":1,"args":{"k":1,"k":2}}]')
    assert (names(trace), trace.stats_of_event(0)) == (["b"], {"k": 2})


def test_hostile_names() -> None:
    long = "x" * 1_000_000
    other = json.dumps(event(long, 2, 1, pid="\u202e", tid={"a": 1})).encode()
    data = b'[{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"\xff\xfe"},' + other + b"]"
    assert set(names(load(data))) == {"\ufffd\ufffd", long}


def test_many_lines() -> None:
    trace = load(json.dumps([event("a", at, 1, tid=at) for at in range(20_000)]))
    assert (len(trace.lines), len(trace.events)) == (20_000, 20_000)


def test_a_trace_without_events_is_a_trace() -> None:
    trace = load('{"schemaVersion": 1, "traceEvents": []}')
    assert (len(trace.events), trace.framework, codes(trace)) == (0, "pytorch", ["no-events"])


@pytest.mark.parametrize("ts", ["NaN", "1e300"])
def test_a_trace_whose_times_are_none_does_hold_events(ts: str) -> None:
    trace = load('{"schemaVersion": 1, "traceEvents": [{"ph":"X","name":"a","pid":1,"tid":1,"dur":2,"ts":' + ts + "}]}")
    assert (len(trace.events), codes(trace)) == (0, ["times", "no-time"])


def test_precision_of_real_kernels(corpus: Path) -> None:
    """By time on the device: the H100 model runs in bfloat16, the V100 and A100 models in single precision."""
    share = {}
    for name in (TORCH_TRACES[0], TORCH_TRACES[2], TORCH_TRACES[5], TORCH_TRACES[7]):
        trace = real_trace(corpus / name)
        kernels = trace.events.kind == K.KERNEL
        narrow = kernels & ((trace.events.traits & np.uint8(Trait.COMPUTES_16BIT)) != 0)
        share[name.split("/")[0]] = trace.events.duration_ps[narrow].sum() / trace.events.duration_ps[kernels].sum()
    assert share["torch-v100-resnet50-workers0"] == share["torch-nccl"] == 0
    assert share["torch-h100-owlv2"] > 0.5
    assert share["torch-mi300-resnet"] > 0.9
