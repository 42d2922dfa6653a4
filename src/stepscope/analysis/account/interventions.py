"""Changes of a model, and how long its steps take then: a pure function of a model and a list of changes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from stepscope.analysis.account.causes import Cause, event_causes
from stepscope.analysis.account.graph import NO_LINE, EdgeKind, Graph, NodeKind
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.nodes import numbers_in, sum_of_busiest_line
from stepscope.analysis.account.own_times import OwnTimes
from stepscope.analysis.account.recording import MOST_OF_NODE, events_in_nodes
from stepscope.analysis.account.replay import Replay, replay
from stepscope.analysis.account.selectors import Portion
from stepscope.analysis.trace.columns import events_of_kind, is_thread_event
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import F64, I64, Mask, median
from stepscope.records import dataclass

_NEVER_LATE = -1e15  # ps: of the lag of an edge that nothing waits for any more


class RangeEnd(Enum):
    """Which end of the range of uncertain numbers a replay takes."""

    FAST = "the shortest step times"
    USUAL = "the usual numbers"
    SLOW = "the longest step times"


@dataclass(frozen=True)
class Uncertain:
    """An uncertain number of a change, such as how much faster a kernel is in 16 bits.

    Attributes:
        low, usual, high: what it may be; source: where that is known from, for the user.
    """

    low: float
    usual: float
    high: float
    source: str


@dataclass(frozen=True)
class Scale:
    """The part takes another time.

    Attributes:
        part: what the change is about.
        factor: of its length; 0 removes it, 0.5 makes it twice as fast.
    """

    part: Portion
    factor: float | Uncertain = 0.0


@dataclass(frozen=True)
class Overlap:
    """The part runs beside everything else, and a step waits for it only where it takes longer than the step.

    Attributes:
        part: what the change is about.
    """

    part: Portion


@dataclass(frozen=True)
class Move:
    """The part is done by other threads or processes while the steps go on, which wait for it only where those cannot
    keep up.

    Attributes:
        part: what the change is about.
        workers: how many do it side by side; their rate is so many times as high.
    """

    part: Portion
    workers: float | Uncertain = 1


@dataclass(frozen=True)
class ReplayAsGraph:
    """All device work of a step is launched by one call: what threads spend on launching it goes, but for the usual
    length of one launching call a step.

    Attributes:
        part: the time that goes into dispatching.
    """

    part: Portion


Intervention = Scale | Overlap | Move | ReplayAsGraph


@dataclass(frozen=True)
class Changed:
    """A graph after some changes, replayed.

    Attributes:
        replayed: the times of nodes; it does not know of what limits a step as a whole, as `step_ps` does.
        own_ps: what is left of the own time of nodes.
        step_ps: int64 of shape (steps,), how long each step takes.
    """

    replayed: Replay
    own_ps: OwnTimes
    step_ps: I64


def replay_after(
    model: StepModel, changes: Sequence[Intervention], end: RangeEnd = RangeEnd.USUAL, host_factor: float | F64 = 1.0
) -> Changed:
    """Replays a model after some changes, all at once.

    Args:
        host_factor: of the length of all work of threads, such as what it takes without a profiler; one for all, or
            float64 of shape (nodes,).
    """
    lengths = change_lengths(model, changes, end, host_factor)
    again = replay(model.graph, lengths.whole_ps, None, lengths.lag_ps, lengths.pause_ps)
    return Changed(again, lengths.own_ps, np.maximum(again.step_ps, lengths.least_ps))


def change_lengths(
    model: StepModel, changes: Sequence[Intervention], end: RangeEnd = RangeEnd.USUAL, host_factor: float | F64 = 1.0
) -> Lengths:
    """The lengths of a model's graph after some changes; arguments as of `replay_after`."""
    edits = _Edits(model, host_factor)
    for change in changes:
        edits.apply(change, end)
    own = edits.own.drop_negative()
    whole = own.sum_by_node().astype(np.int64)
    return Lengths(
        own, whole, edits.lag.astype(np.int64, copy=False), edits.pause.astype(np.int64, copy=False),
        np.maximum(edits.least.astype(np.int64), _left_on_devices(model, whole)),
    )  # fmt: skip


def _left_on_devices(model: StepModel, whole_ps: I64) -> I64:
    """How long the devices work for each step at least, whatever the host does: int64 of shape (steps,), ps.

    It is the time of the busiest queue, as work of several could overlap more; and that of all of them where nothing
    tells what launched their work, so that there is no telling what it could overlap with.

    Args:
        whole_ps: int64 of shape (nodes,), what is left of their own time.
    """
    graph = model.graph
    work = model.trace.derived(
        "work of steps", lambda _: np.flatnonzero((graph.kind == NodeKind.WORK) & (graph.step >= 0))
    )
    if not len(work):
        return np.zeros(len(graph.steps), np.int64)
    if np.array_equal(whole_ps[work], graph.own_ps[work]):
        found: I64 = model.trace.derived("work of devices", lambda _: _busiest(graph, work, graph.own_ps))
        return found
    return _busiest(graph, work, whole_ps)


def _busiest(graph: Graph, work: I64, whole_ps: I64) -> I64:
    launched = np.zeros(len(graph), np.bool_)
    launched[graph.edges.target[graph.edges.kind == EdgeKind.LAUNCH]] = True
    own = whole_ps[work]
    line = graph.line[work] if 2 * own[launched[work]].sum() >= own.sum() else np.zeros(len(work), np.int32)
    longest = sum_of_busiest_line(line, graph.step[work], own, len(graph.steps)).astype(np.int64)
    return np.minimum(longest, graph.recorded_step_ps)


@dataclass(frozen=True)
class Lengths:
    """What a replay of a changed graph reads.

    Attributes:
        own_ps: what is left of the own time of nodes; whole_ps: int64 of shape (nodes,), the same of all causes.
        lag_ps: int64 of shape (edges,); pause_ps: int64 of shape (nodes,).
        least_ps: int64 of shape (steps,), what a step takes at least.
    """

    own_ps: OwnTimes
    whole_ps: I64
    lag_ps: I64
    pause_ps: I64
    least_ps: I64


class _Edits:
    """Lengths of a graph while changes are made to them, and the least that steps may take."""

    def __init__(self, model: StepModel, host_factor: float | F64) -> None:
        self._model, graph = model, model.graph
        self._factor = np.where(graph.kind == NodeKind.WORK, 1.0, host_factor)
        self.own = model.shares.own_ps
        self.pause: I64 | F64 = graph.pause_ps
        self.lag: I64 | F64 = graph.edges.lag_ps
        self.least = np.zeros(len(graph.steps))
        self._is_counted = isinstance(host_factor, np.ndarray)  # else by the clock, which does not tell where it lies
        self._each: F64 | None = None  # what an event costs in each node, ps
        if np.any(self._factor != 1.0):
            self.own = self._drop_cost()

    def _drop_cost(self) -> OwnTimes:
        """The times without the cost of recording: on a host without a device each event costs as much, and the cost
        lies where the events are; where Python's calls are recorded, all of Python is slower."""
        model, graph = self._model, self._model.graph
        if not self._is_counted or has_device(model) or _records_calls(model.trace):
            return self.own.scale(self._factor)
        events = model.trace.derived("events of nodes", lambda _: _count_events(model))
        total = events.sum_by_node()
        self._each = np.divide((1.0 - self._factor) * graph.own_ps, total, out=np.zeros(len(graph)), where=total > 0)
        rest = self.own.scale(np.where(total > 0, 1.0, self._factor))
        return rest.subtract_some(events.scale(self._each), MOST_OF_NODE)

    def apply(self, change: Intervention, end: RangeEnd) -> None:
        """Makes a change."""
        part, graph = change.part, self._model.graph
        self._shrink(part, 1.0 - number_at(change.factor, end) if isinstance(change, Scale) else 1.0)
        if isinstance(change, Overlap):
            self._take_at_least(_longest_line(graph, self._counted(part)))
        elif isinstance(change, Move):
            workers = number_at(change.workers, end, more_is_faster=True)
            self._take_at_least(_sum_by_step(graph, self._counted(part)) / max(workers, 1.0))
        elif isinstance(change, ReplayAsGraph):
            work = np.where(graph.kind == NodeKind.WORK, graph.own_ps.astype(np.float64), 0.0)
            self._take_at_least(_longest_line(graph, work))
            self.own = self.own.add(_first_launches(graph), Cause.LAUNCH, _usual_call(graph))

    def _shrink(self, part: Portion, share: float) -> None:
        self.own = self.own.subtract(part.own_ps, self._factor_of(part) * share)
        if part.lag_ps is not None:
            self.lag = self.lag - part.lag_ps * share
        if part.pause_ps is not None:
            self.pause = self.pause - part.pause_ps * share
        if part.waits is not None and share >= 1.0:
            self.lag = np.where(part.waits, _NEVER_LATE, self.lag)

    def _counted(self, part: Portion) -> F64:
        return part.own_ps.sum_by_node() * self._factor_of(part)

    def _factor_of(self, part: Portion) -> F64:
        """What counts of the part's time in each node: as recording costs by the event, a part with few events costs
        little, and what is left without it has the rest of that cost."""
        if part.events is None or self._each is None:
            return self._factor
        own = part.own_ps.sum_by_node()
        cost = np.minimum(part.events * self._each, MOST_OF_NODE * own)
        share: F64 = np.divide(own - cost, own, out=np.ones(len(own)), where=own > 0)
        return np.where(self._each > 0, share, self._factor)

    def _take_at_least(self, step_ps: F64 | I64) -> None:
        self.least = np.maximum(self.least, step_ps)


def has_device(model: StepModel) -> bool:
    """Whether the host has device work."""
    return bool(is_device_work(model.trace).any())


def _records_calls(trace: HostTrace) -> bool:
    return bool(is_thread_event(trace)[events_of_kind(trace, EventKind.PYTHON_CALL)].any())


def _count_events(model: StepModel) -> OwnTimes:
    """How many events begin in each node, by cause."""
    trace, graph = model.trace, model.graph
    rows, every = np.flatnonzero(is_thread_event(trace)), np.arange(len(graph))
    cause = event_causes(trace)[rows]
    counts = ((every, each, events_in_nodes(trace, graph, rows[cause == each])) for each in numbers_in(cause))
    return OwnTimes.gather(len(graph), counts)


def number_at(number: float | Uncertain, end: RangeEnd, more_is_faster: bool = False) -> float:
    """An uncertain number at an end of its range."""
    if not isinstance(number, Uncertain):
        return float(number)
    if end == RangeEnd.USUAL:
        return number.usual
    return number.high if (end == RangeEnd.FAST) == more_is_faster else number.low


def _sum_by_step(graph: Graph, part: F64) -> I64:
    some = np.flatnonzero((part != 0) & (graph.step >= 0))
    sums = np.bincount(graph.step[some], weights=part[some], minlength=len(graph.steps))
    return sums[: len(graph.steps)].astype(np.int64)


def _longest_line(graph: Graph, part: F64) -> I64:
    """The time of the line on which a part takes longest in each step: int64 of shape (steps,), ps."""
    some = np.flatnonzero((part > 0) & (graph.step >= 0))
    longest = np.zeros(len(graph.steps), np.int64)
    for line in numbers_in(graph.line[some] - NO_LINE):  # batches of worker processes have no line
        here = some[graph.line[some] - NO_LINE == line]
        sums = np.bincount(graph.step[here], weights=part[here], minlength=len(graph.steps))
        longest = np.maximum(longest, sums[: len(graph.steps)].astype(np.int64))
    return longest


def _launching(graph: Graph) -> Mask:
    found = np.zeros(len(graph), np.bool_)
    found[graph.edges.source[graph.edges.kind == EdgeKind.LAUNCH]] = True
    return found


def _first_launches(graph: Graph) -> I64:
    """The first launching call of each step that has one: nodes."""
    calls = np.flatnonzero(_launching(graph) & (graph.step >= 0))
    calls = calls[np.argsort(graph.start_ps[calls], kind="stable")]
    _, first = np.unique(graph.step[calls], return_index=True)
    return calls[first]


def _usual_call(graph: Graph) -> float:
    calls = graph.own_ps[_launching(graph)]
    return median(calls) if len(calls) else 0.0
