"""Calls that return only when a device has finished: waits and blocking copies."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind, select_thread_events
from stepscope.analysis.trace.grouping import enclosing_events
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, distinct, run_rows, union
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait, CodeTrait


def blocking_calls(trace: HostTrace) -> I64:
    """Rows of the host calls that wait for a device, ascending; computed once per trace."""
    return trace.derived("blocking calls", _blocking_calls)


def _blocking_calls(trace: HostTrace) -> I64:
    calls = select_thread_events(trace, events_of_kind(trace, EventKind.RUNTIME_CALL))
    copies = calls[has_trait(trace, trace.events.type[calls], CallTrait.BLOCKING_COPY)]
    found = union(select_thread_events(trace, events_of_kind(trace, EventKind.SYNC)), copies)
    return union(found, _blocking_python(trace, found)) if trace.device_planes() else found


def _blocking_python(trace: HostTrace, recorded: I64) -> I64:
    """Python calls that wait, except those in which the runtime recorded a wait of its own."""
    python = select_thread_events(trace, events_of_kind(trace, EventKind.PYTHON_CALL))
    calls = python[has_trait(trace, trace.events.type[python], CodeTrait.WAITS_FOR_DEVICE)]
    if not len(calls):
        return calls
    waits = np.zeros(len(trace.events), np.bool_)
    waits[calls] = True
    return np.setdiff1d(calls, enclosing_events(trace, waits)[recorded])


def cut_waits(trace: HostTrace, rows: I64, start: I64, end: I64) -> tuple[I64, I64, I64]:
    """Cuts out of host events the time in which their thread waits for a device.

    Args:
        rows, start, end: the events with their bounds.

    Returns:
        For each remaining part the index of its event in `rows`, its start and its end.  Events without a wait are one
        part each and come first.
    """
    waits = blocking_calls(trace)
    line = trace.events.line[rows]
    cut = np.isin(line, trace.events.line[waits])
    parts = [(np.flatnonzero(~cut), start[~cut], end[~cut])]
    for each in distinct(line[cut]).tolist():
        at = np.flatnonzero(line == each)
        spans = spans_of(trace, waits[trace.events.line[waits] == each])
        first = np.searchsorted(spans.end, start[at], side="right")
        count = np.maximum(np.searchsorted(spans.start, end[at], side="left") - first, 0)
        # An event with n waits has n + 1 parts: from its start, or the end of a wait, to the next wait, or its end.
        place = np.repeat(np.arange(len(at)), count + 1)
        wait = run_rows(first, count + 1)
        nth = wait - first[place]
        begins = np.append(0, spans.end)[wait]
        ends = np.append(spans.start, 0)[wait]
        low = np.where(nth == 0, start[at][place], begins)
        high = np.where(nth == count[place], end[at][place], ends)
        some = high > low
        parts.append((at[place[some]], low[some], high[some]))
    row, low, high = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return row, low, high
