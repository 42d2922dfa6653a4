"""What balanced ranks would give: three ranks side by side, which wait for each other in collectives."""

from __future__ import annotations

import pytest
from draw import MS, draw

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import causes_of_steps
from stepscope.analysis.advice.whatif import WhatIfReport, what_if_balanced
from stepscope.analysis.workers.balance import balance
from stepscope.analysis.workers.joint_replay import RankModel, rank_of
from stepscope.errors import UsageError
from stepscope.model import HostTrace

SLOW = """
host main | M0----------M1----------
host main | a---------G-a---------G-
"""
MIDDLE = """
host main | M0----------M1----------
host main | a-----G-----a-----G-----
"""
FAST = """
host main | M0----------M1----------
host main | a-G---------a-G---------
"""


def traces(**pictures: str) -> list[HostTrace]:
    return [draw(picture, host=name) for name, picture in pictures.items()]


def ranks(**pictures: str) -> list[RankModel]:
    return [rank for trace in traces(**pictures) if (rank := rank_of(trace)) is not None]


def report(**pictures: str) -> WhatIfReport:
    return what_if_balanced(ranks(**pictures), {trace.host: causes_of_steps(trace) for trace in traces(**pictures)})


def test_balanced_ranks_each_have_the_mean_of_their_work():
    found = balance(ranks(a=FAST, b=SLOW, c=MIDDLE))
    assert found is not None

    assert (found.ranks, found.steps, found.slowest, found.slowest_steps) == (3, 2, "b", 2)
    assert (found.now_ps, found.then_ps) == (12 * MS, 8 * MS)  # 10 + 2 of communication, then 6 + 2


def test_ranks_that_are_slow_in_turn_gain_as_much():
    turns = [
        "host main | M0----------M1----------\nhost main | a---------G-a-G---------",
        "host main | M0----------M1----------\nhost main | a-G---------a---------G-",
        "host main | M0----------M1----------\nhost main | a-----G-----a-----G-----",
    ]
    found = balance(ranks(**dict(zip("abc", turns, strict=True))))
    assert found is not None

    assert found.then_ps == found.least_ps == found.most_ps == 8 * MS
    assert found.slowest_steps == 1


def test_equal_ranks_gain_nothing():
    found = balance(ranks(a=MIDDLE, b=MIDDLE, c=MIDDLE))
    assert found is not None

    assert found.now_ps == found.then_ps


@pytest.mark.parametrize(
    "pictures",
    [
        {"a": SLOW},
        {"a": SLOW.replace("G", "a"), "b": FAST.replace("G", "a")},
        {"a": SLOW, "b": FAST.replace("M0", "M5").replace("M1", "M6")},
    ],
    ids=["one rank", "no communication", "no common step"],
)
def test_without_ranks_that_meet_nothing_is_predicted(pictures):
    assert balance(ranks(**pictures)) is None
    with pytest.raises(UsageError, match="no two ranks"):
        report(**pictures)


def test_ranks_that_are_late_in_turn_to_the_collectives_of_one_step_gain_though_their_sums_are_equal():
    first = "host main | M0----------M1----------\nhost main | a----G-aG---a----G-aG---"
    second = "host main | M0----------M1----------\nhost main | aG-----a--G-aG-----a--G-"
    found = balance(ranks(a=first, b=second))
    assert found is not None

    # 5 and 1 of work, 2 of communication, then 1 and 3, and 2 again; with 3 and 2 on both it is 9 instead of 12.
    assert (found.now_ps, found.then_ps) == (12 * MS, 9 * MS)


def test_the_report_names_the_slowest_rank():
    found = report(a=FAST, b=SLOW, c=MIDDLE).to_dict()

    assert found["predicted_speedup"] == 1.5
    assert found["changes"][0]["change"] == "balance"
    assert "b waits least in 2 of 2 common steps" in found["reasoning"]
    assert [(row["cause"], row["ms"]) for row in found["critical"]] == [
        (Cause.HOST_COMPUTE.name.lower(), 6.0), (Cause.COMMUNICATION.name.lower(), 2.0),
    ]  # fmt: skip
