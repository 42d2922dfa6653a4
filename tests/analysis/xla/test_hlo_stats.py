"""The tools `hlo-stats` and `op-profile`: matching, times and rates, on drawn traces and beside XProf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import oracle
import pytest
from hlo_build import bf16, computation, contracting, f32, fusion, metadata, op, parameter, program
from reporting import table
from xla_traces import Ran, trace_of

import stepscope
from stepscope.analysis.trace.op_work import device_work
from stepscope.analysis.xla import hlo_stats_tool, op_profile_tool, ops
from stepscope.analysis.xla.hlo_stats_tool import HloStatsReport
from stepscope.analysis.xla.op_profile_tool import OpProfileReport
from stepscope.model import HostTrace
from stepscope.vocabulary.scopes import phase_of, scopes_of

H100 = {"gpu_device_name": "NVIDIA H100 80GB HBM3", "device_vendor": "Nvidia"}

BODY = computation("body", parameter("p", f32(64, 64)), op("twice", "add", f32(64, 64), "p", "p"))
MAIN = computation(
    "main",
    parameter("x", bf16(64, 128)),
    parameter("w", bf16(128, 64), 1),
    op(
        "dot.1", "dot", f32(64, 64), "x", "w",
        extra=contracting(1) + metadata("jit(f)/transpose(jvp(layer))/dot_general", "train.py", 7),
    ),
    fusion("loop_fusion.2", f32(64, 64), "dot.1", calls="body", extra=metadata("jit(f)/jvp(layer)/add", "train.py", 9)),
)  # fmt: skip
PROGRAMS = {"jit_f(1)": program(BODY, MAIN)}
FLOPS = 2 * 64 * 64 * 128


def carried(instruction: str, **more: Any) -> dict[str, Any]:
    return {"hlo_op": instruction, "hlo_module": "jit_f", "program_id": 1, "kernel_details": "regs:8", **more}


def parts(*traces: HostTrace) -> list[ops.XlaOpsOfHost]:
    """What hosts contribute, by way of the form in which it is kept."""
    return [msgspec.msgpack.decode(msgspec.msgpack.encode(ops.partial(each)), type=ops.XlaOpsOfHost) for each in traces]


def stats(*traces: HostTrace) -> HloStatsReport:
    return hlo_stats_tool.merge(parts(*traces))


def profile(*traces: HostTrace) -> OpProfileReport:
    return op_profile_tool.merge(parts(*traces))


# -- matching --------------------------------------------------------------------------------------------------------


def test_all_kernels_of_a_run_are_one_occurrence() -> None:
    found = stats(
        trace_of(
            PROGRAMS,
            [
                Ran("Stream #1(Kernel)", "prepare", 0, 2, carried("dot.1")),
                Ran("Stream #1(Kernel)", "gemm", 2, 8, carried("dot.1")),
                Ran("Stream #1(Kernel)", "prepare", 10, 2, carried("dot.1")),
                Ran("Stream #1(Kernel)", "gemm", 12, 8, carried("dot.1")),
                Ran("Stream #1(Kernel)", "loop_fusion_2", 20, 5, carried("loop_fusion.2")),
            ],
            facts=H100,
        )
    )

    assert table(found, "program", "category", "name", "occurrences", "self_us", "self_percent") == [
        ("jit_f(1)", "dot", "dot.1", 2, 20.0, 80.0),
        ("jit_f(1)", "loop fusion", "loop_fusion.2", 1, 5.0, 20.0),
    ]
    dot = found.rows[0]
    assert dot["flops"] == 2 * FLOPS
    assert dot["gflop_per_s"] == pytest.approx(2 * FLOPS / 20e-6 / 1e9)
    assert dot["compute_percent"] == pytest.approx(100 * 2 * FLOPS / 20e-6 / 989.4e12)
    assert (dot["precision"], dot["source"], dot["bound_by"]) == ("bf16", "train.py:7", "memory")
    assert str(dot["text"]).startswith("%dot.1 = f32[64,64]{1,0} dot(bf16[64,128]{1,0} %x")


def test_kernels_are_known_by_their_launch_or_their_name_and_the_rest_is_told() -> None:
    plain = {"kernel_details": "regs:8"}
    found = stats(
        trace_of(
            PROGRAMS,
            [
                Ran("main", "dot.1", 0, 4, carried("dot.1"), place="host"),
                Ran("main", "cuLaunchKernel", 1, 1, {"correlation_id": 7}, place="host"),
                Ran("Stream #1(Kernel)", "gemm", 10, 60, {"correlation_id": 7, **plain}),
                Ran("Stream #1(Kernel)", "loop_fusion_2", 70, 20, plain),
                Ran("Stream #1(Kernel)", "somebody_elses", 90, 15, plain),
                Ran("Stream #1(Kernel)", "MemcpyD2D", 105, 5, {"memcpy_details": "size:4"}),
            ],
        )
    )

    assert table(found, "name", "self_us") == [("dot.1", 60.0), ("loop_fusion.2", 20.0)]
    assert found.totals["launch_percent"] == 60.0
    assert found.totals["name_percent"] == 20.0
    assert found.totals["unmatched_percent"] == 15.0
    assert found.totals["copies_percent"] == 5.0
    assert "15.0 % of the device time belongs to no instruction of an XLA program" in found.warnings


def test_a_loop_on_a_host_keeps_only_its_own_time() -> None:
    body = computation("body", parameter("p", f32(64, 64)), op("twice", "add", f32(64, 64), "p", "p"))
    main = computation("main", parameter("x", f32(64, 64)), op("while.3", "while", f32(64, 64), "x", calls=("body",)))
    found = stats(
        trace_of(
            {"jit_f(1)": program(body, main)},
            [
                Ran("tf_XLAEigen/1", "while.3", 0, 10, carried("while.3", run_id=5)),
                Ran("tf_XLAEigen/1", "twice", 1, 4, carried("twice", run_id=5)),
                Ran("tf_XLAEigen/1", "twice", 5, 4, carried("twice", run_id=5)),
            ],
            device="cpu",
        )
    )

    assert table(found, "name", "occurrences", "total_us", "self_us", "flops") == [
        ("twice", 2, 8.0, 8.0, 2 * 64 * 64),
        ("while.3", 1, 10.0, 2.0, 0),
    ]
    assert found.programs[0]["runs"] == 1
    assert any("peaks of CPU are unknown" in warning and "STEPSCOPE_DEVICES" in warning for warning in found.warnings)


def test_a_tpu_states_its_costs_itself() -> None:
    text = "%fusion.9 = f32[8]{0} fusion(f32[8]{0} %x), kind=kLoop, calls=%c"
    stated = {"hlo_category": "loop fusion", "program_id": 1, "flops": 500, "bytes_accessed": 64, "source": "t.py:3"}
    found = stats(
        trace_of(
            {},
            [Ran("XLA Ops", text, 0, 10, {}, stated), Ran("XLA Ops", text, 20, 10, {}, stated)],
            device="tpu",
            facts={"device_type_string": "TPU v6 Lite"},
        )
    )

    assert table(found, "category", "name", "occurrences", "self_us", "flops", "bytes", "source") == [
        ("loop fusion", "fusion.9", 2, 20.0, 1000.0, 128.0, "t.py:3")
    ]
    assert found.devices[0]["device"] == "Google TPU v6e"
    assert any("no instructions are recorded of" in warning for warning in found.warnings)


def test_equal_ops_of_several_hosts_are_one() -> None:
    one = trace_of(PROGRAMS, [Ran("Stream #1(Kernel)", "gemm", 0, 8, carried("dot.1"))])
    found = stats(one, one)

    assert table(found, "name", "occurrences", "self_us", "flops") == [("dot.1", 2, 16.0, 2 * FLOPS)]


def test_ops_beyond_the_list_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "MOST_OPS", 1)
    found = stats(
        trace_of(
            PROGRAMS,
            [
                Ran("Stream #1(Kernel)", "gemm", 0, 8, carried("dot.1")),
                Ran("Stream #1(Kernel)", "loop_fusion_2", 8, 2, carried("loop_fusion.2")),
            ],
        )
    )

    assert table(found, "name", "category", "self_us") == [("dot.1", "dot", 8.0), ("others", "loop fusion", 2.0)]


def test_without_programs_the_report_says_what_records_them() -> None:
    found = stats(trace_of({}, [Ran("Stream #1(Kernel)", "k", 0, 8, {"kernel_details": "regs:8"})]))

    assert found.rows == ()
    assert "enable_hlo_proto" in found.warnings[0]


# -- trees -----------------------------------------------------------------------------------------------------------


def test_trees_hold_all_time_at_every_level() -> None:
    found = profile(
        trace_of(
            PROGRAMS,
            [
                Ran("Stream #1(Kernel)", "gemm", 0, 30, carried("dot.1")),
                Ran("Stream #1(Kernel)", "loop_fusion_2", 30, 10, carried("loop_fusion.2")),
            ],
            facts=H100,
        )
    )
    nodes = [(row["tree"], row["depth"], row["kind"], row["name"], row["self_us"]) for row in found.rows]

    assert nodes[:7] == [
        ("program", 0, "root", "program", 40.0),
        ("program", 1, "program", "jit_f(1)", 40.0),
        ("program", 2, "category", "dot", 30.0),
        ("program", 3, "op", "dot.1", 30.0),
        ("program", 2, "category", "loop fusion", 10.0),
        ("program", 3, "op", "loop_fusion.2", 10.0),
        ("program", 4, "instruction", "twice", None),
    ]
    scopes = [node[1:] for node in nodes if node[0] == "scope"]
    assert scopes[1:4] == [(1, "phase", "backward", 30.0), (2, "scope", "layer", 30.0), (3, "op", "dot.1", 30.0)]
    assert [node[3] for node in nodes if node[0] == "source"] == [
        "source", "train.py", "line 7", "dot.1", "line 9", "loop_fusion.2", "twice",
    ]  # fmt: skip


def test_phases_and_scopes() -> None:
    assert phase_of("jit(step)/jvp(layer)/add", True, True) == "forward"
    assert phase_of("gradient_tape/MatMul/MatMul", True, True) == "backward"
    assert phase_of("jit(step)/sub", True, True) == "update and others"
    assert phase_of("jit(evaluate)/dot", False, True) == "evaluation and others"
    assert phase_of("jit(f)/dot", False, False) == "computation"
    assert phase_of("", True, True) == "unknown"
    assert scopes_of("jit(f)/jvp(bsd,de->bse)/dot_general") == ["bsd,de->bse", "dot_general"]
    assert scopes_of("model/layer/MatMul") == ["model", "layer", "MatMul"]


# -- beside XProf ----------------------------------------------------------------------------------------------------

SESSIONS = ("jax-mi300x-attention", "jax-mi300x-conv", "tpu-inference")


def capture(corpus: Path, session: str) -> Path:
    return next((corpus / session).rglob("*.xplane.pb"))


@pytest.mark.parametrize("session", SESSIONS)
def test_times_and_costs_are_xprofs(corpus: Path, session: str) -> None:
    theirs = {(row["program_id"], row["hlo_op_name"]): row for row in oracle.hlo_stats([capture(corpus, session)]).rows}
    report = stepscope.load(corpus / session).report("hlo-stats")
    ours = {(str(row["program"]).partition("(")[2][:-1], row["name"]): row for row in report.to_dict()["rows"]}
    compared = 0
    for key, row in ours.items():
        their = theirs.get(key)
        if their is None:  # XProf drops instructions named `region...`, and those of no time
            continue
        compared += 1
        # XProf counts an instruction's kernels as its occurrences, and costs each of them as the whole instruction.
        times = their["occurrences"] / row["occurrences"]
        assert row["total_us"] == pytest.approx(their["total_time"], rel=1e-3), key
        assert row["self_us"] == pytest.approx(their["total_self_time"], rel=1e-3), key
        if row["category"].endswith(("-start", "-done")):  # XProf divides by the moment in which a copy is started
            assert row["gib_per_s"] is None
        elif their["measured_memory_bw"]:
            assert row["gib_per_s"] * times == pytest.approx(their["measured_memory_bw"], rel=0.01), key
        if their["model_flop_rate"] and row["category"] in ("custom-call", "custom fusion", "all-reduce"):
            assert row["gflop_per_s"] * times == pytest.approx(their["model_flop_rate"], rel=0.01), key
        assert row["category"] == their["category"]

    assert compared == len(theirs) > 3


def test_idle_time_is_a_line_below_the_root_of_each_tree() -> None:
    trace = trace_of(
        PROGRAMS,
        [
            Ran("Stream #1(Kernel)", "gemm", 0, 10, carried("dot.1")),
            Ran("Stream #1(Kernel)", "add", 25, 5, carried("loop_fusion.2")),
        ],
    )
    rows = profile(trace).rows
    idle = [row for row in rows if row["kind"] == "idle"]

    roots = [(row["tree"], row["id"]) for row in rows if row["kind"] == "root"]
    assert [(row["tree"], row["parent"]) for row in idle] == roots
    assert {(row["name"], row["self_us"], row["self_percent"]) for row in idle} == {("IDLE", 15.0, None)}
    assert [row["self_us"] for row in rows if row["kind"] == "root"] == [15.0] * len(roots)


@pytest.mark.parametrize("session", SESSIONS)
def test_ops_add_up_to_the_busy_time_of_the_devices(corpus: Path, session: str) -> None:
    profile = stepscope.load(corpus / session)
    busy_us = device_work(profile.trace()).own_ps.sum() / 1e6
    report = profile.report("hlo-stats").to_dict()
    matched = report["totals"]["copies_percent"] + report["totals"]["unmatched_percent"]

    assert report["totals"]["busy_us"] == pytest.approx(busy_us, rel=0.005)
    assert sum(row["self_percent"] for row in report["rows"]) + matched == pytest.approx(100, abs=0.5)


@pytest.mark.parametrize("session", SESSIONS)
def test_the_tree_by_category_is_xprofs(corpus: Path, session: str) -> None:
    programs = oracle.op_profile(capture(corpus, session))["byProgram"]["children"]
    theirs: dict[str, float] = {}
    for node in (category for each in programs for category in each.get("children", [])):
        theirs[node["name"]] = theirs.get(node["name"], 0.0) + node["metrics"]["rawTime"] / 1e6
    report = stepscope.load(corpus / session).report("op-profile").to_dict()
    ours = {
        row["name"]: row["self_us"] for row in report["rows"] if row["tree"] == "category" and row["kind"] == "category"
    }

    assert ours == pytest.approx(theirs, rel=0.005)
