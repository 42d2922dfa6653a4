"""The steps of one host: where each begins and ends, and which events belong to it.

Sources, in this order:

1. marks that the user or the framework set on a host thread (source "markers");
2. steps that the writer of the file derived for its devices (also "markers": they stem from marks);
3. the repeating cycle of device work, of function calls, or of input iterator calls ("inferred", with a confidence);
4. nothing: the whole capture is one span ("none").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from stepscope.analysis.grouping import forest, is_device_work, launched_before, spread_labels
from stepscope.analysis.infer import (
    FOREIGN_SHARE,
    LEAST_CONFIDENCE,
    LEAST_RHYTHM_OF_PROGRAM,
    LEAST_STEPS,
    Cycle,
    find_cycle,
)
from stepscope.analysis.program_runs import runs_elsewhere
from stepscope.analysis.spans import spans_of
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, stat_names
from stepscope.model.arrays import I32, I64, Mask

StepSource = Literal["markers", "inferred", "none"]

_COMPUTE = (EventKind.KERNEL, EventKind.DEVICE_OP, EventKind.COLLECTIVE)
# A thread with the former works for the steps, one with the latter prepares input whichever step is at hand.
_WORKS_FOR_STEPS = (EventKind.BACKWARD, EventKind.COLLECTIVE_CALL)
_SERVES_INPUT = (EventKind.ITERATOR, EventKind.INPUT_HANDOVER, EventKind.INPUT_CALLBACK)
# Host calls that may enclose the whole of a step's work.
_PROGRAMS = (EventKind.TRACED_FUNCTION, EventKind.FUNCTION_RUN)
_FEWEST_CALLS = 5  # fewer may be chance where they come at odd times
_CALLS = (EventKind.OP, EventKind.ANNOTATION, EventKind.TRACED_FUNCTION, EventKind.FUNCTION_RUN)

_STEP_NUMBER = re.compile(r"[0-9]{1,18}")  # as many digits as fit into 64 bits, whatever they are

# A step at the capture's edge with less than this share of the usual device work was cut by the edge; the last of
# inferred steps, whose end nothing marks, also if it is this much shorter or longer than the others.
WHOLE_STEP_SHARE = 0.8


_STEPS_A_WARM_UP = 4  # whole steps to each first one that may be a warm-up
_COMPILES = 0.1  # of a step: what compiles for less is usual


@dataclass(frozen=True)
class HostSteps:
    """The steps of one host, in order of time.

    Attributes:
        source: how they were found.
        how: the same in one sentence.
        confidence: 0 to 1 for inferred steps, None for others.
        number: int64 of shape (steps,), the step number of the marks, else 0, 1, 2, ...
        name: one name a step.
        start_ps, end_ps: int64 of shape (steps,).
        complete: bool of shape (steps,); False for a step cut by the capture's edge.
        label: int32 of shape (events,), the step that each event belongs to, or -1.
        numbered: True if the numbers are the program's own.
        line: the line that the marks are on, -1 if they are on none.
        backlog: int64 of shape (n,), device work in no step that was launched before the first mark.
    """

    source: StepSource
    how: str
    confidence: float | None
    number: I64
    name: tuple[str, ...]
    start_ps: I64
    end_ps: I64
    complete: Mask
    label: I32
    numbered: bool = False
    line: int = -1
    backlog: I64 = field(default_factory=lambda: np.empty(0, np.int64))


def steps_of(trace: HostTrace) -> HostSteps:
    """The steps of a host, found once per trace."""
    return trace.derived("steps", _find)


def steps_of_events(trace: HostTrace, rows: I64) -> I64:
    """The step that each of some events belongs to, else the one during which it begins: int64 of shape (n,), rows of
    the steps, -1 without one."""
    steps, start = steps_of(trace), trace.events.start_ps[rows]
    at = np.searchsorted(steps.start_ps, start, side="right") - 1
    during = np.where((at >= 0) & (start < np.append(steps.end_ps, 0)[at]), at, -1)
    return np.where(steps.label[rows] >= 0, steps.label[rows], during)


def whole_steps(trace: HostTrace) -> HostSteps:
    """The steps that advice is about: those that the capture's edges do not cut, all if it cuts each of them, without
    the first ones that compile what all others only run."""
    return trace.derived("whole steps", _whole_ones)


def warm_up_of(trace: HostTrace) -> int:
    """How many of the first whole steps trace and compile, where the many that follow do not."""
    return trace.derived("warm-up", _warm_up)


def _warm_up(trace: HostTrace) -> int:
    steps = steps_of(trace)
    kept = _kept(steps)
    start, end = steps.start_ps[kept], steps.end_ps[kept]
    most = len(start) // _STEPS_A_WARM_UP
    compiling = spans_of(trace, np.flatnonzero(trace.events.kind == EventKind.COMPILE)) if most else None
    if compiling is None or not len(compiling.start):
        return 0
    compiled = np.flatnonzero(compiling.covered(start, end) >= _COMPILES * (end - start))
    first = len(compiled)
    rest = compiling.covered(start[first:], end[first:]).sum() if first <= most else 0
    return first if 0 < first <= most and compiled[-1] == first - 1 and not rest else 0


def _kept(steps: HostSteps) -> slice:
    """The steps that no edge cuts, all if each is cut; only the first and the last can be."""
    kept = np.flatnonzero(steps.complete)
    return slice(int(kept[0]), int(kept[-1]) + 1) if len(kept) else slice(0, len(steps.complete))


def _whole_ones(trace: HostTrace) -> HostSteps:
    steps = steps_of(trace)
    kept = _kept(steps)
    inside = slice(kept.start + warm_up_of(trace), kept.stop)
    if inside.stop - inside.start == len(steps.complete):
        return steps
    ours = (steps.label >= inside.start) & (steps.label < inside.stop)
    return replace(
        steps,
        number=steps.number[inside],
        name=steps.name[inside],
        start_ps=steps.start_ps[inside],
        end_ps=steps.end_ps[inside],
        complete=steps.complete[inside],
        label=np.where(ours, steps.label - inside.start, -1).astype(np.int32),
    )


def _find(trace: HostTrace) -> HostSteps:
    return _from_marks(trace) or _from_device_steps(trace) or _inferred(trace) or _whole(trace)


# -- marks on the host -------------------------------------------------------------------------------------------


def _from_marks(trace: HostTrace) -> HostSteps | None:
    marks = _outer_marks(trace)
    if not len(marks):
        return None
    start = trace.events.start_ps[marks]
    end = start + trace.events.duration_ps[marks]
    stated = trace.stat_ints(stat_names.STEP_NUM, missing=-1, rows=marks)
    numbered = bool((stated >= 0).all())
    number = stated if numbered else np.arange(len(marks))
    label = np.full(len(trace.events), -1, np.int32)
    label[marks] = np.arange(len(marks))
    spread_labels(trace, label)
    line = int(trace.events.line[marks[0]])
    _adopt_helpers(trace, label, line, start, end)
    # Device work that is known to be launched outside all steps stays there: an evaluation between steps is no step.
    device, orphan = is_device_work(trace), forest(trace).cause < 0
    _inherit(trace, label, device & (orphan | (label >= 0)))
    backlog = np.flatnonzero(launched_before(trace, int(start[0])) & (label < 0))
    work = device | runs_elsewhere(trace, line)
    start, end = _follow_device(trace, label, work, backlog, start, end)
    names = tuple(_step_name(trace.name_of(mark), at) for mark, at in zip(marks.tolist(), number.tolist(), strict=True))
    return HostSteps(
        source="markers",
        how=f"{len(marks)} step marks such as {names[0]!r} on thread {trace.line_label(line)!r}",
        confidence=None,
        number=number,
        name=names,
        start_ps=start,
        end_ps=end,
        complete=_complete(label, device, len(marks)) & ~_not_yet_run(label, work, len(marks)),
        label=label,
        numbered=numbered,
        line=line,
        backlog=backlog,
    )


def backlog_end(trace: HostTrace, backlog: I64, own: I64) -> int:
    """When devices are done with what was launched before the first step, ps: at the latest when they begin with `own`,
    the work of that step; the smallest time if they have no work of either kind."""
    start, duration = trace.events.start_ps, trace.events.duration_ps
    if not len(backlog) or not len(own):
        return int(np.iinfo(np.int64).min)
    return int(min((start[backlog] + duration[backlog]).max(), start[own].min()))


def _step_name(mark: str, number: int) -> str:
    """The mark's name with the number, which some names hold already: `ProfilerStep#7`."""
    stem = mark.removesuffix(str(number))
    return mark if stem != mark and not stem[-1:].isdigit() else f"{mark} {number}"


def _outer_marks(trace: HostTrace) -> I64:
    """Marks inside no other mark, on the thread that has most of them; in order of time."""
    is_mark = (trace.events.kind == EventKind.STEP_MARK) & (trace.events.duration_ps > 0)
    marks = np.flatnonzero(is_mark)
    if not len(marks):
        return marks
    marks = _inside_none(trace, marks, is_mark)
    return _on_fullest_line(trace, marks)


def _inside_none(trace: HostTrace, rows: I64, others: Mask) -> I64:
    """Those of the events that none of the other events encloses."""
    parent = forest(trace).parent
    above = parent[rows]
    while (going := (above >= 0) & ~others[above]).any():
        above = np.where(going, parent[above], above)
    free: I64 = rows[above < 0]
    return free


def _on_fullest_line(trace: HostTrace, rows: I64) -> I64:
    """Those of the events that are on the line with most of them; at least one event."""
    line = trace.events.line[rows]
    there: I64 = rows[line == np.bincount(line).argmax()]
    return there


def _adopt_helpers(trace: HostTrace, label: I32, marked_line: int, start: I64, end: I64) -> None:
    """Gives the work of other threads that nothing links to a step to the step during whose mark it starts.

    Not every framework records who handed work to its threads: PyTorch's autograd engine and the threads that run
    collectives stand by themselves.  Threads that prepare input are left alone: they work ahead, for later steps.
    """
    lines, kind, cause, device = trace.events.line, trace.events.kind, forest(trace).cause, is_device_work(trace)
    helps = np.zeros(len(trace.lines), np.bool_)
    helps[lines[(label >= 0) | np.isin(kind, _WORKS_FOR_STEPS)]] = True
    helps[lines[cause[device & np.isin(kind, _COMPUTE) & (cause >= 0)]]] = True
    helps &= trace.lines.kind == LineKind.THREAD
    helps[lines[np.isin(kind, _SERVES_INPUT)]] = False
    helps[marked_line] = False
    rows = np.flatnonzero(helps[lines] & (label < 0) & (kind != EventKind.INPUT_WAIT))
    at = np.searchsorted(start, trace.events.start_ps[rows], side="right") - 1
    inside = (at >= 0) & (trace.events.start_ps[rows] < end[at])
    label[rows[inside]] = at[inside]
    launched = np.flatnonzero(device & (label < 0) & (cause >= 0))
    label[launched] = label[cause[launched]]


def _inherit(trace: HostTrace, label: I32, device: Mask) -> None:
    """Device work without a step belongs to the step of the device work before it on the same device."""
    plane = trace.lines.plane[trace.events.line]
    for row in trace.device_planes():
        events = np.flatnonzero(device & (plane == row))
        events = events[np.argsort(trace.events.start_ps[events], kind="stable")]
        known = np.where(label[events] >= 0, np.arange(len(events)), -1)
        last = np.maximum.accumulate(known) if len(known) else known
        found = last >= 0
        label[events[found]] = label[events[last[found]]]


def _follow_device(trace: HostTrace, label: I32, device: Mask, backlog: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """Moves step bounds to what the device does, or the threads that run its programs: they may lag behind the host.

    A step ends when its mark has ended and its device work is done; it begins when its mark begins, but not before
    the step before it has ended; the first not before the device is done with the backlog.  Where the host waits for
    the device these are the marks themselves.  XProf takes the first to the last device event of such a step instead
    and so loses the time in which the device waits for it.
    """
    events = np.flatnonzero(device & (label >= 0))
    if not len(events):
        return start, end
    start = np.append(np.maximum(start[:1], backlog_end(trace, backlog, events[label[events] == 0])), start[1:])
    done = np.maximum(start, end)
    np.maximum.at(done, label[events], trace.events.start_ps[events] + trace.events.duration_ps[events])
    end = np.maximum.accumulate(done)
    return np.maximum(start, np.append(start[:1], end[:-1])), end


def _complete(label: I32, device: Mask, n_steps: int) -> Mask:
    """False for a first or last step whose device work was cut off: it has far fewer device events than the others."""
    complete = np.ones(n_steps, np.bool_)
    events = label[device & (label >= 0)]
    if n_steps >= 3 and len(events):
        counts = np.bincount(events, minlength=n_steps)
        usual = float(np.median(counts))
        for edge in (0, n_steps - 1):
            complete[edge] = counts[edge] >= WHOLE_STEP_SHARE * usual
    return complete


def _not_yet_run(label: I32, work: Mask, n_steps: int) -> Mask:
    """True for the last steps if the capture ended before their work had run: a loop that waits for no result is ahead
    of the device.  Every step before them has work; where some have none, having none is usual.  The last that has some
    counts among them, for nothing tells whether that is all of it."""
    late = np.zeros(n_steps, np.bool_)
    busy = np.unique(label[work & (label >= 0)])
    if 2 <= len(busy) == busy[-1] - busy[0] + 1 and busy[-1] < n_steps - 1:
        late[busy[-1] :] = True
    return late


# -- steps that the file's writer derived ------------------------------------------------------------------------


def _from_device_steps(trace: HostTrace) -> HostSteps | None:
    rows = np.flatnonzero((trace.events.kind == EventKind.DEVICE_STEP) & (trace.events.duration_ps > 0))
    if not len(rows):
        return None
    group = trace.stat_ints(stat_names.GROUP_ID)
    keys = group if (group[rows] >= 0).all() else _numbers_in_names(trace, rows)
    if keys is None:
        return None
    label = np.full(len(trace.events), -1, np.int32)
    numbers, label[rows] = np.unique(keys[rows], return_inverse=True)
    if keys is group:
        known = np.flatnonzero(np.isin(group, numbers))
        label[known] = np.searchsorted(numbers, group[known])
    else:
        _label_by_time(trace, rows, label)
    label = spread_labels(trace, label)
    _inherit(trace, label, is_device_work(trace))
    start, end = _longest_each(trace, rows, label[rows], len(numbers))
    steps = "1 step" if len(numbers) == 1 else f"{len(numbers)} steps"
    order = np.argsort(start, kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order))
    label = np.where(label >= 0, place[np.maximum(label, 0)], -1).astype(np.int32)
    return HostSteps(
        source="markers",
        how=f"{steps} that the profiler derived for its devices when it stored the file",
        confidence=None,
        number=numbers[order],
        name=tuple(str(number) for number in numbers[order].tolist()),
        start_ps=start[order],
        end_ps=end[order],
        complete=np.ones(len(numbers), np.bool_),
        label=label,
        numbered=True,
    )


def _numbers_in_names(trace: HostTrace, rows: I64) -> I64 | None:
    """Step numbers from the names of step events: int64 of shape (events,), -1 elsewhere; None if one is no number."""
    keys = np.full(len(trace.events), -1, np.int64)
    for row in rows.tolist():
        name = trace.name_of(row)
        if not _STEP_NUMBER.fullmatch(name):
            return None
        keys[row] = int(name)
    return keys


def _label_by_time(trace: HostTrace, rows: I64, label: I32) -> None:
    """Labels device work with the step event of its own device that it starts in."""
    plane, device = trace.lines.plane[trace.events.line], is_device_work(trace)
    for device_plane in np.unique(plane[rows]).tolist():
        steps = rows[plane[rows] == device_plane]
        steps = steps[np.argsort(trace.events.start_ps[steps], kind="stable")]
        events = np.flatnonzero(device & (plane == device_plane))
        at = np.searchsorted(trace.events.start_ps[steps], trace.events.start_ps[events], side="right") - 1
        label[events[at >= 0]] = label[steps[at[at >= 0]]]


def _longest_each(trace: HostTrace, rows: I64, label: I32, n_steps: int) -> tuple[I64, I64]:
    """Bounds of the longest step event of each step: a step is as long as on its slowest device."""
    duration = trace.events.duration_ps[rows]
    order = np.lexsort((duration, label))
    chosen = np.zeros(n_steps, np.int64)
    chosen[label[order]] = rows[order]  # of several the last assignment, the longest, stays
    start = trace.events.start_ps[chosen]
    return start, start + trace.events.duration_ps[chosen]


# -- no marks ----------------------------------------------------------------------------------------------------


def _inferred(trace: HostTrace) -> HostSteps | None:
    for what, rows in _sequences(trace):
        cycle = find_cycle(trace.event_names()[rows], trace.events.start_ps[rows], _least_rhythm(trace, rows))
        if cycle is None or _inside_calls(trace, rows, cycle):
            continue
        start = trace.events.start_ps[rows[cycle.anchors]]
        end = np.append(start[1:], max(_work_end(trace, rows), int(start[-1])))
        label = _labels_by_time(trace, start, end)
        runs = runs_elsewhere(trace, int(trace.events.line[rows[0]]))
        start, end = _follow_runs(trace, label, runs, rows, start, end)
        complete = ~_not_yet_run(label, runs, len(start))
        complete[-1] &= cycle.last_is_whole and _has_usual_length(end - start)
        anchor = trace.name_of(int(rows[cycle.anchors[0]]))
        return HostSteps(
            source="inferred",
            how=f"no step marks found; {len(start)} steps were inferred from the repeating {what}, "
            f"each begins with {_short(anchor)!r}",
            confidence=cycle.confidence,
            number=np.arange(len(start)),
            name=tuple(str(row) for row in range(len(start))),
            start_ps=start,
            end_ps=end,
            complete=complete,
            label=label,
        )
    return None


def _least_rhythm(trace: HostTrace, rows: I64) -> float:
    """How regular a sequence of one name has to be."""
    programs = np.isin(trace.events.kind[rows], _PROGRAMS)
    return LEAST_RHYTHM_OF_PROGRAM if len(rows) >= _FEWEST_CALLS and programs.all() else LEAST_CONFIDENCE


def _follow_runs(trace: HostTrace, label: I32, runs: Mask, calls: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """Gives what inferred calls run on threads of their own to the steps of the calls, and moves the bounds to it: a
    loop that waits for nothing calls many steps ahead."""
    if not runs.any():
        return start, end
    called = np.full(len(label), -1, np.int32)
    called[calls] = label[calls]
    spread_labels(trace, called)
    np.copyto(label, called, where=called >= 0)
    return _follow_device(trace, label, runs, np.empty(0, np.int64), start, end)


def _has_usual_length(durations: I64) -> bool:
    """Whether the last of some steps is about as long as the others."""
    last, others = int(durations[-1]), durations[:-1]
    return bool(WHOLE_STEP_SHARE * others.min() <= last <= others.max() / WHOLE_STEP_SHARE)


def _inside_calls(trace: HostTrace, rows: I64, cycle: Cycle) -> bool:
    """Whether the cycles of device work are layers: several lie in one call of the host, together with other work such
    as an embedding before them and a head after them."""
    call = _outermost_call(trace, forest(trace).cause[rows])
    calls, count = np.unique(call[cycle.anchors], return_counts=True)
    calls = calls[(calls >= 0) & (count >= LEAST_STEPS)]
    if not len(calls):
        return False
    names = trace.event_names()[rows]
    rare = np.bincount(names)[names] < max(LEAST_STEPS, 2 * len(calls))
    foreign = int((rare & np.isin(call, calls)).sum())
    return foreign / len(calls) >= FOREIGN_SHARE * len(rows) / len(cycle.anchors)


def _outermost_call(trace: HostTrace, events: I32) -> I32:
    """The outermost op, function or annotation around each host event, or -1: int32 of shape of `events`."""
    parent, is_call = forest(trace).parent, np.isin(trace.events.kind, _CALLS)
    outermost, at = np.full(len(events), -1, np.int32), events
    while (at >= 0).any():
        outermost = np.where((at >= 0) & is_call[at], at, outermost)
        at = np.where(at >= 0, parent[at], -1)
    return outermost


def _sequences(trace: HostTrace) -> Iterator[tuple[str, I64]]:
    """Candidates for a repeating sequence, best first: what they are, and event rows in order of time."""
    kind, device = trace.events.kind, is_device_work(trace)
    yield "sequence of XLA modules", _on_busiest(trace, _measured_modules(trace))
    yield "sequence of kernels", _on_busiest(trace, np.flatnonzero(device & np.isin(kind, _COMPUTE)))
    yield "sequence of device work", _on_busiest(trace, np.flatnonzero(device))
    yield "function calls", _outermost(trace, EventKind.TRACED_FUNCTION)
    yield "function runs", _outermost(trace, EventKind.FUNCTION_RUN)
    yield "waits for input", _on_busiest(trace, np.flatnonzero(kind == EventKind.INPUT_WAIT))
    yield "input iterator calls", _outermost(trace, EventKind.ITERATOR)


def _measured_modules(trace: HostTrace) -> I64:
    """Runs of XLA programs.  On a GPU they are derived from the kernels, and several runs in a row may be one event."""
    measured = trace.planes.kind[trace.lines.plane] != PlaneKind.GPU
    return np.flatnonzero((trace.events.kind == EventKind.MODULE) & measured[trace.events.line])


def _on_busiest(trace: HostTrace, rows: I64) -> I64:
    """Those of the events that are on the plane where they take most time, in order of time."""
    if not len(rows):
        return rows
    plane = trace.lines.plane[trace.events.line[rows]]
    rows = rows[plane == np.bincount(plane, trace.events.duration_ps[rows]).argmax()]
    return rows[np.argsort(trace.events.start_ps[rows], kind="stable")]


def _outermost(trace: HostTrace, kind: EventKind) -> I64:
    """Events of a kind that no event of that kind encloses, on the line with most of them, in order of time."""
    of_kind = trace.events.kind == kind
    rows = np.flatnonzero(of_kind)
    if not len(rows):
        return rows
    return _on_fullest_line(trace, _inside_none(trace, rows, of_kind))


def _work_end(trace: HostTrace, rows: I64) -> int:
    """When the last work of the capture ends: device work if the sequence is of a device, else ops on the host."""
    kinds = (EventKind.OP, EventKind.EXECUTOR, EventKind.TRACED_FUNCTION, EventKind.FUNCTION_RUN, EventKind.SYNC)
    device = is_device_work(trace)
    work = np.flatnonzero(device) if device[rows].any() else np.flatnonzero(np.isin(trace.events.kind, kinds))
    work = np.concatenate([work, rows])
    return int((trace.events.start_ps[work] + trace.events.duration_ps[work]).max())


def _labels_by_time(trace: HostTrace, start: I64, end: I64) -> I32:
    at = np.searchsorted(start, trace.events.start_ps, side="right") - 1
    inside = (at >= 0) & (trace.events.start_ps < end[np.maximum(at, 0)])
    return np.where(inside, at, -1).astype(np.int32)


def _short(name: str) -> str:
    return name if len(name) <= 80 else name[:77] + "..."


def _whole(trace: HostTrace) -> HostSteps:
    begin, end = trace.span_ps()
    busy = np.flatnonzero(~np.isin(trace.lines.kind[trace.events.line], (LineKind.COUNTERS, LineKind.OVERHEAD)))
    steps = 1 if len(busy) and end > begin else 0
    return HostSteps(
        source="none",
        how="no step marks and no repeating sequence were found; the whole capture counts as one span"
        if steps
        else "the profile holds no events that take time",
        confidence=None,
        number=np.zeros(steps, np.int64),
        name=("capture",) * steps,
        start_ps=np.full(steps, begin, np.int64),
        end_ps=np.full(steps, end, np.int64),
        complete=np.ones(steps, np.bool_),
        label=np.full(len(trace.events), steps - 1, np.int32),
    )
