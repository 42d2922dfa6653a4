"""How long ranks do nothing but wait for each other, and for whom, in the replay of all ranks together.

A rank waits from when it comes to a meeting until the last one has come.  Only time counts in which it does no work and
waits in no other meeting, so that all waiting of a rank is never more than its time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field

import numpy as np

from stepscope.analysis.trace.spans import Spans
from stepscope.analysis.workers.equal_work import Job
from stepscope.analysis.workers.matching import StepKey
from stepscope.analysis.workers.work_kinds import ON_DEVICE
from stepscope.model.arrays import I64
from stepscope.records import dataclass


@dataclass
class RankWaits:
    """Waiting of one rank in ps.

    Attributes:
        waiting: for others, by step; held_up: of each of the others, on average, for this one.
        waits_for: by the place of the rank that it waits for.
        last: meetings to which it came last, with others waiting.
    """

    waiting: Counter[StepKey] = field(default_factory=Counter)
    held_up: Counter[StepKey] = field(default_factory=Counter)
    waits_for: Counter[int] = field(default_factory=Counter)
    last: int = 0


def find_waits(job: Job) -> list[RankWaits]:
    """The waits of each rank of a job."""
    graph, now = job.graph, job.now
    found = [RankWaits() for _ in graph.ranks]
    until = now.done_ps - job.schedule.shortest(job.rows.own_ps)[graph.meeting]
    last = _last_to_come(job)
    for at, (rank, first) in enumerate(zip(graph.ranks, graph.first_row.tolist(), strict=False)):
        count = len(rank.graph.place)
        computes = np.array([kind in ON_DEVICE for kind in rank.graph.kinds], np.bool_)[rank.graph.kind]
        works = first + count + np.flatnonzero(computes | (not rank.graph.on_device))
        busy = Spans.union(now.arrival_ps[works], now.done_ps[works])
        rows = first + np.arange(count)
        alone = _only_waiting(now.arrival_ps[rows], until[rows], busy)
        steps = [rank.collectives.step[place] for place in rank.graph.place.tolist()]
        keys = graph.keys[at]
        for row, step, ps in zip(rows.tolist(), steps, alone.tolist(), strict=True):
            key = keys[step] if 0 <= step < len(keys) else (0, step)
            if ps > 0 and last[row] >= 0 and last[row] != at:
                found[at].waiting[key] += ps
                found[at].waits_for[last[row]] += ps
                found[last[row]].held_up[key] += ps
    for at, times in Counter(_reached_last(job, until, last)).items():
        found[at].last = times
    others = max(len(graph.ranks) - 1, 1)
    for each in found:
        for key in each.held_up:
            each.held_up[key] //= others
    return found


def _last_to_come(job: Job) -> list[int]:
    """The rank that comes last to the meeting of each row; -1 where a rank is alone."""
    graph, arrival = job.graph, job.now.arrival_ps
    row, of, _ = graph.arrivals()
    rank = graph.rank_of_rows()
    order = np.lexsort((arrival[row], of))
    final = np.flatnonzero(np.append(np.diff(of[order]) > 0, True))
    several = np.bincount(of, minlength=graph.meetings) > 1
    last = np.where(several, rank[row[order[final]]], -1)
    found: list[int] = last[graph.meeting].tolist()
    return found


def _reached_last(job: Job, until: I64, last: list[int]) -> list[int]:
    """The rank that came last to each meeting for which somebody waited."""
    waited = np.zeros(job.graph.meetings, np.bool_)
    waited[job.graph.meeting[until > job.now.arrival_ps]] = True
    first = np.unique(job.graph.meeting, return_index=True)[1]
    return [last[row] for meeting, row in enumerate(first.tolist()) if waited[meeting] and last[row] >= 0]


def _only_waiting(start: I64, end: I64, busy: Spans) -> I64:
    """The part of each of some waits in which a rank does nothing else: int64 of shape (n,)."""
    order = np.argsort(start, kind="stable")
    reached = np.maximum.accumulate(np.append(np.iinfo(np.int64).min // 2, end[order]))[:-1]
    begin = np.maximum(start[order], reached)
    left = np.maximum(end[order] - begin, 0)
    some = left > 0
    left[some] -= busy.overlap_ps(begin[some], end[order][some])
    found = np.empty(len(start), np.int64)
    found[order] = left
    return found
