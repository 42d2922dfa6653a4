"""Copies from the host to devices: how much, from which kind of memory, and how much of it is exposed."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.trace.kernel_facts import stated_bytes
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, distinct
from stepscope.report.relation import Counted, Relation
from stepscope.vocabulary.devices import memory_of

K = EventKind


COPIES = Relation(("memory",), ("count", "bytes", "total_ps", "exposed_ps", "call_ps"), order=("-total_ps", "memory"))
"""Copies to all devices by kind of memory, pinned or pageable, empty if unknown; `bytes` is unknown if a copy does not
state its size.  In `exposed_ps` the device does nothing but such a copy; `call_ps` is the time of the host calls that
started the copies."""


def host_copies(trace: HostTrace) -> Counted:
    """The copies from a host to its devices: rows of COPIES."""
    rows = events_of_kind(trace, K.COPY_HOST_TO_DEVICE)
    rows = rows[is_device_work(trace)[rows]]
    memory, which = _memories(trace, rows)
    return COPIES.keep([_copies_from(trace, name, rows[which == at]) for at, name in enumerate(memory)])


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


def _copies_from(trace: HostTrace, memory: str, rows: I64) -> tuple[Any, ...]:
    """A row of COPIES."""
    size = stated_bytes(trace, rows)
    cause = forest(trace).cause[rows]
    calls = distinct(cause[cause >= 0])
    known = None if size is None or (size < 0).any() else int(size.sum())
    total, in_calls = (int(trace.events.duration_ps[each].sum()) for each in (rows, calls))
    return memory, len(rows), known, total, _exposed_time(trace, rows), in_calls


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
