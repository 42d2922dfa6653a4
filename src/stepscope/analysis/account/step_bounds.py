"""Where steps start and end, and what they wait for there: a step lasts from its start to the start of the next."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.graph import EdgeKind, Edges
from stepscope.analysis.account.nodes import NodeFinder, numbers_in
from stepscope.analysis.account.queues import Queues
from stepscope.analysis.steps.find_steps import HostSteps
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.trace.program_runs import program_ops_elsewhere
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I32, I64, Mask, count_below, distinct, measure_groups
from stepscope.records import dataclass


@dataclass(frozen=True)
class StepBounds:
    """Where steps start and end.

    Attributes:
        time_ps: int64 of shape (steps + 1,), the bounds: where steps start; where they end, after the first, if they do
            not follow each other.
        apart: they do not.
        steps: int64 of shape (steps,), rows of the host's steps.
        complete: bool of shape (steps,), steps that the capture's edge does not cut.
        mark_line: the line of the marks, -1 where steps have none.
        host_line: without marks the thread that an event of starts every step, or -1.
        mark_ps: int64 of shape (steps + 1,), when the thread of the marks is there.
        host_ps: int64 of shape (n,), the bounds that `host_line` still records something at.
        last_line, last_bound, last_ps: for each line and bound the end of the work of earlier steps that was done last,
            as columns; int32, int64, int64 of shape (n,).
    """

    time_ps: I64
    apart: bool
    steps: I64
    complete: Mask
    mark_line: int
    host_line: int
    mark_ps: I64
    host_ps: I64
    last_line: I32
    last_bound: I64
    last_ps: I64

    def step_at(self, time_ps: I64) -> I64:
        """The step that lasts at each of some times: int64 of shape (n,), -1 for none."""
        at = count_below(self.time_ps, time_ps, with_limit=True) - 1
        return np.where(at < len(self.steps), at, -1)

    def step_of(self, line: I32, time_ps: I64) -> I64:
        """The step that a thread is at: on that of the marks they tell, which may be ahead of the devices."""
        found = self.step_at(time_ps)
        if self.mark_line < 0:
            return found
        at = count_below(self.mark_ps, time_ps, with_limit=True) - 1
        return np.where(line == self.mark_line, np.where(at < len(self.steps), at, -1), found)

    def cuts(self) -> list[tuple[I32, I64]]:
        """Where threads are cut, so that a node ends or starts there."""
        known = [(self.mark_line, self.mark_ps), (self.host_line, self.host_ps)]
        marks = [(np.full(len(time), line, np.int32), time) for line, time in known if line >= 0]
        return [*marks, (self.last_line, self.last_ps)]

    def edges(self, finder: NodeFinder, queues: Queues, first_work: int, first_bound: int) -> list[Edges]:
        """What the bounds wait for: the thread of the marks, and the work of the steps before."""
        target = first_bound + np.arange(len(self.time_ps))
        if self.mark_line < 0:
            return self._first_work_edges(finder, queues, first_work, first_bound)
        line = np.full(len(self.time_ps), self.mark_line)
        starts, ends = finder.starting_at(line, self.mark_ps), finder.ending_by(line, self.mark_ps)
        done = finder.ending_by(self.last_line, self.last_ps)
        work = NodeFinder(queues.line, queues.start_ps, queues.end_ps).ending_by(self.last_line, self.last_ps)
        done = np.where(work >= 0, first_work + work, done)
        return [
            Edges.connect(starts, target, 0, EdgeKind.BOUND, False, after_start=True),
            Edges.connect(np.where(starts < 0, ends, -1), target, 0, EdgeKind.BOUND, False),
            Edges.connect(done, first_bound + self.last_bound, 0, EdgeKind.BOUND, False),
        ]

    def _first_work_edges(self, finder: NodeFinder, queues: Queues, first_work: int, first_bound: int) -> list[Edges]:
        """Steps without marks start with the first thing that starts then: an event of a thread, else device work."""
        bound = first_bound + np.arange(len(self.time_ps))
        if self.host_line >= 0:
            line = np.full(len(bound), self.host_line)
            found = finder.starting_at(line, self.time_ps)
            starts = Edges.connect(found, bound, 0, EdgeKind.BOUND, False, after_start=True)
            done = Edges.connect(
                np.where(found < 0, finder.ending_by(line, self.time_ps), -1), bound, 0, EdgeKind.BOUND, False
            )
            return [starts, done, self._last_work_edges(queues, first_work, bound[-1:])]
        ends = self._last_work_edges(queues, first_work, bound[1:] if self.apart else bound[-1:])
        if self.apart:
            return [ends]
        order = np.argsort(queues.start_ps, kind="stable")
        at = np.searchsorted(queues.start_ps[order], self.time_ps[:-1])
        found = np.append(order, -1)[at]
        late = np.where(found >= 0, np.append(queues.start_ps, 0)[found] - self.time_ps[:-1], 0)
        starts = Edges.connect(
            np.where(found >= 0, first_work + found, -1), bound[:-1], -late, EdgeKind.BOUND, False, after_start=True
        )
        return [starts, ends]

    def _last_work_edges(self, queues: Queues, first_work: int, bound: I64) -> Edges:
        """The last bounds wait for what each queue has done last by then."""
        lines = np.array(numbers_in(queues.line), np.int32)
        line, target = np.tile(lines, len(bound)), np.repeat(bound, len(lines))
        time = np.repeat(self.time_ps[len(self.time_ps) - len(bound) :], len(lines))
        last = NodeFinder(queues.line, queues.start_ps, queues.end_ps).ending_by(line, time)
        return Edges.connect(np.where(last >= 0, first_work + last, -1), target, 0, EdgeKind.BOUND, False)


def bounds_of(trace: HostTrace, steps: HostSteps) -> StepBounds:
    """The bounds of a host's steps; at least one step."""
    apart = bool(steps.line < 0 and (steps.until_ps[:-1] < steps.start_ps[1:]).any())
    time = np.append(steps.start_ps[:1], steps.until_ps) if apart else np.append(steps.start_ps, steps.until_ps[-1])
    mark = _mark_times(trace, steps, len(time))
    line, bound, last = _last_work(trace, steps, time)
    rows = np.arange(len(time) - 1)
    host = _starting_thread(trace, time) if steps.line < 0 and not apart else -1
    on_host = time[time <= line_span(trace, host)[1]] if host >= 0 else time[:0]
    return StepBounds(time, apart, rows, steps.complete[rows], steps.line, host, mark, on_host, line, bound, last)


def line_span(trace: HostTrace, line: int) -> tuple[int, int]:
    """When the first event of a line starts and the last one ends."""
    rows = slice(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    start = trace.events.start_ps[rows]
    return int(start.min()), kernels.columns.latest_end(start, trace.events.duration_ps[rows])


def _starting_thread(trace: HostTrace, time: I64) -> int:
    """The thread that has an event starting at each of some times but the last; -1 without one."""
    wanted = distinct(time[:-1])
    for line in trace.lines_of(LineKind.THREAD).tolist():
        starts = trace.events.start_ps[int(trace.lines.event_begin[line]) : int(trace.lines.event_end[line])]
        found = np.searchsorted(starts, wanted, side="right") - np.searchsorted(starts, wanted)
        if int(found.sum()) >= len(time) - 1:
            return int(line)
    return -1


def _mark_times(trace: HostTrace, steps: HostSteps, count: int) -> I64:
    """When the thread of the marks is at each bound; a step without a mark, as one that an update ends, starts there
    when it starts."""
    if steps.line < 0:
        return np.empty(0, np.int64)
    rows = np.arange(int(trace.lines.event_begin[steps.line]), int(trace.lines.event_end[steps.line]))
    rows = rows[(trace.events.kind[rows] == EventKind.STEP_MARK) & (steps.label[rows] >= 0)]
    start = np.full(len(steps.number), np.iinfo(np.int64).max)
    np.minimum.at(start, steps.label[rows], trace.events.start_ps[rows])
    begun = steps.begun_ps if len(steps.begun_ps) else steps.start_ps
    start = np.where(start == np.iinfo(np.int64).max, begun, start)
    if count > len(start):
        last = rows[steps.label[rows] == len(start) - 1]
        ends = trace.events.start_ps[last] + trace.events.duration_ps[last]
        start = np.append(start, ends.max(initial=steps.start_ps[-1] if len(last) else steps.end_ps[-1]))
    return start[:count]


def _last_work(trace: HostTrace, steps: HostSteps, time: I64) -> tuple[I32, I64, I64]:
    """For each line and bound the end of the work that was done last, of all steps before the bound."""
    work, count = is_device_work(trace), len(time)
    if steps.line >= 0:
        work = work | program_ops_elsewhere(trace, steps.line)
    rows = np.flatnonzero(work & (steps.label >= 0) & (steps.label < count - 1))
    label = np.append(steps.label[rows] + 1, np.zeros(len(steps.backlog), np.int32))
    rows = np.append(rows, steps.backlog)
    if not len(rows):
        return np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
    lines = np.array(numbers_in(trace.events.line[rows]), np.int64)
    place = np.zeros(len(trace.lines), np.int32)
    place[lines] = np.arange(len(lines))
    cell = place[trace.events.line[rows]] * np.int32(count) + label
    end = trace.events.start_ps[rows] + forest(trace).extent_ps[rows]
    number, _, _, last = (each.reshape(len(lines), count) for each in measure_groups(cell, end, len(lines) * count))
    # Work that lasts beyond a bound is nothing that the bound waits for.
    at, bound = np.nonzero((number > 0) & (last <= time))
    return lines[at].astype(np.int32), bound.astype(np.int64), last[at, bound]
