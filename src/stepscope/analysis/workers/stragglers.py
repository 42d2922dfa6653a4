"""Why the steps of a job are longer than with equal work: which stage, rank, machine or link, and what tells it.

Each cause is a part of the work of the job.  It is named if equal work of that part alone gives at least half of what
equal work of everything gives, and a considerable part of the step.  Of two parts that do, the smaller one is meant: a
slow machine explains what its stage does.

A rank that is not known to be slow in another way, and whose threads do more in most steps, or which runs more ops
without a longer backward pass, does what the others do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from stepscope.analysis.workers.equal_work import MOSTLY, Job
from stepscope.analysis.workers.work_kinds import BATCH, INPUT, OF_MICROBATCHES, SHARED
from stepscope.model import Kind
from stepscope.model.arrays import F64, I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.passes import PASSES

# Measured on the simulated jobs of bench/RANKS.md, 15 of them healthy.
WORTH_NAMING = 0.03  # of the step: twice what healthy jobs seem to gain from equal work, 0.016 at most
STRAGGLES = 1.1  # the slowdown from which on the study counts a job among those with stragglers
NEARLY_ALL = 0.7  # of two ranks that take turns each explains about half, though neither is at fault
_CLOSE_TO_BEST = 0.8  # planted causes explain 0.89 to 1.27 of it, other ones 0.40 at most
_GROWS_WITH_LENGTH = 0.9  # the study's; simulated sequences reach 0.998, other jobs 0.29
_MOST_CANDIDATES = 4  # ranks, machines or stages that are tried, those with most work first; each takes a replay
_ALIKE = 0.1  # how much slower than another a pass of a slow machine may be: 0.02 in 1F1B
_USUAL_PASSES = 3  # forward, backward and optimizer; gradients of weights are mostly part of the backward pass


class Straggling(Kind):
    """Why a job is slower than with equal work."""

    UNKNOWN = 0
    UNEQUAL_STAGES = 1
    SEQUENCE_LENGTHS = 2
    SLOW_MACHINE = 3
    GARBAGE_COLLECTION = 4
    SLOW_LINK = 5
    LATE_INPUT = 6
    EXTRA_WORK = 7
    MORE_DATA = 8


@dataclass(frozen=True)
class JobCulprit:
    """What makes a job slow.

    Attributes:
        ranks: places of the ranks that are concerned, empty for all; stage: -1 for none.
        explains: the share of the gain of equal work that equal work of this part alone gives.
        gain: of the step, what that is.
        more: how many times as long the part is as with equal work, less 1, and for stages the job where only this one
            has other work; 0 where that is not said.
    """

    cause: Straggling
    ranks: tuple[int, ...]
    stage: int
    explains: float
    gain: float
    more: float


def find_culprit(job: Job, machines: Sequence[str]) -> JobCulprit | None:
    """What makes a job slow; None where nothing considerable is to be gained, or little and no cause is known.

    Args:
        machines: of each rank the name of its machine.
    """
    waste = 1.0 - 1.0 / job.slowdown
    if waste < WORTH_NAMING:
        return None
    found = [each for each in _candidates(job, machines) if each.explains >= MOSTLY and each.gain >= WORTH_NAMING]
    best = max((each.explains for each in found), default=0.0)
    likely = [each for each in found if each.explains >= _CLOSE_TO_BEST * best]
    if likely:
        return min(likely, key=lambda each: (len(each.ranks) or len(machines), -each.explains))
    if job.slowdown < STRAGGLES or share_cores(job, machines):
        return None
    places = [(rank,) for rank in range(len(machines))]
    alone = list(_places_with_extra_work(job, job.rows.is_work, Straggling.UNKNOWN, places))
    alone = [each for each in alone if each.explains >= NEARLY_ALL and each.gain >= WORTH_NAMING]
    return max(alone, key=lambda each: each.explains, default=JobCulprit(Straggling.UNKNOWN, (), -1, 0.0, waste, 0.0))


def share_cores(job: Job, machines: Sequence[str]) -> bool:
    """Whether all ranks are processes of one machine without devices: these take each other's cores, and healthy pairs
    seem to gain 1.08 to 1.18 times from equal work.  Only what has a cause is said of them."""
    return len({*machines}) == 1 and not any(rank.graph.on_device for rank in job.graph.ranks)


def _candidates(job: Job, machines: Sequence[str]) -> Iterator[JobCulprit]:
    rows, alone = job.rows, [(rank,) for rank in range(len(machines))]
    name = np.array([*rows.kinds, ""])[rows.kind]
    computes = rows.is_work & np.isin(name, [*SHARED])
    is_input = rows.is_work & np.isin(name, (INPUT, BATCH))
    threads = rows.is_work & ~computes & ~is_input
    transfers = ~rows.is_work & (rows.kind >= 0) & ~np.char.endswith(name, "together")
    yield from _places_with_extra_work(job, is_input, Straggling.LATE_INPUT, alone)
    yield from _places_with_extra_work(job, threads, Straggling.EXTRA_WORK, alone)
    more = [(rank,) for rank in np.flatnonzero(job.does_more).tolist()]
    yield from _places_with_extra_work(job, rows.is_work, Straggling.EXTRA_WORK, more)
    yield from _garbage_collections(job, threads)
    yield from _slow_links(job, transfers)
    larger = [(rank,) for rank in np.flatnonzero(job.has_more_data).tolist()]
    yield from _places_with_extra_work(job, computes, Straggling.MORE_DATA, larger)
    if not share_cores(job, machines):  # one processor is as fast for each of its processes
        alike = job.rows_of_ranks(~job.does_more & ~job.has_more_data)
        yield from _slow_machines(job, computes & alike, machines)
    yield from _unequal_stages(job, computes)
    yield from _varying_sequences(job, name)


def _culprit(job: Job, cause: Straggling, part: Mask, ranks: Sequence[int] = (), more: float = 0.0) -> JobCulprit:
    explains = job.explains(part)
    return JobCulprit(cause, tuple(ranks), -1, explains, explains * (1.0 - 1.0 / job.slowdown), more)


def _work_of(job: Job, part: Mask) -> tuple[F64, F64]:
    """The work of a part on each rank in each step, and how much longer that is than with equal work: float64 of shape
    (ranks, steps), ps."""
    rows, shape = job.rows, (len(job.graph.ranks), job.places.shape[1])
    here = np.flatnonzero(part & (rows.step >= 0))
    slot = rows.rank[here] * shape[1] + rows.step[here]
    flat = (np.bincount(slot, each[here], shape[0] * shape[1]) for each in (rows.work_ps, rows.own_ps - job.equal_ps))
    now, more = (each.astype(np.float64).reshape(shape) for each in flat)
    return now, more


def _ratio(work: tuple[F64, F64], ranks: Sequence[int]) -> float:
    """How many times as long some work of ranks is as with equal work, less 1; 0 where none would be left."""
    now, more = (float(each[[*ranks]].sum()) for each in work)
    return more / (now - more) if now > more else 0.0


def _places_with_extra_work(
    job: Job, part: Mask, cause: Straggling, places: Sequence[tuple[int, ...]]
) -> Iterator[JobCulprit]:
    """The places with most extra work of a part, where these have it in most steps."""
    work = _work_of(job, part)
    extra = [(work[1][[*ranks]].sum(axis=0), ranks) for ranks in places]
    extra.sort(key=lambda each: -float(each[0].mean()) / len(each[1]))
    for more, ranks in extra[:_MOST_CANDIDATES]:
        mean = float(more.mean())
        if mean > 0 and (more >= MOSTLY * mean).mean() > MOSTLY:
            yield _culprit(job, cause, part & job.rows_of_places(ranks), ranks, more=_ratio(work, ranks))


def _slow_machines(job: Job, device: Mask, machines: Sequence[str]) -> Iterator[JobCulprit]:
    """One rank or all ranks of a machine: each pass is slower there than on ranks of the same stage."""
    by_machine: dict[str, list[int]] = defaultdict(list)
    for rank, machine in enumerate(machines):
        by_machine[machine].append(rank)
    stage, work = job.layout.stage, _work_of(job, device)
    alone: list[tuple[int, ...]] = [(rank,) for rank in range(len(machines))]
    whole = [tuple(ranks) for ranks in by_machine.values() if 1 < len(ranks) < len(machines)]
    found = (_places_with_extra_work(job, device, Straggling.SLOW_MACHINE, places) for places in (alone, whole))
    for each in chain.from_iterable(found):
        mates = np.setdiff1d(np.flatnonzero(stage == stage[each.ranks[0]]), each.ranks).tolist()
        usual = float(np.median([_ratio(work, (mate,)) for mate in mates])) if mates else 0.0
        if stage[each.ranks[0]] < 0 or (usual <= MOSTLY * each.more if mates else _slows_all_passes(job, each.ranks)):
            yield each


def _slows_all_passes(job: Job, ranks: Sequence[int]) -> bool:
    """Whether all passes of some ranks are slower by about as much, which more layers are not."""
    rows = job.rows
    parts = (rows.is_work & (rows.kind == kind) for kind, name in enumerate(rows.kinds) if name in PASSES)
    more = [_ratio(_work_of(job, part), ranks) for part in parts if part.any()]
    return len(more) >= _USUAL_PASSES and max(more) - min(more) <= _ALIKE


def _unequal_stages(job: Job, device: Mask) -> Iterator[JobCulprit]:
    """A stage whose work is longer on all of its ranks."""
    stage, work = job.layout.stage, _work_of(job, device)
    places = [tuple(np.flatnonzero(stage == each).tolist()) for each in range(job.layout.stages)]
    for found in _places_with_extra_work(job, device, Straggling.UNEQUAL_STAGES, places):
        if min(_ratio(work, (rank,)) for rank in found.ranks) >= MOSTLY * found.more:
            own = int(stage[found.ranks[0]])
            longer = job.slowdown_of(job.rows_of_ranks(stage == own)) - 1.0
            yield replace(found, stage=own, more=longer)


def _garbage_collections(job: Job, host: Mask) -> Iterator[JobCulprit]:
    """Pauses of threads, here and there: rare, long, and on many ranks."""
    rows = job.rows
    own = np.where(host & (rows.step >= 0), rows.work_ps, 0)
    if not own.any():
        return
    step_ps = float(job.now_ps.mean())
    long = np.flatnonzero(own >= WORTH_NAMING * step_ps)
    if not len(long):
        return
    part = np.zeros(len(own), np.bool_)
    part[long] = True
    times = np.bincount(rows.rank[long], minlength=len(job.graph.ranks))
    often = len(long) / max(len(times) * job.places.shape[1], 1)
    shortened = np.where(part, np.minimum(job.equal_ps, np.median(own[host & (rows.step >= 0)])), rows.own_ps)
    gain = float(job.now_ps.sum() - job.steps_of(job.schedule.replay(shortened.astype(np.int64))).sum())
    explains = gain / max(float(job.now_ps.sum() - job.best_ps.sum()), 1.0)
    if often <= MOSTLY and times.max() <= MOSTLY * len(long):
        share = gain / float(job.now_ps.sum())
        yield JobCulprit(Straggling.GARBAGE_COLLECTION, (), -1, explains, share, float(own[long].mean()) / step_ps)


def _slow_links(job: Job, transfers: Mask) -> Iterator[JobCulprit]:
    """The ranks between which transfers take longer, in most steps, than those of the same kind elsewhere."""
    between = _links(job, np.flatnonzero(transfers & (job.rows.step >= 0)))
    more = {ranks: job.rows.work_ps[rows] - job.equal_ps[rows] for ranks, rows in between.items()}
    longest = sorted(between, key=lambda ranks: -int(more[ranks].sum()))[:_MOST_CANDIDATES]
    for ranks in longest if len(between) > 1 else ():  # one link alone is as fast as it is
        rows, steps = between[ranks], job.places.shape[1]
        in_steps = np.bincount(job.rows.step[rows], weights=more[ranks], minlength=steps)
        if in_steps.sum() > 0 and (in_steps >= MOSTLY * in_steps.mean()).mean() > MOSTLY:
            part = np.zeros(len(transfers), np.bool_)
            part[rows] = True
            usual = float(job.equal_ps[rows].mean())
            yield _culprit(job, Straggling.SLOW_LINK, part, ranks, more=float(more[ranks].mean()) / max(usual, 1.0))


def _links(job: Job, transfers: I64) -> dict[tuple[int, ...], I64]:
    """Some transfers by the ranks between which they are; one with several partners is between those that take longest
    to be through."""
    graph, rank = job.graph, job.rows.rank
    row, of, share = graph.arrivals()
    comes, of = rank[row[share == 1.0]].tolist(), of[share == 1.0]
    first = np.searchsorted(of, np.arange(graph.meetings + 1)).tolist()
    found: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for each, meeting in zip(transfers.tolist(), graph.meeting[transfers].tolist(), strict=True):
        found[tuple(sorted({*comes[first[meeting] : first[meeting + 1]]}))].append(each)
    return {ranks: np.array(rows) for ranks, rows in found.items() if len(ranks) > 1}


def _varying_sequences(job: Job, name: F64) -> Iterator[JobCulprit]:
    """Lengths that vary from microbatch to microbatch: forward and backward work of each grow together."""
    rows = job.rows
    passes = [rows.is_work & (name == each) & (rows.step >= 0) for each in OF_MICROBATCHES]
    shape = (len(job.graph.ranks), job.places.shape[1])
    both = []
    for part in passes:
        slot = rows.rank[part] * shape[1] + rows.step[part]
        total = np.bincount(slot, weights=rows.work_ps[part], minlength=shape[0] * shape[1]).reshape(shape)
        usual = total.mean(axis=1, keepdims=True)
        both.append(np.divide(total, usual, out=np.ones(shape), where=usual > 0).ravel())
    if min(float(np.std(each)) for each in both) <= 0:
        return
    together = float(np.corrcoef(both[0], both[1])[0, 1])
    if together >= _GROWS_WITH_LENGTH:
        yield _culprit(job, Straggling.SEQUENCE_LENGTHS, passes[0] | passes[1], more=float(np.std(both[0])))
