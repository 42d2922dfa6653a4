"""Waits of the host for a device, with op and line: drawn traces and real ones."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import torch_programs
from draw import Sort, draw
from reporting import reporter, table

import stepscope
from stepscope.analysis.trace.call_sites import site_text
from stepscope.analysis.waits import syncs_tool as syncs
from stepscope.model import EventKind

if TYPE_CHECKING:
    from framework_captures import FrameworkCapture

K = EventKind
SORTS = {
    "Y": Sort(K.PYTHON_CALL, "train.py(12): step"),
    "Z": Sort(K.PYTHON_CALL, "/opt/lib/python3.11/site-packages/torch/_tensor.py(30): backward"),
    "Q": Sort(K.OP, "aten::item"),
    "O": Sort(K.OP, "aten::_local_scalar_dense"),
    "S": Sort(K.SYNC, "cudaStreamSynchronize"),
    "C": Sort(K.RUNTIME_CALL, "cudaMemcpy"),
    "X": Sort(K.RUNTIME_CALL, "cudaMemcpyAsync"),
}


report = reporter(syncs)


PICTURE = """
    host main | M0----------- M1-----------
    host main | Y------------ Y------------
    host main |  Q------        Q------
    host main |   O-----         O-----
    host main |   X S---    S    X S---  C
    gpu0 s7   |  k----          k-----
"""


def test_a_wait_is_told_by_call_op_and_line():
    found = report(draw(PICTURE, SORTS))

    line = "train.py(12): step"
    assert table(found, "call", "op", "reason", "call_site", "count", "per_step", "total_us", "max_us") == [
        ("cudaStreamSynchronize", "aten::item", "reads a value", line, 2, 1, 8000, 4000),
        ("cudaMemcpy", None, "explicit", line, 1, 0.5, 1000, 1000),
        ("cudaStreamSynchronize", None, "explicit", line, 1, 0.5, 1000, 1000),
    ]
    assert found.findings == (
        "the host waits for a device for 37.0 % of each step",
        "it waits 4 times (2.0 per step), 10.00 ms in total",
        "for 21.4 % of the median step it waits for an idle device",
        "a value is read from a tensor 2 times (1.0 per step); the device was waited for 2 times",
    )


def test_a_wait_inside_another_counts_once():
    """A step with a wait for a stream inside each blocking copy was 103.86 % waiting."""
    found = report(
        draw("""
            host main | M0--------M1--------
            host main | C---------C---------
            host main |  S-------- S--------
            gpu0 s7   | k---------k---------
        """, SORTS)
    )  # fmt: skip

    assert table(found, "call", "step_percent") == [("cudaMemcpy", 100), ("cudaStreamSynchronize", 90)]
    assert found.findings[0] == "the host waits for a device for 100.0 % of each step"


@pytest.mark.parametrize(
    ("call", "blocks"),
    [
        ("cudaMemcpy", True),
        ("cudaMemcpy2D", True),
        ("cuMemcpyDtoH_v2", True),
        ("hipMemcpyWithStream", True),
        ("cudaMemcpyAsync", False),
        ("cudaMemcpyPeerAsync", False),
        ("cuMemcpyDtoHAsync_v2", False),
        ("hipMemcpyAsync", False),
        ("cudaLaunchKernel", False),
    ],
)
def test_copies_that_return_only_when_they_are_done(call: str, blocks: bool):
    trace = draw("host main | M0----\nhost main | C---", {"C": Sort(K.RUNTIME_CALL, call)})
    assert table(report(trace), "call", "count") == [(call, 1)] * blocks


def test_a_wait_outside_of_the_steps_has_no_rate_in_a_step():
    found = report(draw("host main | M0---M1---   X S-\ngpu0 s7   | k---k---   k-", SORTS))

    assert found.findings[0] == "nothing to gain here: the host waits for a device for 0.0 % of each step"
    assert found.findings[1].startswith("it waits once in the capture, ")


def test_a_wait_while_the_device_works_is_no_wait_for_an_idle_one():
    found = report(draw("""
        host main | M0----------- M1-----------
        host main | X S---------  X S---------
        host main |                          Q
        gpu0 s7   |  k----------   k----------
    """, SORTS))  # fmt: skip

    assert found.findings == (
        "the host waits for a device for 74.1 % of each step",
        "it waits 2 times (1.0 per step), 20.00 ms in total",
        "a device works nearly all that time: nothing of the median step is a wait for an idle one",
        "a value is read from a tensor once (0.5 per step), which waits for no device",
    )


def test_a_wait_in_which_no_device_shows_any_work_is_not_said_to_be_covered_by_it():
    part = syncs.partial(draw("host main | M0-----------\nhost main | X S---------\ngpu0 s7   |  k--", SORTS))

    assert (
        syncs.merge([replace(part, sync_ps=0)]).findings[2]
        == "for 80.0 % of that time no work of a device was recorded"
    )


def test_ops_that_read_a_value_count_once_however_many_ops_they_are():
    found = report(draw(PICTURE, SORTS), draw(PICTURE, SORTS, host="other"))

    assert found.reads == (
        {
            "op": "aten::item", "call_site": "train.py(12): step", "count": 4, "per_step": 1, "waits": 4,
            "total_us": 28_000, "max_us": 7000,
        },
    )  # fmt: skip
    assert found.findings[-1] == (
        "a value is read from a tensor 4 times (1.0 per step); the device was waited for 4 times"
    )


def test_reading_a_value_on_a_host_without_devices_waits_for_nothing():
    found = report(draw("host main | M0---- M1----\nhost main | O-  O-  O-", SORTS))

    assert [(row["op"], row["call_site"], row["count"], row["waits"]) for row in found.reads] == [
        ("aten::_local_scalar_dense", None, 3, 0)
    ]


def test_every_item_of_a_loop_is_counted_at_its_line(torch_epoch_capture: FrameworkCapture) -> None:
    report = stepscope.load(torch_epoch_capture.logdir).report("syncs").to_dict()

    by_function = {str(row["call_site"]).rpartition(" ")[2]: row for row in report["reads"]}
    assert by_function["read_twice"]["op"] == "aten::item"
    assert by_function["read_twice"]["count"] == 2 * torch_programs.EPOCH
    assert "torch_programs.py(" in by_function["read_twice"]["call_site"]


def test_frames_of_libraries_are_no_call_sites():
    found = report(
        draw("""
            host main | Y-----
            host main |  Z---
            host main |   S
            gpu0 s    | k--
        """, SORTS)
    )  # fmt: skip
    assert table(found, "call_site") == [("train.py(12): step",)]


def test_each_host_has_its_own_waits_and_none_takes_more_than_its_time():
    found = report(draw(PICTURE, SORTS, host="a"), draw(PICTURE, SORTS, host="b"))
    share = pytest.approx(100 * 16 / 54, abs=1e-3)
    assert table(found, "host", "count", "per_step", "step_percent")[:2] == [("a", 2, 1, share), ("b", 2, 1, share)]
    assert found.findings[1] == "it waits 8 times (2.0 per step), 10.00 ms on each host"


def test_without_a_device_there_is_nothing_to_wait_for():
    found = report(draw("host main | a--"))
    assert found.rows == ()
    assert found.findings[0].startswith("no calls that wait for a device: if a GPU took part, record")
    assert found.warnings == ("no device works in this profile, so there is nothing to wait for",)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("train.py(12): step", "train.py(12): step"),
        ("$train.py:12 step", "train.py:12 step"),
        ("/x/site-packages/torch/a.py(1): f;model.py(7): forward;main.py(3): <module>;", "model.py(7): forward"),
        ("torch/a.py(1): f;", "torch/a.py(1): f"),
        ("", ""),
    ],
)
def test_of_a_stack_the_first_line_of_the_program_is_shown(text, shown):
    assert site_text(text) == shown


JAX = {
    "Y": Sort(K.PYTHON_CALL, "$train.py:12 loop"),
    "B": Sort(K.PYTHON_CALL, "$api.py:3105 block_until_ready"),
    "S": Sort(K.SYNC, "hipEventSynchronize"),
}


def test_a_wait_of_jax_is_a_python_call_unless_the_runtime_recorded_its_own():
    found = report(
        draw("""
            host main | Y-------------------
            host main |  L1 B---   L2 B-----
            host main |                S--
            gpu0 s    |   K1----    K2----
        """, JAX)
    )  # fmt: skip

    assert table(found, "call", "call_site", "count", "total_us") == [
        ("$api.py:3105 block_until_ready", "train.py:12 loop", 1, 4000),
        ("hipEventSynchronize", "train.py:12 loop", 1, 3000),
    ]


def test_on_a_host_alone_nobody_waits_for_a_device():
    found = report(
        draw("""
            host main | Y-----------
            host main |  a-- B---
        """, JAX)
    )  # fmt: skip

    assert found.rows == ()


def test_waits_that_the_account_infers_are_said_to_be_more_than_the_calls():
    part = SimpleNamespace(median_ps=1_000, sync_ps=50, steps=3)

    assert [*syncs._describe_account([part], 5.0)] == ["for 5.0 % of the median step it waits for an idle device"]
    assert [*syncs._describe_account([part], 0.1)] == [
        "for 5.0 % of the median step it waits for an idle device, which is more than its calls show: the account "
        "infers the rest"
    ]
