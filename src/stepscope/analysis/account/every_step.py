"""What every step of a host waited for: the same account as that of the median step, for tools that list steps.

It walks back through each step, so it costs more than `account_of`, which is all that the overview needs. Where no
steps were found, the whole capture counts as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import reduce
from operator import or_

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.build import build_graph, graph_of
from stepscope.analysis.account.causes import Cause, causes_of_work, own_work_ps
from stepscope.analysis.account.critical_path import OWN, Pieces, clip_to_steps, pieces_of_steps
from stepscope.analysis.account.devices import busy_by_device, work_of_device
from stepscope.analysis.account.evidence import Known, known_of
from stepscope.analysis.account.graph import Graph
from stepscope.analysis.account.model import median_step, usual_steps
from stepscope.analysis.account.piece_causes import causes_of
from stepscope.analysis.account.reconciled import give_way
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.session_steps import StepsOfHost, steps_of_host
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, U8, Mask
from stepscope.records import dataclass

_MEETINGS = (EventKind.COLLECTIVE, EventKind.COLLECTIVE_CALL)
_FIRST_ON_DEVICES = {Cause.DEVICE_COMPUTE, Cause.COMMUNICATION}
_OF_DEVICES_ALONE = (Cause.DEVICE_COMPUTE, Cause.COPY)


@dataclass(frozen=True)
class EveryStep:
    """The pieces of all steps of a host; each step lasts from its start to the start of the next.

    Attributes:
        graph: the model.
        pieces: of all steps, in order of time.
        step: int64 of shape (pieces,), the place of each piece's step among `graph.steps`.
        cause, known: uint8 of shape (pieces,), see Cause and Known.
        median: the place of the step whose account `account_of` gives.
    """

    graph: Graph
    pieces: Pieces
    step: I64
    cause: U8
    known: U8
    median: int

    @property
    def length_ps(self) -> I64:
        """How long each piece is: int64 of shape (pieces,)."""
        return self.pieces.end_ps - self.pieces.start_ps

    def causes_ps(self) -> I64:
        """The time of each step by cause: int64 of shape (steps, causes)."""
        return self.causes_of_part(self.length_ps)

    def known_of_median(self) -> I64:
        """The time of the median step by cause and how that is known: int64 of shape (causes, 3)."""
        here = np.flatnonzero(self.step == self.median)
        found = np.zeros((len(Cause), len(Known)), np.int64)
        np.add.at(found, (self.cause[here], self.known[here]), self.length_ps[here])
        return found

    def known_ps(self) -> I64:
        """The time of each step by cause and how that is known: int64 of shape (steps, causes, 3)."""
        parts = [self.causes_of_part(np.where(self.known == each, self.length_ps, 0)) for each in Known]
        return np.stack(parts, axis=2)

    def causes_of_part(self, ps: I64) -> I64:
        """A part of each piece's time, added up by step and cause: int64 of shape (steps, causes)."""
        found = np.zeros((len(self.graph.steps), len(Cause)), np.int64)
        kernels.ops.sum_by_pair(self.step, self.cause, ps, found)
        return found

    def pieces_of_median(self) -> tuple[Pieces, U8]:
        """The pieces of the median step, and the cause of each."""
        here = self.step == self.median
        return self.pieces.take(here), self.cause[here]

    def spans_of(self, cause: Cause, line: int | None = None) -> Spans:
        """When the steps wait for own work with a cause, of one thread or of any."""
        rows = np.flatnonzero((self.cause == cause) & (self.pieces.edge == OWN))
        if line is not None:
            rows = rows[self.graph.line[self.pieces.node[rows]] == line]
        return Spans.union(self.pieces.start_ps[rows], self.pieces.end_ps[rows])

    def longest_causes(self, start_ps: I64, end_ps: I64) -> list[str | None]:
        """The cause that takes most of each of a few intervals; None where half of one is outside of steps."""
        low, high = self.pieces.start_ps, self.pieces.end_ps
        found: list[str | None] = []
        for start, end in zip(start_ps.tolist(), end_ps.tolist(), strict=True):
            here = slice(int(np.searchsorted(high, start, side="right")), int(np.searchsorted(low, end)))
            shared = np.minimum(high[here], end) - np.maximum(low[here], start)
            spent = np.bincount(self.cause[here], weights=shared, minlength=len(Cause))
            inside = 2 * spent.sum() > end - start
            found.append(Cause(int(np.argmax(spent))).name.lower() if inside else None)
        return found

    def part_within(self, spans: Spans) -> I64:
        """The part of each piece in which some spans last: int64 of shape (pieces,), ps."""
        return spans.overlap_ps(self.pieces.start_ps, self.pieces.end_ps)


@dataclass(frozen=True)
class CausesOfStep:
    """The account of one step without culprits: ps by cause, in the order of Cause.

    Attributes:
        known_ps: for each cause how much of that is recorded, inferred and not recorded, see Known; empty on a device.
        place: the step's among all steps of the host.
        usual: it is complete and no warm-up, or no step is.
    """

    number: int
    place: int
    complete: bool
    usual: bool
    is_median: bool
    start_ps: int
    causes_ps: list[int]
    known_ps: list[list[int]] = field(default_factory=list)

    @property
    def step_ps(self) -> int:
        """How long the step took, to the start of the next one."""
        return sum(self.causes_ps)

    @property
    def own_ps(self) -> int:
        """The part of it in which the host does not wait for other hosts."""
        return own_work_ps(self.causes_ps)


def every_step(trace: HostTrace) -> EveryStep | None:
    """The pieces of all steps of a host, made once per trace; None where nothing takes time."""
    return trace.derived("account of every step", _every_step)


def accounted_steps(trace: HostTrace) -> StepsOfHost:
    """The steps of a host, each with its account."""
    found = every_step(trace)
    return steps_of_host(trace, None if found is None else found.causes_ps().tolist())


def causes_of_steps(trace: HostTrace) -> list[CausesOfStep]:
    """The account of every step of a host, in order of time; empty where nothing takes time."""
    found = every_step(trace)
    if found is None:
        return []
    known = found.known_ps().tolist()
    steps = _make_steps(trace, found, found.causes_ps())
    return [replace(step, known_ps=parts) for step, parts in zip(steps, known, strict=True)]


def steps_among_others(trace: HostTrace) -> list[CausesOfStep]:
    """The same of a host that takes part in collectives; empty for one that works alone."""
    return causes_of_steps(trace) if is_any_kind(trace.events.kind, _MEETINGS).any() else []


def causes_by_device(trace: HostTrace) -> dict[str, list[CausesOfStep]]:
    """The causes of each step by device of a host: what it does itself, and while it idles what the step waits for,
    but for computation and copies of the other devices, which this one does not do: they are in none of its causes.

    Steps during which a device does nothing are left out: their work on it, if any, ran at another time.
    """
    found = every_step(trace)
    if found is None:
        return {}
    accounts = {}
    for name, causes, works in _accounts_of_devices(trace, found):
        steps = _make_steps(trace, found, causes)
        accounts[name] = [step for step, there in zip(steps, works.tolist(), strict=True) if there]
    return accounts


def median_by_device(trace: HostTrace) -> dict[str, list[int]]:
    """The account of the median step on each device that works in it, ps by cause, as of `causes_by_device`."""
    found = every_step(trace)
    if found is None:
        return {}
    at, here = found.median, found.step == found.median
    graph = replace(found.graph, steps=found.graph.steps[at : at + 1], bounds=found.graph.bounds[at : at + 2])
    step = np.zeros(int(here.sum()), np.int64)
    only = EveryStep(graph, found.pieces.take(here), step, found.cause[here], found.known[here], 0)
    return {name: causes[0].tolist() for name, causes, works in _accounts_of_devices(trace, only) if works[0]}


def _accounts_of_devices(trace: HostTrace, found: EveryStep) -> Iterator[tuple[str, I64, Mask]]:
    """Each device: its name, the time of each step by cause, and in which steps it works."""
    bounds = found.graph.end_ps[found.graph.bounds]
    inside = Spans(bounds[:1], bounds[-1:])
    of_devices = {plane: busy & inside for plane, busy in busy_by_device(trace).items()}
    for plane, busy in of_devices.items():
        works = busy.overlap_ps(bounds[:-1], bounds[1:]) > 0
        yield device_name(trace, plane), _causes_on_device(trace, found, plane, of_devices), works


def _causes_on_device(trace: HostTrace, found: EveryStep, plane: int, of_devices: dict[int, Spans]) -> I64:
    """The time of each step on a device by cause: int64 of shape (steps, causes), ps.

    While it does several things at once, it computes, else it communicates.
    """
    busy = of_devices[plane]
    others = reduce(or_, of_devices.values()) - busy
    theirs = np.where(np.isin(found.cause, _OF_DEVICES_ALONE), found.part_within(others), 0)
    causes = found.causes_of_part(found.length_ps - found.part_within(busy) - theirs)
    rows, bounds = work_of_device(trace, plane), found.graph.end_ps[found.graph.bounds]
    start = trace.events.start_ps[rows]
    rows = rows[(start < bounds[-1]) & (start + trace.events.duration_ps[rows] > bounds[0])]
    cause, counted = causes_of_work(trace)[trace.events.kind[rows]], Spans.union(rows[:0], rows[:0])
    before = np.zeros(len(bounds) - 1, np.int64)
    for each in (Cause.DEVICE_COMPUTE, Cause.COMMUNICATION, *(set(Cause) - _FIRST_ON_DEVICES)):
        own = rows[cause == int(each)]
        if len(own):
            counted = counted | spans_of(trace, own)
            until = counted.overlap_ps(bounds[:-1], bounds[1:])
            causes[:, each] += until - before
            before = until
    return causes


def _make_steps(trace: HostTrace, found: EveryStep, causes_ps: I64) -> list[CausesOfStep]:
    steps, rows = steps_of(trace), found.graph.steps
    columns = (
        steps.number[rows].tolist(),
        rows.tolist(),
        steps.complete[rows].tolist(),
        np.isin(np.arange(len(rows)), usual_steps(trace, found.graph)).tolist(),
        (np.arange(len(rows)) == found.median).tolist(),
        found.graph.end_ps[found.graph.bounds[:-1]].tolist(),
        causes_ps.tolist(),
    )
    return [CausesOfStep(*row) for row in zip(*columns, strict=True)]


def _every_step(trace: HostTrace) -> EveryStep | None:
    graph = graph_of(trace) or build_graph(trace)
    if graph is None or not len(graph.steps):
        return None
    pieces = pieces_of_steps(trace, graph)
    pieces, cause = give_way(trace, graph, pieces, causes_of(trace, graph, pieces, threads_of(trace)))
    step, pieces = clip_to_steps(trace, graph, pieces)
    known = known_of(trace, graph, pieces, cause)
    return EveryStep(graph, pieces, step, cause, known, median_step(trace, graph))
