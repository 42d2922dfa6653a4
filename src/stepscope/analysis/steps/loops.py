"""The loops that a trace's marks make: those of one name on one thread are one, and one loop is the training loop.

    main     |train|train|train|eval|eval|train|train|          two loops, one beside the other
    main     |epoch------------|epoch-------|                   one around the other: the inner marks are the steps
             |train|train|train|train|train|
    worker   |train|train|train|                                a loop of its own, on another thread

Of marks that nest the inner ones are steps, if they repeat inside the outer ones and fill them.  Of loops side by side
the one with most work is answered; one whose name says that it evaluates, only if there is no other.

    main     |train 5-|train 6-|train 7-|                       of the program
             ---|train 5-|train 6-|train 7-|                    where the recorder found steps to end: the same ones

Where the program marks its steps, those that the recorder found are none.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.host_steps import Loop
from stepscope.analysis.trace.thread_labels import thread_label
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.ranges import says_evaluation, says_step, without_numbers
from stepscope.vocabulary.serving import served_batch

_FILLS = 0.5  # of the outer marks: what holds less of them is a part of the step, not the step
_REPEATS = 2  # inner marks to an outer one: a single one is the same step marked twice
_SERVED = "batches of a model server"


@dataclass(frozen=True)
class MarkedLoop:
    """A loop, and its marks: rows of events in order of time, none inside another."""

    loop: Loop
    rows: I64
    line: int


def find_loops(trace: HostTrace) -> list[MarkedLoop]:
    """The loops that marks make, the one that is answered first, then those with most time; empty without marks."""
    marks = np.flatnonzero((trace.events.kind == EventKind.STEP_MARK) & (trace.events.duration_ps > 0))
    marks = _drop_found_marks(trace, marks)
    if not len(marks):
        return []
    loops = [_loop(trace, name, rows) for name, rows in _groups(trace, marks)]
    around = [any(_is_unit_of(trace, inner, outer) for inner in loops) for outer in loops]
    steps = [loop for loop, holds_steps in zip(loops, around, strict=True) if not holds_steps]
    steps = [loop for loop in steps if not any(_lies_in(trace, loop, other) for other in steps)] or steps
    chosen = max(steps, key=lambda each: (not says_evaluation(each.loop.name), each.loop.total_ps, each.loop.count))
    others = [each for each in loops if each is not chosen]
    return [chosen, *sorted(others, key=lambda each: -each.loop.total_ps)]


def _drop_found_marks(trace: HostTrace, marks: I64) -> I64:
    """The marks without those of the recorder in most of which the program begins a step itself, on their thread.  The
    capture ends after the recorder's last step, which may cut the program's last one in two: that is left out."""
    found = trace.stat_ints(stat_names.STEP_FOUND, missing=0, rows=marks) > 0
    ours, others = marks[found], marks[~found]
    if not len(ours) or not len(others):
        return marks
    events = trace.events
    says = [says_evaluation(name) for name in trace.strings.texts(trace.event_names(others))]
    others = others[~np.array(says, np.bool_) & (events.line[others] == events.line[ours[0]])]
    begins = np.sort(events.start_ps[others])
    start, end = events.start_ps[ours], events.start_ps[ours] + events.duration_ps[ours]
    begun = np.searchsorted(begins, end) - np.searchsorted(begins, start)
    if 2 * np.count_nonzero(begun) <= len(ours):
        return marks
    last = others[np.argmax(events.start_ps[others])]
    is_cut = events.start_ps[last] + events.duration_ps[last] > end.max()
    kept: I64 = marks[~found & ~((marks == last) & is_cut)]
    return kept


def _groups(trace: HostTrace, marks: I64) -> list[tuple[str, I64]]:
    """Marks of one name, whatever its numbers, on one line."""
    types, place = np.unique(trace.events.type[marks], return_inverse=True)
    names = [without_numbers(name) for name in trace.strings.texts(trace.event_types.name[types])]
    first = dict(zip(reversed(names), reversed(types.tolist()), strict=True))
    served = {stem: served_batch(trace.strings[trace.event_types.name[row]]) is not None for stem, row in first.items()}
    known = {name: at for at, name in enumerate(dict.fromkeys(_SERVED if served[name] else name for name in names))}
    of_type = np.array([known[_SERVED if served[name] else name] for name in names], np.int64)
    keys = of_type[place] * len(trace.lines) + trace.events.line[marks]
    found = []
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    stems = list(known)
    for rows in np.split(order, bounds):
        found.append((stems[int(keys[rows[0]]) // len(trace.lines)], _outermost(trace, marks[rows])))
    return found


def _outermost(trace: HostTrace, rows: I64) -> I64:
    """The marks that none of the others encloses, in order of time; of two that share most of their time, as where two
    libraries mark the same step, the first."""
    start, end = trace.events.start_ps[rows], trace.events.start_ps[rows] + trace.events.duration_ps[rows]
    order = np.lexsort((-end, start))
    latest = np.maximum.accumulate(end[order])
    free: I64 = rows[order][np.append(True, end[order][1:] > latest[:-1])]
    start, length = trace.events.start_ps[free], trace.events.duration_ps[free]
    shared = (start + length)[:-1] - start[1:]
    kept: I64 = free[np.append(True, 2 * shared <= np.minimum(length[:-1], length[1:]))]
    return kept


def _loop(trace: HostTrace, name: str, rows: I64) -> MarkedLoop:
    length, line = np.sort(trace.events.duration_ps[rows]), int(trace.events.line[rows[0]])
    middle = int(length[(len(length) - 1) // 2])
    figures = Loop(
        name, thread_label(trace, line), len(rows), middle, int(length[0]), int(length[-1]), int(length.sum())
    )
    return MarkedLoop(figures, rows, line)


def _is_unit_of(trace: HostTrace, inner: MarkedLoop, outer: MarkedLoop) -> bool:
    """Whether the inner marks are the steps of the outer ones, as training steps are those of an epoch."""
    if inner is outer or inner.line != outer.line:
        return False
    if says_step(outer.loop.name) and not says_step(inner.loop.name):
        return False
    inside = _inside(trace, inner.rows, outer.rows)
    return (
        int(inside.sum()) >= _REPEATS * len(outer.rows)
        and int(trace.events.duration_ps[inner.rows[inside]].sum()) >= _FILLS * outer.loop.total_ps
    )


def _lies_in(trace: HostTrace, inner: MarkedLoop, outer: MarkedLoop) -> bool:
    """Whether most of the inner marks lie in the outer ones, so that they mark parts of these steps."""
    if inner is outer or inner.line != outer.line:
        return False
    return 2 * int(_inside(trace, inner.rows, outer.rows).sum()) > len(inner.rows)


def _inside(trace: HostTrace, rows: I64, ranges: I64) -> Mask:
    """Which events lie inside one of some ranges, which are in order of time and do not overlap."""
    start, end = trace.events.start_ps, trace.events.start_ps + trace.events.duration_ps
    at = np.searchsorted(start[ranges], start[rows], side="right") - 1
    held = ranges[np.maximum(at, 0)]
    found: Mask = (at >= 0) & (end[rows] <= end[held]) & (rows != held)
    return found
