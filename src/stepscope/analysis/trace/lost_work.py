"""Launches whose work on a device was not recorded."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import device_rows, is_device_work
from stepscope.analysis.trace.program_runs import runs_on_devices
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

K = EventKind
_LAUNCHED = (K.KERNEL, K.DEVICE_OP, K.GRAPH_LAUNCH)


@dataclass(frozen=True)
class Launches:
    """Calls that launch kernels or graphs, in the order of time.

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


def end_of_record(trace: HostTrace) -> int | None:
    """When the record of the devices ends though the host goes on, ps: with the first launch after which no work was
    recorded any more; where nothing links work to launches, as of programs on TPUs, with the last work, if programs
    are called after it.  None where it does not end early."""
    launches = launches_of(trace)
    if len(launches.call):
        return launches.end_of_record(trace)
    work, calls = device_rows(trace), events_of_kind(trace, EventKind.TRACED_FUNCTION)
    if not len(work) or not len(calls):
        return None
    last = int((trace.events.start_ps[work] + trace.events.duration_ps[work]).max())
    return last if int(trace.events.start_ps[calls].max()) > last else None


def share_lost(trace: HostTrace, start_ps: I64, end_ps: I64) -> float:
    """The share of the work within some spans that was not recorded, as far as anything tells: of the launches whose
    work was lost, or of the time of programs in which no op was recorded, as ops fill a program nearly wholly.

    Args:
        start_ps, end_ps: int64 of shape (spans,), one after the other.
    """
    return max(
        launches_of(trace).share_lost(trace, start_ps, end_ps), _share_of_programs(trace, Spans.union(start_ps, end_ps))
    )


def _share_of_programs(trace: HostTrace, inside: Spans) -> float:
    runs, works = runs_on_devices(trace), is_device_work(trace)
    ran = filled = 0
    for line, rows in runs.items():
        here = np.flatnonzero(works & look_up(trace.lines.plane == trace.lines.plane[line], trace.events.line))
        program = spans_of(trace, rows) & inside
        if len(here):  # else ops were switched off
            ran, filled = ran + program.total, filled + (program & spans_of(trace, here)).total
    return 1.0 - filled / ran if ran else 0.0


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
    rows = device_rows(trace) if len(calls) else calls
    work = trace.stat_ints(stat_names.CORRELATION_ID, rows=rows)
    recorded = np.isin(ids, work)
    unnamed = np.isin(trace.events.kind[rows[work <= 0]], _LAUNCHED)
    # Each kernel without an id may be the work of a launch that is not found by its own.
    lost = ~recorded if unnamed.sum() < (~recorded).sum() else np.zeros(len(ids), np.bool_)
    if lost.any():
        lost[lost] = captures_of_calls(trace, calls[lost]) < 0
    return Launches(calls, recorded, lost)
