"""What a watch takes of its job: each part of it spends only what the budget pays for.  Time is a number here."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from stepscope.capture import files
from stepscope.capture.tracers import ranges
from stepscope.capture.tracers.host import HostTracer
from stepscope.capture.watching.baseline import Baseline
from stepscope.capture.watching.budget import SHARE, WatchBudget
from stepscope.capture.watching.options import WatchOptions
from stepscope.capture.watching.ring import Ring, Thinner
from stepscope.capture.watching.sampler import RingSampler
from stepscope.capture.watching.steps import StepFollower, Usage
from stepscope.formats.spool.layout import QUEUED_NS, RAN_NS
from stepscope.formats.spool.reader import read as read_spool
from stepscope.model import EventKind

SECOND = 1_000_000_000
MS = 1_000_000


class Job:
    """A job whose clock and processor time are set by the test.

    Attributes:
        now_s: the clock.
        used_s: the processor time of the thread of the watch that runs.
        open_since_s: when the open step started; 0 for none.
    """

    def __init__(self, percent=1.0, hook_share=0.0, queued_share=0.0):
        self.now_s, self.used_s, self.open_since_s = 100.0, 0.0, 0.0
        self.budget = WatchBudget(
            percent,
            hook_ns=lambda: round(hook_share * (self.now_s - 100) * SECOND),
            queued_ns=lambda: round(queued_share * self.now_s * SECOND),
            clock=lambda: self.now_s,
            thread_ns=lambda: round(self.used_s * SECOND),
        )

    @property
    def spent_part(self):
        return self.budget.spent_s / (self.now_s - 100)


class PricedSampler(RingSampler):
    """A sampler whose samples cost what the test says, and whose looks cost nothing but waking up."""

    def __init__(self, job, sample_s, median_ms=20):
        usual = SimpleNamespace(median_ns=median_ms * MS, high_ns=median_ms * MS, never_slow_ns=3 * median_ms * MS)
        steps = SimpleNamespace(thread_number=1, usual=usual, open_since_ns=0)
        super().__init__(steps, 10.0, job.budget)
        self.job, self.sample_cost_s, self.samples = job, sample_s, []
        self._clock = lambda: round(job.now_s * SECOND)

    def sample(self):
        self.samples.append(self.job.now_s)
        self.job.used_s += self.sample_cost_s

    def run(self, seconds):
        end_s = self.job.now_s + seconds
        while self.job.now_s < end_s:
            self._steps.open_since_ns = round(self.job.open_since_s * SECOND)
            wait_s = self._tick()
            assert wait_s > 0
            self.job.now_s += wait_s


def test_cheap_samples_are_taken_at_the_full_rate():
    job = Job()
    sampler = PricedSampler(job, sample_s=0.00005)
    sampler.run(600)

    assert len(sampler.samples) == pytest.approx(6000, rel=0.02)
    assert job.spent_part < SHARE / 100


@pytest.mark.parametrize("sample_s", [0.0005, 0.005, 0.05, 0.5], ids=lambda value: f"{1000 * value:g} ms")
def test_the_more_a_sample_costs_the_fewer_are_taken_and_the_budget_is_kept(sample_s):
    """Many threads with deep stacks: a sample takes long."""
    job = Job()
    sampler = PricedSampler(job, sample_s)
    sampler.run(1200)

    assert len(sampler.samples) >= 2
    assert job.spent_part <= SHARE / 100 + sample_s / 1200  # it is known only after the sample that it was too much
    assert len(sampler.samples) <= 1200 * SHARE / 100 / sample_s + 1


def test_what_the_steps_take_leaves_less_for_samples():
    alone, beside = (PricedSampler(Job(hook_share=share), sample_s=0.001) for share in (0.0, 0.002))
    alone.run(600)
    beside.run(600)

    assert beside.job.spent_part <= SHARE / 100 + 0.0001
    assert 0 < len(beside.samples) < 0.7 * len(alone.samples)


def test_where_the_steps_alone_take_the_budget_few_samples_are_left():
    """The first sentence of a slow step needs them; short steps, which cost so much, have few other uses of a watch."""
    sampler = PricedSampler(Job(hook_share=0.02), sample_s=0.001)
    sampler.run(1200)

    assert len(sampler.samples) > 100
    assert sampler.job.spent_part - 0.02 <= SHARE / 400 + 0.0002  # and what waking up costs


def test_a_job_that_gets_a_third_of_a_processor_is_sampled_a_third_as_often():
    whole, third = (PricedSampler(Job(queued_share=share), sample_s=0.002) for share in (0.0, 2 / 3))
    whole.run(600)
    third.run(600)

    assert len(third.samples) < 0.4 * len(whole.samples)


def test_without_a_budget_nothing_is_sampled():
    sampler = PricedSampler(Job(percent=0), sample_s=0.0001)
    sampler.run(100)

    assert sampler.samples == []


def sample_slow_step(job, sampler, seconds):
    """The times of the samples that a step gets which lasts so long."""
    before = len(sampler.samples)
    job.open_since_s = job.now_s
    sampler.run(seconds)
    job.open_since_s = 0.0
    return sampler.samples[before:]


def test_a_part_of_the_budget_is_kept_for_a_step_that_is_overdue():
    job = Job()
    sampler = PricedSampler(job, sample_s=0.002)
    sampler.run(600)
    before, start_s = len(sampler.samples), job.now_s
    during = sample_slow_step(job, sampler, 1.0)
    sampler.run(600)

    assert before < 2000  # of 6000: on time, it cannot afford its full rate
    assert len(during) >= 10
    assert during[0] - start_s < 0.2
    assert job.spent_part <= SHARE / 100 + 0.0001


def test_a_slow_step_is_sampled_though_the_budget_is_spent_for_a_small_part_of_its_length():
    """Its cause would be unknown otherwise."""
    job = Job(hook_share=0.02)
    sampler = PricedSampler(job, sample_s=0.001)
    sampler.run(600)
    start_s = job.now_s
    during = sample_slow_step(job, sampler, 0.5)

    assert 3 <= len(during) <= 20  # of 25: what was kept back, and 2 % of half a second
    assert during[0] - start_s < 0.2


def test_samples_of_a_slow_step_are_few_where_each_is_expensive():
    job = Job(hook_share=0.02)
    sampler = PricedSampler(job, sample_s=0.05)
    sampler.run(600)
    before = len(sampler.samples)
    job.open_since_s = job.now_s
    sampler.run(60)

    assert 1 <= len(sampler.samples) - before <= 60 * 0.02 / 0.05


def test_a_long_debt_is_forgiven():
    """Short steps cost more than the budget; when they end, the watch does not rest for as long."""
    job = Job()
    job.used_s = 100.0  # taken within a moment
    job.budget.note_thread("sampler")

    assert 200 < job.budget.debt_s <= 300


def test_annotations_that_are_too_many_are_left_out_and_marks_of_steps_are_kept():
    job, tracer = Job(), HostTracer()
    thinner = Thinner(tracer.annotate)
    recorded = 0
    for _ in range(600):
        job.now_s += 1.0
        if thinner.annotate("layer", {}) is not ranges.NOTHING:
            recorded += 1
            job.budget.note_spans(3000)
        with thinner.annotate("train", {"step_num": 1}):
            pass
        thinner.decide(job.budget.records_left, round(job.now_s * SECOND))

    (chunk,) = tracer.drain()
    assert 100 < recorded < 300
    assert job.spent_part <= SHARE / 100
    assert len(chunk.name) == 600
    assert thinner.left_out_s(round(job.now_s * SECOND), 600 * SECOND) == pytest.approx(600 - recorded, abs=1)


@pytest.fixture
def new_ring(tmp_path):
    """A ring whose tracers have not started."""
    usual = SimpleNamespace(median_ns=0, high_ns=0, never_slow_ns=0)
    steps, target = SimpleNamespace(thread_number=1, usual=usual, open_since_ns=0), files.open_target(str(tmp_path))
    ring = Ring(WatchOptions(ring=30.0), target, steps, lambda values: None, lambda: None, Job().budget)
    yield ring
    ring.stop()


def test_a_capture_says_for_how_long_annotations_were_left_out(new_ring):
    before = new_ring.notes()
    new_ring._thinner.decide(-1.0, time.perf_counter_ns() - 1000 * SECOND)

    assert before == []
    assert new_ring.notes() == [
        "annotations were left out for 30 s of the ring to keep the watch's budget, budget_percent"
    ]


def test_a_kept_ring_says_how_long_the_thread_of_the_steps_ran_and_waited_for_a_core(new_ring):
    new_ring.note_usage(7, [(0, 0, 0), (100 * MS, 30 * MS, 60 * MS)])
    new_ring.flush()
    new_ring.note_usage(7, [(150 * MS, 80 * MS, 60 * MS)])

    usage = read_spool(new_ring.content(), "ring", "host")
    rows = np.flatnonzero(usage.events.kind == EventKind.OTHER)
    assert usage.stat_ints([RAN_NS])[rows].tolist() == [30 * MS, 50 * MS]
    assert usage.stat_ints([QUEUED_NS])[rows].tolist() == [60 * MS, 0]


@pytest.mark.parametrize(("end", "used"), [(Usage(300, 50, 50, 0, 0), (0, 0)), (Usage(300, 200, 100, 0, 0), (150, 50))])
def test_a_step_after_quick_ones_has_used_what_is_more_than_these_usually_do(end, used):
    """A hundred of 300 ns were quick steps, which run half of the time and wait for a core for the rest."""
    follower = StepFollower(Baseline(3.0, 20 * MS), lambda step: None, bool, int)
    follower._run_rate = follower._queue_rate = 0.5

    start = follower._counters_at(100, Usage(0, 0, 0, 0, 0), end)

    assert (end.cpu_ns - start.cpu_ns, end.queued_ns - start.queued_ns) == used


def test_usual_annotations_are_all_recorded():
    job = Job()
    thinner = Thinner(HostTracer().annotate)
    for _ in range(600):
        job.now_s += 1.0
        job.budget.note_spans(200)
        assert not thinner.decide(job.budget.records_left, round(job.now_s * SECOND))


def test_windows_come_as_often_as_the_budget_allows():
    job = Job()
    assert not job.budget.can_afford_window()
    job.now_s += 100.0
    assert job.budget.can_afford_window()
    job.budget.note_window(1.2)
    assert (job.budget.percent, job.budget.can_afford_window()) == (1.2, False)
    job.now_s += 350.0  # 0.6 % of it pays for two such windows
    assert job.budget.can_afford_window()


def test_the_figures_of_real_threads_are_processor_time():
    budget = WatchBudget(1.0, lambda: 0, lambda: 0)
    before = time.thread_time_ns()
    assert budget.note_thread("sampler") >= before
    assert budget.spent_s > 0
