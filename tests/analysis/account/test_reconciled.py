"""The account gives way to what is counted: a device that works nearly all of the time leaves nothing to the host."""

from __future__ import annotations

from draw import MS, draw

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.verdict import judge_account
from stepscope.model import HostTrace

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
