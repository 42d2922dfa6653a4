"""What Stepscope's own tracers recorded of a thread, on planes of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.model import HostTrace
from stepscope.model.arrays import I64
from stepscope.vocabulary.lines import is_main_thread


def events_of_thread(trace: HostTrace, line: int, is_plane: Callable[[str], bool]) -> I64:
    """The events about a thread on the planes with a name of some kind, in order of time: int64 of shape (n,).

    Args:
        line: the line on which a profiler recorded the thread; our own line of that thread has its number.
    """
    strings, lines = trace.strings, trace.lines
    planes = [row for row, name in enumerate(trace.planes.name.tolist()) if is_plane(strings[name])]
    found = np.flatnonzero(np.isin(lines.plane, planes))
    same = found[lines.line_id[found] == lines.line_id[line]]
    if not len(same):  # some profilers number threads in their own way
        same = np.array([row for row in found.tolist() if is_main_thread(trace.line_label(row))], np.int64)
    rows = [np.arange(int(lines.event_begin[row]), int(lines.event_end[row])) for row in same[:1].tolist()]
    return rows[0] if rows else np.empty(0, np.int64)
