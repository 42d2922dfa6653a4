"""What makes a recording doubtful, each rule on a drawn trace that breaks it and on one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from draw import Sort, draw

import stepscope
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.trust import trust_tool
from stepscope.analysis.trust.checks import doubts_of
from stepscope.errors import Problem
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder

K = EventKind

SORTS = {
    "L": Sort(K.RUNTIME_CALL, "cudaLaunchKernel", "correlation_id"),
    "g": Sort(K.RUNTIME_CALL, "cudaGraphLaunch", "correlation_id"),
    "s": Sort(K.SYNC, "cudaDeviceSynchronize", "correlation_id"),
    "r": Sort(K.RUNTIME_CALL, "cudaEventRecord", "correlation_id"),
    "w": Sort(K.RUNTIME_CALL, "cudaStreamWaitEvent", "correlation_id"),
    "b": Sort(K.RUNTIME_CALL, "cudaStreamBeginCapture"),
    "e": Sort(K.RUNTIME_CALL, "cudaStreamEndCapture"),
    "a": Sort(K.BACKWARD, "autograd::engine::evaluate_function: MmBackward0", "Sequence number"),
    "d": Sort(K.BACKWARD, "autograd::engine::evaluate_function: AddBackward0", "Sequence number"),
    "q": Sort(K.KERNEL, "of_graph", "correlation_id", {"graph id": 3, "graph node id": 9}),
}


def found(text: str, sorts: Mapping[str, Sort] | None = None, framework: str = "") -> list[tuple[str, int, int | None]]:
    """Each doubt about a drawn trace: its check, how many, of how many; but for ops and steps, which few draw."""
    doubts = doubts_of(replace(draw(text, SORTS | dict(sorts or {})), framework=framework))
    return [
        (doubt.check, doubt.count, doubt.of)
        for doubt in doubts
        if doubt.check not in ("device_time_without_op", "steps_cut")
    ]


def test_a_sound_recording_raises_no_doubt() -> None:
    trace = draw(
        """
        host main | M0--------------M1--------------
        host main | x--   y-----    x--   y-----
        host main |  L1    s2--      L3    s4--
        gpu0 s    |   K1----          K3----
        """,
        SORTS,
    )

    assert doubts_of(trace) == []
    report = trust_tool.merge([trust_tool.partial(trace)])
    assert (report.line, report.first, report.rows, report.why_empty()) == ("", "", (), None)


def test_work_that_starts_before_its_launch() -> None:
    assert found("host main | x-------\nhost main |    L1 L2\ngpu0 s    | K1     K2") == [
        ("starts_before_launch", 1, 2)
    ]


def test_a_difference_of_one_tick_of_the_clock_is_none() -> None:
    assert found("host main | x-------\nhost main |  L1\ngpu0 s    | K1") == []


def test_the_first_launches_whose_work_is_missing() -> None:
    text = "host main | x-----------------\nhost main | L1 L2 L3 L4 L5\ngpu0 s    |       K3-K4-K5-"

    assert found(text) == [("lost_work", 2, 5)]
    (doubt,) = [each for each in doubts_of(draw(text, SORTS)) if each.check == "lost_work"]
    assert (doubt.found, doubt.is_grave) == ("the work of the first 2 launches was not recorded", False)


def test_launches_that_a_graph_captures_launch_nothing() -> None:
    assert found("host main | x----------------\nhost main | bL1L2e g3  \ngpu0 s    |         q3-q3-") == []


def test_a_stream_that_waits_for_an_event_of_the_future() -> None:
    sorts = {
        "v": Sort(K.OTHER, "Stream Wait Event", "correlation_id", {"wait_on_cuda_event_record_corr_id": 8}),
        "u": Sort(K.OTHER, "Stream Wait Event", "correlation_id", {"wait_on_cuda_event_record_corr_id": 2}),
    }
    text = """
        host main  | x----------------------
        host main  | L1 r2 w3 w4    r8
        gpu0 s     |  K1
        gpu0 waits |       u3 v4
    """

    assert found(text, sorts) == [("waits_for_future", 1, 2)]


def test_a_wait_of_the_host_that_ends_before_the_work() -> None:
    text = "host main | x-------------\nhost main | L1 s2--\ngpu0 s    |   K1---------"

    assert found(text) == [("sync_ends_early", 1, 1)]


def test_collectives_that_do_not_say_what_they_exchange() -> None:
    silent = Sort(K.COLLECTIVE, "ncclDevKernel", "correlation_id")
    told = Sort(K.COLLECTIVE, "ncclDevKernel", "correlation_id", {"Collective name": "allreduce"})
    text = "host main | x----------\nhost main | L1 L2\ngpu0 s    |  N1 O2"

    assert found(text, {"N": silent, "O": told}, "pytorch") == [("collectives_without_details", 1, 2)]
    assert found(text, {"N": told, "O": told}, "pytorch") == []
    assert found(text, {"N": silent, "O": silent}, "jax") == []


def test_backward_ops_that_share_the_number_of_their_forward_op() -> None:
    assert found("host main | a1-a1-a2-d2-a3-") == [("shared_backward_ids", 1, 3)]


def test_calls_that_overlap_on_one_thread() -> None:
    assert found("host main | x----\nhost main |    y-----") == [("calls_overlap", 1, 2)]


def test_work_of_graphs_without_an_op_and_how_to_annotate_it() -> None:
    trace = replace(draw("host main | g1\ngpu0 s    |  q1-", SORTS), framework="pytorch")
    (doubt,) = doubts_of(trace)

    assert (doubt.check, doubt.percent, doubt.is_grave) == ("device_time_without_op", 100.0, False)
    assert doubt.found == "100 % of the device's time belongs to no op, as CUDA graphs replay it"
    assert "cuda_graph_annotations" in doubt.fix


def disturbed(before: float, inside: float) -> HostTrace:
    """A recording by Stepscope that says how long steps took before it and inside."""
    builder = TraceBuilder("host")
    facts = {"step_ms_before": before, "step_ms_inside": inside, "steps_before": 20, "steps_inside": 5}
    builder.plane("/stepscope:capture", PlaneKind.OTHER, stats=facts)
    builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main").event("x", 0, 1000, K.OP)
    return builder.build()


def test_steps_that_recording_slowed() -> None:
    (doubt,) = doubts_of(disturbed(10.0, 30.0))

    assert (doubt.check, doubt.percent, doubt.is_grave) == ("slowed_by_recording", 200.0, True)
    assert doubts_of(disturbed(10.0, 12.0)) == []


def test_what_the_reader_lost() -> None:
    trace = replace(
        draw("host main | x"),
        problems=(Problem("truncated", "the file ends early", hint="copy it again"),),
        partial=True,
    )
    (doubt,) = doubts_of(trace)

    assert (doubt.check, doubt.fix, doubt.is_grave) == ("events_lost", "copy it again", True)


def test_the_worst_doubt_is_the_line_and_names_its_host() -> None:
    sound = draw("host main | x", host="a")
    slowed = replace(disturbed(10.0, 30.0), host="b")
    report = trust_tool.merge([trust_tool.partial(trace) for trace in (sound, slowed)])

    assert report.line.startswith("b: recording disturbed the job: a step takes 3 times as long")
    assert report.first.startswith("record less")


def test_a_grave_doubt_comes_before_any_advice() -> None:
    trace = disturbed(10.0, 30.0)
    report = overview.merge([overview.partial(trace)])
    told = overview.finish(
        report, lambda tool: trust_tool.merge([trust_tool.partial(trace)]) if tool == "trust" else None
    )

    (line,) = [line for line in told.summary_lines() if line.startswith("do first")]
    assert line.startswith("do first   Record again, as figures are wrong: record less")


# What is doubtful about real recordings, each looked at by hand: collectives that PyTorch 1.12 did not describe, and
# those that were launched before the recording began; a step that the end of the recording cuts.
DOUBTS = {
    "jax-mi300x-attention": [], "jax-mi300x-conv": ["steps_cut"], "tf-gpu-multi-worker": [], "torch-h100-owlv2": [],
    "torch-h100-qwen": [], "torch-mi300-resnet": ["collectives_without_details"],
    "torch-multirank": ["collectives_without_details"], "torch-nccl": [], "torch-sglang-qwen3": [],
    "torch-v100-resnet50-workers0": [], "torch-v100-resnet50-workers4": [], "tpu-inference": [],
}  # fmt: skip


@pytest.mark.parametrize("session", DOUBTS)
def test_real_recordings_raise_no_false_alarm(session: str, corpus: Path) -> None:
    profile = stepscope.load(corpus / session)
    report = profile.report("trust")

    assert sorted({row["check"] for row in report.to_dict()["rows"]}) == DOUBTS[session]
    line = getattr(report, "line", "")
    assert all((line in profile.report(tool).warnings) == bool(line) for tool in ("overview", "op-stats", "idle"))
