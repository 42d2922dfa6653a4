"""The verdict read from the account: which limit decides, the sentence, and when two cannot be told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import Sort, draw

from stepscope.analysis.account.account import AccountRow, StepAccount, account_of
from stepscope.analysis.account.verdict import judge_account
from stepscope.model import EventKind as K

SYNC = Sort(K.SYNC, "cudaStreamSynchronize")
ITEM = Sort(K.PYTHON_CALL, "train.py(9): __getitem__")
LOADER = Sort(K.PYTHON_CALL, "/x/site-packages/torch/utils/data/dataloader.py(7): fetch")
LOOP = Sort(K.PYTHON_CALL, "train.py(20): main")


def account(shares: dict[str, float], *, devices: str | None = "the GPU", error: float = 0.0) -> StepAccount:
    """An account of a step of 100 ms without culprits."""
    rows = [AccountRow(cause, int(share * 1e9), None, None, None) for cause, share in shares.items()]
    rows.sort(key=lambda row: -row.ps)
    return StepAccount("host", 3, 100 * 10**9, rows, error, 0.0, 5, devices, 0, True, None, [], {}, {}, 100 * 10**9)


@pytest.mark.parametrize(
    ("shares", "verdict", "threshold"),
    [
        ({"device_compute": 80, "input": 20}, "input_bound", 20),
        ({"device_compute": 85, "input": 15}, "input_bound", 5),
        ({"device_compute": 96, "input": 4}, "compute_bound", None),
        ({"device_compute": 80, "launch": 20}, "launch_bound", 15),
        ({"device_compute": 60, "input": 15, "launch": 25}, "launch_bound", 15),
        ({"device_compute": 70, "communication": 30}, "communication_bound", 15),
        ({"device_compute": 70, "compile": 30}, "compile_bound", 15),
        ({"device_compute": 84, "python": 6, "sync": 5, "checkpoint": 5}, "host_bound", 15),
        ({"device_compute": 80, "host_compute": 20}, "host_bound", 15),
        ({"device_compute": 60, "device_gap": 20, "copy": 20}, "compute_bound", None),
    ],
)
def test_the_largest_limit_above_its_threshold_decides(
    shares: dict[str, float], verdict: str, threshold: float | None
) -> None:
    found = judge_account(account(shares))

    assert (found.name, found.threshold_percent, found.between) == (verdict, threshold, ())


def test_without_a_device_the_host_s_computation_is_the_computation() -> None:
    assert judge_account(account({"host_compute": 90, "python": 10}, devices=None)).name == "compute_bound"


def test_copies_to_a_device_bring_the_input() -> None:
    copies = replace(account({"device_compute": 60, "copy": 40}), to_devices_ps=30 * 10**9)
    found = judge_account(copies)

    assert (found.name, found.share_percent) == ("input_bound", 30)
    assert found.sentence == (
        "highly input-bound: 30.0 % of each step is copies to the device; 60.0 % is computation on the device"
    )


def test_a_share_within_the_noise_of_its_threshold_is_between_two_verdicts() -> None:
    """15.1 % against 15 % flipped the verdict."""
    over = judge_account(account({"device_compute": 84.9, "launch": 15.1}, error=0.5))
    under = judge_account(account({"device_compute": 85.1, "launch": 14.9}, error=0.5))

    assert over.between == ("launch_bound", "compute_bound")
    assert under.between == ("compute_bound", "launch_bound")
    assert over.sentence == (
        "between launch-bound and compute-bound, which is within the noise: 15.1 % of each step is dispatching work; "
        "84.9 % is computation on the device"
    )


def test_one_step_that_differs_from_the_others_makes_no_noise() -> None:
    """90 % against 10 % was called within the noise, because one step of nine was slow."""
    steps = "".join(f"M{number}--------" for number in range(9)) + "M9---------------M10"
    work = "aaaaaaaaaI" * 9 + "aaaaaaaaaI-------a"
    found = account_of(draw(f"host main | {steps}\nhost main | {work}"))
    assert found is not None

    assert found.mean_percent["input"] > 10
    assert judge_account(found).between == ()


def test_a_share_between_the_two_thresholds_of_input_is_input_all_the_same() -> None:
    found = judge_account(account({"device_compute": 79.5, "input": 20.5}, error=1.0))

    assert (found.name, found.between) == ("input_bound", ())


def test_two_limits_that_differ_by_less_than_the_noise_are_both_named() -> None:
    found = judge_account(account({"input": 40.2, "launch": 39.8, "device_compute": 20}, error=1.0))

    assert found.between == ("input_bound", "launch_bound")


def test_the_sentence_names_the_culprit_and_that_the_device_is_idle() -> None:
    trace = draw(
        """
        host main | Z------------------------------
        host main |  M0------    M1------    M2
        host main |  L1S- I------L2S- I------L3
        host main |        Q----       Q----
        host main |        Y----       Y----
        gpu0 s    |    K1          K2
        """,
        {"S": SYNC, "Y": ITEM, "Q": LOADER, "Z": LOOP},
    )
    found = account_of(trace)
    assert found is not None
    verdict = judge_account(found)

    assert verdict.name == "input_bound"
    assert verdict.sentence == (
        "highly input-bound: 58.3 % of each step is input, while the GPU is idle; most of it is "
        "`train.py:9 __getitem__` (1 call of 5.00 ms, 41.7 % of the step)"
    )
