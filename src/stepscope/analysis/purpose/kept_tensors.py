"""Which ops of PyTorch compute the same in every step, by the sizes of tensors that the program keeps as they are.

    kept: [5000,96] [256,96] [256]             the capture has seen them twice, unwritten, and no others of these sizes
    linear [5000,96]x[256,96]+[256]            of these alone
    gelu   [5000,256]                          of what is made of these alone
    matmul [16,64]x[64,5000]                   of a request, too

Which tensors ops take is recorded only at the highest level.  Sizes stand for them here, so that a size that anything
else makes, or may make, tells nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from stepscope.analysis.purpose.sizes import Size, names_of_types
from stepscope.analysis.purpose.values import TracedOp, size_of_result
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.program_facts import kept_tensors_of
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import DRAWS, JOINS, KEEPS_ROWS, REPEATS, VIEWS

_FEWEST_STEPS = 3  # that show that something is the same in all of them
_NEARLY_ALL = 0.9  # of the steps: one may be cut
_NO_TENSORS = {"Scalar", "ScalarList", ""}


@dataclass(frozen=True)
class _Sized:
    """An op by sizes.

    Attributes:
        taken: the sizes of its tensors; None where an operand is a tensor of one number, or a list.
        made: the size of its result; None where that does not follow from these.
        looks: it gives the same numbers with other sides; may_be_same: it draws and writes nothing.
    """

    name: str
    taken: tuple[Size, ...] | None
    made: Size | None
    looks: bool
    may_be_same: bool


def same_by_sizes(trace: HostTrace, ops: Sequence[TracedOp], alike: Mapping[int, I64]) -> list[int]:
    """The places of ops that compute the same in every step, other than looking at a tensor.

    Args:
        alike: by the row of each op the rows of its like in all steps.
    """
    kept = {size for size in kept_tensors_of(trace) if size}
    if not kept or not ops:
        return []
    sized = _read(trace, ops, alike)
    by_step = defaultdict[int, list[int]](list)
    for at, op in enumerate(ops):
        by_step[op.step].append(at)
    found = [each for places in by_step.values() for each in _find_same(places, sized, kept)]
    return sorted(at for at in found if not sized[at].looks)


def _read(trace: HostTrace, ops: Sequence[TracedOp], alike: Mapping[int, I64]) -> list[_Sized]:
    rows = np.array([op.row for op in ops], np.int64)
    types = trace.stat_strings(stat_names.INPUT_TYPES, rows=rows).tolist()
    plain = trace.stat_strings(stat_names.CONCRETE_INPUTS, rows=rows).tolist()
    numbers = trace.stat_strings(stat_names.CONCRETE_INPUTS)
    steps, found = len(whole_steps(trace).number), list[_Sized]()
    for op, of_types, text in zip(ops, types, plain, strict=True):
        taken = _sizes_of_tensors(op, names_of_types(trace.strings[of_types]) if of_types > 0 else [])
        like = alike[op.row]
        is_usual = len(like) >= max(_FEWEST_STEPS, _NEARLY_ALL * steps) and len(distinct(numbers[like])) == 1
        looks = VIEWS.fullmatch(op.name) is not None and REPEATS.fullmatch(op.name) is None and op.name != "expand_as"
        same = is_usual and DRAWS.fullmatch(op.name) is None and not op.name.endswith("_")
        found.append(_Sized(op.name, taken, _size_made(trace, op, taken, text), looks, same))
    return found


def _sizes_of_tensors(op: TracedOp, types: list[str]) -> tuple[Size, ...] | None:
    if len(types) != len(op.sizes):
        return None  # a list of tensors has one type and many sizes
    tensors = [size for size, type_ in zip(op.sizes, types, strict=True) if type_ not in _NO_TENSORS]
    return tuple(tensors) if tensors and all(tensors) else None


def _size_made(trace: HostTrace, op: TracedOp, taken: tuple[Size, ...] | None, plain: int) -> Size | None:
    if VIEWS.fullmatch(op.name) and op.name != "expand_as":
        return None
    if op.name == "embedding" and taken is not None and len(taken) == 2:
        return (*taken[1], taken[0][-1])
    if KEEPS_ROWS.fullmatch(op.name) and op.name in ("layer_norm", "rms_norm") and op.sizes:
        return op.sizes[0]
    return None if taken is None else size_of_result(trace, op, list(taken), plain)


def _find_same(places: Sequence[int], ops: Sequence[_Sized], kept: set[Size]) -> list[int]:
    """Those ops of a step, or from the middle of one to that of the next, that are made of what is kept."""
    same = {at for at in places if ops[at].may_be_same and ops[at].taken}
    before = -1
    while len(same) != before:  # what takes a size that something else makes is none, and what takes its result
        before = len(same)
        others = [ops[at] for at in places if at not in same]
        same = {
            at for at in same if not any(_may_make(other, size) for other in others for size in ops[at].taken or ())
        }
        known = _reached(same, ops, kept)
        same &= known
    return sorted(same)


def _reached(same: set[int], ops: Sequence[_Sized], kept: set[Size]) -> set[int]:
    """Those of some ops that take what is kept, or the results of such alone."""
    sizes, counts, found = set(kept), set[int](), set[int]()
    before = -1
    while len(found) != before:
        before = len(found)
        for at in same - found:
            taken = ops[at].taken or ()
            if all(size in sizes or math.prod(size) in counts for size in taken):
                found.add(at)
                sizes |= {size for size in (ops[at].made,) if size}
                counts |= {math.prod(taken[0])} if ops[at].looks else set()
    return found


def _may_make(op: _Sized, size: Size) -> bool:
    """Whether the result of an op may be of a size: where its own is not known, of its first side or of all others."""
    if op.made is not None:
        return op.made == size
    for each in op.taken or ((),):
        if op.looks and math.prod(each) == math.prod(size) > 1:
            return True
        if len(each) == len(size) > 1 and not op.looks:
            joined = len(size) > 2 or JOINS.fullmatch(op.name) is not None
            if each[1:] == size[1:] or (joined and each[0] == size[0]):
                return True
    return False
