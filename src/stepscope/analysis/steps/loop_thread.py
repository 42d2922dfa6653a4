"""The thread that runs the training loop."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.host_steps import HostSteps
from stepscope.analysis.trace.columns import events_of_kind, is_inside
from stepscope.analysis.trace.grouping import device_rows, forest
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64, Mask
from stepscope.vocabulary.torch import ENGINE_THREAD

K = EventKind

_CALLING_PROGRAMS = (K.TRACED_FUNCTION, K.EAGER_EXECUTE)
_CALLING = (*_CALLING_PROGRAMS, K.RUNTIME_CALL, K.BACKWARD, K.PYTHON_CALL, K.OP)


def find_loop_line(trace: HostTrace, steps: HostSteps) -> int:
    """The line of the loop's thread, -1 if unknown.

    It is the line of the step marks, else the thread that calls most programs in steps, else the one that launches most
    device work, else the one that makes most calls. Threads that only run the ops of a program do not count, nor does
    one that runs the backward pass for another, though it often launches most.
    """
    if steps.line >= 0 and trace.lines.kind[steps.line] == LineKind.THREAD:
        return steps.line
    for kinds in (_CALLING_PROGRAMS, (), _CALLING):
        rows = _calls(trace, kinds, steps) if kinds else _launches(trace)
        found = np.bincount(trace.events.line[rows], minlength=len(trace.lines))
        found[trace.lines.kind != LineKind.THREAD] = 0
        if found.any():
            return int(np.argmax(np.where(_serves_another(trace), found > 0, found + np.sign(found))))
    return -1


def _serves_another(trace: HostTrace) -> Mask:
    """Threads of PyTorch's engine, by their names, or as all that they do is part of a backward pass while another
    thread runs ops of its own: bool of shape (lines,)."""
    named = np.array([trace.strings[name].startswith(ENGINE_THREAD) for name in trace.lines.name.tolist()], np.bool_)
    if not len(events_of_kind(trace, K.BACKWARD)):
        return named
    works = events_of_kind(trace, K.OP, K.BACKWARD)
    line, inside = trace.events.line[works], is_inside(trace, works, K.BACKWARD)
    own, backward = (np.bincount(line[each], minlength=len(named)) for each in (~inside, inside))
    found: Mask = named | ((backward > 0) & (own == 0) & bool(own.any()))
    return found


def _calls(trace: HostTrace, kinds: tuple[EventKind, ...], steps: HostSteps) -> I64:
    rows = np.concatenate([events_of_kind(trace, kind) for kind in kinds])
    return rows[np.flatnonzero(steps.label[rows] >= 0)]


def _launches(trace: HostTrace) -> I64:
    """The host events that launch device work, once for each piece of it."""
    cause = forest(trace).cause[device_rows(trace)]
    launched: I64 = cause[cause >= 0].astype(np.int64)
    return launched
