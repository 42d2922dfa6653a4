"""The input pipelines of a host, from the calls of their iterators: their slow executions and bottlenecks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope.analysis.input.iterators import IteratorCalls
from stepscope.model import HostTrace
from stepscope.model.arrays import F64, I64, Mask, distinct, sum_groups
from stepscope.records import dataclass
from stepscope.vocabulary import tf_data
from stepscope.vocabulary.lookup import names_have
from stepscope.vocabulary.traits import InputTrait

SLOW_PS = 50_000_000  # a call that takes longer counts as slow
COUNTED_SHARE = 0.1  # of the longest call: shorter slow calls do not count for the pipeline's bottleneck
RANKS = 5  # executions kept of each pipeline, the slowest
MOST_PIPELINES = 200  # kept of a host, the slowest


@dataclass(frozen=True)
class IteratorNode:
    """The calls of one iterator within one execution; see GRAPH_FIELDS of the tool tf-data."""

    long_name: str
    start_ps: int
    total_ps: int
    self_ps: int
    calls: int
    critical: bool
    parallel: bool
    dataset_op: str


@dataclass(frozen=True)
class Execution:
    """One call of a pipeline: its rank, slowest first, and its nodes, outermost first.

    `bottleneck` is the index of the critical node with the longest self time.
    """

    rank: int
    start_ps: int
    duration_ps: int
    bottleneck: int
    nodes: list[IteratorNode]


@dataclass(frozen=True)
class Pipeline:
    """One pipeline of a host.

    Attributes:
        bottleneck: long name of the iterator that delays the slow calls most; empty without slow calls.
        bottleneck_percent: its self time in slow calls, as a share of that of all critical iterators.
        executions: the RANKS slowest, then the slowest one that the bottleneck delayed if it is not among them.
    """

    name: str
    long_name: str
    calls: int
    slow_calls: int
    min_ps: int
    max_ps: int
    total_ps: int
    iterators: int
    bottleneck: str
    bottleneck_percent: float
    executions: list[Execution]


def pipelines_of(trace: HostTrace, calls: IteratorCalls) -> Iterator[Pipeline]:
    """The pipelines of a host in order of their first call, at most MOST_PIPELINES."""
    roots = np.flatnonzero(calls.root == np.arange(len(calls.root)))
    if not len(roots):
        return
    pipeline = np.full(len(calls.root), -1, np.int64)
    pipeline[roots] = _number_pipelines(calls, roots)
    nodes = _Nodes(trace, calls, pipeline)
    slowest = np.zeros(int(pipeline.max()) + 1, np.int64)
    np.maximum.at(slowest, pipeline[roots], calls.duration_ps[roots])
    kept = np.sort(np.argsort(-slowest, kind="stable")[:MOST_PIPELINES])
    order = np.lexsort((-calls.duration_ps[roots], pipeline[roots]))
    roots = roots[order]
    bounds = np.searchsorted(pipeline[roots], np.stack([kept, kept + 1]))
    counts = {"Host": 0, "Device": 0}
    for at, first, last in zip(kept.tolist(), *bounds.tolist(), strict=True):
        place = "Device" if nodes.on_device[at] else "Host"
        yield nodes.pipeline(at, f"{place}:{counts[place]}", roots[first:last])
        counts[place] += 1


def _number_pipelines(calls: IteratorCalls, roots: I64) -> I64:
    """The pipeline of each root call, numbered in order of their first calls.

    A dataset may be iterated several times, each time by a new iterator.  Iterators belong to one pipeline if they and
    the two stages below them run the same dataset ops.  Without op names each iterator is a separate pipeline.
    """
    ids, which = np.unique(calls.iterator[roots], return_inverse=True)
    which = which.reshape(-1)
    largest = np.iinfo(np.int64).max
    ops = np.full((3, len(ids)), largest)
    level = np.full(len(calls.root), -1, np.int64)
    level[roots] = which
    for at in range(3):
        here = np.flatnonzero(level >= 0)
        known = here[calls.dataset[here] >= 0]
        np.minimum.at(ops[at], level[known], calls.dataset[known])
        below = np.where(calls.parent >= 0, level[calls.parent], -1)
        level = below
    name = np.zeros(len(ids), np.int64)
    name[which] = calls.name[roots]
    nameless = ops[0] == largest
    key = np.stack([name, np.where(nameless, ids, -1), *ops])
    _, of_id = np.unique(key, axis=1, return_inverse=True)
    found = of_id.reshape(-1)[which]
    first = np.full(int(found.max()) + 1, largest)
    np.minimum.at(first, found, calls.start_ps[roots])
    place = np.empty(len(first), np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(first))
    return place[found]


class _Nodes:
    """Sums of calls by execution and iterator."""

    def __init__(self, trace: HostTrace, calls: IteratorCalls, pipeline: I64) -> None:
        self.trace, self.calls = trace, calls
        served = np.flatnonzero(calls.root >= 0)
        key, of_call = np.unique(
            calls.root[served] * np.int64(len(calls.names)) + calls.name[served], return_inverse=True
        )
        of_call = of_call.reshape(-1)
        self.root, self.name = key // len(calls.names), key % len(calls.names)
        self.calls_made = np.bincount(of_call, minlength=len(key))
        self.total = sum_groups(of_call, calls.duration_ps[served], len(key))
        self.self_ps = sum_groups(of_call, np.maximum(calls.self_ps[served], 0), len(key))
        self.start = np.full(len(key), np.iinfo(np.int64).max)
        np.minimum.at(self.start, of_call, calls.start_ps[served])
        self.critical = np.bincount(of_call, calls.blocks[served], minlength=len(key)) > 0
        self.parallel = np.bincount(of_call, calls.elsewhere[served], minlength=len(key)) > 0
        self.first_call = np.empty(len(key), np.int64)
        self.first_call[of_call[::-1]] = served[::-1]  # the last assignment wins: the first call
        self.pipeline_at = pipeline[self.root]
        self._find_bottlenecks(int(pipeline.max()) + 1)
        device = names_have(calls.names, InputTrait.FOR_DEVICE)
        self.on_device = np.zeros(int(pipeline.max()) + 1, np.bool_)
        self.on_device[self.pipeline_at[device[self.name]]] = True

    def _find_bottlenecks(self, n_pipelines: int) -> None:
        """Finds the bottleneck of each execution, and of each pipeline over its slow executions that count."""
        weight = np.where(self.critical, self.self_ps, -1)
        order = np.lexsort((self.name, weight, self.root))
        last = np.append(self.root[order][1:] != self.root[order][:-1], True)
        self.of_execution = np.full(len(self.calls.root), -1, np.int64)
        self.of_execution[self.root[order[last]]] = order[last]
        slow = np.flatnonzero(self._counts(n_pipelines) & self.critical)
        n_names = len(self.calls.names)
        key, at = np.unique(self.pipeline_at[slow] * n_names + self.name[slow], return_inverse=True)
        total = sum_groups(at.reshape(-1), self.self_ps[slow], len(key))
        self.of_pipeline = np.full(n_pipelines, -1, np.int64)
        order = np.lexsort((total, key // n_names))
        self.of_pipeline[key[order] // n_names] = key[order] % n_names  # the last assignment wins: the largest
        whole = sum_groups(key // n_names, total, n_pipelines)
        largest = np.zeros(n_pipelines, np.int64)
        np.maximum.at(largest, key // n_names, total)
        self.percent = 100.0 * largest / np.maximum(whole, 1)

    def _counts(self, n_pipelines: int) -> Mask:
        """Whether each row's execution counts for the bottleneck of its pipeline."""
        calls = self.calls
        explained = np.ones(len(calls.root), np.bool_)
        explained[calls.root[calls.unexplained & calls.blocks]] = False
        slow = calls.duration_ps[self.root] > SLOW_PS
        known = slow & explained[self.root]
        has_known = np.zeros(n_pipelines, np.bool_)
        has_known[self.pipeline_at[known]] = True
        counts: Mask = np.where(has_known[self.pipeline_at], known, slow)
        longest = np.zeros(n_pipelines, np.int64)
        np.maximum.at(longest, self.pipeline_at[counts], calls.duration_ps[self.root[counts]])
        least: F64 = COUNTED_SHARE * longest[self.pipeline_at]
        counts &= calls.duration_ps[self.root] >= least
        return counts

    def pipeline(self, at: int, name: str, roots: I64) -> Pipeline:
        """One pipeline, from its root calls, the longest first."""
        duration = self.calls.duration_ps[roots]
        shown = list(range(min(RANKS, len(roots))))
        bottleneck = int(self.of_pipeline[at])
        held = np.flatnonzero(self.name[self.of_execution[roots]] == bottleneck)
        if len(held) and int(held[0]) not in shown:
            shown.append(int(held[0]))
        return Pipeline(
            name=name,
            long_name=self.calls.names[self.calls.name[roots[0]]],
            calls=len(roots),
            slow_calls=int((duration > SLOW_PS).sum()),
            min_ps=int(duration[-1]),
            max_ps=int(duration[0]),
            total_ps=int(duration.sum()),
            iterators=len(distinct(self.calls.iterator[roots])),
            bottleneck=self.calls.names[bottleneck] if bottleneck >= 0 else "",
            bottleneck_percent=round(float(self.percent[at]), 4),
            executions=[self._execution(rank, int(roots[rank])) for rank in shown],
        )

    def _execution(self, rank: int, root: int) -> Execution:
        first, last = np.searchsorted(self.root, [root, root + 1]).tolist()
        rows = _sort_by_tree([(self.calls.names[self.name[row]], row) for row in range(first, last)])
        return Execution(
            rank=rank + 1,
            start_ps=int(self.calls.start_ps[root]),
            duration_ps=int(self.calls.duration_ps[root]),
            bottleneck=rows.index(int(self.of_execution[root])),
            nodes=[self._node(row) for row in rows],
        )

    def _node(self, row: int) -> IteratorNode:
        dataset = int(self.calls.dataset[self.first_call[row]])
        return IteratorNode(
            long_name=self.calls.names[self.name[row]],
            start_ps=int(self.start[row]),
            total_ps=int(self.total[row]),
            self_ps=int(self.self_ps[row]),
            calls=int(self.calls_made[row]),
            critical=bool(self.critical[row]),
            parallel=bool(self.parallel[row]),
            dataset_op=self.trace.strings[dataset] if dataset >= 0 else "",
        )


def _sort_by_tree(named: list[tuple[str, int]]) -> list[int]:
    """Sorts rows so that each node comes right before the nodes that it reads from."""
    return [row for _, row in sorted(named, key=lambda pair: (tf_data.parts(pair[0]), pair[1]))]
