"""What TensorFlow traced and PyTorch compiled during a capture of Stepscope, which notes why; see `compilations`.

A note has the time of tracing, or of tracing and compiling.  Where the trace holds the call around it, as those of
TensorFlow do, the call's time counts: what follows the tracing, up to the first run, is a part of the cost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind, is_thread_event
from stepscope.model import EventKind, HostTrace, StatValue, stat_names
from stepscope.model.arrays import I64, distinct, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_compilations

FIRST, AGAIN, FUNCTION, VARIABLES = "first", "again", "function", "variables"
_MOST_NOTES = 10_000

Change = tuple[str, str, str]
"""An argument, what it was before, and what it is now; empty texts where that is unknown."""


@dataclass(frozen=True)
class NotedCompilation:
    """One function that was traced or compiled.

    Attributes:
        event: row of the call that needed it, else of the note.
        function: its name; `place`: file and line of the user's code, empty if unknown.
        total_ps, backend_ps: time of the call, and of that the compiler's after tracing.
        trace_ps: of that, tracing.
        reason: FIRST, AGAIN for other arguments, FUNCTION for a new function of the same code, VARIABLES for the second
            tracing of a function that made variables.
        changes: the arguments that changed.
    """

    event: int
    function: str
    place: str
    total_ps: int
    trace_ps: int
    backend_ps: int
    reason: str
    changes: tuple[Change, ...]


def noted_compilations(trace: HostTrace) -> list[NotedCompilation]:
    """The notes of a trace in order of time; none where Stepscope did not capture it."""
    rows = _note_rows(trace)
    calls = _calls_around(trace, rows)
    own_ps = trace.events.duration_ps[rows]
    total_ps = own_ps.copy()
    for call in distinct(calls[calls != rows]).tolist():
        # Of several tracings in one call, the first has what the others leave of the call's time.
        mine = np.flatnonzero(calls == call)
        rest_ps = int(trace.events.duration_ps[call]) - int(own_ps[mine[1:]].sum())
        total_ps[mine[0]] = max(rest_ps, int(own_ps[mine[0]]))
    columns = zip(rows.tolist(), calls.tolist(), own_ps.tolist(), total_ps.tolist(), strict=True)
    return [_make_note(trace, *each) for each in columns]


def _note_rows(trace: HostTrace) -> I64:
    planes = [row for row in range(len(trace.planes)) if holds_compilations(trace.plane_name(row))]
    rows = (
        np.flatnonzero(look_up(np.isin(trace.lines.plane, planes), trace.events.line))
        if planes
        else np.empty(0, np.int64)
    )
    return rows[np.argsort(trace.events.start_ps[rows], kind="stable")][:_MOST_NOTES]


def _calls_around(trace: HostTrace, rows: I64) -> I64:
    """The shortest call of the same function around each note; the note itself where there is none."""
    found = rows.copy()
    if not len(rows):
        return found
    calls = events_of_kind(trace, EventKind.TRACED_FUNCTION)
    calls = calls[is_thread_event(trace)[calls]]
    start, length = trace.events.start_ps[calls], trace.events.duration_ps[calls]
    names = trace.event_types.name[trace.events.type[calls]]
    for at, row in enumerate(rows.tolist()):
        begin = int(trace.events.start_ps[row])
        end = begin + int(trace.events.duration_ps[row])
        around = np.flatnonzero((start <= begin) & (start + length >= end))
        named = [each for each in around.tolist() if trace.strings[int(names[each])] == trace.name_of(row)]
        if named:
            found[at] = int(calls[min(named, key=lambda each: int(length[each]))])
    return found


def _make_note(trace: HostTrace, row: int, call: int, own_ps: int, total_ps: int) -> NotedCompilation:
    stats = trace.stats_of_event(row)
    backend = stats.get(stat_names.BACKEND_COMPILE_NS[0])
    backend_ps = min(backend * 1000, own_ps) if isinstance(backend, int) and backend > 0 else 0
    return NotedCompilation(
        event=call,
        function=trace.name_of(row),
        place=_stat_text(stats, stat_names.COMPILED_PLACE),
        total_ps=total_ps,
        trace_ps=own_ps - backend_ps,
        backend_ps=backend_ps,
        reason=_stat_text(stats, stat_names.COMPILE_REASON),
        changes=_read_changes(_stat_text(stats, stat_names.CHANGED_ARGUMENTS)),
    )


def _stat_text(stats: Mapping[str, StatValue], names: tuple[str, ...]) -> str:
    value = stats.get(names[0])
    return value if isinstance(value, str) else ""


def _read_changes(text: str) -> tuple[Change, ...]:
    """The changes as they were noted; none for a damaged text."""
    try:
        listed = json.loads(text or "[]")
        return tuple((str(name), str(before), str(now)) for name, before, now in listed)
    except (ValueError, TypeError, RecursionError):
        return ()
