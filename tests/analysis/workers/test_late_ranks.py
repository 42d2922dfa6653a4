"""Which rank comes last in a step, and where the others wait: on drawn traces of two ranks whose clocks differ."""

from __future__ import annotations

from draw import MS, Sort, draw

from stepscope.analysis.workers.late_ranks import late_ranks
from stepscope.model import EventKind, HostTrace

REDUCE = {
    "Collective name": "allreduce", "In msg nelems": 1000, "dtype": "Float", "Group size": 2,
    "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
}  # fmt: skip
SORTS = {"N": Sort(EventKind.COLLECTIVE, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "correlation_id", REDUCE)}


def rank(number: int, picture: str) -> HostTrace:
    return draw(picture, SORTS, host=f"rank{number}")


FAST = rank(0, """
    host main | M0--------- M1---------
    host main | L1          L2
    gpu0 s7   | k-          k-
    gpu0 s20  |   N1------    N2---
""")  # fmt: skip
SLOW = rank(1, """
    host main |    M0--------- M1---------
    host main |    L1          L2
    gpu0 s7   |    k-----      k-
    gpu0 s20  |          N1--    N2---
""")  # fmt: skip


def test_the_rank_that_comes_last_is_named_with_its_launch_and_who_waits():
    found = late_ranks([FAST, SLOW], 0)

    assert found.sentence == "In step 0 rank 1 comes last: rank 0 waits 4.00 ms for it in all_reduce"
    (arrival,) = found.arrivals
    assert (arrival.host, arrival.launch_ps // MS, arrival.start_ps // MS) == ("rank1", 3, 9)
    assert [(each.host, each.start_ps // MS, each.waiting_ps // MS) for each in arrival.waiters] == [("rank0", 2, 4)]


def test_without_a_step_it_is_the_one_of_the_first_rank_s_account_and_nobody_may_wait():
    assert late_ranks([FAST, SLOW], 1).sentence == "In step 1 no rank waits for another"
    assert late_ranks([FAST, SLOW]).step in (0, 1)
    assert late_ranks([FAST, SLOW], 7).arrivals == ()
