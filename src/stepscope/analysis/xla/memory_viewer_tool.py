"""The tool `memory-viewer`: what the memory of each XLA program holds at its peak, by buffer, shape, op and line.

XLA lays out the memory of a program when it compiles it. Parameters, results and constants take theirs for the whole
run; temporaries share one block. The peak is the most that is in use at once by that plan: the lasting memory and the
temporaries alive at the fullest moment. What is set aside beyond that is fragmentation.

A parameter is marked `donation` if a result of the same size has memory of its own: donating the argument (in JAX
`donate_argnums`) would let the result take its place. A temporary is marked `rematerialization` if the forward pass
made it and the backward pass uses it: computing it again (in JAX `jax.checkpoint`) would free it meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stepscope.analysis.hlo.module import Module
from stepscope.analysis.hlo.programs import WHY_NONE, programs_of
from stepscope.analysis.hlo.sources import InstructionSource
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.xla.buffers import MAIN_MEMORY, Memory, memory_of
from stepscope.model import HostTrace
from stepscope.model.arrays import distinct
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Part,
    Report,
    Role,
    Table,
    as_table,
    fields_named,
    make_rows,
    percent,
)
from stepscope.vocabulary.scopes import phase_of

MOST_BUFFERS = 500  # of a program that are listed one by one
MOST_POINTS = 400  # of a program's live bytes over its order
OTHERS = "others"

FIELDS: tuple[Field, ...] = (
    Field("rank", "number", "place in its program's list, largest first", "int", role=Role.ORDINAL),
    Field("program", "text", "the program and its number", role=Role.LABEL),
    Field("buffer", "text", "the instruction that makes it, and which part of its result", role=Role.NAME),
    Field("kind", "text", "`parameter`, `output`, `constant`, `thread-local` or `temporary`", role=Role.TERM),
    Field("shape", "text", "its shape with layout", role=Role.SHAPE),
    Field("bytes", "bytes", "memory it takes at the peak"),
    Field("percent", "percent", "share of the program's peak"),
    Field("padding_bytes", "bytes", "of that, what its elements do not need; unknown without a shape"),
    Field("opcode", "text", "what the instruction does", role=Role.TYPE),
    Field("framework_op", "text", "the op of the framework that it was made from", role=Role.LABEL),
    Field("source", "text", "the line of the program that asked for it", role=Role.SOURCE),
    Field("alive_from", "number", "place in the program's order from which it is alive", "int", role=Role.ORDINAL),
    Field("alive_to", "number", "place in the program's order to which it is alive", "int", role=Role.ORDINAL),
    Field("would_free", "text", "`donation` or `rematerialization`, where that would free it", role=Role.TERM),
)
_PARTS = (
    Part(
        "Memory at the peak",
        ("rank", "program", "buffer", "kind", "shape", "bytes", "percent", "padding_bytes", "would_free"),
    ),
    Part(
        "Where it comes from",
        ("rank", "program", "buffer", "alive_from", "alive_to", "opcode", "framework_op", "source"),
    ),
)
PROGRAM_FIELDS: tuple[Field, ...] = (
    Field("program", "text", "the program and its number", role=Role.LABEL),
    Field("peak_bytes", "bytes", "main memory in use at the peak"),
    Field("parameter_bytes", "bytes", "arguments, those included whose memory a result takes"),
    Field("output_bytes", "bytes", "results with memory of their own"),
    Field("constant_bytes", "bytes", "constants"),
    Field("thread_local_bytes", "bytes", "memory of single threads"),
    Field("temporary_bytes", "bytes", "temporaries alive at the peak"),
    Field("set_aside_bytes", "bytes", "what is set aside for temporaries"),
    Field("fragmentation_percent", "percent", "of what is set aside, what no temporary takes even at the peak"),
    Field("padding_bytes", "bytes", "padding of what is listed at the peak"),
    Field("aliased_bytes", "bytes", "arguments whose memory a result takes"),
    Field("donation_bytes", "bytes", "arguments that a result could take the place of"),
    Field("peak_at", "text", "the instruction at which the peak is reached", role=Role.LABEL),
    Field("other_spaces_bytes", "bytes", "memory elsewhere, such as the host's"),
)
POINT_FIELDS: tuple[Field, ...] = (
    Field("program", "text", "the program and its number", role=Role.LABEL),
    Field("position", "number", "place in the program's order", "int", role=Role.ORDINAL),
    Field("bytes", "bytes", "memory in use; where places are drawn together, the most"),
)
GROUP_FIELDS: tuple[Field, ...] = (
    Field("program", "text", "the program and its number", role=Role.LABEL),
    Field("by", "text", "`shape`, `op` or `source`", role=Role.TERM),
    Field("name", "text", "the shape, the op of the framework, or the line", role=Role.LABEL),
    Field("buffers", "count", "how many buffers", "int"),
    Field("bytes", "bytes", "memory they take at the peak"),
    Field("percent", "percent", "share of the program's peak"),
)
_MOST_GROUPS = 20


class BufferRow(NamedTuple):
    """One buffer at the peak; unknown is None or empty."""

    buffer: str
    kind: str
    shape: str
    bytes: int
    padding_bytes: int | None
    opcode: str
    framework_op: str
    source: str
    alive_from: int | None
    alive_to: int | None
    would_free: str


class ProgramMemory(NamedTuple):
    """The memory of one program; see PROGRAM_FIELDS."""

    program: str
    figures: dict[str, int]
    peak_at: str
    buffers: list[BufferRow]
    positions: list[int]
    live: list[int]


@dataclass(frozen=True)
class BuffersOfHost:
    """What one host contributes; `without` are programs without a buffer assignment."""

    origin: Origin
    programs: list[ProgramMemory]
    without: list[str]
    damaged: list[str]


_EMPTY = f"no buffer assignment of an XLA program: {WHY_NONE}"


@dataclass(frozen=True, kw_only=True)
class MemoryViewerReport(Report):
    """The memory of programs; see the FIELDS tables of this module for the meaning of its parts."""

    TOOL: ClassVar[str] = "memory-viewer"

    rows: Table = as_table("Memory at the peak", FIELDS, _EMPTY, _PARTS)
    programs: Table = as_table("Memory of programs", PROGRAM_FIELDS, _EMPTY)
    groups: Table = as_table("Memory at the peak by shape, op and line", GROUP_FIELDS, _EMPTY)
    timeline: Table = as_table("Memory in use over the program's order", POINT_FIELDS, _EMPTY)


def _program_peaks(report: MemoryViewerReport) -> list[dict[str, Cell]]:
    """The peak of each program, under its name without the number, which differs from capture to capture."""
    return [{**row, "program": str(row["program"]).partition("(")[0]} for row in report.programs]


COMPARABLES = (
    Comparable(
        id="xla_program_memory",
        title="Memory of programs at their peak",
        keys=fields_named(PROGRAM_FIELDS, "program"),
        measure=Field("peak_bytes", "bytes", "main memory in use at the peak; the largest of programs of one name"),
        rows=_program_peaks,
        joined="largest",
        empty="neither side has the buffer assignment of an XLA program",
    ),
)


def partial(trace: HostTrace) -> BuffersOfHost:
    """What one host contributes."""
    programs = programs_of(trace)
    found, damaged = [], []
    planned = [place for place in range(len(programs)) if programs.may_have_buffer_assignment(place)]
    programs.read(planned)
    without = [entry.label for place, entry in enumerate(programs.entries) if place not in planned]
    for place in planned:
        entry, module = programs.entries[place], programs.module(place)
        memory = memory_of(module)
        if memory is None or not len(memory.allocations.index):
            without.append(entry.label)
        else:
            found.append(_program(entry.label, module, memory))
        if module.damaged:
            damaged.append(entry.label)
    found.sort(key=lambda program: (-program.figures["peak_bytes"], program.program))
    return BuffersOfHost(origin_of(trace), found, without, damaged)


def _program(label: str, module: Module, memory: Memory) -> ProgramMemory:
    buffers = _buffers_at_peak(module, memory)
    positions, live = _points(memory)
    peak_at = ""
    if memory.heap is not None:
        event = int(np.argmax(memory.heap.live)) - 1
        peak_at = memory.heap.instruction(event) if event >= 0 else ""
    return ProgramMemory(label, _figures(memory, buffers), peak_at, buffers, positions, live)


def _figures(memory: Memory, buffers: Sequence[BufferRow]) -> dict[str, int]:
    allocations = memory.allocations
    here = allocations.space == MAIN_MEMORY
    kinds = np.array(allocations.kinds())

    def total(kind: str) -> int:
        return int(allocations.nbytes[here & (kinds == kind)].sum())

    return {
        "peak_bytes": memory.peak_bytes,
        "parameter_bytes": total("parameter"),
        "output_bytes": total("output"),
        "constant_bytes": total("constant"),
        "thread_local_bytes": total("thread-local"),
        "temporary_bytes": memory.heap_peak,
        "set_aside_bytes": memory.temporary_bytes,
        "padding_bytes": sum(row.padding_bytes or 0 for row in buffers),
        "aliased_bytes": int(allocations.nbytes[here & _is_aliased_parameter(memory)].sum()),
        "donation_bytes": sum(row.bytes for row in buffers if row.would_free == "donation"),
        "other_spaces_bytes": int(allocations.nbytes[~here].sum()),
    }


def _is_aliased_parameter(memory: Memory) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Parameters whose memory a result takes."""
    allocations = memory.allocations
    taken: np.ndarray[Any, np.dtype[np.bool_]] = (allocations.parameter >= 0) & (
        allocations.aliased | allocations.live_out
    )
    return taken


def _buffers_at_peak(module: Module, memory: Memory) -> list[BufferRow]:
    """Lasting allocations by their largest buffer, and the temporaries alive at the peak; the largest first."""
    allocations, buffers = memory.allocations, memory.buffers
    here = np.flatnonzero(allocations.lasting & (allocations.space == MAIN_MEMORY) & (allocations.nbytes > 0))
    largest = _largest_buffers(memory)
    kinds = allocations.kinds()
    donated = _find_donations(memory)
    chosen = [(int(largest[at]), kinds[at], int(allocations.nbytes[at]), at in donated) for at in here.tolist()]
    chosen += [(at, "temporary", int(buffers.nbytes[at]), False) for at in memory.alive_at_peak().tolist()]
    if memory.heap is None and memory.temporary_bytes:
        chosen.append((-1, "temporary", memory.temporary_bytes, False))
    chosen.sort(key=lambda each: -each[2])
    listed, rest = chosen[:MOST_BUFFERS], chosen[MOST_BUFFERS:]
    rows = [int(buffers.row[at]) if at >= 0 else -1 for at, *_ in listed]
    known = sorted({row for row in rows if row >= 0})
    makers = _Makers(module, memory, known)
    found = [
        makers.buffer_row(at, row, kind, size, donation)
        for (at, kind, size, donation), row in zip(listed, rows, strict=True)
    ]
    if rest:
        size = sum(each[2] for each in rest)
        found.append(BufferRow(f"{len(rest)} {OTHERS}", "temporary", "", size, None, "", "", "", None, None, ""))
    return found


def _largest_buffers(memory: Memory) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The largest buffer of each allocation, -1 if it holds none."""
    buffers = memory.buffers
    largest = np.full(len(memory.allocations.index), -1, np.int64)
    order = np.argsort(buffers.nbytes, kind="stable")
    order = order[buffers.allocation[order] >= 0]
    largest[buffers.allocation[order]] = order
    return largest


def _find_donations(memory: Memory) -> set[int]:
    """Parameters whose place a result of the same size could take; each result takes one place."""
    allocations = memory.allocations
    here = allocations.space == MAIN_MEMORY
    free = np.flatnonzero(
        here & (allocations.parameter >= 0) & ~_is_aliased_parameter(memory) & (allocations.nbytes > 0)
    )
    results = np.flatnonzero(here & allocations.live_out & (allocations.parameter < 0) & ~allocations.is_tuple)
    sizes = allocations.nbytes[results].tolist()
    found = set()
    for at in free.tolist():
        size = int(allocations.nbytes[at])
        if size in sizes:
            sizes.remove(size)
            found.add(at)
    return found


class _Makers:
    """The instructions that make some buffers: only their shapes and sources are decoded."""

    def __init__(self, module: Module, memory: Memory, rows: list[int]) -> None:
        self.module, self.memory = module, memory
        self.shapes = module.shapes_of_rows(np.array(rows, np.int64))
        self.place = {row: at for at, row in enumerate(rows)}
        self.sources = module.sources.read(rows) if rows else []

    def buffer_row(self, at: int, row: int, kind: str, size: int, donation: bool) -> BufferRow:
        """The row of a buffer; `at` is -1 for memory that no buffer is known of, `row` if its instruction is not."""
        module, heap = self.module, self.memory.heap
        if at < 0:
            return BufferRow("(not recorded)", kind, "", size, None, "", "", "", None, None, "")
        index = self.memory.buffers.index_of(at)
        name = module.instruction_name(row) if row >= 0 else f"buffer {int(self.memory.buffers.ids[at])}"
        source = self.sources[self.place[row]] if row >= 0 else InstructionSource()
        is_temporary = kind == "temporary"
        waits = is_temporary and row >= 0 and _is_used_by_backward(module, row, source)
        return BufferRow(
            name + (f"{{{','.join(map(str, index))}}}" if index else ""), kind, self._shape(row, index), size,
            self._padding(at, row, index, size) if is_temporary else None,
            module.opcode_of(row) if row >= 0 else "", source.op_name, source.line,
            int(heap.start[at]) if heap and is_temporary else None,
            int(heap.stop[at]) if heap and is_temporary else None,
            "donation" if donation else "rematerialization" if waits else "",
        )  # fmt: skip

    def _shape(self, row: int, index: list[int]) -> str:
        return self.shapes.text(self.shapes.leaf(self.place[row], index), layout=True) if row >= 0 else ""

    def _padding(self, at: int, row: int, index: list[int], size: int) -> int | None:
        if self.memory.buffers.is_table[at]:
            return max(size - int(self.memory.buffers.nbytes[at]), 0)
        return max(size - int(self.shapes.nbytes[self.shapes.leaf(self.place[row], index)]), 0) if row >= 0 else None


def _is_used_by_backward(module: Module, row: int, source: InstructionSource) -> bool:
    """Whether the forward pass made it and the backward pass uses it."""
    if phase_of(source.op_name, True, True) != "forward":
        return False
    users = module.users.linked(row)
    sources = module.sources.read(users) if users else []
    return any(phase_of(each.op_name, True, True) == "backward" for each in sources)


def _points(memory: Memory) -> tuple[list[int], list[int]]:
    """Memory in use over the order, the most of each of at most MOST_POINTS stretches."""
    if memory.heap is None:
        return [0], [memory.peak_bytes]
    live = memory.heap.live + memory.lasting_bytes
    bounds = distinct(np.linspace(0, len(live), min(MOST_POINTS, len(live)) + 1).astype(np.int64))[:-1]
    return bounds.tolist(), np.maximum.reduceat(live, bounds).tolist()


def merge(partials: Sequence[BuffersOfHost]) -> MemoryViewerReport:
    """The programs of all hosts; one that several have is listed once."""
    found: dict[str, ProgramMemory] = {}
    for part in partials:
        for program in part.programs:
            found.setdefault(program.program, program)
    programs = sorted(found.values(), key=lambda program: (-program.figures["peak_bytes"], program.program))
    return MemoryViewerReport(
        **header([part.origin for part in partials], _warnings(partials, bool(programs))),
        rows=tuple(row for program in programs for row in _buffer_rows(program)),
        programs=tuple(_program_cells(program) for program in programs),
        groups=tuple(row for program in programs for row in _groups(program)),
        timeline=tuple(
            {"program": program.program, "position": position, "bytes": size}
            for program in programs
            for position, size in zip(program.positions, program.live, strict=True)
        ),
    )


def _buffer_rows(program: ProgramMemory) -> Table:
    ranks, peak = [*range(1, len(program.buffers) + 1)], program.figures["peak_bytes"]
    shares = [percent(buffer.bytes, peak) for buffer in program.buffers]
    return make_rows(FIELDS, program.buffers, rank=ranks, program=program.program, percent=shares)


def _program_cells(program: ProgramMemory) -> dict[str, Cell]:
    figures = program.figures
    aside = figures["set_aside_bytes"]
    cells: dict[str, Cell] = {"program": program.program, **figures, "peak_at": program.peak_at or None}
    unused = max(aside - figures["temporary_bytes"], 0)
    return cells | {"fragmentation_percent": percent(unused, aside)}


def _groups(program: ProgramMemory) -> list[dict[str, Cell]]:
    """The buffers at the peak by shape, op and line, the largest of each."""
    rows: list[dict[str, Cell]] = []
    for by, key in (("shape", "shape"), ("op", "framework_op"), ("source", "source")):
        sums: dict[str, list[int]] = {}
        for buffer in program.buffers:
            entry = sums.setdefault(getattr(buffer, key), [0, 0])
            entry[0] += 1
            entry[1] += buffer.bytes
        largest = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))[:_MOST_GROUPS]
        rows += [
            {
                "program": program.program, "by": by, "name": name or None, "buffers": count, "bytes": size,
                "percent": percent(size, program.figures["peak_bytes"]),
            }
            for name, (count, size) in largest
        ]  # fmt: skip
    return rows


def _warnings(partials: Sequence[BuffersOfHost], any_programs: bool) -> list[str]:
    if not any_programs:
        return [_EMPTY]
    found = []
    without = list(dict.fromkeys(label for part in partials for label in part.without))
    if without:
        names = ", ".join(without[:3]) + (f" and {len(without) - 3} more" if len(without) > 3 else "")
        found.append(f"no buffer assignment is recorded of {names}")
    damaged = dict.fromkeys(label for part in partials for label in part.damaged)
    return found + [f"the record of {label} is damaged; a part of its memory is missing" for label in damaged]
