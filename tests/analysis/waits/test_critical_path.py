"""The critical path on drawn traces: each picture has the path drawn below it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from draw import Sort, draw, traces
from hypothesis import given, settings

import stepscope
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.waits import critical_path_tool as critical_path
from stepscope.model import EventKind, HostTrace

SYNC = {"S": Sort(EventKind.SYNC, "cudaStreamSynchronize")}
OF_JAX = {"S": Sort(EventKind.PYTHON_CALL, "$api.py:3105 block_until_ready")}
Q = Sort(EventKind.PYTHON_CALL, "net.py(3): forward")


def report(*traced: HostTrace) -> critical_path.CriticalPathReport:
    partials = [critical_path.partial(trace) for trace in traced]
    for part in partials:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=critical_path.Partial) == part
    return critical_path.merge(partials)


def parts(found: critical_path.CriticalPathReport) -> dict[str, Any]:
    """The parts that are not 0, in ms per step."""
    return {str(row["part"]): row["ms"] for row in found.parts if row["ms"]}


def test_without_a_thread_that_launches_there_is_no_path_and_the_report_says_so():
    found = report(draw("tpu0 Steps | W0--------\ntpu0 Modules | m---      \ntpu0 ops | k---k---", {"m": Q}))

    assert found.findings[0].startswith("for 100.0 % of each step nothing recorded is running")
    assert "no such thread was recorded in the steps; record with host_tracer_level=2" in found.findings[1]


def test_a_device_that_the_host_keeps_ahead_of_is_the_path():
    found = report(
        draw("""
            host main | M0-------------
            host main | L1L2L3
            gpu0 s    |   K1---K2--K3----
        """)
    )  # LLkkkkkkkkkkkkkkkk : 2 of the first call, then kernels

    assert parts(found) == {"kernel_launch": 2, "device_compute": 5 + 4 + 6}


def test_a_host_that_launches_late_is_the_path():
    found = report(
        draw("""
            host main | M0-----------------
            host main | a---L1     b--L2
            gpu0 s    |       K1       K2---
        """)
    )  #            aaaaLL.....bbbLLkkkkk

    assert parts(found) == {"host_compute": 4 + 3, "kernel_launch": 2 + 1, "other": 5, "device_compute": 5}


@pytest.mark.parametrize("sorts", [SYNC, OF_JAX], ids=["runtime", "jax"])
def test_a_wait_leads_to_what_was_waited_for(sorts: dict[str, Sort]):
    found = report(
        draw("""
            host main | M0-----------------
            host main | L1 S--------- a----
            gpu0 s    |  K1-------
        """, sorts)
    )  # fmt: skip
    #              L kkkkkkkkk SS . aaaaa

    assert parts(found) == {
        "kernel_launch": 1, "device_compute": 9, "device_wait": 3, "other": 1, "host_compute": 5,
    }  # fmt: skip


def test_work_between_two_kernels_that_was_launched_in_time_is_a_gap():
    found = report(
        draw("""
            host main | M0-----------
            host main | L1L2
            gpu0 s    |   K1---  K2----
        """)
    )
    assert parts(found) == {"kernel_launch": 2, "device_compute": 5 + 6, "kernel_gap": 2}
    [first] = [row for row in found.rows if row["part"] == "device_compute"]
    assert (first["name"], first["count"], first["ms"], first["delay_ms"]) == ("kernel", 2, 11, 2)


def test_work_that_starts_long_after_its_launch_waited_for_another_stream():
    found = report(
        draw("""
            host main | M0-----------------
            host main | L1L2
            gpu0 s    |   K1--------
            gpu0 t    |              K2----
        """)
    )
    assert parts(found) == {"kernel_launch": 2, "device_compute": 10 + 6, "kernel_gap": 1}


def test_a_queue_that_stands_still_waits_for_the_stream_that_works_meanwhile():
    """As the optimizer's first kernel waits for the last collective of the backward pass."""
    found = report(
        draw("""
            host main | M0--------------------
            host main | L1L3L2
            gpu0 s    |   K1---         K2----
            gpu0 t    |     N3-------
        """)
    )
    assert parts(found) == {
        "kernel_launch": 2 + 2, "device_communication": 9, "kernel_gap": 3, "device_compute": 6,
    }  # fmt: skip


def test_a_copy_that_blocks_is_a_wait_for_the_copy():
    found = report(
        draw("""
            host main | M0-----------------
            host main | L1 V2----------a---
            gpu0 s    |  K1------D2-
        """, {"V": Sort(EventKind.RUNTIME_CALL, "hipMemcpyWithStream", "correlation_id")})
    )  # fmt: skip
    #              L kkkkkkkk DDD VVV aaaa

    assert parts(found) == {
        "kernel_launch": 1, "device_compute": 8, "device_copy": 3, "device_wait": 3, "host_compute": 4,
    }  # fmt: skip


def test_a_thread_that_waits_in_silence_leads_to_one_that_works():
    """The main thread is in `backward()`, of which only the Python frame is recorded."""
    found = report(
        draw("""
            host main     | M0-----------------
            host main     | Q-------------- c--
            host main     |  a--
            host autograd |      B--------
        """, {"Q": Q})
    )  # fmt: skip
    #                     .aaa.BBBBBBBBB.ccc

    assert parts(found) == {"host_compute": 3 + 9 + 3, "other": 1 + 1 + 2}


def test_whatever_happens_inside_a_wait_for_input_is_input():
    found = report(
        draw("""
            host main | M0---------
            host main | I----- b---
            host main |  c-
        """)
    )
    assert parts(found) == {"input": 6, "host_compute": 4, "other": 1}


def test_figures_are_means_over_steps_and_hosts():
    one = draw("""
        host main | M0--- M1-----
        host main | a---  a-----
    """)
    found = report(one)
    assert parts(found) == {"host_compute": 5, "other": 1}
    assert [(row["step"], row["duration_ms"], row["host_compute_ms"]) for row in found.steps] == [(0, 5, 4), (1, 7, 6)]
    assert found.findings[0] == "for 83.3 % of each step the host runs ops or other framework work"
    assert parts(report(one, draw("host main | M0-----", host="other"))) == {
        "host_compute": pytest.approx(10 / 3), "other": pytest.approx(9 / 3),
    }  # fmt: skip


def test_steps_that_the_edge_cuts_count_for_nothing():
    cut = """
        host main | M0--- M1--- M2--- M3---
        gpu0 s    | z-    kkk   kkk   kkk
    """
    for traced in ([draw(cut)], [draw(cut), draw("host main | M0-\nhost main | y", host="other")]):
        found = report(*traced)
        assert "z" not in [row["name"] for row in found.rows]
        for part in ("device_compute", "host_compute"):
            listed = sum(row["ms"] for row in found.rows if row["part"] == part)
            assert listed == pytest.approx(parts(found).get(part, 0))


@settings(max_examples=200, deadline=None)
@given(traces())
def test_every_moment_of_a_step_is_given_to_one_part(trace: HostTrace) -> None:
    found = critical_path.partial(trace)
    steps = steps_of(trace)
    lengths = (steps.end_ps - steps.start_ps).tolist()
    assert [sum(step.parts_ps) for step in found.steps] == lengths
    assert all(part >= 0 for step in found.steps for part in step.parts_ps)


def test_the_path_of_a_job_that_waits_in_python_is_its_device(corpus: Path) -> None:
    """JAX on ROCm records no wait but `block_until_ready`; the device works for 94 % of a step."""
    found = stepscope.load(corpus / "jax-mi300x-attention").report("critical-path")

    assert isinstance(found, critical_path.CriticalPathReport)
    assert found.parts[0]["part"] == "device_compute"
    assert float(found.parts[0]["percent"] or 0) > 85


def test_paths_of_real_jobs(corpus: Path) -> None:
    """The job with a slow loader waits for it; the one with worker processes does not."""
    slow, quick = (
        stepscope.load(corpus / f"torch-v100-resnet50-workers{workers}").report("critical-path") for workers in (0, 4)
    )
    assert isinstance(slow, critical_path.CriticalPathReport)
    assert isinstance(quick, critical_path.CriticalPathReport)
    assert float(parts(slow)["input"]) > 50
    assert float(parts(quick).get("input", 0)) < 5


def test_a_host_without_steps_is_no_part_of_the_mean_step():
    worker = draw("""
        host main | M0---- M1---- M2----
        host main | L1     L2     L3
        gpu0 s    |   K1--   K2--   K3--
    """)
    chief = draw("host main | a-------------------------------------------------", host="chief")

    found = report(worker, chief)
    assert parts(found) == parts(report(worker)) == {"device_compute": 4.0, "kernel_launch": 2.0}
    assert [row["name"] for row in found.rows] == ["kernel", "launch"]
    assert {row["host"] for row in found.steps} == {"host"}
    assert found.warnings == ("no steps from chief",)
