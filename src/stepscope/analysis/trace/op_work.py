"""The ops of a trace: which events count as ops, their names and their self time.

What counts as an op is decided here alone, so that all tools agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.attribution import attribute, event_name_rows, name_instructions
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.eager import eager_ops
from stepscope.analysis.trace.grouping import COPIES, forest, self_times_of, spread_labels
from stepscope.model import EventKind, HostTrace, LineKind, Trait, stat_names
from stepscope.model.arrays import I32, I64, U8, Mask, number_pairs
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_stack_samples
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.op_names import op_name

K = EventKind

_HOST_KINDS = (K.OP, K.BACKWARD, K.ITERATOR, K.COLLECTIVE_CALL, K.CHECKPOINT, K.INPUT_WAIT)
_STAND_INS = (K.TRACED_FUNCTION, K.ANNOTATION, K.PYTHON_CALL)  # for a host without ops: the first kind that it has


@dataclass(frozen=True)
class OpWork:
    """Events and the ops they belong to.

    Attributes:
        rows: int64 of shape (n,), the events, ascending.
        time_ps: int64 of shape (n,), total time.
        op: int32 of shape (n,), index into `ops`.
        own_ps: int64 of shape (n,), self time.
        ops: name and type of each op; pairs are unique.
        stand_in: the kind of event used instead of ops, for a host that recorded none.
    """

    rows: I64
    time_ps: I64
    op: I32
    own_ps: I64
    ops: list[tuple[str, str]]
    stand_in: EventKind | None = None


def host_work(trace: HostTrace) -> OpWork:
    """The ops on the host's threads, or the closest substitute if there are none."""
    threads = is_thread_event(trace)
    chosen, stand_in = _host_events(trace, threads)
    chosen[_recorded_twice(trace, chosen)] = False
    rows = np.flatnonzero(chosen)
    op, names = _host_op_names(trace, rows)
    op, ops = _merge_equal_names(op, names)
    time_ps = trace.events.duration_ps[rows]
    sampled = not threads[rows].all()
    own = _own_times_by_nesting(trace, rows, time_ps) if sampled else self_times_of(trace, rows, chosen)
    return OpWork(rows, time_ps, op, own, ops, stand_in)


def _recorded_twice(trace: HostTrace, chosen: Mask) -> I64:
    """Rows of chosen events that repeat the one around them: a wait inside a wait, recorded again by the function that
    implements the op, and a call of a compiled function that JAX records in Python and again in C++."""
    kind, parent = trace.events.kind, forest(trace).parent
    rows = events_of_kind(trace, K.INPUT_WAIT, K.TRACED_FUNCTION)
    rows = rows[chosen[rows] & (parent[rows] >= 0)]
    around = parent[rows]
    alike = (kind[rows] == K.INPUT_WAIT) | (trace.events.type[around] == trace.events.type[rows])
    repeated: I64 = rows[(kind[around] == kind[rows]) & alike]
    return repeated


def _host_events(trace: HostTrace, threads: Mask) -> tuple[Mask, EventKind | None]:
    """Which events count as ops, and their kind if they are substitutes.  A host that has only waits for input gets
    substitutes too."""
    kind = trace.events.kind
    ops = is_any_kind(kind, _HOST_KINDS) & threads
    ops[eager_ops(trace)] = True
    if (ops & (kind != K.INPUT_WAIT)).any():
        return ops, None
    for stand_in in _STAND_INS:
        chosen = is_any_kind(kind, (stand_in,)) & threads
        if chosen.any():
            return chosen | ops, stand_in
    sampled = _sampled_functions(trace)
    ops[sampled] = True
    return ops, K.PYTHON_CALL if len(sampled) else None


def _sampled_functions(trace: HostTrace) -> I64:
    """The sampled frames of the thread whose stack changed most often: the others wait.  Rows of events."""
    planes = [row for row in range(len(trace.planes)) if holds_stack_samples(trace.plane_name(row))]
    lines = np.flatnonzero(np.isin(trace.lines.plane, planes))
    if not len(lines):
        return lines
    count = trace.lines.event_end[lines] - trace.lines.event_begin[lines]
    line = lines[int(count.argmax())]
    return np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))


def _host_op_names(trace: HostTrace, rows: I64) -> tuple[I32, list[tuple[str, str]]]:
    kind, name = trace.events.kind[rows], event_name_rows(trace, rows)
    instruction = trace.stat_strings(stat_names.HLO_OP, rows=rows)
    of_xla = instruction > 0
    if not of_xla.any():
        number, first = number_pairs(name, kind)
        return number, _op_names(trace, rows[first], kind[first])
    program = trace.stat_ints(stat_names.PROGRAM_ID, rows=rows)
    number, first = number_pairs(np.where(of_xla, instruction, -name), program)
    names = _op_names(trace, rows[first], kind[first])
    xla = np.flatnonzero(of_xla[first])
    code, ops = name_instructions(trace, rows[first[xla]], instruction[first[xla]])
    for at, each in zip(xla.tolist(), code.tolist(), strict=True):
        names[at] = ops[each]
    return number, names


def _op_names(trace: HostTrace, rows: I64, kind: U8) -> list[tuple[str, str]]:
    """Name and type of ops by what their events are called."""
    types = trace.events.type[rows].astype(np.int64)
    colon, _ = trace.strings.find_types(trace.event_types.name[types])
    colon[kind != K.OP] = -1
    return [
        op_name(text, EventKind(number)) if at < 0 else (text[:at], text[at + 1 :])
        for text, number, at in zip(type_names(trace, types), kind.tolist(), colon.tolist(), strict=True)
    ]


def device_work(trace: HostTrace) -> OpWork:
    """Device work by op.  Copies of an op are separate from its kernels; work without an op uses its own name."""
    found = attribute(trace)
    kind = trace.events.kind[found.rows]
    name = np.where(found.op >= 0, -1, event_name_rows(trace, found.rows))
    copy_kind = np.where(np.isin(kind, (*COPIES, K.MEMSET, K.COLLECTIVE)), kind, 0).astype(np.int64)
    number, _ = number_pairs(found.op, name)
    number, first = number_pairs(number, copy_kind)

    def name_of(at: int) -> tuple[str, str]:
        op, event_kind = int(found.op[at]), EventKind(kind[at])
        if op < 0:
            return op_name(trace.strings[name[at]], event_kind)
        label, known = found.ops[op]
        return (label, op_name(label, event_kind)[1]) if copy_kind[at] else (label, known)

    op, ops = _merge_equal_names(number, [name_of(at) for at in first.tolist()])
    core = (trace.lines.kind == LineKind.DEVICE_OPS)[trace.events.line[found.rows]]
    own = _own_times_by_nesting(trace, found.rows, found.time_ps) if core.any() else found.time_ps
    return OpWork(found.rows, found.time_ps, op, own, ops)


def _own_times_by_nesting(trace: HostTrace, rows: I64, time_ps: I64) -> I64:
    """Self times of events on lines that are no threads: int64 of shape (rows,).  Ops of TPU cores are nested by the
    device's own clock."""
    line = trace.events.line[rows]
    start = trace.stat_ints(stat_names.DEVICE_OFFSET_PS, rows=rows)
    if (start < 0).any():
        start = trace.events.start_ps[rows]
    order = np.lexsort((-time_ps, start, line))
    on_stream = (trace.lines.kind == LineKind.STREAM)[line[order]]
    bounds = np.flatnonzero(np.append(True, np.diff(line[order]) != 0))
    duration, parent = time_ps[order], np.full(len(rows), -1, np.int32)
    kernels.nesting.parents(
        start[order], duration, bounds, np.append(bounds[1:], len(rows)), trace.events.kind[rows[order]], on_stream,
        int(K.REGION_BEGIN), int(K.REGION_END), parent, duration.copy(),
    )  # fmt: skip
    own = np.empty(len(rows), np.int64)
    kernels.nesting.self_times(np.arange(len(rows)), duration, parent, np.ones(len(rows), np.bool_), own)
    own[order] = np.maximum(own, 0)
    return own


def device_calls(trace: HostTrace, work: OpWork) -> I64:
    """How often each op ran: int64 of shape (ops,).

    One run of an op on the host may launch several kernels and counts once.  An XLA instruction launches the same
    kernels in every run, so it ran as often as its rarest kernel.  An op of several instructions ran as often as the
    most frequent of them.  For other ops without a recorded run, the most frequent kernel is counted.
    """
    found, size = attribute(trace), len(work.ops)
    of_xla = found.instruction > 0
    of_host = ~of_xla & (found.run >= 0)
    calls = np.zeros(size, np.int64)
    _, first = number_pairs(work.op[of_host], found.run[of_host])
    np.add.at(calls, work.op[of_host][first], 1)
    return calls + _xla_runs(trace, work, np.flatnonzero(of_xla)) + _most_frequent_runs(trace, work, ~of_xla & ~of_host)


def _xla_runs(trace: HostTrace, work: OpWork, at: I64) -> I64:
    instruction, first_of = number_pairs(work.op[at], attribute(trace).instruction[at])
    kernel, first = number_pairs(instruction, event_name_rows(trace, work.rows[at]))
    runs = np.full(len(first_of), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(runs, instruction[first], np.bincount(kernel, minlength=len(first)))
    most = np.zeros(len(work.ops), np.int64)
    np.maximum.at(most, work.op[at[first_of]], runs)
    return most


def _most_frequent_runs(trace: HostTrace, work: OpWork, among: Mask) -> I64:
    op = work.op[among]
    kernel, first = number_pairs(op, event_name_rows(trace, work.rows[among]))
    most = np.zeros(len(work.ops), np.int64)
    np.maximum.at(most, op[first], np.bincount(kernel, minlength=len(first)))
    return most


def _merge_equal_names(op: I32, names: Sequence[tuple[str, str]]) -> tuple[I32, list[tuple[str, str]]]:
    """The ops with each name listed once, and the index of each piece of work into that list."""
    places: dict[tuple[str, str], int] = {}
    place = np.array([places.setdefault(name, len(places)) for name in names], np.int32)
    return place[op] if len(op) else op, list(places)


def eager_dispatch(trace: HostTrace) -> Mask | None:
    """Whether each event was dispatched eagerly: bool of shape (events,); None if the trace holds no eager dispatch.

    A loop that runs eagerly fetches its batches by an eager op; what a pipeline's stages run for it is in functions.
    """
    dispatch = events_of_kind(trace, K.EAGER_EXECUTE)
    marked = (trace.events.traits & np.uint8(Trait.EAGER)) != 0
    if not len(dispatch):
        return marked if marked.any() else None
    function = trace.stat_ints(stat_names.IS_FUNCTION, rows=dispatch)
    label = np.full(len(trace.events), -1, np.int32)
    label[dispatch[function >= 0]] = function[function >= 0]
    label[events_of_kind(trace, K.ITERATOR)] = 1
    eager: Mask = marked | (spread_labels(trace, label) == 0)
    return eager


def device_idle(trace: HostTrace, rows: I64) -> int:
    """Time without work between the first and the last work of each device, in ps."""
    plane = trace.lines.plane[trace.events.line[rows]]
    idle = 0
    for device in trace.device_planes():
        here = rows[plane == device]
        if len(here):
            here = here[np.argsort(trace.events.start_ps[here], kind="stable")]
            start = trace.events.start_ps[here]
            free = np.maximum.accumulate(start + trace.events.duration_ps[here])[:-1]
            idle += int(np.maximum(start[1:] - free, 0).sum())
    return idle
