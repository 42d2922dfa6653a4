"""The steps of one host: where each starts and ends, and which events belong to it.

Sources, in this order:

1. marks that the user or the framework set on a host thread (source "markers"); where there are none, repeated ranges
   of the program around its work count as marks (`named_steps`, when a trace is loaded);
2. steps that the writer of the file derived for its devices (also "markers", since they come from marks);
3. the updates of PyTorch's optimizers ("inferred", with a confidence);
4. the repeating cycle of device work, of function calls, of input iterator calls or of ops ("inferred", too);
5. nothing: the whole capture is one span ("none").
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.host_steps import HostSteps, close_gaps
from stepscope.analysis.steps.inferred_steps import infer_steps
from stepscope.analysis.steps.marked_steps import find_device_steps, find_marked_steps
from stepscope.analysis.steps.update_steps import find_update_steps
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64, Mask, look_up

__all__ = ["HostSteps", "count_warm_up_steps", "observed_time", "steps_of", "steps_of_events", "whole_steps"]

_STEPS_A_WARM_UP = 4  # whole steps needed per warm-up step after the first one
_COMPILES = 0.1  # share of a step; compiling for less is usual


def steps_of(trace: HostTrace) -> HostSteps:
    """The steps of a host, computed once per trace."""
    return trace.derived("steps", _find_steps)


def steps_of_events(trace: HostTrace, rows: I64) -> I64:
    """The step that each event belongs to, else the step during which it starts.

    int64 of shape (n,): rows of the steps, -1 without one.
    """
    steps, start = steps_of(trace), trace.events.start_ps[rows]
    at = np.searchsorted(steps.start_ps, start, side="right") - 1
    during = np.where((at >= 0) & (start < np.append(steps.end_ps, 0)[at]), at, -1)
    return np.where(steps.label[rows] >= 0, steps.label[rows], during)


def whole_steps(trace: HostTrace) -> HostSteps:
    """The steps that advice is based on: those not cut by the edges of the capture, without warm-up steps.

    If the capture cuts every step, all of them count.
    """
    return trace.derived("whole steps", _drop_cut_steps)


def observed_time(trace: HostTrace) -> Spans:
    """The observed time: from the start of the first whole step to the end of the last one.

    Steps without marks on a thread may not belong to one loop, so the time between them is left out.
    """
    steps = whole_steps(trace)
    if not len(steps.number) or steps.line < 0:
        return Spans.union(steps.start_ps, steps.end_ps)
    return Spans(steps.start_ps[:1], steps.end_ps.max(keepdims=True))


def is_usual(trace: HostTrace) -> Mask:
    """Which steps statistics count: bool of shape (steps,).

    They are those of `whole_steps` without any of which it is not known how long they last.
    """
    return trace.derived("usual steps", _find_usual_steps)


def _find_usual_steps(trace: HostTrace) -> Mask:
    steps = steps_of(trace)
    kept, rows = _complete_range(steps), np.arange(len(steps.number))
    whole: Mask = (rows >= kept.start + count_warm_up_steps(trace)) & (rows < kept.stop)
    usual = whole & ~steps.cut_short
    return usual if usual.any() else whole


def count_warm_up_steps(trace: HostTrace) -> int:
    """How many of the first whole steps trace or compile, if the steps after them do not."""
    return trace.derived("warm-up", _count_warm_up_steps)


def _count_warm_up_steps(trace: HostTrace) -> int:
    steps = steps_of(trace)
    kept = _complete_range(steps)
    start, end = steps.start_ps[kept], steps.until_ps[kept]
    most = max(len(start) // _STEPS_A_WARM_UP, int(len(start) > 1))
    compiling = spans_of(trace, events_of_kind(trace, EventKind.COMPILE)) if most else None
    if compiling is None or not len(compiling.start):
        return 0
    compiled = np.flatnonzero(compiling.overlap_ps(start, end) >= _COMPILES * (end - start))
    first = len(compiled)
    rest = compiling.overlap_ps(start[first:], end[first:]).sum() if first <= most else 0
    return first if 0 < first <= most and compiled[-1] == first - 1 and not rest else 0


def _complete_range(steps: HostSteps) -> slice:
    """The steps that the capture does not cut, or all if it cuts each; only the first and last can be cut."""
    kept = np.flatnonzero(steps.complete)
    return slice(int(kept[0]), int(kept[-1]) + 1) if len(kept) else slice(0, len(steps.complete))


def _drop_cut_steps(trace: HostTrace) -> HostSteps:
    steps = steps_of(trace)
    kept = _complete_range(steps)
    first = kept.start + count_warm_up_steps(trace)
    if kept.stop - first == len(steps.complete):
        return steps
    ours = (steps.label >= first) & (steps.label < kept.stop)
    return steps.take(np.arange(first, kept.stop), np.where(ours, steps.label - first, -1).astype(np.int32))


def _find_steps(trace: HostTrace) -> HostSteps:
    marked = find_marked_steps(trace) or find_device_steps(trace)
    return close_gaps(marked or find_update_steps(trace) or infer_steps(trace) or _capture_as_step(trace))


def _capture_as_step(trace: HostTrace) -> HostSteps:
    begin, end = trace.span_ps()
    busy = np.flatnonzero(
        look_up(~np.isin(trace.lines.kind, (LineKind.COUNTERS, LineKind.OVERHEAD)), trace.events.line)
    )
    steps = 1 if len(busy) and end > begin else 0
    return HostSteps(
        source="none",
        how="no step marks and no repeating sequence were found; the whole capture counts as one span"
        if steps
        else "the profile holds no events that take time",
        confidence=None,
        number=np.zeros(steps, np.int64),
        name=("capture",) * steps,
        start_ps=np.full(steps, begin, np.int64),
        end_ps=np.full(steps, end, np.int64),
        complete=np.ones(steps, np.bool_),
        label=np.full(len(trace.events), steps - 1, np.int32),
    )


def holds_step(trace: HostTrace, start_ps: I64, end_ps: I64) -> Mask:
    """Which stretches of time hold at least one step from its start to its end: bool of shape (n,)."""
    steps = steps_of(trace)
    order = np.argsort(steps.start_ps, kind="stable")
    ends = np.append(steps.end_ps[order], np.iinfo(np.int64).max)
    held: Mask = end_ps >= ends[np.searchsorted(steps.start_ps[order], start_ps)]
    return held
