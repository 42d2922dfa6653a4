"""Which instruction of which program ran when: work on devices, or on a host that is the device itself.

Work is matched to instructions, best first, by

1. what it carries: program, module and instruction, or on a TPU the instruction's text;
2. the host call that launched it, and the XLA op around that call;
3. the kernel's name, where one program alone has an instruction that XLA would give that name.
"""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.op_work import device_work
from stepscope.analysis.xla.programs import Programs, programs_of
from stepscope.model import EventKind, HostTrace, LineKind, stat_names
from stepscope.model.arrays import I64, Mask, number_pairs
from stepscope.records import dataclass
from stepscope.vocabulary.xla import innermost_instruction, kernel_stem

K = EventKind
_HIGHEST_CLIMB = 64


@dataclass(frozen=True)
class OpTime:
    """The XLA work of a trace.

    Attributes:
        rows: int64 of shape (n,), events that belong to an instruction, ascending.
        op: int64 of shape (n,), place in `ops`.
        time_ps, self_ps: int64 of shape (n,), with and without what runs inside.
        ops: program, as a place in `programs`, and name of each instruction that ran.
        programs: number and module's name of each program that ran.
        on_host: True where the host's own threads are the device.
        matched_ps: device time that is matched, by `carried`, `launch`, `name`.
        unmatched_ps: device time of kernels and ops that belong to no instruction.
        copies_ps: device time of copies that belong to no instruction.
    """

    rows: I64
    op: I64
    time_ps: I64
    self_ps: I64
    ops: list[tuple[int, str]]
    programs: list[tuple[int | None, str]]
    on_host: bool
    matched_ps: dict[str, int]
    unmatched_ps: int
    copies_ps: int


@dataclass(frozen=True)
class _Work:
    """Pieces of work, and what is known of their instruction: string rows or -1, and the program's number."""

    rows: I64
    time_ps: I64
    self_ps: I64
    instruction: I64
    module: I64
    number: I64


def op_time(trace: HostTrace) -> OpTime:
    """The XLA work of a trace, computed once."""
    return trace.derived("xla op time", _op_time)


def _op_time(trace: HostTrace) -> OpTime:
    work = _work_on_devices(trace)
    if len(work.rows):
        return _matched(trace, work, on_host=False)
    return _matched(trace, _work_on_host(trace), on_host=True)


def _work_on_devices(trace: HostTrace) -> _Work:
    done = device_work(trace)
    return _Work(done.rows, done.time_ps, done.own_ps, *_carried(trace, done.rows))


def _carried(trace: HostTrace, rows: I64) -> tuple[I64, I64, I64]:
    """Instruction, module and program number that events carry."""
    instruction, module = (trace.stat_strings(names, rows=rows) for names in (stat_names.HLO_OP, stat_names.HLO_MODULE))
    number = trace.stat_ints(stat_names.PROGRAM_ID, rows=rows)
    core = (trace.lines.kind == LineKind.DEVICE_OPS)[trace.events.line[rows]]
    return np.where((instruction <= 0) & core, event_name_rows(trace, rows), instruction), module, number


def _work_on_host(trace: HostTrace) -> _Work:
    """XLA ops on threads; those that run inside others, as in a loop, take from the time of these."""
    chosen = is_thread_event(trace) & (trace.stat_strings(stat_names.HLO_OP) > 0)
    own = np.empty(len(trace.events), np.int64)
    kernels.nesting.self_times(trace.events.duration_ps, forest(trace).parent, chosen, own)
    rows = np.flatnonzero(chosen)
    return _Work(rows, trace.events.duration_ps[rows], np.maximum(own[rows], 0), *_carried(trace, rows))


def _matched(trace: HostTrace, work: _Work, on_host: bool) -> OpTime:
    how: dict[str, Mask] = {"carried": work.instruction > 0}
    if not on_host:
        how["launch"] = _match_launches(trace, work, work.instruction <= 0)
    names: list[tuple[int | None, str, str]] = []
    code, first = number_pairs(work.instruction, work.module)
    code, first = number_pairs(code, work.number)
    for at in first.tolist():
        instruction = innermost_instruction(trace.strings[work.instruction[at]]) if work.instruction[at] > 0 else ""
        has_number = work.number[at] != -1 or work.module[at] <= 0
        names.append((int(work.number[at]) if has_number else None, trace.strings[work.module[at]], instruction))
    known = np.array([bool(name[2]) for name in names], np.bool_)[code] if names else np.zeros(0, np.bool_)
    op = np.where(known, code, -1).astype(np.int64)
    if not on_host:
        how["name"] = _match_names(trace, work, op, names)
    return _numbered(trace, work, op, names, how, on_host)


def _match_launches(trace: HostTrace, work: _Work, lost: Mask) -> Mask:
    """Gives work the instruction of the XLA op around its launch, in place; True for what got one."""
    hit = np.zeros(len(work.rows), np.bool_)
    at = np.flatnonzero(lost)
    if not len(at) or not trace.has_stat(stat_names.HLO_OP):
        return hit
    instruction, parent = trace.stat_strings(stat_names.HLO_OP), forest(trace).parent
    around = attribute(trace).call[at].copy()
    for _ in range(_HIGHEST_CLIMB):
        going = (around >= 0) & (instruction[np.maximum(around, 0)] <= 0)
        if not going.any():
            break
        around[going] = parent[around[going]]
    found = np.flatnonzero(around >= 0)
    found = found[instruction[around[found]] > 0]
    work.instruction[at[found]] = instruction[around[found]]
    work.module[at[found]] = trace.stat_strings(stat_names.HLO_MODULE, rows=around[found])
    work.number[at[found]] = trace.stat_ints(stat_names.PROGRAM_ID, rows=around[found])
    hit[at[found]] = True
    return hit


def _match_names(trace: HostTrace, work: _Work, op: I64, names: list[tuple[int | None, str, str]]) -> Mask:
    """Gives kernels the instruction of their name, in place; True for what got one."""
    hit = np.zeros(len(work.rows), np.bool_)
    at = np.flatnonzero((op < 0) & (trace.events.kind[work.rows] == K.KERNEL))
    programs = programs_of(trace)
    if not len(at) or not len(programs):
        return hit
    table = _kernel_names(programs)
    kernel = event_name_rows(trace, work.rows[at])
    for row in np.unique(kernel).tolist():
        found = table.get(kernel_stem(trace.strings[row]))
        if found is not None:
            place, instruction = found
            names.append((programs.entries[place].number, programs.entries[place].module, instruction))
            op[at[kernel == row]] = len(names) - 1
            hit[at[kernel == row]] = True
    return hit


def _kernel_names(programs: Programs) -> dict[str, tuple[int, str]]:
    """The instructions that run as kernels by the name XLA gives to these, where one program alone has it."""
    found: dict[str, tuple[int, str] | None] = {}
    for place in range(len(programs)):
        module = programs.module(place)
        runs = ~module.is_fused & module.is_opcode("fusion", "custom-call", "reduce", "sort", "scatter")
        for row in np.flatnonzero(runs).tolist():
            name = module.instruction_name(row)
            key = kernel_stem(name)
            found[key] = None if key in found else (place, name)
    return {key: value for key, value in found.items() if value is not None}


def _numbered(
    trace: HostTrace,
    work: _Work,
    op: I64,
    names: list[tuple[int | None, str, str]],
    how: dict[str, Mask],
    on_host: bool,
) -> OpTime:
    """The same with each program and each instruction once."""
    programs: dict[tuple[int | None, str], int] = {}
    ops: dict[tuple[int, str], int] = {}
    place = np.full(len(names) + 1, -1, np.int64)
    for at, (number, module, instruction) in enumerate(names):
        if instruction:
            program = programs.setdefault((number, module), len(programs))
            place[at] = ops.setdefault((program, instruction), len(ops))
    op = place[op]
    kept = op >= 0
    lost_ps = work.self_ps[~kept]
    is_copy = _is_copy(trace, work.rows[~kept])
    return OpTime(
        rows=work.rows[kept],
        op=op[kept],
        time_ps=work.time_ps[kept],
        self_ps=work.self_ps[kept],
        ops=list(ops),
        programs=list(programs),
        on_host=on_host,
        matched_ps={name: int(work.self_ps[mask].sum()) for name, mask in how.items()},
        unmatched_ps=int(lost_ps[~is_copy].sum()),
        copies_ps=int(lost_ps[is_copy].sum()),
    )


_COPIES = (
    K.COPY_HOST_TO_DEVICE, K.COPY_DEVICE_TO_HOST, K.COPY_DEVICE_TO_DEVICE, K.COPY_PEER, K.COPY_OTHER,
    K.COPY_HOST_TO_HOST, K.MEMSET,
)  # fmt: skip


def _is_copy(trace: HostTrace, rows: I64) -> Mask:
    copies: Mask = np.isin(trace.events.kind[rows], [int(kind) for kind in _COPIES])
    return copies


def op_runs(trace: HostTrace, done: OpTime) -> I64:
    """How often each instruction ran: int64 of shape (ops,).

    An instruction launches the same kernels whenever it runs, so that it ran as often as the rarest of them.
    """
    name = event_name_rows(trace, done.rows)
    kernel, first = number_pairs(done.op, name)
    runs = np.full(len(done.ops), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(runs, done.op[first], np.bincount(kernel, minlength=len(first)))
    return np.where(runs == np.iinfo(np.int64).max, 0, runs)
