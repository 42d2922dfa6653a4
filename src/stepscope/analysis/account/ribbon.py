"""What a device does or waits for at any time: its own work, and while it idles the cause that the account gives.

host main | M0--------------        gpu0 computes for 2 ms from the third column on, waits for input before,
host main | I- L1                   and for launches and Python after.
gpu0 s    |   k-
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.account_text import describe_culprit
from stepscope.analysis.account.causes import CAUSES, Cause, causes_of_work
from stepscope.analysis.account.culprits import Culprit, Finder, PieceFinder
from stepscope.analysis.account.devices import busy_by_device, work_of_device
from stepscope.analysis.account.every_step import EveryStep, every_step
from stepscope.analysis.account.graph import EdgeKind, NodeKind
from stepscope.analysis.steps.device_steps import device_name, working_devices
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import HostTrace, PlaneKind
from stepscope.model.arrays import U8
from stepscope.records import dataclass
from stepscope.report import duration_text, round_ms

_NEARLY_ALL = 0.9  # of a stretch's time: no word is needed for the rest
_WHOLE = 255  # the share of a cell that one cause fills
# While a device does several things at once, it computes, else it communicates.
_FIRST = (Cause.DEVICE_COMPUTE, Cause.COMMUNICATION)


@dataclass(frozen=True)
class Ribbon:
    """What each moment of a device, or of a host without devices, is spent on.

    Attributes:
        plane: row of the trace's planes.
        name: what it is called in sentences: `GPU:0`, or `the loop` for a host.
        spans: when each cause holds, in the order of Cause; no two overlap.
        busy: when the device works; of a host the empty set.
    """

    plane: int
    name: str
    spans: tuple[Spans, ...]
    busy: Spans

    def shares(self, begin_ps: int, cells: int, level: int) -> U8:
        """The share of each cause in cells of 2^level ps: uint8 of shape (causes, cells), in 255ths of a cell."""
        start = begin_ps + (np.arange(cells, dtype=np.int64) << level)
        end, found = start + (1 << level), np.zeros((len(self.spans), cells), np.uint8)
        for cause, spans in enumerate(self.spans):
            low, high = np.searchsorted(spans.end, start[0], side="right"), np.searchsorted(spans.start, end[-1])
            if low < high:
                here = Spans(spans.start[low:high], spans.end[low:high])
                found[cause] = np.ceil(here.overlap_ps(start, end) * (_WHOLE / (1 << level)))
        return found


@dataclass(frozen=True)
class Stretch:
    """A stretch of a ribbon that has one cause.

    Attributes:
        begin_ps, end_ps: from the first to the last moment of that cause.
        cause: its name; ps: how long it holds in all; count: in how many pieces.
        busy: whether the device works then.
        culprit: what most of that time is spent in; None where nothing recorded names one.
        event: the longest event there, row in the trace; -1 for none.
        sentence: the same in words.
    """

    begin_ps: int
    end_ps: int
    cause: str
    ps: int
    count: int
    busy: bool
    culprit: Culprit | None
    event: int
    sentence: str


@dataclass(frozen=True)
class WorkWait:
    """What a piece of device work waited for.

    Attributes:
        how: "launch" for its launching call, "stream" for the work before it on its stream, "queue" for work of
            another queue; event: row in the trace of that, -1 where it is not known.
        idle_ps: how long its stream had nothing to do before it.
        culprit: the line, op and layer that it belongs to; None where nothing recorded names one.
    """

    how: str
    event: int
    idle_ps: int
    culprit: Culprit | None


def ribbon_planes(trace: HostTrace) -> list[int]:
    """The planes that have a ribbon: the devices that work, or the host where none does."""
    hosts = np.flatnonzero(trace.planes.kind == PlaneKind.HOST).tolist()
    return working_devices(trace) or hosts[:1]


def ribbon_of(trace: HostTrace, plane: int) -> Ribbon:
    """The ribbon of a device, or of a host without devices; made once per trace."""
    return trace.derived(f"ribbon {plane}", lambda host: _make_ribbon(host, plane))


def _make_ribbon(trace: HostTrace, plane: int) -> Ribbon:
    found, spans = every_step(trace), [_NOTHING] * len(Cause)
    busy = busy_by_device(trace).get(plane, _NOTHING)
    if found is not None:
        for cause in Cause:
            here = found.cause == cause
            spans[cause] = Spans.union(found.pieces.start_ps[here], found.pieces.end_ps[here]) - busy
    rows, counted = work_of_device(trace, plane), _NOTHING
    causes = causes_of_work(trace)[trace.events.kind[rows]]
    for cause in (*_FIRST, *(set(Cause) - set(_FIRST))):
        own = spans_of(trace, rows[causes == int(cause)]) - counted
        spans[cause], counted = spans[cause] | own, counted | own
    is_host = trace.planes.kind[plane] == PlaneKind.HOST
    return Ribbon(plane, "the loop" if is_host else device_name(trace, plane), tuple(spans), busy)


_NOTHING = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


def stretch_of(trace: HostTrace, plane: int, begin_ps: int, end_ps: int, cause: Cause | None = None) -> Stretch | None:
    """What a window of a ribbon is spent on, for one cause, and on whose account; None where there is none of it.

    Args:
        cause: which of those that the window has; None for the one that takes most of it.
    """
    ribbon, window = ribbon_of(trace, plane), Spans(np.array([begin_ps]), np.array([end_ps]))
    parts = [spans & window for spans in ribbon.spans]
    cause = max(Cause, key=lambda each: parts[each].total) if cause is None else cause
    part = parts[cause]
    if not part.total:
        return None
    busy = 2 * (part & ribbon.busy).total > part.total
    culprit, event = _work_in(trace, plane, part, cause) if busy else _waits_in(trace, part, cause)
    begin, end = int(part.start[0]), int(part.end[-1])
    sentence = _sentence(ribbon, cause, part, busy)
    if culprit is not None:
        sentence += f": {'' if culprit.ps >= _NEARLY_ALL * part.total else 'mostly '}{describe_culprit(culprit)}"
    return Stretch(begin, end, cause.name.lower(), part.total, len(part.start), busy, culprit, event, sentence)


def _sentence(ribbon: Ribbon, cause: Cause, part: Spans, busy: bool) -> str:
    length = duration_text(round_ms(part.total))
    pieces = f" in {len(part.start):,} pieces" if len(part.start) > 1 else ""
    terms = CAUSES[cause]
    if busy or not len(ribbon.busy.start):
        return f"{length} of {terms.words}{pieces}"
    return f"waits {length} for {terms.waited_for or terms.words}{pieces}"


def _work_in(trace: HostTrace, plane: int, part: Spans, cause: Cause) -> tuple[Culprit | None, int]:
    """The culprit and the longest piece of a device's own work."""
    rows = work_of_device(trace, plane)
    rows = rows[causes_of_work(trace)[trace.events.kind[rows]] == int(cause)]
    start = trace.events.start_ps[rows]
    length = part.overlap_ps(start, start + trace.events.duration_ps[rows])
    rows, length = rows[length > 0], length[length > 0]
    found = Finder(trace, rows, length).culprit(np.arange(len(rows)))
    return found, int(rows[np.argmax(length)]) if len(rows) else -1


def _waits_in(trace: HostTrace, part: Spans, cause: Cause) -> tuple[Culprit | None, int]:
    """The culprit and the longest event of what a step waits for."""
    found = every_step(trace)
    if found is None or cause == Cause.CONTENTION:  # what runs elsewhere, not what the thread was about to do
        return None, -1
    rows = np.flatnonzero((found.cause == cause) & part.touches(found.pieces.start_ps, found.pieces.end_ps))
    pieces = found.pieces.take(rows)
    event = np.where(found.graph.kind[pieces.node] == NodeKind.WORK, found.graph.event[pieces.node], pieces.event)
    length = np.where(event >= 0, part.overlap_ps(pieces.start_ps, pieces.end_ps), -1)
    longest = int(event[np.argmax(length)]) if len(rows) else -1
    return PieceFinder(trace, found.graph, pieces).culprit(np.arange(len(rows)), cause), longest


def work_wait(trace: HostTrace, event: int) -> WorkWait | None:
    """What a piece of device work waited for, and which line it is of; None for anything else."""
    if not is_device_work(trace)[event]:
        return None
    culprit = Finder(trace, np.array([event]), trace.events.duration_ps[[event]]).culprit(np.arange(1))
    found = every_step(trace)
    if found is None:
        return WorkWait("launch", int(forest(trace).cause[event]), 0, culprit)
    node = np.flatnonzero((found.graph.event == event) & (found.graph.kind == NodeKind.WORK))
    if not len(node):
        return WorkWait("launch", int(forest(trace).cause[event]), 0, culprit)
    how, source = _last_of(found, int(node[0]))
    before = int(found.graph.previous[node[0]])
    start = int(found.graph.start_ps[node[0]])
    idle = start - min(start, int(found.graph.end_ps[before])) if before >= 0 else 0
    return WorkWait(how, int(forest(trace).cause[event]) if how == "launch" else source, idle, culprit)


def _last_of(found: EveryStep, node: int) -> tuple[str, int]:
    """How and for which event a node waited last."""
    graph = found.graph
    before, edges = int(graph.previous[node]), np.arange(graph.into[node], graph.into[node + 1])
    edges = edges[np.isin(graph.edges.kind[edges], (EdgeKind.LAUNCH, EdgeKind.QUEUE))]
    source = graph.edges.source[edges]
    ready = np.where(graph.edges.after_start[edges], graph.start_ps[source], graph.end_ps[source])
    if len(edges) and (before < 0 or ready.max() > graph.end_ps[before]):
        last = int(np.argmax(ready))
        is_launch = graph.edges.kind[edges[last]] == EdgeKind.LAUNCH
        return "launch" if is_launch else "queue", int(graph.event[source[last]])
    return "stream", int(graph.event[before]) if before >= 0 else -1
