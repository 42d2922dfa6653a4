"""What PyTorch's autograd computes more than an update needs.

Autograd numbers each op that it records for a backward pass, and each run of a node of that pass has the number of its
op.  So the recording shows how often the gradient of an op is computed, which parameters it reaches, and what runs
between a node and the next that the node does not need.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from stepscope.analysis.purpose.computing import backward_runs, computing_of, update_ranges
from stepscope.analysis.purpose.sizes import Size, sizes_of
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.columns import events_of_kind, is_inside_another
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import OpTrait, PurposeTrait

K = EventKind

_FEWEST_OPS = 2  # for each parameter: the plainest update scales a gradient and subtracts it
_NEARLY_ALL = 0.9  # of the parameters: some may be frozen for a while, or have another rule
_FORWARD_THREAD = ("Fwd thread id",)


@dataclass(frozen=True)
class BackwardPasses:
    """The outermost runs of autograd's nodes in whole steps, in order of time; columns of one length.

    Attributes:
        rows: int64, rows of events.
        number: int64, the number of the forward op; -1 for what adds a gradient to a parameter.
        run: int64, how often that node ran before within the capture.
        of: int64, which backward pass it belongs to: those between two forward ops are one.
        adds: bool, it adds a gradient to a parameter.
    """

    rows: I64
    number: I64
    run: I64
    of: I64
    adds: Mask

    def __len__(self) -> int:
        return len(self.rows)


def passes_of(trace: HostTrace) -> BackwardPasses:
    """The backward passes of a host, found once per trace."""
    return trace.derived("backward passes", _find_passes)


def _find_passes(trace: HostTrace) -> BackwardPasses:
    rows = backward_runs(trace)
    rows = rows[(whole_steps(trace).label[rows] >= 0) & ~is_inside_another(trace, rows, K.BACKWARD)]
    if not len(rows):
        return BackwardPasses(rows, rows, rows, rows, np.zeros(0, np.bool_))
    rows = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]
    number = trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=rows)
    thread = trace.stat_ints(_FORWARD_THREAD, rows=rows)
    work = computing_of(trace)
    forward = work.rows[work.outer & ~work.backward]
    # Threads that only copy batches run beside a pass and do not end it.
    lines = distinct(trace.events.line[work.rows[work.learned]])
    others = np.sort(trace.events.start_ps[forward[np.isin(trace.events.line[forward], lines)]])
    return BackwardPasses(
        rows=rows,
        number=number,
        run=_count_earlier(number, thread),
        of=np.searchsorted(others, trace.events.start_ps[rows]),
        adds=np.isin(rows, forest(trace).parent[_adding_ops(trace)]),
    )


def _adding_ops(trace: HostTrace) -> I64:
    """The ops that add to the gradient of a parameter, each inside the run of its node: rows of events."""
    ops = events_of_kind(trace, K.OP)
    return ops[has_trait(trace, trace.events.type[ops], OpTrait.ADDS_GRADIENT)]


def _count_earlier(number: I64, thread: I64) -> I64:
    """How many entries before each have its number and thread; 0 for those without a number."""
    order = np.lexsort((np.arange(len(number)), number, thread))
    same = (np.diff(number[order]) == 0) & (np.diff(thread[order]) == 0)
    begins = np.flatnonzero(np.append(True, ~same))[: len(number)]
    found = np.zeros(len(number), np.int64)
    found[order] = np.arange(len(number)) - np.repeat(begins, np.diff(np.append(begins, len(number))))
    return np.where(number < 0, 0, found)


@dataclass(frozen=True)
class Repeated:
    """Backward work that runs again for forward ops that a backward pass has followed already.

    Attributes:
        rows: rows of events; runs: how often each of these nodes runs, at most; nodes: how many nodes a step has them.
    """

    rows: I64
    runs: int
    nodes: float


def repeated_backward(trace: HostTrace) -> Repeated | None:
    """Backward passes over ops that had one, where one pass over the sum of the losses gives the same gradients.

    None where the recording shows a reason for more: a gradient that is differentiated itself (forward ops are recorded
    within the backward pass), an update between the passes, gradients that are taken and not added to parameters, or
    parameters' gradients that are kept or changed before the next pass.
    """
    passes = passes_of(trace)
    again = passes.run > 0
    if not again.any() or differentiates_gradients(trace):
        return None
    begin, _, of = bounds(passes)
    adds = np.bincount(of, passes.adds).astype(np.int64)
    redone = (np.bincount(of, again) > 0) & (adds > 0) & (begin > 0) & ~_use_gradients(trace, passes, begin, adds)
    chosen = redone[of] & (again | (passes.adds & _after_repeated(passes, again)))
    if not (chosen & again).any():
        return None
    steps = max(len(whole_steps(trace).number), 1)
    return Repeated(
        passes.rows[chosen],
        int(passes.run[chosen].max()) + 1,
        len(distinct(passes.number[chosen & again])) / steps,
    )


def backward_of_earlier_steps(trace: HostTrace) -> I64:
    """The backward work of forward ops that had a backward pass in an earlier step, as those of a loss that is summed
    up with its graph: rows of events, the outermost."""
    passes = passes_of(trace)
    step = whole_steps(trace).label[passes.rows].astype(np.int64)
    thread = trace.stat_ints(_FORWARD_THREAD, rows=passes.rows)
    order = np.lexsort((step, passes.number, thread))
    begins = (np.diff(passes.number[order]) != 0) | (np.diff(thread[order]) != 0)
    first = np.flatnonzero(np.append(True, begins))[: len(order)]
    since = np.zeros(len(order), np.int64)
    since[order] = np.repeat(step[order][first], np.diff(np.append(first, len(order))))
    found: I64 = passes.rows[(passes.number >= 0) & (step > since)]
    return found


def _after_repeated(passes: BackwardPasses, again: Mask) -> Mask:
    """Whether the last node with a number before each run is one that ran before."""
    last = np.maximum.accumulate(np.where(passes.number >= 0, np.arange(len(passes)), -1))
    found: Mask = (last >= 0) & again[np.maximum(last, 0)]
    return found


def differentiates_gradients(trace: HostTrace) -> bool:
    """Whether autograd records ops within a backward pass, as for a gradient of a gradient, or to compute activations
    again."""
    work = computing_of(trace)
    inside = work.rows[work.backward]
    numbered = inside[trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=inside) >= 0]
    parent = forest(trace).parent[numbered]
    # The node itself has its number, within the call that evaluates it.
    is_node = (parent >= 0) & (trace.events.kind[np.maximum(parent, 0)] == K.BACKWARD)
    return bool((~is_node).any())


def bounds(passes: BackwardPasses) -> tuple[I64, I64, I64]:
    """The first place of each pass, the place after its last, and the pass of each run, numbered from 0."""
    begin = np.flatnonzero(np.append(True, np.diff(passes.of) != 0)[: len(passes)])
    end = np.append(begin[1:], len(passes))
    return begin, end, np.repeat(np.arange(len(begin)), end - begin)


def _use_gradients(trace: HostTrace, passes: BackwardPasses, begin: I64, adds: I64) -> Mask:
    """Whether parameters are updated between each pass and the one before, or gradients are kept, of at least every
    second parameter: bool of shape (passes,).

    Args:
        begin: the first run of each pass; adds: how many parameters it adds to.
    """
    events, work = trace.events, computing_of(trace)
    before = passes.rows[np.maximum(begin - 1, 0)]
    start, stop = events.start_ps[before] + events.duration_ps[before], events.start_ps[passes.rows[begin]]

    def count(rows: I64) -> I64:
        times = np.sort(events.start_ps[rows])
        found: I64 = np.maximum(np.searchsorted(times, stop) - np.searchsorted(times, start), 0)
        return found

    own = work.rows[work.outer & ~work.learned]
    keeps = own[has_trait(trace, events.type[own], OpTrait.MOVES_DATA | OpTrait.MAKES_RESULT)]
    used: Mask = (count(update_ranges(trace)) > 0) | (2 * count(keeps) >= adds)
    return used


def inner_adds(trace: HostTrace, rows: I64) -> I64:
    """The op inside each run that adds a gradient: rows of events, the run itself where there is none."""
    ops = _adding_ops(trace)
    found, parent = rows.copy(), forest(trace).parent[ops]
    order = np.argsort(rows)
    at = np.minimum(np.searchsorted(rows[order], parent), max(len(rows) - 1, 0))
    match = rows[order][at] == parent
    found[order[at[match]]] = ops[match]
    return found


def ops_per_parameter(trace: HostTrace, ops: I64) -> float:
    """How many of some ops there are for each parameter that gets a gradient, where nearly all parameters have as many
    of their size, as in an update that is written out in a loop; 0 where they have not.

    Args:
        ops: outermost ops, rows of events, none of them trained.
    """
    passes = passes_of(trace)
    if not passes.adds.any() or not trace.has_stat(stat_names.INPUT_DIMS):
        return 0.0
    given = _count_sizes(trace, inner_adds(trace, passes.rows[passes.adds]))
    taken = _count_sizes(trace, ops)
    worked_on = sum(count for size, count in given.items() if taken[size] >= _FEWEST_OPS * count)
    if worked_on < _NEARLY_ALL * given.total():
        return 0.0
    return sum(taken[size] for size in given) / given.total()


def _count_sizes(trace: HostTrace, ops: I64) -> Counter[Size]:
    """How many of some ops have operands of one size alone, besides single numbers, by that size."""
    texts, calls = np.unique(trace.stat_strings(stat_names.INPUT_DIMS, rows=ops), return_counts=True)
    found: Counter[Size] = Counter()
    for text, count in zip(texts.tolist(), calls.tolist(), strict=True):
        sizes = {size for size in sizes_of(trace.strings[text]) if math.prod(size) > 1} if text > 0 else set()
        if len(sizes) == 1:
            found[sizes.pop()] += count
    return found


def checked_backward(trace: HostTrace) -> I64:
    """Checks for NaN of each result of a backward pass, which anomaly detection makes: rows of events.

    They run between a node and the next one, where a program has no code of its own.
    """
    work = computing_of(trace)
    inside = work.rows[work.backward]
    parent = forest(trace).parent[inside]
    direct = inside[(parent >= 0) & (trace.events.kind[np.maximum(parent, 0)] == K.BACKWARD)]
    checks: I64 = direct[has_trait(trace, trace.events.type[direct], PurposeTrait.CHECKS_NUMBERS)]
    if not len(checks):
        return checks
    reads = direct[has_trait(trace, trace.events.type[direct], PurposeTrait.ANSWERS_CHECK)]
    return np.append(checks, reads)
