"""What a change gives a job of several ranks, each of which is replayed by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.analysis.account.predict import Predicted
from stepscope.analysis.advice.rule import predict_change
from stepscope.analysis.facts.changes import Changes

MS = 10**9


def rank(title: str, then_ms: int, waits_ms: int) -> Any:
    """A rank whose steps of 10 ms take so long without launches, with so much communication in that."""
    causes = {"host_compute": (then_ms - waits_ms) * MS, "communication": waits_ms * MS}
    then = Predicted(10 * MS, then_ms * MS, then_ms * MS, then_ms * MS, causes, (), {})
    return SimpleNamespace(
        rank=SimpleNamespace(title=title),
        account=SimpleNamespace(step_ps=10 * MS, gained_ps=10 * MS, rows=(), is_median=True),
        changes=Changes({"launch": then}, None, True),
    )


@pytest.mark.parametrize(
    ("waits_ms", "then_ms", "said"),
    [
        (1, 6, "rank 1 sets the pace then, whose own work takes so long"),
        (5, 4, "the rank that sets the pace was replayed alone"),
    ],
)
def test_a_step_is_no_shorter_than_what_the_slowest_other_rank_works(waits_ms: int, then_ms: int, said: str):
    hosts = [rank("rank 0", 4, 0), rank("rank 1", 7, waits_ms)]
    context: Any = SimpleNamespace(
        hosts=hosts, pace=hosts[0], changes=hosts[0].changes, account=hosts[0].account, period_ms=10.0
    )
    gain = predict_change(context, "launch", 6.0, "launching")

    assert (gain.now_ms, gain.then_ms, gain.least_ms, gain.most_ms) == (10, then_ms, then_ms, then_ms)
    assert said in gain.reasoning
