"""What many ranks show together, against sessions whose truth is known."""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

import pytest
from draw import MS, Sort, draw

import stepscope
from bench.jobs.__main__ import make_job
from bench.jobs.damage import DAMAGES, damage_job
from bench.jobs.plan import Job
from stepscope.analysis.workers.bandwidth import Transfer, bandwidth_rows
from stepscope.analysis.workers.clocks import clock_offsets
from stepscope.analysis.workers.distributed_tool import DistributedReport
from stepscope.analysis.workers.late_ranks import late_ranks
from stepscope.model import EventKind, HostTrace

sessions = pytest.importorskip("bench.sessions", reason="the bench is in the checkout alone")


def made(folder: Path, **about: object) -> tuple[DistributedReport, object]:
    truth = sessions.make_session(folder, sessions.Scenario(steps=9, **about))
    report = stepscope.load(folder).distributed()
    assert isinstance(report, DistributedReport)
    return report, truth


# ---- clocks ----------------------------------------------------------------------------------------------------------


def test_clocks_are_found_to_within_their_uncertainty(tmp_path: Path) -> None:
    report, truth = made(tmp_path, hosts=9, skew_ms=5.0, straggler=2)
    skew_ms = [ns / 1e6 for ns in truth.skew_ns]
    for row in report.clocks:
        expected = skew_ms[row["rank"]] - statistics.median(skew_ms)
        assert row["ahead_ms"] == pytest.approx(expected, abs=max(3 * row["uncertainty_ms"], 1e-3))
        assert 0 < row["uncertainty_ms"] < 0.05
    assert len(report.clocks) == 9
    apart = max(skew_ms) - min(skew_ms)
    [said] = [finding for finding in report.findings if finding.startswith("clocks differ by up to")]
    assert f"up to {apart:.2f} ms" in said or f"up to {apart:.1f}" in said


def test_clocks_that_agree_are_no_finding(tmp_path: Path) -> None:
    report, _ = made(tmp_path, hosts=4)
    assert not [finding for finding in report.findings if "clocks" in finding]
    assert all(abs(row["ahead_ms"]) < 0.1 for row in report.clocks)


def test_ranks_without_a_clock_or_enough_collectives_are_unknown() -> None:
    ends = [{0: 5 * MS, 1: 5 * MS, 2: 5 * MS}] * 4
    assert clock_offsets([10**18, None, 10**18 + 2_000_000], ends)[1] is None
    [first, _, last] = clock_offsets([10**18, None, 10**18 + 2_000_000], ends)
    assert first is not None
    assert last is not None
    assert (last.offset_ps - first.offset_ps, last.uncertainty_ps, last.collectives) == (2 * MS, 0, 4)
    assert clock_offsets([10**18] * 3, ends[:2]) == [None] * 3
    assert clock_offsets([None] * 3, ends) == [None] * 3


# ---- ranks -----------------------------------------------------------------------------------------------------------


def test_a_straggler_is_named_and_holds_up_the_others(tmp_path: Path) -> None:
    report, _ = made(tmp_path, hosts=9, straggler=6)
    assert report.job["slowest_rank"] == "rank 6"
    held_up = {row["step"]: row["held_up_ms"] for row in report.steps if row["rank"] == 6}
    assert len(held_up) == 9
    assert all(ms == pytest.approx(20, abs=1) for ms in held_up.values())


def test_a_slow_link_makes_the_transfer_longer_and_no_rank_a_straggler(tmp_path: Path) -> None:
    usual, _ = made(tmp_path / "usual", hosts=4)
    slow, _ = made(tmp_path / "slow", hosts=4, slow_link=3.0)
    assert slow.job["slowest_rank"] is None
    for one, other in zip(usual.bandwidth, slow.bandwidth, strict=True):
        assert other["bus_gb_per_s"] == pytest.approx(one["bus_gb_per_s"] / 3, rel=0.05)


# ---- bandwidth -------------------------------------------------------------------------------------------------------


def test_bandwidth_by_operation_algorithm_and_power_of_two() -> None:
    mb = 10**6
    rows = list(
        bandwidth_rows(
            [
                Transfer("all_reduce", "ring, LL", 4 * mb, 2, 1 * MS),
                Transfer("all_reduce", "ring, LL", 4 * mb, 2, 2 * MS),
                Transfer("all_reduce", "tree, LL", 4 * mb, 2, 1 * MS),
                Transfer("all_reduce", "ring, LL", 5 * mb, 2, 1 * MS),
                Transfer("broadcast", "", 0, 2, 1 * MS),  # of unknown size
            ]
        )
    )
    assert [(row["operation"], row["algorithm"], row["least_bytes"], row["count"]) for row in rows] == [
        ("all_reduce", "ring, LL", 1 << 21, 2),
        ("all_reduce", "ring, LL", 1 << 22, 1),
        ("all_reduce", "tree, LL", 1 << 21, 1),
    ]
    assert (rows[0]["least_gb_per_s"], rows[0]["bus_gb_per_s"], rows[0]["most_gb_per_s"]) == (2.0, 3.0, 4.0)


# -- jobs whose files were damaged on their way: each damage is named and counted, and the rest is answered -----------


SAID = {
    "one rank missing": "only 7 of 8 ranks are present",
    "one file cut": "step 3 by 7 of 8 ranks; the other ones",
    "one rank stopped early": "step 2 by 7 of 8 ranks, step 3 by 7 of 8 ranks; the other ones",
    "ranks recorded different steps": "step 0 by 4 of 8 ranks, step 3 by 4 of 8 ranks; the other ones",
    "another world size": "rank 7 is of a job of 512 ranks, the others of one of 8",
    "one rank twice": "rank 0 appears twice",
    "no groups on one rank": "rank 7 recorded no process groups: 52 collectives are in those of ranks that list it",
    "an unknown collective": "32 collectives are of an unknown operation, permute_blocks",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A job whose last stage is too long, and its slowdown."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, float(str(make_job(folder, Job(fault="stages"))["slowdown"]))


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damage_is_named_and_the_cause_is_still_found(whole: tuple[Path, float], tmp_path: Path, how: str) -> None:
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    damage_job(tmp_path, how)
    report = stepscope.load(tmp_path).distributed().to_dict()

    assert any(SAID[how] in warning for warning in report["warnings"])
    assert [(row["cause"], row["stage"], row["ranks"]) for row in report["causes"]] == [("unequal_stages", 3, [6, 7])]
    assert report["slowdown"] == pytest.approx(whole[1], rel=0.02)


# -- which rank comes last in a step, and where the others wait: two ranks whose clocks differ ------------------------


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
