"""Long steps that come again are part of the loop; those in which the same takes longer have stalled."""

from __future__ import annotations

import pytest
from draw import Sort, draw
from reporting import overview_of

from stepscope.analysis.account.account import account_of
from stepscope.model import EventKind as K
from stepscope.model import HostTrace

SORTS = {"S": Sort(K.CHECKPOINT, "save"), "a": Sort(K.OP, "aten::mm"), "Y": Sort(K.PYTHON_CALL, "/x/plots.py(7): draw")}
_WORK = {
    "u": "a-----------",  # a usual step
    "s": "a-----------S-----------------------",  # saves as well
    "t": "a-----------a-----------a-----------a-----------",  # trains another model as well
    "y": "a-----------Y-----------------------",  # draws a picture as well
    "o": "a-----------------------------------",  # its op takes longer
    "p": "a-----------                        ",  # nothing that was recorded
}


def loop(kinds: str) -> HostTrace:
    """Steps in a row, a letter each."""
    steps = [_WORK[each] for each in kinds]
    marks = "".join(f"M{number}".ljust(len(work), "-") for number, work in enumerate(steps))
    return draw(f"host main | {marks}\nhost main | {''.join(steps)}", SORTS)


@pytest.mark.parametrize(
    ("kinds", "numbers", "every", "cause", "name"),
    [
        ("uuuusuuuusuu", (4, 9), 5, "checkpoint", ""),
        ("suuusuuus", (0, 4, 8), 4, "checkpoint", ""),
        ("uusususuuuuu", (2, 4, 6), None, "checkpoint", ""),  # it would have come at the end, too
        ("uutuuutuuutu", (2, 6, 10), 4, "host_compute", ""),
        ("uyuuuyuuuyuu", (1, 5, 9), 4, "python", "draw"),
        ("uuuosuuuusuu", (4, 9), 5, "checkpoint", ""),  # one stalls as well
    ],
)
def test_steps_that_do_more_than_the_others_come_again(
    kinds: str, numbers: tuple[int, ...], every: int | None, cause: str, name: str
) -> None:
    account = account_of(loop(kinds))

    assert account is not None
    assert account.long_steps is not None
    assert account.long_steps.numbers == numbers
    assert (account.long_steps.every, account.long_steps.cause, account.long_steps.name) == (every, cause, name)


@pytest.mark.parametrize("kinds", ["uuuusuuuuu", "uuouuuouuuou", "uupuuupuuupu", "uuuuuuuuuu", "uuuosuuu"])
def test_steps_that_stall_or_come_once_do_not(kinds: str) -> None:
    account = account_of(loop(kinds))

    assert account is not None
    assert account.long_steps is None


def test_what_comes_again_counts_in_the_average_and_is_named() -> None:
    report = overview_of(loop("uuuusuuuusuuuusuuuus"))
    (time,) = [line for line in report.summary_lines() if line.startswith("step time")]
    (goes,) = [line for line in report.summary_lines() if line.startswith("goes to")]

    assert time.endswith("Every 5th step (4, 9, 14, 19) does more: saving or restoring state")
    assert goes == "goes to    host compute 71.4 %, checkpoint 28.6 %"
    assert (
        report.verdict.sentence
        == "compute-bound: 71.4 % of the average step is computation on the host, mostly `aten::mm`"
    )
    assert report.advice[0].kind == "checkpoint_stall"
    assert report.account is not None
    assert [row.cause for row in report.account.rows] == ["host_compute"]  # of the median step
