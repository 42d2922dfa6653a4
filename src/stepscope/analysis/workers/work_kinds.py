"""What kind of work the nodes of a rank are: the passes of training on a device, and causes of the account on threads.

Where nothing says what the loop's thread does, its kind is unknown on every rank, whatever runs meanwhile: the thread
waits then, and what it waits for is work of its own, which is compared.

A pass is told by a range around the launch, words in a kernel's name, or what launched it: autograd's call, an
optimizer's step.  A kernel for which none does is of the pass of the one before it.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.critical_path import around
from stepscope.analysis.account.graph import NodeKind
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.silence import silence_of
from stepscope.analysis.steps.find_steps import steps_of_events
from stepscope.analysis.trace.columns import events_of_kind, is_inside, is_inside_another
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.op_sizes import numbers_taken
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64, distinct
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.passes import PASSES, is_pass, pass_of
from stepscope.vocabulary.traits import OpTrait, RangeTrait

_COMPUTES = "compute"
WEIGHTS = "weight_gradients"
_BACKWARD, _OF_WEIGHTS = PASSES.index("backward"), PASSES.index(WEIGHTS)
_OF_A_LAYER = 2  # kernels for gradients of weights in a row: of a matrix and its bias
OF_MICROBATCHES = ("forward", "backward")
ON_DEVICE = frozenset({*PASSES, _COMPUTES, "copy", "transfer"})
SHARED = ON_DEVICE | {Cause.HOST_COMPUTE.name.lower()}  # what ranks share; the rest are pauses and calls of threads
INPUT = "input"
_MEANWHILE = (Cause.DEVICE_COMPUTE, Cause.COPY, Cause.TRANSFER, Cause.COMMUNICATION)  # goes on while a thread is silent
BATCH = "batch"  # made by worker processes, which are not in the trace


def kinds_of_nodes(model: StepModel) -> tuple[tuple[str, ...], I64]:
    """The kinds of work of a rank, and for each node the place of its kind: int64 of shape (nodes,), -1 for none."""
    graph = model.graph
    names = (*PASSES, _COMPUTES, *(cause.name.lower() for cause in Cause), BATCH)
    kind = np.full(len(graph), -1, np.int64)
    work = np.flatnonzero(graph.kind == NodeKind.WORK)
    host = np.flatnonzero((graph.kind == NodeKind.SEGMENT) | (graph.kind == NodeKind.CALL))
    for nodes in (work, host):
        kind[nodes] = len(PASSES) + 1 + model.shares.own_ps.take(nodes).argmax(axis=1)
    kind[_silent(model, host[np.isin(kind[host] - len(PASSES) - 1, _MEANWHILE)])] = len(PASSES) + 1 + Cause.UNKNOWN
    computes = np.flatnonzero((graph.kind == NodeKind.WORK) & (kind == len(PASSES) + 1 + int(Cause.DEVICE_COMPUTE)))
    kind[computes] = _fill(graph.line[computes], _passes(model.trace, graph.event[computes].astype(np.int64)))
    kind[graph.kind == NodeKind.BATCH] = len(names) - 1
    kind[graph.own_ps <= 0] = -1
    return names, kind


def _silent(model: StepModel, nodes: I64) -> I64:
    """Those of some nodes of threads in most of which nothing says what the loop's thread does."""
    graph = model.graph
    nodes = nodes[graph.line[nodes] == model.threads.main]
    silent_ps = silence_of(model.trace).overlap_ps(graph.start_ps[nodes], graph.end_ps[nodes])
    found: I64 = nodes[2 * silent_ps > graph.own_ps[nodes]]
    return found


def ops_in_step(trace: HostTrace, steps: I64) -> tuple[float, float, float]:
    """How many kernels, or outermost ops where there are none, some steps have on average, how many of these are of a
    backward pass, and the numbers that ops take; 0 where their sizes were not recorded."""
    rows = events_of_kind(trace, EventKind.KERNEL)
    learns = np.isin(_passes(trace, rows), (_BACKWARD, _OF_WEIGHTS)) if len(rows) else None
    if learns is None:
        rows = events_of_kind(trace, EventKind.OP)
        rows = rows[~is_inside_another(trace, rows, EventKind.OP)]
        learns = has_trait(trace, trace.events.type[rows], OpTrait.OF_GRADIENT)
        learns |= is_inside(trace, rows, EventKind.BACKWARD)
    counts, each = np.isin(steps_of_events(trace, rows), steps), max(len(steps), 1)
    ops = events_of_kind(trace, EventKind.OP)
    taken = numbers_taken(trace, ops[np.isin(steps_of_events(trace, ops), steps)])
    return float(counts.sum()) / each, float((counts & learns).sum()) / each, taken / each


def _fill(line: I32, found: I64) -> I64:
    """The passes, of kernels without one that of the kernel before them on their queue."""
    known = np.where(found < len(PASSES), np.arange(len(found)), -1)
    known = np.maximum.accumulate(known) if len(known) else known
    same = (known >= 0) & (line[np.maximum(known, 0)] == line)
    found = np.where(same, found[np.maximum(known, 0)], found)
    # A backward pass computes gradients of weights layer by layer; only a pass of its own has those of many in a row.
    weights = found == _OF_WEIGHTS
    runs = np.flatnonzero(weights & ~np.append(False, weights[:-1] & (line[1:] == line[:-1])))
    joined: I64 = np.where(weights, _BACKWARD, found) if weights.sum() <= _OF_A_LAYER * len(runs) else found
    return joined


def _passes(trace: HostTrace, rows: I64) -> I64:
    """The pass that each kernel is of, as a place in PASSES, `len(PASSES)` for none: int64 of shape (n,)."""
    types = trace.event_names(rows)
    found = np.full(len(trace.strings), len(PASSES), np.int64)
    for name in distinct(types).tolist():
        found[name] = pass_of(trace.strings[name])
    by_name = found[types]
    call = forest(trace).cause[rows].astype(np.int64)
    level = (trace.events.kind == EventKind.BACKWARD).astype(np.uint8)
    ranged = _passes_of_ranges(trace, call)
    by_name = np.where(ranged < len(PASSES), ranged, by_name)
    if not level.any():
        return by_name
    level[has_trait(trace, trace.events.type, RangeTrait.UPDATES_MODEL)] = 2
    outer = around(trace, np.maximum(call, 0), level, 2)
    told = np.array([PASSES.index(name) for name in ("forward", "backward", "optimizer")])[
        np.where(outer >= 0, level[np.maximum(outer, 0)], 0)
    ]
    return np.where((by_name == len(PASSES)) & (call >= 0), told, by_name)


def _passes_of_ranges(trace: HostTrace, call: I64) -> I64:
    """The pass of the range in which each call was made, on whatever thread, as a place in PASSES, `len(PASSES)` for
    none: int64 of shape (n,)."""
    rows = events_of_kind(trace, EventKind.ANNOTATION)
    names = trace.strings.texts(trace.event_names(rows))
    starts = trace.events.start_ps[rows].tolist()
    kept = sorted((start, at) for at, (start, name) in enumerate(zip(starts, names, strict=True)) if is_pass(name))
    found = np.array([*(pass_of(names[at]) for _, at in kept), len(PASSES)])
    rows = rows[[at for _, at in kept]]
    made_ps, start_ps = trace.events.start_ps[np.maximum(call, 0)], trace.events.start_ps[rows]
    at = np.searchsorted(start_ps, made_ps, side="right") - 1
    end_ps = np.append(start_ps + trace.events.duration_ps[rows], np.iinfo(np.int64).min)
    return np.where((call >= 0) & (made_ps < end_ps[at]), found[at], len(PASSES))
