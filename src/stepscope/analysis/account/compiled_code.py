"""Whether a thread interprets Python or is in compiled code, such as NumPy's, where samples of its stack tell.

Of a call in a loop one sample does not tell: the call may take long, or be one of many short ones.  All samples of a
function do, since Python that repeats is also met where it jumps back, or begins a function.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.contention import asleep_ps
from stepscope.analysis.account.innermost import cut_by_events
from stepscope.analysis.account.sampled_time import sampled_time_of
from stepscope.analysis.steps.own_tracers import events_of_thread
from stepscope.analysis.steps.stack_samples import has_native_samples, rows_on, sampled_frames
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lines import EITHER, IN_CALL, RUNS_PYTHON, holds_interpreter_samples
from stepscope.vocabulary.lookup import type_names

# A loop of Python around ten short calls is met at its jump back once in eleven times: of a function that is met there,
# or where a function begins, less often than in one of twenty samples, compiled code takes the time.
_MOST_PYTHON = 0.05
# Of a call, innermost: a thousand instructions of Python take less, which is a long function without a loop.
_LEAST_CALL_PS = 100_000_000
_LEAST_PS = 50_000_000_000  # five samples, 10 ms apart: of less nothing is said
_LEAST_SAMPLES = 5  # of a function: with none of five in Python, it is less than half of the time (p = 0.03)
# Of a function's time: of more, it waits in its calls, such as in `time.sleep`, and computes nothing.
_MOST_ASLEEP = 0.5
_SAYS = (RUNS_PYTHON, IN_CALL, EITHER)


@dataclass(frozen=True)
class Interpreting:
    """When samples found a thread at what; moments of which they do not tell are in none.

    Attributes:
        python: running Python; call: in compiled code; either: in a call within a loop.
    """

    python: Spans
    call: Spans
    either: Spans


def interpreting_of(trace: HostTrace, line: int) -> Interpreting | None:
    """What samples found a thread at; None where they do not tell, as in recordings of other tools.

    Args:
        line: the line on which a profiler recorded the thread.
    """
    rows = events_of_thread(trace, line, holds_interpreter_samples) if line >= 0 else np.empty(0, np.int64)
    if not len(rows):
        return None
    types = distinct(trace.events.type[rows]).astype(np.int64)
    named = dict(zip(type_names(trace, types), types.tolist(), strict=True))
    return Interpreting(*(spans_of(trace, rows[trace.events.type[rows] == named.get(name, -1)]) for name in _SAYS))


def compiled_calls(trace: HostTrace, line: int) -> I64:
    """Recorded calls on a thread of functions of Python that are in compiled code whenever they are innermost: rows of
    events."""
    found = interpreting_of(trace, line)
    if found is None:
        return np.empty(0, np.int64)
    calls = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    calls = calls[trace.events.kind[calls] == EventKind.PYTHON_CALL]
    python, call, either = (_innermost_ps(trace, line, spans) for spans in (found.python, found.call, found.either))
    count = np.bincount(trace.events.type[calls], minlength=len(python))
    long = python + call + either >= np.maximum(_LEAST_CALL_PS * count, _LEAST_PS)
    rows: I64 = calls[np.isin(trace.events.type[calls], np.flatnonzero(long & _is_compiled(python, call, either)))]
    return rows


def _is_compiled(python: I64, call: I64, either: I64) -> Mask:
    """Whether what was found so often, or so long, at each of the three is compiled code."""
    found: Mask = (call > 0) & (python <= _MOST_PYTHON * (python + call + either))
    return found


def _innermost_ps(trace: HostTrace, line: int, spans: Spans) -> I64:
    """How long events of each type are innermost on a thread in some time: int64 of shape (types,)."""
    held = np.zeros(len(trace.event_types.name), np.int64)
    if len(spans.start):
        _, start, end, event = cut_by_events(trace, line, spans.start, spans.end)
        inside = event >= 0
        np.add.at(held, trace.events.type[event[inside]], (end - start)[inside])
    return held


def compiled_time(trace: HostTrace, line: int) -> Spans:
    """When samples show a thread in compiled code that the innermost of all functions called, whether that function was
    recorded or not; empty where they do not tell."""
    found, frames = interpreting_of(trace, line), sampled_frames(trace, line)
    if found is not None and has_native_samples(trace):
        return found.call  # each of them says where the thread was
    sampled = sampled_time_of(trace, line) if found is not None and len(frames) else None
    if found is None or sampled is None:
        return Spans(frames[:0], frames[:0])
    times = sampled.times
    _, _, _, event = cut_by_events(trace, int(trace.events.line[frames[0]]), times, times + 1)
    function = np.where(event >= 0, trace.events.type[event], len(trace.event_types.name)).astype(np.int64)
    says = [spans.overlap_ps(times, times + 1) > 0 for spans in (found.python, found.call, found.either)]
    counts = [np.bincount(function, each, len(trace.event_types.name) + 1).astype(np.int64) for each in says]
    chosen = _is_compiled(*counts) & (sum(counts) >= _LEAST_SAMPLES)
    shown = chosen[function] & (says[1] | says[2])
    # A thread that another one keeps from the interpreter waits in such a call for its turn.
    shown &= _python_of_others(trace, line).overlap_ps(times, times + 1) == 0
    found_there = Spans(sampled.start[:0], sampled.end[:0])
    for each in np.flatnonzero(chosen).tolist():
        inside = (shown & (function == each))[sampled.sample]
        there = Spans.union(sampled.start[inside], sampled.end[inside])
        if (asleep_ps(trace, line, there) or 0) <= _MOST_ASLEEP * there.total:
            found_there = found_there | there
    return found_there


def _python_of_others(trace: HostTrace, line: int) -> Spans:
    """When samples find another thread running Python, or calling what may be short."""
    rows = np.setdiff1d(
        rows_on(trace, holds_interpreter_samples), events_of_thread(trace, line, holds_interpreter_samples)
    )
    types = distinct(trace.events.type[rows]).astype(np.int64)
    named = zip(type_names(trace, types), types.tolist(), strict=True)
    return spans_of(trace, rows[np.isin(trace.events.type[rows], [each for name, each in named if name != IN_CALL])])
