"""Stretches of the loop's thread whose cause the innermost event does not tell: what happens around them does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.contention import lost_spans
from stepscope.analysis.account.innermost import cut_by_events, intersect
from stepscope.analysis.account.saves import saves_of
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.trace.spans import Spans
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, U8, Mask, distinct
from stepscope.records import dataclass


@dataclass(frozen=True)
class Stretches:
    """Stretches as columns in order of time; no two overlap.

    Attributes:
        start_ps, end_ps: int64 of shape (n,).
        cause: uint8 of shape (n,), see Cause.
    """

    start_ps: I64
    end_ps: I64
    cause: U8

    def of_cause(self, cause: Cause) -> Spans:
        """Those with a cause."""
        chosen = self.cause == cause
        return Spans.union(self.start_ps[chosen], self.end_ps[chosen])


def stretches_of(trace: HostTrace) -> Stretches:
    """The stretches of a host's loop, found once."""
    return trace.derived("stretches of the loop", _find_stretches)


def _find_stretches(trace: HostTrace) -> Stretches:
    lost, saves = lost_spans(trace), saves_of(trace)
    found = [(Cause.CONTENTION, lost)] if lost is not None else []
    found.append((Cause.CHECKPOINT, saves if lost is None else saves - lost))
    start, end = (np.concatenate([getattr(spans, side) for _, spans in found]) for side in ("start", "end"))
    cause = np.repeat(np.array([cause for cause, _ in found], np.uint8), [len(spans.start) for _, spans in found])
    order = np.argsort(start, kind="stable")
    return Stretches(start[order], end[order], cause[order])


def cut_at_stretches(trace: HostTrace, start: I64, end: I64) -> tuple[I64, I64, I64]:
    """Some time of a thread, in order, cut where such a stretch begins or ends: for each part its place, start and
    end."""
    known = stretches_of(trace)
    if not len(known.start_ps) or not len(start):
        return np.arange(len(start)), start, end
    first, last = min(int(start[0]), int(known.start_ps[0])), max(int(end[-1]), int(known.end_ps[-1]))
    bounds = distinct(np.concatenate([[first], known.start_ps, known.end_ps, [last]]))
    place, _, begin, stop = intersect(start, end, bounds[:-1], bounds[1:])
    return place, begin, stop


def causes_within(trace: HostTrace, line: NDArray[np.integer], start: I64, end: I64) -> U8:
    """The cause of the stretch around some time of threads, already cut: uint8 of shape (n,), 0 for none.

    What other threads do for the loop's is a part of what that does; only a lost processor is its own.
    """
    known = stretches_of(trace)
    if not len(known.start_ps):
        return np.zeros(len(start), np.uint8)
    at = np.maximum(np.searchsorted(known.start_ps, start, side="right") - 1, 0)
    inside: Mask = (known.start_ps[at] <= start) & (end <= known.end_ps[at])
    inside &= (line == threads_of(trace).main) | (known.cause[at] != Cause.CONTENTION)
    return np.where(inside, known.cause[at], 0).astype(np.uint8)


def parts_within(trace: HostTrace, line: int, start: I64, end: I64) -> tuple[I64, I64, U8, I64]:
    """What some time of a thread, in order, shares with the stretches: for each part its place, the innermost event
    there (-1 for none), the stretch's cause, and how long, in ps."""
    known = stretches_of(trace)
    if line != threads_of(trace).main or not len(known.start_ps) or not len(start):
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing.astype(np.uint8), nothing
    place, at, begin, stop = intersect(start, end, known.start_ps, known.end_ps)
    part, low, high, event = cut_by_events(trace, line, begin, stop) if len(begin) else (place, begin, stop, place)
    return place[part], event, known.cause[at[part]], high - low
