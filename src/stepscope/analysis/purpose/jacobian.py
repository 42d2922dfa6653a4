"""Whole Jacobians of which a step takes a product, or a sum: as many passes as they have rows, where one would do.

    x [512,12] -> jacfwd: 12 tangents for each point [512,12,12] -> dot with v [512,12] -> [512,12]

`jax.jvp` in the direction v gives the same in one pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from stepscope.analysis.account.statements import statements_of_loop
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.purpose.autograd import bounds, passes_of
from stepscope.analysis.purpose.compiled import ProgramWork, product_sources, program_work, size_of
from stepscope.analysis.purpose.computing import backward_runs, computing_of, inside_any
from stepscope.analysis.purpose.graphs import made_by_ops
from stepscope.analysis.purpose.sizes import Size, sizes_of
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.steps.stack_samples import sampled_frames
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, distinct, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import FACTORS, op_alone
from stepscope.vocabulary.jax import is_backward, is_of_basis
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.python import place_of, statement_of
from stepscope.vocabulary.scopes import is_gradient_of_all
from stepscope.vocabulary.tensorflow import eager_op
from stepscope.vocabulary.torch import computes_jacobian

_FEWEST = 4  # rows: with fewer, one pass instead of all saves no more than it costs to write it so; judgement
_DEEPEST = 8  # ops between what is differentiated and the sum that takes it
_THROUGH = ("select", "multiply")  # a mask, as of a trace, or weights before a sum


@dataclass(frozen=True)
class Jacobian:
    """Passes for all rows of a Jacobian.

    Attributes:
        rows: what computes them, rows of events; size: how many rows it has for each point.
        asked_by: the line that takes a product or a sum of it, or asks for it, as `train.py:9 loss`; empty where the
            rows say it. is_summed: that is known to be a product or a sum.
    """

    rows: I64
    size: int
    asked_by: str = ""
    is_summed: bool = False


def jacobian_of(trace: HostTrace) -> Jacobian | None:
    """The Jacobian that takes longest; None without one, or where a matrix is factored, which needs all of it."""
    if found := _jacobian_of_compiled(trace):
        return found
    found = (
        _jacobian_of_tape(trace)
        if trace.framework == "tensorflow"
        else _jacobian_of_sampled_line(trace) or _jacobian_of_backward_passes(trace)
    )
    return found if found is not None and found.size >= _FEWEST and not _factors(trace) else None


def _factors(trace: HostTrace) -> bool:
    names = type_names(trace, used_rows(trace.events.type[computing_of(trace).rows], len(trace.event_types)))
    return any(FACTORS.fullmatch(eager_op(name) or op_alone(name)) for name in names)


def _rows_for_one(sizes: Iterator[tuple[object, Size]]) -> Counter[int]:
    """By how many rows each product has for one of another product with the same key and as many columns."""
    groups: dict[tuple[object, int], set[int]] = {}
    for key, size in sizes:
        if size:
            groups.setdefault((key, size[-1]), set()).add(math.prod(size[:-1]))
    return Counter(
        many // one for each in groups.values() for many in each for one in each if many > one > 0 == many % one
    )


# ---- JAX -------------------------------------------------------------------------------------------------------------


def _jacobian_of_compiled(trace: HostTrace) -> Jacobian | None:
    found = [each for work in program_work(trace) if (each := _jacobian_of_program(work)) is not None]
    return max(found, key=lambda each: int(trace.events.duration_ps[each.rows].sum()), default=None)


def _jacobian_of_program(work: ProgramWork) -> Jacobian | None:
    """By names: tangents of all directions are a `vmap` right around the differentiation.  They are a whole basis if
    there are as many as a matrix or a vector of the program has rows, as all parameters laid flat of which a Hessian
    is, and not needed if what takes them gives that much less."""
    module, flow = work.module, work.flow
    if b"vmap(" not in module.sources.buf.tobytes():
        return None
    runs = [row for row in distinct(work.instruction).tolist() if row >= 0]
    chosen = [row for row, each in zip(runs, module.sources.read(runs), strict=True) if is_of_basis(each.op_name)]
    sides = {side for _, shape in module.parameters if len(size_of(shape)) in (1, 2) for side in size_of(shape)}
    products = product_sources(work)
    many = _rows_for_one((source.line, flow.dims(row)) for row, source in products)
    many = Counter({count: times for count, times in many.items() if count in sides and count >= _FEWEST})
    sums = np.flatnonzero(module.is_opcode("dot", "reduce")).tolist() if chosen and many else []
    for row, source in zip(sums, module.sources.read(sums), strict=True):
        if is_of_basis(source.op_name) or is_backward(source.op_name) or not source.op_name:
            continue
        taken = max((flow.elements(each) for each in _takes(work, row)), default=0)
        less = taken // max(flow.elements(row), 1)
        sizes = [count for count in many if less and less % count == 0]
        if sizes:
            where = source.stack[0] if source.stack else source.line
            return Jacobian(work.runs_of(chosen), max(sizes), where, is_summed=True)
    return None


def _takes(work: ProgramWork, row: int) -> list[int]:
    """The tangents that a sum takes, behind a mask or weights."""
    front, found = work.module.operands.linked(row)[:2], list[int]()
    for _ in range(_DEEPEST):
        origins = [work.flow.origin(each) for each in front]
        names = work.module.sources.read(origins) if origins else []
        found += [each for each, source in zip(origins, names, strict=True) if is_of_basis(source.op_name)]
        through = [each for each in origins if work.module.opcode_of(each) in _THROUGH]
        front = [operand for each in through for operand in work.module.operands.linked(each)]
    return found


# ---- TensorFlow ------------------------------------------------------------------------------------------------------


def _jacobian_of_tape(trace: HostTrace) -> Jacobian | None:
    """By names: a tape that is asked for a Jacobian runs its gradients for all rows at once, as `MatMul/pfor`."""
    work = computing_of(trace)
    types = used_rows(trace.events.type[work.rows], len(trace.event_types))
    names = type_names(trace, types)
    chosen = [at for at, name in enumerate(names) if "/pfor/" in name and is_gradient_of_all(name)]
    made = made_by_ops(trace) if chosen else {}
    sizes = [made[node].size for at in chosen if (node := names[at].rpartition(":")[0]) in made]
    first = Counter(size[0] for size in sizes if len(size) > 2)
    if not first:
        return None
    return Jacobian(work.rows[np.isin(trace.events.type[work.rows], types[chosen])], first.most_common(1)[0][0])


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def _add_backward_runs(trace: HostTrace, rows: I64) -> I64:
    """Some work with the backward runs that differentiate it, by the numbers that autograd gave its ops."""
    work, runs = computing_of(trace), backward_runs(trace)
    runs = runs[whole_steps(trace).label[runs] >= 0]
    inside = work.rows[inside_any(trace, work.rows, rows)]
    numbers = distinct(trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=inside))
    of = trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=runs)
    return np.append(rows, runs[np.isin(of, numbers[numbers >= 0])])


def _jacobian_of_backward_passes(trace: HostTrace) -> Jacobian | None:
    """Backward passes over the same ops, none of which adds to a parameter, one for each column of what they start
    from."""
    passes, steps = passes_of(trace), max(len(whole_steps(trace).number), 1)
    if not (passes.run > 0).any() or not trace.has_stat(stat_names.INPUT_DIMS):
        return None
    of = bounds(passes)[2]
    alone = np.bincount(of, passes.adds)[of] == 0
    own = np.flatnonzero(alone & (passes.number >= 0))
    keys = passes.number[own] * (len(whole_steps(trace).number) + 1) + whole_steps(trace).label[passes.rows[own]]
    size = int(np.unique(keys, return_counts=True)[1].max(initial=0))
    work = computing_of(trace)
    outer = work.rows[work.outer & ~work.backward]
    texts, calls = np.unique(trace.stat_strings(stat_names.INPUT_DIMS, rows=outer), return_counts=True)
    columns = [sizes_of(trace.strings[text])[:1] for text, count in zip(texts.tolist(), calls, strict=True)
               if text > 0 and count >= size * steps]  # fmt: skip
    if not any(len(first) == 2 and first[1] == size for sizes in columns for first in sizes):
        return None
    return Jacobian(_add_backward_runs(trace, passes.rows[alone]), size)


def _jacobian_of_sampled_line(trace: HostTrace) -> Jacobian | None:
    """The time of a line whose samples show torch.func's, or autograd's, function for a Jacobian."""
    line = threads_of(trace).main
    frames = sampled_frames(trace, line) if line >= 0 else np.empty(0, np.int64)
    types = used_rows(trace.events.type[frames], len(trace.event_types))
    known = types[[computes_jacobian(name) for name in type_names(trace, types)]] if len(types) else types
    if not len(known) or not trace.has_stat(stat_names.INPUT_DIMS):
        return None
    shown = trace.events.start_ps[frames[np.isin(trace.events.type[frames], known)]]
    found = [each for each in statements_of_loop(trace, line)
             if 2 * (each.spans.overlap_ps(shown, shown + 1) > 0).sum() > len(each.samples)]  # fmt: skip
    if not found:
        return None
    longest, work = max(found, key=lambda each: each.spans.total), computing_of(trace)
    start = trace.events.start_ps[work.rows]
    rows = work.rows[work.outer & (longest.spans.overlap_ps(start, start + 1) > 0)]
    heavy = work.rows[work.heavy]
    texts = distinct(trace.stat_strings(stat_names.INPUT_DIMS, rows=heavy)).tolist()
    operands = [sizes_of(trace.strings[text])[:2] for text in texts if text > 0]
    many = _rows_for_one((each[1], each[0]) for each in operands if len(each) == 2 and len(each[1]) == 2)
    sides = {side for each in operands for size in each for side in size}
    size = min((count for count in many if count in sides), key=lambda count: (-many[count], count), default=0)
    function = place_of(statement_of(trace.name_of(longest.row)).frame)[0]
    return Jacobian(_add_backward_runs(trace, rows), size, f"{longest.statement.place} {function}") if size else None
