"""What most of a recording is spent on where its steps are the smaller part of it.

    main    |train()----------------------------------------------------------------|
                                                        |step|step|step|
            what starts the workers, and is no step     what the verdict is of

The figures of a report are those of usual steps.  Where these are less than half of what was recorded, a reader has to
know first where the rest is and what holds it.  The time of the recorder itself, as its start and stop take, is none of
the program's.
"""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.steps.find_steps import count_warm_up_steps, is_usual, mostly_computes, starts_up, steps_of
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.environment import capture_facts
from stepscope.analysis.trace.grouping import device_spans, is_device_work
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, median
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.torch import plain_range
from stepscope.vocabulary.traits import RangeTrait

_MOST = 0.5  # of the recording, by the word: then the steps are the smaller part
_OF_ANOTHER_KIND = 10.0  # times the median step: an evaluation that is marked as one, or a step that starts things up
_WORTH_TAKING = 0.01  # of the recording: shorter calls of the recorder change no sentence
_MARKS = (EventKind.STEP_MARK, EventKind.DEVICE_STEP)


@dataclass(frozen=True)
class OutsideSteps:
    """The time outside of usual steps, where that is most of a recording.

    Attributes:
        percent: of the recording; where: in words, such as `before the first step`; of its longest stretch if that is
            most of the recording.
        longest_ps: the longest stretch of it; whole_ps: the recording without the recorder's own time.
        name: the innermost range or call on the loop's thread that holds most of that stretch and no usual step; empty
            where none was recorded.
        beside: what other threads do for most of that stretch, by name, where the loop's own thread shows nothing.
    """

    percent: float
    where: str
    longest_ps: int
    whole_ps: int
    name: str
    beside: str = ""


def outside_steps(trace: HostTrace) -> OutsideSteps | None:
    """The time outside of steps; None where steps are most of the recording, or none were found."""
    return trace.derived("time outside steps", _find_outside)


def _find_outside(trace: HostTrace) -> OutsideSteps | None:
    steps = steps_of(trace)
    counted = _counted(trace)
    threads = is_thread_event(trace)
    recorded = threads | is_device_work(trace)
    # Of devices alone nothing tells steps from their parts, and Stepscope's own captures wait for steps themselves.
    if steps.source == "none" or not len(counted) or not threads.any() or capture_facts(trace):
        return None
    first, last = kernels.columns.extent(trace.events.start_ps, trace.events.duration_ps, recorded)
    whole = Spans.union(np.array([first]), np.array([last]))
    rest = whole - Spans.union(steps.start_ps[counted], np.maximum(steps.until_ps, steps.end_ps)[counted])
    if rest.total <= _MOST * whole.total:  # nor without the recorder's part, which lies outside
        return None
    long = np.flatnonzero(threads & (trace.events.duration_ps > _WORTH_TAKING * whole.total))
    recorder = spans_of(trace, long[has_trait(trace, trace.events.type[long], RangeTrait.OF_RECORDER)])
    recorder -= device_spans(trace)
    whole, rest = whole - recorder, rest - recorder
    if rest.total <= _MOST * whole.total:
        return None
    at = int(np.argmax(rest.end - rest.start))
    low, high = int(rest.start[at]), int(rest.end[at])
    is_one = high - low > _MOST * whole.total
    percent = 100.0 * (high - low if is_one else rest.total) / whole.total
    where = _say_where(trace, counted, low, high) if is_one else "outside the steps"
    name = _holder(trace, low, high)
    beside = "" if name else _longest_beside(trace, low, high)
    return OutsideSteps(percent, where, high - low, whole.total, name, beside)


def _counted(trace: HostTrace) -> I64:
    """The steps like those that figures are of, and a warm-up that compiles, which is said by itself: rows of steps."""
    steps, usual = steps_of(trace), is_usual(trace)
    length, warm_up = steps.until_ps - steps.start_ps, count_warm_up_steps(trace)
    alike = length <= _OF_ANOTHER_KIND * median(length[usual]) if usual.any() else usual
    alike[:warm_up] = not starts_up(trace)
    alike |= mostly_computes(trace) & (steps.source != "markers")  # such as the long prompt of a request
    return np.flatnonzero(alike)


def _say_where(trace: HostTrace, counted: I64, low: int, high: int) -> str:
    steps = steps_of(trace)
    if low >= steps.start_ps[counted[-1]]:
        return "after the last step"
    if high <= steps.start_ps[counted[0]]:
        return "before the first step" if counted[0] == 0 else "before the first usual step"
    return "between steps"


def _holder(trace: HostTrace, low: int, high: int) -> str:
    """The name of the shortest event of the loop's thread that takes most of a stretch and holds no usual step."""
    steps, events = steps_of(trace), trace.events
    counted = _counted(trace)
    on_loop = is_thread_event(trace) & ((events.line == steps.line) | (steps.line < 0))
    here = np.flatnonzero(on_loop & (events.duration_ps > _MOST * (high - low)))
    start, end = events.start_ps[here], events.start_ps[here] + events.duration_ps[here]
    inside = np.minimum(end, high) - np.maximum(start, low)
    ends = np.append(np.sort(steps.end_ps[counted]), np.iinfo(np.int64).max)
    holds_step = end >= ends[np.searchsorted(np.sort(steps.start_ps[counted]), start)]
    found = here[(inside > _MOST * (high - low)) & ~holds_step]
    return plain_range(trace.name_of(int(found[np.argmin(events.duration_ps[found])]))) if len(found) else ""


def _longest_beside(trace: HostTrace, low: int, high: int) -> str:
    """The name of what goes on longest on other threads, such as a collective; empty without any for most of it."""
    events = trace.events
    end = events.start_ps + events.duration_ps
    here = np.flatnonzero(is_thread_event(trace) & (events.line != steps_of(trace).line))
    here = here[(events.start_ps[here] < high) & (end[here] > low)]
    here = here[~has_trait(trace, events.type[here], RangeTrait.OF_RECORDER)]
    inside = np.minimum(end[here], high) - np.maximum(events.start_ps[here], low)
    spent = np.bincount(events.type[here], inside) if len(here) else np.zeros(0)
    for each in np.flatnonzero(spent > _MOST * (high - low)).tolist():  # threads may do it at once
        spent[each] = spans_of(trace, here[events.type[here] == each]).overlap_ps(np.array([low]), np.array([high]))[0]
    if not len(spent) or spent.max() <= _MOST * (high - low):
        return ""
    return plain_range(trace.name_of(int(here[events.type[here] == spent.argmax()][0])))
