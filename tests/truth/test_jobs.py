"""Simulated jobs of many ranks: the rules of the simulator, the schedules of its pipelines, its faults and traces."""

import collections
import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stepscope
from stepscope.analysis.steps.find_steps import steps_of

plans = pytest.importorskip("bench.jobs.plan", reason="the bench is in the checkout alone")
faults = pytest.importorskip("bench.jobs.faults")
damage = pytest.importorskip("bench.jobs.damage")
simulate = pytest.importorskip("bench.jobs.simulate")
make_job = pytest.importorskip("bench.jobs.__main__").make_job

LAUNCH, ARRIVAL, GAP = simulate.LAUNCH_US, simulate.ARRIVAL_US, simulate.GAP_US
FIRST = LAUNCH + ARRIVAL + GAP  # when the first work of an idle stream starts


# ---- schedules -------------------------------------------------------------------------------------------------------

SLOT = plans.ATTENTION_US + plans.MLP_US  # forward of one layer; backward takes two, or one and one
IDEAL = plans.Job(steps=1, layers=1, noise=0.0)


def new_ranks(count, **options):
    graph = simulate.Graph()
    return graph, *(simulate.Process(graph, rank, **options) for rank in range(count))


def kernel_times(graph, *processes):
    """Start and end of each process's kernels, in us."""
    times = graph.times(np.array(graph.span)[:, None])[:, 0]
    return [times[[one[2:4] for one in process.records if one.what == "kernel"]] for process in processes]


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize(
    ("kind", "slots"),
    [
        pytest.param("1f1b", lambda p, m: 3 * (m + p - 1), id="1F1B: a bubble of p - 1 microbatches"),
        pytest.param("interleaved", lambda p, m: 3 * (2 * m + p - 1), id="interleaved: half of that, of two chunks"),
        pytest.param("zb", lambda p, m: 3 * m + p - 1, id="ZB-H1: a third of it"),
    ],
)
@pytest.mark.parametrize("microbatches", [4, 8])
def test_a_pipeline_takes_as_long_as_its_paper_says(kind, slots, microbatches, batched):
    plan = plans.build_plan(replace(IDEAL, kind=kind, microbatches=microbatches, batched=batched))
    assert plan.steps_us(layers_alone(plan)[:, None])[0, 0] == pytest.approx(SLOT * slots(4, microbatches))


def layers_alone(plan):
    """Spans in which only layers take time."""
    columns, spans = plan.columns, np.zeros(len(plan.graph.span))
    nodes = columns["node"][np.isin(columns["kind"], ("forward", "backward", "weight"))]
    spans[nodes] = np.array(plan.graph.span)[nodes]
    return np.where(spans == plans.EMBEDDING_US, 0.0, spans)


@pytest.mark.parametrize("kind", plans.KINDS)
def test_no_job_blocks_itself(kind):
    for world in (8, 16):
        for batched in (True, False):
            plans.build_plan(plans.Job(kind, world, steps=1, batched=batched)).graph.levels()


# ---- faults ----------------------------------------------------------------------------------------------------------

SMALL = plans.Job("1f1b", steps=2, microbatches=4, layers=1)


@pytest.mark.parametrize("fault", faults.FAULTS)
def test_a_fault_slows_the_job_down_as_asked(fault):
    job = replace(SMALL, fault=fault, layers=4 if fault == "layers" else 1)
    truth = faults.tell_truth(*_planted(job))
    assert truth["fault_slowdown"] == pytest.approx(1.3, abs=0.1 if fault == "layers" else 0.03)


def test_a_healthy_job_gains_nothing_from_equal_work():
    for kind in plans.KINDS:
        assert faults.tell_truth(*_planted(replace(SMALL, kind=kind)))["slowdown"] == pytest.approx(1.0, abs=0.03)


def test_the_last_stage_explains_a_loss_that_is_too_long_and_no_worker_does():
    truth = faults.tell_truth(*_planted(replace(SMALL, fault="stages")))
    slow = truth["slowdown_of_stage"]
    assert max(slow, key=slow.get) == 3
    assert truth["explained_by_last_stage"] > 0.9 > truth["explained_by_worst_worker"]


def _planted(job):
    plan = plans.build_plan(job)
    return plan, faults.plant_fault(plan)


# ---- traces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [True, False])
def test_traces_hold_the_steps_as_they_were_simulated(tmp_path, batched):
    truth = make_job(tmp_path, replace(SMALL, batched=batched, fault="link"))
    profile = stepscope.load(tmp_path)
    steps = [steps_of(profile.trace(host)) for host in profile.hosts]
    longest = np.max([each.end_ps - each.start_ps for each in steps], axis=0) / 1e9
    assert longest == pytest.approx(truth["step_ms"], rel=0.01)
    assert json.loads((tmp_path / "truth.json").read_text())["fault"]["ranks"] == list(truth["fault"]["ranks"])


# ---- a recorded job --------------------------------------------------------------------------------------------------

RANKS = Path(__file__).parents[3] / "shared" / "ranks"


@pytest.mark.skipif(not RANKS.exists(), reason="the recorded ranks are not here")
def test_a_recorded_pipeline_job_takes_as_long_as_it_did(tmp_path):
    pytest.importorskip("pyarrow")
    command = [sys.executable, RANKS / "convert.py", RANKS / "trace-ST.parquet", tmp_path, "--steps", "3"]
    recorded = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["recorded_s"]
    ranks = [json.loads(gzip.decompress(path.read_bytes())) for path in sorted(tmp_path.glob("*.gz"))]
    graph, transfers = simulate.Graph(), shortest_transfers(ranks)
    ends = [call_again(simulate.Process(graph, at), trace, transfers) for at, trace in enumerate(ranks)]
    times = graph.times(np.array(graph.span)[:, None])[:, 0]
    steps_us = np.diff(times[np.array(ends)].max(axis=0), prepend=0.0)
    assert steps_us.mean() / 1e6 == pytest.approx(recorded, rel=0.03)


def events_of(trace, category):
    return {one["args"]["correlation"]: one for one in trace["traceEvents"] if one.get("cat") == category}


def shortest_transfers(ranks):
    """How long each meeting of a group takes once all are there: its shortest kernel, whose rank came last."""
    found, count = {}, collections.Counter()
    for rank, trace in enumerate(ranks):
        for one in events_of(trace, "kernel").values():
            if group := one["args"].get("Process Group Name"):
                key = group, count[rank, group]
                found[key] = min(one["dur"], found.get(key, one["dur"]))
                count[rank, group] += 1
    return found


def call_again(process, trace, transfers):
    """Makes the calls that were recorded; the nodes at which the host has waited for its device."""
    kernels, waits, count, ends = events_of(trace, "kernel"), events_of(trace, "cuda_sync"), collections.Counter(), []
    for number, call in events_of(trace, "cuda_runtime").items():
        if one := kernels.get(number):
            group = one["args"].get("Process Group Name")
            if group is None:
                process.kernel(one["tid"], one["name"], one["dur"])
                continue
            process.collective(one["tid"], group, one["name"], transfers[group, count[group]], {})
            count[group] += 1
        elif number in waits:
            process.order(waits[number]["args"]["wait_on_stream"], waits[number]["args"]["stream"])
        elif call["name"] == "cudaDeviceSynchronize":
            for stream in sorted({each["tid"] for each in kernels.values()}):
                process.synchronize(stream)
            ends.append(process.host_at)
    return ends


def test_a_stream_keeps_its_order_and_streams_run_side_by_side():
    graph, rank = new_ranks(1)
    for stream in (7, 7, 8):
        rank.kernel(stream, "gemm", 100.0)
    (found,) = kernel_times(graph, rank)
    third = FIRST + 2 * LAUNCH
    expected = [(FIRST, FIRST + 100), (FIRST + 100 + GAP, FIRST + 200 + GAP), (third, third + 100)]
    assert found == pytest.approx(np.array(expected))


def test_a_stream_waits_for_what_was_recorded_before_not_for_what_came_later():
    graph, rank = new_ranks(1)
    rank.kernel(7, "gemm", 100.0)
    event = rank.record_event(7)
    rank.kernel(7, "gemm", 100.0)
    rank.wait_event(8, event)
    rank.kernel(8, "copy", 10.0)
    assert kernel_times(graph, rank)[0][2] == pytest.approx([FIRST + 100 + GAP, FIRST + 110 + GAP])


def test_an_event_comes_after_what_its_stream_was_told_to_wait_for():
    graph, rank = new_ranks(1)
    rank.kernel(7, "gemm", 100.0)
    rank.wait_event(8, rank.record_event(7))
    rank.wait_event(9, rank.record_event(8))
    rank.kernel(9, "copy", 10.0)
    assert kernel_times(graph, rank)[0][1] == pytest.approx([FIRST + 100 + GAP, FIRST + 110 + GAP])


def test_a_collective_ends_a_transfer_after_its_last_member_has_come():
    graph, early, late = new_ranks(2)
    late.host("slow", 1000.0)
    for rank in (early, late):
        rank.collective(20, "all", "allreduce", 50.0, {})
    found = np.concatenate(kernel_times(graph, early, late))
    assert found == pytest.approx(np.array([(FIRST, FIRST + 1050), (FIRST + 1000, FIRST + 1050)]))


def test_a_batch_of_a_send_and_a_receive_ends_when_both_have_met_their_partners():
    graph, *ranks = new_ranks(3)
    ranks[2].host("slow", 500.0)
    for rank, peers in zip(ranks, ([(True, 1)], [(False, 0), (True, 2)], [(False, 1)]), strict=True):
        rank.exchange(30, "p2p", [simulate.Peer(*peer, "pipe") for peer in peers], 10.0, {})
    found = np.concatenate(kernel_times(graph, *ranks))
    assert found == pytest.approx(FIRST + np.array([(0, 10), (0, 510), (500, 510)]))


def test_the_host_stops_when_the_launch_queue_is_full():
    graph, rank = new_ranks(1, queue=2)
    for _ in range(4):
        rank.kernel(7, "gemm", 100.0)
    times = graph.times(np.array(graph.span)[:, None])[:, 0]
    ends = [times[one.end] for one in rank.records if one.what == "call"]
    assert ends == pytest.approx([LAUNCH, 2 * LAUNCH, FIRST + 100 + LAUNCH, FIRST + 200 + GAP + LAUNCH])


def test_ranks_that_receive_before_they_send_never_end():
    graph, *ranks = new_ranks(2)
    for rank in ranks:
        for is_send in (False, True):
            rank.exchange(30, "p2p", [simulate.Peer(is_send, 1 - rank.rank, "pipe")], 10.0, {})
    with pytest.raises(simulate.DeadlockError):
        graph.levels()


def test_a_last_stage_that_is_twice_as_long_costs_what_it_must():
    plan = plans.build_plan(replace(IDEAL, kind="1f1b", microbatches=4))
    spans = layers_alone(plan)
    spans[plan.columns["node"][plan.columns["rank"] >= 6]] *= 2
    equal = spans.copy()
    equal[plan.columns["node"]] = faults.equal_work(plan, spans)
    recorded, balanced = plan.steps_us(np.stack([spans, equal], axis=1))[0]
    assert recorded == pytest.approx(
        SLOT * ((3 + 3 + 3 + 6) + 3 * 6)
    )  # through all stages, then at the pace of the last
    assert balanced == pytest.approx(SLOT * 1.25 * 3 * (4 + 3))


@pytest.mark.parametrize("how", damage.DAMAGES)
def test_the_other_ranks_of_a_damaged_job_are_answered(tmp_path, how):
    make_job(tmp_path, replace(SMALL, steps=3))
    damage.damage_job(tmp_path, how)
    ranks = {row["rank"] for row in stepscope.load(tmp_path).distributed().rows}
    assert ranks >= set(range(8)) - {2}
