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


# ---- the rules -------------------------------------------------------------------------------------------------------


# ---- schedules -------------------------------------------------------------------------------------------------------

SLOT = plans.ATTENTION_US + plans.MLP_US  # forward of one layer; backward takes two, or one and one
IDEAL = plans.Job(steps=1, layers=1, noise=0.0)


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
