"""Which instruction of which program ran when: work on devices, or on a host that is the device itself.

Work is matched to instructions, best first, by

1. what it carries: program, module and instruction, or on a TPU the instruction's text;
2. the host call that launched it, and the XLA op around that call;
3. the kernel's name, where one program alone has an instruction that XLA would give that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from stepscope.analysis.hlo.module import Module
from stepscope.analysis.hlo.programs import Programs, programs_of
from stepscope.analysis.hlo.texts import find_texts
from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.device_facts import is_copy
from stepscope.analysis.trace.grouping import forest, self_times
from stepscope.analysis.trace.op_work import device_work
from stepscope.model import EventKind, HostTrace, LineKind, stat_names
from stepscope.model.arrays import I64, U8, Groups, Mask, distinct, number_pairs, offsets_of, run_rows
from stepscope.records import dataclass
from stepscope.vocabulary.xla import KERNEL_BYTES, innermost_instruction, kernel_stem

K = EventKind
_HIGHEST_CLIMB = 64


@dataclass(frozen=True)
class OpTime:
    """The XLA work of a trace.

    Attributes:
        rows: int64 of shape (n,), events that belong to an instruction, ascending.
        op: int64 of shape (n,), which op each is a run of, from 0.
        time_ps, self_ps: int64 of shape (n,), with and without what runs inside.
        program: int64 of shape (ops,), place in `programs`.
        name: int64 of shape (ops,), place in `names`.
        names: the different names of instructions that ran.
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
    program: I64
    name: I64
    names: tuple[str, ...]
    programs: tuple[tuple[int | None, str], ...]
    on_host: bool
    matched_ps: dict[str, int]
    unmatched_ps: int
    copies_ps: int

    def __len__(self) -> int:
        return len(self.name)

    def name_of(self, op: int) -> str:
        """The name of an op's instruction."""
        return self.names[int(self.name[op])]

    @cached_property
    def name_bytes(self) -> tuple[U8, I64]:
        """All names as bytes, one after the other, and where each starts: uint8 of shape (bytes,), int64 of shape
        (names + 1,)."""
        encoded = [name.encode() for name in self.names]
        return np.frombuffer(b"".join(encoded), np.uint8), offsets_of([len(name) for name in encoded])


@dataclass(frozen=True)
class _Work:
    """Pieces of work, and what is known of their instruction: string rows or -1, and the program's number."""

    rows: I64
    time_ps: I64
    self_ps: I64
    instruction: I64
    module: I64
    number: I64


class _Names:
    """The names of instructions and of programs under construction."""

    def __init__(self) -> None:
        self.instructions: dict[str, int] = {}
        self.programs: dict[tuple[int | None, str], int] = {}

    def instruction(self, name: str) -> int:
        """The place of an instruction's name; -1 for the empty one."""
        return self.instructions.setdefault(name, len(self.instructions)) if name else -1

    def program(self, number: int | None, module: str) -> int:
        """The place of a program."""
        return self.programs.setdefault((number, module), len(self.programs))


def op_time(trace: HostTrace) -> OpTime:
    """The XLA work of a trace, computed once."""
    return trace.derived("xla op time", _op_time)


def _op_time(trace: HostTrace) -> OpTime:
    work = _work_on_devices(trace)
    if len(work.rows):
        return _match_work(trace, work, on_host=False)
    return _match_work(trace, _work_on_host(trace), on_host=True)


def _work_on_devices(trace: HostTrace) -> _Work:
    done = device_work(trace)
    return _Work(done.rows, done.time_ps, done.own_ps, *_read_carried(trace, done.rows))


def _read_carried(trace: HostTrace, rows: I64) -> tuple[I64, I64, I64]:
    """Instruction, module and program number that events carry."""
    instruction, module = (trace.stat_strings(names, rows=rows) for names in (stat_names.HLO_OP, stat_names.HLO_MODULE))
    number = trace.stat_ints(stat_names.PROGRAM_ID, rows=rows)
    core = (trace.lines.kind == LineKind.DEVICE_OPS)[trace.events.line[rows]]
    return np.where((instruction <= 0) & core, event_name_rows(trace, rows), instruction), module, number


def _work_on_host(trace: HostTrace) -> _Work:
    """XLA ops on threads; those that run inside others, as in a loop, take from the time of these."""
    chosen = is_thread_event(trace) & (trace.stat_strings(stat_names.HLO_OP) > 0)
    rows = np.flatnonzero(chosen)
    return _Work(rows, trace.events.duration_ps[rows], self_times(trace, chosen)[rows], *_read_carried(trace, rows))


def _match_work(trace: HostTrace, work: _Work, on_host: bool) -> OpTime:
    how: dict[str, Mask] = {"carried": work.instruction > 0}
    if not on_host:
        how["launch"] = _match_launches(trace, work, work.instruction <= 0)
    names = _Names()
    name = _name_instructions(trace, work.instruction, names)
    program = np.where(name >= 0, _name_programs(trace, work, names), -1)
    if not on_host:
        how["name"] = _match_names(trace, work, name, program, names)
    return _number_ops(trace, work, name, program, names, how, on_host)


def _name_instructions(trace: HostTrace, instruction: I64, names: _Names) -> I64:
    """The place of each piece's instruction among the names: int64 of shape (n,), -1 if it is not known."""
    groups = Groups.of(instruction)
    rows = instruction[groups.first].tolist()
    found = [names.instruction(innermost_instruction(trace.strings[row])) if row > 0 else -1 for row in rows]
    return np.array(found, np.int64)[groups.number]


def _name_programs(trace: HostTrace, work: _Work, names: _Names) -> I64:
    """The place of each piece's program among the programs: int64 of shape (n,)."""
    at = np.flatnonzero(work.instruction > 0)
    code, first = number_pairs(work.module[at], work.number[at])
    found = np.full(len(work.rows), -1, np.int64)
    places = []
    for module, number in zip(work.module[at[first]].tolist(), work.number[at[first]].tolist(), strict=True):
        has_number = number != -1 or module <= 0
        places.append(names.program(number if has_number else None, trace.strings[module]))
    found[at] = np.array(places, np.int64)[code]
    return found


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


def _match_names(trace: HostTrace, work: _Work, name: I64, program: I64, names: _Names) -> Mask:
    """Gives kernels the instruction of their name, in place; True for what got one."""
    hit = np.zeros(len(work.rows), np.bool_)
    at = np.flatnonzero((name < 0) & (trace.events.kind[work.rows] == K.KERNEL))
    programs = programs_of(trace)
    if not len(at) or not len(programs):
        return hit
    kernel = event_name_rows(trace, work.rows[at])
    different = distinct(kernel)
    for row, found in zip(different.tolist(), find_kernels(programs, trace.strings.texts(different)), strict=True):
        if found is not None:
            place, instruction = found
            mine = at[kernel == row]
            name[mine] = names.instruction(instruction)
            program[mine] = names.program(programs.entries[place].number, programs.entries[place].module)
            hit[mine] = True
    return hit


def find_kernels(programs: Programs, names: Sequence[str]) -> list[tuple[int, str] | None]:
    """The program, by place, and the instruction that run as each of some kernels; None where no instruction of any
    program, or more than one, would have a kernel of that name."""
    stems = [kernel_stem(name).encode() for name in names]
    wanted, offsets = np.frombuffer(b"".join(stems), np.uint8), offsets_of([len(stem) for stem in stems])
    hits = np.zeros(len(stems), np.int64)
    place, row = (np.full(len(stems), -1, np.int64) for _ in range(2))
    programs.read(range(len(programs)))
    for each in range(len(programs)):
        for found in _kernel_rows(programs.module(each), wanted, offsets):
            there = (found >= 0) & ((place != each) | (row != found))
            hits[there] += 1
            place[there], row[there] = each, found[there]
    return [
        (at, programs.module(at).instruction_name(each)) if count == 1 else None
        for at, each, count in zip(place.tolist(), row.tolist(), hits.tolist(), strict=True)
    ]


def _kernel_rows(module: Module, wanted: U8, offsets: I64) -> tuple[I64, I64]:
    """The first and the last instruction that would have a kernel of each wanted name; -1 for none."""
    runs = np.flatnonzero(~module.is_fused & module.is_opcode("fusion", "custom-call", "reduce", "sort", "scatter"))
    starts, stops = (column[runs] for column in module.name_ranges)
    names = np.frombuffer(KERNEL_BYTES, np.uint8)[module.buf[run_rows(starts, stops - starts)]]
    bounds = offsets_of(stops - starts)
    last = find_texts(names, bounds[:-1], bounds[1:], wanted, offsets[:-1], offsets[1:])
    first = find_texts(names, bounds[:-1][::-1], bounds[1:][::-1], wanted, offsets[:-1], offsets[1:])
    first = np.where(first >= 0, len(runs) - 1 - first, -1)
    rows = np.append(runs, -1)
    return rows[first], rows[last]


def _number_ops(
    trace: HostTrace, work: _Work, name: I64, program: I64, names: _Names, how: dict[str, Mask], on_host: bool
) -> OpTime:
    """The same with each instruction of each program once."""
    kept = np.flatnonzero(name >= 0)
    op, first = number_pairs(program[kept], name[kept])
    lost = name < 0
    lost_ps = work.self_ps[lost]
    copies = is_copy(trace, work.rows[lost])
    return OpTime(
        rows=work.rows[kept],
        op=op.astype(np.int64),
        time_ps=work.time_ps[kept],
        self_ps=work.self_ps[kept],
        program=program[kept[first]],
        name=name[kept[first]],
        names=tuple(names.instructions),
        programs=tuple(names.programs),
        on_host=on_host,
        matched_ps={way: int(work.self_ps[mask].sum()) for way, mask in how.items()},
        unmatched_ps=int(lost_ps[~copies].sum()),
        copies_ps=int(lost_ps[copies].sum()),
    )


def op_runs(trace: HostTrace, done: OpTime) -> I64:
    """How often each instruction ran: int64 of shape (ops,).

    An instruction launches the same kernels whenever it runs, so that it ran as often as the rarest of them.
    """
    return trace.derived("xla op runs", lambda trace: _count_runs(trace, done))


def _count_runs(trace: HostTrace, done: OpTime) -> I64:
    name = event_name_rows(trace, done.rows)
    kernel, first = number_pairs(done.op, name)
    runs = np.full(len(done), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(runs, done.op[first], np.bincount(kernel, minlength=len(first)))
    return np.where(runs == np.iinfo(np.int64).max, 0, runs)


def find_instruction_rows(programs: Programs, done: OpTime, place: int, ops: I64) -> I64:
    """The instructions of ops of one program: int64 of shape (ops,), -1 for what the program does not hold.

    Args:
        place: of the program in `programs`.
        ops: int64 of shape (ops,), places in `done`.
    """
    names, offsets = done.name_bytes
    name = done.name[ops]
    return programs.module(place).find_rows(names, offsets[name], offsets[name + 1])
