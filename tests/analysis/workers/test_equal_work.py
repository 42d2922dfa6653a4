"""What makes a job of many ranks slow, and what equal work would give: simulated jobs, whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from draw import MS, Sort, draw

import stepscope
from bench.jobs.__main__ import make_job
from bench.jobs.plan import Job
from stepscope.agents.sessions import Sessions
from stepscope.agents.tools import Answers
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import causes_of_steps
from stepscope.analysis.account.graph import NodeKind
from stepscope.analysis.account.model import model_of
from stepscope.analysis.advice.whatif import WhatIfReport, what_if_balanced
from stepscope.analysis.workers.balance import balance
from stepscope.analysis.workers.distributed_tool import DistributedReport
from stepscope.analysis.workers.joint_replay import RankModel, rank_of
from stepscope.analysis.workers.work_kinds import kinds_of_nodes
from stepscope.errors import UsageError
from stepscope.model import EventKind as K
from stepscope.model import HostTrace


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


# -- what balanced ranks would give: three ranks side by side, which wait for each other in collectives ---------------


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


@pytest.mark.parametrize(
    ("first", "steps"),
    [("      M0--aG--", 3), ("M0--------aG--------", 4)],
    ids=["began to record late", "began with the other"],
)
def test_a_step_in_which_one_rank_began_to_record_late_says_nothing_of_equal_work(first: str, steps: int):
    """Its own first step is all that it saw of it: four of the ten in which the other worked."""
    numbers = "".join(f"M{step}--------" for step in (1, 2, 3))
    marks, work = (first[:10], "      " + first[10:]) if steps == 3 else (first[:10], first[10:])
    fast = f"host main | {marks}{numbers}\nhost main | {work}{'aG--------' * 3}"
    slow = f"host main | M0--------{numbers}\nhost main | {'a------G--' * 4}"
    found = balance(ranks(a=slow, b=fast))
    assert found is not None

    assert (found.steps, found.now_ps, found.then_ps) == (steps, 10 * MS, 7 * MS)
    assert found.most_ps == 7 * MS


def test_a_wait_that_one_step_does_not_show_hides_no_rank_that_is_late():
    """The thread of `b` is silent before the last collective, which is recorded as short: as if it were late itself."""
    marks = "".join(f"M{step}--------" for step in range(4))
    late = f"host main | {marks}\nhost main | {'a      G--' * 4}"
    early = f"host main | {marks}\nhost main | {'aG--------' * 3}a      G--"
    found = balance(ranks(a=late, b=early))
    assert found is not None

    assert (found.slowest, found.slowest_steps, found.now_ps) == ("a", 4, 10 * MS)
    assert found.then_ps == pytest.approx(4 * MS, rel=0.1)


def test_a_step_in_which_a_collective_was_not_recorded_says_nothing_of_equal_work():
    """In the second step `b` waits and shows it not, in the third `a` has none that `b` could have waited for."""
    marks = "".join(f"M{step}--------" for step in range(5))
    late = f"host main | {marks}\nhost main | {'a      G--' * 2}a         {'a      G--' * 2}"
    early = f"host main | {marks}\nhost main | aG--------a         {'aG--------' * 3}"
    found = balance(ranks(a=late, b=early))
    assert found is not None

    assert (found.steps, found.slowest, found.now_ps, found.then_ps) == (3, "a", 10 * MS, 4 * MS)


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


# -- which pass of training each kernel is of: by ranges around launches, by names, by what launched it ---------------


RANGES = {
    "I": Sort(K.ANNOTATION, "PP:0I1"),
    "W": Sort(K.ANNOTATION, "PP:0W1"),
    "k": Sort(K.KERNEL, "gemm", "correlation_id"),
    "d": Sort(K.KERNEL, "gemm_dgrad", "correlation_id"),
    "w": Sort(K.KERNEL, "gemm_wgrad", "correlation_id"),
}
BY_RANGE = """
host main | M0--------------M1--------------
host main | I---W-----      I---W-----
host side | L1L2L3L4L5S-----L6L7L8L9L0S-----
gpu0 s7   |   k1k2k3k4k5      k6k7k8k9k0
"""
BY_NAME = """
host main | M0--------------M1--------------
host side | L1L2L3L4L5S-----L6L7L8L9L0S-----
gpu0 s7   |   d1d2w3w4w5      d6d7w8w9w0
"""
LAYER_BY_LAYER = """
host main | M0--------------M1--------------
host side | L1L2L3L4L5S-----L6L7L8L9L0S-----
gpu0 s7   |   d1w2d3w4w5      d6w7d8w9w0
"""


@pytest.mark.parametrize(
    ("picture", "first_step"),
    [(BY_RANGE, "bbwww"), (BY_NAME, "bbwww"), (LAYER_BY_LAYER, "bbbbb")],
    ids=["ranges of a pipeline's schedule", "names of kernels", "weights of one layer after the other"],
)
def test_gradients_of_weights_are_a_pass_of_their_own_where_many_come_in_a_row(picture: str, first_step: str) -> None:
    model = model_of(draw(picture, RANGES))
    assert model is not None
    names, kind = kinds_of_nodes(model)
    kernels = np.flatnonzero(model.graph.kind == NodeKind.WORK)
    assert "".join(names[at][0] for at in kind[kernels].tolist())[:5] == first_step


@pytest.mark.parametrize("runs", ["k", "N"])
def test_a_silent_thread_is_of_one_kind_whatever_the_device_does_meanwhile(runs: str) -> None:
    sorts = {"N": Sort(K.COLLECTIVE, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")}
    model = model_of(draw(f"host main | M0--------M1--------\ngpu0 s7   | {runs}------- {runs}-------", sorts))
    assert model is not None
    names, kind = kinds_of_nodes(model)
    threads = np.flatnonzero((model.graph.kind == NodeKind.SEGMENT) & (model.graph.own_ps > 0))
    assert {names[at] for at in kind[threads].tolist()} == {"unknown"}
