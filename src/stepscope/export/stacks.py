"""The call stacks of a trace, each once, with the time spent in it: what flame graphs and pprof are made of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope.analysis.timeline.index import is_drawn
from stepscope.analysis.trace.grouping import forest, is_device_work, self_times
from stepscope.model import HostTrace, LineKind
from stepscope.model.arrays import I32, I64, Mask, number_paths, sum_groups
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
    node, over, first = number_paths(above, frame, track.reshape(-1))
    parent = np.concatenate([np.full(len(tracks), -1), over]).astype(np.int32)
    frames, numbered = np.unique(frame[first], return_inverse=True)
    planes = [trace.plane_name(plane) for plane in trace.lines.plane[tracks].tolist()]
    names = [f"{plane} {trace.line_label(line)}" for plane, line in zip(planes, tracks.tolist(), strict=True)]
    labels = [Frame(name.strip(), None, None) for name in names]
    named = tuple(labels + [Frame(*place_of(text)) for text in trace.strings.texts(frames)])
    time = self_times(trace, chosen)[rows]
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
