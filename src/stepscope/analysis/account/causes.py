"""The causes of an account, and which of them each piece of a step has."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.pieces import OWN, PAUSE, Pieces, around, around_by_kind, kinds_of
from stepscope.analysis.account.threads import Threads
from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import enclosing_events, forest
from stepscope.model import EventKind, HostTrace, Kind
from stepscope.model.arrays import I64, U8, Mask
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

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
    COMPILE = 9
    SYNC = 10
    CHECKPOINT = 11


MEANING: dict[Cause, str] = {
    Cause.UNKNOWN: "the model knows of nothing that the step waits for",
    Cause.INPUT: "the step waits for its batch, or the batch is being made",
    Cause.PYTHON: "the loop's thread runs Python, or code that was not recorded",
    Cause.HOST_COMPUTE: "the host computes",
    Cause.LAUNCH: "work is dispatched: ops, programs and kernels are started, or handed to other threads",
    Cause.DEVICE_COMPUTE: "a device computes",
    Cause.DEVICE_GAP: "a device goes from one piece of work to the next",
    Cause.COPY: "data is copied from, to or within a device",
    Cause.COMMUNICATION: "workers exchange data; a device may compute at the same time, but that ends earlier",
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
    E.JOIN: Cause.LAUNCH, E.BOUND: Cause.UNKNOWN,
}  # fmt: skip


def causes_of(trace: HostTrace, graph: Graph, pieces: Pieces, threads: Threads) -> U8:
    """The cause of each piece: uint8 of shape (pieces,), see Cause."""
    cause = np.zeros(len(pieces), np.uint8)
    work = graph.kind[pieces.node] == NodeKind.WORK
    own = pieces.edge == OWN
    cause[own & work] = _table(_OF_DEVICE, Cause.COPY)[kinds_of(trace, pieces.event[own & work])]
    host = np.flatnonzero(own & ~work)
    cause[host] = _thread_causes(trace, graph, pieces, host, threads.main)
    waited = np.flatnonzero(pieces.edge >= 0)
    by_edge = np.zeros(256, np.uint8)
    by_edge[list(_OF_EDGE)] = list(_OF_EDGE.values())
    cause[waited] = by_edge[graph.edges.kind[pieces.edge[waited]]]
    pause = np.flatnonzero((pieces.edge == PAUSE) & work)
    known = pieces.end_ps[pause] - pieces.start_ps[pause] > graph.unexplained_ps[pieces.node[pause]]
    cause[pause] = np.where(known, Cause.DEVICE_GAP, Cause.UNKNOWN)
    line = graph.line[pieces.node]
    cause[(line >= 0) & threads.serves_input[line] & (cause != Cause.UNKNOWN)] = Cause.INPUT
    return cause


def _table(known: dict[EventKind, Cause], other: Cause) -> U8:
    table = np.full(256, other, np.uint8)
    table[list(known)] = list(known.values())
    return table


def _thread_causes(trace: HostTrace, graph: Graph, pieces: Pieces, rows: I64, main: int) -> U8:
    event = pieces.event[rows]
    cause = _innermost_cause(trace, event)
    cause[event < 0] = np.where(graph.line[pieces.node[rows[event < 0]]] == main, Cause.PYTHON, Cause.LAUNCH)
    dispatches = _dispatches(trace, graph)
    if dispatches is not None:
        ops = np.flatnonzero((cause == Cause.HOST_COMPUTE) & (event >= 0))
        outer = enclosing_events(trace, is_any_kind(trace.events.kind, (K.OP, K.BACKWARD)))[event[ops]]
        cause[ops[dispatches[np.where(outer >= 0, outer, event[ops])]]] = Cause.LAUNCH
    return np.where(enclosing_cause := _enclosing_causes(trace, event, cause), enclosing_cause, cause)


def _innermost_cause(trace: HostTrace, event: I64) -> U8:
    """By the innermost event that says something."""
    says = np.zeros(256, np.uint8)
    says[list(_OF_HOST)] = 1
    at = around_by_kind(trace, event, says, 1)
    return np.where(at >= 0, _table(_OF_HOST, Cause.PYTHON)[kinds_of(trace, at)], Cause.PYTHON).astype(np.uint8)


def _enclosing_causes(trace: HostTrace, event: I64, cause: U8) -> U8:
    """What events around say of everything inside; 0 where none says anything."""
    level = np.zeros(256, np.uint8)
    level[list(_AROUND)] = 1 + np.arange(1, len(_AROUND) + 1)
    levels = level[trace.events.kind]
    levels[blocking_calls(trace)] = 1
    found = around(trace, event, levels, len(_AROUND) + 1)
    by_level = np.array([Cause.UNKNOWN, Cause.SYNC, *_AROUND.values()], np.uint8)
    enclosing_cause = np.where(found >= 0, by_level[levels[found]], Cause.UNKNOWN)
    functions = _input_functions(trace)
    if functions.any():
        makes_input = (around(trace, event, functions.view(np.uint8), 1) >= 0) & (cause == Cause.PYTHON)
        enclosing_cause[makes_input & (enclosing_cause == Cause.UNKNOWN)] = Cause.INPUT
    return enclosing_cause.astype(np.uint8)


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


def _input_functions(trace: HostTrace) -> Mask:
    """Python functions that make input, by their names: bool of shape (events,)."""
    found = np.zeros(len(trace.events), np.bool_)
    python = np.flatnonzero(is_any_kind(trace.events.kind, (K.PYTHON_CALL,)))
    if len(python):
        found[python] = has_trait(trace, trace.events.type[python], CallTrait.MAKES_INPUT)
    return found
