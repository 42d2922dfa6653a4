"""A loop that waits for nothing has no measured steps where the work of its devices is not known."""

from __future__ import annotations

from draw import SORTS, Sort, draw

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.account_text import judge_account
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import EventKind, HostTrace

SORTS = SORTS | {
    "F": Sort(EventKind.TRACED_FUNCTION, "PjitFunction(step)"),
    "L": Sort(EventKind.RUNTIME_CALL, "cudaLaunchKernel", "correlation_id"),
    "S": Sort(EventKind.SYNC, "cudaStreamSynchronize"),
    "K": Sort(EventKind.KERNEL, "gemm", "correlation_id"),
    "k": Sort(EventKind.KERNEL, "gemm"),
    "R": Sort(EventKind.MODULE, "jit_step(1)"),
}
UNLINKED = """
    host main | M0-M1-M2-M3-
    host main | o- o- o- o-
    gpu0 s    |  k---------k---------k---------k---------
"""
LINKED = """
    host main | M0-M1-M2-M3-
    host main | L1 L2 L3 L4
    gpu0 s    |  K1--------K2--------K3--------K4--------
"""
ENDS_EARLY = """
    host main    | M0-M1-M2-M3-M4-M5-
    host main    | F- F- F- F- F- F-
    tpu0 Modules |  R---
    tpu0 ops     |  a---
"""
WAITS = """
    host main | M0------M1------M2------M3------
    host main | L1S---- L2S---- L3S---- L4S----
    gpu0 s    |  K1----
"""


def verdict(trace: HostTrace) -> str:
    account = account_of(trace)
    assert account is not None
    return judge_account(account).sentence


def test_work_that_goes_on_after_the_steps_and_has_no_link_says_that_their_marks_are_no_steps() -> None:
    found = steps_of(draw(UNLINKED, SORTS))

    assert found.confidence == 0.5
    assert found.how.endswith("as long as the host takes to start work, and nothing says which work is of which step")
    assert verdict(draw(UNLINKED, SORTS)) == (
        "unknown: the devices work on after the steps of the host, and nothing says for which step"
    )


def test_linked_work_gives_each_step_its_length() -> None:
    found = steps_of(draw(LINKED, SORTS))

    assert found.confidence is None
    assert (found.length_ps[1:3] // 10**9).tolist() == [10, 10]


def test_a_record_of_the_devices_that_ends_before_most_steps_doubts_them() -> None:
    assert steps_of(draw(ENDS_EARLY, SORTS)).confidence == 0.5
    assert verdict(draw(ENDS_EARLY, SORTS)) == "unknown: the record of the devices ends before the steps do"


def test_steps_that_wait_for_their_work_are_measured_whatever_was_lost() -> None:
    assert steps_of(draw(WAITS, SORTS)).confidence is None
