"""Work of PyTorch's ops that the sizes of their operands show to be more than its result needs.

    linear [48,32,96]x[3000,96] -> select [48,32,3000]      of 32 positions one is taken: 31/32 of the product
    repeat [8,1,64]             -> linear [8,50,64]          equal rows are computed again and again
    sub    [400,1,64]-[1,300,64] -> ... sum [400,300,64]     differences of all pairs

What follows what is told by the order of a thread's ops and by equal sizes, as no recording holds the tensors
themselves; so ops in between end a search unless they only look at a tensor in another way.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from stepscope.analysis.purpose.autograd import passes_of
from stepscope.analysis.purpose.computing import (
    backward_runs,
    computing_of,
    inside_any,
    is_passed_over,
    sequence_numbers,
)
from stepscope.analysis.purpose.kept_tensors import same_by_sizes
from stepscope.analysis.purpose.products import describe_empty, kept_of_empty
from stepscope.analysis.purpose.sizes import Size, sizes_of
from stepscope.analysis.purpose.values import TracedOp, Values, tensors_are_known, values_of
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.trace.program_facts import empty_matrices, ignored_labels
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import (
    ADDS_OR_SCALES,
    CONVOLVES,
    KEEPS_ROWS,
    OF_LABELS,
    PICKS,
    REDUCES,
    REPEATS,
    VIEWS,
    strip_library,
)
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.patterns import Pattern

_NEAR = 12  # outermost ops that are looked at before or after one
_HALF = 0.5  # of a tensor: taking no less leaves little to save
_TIMES = 8  # the numbers of two small tensors: one of all their pairs is that much larger; judgement
_MOST_TRACED = 40_000  # outermost ops that are read one by one, of steps that differ: of more nothing is said
_FEWEST_ROUNDS = 4  # in which a sequence grows by one: by chance lengths of batches do so twice or three times
_FEWEST_STEPS = 3  # that show that something is the same in all of them
SQUARED = ", multiplies that by itself"  # in the fact of products of the larger side of a matrix
ADDED = ", adds that to another matrix"  # in the fact of products in the longer order


@dataclass(frozen=True)
class TensorWork:
    """Work that could be less.

    Attributes:
        rows: the outermost ops that do it, forward, and the backward work that belongs to them: rows of events.
        kept: the share of their time that is needed.
        what: the ops and sizes, in words; is_part: more goes with it that the recording does not tell apart.
    """

    rows: I64
    kept: float
    what: str
    is_part: bool = False


class _Op(TracedOp):
    """An outermost forward op with what is read of it."""

    __slots__ = ()

    @property
    def first(self) -> Size:
        return self.sizes[0] if self.sizes else ()

    @property
    def result(self) -> Size | None:
        """The size of a product's result; None for other ops."""
        if len(self.sizes) < 2 or not self.sizes[0] or not self.sizes[1]:
            return None
        one, other = self.sizes[:2]
        if self.name == "addmm" and len(self.sizes) > 2:
            one, other = self.sizes[1:3]
        if self.name == "linear":
            return (*one[:-1], other[0])
        if self.name in ("matmul", "mm", "bmm", "addmm") and len(other) > 1:
            return (*one[:-1], other[-1])
        return None

    @property
    def product(self) -> tuple[Size, Size] | None:
        """The two operands of a product of matrices."""
        if self.result is None:
            return None
        start = 1 if self.name == "addmm" and len(self.sizes) > 2 else 0
        return self.sizes[start], self.sizes[start + 1]


@dataclass(frozen=True)
class _Traced:
    """The outermost forward ops of the steps that differ, in their order on each thread; and by the row of each the
    rows of its like in all steps that have the same ops with the same sizes."""

    ops: list[_Op]
    equal: dict[int, I64]


def _read(trace: HostTrace, of_updates: bool = False) -> _Traced:
    """None where no sizes were recorded, or where the steps differ too much; of updates: their ops instead."""
    work = computing_of(trace)
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return _Traced([], {})
    rows = work.rows[work.outer & ~work.backward & (work.updates if of_updates else ~work.updates)]
    rows = rows[np.lexsort((trace.events.start_ps[rows], trace.events.line[rows]))]
    equal = _equal_ops(trace, rows)
    rows = np.array(list(equal), np.int64)
    if len(rows) > _MOST_TRACED:
        return _Traced([], {})
    text = trace.stat_strings(stat_names.INPUT_DIMS, rows=rows)
    sizes = {row: sizes_of(trace.strings[row]) if row > 0 else () for row in distinct(text).tolist()}
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    names = {type_: strip_library(name) for type_, name in zip(types.tolist(), type_names(trace, types), strict=True)}
    label = whole_steps(trace).label[rows].tolist()
    columns = rows.tolist(), trace.events.type[rows].tolist(), text.tolist(), label
    ops = [_Op(row, names[type_], sizes[size], step) for row, type_, size, step in zip(*columns, strict=True)]
    return _Traced(ops, equal)


def _equal_ops(trace: HostTrace, rows: I64) -> dict[int, I64]:
    """The ops of the first of all equal steps of a thread, each with the rows of its like in all of them."""
    if not len(rows):
        return {}
    label, line = whole_steps(trace).label[rows], trace.events.line[rows]
    begins = np.flatnonzero(np.append(True, (label[1:] != label[:-1]) | (line[1:] != line[:-1])))
    said = np.stack([trace.events.type[rows], trace.stat_strings(stat_names.INPUT_DIMS, rows=rows)], axis=1)
    steps: dict[bytes, list[I64]] = {}
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(rows)], strict=True):
        steps.setdefault(said[begin:end].tobytes(), []).append(rows[begin:end])
    found: dict[int, I64] = {}
    for alike in steps.values():
        found.update(zip(alike[0].tolist(), np.array(alike).T, strict=True))
    return found


def ops_with_sizes(trace: HostTrace) -> list[_Op]:
    """The ops of steps that differ, read once per trace."""
    return _traced(trace).ops


def _traced(trace: HostTrace) -> _Traced:
    return trace.derived("ops with sizes", _read)


def with_backward(trace: HostTrace, rows: I64) -> I64:
    """Forward ops and the runs of autograd's nodes that belong to them and to what lies inside: rows of events."""
    work = computing_of(trace)
    numbers = distinct(work.number[inside_any(trace, work.rows, rows) & work.learned])
    passes = passes_of(trace)
    return np.append(rows, passes.rows[(passes.number >= 0) & np.isin(passes.number, numbers)])


def _largest(trace: HostTrace, found: dict[str, tuple[list[int], float]]) -> TensorWork | None:
    """Of what was found, by its words, that which takes longest in all steps."""
    equal = _traced(trace).equal
    works = [
        TensorWork(with_backward(trace, distinct(np.concatenate([equal[row] for row in rows]))), kept, what)
        for what, (rows, kept) in found.items()
    ]
    return max(works, key=lambda each: int(trace.events.duration_ps[each.rows].sum()), default=None)


def _chosen(ops: list[_Op], rows: I64) -> set[int]:
    """The rows of those ops that are among some rows."""
    own = np.array([op.row for op in ops], np.int64)
    return {*own[np.isin(own, rows)].tolist()}


def _matches(pattern: Pattern[str], op: _Op) -> bool:
    return pattern.fullmatch(op.name) is not None


def _note(found: dict[str, tuple[list[int], float]], what: str, ops: list[_Op], kept: float) -> None:
    found.setdefault(what, ([], kept))[0].extend(op.row for op in ops)


def _size_text(size: Size) -> str:
    return "[" + ",".join(map(str, size)) + "]"


def picked_after(trace: HostTrace) -> TensorWork | None:
    """Products over positions of which few are taken right after: what is taken could be taken before.

    Only ops that treat each position by itself may lie between, and nothing else may take the whole tensor.
    """
    ops, found = ops_with_sizes(trace), dict[str, tuple[list[int], float]]()
    taken = _sizes_of_gradients(trace)
    _note_ignored(trace, ops, found)
    _note_cropped(ops, taken, found)
    for at, pick in enumerate(ops):
        if not _matches(PICKS, pick) or len(pick.first) < 2:
            continue
        whole, part = pick.first, taken.get(pick.row)
        if part is None or part[-1:] != whole[-1:] or math.prod(part) > _HALF * math.prod(whole):
            continue
        before = _find_row_makers(ops, at, whole)
        if not before:
            continue
        first = ops[before[0]]
        if _others_take(ops, before[-1], at, whole, taken):
            continue
        of = first.product[1] if first.product else ()
        what = (
            f"{first.name} of {_size_text(first.first)} by {_size_text(of)} computes {math.prod(whole[:-1]):,} rows,"
            f" of which `{pick.name}` takes {max(math.prod(part[:-1]), 1):,}"
        )
        _note(found, what, [ops[each] for each in before], math.prod(part) / math.prod(whole))
    return _largest(trace, found)


def _note_ignored(trace: HostTrace, ops: list[_Op], found: dict[str, tuple[list[int], float]]) -> None:
    """Products over rows whose labels say that the loss ignores them; the last label of a row may be left out, where
    each predicts the next."""
    shares = dict[int, float]()
    for shape, share in ignored_labels(trace).items():
        for count in (math.prod(shape), math.prod(shape) - math.prod(shape[:-1])):
            shares[count] = max(share, shares.get(count, 0.0))
    for at, loss in enumerate(ops if shares else ()):
        share = shares.get(math.prod(loss.sizes[1]), 0.0) if _matches(OF_LABELS, loss) and len(loss.sizes) > 1 else 0.0
        before = _find_row_makers(ops, at, loss.first) if share else []
        if before:
            first = ops[before[0]]
            rows = math.prod(loss.sizes[1])
            what = (
                f"{first.name} of {_size_text(first.first)} by {_size_text(first.product[1] if first.product else ())}"
                f" computes {rows:,} rows, of which the labels of {100 * share:.0f} % say that the loss ignores them"
            )
            _note(found, what, [*(ops[each] for each in before), loss], 1.0 - share)


def _note_cropped(ops: list[_Op], taken: dict[int, Size], found: dict[str, tuple[list[int], float]]) -> None:
    """Convolutions over whole pictures or series of which a part is cut out right after.

    conv2d [4,24,160,160]x[2,24,3,3] -> slice [4,2,160,160] -> slice [4,2,48,160] -> loss [4,2,48,48]
    """
    for at, cut in enumerate(ops):
        whole, part, after = cut.first, taken.get(cut.row, ()), at + 1
        if cut.name != "slice" or len(whole) < 3 or (at and _is_cut_further(ops[at - 1], taken, whole)):
            continue
        while after < len(ops) and ops[after].name == "slice" and ops[after].first == part:
            part, after = taken.get(ops[after].row, ()), after + 1
        if len(part) != len(whole) or part[:2] != whole[:2] or any(a > b for a, b in zip(part, whole, strict=True)):
            continue
        chain, reach = _find_convolutions(ops, at, whole)
        needed = [min(side + reach, most) for side, most in zip(part[2:], whole[2:], strict=True)]
        kept = math.prod(needed) / math.prod(whole[2:])
        if not chain or kept > _HALF or _is_used_whole(ops, chain, at, after):
            continue
        first, sides = chain[-1], (" x ".join(map(str, each)) for each in (whole[2:], part[2:], needed))
        what = "{} of {} and what follows it compute {} positions, of which `slice` takes {}: these need {}".format(
            first.name, _size_text(first.first), *sides
        )
        _note(found, what, chain, kept)


def _is_cut_further(op: _Op, taken: dict[int, Size], size: Size) -> bool:
    return op.name == "slice" and taken.get(op.row) == size


def _find_convolutions(ops: list[_Op], at: int, size: Size) -> tuple[list[_Op], int]:
    """The ops that make a tensor place by place, going back from a place to the first convolution, which keep its sides
    behind the first two; and how far their filters reach, on both sides together."""
    chain: list[_Op] = []
    last, reach, all_reach = 0, 0, 0
    for op in reversed(ops[:at]):
        if op.first[2:] != size[2:] or len(op.first) != len(size):
            if _matches(VIEWS, op):
                continue
            break
        chain.append(op)
        if _matches(CONVOLVES, op) and len(op.sizes) > 1 and len(op.sizes[1]) == len(size):
            reach += max(op.sizes[1][2:]) - 1
            last, all_reach = len(chain), reach
        elif not (_matches(KEEPS_ROWS, op) or op.name == "batch_norm"):
            break
    return chain[:last], all_reach


def _is_used_whole(ops: list[_Op], chain: list[_Op], at: int, after: int) -> bool:
    """Whether an op takes what one of a chain makes, or the result of all, besides the next of the chain and the ops
    from one place to another that cut it."""
    sizes, own = {op.first for op in chain[:-1]} | {ops[at].first}, {op.row for op in chain}
    others = (*ops[max(at - len(chain) - _NEAR, 0) : at], *ops[after:])
    step = ops[at].step
    return any(op.step == step and op.row not in own and not sizes.isdisjoint(op.sizes) for op in others)


def _sizes_of_gradients(trace: HostTrace) -> dict[int, Size]:
    """The size of the gradient that comes back to each op that takes a part of a tensor, by its row: what it took."""
    work = computing_of(trace)
    ops = np.array([op.row for op in ops_with_sizes(trace) if _matches(PICKS, op)], np.int64)
    if not len(ops):
        return {}
    number = sequence_numbers(trace, ops)
    inside = work.rows[work.backward & (work.number >= 0)]
    own = trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=inside)
    inside, own = inside[own >= 0], own[own >= 0]  # the node itself has its number
    text = trace.stat_strings(stat_names.INPUT_DIMS, rows=inside)
    sizes = {row: sizes_of(trace.strings[row]) if row > 0 else () for row in distinct(text).tolist()}
    of_number = {each: sizes[size][0] for each, size in zip(own.tolist(), text.tolist(), strict=True) if sizes[size]}
    return {row: of_number[each] for row, each in zip(ops.tolist(), number.tolist(), strict=True) if each in of_number}


def _find_row_makers(ops: list[_Op], at: int, size: Size) -> list[int]:
    """The places of the ops that make a tensor row by row, from the first product on, going back from a place; empty
    where there is no product among them."""
    chain: list[int] = []
    last, numbers = 0, math.prod(size)
    for place in range(at - 1, max(at - _NEAR, -1), -1):
        op = ops[place]
        if op.result is not None and op.name == "linear" and math.prod(op.result) == numbers:
            chain.append(place)
            last, size = len(chain), op.first
            numbers = math.prod(size)
        elif op.name == "slice" and len(op.first) > 2 and _numbers_without_last(op.first) == numbers:
            numbers = math.prod(op.first)
        elif _matches(VIEWS, op) or (op.sizes and all(4 * math.prod(each) < numbers for each in op.sizes)):
            continue
        elif _matches(KEEPS_ROWS, op) and math.prod(op.first) == numbers and not _adds_another(op, numbers):
            chain.append(place)
        else:
            break
    return chain[:last][::-1]


def _numbers_without_last(size: Size) -> int:
    """How many numbers a batch of sequences has without the last position of each, which predicts nothing."""
    return math.prod((*size[:-2], size[-2] - 1, size[-1]))


def _adds_another(op: _Op, numbers: int) -> bool:
    """Whether an op takes two tensors of a size, one of which comes from elsewhere."""
    return sum(math.prod(each) == numbers for each in op.sizes) > 1


def _others_take(ops: list[_Op], made: int, at: int, whole: Size, taken: dict[int, Size]) -> bool:
    """Whether more than half of a tensor is taken after it is made, by this op and others near it."""
    numbers, used = math.prod(whole), 0
    for op in ops[made + 1 : at + _NEAR]:
        if whole not in op.sizes or _matches(VIEWS, op):
            continue
        used += math.prod(taken[op.row]) if op.row in taken else numbers
    return used > _HALF * numbers


def repeated_rows(trace: HostTrace) -> TensorWork | None:
    """Products over rows that were repeated just before, so that equal rows are computed again and again."""
    ops, found = ops_with_sizes(trace), dict[str, tuple[list[int], float]]()
    for at, op in enumerate(ops):
        if not _matches(REPEATS, op) or len(op.first) < 2:
            continue
        chain: list[_Op] = []
        size = op.first[-1:]
        larger = 0
        for other in ops[at + 1 : at + _NEAR]:
            if _matches(VIEWS, other):
                continue
            times, rest = divmod(math.prod(other.first), max(math.prod(op.first), 1)) if not chain else (larger, 0)
            fits = other.first[-1:] == size and not rest and times >= 2
            if not fits or (chain and math.prod(other.first[:-1]) != math.prod(chain[-1].first[:-1])):
                break
            if other.name == "linear" and other.result:
                size, larger = other.result[-1:], times
            elif not _matches(KEEPS_ROWS, other) or _adds_another(other, math.prod(other.first)):
                break
            larger = larger or times
            chain.append(other)
        if larger and any(each.name == "linear" for each in chain):
            what = f"`{op.name}` makes {larger:,} equal rows of each of {_size_text(op.first)} before {chain[0].name}"
            _note(found, what, [op, *chain], 1.0 / larger)
    return _largest(trace, found)


def spread_pairs(trace: HostTrace) -> TensorWork | None:
    """Tensors of all pairs of the rows of two small ones, which are summed up after."""
    ops, found = ops_with_sizes(trace), dict[str, tuple[list[int], float]]()
    for at, op in enumerate(ops):
        if op.name not in ("sub", "mul", "rsub") or len(op.sizes) < 2:
            continue
        pairs = _broadcast(op.sizes[0], op.sizes[1])
        if pairs is None or len(pairs) < 3 or math.prod(pairs) < _TIMES * sum(map(math.prod, op.sizes[:2])):
            continue
        chain = [op]
        for other in ops[at + 1 : at + _NEAR]:
            if other.first != pairs:
                if _matches(VIEWS, other):
                    continue
                break
            chain.append(other)
            if _matches(REDUCES, other):
                word = "products" if op.name == "mul" else "differences"
                what = f"writes the {word} of all pairs {_size_text(pairs)} of {_size_text(op.sizes[0])} and"
                _note(found, f"{what} {_size_text(op.sizes[1])} before it sums them (`{other.name}`)", chain, 0.0)
                break
    return _largest(trace, found)


def _broadcast(one: Size, other: Size) -> Size | None:
    """The size of two tensors spread over each other, where each has to be; None otherwise."""
    length = max(len(one), len(other))
    padded = [(1,) * (length - len(each)) + each for each in (one, other)]
    if not one or not other or any(a != b and 1 not in (a, b) for a, b in zip(*padded, strict=True)):
        return None
    spread = tuple(max(a, b) for a, b in zip(*padded, strict=True))
    return spread if all(each != spread for each in padded) else None


def product_order(trace: HostTrace) -> TensorWork | None:
    """Two products of three matrices, of which the other order takes less than half of the multiplications, also where
    the first is scaled and added to another matrix, as a change of low rank to a weight.

        mm [1920,8]x[8,640] -> mul, add [1920,640] -> linear [64,640]x[1920,640]     64 rows by two thin matrices
    """
    ops, found = ops_with_sizes(trace), dict[str, tuple[list[int], float]]()
    sums = set[str]()
    for at, op in enumerate(ops):
        if op.product is None or op.result is None or op.name == "linear" or len(op.result) < 2:
            continue
        made = {op.result, (*op.result[:-2], *op.result[:-3:-1])}  # as it is, or turned round
        chain, is_added = [op], op.name == "addmm" and op.first in made
        for other in ops[at + 1 : at + _NEAR]:
            if _matches(VIEWS, other):
                continue
            added = _adds_or_scales(other, made)
            if added is None:
                kept = _share_of_other_order(op, other, made, is_added)
                if kept is not None and kept < _HALF:
                    what = _describe_order(op, other, made, is_added, kept)
                    _note(found, what, chain if is_added else [*chain, other], kept)
                    sums |= {what} if is_added else set()
                break
            chain.append(other)
            is_added |= added
    largest = _largest(trace, found)
    return largest and replace(largest, is_part=largest.what in sums)


def products_of_larger_side(trace: HostTrace) -> TensorWork | None:
    """A matrix times one that is as wide as it is high, that squared, and times such a matrix again, as p(A B) A with a
    polynomial p, where the first has more rows than columns: A p(B A) is the same with smaller squares.

        mm [576,144]x[144,576] -> mul -> mm [576,576]x[576,576] -> add -> mm [576,576]x[576,144]      144 instead of 576
    """
    rows, kept, spent, largest = list[I64](), 0, 0, (Size(), Size())
    for of_updates in (False, True):
        traced = _read(trace, of_updates=True) if of_updates else _traced(trace)
        for at, op in enumerate(traced.ops):
            if op.product is None or len(op.product[0]) != 2 or op.product[1] != op.product[0][::-1]:
                continue
            n, k = op.product[0]
            chain = _squares_after(traced.ops[at : at + _NEAR], n, k) if n > k else []
            if not chain:
                continue
            squares = sum(each.product == ((n, n), (n, n)) for each in chain)
            rows += [traced.equal[each.row] for each in chain]
            kept, spent = kept + k * k * (2 * n + squares * k), spent + n * n * (2 * k + squares * n)
            largest = max(largest, op.product)
    if not rows or kept >= _HALF * spent:
        return None
    one, two = map(_size_text, largest)
    less = f"squares of the smaller side take {100 * kept / spent:.0f} % of that"
    what = f"multiplies {one} by {two}{SQUARED}, and that with {one}; {less}"
    return TensorWork(with_backward(trace, distinct(np.concatenate(rows))), kept / spent, what)


def _squares_after(ops: list[_Op], n: int, k: int) -> list[_Op]:
    """The ops from a product of [n,n] to that with [n,k], if the former is squared between them and else only scaled
    and added up; else none."""
    chain, is_squared = ops[:1], False
    for other in ops[1:]:
        if _matches(VIEWS, other) or (n, n) not in other.sizes:
            continue
        if other.product == ((n, n), (n, n)):
            is_squared = True
        elif other.product == ((n, n), (n, k)):
            return [*chain, other] if is_squared else []
        elif _adds_or_scales(other, {(n, n)}) is None:
            return []
        chain.append(other)
    return []


def _adds_or_scales(op: _Op, made: set[Size]) -> bool | None:
    """Whether an op adds a matrix to one of some sizes; False if it takes a number instead, None for other ops."""
    matrices = [each for each in op.sizes if each in made]
    others = math.prod(math.prod(each) for each in op.sizes if each not in made)
    if not matrices or others != 1 or not _matches(ADDS_OR_SCALES, op):
        return None
    if len(matrices) == 1:
        return False
    return None if op.name.startswith(("mul", "div")) else True


def _describe_order(op: _Op, other: _Op, made: set[Size], is_added: bool, kept: float) -> str:
    one, two, third = map(_size_text, (*(op.product or ((), ())), _third_operand(made, other)))
    added = ADDED if is_added else ""
    rest = "multiplying with one after the other takes" if is_added else "the other order takes"
    return f"multiplies {one} by {two}{added}, then with {third}; {rest} {100 * kept:.0f} % of that"


def _third_operand(made: set[Size], other: _Op) -> Size:
    one, two = other.product or ((), ())
    return two if one in made else one


def _share_of_other_order(op: _Op, other: _Op, made: set[Size], is_added: bool) -> float | None:
    """The multiplications of A (B C) over those of (A B) C, or the reverse; where A B is added to a matrix, over those
    of A B alone.  None where the sizes do not fit."""
    if op.product is None or other.product is None or op.result is None:
        return None
    (one, two), (first, second) = op.product, other.product
    batch = op.result[:-2]
    if len(one) < 2 or any(each[:-2] not in ((), batch) for each in (one, two)):
        return None
    (a, b), c = one[-2:], two[-1]
    if is_added and 2 * b > min(a, c):
        return None  # activations are added to others and multiplied further, too
    if first in made and second not in made and other.name != "linear" and not is_added:
        d = second[-1]
    elif second in made and first not in made and (not batch or first[:-2] == batch):
        d = math.prod(first[:-1]) // math.prod(batch)
    else:
        return None
    return b * d * (a + c) / (a * b * c + (0 if is_added else a * c * d))


def mostly_zero(trace: HostTrace) -> TensorWork | None:
    """Products with a matrix of a size of which all in the program are nearly empty."""
    empty, found = empty_matrices(trace), dict[str, tuple[list[int], float]]()
    for op in ops_with_sizes(trace) if empty else ():
        for size in {*(op.product or ())} & empty.keys():
            _note(found, describe_empty(_size_text(size), empty[size]), [op], kept_of_empty(empty[size]))
    return _largest(trace, found)


def equal_work(trace: HostTrace) -> TensorWork | None:
    """What a step computes again from the same tensors, as far as the recording tells which tensors ops take."""
    ops = ops_with_sizes(trace) if tensors_are_known(trace) else []
    if not ops:
        return None
    values = _values(trace)
    known = [at for at, number in enumerate(values.number) if number >= 0 and not _matches(VIEWS, ops[at])]
    again = [at for at in known if values.again[at]]
    if not again:
        return None
    length = _durations(trace, ops)
    longest = max(again, key=lambda at: length[at])
    first = ops[longest]
    times = sum(values.number[at] == values.number[longest] for at in known if ops[at].step == first.step)
    others = len({(ops[at].step, values.number[at]) for at in again if ops[at].step == first.step}) - 1
    more = "1 more op" if others == 1 else f"{others} more ops"
    also = f"; {more} compute{'s' if others == 1 else ''} the same again" if others else ""
    what = f"`{first.name}`{_describe_size(first)} runs {times} times per step on equal tensors{also}"
    return TensorWork(alike_with_backward(trace, [ops[at].row for at in again]), 0.0, what)


def constant_work(trace: HostTrace) -> TensorWork | None:
    """What every step computes of tensors that nothing writes, and of nothing else."""
    if not tensors_are_known(trace):
        ops = ops_with_sizes(trace)
        return _describe_constant(trace, ops, same_by_sizes(trace, ops, _traced(trace).equal))
    ops = ops_with_sizes(trace)
    if not ops:
        return None
    values = _values(trace)
    constant = [at for at, is_one in enumerate(values.constant) if is_one and values.number[at] >= 0]
    same = {
        at for at, is_same in zip(constant, _same_in_all_steps(trace, [ops[at].row for at in constant]), strict=True)
        if is_same
    }  # fmt: skip
    wanted = [
        at for at in sorted(same)
        if values.takes_tensors[at] and not _matches(VIEWS, ops[at]) and not ops[at].name.endswith("_")
        and values.feeding([at]) <= same
    ]  # fmt: skip
    return _describe_constant(trace, ops, wanted)


def _describe_constant(trace: HostTrace, ops: list[_Op], wanted: list[int]) -> TensorWork | None:
    if not wanted:
        return None
    length = _durations(trace, ops)
    longest = ops[max(wanted, key=lambda at: length[at])]
    what = f"`{longest.name}`{_describe_size(longest)} computes the same in every step: nothing writes what it takes"
    return TensorWork(alike_with_backward(trace, [ops[at].row for at in wanted]), 0.0, what)


def grown_prefix(trace: HostTrace) -> TensorWork | None:
    """Ops with weights that run over some positions, then over one more from the first one on, and so on: in each round
    once in each layer with weights of that size.

    In a training each step has rounds of its own, as its batches may be of any length; where nothing is trained, a
    round may be a step."""
    trains = len(backward_runs(trace)) > 0
    chains: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    found: list[_Prefix] = []
    ops = ops_with_sizes(trace)
    for at, (before, op) in enumerate(itertools.pairwise([*ops[:1], *ops])):
        whole, weights = _sequence_taken(before, op)
        if len(whole) != 3 or not any(len(each) > 1 for each in weights):  # batch, positions, columns
            continue
        chain = chains.setdefault((op.step if trains else 0, op.name, whole[0], whole[2], weights), [])
        if chain and whole[1] - chain[-1][0] not in (0, 1):
            found += _prefix_of(ops, chain)
            chain.clear()
        chain.append((whole[1], at))
    for chain in chains.values():
        found += _prefix_of(ops, chain)
    if not found:
        return None
    largest = max(found, key=lambda each: each.computed)
    numbers = {(each.low, each.high) for each in found}
    low, high = largest.low, largest.high
    what = (
        f"computes positions again: its layers run over {low}, {low + 1}, ... {high} positions from the first one on,"
        f" {largest.computed:,} instead of {largest.needed:,}{', and so for other sequences' * (len(numbers) > 1)}"
    )
    kept = sum(each.needed for each in found) / sum(each.computed for each in found)
    rows = sorted({row for each in found for row in each.rows})
    return TensorWork(alike_with_backward(trace, rows), kept, what)


class _Prefix(NamedTuple):
    """A sequence that grows by one position in each round, from low to high: how many positions the rounds compute, how
    many are enough, and the rows of the ops that do it."""

    low: int
    high: int
    computed: int
    needed: int
    rows: list[int]


def _sequence_taken(before: _Op, op: _Op) -> tuple[Size, tuple[Size, ...]]:
    """The size of what an op takes, and those of its other tensors: of a product whose rows are all positions of all
    rows of a batch, as the view right before it shows, that of what is viewed.

    view [1,82,192] -> addmm [576]+[82,192]x[192,576]
    """
    rows, weights = op.product or ((), ())
    is_flat = len(rows) == 2 and len(before.first) == 3 and _matches(VIEWS, before)
    if is_flat and (math.prod(before.first[:2]), before.first[2]) == rows:
        return before.first, (weights,)
    return op.first, op.sizes[1:]


def _prefix_of(ops: list[_Op], chain: list[tuple[int, int]]) -> list[_Prefix]:
    """The sequence of which ops with weights run over so many positions, each with its place; none of few rounds."""
    rounds = [(length, [at for _, at in each]) for length, each in itertools.groupby(chain, lambda each: each[0])]
    if len(rounds) < _TIMES:
        return []
    layers = min(len(places) for _, places in rounds)
    (low, first), (high, last) = rounds[0], rounds[-1]
    # What came before the first round of a step has its own steps.
    needed = high if ops[first[0]].step == ops[last[0]].step else len(rounds)
    # More in the last round are of what computes with the whole sequence afterwards.
    wide = [at for _, places in rounds for at in places[:layers]]
    for length, places in rounds:  # what lies between the layers, as attention and activations
        between = range(places[0], places[layers - 1])
        wide += [at for at in between if len(ops[at].first) > 2 and length in ops[at].first[1:]]
    rows = [ops[at].row for at in wide]
    return [_Prefix(low, high, sum(length for length, _ in rounds), needed, rows)]


def encoded_again(trace: HostTrace) -> TensorWork | None:
    """Layers that run over all positions of something else each time that a sequence grows by one position.

    linear [4,64,128]x[512,128] ... cat [4,1],[4,1]    linear [4,64,128]x[512,128] ... cat [4,2],[4,1]    linear ...
    """
    ops, found = ops_with_sizes(trace), dict[str, tuple[list[int], float]]()
    for rounds in _growing_rounds(ops):
        wide = [{(op.name, op.sizes) for op in ops[begin:end] if _is_over_positions(op)} for begin, end in rounds]
        same = set.intersection(*wide)
        if len(same) == 1 and next(iter(same))[0] == "linear":
            continue  # keys and values that attention makes of what was encoded once
        for name, sizes in same:
            runs = [op for begin, end in rounds for op in ops[begin:end] if (op.name, op.sizes) == (name, sizes)]
            what = f"runs `{name}` over {_size_text(sizes[0])} again for each of {len(rounds)} positions of a sequence"
            found.setdefault(what, ([], 1.0 / len(rounds)))[0].extend(op.row for op in runs)
    if not found:
        return None
    length = dict(zip((op.row for op in ops), _durations(trace, ops), strict=True))
    longest = max(found, key=lambda what: sum(length[row] for row in found[what][0]))
    rows = sorted({row for rows, _ in found.values() for row in rows})
    return TensorWork(alike_with_backward(trace, rows), found[longest][1], longest, is_part=True)


def rows_that_generate(trace: HostTrace) -> I64:
    """The ops from the first to the last that joins one more position to a sequence: rows of events, by time."""
    ops = ops_with_sizes(trace)
    inside = np.zeros(len(ops), np.bool_)
    for rounds in _growing_rounds(ops):
        inside[rounds[0][0] : rounds[-1][1]] = True
    return np.array([ops[at].row for at in np.flatnonzero(inside).tolist()], np.int64)


def generates(trace: HostTrace) -> bool:
    """Whether sequences grow position by position for most of the time of the steps."""
    steps = whole_steps(trace)
    if not trace.has_stat(stat_names.INPUT_DIMS) or not len(steps.number):
        return False
    rows = computing_of(trace).rows
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    joins = [type_ for type_, name in zip(types, type_names(trace, types), strict=True) if strip_library(name) == "cat"]
    rows = rows[np.isin(trace.events.type[rows], joins)]
    rows = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]
    text = trace.stat_strings(stat_names.INPUT_DIMS, rows=rows)
    sizes = {row: sizes_of(trace.strings[row]) if row > 0 else () for row in distinct(text).tolist()}
    told = zip(rows.tolist(), text.tolist(), steps.label[rows].tolist(), strict=True)
    ops = [_Op(row, "cat", sizes[size], step) for row, size, step in told]
    rounds = [(ops[places[0][0]].row, ops[places[-1][1]].row) for places in _growing_rounds(ops)]
    first, last = np.array(rounds, np.int64).reshape(-1, 2).T
    begin, end = trace.events.start_ps[first], trace.events.start_ps[last]
    return bool(2 * Spans.union(begin, end).total >= observed_time(trace).total)


def _growing_rounds(ops: list[_Op]) -> list[list[tuple[int, int]]]:
    """The places between two ops that join one more position to a sequence, for each sequence that grows often."""
    sequences: dict[tuple[object, ...], list[list[int]]] = {}
    last = dict[tuple[object, ...], int]()
    for at, op in enumerate(ops):
        whole, one = ((*op.sizes, (), ()))[:2]
        sides = [*enumerate(zip(whole, one, strict=False))]
        axes = [axis for axis, (a, b) in sides if a != b] or [axis for axis, (_, b) in sides if b == 1]
        if op.name != "cat" or len(whole) != len(one) or len(axes) != 1 or one[axes[0]] != 1:
            continue
        key = (axes[0], *whole[: axes[0]], -1, *whole[axes[0] + 1 :])
        if whole[axes[0]] == last.get(key, -1) + 1:
            sequences[key][-1].append(at)
        elif whole[axes[0]] != last.get(key):
            sequences.setdefault(key, []).append([at])
        last[key] = whole[axes[0]]
    every = [each for runs in sequences.values() for each in runs if len(each) > _FEWEST_ROUNDS]
    return [[*itertools.pairwise(each)] for each in every]


def _is_over_positions(op: _Op) -> bool:
    """Whether an op multiplies several positions of each row of a batch with weights."""
    if _matches(CONVOLVES, op):
        return len(op.first) > 2
    has_weights = any(len(each) == 2 and op.first[-1:] and op.first[-1] in each for each in op.sizes[1:])
    return len(op.first) == 3 and op.first[1] > 1 and has_weights


def feeds_training(trace: HostTrace) -> Mask | None:
    """Which ops of `computing_of` compute what flows into trained ops, or may, without being trained themselves; None
    where the recording does not tell."""
    ops = ops_with_sizes(trace) if tensors_are_known(trace) else []
    values, work = _values(trace) if ops else None, computing_of(trace)
    if values is None or not any(values.takes_tensors):
        return None
    learned = _chosen(ops, work.rows[work.learned])
    trained = [at for at, op in enumerate(ops) if op.row in learned]
    feeding = sorted(values.feeding(trained) - set(trained))
    equal = _traced(trace).equal
    rows = [equal[ops[at].row] for at in feeding]
    return inside_any(trace, work.rows, np.concatenate(rows)) if rows else np.zeros(len(work), np.bool_)


def _values(trace: HostTrace) -> Values:
    return trace.derived("values of ops", lambda trace: values_of(trace, ops_with_sizes(trace)))


def _durations(trace: HostTrace, ops: list[_Op]) -> list[int]:
    found: list[int] = trace.events.duration_ps[np.array([op.row for op in ops], np.int64)].tolist()
    return found


def _describe_size(op: _Op) -> str:
    size = max(op.sizes, key=math.prod, default=())
    return f" of {_size_text(size)}" if size else ""


def alike_with_backward(trace: HostTrace, rows: list[int]) -> I64:
    """Those of `ops_with_sizes` with some rows and their like in all steps, and the backward work that belongs to them:
    rows of events."""
    equal = _traced(trace).equal
    like = [equal[row] for row in rows]
    return with_backward(trace, distinct(np.concatenate(like))) if like else np.empty(0, np.int64)


def _same_in_all_steps(trace: HostTrace, rows: list[int]) -> list[bool]:
    """Whether all steps have the ops like each, with the same lasting tensors and the same numbers; not if less than
    three have."""
    equal, steps = _traced(trace).equal, whole_steps(trace)
    plain = trace.stat_strings(stat_names.CONCRETE_INPUTS)
    texts = trace.stat_strings(stat_names.INPUT_TENSORS)
    lasting = {row: re.findall(r"c\S+", trace.strings[row]) for row in distinct(texts[texts > 0]).tolist()}
    found = []
    for row in rows:
        like = equal[row]
        told = like[texts[like] >= 0]  # operands of the first ops of a long capture are recorded alone
        numbers = {tuple(lasting.get(each, ())) for each in texts[told].tolist()}
        found.append(
            len(like) >= max(_FEWEST_STEPS, 0.9 * len(steps.number))
            and len(told) >= _FEWEST_STEPS
            and len(numbers) == 1
            and len(distinct(plain[like])) == 1
        )
    return found


def dead_branch(trace: HostTrace) -> TensorWork | None:
    """Forward ops that autograd records for a backward pass, that none reaches, and whose result no later op takes.

    An op that records has a number of its own.  A target that is detached, a class that is picked, a value that is read
    are taken by an op, which has an operand of the size of the result.
    """
    work, ops = computing_of(trace), ops_with_sizes(trace)
    if not work.learned.any():
        return None
    passed = is_passed_over(trace, work.rows, work.number, ~work.backward)
    idle = _chosen(ops, work.rows[~work.learned & ~passed & ~work.backward & (work.number >= 0)])
    found: dict[str, tuple[list[int], float]] = {}
    at = 0
    while at < len(ops):
        begin = at
        while at < len(ops) and ops[at].row in idle:
            at += 1
        chain = ops[begin:at]
        if chain and at < len(ops):
            last = chain[-1]
            after = [size for op in ops[at : at + _NEAR] if op.step == last.step for size in op.sizes]
            if _is_size_known(last) and not any(_may_be_result(last, size) for size in after):
                _note(found, f"ends in {last.name}{_describe_size(last)}, whose result no op takes", chain, 0.0)
        at = max(at, begin + 1)
    return _largest(trace, found)


def _is_size_known(op: _Op) -> bool:
    """Whether it can be told from sizes whether another op takes the result of one."""
    keeps = _matches(KEEPS_ROWS, op) and op.name != "glu" and all(each in ((), op.first) for each in op.sizes)
    return op.result is not None or bool(op.first and (keeps or _matches(CONVOLVES, op)))


def _may_be_result(op: _Op, size: Size) -> bool:
    """Whether a tensor of a size may be the result of an op; that of a convolution has the batch and as many axes."""
    if _matches(CONVOLVES, op):
        return len(size) == len(op.first) and size[0] == op.first[0]
    return math.prod(size) == math.prod(op.result or op.first)


FINDERS: dict[str, Callable[[HostTrace], TensorWork | None]] = {
    "picked_after": picked_after,
    "repeated_rows": repeated_rows,
    "spread_pairs": spread_pairs,
    "product_order": product_order,
    "mostly_zero": mostly_zero,
    "dead_branch": dead_branch,
    "equal_work": equal_work,
    "constant_work": constant_work,
    "grown_prefix": grown_prefix,
    "encoded_again": encoded_again,
}
