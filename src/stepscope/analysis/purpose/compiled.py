"""What compiled programs do without need, by their instructions: sizes, where values come from, and who takes them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from stepscope.analysis.hlo.framework_ops import places_of_events
from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.hlo.sources import InstructionSource
from stepscope.analysis.purpose.computing import computing_of
from stepscope.analysis.purpose.flow import REPEATED_VALUE, Flow
from stepscope.analysis.purpose.graphs import FEW_CLASSES
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.custom_calls import PRODUCT, kind_of_call
from stepscope.vocabulary.jax import function_of_program, is_backward, is_computed_again, is_of_second_order

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module

Size = tuple[int, ...]
_Found = TypeVar("_Found")

# Of a table's rows.  To update some rows alone means to write the update anew and to change what momentum does, which
# nobody does for half of the time.  Judgement, not measured.
_FEW = 0.02
_DEEPEST = 16  # ops between a call of Python and what the program is given, or between a result and a named op


@dataclass(frozen=True)
class ProgramWork:
    """A compiled program that runs in the steps, on a device or on the host's threads.

    Attributes:
        rows: int64, its events, rows of events; instruction: int64 of the same length, the instruction of each.
    """

    module: Module
    flow: Flow
    rows: I64
    instruction: I64

    def runs_of(self, instructions: Iterable[int]) -> I64:
        """The events of some instructions, or of the fusions around them: rows of events."""
        chosen = list(self.flow.outers(instructions))
        found: I64 = self.rows[np.isin(self.instruction, chosen)]
        return found


def program_work(trace: HostTrace) -> tuple[ProgramWork, ...]:
    """The compiled programs of a host's steps, read once per trace."""
    return trace.derived("compiled work", _find_programs)


def _find_programs(trace: HostTrace) -> tuple[ProgramWork, ...]:
    programs = programs_of(trace)
    if not len(programs) or not trace.has_stat(stat_names.HLO_OP):
        return ()
    on_device = is_device_work(trace) & (whole_steps(trace).label >= 0)
    rows = np.flatnonzero(on_device) if on_device.any() else computing_of(trace).rows
    names = trace.stat_strings(stat_names.HLO_OP, rows=rows)
    rows, names = rows[names > 0], names[names > 0]
    place = places_of_events(trace, rows)
    programs.read(distinct(place).tolist())
    offsets, found = trace.strings.offsets, []
    for each in distinct(place[place >= 0]).tolist():
        module, here = programs.module(each), place == each
        instruction = module.find_rows(trace.strings.blob, offsets[names[here]], offsets[names[here] + 1])
        found.append(ProgramWork(module, Flow(module), rows[here], instruction))
    return tuple(found)


def rows_of(module: Module, *opcodes: str) -> list[int]:
    """The instructions of a program with one of some opcodes."""
    found: list[int] = np.flatnonzero(module.is_opcode(*opcodes)).tolist()
    return found


def products_of(module: Module) -> list[int]:
    """The instructions of a program that multiply matrices."""
    calls = [row for row in rows_of(module, "custom-call") if kind_of_call(module.target_of(row)) == PRODUCT]
    return rows_of(module, "dot") + calls


@dataclass(frozen=True)
class Compiled:
    """Events that are not needed: rows of events, what is left of them as a share, and figures for a sentence."""

    rows: I64
    kept: float
    figures: tuple[int, ...] = ()


def join(parts: list[Compiled]) -> Compiled | None:
    """All parts with the figures of the longest one."""
    if not parts:
        return None
    largest = max(parts, key=lambda each: math.prod(each.figures) if each.figures else 0)
    return Compiled(np.concatenate([each.rows for each in parts]), largest.kept, largest.figures)


def _find_in_programs(trace: HostTrace, find: Callable[[ProgramWork], _Found | None]) -> list[_Found]:
    return [found for each in program_work(trace) if (found := find(each)) is not None]


# ---- One-hot rows ----------------------------------------------------------------------------------------------------


def compiled_one_hots(trace: HostTrace) -> Compiled | None:
    """Products that take numbers of classes written out as one-hot rows; figures are (numbers, classes)."""
    return join(_find_in_programs(trace, _find_one_hots))


def _find_one_hots(work: ProgramWork) -> Compiled | None:
    module, flow = work.module, work.flow
    if not module.is_opcode("iota").any() or not module.is_opcode("compare").any():
        return None
    taken, sizes = list[int](), list[tuple[int, int]]()
    for product in products_of(module):
        for operand in module.operands.linked(product)[:2]:
            made = _one_hot(flow, operand)
            if made is not None:
                taken += [product, made[0]]
                sizes.append(made[1])
    return Compiled(work.runs_of(taken), 0.0, max(sizes, key=math.prod)) if taken else None


def _one_hot(flow: Flow, row: int) -> tuple[int, tuple[int, int]] | None:
    """The comparison that writes one-hot rows, and how many of how many classes; None if a value is something else."""
    row = flow.origin(row)
    if flow.module.opcode_of(row) == "select":
        row = flow.origin(flow.operand(row, 0))
    if flow.module.opcode_of(row) != "compare":
        return None
    sides = [flow.origin(each, REPEATED_VALUE) for each in flow.module.operands.linked(row)]
    counts = [flow.module.opcode_of(each) == "iota" for each in sides]
    if len(sides) != 2 or counts.count(True) != 1:
        return None  # two of them are a mask by place
    numbers = flow.elements(sides[counts.index(False)])
    classes = flow.elements(row) // max(numbers, 1)
    return (row, (numbers, classes)) if numbers > 1 and classes >= FEW_CLASSES else None


# ---- Tables ----------------------------------------------------------------------------------------------------------


def compiled_table(trace: HostTrace) -> Compiled | None:
    """The table of which all rows are updated although a step reads few of them; figures are (rows, columns,
    rows that are read).

    Its gradient is written by a scatter of rows onto zeros, or onto what the compiler adds it to at once.  A table that
    a product takes, too, needs all of it.
    """
    found = _find_in_programs(trace, lambda work: _find_table(trace, work))
    return max(found, key=lambda each: int(trace.events.duration_ps[each.rows].sum()), default=None)


def _find_table(trace: HostTrace, work: ProgramWork) -> Compiled | None:
    module, flow = work.module, work.flow
    reads = Counter[Size]()
    scatters: dict[Size, list[int]] = {}
    for row in rows_of(module, "scatter"):
        size, update = flow.dims(row), flow.dims(flow.operand(row, 2))
        if len(size) == 2 and update[-1:] == size[-1:] and is_backward(module.sources.read([row])[0].op_name):
            reads[size] += math.prod(update) // max(size[1], 1)
            scatters.setdefault(size, []).append(row)
    products = products_of(module) + rows_of(module, "convolution") if scatters else []
    multiplied = {flow.dims(each) for row in products for each in (row, *module.operands.linked(row))}
    parts = []
    for size, rows in scatters.items():
        if reads[size] >= _FEW * size[0] or size in multiplied or size[::-1] in multiplied:
            continue
        fills = [flow.origin(flow.operand(row, 0)) for row in rows]
        inside = flow.followers(flow.outers(rows), size)
        parts.append(Compiled(
            np.concatenate([work.runs_of([*inside, *fills]), _updates_elsewhere(trace, work, size)]),
            reads[size] / size[0],
            (*size, reads[size]),
        ))  # fmt: skip
    return max(parts, key=lambda each: math.prod(each.figures), default=None)


def _updates_elsewhere(trace: HostTrace, work: ProgramWork, size: Size) -> I64:
    """What other programs compute of the same size, where the gradient is a result that they may take."""
    of_results = {each for row in work.flow.results() for each in work.flow.sizes(row)}
    found = [work.rows[:0]]
    for other in program_work(trace) if size in of_results else ():
        if other is not work and any(size_of(text) == size for _, text in other.module.parameters):
            wanted = [row for row in distinct(other.instruction).tolist() if row >= 0 and size in other.flow.sizes(row)]
            found.append(other.runs_of(wanted))
    return np.concatenate(found)


def size_of(text: str) -> Size:
    """The dimensions in the text of a shape.

    >>> size_of("f32[8,4]"), size_of("f32[]")
    ((8, 4), ())
    """
    inside = text.partition("[")[2].rstrip("]")
    return tuple(int(each) for each in inside.split(",") if each.isdigit())


# ---- Gradients that no program takes ---------------------------------------------------------------------------------


def compiled_unused(trace: HostTrace) -> tuple[Compiled, tuple[str, ...]] | None:
    """Gradients that a program gives and no program of the steps takes, while some take others of it, with the work
    that only they need; and their shapes.  The figure is how many."""
    works = program_work(trace)
    parts, shapes = list[Compiled](), list[str]()
    for work in works if len(works) > 1 else ():
        taken = _taken_by_others(works, work)
        results = list(zip(work.flow.results(), work.module.results, strict=False))
        gradients = [(row, shape) for row, shape in results if _is_gradient(work.flow, row) and size_of(shape)]
        unused = [(row, shape) for row, shape in gradients if shape not in taken]
        if not unused or len(unused) == len(gradients) or not all(other.module.parameters for other in works):
            continue
        given_up = {row for row, _ in unused}
        kept = work.flow.needed_by(row for row, _ in results if row not in given_up)
        only = work.flow.needed_by(given_up) - kept
        parts.append(Compiled(work.runs_of(only), 0.0, (len(unused),)))
        shapes += [shape for _, shape in unused]
    joined = join(parts)
    return None if joined is None else (joined, tuple(dict.fromkeys(shapes)))


def _taken_by_others(works: tuple[ProgramWork, ...], work: ProgramWork) -> set[str]:
    """The shapes of which another program takes more arrays than it gives back changed, as parameters and what an
    optimizer keeps of them."""
    found = set[str]()
    for other in works:
        if other is not work:
            found |= {*(Counter(shape for _, shape in other.module.parameters) - Counter(other.module.results))}
    return found


def _is_gradient(flow: Flow, row: int) -> bool:
    """Whether the last op of the program that makes a value belongs to a backward pass.  What the compiler writes anew,
    such as a convolution along other axes, has no name: then whether what it takes does."""
    front = {row}
    for _ in range(_DEEPEST):
        origins = [flow.origin(each) for each in front]
        named = [_name_of(flow, each) for each in origins]
        if any(map(is_backward, named)) or not origins:
            return bool(origins)
        unnamed = [each for each, name in zip(origins, named, strict=True) if not name]
        front = {operand for each in unnamed for operand in flow.module.operands.linked(each)}
    return False


def _name_of(flow: Flow, row: int) -> str:
    """The op of an instruction in the framework, or that of the fusion around it."""
    return next((each.op_name for each in flow.module.sources.read([row, flow.outer(row)]) if each.op_name), "")


# ---- The model, run again for a value -------------------------------------------------------------------------------


def compiled_measures(trace: HostTrace) -> tuple[Compiled, str] | None:
    """Programs that compute the forward products of the one that trains, of arrays of the same shapes, for a result
    that no program takes; with the name of the first of them."""
    works = program_work(trace)
    sizes = [_sizes_of_products(work) for work in works]
    trains = [any(is_backward(source.op_name) for _, source in product_sources(work)) for work in works]
    found = []
    for at, work in enumerate(works):
        others = [other for other in range(len(works)) if trains[other]]
        same = any(sizes[at] <= sizes[other] and _arrays(work) <= _arrays(works[other]) for other in others)
        taken = {shape for other in works if other is not work for _, shape in other.module.parameters}
        given = [shape for shape in work.module.results if size_of(shape)]
        if sizes[at] and not trains[at] and same and taken.isdisjoint(given):
            found.append(work)
    if not found:
        return None
    rows = np.concatenate([work.rows for work in found])
    return Compiled(rows, 0.0), found[0].module.name


def compiled_reported(trace: HostTrace) -> tuple[Compiled, str] | None:
    """Products that a program which trains computes for nothing but single numbers that it gives and no program takes,
    as those of a validation in each step, with the line that asks for them; the figure is how many numbers."""
    works = program_work(trace)
    taken = {shape for work in works for _, shape in work.module.parameters}
    return max(
        (each for work in works if (each := _find_reported(work, taken)) is not None),
        key=lambda each: len(each[0].rows),
        default=None,
    )


def _find_reported(work: ProgramWork, taken: set[str]) -> tuple[Compiled, str] | None:
    products = product_sources(work)
    if not work.module.parameters or not any(is_backward(source.op_name) for _, source in products):
        return None
    results = list(zip(work.flow.results(), work.module.results, strict=False))
    numbers = [row for row, shape in results if not size_of(shape) and shape not in taken]
    kept = work.flow.needed_by({row for row, _ in results}.difference(numbers))
    only = work.flow.needed_by(numbers) - kept
    # Where the loss is a sum of the output, its gradient takes no output: what trains all the same has a backward pass.
    trained = {source.stack or source.line for _, source in products if is_backward(source.op_name)}
    asking = [source for row, source in products if work.flow.outer(row) in only]
    alone = [source for source in asking if (source.stack or source.line) not in trained]
    if not alone:
        return None
    own = function_of_program(work.module.name)
    asked = [frame for frame in alone[0].stack if frame.rpartition(".")[2].rpartition(" ")[2] == own]
    again = work.flow.outers(row for row, _ in products) & only
    count = sum(not again.isdisjoint(work.flow.needed_by([row])) for row in numbers)
    return Compiled(work.runs_of(only), 0.0, (count,)), asked[0] if asked else alone[0].line


def compiled_repeated(trace: HostTrace) -> Compiled | None:
    """Forward passes that several programs with a backward pass have of the same sizes, of arrays of the same shapes,
    as where each argument's gradient is a program of its own: all but that of the longest.  The figure is how many
    programs there are."""
    works = [
        work for work in program_work(trace) if any(is_backward(source.op_name) for _, source in product_sources(work))
    ]
    groups: dict[tuple[tuple[int, ...], tuple[str, ...]], list[ProgramWork]] = {}
    for work in works:
        key = tuple(sorted(_sizes_of_products(work, forward=True).elements())), tuple(sorted(_arrays(work).elements()))
        groups.setdefault(key, []).append(work)
    parts = []
    for (sizes, _), alike in groups.items():
        last = max(alike, key=lambda work: int(trace.events.duration_ps[work.rows].sum()))
        again = [_forward_rows(work) for work in alike if work is not last]
        if sizes and again:
            parts.append(Compiled(np.concatenate(again), 0.0, (len(alike),)))
    return join(parts)


def compiled_passes(trace: HostTrace) -> tuple[Compiled, str] | None:
    """Backward passes that one program has for one forward pass, as where each loss is differentiated by itself, with
    the line of the largest product; figures are (passes, forward products)."""
    found = _find_in_programs(trace, _find_passes)
    return max(found, key=lambda each: int(trace.events.duration_ps[each[0].rows].sum()), default=None)


def _find_passes(work: ProgramWork) -> tuple[Compiled, str] | None:
    """By line of the program: the products of its backward pass that have the size of an operand of those of its
    forward pass are the gradients of that operand.  That of each operand has to be there again, as in graphs."""
    module, flow = work.module, work.flow
    products = product_sources(work)
    if any(is_of_second_order(source.op_name) for _, source in products):
        return None
    operands, gradients = dict[str, Counter[Size]](), dict[str, Counter[Size]]()
    for row, source in products:
        if is_backward(source.op_name) and not is_computed_again(source.op_name):
            gradients.setdefault(source.line, Counter())[tuple(sorted(flow.dims(row)))] += 1
        elif not is_backward(source.op_name):
            sizes = [tuple(sorted(flow.dims(each))) for each in module.operands.linked(row)[:2]]
            operands.setdefault(source.line, Counter()).update(sizes)
    passes = {
        line: min(count // max(operands[line][size], 1) for size, count in of_line.items())
        for line, of_line in gradients.items()
        if line and line in operands and all(size in operands[line] for size in of_line)
    }
    again = {line: times for line, times in passes.items() if times > 1}
    if not again:
        return None
    chosen = [
        row for row, source in products
        if source.line in again and is_backward(source.op_name) and not is_computed_again(source.op_name)
    ]  # fmt: skip
    line = max(again, key=lambda each: max(map(math.prod, gradients[each])))
    times = again[line]
    forward = sum(operands[each].total() // 2 for each in again)
    return Compiled(work.runs_of(chosen), 1.0 / times, (times, forward)), line


def _forward_rows(work: ProgramWork) -> I64:
    """The events of a program that belong to no backward pass."""
    rows = [row for row in distinct(work.instruction).tolist() if row >= 0]
    sources = work.module.sources.read(rows) if rows else []
    forward = [row for row, source in zip(rows, sources, strict=True) if not is_backward(source.op_name)]
    found: I64 = work.rows[np.isin(work.instruction, forward)]
    return found


def product_sources(work: ProgramWork) -> list[tuple[int, InstructionSource]]:
    """The instructions of a program that multiply or convolve, with their sources."""
    rows = [*products_of(work.module), *rows_of(work.module, "convolution")]
    return list(zip(rows, work.module.sources.read(rows) if rows else (), strict=True))


def _sizes_of_products(work: ProgramWork, forward: bool = False) -> Counter[int]:
    """How many numbers each product gives, or each of the forward pass: a compiler may turn it round."""
    products = product_sources(work)
    rows = [row for row, source in products if not (forward and is_backward(source.op_name))]
    return Counter(math.prod(work.flow.dims(row)) for row in rows)


def _arrays(work: ProgramWork) -> Counter[str]:
    return Counter(shape for _, shape in work.module.parameters if size_of(shape))


# ---- Arguments that are copied ---------------------------------------------------------------------------------------


def copied_arguments(trace: HostTrace) -> Compiled | None:
    """Copies of whole arguments before a part of them is written, or so as to give them back: a program may only write
    into an argument that it was given for good.  A program that does nothing else is a copy that was asked for.  The
    figure is the bytes of the largest."""
    return join(_find_in_programs(trace, _find_copied))


_WRITES_PART = ("dynamic-update-slice", "scatter")


def _find_copied(work: ProgramWork) -> Compiled | None:
    module, flow = work.module, work.flow
    results, shapes = set(flow.results()), module.shapes
    copies = []
    for row in rows_of(module, "copy"):
        source = flow.operand(row, 0)
        if module.computation[row] != module.entry or source < 0 or module.opcode_of(source) != "parameter":
            continue
        if shapes.text(row, layout=True) != shapes.text(source, layout=True):
            continue  # in another order, whoever owns the array
        if row in results or any(_writes_part(flow, user) for user in module.users.linked(row)):
            copies.append(row)
    if not copies or len(rows_of(module, "parameter", "copy", "tuple")) == len(module.computation):
        return None
    return Compiled(work.runs_of(copies), 0.0, (max(int(shapes.nbytes[row]) for row in copies),))


def _writes_part(flow: Flow, row: int) -> bool:
    root = flow.origin(row) if flow.module.opcode_of(row) == "fusion" else row
    return flow.module.opcode_of(root) in (*_WRITES_PART, "while")


# ---- Calls of Python ------------------------------------------------------------------------------------------------


def compiled_callback(trace: HostTrace) -> tuple[str, bool] | None:
    """The line of the largest call of Python in compiled programs, and whether that takes nothing but what the program
    is given and does not give back changed, such as the batch; None where the programs hold none."""
    found = _find_in_programs(trace, _find_callback)
    return max(found, key=lambda each: each[0], default=(0, None))[1]


def _find_callback(work: ProgramWork) -> tuple[int, tuple[str, bool]] | None:
    module, calls = work.module, rows_of(work.module, "custom-call")
    named = zip(calls, module.sources.read(calls), strict=True) if calls else ()
    found = [(row, source.line) for row, source in named if source.op_name.endswith("_callback")]
    if not found:
        return None
    row, line = max(found, key=lambda each: len(work.runs_of([each[0]])))
    return len(work.runs_of([row])), (line, _takes_only_given(work, row))


def _takes_only_given(work: ProgramWork, row: int) -> bool:
    module, front = work.module, work.module.operands.linked(row)
    kept, taken = set(module.results), False
    for _ in range(_DEEPEST):
        origins = {work.flow.origin(each) for each in front}
        given = [each for each in origins if module.opcode_of(each) == "parameter"]
        shapes = {module.parameters[int(module.parameter_number[each])][1] for each in given
                  if module.computation[each] == module.entry and module.parameters}  # fmt: skip
        if len(given) > len(shapes) or not kept.isdisjoint(shapes):
            return False
        taken |= bool(given)
        front = [operand for each in origins for operand in module.operands.linked(each)]
    return taken and not front


# ---- Moves that are the compiler's -----------------------------------------------------------------------------------


def compilers_moves(trace: HostTrace) -> I64:
    """Ops of compiled programs that move data as the compiler needs it: copies, such as those of what a loop starts
    with, constants that are spread, and all that a loop takes from or keeps for a round: rows of events.

    Of these, a program can only avoid the copies of `copied_arguments`.
    """
    found = [np.empty(0, np.int64)]
    for work in program_work(trace):
        known = work.instruction >= 0
        at = work.instruction[known]
        chosen = work.module.is_opcode("copy")[at] | (work.module.computation[at] != work.module.entry)
        flow = Flow(work.module)
        spread = [row for row in distinct(at).tolist() if work.module.opcode_of(flow.origin(row)) == "broadcast"]
        chosen |= np.isin(at, spread)
        found.append(work.rows[known][chosen])
    return np.concatenate(found)


# ---- Activations that are computed again -----------------------------------------------------------------------------


def compiled_again(trace: HostTrace) -> I64:
    """Work of a forward pass that a compiled program does again in its backward pass: rows of events."""
    found = [np.empty(0, np.int64)]
    for work in program_work(trace):
        rows = [row for row in distinct(work.instruction).tolist() if row >= 0]
        names = [source.op_name for source in work.module.sources.read(rows)] if rows else []
        again = [row for row, name in zip(rows, names, strict=True) if is_computed_again(name)]
        found.append(work.rows[np.isin(work.instruction, again)])
    return np.concatenate(found)
