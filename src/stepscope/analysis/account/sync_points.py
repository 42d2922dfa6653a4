"""Where threads touch something else: calls that launch or wait, work handed over, and waits for other threads."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.blocking_calls import Waits, waits_of
from stepscope.analysis.account.dependencies import Dependencies, handovers, infer_waits
from stepscope.analysis.account.graph import Edges
from stepscope.analysis.account.nodes import NodeFinder
from stepscope.analysis.account.producers import Producers
from stepscope.analysis.account.queues import Queues
from stepscope.analysis.account.step_bounds import StepBounds, line_span
from stepscope.analysis.account.threads import IdleSpans, Threads
from stepscope.analysis.trace.collective_events import collective_rows
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, Mask, distinct
from stepscope.records import dataclass


@dataclass(frozen=True)
class SyncPoints:
    """Points of contact of all threads, and what they wait for there.

    Attributes:
        call, call_line, call_start_ps: calls that become nodes of their own.
        cut_line, cut_ps: where threads are cut, sorted by line.
        gap_line, gap_start_ps, gap_end_ps: where they only wait, sorted by line.
        lone: gaps whose end nothing explains.
        waits, meetings, returns: what threads wait for: in calls that wait for devices, for other threads, and for
            devices though no call says so.
    """

    call: I64
    call_line: I32
    call_start_ps: I64
    cut_line: I32
    cut_ps: I64
    gap_line: I32
    gap_start_ps: I64
    gap_end_ps: I64
    lone: IdleSpans
    waits: Waits
    meetings: tuple[Dependencies, ...]
    returns: Dependencies

    def line_contacts(self, line: int) -> tuple[I64, I64, I64, I64]:
        """The cuts of a line, the starts and ends of its gaps, and when something is done that other threads wait
        for."""
        bounds = np.array((line, line + 1), np.int32)  # of the columns' type, which else are copied as a whole
        cut = slice(*np.searchsorted(self.cut_line, bounds))
        gap = slice(*np.searchsorted(self.gap_line, bounds))
        start, end = self.gap_start_ps[gap], self.gap_end_ps[gap]
        order = np.argsort(start, kind="stable")
        done = [each.source_ps[each.source_line == line] for each in self.meetings]
        return self.cut_ps[cut], start[order], end[order], np.concatenate(done)

    def edges(self, finder: NodeFinder, queues: Queues, first_work: int) -> list[Edges]:
        """What threads wait for."""
        returns = self.waits.edges(finder, first_work), self.returns.edges_from_work(finder, queues, first_work)
        return [*returns, *(each.edges(finder) for each in self.meetings)]

    def starts_unexplained(self, finder: NodeFinder, count: int) -> Mask:
        """Which of so many nodes start after a gap whose end nothing explains: bool of shape (nodes,)."""
        found = np.zeros(count, np.bool_)
        at = finder.starting_at(self.lone.line, self.lone.end_ps)
        found[at[at >= 0]] = True
        return found


def sync_points_of(
    trace: HostTrace, threads: Threads, queues: Queues, bounds: StepBounds, producers: Producers
) -> SyncPoints:
    """The points of contact of all threads of a host."""
    waits = waits_of(trace, queues)
    stated = handovers(trace, threads)
    quiet, inferred, returns, lone = infer_waits(trace, threads, stated, queues)
    meetings = (stated, *inferred)
    launching = distinct(queues.call[queues.call >= 0])
    call = distinct(np.concatenate([launching, waits.call]))
    start = trace.events.start_ps[call]
    line = trace.events.line[call]
    cuts = _Marks.join(
        [
            _Marks(line, start),
            _Marks(line, start + trace.events.duration_ps[call]),
            _Marks(waits.line, waits.own_end_ps),
            *(_Marks(each.source_line, each.source_ps) for each in meetings),
            *(_Marks(each.target_line, each.target_ps) for each in (*meetings, returns)),
            _line_bounds(trace, threads),
            *_collective_bounds(trace),
            _Marks(np.full(len(producers), threads.main, np.int32), producers.end_ps),
            *(_Marks(*each) for each in bounds.cuts()),
        ]
    )
    known = waits.is_explained
    late = producers.waited
    gap_line = np.concatenate([waits.line[known], quiet.line, np.full(int(late.sum()), threads.main, np.int32)])
    gaps = np.argsort(gap_line, kind="stable")
    order = np.argsort(cuts.line, kind="stable")
    return SyncPoints(
        call=call,
        call_line=line,
        call_start_ps=start,
        cut_line=cuts.line[order],
        cut_ps=cuts.time_ps[order],
        gap_line=gap_line[gaps],
        gap_start_ps=np.concatenate([waits.own_end_ps[known], quiet.start_ps, producers.own_end_ps[late]])[gaps],
        gap_end_ps=np.concatenate([waits.end_ps[known], quiet.end_ps, producers.end_ps[late]])[gaps],
        lone=lone,
        waits=waits,
        meetings=meetings,
        returns=returns,
    )


@dataclass(frozen=True)
class _Marks:
    """Times on lines."""

    line: I32
    time_ps: I64

    @staticmethod
    def join(parts: list[_Marks]) -> _Marks:
        """All of several."""
        return _Marks(
            np.concatenate([part.line for part in parts]).astype(np.int32),
            np.concatenate([part.time_ps for part in parts]),
        )


def _collective_bounds(trace: HostTrace) -> list[_Marks]:
    """Where collectives of threads start and end: there ranks meet."""
    rows = collective_rows(trace)
    rows = rows[is_thread_event(trace)[rows]]
    start, line = trace.events.start_ps[rows], trace.events.line[rows]
    return [_Marks(line, start), _Marks(line, start + trace.events.duration_ps[rows])]


def _line_bounds(trace: HostTrace, threads: Threads) -> _Marks:
    """The first start and the last end of each thread."""
    times = [time for line in threads.lines for time in line_span(trace, line)]
    return _Marks(np.repeat(np.array(threads.lines, np.int32), 2), np.array(times, np.int64))
