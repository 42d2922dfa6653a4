"""The tool `inference`: what a run is, percentiles, and what differs in slow runs."""

from __future__ import annotations

import pytest
from draw import Sort, draw
from reporting import reporter
from test_hlo_stats import PROGRAMS, carried
from xla_traces import Ran, trace_of

from stepscope.analysis.xla import inference_tool
from stepscope.analysis.xla.inference_tool import percentile
from stepscope.model import EventKind, HostTrace
from stepscope.vocabulary.serving import Batch, batch_of

K = EventKind
MS = 1000


report = reporter(inference_tool)


def mark(name: str) -> Sort:
    return Sort(K.ANNOTATION, name)


def test_names_of_servers_tell_their_batches() -> None:
    assert batch_of("step[EXTEND bs=15 toks=15360]") == Batch("EXTEND", 15, 15360, 15, 0)
    assert batch_of("step[DECODE bs=8]") == Batch("DECODE", 8, None, 0, 8)
    assert batch_of("step[MIXED bs=2 c=1 g=1 c_sq=5]") == Batch("MIXED", 2, None, 1, 1)
    assert batch_of("execute_context_2(6144)_generation_3(3)") == Batch("mixed", 5, 6147, 2, 3)
    assert batch_of("decode[bs=117/128 tok=117 d=117]") == Batch("decode", 117, 117, 0, 117)
    assert batch_of("execute_512_context_2(sq512)_generation_6(sq6)") == Batch("mixed", 8, 512, 2, 6)
    assert batch_of("execute_8_context_0(sq0)_generation_8(sq8)") == Batch("generation", 8, 8, 0, 8)
    assert batch_of("SessionRun") == Batch("SessionRun")
    assert batch_of("ModelServerRequest_Predict/model") is not None
    assert batch_of("matmul") is None


def test_a_batch_lasts_until_its_work_on_the_device_is_done() -> None:
    found = report(
        draw(
            """
            host main | P---------  D----
            host main |   L1         L2
            gpu0 s    |      K1------  K2-
            """,
            {"P": mark("step[EXTEND bs=4 toks=100]"), "D": mark("step[DECODE bs=4 toks=4]")},
        )
    )
    rows = {row["name"]: row for row in found.rows}

    assert rows["EXTEND"]["max_ms"] == 13.0  # from 0 to the end of K1
    assert rows["EXTEND"]["queue_ms"] == 3.0
    assert rows["EXTEND"]["tokens_per_s"] == pytest.approx(100 / 0.013)
    assert rows["EXTEND"]["device_percent"] == pytest.approx(100 * 8 / 13, abs=0.01)
    assert (rows["DECODE"]["max_ms"], rows["DECODE"]["mean_requests"]) == (6.0, 4)
    assert rows["DECODE"]["runs_per_s"] is None  # one run tells no rate


def test_a_mark_inside_a_mark_is_the_same_batch() -> None:
    found = report(
        draw(
            "host main | P------\nhost main |  D----",
            {"P": mark("execute_8_context_0(sq0)_generation_8(sq8)"), "D": mark("step[DECODE bs=8]")},
        )
    )

    assert [(row["name"], row["runs"]) for row in found.rows] == [("generation", 1)]


def test_percentiles_are_of_nearest_rank() -> None:
    hundred = list(range(1, 101))
    assert [percentile(hundred, share) for share in (50, 90, 99, 99.9)] == [50, 90, 99, 100]
    assert percentile([7], 50) == 7


def serving(sizes: list[int]) -> HostTrace:
    """Batches of some sizes, each request 1 ms on the host."""
    events, at = [], 0
    for size in sizes:
        events.append(Ran("main", f"step[DECODE bs={size} toks={size}]", at, size * MS, place="host"))
        at += size * MS + MS
    return trace_of({}, events, device="host")


def test_only_recorded_requests_have_a_page() -> None:
    assert report(serving([1, 2])).why_hidden() is None
    steps = trace_of({}, [Ran("main", "train", at * MS, MS, {"step_num": at}) for at in range(4)], device="host")
    found = report(steps)
    assert "no server marked its batches" in str(found.why_hidden())


def test_what_differs_in_slow_runs() -> None:
    found = report(serving([2] * 18 + [8] * 2))
    (row,) = found.rows
    differences = {each["factor"]: each for each in found.differences}

    assert (row["runs"], row["p50_ms"], row["p90_ms"], row["max_requests"]) == (20, 2.0, 2.0, 8)
    assert row["p99_ms"] is None  # of twenty runs none is above it
    # The 90th percentile is 2 ms here: all runs are at or above it, so that there is nothing to compare with.
    assert differences == {}
    found = report(serving([1, 2] * 8 + [8] * 4))
    differences = {each["factor"]: each for each in found.differences}
    assert (differences["requests"]["others"], differences["requests"]["slow"]) == (1.5, 8.0)
    assert differences["latency, ms"]["ratio"] == pytest.approx(8 / 1.5)
    assert found.slowest[0]["latency_ms"] == 8.0


def test_padding_of_batches() -> None:
    stats = {"batch_size_after_padding": 8, "padding_amount": 2}
    found = report(trace_of({}, [Ran("main", "ProcessBatch", 0, 5, stats)], device="host"))

    assert (found.rows[0]["mean_requests"], found.rows[0]["padding_percent"]) == (6, 25.0)


def test_runs_of_a_program_on_a_host_by_their_number() -> None:
    events = []
    for run in range(3):
        at = run * 100
        events.append(Ran("tf_XLAEigen/1", "dot.1", at, 10, carried("dot.1", run_id=run + 1)))
        events.append(Ran("tf_XLAEigen/2", "loop_fusion.2", at + 15, 10, carried("loop_fusion.2", run_id=run + 1)))
    (row,) = report(trace_of(PROGRAMS, events, device="cpu")).rows

    assert (row["source"], row["name"], row["runs"]) == ("program", "jit_f(1)", 3)
    assert (row["mean_ms"], row["device_percent"]) == (0.025, 80.0)


def test_runs_of_a_program_on_a_gpu_by_the_order_of_its_kernels() -> None:
    events = []
    for run in range(4):
        at = run * 100
        events.append(Ran("Stream #1(Kernel)", "gemm", at, 10, carried("dot.1")))
        events.append(Ran("Stream #1(Kernel)", "loop", at + 10, 10 + 5 * (run == 2), carried("loop_fusion.2")))
    (row,) = report(trace_of(PROGRAMS, events)).rows

    assert (row["runs"], row["p50_ms"], row["max_ms"]) == (4, 0.020, 0.025)


def test_steps_are_runs_where_nothing_else_is_known() -> None:
    (row,) = report(draw("host main | M0--M1--M2------")).rows

    assert (row["source"], row["runs"], row["max_ms"]) == ("steps", 3, 8.0)


def test_a_trace_without_any_run_says_so() -> None:
    found = report(draw("host main | a--"))

    assert found.rows == ()
    assert "no runs of a model" in found.warnings[0]


def test_equal_runs_of_several_hosts_are_of_one_kind() -> None:
    assert report(serving([2, 2]), serving([4])).rows[0]["runs"] == 3
