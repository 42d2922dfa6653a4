"""What the loop's threads used of the processors, as our own captures record it from reading to reading."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.innermost import intersect
from stepscope.analysis.steps.own_tracers import events_of_thread
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_thread_usage

_PS_PER_NS = 1000


@dataclass(frozen=True)
class Usage:
    """What a thread used from reading to reading, in order of time; int64 of shape (n,), ps.

    Attributes:
        ran_ps: how long it ran; queued_ps: how long it was ready without a processor.
    """

    start_ps: I64
    end_ps: I64
    ran_ps: I64
    queued_ps: I64

    def take(self, rows: Mask) -> Usage:
        """Some of the intervals."""
        return Usage(*(column[rows] for column in vars(self).values()))


def usage_of_thread(trace: HostTrace, line: int) -> Usage | None:
    """What a thread used; None where that was not recorded."""
    rows = events_of_thread(trace, line, holds_thread_usage)
    ran, queued = (trace.stat_ints(name, rows=rows) for name in (stat_names.RAN_NS, stat_names.QUEUED_NS))
    start = trace.events.start_ps[rows]
    usage = Usage(start, start + trace.events.duration_ps[rows], ran * _PS_PER_NS, queued * _PS_PER_NS)
    known = usage.take((ran >= 0) & (queued >= 0))
    return known if len(known.start_ps) else None


def most_queued_within(usage: Usage, start_ps: I64, end_ps: I64) -> I64:
    """For how long at most a thread was ready without a processor in each of some stretches, which are in order of
    time: int64 of shape (n,), ps.  Where in an interval of the recording that was is not known."""
    place, interval, start, stop = intersect(start_ps, end_ps, usage.start_ps, usage.end_ps)
    found = np.zeros(len(start_ps), np.int64)
    np.add.at(found, place, np.minimum(stop - start, usage.queued_ps[interval]))
    return found
