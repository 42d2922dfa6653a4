"""Where threads touch something else: calls that launch or wait, work handed over, and waits for other threads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stepscope.analysis.account.graph import EdgeKind, Edges
from stepscope.analysis.account.handovers import Meetings, handovers, inferred_meetings
from stepscope.analysis.account.nodes import NodeFinder
from stepscope.analysis.account.queues import Queues
from stepscope.analysis.account.returns import Waits, waits_of
from stepscope.analysis.account.threads import Threads
from stepscope.analysis.account.windows import StepBounds
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, Mask


@dataclass(frozen=True)
class Contacts:
    """Points of contact of all threads, and what they wait for there.

    Attributes:
        main: the thread that the steps are those of.
        call, call_line, call_start_ps: calls that become nodes of their own.
        cut_line, cut_ps: where threads are cut.
        gap_line, gap_start_ps, gap_end_ps: where they only wait.
        unexplained_line, unexplained_ps: starts after a gap for which nothing tells the reason.
    """

    main: int
    call: I64
    call_line: I32
    call_start_ps: I64
    cut_line: I32
    cut_ps: I64
    gap_line: I32
    gap_start_ps: I64
    gap_end_ps: I64
    unexplained: frozenset[tuple[int, int]] = field(repr=False)
    waits: Waits = field(repr=False)
    meetings: list[Meetings] = field(repr=False)

    def of_line(self, line: int) -> tuple[I64, I64, I64]:
        """The cuts of a line, and the starts and ends of its gaps."""
        cut, gap = self.cut_line == line, self.gap_line == line
        start, end = self.gap_start_ps[gap], self.gap_end_ps[gap]
        order = np.argsort(start, kind="stable")
        return self.cut_ps[cut], start[order], end[order]

    def edges(self, finder: NodeFinder, first_work: int) -> list[Edges]:
        """What threads wait for."""
        return [self.waits.edges(finder, first_work), *(each.edges(finder) for each in self.meetings)]

    def is_unexplained(self, line: I32, start_ps: I64) -> Mask:
        """Which nodes start after a gap that nothing explains: bool of shape (nodes,)."""
        if not self.unexplained:
            return np.zeros(len(line), np.bool_)
        told = np.array(sorted(self.unexplained), np.int64)
        found = np.zeros(len(line), np.bool_)
        for each in np.unique(told[:, 0]).tolist():
            here = line == each
            found[here] = np.isin(start_ps[here], told[told[:, 0] == each, 1])
        return found


def contacts_of(trace: HostTrace, threads: Threads, queues: Queues, bounds: StepBounds, zero_ps: int) -> Contacts:
    """The points of contact of all threads of a host."""
    waits = waits_of(trace, queues)
    stated = handovers(trace, threads)
    quiet, meetings, lone = inferred_meetings(trace, threads, stated)
    launching = np.unique(queues.call[queues.call >= 0])
    call = np.union1d(launching, waits.call)
    start = trace.events.start_ps[call]
    line = trace.events.line[call]
    cuts = [
        (line, start),
        (line, start + trace.events.duration_ps[call]),
        (waits.line, waits.own_end_ps),
        *((each.source_line, each.source_ps) for each in [stated, meetings]),
        *((each.target_line, each.target_ps) for each in [stated, meetings]),
        _line_bounds(trace, threads, zero_ps),
        (np.full(len(bounds.mark_ps), bounds.mark_line, np.int32), bounds.mark_ps),
        (bounds.last_line, bounds.last_ps),
        *([(np.full(len(bounds.time_ps), bounds.host_line, np.int32), bounds.time_ps)] if bounds.host_line >= 0 else []),
    ]
    explained = waits.is_explained
    gaps = [
        (waits.line[explained], waits.own_end_ps[explained], waits.end_ps[explained]),
        (quiet.line, quiet.start_ps, quiet.end_ps),
    ]
    return Contacts(
        threads.main, call, line, start,
        *(np.concatenate(column) for column in zip(*cuts, strict=True)),
        *(np.concatenate(column) for column in zip(*gaps, strict=True)),
        frozenset(zip(lone.line.tolist(), lone.end_ps.tolist(), strict=True)), waits, [stated, meetings],
    )  # fmt: skip


def _line_bounds(trace: HostTrace, threads: Threads, zero_ps: int) -> tuple[I32, I64]:
    """The first start and the last end of each thread."""
    lines, times = [], []
    for line in threads.lines:
        rows = slice(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
        start = trace.events.start_ps[rows]
        lines += [line, line]
        times += [int(start.min()), int((start + trace.events.duration_ps[rows]).max())]
    del zero_ps
    return np.array(lines, np.int32), np.array(times, np.int64)
