"""What work of one queue waits for on another: waits of streams for events, as recorded or in the order of host calls.

    host    L1 R L2 w L3        R records an event after the work of L1 on stream 7, w makes stream 20 wait for it:
    s7       K1 K2              K3, the first work of stream 20 that is launched after w,
    s20               K3        waits for K1, the last of stream 7 that was launched before R.

CUPTI can record which stream waits for which event (Kineto's `cuda_sync` activities), and the same of host calls that
wait.  Without them the calls are known, but neither stream nor event: then a stream that waits is that of the next work
launched by the same thread, and it waits for the last event recorded after work of another stream.  Such edges count as
inferred.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.model import EventKind, HostTrace, LineKind, stat_names
from stepscope.model.arrays import I32, I64, distinct, offsets_of, places_of
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class StreamWaits:
    """Work that waits for work of another queue.

    Attributes:
        source, target: int64 of shape (n,), places in the queues.
        recorded: whether the trace states which work; else the order of calls tells it.
        pending: the waits themselves, as far as they are recorded.
    """

    source: I64
    target: I64
    recorded: bool
    pending: PendingWaits


@dataclass(frozen=True)
class PendingWaits:
    """Waits of queues in the order of calls: work without length, which whoever waits for the queue waits for as well.

    Attributes:
        line: int64 of shape (n,), the queue that waits; called_ps: when; source: places in the queues.
    """

    line: I64
    called_ps: I64
    source: I64

    def last_before(self, line: I64, since_ps: I64, time_ps: I64) -> tuple[I64, I64]:
        """The waits that came last on queues: places in the question, and of the work waited for.

        Args:
            line, since_ps, time_ps: int64 of shape (n,), the queues, when their last work was launched, and the times.
        """
        asked, found = [], []
        for each in distinct(self.line).tolist():
            mine, questions = np.flatnonzero(self.line == each), np.flatnonzero(line == each)
            mine = mine[np.argsort(self.called_ps[mine], kind="stable")]
            first = np.searchsorted(self.called_ps[mine], since_ps[questions], side="right")
            count = np.maximum(np.searchsorted(self.called_ps[mine], time_ps[questions]) - first, 0)
            asked.append(np.repeat(questions, count))
            found.append(mine[np.repeat(first, count) + _count_up(count)])
        if not asked:
            return _NONE, _NONE
        return np.concatenate(asked), self.source[np.concatenate(found)]


_NONE_PENDING = PendingWaits(_NONE, _NONE, _NONE)


def _count_up(counts: I64) -> I64:
    """0, 1, ... for each of some counts, one after the other."""
    return np.arange(int(counts.sum())) - np.repeat(offsets_of(counts)[:-1], counts)


def stream_waits_of(trace: HostTrace, line: I32, call: I64) -> StreamWaits:
    """The waits of streams for events of other streams.

    Args:
        line, call: of the work of all queues, its queue and the call that launched it, or -1.
    """
    if not (call >= 0).any():
        return StreamWaits(_NONE, _NONE, False, _NONE_PENDING)
    launches = _Launches(trace, line, call)
    if trace.has_stat(stat_names.WAITS_FOR_RECORD):
        return _recorded_waits(trace, launches)
    source, target = _waits_in_host_order(trace, launches)
    return StreamWaits(source, target, False, _NONE_PENDING)


class _Launches:
    """Work of queues in the order in which the host launched it."""

    def __init__(self, trace: HostTrace, line: I32, call: I64) -> None:
        known = np.flatnonzero(call >= 0)
        called = trace.events.start_ps[call[known]]
        order = np.argsort(called, kind="stable")
        self.work, self.called_ps = known[order], called[order]
        self.line = line[self.work].astype(np.int64)
        self.thread = trace.events.line[call[self.work]].astype(np.int64)

    def last_before(self, line: int, time_ps: I64) -> I64:
        """The last work on a queue that was launched before each time: places in the queues, -1 for none."""
        return self._near(np.flatnonzero(self.line == line), time_ps, -1)

    def first_after(self, line: int, time_ps: I64) -> I64:
        """The first work on a queue that was launched after each time: places in the queues, -1 for none."""
        return self._near(np.flatnonzero(self.line == line), time_ps, 0)

    def called_before(self, line: I64, time_ps: I64) -> I64:
        """When the last work on each queue before each time was launched: int64 of shape (n,), -1 for none."""
        found = np.full(len(line), -1, np.int64)
        for each in distinct(line).tolist():
            called, here = self.called_ps[self.line == each], line == each
            at = np.searchsorted(called, time_ps[here])
            found[here] = np.append(-1, called)[at]
        return found

    def near(self, time_ps: I64, offset: int) -> I64:
        """The last launch before each time (offset -1), or the first after it (0): rows of this table, -1 for none."""
        at = np.searchsorted(self.called_ps, time_ps) + offset
        return np.where((at >= 0) & (at < len(self.work)), at, -1)

    def _near(self, rows: I64, time_ps: I64, offset: int) -> I64:
        at = np.searchsorted(self.called_ps[rows], time_ps) + offset
        good = (at >= 0) & (at < len(rows))
        return np.where(good, self.work[np.append(rows, 0)[np.where(good, at, -1)]], -1)


def _recorded_waits(trace: HostTrace, launches: _Launches) -> StreamWaits:
    events = trace.events
    rows, _ = trace.events_with_int(stat_names.WAITS_FOR_RECORD, least=1)
    rows = rows[events.kind[rows] == EventKind.OTHER]
    waited = trace.stat_ints(stat_names.WAITS_FOR_RECORD, rows=rows)
    call_ps = _call_times(trace, trace.stat_ints(stat_names.CORRELATION_ID, rows=rows))
    record_ps = _call_times(trace, waited)
    lines = _stream_lines(trace)
    plane = trace.lines.plane[events.line[rows]].tolist()
    own = [lines.get(key, -1) for key in zip(plane, _stream_numbers(trace, rows), strict=True)]
    other = trace.stat_ints(stat_names.WAITS_FOR_STREAM, rows=rows).tolist()
    source_line = np.array([lines.get(key, -1) for key in zip(plane, other, strict=True)], np.int64)
    target_line = np.array(own, np.int64)
    source, target = np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int64)
    for line in set(own + source_line.tolist()) - {-1}:
        at, to = source_line == line, target_line == line
        source[at] = launches.last_before(line, record_ps[at])
        target[to] = launches.first_after(line, call_ps[to])
    good = (record_ps >= 0) & (call_ps >= 0) & (source_line >= 0) & (target_line >= 0) & (source_line != target_line)
    source_line, target_line, source, target = (each[good] for each in (source_line, target_line, source, target))
    record_ps, call_ps = record_ps[good], call_ps[good]
    known = source >= 0
    pending = PendingWaits(target_line[known], call_ps[known], source[known])
    # An event before which its stream did nothing but wait itself since its last work.
    further, waited = pending.last_before(source_line, launches.called_before(source_line, record_ps), record_ps)
    source, target = np.append(source, waited), np.append(target, target[further])
    both = (source >= 0) & (target >= 0)
    return StreamWaits(source[both], target[both], True, pending)


@dataclass(frozen=True)
class AwaitedWork:
    """Which work calls wait for, as far as it is recorded.

    Attributes:
        line: int64 of shape (calls,), the queue; -1 for all of them.
        until_ps: int64 of shape (calls,), work counts that was launched before that time.
    """

    line: I64
    until_ps: I64


def awaited_work(trace: HostTrace, call: I64) -> AwaitedWork:
    """Which work some calls of a host wait for: all that was launched before them, if nothing more is recorded."""
    line, until = np.full(len(call), -1, np.int64), trace.events.start_ps[call].copy()
    rows = events_of_kind(trace, EventKind.SYNC)
    rows = rows[(trace.lines.kind == LineKind.OTHER)[trace.events.line[rows]]]
    if not len(rows) or not len(call):
        return AwaitedWork(line, until)
    place = _matching(
        trace.stat_ints(stat_names.CORRELATION_ID, rows=call), trace.stat_ints(stat_names.CORRELATION_ID, rows=rows)
    )
    rows, place = rows[place >= 0], place[place >= 0]
    awaited = trace.stat_ints(stat_names.WAITS_FOR_STREAM, rows=rows)
    record_ps = _call_times(trace, trace.stat_ints(stat_names.WAITS_FOR_RECORD, rows=rows))
    stream = np.where(awaited >= 0, awaited, trace.stat_ints(stat_names.WAITING_STREAM, rows=rows))
    lines, plane = _stream_lines(trace), trace.lines.plane[trace.events.line[rows]].tolist()
    line[place] = [lines.get(key, -1) for key in zip(plane, stream.tolist(), strict=True)]
    until[place] = np.where(record_ps >= 0, record_ps, until[place])
    return AwaitedWork(line, until)


def _stream_lines(trace: HostTrace) -> dict[tuple[int, int], int]:
    """The line of each stream, by plane and number."""
    rows = trace.lines_of(LineKind.STREAM)
    planes, numbers = trace.lines.plane[rows].tolist(), trace.lines.line_id[rows].tolist()
    return dict(zip(zip(planes, numbers, strict=True), rows.tolist(), strict=True))


def _stream_numbers(trace: HostTrace, rows: I64) -> list[int]:
    stated = trace.stat_ints(stat_names.WAITING_STREAM, rows=rows)
    numbers: list[int] = np.where(stated >= 0, stated, trace.lines.line_id[trace.events.line[rows]]).tolist()
    return numbers


def _call_times(trace: HostTrace, correlation: I64) -> I64:
    """When the host called what has each correlation id: int64 of shape (n,), ps; -1 for none."""
    calls = _calls_with(trace, CallTrait.RECORDS_EVENT | CallTrait.STREAM_WAITS)
    at = _matching(trace.stat_ints(stat_names.CORRELATION_ID, rows=calls), correlation)
    return np.where(at >= 0, np.append(trace.events.start_ps[calls], -1)[at], -1)


def _matching(ids: I64, wanted: I64) -> I64:
    """The place of each wanted id among some: int64 of shape (n,), -1 for none."""
    return np.where(wanted > 0, places_of(ids, wanted), -1)


def _calls_with(trace: HostTrace, traits: CallTrait) -> I64:
    """Calls into a runtime with some traits: rows of events."""
    calls = events_of_kind(trace, EventKind.RUNTIME_CALL)
    return calls[has_trait(trace, trace.events.type[calls], traits)] if len(calls) else calls


def _waits_in_host_order(trace: HostTrace, launches: _Launches) -> tuple[I64, I64]:
    waits = np.sort(_calls_with(trace, CallTrait.STREAM_WAITS))
    records = _calls_with(trace, CallTrait.RECORDS_EVENT)
    if not len(waits) or not len(records):
        return _NONE, _NONE
    wait_ps, record_ps = trace.events.start_ps[waits], np.sort(trace.events.start_ps[records])
    after, before = launches.near(wait_ps, 0), launches.near(record_ps, -1)
    waiting = np.where(after >= 0, launches.line[after], -1)
    same_thread = (after >= 0) & (launches.thread[after] == trace.events.line[waits])
    recorded = np.where(before >= 0, launches.line[before], -1)
    source = np.full(len(waits), -1, np.int64)
    for line in numbers_in(waiting[same_thread]):
        here = np.flatnonzero(same_thread & (waiting == line))
        others = np.flatnonzero((recorded >= 0) & (recorded != line))
        at = np.searchsorted(record_ps[others], wait_ps[here]) - 1
        some = at >= 0
        source[here[some]] = before[others[at[some]]]
    good = source >= 0
    return launches.work[source[good]], launches.work[after[good]]
