"""The one account of the median step: each moment has one cause, the parts add up to the step.

The account is read off the model. From the end of the step it follows whatever the step waited for last, back to its
start. The replay error of the capture says how far the model is to be trusted.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.build import graph_of
from stepscope.analysis.account.causes import Cause, causes_of
from stepscope.analysis.account.culprits import Culprit, Finder
from stepscope.analysis.account.devices import devices_text, idle_ps
from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.account.pieces import OWN, Pieces, kinds_of, pieces_of_step
from stepscope.analysis.account.replay import replay, replay_error_percent
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import count_warm_up_steps, steps_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, U8
from stepscope.records import dataclass


@dataclass(frozen=True)
class AccountRow:
    """One cause of a step's time.

    Attributes:
        cause: see Cause; ps: how long.
        culprit: None where nothing recorded names one.
        idle_ps: the part of it in which no device works; None on a host without devices.
    """

    cause: str
    ps: int
    culprit: Culprit | None
    idle_ps: int | None


@dataclass(frozen=True)
class StepAccount:
    """Where the time of one host's median step goes.

    Attributes:
        step: the step's number; step_ps: how long it took, from its start to the start of the next.
        rows: causes, the longest first; they add up to `step_ps`.
        replay_error_percent: how far the replayed median step is from the recorded one.
        unconnected_percent: the share of the step for which the model knows no reason.
        steps: how many complete steps there are; the median is of these.
        devices: the host's devices in words, such as `the GPU`; None without any.
        to_devices_ps: the part of the step that copies from the host to a device take.
    """

    host: str
    step: int
    step_ps: int
    rows: list[AccountRow]
    replay_error_percent: float | None
    unconnected_percent: float
    steps: int
    devices: str | None
    to_devices_ps: int


def account_of(trace: HostTrace) -> StepAccount | None:
    """The account of a host's median step, made once per trace; None where no steps were found."""
    return trace.derived("step account", _account)


def _account(trace: HostTrace) -> StepAccount | None:
    graph = graph_of(trace)
    if graph is None or not len(graph.steps):
        return None
    rows, length, step = usual_steps(trace, graph), graph.recorded_step_ps, median_step(trace, graph)
    pieces = pieces_of_step(trace, graph, step)
    cause = causes_of(trace, graph, pieces, threads_of(trace))
    found = _rows(trace, graph, pieces, cause)
    total = int(length[step])
    unknown = sum(row.ps for row in found if row.cause == Cause.UNKNOWN.name.lower())
    return StepAccount(
        host=trace.host,
        step=int(steps_of(trace).number[graph.steps[step]]),
        step_ps=total,
        rows=found,
        replay_error_percent=replay_error_percent(graph, replay(graph), rows),
        unconnected_percent=100.0 * unknown / total if total else 0.0,
        steps=len(rows),
        devices=devices_text(trace),
        to_devices_ps=_copied_to_devices_ps(trace, graph, pieces, cause),
    )


def usual_steps(trace: HostTrace, graph: Graph) -> I64:
    """Steps of the graph that no edge of the capture cuts, without the first ones that compile; all if none is left."""
    steps = steps_of(trace)
    whole = np.flatnonzero(steps.complete[graph.steps])
    whole = whole if len(whole) else np.arange(len(graph.steps))
    rest = whole[count_warm_up_steps(trace) :]
    usual: I64 = rest if len(rest) else whole
    return usual


def median_step(trace: HostTrace, graph: Graph) -> int:
    """The step that stands for the others: the median of the usual steps, the shorter of two in the middle."""
    rows = usual_steps(trace, graph)
    return int(rows[np.argsort(graph.recorded_step_ps[rows], kind="stable")[(len(rows) - 1) // 2]])


def _rows(trace: HostTrace, graph: Graph, pieces: Pieces, cause: U8) -> list[AccountRow]:
    length, finder = pieces.end_ps - pieces.start_ps, Finder(trace, graph, pieces)
    total, idle = np.zeros(len(Cause), np.int64), idle_ps(graph, pieces)
    np.add.at(total, cause, length)
    order = [each for each in np.argsort(-total, kind="stable").tolist() if total[each] > 0]
    return [
        AccountRow(
            Cause(each).name.lower(),
            int(total[each]),
            finder.culprit(np.flatnonzero(cause == each)),
            None if idle is None else int(idle[cause == each].sum()),
        )
        for each in order
    ]


def _copied_to_devices_ps(trace: HostTrace, graph: Graph, pieces: Pieces, cause: U8) -> int:
    """The time of a step that copies to a device take: on the device, or on the thread that makes them."""
    copies = (cause == Cause.COPY) & (pieces.edge == OWN)
    work = graph.kind[pieces.node] == NodeKind.WORK
    copies &= ~work | (kinds_of(trace, pieces.event) == EventKind.COPY_HOST_TO_DEVICE)
    return int((pieces.end_ps - pieces.start_ps)[copies].sum())
