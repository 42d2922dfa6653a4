"""What is known of the time in which nothing is recorded on the loop's thread: silence is no evidence.

    main    M0-a-b--------------M1-      from the end of b on, nothing says what the thread does: if the device then
    gpu         k---------               computes what was launched, the thread waits for it, as far as anyone can
                |  waits  | ? |          tell; for the rest of the time nothing is known

Between two events that follow each other closely the thread goes from one dispatch to the next; what takes longer is
the program's own Python, a wait, or work of a library, and silence does not tell which.  Processor time and samples of
the stack do: where these were recorded, the thread is not silent.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import (
    LONG_GAP_PS,
    Cause,
    causes_of_work,
    event_causes,
    has_native_events,
    is_silent,
    lacks_ops,
    long_frames,
)
from stepscope.analysis.account.threads import recorded_threads, threads_of
from stepscope.analysis.steps.own_tracers import usage_of_thread
from stepscope.analysis.steps.stack_samples import sampled_frames
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind
from stepscope.analysis.trace.grouping import device_rows, enclosing_events, forest
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

DISPATCHES = (EventKind.TRACED_FUNCTION, EventKind.EAGER_EXECUTE, EventKind.FUNCTION_RUN)
_NOTHING = Spans(np.empty(0, np.int64), np.empty(0, np.int64))
# While a device does several things at once, it computes, else it communicates.
_FIRST = (Cause.DEVICE_COMPUTE, Cause.COMMUNICATION)


def silence_of(trace: HostTrace) -> Spans:
    """When nothing says what the loop's thread does, for longer than going from one dispatch to the next takes; found
    once."""
    return trace.derived("silence of the loop", _silence)


def _silence(trace: HostTrace) -> Spans:
    seen = sampled_loop_time(trace)
    return (silent_spans(trace) - seen).drop_shorter(LONG_GAP_PS) | (_long_dispatches(trace) - seen)


def _long_dispatches(trace: HostTrace) -> Spans:
    """When the loop's thread is in a call that starts work, and for longer than that takes nothing else is recorded of
    it: the call runs the work itself, or waits."""
    threads = threads_of(trace)
    quiet = threads.quiet
    rows = np.flatnonzero((quiet.line == threads.main) & (quiet.event >= 0))
    rows = rows[quiet.end_ps[rows] - quiet.start_ps[rows] >= LONG_GAP_PS]
    rows = rows[event_causes(trace)[quiet.event[rows]] == Cause.LAUNCH]
    rows = rows[~_starts_runtime(trace, quiet.event[rows])]
    return Spans.union(quiet.start_ps[rows], quiet.end_ps[rows])


def _starts_runtime(trace: HostTrace, calls: I64) -> Mask:
    """Which calls of a device's runtime start it, as they come before anything that a device does, and are none that
    wait: the first of a process makes its context.  Bool of shape (calls,)."""
    work, events = device_rows(trace), trace.events
    first = int(events.start_ps[work].min()) if len(work) else 0
    found: Mask = (events.kind[calls] == EventKind.RUNTIME_CALL) & (events.start_ps[calls] < first)
    return found & ~has_trait(trace, events.type[calls], CallTrait.MAY_BLOCK)


def silent_spans(trace: HostTrace) -> Spans:
    """When no event says what the loop's thread does, however shortly; found once."""
    return trace.derived("silent spans of the loop", _silent_spans)


def sampled_loop_time(trace: HostTrace) -> Spans:
    """When the processor time or the stack of the loop's thread was recorded."""
    line = threads_of(trace).main
    if line < 0:
        return _NOTHING
    usage = usage_of_thread(trace, line)
    read = _NOTHING if usage is None else Spans.union(usage.start_ps, usage.end_ps)
    return read | spans_of(trace, sampled_frames(trace, line))


def _silent_spans(trace: HostTrace) -> Spans:
    line = threads_of(trace).main
    if line < 0 or not recorded_threads(trace):
        return _NOTHING
    rows = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    start, end = trace.events.start_ps[rows], trace.events.start_ps[rows] + forest(trace).extent_ps[rows]
    says = ~is_silent(trace, rows)
    if trace.framework and not has_native_events(trace):
        # What the framework does was not recorded: a function of Python may be in it for long.
        says &= (trace.events.kind[rows] != EventKind.PYTHON_CALL) | (end - start < LONG_GAP_PS)
    elif lacks_ops(trace):  # one that starts work does not say what it does between
        says &= ~long_frames(trace)[rows]
    first, last = trace.span_ps()
    whole = Spans(np.array([first], np.int64), np.array([last], np.int64))
    return whole - Spans.union(start[says], end[says])


def new_programs_of(trace: HostTrace) -> Spans:
    """When a call of the loop's thread that has traced or compiled its program prepares the first run of it, which is
    not recorded: the silence that follows in the same call."""
    threads, events = threads_of(trace), trace.events
    compiling = events_of_kind(trace, EventKind.COMPILE)
    compiling = compiling[events.line[compiling] == threads.main]
    quiet = threads.quiet
    rows = np.flatnonzero((quiet.line == threads.main) & (quiet.event >= 0)) if len(compiling) else compiling
    outer = enclosing_events(trace, is_any_kind(events.kind, DISPATCHES)) if len(compiling) else None
    if outer is None:
        return _NOTHING
    first = np.full(len(events), np.iinfo(np.int64).max)
    here = compiling[outer[compiling] >= 0]
    np.minimum.at(first, outer[here], events.start_ps[here])
    call = outer[quiet.event[rows]]
    rows = rows[(call >= 0) & (first[np.maximum(call, 0)] <= quiet.start_ps[rows])]
    return Spans.union(quiet.start_ps[rows], quiet.end_ps[rows]) & _long_dispatches(trace)


def devices_in_silence(trace: HostTrace) -> dict[Cause, Spans]:
    """What devices do while the loop's thread is silent, by cause; at one moment one of them."""
    silence, found = silence_of(trace), dict[Cause, Spans]()
    if not silence.total:
        return found
    rows = device_rows(trace)
    causes = causes_of_work(trace)[trace.events.kind[rows]]
    for each in (*_FIRST, *sorted(set(map(Cause, distinct(causes).tolist())) - set(_FIRST))):
        here = spans_of(trace, rows[causes == each]) & silence
        if here.total:
            found[each], silence = here, silence - here
    return found
