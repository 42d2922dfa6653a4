"""The XLA ops of a host: what each is, how long it takes and what it costs.

One partial result serves the tools `hlo-stats`, `op-profile` and `roofline`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from stepscope.analysis.trace.kernel_facts import stated_bytes
from stepscope.analysis.trace.origin import Origin, origin_of
from stepscope.analysis.xla.costs import Costs, first_operands
from stepscope.analysis.xla.device_facts import DeviceFacts, device_facts
from stepscope.analysis.xla.module import FUSION_KINDS, Module
from stepscope.analysis.xla.op_time import OpTime, op_runs, op_time
from stepscope.analysis.xla.programs import Programs, programs_of
from stepscope.analysis.xla.sources import Source
from stepscope.analysis.xla.step_time import StepTime, in_steps, step_time
from stepscope.analysis.xla.text import instruction_text
from stepscope.model import HostTrace, LineKind, stat_names
from stepscope.model.arrays import F64, I64
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


class OpRow(NamedTuple):
    """One op; times in ps, costs of all runs, unknown is None.

    Attributes:
        program: place in `Partial.programs`.
        name: the instruction; OTHERS for all of a category that are not listed.
        runs: how often it ran.
        precision: element type of its matrix product, else of its result, as XLA writes it.
        in_steps: share of its runs that belong to whole steps, 0 to 1.
        matrix: it multiplies matrices or convolves.
        instructions: how many ops the row stands for.
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
    framework_op: str
    source: str
    stack: list[str]
    text: str
    rematerialized: bool
    outside_compilation: bool
    inside: list[Inside]
    instructions: int = 1


class ProgramRow(NamedTuple):
    """One program that ran; `known` if the trace holds its instructions."""

    label: str
    module: str
    runs: int
    known: bool
    damaged: bool


@dataclass(frozen=True)
class Partial:
    """What one host contributes.

    Attributes:
        ops: by self time, longest first; the last ones stand for those that are not listed.
        on_host: the host's threads are the device.
        matched_ps: time by how its instruction is known: `carried`, `launch`, `name`.
        unmatched_ps, copies_ps: time of device work that belongs to no instruction.
        recorded_programs: programs that the capture holds.
    """

    origin: Origin
    programs: list[ProgramRow]
    ops: list[OpRow]
    on_host: bool
    matched_ps: dict[str, int]
    unmatched_ps: int
    copies_ps: int
    recorded_programs: int
    devices: list[DeviceFacts]
    steps: StepTime | None

    @property
    def busy_ps(self) -> int:
        """Time of all work of the devices."""
        return sum(op.self_ps for op in self.ops) + self.unmatched_ps + self.copies_ps


def partial(trace: HostTrace) -> Partial:
    """What one host contributes."""
    done, programs = op_time(trace), programs_of(trace)
    table = _OpTable(trace, done, programs)
    return Partial(
        origin=origin_of(trace),
        ops=table.rows(),
        programs=table.program_rows(),
        on_host=done.on_host,
        matched_ps=done.matched_ps,
        unmatched_ps=done.unmatched_ps,
        copies_ps=done.copies_ps,
        recorded_programs=len(programs),
        devices=device_facts(trace, done.rows),
        steps=step_time(trace),
    )


class _OpTable:
    """The ops of a trace under construction."""

    def __init__(self, trace: HostTrace, done: OpTime, programs: Programs) -> None:
        self.trace, self.done, self.programs = trace, done, programs
        size = len(done.ops)
        self.total, self.self_ps = _sums(done.op, done.time_ps, size), _sums(done.op, done.self_ps, size)
        self.runs = op_runs(trace, done)
        self.in_steps = in_steps(trace, done)
        self.first = np.zeros(size, np.int64)
        self.first[done.op[::-1]] = done.rows[::-1]
        self.place = [programs.find(number, module) for number, module in done.programs]
        self.stated = [_stated(trace, done, names, size) for names in (stat_names.FLOPS, stat_names.BYTES_ACCESSED)]
        self.row = np.full(size, -1, np.int64)
        self.flops, self.bytes = np.full(size, np.nan), np.full(size, np.nan)
        self.category = [""] * size
        self.precision = [("", False)] * size
        self.by_program: dict[int, list[int]] = defaultdict(list)
        for op, (program, _) in enumerate(done.ops):
            self.by_program[program].append(op)

    def rows(self) -> list[OpRow]:
        """The rows, those that are not listed added up by program and category."""
        listed = set(np.argsort(-self.self_ps, kind="stable")[:MOST_OPS].tolist())
        opened = set(np.argsort(-self.self_ps, kind="stable")[:_MOST_OPENED].tolist())
        rows: list[OpRow] = []
        for program, ops in self.by_program.items():
            self._cost(program, ops)
            rows += self._listed(program, [op for op in ops if op in listed], opened)
            rows += self._others(program, [op for op in ops if op not in listed])
        rows.sort(key=lambda row: (row.name == OTHERS, -row.self_ps, row.name))
        return rows

    def program_rows(self) -> list[ProgramRow]:
        """The programs that ran."""
        rows = []
        for program, (number, module) in enumerate(self.done.programs):
            place = self.place[program]
            entry = self.programs.entries[place] if place >= 0 else None
            label = entry.label if entry else module if number is None else f"{module or 'program'}({number})"
            ops = self.by_program[program]
            runs = int(np.median(self.runs[self._outermost(place, ops)])) if ops else 0
            damaged = place >= 0 and self.programs.module(place).damaged
            rows.append(ProgramRow(label, entry.module if entry else module, max(runs, 1), entry is not None, damaged))
        return rows

    def _outermost(self, place: int, ops: list[int]) -> list[int]:
        """Those of a program's ops that run once in each of its runs; all if it is not known which do."""
        if place < 0:
            return ops
        module = self.programs.module(place)
        return [op for op in ops if self.row[op] >= 0 and module.computation[self.row[op]] == module.entry] or ops

    def _cost(self, program: int, ops: list[int]) -> None:
        """Finds the instructions of a program's ops and what they cost, in place."""
        place = self.place[program]
        module = self.programs.module(place) if place >= 0 else None
        if module is not None:
            names = module.row_by_name
            self.row[ops] = [names.get(self.done.ops[op][1].encode(), -1) for op in ops]
            self._from_shapes(self.programs.costs(place), np.array(ops, np.int64))
        categories = self._categories(module, ops)
        for op, category in zip(ops, categories, strict=True):
            self.category[op] = category
        for target, stated in ((self.flops, self.stated[0]), (self.bytes, self.stated[1])):
            known = ~np.isnan(stated[ops])
            target[np.array(ops)[known]] = stated[ops][known]
        containers = [op for op in ops if self.category[op] in _CONTAINERS]
        self.flops[containers], self.bytes[containers] = 0, 0
        if module is not None:
            self._precisions(module, self.programs.costs(place), ops)

    def _from_shapes(self, costs: Costs, ops: I64) -> None:
        known = ops[self.row[ops] >= 0]
        self.flops[known] = costs.flops[self.row[known]] * self.runs[known]
        self.bytes[known] = costs.nbytes[self.row[known]] * self.runs[known]

    def _precisions(self, module: Module, costs: Costs, ops: list[int]) -> None:
        rows = self.row[ops]
        known_ops = [op for op, row in zip(ops, rows.tolist(), strict=True) if row >= 0]
        rows = rows[rows >= 0]
        matrix = costs.matrix[rows]
        operand = first_operands(module, np.maximum(matrix, 0))
        shape = np.where((matrix >= 0) & (operand >= 0), operand, np.where(matrix >= 0, matrix, rows))
        names = module.shapes.type_names(module.shapes.first_leaves(shape))
        for op, name, is_matrix in zip(known_ops, names, (matrix >= 0).tolist(), strict=True):
            self.precision[op] = (name, is_matrix)

    def _categories(self, module: Module | None, ops: list[int]) -> list[str]:
        stated = self.trace.stat_strings(_CATEGORY, rows=self.first[ops]).tolist()
        rows = self.row[ops]
        from_program = iter(categories_of(module, rows[rows >= 0]) if module is not None else [])
        found = []
        for op, row, text in zip(ops, rows.tolist(), stated, strict=True):
            category = next(from_program) if row >= 0 else strip_number(self.done.ops[op][1])
            found.append(self.trace.strings[text] if text > 0 else category)
        return found

    def _listed(self, program: int, ops: list[int], opened: set[int]) -> list[OpRow]:
        place = self.place[program]
        module = self.programs.module(place) if place >= 0 else None
        sources = self._sources(module, ops)
        rows = []
        for op, source in zip(ops, sources, strict=True):
            row, name = int(self.row[op]), self.done.ops[op][1]
            event = int(self.first[op])
            text = instruction_text(module, row) if module and row >= 0 else self.trace.name_of(event)
            inside = self._inside(module, place, op) if module and row >= 0 and op in opened else []
            rows.append(
                OpRow(
                    program, name, self.category[op], int(self.runs[op]), int(self.total[op]), int(self.self_ps[op]),
                    known(self.flops[op]), known(self.bytes[op]), float(self.in_steps[op]), *self.precision[op],
                    source.op_name, source.line, list(source.stack), text,
                    rematerialized=is_rematerialized(name, source.op_name),
                    outside_compilation=is_host_transfer(source.op_name) or "is_host_transfer=true" in text,
                    inside=inside,
                )
            )  # fmt: skip
        return rows

    def _sources(self, module: Module | None, ops: list[int]) -> list[Source]:
        """Where ops come from: as their program says, else as their events do."""
        rows = [int(self.row[op]) for op in ops]
        there = [row for row in rows if row >= 0]
        by_row = dict(zip(there, module.sources.of(there), strict=True)) if module and there else {}
        events = self.first[ops]
        texts = [self.trace.stat_strings(names, rows=events) for names in (("tf_op",), _SOURCE, _STACK)]
        core = (self.trace.lines.kind == LineKind.DEVICE_OPS)[self.trace.events.line[events]]
        found = []
        for at, row in enumerate(rows):
            source = by_row.get(row, Source())
            op_name, line, stack = (self.trace.strings[column[at]] if column[at] > 0 else "" for column in texts)
            if core[at]:
                frames = tuple(frame for frame in stack.split("\n") if frame)
                source = Source(source.op_name or op_name.rstrip(":"), "", source.line or line, source.stack or frames)
            found.append(source)
        return found

    def _inside(self, module: Module, place: int, op: int) -> list[Inside]:
        """The instructions in a fusion that cost most."""
        row = int(self.row[op])
        if module.opcode_of(row) != "fusion":
            return []
        flops = self.programs.costs(place).flops
        body = [
            each
            for called in module.called.of(row)
            for each in range(*module.computation_offsets[called : called + 2].tolist())
        ]
        body = [each for each in body if module.opcode_of(each) not in ("parameter", "constant", "tuple")]
        body = sorted(body, key=lambda each: -np.nan_to_num(flops[each]))[:_MOST_INSIDE]
        sources = module.sources.of(body) if body else []
        runs = int(self.runs[op])
        return [
            Inside(module.instruction_name(each), module.opcode_of(each), source.op_name, known(flops[each] * runs))
            for each, source in zip(body, sources, strict=True)
        ]

    def _others(self, program: int, ops: list[int]) -> list[OpRow]:
        groups: dict[str, list[int]] = defaultdict(list)
        for op in ops:
            groups[self.category[op]].append(op)
        return [
            OpRow(
                program, OTHERS, category, int(self.runs[group].sum()), int(self.total[group].sum()),
                int(self.self_ps[group].sum()), known(self.flops[group].sum()), known(self.bytes[group].sum()),
                float(self.in_steps[group].mean()), "", False, "", "", [], "", False, False, [], len(group),
            )
            for category, group in groups.items()
        ]  # fmt: skip


def category_of(module: Module, row: int) -> str:
    """What kind of instruction it is: its opcode, and of fusions their kind, as XProf calls them."""
    return categories_of(module, np.array([row]))[0]


def categories_of(module: Module, rows: I64) -> list[str]:
    """The same of several instructions."""
    kinds = module.fusion_kinds(rows)
    opcodes = [module.opcodes[code] for code in module.opcode[rows].tolist()]
    return [
        f"{FUSION_KINDS[kind]} fusion" if opcode == "fusion" and kind in FUSION_KINDS else opcode
        for opcode, kind in zip(opcodes, kinds, strict=True)
    ]


def known(value: float) -> float | None:
    """A number, None where it is unknown."""
    return None if np.isnan(value) else float(value)


def _sums(op: I64, values: I64, size: int) -> I64:
    out = np.zeros(size, np.int64)
    np.add.at(out, op, values)
    return out


def _stated(trace: HostTrace, done: OpTime, names: tuple[str, ...], size: int) -> F64:
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


def all_programs(partials: Iterable[Partial]) -> list[tuple[Partial, ProgramRow]]:
    """The programs of all hosts."""
    return [(part, program) for part in partials for program in part.programs]
