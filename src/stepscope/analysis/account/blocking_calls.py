"""Calls that return only when a device is done: what they take by themselves, and which work they wait for."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.graph import EdgeKind, Edges
from stepscope.analysis.account.nodes import NodeFinder, numbers_in
from stepscope.analysis.account.queues import Queues
from stepscope.analysis.account.stream_waits import awaited_work
from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import COPIES, enclosing_events
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, Mask, count_below, distinct, look_up, measure_groups, median
from stepscope.records import dataclass


@dataclass(frozen=True)
class Waits:
    """Calls that wait for devices, in order of rows, and pairs of call and work waited for.

    Attributes:
        call, line, own_end_ps, end_ps: columns of shape (calls,): the event, its thread, when its own part ends, which
            is as long as the shortest call of its name, and when it returns.
        is_explained: bool of shape (calls,), it waited, and the work that it waited for is known.
        pair_call, pair_work: int64 of shape (pairs,), places of calls, and of work in the queues.
        lag_ps: int64 of shape (pairs,), from the end of the work to the return.
        inferred: bool of shape (pairs,), which work it is only order and times tell.
    """

    call: I64
    line: I32
    own_end_ps: I64
    end_ps: I64
    is_explained: Mask
    pair_call: I64
    pair_work: I64
    lag_ps: I64
    inferred: Mask

    def edges(self, finder: NodeFinder, first_work: int) -> Edges:
        """From work to what a thread does after it has waited."""
        target = finder.starting_from(self.line[self.pair_call], self.end_ps[self.pair_call])
        return Edges.connect(first_work + self.pair_work, target, self.lag_ps, EdgeKind.RETURN, self.inferred)


def waits_of(trace: HostTrace, queues: Queues) -> Waits:
    """The calls of a host that wait for devices."""
    full, full_line = _calls_into_full_queues(trace, queues)
    call = distinct(np.concatenate([_outer_waits(trace), _blocking_copies(trace, queues), full]))
    queue = np.full(len(call), -1, np.int64)
    queue[np.searchsorted(call, full)] = full_line
    start = trace.events.start_ps[call]
    end = start + trace.events.duration_ps[call]
    names = trace.event_names(call)
    pair_call, pair_work, done = _pairs(trace, queues, call, start, end, queue)
    done_ps = np.full(len(call), np.iinfo(np.int64).min)
    np.maximum.at(done_ps, pair_call, queues.end_ps[pair_work])
    own_end = start + np.minimum(_own_parts(trace, call, names, end - np.maximum(done_ps, start)), end - start)
    explained = done_ps > own_end
    lag = _return_lags(names, explained, end - done_ps)
    return Waits(call, trace.events.line[call], own_end, end, explained, pair_call, pair_work, lag[pair_call], ~done)


def _outer_waits(trace: HostTrace) -> I64:
    rows = blocking_calls(trace)
    waits = np.zeros(len(trace.events), np.bool_)
    waits[rows] = True
    return rows[enclosing_events(trace, waits)[rows] == rows] if len(rows) else rows


def _blocking_copies(trace: HostTrace, queues: Queues) -> I64:
    """Calls that start a copy and return when most of it is done: memory that is not pinned makes them wait, whatever
    their name, until its last piece is handed over."""
    copies = np.flatnonzero((queues.call >= 0) & is_any_kind(trace.events.kind[queues.event], COPIES))
    call, start, end = queues.call[copies], queues.start_ps[copies], queues.end_ps[copies]
    called = trace.events.start_ps[call]
    inside = np.minimum(end, called + trace.events.duration_ps[call]) - np.maximum(start, called)
    return distinct(call[2 * inside >= end - start])


def _calls_into_full_queues(trace: HostTrace, queues: Queues) -> tuple[I64, I64]:
    """Launches that return only when work launched long before has ended, as their queue holds no more: the calls, and
    the lines of their queues.

    Such a call lasts longer than any of its name in which no work of its busy queue ended, and returns as soon after
    the end of work as a usual one of them takes.  It is the queue's depth that holds it up if calls that find the queue
    as deep spend most of their time so; a call in which the thread lost its processor lies anywhere.
    """
    found, lines = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for line in numbers_in(queues.line[queues.call >= 0]):
        work = np.flatnonzero((queues.line == line) & (queues.call >= 0))
        work = work[np.argsort(trace.events.start_ps[queues.call[work]], kind="stable")]
        call, ends = queues.call[work], np.sort(queues.end_ps[work])
        start, took = trace.events.start_ps[call], trace.events.duration_ps[call]
        before, done = (count_below(ends, each, with_limit=True) for each in (start, start + took))
        place = np.arange(len(work))
        depth, busy = place - before, place > done  # work from before is left when the call returns
        free = busy & (done == before)
        late = np.flatnonzero(busy & ~free)
        rest = (start + took)[late] - ends[np.maximum(done[late] - 1, 0)]
        waits, names = np.zeros(len(work), np.bool_), trace.event_names(call) if len(late) else late
        for name in numbers_in(names[late]):
            usual = took[free & (names == name)]
            if len(usual):
                fits = (names[late] == name) & (took[late] > usual.max()) & (rest <= median(usual))
                waits[late[fits]] = True
        if not waits.any():
            continue
        depth -= depth.min()
        _, share, _, _ = measure_groups(depth.astype(np.int32), np.where(waits, took, -took), int(depth.max()) + 1)
        waits &= np.cumsum(share[::-1])[::-1][depth] > 0  # of calls that find the queue at least as deep
        found.append(call[waits])
        lines.append(np.full(int(waits.sum()), line, np.int64))
    call, first = np.unique(np.concatenate(found), return_index=True)
    return call, np.concatenate(lines)[first]


def _own_parts(trace: HostTrace, call: I64, names: I32, alone: I64) -> I64:
    """What each call takes by itself: the shortest call of its name that waited for nothing; int64 of shape (n,), ps.

    Args:
        alone: int64 of shape (n,), the time of each call in which no work was left that it could wait for.  It is all
            that is known of a name whose calls always wait.
    """
    different = np.array(numbers_in(names), np.int64)
    place = np.full(len(trace.strings), -1, np.int32)
    place[different] = np.arange(len(different))
    of_type = place[trace.event_types.name]
    same = look_up(of_type >= 0, trace.events.type)
    same[call] = False
    others = np.flatnonzero(same)
    which = np.concatenate([place[names], of_type[trace.events.type[others]]])
    time_ps = np.append(alone, trace.events.duration_ps[others])
    own: I64 = measure_groups(which, time_ps, len(different))[2][which[: len(call)]]
    return own


def _pairs(trace: HostTrace, queues: Queues, call: I64, start: I64, end: I64, queue: I64) -> tuple[I64, I64, Mask]:
    """Each call with the work of every queue that it waits for and that was launched before it: places of calls, of
    work, and whether the trace states which work: the call started it itself, or its queue is recorded.

    Args:
        queue: int64 of shape (n,), the queue that is full for the call; -1 for none.
    """
    awaited = awaited_work(trace, call)
    launched = np.where(queues.call >= 0, trace.events.start_ps[queues.call], queues.start_ps)
    pairs_call, pairs_work, last_called = [], [], np.full(len(call), -1, np.int64)
    for line in numbers_in(queues.line):
        first = int(np.searchsorted(queues.line, line))
        last = int(np.searchsorted(queues.line, line, side="right"))
        before = np.searchsorted(np.maximum.accumulate(launched[first:last]), awaited.until_ps, side="right") - 1
        done = np.searchsorted(queues.end_ps[first:last], end, side="right") - 1
        # What was launched before and is not done yet it did not wait for; it may have waited for an event before that.
        work = np.minimum(before, done)
        waited = (work >= 0) & ((done >= before) | (queues.end_ps[first + np.maximum(work, 0)] > start))
        waited &= ((awaited.line < 0) | (awaited.line == line)) & ((queue < 0) | (queue == line))
        mine = (awaited.line == line) & (before >= 0)
        last_called[mine] = np.maximum.accumulate(launched[first:last])[before[mine]]
        pairs_call.append(np.flatnonzero(waited))
        pairs_work.append(first + work[waited])
    if not pairs_call:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
    one = np.flatnonzero(awaited.line >= 0)  # a call that waits for all queues waits for that work anyhow
    late, waited = queues.waits.pending.last_before(awaited.line[one], last_called[one], awaited.until_ps[one])
    at, work = np.concatenate([*pairs_call, one[late]]), np.concatenate([*pairs_work, waited])
    return at, work, (queues.call[work] == call[at]) | (awaited.line[at] >= 0)


def _return_lags(names: I32, explained: Mask, took: I64) -> I64:
    """From the end of the work to the return of each call: the median over the calls of its name that waited."""
    lag = np.zeros(len(names), np.int64)
    for name in numbers_in(names[explained]):
        here = names == name
        lag[here] = int(median(took[here & explained]))
    return lag
