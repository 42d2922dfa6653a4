"""Infers unmarked steps from the repeating cycle of device work, function calls or waits for input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope.analysis.steps.cycles import (
    LEAST_CONFIDENCE,
    LEAST_RHYTHM_OF_PROGRAM,
    Cycle,
    find_cycle,
)
from stepscope.analysis.steps.host_steps import (
    COMPUTES,
    WHOLE_STEP_SHARE,
    HostSteps,
    drop_enclosed,
    follow_device,
    keep_fullest_line,
    unfinished_steps,
)
from stepscope.analysis.steps.layers import cycles_are_layers
from stepscope.analysis.steps.loop_signs import UNSUPPORTED, group_by_signs, group_by_sizes
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.environment import capture_facts
from stepscope.analysis.trace.grouping import COMPUTING, enclosing_events, forest, is_device_work, spread_labels
from stepscope.analysis.trace.program_runs import ops_of_run, program_ops_elsewhere
from stepscope.model import EventKind, HostTrace, PlaneKind
from stepscope.model.arrays import I32, I64, Mask, distinct, look_up
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.python import is_part_of_step, is_training_function, place_of
from stepscope.vocabulary.ranges import says_evaluation
from stepscope.vocabulary.traits import CallTrait, CodeTrait, RangeTrait

# ---- The fetches of batches that start a step ------------------------------------------------------------------------
# A loop over a data set fetches once more than it gets batches: the last fetch of an epoch only learns that nothing
# is left.  What follows it is the pause between two epochs, an evaluation, or the end of the loop, and not a step.


_WORK = (
    EventKind.OP, EventKind.EXECUTOR, EventKind.FUNCTION_RUN, EventKind.EAGER_EXECUTE, EventKind.TRACED_FUNCTION,
    EventKind.RUNTIME_CALL,
)  # fmt: skip
_LEAST_WORK = 0.2  # of the usual number of calls after a fetch: with fewer, no step follows it


def fetches_of_steps(trace: HostTrace, fetches: I64) -> I64:
    """The fetches that a step follows: the optimizer updates the model, or, where no update is recorded, work runs.

    Args:
        fetches: int64 of shape (n,), rows of waits for input in order of time.
    """
    updates = _count_starts(trace, fetches, _updates(trace))
    work = updates if updates.any() else _count_starts(trace, fetches, _outer_work(trace))
    usual = float(np.median(work)) if len(work) else 0.0
    kept: I64 = fetches[work >= max(_LEAST_WORK * usual, 1)] if usual else fetches
    return kept


def has_one_update_each(trace: HostTrace, fetches: I64) -> bool:
    """Whether the optimizer updates the model exactly once after each of these fetches: then they are steps."""
    if not len(fetches) or (trace.events.kind[fetches] != EventKind.INPUT_WAIT).any():
        return False
    return bool((_count_starts(trace, fetches, _updates(trace))[:-1] == 1).all())


def next_fetch_start(trace: HostTrace, start: I64, end: I64) -> I64:
    """The start of the first fetch of any kind after each time of `start`, ps; `end` where none follows."""
    times = np.sort(trace.events.start_ps[events_of_kind(trace, EventKind.INPUT_WAIT)])
    at = np.searchsorted(times, start, side="right")
    return np.where(at < len(times), np.append(times, 0)[at], end)


def _count_starts(trace: HostTrace, fetches: I64, rows: I64) -> I64:
    """How many of `rows` start after each fetch and before the next one: int64 of shape (fetches,)."""
    times = np.sort(trace.events.start_ps[rows])
    bounds = np.append(trace.events.start_ps[fetches], np.iinfo(np.int64).max)
    counts: I64 = np.diff(np.searchsorted(times, bounds))
    return counts


def _updates(trace: HostTrace) -> I64:
    """Updates of the model by an optimizer, as PyTorch marks them."""
    rows = events_of_kind(trace, EventKind.ANNOTATION)
    return rows[has_trait(trace, trace.events.type[rows], RangeTrait.UPDATES_MODEL)] if len(rows) else rows


def _outer_work(trace: HostTrace) -> I64:
    """Outermost calls on threads, outside of any fetch."""
    parent, kind = forest(trace).parent, trace.events.kind
    threads = is_thread_event(trace)
    free = parent < 0
    inner = np.flatnonzero(~free)
    free[inner] = ~np.isin(kind[parent[inner]], (*_WORK, EventKind.INPUT_WAIT, EventKind.ITERATOR))
    return np.flatnonzero(is_any_kind(kind, _WORK) & threads & free)


# Host calls that may enclose all work of a step.
_PROGRAMS = (EventKind.TRACED_FUNCTION, EventKind.FUNCTION_RUN)
_MODULES = "sequence of XLA modules"
_FETCHES = "waits for input"
_CALLS = "function calls"
_FEWEST_CALLS = 5  # fewer irregular calls may be chance
_HOST_OPS = "ops"
_PYTHON = "calls of Python functions"
_WORK_OF_LOOP = "calls of the Python function that takes most of its loop's time"
_MINOR = 0.01  # of the time of a function's calls
_MOST_LOOPS = 5  # functions whose calls are tried, those with the most time first
# A function with this share of the time, called this much more often than what else its loop calls, is the loop's work:
# the rest comes now and then, such as samples of the model or checks each hundred iterations.  Fewer calls are parts of
# an iteration, such as layers.
_MAJOR, _MUCH_MORE = 0.1, 20
# Calls that fill half of their loop are its iterations even where a busy machine makes them irregular: of a loop that
# waited for a core for 62 % of its time they had a regularity of 0.56 to 0.72, at this many calls and more.
_MANY_CALLS, _FILLED = 50, 0.5
# What comes in a third of the turns of a loop at most is not in each; in ten turns of a quiet loop the longest took 1.2
# times as long as the shortest.
_SELDOM, _ALIKE, _MANY_TURNS = 3, 1.25, 6
_CUT, _NEAR = 0.05, 2  # of a function's calls: if so many last at most twice the least recorded, others were left out
_OPS = (EventKind.OP, EventKind.BACKWARD, EventKind.EAGER_EXECUTE)
# A compiled program that is called again and again is nearly always the loop's step, whatever its rhythm: of the loops
# in docs/steps-truth.md all are.  Rhythm adds the rest.
_SURE_OF_PROGRAM = 0.9
_SURE_OF_MOST_CALLED = 0.7  # of several programs the one with most calls, if none is called like a training step
# Ops and functions repeat within steps as well, so their cycles have to be closer.
_LEAST_SURE = {_HOST_OPS: 0.8, _PYTHON: 0.8, _WORK_OF_LOOP: 0.5}


def infer_steps(trace: HostTrace) -> HostSteps | None:
    """The steps of the first sequence that repeats; None if nothing repeats regularly enough."""
    for what, rows in _candidate_sequences(trace):
        names = _names_of(trace, what, rows)
        cycle = find_cycle(names, trace.events.start_ps[rows], _least_rhythm(trace, what, rows))
        if cycle is None or cycles_are_layers(trace, rows, cycle):
            continue
        cycle = group_by_signs(trace, rows, cycle)
        if cycle is None or _hold_little(trace, rows, cycle) or _may_be_set_up(trace, what, rows, cycle):
            continue
        cycle = group_by_sizes(trace, rows, cycle)
        sure = _confidence(trace, rows, names, cycle)
        if sure < _LEAST_SURE.get(what, 0.0) or (what == _PYTHON and len(cycle.anchors) < _FEWEST_CALLS):
            continue  # a few long calls are epochs, or the parts of a script
        start = trace.events.start_ps[rows[cycle.anchors]]
        end = np.append(start[1:], max(_work_end(trace, rows), int(start[-1])))
        if what == _FETCHES:  # a fetch that gets nothing ends the step before it: after it comes a pause, or the end
            end = np.minimum(end, next_fetch_start(trace, start, end))
        label = _label_events_by_time(trace, start, end)
        runs = program_ops_elsewhere(trace, int(trace.events.line[rows[0]]))
        called = start
        start, end = _follow_runs(trace, label, runs, rows, start, end)
        runs_ahead = bool((start > called).any()) and trace.events.line[rows].min() == trace.events.line[rows].max()
        complete = ~unfinished_steps(label, runs, len(start))
        complete[-1] &= cycle.last_is_whole and _has_usual_length(end - start)
        anchor = trace.name_of(int(rows[cycle.anchors[0]]))
        perhaps = ""
        if sure <= UNSUPPORTED:
            perhaps = "; they may be layers of one step, as no call of the host tells them apart"
        return HostSteps(
            source="inferred",
            how=f"no step marks found; {len(start)} steps were inferred from the repeating {what}, "
            f"each starting with {_shorten(anchor)!r}{perhaps}",
            confidence=sure,
            number=np.arange(len(start)),
            name=tuple(str(row) for row in range(len(start))),
            start_ps=start,
            end_ps=end,
            complete=complete,
            label=label,
            line=int(trace.events.line[rows[0]]) if runs_ahead else -1,
            begun_ps=called if runs_ahead else called[:0],
        )
    return None


def _hold_little(trace: HostTrace, rows: I64, cycle: Cycle) -> bool:
    """Whether work of devices repeats that is no step: copies without any computation, or less than half of what the
    devices do, such as a part of a step.  What comes later after the last cycle than any cycle lasts is none of it."""
    device, events = is_device_work(trace), trace.events
    if not device[rows].all():
        return False
    begun = events.start_ps[rows[cycle.anchors]]
    until = int(begun[-1]) + int(np.diff(begun).max())
    work = np.flatnonzero(device)
    start, end = events.start_ps[work], events.start_ps[work] + events.duration_ps[work]
    computed = np.searchsorted(begun, start[is_any_kind(events.kind[work], COMPUTING)], side="right")
    inside = np.maximum(np.minimum(end, until) - np.maximum(start, begun[0]), 0)
    return 2 * len(distinct(computed[computed > 0])) < len(begun) or 2 * int(inside.sum()) < int((end - start).sum())


def _may_be_set_up(trace: HostTrace, what: str, rows: I64, cycle: Cycle) -> bool:
    """Whether a few cycles of several functions, none of which trains by its name, may be layers that are made."""
    if what != _CALLS or len(cycle.anchors) >= _FEWEST_CALLS:
        return False
    names = [trace.strings[each] for each in distinct(trace.event_names(rows)).tolist()]
    return len(names) > 1 and not any(is_training_function(name) for name in names)


def _names_of(trace: HostTrace, what: str, rows: I64) -> I64:
    """What tells the events of a sequence apart: int64 of shape (rows,).

    It is their names; of the runs of programs also the first op in each, as many programs of a loop that runs op by op
    may have one name.
    """
    names: I64 = trace.event_names(rows).astype(np.int64)
    if what != _MODULES or not len(rows):
        return names
    first = ops_of_run(trace, rows)
    ops = np.where(first >= 0, trace.event_names(np.maximum(first, 0)), -1)
    if (first < 0).any() or len(distinct(names * (len(trace.strings) + 1) + ops)) == len(distinct(names)):
        return names
    told: I64 = np.unique(names * (len(trace.strings) + 1) + ops, return_inverse=True)[1]
    return told


def _confidence(trace: HostTrace, rows: I64, names: I64, cycle: Cycle) -> float:
    """How sure the cycles are steps, 0 to 1."""
    if (names == names[0]).all() and np.isin(trace.events.kind[rows], _PROGRAMS).all():
        if len(rows) < len(_outermost_of_kind(trace, *_PROGRAMS)) and not is_training_function(trace.name_of(rows[0])):
            return _SURE_OF_MOST_CALLED
        return round(_SURE_OF_PROGRAM + (1.0 - _SURE_OF_PROGRAM) * cycle.confidence, 3)
    return cycle.confidence


def _least_rhythm(trace: HostTrace, what: str, rows: I64) -> float:
    """The regularity required of a sequence with one name."""
    if what == _WORK_OF_LOOP:
        return _LEAST_SURE[what]
    programs = np.isin(trace.events.kind[rows], _PROGRAMS)
    certain = programs.all() or has_one_update_each(trace, rows)
    return LEAST_RHYTHM_OF_PROGRAM if len(rows) >= _FEWEST_CALLS and certain else LEAST_CONFIDENCE


def _follow_runs(trace: HostTrace, label: I32, runs: Mask, calls: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """Assigns the work that inferred calls run on other threads to the steps of the calls, and moves the bounds to it.

    A loop that waits for nothing may call many steps ahead.
    """
    if not runs.any():
        return start, end
    called = np.full(len(label), -1, np.int32)
    called[calls] = label[calls]
    spread_labels(trace, called)
    np.copyto(label, called, where=called >= 0)
    return follow_device(trace, label, runs, np.empty(0, np.int64), start, end)


def _has_usual_length(durations: I64) -> bool:
    """Whether the last step is about as long as the others."""
    last, others = int(durations[-1]), durations[:-1]
    return bool(WHOLE_STEP_SHARE * others.min() <= last <= others.max() / WHOLE_STEP_SHARE)


def _candidate_sequences(trace: HostTrace) -> Iterator[tuple[str, I64]]:
    """Candidates for a repeating sequence, best first: a name for the messages, and event rows in order of time."""
    kind, device = trace.events.kind, is_device_work(trace)
    yield _MODULES, _keep_busiest_plane(trace, _measured_modules(trace))
    yield "sequence of kernels", _keep_busiest_plane(trace, np.flatnonzero(device & is_any_kind(kind, COMPUTES)))
    yield "sequence of device work", _keep_busiest_plane(trace, np.flatnonzero(device))
    yield "launches of graphs", _graph_launches(trace)
    yield _CALLS, _outermost_of_kind(trace, EventKind.TRACED_FUNCTION)
    yield "calls of a function", _calls_of_one(trace, _outermost_of_kind(trace, EventKind.TRACED_FUNCTION))
    yield "function runs", _outermost_of_kind(trace, EventKind.FUNCTION_RUN)
    yield _FETCHES, fetches_of_steps(trace, _keep_busiest_plane(trace, np.flatnonzero(kind == EventKind.INPUT_WAIT)))
    yield "input iterator calls", _outermost_of_kind(trace, EventKind.ITERATOR)
    if not device.any():  # on a device the same work is a sequence of kernels
        ops = _outermost_of_kind(trace, *_OPS)
        yield _HOST_OPS, ops
        if not len(ops):
            for rows in _calls_within_functions(trace):
                yield _WORK_OF_LOOP, _repeated_work(trace, rows)
                yield _PYTHON, rows
                yield _PYTHON, _turns_of_largest(trace, rows)


def _graph_launches(trace: HostTrace) -> I64:
    """The calls that launch whole graphs of kernels, on the thread that has most of them, in order of time."""
    calls = events_of_kind(trace, EventKind.RUNTIME_CALL)
    calls = calls[has_trait(trace, trace.events.type[calls], CallTrait.LAUNCHES_GRAPH)] if len(calls) else calls
    return keep_fullest_line(trace, calls) if len(calls) else calls


def _calls_within_functions(trace: HostTrace) -> Iterator[I64]:
    """The calls that a function makes itself, in order of time, for each of the functions whose calls take most time:
    a function around a loop comes before those that the loop calls.

    Of a function that computes a part of a step, and of a list's elements, only those count that train by their names:
    where no two turns of a loop were recorded, the samples in one look like its turns.  The function that runs when the
    recording ends is not in it; what others of its name call is.
    """
    calls = is_any_kind(trace.events.kind, (EventKind.PYTHON_CALL,)) & is_thread_event(trace)
    rows = np.flatnonzero(calls & ~_find_import_calls(trace, calls))
    if not len(rows):
        return
    rows = keep_fullest_line(trace, rows)
    parent = forest(trace).parent[rows]
    caller = np.where(parent >= 0, trace.events.type[parent], -1) + 1  # of a call whose caller's start was missed: 0
    spent = np.bincount(caller, trace.events.duration_ps[rows])
    names = [trace.strings[each] for each in trace.event_types.name[distinct(caller[caller > 0]) - 1].tolist()]
    of_part = np.isin(caller, distinct(caller[caller > 0])[[is_part_of_step(name) for name in names]])
    called = trace.event_names(rows)
    of_part |= (caller == 0) & np.isin(called, called[of_part])
    of_part[of_part] = ~_train_by_name(trace, rows[of_part])
    for function in np.argsort(-spent, kind="stable")[:_MOST_LOOPS].tolist():
        yield _drop_occasional(trace, _drop_minor(trace, _drop_cut(trace, rows[(caller == function) & ~of_part])))


def _find_import_calls(trace: HostTrace, calls: Mask) -> Mask:
    """Which calls an import makes: bool of shape (events,).

    One that has not ended when the recording does is not in it.  Outermost calls of libraries are of such a one if they
    come before another import has ended, or are of functions that imports call.
    """
    events, parent = trace.events, forest(trace).parent
    imports = calls & has_trait(trace, events.type, CodeTrait.IMPORTS)
    inside = np.flatnonzero(calls & (enclosing_events(trace, imports) >= 0))
    if len(inside):
        until = (events.start_ps[inside] + forest(trace).extent_ps[inside]).max()
        outer = np.flatnonzero(calls & (parent < 0))
        outer = outer[~has_trait(trace, events.type[outer], CodeTrait.OF_USER)]
        imports[outer] |= (events.start_ps[outer] < until) | np.isin(events.type[outer], events.type[inside])
    found: Mask = calls & (enclosing_events(trace, imports) >= 0)
    return found


def _train_by_name(trace: HostTrace, rows: I64) -> Mask:
    types, at = np.unique(trace.events.type[rows], return_inverse=True)
    names = [place_of(trace.strings[int(trace.event_types.name[each])])[0] for each in types.tolist()]
    trains: Mask = np.array(
        [is_training_function(name) and not is_part_of_step(f" {name}") for name in names], np.bool_
    )
    return trains[at.reshape(-1)]


def _drop_minor(trace: HostTrace, rows: I64) -> I64:
    """Calls without those of functions that take a hundredth of the time together: what a loop prints now and then.

    A function takes its median times its calls: of the short ones a busy machine makes some long.
    """
    name, duration = trace.event_names(rows), trace.events.duration_ps[rows]
    count = np.bincount(name)
    middle = np.minimum(np.cumsum(count) - (count + 1) // 2, len(name) - 1)
    spent = count * duration[np.lexsort((duration, name))][middle]
    order = np.argsort(spent)
    is_minor = np.zeros(len(spent), np.bool_)
    is_minor[order[np.cumsum(spent[order]) < _MINOR * spent.sum()]] = True
    return rows[~is_minor[name]]


def _drop_occasional(trace: HostTrace, rows: I64) -> I64:
    """Calls without those of libraries' functions that come now and then, as in what a loop prints every ten turns: the
    turns in which they come take no longer than others but for them."""
    name = trace.event_names(rows)
    count = np.bincount(name)
    if not len(rows) or count.max() < _MANY_TURNS:
        return rows
    start, length = trace.events.start_ps[rows], trace.events.duration_ps[rows]
    turns = start[name == int(count.argmax())]
    turn, whole = np.searchsorted(turns, start, side="right") - 1, np.diff(turns)
    keep = np.ones(len(rows), np.bool_)
    for rare in np.flatnonzero((count > 0) & (count <= count.max() / _SELDOM)).tolist():
        own = np.flatnonzero(name == rare)
        inside = own[(turn[own] >= 0) & (turn[own] < len(whole))]
        spent = np.bincount(turn[inside], length[inside], len(whole))
        with_it = np.bincount(turn[inside], minlength=len(whole)) > 0
        of_library = not has_trait(trace, trace.events.type[rows[own[:1]]], CodeTrait.OF_USER)[0]
        if of_library and with_it.any() and not with_it.all():
            rest = np.median((whole - spent)[with_it])
            keep[own] = rest > _ALIKE * np.median(whole[~with_it])
    return rows[keep]


def _drop_cut(trace: HostTrace, rows: I64) -> I64:
    """Calls without those of functions of which only the longer calls were recorded: their number tells nothing."""
    least_us = capture_facts(trace).get("python_min_us")
    if not isinstance(least_us, float) or not len(rows):
        return rows
    name = trace.event_names(rows)
    near = np.bincount(name, trace.events.duration_ps[rows] < _NEAR * least_us * 1e6) / np.maximum(np.bincount(name), 1)
    kept: I64 = rows[near[name] < _CUT]
    return kept


def _repeated_work(trace: HostTrace, rows: I64) -> I64:
    """Of a loop's calls those of the function that repeats most work, if it fills the loop and all others are called
    now and then only, whatever time they take; none otherwise."""
    name, duration = trace.event_names(rows), trace.events.duration_ps[rows]
    count, spent = np.bincount(name), np.bincount(name, duration)
    often = count * (spent >= _MAJOR * spent.sum())
    most = int(often.argmax()) if len(often) else 0
    is_alone = len(rows) and np.count_nonzero(count > often[most] / _MUCH_MORE) == 1 and often[most] >= _MANY_CALLS
    if not is_alone:
        return rows[:0]
    chosen: I64 = rows[name == most]
    start = trace.events.start_ps[chosen]
    distance = np.minimum(np.diff(start), 2 * np.median(np.diff(start)))  # without what comes now and then
    return chosen if spent[most] >= _FILLED * distance.sum() else rows[:0]


def _turns_of_largest(trace: HostTrace, rows: I64) -> I64:
    """Of a function's calls those from the first to the last of the one that takes most time, if they fill half of it:
    the turns of one loop, without another before it that calls some of the same, as one that fills a memory of moves;
    none where that is all of them."""
    if not len(rows):
        return rows
    name, start = np.unique(trace.event_names(rows), return_inverse=True)[1], trace.events.start_ps[rows]
    turns = np.flatnonzero(name == int(np.bincount(name, trace.events.duration_ps[rows]).argmax()))
    first, last = int(turns[0]), int(turns[-1])
    is_part = first > 0 and 2 * int(start[last] - start[first]) >= int(start[-1] - start[0])
    return rows[first:] if is_part else rows[:0]


def _calls_of_one(trace: HostTrace, calls: I64) -> I64:
    """The calls of the training function among those of several, such as one that evaluates now and then: the one that
    is called so, else the one with most calls, unless others take most of the time: ops that are dispatched by
    themselves, as where a model is made, are no steps."""
    if not len(calls):
        return calls
    name = trace.event_names(calls)
    names, count = np.unique(name, return_counts=True)
    texts = [trace.strings[each] for each in names.tolist()]
    trains = [is_training_function(text) and not says_evaluation(text) for text in texts]
    best = names[np.argmax(np.where(trains, count, 0) if any(trains) else count)]
    chosen: I64 = calls[name == best]
    length = trace.events.duration_ps
    return chosen if any(trains) or 2 * length[chosen].sum() >= length[calls].sum() else calls[:0]


def _measured_modules(trace: HostTrace) -> I64:
    """Runs of XLA programs, but not on GPUs: there they are derived from kernels, and one event may hold several."""
    measured = trace.planes.kind[trace.lines.plane] != PlaneKind.GPU
    return np.flatnonzero((trace.events.kind == EventKind.MODULE) & look_up(measured, trace.events.line))


def _keep_busiest_plane(trace: HostTrace, rows: I64) -> I64:
    """The events on the plane where they take most time, in order of time."""
    if not len(rows):
        return rows
    plane = trace.lines.plane[trace.events.line[rows]]
    rows = rows[plane == np.bincount(plane, trace.events.duration_ps[rows]).argmax()]
    return rows[np.argsort(trace.events.start_ps[rows], kind="stable")]


def _outermost_of_kind(trace: HostTrace, *kinds: EventKind) -> I64:
    """Outermost events of some kinds on the thread that has most of them, in order of time."""
    of_kind = is_any_kind(trace.events.kind, kinds)
    rows = np.flatnonzero(of_kind)
    if not len(rows):
        return rows
    return keep_fullest_line(trace, drop_enclosed(trace, rows, of_kind))


def _work_end(trace: HostTrace, rows: I64) -> int:
    """When the last work of the capture ends: device work if the sequence is on a device, else host ops."""
    kinds = (EventKind.OP, EventKind.EXECUTOR, EventKind.TRACED_FUNCTION, EventKind.FUNCTION_RUN, EventKind.SYNC)
    device = is_device_work(trace)
    work = np.flatnonzero(device) if device[rows].any() else np.flatnonzero(is_any_kind(trace.events.kind, kinds))
    work = np.concatenate([work, rows])
    return int((trace.events.start_ps[work] + trace.events.duration_ps[work]).max())


def _label_events_by_time(trace: HostTrace, start: I64, end: I64) -> I32:
    at = np.searchsorted(start, trace.events.start_ps, side="right") - 1
    inside = (at >= 0) & (trace.events.start_ps < end[np.maximum(at, 0)])
    return np.where(inside, at, -1).astype(np.int32)


def _shorten(name: str) -> str:
    return name if len(name) <= 80 else name[:77] + "..."
