"""The overview: figures, environment, verdict, and what it says where there is little to say."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from draw import Sort, draw, traces
from hypothesis import given, settings
from hypothesis import strategies as st
from reporting import overview_of

from stepscope.analysis.input import tf_data_tool as tf_data
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder

K = EventKind


# In each step: 3 or 5 of waiting, 1 of launching, 3 of computing, 2 of copying to the device, 1 of nothing.
TRAINING = """
    host main | M5--------M6--------M7----------
    host main |  I--       I--       I----
    host main |     L1L2      L3L4        L5L6
    gpu0 s    |      K1-       K3-         K5-
    gpu0 s    |         U2        U4          U6
"""


# -- figures -----------------------------------------------------------------------------------------------------


def test_step_time_statistics() -> None:
    report = overview_of(draw("host main | M0---M1------M2-----"))

    assert report.step_time_ms == {
        "mean": 6.666667,
        "std": 1.527525,  # of 5, 8 and 7, with n - 1
        "min": 5.0,
        "max": 8.0,
        "count": 3,
        "between_steps_percent": 0.0,
    }


def test_the_mean_breakdown_adds_up_to_the_mean_step() -> None:
    report = overview_of(draw(TRAINING))

    assert {key: value for key, value in report.breakdown_ms.items() if value} == {
        "input": 5.666667,
        "kernel_launch": 1.0,
        "device_compute": 3.0,
        "other": 1.0,
    }
    assert report.step_time_ms["mean"] == 10.666667


def test_input_percent_and_verdict() -> None:
    body = overview_of(draw(TRAINING)).to_dict()

    assert (
        body["input_bound_percent"] == 50.0
    )  # of the median step: waiting for a batch, and for its copy to the device
    assert (body["verdict"], body["verdict_cause"], body["verdict_percent"]) == ("input_bound", "input", 30.0)
    said = "input-bound: 30.0 % of each step is input, mostly `IteratorGetNext`"
    assert body["verdict_text"] == said
    assert body["verdict_evidence"] == [
        "30.0 % of each step is input: `IteratorGetNext`, while the GPU is idle",
        "computation on the device takes as long, within the noise, 30.0 %",
    ]


def test_placement_and_precision() -> None:
    body = overview_of(draw("host main | a- b-\ngpu0 s | K-- K-- H- U-")).to_dict()

    assert body["op_placement"] == {
        "host_op_percent": 33.3333,
        "device_op_percent": 66.6667,
        "host_eager_percent": None,
    }
    assert body["device_compute_precision_percent"] == {"16bit": 25.0, "32bit": 75.0}


def test_without_device_compute_there_is_no_precision() -> None:
    body = overview_of(draw("host main | a- b-")).to_dict()

    assert body["device_compute_precision_percent"] == {"16bit": None, "32bit": None}


def test_the_ten_largest_ops() -> None:
    names = "abcdefghijkl"
    picture = "gpu0 s | " + "".join(name + "-" * at for at, name in enumerate(names))
    body = overview_of(draw(picture)).to_dict()

    assert [op["name"] for op in body["top_ops"]] == list("lkjihgfedc")
    assert body["top_ops"][0] == {
        "name": "l",
        "category": "l",
        "self_time_ms": 12.0,
        "self_percent": 15.3846,  # 12 of 78
        "cumulative_percent": 15.3846,
        "calls": 1,
    }
    assert body["top_ops"][-1]["cumulative_percent"] == 96.1538  # 75 of 78: all but a and b


# -- environment -------------------------------------------------------------------------------------------------


def test_devices_that_compute_and_devices_that_only_exist() -> None:
    trace = draw("""
        host main | M0--
        gpu0 s    | K-
        gpu1 s    | U-
        gpu2 s    |
    """)

    assert overview_of(trace).environment == {
        "host_count": 1,
        "device_type": "GPU",
        "device_count": 3,
        "devices_used": 1,
        "framework": None,
        "capture_ms": 4.0,
        "recorded": None,
        "pause_ms": None,
    }


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        ({"compute_cap_major": 7, "compute_cap_minor": 0}, "NVIDIA GPU (Volta, compute capability 7.0)"),
        ({"compute_cap_major": 7, "compute_cap_minor": 5}, "NVIDIA GPU (Turing, compute capability 7.5)"),
        ({"compute_cap_major": 8, "compute_cap_minor": 9}, "NVIDIA GPU (Ada Lovelace, compute capability 8.9)"),
        ({"compute_cap_major": 12, "compute_cap_minor": 0}, "NVIDIA GPU (Blackwell, compute capability 12.0)"),
        ({"compute_cap_major": 9, "compute_cap_minor": 4, "device_vendor": "AMD"}, "AMD GPU (gfx94x)"),
        ({"device_type_string": "NVIDIA H100"}, "NVIDIA H100"),
        ({}, "GPU"),
    ],
)
def test_device_types(stats: dict[str, int | str], expected: str) -> None:
    builder = TraceBuilder("host")
    builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0, stats), "s", kind=LineKind.STREAM)

    assert overview_of(builder.build()).environment["device_type"] == expected


def test_a_host_that_does_not_step_warms_nothing_up() -> None:
    marks = "host main | " + "".join(f"M{step}----" for step in range(8))
    chief = draw(f"{marks}\nhost main | X---", host="chief")
    worker = draw(f"{marks}\ngpu0 s | {' k--  ' * 8}", host="worker")

    assert any("leave out this warm-up" in warning for warning in overview_of(chief).warnings)
    assert overview_of(chief, worker).warnings == ("no steps from chief",)


def test_a_last_step_of_a_host_whose_clock_is_early_is_no_warm_up() -> None:
    early = draw("host main | M1---    M2---    M3--------", host="early")
    late = draw(f"host main | {' ' * 40}M1------   M2------   M3-----", host="late")
    report = overview_of(early, late)

    assert [row["usual"] for row in report.step_rows] == [True, True, False]
    assert not any("warm-up" in warning for warning in report.warnings)


def test_the_step_time_of_several_hosts_is_that_of_the_one_that_sets_the_pace() -> None:
    """So the median lies between the shortest and the longest, though others are slower in some steps."""
    paces = draw("host main | M1----------M2----M3----\nhost main | a-----------a-----a-----", host="rank1")
    other = draw("host main | M1--M2------M3-----\nhost main | a---a-------a------", host="rank0")
    _, _, said, *_ = overview_of(paces, other).summary_lines()

    assert said == "step time  6 ms on rank1, which sets the pace (3 steps, 6 to 12.0). Step 1 stalled"


def test_environment_of_several_hosts() -> None:
    gpu = "gpu0 s | K-\ngpu1 s | K-"
    report = overview_of(draw("host main | a---------", host="a"), draw(gpu, host="b"), draw(gpu, host="c"))

    assert report.hosts == ("a", "b", "c")
    keys = ("host_count", "device_type", "device_count", "devices_used")
    assert [report.environment[key] for key in keys] == [3, "GPU", 4, 4]
    assert report.environment["capture_ms"] == 10.0

    tpu = draw("tpu0 ops | w-", host="d")
    assert overview_of(draw(gpu, host="b"), tpu, draw(gpu, host="c")).environment["device_type"] == "GPU, TPU"


# -- what is missing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("picture", "missing"),
    [
        ("host main | M0---", {"Python calls", "memory allocations"}),
        ("host main | M0---Y--", {"memory allocations"}),
        ("host main | a--", {"step marks", "Python calls", "memory allocations"}),
        ("gpu0 s | K--", {"step marks", "host activity", "Python calls", "memory allocations"}),
        ("host main | M0---\ngpu0 s |", {"device activity", "Python calls", "memory allocations"}),
    ],
)
def test_what_a_capture_lacks(picture: str, missing: set[str]) -> None:
    report = overview_of(draw(picture))

    assert {item.what for item in report.missing} == missing
    assert all(item.remedy for item in report.missing)


@pytest.mark.parametrize(
    ("framework", "python", "memory"),
    [
        ("pytorch", "with_stack=True", "profile_memory=True"),
        ("tensorflow", "python_tracer_level=1", "host_tracer_level=2"),
        ("jax", "python_tracer_level=1", "host_tracer_level=2"),
        ("", "stepscope run SCRIPT", "its framework's own profiler"),
    ],
)
def test_what_a_capture_lacks_is_recorded_with_the_options_of_its_framework(
    framework: str, python: str, memory: str
) -> None:
    report = overview_of(replace(draw("host main | M0---"), framework=framework))
    remedies = {item.what: item.remedy for item in report.missing}

    assert python in remedies["Python calls"]
    assert memory in remedies["memory allocations"]


# -- little, or nothing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("picture", ["", "host main |", "gpu0 s |", "host main | a!", "gpu0 Steps | W0!"])
def test_a_profile_in_which_nothing_takes_time(picture: str) -> None:
    body = overview_of(draw(picture)).to_dict()

    assert body["step_time_ms"] == {"mean": None, "std": None, "min": None, "max": None, "count": 0}
    assert body["verdict"] == "unknown"
    assert body["input_bound_percent"] is None
    assert body["steps"] == []


def test_steps_shorter_than_can_be_shown_are_judged_all_the_same() -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for at in range(3):
        line.event("train", at * 100, 100, K.STEP_MARK, {"step_num": at})
        line.event("wait", at * 100, 72, K.INPUT_WAIT)
    report = overview_of(builder.build())  # 100 ps is 0.0000001 ms

    assert report.step_time_ms["mean"] == 0.0
    assert report.input_bound_percent == 72.0
    assert report.verdict.name == "input_bound"


def test_a_damaged_trace_says_so() -> None:
    trace = draw("host main | M0---")
    damaged = replace(trace, partial=True, recorder_messages=("dropped 12 events",), _derived={})
    report = overview_of(damaged)

    assert report.to_dict()["partial"] is True
    assert report.warnings == ("dropped 12 events",)


@given(st.lists(traces(), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_whatever_was_recorded_the_report_is_plain_and_finite(drawn: list[HostTrace]) -> None:
    report = overview_of(*drawn)
    body = report.to_dict()

    json.dumps(body, allow_nan=False)
    assert list(body["breakdown_ms"]) == list(CATEGORIES)
    assert all(value >= 0 for value in body["breakdown_ms"].values())
    mean = body["step_time_ms"]["mean"]
    assert math.fsum(body["breakdown_ms"].values()) == pytest.approx(mean or 0.0, abs=1e-5)
    assert 0 <= (body["input_bound_percent"] or 0) <= 100
    assert 0 <= (body["between_steps_percent"] or 0) <= 100
    assert report.summary_lines()
    assert [field.name for field in report.main_table().fields] == ["metric", "value", "unit", "text"]


# -- faces -------------------------------------------------------------------------------------------------------


def test_the_summary_tells_it_in_ten_lines() -> None:
    lines = list(overview_of(draw(TRAINING)).summary_lines())

    assert lines[:4] == [
        "verdict    input-bound: 30.0 % of each step is input, mostly `IteratorGetNext`",
        "recorded   unknown framework, 1 host, 1 of 1 devices used, GPU",
        "step time  10.0 ms (3 steps, 10.0 to 12.0)",
        "goes to    input 30.0 %, device compute 30.0 %, transfer 20.0 %, unknown 10.0 %, launch 10.0 %",
    ]
    assert lines[6].startswith("do first   ")
    assert len(lines) <= 10


def test_the_summary_breaks_down_what_the_verdict_is_read_from_even_where_nothing_connects() -> None:
    trace = draw("""
        host main | M0------M1------M2------
        host main | a-------a-------a-------
        gpu0 s    | k------ k------ k------
    """)
    report = overview_of(trace)
    _, _, _, parts = list(report.summary_lines())[:4]

    assert "less sure than usual, as nothing recorded connects" in str(report.sections()[0])
    assert parts == "goes to    device compute 87.5 %, host compute 12.5 %"


def test_the_summary_names_the_slow_stage_of_the_input() -> None:
    trace = draw(
        "host main | M0------- M1------- M2-------\nhost main | I-------  I-------  I-------\n"
        "host main |  R------   R------   R------\nhost main |  Q-----    Q-----    Q-----\n"
        "host main |         a         a         a",
        {
            "R": Sort(K.ITERATOR, "Iterator::Root", stats={"id": 1}),
            "Q": Sort(K.ITERATOR, "Iterator::Root::Map", stats={"id": 2, "parent_id": 1, "name": "MapDataset:3"}),
        },
    )
    asked = []

    def read(tool: str) -> object:
        asked.append(tool)
        return tf_data.merge([tf_data.partial(trace)])

    plain = overview_of(trace)
    named = overview.finish(plain, read)

    assert (plain.advice[0].tool, set(asked)) == ("tf-data", {"tf-data", "trust"})
    assert not any("MapDataset:3" in line for line in plain.summary_lines())
    assert named.summary_lines()[-1].startswith("           - the .map() in Map (MapDataset:3) runs on one")
    healthy = overview_of(draw("host main | M0-- M1--\nhost main | a--  a--"))
    assert overview.finish(healthy, read) is healthy


def test_where_no_op_stands_out_the_summary_adds_them_up_by_type() -> None:
    # 30 casts of 1 ms and 10 products of 2 ms, each an op of its own: the longest takes 4 % of the time.
    builder = TraceBuilder("h")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    for at in range(30):
        line.event(f"layer_{at}/Cast:Cast", at * 10**9, 10**9, K.OP)
    for at in range(10):
        line.event(f"layer_{at}/MatMul:MatMul", (30 + 2 * at) * 10**9, 2 * 10**9, K.OP)
    report = overview_of(builder.build())

    assert [line for line in report.summary_lines() if " call" in line] == [
        "top types   60.0 %  Cast, 30 calls",
        "            40.0 %  MatMul, 10 calls",
    ]
    assert report.to_dict()["top_op_types"] == [
        {"category": "Cast", "self_time_ms": 30.0, "self_percent": 60.0, "calls": 30},
        {"category": "MatMul", "self_time_ms": 20.0, "self_percent": 40.0, "calls": 10},
    ]


def test_steps_of_the_report_name_their_breakdown() -> None:
    report = overview_of(draw(TRAINING))

    assert [(row["step"], row["duration_ms"], row["input"]) for row in report.step_rows] == [
        (5, 10.0, 5.0), (6, 10.0, 5.0), (7, 12.0, 7.0),
    ]  # fmt: skip
    assert all(sum(row[key] for key in CATEGORIES) == row["duration_ms"] for row in report.step_rows)


@pytest.mark.parametrize(
    ("steps", "said", "short"),
    [
        ("M0------M1--M2--M3--M4--", "step 0 with 8.00 ms, the first after profiling started", "Step 0 stalled"),
        ("M0--M1--M2------M3--M4--", "step 2 with 8.00 ms", "Step 2 stalled"),
        ("M0--M1--M2------M3--M4------M5--M6--", "step 2 with 8.00 ms, then 4", "Steps 2, 4 stalled"),
        (
            "M0--M0--M0------" * 6,
            "most of all step 0 with 8.00 ms",
            "6 of them took over 1.5 times as long as the median",
        ),
    ],
)
def test_steps_that_stall_are_named(steps: str, said: str, short: str) -> None:
    report = overview_of(draw(f"host main | {steps}"))
    (line,) = [line for line in report.summary_lines() if line.startswith("step time")]

    assert line.endswith(f"4 to 8). {short}")
    assert len(line.split()) <= 22  # with its two words of label
    assert f"times as long as the median: {said}" in str(report.sections())


def test_where_half_of_the_steps_are_long_the_mean_is_said_and_all_of_them_are_counted() -> None:
    lengths = [5] * 5 + [8] + [20] * 4
    marks = "".join("M0".ljust(length, "-") for length in lengths)
    ops = "".join("a".ljust(length, "-") for length in lengths)
    report = overview_of(draw(f"host main | {marks}\nhost main | {ops}"))
    (line,) = [line for line in report.summary_lines() if line.startswith("step time")]

    assert line.endswith("5 ms (10 steps, 5 to 20.0, mean 11.3). 5 of them took over 1.5 times as long as the median")
    assert report.first_screen().title.startswith("The median step takes 5 ms, the mean 11.3 ms: ")


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ("vm", "1 host, CPU"),
        ("rank_0", "1 host, CPU"),
        ("34.83.195.179_6003 34.83.195.180_6003", "2 hosts, CPU"),
        ("host0000 host0001", "2 hosts, CPU"),
        ("vm vm_26401", "2 processes of one host, CPU"),
        ("a_rank0 a_rank1 b_rank2 b_rank3", "4 processes of 2 hosts, CPU"),
        ("rank0 rank1", "2 ranks, CPU"),
        ("job_rank0_7 job_rank1_8", "2 processes of one host, CPU"),
    ],
)
def test_hosts_are_machines_and_processes_are_processes(workers: str, said: str) -> None:
    report = overview_of(*(replace(draw("host main | M0--M1--"), host=name) for name in workers.split()))

    assert said in report.summary_lines()[1]


def test_a_device_that_works_beside_the_host_is_spoken_of() -> None:
    """The host computes without a pause, so that no part of the step waits for the kernels that run meanwhile."""
    sorts = {"L": Sort(EventKind.RUNTIME_CALL, "cudaLaunchKernel", "correlation_id"),
             "K": Sort(EventKind.KERNEL, "gemm", "correlation_id"), "o": Sort(EventKind.OP, "aten::sort")}  # fmt: skip
    host = "host main | M0----------M1----------\nhost main | L1o---------L2o---------"
    beside = overview.merge([overview.partial(draw(f"{host}\ngpu0 s    |   K1-----     K2-----", sorts))])
    alone = overview.merge([overview.partial(draw(host, sorts))])

    (said, silent) = (str(report.summary_lines()) for report in (beside, alone))
    assert "host compute 83.3 %" in said and "; meanwhile GPU:0 works for 58.3 %" in said
    assert "meanwhile" not in silent
