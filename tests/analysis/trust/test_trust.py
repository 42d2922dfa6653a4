"""What makes a recording doubtful, each rule on a drawn trace that breaks it and on one that does not."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from browsing import profiled_trace, store_profile
from draw import Sort, draw

import stepscope
from stepscope.agents.sessions import Sessions
from stepscope.agents.tools import Answers
from stepscope.analysis.overview import advice_tool
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.overview.advice_tool import AdviceReport
from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.analysis.trust import trust_tool
from stepscope.analysis.trust.checks import doubts_of
from stepscope.analysis.trust.trust_tool import TrustReport
from stepscope.doctor.logdir import examine_logdir
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


@pytest.mark.parametrize(
    ("cost", "holds"),
    [
        ({}, "unknown"),
        ({"steps_before": 20, "step_ms_before": 99.0, "steps_inside": 4, "step_ms_inside": 100.0}, "yes"),
    ],
)
def test_what_recording_cost_is_unknown_where_nothing_tells(cost: dict[str, float], holds: str) -> None:
    report = trust_tool.merge([trust_tool.partial(profiled_trace(**cost))])

    assert [row["holds"] for row in report.checks if "slow the steps" in str(row["rule"])] == [holds]


def test_a_rule_that_nothing_recorded_could_break_is_no_tick() -> None:
    """A device that was not recorded has lost no kernels, and waits for nobody."""
    report = trust_tool.merge([trust_tool.partial(draw("host main | x-----\nhost main |  L1 L2", SORTS))])

    holds = {row["rule"]: row["holds"] for row in report.checks}
    assert [rule for rule, state in holds.items() if state == "yes"] == [
        "nothing was dropped",
        "all times are on one clock",
        "calls of a thread nest",
    ]
    assert (holds["every launched kernel is there"], holds["steps are whole"]) == ("unknown", "unknown")


def test_each_doubt_of_a_session_is_told_once() -> None:
    """That of several hosts, what the overview alone knows, and nothing of what the checks have said already."""
    early = "host main | x-------\nhost main |    L1 L2\ngpu0 s    | K1     K2"
    trust = trust_tool.merge([trust_tool.partial(replace(draw(early, SORTS), host=host)) for host in ("a", "b")])

    told = trust.all_doubts([trust.line, "no step marks were found"])

    assert [(doubt["found"][:15], doubt.get("grave"), doubt.get("hosts")) for doubt in told] == [
        ("the work of 1 l", "yes", ["a", "b"]),
        ("no step marks w", None, None),
    ]


def test_work_that_starts_before_its_launch() -> None:
    assert found("host main | x-------\nhost main |    L1 L2\ngpu0 s    | K1     K2") == [
        ("starts_before_launch", 1, 2)
    ]


def test_a_difference_of_one_tick_of_the_clock_is_none() -> None:
    assert found("host main | x-------\nhost main |  L1\ngpu0 s    | K1") == []


def test_the_first_launches_whose_work_is_missing() -> None:
    text = "host main | x  x  x  x  x\nhost main | L1 L2 L3 L4 L5\ngpu0 s    |       K3-K4-K5-"

    assert found(text) == [("lost_work", 2, 5)]
    (doubt,) = [each for each in doubts_of(draw(text, SORTS)) if each.check == "lost_work"]
    assert (doubt.found, doubt.is_grave) == ("the work of the first 2 launches was not recorded", False)


STEPS = """
    host main | M0------M1------M2------
    host main | x--     y--     z--
    host main |  L1      L2      L3
    gpu0 s    |   K1--    K2--    K3--
"""


@pytest.mark.parametrize(("lost", "is_grave", "of_step"), [("K1", False, 0.0), ("K2", True, 33.3333)])
def test_lost_work_is_grave_where_steps_that_count_lost_it(lost: str, is_grave: bool, of_step: float) -> None:
    """A first step that has lost all of its work is cut, and does not count."""
    (doubt,) = [
        each for each in doubts_of(draw(STEPS.replace(f"{lost}--", "    "), SORTS)) if each.check == "lost_work"
    ]

    assert (doubt.is_grave, doubt.of_step) == (is_grave, of_step)
    assert doubt.fix.startswith("leave a step to warm the profiler up")


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


def test_launched_work_that_waits_for_a_device_that_shows_none() -> None:
    waiting = "host main | x----\nhost main | L1L2\ngpu0 s    |   K1{}"

    assert found(waiting.format("     K2")) == [("launched_work_waits", 1, None)]
    assert found(waiting.format("K2------")) == []


def test_what_the_call_around_the_launch_says_of_a_collective_counts() -> None:
    sorts = {
        "N": Sort(K.COLLECTIVE, "ncclKernel_SendRecv", "correlation_id"),
        "c": Sort(K.COLLECTIVE_CALL, "nccl:all_to_all", stats={"Input Dims": "[[16, 2]]", "Input type": '["float"]'}),
        "d": Sort(K.COLLECTIVE_CALL, "nccl:all_to_all"),
    }
    text = "host main | {0}-----------\nhost main |  L1\ngpu0 s    |   N1"

    assert found(text.format("c"), sorts, "pytorch") == []
    trace = replace(draw(text.format("d"), SORTS | sorts), framework="pytorch")
    (doubt,) = [each for each in doubts_of(trace) if each.check == "collectives_without_details"]
    assert (doubt.found, doubt.doubtful) == ("1 collective has no recorded size", "bandwidth")
    assert doubt.fix == "record shapes (record_shapes=True), with PyTorch 2.3 or later"


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


@pytest.mark.parametrize(("kernel", "of_step"), [("K1-", 0.0), ("K3-", 100.0)], ids=["launched outside", "no launch"])
def test_work_that_belongs_to_no_op_makes_the_step_doubtful_only_where_no_call_launched_it(
    kernel: str, of_step: float
) -> None:
    found = doubts_of(draw(f"host main | M0------M2------\nhost main |  L1\ngpu0 s    |    {kernel}", SORTS))
    (doubt,) = (each for each in found if each.check == "device_time_without_op")

    assert (doubt.is_grave, doubt.of_step) == (True, of_step)


def test_summary_says_which_share_has_no_op_and_what_to_record() -> None:
    text = """
        host main | M0--------M1--------
        host main | x--       y--
        host main |  L1   g2   L3   g4
        gpu0 s    |   K1-  q2-  K3-  q4-
    """
    report = trust_tool.merge([trust_tool.partial(replace(draw(text, SORTS), framework="pytorch"))])

    assert report.line.startswith(
        "50 % of the device's time belongs to no op, as CUDA graphs replay it; may be wrong: tables of ops, modules and"
        " layers; annotate the graphs: torch.cuda.graph(..., enable_annotations=True)"
    )


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


@pytest.mark.parametrize(
    ("problem", "check"),
    [
        (Problem("lost-packets", "the recorder lost packets 3 times", hint="a larger buffer"), "events_lost"),
        (Problem("unknown-clock", "3 times on a clock that nothing relates", hint="clock snapshots"), "wrong_times"),
        (Problem("impossible-times", "3 times have a negative duration", hint="a stable clock"), "wrong_times"),
    ],
)
def test_what_readers_say_of_lost_packets_and_of_clocks(problem: Problem, check: str) -> None:
    (doubt,) = doubts_of(replace(draw("host main | x"), problems=(problem,), partial=True))

    assert (doubt.check, doubt.count, doubt.fix, doubt.is_grave) == (check, 1, problem.hint, True)
    assert problem.reason in doubt.found


def test_a_step_that_the_edge_cuts() -> None:
    text = """
        host main | M0--------M1--------M2
        host main | L1  L2    L3  L4    L5
        gpu0 s    |  K1- K2-   K3- K4-   K5
    """
    (doubt,) = [each for each in doubts_of(draw(text, SORTS)) if each.check == "steps_cut"]

    assert (doubt.count, doubt.of, doubt.is_grave) == (1, 3, False)
    assert doubt.doubtful == "nothing else"


def test_the_worst_doubt_is_the_line_and_names_its_host() -> None:
    sound = draw("host main | x", host="a")
    slowed = replace(disturbed(10.0, 30.0), host="b")
    report = trust_tool.merge([trust_tool.partial(trace) for trace in (sound, slowed)])

    assert report.line.startswith("b: recording disturbed the job: a step takes 3 times as long")
    assert report.first.startswith("record less")


def answers(trace: HostTrace) -> tuple[OverviewReport, AdviceReport]:
    """Summary and advice of one trace, which read what the check of the recording found."""

    def read(tool: str) -> TrustReport | None:
        return trust_tool.merge([trust_tool.partial(trace)]) if tool == "trust" else None

    parts = [overview.partial(trace)]
    return overview.finish(overview.merge(parts), read), advice_tool.finish(advice_tool.merge(parts), read)


WAITING = """
    host main | M0------------M1------------M2------------M3------------M4------------
    host main | I-------x---  I-------x---  I-------x---  I-------x---  I-------x---
    host main |          L1            L2            L3            L4            L5
    gpu0 s    |           K1--          K2--          K3--          K4--          K5--
"""
DROPPED = ("12 events were dropped",)


@pytest.mark.parametrize("dropped", [(), DROPPED])
def test_a_cause_found_in_the_recording_comes_before_any_advice(dropped: tuple[str, ...]) -> None:
    told, advised = answers(replace(draw(WAITING, SORTS), recorder_messages=dropped))
    kinds = [each["kind"] for each in told.to_dict()["findings"]]
    (line,) = [line for line in told.summary_lines() if line.startswith("do first")]
    first = advised.to_dict()["advice"][0]

    assert first["class"].startswith("input")
    if dropped:
        assert line == "do first   Record again, as figures are wrong or missing: record for a shorter time, or less"
        assert kinds[:3] == ["verdict", "record", "advice"]
        assert (advised.to_dict()["record_first"], first["confidence"]) == ("record for a shorter time, or less", 0.2)
        assert [section.id for section in advised.sections()][:2] == ["verdict", "record_first"]
    else:
        assert "Record again" not in line
        assert kinds[:2] == ["verdict", "advice"]
        assert advised.to_dict()["record_first"] is None
        assert first["confidence"] == 0.4


@pytest.mark.parametrize(("lost", "is_all"), [(("K2",), False), (("K2", "K3", "K4"), True)])
def test_lost_work_is_said_before_advice_that_it_may_be_all_of(lost: tuple[str, ...], is_all: bool) -> None:
    """Waiting for input is 57 % of the step; one of five steps without its kernels is less, three of five are more, and
    then nobody knows what would be left of a step."""
    text = functools.reduce(lambda text, name: text.replace(f"{name}--", "    "), lost, WAITING)
    told, advised = answers(draw(text, SORTS))

    assert [(doubt.check, doubt.of_step, doubt.is_grave) for doubt in doubts_of(draw(text, SORTS))] == [
        ("lost_work", 20.0 * len(lost), True)
    ]
    assert round(advised.items[0].gain_percent or 0.0) == (0 if is_all else 57)
    assert told.record_first.startswith("leave a step to warm the profiler up") == is_all
    assert (advised.items[0].confidence < answers(draw(WAITING, SORTS))[1].items[0].confidence) == is_all


def test_every_face_says_what_is_doubtful(tmp_path: Path) -> None:
    """Python, JSON, SQL, doctor and agents; the page shows the warnings of every report."""
    graphs = """
        host main | g2     g4
        gpu0 s    |  q2--   q4--
    """
    store_profile(tmp_path, "doubted", draw(graphs, SORTS))
    profile = stepscope.load(tmp_path)
    line = getattr(profile.report("trust"), "line", "")
    said = "100 % of the device's time belongs to no op, as CUDA graphs replay it"

    assert line.startswith(f"{said}; may be wrong: tables of ops, modules and layers; record while the graphs")
    assert all(line in profile.report(tool).to_dict()["warnings"] for tool in ("overview", "op-stats", "steps"))
    (row,) = profile.report("trust").to_dict()["rows"]
    asked = profile.sql("SELECT found, percent, fix FROM trust").to_dict()["rows"]
    assert asked == [{key: row[key] for key in ("found", "percent", "fix")}]
    assert (said, row["fix"]) in [(each.found, each.remedy) for each in examine_logdir(str(tmp_path)).checks]
    assert f"! {line}" in Answers(Sessions([str(tmp_path)])).summary("doubted")["lines"]
