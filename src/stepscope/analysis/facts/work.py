"""What the steps compute, by kind of work: forward, backward, moving and converting data, and the size of the ops.

Only work for the steps counts; threads that prepare input are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

import numpy as np

from stepscope.analysis.account.causes import takes_in
from stepscope.analysis.facts.data_flow import find_needed
from stepscope.analysis.hlo.framework_ops import framework_ops
from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.purpose.compiled import compiled_callback, compilers_moves
from stepscope.analysis.purpose.computing import computing_of
from stepscope.analysis.purpose.forward import LONG_OP_PS, forward_only_of, recomputed_ops
from stepscope.analysis.purpose.loops import tiny_share
from stepscope.analysis.purpose.operands import computes_in_16_bits, ops_in_64_bits
from stepscope.analysis.purpose.tensors import generates
from stepscope.analysis.steps.find_steps import HostSteps, observed_time, whole_steps
from stepscope.analysis.trace.columns import events_of_kind, is_inside
from stepscope.analysis.trace.eager import computing_eager_ops, eager_ops
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.analysis.trace.grouping import enclosing_events, forest, is_device_work
from stepscope.analysis.trace.op_sizes import first_operand_numbers
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, count_before, distinct, last_below, median, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.copies import KINDS_OF_COPIES, kind_of_copy
from stepscope.vocabulary.jax import function_of_program, is_backward, is_product
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.python import is_training_function
from stepscope.vocabulary.tensorflow import eager_op
from stepscope.vocabulary.traits import OpTrait, PurposeTrait

K = EventKind

SHORT_OP_PS = 30_000_000  # dispatching an op of this length costs about as much as computing it
_START_PS = SHORT_OP_PS // 2
_RECORDED_OP_PS = 700_000  # by this much, recording an op inside another lengthens the outer one
_MOST_OPS = 5  # kept: rules show three
USUAL_FORWARD = 0.6  # forward over backward work in training: about a half, more for the first layer
FEW_PROGRAMS = 8  # more programs are single ops of a step that is not compiled as a whole
OPS_OF_A_PROGRAM = 3.0  # more are a compiled function, not an op that is dispatched
_NOISE = 0.07  # of the computation: its time varies this much without a cause
_MOST_MODULES = 40  # kept, the longest: programs of single ops may be thousands
_PROGRAM = " (program "
_MUCH = 0.25  # of the time of what moves data: judgement
_LEAST_TO_COMPARE = 4  # steps: fewer have no best quarter

_TRAIT_OF_WORK = {"moves": OpTrait.MOVES_DATA, "casts": OpTrait.CONVERTS, "heavy": OpTrait.MULTIPLIES}


@dataclass(frozen=True)
class OpShare:
    """Ops of one name, or all ops of one compiled program: how many, and their time in the steps."""

    name: str
    calls: int
    total_ps: int


@dataclass(frozen=True)
class WorkFacts:
    """The work of the steps of one host, summed over the steps, in ps.

    On a run with a device, the host only starts its work.  Then only the fields without a default are known, and for
    PyTorch `backward_passes`, `rows`, `alike` and `operands`.

    Attributes:
        steps: number of steps.
        compute_ps: time in which at least one thread or device computes.
        self_ps: self time of all ops, summed over threads.
        ops: number of outermost ops.
        moves_ps: self time of ops that only move or set data, or needlessly make large tensors again.
        moves: the largest of these ops; those that TensorFlow runs outside any graph are in both.
        asked: the time of these by what asks for the copy, such as `layout` of `contiguous`; see `kind_of_copy`.
        zeroes_gradients: much of it writes zeros into gradients.
        casts_ps: time of conversions to another type or device; those of single numbers, which an optimizer makes for
            each parameter, are shorter than SHORT_OP_PS and do not count.
        forward_ps, backward_ps: time of matrix products and convolutions, forward and backward.
        contention_ps: time that ops on the critical path take beyond the best quarter of the steps.
        forward_only_ps: time of forward passes that no backward pass follows and that an update may use, but for those
            that come first in a step; None if not shown.
        short_ps: time of outermost ops shorter than SHORT_OP_PS that are dispatched one by one.
        tiny_share: of the time of those that are dispatched one by one, see `tiny_share`.
        start_ps, start_in_programs_ps: time spent starting outermost ops, at most `_START_PS` each, without the cost of
            recording the ops inside them.
        brief_ps: time of outermost ops that are not much longer than starting them, where they are for one sample each.
        ops_in_programs, op_types_in_programs: outermost ops of compiled programs and graphs, and how many distinct.
        backward_passes: how often backward work follows forward work.
        rows: median number of rows in matrix products, None if not recorded.
        alike: median count of calls with equal operand shapes.
        operands: total number of elements in the first operands of these products.
        recomputed_ps: time of forward ops that run again within the backward pass.
        doubles_ps: time of ops that compute in 64 bits, where the trace shows types.
        in_16_bits: whether all products and convolutions of the host do, where the trace shows types.
        callbacks_ps, callback: time in which compiled programs or graphs call Python, and the largest such op.
        callback_line, callback_takes_given: where the program asks for it, and whether it takes only what the program
            is given and does not change.
        modules: compiled programs with their ops, if ops name their program, longest first.
        training, multiplying: names of the programs with a backward pass, and of those with products; empty if the
            trace does not hold the programs.
        needed: names of the programs whose results others take, and which take those of others.
        generates: most of the time sequences grow position by position, and each round needs the one before.
    """

    steps: int = 0
    compute_ps: int = 0
    self_ps: int = 0
    ops: int = 0
    moves_ps: int = 0
    moves: list[OpShare] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    casts_ps: int = 0
    zeroes_gradients: bool = False
    forward_ps: int = 0
    backward_ps: int = 0
    contention_ps: int = 0
    forward_only_ps: int | None = None
    short_ps: int = 0
    tiny_share: float = 0.0
    start_ps: int = 0
    start_in_programs_ps: int = 0
    brief_ps: int = 0
    ops_in_programs: int = 0
    op_types_in_programs: int = 0
    backward_passes: int = 0
    rows: int | None = None
    alike: int = 0
    operands: int = 0
    recomputed_ps: int = 0
    doubles_ps: int = 0
    in_16_bits: bool = False
    callbacks_ps: int = 0
    callback: str = ""
    callback_line: str = ""
    callback_takes_given: bool = False
    modules: list[OpShare] = field(default_factory=list)
    training: list[str] = field(default_factory=list)
    multiplying: list[str] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)
    generates: bool = False

    @property
    def usual_forward(self) -> float:
        """The share of the forward work that usually belongs to the backward work, where the trace does not tell which
        it is; else 0."""
        if self.forward_only_ps is not None or not self.backward_ps or not self.forward_ps:
            return 0.0
        return min(USUAL_FORWARD * self.backward_ps / self.forward_ps, 1.0)

    def per_step_ms(self, total_ps: float) -> float:
        """A time of all steps as that of one, in ms."""
        return total_ps / max(self.steps, 1) / 1e9

    def share_lost(self, lost_ps: float) -> float:
        """Of the computation, what ops on the critical path lose to what runs beside them, beyond what any run
        varies."""
        return max(lost_ps / self.compute_ps - _NOISE, 0.0) if self.compute_ps else 0.0

    @property
    def critical_path_share(self) -> float:
        """Elapsed time of ops over their self time, at most 1: ops on parallel threads overlap."""
        return min(self.compute_ps / self.self_ps, 1.0) if self.self_ps else 1.0


_Timed = tuple[I64, I64]  # rows of events, and a time of each in ps


def work_of(trace: HostTrace) -> WorkFacts:
    """The work of a host's steps, computed once per trace."""
    return trace.derived("work", _find_work_facts)[0]


def work_events_of(trace: HostTrace) -> dict[str, _Timed]:
    """Ops of a host without devices that could be less, by kind: rows of events, and the self time of each in ps.

    The kinds: `moves` and `casts` as in WorkFacts, `extra` is forward work without a backward pass, `recomputed` what
    runs again within one, `programs` are all ops of compiled programs, `callbacks` what calls Python, `doubles` what
    computes in 64 bits, and `slowed` are ops with what they take beyond that in the best quarter of the steps.
    """
    return trace.derived("work", _find_work_facts)[1]


def _find_work_facts(trace: HostTrace) -> tuple[WorkFacts, dict[str, _Timed]]:
    steps = whole_steps(trace)
    device = is_device_work(trace)
    computing = computing_of(trace)
    ops, own, outer = computing.rows, computing.own_ps, computing.rows[computing.outer]
    eager = computing_eager_ops(trace)
    eager = eager[steps.label[eager] >= 0]
    compute_ps = _compute_time(trace, np.append(ops, eager), device)
    found = WorkFacts(steps=len(steps.number), compute_ps=compute_ps, self_ps=int(own.sum()), ops=len(outer))
    if device.any():
        known = trace.has_stat(stat_names.INPUT_DIMS) or len(events_of_kind(trace, K.BACKWARD)) > 0
        return replace(found, **_batch_facts(trace, steps, ops, _kinds_of_work(trace, ops))) if known else found, {}
    events: dict[str, _Timed] = {}
    return replace(found, **_facts_without_device(trace, steps, found, ops, own, outer, events)), events


def _batch_facts(trace: HostTrace, steps: HostSteps, ops: I64, kinds: dict[str, Mask]) -> dict[str, Any]:
    """How often the steps switch from forward to backward, and the batch sizes."""
    heavy = kinds["heavy"]
    backward = heavy & (kinds["gradient"] | is_inside(trace, ops, K.BACKWARD))
    return {
        "backward_passes": _count_backward_passes(trace, steps, ops[heavy], backward[heavy]),
        **_batch_sizes(trace, ops[heavy & ~backward]),
    }


def _facts_without_device(
    trace: HostTrace, steps: HostSteps, found: WorkFacts, ops: I64, own: I64, outer: I64, events: dict[str, _Timed]
) -> dict[str, Any]:
    """The facts known only for a run without a device; `events` gets the ops behind them, see `work_events_of`."""
    kinds = _kinds_of_work(trace, ops)
    moves, heavy = kinds["moves"] & ~takes_in(trace, ops), kinds["heavy"]
    in_backward = is_inside(trace, ops, K.BACKWARD)
    alone = forward_only_of(trace)
    asked = alone.every & ~alone.first & ~alone.late & ~alone.measures if alone else None
    moves &= ~_serves_layer(trace, ops, heavy) & ~np.isin(ops, compilers_moves(trace))
    moves |= alone.makes_again if alone else False
    # What a gradient moves is asked for by the forward op.
    moves[moves] &= ~(in_backward[moves] & _are_fills(trace, ops[moves]))
    moves[moves] &= ~has_trait(trace, trace.events.type[ops[moves]], OpTrait.OF_GRADIENT)
    backward = heavy & (kinds["gradient"] | in_backward)
    forward = heavy & ~backward & ~_is_of_update(trace, ops)
    eager, again = _eager_moves(trace), recomputed_ops(trace)
    casts = kinds["casts"] & (trace.events.duration_ps[ops] >= SHORT_OP_PS)
    casts &= ~in_backward & ~_is_of_update(trace, ops) & ~_is_made_by_step(trace, ops)
    moves, casts = (_drop_stalls(trace, ops, own, mask) for mask in (moves, casts))
    extra = asked if asked is not None and asked.any() else forward
    in_program = trace.stat_strings(stat_names.HLO_MODULE, rows=ops) > 0
    calls = has_trait(trace, trace.events.type[ops], OpTrait.CALLS_BACK | OpTrait.CALLS_PYTHON)
    chosen = {"moves": moves, "casts": casts, "extra": extra, "programs": in_program}
    chosen |= {"callbacks": calls, "doubles": ops_in_64_bits(trace, ops)}
    events |= {name: (ops[mask], own[mask]) for name, mask in chosen.items()}
    moved, own_ps = events["moves"]
    events["moves"] = np.append(moved, eager), np.append(own_ps, trace.events.duration_ps[eager])
    events["recomputed"] = again, trace.events.duration_ps[again]
    events["slowed"] = _slowed_ops(trace, steps, ops, own)
    return {
        "moves_ps": int(events["moves"][1].sum()),
        "moves": sum_by_name(trace, *events["moves"])[:_MOST_OPS],
        "asked": sum_copies(trace, *events["moves"]),
        "casts_ps": _outer_time(trace, ops[casts]),
        "zeroes_gradients": _zeroes_gradients(trace, *events["moves"]),
        "forward_ps": int(own[forward].sum()),
        "backward_ps": int(own[backward].sum()),
        "contention_ps": int(events["slowed"][1].sum() * found.critical_path_share),
        "forward_only_ps": int(own[asked].sum()) if asked is not None else None,
        **_program_facts(trace, steps, ops, own),
        **_batch_facts(trace, steps, ops, kinds),
        "generates": generates(trace),
        "recomputed_ps": int(trace.events.duration_ps[again].sum()),
        "doubles_ps": int(own[chosen["doubles"]].sum()),
        "in_16_bits": computes_in_16_bits(trace),
        **_start_costs(trace, outer),
        **_callback_facts(trace, *events["callbacks"]),
    }


def _callback_facts(trace: HostTrace, rows: I64, own: I64) -> dict[str, Any]:
    """The ops of compiled programs that call Python, and the line that asks for the largest."""
    called = sum_by_name(trace, rows, own)
    asked_at, takes_given = (compiled_callback(trace) if called else None) or ("", False)
    return {
        "callbacks_ps": int(own.sum()),
        "callback": called[0].name if called else "",
        "callback_line": asked_at,
        "callback_takes_given": takes_given,
    }


def _are_fills(trace: HostTrace, rows: I64) -> Mask:
    found: Mask = _kinds_of_copies(trace, rows) == [kind for kind, _ in KINDS_OF_COPIES].index("fill")
    return found


def _zeroes_gradients(trace: HostTrace, moves: I64, own: I64) -> bool:
    """Whether much of what moves data writes zeros into gradients, as optimizers do that are asked to keep them."""
    start = trace.events.start_ps[moves]
    zeroing = events_of_kind(trace, K.ANNOTATION)
    zeroing = zeroing[has_trait(trace, trace.events.type[zeroing], PurposeTrait.ZEROES_GRADIENTS)]
    inside = spans_of(trace, zeroing).overlap_ps(start, start + 1) > 0
    return bool(own[inside].sum() >= _MUCH * own.sum() > 0)


def _drop_stalls(trace: HostTrace, ops: I64, own: I64, chosen: Mask) -> Mask:
    """The chosen ops without those of a graph's node of which one call takes as long as all others: it waited."""
    rows = np.flatnonzero(chosen & _is_compiled(trace, ops))
    types, inverse, calls = np.unique(trace.events.type[ops[rows]], return_inverse=True, return_counts=True)
    whole, longest = np.zeros(len(types), np.int64), np.zeros(len(types), np.int64)
    np.add.at(whole, inverse, own[rows])
    np.maximum.at(longest, inverse, own[rows])
    stalled = (calls >= _LEAST_TO_COMPARE) & (2 * longest > whole)
    left = chosen.copy()
    left[rows[stalled[inverse] & (own[rows] == longest[inverse])]] = False
    return left


def _is_made_by_step(trace: HostTrace, ops: I64) -> Mask:
    """Whether each op has a gradient, or lies in the call of an optimizer: what it works on is no data of the loop."""
    work = computing_of(trace)
    found: Mask = np.isin(ops, work.rows[work.learned | work.updates])
    return found


def _is_of_update(trace: HostTrace, ops: I64) -> Mask:
    """Whether each op of a graph lies in a scope that writes variables, such as that of an optimizer: also what it
    computes to keep weights in bounds belongs to the update."""
    types = used_rows(trace.events.type[ops], len(trace.event_types))
    names = type_names(trace, types)
    writes = has_trait(trace, types, OpTrait.WRITES_VARIABLE).tolist()
    scopes = {name.rpartition("/")[0] for name, is_one in zip(names, writes, strict=True) if is_one} - {""}
    inside = [f"{name.rpartition('/')[0]}/".startswith(tuple(f"{each}/" for each in scopes)) for name in names]
    found: Mask = np.isin(trace.events.type[ops], types[np.array(inside, np.bool_)])
    return found


def _serves_layer(trace: HostTrace, ops: I64, heavy: Mask) -> Mask:
    """Whether each op runs inside one that multiplies, or for its gradient: how a layer such as a GRU puts its own
    steps together is not the program's to change.  The gradient of a table is filled by the layer, too."""
    heavy = heavy | has_trait(trace, trace.events.type[ops], PurposeTrait.SPREADS_ROWS)
    among = np.zeros(len(trace.events), np.bool_)
    among[ops] = True
    outermost = enclosing_events(trace, among)
    layers = distinct(outermost[ops[heavy]])
    found: Mask = np.isin(outermost[ops], layers) | np.isin(outermost[forward_events(trace, ops)], layers)
    return found


def _start_costs(trace: HostTrace, outer: I64) -> dict[str, Any]:
    """Time spent on short ops and on starting ops."""
    length, compiled = trace.events.duration_ps[outer], _is_compiled(trace, outer)
    short = length < SHORT_OP_PS
    nested = np.zeros(len(outer), np.int64)  # ops of compiled programs contain no others
    nested[~compiled] = _count_events_inside(trace, outer[~compiled])
    length_alone = np.maximum(length - _RECORDED_OP_PS * nested, 0)
    start = np.minimum(length_alone, _START_PS)
    return {
        "short_ps": int(length[short & ~compiled].sum()),
        "tiny_share": tiny_share(trace, outer[~compiled]),
        "start_ps": int(start[~compiled].sum()),
        "start_in_programs_ps": int(start[compiled].sum()),
        "brief_ps": int(length_alone[length_alone < LONG_OP_PS].sum()),
        "ops_in_programs": int(compiled.sum()),
        "op_types_in_programs": int(np.count_nonzero(np.bincount(trace.events.type[outer[compiled]]))),
    }


def _kinds_of_work(trace: HostTrace, ops: I64) -> dict[str, Mask]:
    """The kinds of work of each op, by its name: bool of shape (ops,) each."""
    types = trace.events.type[ops]
    found = {kind: has_trait(trace, types, trait) for kind, trait in _TRAIT_OF_WORK.items()}
    found["gradient"] = found["heavy"].copy()
    found["gradient"][found["heavy"]] = has_trait(trace, types[found["heavy"]], OpTrait.OF_GRADIENT)
    return found


def _eager_moves(trace: HostTrace) -> I64:
    """Eagerly dispatched ops that only move data and take longer than their dispatch."""
    rows = eager_ops(trace)
    rows = rows[trace.events.duration_ps[rows] >= LONG_OP_PS]
    start = trace.events.start_ps[rows]
    rows = rows[observed_time(trace).touches(start, start + trace.events.duration_ps[rows])]
    return rows[has_trait(trace, trace.events.type[rows], OpTrait.MOVES_DATA)]


def _count_events_inside(trace: HostTrace, outer: I64) -> I64:
    """For each event, how many events of its line start inside it."""
    ends = trace.events.start_ps[outer] + trace.events.duration_ps[outer]
    stop = trace.lines.event_end[trace.events.line[outer]]
    return last_below(trace.events.start_ps, outer, stop, np.maximum(ends, trace.events.start_ps[outer] + 1)) - outer


def _outer_time(trace: HostTrace, rows: I64) -> int:
    """Time of the outermost of the events."""
    among = np.zeros(len(trace.events), np.bool_)
    among[rows] = True
    return int(trace.events.duration_ps[rows[enclosing_events(trace, among)[rows] == rows]].sum())


def _is_compiled(trace: HostTrace, ops: I64) -> Mask:
    """Whether each op belongs to a compiled program, and so is not dispatched individually."""
    return (trace.stat_strings(stat_names.HLO_OP, rows=ops) > 0) | is_inside(trace, ops, K.EXECUTOR)


def _compute_time(trace: HostTrace, ops: I64, device: Mask) -> int:
    """Time in which devices compute; without a device, time in which ops run on host threads."""
    working = events_of_kind(trace, K.KERNEL, K.DEVICE_OP, K.GRAPH_LAUNCH)
    working = working[device[working]]
    rows = working if len(working) else ops
    return spans_of(trace, rows).total


def _slowed_ops(trace: HostTrace, steps: HostSteps, ops: I64, own: I64) -> tuple[I64, I64]:
    """Ops, and by how much the self time of each is above that in the best quarter of the steps, in ps.

    Each op is compared with its counterparts in other steps: the n-th op of its name.
    """
    in_time = np.argsort(trace.events.start_ps[ops], kind="stable")
    types = trace.events.type[ops[in_time]].astype(np.int64)
    place = count_before(types * len(steps.number) + steps.label[ops[in_time]])
    key = types * (int(place.max(initial=0)) + 1) + place
    order = np.lexsort((own[in_time], key))
    rows, key = in_time[order], key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.empty(0, np.int64)
    count = np.diff(np.append(first, len(key)))
    slower, several = own[rows] - np.repeat(own[rows[first + count // 4]], count), np.repeat(count, count)
    compared = several >= _LEAST_TO_COMPARE
    return ops[rows[compared]], slower[compared]


def sum_copies(trace: HostTrace, rows: I64, own: I64) -> dict[str, int]:
    """The time of ops that move data by what asks for the copy: the op furthest out of those around it that copy.

    contiguous  =================
    clone         =============
    copy_            =========        of these, `contiguous` asks
    """
    parent, asks = forest(trace).parent, rows.copy()
    open_ = np.arange(len(rows))
    while len(open_):
        outer = parent[asks[open_]].astype(np.int64)
        open_, outer = open_[outer >= 0], outer[outer >= 0]
        copies = _kinds_of_copies(trace, outer) < len(KINDS_OF_COPIES)
        open_, outer = open_[copies], outer[copies]
        asks[open_] = outer
    time = np.bincount(_kinds_of_copies(trace, asks), weights=own, minlength=len(KINDS_OF_COPIES) + 1)
    names = [*(kind for kind, _ in KINDS_OF_COPIES), ""]
    return {names[at]: round(float(time[at])) for at in np.argsort(-time, kind="stable").tolist() if time[at]}


def _kinds_of_copies(trace: HostTrace, rows: I64) -> I64:
    """The number of each event among KINDS_OF_COPIES, their count for one that is none: int64 of shape (rows,)."""
    types, inverse = np.unique(trace.events.type[rows].astype(np.int64), return_inverse=True)
    numbers = {kind: at for at, (kind, _) in enumerate(KINDS_OF_COPIES)} | {"": len(KINDS_OF_COPIES)}
    found = np.array([numbers[kind_of_copy(name)] for name in type_names(trace, types)], np.int64)
    return found[inverse.reshape(-1)]


def sum_by_name(trace: HostTrace, rows: I64, own: I64) -> list[OpShare]:
    """The events of each name, the longest first; an op that TensorFlow dispatches eagerly by its own name.

    Args:
        own: int64 of shape (rows,), the time of each event, ps.
    """
    unique, inverse = np.unique(trace.event_names(rows).astype(np.int64), return_inverse=True)
    total, calls = np.zeros(len(unique), np.int64), np.bincount(inverse, minlength=len(unique))
    np.add.at(total, inverse, own)
    names = [trace.strings[name] for name in unique.tolist()]
    return [
        OpShare(eager_op(names[at]) or names[at], int(calls[at]), int(total[at]))
        for at in np.argsort(-total, kind="stable").tolist()
    ]


def _count_backward_passes(trace: HostTrace, steps: HostSteps, heavy: I64, backward: Mask) -> int:
    """How often heavy work switches from forward to backward.  In a graph, each op of which has a name of its own, ops
    that do not need each other run in any order: it has no more passes than runs of one op."""
    order = np.argsort(trace.events.start_ps[heavy], kind="stable")
    turned = backward[order]
    switches = int((turned[1:] & ~turned[:-1]).sum()) if len(turned) else 0
    return min(switches, int(np.bincount(trace.events.type[heavy[backward]]).max(initial=0)))


_DIMS = Pattern(r"\[(\d{1,15}),(\d{1,15})[\],]")  # no tensor has a longer side, so more digits are damage


def _batch_sizes(trace: HostTrace, heavy: I64) -> dict[str, Any]:
    """Median rows of heavy ops, median calls with equal operand shapes, and total elements in first operands."""
    if not len(heavy) or not trace.has_stat(stat_names.INPUT_DIMS):
        return {}
    dims = trace.stat_strings(stat_names.INPUT_DIMS, rows=heavy).astype(np.int64)
    shapes, counts = np.unique(dims * len(trace.event_types.name) + trace.events.type[heavy], return_counts=True)
    texts = [trace.strings[text] for text in (shapes // len(trace.event_types.name)).tolist()]
    found = [(text, int(match[1]), count) for text, count in zip(texts, counts.tolist(), strict=True)
             if (match := _DIMS.search(text))]  # fmt: skip
    if not found:
        return {}
    rows, alike = np.array([(rows, count) for _, rows, count in found]).T
    return {
        "rows": int(median(np.repeat(rows, alike))),
        "alike": int(median(np.repeat(alike, alike))),
        "operands": sum(count * first_operand_numbers(text) for text, _, count in found),
    }


def _program_facts(trace: HostTrace, steps: HostSteps, ops: I64, own: I64) -> dict[str, Any]:
    """The compiled programs, and which of them train or multiply."""
    if not trace.has_stat(stat_names.HLO_MODULE) or not len(ops):
        return {}
    found = _programs_run(trace, steps, ops, own)[:_MOST_MODULES]
    programs = programs_of(trace)
    places = [programs.find(number, module) for _, number, module in found]
    ops_of = [framework_ops(programs, place) for place in places]
    needed = find_needed([programs.module(place) if place >= 0 else None for place in places])

    def having(test: Callable[[str], bool]) -> list[str]:
        return [share.name for (share, _, _), ops in zip(found, ops_of, strict=True) if any(map(test, ops))]

    return {
        "modules": [share for share, _, _ in found],
        "training": having(is_backward),
        "multiplying": having(is_product),
        "needed": [share.name for (share, _, _), is_needed in zip(found, needed, strict=True) if is_needed],
    }


def _programs_run(trace: HostTrace, steps: HostSteps, ops: I64, own: I64) -> list[tuple[OpShare, int, str]]:
    """Programs with their number and the name of their module, longest first.

    Programs of one name count as one, unless several of them run in most steps.  Then they are different functions,
    such as several lambdas in JAX.
    """
    module = np.maximum(trace.stat_strings(stat_names.HLO_MODULE, rows=ops), 0).astype(np.int64)
    number = trace.stat_ints(stat_names.PROGRAM_ID, rows=ops)
    label = steps.label[ops].astype(np.int64)
    # Ops of a program follow each other, so sorting their runs below is enough.
    begins = np.flatnonzero(np.append(True, (np.diff(module) != 0) | (np.diff(number) != 0) | (np.diff(label) != 0)))
    pairs, of = np.unique(np.stack([module[begins], number[begins]]), axis=1, return_inverse=True)
    apart = _is_separate_program(pairs[0], of.reshape(-1), label[begins], len(steps.number))
    # A separate program is its own group; all others of a name form one group.
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
            title = f"{name}{_PROGRAM}{program})" if apart[first[at]] else name
            found.append((OpShare(title, int(count[at]), int(total[at])), program, name))
    return found


def split_programs(work: WorkFacts) -> tuple[OpShare | None, list[OpShare]]:
    """The program that trains, None where no trace shows which, and the others that could be left out.

    The one that trains has a backward pass, if the trace shows any.  Among several, a training name decides, then the
    number of calls.
    """
    if not 1 < len(work.modules) <= FEW_PROGRAMS:
        return None, []
    training = [module for module in work.modules if module.name in work.training]
    main = max(training or work.modules, key=lambda module: (is_training_function(module.name), module.calls))
    beside = [module for module in work.modules if module is not main and module.name not in work.needed]
    if training:  # a program without products is not a forward pass: it updates weights, or counts
        beside = [module for module in beside if module.name in work.multiplying]
    if not is_training_function(main.name):  # which of several with a backward pass trains is not known
        beside = [module for module in beside if module not in training]
    return main, beside


def training_program(work: WorkFacts, is_named: bool) -> OpShare | None:
    """The program that trains: as `split_programs` has it; of many programs the longest of those with a backward pass,
    else the one that computes for most of the time.

    Args:
        is_named: the name of a call says training: then the longest program has to be of such a name.
    """
    main, _ = split_programs(work)
    longest = max(work.modules, key=lambda module: module.total_ps, default=None)
    if main is not None or longest is None:
        return main
    backward = [module for module in work.modules if module.name in work.training]
    if backward:
        return max(backward, key=lambda module: module.total_ps)
    is_known = not is_named or is_training_function(function_of_program(module_of(longest)))
    return longest if is_known and 2 * longest.total_ps > work.self_ps else None


def ops_of_programs(trace: HostTrace, programs: list[OpShare]) -> I64:
    """The ops of some of `WorkFacts.modules`: rows of events."""
    rows, _ = work_events_of(trace).get("programs", (np.empty(0, np.int64), None))
    module = trace.stat_strings(stat_names.HLO_MODULE, rows=rows)
    number = trace.stat_ints(stat_names.PROGRAM_ID, rows=rows)
    chosen = np.zeros(len(rows), np.bool_)
    for program in programs:
        name, _, digits = program.name.partition(_PROGRAM)
        of_name = module == trace.strings.find(name)
        chosen |= of_name & (number == int(digits.rstrip(")"))) if digits else of_name
    return rows[chosen]


def module_of(share: OpShare) -> str:
    """The name of the module of one of `WorkFacts.modules`, without the number that tells programs of it apart."""
    return share.name.partition(_PROGRAM)[0]


def _is_separate_program(module: I64, program: I64, step: I64, steps: int) -> Mask:
    """Whether each program runs in most steps, as another of its module does: bool of shape (programs,).

    Args:
        module: the module of each program.
        program, step: the program and the step of each run.
        steps: number of steps.
    """
    in_steps = np.unique(np.stack([program, step]), axis=1)[0]
    steady = 2 * np.bincount(in_steps, minlength=len(module)) > steps
    found: Mask = steady & (np.bincount(module, steady)[module] > 1)
    return found
