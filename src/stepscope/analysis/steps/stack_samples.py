"""Sampled Python stacks: what a thread ran where its calls were not recorded.

A frame that two consecutive samples show counts as running all the time between them, so short calls are not seen and
the number of calls is unknown.  What takes a large part of the time of all steps together is seen.

A frame starts and ends up to half an interval of the sampling too early or too late.  So a function that runs mostly in
some short intervals counts as running there also where its frames reach a little beyond them.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.own_tracers import events_of_thread
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import HostTrace
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_stack_samples
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait, CodeTrait

_MOST_OF = 0.5  # a function with this share of the time is where to look
_INTERVAL_PS = 10_000_000_000  # between samples, at the rate of `stepscope run`
_LEAST_PS = 5 * _INTERVAL_PS  # of less time nothing is said


@dataclass(frozen=True)
class SampledFunction:
    """The function that takes most of some time.

    Attributes:
        frame: a row of one of its frames.
        share: the share of the time that it holds, 0 to 1.
        inside: a row of a frame of the library's function within it that most of that time is in; -1 without one.
    """

    frame: int
    share: float
    inside: int = -1


def sampled_frames(trace: HostTrace, line: int) -> I64:
    """The sampled frames of a thread, in order of time: int64 of shape (n,), rows of events.

    Args:
        line: the line on which a profiler recorded the thread; the samples of the same thread have its number.
    """
    found: I64 = trace.derived(f"stack samples of line {line}", lambda host: _find_frames(host, line))
    return found


def _find_frames(trace: HostTrace, line: int) -> I64:
    return events_of_thread(trace, line, holds_stack_samples)


def main_function(trace: HostTrace, line: int, spans: Spans) -> SampledFunction | None:
    """The innermost function of the program, else of a library, that holds most of some time of a thread; None where
    the samples show none, or the time is too short.

    Args:
        line: of the thread; see `sampled_frames`.
    """
    rows = sampled_frames(trace, line)
    if not len(rows) or spans.total < _LEAST_PS:
        return None
    inner = _innermost(trace, rows, spans, CodeTrait.IS_CODE)
    users = _innermost(trace, rows, spans, CodeTrait.OF_USER)
    if users is None or inner is None:
        return users or inner
    differs = trace.events.type[inner.frame] != trace.events.type[users.frame]
    return SampledFunction(users.frame, users.share, inner.frame if differs else -1)


def pool_function(trace: HostTrace, prefix: str, spans: Spans) -> SampledFunction | None:
    """The innermost function of the program that runs for most of some time on any of several threads; None without.

    Args:
        prefix: how the names of the threads start.
    """
    rows = [_line_rows(trace, line) for line in _sampled_lines(trace) if trace.line_label(line).startswith(prefix)]
    if not rows or spans.total < _LEAST_PS:
        return None
    frames = np.concatenate(rows)
    frames = frames[has_trait(trace, trace.events.type[frames], CodeTrait.OF_USER)]
    found = []
    for type_ in np.unique(trace.events.type[frames]).tolist():
        own = frames[trace.events.type[frames] == type_]
        running_ps = (spans_of(trace, own) & spans).total
        if running_ps >= _MOST_OF * spans.total:
            found.append((running_ps, -int(trace.events.start_ps[own].min()), int(own[0])))
    if not found:
        return None
    running_ps, _, frame = min(found)
    return SampledFunction(frame, running_ps / spans.total)


def _sampled_lines(trace: HostTrace) -> list[int]:
    planes = [row for row in range(len(trace.planes)) if holds_stack_samples(trace.plane_name(row))]
    lines: list[int] = np.flatnonzero(np.isin(trace.lines.plane, planes)).tolist()
    return lines


def _line_rows(trace: HostTrace, line: int) -> I64:
    return np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))


def _innermost(trace: HostTrace, rows: I64, spans: Spans, whose: CodeTrait) -> SampledFunction | None:
    """The function that holds most of the time and is inside the others that do."""
    rows = rows[has_trait(trace, trace.events.type[rows], whose)]
    start, end = trace.events.start_ps[rows], trace.events.start_ps[rows] + trace.events.duration_ps[rows]
    wider = Spans.union(spans.start - _INTERVAL_PS // 2, spans.end + _INTERVAL_PS // 2)
    near = wider.overlap_ps(start, end) > 0
    rows, start, end = rows[near], start[near], end[near]
    functions, first, of_frame = np.unique(trace.events.type[rows], return_index=True, return_inverse=True)
    held, reach, length = np.zeros((3, len(functions)), np.int64)
    np.add.at(held, of_frame, spans.overlap_ps(start, end))
    np.add.at(reach, of_frame, wider.overlap_ps(start, end))
    np.add.at(length, of_frame, end - start)
    sums = np.where(held >= _MOST_OF * length, reach, held)
    enough = np.flatnonzero(sums >= _MOST_OF * spans.total)
    if not len(enough):
        return None
    # An inner function takes no longer than an outer one, and comes after it.
    best = enough[np.lexsort((-first[enough], length[enough], held[enough]))[0]]
    return SampledFunction(int(rows[first[best]]), min(float(sums[best] / spans.total), 1.0))


def spans_of_others(trace: HostTrace, line: int) -> Spans:
    """When the samples of a thread show functions none of which makes input by its name."""
    rows = sampled_frames(trace, line)
    return spans_of(trace, rows) - spans_of(
        trace, rows[has_trait(trace, trace.events.type[rows], CallTrait.MAKES_INPUT)]
    )
