"""What makes a job of many ranks slow, and what equal work would give: simulated jobs, whose truth is known."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from bench.jobs.__main__ import make_job
from bench.jobs.plan import Job
from stepscope.analysis.workers.distributed_tool import DistributedReport


def asked(folder: Path, job: Job) -> tuple[DistributedReport, dict[str, object]]:
    """The report of a job, and its truth."""
    truth = make_job(folder, job)
    report = stepscope.load(folder).report("distributed")
    assert isinstance(report, DistributedReport)
    return report, truth


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("stages", "unequal_stages"),
        ("machine", "slow_machine"),
        ("sequences", "sequence_lengths"),
        ("garbage", "garbage_collection"),
        ("link", "slow_link"),
        ("input", "late_input"),
    ],
)
def test_a_planted_fault_is_named_and_the_slowdown_is_the_true_one(tmp_path: Path, fault: str, cause: str) -> None:
    report, truth = asked(tmp_path, Job(steps=3, microbatches=4, fault=fault))

    assert [row["cause"] for row in report.causes] == [cause]
    assert report.slowdown == pytest.approx(truth["slowdown"], rel=0.03)
    assert report.replay_error_percent is not None
    assert report.replay_error_percent < 3
    if fault == "stages":
        assert (report.causes[0]["stage"], report.slowest_rank) == (3, None)


def test_on_a_healthy_job_nothing_is_named(tmp_path: Path) -> None:
    report, _ = asked(tmp_path, Job(steps=3, microbatches=4))

    assert (report.causes, report.slowest_rank) == ((), None)
    assert all(row["waiting_percent"] <= 100 for row in report.rows)
