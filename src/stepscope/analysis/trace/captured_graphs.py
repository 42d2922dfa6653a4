"""Ops of work that graphs replay, from traces of their capture.

A server of language models may write a trace of the capture of its graphs as it starts.  A capture runs nothing: it
holds launching calls with the ops around them.  A replay runs the work without ops.  The two are matched, best first,

1. by the ids of graph and node, where the capture's calls carry them;
2. by position: a launch whose work has the kernels of a captured graph, one by one, in the order in which the capture
   launched them.  CUDA's calls do not name their kernels, those of ROCm do (`kernel`).

Where two captures have the same kernels and different ops, nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.trace.attribution import event_name_rows, ops_around
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.grouping import device_rows, forest
from stepscope.analysis.trace.spans import Spans
from stepscope.errors import Problem, counted
from stepscope.model import EventKind, HostTrace, Stats, StatTag, stat_names
from stepscope.model.arrays import I32, I64, Mask, distinct, number_pairs
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

K = EventKind
_LAUNCHES = CallTrait.LAUNCHES_KERNEL | CallTrait.COPIES | CallTrait.CLEARS
_COPY, _CLEAR = "a copy", "a memset"  # no kernel has these names
_COPIES = tuple(kind for kind in K if kind.name.startswith("COPY_") and not kind.name.endswith("_CALL"))
Texts = NDArray[np.object_]
Node = tuple[int, int]  # the ids of graph and node; a graph of 0 is unknown


@dataclass(frozen=True)
class CapturedGraph:
    """What one capture launched, in order.

    Attributes:
        work: the kernel that each call launches, empty where the call does not name it.
        ops: the op around each call, empty without one.
        nodes: the ids of each call's node; a node of 0 is unknown.
    """

    work: tuple[str, ...]
    ops: tuple[str, ...]
    nodes: tuple[Node, ...]


def merge_captures(trace: HostTrace, captures: Iterable[HostTrace]) -> HostTrace:
    """The trace with the ops of replayed work (`stat_names.CAPTURED_OP`), and a problem that says what was matched how.

    Args:
        trace: a replay.
        captures: traces in which its graphs are captured; one at a time is in memory.
    """
    graphs = [graph for capture in captures for graph in captured_graphs(capture)]
    rows, launch, launches = _replayed_work(trace)
    if not graphs or not launches:
        return trace
    ops = _ops_by_node(trace, rows, graphs)
    by_id = int((ops != "").sum())
    by_position = _match_positions(trace, rows, launch, graphs, ops)
    known = ops != ""
    problem = _problem(launches, by_position, by_id, graphs, trace.source)
    return replace(_add_op_stat(trace, rows[known], ops[known]), problems=(*trace.problems, problem))


def captured_graphs(trace: HostTrace) -> Iterator[CapturedGraph]:
    """The graphs that the threads of a trace capture, in no particular order."""
    calls = np.flatnonzero(is_thread_event(trace))
    calls = calls[has_trait(trace, trace.events.type[calls], _LAUNCHES)]
    capture = captures_of_calls(trace, calls)
    calls, capture = calls[capture >= 0], capture[capture >= 0]
    order = np.lexsort((trace.events.start_ps[calls], capture))
    calls, capture = calls[order], capture[order]
    around = ops_around(trace, calls)
    ops = ["" if row < 0 else trace.name_of(row) for row in around.tolist()]
    work = [trace.strings[row] for row in np.maximum(trace.stat_strings(stat_names.LAUNCHED_KERNEL, rows=calls), 0)]
    for trait, name in ((CallTrait.COPIES, _COPY), (CallTrait.CLEARS, _CLEAR)):
        for at in np.flatnonzero(has_trait(trace, trace.events.type[calls], trait)).tolist():
            work[at] = name
    graph, node = (trace.stat_ints(ids, 0, rows=calls) for ids in (stat_names.GRAPH_ID, stat_names.GRAPH_NODE_ID))
    nodes = [*zip(graph.tolist(), node.tolist(), strict=True)]
    bounds = np.flatnonzero(np.diff(capture, prepend=-1, append=-1)).tolist()
    for begin, end in pairwise(bounds):
        yield CapturedGraph(tuple(work[begin:end]), tuple(ops[begin:end]), tuple(nodes[begin:end]))


def captures_of_calls(trace: HostTrace, calls: I64) -> I64:
    """The capture of a graph in which a thread makes each call: int64 of shape (n,), the row of its begin, or -1."""
    inside = np.full(len(calls), -1, np.int64)
    line, start = trace.events.line, trace.events.start_ps
    for thread, marks, begins in _marks_of_threads(trace):
        here = np.flatnonzero(line[calls] == thread)
        at = np.searchsorted(start[marks], start[calls[here]]) - 1
        last = np.maximum(at, 0)
        inside[here] = np.where((at >= 0) & begins[last], marks[last], -1)
    return inside


def captures_of_graphs(trace: HostTrace) -> tuple[I64, Spans]:
    """The calls that begin a capture which the recording ends, too, rows of events, and the time from begin to end."""
    first, last = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for _, marks, begins in _marks_of_threads(trace):
        whole = np.flatnonzero(begins[:-1] & ~begins[1:])
        first.append(marks[whole])
        last.append(marks[whole + 1])
    begin, end, events = np.concatenate(first), np.concatenate(last), trace.events
    return begin, Spans.union(events.start_ps[begin], events.start_ps[end] + events.duration_ps[end])


def _marks_of_threads(trace: HostTrace) -> Iterator[tuple[int, I64, Mask]]:
    """Each thread that captures graphs, its calls that begin and end captures in order, and which of them begin one."""
    marks = np.flatnonzero(trace.events.kind == K.RUNTIME_CALL)
    marks = marks[has_trait(trace, trace.events.type[marks], CallTrait.CAPTURES_GRAPH)]
    marks = marks[np.argsort(trace.events.start_ps[marks], kind="stable")]
    line = trace.events.line[marks]
    for thread in distinct(line).tolist():
        own = marks[line == thread]
        yield thread, own, has_trait(trace, trace.events.type[own], CallTrait.BEGINS_CAPTURE)


# -- matching ----------------------------------------------------------------------------------------------------------


def _replayed_work(trace: HostTrace) -> tuple[I64, I64, int]:
    """Work that launches of graphs started, in the order of launch and time; the launch of each; how many there are."""
    rows = device_rows(trace)
    call = forest(trace).cause[rows].astype(np.int64)
    of_graph = (call >= 0) & has_trait(trace, trace.events.type[np.maximum(call, 0)], CallTrait.LAUNCHES_GRAPH)
    rows, call = rows[of_graph], call[of_graph]
    order = np.lexsort((trace.events.start_ps[rows], call))
    return rows[order], call[order], len(distinct(call))


def _ops_by_node(trace: HostTrace, rows: I64, graphs: list[CapturedGraph]) -> Texts:
    """The op of each piece of work by the ids of its node, empty where no capture has them: objects of shape (n,)."""
    ops = np.full(len(rows), "", object)
    known = {node: op for graph in graphs for node, op in zip(graph.nodes, graph.ops, strict=True) if node[1] > 0}
    if not known:
        return ops
    graph = trace.stat_ints(stat_names.GRAPH_ID, 0, rows=rows)
    for name in (stat_names.GRAPH_ORIGINAL_NODE_ID, stat_names.GRAPH_NODE_ID):  # its own id wins
        node = trace.stat_ints(name, 0, rows=rows)
        number, first = number_pairs(graph, node)
        found = np.array([known.get((int(graph[at]), int(node[at])), "") for at in first.tolist()], object)[number]
        ops = np.where(found != "", found, ops)
    return ops


def _match_positions(trace: HostTrace, rows: I64, launch: I64, graphs: list[CapturedGraph], ops: Texts) -> int:
    """Fills in the ops of launches whose work is that of a captured graph, in place; returns how many these are."""
    number: dict[str, int] = {}
    known: dict[bytes, tuple[str, ...] | None] = {}
    for graph in graphs:
        if "" not in graph.work:
            key = np.array([number.setdefault(name, len(number)) for name in graph.work], np.int32).tobytes()
            known[key] = graph.ops if known.get(key, graph.ops) == graph.ops else None
    codes = _codes_of_work(trace, rows, number)
    bounds = np.flatnonzero(np.diff(launch, prepend=-1, append=-1)).tolist()
    matched = 0
    for begin, end in pairwise(bounds):
        found = known.get(codes[begin:end].tobytes())
        if found is not None:
            matched += 1
            ops[begin:end] = np.where(ops[begin:end] == "", np.array(found, object), ops[begin:end])
    return matched


def _codes_of_work(trace: HostTrace, rows: I64, number: Mapping[str, int]) -> I32:
    """The number of what each piece of work is called, -1 for what no capture has."""
    names = event_name_rows(trace, rows)
    different, place = np.unique(names, return_inverse=True)
    codes = np.array([number.get(text, -1) for text in trace.strings.texts(different)], np.int32)[place]
    kind = trace.events.kind[rows]
    codes[np.isin(kind, _COPIES)] = number.get(_COPY, -1)
    codes[kind == K.MEMSET] = number.get(_CLEAR, -1)
    return codes


# -- the merged trace --------------------------------------------------------------------------------------------------


def _add_op_stat(trace: HostTrace, rows: I64, ops: Texts) -> HostTrace:
    """The trace with a stat more for each of some events."""
    texts, place = np.unique(ops.astype(str), return_inverse=True)
    name, *encoded = (stat_names.CAPTURED_OP[0].encode(), *(text.encode("utf-8", "replace") for text in texts.tolist()))
    strings, (name_row, *text_rows) = trace.strings.add_texts([name, *encoded])
    order = np.argsort(rows)
    value = np.array(text_rows, np.int64)[place][order]
    stats, at = trace.event_stats, trace.event_stats.offsets[rows[order] + 1]
    more = np.zeros(len(trace.events) + 1, np.int64)
    more[rows + 1] = 1
    added = Stats(
        name=np.insert(stats.name, at, name_row),
        tag=np.insert(stats.tag, at, StatTag.STRING),
        value=np.insert(stats.value, at, value),
        offsets=stats.offsets + np.cumsum(more),
    )
    return replace(trace, strings=strings, event_stats=added, _derived={})


def _problem(launches: int, by_position: int, by_id: int, graphs: list[CapturedGraph], source: str) -> Problem:
    reasons, unnamed = [], sum("" in graph.work for graph in graphs)
    if by_id:
        have = "has the op of its" if by_id == 1 else "have the op of their"
        reasons.append(f"{counted(by_id, 'piece')} of replayed work {have} captured node")
    if by_position or not by_id:
        reasons.append(f"{by_position} of {counted(launches, 'graph replay')} got ops by position in a capture")
    if unnamed:
        reasons.append(f"the calls of {unnamed} of {counted(len(graphs), 'capture')} do not name their kernels")
    lost = 0 if by_id else launches - by_position
    hint = "annotate the graphs: torch.cuda.graph(..., enable_annotations=True), mark_kernels" if lost else None
    return Problem("captured-graphs", "; ".join(reasons), path=source, hint=hint)
