"""Steps from marks of the program or framework, or from device steps that the writer of the file derived."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.steps.host_steps import COMPUTES, WHOLE_STEP_SHARE, HostSteps, follow_device, unfinished_steps
from stepscope.analysis.steps.loops import MarkedLoop, find_loops
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind
from stepscope.analysis.trace.grouping import forest, is_device_work, is_launched_before, spread_labels
from stepscope.analysis.trace.lost_work import launches_of
from stepscope.analysis.trace.program_runs import called_before, program_ops_elsewhere
from stepscope.analysis.trace.thread_labels import thread_label
from stepscope.errors import counted
from stepscope.model import EventKind, HostTrace, LineKind, stat_names
from stepscope.model.arrays import I32, I64, Mask, blocks_of, distinct, look_up, places_of
from stepscope.records import dataclass
from stepscope.report import duration_text, round_ms
from stepscope.vocabulary.lookup import is_called
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.serving import Batch, served_batch
from stepscope.vocabulary.tensorflow import KERAS_BATCH

# A thread with the former works for the current step; one with the latter prepares input for any step.
_WORKS_FOR_STEPS = (EventKind.BACKWARD, EventKind.COLLECTIVE_CALL)
_SERVES_INPUT = (EventKind.ITERATOR, EventKind.INPUT_HANDOVER, EventKind.INPUT_CALLBACK)

_STARTS_PROGRAMS = (EventKind.TRACED_FUNCTION, EventKind.FUNCTION_RUN, EventKind.EXECUTOR)
_COMPUTES_ON_HOST = (EventKind.OP, EventKind.BACKWARD, EventKind.EXECUTOR, EventKind.FUNCTION_RUN)
_LARGEST_TABLE = 1 << 16  # of places of numbers

_LAGS = 0.01  # of a step: less work after its mark is what lasts while the host returns from waiting for it
_MOST_SAID = 3  # other loops that the sentence names

_STEP_NUMBER = Pattern(r"[0-9]{1,18}")  # as many digits as fit into 64 bits, whatever they are


# -- marks on the host ---------------------------------------------------------------------------------------------


def find_marked_steps(trace: HostTrace) -> HostSteps | None:
    """The steps marked on a host thread; None without marks."""
    loops = find_loops(trace)
    if not loops:
        return None
    marks = loops[0].rows
    start = trace.events.start_ps[marks]
    end = start + trace.events.duration_ps[marks]
    stated = trace.stat_ints(stat_names.STEP_NUM, missing=-1, rows=marks)
    numbered = bool((stated >= 0).all())
    number = stated + is_called(trace, (KERAS_BATCH,))[marks] if numbered else np.arange(len(marks))
    label = np.full(len(trace.events), -1, np.int32)
    label[marks] = np.arange(len(marks))
    line = int(trace.events.line[marks[0]])
    again = events_of_kind(trace, EventKind.STEP_MARK)  # a mark of the same step that ends later holds its work
    _adopt(trace, label, again[(label[again] < 0) & (trace.events.line[again] == line)], start, end)
    bounds = label_work(trace, label, line, start, end)
    ops = events_of_kind(trace, EventKind.OP)
    if len(ops) and len(marks) == 1 and (trace.events.start_ps[ops] < start).all():
        return None  # what a profiler begins as it stops: all ops of the program lie before
    names = _step_names(trace.strings.texts(trace.event_names(marks)), number.tolist())
    return HostSteps(
        source="markers",
        how=f"{_describe_marks(names)} on thread {thread_label(trace, line)!r}{_describe_others(trace, loops)}",
        confidence=None,
        number=number,
        name=names,
        start_ps=bounds.start_ps,
        end_ps=bounds.end_ps,
        complete=_find_complete(trace, label, len(marks), bounds.waits) & bounds.finished,
        label=label,
        numbered=numbered,
        line=line,
        backlog=bounds.backlog,
        batch=_batches(trace, marks),
        others=tuple(each.loop for each in loops[1:]),
        pauses=_pauses(trace, loops),
    )


@dataclass(frozen=True)
class WorkBounds:
    """Where steps start and end once their work on devices is followed.

    Attributes:
        start_ps, end_ps: int64 of shape (steps,).
        finished: bool of shape (steps,), False for last steps whose work the recording does not hold.
        backlog: as in HostSteps.
        waits: the loop waits for its work in each step, so that its marks hold though the record of a device ends.
    """

    start_ps: I64
    end_ps: I64
    finished: Mask
    backlog: I64
    waits: bool


def label_work(trace: HostTrace, label: I32, line: int, start: I64, end: I64) -> WorkBounds:
    """Assigns all work to the steps of a thread, and follows it to the devices.

    Args:
        label: int32 of shape (events,), which is filled; it may hold the marks of the steps already.
        line: the thread of the steps.
        start, end: int64 of shape (steps,), where the thread's steps start and end, ps.
    """
    spread_labels(trace, label)
    _adopt_crossing(trace, label, line, start, end)
    _adopt_helpers(trace, label, line, start, end)
    # Device work known to be launched outside all steps, such as an evaluation or queued before, stays outside.
    device, early = is_device_work(trace), is_launched_before(trace, int(start[0])) & (label < 0)
    _inherit_steps(trace, label, device & ((label >= 0) | ((forest(trace).cause < 0) & ~early)))
    backlog = np.flatnonzero(early)
    work = device | program_ops_elsewhere(trace, line)
    begun, marked = start, end
    start, end = follow_device(trace, label, work, backlog, start, end)
    late = unfinished_steps(label, work, len(start))
    before = slice(0, int(np.argmax(late)))
    lags = end[before] > marked[before] + _LAGS * (marked - begun)[before]
    waits = bool(late.any() and 2 * lags.sum() < len(lags))
    return WorkBounds(start, end, ~late | waits, backlog, waits)


def _describe_marks(names: tuple[str, ...]) -> str:
    return f"{len(names)} step marks such as {names[0]!r}" if len(names) > 1 else f"the step mark {names[0]!r}"


def _step_names(marks: list[str], numbers: list[int]) -> tuple[str, ...]:
    counted_already = {mark for mark in set(marks) if mark[-1:].isdigit()}
    if not counted_already:  # of a hundred thousand marks most
        return tuple([f"{mark} {number}" for mark, number in zip(marks, numbers, strict=True)])
    return tuple(map(_step_name, marks, numbers))


def _step_name(mark: str, number: int) -> str:
    """The mark's name with the number, unless it already ends with it as in `ProfilerStep#7`."""
    if not mark[-1:].isdigit():
        return f"{mark} {number}"
    stem = mark.removesuffix(str(number))
    return mark if stem != mark and not stem[-1:].isdigit() else f"{mark} {number}"


def _batches(trace: HostTrace, marks: I64) -> tuple[Batch | None, ...]:
    """The batches that a model server's marks name; empty if none does."""
    names, place = np.unique(trace.event_names(marks), return_inverse=True)
    batches = [served_batch(name) for name in trace.strings.texts(names)]
    return tuple(batches[at] for at in place.tolist()) if any(batches) else ()


def _describe_others(trace: HostTrace, loops: Sequence[MarkedLoop]) -> str:
    """The other loops in words, the longest first."""
    if len(loops) < 2:
        return ""
    said = [
        f"{each.loop.name!r} ({counted(each.loop.count, 'mark')}, median {duration_text(round_ms(each.loop.median_ps))}"
        + (f", on thread {each.loop.thread!r}" if each.loop.thread != loops[0].loop.thread else "")
        + ")"
        for each in loops[1 : 1 + _MOST_SAID]
    ]
    more = f" and {len(loops) - 1 - _MOST_SAID} more" if len(loops) - 1 > _MOST_SAID else ""
    return f"; other loops are marked apart: {', '.join(said)}{more}"


def _pauses(trace: HostTrace, loops: Sequence[MarkedLoop]) -> I64:
    """When marks of other loops start on the thread of the first and outside of its marks, ascending."""
    start, duration = trace.events.start_ps, trace.events.duration_ps
    marks = loops[0].rows
    rows = [each.rows for each in loops[1:] if each.loop.thread == loops[0].loop.thread]
    times = np.sort(start[np.concatenate([marks[:0], *rows])])
    at = np.searchsorted(start[marks], times, side="right") - 1
    inside = (at >= 0) & (times < (start + duration)[marks][np.maximum(at, 0)])
    outer = [(start[each] + duration[each]) for each in rows]  # one that encloses marks of the first is no pause
    begins = np.concatenate([marks[:0], *(start[each] for each in rows)])
    ends = np.concatenate([marks[:0], *outer])
    order = np.argsort(begins, kind="stable")
    holds = np.searchsorted(start[marks], ends[order]) > np.searchsorted(start[marks], begins[order])
    return times[~inside & ~holds]


def _adopt_crossing(trace: HostTrace, label: I32, line: int, start: I64, end: I64) -> None:
    """Assigns what starts during a mark on its thread but is not nested in it to that step.

    PyTorch ends a mark and starts the next one inside a call: recorded Python calls then cross the marks, and all that
    they hold is nested in them and not in a mark.
    """
    rows = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    _adopt(trace, label, rows[label[rows] < 0], start, end)


def _adopt(trace: HostTrace, label: I32, rows: I64, start: I64, end: I64) -> None:
    """Assigns events to the step during whose mark they start."""
    at = np.searchsorted(start, trace.events.start_ps[rows], side="right") - 1
    inside = (at >= 0) & (trace.events.start_ps[rows] < end[at])
    label[rows[inside]] = at[inside]


def _adopt_helpers(trace: HostTrace, label: I32, marked_line: int, start: I64, end: I64) -> None:
    """Assigns unlinked work of helper threads to the step during whose mark it starts.

    Not every framework records who handed work to its threads: PyTorch's autograd engine and the threads that run
    collectives have no links.  Threads that prepare input are skipped, since they work ahead for later steps.
    """
    lines, kind, cause, device = trace.events.line, trace.events.kind, forest(trace).cause, is_device_work(trace)
    helps = np.zeros(len(trace.lines), np.bool_)
    helps[lines[(label >= 0) | is_any_kind(kind, _WORKS_FOR_STEPS)]] = True
    helps[lines[cause[device & is_any_kind(kind, COMPUTES) & (cause >= 0)]]] = True
    helps &= trace.lines.kind == LineKind.THREAD
    helps[lines[is_any_kind(kind, _SERVES_INPUT)]] = False
    helps[marked_line] = False
    unknown = look_up(helps, lines) & (label < 0) & (kind != EventKind.INPUT_WAIT)
    unknown[called_before(trace, forest(trace).parent)] = False
    rows = np.flatnonzero(unknown)
    _adopt(trace, label, rows, start, end)
    launched = np.flatnonzero(device & (label < 0) & (cause >= 0))
    label[launched] = label[cause[launched]]


def _inherit_steps(trace: HostTrace, label: I32, device: Mask) -> None:
    """Assigns device work without a step to the step of the previous work on the same device."""
    work = np.flatnonzero(device)
    plane = look_up(trace.lines.plane, trace.events.line[work])
    for row in trace.device_planes():
        events = work[plane == row]
        events = events[np.argsort(trace.events.start_ps[events], kind="stable")]
        known = np.where(label[events] >= 0, np.arange(len(events)), -1)
        last = np.maximum.accumulate(known) if len(known) else known
        found = last >= 0
        label[events[found]] = label[events[last[found]]]


def _find_complete(trace: HostTrace, label: I32, n_steps: int, waits: bool) -> Mask:
    """False for first and last steps that hold no work, and for a first or last one with far fewer device events than
    usual: the capture cut it, or the loop ended there.

    Steps that only compile on the host are not cut, but alone they do not tell which others are.
    """
    kind, inside = trace.events.kind, label >= 0
    device = is_device_work(trace) & inside
    work = device if device.any() else is_any_kind(kind, _COMPUTES_ON_HOST) & inside
    worked = label[work]
    if waits:  # what was launched was worked off, though the recording lacks it
        launches = launches_of(trace)
        lost = label[launches.call[launches.lost]]
        if device.any() and not len(launches.call):  # of programs on devices only their calls are known
            lost = label[is_any_kind(kind, _STARTS_PROGRAMS) & inside]
        worked = np.append(worked, lost[lost > worked.min()])
    counts = np.bincount(worked, minlength=n_steps)
    busy = np.flatnonzero(counts)
    complete = np.ones(n_steps, np.bool_)
    if not len(busy):
        return complete
    compiles = label[inside & (kind == EventKind.COMPILE) & (not device.any())]
    first, last = int(compiles.min(initial=busy[0])), int(compiles.max(initial=busy[-1]))
    complete[:first] = complete[last + 1 :] = False
    if n_steps >= 3 and device.any():
        for edge in (busy[0], busy[-1]):
            complete[edge] = counts[edge] >= WHOLE_STEP_SHARE * float(np.median(counts))
    return complete


# -- steps that the file's writer derived --------------------------------------------------------------------------


def find_device_steps(trace: HostTrace) -> HostSteps | None:
    """The steps that the writer of the file derived for its devices; None without any, or without numbers."""
    rows = events_of_kind(trace, EventKind.DEVICE_STEP)
    rows = rows[trace.events.duration_ps[rows] > 0]
    if not len(rows):
        return None
    group = trace.stat_ints(stat_names.GROUP_ID, rows=rows)
    grouped = bool((group >= 0).all())
    keys = group if grouped else _parse_numbers(trace, rows)
    if keys is None:
        return None
    label = np.full(len(trace.events), -1, np.int32)
    numbers, label[rows] = np.unique(keys, return_inverse=True)
    if grouped:
        for first, groups in trace.stat_int_blocks(stat_names.GROUP_ID):
            label[first : first + len(groups)] = _places_among(numbers, groups)
    else:
        _label_by_time(trace, rows, label)
    label = spread_labels(trace, label)
    _inherit_steps(trace, label, is_device_work(trace))
    start, end = _longest_step_bounds(trace, rows, label[rows], len(numbers))
    steps = "1 step" if len(numbers) == 1 else f"{len(numbers)} steps"
    order = np.argsort(start, kind="stable")
    place = np.full(len(order) + 1, -1, np.int32)  # the last is for events without a step, whose label is -1
    place[order] = np.arange(len(order))
    if (np.diff(order) < 0).any():  # their numbers are not in the order of time
        for part in blocks_of(len(label)):
            label[part] = place[label[part]]
    return HostSteps(
        source="markers",
        how=f"{steps} that the profiler derived for its devices when it wrote the file",
        confidence=None,
        number=numbers[order],
        name=tuple(str(number) for number in numbers[order].tolist()),
        start_ps=start[order],
        end_ps=end[order],
        complete=np.ones(len(numbers), np.bool_),
        label=label,
        numbered=True,
    )


def _places_among(numbers: I64, keys: I64) -> I32:
    """The place of each key among ascending numbers: int32 of shape (keys,), -1 for other keys."""
    low, count = int(numbers[0]), int(numbers[-1]) - int(numbers[0]) + 1
    if count > _LARGEST_TABLE:  # too far apart for a table
        return places_of(numbers, keys).astype(np.int32)
    table = np.full(count + 1, -1, np.int32)  # the last is for all other keys
    table[numbers - low] = np.arange(len(numbers))
    return table[np.minimum((keys - low).view(np.uint64), np.uint64(count)).view(np.int64)]  # unsigned, -1 is high


def _parse_numbers(trace: HostTrace, rows: I64) -> I64 | None:
    """Step numbers from the names of step events: int64 of the shape of `rows`; None if a name is not a number."""
    names = [trace.name_of(row) for row in rows.tolist()]
    if not all(map(_STEP_NUMBER.fullmatch, names)):
        return None
    return np.array([int(name) for name in names], np.int64)


def _label_by_time(trace: HostTrace, rows: I64, label: I32) -> None:
    """Labels device work with the step event on its device during which it starts."""
    plane, device = trace.lines.plane[trace.events.line[rows]], is_device_work(trace)
    for device_plane in distinct(plane).tolist():
        steps = rows[plane == device_plane]
        steps = steps[np.argsort(trace.events.start_ps[steps], kind="stable")]
        events = np.flatnonzero(device & look_up(trace.lines.plane == device_plane, trace.events.line))
        at = np.searchsorted(trace.events.start_ps[steps], trace.events.start_ps[events], side="right") - 1
        label[events[at >= 0]] = label[steps[at[at >= 0]]]


def _longest_step_bounds(trace: HostTrace, rows: I64, label: I32, n_steps: int) -> tuple[I64, I64]:
    """Bounds of the longest event of each step: the slowest device decides."""
    duration = trace.events.duration_ps[rows]
    order = np.lexsort((duration, label))
    chosen = np.zeros(n_steps, np.int64)
    chosen[label[order]] = rows[order]  # the last assignment, that of the longest, wins
    start = trace.events.start_ps[chosen]
    return start, start + trace.events.duration_ps[chosen]
