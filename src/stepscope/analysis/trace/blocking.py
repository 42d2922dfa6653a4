"""Calls that return only when a device is done: waits, and copies that block."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.trace.columns import on_threads
from stepscope.analysis.trace.grouping import enclosing
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, run_rows
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait, CodeTrait


def blocking_calls(trace: HostTrace) -> I64:
    """Rows of the calls on threads that wait for a device, ascending; found once per trace."""
    return trace.derived("blocking calls", _blocking_calls)


def _blocking_calls(trace: HostTrace) -> I64:
    threads, kind = on_threads(trace), trace.events.kind
    calls = np.flatnonzero(threads & (kind == EventKind.RUNTIME_CALL))
    copies = calls[has_trait(trace, trace.events.type[calls], CallTrait.BLOCKING_COPY)]
    found = np.union1d(np.flatnonzero(threads & (kind == EventKind.SYNC)), copies)
    return np.union1d(found, _blocking_python(trace, found)) if trace.device_planes() else found


def _blocking_python(trace: HostTrace, recorded: I64) -> I64:
    """Python calls that wait, but for those in which the runtime recorded its own waiting."""
    python = np.flatnonzero(on_threads(trace) & (trace.events.kind == EventKind.PYTHON_CALL))
    calls = python[has_trait(trace, trace.events.type[python], CodeTrait.WAITS_FOR_DEVICE)]
    if not len(calls):
        return calls
    waits = np.zeros(len(trace.events), np.bool_)
    waits[calls] = True
    return np.setdiff1d(calls, enclosing(trace, waits)[recorded])


def without_waits(trace: HostTrace, rows: I64, start: I64, end: I64) -> tuple[I64, I64, I64]:
    """The parts of host events in which their thread does not wait for a device.

    Args:
        rows: the events, and when they start and end.

    Returns:
        For each part the place of its event in `rows`, its start and its end.  Events in which nothing waits are one
        part, and stand first.
    """
    waits = blocking_calls(trace)
    line = trace.events.line[rows]
    cut = np.isin(line, trace.events.line[waits])
    parts = [(np.flatnonzero(~cut), start[~cut], end[~cut])]
    for each in np.unique(line[cut]).tolist():
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
