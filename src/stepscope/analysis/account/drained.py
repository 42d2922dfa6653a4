"""When queues of devices had done all that was launched: what a thread of which nobody says it may have waited for.

host main | L1 L2-|    ?    |a        the silence ends when the queue has nothing left of what was launched before:
gpu0 s    |    K1---K2------          the thread waited for K2
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.queues import Queues
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, count_below
from stepscope.records import dataclass

NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Drained:
    """For each of some stretches of time the last queue that ran out of work in it.

    Attributes:
        line: int64 of shape (n,), the queue, -1 where none did.
        done_ps: int64 of shape (n,), when it had done what was launched before the end of the stretch; NEVER for none.
        filled_ps: int64 of shape (n,), for how long until then it worked in the stretch.
    """

    line: I64
    done_ps: I64
    filled_ps: I64


def drained_within(trace: HostTrace, queues: Queues, start_ps: I64, end_ps: I64) -> Drained:
    """The queues that ran out of work within stretches of time."""
    count = len(start_ps)
    found = Drained(np.full(count, -1, np.int64), np.full(count, NEVER), np.zeros(count, np.int64))
    called = np.where(queues.call >= 0, trace.events.start_ps[queues.call], queues.start_ps)
    for line in numbers_in(queues.line):
        first, last = np.searchsorted(queues.line, (line, line + 1))
        start, end = queues.start_ps[first:last], queues.end_ps[first:last]
        at = count_below(np.maximum.accumulate(called[first:last]), end_ps) - 1
        done = np.where(at >= 0, end[np.maximum(at, 0)], NEVER)
        better = np.flatnonzero((done <= end_ps) & (done > np.maximum(start_ps, found.done_ps)))
        found.line[better], found.done_ps[better] = line, done[better]
        # Work of a queue does not overlap, so that what it did up to a time is a sum and a part of one piece.
        total = np.append(0, np.cumsum(end - start))
        low = count_below(start, start_ps[better])
        cut = np.where(low > 0, np.maximum(end[np.maximum(low - 1, 0)] - start_ps[better], 0), 0)
        found.filled_ps[better] = total[at[better] + 1] - total[low] + cut
    return found
