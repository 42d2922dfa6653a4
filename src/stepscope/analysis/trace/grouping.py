"""Which events belong together: enclosing events, causes on other threads, and membership in steps.

The links are those of the reference (XProf): containment on a line, producer and consumer contexts, executor runs and
the iterator calls made for them, device work and the host call that launched it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.analysis.trace.event_kinds import count_kinds, rows_of_kinds
from stepscope.analysis.trace.program_runs import link_modules, link_runs
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, LineKind, Trait, stat_names
from stepscope.model.arrays import I32, I64, Mask, blocks_of, count_below, last_below, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

OPS = (EventKind.OP, EventKind.BACKWARD, EventKind.COLLECTIVE_CALL)  # of a framework, on the host
KERNELS = (EventKind.KERNEL, EventKind.COLLECTIVE)
COPIES = (  # of a device; one from host to host is none of its work
    EventKind.COPY_HOST_TO_DEVICE, EventKind.COPY_DEVICE_TO_HOST, EventKind.COPY_DEVICE_TO_DEVICE, EventKind.COPY_PEER,
    EventKind.COPY_OTHER,
)  # fmt: skip
_MEASURED_DEVICE = frozenset({
    *KERNELS, *COPIES, EventKind.MEMSET, EventKind.DEVICE_OP, EventKind.GRAPH_LAUNCH, EventKind.INFEED,
    EventKind.OUTFEED,
})  # fmt: skip
# Device work that shows a device in use; copies alone do not.
COMPUTING = (EventKind.KERNEL, EventKind.DEVICE_OP, EventKind.COLLECTIVE, EventKind.GRAPH_LAUNCH)


@dataclass(frozen=True)
class Forest:
    """How the events of a host are linked.

    Attributes:
        parent: int32 of shape (events,), the enclosing event on the same line, or -1.
        cause: int32 of shape (events,), the event on another line that made this one happen, or -1.
        extent_ps: int64 of shape (events,), the duration; for the start mark of a region, the length of the region.
    """

    parent: I32
    cause: I32
    extent_ps: I64


def forest(trace: HostTrace) -> Forest:
    """The forest of a trace, computed once per trace."""
    return trace.derived("forest", _forest)


def forest_columns(trace: HostTrace) -> dict[str, NDArray[Any]]:
    """The forest as plain arrays for a cache; `restore_forest` is the inverse."""
    links = forest(trace)
    known = {"parent": links.parent, "cause": links.cause}
    return known if links.extent_ps is trace.events.duration_ps else known | {"extent_ps": links.extent_ps}


def restore_forest(trace: HostTrace, columns: Mapping[str, NDArray[Any]]) -> None:
    """Gives a trace the forest that `forest_columns` took from an equal trace, unless it has one already.

    Columns of another length are ignored: their rows could be out of range, and the native loops do not check.
    """
    extent = columns.get("extent_ps", trace.events.duration_ps)
    if len(columns["parent"]) == len(trace.events):
        trace.derived("forest", lambda _: Forest(columns["parent"], columns["cause"], extent))


def is_device_work(trace: HostTrace) -> Mask:
    """Whether each event is measured device work: bool of shape (events,).

    Derived lines are excluded, since they would count the work twice.
    """
    return trace.derived("device work", _is_device_work)


def device_rows(trace: HostTrace) -> I64:
    """The rows of measured device work, found once; nobody writes to them."""
    return trace.derived("rows of device work", lambda host: np.flatnonzero(is_device_work(host)))


def device_spans(trace: HostTrace) -> Spans:
    """When measured work runs on any device, found once."""
    return trace.derived("spans of device work", lambda host: spans_of(host, device_rows(host)))


def is_launched_before(trace: HostTrace, limit_ps: int) -> Mask:
    """Whether each event is device work launched before a time: bool of shape (events,).

    The launching call decides.  Without one, the work counts if its correlation id is lower than that of every recorded
    call: then the call was made before the recording.
    """
    numbered, correlation = trace.events_with_int(stat_names.CORRELATION_ID, least=1)
    called = (trace.lines.kind == LineKind.THREAD)[trace.events.line[numbered]]
    first = int(correlation[called].min()) if called.any() else 0
    early = np.zeros(len(trace.events), np.bool_)
    early[numbered[correlation < first]] = True
    for rows in blocks_of(len(early)):
        cause = forest(trace).cause[rows]
        caused = np.flatnonzero(cause >= 0)
        early[rows][caused] = trace.events.start_ps[cause[caused]] < limit_ps
    early &= is_device_work(trace)
    return early


def enclosing_events(trace: HostTrace, counts: Mask) -> I32:
    """The outermost event of `counts` that encloses or is each event: int32 of shape (events,), -1 without one."""
    out = np.empty(len(trace.events), np.int32)
    kernels.nesting.outermost(forest(trace).parent, counts, out)
    return out


def nearest_above(trace: HostTrace, rows: I64 | I32, counts: Mask) -> I64:
    """The nearest event of `counts` that encloses each of some, itself left out: int64 of shape (rows,).

    -1 without one, and for a row of -1.
    """
    parent = forest(trace).parent
    above = np.where(rows >= 0, parent[rows], -1).astype(np.int64)
    while (going := np.flatnonzero((above >= 0) & ~counts[above])).size:
        above[going] = parent[above[going]]
    return above


def self_times(trace: HostTrace, counts: Mask, time_ps: I64 | None = None) -> I64:
    """The time of each event without that of the counted ones inside it: int64 of shape (events,), at least 0.

    `time_ps` of shape (events,) is the duration unless given.
    """
    own = (trace.events.duration_ps if time_ps is None else time_ps).copy()
    own[counts] = self_times_of(trace, np.flatnonzero(counts), counts, time_ps)
    return np.maximum(own, 0, out=own)


def self_times_of(trace: HostTrace, rows: I64, counts: Mask, time_ps: I64 | None = None) -> I64:
    """The same for the counted events alone, whose rows ascend: int64 of shape (rows,)."""
    own = np.empty(len(rows), np.int64)
    time_ps = trace.events.duration_ps if time_ps is None else time_ps
    kernels.nesting.self_times(rows, time_ps, forest(trace).parent, counts, own)
    return np.maximum(own, 0, out=own)


def _is_device_work(trace: HostTrace) -> Mask:
    found = look_up(kind_table(_MEASURED_DEVICE), trace.events.kind)
    found &= look_up(np.isin(trace.lines.kind, (LineKind.STREAM, LineKind.DEVICE_OPS)), trace.events.line)
    return found


def kind_table(kinds: Iterable[EventKind]) -> Mask:
    """Which kinds are among some: bool of shape (256,)."""
    table = np.zeros(256, np.bool_)
    table[[int(kind) for kind in kinds]] = True
    return table


def nested_on(trace: HostTrace, lines: I64 | I32) -> I32:
    """The innermost event around each event of some lines, whatever these hold: int32 of shape (events,), else -1."""
    parent = np.full(len(trace.events), -1, np.int32)
    kernels.nesting.parents(
        trace.events.start_ps, trace.events.duration_ps, trace.lines.event_begin[lines], trace.lines.event_end[lines],
        trace.events.kind, (trace.events.traits & np.uint8(Trait.ASYNC)) != 0, int(EventKind.REGION_BEGIN),
        int(EventKind.REGION_END), parent, np.empty(0, np.int64),
    )  # fmt: skip
    return parent


def _forest(trace: HostTrace) -> Forest:
    events = trace.events
    parent = np.full(len(events), -1, np.int32)
    has_regions = bool(count_kinds(trace)[EventKind.REGION_BEGIN])
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
    link_by_order(trace, cause, is_device_work(trace))
    link_runs(trace, parent, cause)
    link_modules(trace, parent, cause, is_device_work(trace))
    return cause


def _link_producers(trace: HostTrace, cause: I32) -> None:
    """Links each consumer to the latest producer of the same context type and id that started before it."""
    sources, producer_type = trace.events_with_int(stat_names.PRODUCER_TYPE)
    targets, consumer_type = trace.events_with_int(stat_names.CONSUMER_TYPE)
    source_key = _mix_keys(trace.stat_ints(stat_names.PRODUCER_ID, rows=sources), producer_type)
    target_key = _mix_keys(trace.stat_ints(stat_names.CONSUMER_ID, rows=targets), consumer_type)
    _join_causes(trace, sources, source_key, targets, target_key, cause)


def _link_executor_to_iterator(trace: HostTrace, cause: I32) -> None:
    """Links each wait for input to the executor run with the same run id and iteration."""
    sources, targets = rows_of_kinds(trace, [EventKind.EXECUTOR]), rows_of_kinds(trace, [EventKind.INPUT_WAIT])
    if len(sources) and len(targets):
        targets = targets[trace.stat_ints(stat_names.ITER_NUM, rows=targets) >= 0]
        keys = [
            _mix_keys(trace.stat_ints(stat_names.RUN_ID, 0, rows=rows), trace.stat_ints(stat_names.ITER_NUM, rows=rows))
            for rows in (sources, targets)
        ]
        _join_causes(trace, sources, keys[0], targets, keys[1], cause)


def _mix_keys(number: I64, other: I64) -> I64:
    """Hashes pairs of numbers.  Collisions are rare, since ids are small."""
    with np.errstate(over="ignore"):
        return number ^ (other * np.int64(0x1000193))


def _link_launches(trace: HostTrace, cause: I32) -> None:
    """Links device work to the host call with its correlation id."""
    device = is_device_work(trace)
    if not device.any():
        return
    numbered, correlation = trace.events_with_int(stat_names.CORRELATION_ID, least=1)
    called = (trace.lines.kind == LineKind.THREAD)[trace.events.line[numbered]]
    work = device[numbered]
    _join_causes(trace, numbered[called], correlation[called], numbered[work], correlation[work], cause)


def _join_causes(trace: HostTrace, sources: I64, source_key: I64, targets: I64, target_key: I64, cause: I32) -> None:
    """Sets the cause of each target: the last source of equal key that started before it, else any of equal key."""
    if not len(sources) or not len(targets):
        return
    start = trace.events.start_ps
    order = np.lexsort((start[sources], source_key))
    sources, source_key = sources[order], source_key[order]
    first = np.minimum(count_below(source_key, target_key), len(sources) - 1)
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
    """For each value, the index after the last equal value."""
    ends = np.flatnonzero(np.append(ascending[1:] != ascending[:-1], True)) + 1
    return np.repeat(ends, np.diff(ends, prepend=0))


def spread_labels(trace: HostTrace, label: I32) -> I32:
    """Spreads labels in place: an event takes the label of its enclosing event or its cause."""
    links = forest(trace)
    state = np.zeros(len(label), np.uint8)
    kernels.nesting.spread(label, links.parent, links.cause, state, np.empty(len(label) + 1, np.int32))
    return label


# ---- work without ids ------------------------------------------------------------------------------------------------
# Links the work of a device to its launches by their order, where the recording has no ids that link them.
#
#     host     |call|call|call|                    queues work in order: the first call launched the first kernel, ...
#     gpu        |kernel---|kernel---|kernel---|
#
# That says which call launched which work only if every call has its work in the recording, and no work starts before
# its call.

_LAUNCHED = (EventKind.KERNEL, EventKind.COLLECTIVE)
_IN_TIME = 0.99  # of the work starts after its call: clocks of devices are a little off


def link_by_order(trace: HostTrace, cause: I32, device: Mask) -> None:
    """Links kernels to launches in place, where none of the kernels has a link and there are as many launches.

    Args:
        cause: int32 of shape (events,), the event on another line that made this one happen, or -1.
        device: bool of shape (events,), which events are measured work of devices.
    """
    events = trace.events
    work = rows_of_kinds(trace, _LAUNCHED)
    work = work[device[work]]
    if not len(work) or (cause[work] >= 0).any():
        return
    if (trace.stat_ints(stat_names.CORRELATION_ID, 0, rows=work) > 0).any():  # the call is named, but not recorded
        return
    calls = rows_of_kinds(trace, [EventKind.RUNTIME_CALL])
    calls = calls[(trace.lines.kind == LineKind.THREAD)[events.line[calls]]]
    calls = calls[has_trait(trace, events.type[calls], CallTrait.LAUNCHES_KERNEL)] if len(calls) else calls
    if len(calls) != len(work):
        return
    calls, work = _sort_by_start(trace, calls), _sort_by_start(trace, work)
    if np.mean(events.start_ps[work] >= events.start_ps[calls]) >= _IN_TIME:
        cause[work] = calls


def _sort_by_start(trace: HostTrace, rows: I64) -> I64:
    ordered: I64 = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]
    return ordered
