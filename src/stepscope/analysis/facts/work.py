"""What the steps compute, by what kind of work it is: forward, backward, moving data, converting it, and how fine.

Only work for the steps counts: threads that prepare input are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import field, replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from stepscope import kernels
from stepscope.analysis.steps.find_steps import HostSteps, observed, whole_steps
from stepscope.analysis.trace.columns import inside, inside_another, of_kinds, on_threads, rows_of
from stepscope.analysis.trace.eager import eager_ops
from stepscope.analysis.trace.grouping import enclosing, forest, is_device_work
from stepscope.analysis.trace.hlo import programs
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, last_below
from stepscope.records import dataclass
from stepscope.vocabulary import tf_data
from stepscope.vocabulary.jax import PROGRAMS_THAT_TAKE_IN, is_backward, is_product
from stepscope.vocabulary.lookup import has_trait, traits_by_type
from stepscope.vocabulary.tensorflow import eager_op
from stepscope.vocabulary.torch import RECOMPUTES
from stepscope.vocabulary.traits import OpTrait

K = EventKind

SHORT_OP_PS = 30_000_000  # an op of this length costs its dispatch about as much as its computation
_START_PS = SHORT_OP_PS // 2
# What of an op does not grow with the rows that it works on, where that is more than its start: an assignment to a
# variable as a whole; of a convolution the order that the library gives its weights and the threads that it wakes, as
# measured with 1 to 64 rows on two cores (PyTorch 2.13, TensorFlow 2.21).
_WHOLE_PS = np.iinfo(np.int64).max
_PER_CALL_PS = {
    OpTrait.WRITES_VARIABLE: _WHOLE_PS,
    OpTrait.PREPARES_FILTER_GRADIENT: 25_000_000,
    OpTrait.PREPARES_CONVOLUTION: 60_000_000,
    OpTrait.PREPARES_CONVOLUTION_GRADIENT: 150_000_000,
    OpTrait.PREPARES_PRODUCT_GRADIENT: 40_000_000,
}
_MOST_PREPARED = 0.6  # of such a convolution: where libraries have none for its shape, it is all computation
_RECORDED_OP_PS = 700_000  # what recording one op inside another makes the outer one longer
_MOST_OPS = 5
_MOST_MODULES = 40
_LEAST_TO_COMPARE = 4  # steps
_LONG_OP_PS = 300_000_000  # more than starting an op takes: what it works on is large

_TRAIT_OF_WORK = {"moves": OpTrait.MOVES_DATA, "casts": OpTrait.CONVERTS, "heavy": OpTrait.MULTIPLIES}
_FORWARD_IS_HEAVY = 0.3  # of the time of a forward pass are products and convolutions


@dataclass(frozen=True)
class OpShare:
    """One op, or all ops of one compiled program, and their self time in the steps."""

    name: str
    calls: int
    self_ps: int


@dataclass(frozen=True)
class WorkFacts:
    """The work of the steps of one host, all steps together, in ps.

    Where a device works, the host only starts its work: what has no default is known then, and
    for PyTorch `backward_passes` and `rows`.

    Attributes:
        steps: how many.
        compute_ps: time in which at least one thread or device computes.
        self_ps: self time of all ops, added up over threads.
        moves_ps: that of ops that only move or set data, or without need make large tensors anew; `moves` lists the
            largest.
        eager_moves_ps: time of such ops that TensorFlow runs outside of any graph, between the steps too; the largest
            are in `moves` as well.
        casts_ps: time in conversions to another type or device.
        taken_in_ps: self time in programs of their own that take in or convert an array, which are no moves.
        forward_ps, backward_ps: time of matrix products and convolutions forward and backward.
        disturbed_ps: by how much ops take longer than in the best quarter of the steps, on the critical path: what
            competes with them for the cores costs them that.
        no_grad_ps: time of forward passes outside automatic differentiation, where the trace tells; else None.
        unlearned_ps: that of forward passes inside it of which no backward pass follows.
        ops: outermost ops.
        short_ps: time of outermost ops shorter than SHORT_OP_PS that are dispatched one by one.
        start_ps, start_in_programs_ps: what of the outermost ops their mere start costs, as far as `_START_PS` goes;
            what recording the ops inside them costs is left out.
        ops_in_programs, sorts_in_programs: outermost ops of compiled programs and graphs, and how many different ones.
        per_call_ps: what of the outermost ops does not grow with the batch: their start, what libraries prepare in each
            call, and assignments to variables.
        first_runs_ps: by how much products in programs that run in one step only take longer than others there:
            libraries prepare them when they first run, which they would not do again.
        backward_passes: how often backward work follows forward work.
        rows: the median number of rows that matrix products work on, None if not recorded; `alike` is how often, as
            the median of them, one of the same sort works on operands of the same sizes, and `operands` how many
            numbers the first operands of all have.
        callbacks_ps: time in which a compiled program or graph calls Python back; `callback` is the largest of them.
        modules: compiled programs with their ops, where ops name their program, longest first.
        training: names of those with a backward pass, and `multiplying` of those with products; where the trace holds
            the programs themselves.
    """

    steps: int
    compute_ps: int
    self_ps: int
    ops: int
    moves_ps: int = 0
    moves: list[OpShare] = field(default_factory=list)
    eager_moves_ps: int = 0
    casts_ps: int = 0
    taken_in_ps: int = 0
    forward_ps: int = 0
    backward_ps: int = 0
    disturbed_ps: int = 0
    no_grad_ps: int | None = None
    unlearned_ps: int = 0
    short_ps: int = 0
    start_ps: int = 0
    start_in_programs_ps: int = 0
    per_call_ps: int = 0
    ops_in_programs: int = 0
    sorts_in_programs: int = 0
    first_runs_ps: int = 0
    backward_passes: int = 0
    rows: int | None = None
    alike: int = 0
    operands: int = 0
    callbacks_ps: int = 0
    callback: str = ""
    modules: list[OpShare] = field(default_factory=list)
    training: list[str] = field(default_factory=list)
    multiplying: list[str] = field(default_factory=list)

    @property
    def on_critical_path(self) -> float:
        """What of the ops' self time passes: ops of several threads at a time add up to more than that."""
        return min(self.compute_ps / self.self_ps, 1.0) if self.self_ps else 1.0


def work_of(trace: HostTrace) -> WorkFacts:
    """The work of a host's steps, computed once per trace."""
    return trace.derived("work", _find)


def _find(trace: HostTrace) -> WorkFacts:
    steps = whole_steps(trace)
    device = is_device_work(trace)
    ops = rows_of(trace, K.OP)
    ops = ops[on_threads(trace)[ops] & (steps.label[ops] >= 0)]
    ops = ops[~inside(trace, ops, K.INPUT_WAIT) & ~on_input_threads(trace, ops)]
    own, outer = _self_ps(trace, ops), ops[~inside_another(trace, ops, K.OP)]
    found = WorkFacts(
        steps=len(steps.number), compute_ps=_compute(trace, ops, device), self_ps=int(own.sum()), ops=len(outer)
    )
    if device.any():
        trains = len(rows_of(trace, K.BACKWARD)) > 0
        return replace(found, **_batches(trace, steps, ops, _kinds_of_work(trace, ops))) if trains else found
    return replace(found, **_facts_without_device(trace, steps, found, ops, own, outer))


def _batches(trace: HostTrace, steps: HostSteps, ops: I64, kinds: dict[str, Mask]) -> dict[str, Any]:
    """How often a step runs forward and backward, and on how much."""
    heavy = kinds["heavy"]
    backward = heavy & (kinds["gradient"] | inside(trace, ops, K.BACKWARD))
    return {
        "backward_passes": _passes(trace, steps, ops[heavy], backward[heavy]),
        **_on_how_much(trace, ops[heavy & ~backward]),
    }


def _facts_without_device(
    trace: HostTrace, steps: HostSteps, found: WorkFacts, ops: I64, own: I64, outer: I64
) -> dict[str, Any]:
    """The facts that only a run without a device has."""
    kinds = _kinds_of_work(trace, ops)
    taken_in = takes_in(trace, ops)
    moves, heavy = kinds["moves"] & ~taken_in, kinds["heavy"]
    in_backward = inside(trace, ops, K.BACKWARD)
    alone = _alone(trace, ops, own, heavy, in_backward)
    moves |= alone.remade if alone else False
    backward = heavy & (kinds["gradient"] | in_backward)
    eager = _eager_moves(trace)
    return {
        "moves_ps": int(own[moves].sum()),
        "moves": _largest_of(_largest(trace, ops[moves], own[moves]), _eager_shares(trace, eager)),
        "eager_moves_ps": int(trace.events.duration_ps[eager].sum()),
        "casts_ps": _outer_time(trace, ops[kinds["casts"]]),
        "taken_in_ps": int(own[taken_in].sum()),
        "forward_ps": int(own[heavy & ~backward].sum()),
        "backward_ps": int(own[backward].sum()),
        "disturbed_ps": int(_disturbed(trace, steps, ops, own) * found.on_critical_path),
        "no_grad_ps": alone.no_grad_ps if alone else None,
        "unlearned_ps": alone.unlearned_ps if alone else 0,
        "first_runs_ps": int(_first_runs(trace, steps, ops, own) * found.on_critical_path),
        **_modules(trace, steps, ops, own),
        **_batches(trace, steps, ops, kinds),
        **_starts(trace, outer),
        **_callbacks(trace, ops, own),
    }


def _starts(trace: HostTrace, outer: I64) -> dict[str, int]:
    """What is spent on short ops, and on starting ops."""
    length, compiled = trace.events.duration_ps[outer], _compiled(trace, outer)
    short = length < SHORT_OP_PS
    nested = np.zeros(len(outer), np.int64)  # ops of compiled programs hold no others
    nested[~compiled] = _events_inside(trace, outer[~compiled])
    length_alone = np.maximum(length - _RECORDED_OP_PS * nested, 0)
    start = np.minimum(length_alone, _START_PS)
    return {
        "short_ps": int(length[short & ~compiled].sum()),
        "start_ps": int(start[~compiled].sum()),
        "start_in_programs_ps": int(start[compiled].sum()),
        "per_call_ps": int(_per_call(trace, outer, length_alone, start).sum()),
        "ops_in_programs": int(compiled.sum()),
        "sorts_in_programs": int(np.count_nonzero(np.bincount(trace.events.type[outer[compiled]]))),
    }


def _per_call(trace: HostTrace, ops: I64, length: I64, start: I64) -> I64:
    """What each op would take whatever its batch."""
    most = np.full(len(trace.event_types.name), _START_PS, np.int64)
    types = trace.events.type[ops]
    traits = traits_by_type(trace, types, reduce(or_, _PER_CALL_PS))
    for trait, cost in _PER_CALL_PS.items():
        most[(traits & np.uint32(trait)) != 0] = cost
    whole = most[types] == _WHOLE_PS
    prepared = np.minimum((_MOST_PREPARED * length).astype(np.int64), most[types])
    return np.where(whole, length, np.maximum(prepared, start))


def _kinds_of_work(trace: HostTrace, ops: I64) -> dict[str, Mask]:
    """Of which kinds each op is, by its name: bool of shape (ops,) each."""
    types = trace.events.type[ops]
    found = {kind: has_trait(trace, types, trait) for kind, trait in _TRAIT_OF_WORK.items()}
    found["gradient"] = found["heavy"].copy()
    found["gradient"][found["heavy"]] = has_trait(trace, types[found["heavy"]], OpTrait.OF_GRADIENT)
    return found


def _eager_moves(trace: HostTrace) -> I64:
    """Single ops that only move data, where that is more than their dispatch."""
    rows = eager_ops(trace)
    rows = rows[trace.events.duration_ps[rows] >= _LONG_OP_PS]
    start = trace.events.start_ps[rows]
    rows = rows[observed(trace).touches(start, start + trace.events.duration_ps[rows])]
    return rows[has_trait(trace, trace.events.type[rows], OpTrait.MOVES_DATA)]


def _eager_shares(trace: HostTrace, rows: I64) -> list[OpShare]:
    shares = _largest(trace, rows, trace.events.duration_ps[rows])
    return [replace(share, name=eager_op(share.name)) for share in shares]


def _largest_of(*lists: list[OpShare]) -> list[OpShare]:
    return sorted((share for shares in lists for share in shares), key=lambda share: -share.self_ps)[:_MOST_OPS]


def _self_ps(trace: HostTrace, ops: I64) -> I64:
    own = np.empty(len(trace.events), np.int64)
    counts = of_kinds(trace.events.kind, (K.OP,))
    kernels.nesting.self_times(trace.events.duration_ps, forest(trace).parent, counts, own)
    return np.maximum(own[ops], 0)


def _events_inside(trace: HostTrace, outer: I64) -> I64:
    """How many events of its line begin in each of some events of the trace."""
    ends = trace.events.start_ps[outer] + trace.events.duration_ps[outer]
    stop = trace.lines.event_end[trace.events.line[outer]]
    return last_below(trace.events.start_ps, outer, stop, np.maximum(ends, trace.events.start_ps[outer] + 1)) - outer


def _outer_time(trace: HostTrace, rows: I64) -> int:
    """Time of those of the events that lie in no other of them on their line."""
    among = np.zeros(len(trace.events), np.bool_)
    among[rows] = True
    return int(trace.events.duration_ps[rows[enclosing(trace, among)[rows] == rows]].sum())


def on_input_threads(trace: HostTrace, rows: I64) -> Mask:
    """Which of the events are on the threads of tf.data, whichever step they work for."""
    serves = np.array([tf_data.is_thread(trace.strings[name]) for name in trace.lines.name.tolist()], np.bool_)
    found: Mask = serves[trace.events.line[rows]]
    return found


def _compiled(trace: HostTrace, ops: I64) -> Mask:
    """Ops of a compiled program: nobody dispatches them one by one."""
    return (trace.stat_strings(stat_names.HLO_OP, rows=ops) > 0) | inside(trace, ops, K.EXECUTOR)


def _compute(trace: HostTrace, ops: I64, device: Mask) -> int:
    """Time of the devices' computation; without a device, of the ops on the host's threads."""
    working = np.flatnonzero(device & of_kinds(trace.events.kind, (K.KERNEL, K.DEVICE_OP, K.GRAPH_LAUNCH)))
    rows = working if len(working) else ops
    start = trace.events.start_ps[rows]
    return Spans.of(start, start + trace.events.duration_ps[rows]).total


def _disturbed(trace: HostTrace, steps: HostSteps, ops: I64, own: I64) -> int:
    """Self time beyond that in the best quarter of the steps, each op compared with the one in its place in other
    steps: the n-th of its name."""
    label = steps.label[ops].astype(np.int64)
    types = trace.events.type[ops].astype(np.int64)
    order = np.lexsort((trace.events.start_ps[ops], label, types))
    group = types[order] * len(steps.number) + label[order]
    begins = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(order) else np.empty(0, np.int64)
    place = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    key = types[order] * (int(place.max(initial=0)) + 1) + place
    time = own[order]
    sort = np.lexsort((time, key))
    key, time = key[sort], time[sort]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.empty(0, np.int64)
    count = np.diff(np.append(first, len(key)))
    several = count >= _LEAST_TO_COMPARE
    best = time[first + count // 4]
    total = np.add.reduceat(time, first) if len(first) else first
    return int((total - best * count)[several].clip(min=0).sum())


def _first_runs(trace: HostTrace, steps: HostSteps, ops: I64, own: I64) -> int:
    """Self time of products that a library prepares, beyond that of products which XLA compiles itself."""
    if not len(rows_of(trace, K.COMPILE)) or not trace.has_stat(stat_names.PROGRAM_ID):
        return 0
    types = trace.events.type[ops]
    prepared, plain = (has_trait(trace, types, trait) for trait in (OpTrait.LIBRARY_PRODUCT, OpTrait.COMPILED_PRODUCT))
    rows = np.flatnonzero(prepared | plain)
    programs, of = np.unique(trace.stat_ints(stat_names.PROGRAM_ID)[ops[rows]], return_inverse=True)
    pairs = np.unique(of * (len(steps.number) + 1) + steps.label[ops[rows]])
    new = rows[(np.bincount(pairs // (len(steps.number) + 1), minlength=len(programs)) == 1)[of]]
    first, usual = own[new[prepared[new]]], own[new[plain[new]]]
    return int((first - np.median(usual)).clip(min=0).sum()) if len(usual) else 0


def _largest(trace: HostTrace, rows: I64, own: I64) -> list[OpShare]:
    return _by_text(trace, trace.event_names(rows).astype(np.int64), own, _MOST_OPS)


def _by_text(trace: HostTrace, texts: I64, own: I64, most: int) -> list[OpShare]:
    unique, inverse = np.unique(texts, return_inverse=True)
    total, calls = np.zeros(len(unique), np.int64), np.bincount(inverse, minlength=len(unique))
    np.add.at(total, inverse, own)
    order = np.argsort(-total, kind="stable")[:most]
    return [OpShare(trace.strings[unique[at]], int(calls[at]), int(total[at])) for at in order.tolist()]


@dataclass(frozen=True)
class _Alone:
    """Forward work that no backward pass belongs to, as self time, and which ops make tensors anew instead."""

    no_grad_ps: int
    unlearned_ps: int
    remade: Mask


def _alone(trace: HostTrace, ops: I64, own: I64, heavy: Mask, in_backward: Mask) -> _Alone | None:
    """Ops that autograd did not number, which is so under `torch.no_grad`, and those whose number no backward pass has.
    None where the trace holds no such numbers.

    Only products and convolutions make a forward pass of them.  Others update averages, count hits and the like.
    """
    if not trace.has_stat(stat_names.SEQUENCE_NUMBER):
        return None
    number = _numbers(trace, ops)
    learned = np.unique(trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=rows_of(trace, K.BACKWARD)))
    learns = (number >= 0) & np.isin(number, learned)
    idle = ~in_backward & ~_makes_data(trace, ops, heavy, learns, in_backward)
    free = (number < 0) & idle & ~inside(trace, ops, K.ANNOTATION)
    unlearned = (number >= 0) & idle & ~learns
    computes = _is_forward(own, free, heavy)
    makes = has_trait(trace, trace.events.type[ops], OpTrait.MAKES_RESULT) & (own >= _LONG_OP_PS)
    return _Alone(
        no_grad_ps=int(own[free].sum()) if computes and not _recomputes(trace) else 0,
        unlearned_ps=int(own[unlearned].sum()) if len(learned) and _is_forward(own, unlearned, heavy) else 0,
        remade=free & makes & (not computes),
    )


def _makes_data(trace: HostTrace, ops: I64, heavy: Mask, learns: Mask, in_backward: Mask) -> Mask:
    """Ops in a row that learn nothing, while others of the same sizes do, and whose result is the first operand of the
    next product that learns: a generator that makes the samples of a critic."""
    found = np.zeros(len(ops), np.bool_)
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return found
    forward = np.flatnonzero(~inside_another(trace, ops, K.OP) & ~in_backward)
    dims = trace.stat_strings(stat_names.INPUT_DIMS, rows=ops[forward])
    learned = np.flatnonzero(learns[forward] & heavy[forward])
    trained = np.isin(dims, dims[learned]) & heavy[forward] & ~learns[forward]
    changes = np.flatnonzero(np.diff(learns[forward].astype(np.int8), prepend=1, append=1))
    runs = changes.reshape(-1, 2)  # of ops that learn nothing: the first, and the one after the last
    runs = runs[np.diff(np.searchsorted(np.flatnonzero(trained), runs))[:, 0] > 0]
    following = np.searchsorted(learned, runs[:, 1])
    runs, following = runs[following < len(learned)], following[following < len(learned)]
    made, used = dims[runs[:, 1] - 1].tolist(), dims[learned[following]].tolist()
    for (begin, end), result, operand in zip(runs.tolist(), made, used, strict=True):
        if _operand(trace.strings[operand]) in _results(trace.strings[result]):
            found[forward[begin] : forward[end - 1] + 1] = True
    return found & ~learns & ~in_backward


def _operand(dims: str) -> str:
    """The sizes of the first operand.

    >>> _operand("[[96,256],[640,256],[640]]")
    '96,256'
    """
    return dims.lstrip("[").partition("]")[0]


def _results(dims: str) -> tuple[str, ...]:
    """What sizes the result of an op may have: those of its first operand, or as a layer gives them.

    >>> _results("[[96,256],[640,256],[640]]")
    ('96,256', '96,640')
    """
    first = _operand(dims)
    rows, _, _ = first.rpartition(",")
    second = _operand(dims.partition("],")[2])
    return (first, f"{rows},{second.partition(',')[0]}") if rows and second else (first,)


def _is_forward(own: I64, chosen: Mask, heavy: Mask) -> bool:
    return bool(own[chosen & heavy].sum() >= _FORWARD_IS_HEAVY * max(own[chosen].sum(), 1))


def _recomputes(trace: HostTrace) -> bool:
    """Whether activations are recomputed: then the first forward pass is one without gradients."""
    return any(trace.strings.find(name) > 0 for name in RECOMPUTES)


def _numbers(trace: HostTrace, ops: I64) -> I64:
    """The number that autograd gave to each op, or to the op around it; -1 without one."""
    parent = forest(trace).parent
    sequence = trace.stat_ints(stat_names.SEQUENCE_NUMBER)
    number, above = sequence[ops], parent[ops]
    while (going := (above >= 0) & (number < 0)).any():
        at = np.maximum(above, 0)
        number = np.where(going, sequence[at], number)
        above = np.where(going & (number < 0), parent[at], -1)
    return number


def _passes(trace: HostTrace, steps: HostSteps, heavy: I64, backward: Mask) -> int:
    """How often heavy work turns from forward to backward, on the threads that do both."""
    order = np.argsort(trace.events.start_ps[heavy], kind="stable")
    turned = backward[order]
    return int((turned[1:] & ~turned[:-1]).sum()) if len(turned) else 0


_DIMS = re.compile(r"\[(\d+),(\d+)[\],]")
_SIZES = re.compile(r"\d+(?:,\d+)*")


def _on_how_much(trace: HostTrace, heavy: I64) -> dict[str, Any]:
    """On how many rows heavy ops work, and how often the same op works on operands of the same sizes: the medians; and
    how many numbers their first operands have in all."""
    if not len(heavy) or not trace.has_stat(stat_names.INPUT_DIMS):
        return {}
    dims = trace.stat_strings(stat_names.INPUT_DIMS, rows=heavy).astype(np.int64)
    sorts, counts = np.unique(dims * len(trace.event_types.name) + trace.events.type[heavy], return_counts=True)
    texts = [trace.strings[text] for text in (sorts // len(trace.event_types.name)).tolist()]
    found = [(text, int(match[1]), count) for text, count in zip(texts, counts.tolist(), strict=True)
             if (match := _DIMS.search(text))]  # fmt: skip
    if not found:
        return {}
    rows, alike = np.array([(rows, count) for _, rows, count in found]).T
    return {
        "rows": int(np.median(np.repeat(rows, alike))),
        "alike": int(np.median(np.repeat(alike, alike))),
        "operands": sum(count * _first_size(text) for text, _, count in found),
    }


def _first_size(dims: str) -> int:
    """How many numbers the first operand has that is a tensor of some size.

    >>> _first_size("[[96,256],[640,256],[640]]")
    24576
    >>> _first_size("[[],[[8,4],[4,2]],[]]")  # of an einsum, whose first argument is its equation
    32
    """
    sizes = _SIZES.search(dims)
    return math.prod(map(int, sizes[0].split(","))) if sizes else 0


def takes_in(trace: HostTrace, ops: I64) -> Mask:
    """Ops of programs that only take in or convert an array."""
    rows = [row for row in map(trace.strings.find, PROGRAMS_THAT_TAKE_IN) if row > 0]
    if not rows or not trace.has_stat(stat_names.HLO_MODULE):
        return np.zeros(len(ops), np.bool_)
    found: Mask = np.isin(trace.stat_strings(stat_names.HLO_MODULE, rows=ops), rows)
    return found


def _callbacks(trace: HostTrace, ops: I64, own: I64) -> dict[str, Any]:
    called = has_trait(trace, trace.events.type[ops], OpTrait.CALLS_BACK | OpTrait.CALLS_PYTHON)
    largest = _largest(trace, ops[called], own[called])
    return {"callbacks_ps": int(own[called].sum()), "callback": largest[0].name if largest else ""}


def _modules(trace: HostTrace, steps: HostSteps, ops: I64, own: I64) -> dict[str, Any]:
    """The compiled programs with their ops, and what these tell of them."""
    if not trace.has_stat(stat_names.HLO_MODULE) or not len(ops):
        return {}
    found = _programs_run(trace, steps, ops, own)[:_MOST_MODULES]
    known = programs(trace)

    def having(test: Callable[[str], bool]) -> list[str]:
        return [
            share.name
            for share, number, module in found
            if known and any(map(test, known.framework_ops(number, module)))
        ]

    return {
        "modules": [share for share, _, _ in found],
        "training": having(is_backward),
        "multiplying": having(is_product),
    }


def _programs_run(trace: HostTrace, steps: HostSteps, ops: I64, own: I64) -> list[tuple[OpShare, int, str]]:
    """Programs with their number and the name of their module, longest first.  Those of one name count as one, unless
    several of them run in most steps: then they are different functions, as several lambdas of JAX are."""
    module = np.maximum(trace.stat_strings(stat_names.HLO_MODULE, rows=ops), 0).astype(np.int64)
    number = trace.stat_ints(stat_names.PROGRAM_ID, rows=ops)
    label = steps.label[ops].astype(np.int64)
    # Ops of a program follow each other: what is sorted below are their runs, and not the ops.
    begins = np.flatnonzero(np.append(True, (np.diff(module) != 0) | (np.diff(number) != 0) | (np.diff(label) != 0)))
    pairs, of = np.unique(np.stack([module[begins], number[begins]]), axis=1, return_inverse=True)
    apart = _told_apart(pairs[0], of.reshape(-1), label[begins], len(steps.number))
    # A program that is told apart is a group of its own, all others of a name are one.
    keys = np.stack([pairs[0], np.where(apart, np.arange(len(apart)), -1)])
    groups, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    of_run = group.reshape(-1)[of.reshape(-1)]
    total, count = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    np.add.at(total, of_run, np.add.reduceat(own, begins))
    np.add.at(count, of_run, np.diff(np.append(begins, len(ops))))
    found = []
    for at in np.argsort(-total, kind="stable")[: _MOST_MODULES + 1].tolist():
        name, program = trace.strings[int(groups[0][at])], int(pairs[1][first[at]])
        if name:  # ops of no program have none
            told = f"{name} (program {program})" if apart[first[at]] else name
            found.append((OpShare(told, int(count[at]), int(total[at])), program, name))
    return found


def _told_apart(module: I64, program: I64, step: I64, steps: int) -> Mask:
    """Which programs run in most steps, as another of the same module does: bool of shape (programs,).

    Args:
        module: of each program, its name.
        program, step: of each run, which program it is of, and the step.
    """
    in_steps = np.unique(np.stack([program, step]), axis=1)[0]
    steady = 2 * np.bincount(in_steps, minlength=len(module)) > steps
    found: Mask = steady & (np.bincount(module, steady)[module] > 1)
    return found
