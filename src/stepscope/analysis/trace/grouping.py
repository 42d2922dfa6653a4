"""Which events belong together: enclosing events, causes on other threads, and membership in steps.

The links are those of the reference: containment on a line, producer and consumer contexts, executor runs and the
iterator calls made for them, device work and the host call that launched it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.analysis.trace.program_runs import link_runs
from stepscope.model import EventKind, HostTrace, LineKind, Trait, stat_names
from stepscope.model.arrays import I32, I64, Mask, last_below
from stepscope.records import dataclass

_MEASURED_DEVICE = frozenset({
    EventKind.KERNEL, EventKind.COPY_HOST_TO_DEVICE, EventKind.COPY_DEVICE_TO_HOST, EventKind.COPY_DEVICE_TO_DEVICE,
    EventKind.COPY_PEER, EventKind.COPY_OTHER, EventKind.MEMSET, EventKind.COLLECTIVE, EventKind.DEVICE_OP,
    EventKind.GRAPH_LAUNCH, EventKind.INFEED, EventKind.OUTFEED,
})  # fmt: skip
# Device work of which a device can be told to be in use, and does not merely copy.
COMPUTING = (EventKind.KERNEL, EventKind.DEVICE_OP, EventKind.COLLECTIVE, EventKind.GRAPH_LAUNCH)


@dataclass(frozen=True)
class Forest:
    """How the events of a host hang together.

    Attributes:
        parent: int32 of shape (events,), the enclosing event on the same line, or -1.
        cause: int32 of shape (events,), the event on another line that made this one happen, or -1.
        extent_ps: int64 of shape (events,), the duration; for the begin mark of a region its length.
    """

    parent: I32
    cause: I32
    extent_ps: I64


def forest(trace: HostTrace) -> Forest:
    """The forest of a trace, computed once."""
    return trace.derived("forest", _forest)


def forest_columns(trace: HostTrace) -> dict[str, NDArray[Any]]:
    """The forest as plain arrays, for a cache; inverse of `restore_forest`."""
    links = forest(trace)
    known = {"parent": links.parent, "cause": links.cause}
    return known if links.extent_ps is trace.events.duration_ps else known | {"extent_ps": links.extent_ps}


def restore_forest(trace: HostTrace, columns: Mapping[str, NDArray[Any]]) -> None:
    """Gives a trace the forest that `forest_columns` took from an equal one, unless it has one already.

    That of a trace of another length is left aside: its rows could lie outside of this one, and no loop would notice.
    """
    extent = columns.get("extent_ps", trace.events.duration_ps)
    if len(columns["parent"]) == len(trace.events):
        trace.derived("forest", lambda _: Forest(columns["parent"], columns["cause"], extent))


def is_device_work(trace: HostTrace) -> Mask:
    """Measured work of a device (no derived lines, which would count it twice): bool of shape (events,)."""
    return trace.derived("device work", _is_device_work)


def launched_before(trace: HostTrace, limit_ps: int) -> Mask:
    """Device work launched before a time: by its call, else by a correlation id below that of every recorded call,
    which says that the call was before the recording.  bool of shape (events,)."""
    cause, correlation = forest(trace).cause, trace.stat_ints(stat_names.CORRELATION_ID)
    early: Mask = np.where(
        cause >= 0,
        trace.events.start_ps[np.maximum(cause, 0)] < limit_ps,
        (correlation > 0) & (correlation < _first_correlation(trace, correlation)),
    )
    return is_device_work(trace) & early


def _first_correlation(trace: HostTrace, correlation: I64) -> int:
    """The lowest correlation id of a recorded call, 0 without any."""
    calls = correlation[(trace.lines.kind == LineKind.THREAD)[trace.events.line] & (correlation > 0)]
    return int(calls.min()) if len(calls) else 0


def enclosing(trace: HostTrace, counts: Mask) -> I64:
    """The outermost counted event around each event, itself included; -1 without one: int64 of shape (events,)."""
    out = np.empty(len(trace.events), np.int64)
    kernels.nesting.outermost(forest(trace).parent, counts, out)
    return out


def _is_device_work(trace: HostTrace) -> Mask:
    lines = np.isin(trace.lines.kind, (LineKind.STREAM, LineKind.DEVICE_OPS))
    kinds = np.zeros(256, np.bool_)
    kinds[[int(kind) for kind in _MEASURED_DEVICE]] = True
    return kinds[trace.events.kind] & lines[trace.events.line]


def _forest(trace: HostTrace) -> Forest:
    events = trace.events
    parent = np.full(len(events), -1, np.int32)
    has_regions = bool((events.kind == EventKind.REGION_BEGIN).any())
    extent = events.duration_ps.copy() if has_regions else events.duration_ps
    rows = trace.lines_of(LineKind.THREAD, LineKind.DEVICE_OPS)
    kernels.nesting.parents(
        events.start_ps, events.duration_ps, trace.lines.event_begin[rows], trace.lines.event_end[rows], events.kind,
        (events.traits & np.uint8(Trait.ASYNC)) != 0, int(EventKind.REGION_BEGIN), int(EventKind.REGION_END),
        parent, extent if has_regions else np.empty(0, np.int64),
    )  # fmt: skip
    return Forest(parent, _causes(trace, parent), extent)


def _causes(trace: HostTrace, parent: I32) -> I32:
    cause = np.full(len(trace.events), -1, np.int32)
    _link_executor_to_iterator(trace, cause)
    _link_producers(trace, cause)
    _link_launches(trace, cause)
    link_runs(trace, parent, cause)
    return cause


def _link_producers(trace: HostTrace, cause: I32) -> None:
    """Consumers get the latest producer of the same context type and id that started before them."""
    producer_type, consumer_type = trace.stat_ints(stat_names.PRODUCER_TYPE), trace.stat_ints(stat_names.CONSUMER_TYPE)
    sources, targets = np.flatnonzero(producer_type >= 0), np.flatnonzero(consumer_type >= 0)
    source_key = _mixed(trace.stat_ints(stat_names.PRODUCER_ID, rows=sources), producer_type[sources])
    target_key = _mixed(trace.stat_ints(stat_names.CONSUMER_ID, rows=targets), consumer_type[targets])
    _join(trace, sources, source_key, targets, target_key, cause)


def _link_executor_to_iterator(trace: HostTrace, cause: I32) -> None:
    """A wait for input gets the executor run that it was made for: equal run id and iteration."""
    kind = trace.events.kind
    sources, targets = np.flatnonzero(kind == EventKind.EXECUTOR), np.flatnonzero(kind == EventKind.INPUT_WAIT)
    if len(sources) and len(targets):
        targets = targets[trace.stat_ints(stat_names.ITER_NUM, rows=targets) >= 0]
        keys = [
            _mixed(trace.stat_ints(stat_names.RUN_ID, 0, rows=rows), trace.stat_ints(stat_names.ITER_NUM, rows=rows))
            for rows in (sources, targets)
        ]
        _join(trace, sources, keys[0], targets, keys[1], cause)


def _mixed(number: I64, other: I64) -> I64:
    """One number for each pair of numbers; pairs that share one are rare, and ids are small."""
    with np.errstate(over="ignore"):
        return number ^ (other * np.int64(0x1000193))


def _link_launches(trace: HostTrace, cause: I32) -> None:
    """Device work gets the host call with its correlation id."""
    device = is_device_work(trace)
    if not device.any():
        return
    correlation = trace.stat_ints(stat_names.CORRELATION_ID)
    numbered = np.flatnonzero(correlation > 0)
    sources = numbered[(trace.lines.kind == LineKind.THREAD)[trace.events.line[numbered]]]
    targets = numbered[device[numbered]]
    _join(trace, sources, correlation[sources], targets, correlation[targets], cause)


def _join(trace: HostTrace, sources: I64, source_key: I64, targets: I64, target_key: I64, cause: I32) -> None:
    """Sets `cause` of each target to the source of equal key that started last before it, else to any of equal key."""
    if not len(sources) or not len(targets):
        return
    start = trace.events.start_ps
    order = np.lexsort((start[sources], source_key))
    sources, source_key = sources[order], source_key[order]
    first = np.minimum(np.searchsorted(source_key, target_key), len(sources) - 1)
    found = source_key[first] == target_key
    last = _run_ends(source_key)[first]
    chosen = np.where(found, last - 1, 0)
    repeated = np.flatnonzero(found & (last - first > 1))
    if len(repeated):  # keys are nearly always unique
        begin = first[repeated]
        in_time = last_below(start[sources], begin, last[repeated], start[targets[repeated]] + 1)
        chosen[repeated] = np.maximum(in_time, begin)
    cause[targets[found]] = sources[chosen[found]].astype(np.int32)


def _run_ends(ascending: I64) -> I64:
    """For each value the place after the last that equals it."""
    ends = np.flatnonzero(np.append(ascending[1:] != ascending[:-1], True)) + 1
    return np.repeat(ends, np.diff(ends, prepend=0))


def spread_labels(trace: HostTrace, label: I32) -> I32:
    """Gives every event the label of what it belongs to, through enclosing events and causes, in place."""
    links = forest(trace)
    state = np.zeros(len(label), np.uint8)
    kernels.nesting.spread(label, links.parent, links.cause, state, np.empty(len(label) + 1, np.int32))
    return label
