"""The call stacks of a trace, each once, with the time spent in it: what flame graphs and pprof are made of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope import kernels
from stepscope.analysis.timeline.index import is_drawn
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.model import HostTrace, LineKind
from stepscope.model.arrays import I32, I64, Mask, number_pairs, sum_groups
from stepscope.records import dataclass
from stepscope.vocabulary.python import place_of

# The others repeat this work at another level.
_MEASURED = (LineKind.THREAD, LineKind.STREAM, LineKind.DEVICE_OPS)


@dataclass(frozen=True)
class Frame:
    """A function, op, kernel or track: its name, and file and line where these are known."""

    name: str
    file: str | None
    line: int | None


@dataclass(frozen=True)
class Stacks:
    """Stacks as a tree.  A node stands for a frame and all frames above it.

    Attributes:
        parent: int32 of shape (nodes,), the node above; -1 for a track.  A node comes after the one above it.
        frame: int32 of shape (nodes,), index into `frames`.
        frames: the frames.
        calls: int64 of shape (nodes,), events.
        host_ps: int64 of shape (nodes,), time of hosts in the node itself.
        device_ps: int64 of shape (nodes,), time of devices.
    """

    parent: I32
    frame: I32
    frames: tuple[Frame, ...]
    calls: I64
    host_ps: I64
    device_ps: I64

    def path(self, node: int) -> Iterator[int]:
        """The frames of a node and of those above it, the innermost first."""
        while node >= 0:
            yield int(self.frame[node])
            node = int(self.parent[node])


def find_stacks(trace: HostTrace, below_launches: bool) -> Stacks:
    """The stacks of a host.

    Args:
        below_launches: device work stands below the call that launched it, else below its stream.
    """
    chosen = is_drawn(trace) & np.isin(trace.lines.kind, _MEASURED)[trace.events.line]
    rows = np.flatnonzero(chosen)
    above = _events_above(trace, rows, chosen, below_launches)
    tracks, track = np.unique(trace.events.line[rows], return_inverse=True)
    frame = trace.event_types.name[trace.events.type[rows]].astype(np.int64)
    node, parent, numbers = _number_nodes(above, track.reshape(-1), frame, len(tracks))
    frames, numbered = np.unique(numbers, return_inverse=True)
    labels = [Frame(_track_name(trace, line), None, None) for line in tracks.tolist()]
    named = tuple(labels + [Frame(*place_of(text)) for text in trace.strings.texts(frames)])
    time = _own_times(trace, chosen)[rows]
    is_device = is_device_work(trace)[rows]
    return Stacks(
        parent=parent,
        frame=np.concatenate([np.arange(len(tracks)), numbered.reshape(-1) + len(tracks)]).astype(np.int32),
        frames=named,
        calls=np.bincount(node, minlength=len(parent)),
        host_ps=sum_groups(node, np.where(is_device, 0, time), len(parent)),
        device_ps=sum_groups(node, np.where(is_device, time, 0), len(parent)),
    )


def _events_above(trace: HostTrace, rows: I64, chosen: Mask, below_launches: bool) -> I64:
    """The place among `rows` of the event above each, -1 without one: int64 of shape (rows,)."""
    links = forest(trace)
    above = links.parent[rows].astype(np.int64)
    if below_launches:
        launched = is_device_work(trace)[rows] & (links.cause[rows] >= 0) & (above < 0)
        above = np.where(launched, links.cause[rows], above)
    known = (above >= 0) & chosen[above]
    return np.where(known, np.searchsorted(rows, above), -1)


def _number_nodes(above: I64, track: I64, frame: I64, tracks: int) -> tuple[I64, I32, I64]:
    """The node of each event, the parents of all nodes, and the frame of each node that is no track.

    Level after level, so that equal stacks get one number.  The first nodes are the tracks.
    """
    node = np.full(len(above), -1, np.int64)
    parents, frames = [np.full(tracks, -1, np.int32)], [np.empty(0, np.int64)]
    count = tracks
    for level in _levels(above):
        over = np.where(above[level] >= 0, node[above[level]], track[level])
        number, first = number_pairs(over, frame[level])
        node[level] = count + number
        parents.append(over[first].astype(np.int32))
        frames.append(frame[level[first]])
        count += len(first)
    return node, np.concatenate(parents), np.concatenate(frames)


def _levels(above: I64) -> Iterator[I64]:
    """The events of each depth, outermost first."""
    depth = np.zeros(len(above), np.int32)
    active, higher = np.arange(len(above)), above
    while len(active):
        inside = higher >= 0
        active, higher = active[inside], higher[inside]
        depth[active] += 1
        higher = above[higher]
    order = np.argsort(depth, kind="stable")
    ends = np.cumsum(np.bincount(depth)) if len(depth) else np.empty(0, np.int64)
    begin = 0
    for end in ends.tolist():
        yield order[begin:end]
        begin = end


def _own_times(trace: HostTrace, counts: Mask) -> I64:
    own = np.empty(len(trace.events), np.int64)
    kernels.nesting.self_times(trace.events.duration_ps, forest(trace).parent, counts, own)
    return np.maximum(own, 0, out=own)


def _track_name(trace: HostTrace, line: int) -> str:
    return f"{trace.plane_name(int(trace.lines.plane[line]))} {trace.line_label(line)}".strip()
