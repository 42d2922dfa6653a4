"""What compiled programs compute for nothing, by who takes a value and what it is made of.

    gradient [512,512] -> multiply by 0 -> subtract      only a product with zero takes it: frozen by a mask
    table -> tanh -> dot -> dot with the batch           of what the program never changes: the same in every step
    while (error > 1e-9 and round < 100)                 always 100 rounds: the error never ends it

XLA leaves a product of floats with zero as it is, since infinity times zero is no zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stepscope.analysis.hlo.sources import is_user_frame
from stepscope.analysis.purpose.compiled import Compiled, ProgramWork, program_work, rows_of
from stepscope.analysis.purpose.flow import REPEATED_VALUE
from stepscope.analysis.trace.program_facts import kept_arrays_of
from stepscope.model import HostTrace
from stepscope.model.arrays import distinct
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module

_DEEPEST = 24  # ops from a constant to a value that is zero because of it
_ANY, _ALL, _FIRST = ("multiply", "dot"), ("add", "subtract", "negate", "reduce", "concatenate", "pad"), ("divide",)
_INLINED = ("fusion", "call")  # each has its values in the computation that it calls
# What gives another value each time, or does something beside it.
_NEVER_THE_SAME = (
    "rng", "rng-bit-generator", "rng-get-and-update-state", "infeed", "outfeed", "recv", "send", "partition-id",
    "replica-id", "after-all", "parameter",
)  # fmt: skip


@dataclass(frozen=True)
class Needless:
    """Work of compiled programs that is not needed.

    Attributes:
        work: its events, and figures for a sentence; line: where the program asks for it, as `train.py:9 step`.
    """

    work: Compiled
    line: str


def _longest(trace: HostTrace, found: list[Needless]) -> Needless | None:
    return max(found, key=lambda each: int(trace.events.duration_ps[each.work.rows].sum()), default=None)


def _line(module: Module, rows: list[int]) -> str:
    """Where the program asks for some instructions: the innermost of its own lines of the first one that has any."""
    places = (source.place for source in module.sources.read(rows)) if rows else ()
    return next((place for place in places if place and is_user_frame(place)), "")


# ---- Times zero ------------------------------------------------------------------------------------------------------


def multiplied_by_zero(trace: HostTrace) -> Needless | None:
    """What only products with a constant zero take, as gradients of parameters that a mask freezes, and these products;
    the figure is how many products."""
    found = [each for work in program_work(trace) if (each := _times_zero(work)) is not None]
    return _longest(trace, found)


def _times_zero(work: ProgramWork) -> Needless | None:
    module = work.module
    zeros = _Zeros(work)
    products = [row for row in rows_of(module, "multiply", "dot") if module.shapes.elements[row] > 1 and zeros.has(row)]
    if not products:
        return None
    live, without = _reached(work, set()), _reached(work, set(products))
    first = [row for row in products if row in live]
    run = [row for row in distinct(work.instruction).tolist() if row in live]
    gone = [row for row in run if row not in without or zeros.has(row)]
    largest = sorted(first, key=lambda row: -int(module.shapes.elements[row]))
    return Needless(Compiled(work.runs_of(gone), 0.0, (len(first),)), _line(module, largest)) if gone else None


class _Zeros:
    """Which values of a program are zero whatever it is given."""

    def __init__(self, work: ProgramWork) -> None:
        self._work = work
        self._known = dict[int, bool]()

    def has(self, row: int, depth: int = 0) -> bool:
        """Whether a value is zero."""
        if row not in self._known:
            self._known[row] = depth < _DEEPEST and self._find(row, depth + 1)
        return self._known[row]

    def _find(self, row: int, depth: int) -> bool:
        module, flow = self._work.module, self._work.flow
        made = flow.origin(row, REPEATED_VALUE)
        opcode = module.opcode_of(made)
        if opcode == "constant":
            return not any(module.literal_of(made) or b"\1")
        if made != row:
            return self.has(made, depth)
        operands = module.operands.linked(row)
        if opcode in _ANY:
            return any(self.has(each, depth) for each in operands)
        if opcode in _ALL:
            return bool(operands) and all(self.has(each, depth) for each in operands)
        return opcode in _FIRST and self.has(operands[0], depth)


def _reached(work: ProgramWork, ends: set[int]) -> set[int]:
    """The instructions that the program's results depend on, not looking further from some of them.  Of what a loop or
    a condition takes and computes all counts."""
    module, flow = work.module, work.flow
    callers = defaultdict[int, list[int]](list)
    for owner, called in zip(module.callees.owner.tolist(), module.callees.rows.tolist(), strict=True):
        callers[called].append(owner)
    front = [int(module.roots[module.entry])] if module.entry >= 0 else []
    seen = set(front)
    while front:
        row = front.pop()
        after = [] if row in ends else list(_taken_by(work, row, callers))
        if module.opcode_of(row) == "get-tuple-element" and (source := flow.operand(row, 0)) not in after:
            seen.add(source)
        front += [each for each in dict.fromkeys(after) if each >= 0 and each not in seen]
        seen.update(after)
    return seen


def _taken_by(work: ProgramWork, row: int, callers: dict[int, list[int]]) -> Iterator[int]:
    module, flow = work.module, work.flow
    opcode, roots = module.opcode_of(row), [int(module.roots[each]) for each in module.callees.linked(row)]
    if opcode == "parameter":
        for caller in callers[int(module.computation[row])]:
            if module.opcode_of(caller) in _INLINED:
                yield flow.operand(caller, int(module.parameter_number[row]))
    elif opcode == "get-tuple-element":
        source = flow.operand(row, 0)
        root = [int(module.roots[each]) for each in module.callees.linked(source)] if source >= 0 else []
        inlined = source >= 0 and module.opcode_of(source) in _INLINED and len(root) == 1
        is_tuple = inlined and root[0] >= 0 and module.opcode_of(root[0]) == "tuple"
        yield flow.operand(root[0], int(module.tuple_index[row])) if is_tuple else source
    elif opcode in _INLINED and roots and min(roots) >= 0:
        yield from roots
    else:
        yield from module.operands.linked(row)
        yield from roots


# ---- The same in every step ------------------------------------------------------------------------------------------


def same_in_every_step(trace: HostTrace) -> Needless | None:
    """What a program that the steps run computes from constants, and from arrays that the program keeps and never
    changes; figures are (instructions, 1 where arrays are among what it is made of)."""
    kept = kept_arrays_of(trace)
    found = [each for work in program_work(trace) if (each := _same(work, kept)) is not None]
    return _longest(trace, found)


def _same(work: ProgramWork, kept: dict[tuple[int, ...], int]) -> Needless | None:
    module = work.module
    same = _fixed_parameters(work, kept)
    given = set(same)
    if len(_parameters(work)) <= len(given):
        return None  # nothing tells one step from another: it runs for something else
    for row in module.rows_of(module.entry):
        operands = module.operands.linked(row)
        if module.opcode_of(row) not in _NEVER_THE_SAME and same.issuperset(operands) and _is_pure(module, row):
            same.add(row)
    moves = REPEATED_VALUE | {"constant", "iota", "parameter", "tuple", "get-tuple-element"}
    chosen = [row for row in same if module.opcode_of(work.flow.origin(row)) not in moves]
    if not chosen:
        return None
    run = {*distinct(work.instruction).tolist()}
    inside = [row for row in _within(module, chosen) if row in run]
    uses_given = not given.isdisjoint(work.flow.needed_by(chosen))
    return Needless(Compiled(work.runs_of(inside), 0.0, (len(chosen), int(uses_given))), _line(module, chosen[::-1]))


def _parameters(work: ProgramWork) -> list[int]:
    return [row for row in rows_of(work.module, "parameter") if work.module.computation[row] == work.module.entry]


def _fixed_parameters(work: ProgramWork, kept: dict[tuple[int, ...], int]) -> set[int]:
    """The parameters of which all arrays of their shape stay as they are while steps run, and that are no results."""
    given = _parameters(work)
    results, counts = {work.flow.dims(row) for row in work.flow.results()}, Counter(map(work.flow.dims, given))
    stay = {size for size, count in counts.items() if size not in results and kept.get(size, 0) >= count}
    return {row for row in given if work.flow.dims(row) in stay}


def _is_pure(module: Module, row: int) -> bool:
    inside = _within(module, [row])
    opcodes = {module.opcode_of(each) for each in inside}
    return opcodes.isdisjoint(set(_NEVER_THE_SAME) - {"parameter"}) and not any(
        module.target_of(each).endswith(("callback", "ffi_python_cpu_callback"))
        for each in inside if module.opcode_of(each) == "custom-call"
    )  # fmt: skip


def _within(module: Module, rows: list[int]) -> list[int]:
    """Some instructions and those of all computations that they call."""
    found, front = dict.fromkeys(rows), list(rows)
    while front:
        called = {each for row in front for each in module.callees.linked(row) if each >= 0}
        inside = (np.flatnonzero(module.computation == each).tolist() for each in called)
        front = [row for each in inside for row in each if row not in found]
        found |= dict.fromkeys(front)
    return list(found)


# ---- Loops that only their limit ends --------------------------------------------------------------------------------


def loops_to_the_limit(trace: HostTrace) -> Needless | None:
    """Loops that have a condition beside a limit of rounds, and run to the limit each time; the figure is that."""
    found = [each for work in program_work(trace) for each in _to_the_limit(work)]
    return _longest(trace, found)


def _to_the_limit(work: ProgramWork) -> Iterator[Needless]:
    module = work.module
    ran = np.bincount(work.instruction[work.instruction >= 0], minlength=len(module))
    for loop in rows_of(module, "while"):
        called = module.callees.linked(loop)
        body = next((each for each in called if module.opcode_of(int(module.roots[each])) == "tuple"), -1)
        limit = next((each for each in (_limit(work, at) for at in called) if each), 0)
        around = np.flatnonzero(module.computation == module.computation[loop])
        times, rounds = int(ran[around].max(initial=0)), int(ran[module.computation == body].max(initial=0))
        if limit > 1 and times and times * limit <= rounds <= times * (limit + 1):
            inside = [row for row in _within(module, [loop]) if ran[row] and row != loop]
            yield Needless(Compiled(work.runs_of(inside), 0.0, (limit,)), _line(module, [loop]))


def _limit(work: ProgramWork, condition: int) -> int:
    """The largest number of rounds that a condition allows, where it also compares floats, as an error with what it may
    be; 0 if it is none.  A flag, as that of a text which may end, is no such error."""
    module, flow = work.module, work.flow
    asked = flow.origin(int(module.roots[condition])) if condition >= 0 and module.roots[condition] >= 0 else -1
    if asked < 0 or module.opcode_of(asked) != "and":
        return 0
    parts = [flow.origin(each) for each in module.operands.linked(asked)]
    limits = [_number_of_rounds(work, each) for each in parts]
    others = [each for each, limit in zip(parts, limits, strict=True) if not limit]
    return max(limits) if len(others) == 1 and _compares_floats(module, others[0]) else 0


def _compares_floats(module: Module, row: int) -> bool:
    sides = module.operands.linked(row) if module.opcode_of(row) == "compare" else []
    return bool(sides) and module.shapes.type_name(sides[0]).startswith(("f", "bf"))


def _number_of_rounds(work: ProgramWork, row: int) -> int:
    """The whole number that a comparison holds a count of rounds against; 0 if it compares something else."""
    module, flow = work.module, work.flow
    sides = [flow.origin(each) for each in module.operands.linked(row)] if module.opcode_of(row) == "compare" else []
    counts = [each for each in sides if module.opcode_of(each) == "constant"]
    return max(module.number_of(counts[0]) or 0, 0) if len(sides) == 2 and len(counts) == 1 else 0
