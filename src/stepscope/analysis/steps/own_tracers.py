"""What Stepscope's own tracers recorded of a thread, on planes of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_thread_usage, holds_worker_processes, is_main_thread

_PS_PER_NS = 1000


def events_of_thread(trace: HostTrace, line: int, is_plane: Callable[[str], bool]) -> I64:
    """The events about a thread on the planes with a name of some kind, in order of time: int64 of shape (n,).

    Args:
        line: the line on which a profiler recorded the thread; our own line of that thread has its number.
    """
    strings, lines = trace.strings, trace.lines
    planes = [row for row, name in enumerate(trace.planes.name.tolist()) if is_plane(strings[name])]
    found = np.flatnonzero(np.isin(lines.plane, planes))
    same = found[lines.line_id[found] == lines.line_id[line]]
    is_of_worker = holds_worker_processes(trace.plane_name(int(lines.plane[line])))
    if not len(same) and not is_of_worker:  # some profilers number threads in their own way
        same = np.array([row for row in found.tolist() if is_main_thread(trace.line_label(row))], np.int64)
    rows = [np.arange(int(lines.event_begin[row]), int(lines.event_end[row])) for row in same[:1].tolist()]
    return rows[0] if rows else np.empty(0, np.int64)


@dataclass(frozen=True)
class ThreadTimes:
    """What a thread used from reading to reading, in order of time; int64 of shape (n,), ps.

    Attributes:
        ran_ps: how long it ran; queued_ps: how long it was ready without a processor.
    """

    start_ps: I64
    end_ps: I64
    ran_ps: I64
    queued_ps: I64

    def take(self, rows: Mask) -> ThreadTimes:
        """Some of the intervals."""
        return ThreadTimes(*(column[rows] for column in vars(self).values()))


def usage_of_thread(trace: HostTrace, line: int) -> ThreadTimes | None:
    """What a thread used; None where that was not recorded."""
    rows = events_of_thread(trace, line, holds_thread_usage)
    ran, queued = (trace.stat_ints(name, rows=rows) for name in (stat_names.RAN_NS, stat_names.QUEUED_NS))
    start = trace.events.start_ps[rows]
    usage = ThreadTimes(start, start + trace.events.duration_ps[rows], ran * _PS_PER_NS, queued * _PS_PER_NS)
    known = usage.take((ran >= 0) & (queued >= 0))
    return _count_in_time(known) if len(known.start_ps) else None


def _count_in_time(usage: ThreadTimes) -> ThreadTimes:
    """The same with each time in the interval in which it passed.

    The system counts a wait when it is over: what an interval has no room for passed before it, where it would be
    missing and look like sleep.
    """
    room = (usage.end_ps - usage.start_ps - usage.ran_ps - usage.queued_ps)[::-1]
    spent = np.cumsum(-room)
    late = (spent - np.minimum(np.minimum.accumulate(spent), 0))[::-1]  # what passed before each interval
    queued = usage.queued_ps + np.append(late[1:], 0) - late
    ran = np.maximum(usage.ran_ps + np.minimum(queued, 0), 0)  # what ran is counted late, too, by less
    return ThreadTimes(usage.start_ps, usage.end_ps, ran, np.maximum(queued, 0))
