"""Worker processes of a loader as producers: each batch is ready some time after the one before it.

The workers are not in the trace, but the loop's waits for them are.  Where a call returns later than it takes by
itself, its batch was ready just then; the time between two such moments is what the workers needed for a batch, all
together.  A batch that was there already is taken to have needed the usual time, or as long as there was.

    main    N---a---N---a---      N waits for a batch, a computes
    batch   ----|-------|---      ready at the end of each N: the workers need 8 for a batch, whatever a takes
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.graph import EdgeKind, Edges
from stepscope.analysis.account.nodes import NodeFinder
from stepscope.analysis.account.threads import SHORTEST_WAIT_PS, Threads, worker_waits
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, Mask, median
from stepscope.records import dataclass

_LEAST_BATCHES = 3  # with fewer there is no usual time
# A call may take longer for many reasons.  The workers are what it waits for if that is this much of the time from call
# to call; the limit is the one from which XProf calls a step input-bound, moderately.
_LEAST_SHARE = 0.05
# What taking a batch that is there takes: 0.083 ms for 64 images in a real profile without waits (four workers, V100).
# Where every call waits, the shortest one says nothing.
_MOST_OWN_PS = 1_000_000_000
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Producers:
    """Batches of worker processes, in order, as columns of shape (n,).

    Attributes:
        call: the calls that take them, events on the main thread's line.
        start_ps, ready_ps: int64, from when on the workers were at a batch, and when it was ready at the latest.
        own_end_ps, end_ps: int64, the end of the call's own part, and of the call.
        waited: bool, the call waited for its batch.
    """

    call: I64
    start_ps: I64
    ready_ps: I64
    own_end_ps: I64
    end_ps: I64
    waited: Mask

    def __len__(self) -> int:
        return len(self.call)

    def edges(self, finder: NodeFinder, line: int, first: int) -> Edges:
        """From batches to what the main thread does once it has them.

        Args:
            first: the node of the first batch.
        """
        target = finder.starting_from(np.full(len(self), line), self.end_ps)
        return Edges.connect(first + np.arange(len(self)), target, 0, EdgeKind.HANDOVER, True)


def producers_of(trace: HostTrace, threads: Threads, zero_ps: int) -> Producers:
    """The batches that a loop took from worker processes; none where it hardly ever waited for one.

    Args:
        zero_ps: where the replay starts.
    """
    call = worker_waits(trace, threads.main)
    start = trace.events.start_ps[call]
    took = trace.events.duration_ps[call]
    own = min(int(took.min()), _MOST_OWN_PS) if len(call) else 0
    waited = took - own > max(SHORTEST_WAIT_PS, own)
    if len(call) < _LEAST_BATCHES or (took - own)[waited].sum() < _LEAST_SHARE * (start[-1] - start[0]):
        return Producers(_NONE, _NONE, _NONE, _NONE, _NONE, np.empty(0, np.bool_))
    end = start + took
    ready = _ready_times(start, end, waited, zero_ps)
    before = np.append(zero_ps, ready[:-1])
    return Producers(call, before, ready, np.where(waited, start + own, end), end, waited)


def _ready_times(start: I64, end: I64, waited: Mask, zero_ps: int) -> I64:
    """When each batch was ready: at the end of a call that waited, else after the usual time, before its call."""
    pairs = np.flatnonzero(waited[1:] & waited[:-1])
    usual = int(median(end[pairs + 1] - end[pairs])) if len(pairs) else 0
    ready, last = np.empty(len(start), np.int64), zero_ps
    for at, (begin, stop, late) in enumerate(zip(start.tolist(), end.tolist(), waited.tolist(), strict=True)):
        last = stop if late else max(min(last + usual, begin), last)
        ready[at] = last
    return ready
