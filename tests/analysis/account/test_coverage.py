"""What was not recorded is no evidence: where a device works unseen there is no verdict, but for what holds anyway."""

from __future__ import annotations

import pytest
from draw import SORTS, Sort, draw

from stepscope.analysis.account.account import StepAccount, account_of
from stepscope.analysis.account.account_text import judge_account
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import EventKind, HostTrace

SORTS = SORTS | {
    "L": Sort(EventKind.RUNTIME_CALL, "cudaLaunchKernel", "correlation_id"),
    "S": Sort(EventKind.SYNC, "cudaStreamSynchronize"),
    "K": Sort(EventKind.KERNEL, "gemm", "correlation_id"),
    "C": Sort(EventKind.OP, "aten::cudnn_convolution"),
}
READS = """
    host main | M0------------------M1------------------M2------------------
    host main |      L1S-----------      L2S-----------      L3S-----------
"""
WAITS_FOR_INPUT = """
    host main | M0------------------M1------------------M2------------------
    host main | I------------L1S--- I------------L2S--- I------------L3S---
"""
RUNS_AHEAD = """
    host main | M0--------M1--------M2--------M3--------
    host main | oL1       oL2       oL3       oL4
"""
CALLS_CUDNN = """
    host main | M0--------M1--------M2--------M3--------
    host main | oCCCC     oCCCC     oCCCC     oCCCC
"""
LOSES_HALF = """
    host main | M0----------M1----------M2----------M3----------
    host main | L1L2S-----  L3L4S-----  L5L6S-----  L7L8S-----
    gpu0 s    |  K1-         K3-         K5-         K7-
"""


def account(trace: HostTrace) -> StepAccount:
    found = account_of(trace)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        (READS, "unknown: 60.0 % of each step is waiting for unrecorded devices, mostly `cudaStreamSynchronize`"),
        (RUNS_AHEAD, "unknown: what the devices do was not recorded"),
        (CALLS_CUDNN, "unknown: what the devices do was not recorded"),
    ],
)
def test_launches_without_work_are_no_verdict(picture: str, said: str) -> None:
    assert judge_account(account(draw(picture, SORTS))).sentence == said


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        # A place for a device, and ops that compute for milliseconds, also around one that only allocates.
        (
            """
            host main | M0--------M1--------M2--------M3--------
            host main | c-------- c-------- c-------- c--------
            host main |  e         e         e         e
            gpu0 s    |
            """,
            "compute-bound: 90.0 % of each step is computation on the host, mostly `c`",
        ),
        # Launches: what a device does then is not known, but the host's time is said.
        (
            """
            host main | M0--------M1--------M2--------M3--------
            host main | c-------L1c-------L2c-------L3c-------L4
            """,
            "host-bound as recorded: 80.0 % of each step is computation on the host, mostly `c`",
        ),
    ],
)
def test_a_host_that_computes_is_said_beside_a_device_of_which_nothing_was_recorded(picture: str, said: str) -> None:
    assert judge_account(account(draw(picture, SORTS))).sentence == said


def test_what_comes_after_a_wait_for_the_devices_holds_up_the_step_whatever_they_did() -> None:
    found = account(draw(WAITS_FOR_INPUT, SORTS))

    assert found.certain == ("input",)
    assert judge_account(found).name == "input_bound"


def test_steps_that_wait_for_nothing_are_a_guess_where_the_work_was_not_recorded() -> None:
    assert steps_of(draw(RUNS_AHEAD, SORTS)).confidence == 0.5
    assert steps_of(draw(READS, SORTS)).confidence is None


def test_half_of_the_launches_without_work_are_no_verdict() -> None:
    found = judge_account(account(draw(LOSES_HALF, SORTS)))

    assert found.sentence == "unknown: 50 % of what was launched was not recorded"


NAMELESS = """
    host main | M0----------M1----------M2----------
    host main | xL1S------  xL2S------  xL3S------
    gpu0 s    |   K1-----     K2-----     K3-----
"""


def test_events_without_names_are_no_verdict_whatever_they_are() -> None:
    unnamed = {
        letter: Sort(sort.kind, "unknown", sort.number) for letter, sort in SORTS.items() if letter in ("L", "S", "K")
    }
    trace = draw(NAMELESS, SORTS | unnamed | {"x": Sort(EventKind.PYTHON_CALL, "unknown")})

    found = account(trace)

    assert found.certain == ()
    assert judge_account(found).sentence == "unknown: 80 % of the events have no name"


def test_ops_of_a_silent_device_that_take_no_longer_than_starting_them_dispatch_and_reads_wait() -> None:
    picture = """
        host main | L1aaaaL2aar----L3aaaaL4aar----
    """
    sorts = SORTS | {"r": Sort(EventKind.OP, "aten::_local_scalar_dense")}
    found = account(draw(picture, sorts, column_ps=100_000_000))

    assert {row.cause: row.ps // 100_000_000 for row in found.rows} == {"launch": 20, "sync": 10}
