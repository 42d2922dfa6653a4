"""What balanced ranks would give: three ranks side by side, which wait for each other in collectives."""

from __future__ import annotations

import pytest
from draw import MS, draw

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import CausesOfStep, causes_of_steps
from stepscope.analysis.advice.whatif import what_if_balanced
from stepscope.analysis.workers.balance import balance_ranks, relieve_rank
from stepscope.errors import UsageError

SLOW = """
host main | M0----------M1----------
host main | aaaaaaaaaaG-aaaaaaaaaaG-
"""
MIDDLE = """
host main | M0----------M1----------
host main | aaaaaaG-----aaaaaaG-----
"""
FAST = """
host main | M0----------M1----------
host main | aaG---------aaG---------
"""


def ranks(**pictures: str) -> dict[str, list[CausesOfStep]]:
    return {name: causes_of_steps(draw(picture, host=name)) for name, picture in pictures.items()}


def test_balanced_ranks_each_have_the_mean_of_their_work():
    found = balance_ranks(ranks(a=FAST, b=SLOW, c=MIDDLE))
    assert found is not None

    assert (found.ranks, found.steps, found.slowest, found.slowest_steps) == (3, 2, "b", 2)
    assert (found.now_ps, found.then_ps) == (12 * MS, 8 * MS)  # 10 + 2 of communication, then 6 + 2
    assert found.causes == {"host_compute": 6 * MS, "communication": 2 * MS}


def test_ranks_that_are_slow_in_turn_gain_as_much_and_the_range_says_so():
    turns = [
        "host main | M0----------M1----------\nhost main | aaaaaaaaaaG-aaG---------",
        "host main | M0----------M1----------\nhost main | aaG---------aaaaaaaaaaG-",
        "host main | M0----------M1----------\nhost main | aaaaaaG-----aaaaaaG-----",
    ]
    found = balance_ranks(ranks(**dict(zip("abc", turns, strict=True))))
    assert found is not None

    assert found.then_ps == found.least_ps == found.most_ps == 8 * MS
    assert found.slowest_steps == 1


def test_a_rank_without_its_extra_work_leaves_the_pace_to_the_busiest_of_the_others():
    found = relieve_rank(ranks(a=FAST, b=SLOW, c=MIDDLE), "b")
    assert found is not None

    assert (found.now_ps, found.then_ps) == (12 * MS, 8 * MS)  # 10 + 2 of communication, then 6 + 2
    unchanged = relieve_rank(ranks(a=FAST, b=SLOW, c=MIDDLE), "a")
    assert unchanged is not None
    assert unchanged.then_ps == unchanged.now_ps


def test_equal_ranks_gain_nothing():
    found = balance_ranks(ranks(a=MIDDLE, b=MIDDLE, c=MIDDLE))
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
def test_without_ranks_that_meet_nothing_is_foretold(pictures):
    assert balance_ranks(ranks(**pictures)) is None
    with pytest.raises(UsageError, match="no two ranks"):
        what_if_balanced(ranks(**pictures))


def test_the_report_names_the_slowest_rank():
    report = what_if_balanced(ranks(a=FAST, b=SLOW, c=MIDDLE)).to_dict()

    assert report["predicted_speedup"] == 1.5
    assert report["changes"][0]["change"] == "balance"
    assert "b is the slowest in 2 of 2 common steps" in report["reasoning"]
    assert [row["cause"] for row in report["critical"]] == [
        Cause.HOST_COMPUTE.name.lower(), Cause.COMMUNICATION.name.lower(),
    ]  # fmt: skip
