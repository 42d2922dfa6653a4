"""Finds loops that fetch their batch outside of the step marks.

    for step, batch in enumerate(dataset):      the batch is fetched here
        with Trace("train", step_num=step):     and the step is marked here
            train(batch)

Then the marks do not show the wait for input.  The account counts it: there a step lasts to the start of the next.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.call_sites import call_sites, site_text
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass

_FETCHES = (EventKind.INPUT_WAIT, EventKind.ITERATOR)
_LEAST = 0.01  # of the time from the first mark to the last: less changes no figure
_MOST = 0.5  # of the steps: fetches between fewer of them are those of something else


@dataclass(frozen=True)
class OutsideFetches:
    """Fetches between the marks of steps.

    Attributes:
        gaps: between how many pairs of marks there is one.
        steps: the number of marks.
        ps: time of all these fetches.
        site: the user's function that fetches, with its place; empty if unknown.
    """

    gaps: int
    steps: int
    ps: int
    site: str


def outside_fetches_of(trace: HostTrace) -> OutsideFetches | None:
    """The fetches between the marks of a loop; None if it fetches inside of them, or nothing shows where."""
    steps = steps_of(trace)
    marks = _events_of(trace, steps.line, (EventKind.STEP_MARK,)) if steps.line >= 0 else np.empty(0, np.int64)
    if len(marks) < 2:
        return None
    begin = trace.events.start_ps[marks]
    end = begin + trace.events.duration_ps[marks]
    fetches = _events_of(trace, steps.line, _FETCHES)
    start = trace.events.start_ps[fetches]
    at = np.searchsorted(begin, start, side="right") - 1
    inside = (at >= 0) & (start < end[np.maximum(at, 0)])
    between = ~inside & (at >= 0) & (at < len(marks) - 1)
    gaps = len(distinct(at[between]))
    if gaps < _MOST * (len(marks) - 1) or len(distinct(at[inside])) > _MOST * len(marks):
        return None
    rows = fetches[between]
    ps = (spans_of(trace, rows) & Spans.union(end[:-1], np.maximum(end[:-1], begin[1:]))).total
    if ps < _LEAST * int(begin[-1] - begin[0]):
        return None
    return OutsideFetches(gaps, len(marks), ps, _site(trace, rows))


def _events_of(trace: HostTrace, line: int, kinds: tuple[EventKind, ...]) -> I64:
    rows = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    found: I64 = rows[is_any_kind(trace.events.kind[rows], kinds)]
    return found


def _site(trace: HostTrace, rows: I64) -> str:
    sites = call_sites(trace, rows)
    known = sites[sites > 0]
    return site_text(trace.strings[int(np.bincount(known).argmax())]) if len(known) else ""


def describe_outside_fetches(found: OutsideFetches) -> str:
    """What is wrong and which line to move, in one sentence."""
    where = f" (in {found.site})" if found.site else ""
    each_ms = found.ps / max(found.gaps, 1) / 1e9
    return (
        f"the loop fetches its batch outside of the step marks{where}: {each_ms:.3g} ms between {found.gaps} of"
        f" {found.steps} marks; here that counts for the step before, elsewhere for none; move the fetch into the mark:"
        " `for i in range(n): with stepscope.step(i): batch = next(iterator); ...`"
    )
