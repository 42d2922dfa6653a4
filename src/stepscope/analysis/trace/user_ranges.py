"""Ranges that the program named on its threads: `record_function`, `TraceAnnotation`, `Trace`, `annotate`."""

from __future__ import annotations

from stepscope.analysis.trace.columns import events_of_kind, is_thread_event
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64, Mask, look_up, union
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import RangeTrait

_LIKE_RUNTIMES = ("tensorflow", "jax")  # they record ranges of the program like their own work


def user_ranges(trace: HostTrace) -> I64:
    """Rows of the ranges that the program named on its threads, in the order of the events; step marks left out."""
    return trace.derived("user ranges", _find_ranges)


def ranges_and_steps(trace: HostTrace) -> I64:
    """Rows of these ranges and of the marks of steps on threads."""
    marks = events_of_kind(trace, EventKind.STEP_MARK)
    return union(user_ranges(trace), marks[is_thread_event(trace)[marks]])


def framework_ranges(trace: HostTrace) -> I64:
    """Rows of the ranges that a framework or a library named on threads: steps of optimizers, parts of a pipeline, and
    of PyTorch the stages of compiling, which it records as such ranges."""
    named = _lasting_thread_events(trace, EventKind.ANNOTATION)
    named = named[_is_of_framework(trace, named)]
    if trace.framework in _LIKE_RUNTIMES:
        return named
    return union(named, _lasting_thread_events(trace, EventKind.COMPILE))


def _is_of_framework(trace: HostTrace, rows: I64) -> Mask:
    return has_trait(trace, trace.events.type[rows], RangeTrait.OF_FRAMEWORK | RangeTrait.UPDATES_MODEL)


def _lasting_thread_events(trace: HostTrace, kind: EventKind) -> I64:
    rows = events_of_kind(trace, kind)
    threads = look_up(trace.lines.kind == LineKind.THREAD, trace.events.line[rows])
    return rows[threads & (trace.events.duration_ps[rows] > 0)]


def _find_ranges(trace: HostTrace) -> I64:
    named = _lasting_thread_events(trace, EventKind.ANNOTATION)
    named = named[~_is_of_framework(trace, named)]
    if trace.framework not in _LIKE_RUNTIMES:
        return named
    others = _lasting_thread_events(trace, EventKind.OTHER)
    others = others[~has_trait(trace, trace.events.type[others], RangeTrait.OF_RUNTIME)]
    return union(named, _drop_passes(trace, others))


def _drop_passes(trace: HostTrace, rows: I64) -> I64:
    """The events that do not lie in compilation: passes of a compiler have names like a program's."""
    compiling = events_of_kind(trace, EventKind.COMPILE)
    if not len(rows) or not len(compiling):
        return rows
    start, length = trace.events.start_ps[rows], trace.events.duration_ps[rows]
    kept: I64 = rows[spans_of(trace, compiling).overlap_ps(start, start + length) < length]
    return kept
