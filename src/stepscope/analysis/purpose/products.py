"""Products of compiled programs that the shapes of their operands show to be more than their result needs.

    up [1920,8] --+
                   dot [1920,640] -> multiply, add W [1920,640] -> dot with 64 rows
    down [8,640] -+

The two thin matrices, one after the other, take a fraction of the product that makes the wide one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from stepscope.analysis.purpose.compiled import Compiled, ProgramWork, join, products_of, program_work
from stepscope.analysis.purpose.computing import computing_of
from stepscope.analysis.purpose.flow import SAME_VALUE
from stepscope.analysis.trace.program_facts import empty_matrices, graph_products
from stepscope.model import HostTrace
from stepscope.model.arrays import used_rows
from stepscope.vocabulary.jax import is_backward
from stepscope.vocabulary.lookup import type_names

_HALF = 0.5  # of the multiplications: with more little is saved
_SPARSE_TIMES = 5  # measured: CSR by 7 to 256 columns takes 1 to 4.2 times its share of a dense product, 6 of 0.5 %
_DEEPEST = 8  # ops between two products
_MOST_LAYERS = 200  # ops between rows that are repeated and a product
_IN_ORDER = SAME_VALUE - {"transpose"}
_NUMBER_BY_NUMBER = frozenset({
    "abs", "add", "compare", "cosine", "divide", "erf", "exponential", "exponential-minus-one", "log", "log-plus-one",
    "logistic", "maximum", "minimum", "multiply", "negate", "power", "rsqrt", "select", "sign", "sine", "sqrt",
    "subtract", "tanh",
})  # fmt: skip


def compiled_order(trace: HostTrace) -> Compiled | None:
    """Products whose result is multiplied with few rows, scaled and added to another matrix at most in between; figures
    are (rows and columns of the result, the side that both operands share, rows that it is multiplied with, whether it
    is added to another)."""
    return join([found for work in program_work(trace) if (found := _find_order(work)) is not None])


def _find_order(work: ProgramWork) -> Compiled | None:
    module, flow = work.module, work.flow
    taken, figures, kept, spent = list[int](), list[tuple[int, ...]](), 0.0, 0.0
    rows = products_of(module)
    sources = module.sources.read(rows) if rows else []
    for row, source in zip(rows, sources, strict=True):
        if is_backward(source.op_name) or len(flow.dims(row)) != 2:
            continue
        operands = module.operands.linked(row)[:2]
        for operand, other in zip(operands, operands[::-1], strict=True):
            rank_two = len(flow.dims(operand)) == 2
            for made, between in _products_in(work, operand) if rank_two else ():
                (a, c), b = flow.dims(made), _summed_over(work, made)
                d = flow.elements(other) // max(_summed_over(work, row), 1)
                now = a * b * c + (0 if between else a * c * d)
                if not b or b * d * (a + c) >= _HALF * now or (between and not _is_thin(work, made, b)):
                    continue
                taken += [made, *between] if between else [made, row]
                figures.append((a, c, b, d, int(bool(between))))
                kept, spent = kept + b * d * (a + c), spent + now
    return (
        Compiled(work.runs_of(taken), kept / spent, max(figures, key=lambda each: math.prod(each[:2])))
        if taken
        else None
    )


def compiled_repeated_rows(trace: HostTrace) -> tuple[Compiled, str] | None:
    """Products of weights with rows that were repeated before, and layers after them whose rows are as equal, with
    their backward passes, and the line of the first; figures are (rows, of which differ)."""
    found = [each for work in program_work(trace) if (each := _find_repeated_rows(work)) is not None]
    return max(found, key=lambda each: int(trace.events.duration_ps[each[0].rows].sum()), default=None)


def _find_repeated_rows(work: ProgramWork) -> tuple[Compiled, str] | None:
    rows = products_of(work.module)
    sources = dict(zip(rows, work.module.sources.read(rows) if rows else (), strict=True))
    spreads = _Spreads(work)
    forward = {row: spreads.find(row) for row in rows if not is_backward(sources[row].op_name)}
    found = {row: spread for row, spread in forward.items() if spread is not None}
    if not found:
        return None
    # A gradient has the place of its forward op: what is computed there for rows that differ stays as it is.
    places = {sources[row].stack for row in found if sources[row].stack}
    places -= {each.stack for row, each in sources.items() if row not in found and not is_backward(each.op_name)}
    taken = [
        row for row in rows if row in found or (is_backward(sources[row].op_name) and sources[row].stack in places)
    ]
    first = min(found)
    given, rows_now = found[first].given, found[first].spread
    return Compiled(work.runs_of(taken), given / rows_now, (rows_now, given)), next(sources[first].users(), "")


class _Spread(NamedTuple):
    """How a value's rows were repeated: the sides after that, the axes that it had before, and how many rows it has and
    had."""

    sides: tuple[int, ...]
    axes: tuple[int, ...]
    spread: int
    given: int


class _Spreads:
    """Which values of a program have rows that were repeated, and nothing else."""

    def __init__(self, work: ProgramWork) -> None:
        self._work = work
        self._known = dict[int, _Spread | None]()

    def find(self, row: int, depth: int = 0) -> _Spread | None:
        """How the rows of a value were repeated; None if they were not."""
        if row not in self._known:
            self._known[row] = self._follow(row, depth + 1) if depth < _MOST_LAYERS else None
        return self._known[row]

    def _follow(self, row: int, depth: int) -> _Spread | None:
        module, flow = self._work.module, self._work.flow
        made = flow.origin(row, _IN_ORDER)
        if made != row:
            return self.find(made, depth)
        opcode, operands = module.opcode_of(row), module.operands.linked(row)
        if opcode == "broadcast":
            return self._repeats(row, flow.dims(operands[0]))
        if opcode == "dot" and len(operands) == 2:
            weight = flow.origin(operands[1])
            is_weight = module.opcode_of(weight) == "parameter" and len(flow.dims(operands[1])) == 2
            spread = self.find(operands[0], depth) if is_weight else None
            return spread if spread and flow.elements(row) == spread.spread * flow.dims(row)[-1] else None
        if opcode not in _NUMBER_BY_NUMBER:
            return None
        varied = [each for each in operands if not self._is_one_row(each)]
        spreads = {self.find(each, depth) for each in varied}
        return spreads.pop() if len(spreads) == 1 else None

    def _repeats(self, row: int, before: tuple[int, ...]) -> _Spread | None:
        sides, axes = self._work.flow.dims(row), self._work.module.axes_of(row)
        if len(before) < 2 or len(axes) != len(before) or axes[-1] != len(sides) - 1 or before[-1] != sides[-1]:
            return None
        given, spread = math.prod(before[:-1]), math.prod(sides[:-1])
        return _Spread(sides, axes, spread, given) if spread >= 2 * given > 2 else None

    def _is_one_row(self, row: int) -> bool:
        """Whether a value is a number, or one row such as a bias, for all rows."""
        made = self._work.flow.origin(row)
        if self._work.module.opcode_of(made) == "broadcast":
            return len(self._work.flow.dims(self._work.flow.operand(made, 0))) < 2
        return self._work.flow.elements(made) == 1


def _summed_over(work: ProgramWork, row: int) -> int:
    """The length of the side over which a product of matrices sums."""
    operands = math.prod(map(work.flow.elements, work.module.operands.linked(row)[:2]))
    return math.isqrt(operands // max(work.flow.elements(row), 1))


def _products_in(work: ProgramWork, row: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The products that a matrix is a sum of, with the ops that add them up, none if it is the product itself or that
    times a number."""
    products, front = {*products_of(work.module)}, list[tuple[int, tuple[int, ...]]]([(row, ())])
    for _ in range(_DEEPEST):
        after = list[tuple[int, tuple[int, ...]]]()
        for each, between in front:
            made = work.flow.origin(each)
            operands = work.module.operands.linked(made)
            opcode = work.module.opcode_of(made)
            if made in products and len(work.flow.dims(made)) == 2:
                yield made, between
            elif opcode == "add":
                after += [(operand, (*between, made)) for operand in operands]
            elif opcode in ("multiply", "divide"):
                wide = [operand for operand in operands if not _is_number(work, operand)]
                after += [(wide[0], between)] if len(wide) == 1 else []
        front = after


def _is_thin(work: ProgramWork, row: int, inner: int) -> bool:
    """Whether a product is one of two thin matrices that the program is given, and not of activations, which are added
    to others and multiplied further, too."""
    sources = [work.module.opcode_of(work.flow.origin(each)) for each in work.module.operands.linked(row)[:2]]
    return all(each in ("parameter", "constant") for each in sources) and 2 * inner <= min(work.flow.dims(row))


def _is_number(work: ProgramWork, row: int) -> bool:
    """Whether an array is one number, spread."""
    row = work.flow.origin(row)
    if work.module.opcode_of(row) == "broadcast":
        row = work.flow.operand(row, 0)
    return row >= 0 and work.flow.elements(row) == 1


def describe_empty(size: str, share: float) -> str:
    """The fact of products with a matrix of some size, by the share of its numbers that are not zero."""
    return f"multiplies with dense {size}, of which {max(100 * share, 0.1):.1f} % is not zero"


def kept_of_empty(share: float) -> float:
    """What of such products stays if they go over the numbers that are not zero alone."""
    return min(_SPARSE_TIMES * share, 1.0)


def compiled_empty(trace: HostTrace) -> tuple[Compiled, str] | None:
    """Products with an array of a size of which all in the program are nearly empty, and the fact of the largest."""
    empty = empty_matrices(trace)
    found = [each for work in program_work(trace) for each in _find_empty(work, empty)] if empty else []
    found += _find_empty_in_graphs(trace, empty) if empty else ()
    return max(found, key=lambda each: int(trace.events.duration_ps[each[0].rows].sum()), default=None)


def _find_empty_in_graphs(trace: HostTrace, empty: Mapping[tuple[int, int], float]) -> Iterator[tuple[Compiled, str]]:
    """The same of TensorFlow's graphs, whose nodes the capture tells that are given such a matrix."""
    rows, products = computing_of(trace).rows, graph_products(trace)
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    nodes = [name.rpartition(":")[0] for name in type_names(trace, types)] if products else []
    for size in empty.keys() & products.keys():
        # A function that is called has the name of the call before those of its nodes.
        own = [any(node == each or node.endswith(f"/{each}") for each in products[size]) for node in nodes]
        chosen = rows[np.isin(trace.events.type[rows], types[np.array(own, np.bool_)])]
        text = "[" + ",".join(map(str, size)) + "]"
        yield Compiled(chosen, kept_of_empty(empty[size])), describe_empty(text, empty[size])


def _find_empty(work: ProgramWork, empty: Mapping[tuple[int, int], float]) -> Iterator[tuple[Compiled, str]]:
    taken: dict[tuple[int, ...], list[int]] = {}
    for row in products_of(work.module):
        for operand in map(work.flow.origin, work.module.operands.linked(row)[:2]):
            size = work.flow.dims(operand)
            if size in empty and work.module.opcode_of(operand) in ("parameter", "constant"):
                taken.setdefault(size, []).append(row)
    for size, rows in taken.items():
        text = "[" + ",".join(map(str, size)) + "]"
        share = empty[size[0], size[1]]
        yield Compiled(work.runs_of(rows), kept_of_empty(share)), describe_empty(text, share)
