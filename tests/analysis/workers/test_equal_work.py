"""What makes a job of many ranks slow, and what equal work would give: simulated jobs, whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import stepscope
from bench.jobs.__main__ import make_job
from bench.jobs.plan import Job
from stepscope.agents.sessions import Sessions
from stepscope.agents.tools import Answers
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
    assert report.job["slowdown"] == pytest.approx(truth["slowdown"], rel=0.03)
    assert report.job["replay_error_percent"] is not None
    assert report.job["replay_error_percent"] < 3
    if fault == "stages":
        assert (report.causes[0]["stage"], report.job["slowest_rank"]) == (3, None)


def test_on_a_healthy_job_nothing_is_named(tmp_path: Path) -> None:
    report, _ = asked(tmp_path, Job(steps=3, microbatches=4))

    assert (report.causes, report.job["slowest_rank"]) == ((), None)
    assert (report.job["explained_by_worst_worker"], report.job["explained_by_last_stage"]) == (
        None,
        None,
    )  # shares of noise
    assert all(row["waiting_percent"] <= 100 for row in report.rows)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("machine", "rank 6"),
        ("stages", "the last pipeline stage"),
        ("layers", "pipeline stage 2 (from 0)"),
    ],
)
def test_every_face_names_the_same_and_the_same_gain(tmp_path: Path, fault: str, said: str) -> None:
    report, _ = asked(tmp_path, Job(steps=3, microbatches=4, slowdown=1.6, fault=fault))
    profile = stepscope.load(tmp_path)
    pods, advised = profile.report("pod-viewer").to_dict(), profile.report("advice").to_dict()["advice"]
    gain = f"with equal work the job would be {report.job['slowdown']:.2f}x as fast"

    [sentence] = pods["findings"]
    assert sentence.startswith(said)
    assert gain in sentence
    assert gain in report.findings[0]
    straggler = next(item for item in advised if item["class"] == "straggler")
    assert straggler["predicted_speedup"] == pytest.approx(report.job["slowdown"], abs=0.006)
    balanced = profile.whatif(balance="ranks").to_dict()
    assert balanced["predicted_speedup"] == pytest.approx(report.job["slowdown"], abs=0.006)
    assert sentence in balanced["reasoning"]
    figures = profile.sql("select slowdown, explained_by_last_stage, replay_error_percent from distributed_job")
    assert list(figures.table.to_pylist()[0].values()) == [
        report.job["slowdown"], report.job["explained_by_last_stage"], report.job["replay_error_percent"],
    ]  # fmt: skip
    server = Answers(Sessions([str(tmp_path)]))
    [session] = [each["session"] for each in server.list_sessions()["sessions"]]
    assert server.describe(session, "distributed")["sentences"][0] == report.findings[0]
    forecast = server.what_if(session, balance="ranks")
    assert forecast["figures"]["predicted_speedup"] == balanced["predicted_speedup"]


@pytest.mark.parametrize(
    ("job", "cause"),
    [
        pytest.param(Job("zb"), [], id="gradients of weights are a pass of their own"),
        pytest.param(Job("zb", fault="sequences"), ["sequence_lengths"], id="of which many follow each other"),
        pytest.param(
            Job(world=32, layers=1, fault="sequences"), ["sequence_lengths"], id="tensor groups meet inside of a pass"
        ),
        pytest.param(Job("context"), [], id="a ring of sends and receives is no pipeline"),
        pytest.param(
            Job("context", world=16, layers=4, fault="link"),
            ["slow_link"],
            id="whose kernels all are as long as the slowest",
        ),
    ],
)
def test_the_slowdown_is_the_true_one_for_other_jobs(tmp_path: Path, job: Job, cause: list[str]) -> None:
    report, truth = asked(tmp_path, replace(job, steps=3, microbatches=4))

    assert [row["cause"] for row in report.causes] == cause
    assert report.job["slowdown"] == pytest.approx(truth["slowdown"], rel=0.01)
    assert (report.job["explained_by_last_stage"] is None) == (job.kind == "context" or not cause)
