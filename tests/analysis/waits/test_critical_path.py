"""The critical path on drawn traces: each picture has the path drawn below it."""

from __future__ import annotations

from typing import Any

import pytest
from draw import Sort, draw, traces
from gallery import gallery
from hypothesis import given, settings
from reporting import reporter

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.waits import critical_path_tool as critical_path
from stepscope.model import EventKind, HostTrace

SYNC = {"S": Sort(EventKind.SYNC, "cudaStreamSynchronize")}
OF_JAX = {"S": Sort(EventKind.PYTHON_CALL, "$api.py:3105 block_until_ready")}


report = reporter(critical_path)


def parts(found: critical_path.CriticalPathReport) -> dict[str, Any]:
    """The parts that are not 0, in ms per step."""
    return {str(row["part"]): row["ms"] for row in found.parts if row["ms"]}


def test_a_device_whose_launches_nothing_recorded_is_the_path_all_the_same():
    """A TPU records its own work and no calls; it was all `other` once."""
    found = report(draw("tpu0 Steps | W0--------\ntpu0 Modules | m---      \ntpu0 ops | k---k---"))

    assert parts(found) == {"device_compute": 8, "unknown": 2}
    assert found.findings[0] == "longest part: 80.0 % of each step is computation on the device: `k` (2 calls)"


@gallery("""
    a device that the host keeps ahead of is the path
        host main | M0-------------
        host main | L1L2L3
        gpu0 s    |   K1---K2--K3----
        # path    | LLkkkkkkkkkkkkkkkk: 2 of the first call, then kernels
        parts = {"launch": 2, "device_compute": 15}
    a host that launches late is the path
        host main | M0-----------------
        host main | a---L1     b--L2
        gpu0 s    |       K1       K2---
        # path    | aaaaLLkk...bbbLLkkkkk: while K1 runs, the silent host may wait for it
        parts = {"host_compute": 7, "launch": 3, "unknown": 3, "device_compute": 7}
    a copy that blocks is a wait for the copy
        host main | M0-----------------
        host main | L1 V2----------a---
        gpu0 s    |  K1------D2-
        # path    | L kkkkkkkk DDD VVV aaaa
        parts = {"launch": 1, "device_compute": 8, "copy": 3, "sync": 3, "host_compute": 4}
    whatever happens inside a wait for input is input
        host main | M0---------
        host main | I----- b---
        host main |  c-
        parts = {"input": 6, "host_compute": 4, "unknown": 1}
""")
def test_the_parts_of_the_path(picture: str, expected: dict[str, Any]) -> None:
    sorts = {"V": Sort(EventKind.RUNTIME_CALL, "hipMemcpyWithStream", "correlation_id")}

    assert parts(report(draw(picture, sorts))) == expected["parts"]


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

    assert parts(found) == {"launch": 1, "device_compute": 9, "sync": 3, "unknown": 1, "host_compute": 5}


def test_a_long_gap_before_work_that_was_launched_in_time_is_unknown():
    found = report(
        draw("""
            host main | M0-----------
            host main | L1L2
            gpu0 s    |   K1---  K2----
        """)
    )
    assert parts(found) == {"launch": 2, "device_compute": 5 + 6, "unknown": 2}
    [first] = [row for row in found.rows if row["part"] == "device_compute"]
    assert (first["name"], first["count"], first["ms"], first["delay_ms"]) == ("kernel", 2, 11, 2)


def test_the_path_is_that_of_the_median_step_and_every_step_is_listed():
    one = draw("""
        host main | M0--- M1----- M2---------- M3
        host main | a---  a-----  a----
    """)
    found = report(one)
    assert parts(found) == {"host_compute": 6, "unknown": 2}
    assert [(row["step"], row["duration_ms"], row["host_compute_ms"], row["is_median"]) for row in found.steps] == [
        (0, 6, 4, False), (1, 8, 6, True), (2, 13, 5, False), (3, 2, 0, False),
    ]  # fmt: skip
    assert found.findings[0] == "longest part: 75.0 % of the median step is computation on the host: `a`"


def test_of_several_hosts_the_one_whose_step_takes_longest_is_the_path():
    one, other = draw("host main | M0---\nhost main | a--"), draw("host main | M0-----\nhost main | b---", host="other")
    found = report(one, other)

    assert parts(found) == {"host_compute": 4, "unknown": 3}
    assert [row["name"] for row in found.rows] == ["b", "train"]
    assert [(row["host"], row["is_median"]) for row in found.steps] == [("host", False), ("other", True)]


def test_a_capture_without_steps_is_one_path():
    found = report(draw("host main | a---b-\nhost main | c"))

    assert parts(found) == {"host_compute": 6}
    assert found.findings == ("100.0 % of the capture is computation on the host; the largest part is `a`",)


@settings(max_examples=80, deadline=None)
@given(traces())
def test_every_moment_of_a_step_is_given_to_one_part(trace: HostTrace) -> None:
    found = critical_path.partial(trace)
    steps = steps_of(trace)
    starts = [step.start_ps for step in found.steps]
    assert starts == steps.start_ps[: len(starts)].tolist()
    assert [step.step_ps for step in found.steps] == steps.length_ps.tolist()
    assert all(part >= 0 for step in found.steps for part in step.causes_ps)
    if found.account is not None:
        assert found.median is not None
        assert {Cause(at).name.lower(): ps for at, ps in enumerate(found.median.causes_ps) if ps} == {
            row.cause: row.ps for row in found.account.rows
        }
    listed = sum(row["ms"] + row["delay_ms"] for row in found.rows)
    assert listed <= (found.median.step_ps / 1e9 if found.median else 0) + 1e-6


def test_a_host_without_steps_has_no_part_in_the_path():
    worker = draw("""
        host main | M0---- M1---- M2----
        host main | L1     L2     L3
        gpu0 s    |   K1--   K2--   K3--
    """)
    chief = draw("host main | a-------------------------------------------------", host="chief")

    found = report(worker, chief)
    assert parts(found) == parts(report(worker)) == {"device_compute": 4.0, "launch": 2.0, "unknown": 1.0}
    assert {row["host"] for row in found.steps} == {"host"}
    assert found.warnings == ("no steps from chief",)
