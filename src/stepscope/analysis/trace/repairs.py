"""Repairs rows of a recording that cannot be as they are, before anything is made of it.

    stream   k1---------------------          k1 ends after k2 began: a stream works in order, so it is cut there
                  k2----  k3----
    device   k1---- k2----           ...           k9      long after the recording ended: it is set aside
    thread   op--- op--------|======               the recording ended (|) during the op: it is cut there

Each repair is counted and named; `trust` lists them. Rows that the recorder wrote about itself become its overhead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stepscope.errors import counted
from stepscope.model import EventKind, HostTrace, LineKind, Repair, stat_names, take_events
from stepscope.model.arrays import I64, Mask, distinct, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.frameworks import WINDOW_NAME_BYTES, states_window
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

K = EventKind

_WORK = (
    K.KERNEL, K.COLLECTIVE, K.MEMSET, K.COPY_HOST_TO_DEVICE, K.COPY_DEVICE_TO_HOST, K.COPY_DEVICE_TO_DEVICE,
    K.COPY_PEER, K.COPY_OTHER,
)  # fmt: skip
_HOLDS_WORK = (LineKind.THREAD, LineKind.STREAM, LineKind.DEVICE_OPS)
_NOISE_PS = 1_000_000  # GPUs state ends up to 0.2 us after the next start (rocprof on MI300X), and no stream works so
_BY_DESIGN = 0.5  # of the runs of a kernel: one that lets its successor start early does so most times
_SEVERAL_QUEUES = 0.5  # of the work of a line: where so much overlaps, the line is no queue that works in order
_LITTLE = 0.01  # of the recording: less changes no figure that is shown
_SOME = 0.25  # of the other events, by judgement: more are no stray ones, as in a recording of two events
_LONG_PAUSE = 0.125  # of the recording: after what is far away on both sides of it a pause is at least a third
_PS_PER_MS, _PS_PER_NS = 10**9, 1000


def repair(trace: HostTrace) -> HostTrace:
    """The trace without rows that cannot be; the same trace where all can."""
    trace = _set_recorder_aside(trace)
    window = _window(trace)
    for mend in (_set_outside_aside, _cut_at_end, _cut_overlong, _cut_after_program, _cut_after_wait):
        trace = mend(trace, window)
    return trace


@dataclass(frozen=True)
class _Window:
    """From when to when the recording says that it recorded, ps; None where it does not."""

    start_ps: int | None
    end_ps: int | None


# -- what the recorder says of itself ----------------------------------------------------------------------------------


def _recorder_rows(trace: HostTrace) -> I64:
    """The rows in which a recorder states when it recorded."""
    names, (least, most) = trace.event_types.name, WINDOW_NAME_BYTES
    length = trace.strings.offsets[names + 1] - trace.strings.offsets[names]
    types = np.flatnonzero((length >= least) & (length <= most))
    types = types[np.array([states_window(name) for name in trace.strings.texts(names[types])], np.bool_)]
    if not len(types):
        return np.empty(0, np.int64)
    wanted = np.zeros(len(trace.event_types), np.bool_)
    wanted[types] = True
    return np.flatnonzero(look_up(wanted, trace.events.type))


def _set_recorder_aside(trace: HostTrace) -> HostTrace:
    """Lines that hold the recorder's own rows only are lines of overhead: nothing in them is work."""
    rows = _recorder_rows(trace)
    lines = trace.lines
    own = np.bincount(trace.events.line[rows], minlength=len(lines))
    only = (own > 0) & (own == lines.event_end - lines.event_begin) & (lines.kind == LineKind.THREAD)
    if not only.any():
        return trace
    kind = np.where(only, np.uint8(LineKind.OVERHEAD), lines.kind).astype(np.uint8)
    return replace(trace, lines=replace(lines, kind=kind), _derived={})


def _window(trace: HostTrace) -> _Window:
    rows = _recorder_rows(trace)
    if len(rows):
        start = trace.events.start_ps[rows]
        return _Window(int(start.min()), int((start + trace.events.duration_ps[rows]).max()))
    if trace.start_unix_ns is None or trace.stop_unix_ns is None or trace.stop_unix_ns <= trace.start_unix_ns:
        return _Window(None, None)
    return _Window(0, (trace.stop_unix_ns - trace.start_unix_ns) * _PS_PER_NS)


# -- outside of the recording ------------------------------------------------------------------------------------------


def _set_outside_aside(trace: HostTrace, window: _Window) -> HostTrace:
    """Drops what lies outside of the recording: by its own statement, else by a pause longer than all the rest.

    A device may finish after the recorder stopped. What follows its other work as closely as that follows itself is
    such work, and stays.
    """
    rows, why = _outside(trace, window), "outside of the recording's own start and stop"
    if not len(rows):
        rows, why = _far_away(trace), "further from all other events than these last together"
    if not len(rows):
        return trace
    start, end = trace.events.start_ps[rows], trace.events.start_ps[rows] + trace.events.duration_ps[rows]
    low, high = window.start_ps or 0, window.end_ps
    away = int(max(0 if high is None else (start - high).max(), (low - end).max(), 0))
    by = f", by up to {_ms(away)}" if away else ""
    kept = np.ones(len(trace.events), np.bool_)
    kept[rows] = False
    left = np.flatnonzero(kept)
    part, _ = take_events(trace, left, trace.events.start_ps[left], trace.events.duration_ps[left])
    return _note(
        part,
        Repair(
            "outside", len(rows), len(trace.events), int(trace.events.duration_ps[rows].sum()),
            f"{_events(trace, rows)} {'lies' if len(rows) == 1 else 'lie'} {why}{by}", "set aside",
            "step times, and what devices wait for",
        ),
    )  # fmt: skip


def _outside(trace: HostTrace, window: _Window) -> I64:
    low, high = window.start_ps, window.end_ps
    if low is None or high is None:
        return np.empty(0, np.int64)
    found = [np.empty(0, np.int64)]
    start, duration = trace.events.start_ps, trace.events.duration_ps
    for line in _work_lines(trace):
        first, last = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
        begins = start[first:last]
        late, early = int(np.searchsorted(begins, high, side="right")), int(np.searchsorted(begins, low))
        if late < len(begins):
            ends = np.maximum.accumulate(begins + duration[first:last])
            found.append(first + _find_late_events(begins, ends, late))
        if early > 0:
            ends = begins + duration[first:last]
            found.append(first + np.flatnonzero(ends[:early] < low))
    return np.concatenate(found)


def _find_late_events(begins: I64, ends: I64, late: int) -> I64:
    """Which events of a line from `late` on follow a longer pause than any before it: places in the line."""
    pause = np.maximum(begins[1:] - ends[:-1], 0)
    usual = int(pause[: late - 1].max(initial=0))
    first = max(late, 1)
    apart = np.flatnonzero(pause[first - 1 :] > usual) + first
    if late == 0:
        return np.arange(len(begins))
    return np.arange(apart[0], len(begins)) if len(apart) else apart


def _far_away(trace: HostTrace) -> I64:
    """Device work further from everything else than everything else lasts, if it is little: rows of events."""
    blocks = _blocks(trace)
    group = _groups_of(blocks)
    if not len(group) or not group[-1]:
        return np.empty(0, np.int64)
    size = np.bincount(group, blocks.last - blocks.first)
    main = int(np.argmax(size))
    low, high = (int(edge) for edge in (blocks.start_ps[group == main].min(), blocks.end_ps[group == main].max()))
    of_devices = look_up(np.isin(trace.lines.kind, (LineKind.STREAM, LineKind.DEVICE_OPS)), blocks.line)
    found = [np.empty(0, np.int64)]
    for each in range(int(group[-1]) + 1):
        mine = np.flatnonzero(group == each)
        away = max(int(blocks.start_ps[mine].min()) - high, low - int(blocks.end_ps[mine].max()))
        of_each_line = len(distinct(blocks.line[mine]))  # a row of each
        is_little = size[each] <= max(_LITTLE * size[main], min(of_each_line, _SOME * size[main]))
        if away > high - low and is_little and of_devices[mine].all():
            found += [np.arange(blocks.first[row], blocks.last[row]) for row in mine.tolist()]
    return np.concatenate(found)


@dataclass(frozen=True)
class _Blocks:
    """Events that follow each other on a line without a long pause, in order of time; int64 of shape (n,).

    Attributes:
        line: their line.
        first, last: the row of the first, and the one after the last.
        start_ps, end_ps: from when to when they last.
    """

    line: I64
    first: I64
    last: I64
    start_ps: I64
    end_ps: I64


def _blocks(trace: HostTrace) -> _Blocks:
    """The blocks of all lines, cut where a line pauses for a large part of the recording; none where no pause is
    common to all lines."""
    events, rows = trace.events, list[tuple[int, int, int]]()
    begin, end = trace.span_ps()
    for line in _work_lines(trace):
        first, last = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
        cuts = np.flatnonzero(np.diff(events.start_ps[first:last]) > _LONG_PAUSE * (end - begin)) + first + 1
        bounds = [first, *cuts.tolist(), last]
        rows += [(line, *pair) for pair in itertools.pairwise(bounds)]
    line_of, low, high = (np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else ([], [], [])))
    line_of, low, high = (each[np.argsort(events.start_ps[low], kind="stable")] for each in (line_of, low, high))
    begun = np.maximum.accumulate(events.start_ps[high - 1]) if len(low) else low
    if not (events.start_ps[low][1:] - begun[:-1] > _LONG_PAUSE * (end - begin)).any():  # ends of all events cost more
        line_of, low, high = line_of[:0], low[:0], high[:0]
    ends = [
        int((events.start_ps[each:until] + events.duration_ps[each:until]).max())
        for each, until in zip(low.tolist(), high.tolist(), strict=True)
    ]
    return _Blocks(line_of, low, high, events.start_ps[low], np.array(ends, np.int64))


def _groups_of(blocks: _Blocks) -> I64:
    """Which blocks are close in time: int64 of shape (blocks,), the number of the group, ascending."""
    if not len(blocks.start_ps):
        return blocks.start_ps
    until = np.maximum.accumulate(blocks.end_ps)
    pause = blocks.start_ps[1:] - until[:-1]
    whole = int(until[-1] - blocks.start_ps[0])
    found: I64 = np.append(0, np.cumsum(pause > _LONG_PAUSE * whole))
    return found


# -- longer than they can be -------------------------------------------------------------------------------------------


def _cut_at_end(trace: HostTrace, window: _Window) -> HostTrace:
    """Cuts calls of threads where the recording ended: what they take after it is the recorder's own stop."""
    if window.end_ps is None:
        return trace
    events, high = trace.events, window.end_ps
    found = []
    for line in trace.lines_of(LineKind.THREAD).tolist():
        first, last = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
        over = events.start_ps[first:last] + events.duration_ps[first:last] > high
        found.append(first + np.flatnonzero(over & (events.start_ps[first:last] < high)))
    rows = np.concatenate(found) if found else np.empty(0, np.int64)
    if not len(rows):
        return trace
    over_ps = events.start_ps[rows] + events.duration_ps[rows] - high
    ops = np.flatnonzero(events.kind[rows] != K.PYTHON_CALL)  # functions around the stop are always running then
    return _note(
        _shorten(trace, rows, events.duration_ps[rows] - over_ps),
        Repair(
            "open-at-end", len(rows), len(events), int(over_ps.max()),
            f"{_events(trace, rows)} {'was' if len(rows) == 1 else 'were'} running when the recording ended, and"
            f" {'lasts' if len(rows) == 1 else 'last'} up to {_ms(int(over_ps.max()))} longer", "cut at its end",
            "times of ops and functions: the recorder's own stop is in them",
            is_small=not len(ops) or int(over_ps[ops].max()) < _LITTLE * (high - (window.start_ps or 0)),
        ),
    )  # fmt: skip


def _cut_overlong(trace: HostTrace, window: _Window) -> HostTrace:
    """Cuts work of streams that ends after the next work of its stream began.

    Kernels of a replayed graph may run side by side, and some kernels let their successor start before they end, each
    time that they run: both stay.  So do requests to move data whose direction is not known, as several engines may
    serve them.
    """
    events, ends = trace.events, trace.events.start_ps + trace.events.duration_ps
    found, until = [], []
    works = np.zeros(256, np.bool_)
    works[list(_WORK)] = True
    for line in trace.lines_of(LineKind.STREAM).tolist():
        rows = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
        rows = rows[look_up(works, events.kind[rows]) & (events.duration_ps[rows] > 0)]
        over = np.flatnonzero(ends[rows[:-1]] - events.start_ps[rows[1:]] > _NOISE_PS)
        if 0 < len(over) < _SEVERAL_QUEUES * len(rows):
            found.append(rows[over])
            until.append(rows[over + 1])
    if not found:
        return trace
    rows, following = np.concatenate(found), np.concatenate(until)
    cut = ~_runs_beside(trace, rows, following) & ((ends[rows] >= ends[following]) | ~_overlaps_by_design(trace, rows))
    cut &= (events.kind[rows] != K.COPY_OTHER) | (events.kind[following] != K.COPY_OTHER)
    rows, following = rows[cut], following[cut]
    if not len(rows):
        return trace
    works_in_all = int(look_up(works, events.kind).sum())
    after = "the next work of the stream began"
    return _cut_at(trace, rows, events.start_ps[following], "ends-after-next", works_in_all, after, "kernels and ops")


def _cut_at(trace: HostTrace, rows: I64, end_ps: I64, code: str, of: int, after: str, what: str) -> HostTrace:
    """The trace with some events cut at earlier ends, and noted.

    Args:
        rows, end_ps: shape (n,): the events, and where each ends now.
        code, of: of the repair, see `Repair`; after: what they ended after; what: whose times would be wrong.
    """
    over_ps = trace.events.start_ps[rows] + trace.events.duration_ps[rows] - end_ps
    have, end = ("has", "it ends") if len(rows) == 1 else ("have", "they end")
    return _note(
        _shorten(trace, rows, trace.events.duration_ps[rows] - over_ps),
        Repair(
            code, len(rows), of, int(over_ps.sum()),
            f"{_events(trace, rows)} {have} a wrong duration: {end} up to {_ms(int(over_ps.max()))} after {after}",
            "cut there", f"times of {what}, the ends of steps, and when the device is busy",
        ),
    )  # fmt: skip


def _cut_after_program(trace: HostTrace, window: _Window) -> HostTrace:
    """Cuts ops of a device that end after the run of the program in which they began, unless most runs have such ops:
    then the line holds what goes on beside programs."""
    events, found, until = trace.events, [], []
    for line in trace.lines_of(LineKind.DEVICE_OPS).tolist():
        runs = _rows_of(trace, np.flatnonzero(trace.lines.plane == trace.lines.plane[line]), LineKind.MODULES)
        rows = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
        if not len(runs) or not len(rows):
            continue
        begin, end = events.start_ps[runs], events.start_ps[runs] + events.duration_ps[runs]
        at = np.maximum(np.searchsorted(begin, events.start_ps[rows], side="right") - 1, 0)
        is_inside = (events.start_ps[rows] >= begin[at]) & (events.start_ps[rows] < end[at])
        over = np.flatnonzero(is_inside & (events.start_ps[rows] + events.duration_ps[rows] > end[at] + _NOISE_PS))
        if len(over) and len(distinct(at[over])) < _BY_DESIGN * len(runs):
            found.append(rows[over])
            until.append(end[at[over]])
    if not found:
        return trace
    rows, last_ps = np.concatenate(found), np.concatenate(until)
    after = f"the program that {'it is' if len(rows) == 1 else 'they are'} of"
    return _cut_at(trace, rows, last_ps, "ends-after-program", len(events), after, "ops")


def _cut_after_wait(trace: HostTrace, window: _Window) -> HostTrace:
    """Cuts the last work of a stream that goes on after a call returned that waited for all work of the only device,
    for longer than any other work of the stream lasts: the clocks of host and device differ by less."""
    events, lines = trace.events, trace.lines
    calls = np.flatnonzero((events.kind == K.RUNTIME_CALL) | (events.kind == K.SYNC))
    calls = calls[has_trait(trace, events.type[calls], CallTrait.AWAITS_ALL)] if len(calls) else calls
    streams = [line for line in _work_lines(trace) if lines.kind[line] == LineKind.STREAM]
    if not len(calls) or len(set(lines.plane[streams].tolist())) != 1:
        return trace
    returned, cut, until = np.sort(events.start_ps[calls] + events.duration_ps[calls]), [], []
    for line in streams:
        rows = np.arange(int(lines.event_begin[line]), int(lines.event_end[line]))
        if len(rows) < 2:
            continue
        last, at = rows[-1], int(np.searchsorted(returned, events.start_ps[rows[-1]], side="right"))
        longest = int(events.duration_ps[rows[:-1]].max())
        end = int(events.start_ps[last] + events.duration_ps[last])
        if at < len(returned) and longest > 0 and end - int(returned[at]) > longest:
            cut.append(int(last))
            until.append(int(returned[at]))
    if not cut:
        return trace
    rows, last_ps = np.array(cut, np.int64), np.array(until, np.int64)
    after = "a call returned that waited for the device"
    return _cut_at(trace, rows, last_ps, "ends-after-wait", len(events), after, "kernels")


def _rows_of(trace: HostTrace, lines: I64, kind: LineKind) -> I64:
    """The events of the first of some lines that has a kind, in order of time."""
    mine = [line for line in lines.tolist() if trace.lines.kind[line] == kind]
    first = mine[0] if mine else 0
    low, high = int(trace.lines.event_begin[first]), int(trace.lines.event_end[first])
    return np.arange(low, high if mine else low)


def _runs_beside(trace: HostTrace, rows: I64, following: I64) -> Mask:
    """Which pairs are kernels of one graph, which may run side by side though the recorder names one stream."""
    nodes = [trace.stat_ints(stat_names.GRAPH_NODE_ID, rows=each) > 0 for each in (rows, following)]
    found: Mask = nodes[0] & nodes[1]
    return found


def _overlaps_by_design(trace: HostTrace, rows: I64) -> Mask:
    """Which of some rows are of a kernel that most times ends after the next work began."""
    types, place = np.unique(trace.events.type[rows], return_inverse=True)
    over = np.bincount(place)
    runs = np.array([np.count_nonzero(trace.events.type == each) for each in types.tolist()])
    by_design = (runs > 2) & (over > _BY_DESIGN * runs)
    found: Mask = by_design[place]
    return found


# -- help --------------------------------------------------------------------------------------------------------------


def _work_lines(trace: HostTrace) -> Iterator[int]:
    for line in trace.lines_of(*_HOLDS_WORK).tolist():
        if trace.lines.event_end[line] > trace.lines.event_begin[line]:
            yield line


def _shorten(trace: HostTrace, rows: I64, duration_ps: I64) -> HostTrace:
    durations = trace.events.duration_ps.copy()
    durations[rows] = duration_ps
    start, beside = trace.events.start_ps, rows[:, None] + np.array([-1, 1])
    beside = np.clip(beside, 0, len(start) - 1)
    if (start[beside] == start[rows][:, None])[beside != rows[:, None]].any():  # of equal starts the longer is first
        return take_events(trace, np.arange(len(start)), start, durations)[0]
    durations.setflags(write=False)
    return replace(trace, events=replace(trace.events, duration_ps=durations), _derived={})


def _note(trace: HostTrace, made: Repair) -> HostTrace:
    return replace(trace, repairs=(*trace.repairs, made), _derived={})


def _events(trace: HostTrace, rows: I64) -> str:
    """How many events they are, and the name of the longest."""
    longest = int(rows[np.argmax(trace.events.duration_ps[rows])])
    name = trace.name_of(longest)
    short = name if len(name) <= 60 else f"{name[:57]}..."
    return f"{counted(len(rows), 'event')} ({short!r}{' and others' if len(rows) > 1 else ''})"


def _ms(ps: int) -> str:
    return f"{ps / _PS_PER_MS:,.3g} ms" if ps < 1000 * _PS_PER_MS else f"{ps / _PS_PER_MS / 1000:,.3g} s"
