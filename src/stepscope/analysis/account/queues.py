"""Queues of devices: their work in order, the calls that launch it, and what work of other queues it waits for."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.nodes import numbers_in, runs_of
from stepscope.analysis.account.stream_waits import StreamWaits, stream_waits_of
from stepscope.analysis.steps.cycles import LEAST_STEPS
from stepscope.analysis.trace.devices_told_of import LONGEST_DISPATCH_PS
from stepscope.analysis.trace.grouping import device_rows, forest, is_device_work
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, Mask, median, percentiles
from stepscope.records import dataclass

NEVER = np.iinfo(np.int64).min // 4
_MOST_STEPS_BACK = 8  # bounds a search; with half or twice as many no answer on the given captures changes
_INEXACT = 100  # work may seem to start before what it waited for is done, by this part of its wait: clocks have noise
_SWITCH_PERCENTILE = 50  # of gaps between work that was launched ahead: what a queue needs to go on to its next work


@dataclass(frozen=True)
class Queues:
    """Work of devices, queue after queue, in order.

    Attributes:
        event: int64 of shape (n,), the events.
        line: int32 of shape (n,).
        start_ps, end_ps: int64 of shape (n,), on the host's clock.
        own_ps: int64 of shape (n,), time that no work before it on its line takes.
        call: int64 of shape (n,), the call that launched it, or -1.
        previous: int64 of shape (n,), place of the work before it on its line, or -1.
        pause_ps: int64 of shape (n,), the least pause after that.
        unexplained_ps: int64 of shape (n,), the part of it, or of the launch, for which the trace tells no reason.
        arrival_ps: int64 of shape (n,), when its launch has arrived at the earliest, as recorded.
        latency_ps: int64 of shape (n,), from the launching call to its arrival.
        after_start: bool of shape (n,), the latency counts from the call's start, else from its end.
        waits: the work of other queues that it waits for.
    """

    event: I64
    line: I32
    start_ps: I64
    end_ps: I64
    own_ps: I64
    call: I64
    previous: I64
    pause_ps: I64
    unexplained_ps: I64
    arrival_ps: I64
    latency_ps: I64
    after_start: Mask
    waits: StreamWaits

    def __len__(self) -> int:
        return len(self.event)


def queues_of(trace: HostTrace, zero_ps: int) -> Queues:
    """The queues of all devices of a host.

    Args:
        zero_ps: where the replay starts; work that was launched before it is there from then on.
    """
    rows = _outer_work(trace)
    call = forest(trace).cause[rows].astype(np.int64)
    line = trace.events.line[rows]
    waits = stream_waits_of(trace, line, call)
    start, end = trace.events.start_ps[rows], trace.events.duration_ps[rows]
    called = np.where(call >= 0, trace.events.start_ps[call], start)
    own, free, previous = (np.empty(len(rows), np.int64) for _ in range(3))
    kernels.queues.line_up(line, trace.lines.plane, called, zero_ps, start, end, own, free, previous)
    awaited = _last_awaited(waits, start, end)
    held = np.maximum(np.maximum(free, awaited), _followed(trace, line, call, start, end, free))
    latency, after_start = _latencies(trace, call, start, held)
    arrival = _arrivals(trace, call, latency, after_start)
    switch = _switch_ps(line, start - free, (call >= 0) & (np.maximum(arrival, awaited) <= free) & (previous >= 0))
    silent = _silent_ps(trace, line, call, start, end, held)
    unexplained = np.where(call >= 0, silent, np.maximum(start - free, 0))
    pause = np.where(call >= 0, np.where(previous >= 0, switch, 0), unexplained)
    return Queues(rows, line, start, end, own, call, previous, pause, unexplained, arrival, latency, after_start, waits)


def _outer_work(trace: HostTrace) -> I64:
    """Device work that lies in no other work of its line, queue after queue as these take it: at one moment in the
    order of the calls, so that work without length stays between that before and after it."""
    rows = device_rows(trace)
    parent = forest(trace).parent[rows]
    rows = rows[(parent < 0) | ~is_device_work(trace)[parent]]
    call, start, line = forest(trace).cause[rows], trace.events.start_ps[rows], trace.events.line[rows]
    called = np.where(call >= 0, trace.events.start_ps[call], start)
    # By line and start they are as they come; hardly ever two start at one moment in another order than the calls.
    if not ((np.diff(line) == 0) & (np.diff(start) == 0) & (np.diff(called) < 0)).any():
        return rows
    return rows[np.lexsort((called, start, line))]


def _silent_ps(trace: HostTrace, line: I32, call: I64, start: I64, end: I64, held: I64) -> I64:
    """For how long each piece of work has waited on a silent device: it was launched, all that is known to hold it up
    was done, and for longer than a launch takes little else ran there.  What the device did then was not recorded.
    Int64 of shape (n,), ps; 0 for usual work.

    Args:
        held: int64 of shape (n,), when all that it is known to wait for was done, its launch aside.
    """
    known = np.flatnonzero(call >= 0)
    called = trace.events.start_ps[call[known]] + trace.events.duration_ps[call[known]]
    took = np.sort((start[known] - called)[held[known] < called])
    behind = max(int(took[0]), 0) if len(took) >= LEAST_STEPS else 0  # the clock of the device
    since = np.maximum(held[known], called + behind)
    found = np.zeros(len(call), np.int64)
    late = np.flatnonzero(start[known] - since > LONGEST_DISPATCH_PS)
    for plane in numbers_in(trace.lines.plane[line[known[late]]]):
        here, work = late[trace.lines.plane[line[known[late]]] == plane], trace.lines.plane[line] == plane
        at, busy = known[here], Spans.union(start[work], end[work])
        idle = 2 * busy.overlap_ps(since[here], start[at]) < start[at] - since[here]
        found[at[idle]] = (start[at] - since[here])[idle]
    return found


def _last_awaited(waits: StreamWaits, start: I64, end: I64) -> I64:
    """When the last work of another queue that each piece of work waits for is done: int64 of shape (n,), NEVER for
    none."""
    done = np.full(len(start), NEVER)
    np.maximum.at(done, waits.target, np.minimum(end[waits.source], start[waits.target]))
    return done


def _followed(trace: HostTrace, line: I32, call: I64, start: I64, end: I64, free: I64) -> I64:
    """When work of another queue of its device was done that each piece of work seems to have waited for, as there is
    little time from there to its start: int64 of shape (n,), NEVER for none."""
    found = np.full(len(line), NEVER)
    plane = trace.lines.plane[line]
    since = np.maximum(free, np.where(call >= 0, trace.events.start_ps[call] + trace.events.duration_ps[call], start))
    for device in numbers_in(plane):
        here = np.flatnonzero(plane == device)
        if line[here[0]] == line[here[-1]]:
            continue
        by_end = here[np.argsort(end[here], kind="stable")]
        source = last_done(by_end, end, start[here], since[here], line, line[here])
        found[here] = np.where(source >= 0, np.minimum(end[source], start[here]), NEVER)
    return found


def last_done(by_end: I64, end: I64, start: I64, since: I64, line: I32, own: I32) -> I64:
    """The work of another queue that was done last before some work started, as exactly as times of devices are, if
    that leaves little of the start to explain: places in the queues, int64 of shape (n,), -1 for none.

    Args:
        by_end: places in the queues by `end`.
        start, since, own: of the work, its start, when it could have started, and its queue.
    """
    found = np.empty(len(start), np.int64)
    kernels.queues.last_done(by_end, end[by_end], start, since, line, own, _INEXACT, _MOST_STEPS_BACK, found)
    return found


def _latencies(trace: HostTrace, call: I64, start: I64, free: I64) -> tuple[I64, Mask]:
    """From each launching call to the arrival of its work: the shortest that was seen of calls of its name.

    Where each of them waited for other work, as a copy of the result does, the time since that work was done counts.

    A copy may start while its call goes on, a kernel hardly does: the time counts from the start or from the end of
    calls, whichever of the two tells the starts of work on free queues better.
    """
    latency, after_start = np.zeros(len(call), np.int64), np.zeros(len(call), np.bool_)
    known = np.flatnonzero(call >= 0)
    if not len(known):
        return latency, after_start
    names = trace.event_names(call[known])
    order = np.argsort(names, kind="stable")
    known, names = known[order], names[order]
    begins = trace.events.start_ps[call[known]]
    ends = begins + trace.events.duration_ps[call[known]]
    begun, held = start[known], free[known]
    for first, last in runs_of(names):
        here = slice(first, last)
        idle = held[here] < ends[here]  # the queue was free, so that the launch is what the work waited for
        since = begins[here], ends[here]
        if not idle.any():
            idle = np.ones(len(idle), np.bool_)
            since = np.maximum(begins[here], held[here]), np.maximum(ends[here], held[here])
        delays = begun[here] - since[0], begun[here] - since[1]
        spread = [median(delay[idle] - delay.min()) for delay in delays]
        best = int(spread[1] <= spread[0])
        latency[known[here]] = delays[best].min()
        after_start[known[here]] = best == 0
    return latency, after_start


def _arrivals(trace: HostTrace, call: I64, latency: I64, after_start: Mask) -> I64:
    begins = trace.events.start_ps[call]
    ends = begins + trace.events.duration_ps[call]
    return np.where(call >= 0, np.where(after_start, begins, ends) + latency, NEVER)


def _switch_ps(line: I32, gap: I64, ahead: Mask) -> I64:
    """What each queue needs between two pieces of work: int64 of shape (n,)."""
    switch = np.zeros(len(line), np.int64)
    for first, last in runs_of(line):
        gaps = gap[first:last][ahead[first:last]]
        if len(gaps):
            switch[first:last] = int(percentiles(gaps, (_SWITCH_PERCENTILE,))[0])
    return np.maximum(switch, 0)
