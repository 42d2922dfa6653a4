"""What a job of many processes does in time, by the published rules of CUDA and NCCL alone.

A host thread does one thing after another and starts work on streams.  A stream does its work in the order in which it
was started, each piece not before its launch has arrived and not before the events that the stream was told to wait
for.  A host may be ahead of a stream by a bounded number of launches.  A collective ends once its last member has come
and the transfer is done, a send together with its receive.

Everything is fixed but the times, so the job is a graph of nodes: a node happens its own span after the last of those
before it.  `Graph.times` answers for many sets of spans at once, which is how a job is asked what it would be without
its fault, or with equal work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

QUEUE = 1024  # launches that a CUDA channel holds before the next call blocks
LAUNCH_US, CALL_US, ARRIVAL_US, GAP_US = 4.0, 1.0, 3.0, 0.8


class DeadlockError(ValueError):
    """The job can never end: ranks wait for each other."""


class Event(NamedTuple):
    """What `cudaEventRecord` notes: the last work of a stream, what this was told to wait for since, and the
    correlation id of the call."""

    works: tuple[int, ...]
    stream: int
    correlation: int


class Record(NamedTuple):
    """Something a profiler writes down: it lasts from one node to another."""

    what: str
    name: str
    begin: int
    end: int
    stream: int
    correlation: int
    args: dict[str, Any]
    thread: int = 0


class Peer(NamedTuple):
    """One part of a batch of sends and receives: which way, with whom, and in which queue of that pair."""

    is_send: bool
    other: int
    queue: str


@dataclass
class Graph:
    """Nodes with what each comes after.

    Attributes:
        before: for each node, the nodes that it waits for.
        span: its own length in us, as far as nothing is wrong.
    """

    before: list[list[int]] = field(default_factory=list)
    span: list[float] = field(default_factory=list)
    meetings: dict[Any, int] = field(default_factory=dict)
    _levels: list[tuple[npt.NDArray[np.int64], ...]] | None = None

    def add(self, span: float, before: Sequence[int]) -> int:
        """A new node."""
        self.before.append(list(before))
        self.span.append(span)
        return len(self.span) - 1

    def meet(self, key: Any, arrival: int, span: float) -> int:
        """The node of a meeting, which one more member reaches by `arrival`; its span is that of the first to ask."""
        if key not in self.meetings:
            self.meetings[key] = self.add(span, [])
        self.before[self.meetings[key]].append(arrival)
        return self.meetings[key]

    def times(self, spans: F64) -> F64:
        """When each node is over, for each column of spans."""
        times: F64 = np.zeros_like(spans)
        for nodes, sources, firsts in self.levels():
            latest = np.maximum.reduceat(times[sources], firsts, axis=0) if len(sources) else 0.0
            times[nodes] = latest + spans[nodes]
        return times

    def levels(self) -> list[tuple[npt.NDArray[np.int64], ...]]:
        """Nodes by how many are before them in the longest chain: each with the nodes before, and where they start."""
        if self._levels is None:
            level = self._find_levels()
            by_level: dict[int, list[int]] = defaultdict(list)
            for node, at in enumerate(level):
                by_level[at].append(node)
            self._levels = [self._level(by_level[at]) for at in sorted(by_level)]
        return self._levels

    def _level(self, nodes: list[int]) -> tuple[npt.NDArray[np.int64], ...]:
        counts = [len(self.before[node]) for node in nodes]
        sources = [source for node in nodes for source in self.before[node]]
        firsts = np.cumsum([0, *counts[:-1]])
        return np.array(nodes), np.array(sources, np.int64), firsts

    def _find_levels(self) -> list[int]:
        after: list[list[int]] = [[] for _ in self.before]
        waiting = [len(before) for before in self.before]
        for node, before in enumerate(self.before):
            for source in before:
                after[source].append(node)
        level = [0] * len(self.before)
        ready = [node for node, count in enumerate(waiting) if not count]
        done = 0
        while ready:
            node = ready.pop()
            done += 1
            for later in after[node]:
                level[later] = max(level[later], level[node] + 1)
                waiting[later] -= 1
                if not waiting[later]:
                    ready.append(later)
        if done < len(level):
            raise DeadlockError(f"{len(level) - done} of {len(level)} nodes wait for each other")
        return level


class Process:
    """One rank: its host, the streams of its GPU, and what a profiler records of them.

    Attributes:
        thread: the thread of the host that is at work; the others wait for it.
    """

    def __init__(self, graph: Graph, rank: int, queue: int = QUEUE) -> None:
        """A process that has done nothing yet."""
        self.graph, self.rank, self.queue = graph, rank, queue
        self.host_at = graph.add(0.0, [])
        self.thread = 0
        self.records: list[Record] = []
        self._last: dict[int, int] = {}
        self._awaited: dict[int, list[int]] = defaultdict(list)
        self._launched: list[int] = []
        self._count: dict[Any, int] = defaultdict(int)
        self._correlation = 100

    def host(self, name: str, span: float, what: str = "python", **args: Any) -> int:
        """The host thread works."""
        return self._host(what, name, span, [], **args)

    def enclose(self, name: str, begin: int) -> None:
        """An op around all that the thread has done since the node."""
        self._correlation += 1
        self.records.append(Record("op", name, begin, self.host_at, -1, self._correlation, {}, self.thread))

    def _host(self, what: str, name: str, span: float, waits: Sequence[int], **args: Any) -> int:
        self._correlation += 1
        begin, self.host_at = self.host_at, self.graph.add(span, [self.host_at, *waits])
        self.records.append(Record(what, name, begin, self.host_at, -1, self._correlation, args, self.thread))
        return self.host_at

    def _launch(self, stream: int) -> int:
        """The host starts work on a stream: the node at which that begins."""
        full = len(self._launched) >= self.queue
        self._host("call", "cudaLaunchKernel", LAUNCH_US, self._launched[-self.queue :][:1] if full else [])
        arrival = self.graph.add(ARRIVAL_US, [self.host_at])
        begin = self.graph.add(GAP_US, [arrival, *self._known(stream)])
        self._awaited[stream].clear()
        return begin

    def _finish(self, stream: int, name: str, begin: int, end: int, args: dict[str, Any]) -> int:
        self.records.append(Record("kernel", name, begin, end, stream, self._correlation, args))
        self._last[stream] = end
        self._launched.append(end)
        return end

    def kernel(self, stream: int, name: str, span: float) -> int:
        """Work of this GPU alone; the node at which it ends, whose span is its length."""
        begin = self._launch(stream)
        return self._finish(stream, name, begin, self.graph.add(span, [begin]), {})

    def collective(self, stream: int, group: str, name: str, span: float, args: dict[str, Any]) -> int:
        """Work in which all members of a group meet; the node of the meeting, whose span is the transfer."""
        begin = self._launch(stream)
        meeting = self._meet(group, begin, span)
        self._finish(stream, name, begin, self.graph.add(0.0, [meeting]), args)
        return meeting

    def exchange(self, stream: int, name: str, peers: Sequence[Peer], span: float, args: dict[str, Any]) -> list[int]:
        """One kernel of sends and receives: it ends when each has met its partner and is through; their meetings."""
        begin = self._launch(stream)
        meetings = []
        for is_send, other, queue in peers:
            way = (self.rank, other) if is_send else (other, self.rank)
            meetings.append(self._meet((queue, *way), begin, span, is_send))
        self._finish(stream, name, begin, self.graph.add(0.0, meetings), args)
        return meetings

    def _meet(self, key: Any, begin: int, span: float, side: bool | None = None) -> int:
        """The n-th meeting of the queue, where this process comes for the n-th time (on this side)."""
        number = self._count[key, side]
        self._count[key, side] += 1
        return self.graph.meet((key, number), begin, span)

    def record_event(self, stream: int) -> Event:
        """`cudaEventRecord`."""
        self._host("call", "cudaEventRecord", CALL_US, [])
        return Event(self._known(stream), stream, self._correlation)

    def _known(self, stream: int) -> tuple[int, ...]:
        """What the next work of a stream comes after."""
        return (*([self._last[stream]] if stream in self._last else []), *self._awaited[stream])

    def wait_event(self, stream: int, event: Event) -> None:
        """`cudaStreamWaitEvent`: what is started on the stream from now on comes after the event."""
        on = {"stream": stream, "wait_on": event.stream, "record": event.correlation}
        self._host("wait", "cudaStreamWaitEvent", CALL_US, [], **on)
        self._awaited[stream].extend(event.works)

    def order(self, first: int, then: int) -> None:
        """What comes on stream `then` waits for what is on stream `first` now."""
        self.wait_event(then, self.record_event(first))

    def synchronize(self, stream: int) -> None:
        """`cudaStreamSynchronize`: the host waits for the stream, and for what the stream was told to wait for."""
        self._host("sync", "cudaStreamSynchronize", 2 * CALL_US, self._known(stream), stream=stream)
