"""What changes give the median step of one host: the replay of its model with each, for the rules to choose from."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from stepscope.analysis.account.causes import Cause, calls_during_their_copy, event_causes
from stepscope.analysis.account.functions import part_with_work
from stepscope.analysis.account.graph import EdgeKind
from stepscope.analysis.account.interventions import Intervention, Move, Overlap, ReplayAsGraph, Scale, Uncertain
from stepscope.analysis.account.model import StepModel, model_of
from stepscope.analysis.account.predict import Predicted, predict, usual_error
from stepscope.analysis.account.selectors import (
    Portion,
    part_of_batches,
    part_of_cause,
    part_of_events,
    part_of_stretches,
)
from stepscope.analysis.account.stretches import time_of_loop
from stepscope.analysis.facts.device_facts import work_by_kind
from stepscope.analysis.facts.factors import (
    IN_16_BITS,
    estimate_32_bits,
    estimate_attention,
    estimate_fused,
    estimate_update,
    estimate_workers,
)
from stepscope.analysis.facts.lines import lines_of, parts_of_lines
from stepscope.analysis.facts.loop import BEFORE_WORK, FETCHES, FREEING, PYTHON, LoopTime, loop_time_of
from stepscope.analysis.facts.processors import lacks_cores, processors_of
from stepscope.analysis.facts.work import ops_of_programs, split_programs, work_events_of, work_of
from stepscope.analysis.purpose.computing import computing_of, update_ranges
from stepscope.analysis.purpose.excess import COPIED, EXCESSES, ONE_BY_ONE, Excess, excesses_of
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.verdict import LARGE_SHARE, LEAST_PERCENT
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import enclosing_events, is_device_work
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.python import is_training_function
from stepscope.vocabulary.traits import CallTrait

# The rows that the advice of a class may play, and what-if where there is none.
CHANGES_OF_CLASS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("input_preprocessing", "input_file_read", "input_no_prefetch", "input_python"), ("input",)),
    "input_transfer": ("copies_in", "transfer", "converting"),
    "small_batch": ("graph", "launch", ONE_BY_ONE),
    "eager_dispatch": ("graph", "launch"),
    "recompilation": ("compile", "compiling"),
    "host_sync": ("waits", "fetching", "sync"),
    "python_overhead": ("python", "python_gaps", "callbacks"),
    "checkpoint_stall": ("checkpoint",),
    "redundant_compute": ("extra", "functions", "beside", "recomputed", *EXCESSES),
    "memory_churn": ("moving", "layout", "device_copies", "offload", "driver_calls", COPIED),
    "communication_bound": ("overlap", "last_pass", "communication"),
    "straggler": ("communication",),
    "low_precision": ("wide_products", "doubles"),
}
UNEXPLAINED = (
    "unexplained"  # what was not recorded, removed: no advice, but the most that any other change competes with
)
LONG_CALL_PS = 1_000_000_000  # launching takes a hundredth of it: such a call waits for something
LEAST = LEAST_PERCENT / 100.0  # of the step: no advice is given on less


@dataclass(frozen=True)
class Changes:
    """What each change gives the median step.

    Attributes:
        predicted: by the name of the change: a cause of the account for removing it, or a key of CHANGES.
        why_not: why nothing is predicted; None where the model carries.
        are_launches_linked: the trace links device work to the calls that launched it; else nothing is known of
            changes of how it is launched.
    """

    predicted: dict[str, Predicted]
    why_not: str | None
    are_launches_linked: bool


def changes_of(trace: HostTrace) -> Changes | None:
    """What changes give the median step of a host, made once per trace; None where no steps were found."""
    return trace.derived("changes", _changes)


def _changes(trace: HostTrace) -> Changes | None:
    model = model_of(trace)
    if model is None:
        return None
    if model.why_not is not None:
        return Changes({}, model.why_not, False)
    found = {
        name: predict(model, changes, of_machine=name == Cause.CONTENTION.name.lower())
        for name, changes in _worthwhile(model)
    }
    if not is_device_work(trace).any():
        ops = _ops_left_out(trace) | {each.kind: (each.rows, each.keeps, each.keeps) for each in excesses_of(trace)}
        found |= {name: _drop_pauses(trace, *ops[name], found[name]) for name in ops.keys() & found.keys()}
        found |= {each.kind: _leave_out(trace, each, found.get(each.kind)) for each in excesses_of(trace)}
        if lacks_cores(model):
            found = {name: each and replace(each, least_ps=0) for name, each in found.items()}
        found |= _share_processors(trace, found)
    linked = bool((model.graph.edges.kind == EdgeKind.LAUNCH).any())
    return Changes({name: each for name, each in found.items() if each is not None}, None, linked)


def _share_processors(trace: HostTrace, found: dict[str, Predicted | None]) -> dict[str, Predicted | None]:
    """The forecasts for work that runs beside the step, but takes processors that the step has too few of."""
    held = processors_of(trace)
    if held is None:
        return {}
    work = {"input": held.input_ps, **{line.key: line.own_ps * (1.0 - line.asleep) for line in lines_of(trace)}}
    return {name: each and held.predict_without(each, work[name]) for name, each in found.items() if name in work}


def _ops_left_out(trace: HostTrace) -> dict[str, tuple[I64, float, float]]:
    """The ops that rows of the table leave out, what stays of them, and the least that may."""
    work = work_events_of(trace)
    named = {name: [work[each][0] for each in row.ops if each in work] for name, row in _OF_LOOP.items()}
    halved = estimate_32_bits(trace, named.get("doubles", [np.empty(0, np.int64)])[0])
    kept = {"doubles": halved.usual, "extra": work_of(trace).usual_forward}
    least = kept | {"doubles": halved.low}
    return {
        name: (np.concatenate(rows), kept.get(name, 0.0), least.get(name, 0.0)) for name, rows in named.items() if rows
    }


def _drop_pauses(
    trace: HostTrace, rows: I64, keeps: float, fastest: float, found: Predicted | None
) -> Predicted | None:
    """The forecast without the pauses of a compiled program that go with its ops.

    Between its ops a program hands work from thread to thread, and each waits for a core in proportion to what it
    computes.  Of those pauses a replay keeps all, since nothing was recorded in them.
    """
    if found is None or not trace.has_stat(stat_names.HLO_OP) or not len(rows):
        return found
    chosen = np.zeros(len(trace.events), np.bool_)
    chosen[rows] = True
    ops = computing_of(trace).rows
    gone = chosen[ops] | (enclosing_events(trace, chosen)[ops] >= 0)
    computing, left = spans_of(trace, ops).total, spans_of(trace, ops[~gone]).total
    steps = max(len(whole_steps(trace).number), 1)
    computes = Cause.HOST_COMPUTE.name.lower()
    spent = found.causes.get(computes, 0)

    def pauses(keeps: float) -> int:
        share = (1.0 - keeps) * (1.0 - left / max(computing, 1))
        return min(max(round((spent - computing * (1.0 - share) / steps) * share), 0), found.then_ps - 1)

    drop, most_dropped = pauses(keeps), pauses(fastest)
    return replace(
        found, then_ps=found.then_ps - drop, least_ps=max(found.least_ps - most_dropped, 0),
        most_ps=found.most_ps - drop,
        causes=found.causes | ({computes: spent - drop} if drop else {}),
    )  # fmt: skip


def _leave_out(trace: HostTrace, excess: Excess, found: Predicted | None) -> Predicted | None:
    """The forecast without work that is not needed: no less than the time in which that runs goes with it, and at best
    as much of the step as it is of the time in which ops run, and the usual error more; how much, if it is only a part
    of what goes, is not known.

    Programs run their ops on several threads, and wait between them where a machine is busy: a replay keeps such pauses
    though what they are between is gone.
    """
    if found is None or not found.now_ps or (excess.made is not None and excess.made.overlaps):
        return found
    gone = excess.ps * (1.0 - excess.keeps)
    without = found.now_ps * max(1.0 - gone / max(observed_time(trace).total, 1), 0.0)
    computing = spans_of(trace, computing_of(trace).rows).total
    best = found.now_ps * max(1.0 - gone / max(computing, 1), 0.0)
    then = min(found.then_ps, round(without))
    if excess.is_part:
        return replace(found, then_ps=then, least_ps=0, most_ps=then)
    least = max(round(best - usual_error(found.now_ps, best)), 1)
    return replace(found, then_ps=then, least_ps=min(found.least_ps, then, least))


def _worthwhile(model: StepModel) -> Iterator[tuple[str, Sequence[Intervention]]]:
    """The changes that may matter: of causes and parts that the steps spend more than a little on; one after the other,
    since each holds columns of all nodes."""
    own = model.shares.own_ps.sum_by_cause(np.isin(model.graph.step, model.steps))
    # What others take of the machine makes no part of the program small.
    quiet = max(model.graph.recorded_step_ps[model.steps].sum() - own[Cause.CONTENTION], 0)
    usual = max(model.graph.recorded_step_ps[model.median] - model.spent_ps[Cause.CONTENTION], 0)
    least = LEAST * float(min(quiet, usual * len(model.steps)))  # nor does a step that stalls
    for cause in Cause:
        large = own[cause] >= least > 0 or model.spent_ps[cause] >= LEAST * usual > 0
        if cause == Cause.UNKNOWN:
            if model.spent_ps[cause] >= LARGE_SHARE / 100 * usual > 0:
                yield UNEXPLAINED, [Scale(part_of_cause(model, cause))]
        elif large:
            part = part_of_cause(model, cause)
            yield cause.name.lower(), [Scale(part)]
            yield from ((name, change(model, part)) for name, change in _OTHERWISE.get(cause, ()))
    yield from ((name, [Scale(part)]) for name, part in parts_of_lines(model))
    if is_device_work(model.trace).any():
        yield from ((name, [change]) for name, change in _change_events(model) if change.part.own_ps.sum() >= least)
        yield "waits", _remove_waits(model)
    else:
        yield from _changes_of_loop(model, least)
    yield from ((each.kind, [Scale(each.part(model), each.keeps)]) for each in excesses_of(model.trace))


# What else can be done about a cause than removing it.
_OTHERWISE: Mapping[Cause, tuple[tuple[str, Callable[..., list[Intervention]]], ...]] = {
    Cause.INPUT: (
        ("workers", lambda model, part: [Move(part, estimate_workers(model.trace))]),
        ("ahead", lambda model, part: [Overlap(part)]),
    ),
    Cause.LAUNCH: (("graph", lambda model, part: _replay_as_graph(model, part)),),
    Cause.COMMUNICATION: (("overlap", lambda model, part: [Overlap(part)]),),
}


def _replay_as_graph(model: StepModel, launching: Portion) -> list[Intervention]:
    """All of a step in one launch: that does away with the Python between two launches as well."""
    between = _drop_long_stretches(part_of_cause(model, Cause.PYTHON))
    return [ReplayAsGraph(_drop_long_stretches(launching)), Scale(between)]


def _drop_long_stretches(part: Portion) -> Portion:
    """The part without what takes so long between two launches that it waits or computes: that stays however the work
    is launched."""
    blocked = part.own_ps.sum_by_node() >= LONG_CALL_PS
    return replace(part, own_ps=part.own_ps.select_nodes(~blocked))


def _remove_waits(model: StepModel) -> list[Intervention]:
    """No calls that wait for a device, and none that copy or wait for long."""
    rows = events_of_kind(model.trace, EventKind.RUNTIME_CALL)
    rows = rows[model.trace.events.duration_ps[rows] >= LONG_CALL_PS]
    rows = rows[has_trait(model.trace, model.trace.events.type[rows], CallTrait.MAY_BLOCK)]
    waits: list[Intervention] = [Scale(part_of_cause(model, Cause.SYNC))]
    return [*waits, Scale(part_of_events(model, rows))] if len(rows) else waits


def _change_events(model: StepModel) -> Iterator[tuple[str, Scale]]:
    """Changes of some device work, or of some calls: what is left of them is estimated, or nothing is."""
    trace = model.trace
    rows = events_of_kind(trace, EventKind.RUNTIME_CALL)
    calls = {"driver_calls": rows[has_trait(trace, trace.events.type[rows], CallTrait.TAKES_MEMORY)]}
    calls["optimizer"] = update_ranges(trace)
    kinds = work_by_kind(trace)
    handing_over = calls_during_their_copy(trace)  # without the copies they take no time
    copies = {name: np.append(kinds[name], handing_over) for name in ("copies_in", "pageable") if len(kinds[name])}
    for name, rows in {**kinds, **copies, **calls}.items():
        if len(rows):
            estimate = _ESTIMATES.get(name)
            yield name, Scale(part_of_events(model, rows), 0.0 if estimate is None else estimate(trace, rows))


_ESTIMATES: Mapping[str, Callable[[HostTrace, I64], Uncertain]] = {
    "elementwise": estimate_fused, "attention": estimate_attention, "optimizer": estimate_update,
    "wide_products": lambda trace, rows: IN_16_BITS,
}  # fmt: skip


# What the loop's thread does that it could leave out: the stretches of each change, the ops that go with them, and the
# causes of other threads' work that does.
@dataclass(frozen=True)
class _Row:
    """A change of a step that a host computes: what is left out of it.

    Attributes:
        stretches: names of `LoopTime.spans`, which the loop's thread leaves out with what it waits for there.
        ops: names of `work_events_of`, ops that run no more, with what they start and wait for.
        of_loop: time that the loop's thread spends on these causes, with what it waits for there.
        causes: time of any thread with these causes.
        but: names of `LoopTime.spans` that stay.
        pipeline: threads of the input pipeline do it, which make every batch at once then.
        competes: it takes cores, memory or caches from ops that stay.
    """

    stretches: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    of_loop: tuple[Cause, ...] = ()
    causes: tuple[Cause, ...] = ()
    but: tuple[str, ...] = ()
    pipeline: bool = False
    competes: bool = True


_OF_LOOP: Mapping[str, _Row] = {
    "input": _Row(of_loop=(Cause.INPUT,), pipeline=True),
    "transfer": _Row(of_loop=(Cause.TRANSFER,), causes=(Cause.TRANSFER,)),
    "checkpoint": _Row(of_loop=(Cause.CHECKPOINT,)),
    "communication": _Row(of_loop=(Cause.COMMUNICATION,)),
    "waiting_for_python": _Row(stretches=(PYTHON,), of_loop=(Cause.INPUT,), pipeline=True),
    "before_work": _Row(stretches=(BEFORE_WORK,), of_loop=(Cause.INPUT,), pipeline=True),
    "converting": _Row(stretches=(FREEING,), ops=("casts",), of_loop=(Cause.TRANSFER,), causes=(Cause.TRANSFER,)),
    "python_gaps": _Row(stretches=(PYTHON,), but=(FREEING,), competes=False),
    "fetching": _Row(stretches=(FETCHES,), competes=False),
    "last_pass": _Row(causes=(Cause.COMMUNICATION,)),
    "moving": _Row(stretches=(FREEING,), ops=("moves",)),
    "extra": _Row(ops=("extra",), competes=False),
    "functions": _Row(ops=("functions",), competes=False),
    "beside": _Row(ops=("beside",), competes=False),
    "recomputed": _Row(ops=("recomputed",), competes=False),
    "callbacks": _Row(ops=("callbacks",), competes=False),
    "doubles": _Row(ops=("doubles",), competes=False),
    "compiling": _Row(causes=(Cause.COMPILE, Cause.LAUNCH)),
}


def _changes_of_loop(model: StepModel, least: float) -> Iterator[tuple[str, list[Intervention]]]:
    """The rows of the table that take at least so long in all usual steps, in ps."""
    loop, work = loop_time_of(model.trace), work_events_of(model.trace)
    if loop is None:
        return
    ops = {name: rows for name, (rows, _) in work.items()}
    ops["beside"] = ops_of_programs(model.trace, split_programs(work_of(model.trace))[1])
    ops["functions"] = _other_functions(model.trace, loop)
    kept: dict[str, float | Uncertain] = {}
    if len(ops.get("doubles", ())):
        kept["doubles"] = estimate_32_bits(model.trace, ops["doubles"])
    kept |= {"extra": work_of(model.trace).usual_forward, "last_pass": _one_pass(model.trace)}
    for name, row in _OF_LOOP.items():
        stretches = [loop.spans[each] for each in row.stretches]
        stretches += [time_of_loop(model.trace, cause) for cause in row.of_loop]
        left_out = reduce(operator.or_, stretches, spans_of(model.trace, np.empty(0, np.int64)))
        for each in row.but:
            left_out = left_out - loop.spans[each]
        parts = [part_with_work(model, ops[each]) for each in row.ops if len(ops.get(each, ()))]
        parts += [part_of_cause(model, cause) for cause in row.causes]
        own_ps = float(sum(part.own_ps.sum() for part in parts))
        if left_out.total + own_ps >= least:
            parts.append(part_of_stretches(model, loop.line, left_out))
            parts += [part_of_batches(model, row.pipeline)] if Cause.INPUT in row.of_loop else []
            removed: list[Intervention] = [Scale(part, kept.get(name, 0.0)) for part in parts]
            others = _work_of_others(model, loop.line, parts, {*row.of_loop, *row.causes})
            if row.competes:
                removed += _ease(model, loop.line, left_out, others, max(left_out.total, own_ps))
            yield name, removed


def _other_functions(trace: HostTrace, loop: LoopTime) -> I64:
    """Calls by the loop's thread of functions whose names do not say training, if another's does: rows of events."""
    rows = loop.starts[is_any_kind(trace.events.kind[loop.starts], (EventKind.TRACED_FUNCTION, EventKind.FUNCTION_RUN))]
    trains = np.array([is_training_function(trace.name_of(row)) for row in rows.tolist()], np.bool_)
    return rows[~trains] if trains.any() else rows[:0]


def _one_pass(trace: HostTrace) -> float:
    """The share of the communication that one backward pass of a step has."""
    work = work_of(trace)
    return min(work.steps / work.backward_passes, 1.0) if work.backward_passes else 1.0


def _work_of_others(model: StepModel, loop: int, parts: Sequence[Portion], causes: set[Cause]) -> Spans:
    """When the part that is left out is seen to work on other threads than that of the loop; when worker processes do
    is not known, and ranks that communicate work all the time."""
    trace, graph = model.trace, model.graph
    if Cause.COMMUNICATION in causes:
        return observed_time(trace)
    own = reduce(operator.add, [part.own_ps.sum_by_node() for part in parts])
    if Cause.INPUT in causes:
        own = own + np.append(model.threads.serves_input, False)[graph.line] * graph.own_ps
    nodes = np.flatnonzero((own > 0) & (graph.line != loop) & (graph.line >= 0))
    events = is_thread_event(trace) & (trace.events.line != loop) & np.isin(event_causes(trace), [*causes])
    return Spans.union(graph.start_ps[nodes], graph.end_ps[nodes]) | spans_of(trace, np.flatnonzero(events))


def _ease(model: StepModel, loop: int, of_loop: Spans, of_others: Spans, most_ps: float) -> list[Intervention]:
    """Ops no longer lose what they lose to work beside them, as far as some steps show how fast they are without: only
    what they lose while the loop's thread or others do that on another thread, as other programs take the rest; and no
    more than that work takes itself."""
    work, (rows, slower) = work_of(model.trace), work_events_of(model.trace)["slowed"]
    start, length = model.trace.events.start_ps[rows], model.trace.events.duration_ps[rows]
    beside = (of_others.overlap_ps(start, start + length), (of_others | of_loop).overlap_ps(start, start + length))
    together = np.where(model.trace.events.line[rows] == loop, *beside) / np.maximum(length, 1)
    lost = work.share_lost(float((slower * together).sum()) * work.critical_path_share)
    lost = min(lost, most_ps / max(work.compute_ps, 1))
    if lost < LEAST:
        return []
    source = f"in the quarter of steps where they are fastest, ops take {100 * lost:.0f} % less time"
    return [Scale(part_of_cause(model, Cause.HOST_COMPUTE), Uncertain(1.0 - lost, 1.0 - lost, 1.0, source))]
