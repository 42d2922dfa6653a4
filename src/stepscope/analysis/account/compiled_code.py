"""Whether a thread interprets Python or is in compiled code, such as NumPy's, where samples of its stack tell."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.innermost import cut_by_events
from stepscope.analysis.steps.own_tracers import events_of_thread
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lines import IN_CALL, RUNS_PYTHON, holds_interpreter_samples
from stepscope.vocabulary.lookup import type_names

# Of what is known of a function.  A loop of Python around ten short calls is met at its jump back once in eleven times.
_NEARLY_ALL = 0.95
# Of a call, innermost: a thousand instructions of Python take less, which is a long function without a loop.
_LEAST_CALL_PS = 100_000_000
_LEAST_PS = 50_000_000_000  # five samples at the rate of `stepscope run`: of less nothing is said


@dataclass(frozen=True)
class Interpreting:
    """When samples found a thread at what; moments of which they do not tell are in neither."""

    python: Spans
    compiled: Spans


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
    python, compiled = (
        spans_of(trace, rows[trace.events.type[rows] == named.get(name, -1)]) for name in (RUNS_PYTHON, IN_CALL)
    )
    return Interpreting(python, compiled)


def compiled_calls(trace: HostTrace, line: int) -> I64:
    """Recorded calls on a thread of functions of Python that are in compiled code whenever they are innermost: rows of
    events."""
    found = interpreting_of(trace, line)
    if found is None:
        return np.empty(0, np.int64)
    calls = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    calls = calls[trace.events.kind[calls] == EventKind.PYTHON_CALL]
    python, compiled = (_innermost_ps(trace, line, spans) for spans in (found.python, found.compiled))
    known = python + compiled
    count = np.bincount(trace.events.type[calls], minlength=len(known))
    long = known >= np.maximum(_LEAST_CALL_PS * count, _LEAST_PS)
    chosen = np.flatnonzero(long & (compiled >= _NEARLY_ALL * known))
    rows: I64 = calls[np.isin(trace.events.type[calls], chosen)]
    return rows


def _innermost_ps(trace: HostTrace, line: int, spans: Spans) -> I64:
    """How long events of each type are innermost on a thread in some time: int64 of shape (types,)."""
    held = np.zeros(len(trace.event_types.name), np.int64)
    if len(spans.start):
        _, start, end, event = cut_by_events(trace, line, spans.start, spans.end)
        inside = event >= 0
        np.add.at(held, trace.events.type[event[inside]], (end - start)[inside])
    return held
