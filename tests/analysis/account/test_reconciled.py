"""The account gives way to what is counted: a device that works nearly all of the time leaves nothing to the host."""

from __future__ import annotations

from draw import MS, Sort, draw

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.account_text import judge_account
from stepscope.model import EventKind, HostTrace

K = EventKind
COPY = Sort(K.COPY_DEVICE_TO_DEVICE, "MemcpyD2D", "correlation_id")

# Nothing links the kernels to their launches, and no wait is recorded: `a` is an op that reads the result.
BUSY = """
    host main | M0------------------M1------------------M2------------------
    host main | Y------------------ Y------------------ Y------------------
    gpu0 s    |  k-------n--------- k--------n---------k--------n----------
"""
IDLE = """
    host main | M0------------------M1------------------M2------------------
    host main | Y------------------ Y------------------ Y------------------
    gpu0 s    |  k------              k------            k------
"""


def causes(trace: HostTrace) -> dict[str, int]:
    account = account_of(trace)
    assert account is not None
    return {str(row.cause): row.ps for row in account.rows}


def test_where_a_device_works_nearly_all_of_the_time_the_step_is_its() -> None:
    found = causes(draw(BUSY))

    assert found["device_compute"] >= 19 * MS
    assert found.get("python", 0) <= 1 * MS


def test_its_verdict_names_the_work() -> None:
    account = account_of(draw(BUSY))
    assert account is not None
    culprit = account.rows[0].culprit

    assert judge_account(account).name == "compute_bound"
    assert culprit is not None and culprit.name in ("k", "n")


def test_where_it_idles_the_host_is_what_the_step_waits_for() -> None:
    assert causes(draw(IDLE)) == {"python": 12 * MS, "device_compute": 7 * MS, "unknown": 1 * MS}


def test_a_collective_that_fills_the_gap_of_another_queue_is_named_and_not_the_copy_that_follows() -> None:
    trace = draw(
        """
        host main | M0------------------M1------------------M2------------------
        host main | L1L2  L3           L4L5  L6             L7L8  L9
        gpu0 comp |   K1--            z3    K4--           z6    K7--           z9
        gpu0 comm |       n2---------          n5---------          n8---------
        """,
        {"n": Sort(K.COLLECTIVE, "ncclDevKernel_AllReduce", "correlation_id"), "z": COPY},
    )
    account = account_of(trace)
    assert account is not None
    communication = next(row for row in account.rows if row.cause == "communication")

    assert communication.culprit is not None and communication.culprit.name == "ncclDevKernel_AllReduce"


def test_a_function_around_a_whole_step_is_not_named_as_what_its_devices_compute() -> None:
    trace = draw(
        """
        host main | M0------------------M1------------------M2------------------
        host main | Z-------------------Z-------------------Z-------------------
        host main | L1                  L2                  L3
        gpu0 s    |   K1---------------   K2---------------   K3---------------
        """,
        {"Z": Sort(K.PYTHON_CALL, "train.py(40): main")},
    )
    account = account_of(trace)
    assert account is not None

    assert account.rows[0].cause == "device_compute"
    assert account.rows[0].culprit is not None and account.rows[0].culprit.name == "kernel"
