"""The model of one host's steps with what is read off it again and again: its replay, causes, and the usual steps."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.build import graph_of
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.critical_path import OWN, way_through
from stepscope.analysis.account.graph import NO_LINE, EdgeKind, Graph
from stepscope.analysis.account.long_steps import OUTLIER, own_lengths
from stepscope.analysis.account.piece_causes import causes_of_waiting
from stepscope.analysis.account.replay import Replay, replay, replay_error_percent
from stepscope.analysis.account.shares import CauseShares, shares_of, spent_on
from stepscope.analysis.account.threads import Threads, threads_of
from stepscope.analysis.steps.compiled import compile_again
from stepscope.analysis.steps.cycles import LEAST_STEPS
from stepscope.analysis.steps.find_steps import is_usual, steps_of
from stepscope.analysis.steps.unmeasured import MOST_LOST
from stepscope.analysis.steps.verdict import LEAST_PERCENT
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.environment import has_lost_framework
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.lost_work import end_of_record, share_lost
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import F64, I64
from stepscope.records import dataclass

MOST_ERROR_PERCENT = 10.0  # of the step: a replay further off predicts nothing (the goal of the published table)
MOST_UNKNOWN = 1 / 3  # of the step without a known reason; that may be anything
_USUAL_SHARE = 0.25  # of the steps: a quartile of them is no exception
_MOST_LOOKED_AT = 8  # steps about as long as the median one: each costs as much as a walk over the graph's nodes
_ABOUT_AS_LONG = 0.05  # of a step: XProf finds less worth a word of no part
_TAKES_PART = 0.1  # of a step: a line that works for less is not worth an edge


@dataclass(frozen=True)
class StepModel:
    """The model of a host's steps.

    Attributes:
        steps: int64 of shape (n,), the usual steps: complete, without warm-up; rows of the graph's steps.
        median: the usual step of median length.
        now: the replay of the graph as it is.
        spent_ps: float64 of shape (causes,), what the median step was spent on, as recorded.
        error_percent: how far the replayed median step is from the recorded one; None without usual steps.
        why_not: why nothing is predicted from the model; None where it carries.
    """

    trace: HostTrace
    graph: Graph
    threads: Threads
    shares: CauseShares
    steps: I64
    median: int
    now: Replay
    spent_ps: F64
    error_percent: float | None
    why_not: str | None


def model_of(trace: HostTrace) -> StepModel | None:
    """The model of a host's steps, made once per trace; None where no steps were found."""
    return trace.derived("step model", _model)


def usual_steps(trace: HostTrace, graph: Graph) -> I64:
    """Steps of the graph that no edge of the capture cuts, without the first ones that compile; all without any.

    Where the record of the devices ends early these are the steps before.
    """
    usual = np.flatnonzero(is_usual(trace)[graph.steps])
    usual = usual if len(usual) else np.arange(len(graph.steps))
    ends_at = end_of_record(trace)
    before = usual if ends_at is None else usual[steps_of(trace).until_ps[graph.steps[usual]] <= ends_at]
    return before if len(before) else usual


def median_step(trace: HostTrace, graph: Graph) -> int:
    """The step that stands for the others, found once: the median of the usual steps, the shorter of two in the middle.

    Where long steps take most of the time and recur, as where workers deliver several batches at once and then none for
    long, or where a function is compiled again, the step in which half of the time has passed, in the order of length:
    the median would show how it is not spent; but not where the same work takes longer in them, as on a busy machine.
    Long steps that do not recur are stalls: they stand apart, and the account is of a usual step.  So does a first step
    that is longer than any other: it starts things up.
    """
    return trace.derived("median step", lambda host: _median_step(host, graph))


def _median_step(trace: HostTrace, graph: Graph) -> int:
    steps = usual_steps(trace, graph)
    length = steps_of(trace).length_ps[graph.steps[steps]]
    if len(steps) > 1 and length[0] > OUTLIER * length[1:].max():
        steps, length = steps[1:], length[1:]
    order = np.argsort(length, kind="stable")
    middle, own = int(order[(len(steps) - 1) // 2]), own_lengths(trace, graph.steps[steps])
    order = np.argsort(own, kind="stable")
    passed = np.cumsum(own[order])
    half = int(order[np.searchsorted(2 * passed, passed[-1])])
    # Long are those like the one in which half of the time has passed: one a little longer than usual repeats no stall.
    long = np.flatnonzero(own > max(OUTLIER * own[middle], own[half] / OUTLIER))
    # What is compiled again for a new argument comes again whenever that changes, though one step holds it here.
    again = long[compile_again(trace, graph.steps[steps[long]])]
    recur = 2 * own[again].sum() > passed[-1] or (2 * own[long].sum() > passed[-1] and _recurs(long, len(length)))
    if recur and not _is_slower_work(trace, graph.steps[steps[[middle, half]]]):
        return int(steps[half])
    return int(steps[_most_alike(trace, graph, steps, middle)])


def _most_alike(trace: HostTrace, graph: Graph, steps: I64, middle: int) -> int:
    """The step that stands for some: the one of median length, unless a cause takes clearly more or less of it than of
    them all; then of those about as long the one whose causes are most like those of all.

    Args:
        middle: the place of the step of median length among them.
    """
    length = graph.recorded_step_ps[steps]
    apart = np.abs(length - length[middle])
    near = np.flatnonzero(apart <= _ABOUT_AS_LONG * length[middle])
    near = near[np.argsort(apart[near], kind="stable")][:_MOST_LOOKED_AT]
    if len(near) <= 2:  # of two neither is more like both
        return middle
    shares, own = shares_of(trace, graph), graph.own_ps.astype(np.float64)

    def portions(some: I64) -> F64:
        spent = spent_on(graph, shares, some, graph.start_ps, graph.end_ps, own)
        return spent / max(float(spent.sum()), 1.0)

    mean = portions(steps)
    off = np.abs(portions(steps[[middle]]) - mean)
    if off.max() < LEAST_PERCENT / 100:
        return middle
    others = [np.abs(portions(steps[[each]]) - mean).sum() for each in near.tolist()]
    return int([middle, *near.tolist()][int(np.argmin([off.sum(), *others]))])


def _recurs(places: I64, count: int) -> bool:
    """Whether some of `count` steps come again and again: at about equal distances, or as many that they are usual."""
    if len(places) < LEAST_STEPS:
        return False
    apart = np.sort(np.diff(places))
    usual = apart[(len(apart) - 1) // 2]  # of two that differ the shorter: the middle between them is no distance
    return bool(apart[-1] <= 2 * usual or len(places) >= _USUAL_SHARE * count)


def _is_slower_work(trace: HostTrace, pair: I64) -> bool:
    """Whether the second of two steps is longer mostly since its ops or kernels, which are as many, take longer."""
    start, end = steps_of(trace).start_ps[pair], steps_of(trace).until_ps[pair]
    works = is_device_work(trace)
    rows = np.flatnonzero(works) if works.any() else events_of_kind(trace, EventKind.OP)
    count = np.diff(np.searchsorted(np.sort(trace.events.start_ps[rows]), np.stack([start, end])), axis=0)[0]
    spent = spans_of(trace, rows).overlap_ps(start, end)
    return bool(0 < count[1] < OUTLIER * count[0] and 2 * np.diff(spent)[0] > np.diff(end - start)[0])


def _model(trace: HostTrace) -> StepModel | None:
    graph = graph_of(trace)
    if graph is None or not len(graph.steps):
        return None
    steps, now, threads, shares = usual_steps(trace, graph), replay(graph), threads_of(trace), shares_of(trace, graph)
    length, median = graph.recorded_step_ps, median_step(trace, graph)
    place = np.array([median])
    spent = spent_on(graph, shares, place, graph.start_ps, graph.end_ps, graph.own_ps.astype(np.float64))
    error = replay_error_percent(graph, now, steps)
    unknown = float(spent[Cause.UNKNOWN])
    if not has_lost_framework(trace):  # what a silent thread does takes as long whatever else changes
        way = way_through(graph, place, graph.start_ps, graph.end_ps)
        waited = causes_of_waiting(graph, threads, way.node, way.edge, way.end_ps - way.start_ps)
        unknown = float((way.end_ps - way.start_ps)[(way.edge != OWN) & (waited == Cause.UNKNOWN)].sum())
    why_not = _why_not(graph, steps, error, unknown, int(length[median]))
    since, until = (graph.end_ps[graph.bounds[steps + after]] for after in (0, 1))
    lost = share_lost(trace, since, until)
    if lost > MOST_LOST:
        why_not = f"{100 * lost:.0f} % of what was launched was not recorded; the limit is a third"
    found = steps_of(trace)  # what lies between the steps of marks that another loop interrupts is that loop
    if not len(found.pauses) and (2 * found.length_ps[graph.steps[steps]] < length[steps]).any():
        why_not = "the steps do not follow each other"
    return StepModel(trace, graph, threads, shares, steps, median, now, spent, error, why_not)


def _why_not(graph: Graph, steps: I64, error: float | None, unknown_ps: float, step_ps: int) -> str | None:
    if error is None or step_ps <= 0:
        return "the steps have no length"
    if error > MOST_ERROR_PERCENT:
        differs = f"the replayed step differs from the recorded one by {error:.1f} %"
        return f"{differs}; the limit is {MOST_ERROR_PERCENT:g} %"
    if unknown_ps > MOST_UNKNOWN * step_ps:
        return f"{100.0 * unknown_ps / step_ps:.1f} % of the step is unexplained; the limit is a third"
    if not (graph.edges.kind != EdgeKind.BOUND).any() and _working_lines(graph, steps) > 1:
        return "nothing recorded connects the threads and devices that work in the step"
    return None


def _working_lines(graph: Graph, steps: I64) -> int:
    """How many lines work for a considerable part of the usual steps."""
    here = np.flatnonzero(np.isin(graph.step, steps) & (graph.line != NO_LINE))
    busy = np.bincount(graph.line[here], weights=graph.own_ps[here])
    return int((busy > _TAKES_PART * graph.recorded_step_ps[steps].sum()).sum())
