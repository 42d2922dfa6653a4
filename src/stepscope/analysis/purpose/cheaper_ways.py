"""Ops of PyTorch of which the sizes show that another way costs a fraction.

conv1d [16,1,17999]x[1,1,2000]                     a filter of 2,000 numbers: Fourier transforms multiply less
argsort [8,24576] -> argsort [8,24576] -> lt       ranks that are compared: a threshold needs no order
svdvals [300,300] -> select [300]                  one of 300 values
index [128,3,96,96] -> conv2d [16,3,96,96]x...     rows that the program keeps, through layers that nothing trains
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from stepscope.analysis.purpose.computing import computing_of, update_ranges
from stepscope.analysis.purpose.forward import forward_only_of
from stepscope.analysis.purpose.loops import FEW_NUMBERS, usual_size
from stepscope.analysis.purpose.sizes import Size
from stepscope.analysis.purpose.tensors import TensorWork, alike_with_backward, ops_with_sizes
from stepscope.analysis.purpose.values import TracedOp
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, median
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import (
    COMPARES,
    CONVOLVES,
    DRAWS,
    FACTORS,
    KEEPS_ROWS,
    ORDERS_ALL,
    PICKS,
    VIEWS,
    multiplies,
)
from stepscope.vocabulary.patterns import Pattern

DECOMPOSES, COLUMN_TIMES_ROW = "decomposes ", ", if it is a column times a row"  # in the fact: what to do depends on it
_NEAR = 6  # ops from a result to who takes it
_HALF = 0.5  # of a result: taking no less leaves little to save
_FEWEST_VALUES = 8  # of a decomposition, of which one or two are taken
_LONG = 64  # numbers of a filter: of fewer a convolution is the fast way
# A transform of n numbers takes about 2.5 n log2 n multiplications, and libraries reach about a quarter of the speed
# at which they convolve: measured on one core, 2,000 numbers over 16 rows of 16,000: 287 ms, by transforms 6 ms.
_OF_TRANSFORM, _SLOWER = 2.5, 4.0
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")  # of which PyTorch has a fused form on a processor
_SEVERAL = 3  # passes: with fewer, one saves little
_NUMBERS = Pattern(r'"(-?\d+)"')
_LIST = Pattern(r'"\[([\d, ]*)\]"')


@dataclass(frozen=True)
class _Ops:
    """The outermost forward ops of the steps that differ, with the text of the operands that are no tensors, and which
    of them a backward pass follows."""

    ops: Sequence[TracedOp]
    plain: list[str]
    learned: Mask


def _read(trace: HostTrace) -> _Ops:
    ops, work = ops_with_sizes(trace), computing_of(trace)
    rows = np.array([op.row for op in ops], np.int64)
    texts = trace.stat_strings(stat_names.CONCRETE_INPUTS, rows=rows).tolist()
    learned = np.isin(rows, work.rows[work.learned])
    return _Ops(ops, [trace.strings[row] if row > 0 else "" for row in texts], learned)


def _read_once(trace: HostTrace) -> _Ops:
    return trace.derived("ops with plain operands", _read)


def _first(op: TracedOp) -> Size:
    return op.sizes[0] if op.sizes else ()


def _text(size: Size) -> str:
    return "[" + ",".join(map(str, size)) + "]"


def long_filters(trace: HostTrace) -> TensorWork | None:
    """Convolutions with a filter so long that other ways multiply less: in one dimension Fourier transforms, in two,
    of a filter that nothing trains, two of one dimension, if it is a column times a row."""
    read, found = _read_once(trace), dict[str, list[int]]()
    for at, op in enumerate(read.ops):
        if CONVOLVES.fullmatch(op.name) is None or len(op.sizes) < 2 or len(op.sizes[1]) < 3:
            continue
        image, kernel = op.sizes[0], op.sizes[1]
        strides = _LIST.search(read.plain[at])
        is_whole = strides is not None and {*strides[1].split(", ")} <= {"1"}
        if len(image) != len(kernel) or math.prod(kernel[2:]) < _LONG or not is_whole:
            continue
        if len(kernel) == 3:
            other = "transforms of Fourier's multiply less"
            is_longer = _transform_share(image, kernel) > _HALF / 2
        else:
            other = f"two filters of {' and '.join(map(str, kernel[2:]))} numbers{COLUMN_TIMES_ROW}, less"
            is_longer = bool(read.learned[at]) or kernel[1] > 1 or len(kernel) > 4
        if not is_longer:
            what = (
                f"convolves {_text(image)} with a filter of {math.prod(kernel[2:]):,} numbers, {_text(kernel)}: {other}"
            )
            found.setdefault(what, []).append(op.row)
    return _longest(trace, found)


def _transform_share(image: Size, kernel: Size) -> float:
    """What a convolution by Fourier transforms costs, over what it costs number by number."""
    rows, outputs, inputs, taps = image[0], kernel[0], kernel[1], kernel[2]
    length = image[2] + taps
    transforms = (rows * image[1] + outputs * inputs + rows * outputs) * _OF_TRANSFORM * length * math.log2(length)
    transforms += 2 * rows * outputs * inputs * length
    return _SLOWER * transforms / max(rows * outputs * inputs * taps * (image[2] - taps + 1), 1)


def part_of_order(trace: HostTrace) -> TensorWork | None:
    """Rows that are put in order, or matrices that are decomposed, of which a part is taken right after."""
    return trace.derived("part of order", _find_part)


def _find_part(trace: HostTrace) -> TensorWork | None:
    read, found = _read_once(trace), dict[str, list[int]]()
    for at, op in enumerate(read.ops):
        if ORDERS_ALL.fullmatch(op.name):
            what, rows = _part_of_sorted(read, at)
        elif FACTORS.fullmatch(op.name) and len(_first(op)) > 1:
            what, rows = _part_of_values(read, at)
        else:
            continue
        if what:
            found.setdefault(what, []).extend(rows)
    return _longest(trace, found)


def _part_of_sorted(read: _Ops, at: int) -> tuple[str, list[int]]:
    op, rows = read.ops[at], [read.ops[at].row]
    whole = _first(op) or _listed(read.plain[at])
    after = list(_after(read, at))
    # The order of an order is the rank of each: who compares that selects by a threshold.
    again = next((each for each, other in after if _is_alike(other, op)), None)
    if again is not None and any(
        COMPARES.fullmatch(each.name) and whole in each.sizes for _, each in _after(read, again)
    ):
        what = f"puts {_text(whole)} in order (`{op.name}`) and takes the rank of each, which is only compared"
        return what, [*rows, read.ops[again].row]
    for place, other in after:
        numbers = [int(each) for each in _NUMBERS.findall(read.plain[place])]
        if other.name not in ("slice", "narrow") or _first(other) != whole or len(numbers) < 3:
            continue
        axis, begin, end = numbers[:3]
        if not -len(whole) <= axis < len(whole) or begin < 0:
            continue
        taken = min(end, whole[axis]) - begin if end >= 0 else whole[axis] + end - begin
        if 0 < taken <= _HALF * whole[axis]:
            return f"puts {_text(whole)} in order (`{op.name}`), of which {taken:,} of {whole[axis]:,} are taken", rows
    return "", []


def _listed(plain: str) -> Size:
    """The size of what an op makes of a number, as `randperm(1000)`."""
    numbers = _NUMBERS.findall(plain)
    return (int(numbers[0]),) if numbers else ()


def _is_alike(one: TracedOp, other: TracedOp) -> bool:
    return (one.name, _first(one)) == (other.name, _first(other))


def _part_of_values(read: _Ops, at: int) -> tuple[str, list[int]]:
    op = read.ops[at]
    values = (*_first(op)[:-2], min(_first(op)[-2:]))
    for _, other in _after(read, at):
        if values not in other.sizes or VIEWS.fullmatch(other.name):
            continue
        if other.name == "select" and values[-1] >= _FEWEST_VALUES:
            return f"{DECOMPOSES}{_text(_first(op))} (`{op.name}`), and takes one of its {values[-1]:,} values", [
                op.row
            ]
        return "", []
    return "", []


def _after(read: _Ops, at: int) -> Iterator[tuple[int, TracedOp]]:
    """The ops of a step right after a place."""
    for place in range(at + 1, min(at + 1 + _NEAR, len(read.ops))):
        if read.ops[place].step == read.ops[at].step:
            yield place, read.ops[place]


def rows_encoded_again(trace: HostTrace) -> TensorWork | None:
    """Layers that nothing trains, over rows of a tensor that the program keeps: what they give for a row is the same
    each time that a batch has it."""
    only = forward_only_of(trace)
    read = _read_once(trace) if only is not None else None
    if only is None or read is None:
        return None
    work = computing_of(trace)
    alone = np.isin(
        np.array([op.row for op in read.ops], np.int64), work.rows[only.every & ~only.measures & ~only.late]
    )
    kept, weights, found = _sizes_kept(read), _trained_weights(read), dict[str, list[int]]()
    for at, op in enumerate(read.ops):
        whole = _first(op)
        if op.name not in ("index", "index_select") or whole not in kept:
            continue
        chain = list(_chain_of_rows(read, alone, at, whole))
        heavy = [read.ops[each] for each in chain if multiplies(read.ops[each].name)]
        # Weights that all have sizes that are trained may be copies of those, which change with them.
        if any(size not in weights for each in heavy for size in each.sizes[1:2]):
            what = f"takes rows of {_text(whole)}, which the program keeps, through layers that nothing trains"
            found.setdefault(what, []).extend(read.ops[each].row for each in chain)
    return _longest(trace, found)


def _sizes_kept(read: _Ops) -> set[Size]:
    """The sizes of tensors of which rows are taken, and that no op writes or takes in another way."""
    picked = {_first(op) for op in read.ops if op.name in ("index", "index_select") and len(_first(op)) > 1}
    others = {
        size
        for op in read.ops
        if op.name not in ("index", "index_select") and VIEWS.fullmatch(op.name) is None
        for size in op.sizes
    }
    return picked - others


def _trained_weights(read: _Ops) -> set[Size]:
    return {
        op.sizes[1]
        for op, learned in zip(read.ops, read.learned.tolist(), strict=True)
        if learned and multiplies(op.name) and len(op.sizes) > 1
    }


def _chain_of_rows(read: _Ops, alone: Mask, at: int, whole: Size) -> Iterator[int]:
    """The places of the ops that compute with the rows alone, from the first layer on; nothing where chance, or the
    other rows of a batch, change the result."""
    rest, begun = math.prod(whole[1:]), False
    for place in range(at + 1, len(read.ops)):
        op = read.ops[place]
        if op.step != read.ops[at].step:
            return
        mine = bool(_first(op)) and _first(op)[0] > 0 and math.prod(_first(op)) == rest * _first(op)[0]
        is_random = DRAWS.fullmatch(op.name) and PICKS.fullmatch(op.name) is None and _acts(read, place)
        if not begun:
            if multiplies(op.name) and mine and alone[place]:
                begun = True
                yield place
            elif not (VIEWS.fullmatch(op.name) or (KEEPS_ROWS.fullmatch(op.name) and mine and not is_random)):
                return
        elif is_random or read.learned[place] or not (alone[place] or VIEWS.fullmatch(op.name)):
            return
        elif not (op.name == "batch_norm" and _acts(read, place)):
            yield place


def _acts(read: _Ops, at: int) -> bool:
    """Whether a dropout or a batch norm is in training, by its operands; any other op acts as it is."""
    switched = "dropout" in read.ops[at].name or read.ops[at].name == "batch_norm"
    return not switched or '"True"' in read.plain[at]


def update_in_passes(trace: HostTrace) -> TensorWork | None:
    """An optimizer's update that goes over large parameters several times, op by op; PyTorch has one op for it."""
    calls, work = update_ranges(trace), computing_of(trace)
    rows = work.rows[work.updates & work.outer]
    if not len(calls) or not len(rows) or is_device_work(trace).any() or usual_size(trace, rows) <= FEW_NUMBERS:
        return None
    name = trace.name_of(int(calls[trace.events.duration_ps[calls].argmax()])).rpartition("#")[2]
    ops, count = np.unique(trace.event_names(rows), return_counts=True)
    passes = len(rows) / median(count)
    if (
        name.partition(".")[0] not in _FUSED
        or passes < _SEVERAL
        or any("_fused_" in trace.strings[int(op)] for op in ops)
    ):
        return None
    what = (
        f"is {name}, which goes over each parameter {passes:.0f} times, op by op ({len(rows) / len(calls):,.0f} ops);"
        " fused=True goes over it once"
    )
    return TensorWork(rows, 1.0 / passes, what)


def _longest(trace: HostTrace, found: dict[str, list[int]]) -> TensorWork | None:
    """Of what was found, by its words, that which takes longest in all steps, with its backward work."""
    works = [TensorWork(alike_with_backward(trace, rows), 0.0, what) for what, rows in found.items()]
    return max(works, key=lambda each: _length(trace, each.rows), default=None)


def _length(trace: HostTrace, rows: I64) -> int:
    return int(trace.events.duration_ps[rows].sum())
