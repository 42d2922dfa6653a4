"""Arrays of all pairs inside compiled programs: two small arrays are spread over each other, and the result is summed.

    x [n, d] -> broadcast [n, m, d] --+
                                       subtract [n, m, d] -> ... -> reduce [n, m]
    y [m, d] -> broadcast [n, m, d] --+

Every element of the large array is written, read and summed, though it holds no more than the two small ones: a product
of matrices gives the same sums of products, or of squares of differences, from these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.analysis.purpose.compiled import ProgramWork, program_work
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module

_TIMES = 8  # the elements of the small arrays: a product saves less where the sides are that short; judgement


@dataclass(frozen=True)
class Pairs:
    """The largest array of all pairs in the programs of a host's steps.

    Attributes:
        rows: int64, the instructions that read or write arrays of its size, rows of events.
        shape, of: as XLA writes them, of the large array and of each of the two that it is made of.
        is_difference: it holds differences, else products.
    """

    rows: I64

    shape: str
    of: tuple[str, str]
    is_difference: bool


def pairs_of(trace: HostTrace) -> Pairs | None:
    """The array of all pairs that most time goes to; None where there is none."""
    found = [pairs for each in program_work(trace) if (pairs := _find_pairs(each)) is not None]
    return max(found, key=lambda each: int(trace.events.duration_ps[each.rows].sum()), default=None)


def _find_pairs(work: ProgramWork) -> Pairs | None:
    module = work.module
    if not module.is_opcode("reduce").any() or not module.is_opcode("broadcast").any():
        return None
    shapes, best = module.shapes, None
    # The axes that arrays of each shape are summed over, where they are made: not a sum of what a loop added up.
    sums: dict[tuple[int, ...], list[set[int]]] = {}
    for row in np.flatnonzero(module.is_opcode("reduce")).tolist():
        for each in module.operands.linked(row)[:1]:
            place = (int(module.computation[row]), *shapes.dims_of(each))
            sums.setdefault(place, []).append({*module.axes_of(row)})
    for row in np.flatnonzero(module.is_opcode("subtract", "multiply")).tolist():
        size, operands = int(shapes.elements[row]), module.operands.linked(row)
        sources = [_spread(module, each) for each in operands]
        if len(sources) != 2 or -1 in sources:
            continue
        low, high = ({*module.axes_of(each)} for each in operands)
        summed = sums.get((int(module.computation[row]), *shapes.dims_of(row)), [])
        if not (low - high and high - low and any(axes and axes <= low & high for axes in summed)):
            continue  # a weight times each row, or the outer product of a gradient: no product of matrices saves it
        small = sum(int(shapes.elements[each]) for each in sources)
        if size >= _TIMES * small and (best is None or size > best[0]):
            best = size, row, sources
    if best is None:
        return None
    size, row, (one, other) = best
    run = distinct(work.instruction[work.instruction >= 0]).tolist()
    rows = work.rows[np.isin(work.instruction, [each for each in run if _touches(module, each, size)])]
    of = shapes.text(one), shapes.text(other)
    return Pairs(rows, shapes.text(row), of, module.opcode_of(row) == "subtract")


def _spread(module: Module, row: int) -> int:
    """The array that an operand is a broadcast of; -1 if it is none, or of a number."""
    if module.opcode_of(row) != "broadcast":
        return -1
    sources = [each for each in module.operands.linked(row) if module.shapes.dims_of(each)]
    return sources[0] if sources else -1


def _touches(module: Module, row: int, size: int) -> bool:
    """Whether an instruction, or one fused into it, reads or writes an array of some size."""
    near = [row, *module.operands.linked(row), *module.rows_called(row)]
    return bool((module.shapes.elements[near] == size).any())
