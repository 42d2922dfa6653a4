"""Puts the Python calls of the main thread on the line that has the rest of that thread.

Stepscope records the Python calls of TensorFlow programs itself, since TensorFlow's profiler records none where a
program starts it.  In the file they are a plane of their own, with the number of the thread; TensorFlow writes a hash.
Only on one line do ops nest in the calls that made them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.formats.xspace import schema
from stepscope.model import HostTrace, LineKind, take_events
from stepscope.model.arrays import I64

_MAIN_THREAD = "MainThread"  # as Python names it
_PYTHON_THREAD = "python"  # as the system names the thread that runs the interpreter


def join_python_calls(trace: HostTrace) -> HostTrace:
    """The trace with the main thread's Python calls on that thread's line; the same trace if there are none, or no line
    of the host that is certainly that thread."""
    calls = _lines_called(trace, schema.PYTHON_PLANE, _MAIN_THREAD)
    threads = _lines_called(trace, schema.HOST_PLANE, _PYTHON_THREAD)
    if len(calls) != 1 or not len(threads):
        return trace
    events = trace.lines.event_end[threads] - trace.lines.event_begin[threads]
    line = trace.events.line.copy()
    line[int(trace.lines.event_begin[calls[0]]) : int(trace.lines.event_end[calls[0]])] = threads[events.argmax()]
    moved = replace(trace, events=replace(trace.events, line=line), _derived={})
    rows = np.arange(len(line))
    return take_events(moved, rows, trace.events.start_ps, trace.events.duration_ps)[0]


def _lines_called(trace: HostTrace, plane: str, name: str) -> I64:
    """The lines with events of a plane and a name."""
    planes, names = trace.strings.find(plane), trace.strings.find(name)
    if planes <= 0 or names <= 0:
        return np.empty(0, np.int64)
    of_plane = trace.planes.name[trace.lines.plane] == planes
    used = (trace.lines.event_end > trace.lines.event_begin) & (trace.lines.kind == LineKind.THREAD)
    found: I64 = np.flatnonzero(of_plane & used & (trace.lines.name == names))
    return found
