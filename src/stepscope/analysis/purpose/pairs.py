"""Arrays of all pairs inside compiled programs: two small arrays are spread over each other, and the result is summed.

    x [n, d] -> broadcast [n, m, d] --+
                                       subtract [n, m, d] -> ... -> reduce [n, m]
    y [m, d] -> broadcast [n, m, d] --+

Every element of the large array is written, read and summed, though it holds no more than the two small ones: a product
of matrices gives the same sums of products, or of squares of differences, from these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.hlo.module import Module
from stepscope.analysis.purpose.compiled import ProgramWork, program_work
from stepscope.model import HostTrace
from stepscope.model.arrays import distinct
from stepscope.records import dataclass

_TIMES = 8  # the elements of the small arrays: a product saves less where the sides are that short; judgement


@dataclass(frozen=True)
class Pairs:
    """The largest array of all pairs in the programs of a host's steps.

    Attributes:
        shape, of: as XLA writes them, of the large array and of each of the two that it is made of.
        is_difference: it holds differences, else products.
        share: the share of the time of the programs' instructions that read or write arrays of its size, 0 to 1.
    """

    shape: str
    of: tuple[str, str]
    is_difference: bool
    share: float


def pairs_of(trace: HostTrace) -> Pairs | None:
    """The array of all pairs that most time goes to; None where there is none."""
    works = program_work(trace)
    whole = sum(int(trace.events.duration_ps[each.rows].sum()) for each in works)
    found = [pairs for each in works if (pairs := _find(trace, each, whole)) is not None]
    return max(found, key=lambda each: each.share, default=None)


def _find(trace: HostTrace, work: ProgramWork, whole: int) -> Pairs | None:
    module = work.module
    if not module.is_opcode("reduce").any() or not module.is_opcode("broadcast").any() or not whole:
        return None
    shapes, best = module.shapes, None
    reduces = np.flatnonzero(module.is_opcode("reduce")).tolist()
    summed = {int(shapes.elements[each]) for row in reduces for each in module.operands.linked(row)[:1]}
    for row in np.flatnonzero(module.is_opcode("subtract", "multiply")).tolist():
        size = int(shapes.elements[row])
        sources = [_spread(module, each) for each in module.operands.linked(row)]
        if size not in summed or len(sources) != 2 or -1 in sources or not _share_an_axis(module, row, sources):
            continue
        small = sum(int(shapes.elements[each]) for each in sources)
        if size >= _TIMES * small and (best is None or size > best[0]):
            best = size, row, sources
    if best is None:
        return None
    size, row, (one, other) = best
    spent = sum(
        int(trace.events.duration_ps[work.rows[work.instruction == each]].sum())
        for each in distinct(work.instruction[work.instruction >= 0]).tolist()
        if _touches(module, each, size)
    )
    of = shapes.text(one), shapes.text(other)
    return Pairs(shapes.text(row), of, module.opcode_of(row) == "subtract", spent / whole)


def _share_an_axis(module: Module, row: int, sources: Sequence[int]) -> bool:
    """Whether two arrays have an axis in common over which their products can be summed: one of two vectors alone is
    the outer product of a gradient, which no product of matrices makes smaller."""
    ranks = [len(module.shapes.dims_of(each)) for each in sources]
    return sum(ranks) > len(module.shapes.dims_of(row))


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
