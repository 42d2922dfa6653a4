"""The XLA ops of a host: what each is, how long it takes and what it costs.

One partial result serves the tools `hlo-stats`, `op-profile` and `roofline`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stepscope.analysis.hlo.module import FUSION_KINDS, Module
from stepscope.analysis.hlo.programs import Programs, programs_of
from stepscope.analysis.hlo.sources import InstructionSource
from stepscope.analysis.trace.device_facts import DeviceFacts, device_facts
from stepscope.analysis.trace.kernel_facts import stated_bytes
from stepscope.analysis.trace.op_work import device_idle
from stepscope.analysis.trace.origin import Origin, origin_of
from stepscope.analysis.xla.compiled import HostCompilation, compiled_programs
from stepscope.analysis.xla.costs import first_operands, program_costs
from stepscope.analysis.xla.op_time import OpTime, find_instruction_rows, op_runs, op_time
from stepscope.analysis.xla.step_time import StepTime, op_share_in_steps, step_time
from stepscope.analysis.xla.text import instruction_text
from stepscope.model import EventKind, HostTrace, LineKind, stat_names
from stepscope.model.arrays import F64, I64, Groups, Mask, distinct, number_pairs, sum_groups
from stepscope.records import dataclass
from stepscope.vocabulary.scopes import is_host_transfer, is_rematerialized
from stepscope.vocabulary.xla import strip_number

MOST_OPS = 2000  # of a host that are listed one by one
_MOST_OPENED, _MOST_INSIDE = 200, 12  # fusions that are opened, and instructions shown in each
_CONTAINERS = frozenset({"while", "conditional", "call", "async-start", "async-done"})
_CATEGORY, _SOURCE, _STACK = ("hlo_category",), ("source",), ("source_stack",)
OTHERS = "others"


class Inside(NamedTuple):
    """An instruction in a fusion; what it costs in all runs."""

    name: str
    opcode: str
    framework_op: str
    flops: float | None


class XlaOp(NamedTuple):
    """One op; times in ps, costs of all runs, unknown is None.

    Attributes:
        program: place in `XlaOpsOfHost.programs`.
        name: the instruction; OTHERS for all of a category that are not listed.
        runs: how often it ran.
        precision: element type of its matrix product, else of its result, as XLA writes it.
        in_steps: share of its runs that belong to whole steps, 0 to 1.
        matrix: it multiplies matrices or convolves.
        instructions: number of ops in the row.
        link: `communication` between devices or `transfer` to or from the host, of an op that does nothing else.
    """

    program: int
    name: str
    category: str
    runs: int
    total_ps: int
    self_ps: int
    flops: float | None
    bytes: float | None
    in_steps: float
    precision: str
    matrix: bool
    framework_op: str = ""
    source: str = ""
    stack: Sequence[str] = ()
    text: str = ""
    rematerialized: bool = False
    outside_compilation: bool = False
    inside: Sequence[Inside] = ()
    instructions: int = 1
    link: str = ""


LINKS = {
    EventKind.COLLECTIVE: "communication",
    EventKind.COPY_HOST_TO_DEVICE: "transfer",
    EventKind.COPY_DEVICE_TO_HOST: "transfer",
    EventKind.COPY_PEER: "transfer",
}
"""What device work of a kind uses, which neither computes nor stays in the memory of its device."""


class ProgramRow(NamedTuple):
    """One program that ran; `known` if the trace holds its instructions."""

    label: str
    module: str
    runs: int
    known: bool
    damaged: bool


@dataclass(frozen=True)
class XlaOpsOfHost:
    """What one host contributes.

    Attributes:
        ops: by self time, longest first; the last ones stand for those that are not listed.
        on_host: the host's threads are the device.
        matched_ps: time by how its instruction is known: `carried`, `launch`, `name`.
        unmatched_ps, copies_ps: time of device work that belongs to no instruction.
        idle_ps: time of devices without work, between their first and their last.
        recorded_programs: programs that the capture holds.
        compiled: programs that were compiled during the capture.
    """

    origin: Origin
    programs: list[ProgramRow]
    ops: list[XlaOp]
    on_host: bool
    matched_ps: dict[str, int]
    unmatched_ps: int
    copies_ps: int
    idle_ps: int
    recorded_programs: int
    devices: list[DeviceFacts]
    steps: StepTime | None
    compiled: list[HostCompilation]

    @property
    def busy_ps(self) -> int:
        """Time of all work of the devices."""
        return sum(op.self_ps for op in self.ops) + self.unmatched_ps + self.copies_ps


def partial(trace: HostTrace) -> XlaOpsOfHost:
    """What one host contributes."""
    return trace.derived("xla ops", _partial)


def _partial(trace: HostTrace) -> XlaOpsOfHost:
    done, programs = op_time(trace), programs_of(trace)
    table = _OpTable(trace, done, programs)
    return XlaOpsOfHost(
        origin=origin_of(trace),
        ops=table.rows(),
        programs=table.program_rows(),
        on_host=done.on_host,
        matched_ps=done.matched_ps,
        unmatched_ps=done.unmatched_ps,
        copies_ps=done.copies_ps,
        idle_ps=device_idle(trace, done.rows),
        recorded_programs=len(programs),
        devices=device_facts(trace, done.rows),
        steps=step_time(trace),
        compiled=compiled_programs(trace),
    )


class _OpTable:
    """The ops of a trace under construction.

    Attributes:
        total, self_ps, runs: int64 of shape (ops,), time with and without what runs inside, and how often it ran.
        first: int64 of shape (ops,), the first event of each.
        place: int64 of shape (programs,), place of each program that ran among those of the trace, -1 if unknown.
        row: int64 of shape (ops,), the instruction in its program, -1 if unknown.
        flops, bytes: float64 of shape (ops,), of all runs, NaN where unknown.
        category: int64 of shape (ops,), place in `categories`.
    """

    def __init__(self, trace: HostTrace, done: OpTime, programs: Programs) -> None:
        self.trace, self.done, self.programs = trace, done, programs
        size = len(done)
        self.total, self.self_ps = sum_groups(done.op, done.time_ps, size), sum_groups(done.op, done.self_ps, size)
        self.runs = op_runs(trace, done)
        self.in_steps = op_share_in_steps(trace, done)
        self.first = np.zeros(size, np.int64)
        self.first[done.op[::-1]] = done.rows[::-1]
        self.place = np.array(programs.find_all(done.programs), np.int64)
        programs.read(self.place.tolist())
        order = np.argsort(done.program, kind="stable")
        bounds = np.searchsorted(done.program[order], np.arange(len(done.programs) + 1))
        self.of_program = [order[bounds[at] : bounds[at + 1]] for at in range(len(done.programs))]
        self.row = np.full(size, -1, np.int64)
        self.flops, self.bytes = np.full(size, np.nan), np.full(size, np.nan)
        self.categories: dict[str, int] = {}
        self.category = np.zeros(size, np.int64)
        for program, ops in enumerate(self.of_program):
            self._find_instructions(program, ops)
        self._count_stated()
        names = list(self.categories)
        self.category_names = names
        containers = np.isin(self.category, [at for at, name in enumerate(names) if name in _CONTAINERS])
        self.flops[containers], self.bytes[containers] = 0, 0

    def _find_instructions(self, program: int, ops: I64) -> None:
        """Finds the instructions of a program's ops, what they cost and their categories, in place."""
        place = int(self.place[program])
        module = self.programs.module(place) if place >= 0 else None
        if module is not None:
            self.row[ops] = find_instruction_rows(self.programs, self.done, place, ops)
            known = ops[self.row[ops] >= 0]
            costs = program_costs(self.programs, place)
            self.flops[known] = costs.flops[self.row[known]] * self.runs[known]
            self.bytes[known] = costs.nbytes[self.row[known]] * self.runs[known]
        self.category[ops] = self._categories(module, ops)

    def _count_stated(self) -> None:
        """What the trace itself states wins."""
        for target, names in ((self.flops, stat_names.FLOPS), (self.bytes, stat_names.BYTES_ACCESSED)):
            stated = _sum_stated(self.trace, self.done, names, len(self.done))
            known = ~np.isnan(stated)
            target[known] = stated[known]

    def _categories(self, module: Module | None, ops: I64) -> I64:
        """Categories as the trace states them, else as the program does, else by the op's name."""
        out = np.full(len(ops), -1, np.int64)
        rows = self.row[ops]
        name = self.done.name[ops]
        lost = np.flatnonzero(rows < 0)
        for each in distinct(name[lost]).tolist():
            out[lost[name[lost] == each]] = self._category(strip_number(self.done.names[each]))
        if module is not None:
            code, categories = number_categories(module, rows[rows >= 0])
            out[rows >= 0] = np.array([self._category(category) for category in categories], np.int64)[code]
        stated = self.trace.stat_strings(_CATEGORY, rows=self.first[ops])
        for text in distinct(stated[stated > 0]).tolist():
            out[stated == text] = self._category(self.trace.strings[text])
        return out

    def _category(self, name: str) -> int:
        return self.categories.setdefault(name, len(self.categories))

    def rows(self) -> list[XlaOp]:
        """The rows, those that are not listed added up by program and category."""
        order = np.argsort(-self.self_ps, kind="stable")
        is_listed, is_opened = np.zeros(len(order), np.bool_), np.zeros(len(order), np.bool_)
        is_listed[order[:MOST_OPS]], is_opened[order[:_MOST_OPENED]] = True, True
        rows: list[XlaOp] = []
        for program, ops in enumerate(self.of_program):
            rows += self._listed(program, ops[is_listed[ops]].tolist(), is_opened)
            rows += self._others(program, ops[~is_listed[ops]])
        rows.sort(key=lambda row: (row.name == OTHERS, -row.self_ps, row.name))
        return rows

    def program_rows(self) -> list[ProgramRow]:
        """The programs that ran."""
        rows = []
        for program, (number, module) in enumerate(self.done.programs):
            place = int(self.place[program])
            entry = self.programs.entries[place] if place >= 0 else None
            label = entry.label if entry else module if number is None else f"{module or 'program'}({number})"
            ops = self.of_program[program]
            runs = int(np.median(self.runs[self._find_outermost(place, ops)])) if len(ops) else 0
            damaged = place >= 0 and self.programs.module(place).damaged
            rows.append(ProgramRow(label, entry.module if entry else module, max(runs, 1), entry is not None, damaged))
        return rows

    def _find_outermost(self, place: int, ops: I64) -> I64:
        """Those of a program's ops that run once in each of its runs; all if it is not known which do."""
        if place < 0:
            return ops
        module = self.programs.module(place)
        row = self.row[ops]
        known = np.flatnonzero(row >= 0)
        outer = ops[known[module.computation[row[known]] == module.entry]]
        return outer if len(outer) else ops

    def _precisions(self, place: int, rows: list[int]) -> list[tuple[str, bool]]:
        """Element type of each instruction's matrix product, else of its result, and whether it has a product."""
        module = self.programs.module(place)
        known = np.array([row for row in rows if row >= 0], np.int64)
        matrix = program_costs(self.programs, place).matrix[known]
        operand = first_operands(module, np.maximum(matrix, 0))
        shape = np.where((matrix >= 0) & (operand >= 0), operand, np.where(matrix >= 0, matrix, known))
        names = module.shapes.type_names(module.shapes.first_leaves(shape))
        found = iter(zip(names, (matrix >= 0).tolist(), strict=True))
        return [next(found) if row >= 0 else ("", False) for row in rows]

    def _listed(self, program: int, ops: list[int], is_opened: Mask) -> list[XlaOp]:
        place = int(self.place[program])
        module = self.programs.module(place) if place >= 0 else None
        sources = self._sources(module, ops)
        instructions = [int(self.row[op]) for op in ops]
        precisions = self._precisions(place, instructions) if module else [("", False)] * len(ops)
        rows = []
        for op, row, precision, source in zip(ops, instructions, precisions, sources, strict=True):
            name, event = self.done.name_of(op), int(self.first[op])
            text = instruction_text(module, row) if module and row >= 0 else self.trace.name_of(event)
            inside = self._inside(module, place, op) if module and row >= 0 and is_opened[op] else []
            rows.append(
                XlaOp(
                    program, name, self.category_names[int(self.category[op])], int(self.runs[op]),
                    int(self.total[op]), int(self.self_ps[op]), number_or_none(self.flops[op]),
                    number_or_none(self.bytes[op]), float(self.in_steps[op]), *precision, source.op_name, source.line,
                    list(source.stack), text,
                    rematerialized=is_rematerialized(name, source.op_name),
                    outside_compilation=is_host_transfer(source.op_name) or "is_host_transfer=true" in text,
                    inside=inside,
                    link=LINKS.get(EventKind(int(self.trace.events.kind[event])), ""),
                )
            )  # fmt: skip
        return rows

    def _sources(self, module: Module | None, ops: list[int]) -> list[InstructionSource]:
        """Where ops come from: as their program says, else as their events do."""
        rows = [int(self.row[op]) for op in ops]
        there = [row for row in rows if row >= 0]
        by_row = dict(zip(there, module.sources.read(there), strict=True)) if module and there else {}
        events = self.first[ops]
        texts = [self.trace.stat_strings(names, rows=events) for names in (("tf_op",), _SOURCE, _STACK)]
        core = (self.trace.lines.kind == LineKind.DEVICE_OPS)[self.trace.events.line[events]]
        found = []
        for at, row in enumerate(rows):
            source = by_row.get(row, InstructionSource())
            op_name, line, stack = (self.trace.strings[column[at]] if column[at] > 0 else "" for column in texts)
            if core[at]:
                frames = tuple(frame for frame in stack.split("\n") if frame)
                source = InstructionSource(
                    source.op_name or op_name.rstrip(":"), "", source.line or line, source.stack or frames
                )
            found.append(source)
        return found

    def _inside(self, module: Module, place: int, op: int) -> list[Inside]:
        """The instructions in a fusion that cost most."""
        row = int(self.row[op])
        if module.opcode_of(row) != "fusion":
            return []
        flops = program_costs(self.programs, place).flops
        body = [
            each for each in module.rows_called(row) if module.opcode_of(each) not in ("parameter", "constant", "tuple")
        ]
        body = sorted(body, key=lambda each: -np.nan_to_num(flops[each]))[:_MOST_INSIDE]
        sources = module.sources.read(body) if body else []
        runs = int(self.runs[op])
        return [
            Inside(
                module.instruction_name(each),
                module.opcode_of(each),
                source.op_name,
                number_or_none(flops[each] * runs),
            )
            for each, source in zip(body, sources, strict=True)
        ]

    def _others(self, program: int, ops: I64) -> list[XlaOp]:
        """One row for the ops of each category."""
        groups = Groups.of(self.category[ops])
        code, first, counts = groups.number, groups.first, groups.count()
        sums = [np.bincount(code, weights=column[ops], minlength=len(first)) for column in (self.flops, self.bytes)]
        inside = np.bincount(code, weights=self.in_steps[ops], minlength=len(first)) / np.maximum(counts, 1)
        times = [groups.sum(column[ops]) for column in (self.runs, self.total, self.self_ps)]
        return [
            XlaOp(
                program, OTHERS, self.category_names[int(self.category[ops[first[at]]])], int(times[0][at]),
                int(times[1][at]), int(times[2][at]), number_or_none(sums[0][at]), number_or_none(sums[1][at]),
                float(inside[at]), "", False, instructions=int(counts[at]),
            )
            for at in range(len(first))
        ]  # fmt: skip


def category_of(module: Module, row: int) -> str:
    """What kind of instruction it is: its opcode, and of fusions their kind, as XProf calls them."""
    return categories_of(module, np.array([row]))[0]


def categories_of(module: Module, rows: I64) -> list[str]:
    """The same of several instructions."""
    code, categories = number_categories(module, rows)
    return [categories[each] for each in code.tolist()]


def number_categories(module: Module, rows: I64) -> tuple[I64, list[str]]:
    """The categories of several instructions: int64 of shape (rows,), and the different ones."""
    kind, kinds = module.number_fusion_kinds(rows)
    code, first = number_pairs(module.opcode[rows], kind)
    pairs = zip(module.opcode[rows[first]].tolist(), kind[first].tolist(), strict=True)
    return code.astype(np.int64), [_category(module.opcodes[opcode], kinds[each]) for opcode, each in pairs]


def _category(opcode: str, kind: str) -> str:
    return f"{FUSION_KINDS[kind]} fusion" if opcode == "fusion" and kind in FUSION_KINDS else opcode


def number_or_none(value: float) -> float | None:
    """A number, None where it is unknown."""
    return None if np.isnan(value) else float(value)


def _sum_stated(trace: HostTrace, done: OpTime, names: tuple[str, ...], size: int) -> F64:
    """What the trace itself states for the runs of each op, NaN where it states nothing for one of them."""
    out = np.full(size, np.nan)
    if not trace.has_stat(names) or not len(done.rows):
        return out
    values = stated_bytes(trace, done.rows, with_copies=False) if names == stat_names.BYTES_ACCESSED else None
    values = trace.stat_ints(names, rows=done.rows) if values is None else values
    sums = np.bincount(done.op, weights=values, minlength=size)
    lacking = np.bincount(done.op[values < 0], minlength=size)
    out[lacking == 0] = sums[lacking == 0]
    return out
