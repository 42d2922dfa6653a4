"""The functions of the program that the loop's thread runs, by recorded calls or by samples of its stack.

A function is a part of the step that could be left out, with all that it causes: its own time, what it waits for, and
what it starts on devices and other threads.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.sampled_time import sampled_time_of
from stepscope.analysis.account.selectors import (
    Portion,
    join_parts,
    part_of_events,
    part_of_stretches,
    waits_in_stretches,
)
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import observed_time
from stepscope.analysis.steps.stack_samples import sampled_frames
from stepscope.analysis.trace.columns import events_of_kind, is_thread_event
from stepscope.analysis.trace.grouping import enclosing_events, forest
from stepscope.analysis.trace.spans import Spans, is_outermost, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.python import place_of
from stepscope.vocabulary.traits import CallTrait, CodeTrait


@dataclass(frozen=True)
class LoopFunction:
    """A function of the program on the loop's thread.

    Attributes:
        frame: a row of one of its frames.
        spans: when it runs, in the observed time.
        certain: the same without edges that no sample tells, for what is counted in it rather than timed.
        calls: int64, rows of its recorded calls; empty where samples of the stack show it.
        samples: int64, the times of the samples that show it, ps; empty where its calls were recorded.
    """

    frame: int
    spans: Spans
    certain: Spans
    calls: I64
    samples: I64

    def share_in(self, spans: Spans) -> float:
        """The share of it that lies in some time, 0 to 1: by its samples, which have no edges, else by its calls."""
        if len(self.samples):
            return float((spans.overlap_ps(self.samples, self.samples + 1) > 0).mean())
        return (self.spans & spans).total / max(self.spans.total, 1)


def functions_of_loop(trace: HostTrace) -> list[LoopFunction]:
    """The functions of the program that run on the loop's thread, found once per trace; in no order."""
    return trace.derived("functions of the loop", _find_functions)


def _find_functions(trace: HostTrace) -> list[LoopFunction]:
    line, seen = threads_of(trace).main, observed_time(trace)
    if line < 0 or not len(seen.start):
        return []
    calls = events_of_kind(trace, EventKind.PYTHON_CALL)
    rows = _keep_functions_of_program(trace, calls[trace.events.line[calls] == line])
    length, sampled = forest(trace).extent_ps, None
    is_sampled = not len(rows)
    if is_sampled:
        length, rows = trace.events.duration_ps, _keep_functions_of_program(trace, sampled_frames(trace, line))
        sampled = sampled_time_of(trace, line) if len(rows) else None
    found = []
    for type_ in distinct(trace.events.type[rows]).tolist():
        own = rows[trace.events.type[rows] == type_]
        start = trace.events.start_ps[own]
        spans, shown = Spans.union(start, start + length[own]), own[:0]
        certain = spans
        if sampled is not None:
            spans, certain, shown = sampled.spans_shown(spans)
        spans = spans & seen
        if spans.total:
            calls = own[:0] if is_sampled else own
            found.append(LoopFunction(int(own[0]), spans, certain & seen, calls, shown))
    return found


def _keep_functions_of_program(trace: HostTrace, frames: I64) -> I64:
    """The frames of functions of the program: none of a part of one, and none that only reads a value or waits."""
    types = trace.events.type[frames]
    users, part = (has_trait(trace, types, each) for each in (CodeTrait.OF_USER, CodeTrait.PART_OF_FUNCTION))
    reads = has_trait(trace, types, CallTrait.READS_VALUE | CallTrait.WAITS)
    found: I64 = frames[users & ~part & ~reads]
    return found


def function_named(trace: HostTrace, name: str) -> LoopFunction | None:
    """The sampled function that has a name: its own, or its place as `file.py:line`, with or without its name."""
    for found in functions_of_loop(trace):
        if not len(found.calls) and name in names_of_function(trace, found):
            return found
    return None


def names_of_function(trace: HostTrace, function: LoopFunction) -> list[str]:
    """How a person may call a function: as faces show it."""
    own, file, line = place_of(trace.name_of(function.frame))
    short = file.rpartition("/")[2] if file else ""
    places = [f"{each}:{line}" for each in (file, short) if each]
    return [own, own.rpartition(".")[2], *places, *(f"{place} {own}" for place in places)]


def part_of_function(model: StepModel, function: LoopFunction, without: Spans | None = None) -> Portion:
    """The time of a function in a model, with what it waits for, and what it starts elsewhere.

    Args:
        without: time that is not its own, where samples tell its edges only roughly.
    """
    if len(function.calls):
        return part_with_work(model, function.calls)
    spans = function.spans if without is None else function.spans - without
    line = model.threads.main
    events = model.trace.events
    rows = np.arange(model.trace.lines.event_begin[line], model.trace.lines.event_end[line], dtype=np.int64)
    start = events.start_ps[rows]
    end = start + events.duration_ps[rows]
    inside = rows[(end > start) & (spans.overlap_ps(start, end) == end - start)]
    start = events.start_ps[inside]
    inside = inside[is_outermost(start, start + events.duration_ps[inside])]
    own = part_of_stretches(model, line, spans)
    return join_parts([own, part_of_events(model, started_by(model.trace, inside))])


def part_with_work(model: StepModel, rows: I64) -> Portion:
    """The time of some events, what threads wait for in them, and what calls inside them start on devices and on other
    threads."""
    trace = model.trace
    on_thread = rows[is_thread_event(trace)[rows]]
    part = part_of_events(model, np.concatenate([rows, started_by(trace, on_thread)]))
    line = trace.events.line[on_thread]
    waited = [
        waits_in_stretches(model, each, spans_of(trace, on_thread[line == each]))
        for each in numbers_in(line)
        if not model.threads.serves_input[each]
    ]
    if not waited:
        return part
    joined = join_parts(waited)
    return replace(part, pause_ps=joined.pause_ps, waits=joined.waits)


def started_by(trace: HostTrace, rows: I64) -> I64:
    """What calls inside some events of threads start elsewhere, and what that starts: rows of events."""
    chosen, cause = np.zeros(len(trace.events), np.bool_), forest(trace).cause
    begun, rows_of_others = np.flatnonzero(cause >= 0), [rows[:0]]
    while len(rows):
        chosen[rows] = True
        inside = enclosing_events(trace, chosen) >= 0
        rows = begun[inside[cause[begun]] & ~inside[begun]]
        rows_of_others.append(rows)
    return np.concatenate(rows_of_others)
