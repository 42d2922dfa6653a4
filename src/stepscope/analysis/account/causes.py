"""The causes of an account, and which of them each piece of a step has."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.names import is_input_function
from stepscope.analysis.account.pieces import OWN, PAUSE, Pieces, kinds_of
from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.columns import named, of_kinds
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace, Kind
from stepscope.model.arrays import I64, U8, Mask

K, E = EventKind, EdgeKind


class Cause(Kind):
    """What a moment of a step is spent on, by the model."""

    UNKNOWN = 0
    INPUT = 1
    PYTHON = 2
    HOST_COMPUTE = 3
    LAUNCH = 4
    DEVICE_COMPUTE = 5
    DEVICE_GAP = 6
    COPY = 7
    COMMUNICATION = 8
    STRAGGLER = 9
    COMPILE = 10
    SYNC = 11
    CHECKPOINT = 12


MEANING: dict[Cause, str] = {
    Cause.UNKNOWN: "the model knows of nothing that the step waits for",
    Cause.INPUT: "the step waits for its batch, or the batch is being made",
    Cause.PYTHON: "the loop's thread runs Python, or code that was not recorded",
    Cause.HOST_COMPUTE: "the host computes",
    Cause.LAUNCH: "work is dispatched: ops, programs and kernels are started, or handed to other threads",
    Cause.DEVICE_COMPUTE: "a device computes",
    Cause.DEVICE_GAP: "a device goes from one piece of work to the next",
    Cause.COPY: "data is copied from, to or within a device",
    Cause.COMMUNICATION: "workers exchange data, and nothing overlaps it",
    Cause.STRAGGLER: "the step waits for a slower worker",
    Cause.COMPILE: "a program is traced or compiled",
    Cause.SYNC: "the host is in a call that waits for a device, for longer than the device works",
    Cause.CHECKPOINT: "state is saved or restored",
}

_OF_DEVICE: dict[EventKind, Cause] = {
    K.KERNEL: Cause.DEVICE_COMPUTE, K.DEVICE_OP: Cause.DEVICE_COMPUTE, K.GRAPH_LAUNCH: Cause.DEVICE_COMPUTE,
    K.MEMSET: Cause.DEVICE_COMPUTE, K.COLLECTIVE: Cause.COMMUNICATION, K.INFEED: Cause.INPUT,
}  # fmt: skip
# What the innermost event says where nothing around it says more.
_OF_HOST: dict[EventKind, Cause] = {
    K.OP: Cause.HOST_COMPUTE, K.BACKWARD: Cause.HOST_COMPUTE, K.EXECUTOR: Cause.HOST_COMPUTE,
    K.REGION_BEGIN: Cause.HOST_COMPUTE, K.COPY_HOST_TO_HOST: Cause.HOST_COMPUTE, K.RUNTIME_CALL: Cause.LAUNCH,
    K.COPY_HOST_TO_DEVICE_CALL: Cause.COPY, K.EAGER_EXECUTE: Cause.LAUNCH, K.TRACED_FUNCTION: Cause.LAUNCH,
    K.FUNCTION_RUN: Cause.LAUNCH, K.PYTHON_CALL: Cause.PYTHON, K.STEP_MARK: Cause.PYTHON, K.ANNOTATION: Cause.PYTHON,
    K.SYNC: Cause.SYNC,
}  # fmt: skip
# What an event around says of everything inside, the most telling last.
_AROUND: dict[EventKind, Cause] = {
    K.COMPILE: Cause.COMPILE, K.COLLECTIVE_CALL: Cause.COMMUNICATION, K.CHECKPOINT: Cause.CHECKPOINT,
    K.ITERATOR: Cause.INPUT, K.INPUT_HANDOVER: Cause.INPUT, K.INPUT_CALLBACK: Cause.INPUT, K.INPUT_WAIT: Cause.INPUT,
}  # fmt: skip
_OF_EDGE: dict[EdgeKind, Cause] = {
    E.LAUNCH: Cause.LAUNCH, E.QUEUE: Cause.DEVICE_GAP, E.RETURN: Cause.SYNC, E.HANDOVER: Cause.LAUNCH,
    E.JOIN: Cause.LAUNCH, E.INPUT: Cause.INPUT, E.BOUND: Cause.UNKNOWN,
}  # fmt: skip


def causes_of(trace: HostTrace, graph: Graph, pieces: Pieces, serves_input: Mask) -> U8:
    """The cause of each piece: uint8 of shape (pieces,), see Cause.

    Args:
        serves_input: bool of shape (lines,), the threads that prepare input.
    """
    cause = np.zeros(len(pieces), np.uint8)
    work = graph.kind[pieces.node] == NodeKind.WORK
    own = pieces.edge == OWN
    cause[own & work] = _table(_OF_DEVICE, Cause.COPY)[kinds_of(trace, pieces.event[own & work])]
    host = np.flatnonzero(own & ~work)
    cause[host] = _of_threads(trace, graph, pieces, host)
    waited = np.flatnonzero(pieces.edge >= 0)
    by_edge = np.zeros(256, np.uint8)
    by_edge[list(_OF_EDGE)] = list(_OF_EDGE.values())
    cause[waited] = by_edge[graph.edges.kind[pieces.edge[waited]]]
    pause = np.flatnonzero((pieces.edge == PAUSE) & work)
    known = pieces.end_ps[pause] - pieces.start_ps[pause] > graph.unexplained_ps[pieces.node[pause]]
    cause[pause] = np.where(known, Cause.DEVICE_GAP, Cause.UNKNOWN)
    line = graph.line[pieces.node]
    cause[(line >= 0) & serves_input[line] & (cause != Cause.UNKNOWN)] = Cause.INPUT
    return cause


def _table(known: dict[EventKind, Cause], other: Cause) -> U8:
    table = np.full(256, other, np.uint8)
    table[list(known)] = list(known.values())
    return table


def _of_threads(trace: HostTrace, graph: Graph, pieces: Pieces, rows: I64) -> U8:
    event = pieces.event[rows]
    cause = _innermost_cause(trace, event)
    cause[event < 0] = Cause.PYTHON
    dispatches = _dispatches(trace, graph)
    if dispatches is not None:
        ops = (cause == Cause.HOST_COMPUTE) & (event >= 0)
        cause[ops] = np.where(_outermost_is(trace, event[ops], dispatches), Cause.LAUNCH, Cause.HOST_COMPUTE)
    waits = np.zeros(len(trace.events), np.bool_)
    waits[blocking_calls(trace)] = True
    cause[_any_around(trace, event, waits)] = Cause.SYNC
    for kind, told in _AROUND.items():
        cause[_any_around(trace, event, of_kinds(trace.events.kind, (kind,)))] = told
    cause[_any_around(trace, event, _input_functions(trace)) & (cause == Cause.PYTHON)] = Cause.INPUT
    return cause


def _innermost_cause(trace: HostTrace, event: I64) -> U8:
    """By the innermost event that says something."""
    says = np.zeros(256, np.bool_)
    says[list(_OF_HOST)] = True
    at, parent = event.copy(), forest(trace).parent
    while (silent := (at >= 0) & ~says[trace.events.kind[np.maximum(at, 0)]]).any():
        at[silent] = parent[at[silent]]
    return np.where(at >= 0, _table(_OF_HOST, Cause.PYTHON)[kinds_of(trace, at)], Cause.PYTHON).astype(np.uint8)


def _any_around(trace: HostTrace, event: I64, counts: Mask) -> Mask:
    """Which events are, or lie in, one that counts: bool of shape (n,)."""
    found = np.zeros(len(event), np.bool_)
    if not counts.any():
        return found
    at, parent = event.copy(), forest(trace).parent
    while (going := np.flatnonzero(at >= 0)).size:
        found[going] |= counts[at[going]]
        at[going] = np.where(found[going], -1, parent[at[going]])
    return found


def _dispatches(trace: HostTrace, graph: Graph) -> Mask | None:
    """Host events that launch device work, themselves or inside: bool of shape (events,); None without devices."""
    called = graph.edges.kind == E.LAUNCH
    if not called.any():
        return None
    calls = forest(trace).cause[graph.event[graph.edges.target[called]]]
    count = np.zeros(len(trace.events), np.int64)
    count[calls[calls >= 0]] = 1
    kernels.nesting.add_to_ancestors(count, forest(trace).parent)
    found: Mask = count > 0
    return found


def _outermost_is(trace: HostTrace, event: I64, counts: Mask) -> Mask:
    """Whether the outermost op around each event counts: bool of shape (n,)."""
    parent, kind = forest(trace).parent, trace.events.kind
    ops = np.zeros(256, np.bool_)
    ops[[K.OP, K.BACKWARD]] = True
    at, outer = event.copy(), event.copy()
    while (going := np.flatnonzero(at >= 0)).size:
        is_op = ops[kind[at[going]]]
        outer[going[is_op]] = at[going[is_op]]
        at[going] = parent[at[going]]
    found: Mask = counts[outer]
    return found


def _input_functions(trace: HostTrace) -> Mask:
    """Python functions that make input, by their names: bool of shape (events,)."""
    found = np.zeros(len(trace.events), np.bool_)
    python = np.flatnonzero(of_kinds(trace.events.kind, (K.PYTHON_CALL,)))
    if len(python):
        found[python] = named(trace, trace.events.type[python], is_input_function)
    return found
