"""Launches whose work on a device was not recorded."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.program_runs import ops_of_run
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait


@dataclass(frozen=True)
class Launches:
    """Calls that launch kernels or graphs, in the order of time; without any the runs of programs that devices record.

    Attributes:
        call: int64 of shape (n,), rows of events.
        recorded: bool of shape (n,), whether any of their work is in the trace.
        lost: bool of shape (n,), whether none is though there was some: a call inside a capture of a graph has none.
    """

    call: I64
    recorded: Mask
    lost: Mask

    def share_lost(self, trace: HostTrace, start_ps: I64, end_ps: I64) -> float:
        """The share of the launches within some spans, one after the other, whose work was not recorded."""
        at = trace.events.start_ps[self.call]
        place = np.searchsorted(start_ps, at, side="right") - 1
        inside = (place >= 0) & (at < np.append(end_ps, 0)[place])
        return float(self.lost[inside].mean()) if inside.any() else 0.0

    def end_of_record(self, trace: HostTrace) -> int | None:
        """When the first launch is made after which no work was recorded any more, ps; None where that is none, or
        other work before it is missing too."""
        start = trace.events.start_ps[self.call]
        if not self.lost.any() or not self.recorded.any() or start[self.lost].min() < start[self.recorded].max():
            return None
        return int(start[self.lost].min())


def launches_of(trace: HostTrace) -> Launches:
    """The launches of a host that can be told from others by an id; found once."""
    return trace.derived("launches", _launches)


def _launches(trace: HostTrace) -> Launches:
    from stepscope.analysis.trace.captured_graphs import captures_of_calls

    calls = events_of_kind(trace, EventKind.RUNTIME_CALL)
    calls = calls[has_trait(trace, trace.events.type[calls], CallTrait.LAUNCHES_KERNEL | CallTrait.LAUNCHES_GRAPH)]
    ids = trace.stat_ints(stat_names.CORRELATION_ID, rows=calls)
    calls, ids = calls[ids > 0], ids[ids > 0]
    calls, ids = (each[np.argsort(trace.events.start_ps[calls], kind="stable")] for each in (calls, ids))
    work = trace.stat_ints(stat_names.CORRELATION_ID, rows=np.flatnonzero(is_device_work(trace)))
    recorded = np.isin(ids, work)
    lost = ~recorded
    if lost.any():
        lost[lost] = captures_of_calls(trace, calls[lost]) < 0
    if not len(calls):
        calls, recorded = _runs_of_programs(trace)
        lost = ~recorded
    return Launches(calls, recorded, lost)


def _runs_of_programs(trace: HostTrace) -> tuple[I64, Mask]:
    """The runs of programs that devices of their own lines record, in order of time, and whether any op of each was
    recorded; none where no op of any was, as ops were switched off then."""
    lines, found = trace.lines, []
    of_runs = (lines.kind == LineKind.MODULES) & (trace.planes.kind[lines.plane] != PlaneKind.GPU)  # derived there
    for line in np.flatnonzero(of_runs & (lines.event_end > lines.event_begin)).tolist():
        runs = np.arange(int(lines.event_begin[line]), int(lines.event_end[line]))
        has_op = ops_of_run(trace, runs) >= 0
        if has_op.any():
            found.append((runs, has_op))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    runs, has_op = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(trace.events.start_ps[runs], kind="stable")
    return runs[order], has_op[order]
