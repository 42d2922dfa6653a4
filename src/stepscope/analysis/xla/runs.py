"""Runs of a model, one after the other: batches that a server handles, runs of XLA programs, or steps."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.xla.op_time import OpTime, op_time
from stepscope.model import HostTrace, LineKind, stat_names
from stepscope.model.arrays import I64, look_up, number_pairs
from stepscope.records import dataclass
from stepscope.vocabulary.serving import Batch, batch_of

_SIZE, _PADDING = ("batch_size_after_padding",), ("padding_amount",)


@dataclass(frozen=True)
class Runs:
    """Runs of one kind, in order of time.

    Attributes:
        source: how they are known: `server`, `program` or `steps`.
        name: the kind of batch, the program, or `step`.
        start_ps, end_ps: int64 of shape (runs,); work on devices that a run launched belongs to it.
        requests, tokens, padding: int64 of shape (runs,), -1 where unknown.
        device_ps: int64 of shape (runs,), time of device work launched in it, -1 where unknown.
        queue_ps: int64 of shape (runs,), from its first launch to the start of its first work, -1 where unknown.
    """

    source: str
    name: str
    start_ps: I64
    end_ps: I64
    requests: I64
    tokens: I64
    padding: I64
    device_ps: I64
    queue_ps: I64


def find_runs(trace: HostTrace) -> list[Runs]:
    """The runs of a trace: those that a server marks, else those of XLA programs, else steps."""
    return _server_runs(trace) or _program_runs(trace) or _step_runs(trace)


# -- a server's batches ----------------------------------------------------------------------------------------------


def _server_runs(trace: HostTrace) -> list[Runs]:
    named = [batch_of(trace.strings[row]) for row in trace.event_types.name.tolist()]
    on_thread = look_up(trace.lines.kind == LineKind.THREAD, trace.events.line)
    marks = np.array([batch is not None for batch in named], np.bool_)
    rows = np.flatnonzero(look_up(marks, trace.events.type) & on_thread) if len(named) else np.zeros(0, np.int64)
    rows = _find_outermost(trace, rows)
    batches = [named[int(trace.events.type[row])] or Batch("") for row in rows.tolist()]
    found = []
    for kind in dict.fromkeys(batch.kind for batch in batches):
        here = np.array([at for at, batch in enumerate(batches) if batch.kind == kind])
        found.append(_build_marked_runs(trace, kind, rows[here], [batches[at] for at in here.tolist()]))
    return found


def _find_outermost(trace: HostTrace, rows: I64) -> I64:
    """Marks that lie in no other mark of their thread, in order of time: a server may mark the same batch twice."""
    order = rows[np.lexsort((-trace.events.duration_ps[rows], trace.events.start_ps[rows], trace.events.line[rows]))]
    kept, line, until = [], -1, 0
    for row in order.tolist():
        start, end = int(trace.events.start_ps[row]), int(trace.events.start_ps[row] + trace.events.duration_ps[row])
        if int(trace.events.line[row]) != line or start >= until:
            kept.append(row)
            line, until = int(trace.events.line[row]), end
    found = np.array(kept, np.int64)
    return found[np.argsort(trace.events.start_ps[found], kind="stable")]


def _build_marked_runs(trace: HostTrace, kind: str, rows: I64, batches: list[Batch]) -> Runs:
    start = trace.events.start_ps[rows]
    end = start + trace.events.duration_ps[rows]
    device, queue, last = _device_work(trace, rows, start, end)
    size, padding = (trace.stat_ints(names, rows=rows) for names in (_SIZE, _PADDING))
    requests = np.array([-1 if batch.requests is None else batch.requests for batch in batches], np.int64)
    requests = np.where((requests < 0) & (size >= 0), size - np.maximum(padding, 0), requests)
    tokens = np.array([-1 if batch.tokens is None else batch.tokens for batch in batches], np.int64)
    return Runs("server", kind, start, np.maximum(end, last), requests, tokens, padding, device, queue)


def _device_work(trace: HostTrace, rows: I64, start: I64, end: I64) -> tuple[I64, I64, I64]:
    """Time of the device work that each event launched, the wait of its first piece, and when its last one ends."""
    found = attribute(trace)
    device, queue, last = (np.full(len(rows), -1, np.int64) for _ in range(3))
    launched = found.call >= 0
    call, work, time = found.call[launched], found.rows[launched], found.time_ps[launched]
    line, called = trace.events.line[call], trace.events.start_ps[call]
    begin = trace.events.start_ps[work]
    for at, row in enumerate(rows.tolist()):
        mine = (line == trace.events.line[row]) & (called >= start[at]) & (called < end[at])
        if mine.any():
            device[at] = int(time[mine].sum())
            queue[at] = max(int(begin[mine].min() - called[mine].min()), 0)
            last[at] = int((begin[mine] + trace.events.duration_ps[work[mine]]).max())
    return device, queue, last


# -- runs of XLA programs --------------------------------------------------------------------------------------------


def _program_runs(trace: HostTrace) -> list[Runs]:
    modules = np.flatnonzero(look_up(trace.lines.kind == LineKind.MODULES, trace.events.line))
    if len(modules):
        return _runs_of_modules(trace, modules)
    done = op_time(trace)
    if not len(done.rows):
        return []
    return _runs_by_number(trace, done) if done.on_host else _runs_by_kernels(trace, done)


def _runs_of_modules(trace: HostTrace, rows: I64) -> list[Runs]:
    """The device records when its programs run."""
    name = event_name_rows(trace, rows)
    found = []
    for each in dict.fromkeys(name.tolist()):
        here = rows[name == each]
        here = here[np.argsort(trace.events.start_ps[here], kind="stable")]
        start, time = trace.events.start_ps[here], trace.events.duration_ps[here]
        found.append(_build_runs("program", trace.strings[each], start, start + time, time))
    return found


def _runs_by_number(trace: HostTrace, done: OpTime) -> list[Runs]:
    """Ops on threads of the host carry the number of their run."""
    number = trace.stat_ints(stat_names.XLA_RUN_ID, missing=0, rows=done.rows)
    program = done.program[done.op]
    run, first = number_pairs(program, number)
    start, end = np.full(len(first), np.iinfo(np.int64).max), np.zeros(len(first), np.int64)
    busy = np.zeros(len(first), np.int64)
    begin = trace.events.start_ps[done.rows]
    np.minimum.at(start, run, begin)
    np.maximum.at(end, run, begin + trace.events.duration_ps[done.rows])
    np.add.at(busy, run, done.self_ps)
    return _split_by_program(trace, done, program[first], start, end, busy)


def _runs_by_kernels(trace: HostTrace, done: OpTime) -> list[Runs]:
    """Kernels carry no number of a run: the n-th kernel of each name belongs to the n-th run."""
    program = done.program
    plane = trace.lines.plane[trace.events.line[done.rows]].astype(np.int64)
    group, first = number_pairs(done.op, event_name_rows(trace, done.rows))
    group, first = number_pairs(group, plane)
    order = np.lexsort((trace.events.start_ps[done.rows], group))
    sizes = np.bincount(group, minlength=len(first))
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    owner = program[done.op[first]] * (1 << 16) + plane[first]
    usual = {key: int(np.median(sizes[owner == key])) for key in np.unique(owner).tolist()}
    regular = np.array([sizes[at] == usual[key] for at, key in enumerate(owner.tolist())], np.bool_)
    chosen = order[regular[group[order]]]
    run, first_piece = number_pairs(owner[group[chosen]], place[regular[group[order]]])
    begin = trace.events.start_ps[done.rows[chosen]]
    start, end = np.full(len(first_piece), np.iinfo(np.int64).max), np.zeros(len(first_piece), np.int64)
    busy = np.zeros(len(first_piece), np.int64)
    np.minimum.at(start, run, begin)
    np.maximum.at(end, run, begin + trace.events.duration_ps[done.rows[chosen]])
    np.add.at(busy, run, done.self_ps[chosen])
    return _split_by_program(trace, done, program[done.op[chosen[first_piece]]], start, end, busy)


def _split_by_program(trace: HostTrace, done: OpTime, program: I64, start: I64, end: I64, busy: I64) -> list[Runs]:
    found = []
    places = programs_of(trace).find_all(done.programs)
    for each in np.unique(program).tolist():
        here = np.flatnonzero(program == each)
        here = here[np.argsort(start[here], kind="stable")]
        place, module = places[each], done.programs[each][1]
        label = programs_of(trace).entries[place].label if place >= 0 else module
        found.append(_build_runs("program", label, start[here], end[here], busy[here]))
    return found


def _step_runs(trace: HostTrace) -> list[Runs]:
    steps = steps_of(trace)
    if steps.source == "none" or not len(steps.number):
        return []
    return [_build_runs("steps", "step", steps.start_ps, steps.until_ps, np.full(len(steps.number), -1, np.int64))]


def _build_runs(source: str, name: str, start: I64, end: I64, device: I64) -> Runs:
    unknown = np.full(len(start), -1, np.int64)
    return Runs(source, name, start, end, unknown, unknown, unknown, device, unknown)
