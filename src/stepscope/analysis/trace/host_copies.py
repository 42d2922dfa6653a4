"""Copies from the host to devices: how much, from which kind of memory, and how much of it is exposed."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import numpy as np

from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.trace.kernel_facts import stated_bytes
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.report import add_records
from stepscope.vocabulary.devices import memory_of

K = EventKind


@dataclass(frozen=True)
class HostCopy:
    """Copies from one kind of memory to all devices of a host; times in ps.

    Attributes:
        memory: pinned or pageable; empty if unknown.
        size: bytes, None if a copy does not state its size.
        exposed_ps: time in which the device does nothing but such a copy.
        call_ps: time of the host calls that started the copies.
    """

    memory: str
    count: int
    size: int | None
    total_ps: int
    exposed_ps: int
    call_ps: int


def host_copies(trace: HostTrace) -> list[HostCopy]:
    """The copies from a host to its devices by kind of memory, longest first."""
    rows = np.flatnonzero(is_device_work(trace) & (trace.events.kind == K.COPY_HOST_TO_DEVICE))
    memory, which = _memories(trace, rows)
    found = [_copies_from(trace, name, rows[which == at]) for at, name in enumerate(memory)]
    return sorted(found, key=lambda copy: (-copy.total_ps, copy.memory))


def add_copies(copies: Iterable[HostCopy]) -> list[HostCopy]:
    """Merges copies from the same kind of memory, longest first."""
    added = add_records(copies, attrgetter("memory"), ("count", "size", "total_ps", "exposed_ps", "call_ps"))
    return sorted(added, key=lambda copy: (-copy.total_ps, copy.memory))


def _memories(trace: HostTrace, rows: I64) -> tuple[list[str], I64]:
    """The kinds of memory, and the index of the kind that each copy is from.  Details take precedence over names."""
    text = trace.event_names(rows).astype(np.int64)
    if trace.has_stat(stat_names.COPY_DETAILS):
        details = trace.stat_strings(stat_names.COPY_DETAILS, rows=rows)
        text = np.where(details > 0, details, text)
    different, which = np.unique(text, return_inverse=True)
    kinds = [memory_of(trace.strings[row]) for row in different.tolist()]
    memory = sorted(set(kinds))
    places = np.array([memory.index(kind) for kind in kinds], np.int64)
    return memory, places[which.reshape(-1)] if len(rows) else which


def _copies_from(trace: HostTrace, memory: str, rows: I64) -> HostCopy:
    size = stated_bytes(trace, rows)
    cause = forest(trace).cause[rows]
    calls = distinct(cause[cause >= 0])
    return HostCopy(
        memory=memory,
        count=len(rows),
        size=None if size is None or (size < 0).any() else int(size.sum()),
        total_ps=int(trace.events.duration_ps[rows].sum()),
        exposed_ps=_exposed_time(trace, rows),
        call_ps=int(trace.events.duration_ps[calls].sum()),
    )


def _exposed_time(trace: HostTrace, rows: I64) -> int:
    """Time in which only these copies keep their device busy, summed over devices."""
    own, other = trace.lines.plane[trace.events.line[rows]], is_device_work(trace).copy()
    other[rows] = False
    work = np.flatnonzero(other)
    plane = trace.lines.plane[trace.events.line[work]]
    total = 0
    for device in np.flatnonzero(np.bincount(own)).tolist():
        busy = spans_of(trace, work[plane == device])
        total += (spans_of(trace, rows[own == device]) - busy).total
    return total
