"""The host side of the input: which ops read, prepare and hand over data, and the time of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepscope.analysis.input.iterators import iterator_calls
from stepscope.analysis.trace.columns import is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import forest, is_device_work, self_times
from stepscope.model import EventKind, HostTrace, Trait, stat_names
from stepscope.model.arrays import I64, distinct, sum_groups, union
from stepscope.records import dataclass
from stepscope.report.relation import Counted, Merged, Relation
from stepscope.vocabulary.lookup import names_have
from stepscope.vocabulary.traits import InputTrait

K = EventKind

MOST_OPS = 1000  # kept per host
CATEGORIES: tuple[str, ...] = ("read_on_demand", "read_in_advance", "preprocessing", "enqueue", "other")
MEANING: dict[str, str] = {
    "read_on_demand": "reading files without caching, prefetching or interleaving",
    "read_in_advance": "reading files with caching, prefetching or interleaving",
    "preprocessing": "all other work of input iterators; a DataLoader's items if the main process prepares them",
    "enqueue": "host calls that copy data to a device or put it into a device's queue",
    "other": "input work of unknown kind, such as waiting for a DataLoader's worker processes",
}
_ON_DEMAND, _IN_ADVANCE, _PREPROCESSING, _ENQUEUE, _OTHER = range(len(CATEGORIES))

_STAGES = {"enqueue": _ENQUEUE, "read": _ON_DEMAND, "preprocessing": _PREPROCESSING}


INPUT_OPS = Relation(
    ("op", "category"), ("count", "total_ps", "self_ps", "work_ps"), order=("-self_ps", "op"), most=MOST_OPS
)
"""Input ops by their name and one of CATEGORIES: `self_ps` is without nested ops, `work_ps` without the input ops that
one waits for, on any thread; nested ops that are not input ops count as its work."""


@dataclass(frozen=True)
class _Calls:
    """Calls of input ops: event rows, index into `names`, index into CATEGORIES, work in ps (None: the self time)."""

    row: I64
    name: I64
    category: I64
    names: tuple[str, ...]
    work_ps: I64 | None = None


def input_ops(trace: HostTrace) -> Counted:
    """The input ops of a host: rows of INPUT_OPS."""
    sets = [_iterator_calls(trace), _stage_calls(trace), _enqueue_calls(trace)]
    if not len(sets[0].row):
        sets += _loader_calls(trace)
    counts = is_any_kind(trace.events.kind, (K.OP, K.ITERATOR, K.COPY_HOST_TO_DEVICE_CALL))
    for calls in sets:
        counts[calls.row] = True
    own = self_times(trace, counts)
    return INPUT_OPS.keep([row for calls in sets for row in _sum_calls(trace, calls, own)])


def work_by_category(ops: Merged) -> dict[str, int]:
    """Work in ps by category."""
    work = dict.fromkeys(CATEGORIES, 0)
    for category, ps in zip(ops["category"], ops["work_ps"], strict=True):
        work[category] += ps
    return work


def _sum_calls(trace: HostTrace, calls: _Calls, own: I64) -> list[tuple[Any, ...]]:
    """Rows of INPUT_OPS."""
    key, at = np.unique(calls.name * len(CATEGORIES) + calls.category, return_inverse=True)
    at = at.reshape(-1)
    self_ps = own[calls.row]
    columns = (trace.events.duration_ps[calls.row], self_ps, self_ps if calls.work_ps is None else calls.work_ps)
    sums = [sum_groups(at, values, len(key)).tolist() for values in columns]
    count = np.bincount(at, minlength=len(key)).tolist()
    return [
        (calls.names[which // len(CATEGORIES)], CATEGORIES[which % len(CATEGORIES)], *numbers)
        for which, *numbers in zip(key.tolist(), count, *sums, strict=True)
    ]


# -- the kinds of input ops --------------------------------------------------------------------------------------


def _name_calls(trace: HostTrace, row: I64, category: Sequence[int] | I64) -> _Calls:
    """Calls named by their events."""
    stored, name = np.unique(trace.event_names(row), return_inverse=True)
    names = tuple(trace.strings[at] for at in stored.tolist())
    return _Calls(row, name.reshape(-1).astype(np.int64), np.asarray(category, np.int64), names)


def _iterator_calls(trace: HostTrace) -> _Calls:
    calls = iterator_calls(trace)
    reads = (trace.events.traits[calls.row] & np.uint8(Trait.FILE_READ)) != 0
    reads |= names_have(calls.names, InputTrait.READS_FILE)[calls.name]
    ahead = names_have(calls.names, InputTrait.READS_AHEAD)[calls.name]
    category = np.where(reads, np.where(ahead, _IN_ADVANCE, _ON_DEMAND), _PREPROCESSING)
    return _Calls(calls.row, calls.name.astype(np.int64), category, calls.names, np.maximum(calls.self_ps, 0))


def _stage_calls(trace: HostTrace) -> _Calls:
    """Stages named by an instrumented pipeline of any framework."""
    if not trace.has_stat(stat_names.INPUT_STAGE_CATEGORY):
        return _name_calls(trace, np.empty(0, np.int64), ())
    stated = trace.stat_strings(stat_names.INPUT_STAGE_CATEGORY)
    row = np.flatnonzero((stated >= 0) & (trace.events.kind != K.ITERATOR))
    kinds, which = np.unique(stated[row], return_inverse=True)
    codes = np.array([_STAGES.get(trace.strings[kind].lower(), _OTHER) for kind in kinds.tolist()], np.int64)
    title = trace.stat_strings(stat_names.INPUT_STAGE, rows=row)
    title = np.where(title > 0, title, trace.event_names(row))
    stored, name = np.unique(title, return_inverse=True)
    names = tuple(trace.strings[at] for at in stored.tolist())
    category = codes[which.reshape(-1)] if len(row) else which
    return _Calls(row, name.reshape(-1).astype(np.int64), category, names)


def _enqueue_calls(trace: HostTrace) -> _Calls:
    """Host calls that copy to a device: calls recorded as copies, and calls that started a copy."""
    kind = trace.events.kind
    copies = np.flatnonzero(is_device_work(trace) & (kind == K.COPY_HOST_TO_DEVICE))
    cause = forest(trace).cause[copies]
    started = distinct(cause[cause >= 0])
    said = np.flatnonzero((kind == K.COPY_HOST_TO_DEVICE_CALL) & is_thread_event(trace))
    row = union(said, started[kind[started] == K.RUNTIME_CALL])
    return _name_calls(trace, row, np.full(len(row), _ENQUEUE))


def _loader_calls(trace: HostTrace) -> list[_Calls]:
    """Calls of a data loader that is recorded only as a wait for the next batch, and the ops inside them."""
    waits = np.flatnonzero((trace.events.kind == K.INPUT_WAIT) & is_thread_event(trace))
    loaders = _name_calls(trace, waits, np.zeros(len(waits), np.int64))
    here = names_have(loaders.names, InputTrait.SINGLE_PROCESS)
    category = np.where(here[loaders.name], _PREPROCESSING, _OTHER) if len(waits) else loaders.category
    inside = _find_nested(trace, waits)
    ops = inside[trace.events.kind[inside] == K.OP]
    return [
        _Calls(waits, loaders.name, category, loaders.names),
        _name_calls(trace, ops, np.full(len(ops), _PREPROCESSING)),
    ]


def _find_nested(trace: HostTrace, outer: I64) -> I64:
    """Events that start and end inside one of the `outer` events, on the same line."""
    if not len(outer):
        return outer
    start, end = trace.events.start_ps, trace.events.start_ps + trace.events.duration_ps
    found = []
    for line in distinct(trace.events.line[outer]).tolist():
        of_line = outer[trace.events.line[outer] == line]
        reached = np.maximum.accumulate(end[of_line])
        rows = np.arange(trace.lines.event_begin[line], trace.lines.event_end[line])
        at = np.searchsorted(start[of_line], start[rows], side="right") - 1
        within = (at >= 0) & (end[rows] <= reached[at])
        found.append(rows[within])
    rows = np.concatenate(found)
    return rows[~np.isin(rows, outer)]
