"""What a profile that lacks a part is said to show: one story each, in plain words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import Sort, draw
from reporting import overview_of

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.account_text import judge_account
from stepscope.model import EventKind as K

SORTS = {"S": Sort(K.SYNC, "cudaStreamSynchronize")}
STORIES = {
    "no steps": (
        "host main | a-b--- c-d",
        "compute-bound: 90.0 % of the capture is computation on the host",
        "less sure than usual, as no steps were found",
    ),
    "one step": (
        "host main | M0--------\nhost main | a--b------",
        "compute-bound: 100.0 % of each step is computation on the host, mostly `b`",
        "only one step was recorded, so how much steps differ is unknown",
    ),
    "no host side": (
        "gpu0 s | K1--K2--K1--K2--K1--K2--K1--K2--",
        "compute-bound: 100.0 % of each step is computation on the device, mostly `kernel`",
        "100.0 % of each step is computation on the device: `kernel`",
    ),
    "no device side": (
        "host main | M0------M1------M2------\nhost main | L1-S----L2-S----L3-S----\ngpu0 s |",
        "unknown: 62.5 % of each step is waiting for unrecorded devices, mostly `cudaStreamSynchronize`",
        "62.5 % of each step is waiting for unrecorded devices: `cudaStreamSynchronize`",
    ),
}
MISSING = {"no steps": "step marks", "no host side": "host activity", "no device side": "device activity"}


@pytest.mark.parametrize("name", STORIES)
def test_a_profile_that_lacks_a_part_has_one_story(name: str) -> None:
    picture, headline, evidence = STORIES[name]
    report = overview_of(draw(picture, SORTS))

    assert report.verdict.sentence == headline
    assert evidence in report.verdict.evidence
    assert MISSING.get(name, "step marks") in [item.what for item in report.missing] or name == "one step"


def test_nothing_that_takes_time_has_no_verdict() -> None:
    assert overview_of(draw("host main |")).verdict.sentence == "unknown: no steps in this profile take time"


def test_a_rank_without_steps_does_not_speak_for_one_that_has_some() -> None:
    """The capture of the rank without steps is longer than any step of the other."""
    steps = draw("host main | M0--------M1--------M2\nhost main | a---------a---------")
    report = overview_of(replace(draw("host main | a-b--- c-d-------------"), host="other"), steps)

    assert report.account is not None
    assert (report.account.host, report.account.has_steps) == (steps.host, True)


def test_a_replay_that_is_far_off_makes_the_verdict_less_sure_and_stays_out_of_the_headline() -> None:
    account = account_of(draw("host main | M0---M1---\nhost main | a----a----"))
    assert account is not None
    off = "the replayed step differs from the recorded one by 24.3 %; the limit is 10 %"
    verdict = judge_account(replace(account, why_not=off))

    assert verdict.sentence == "compute-bound: 100.0 % of each step is computation on the host, mostly `a`"
    assert f"less sure than usual, as {off}" in verdict.evidence
