"""The calls in which a loop waits for its next batch: their time, worker processes and memory pinning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.columns import is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import enclosing_events
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.report import add_up
from stepscope.vocabulary.lookup import has_trait, name_has
from stepscope.vocabulary.traits import InputTrait

K = EventKind

LEAST_SHARE = 0.01  # of the longest loader: shorter ones are dropped
IN_CALLS, ON_A_THREAD = "in the calls", "on another thread"


@dataclass(frozen=True)
class Loader:
    """Calls of one name in which the loop waits for a batch; times in ps.

    Attributes:
        in_steps_ps: the part of `total_ps` inside steps.
        workers: processes that prepare the items; 0 if the calls do it themselves, None if unknown.
        pinning: IN_CALLS or ON_A_THREAD if batches are copied to pinned memory there, else empty.
        pins, pin_ps: number and time of these copies.
    """

    name: str
    calls: int
    total_ps: int
    max_ps: int
    in_steps_ps: int
    workers: int | None
    pinning: str
    pins: int
    pin_ps: int


def loaders_of(trace: HostTrace) -> list[Loader]:
    """The loaders of a host, longest first."""
    waits = outer_waits(trace)
    names, pins = trace.event_names(waits), _pins(trace, waits)
    found = [_make_loader(trace, trace.strings[name], waits[names == name], pins) for name in distinct(names).tolist()]
    return sorted(found, key=lambda loader: (-loader.total_ps, loader.name))


def add_loaders(loaders: Iterable[Loader]) -> list[Loader]:
    """Merges loaders of equal name, longest first; values that differ become unknown.

    Loaders below a hundredth of the longest are dropped: a graph's ops hand a batch on in many calls.
    """
    merged: dict[str, Loader] = {}
    for loader in loaders:
        before = merged.get(loader.name)
        merged[loader.name] = loader if before is None else _merge_loaders(before, loader)
    longest = max((loader.total_ps for loader in merged.values()), default=0)
    kept = [loader for loader in merged.values() if loader.total_ps >= LEAST_SHARE * longest]
    return sorted(kept, key=lambda loader: (-loader.total_ps, loader.name))


def _merge_loaders(one: Loader, other: Loader) -> Loader:
    summed = add_up((one, other), ("calls", "total_ps", "max_ps", "in_steps_ps", "pins", "pin_ps"))
    workers = one.workers if one.workers == other.workers else None
    return replace(summed, workers=workers, pinning=one.pinning or other.pinning)


def outer_waits(trace: HostTrace) -> I64:
    """The outermost calls on threads that wait for a batch: rows of events."""
    return trace.derived("outer waits", _outer_waits)


def _outer_waits(trace: HostTrace) -> I64:
    waits = (trace.events.kind == K.INPUT_WAIT) & is_thread_event(trace)
    return _outermost(trace, waits) if waits.any() else np.empty(0, np.int64)


def wait_per_step(trace: HostTrace) -> list[int]:
    """Time in ps of each step in which a thread waits for a batch."""
    steps = steps_of(trace)
    waited: list[int] = spans_of(trace, outer_waits(trace)).overlap_ps(steps.start_ps, steps.until_ps).tolist()
    return waited


@dataclass(frozen=True)
class _Pins:
    """Copies to pinned memory: rows of events.

    Attributes:
        in_waits, waits: copies inside waiting calls, and the call of each.
        elsewhere: copies on threads without waiting calls.
    """

    in_waits: I64
    waits: I64
    elsewhere: I64


def _make_loader(trace: HostTrace, name: str, calls: I64, all_pins: _Pins) -> Loader:
    steps, duration = steps_of(trace), trace.events.duration_ps[calls]
    in_steps = spans_of(trace, calls) & Spans.union(steps.start_ps, steps.until_ps)
    inside = all_pins.in_waits[np.isin(all_pins.waits, calls)]
    of_thread = not len(inside) and name_has(name, InputTrait.MULTI_PROCESS)
    pins = all_pins.elsewhere if of_thread else inside
    return Loader(
        name=name,
        calls=len(calls),
        total_ps=int(duration.sum()),
        max_ps=int(duration.max()),
        in_steps_ps=in_steps.total,
        workers=_workers(trace, name),
        pinning="" if not len(pins) else ON_A_THREAD if of_thread else IN_CALLS,
        pins=len(pins),
        pin_ps=int(trace.events.duration_ps[pins].sum()),
    )


def _workers(trace: HostTrace, name: str) -> int | None:
    """Number of processes that a loader's iterator started; None if recorded iterators differ."""
    if name_has(name, InputTrait.SINGLE_PROCESS):
        return 0
    if not name_has(name, InputTrait.MULTI_PROCESS):
        return None
    starts = np.flatnonzero(_select_events(trace, InputTrait.STARTS_PROCESS, K.PYTHON_CALL))
    makers = enclosing_events(trace, _select_events(trace, InputTrait.STARTS_LOADER, K.PYTHON_CALL))[starts]
    _, counts = np.unique(makers[makers >= 0], return_counts=True)
    return int(counts[0]) if len(counts) and (counts == counts[0]).all() else None


def _pins(trace: HostTrace, waits: I64) -> _Pins:
    found = _select_events(trace, InputTrait.PINS_MEMORY, K.OP, K.PYTHON_CALL)
    if not found.any():
        return _Pins(*[np.empty(0, np.int64)] * 3)
    pins, is_wait = _outermost(trace, found), np.zeros(len(trace.events), np.bool_)
    is_wait[waits] = True
    around = enclosing_events(trace, is_wait)[pins].astype(np.int64)
    waiting = np.isin(trace.events.line[pins], trace.events.line[waits])
    return _Pins(pins[around >= 0], around[around >= 0], pins[~waiting])


def _select_events(trace: HostTrace, trait: InputTrait, *kinds: EventKind) -> Mask:
    """Events of some kinds whose name has a trait: bool of shape (events,)."""
    found = is_any_kind(trace.events.kind, kinds)
    rows = np.flatnonzero(found)
    found[rows] = has_trait(trace, trace.events.type[rows], trait)
    return found


def _outermost(trace: HostTrace, counts: Mask) -> I64:
    """Rows of the selected events that are not nested in another selected event."""
    rows = np.flatnonzero(counts)
    outer: I64 = rows[enclosing_events(trace, counts)[rows] == rows]
    return outer
