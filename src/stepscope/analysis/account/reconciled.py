"""The account held against what is counted without any model: when the devices work.

    main    M0-a-L-b-L-c-L-M1-       the way back goes along the host, which launches each kernel as late as the device
    gpu           k-- k-- k--        can take it: where a kernel runs, the device has something to do, so that the step
    account  aaaaak--ck--ck--        waits for launches for no longer than the device idles

    gpu, comm  n-----n-----          messages count as communication as far as no computation hides them
    gpu, comp   k--    k---

    gpu, comm  n-n-n-n-n-n-n-n-      messages that fill the step bound it, whatever is computed between and beside them
    gpu, comp   k   k   k   k

A moment in which a device works is the device's, whatever the way back says, unless the host does something then that
takes as long with any device, such as computing or making input.  Where a queue of a device works for nearly all of a
step, no change of the host can make it much shorter: then that is the device's as well.  So where it works for most of
a step and clearly longer than any thread of the host, if the account puts more of that time on the host than a replay
may be off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.causes import Cause, causes_of_work
from stepscope.analysis.account.critical_path import OWN, Pieces, clip_to_steps
from stepscope.analysis.account.graph import EdgeKind, Graph, NodeKind
from stepscope.analysis.account.model import MOST_ERROR_PERCENT
from stepscope.analysis.account.nodes import numbers_in, sum_of_busiest_line
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I64, U8, Mask, look_up

# Causes that say that a device has nothing to do, by which they last no longer than it idles.
WHILE_IDLE = (Cause.LAUNCH, Cause.PYTHON, Cause.SYNC, Cause.DEVICE_GAP, Cause.UNKNOWN)
_OF_HOST = (*WHILE_IDLE, Cause.HOST_COMPUTE)
# What a device does, at one moment the first of these.
_ON_DEVICES = (Cause.DEVICE_COMPUTE, Cause.COMMUNICATION, Cause.COPY, Cause.TRANSFER, Cause.INPUT)
# The same in a step that messages fill.
_OF_MESSAGES = (Cause.COMMUNICATION, Cause.DEVICE_COMPUTE, Cause.COPY, Cause.TRANSFER, Cause.INPUT)


def _ways(yields: Sequence[tuple[Cause, ...]], order: Sequence[tuple[Cause, ...]]) -> tuple[U8, U8]:
    """Which causes give way in each manner of steps: uint8 of shape (manners, 16); and to which: (manners, n)."""
    table = np.zeros((len(yields), 16), np.uint8)
    for manner, causes in enumerate(yields):
        table[manner, list(causes)] = 1
    return table, np.array(order, np.uint8)


# Manners of steps: devices limit them, and messages fill them.
_IS_LIMIT, _FILLED = 1, 2
_TO_DEVICES = _ways(2 * [WHILE_IDLE, _OF_HOST], 2 * [_ON_DEVICES] + 2 * [_OF_MESSAGES])
_TO_COMPUTING = _ways([(Cause.COMMUNICATION,), (Cause.COMMUNICATION,), (), ()], 4 * [(Cause.DEVICE_COMPUTE,)])


def give_way(trace: HostTrace, graph: Graph, pieces: Pieces, cause: U8) -> tuple[Pieces, U8]:
    """Pieces and their causes, of the devices' work instead of what stands for idle devices, of computation instead of
    communication, and of the devices' work instead of the host's in steps that they limit.

    Args:
        pieces: in order of time, as those that are returned.
    """
    work = np.flatnonzero(graph.kind == NodeKind.WORK)
    if not len(work):
        return pieces, cause
    work = work[np.argsort(graph.start_ps[work], kind="stable")]
    does = look_up(causes_of_work(trace), trace.events.kind[graph.event[work]])
    start, end = _bounds_of_steps(trace, graph)
    is_limit = _are_of_devices(trace, graph, work, does, start, end, pieces, cause)
    mine = np.arange(len(work)) if is_limit.all() else np.flatnonzero(_is_of_busiest_device(trace, graph, work))
    filled = _filled_by_messages(graph, work, does, start, end)
    manner = _FILLED * filled.astype(np.uint8) + _IS_LIMIT * is_limit.astype(np.uint8)
    pieces, cause = _give(graph, pieces, cause, manner, _TO_DEVICES, work[mine], does[mine])
    if not (cause == Cause.COMMUNICATION).any():
        return pieces, cause
    return _give(graph, pieces, cause, manner, _TO_COMPUTING, work, does)


def _give(
    graph: Graph, pieces: Pieces, cause: U8, manner: U8, ways: tuple[U8, U8], work: I64, does: U8
) -> tuple[Pieces, U8]:
    """Pieces and their causes, cut wherever some work begins or ends, and its own where it runs.

    Args:
        manner: uint8 of shape (steps,), how each step is treated, of `ways`: which causes give way, and the causes of
            work that counts; uint8 of shape (manners, causes) and (manners, n).
        work: nodes in the order of their starts; does: their causes.
    """
    found = kernels.intervals.give_way(
        pieces.start_ps, pieces.end_ps, cause, graph.end_ps[graph.bounds], manner, *ways, work, does, graph.start_ps,
        graph.end_ps,
    )  # fmt: skip
    place, start, end, own, became = map(np.asarray, found)
    node, edge, event = pieces.node[place], pieces.edge[place], pieces.event[place]
    given = np.flatnonzero(own >= 0)
    node[given], edge[given], event[given] = own[given], OWN, graph.event[own[given]]
    return Pieces(start, end, node, edge, event), became.astype(np.uint8)


def _is_of_busiest_device(trace: HostTrace, graph: Graph, work: I64) -> Mask:
    """Which work is of the device that works longest: where one host feeds several in turn, that any of them works says
    nothing of what the others wait for."""
    plane = trace.lines.plane[graph.line[work]]
    busy = {each: _spans(graph, work[plane == each]).total for each in numbers_in(plane)}
    most: Mask = plane == max(busy, key=lambda each: busy[each])
    return most


def _bounds_of_steps(trace: HostTrace, graph: Graph) -> tuple[I64, I64]:
    """When the steps of a graph start and end, without what lies between them and without what is in none: int64 of
    shape (steps,) each, ps.  Their pieces fill that time and overlap nowhere."""
    steps, bounds = steps_of(trace), graph.end_ps[graph.bounds]
    start = np.maximum(bounds[:-1], steps.start_ps[graph.steps])
    return start, np.maximum(np.minimum(bounds[1:], steps.until_ps[graph.steps]), start)


def _are_of_devices(
    trace: HostTrace, graph: Graph, work: I64, does: U8, start: I64, end: I64, pieces: Pieces, cause: U8
) -> Mask:
    """Steps that are the devices', as the host could make them hardly shorter: bool of shape (steps,)."""
    computes, step = does == Cause.DEVICE_COMPUTE, end - start
    busy = _busy_ps(graph, work, computes, start, end)
    is_limit: Mask = (1 - LARGE_SHARE / 100) * step < busy
    longer = (2 * busy > step) & (busy > _own_of_threads(graph) + LARGE_SHARE / 100 * step)
    if longer.any() and _is_one_queue(graph, work[computes]):  # others could overlap more if their work started earlier
        place, inside = clip_to_steps(trace, graph, pieces.take(np.isin(cause, _OF_HOST)))
        during = _spans(graph, work).overlap_ps(inside.start_ps, np.maximum(inside.end_ps, inside.start_ps))
        wrong = np.bincount(place, weights=during, minlength=len(step))
        is_limit |= longer & (100 * wrong > MOST_ERROR_PERCENT * step)
    return is_limit


def _filled_by_messages(graph: Graph, work: I64, does: U8, start: I64, end: I64) -> Mask:
    """Whether a queue that communicates works for nearly all of a step, and clearly longer than any that computes: bool
    of shape (steps,)."""
    longest, step = {}, end - start
    for cause in (Cause.COMMUNICATION, Cause.DEVICE_COMPUTE):
        mine = work[does == cause]
        lines = numbers_in(graph.line[mine]) if len(mine) else ()
        of_lines = [_spans(graph, mine[graph.line[mine] == each]).overlap_ps(start, end) for each in lines]
        longest[cause] = np.max(of_lines, axis=0) if of_lines else np.zeros(len(step), np.int64)
    most = longest[Cause.COMMUNICATION]
    filled: Mask = most > (1 - LARGE_SHARE / 100) * step
    return filled & (most > longest[Cause.DEVICE_COMPUTE] + LARGE_SHARE / 100 * step)


def _busy_ps(graph: Graph, work: I64, computes: Mask, start: I64, end: I64) -> I64:
    """How long devices work in each step at least, whatever else changes: int64 of shape (steps,), ps.

    It is the time of the busiest queue that computes, as work of several could overlap more, with what others
    communicate and copy meanwhile; and that of all of them where nothing tells what launched their work, so that there
    is no telling what it could overlap with.
    """
    launched = np.zeros(len(graph.kind), np.bool_)
    launched[graph.edges.target[graph.edges.kind == EdgeKind.LAUNCH]] = True
    taken, line = graph.end_ps[work] - graph.start_ps[work], graph.line[work]
    parts = [work]
    if computes.any() and 2 * taken[launched[work]].sum() >= taken.sum():
        parts = [work[(line == each) | ~computes] for each in numbers_in(line[computes])]
    busiest: I64 = np.max([_spans(graph, part).overlap_ps(start, end) for part in parts], axis=0)
    return busiest


def _is_one_queue(graph: Graph, work: I64) -> bool:
    """Whether nearly all of some work is on one queue."""
    taken = np.bincount(graph.line[work], weights=graph.own_ps[work]) if len(work) else np.zeros(1)
    return bool(taken.max() >= (1 - LARGE_SHARE / 100) * taken.sum())


def _own_of_threads(graph: Graph) -> F64:
    """The time of each step in which the busiest thread of the host works: float64 of shape (steps,), ps."""
    host = np.flatnonzero(((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL)) & (graph.step >= 0))
    return sum_of_busiest_line(graph.line[host], graph.step[host], graph.own_ps[host], len(graph.steps))


def _spans(graph: Graph, work: I64) -> Spans:
    return Spans.union(graph.start_ps[work], graph.end_ps[work])
