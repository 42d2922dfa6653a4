"""Work that one thread hands to another, and threads that wait for others to be done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.graph import EdgeKind, Edges
from stepscope.analysis.account.innermost import intersect
from stepscope.analysis.account.nodes import NodeFinder, is_among, numbers_in
from stepscope.analysis.account.queues import Queues
from stepscope.analysis.account.threads import IdleSpans, Threads
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.own_tracers import ThreadTimes, usage_of_thread
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I32, I64, Mask, count_below, median
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait, is_called
from stepscope.vocabulary.traits import CallTrait
from stepscope.vocabulary.xla import RUNS_PROGRAM

K = EventKind

_MOSTLY = 0.5  # of a wait in a call: less than this of it with others at work is no wait for them
_NEARLY_ALL = 0.9  # the same of a wait in Python, which more often than not works itself
_WAITS = CallTrait.WAITS | CallTrait.READS_VALUE
_MEETS_INPUT = (K.INPUT_WAIT, K.ITERATOR, K.INPUT_HANDOVER, K.INPUT_CALLBACK)
# What a thread may be in when it waits for other threads; in Python of its own it works, as far as anyone can tell.
_MAY_WAIT = (
    K.INPUT_WAIT, K.FUNCTION_RUN, K.EAGER_EXECUTE, K.TRACED_FUNCTION, K.OTHER, K.COLLECTIVE_CALL, K.ITERATOR,
    K.EXECUTOR, K.INPUT_CALLBACK,
)  # fmt: skip
# What is left of a wait after the last thing that others did is the way back: at most a twentieth of it, or 50 us.
# These, like the shares above, lie on plateaus: docs/replay.md shows what other values give.
_MOST_LEFT, _ALWAYS_LEFT_PS = 0.05, 50_000_000


@dataclass(frozen=True)
class Dependencies:
    """Pairs of times: on the first thread something is done that the second one waits for.

    Attributes:
        source_line, target_line: int32 of shape (n,); source_ps, target_ps: int64 of shape (n,).
        lag_ps: int64 of shape (n,), the usual time from the one to the other.
        kind: what the edges are; inferred: whether only times tell them.
    """

    source_line: I32
    source_ps: I64
    target_line: I32
    target_ps: I64
    lag_ps: I64
    kind: EdgeKind
    inferred: bool

    def edges(self, finder: NodeFinder) -> Edges:
        """From what is done to what goes on."""
        return self._edges(finder, finder.ending_by(self.source_line, self.source_ps))

    def edges_from_work(self, finder: NodeFinder, queues: Queues, first_work: int) -> Edges:
        """The same from work of devices, whose queues are the first lines."""
        work = NodeFinder(queues.line, queues.start_ps, queues.end_ps).ending_by(self.source_line, self.source_ps)
        return self._edges(finder, np.where(work >= 0, first_work + work, -1))

    def _edges(self, finder: NodeFinder, source: I64) -> Edges:
        target = finder.starting_from(self.target_line, self.target_ps)
        return Edges.connect(source, target, self.lag_ps, self.kind, self.inferred)


def handovers(trace: HostTrace, threads: Threads) -> Dependencies:
    """Work handed from thread to thread, as the trace states it, where it may be what a thread waited for."""
    links, events = forest(trace), trace.events
    rows = np.flatnonzero((links.cause >= 0) & is_thread_event(trace) & (links.extent_ps > 0))
    cause = links.cause[rows].astype(np.int64)
    rows_line, cause_line = events.line[rows], events.line[cause]
    after_wait = (links.parent[rows] < 0) | _ends_quiet(threads.quiet, rows_line, events.start_ps[rows])
    kept = after_wait & (rows_line != cause_line) & is_thread_event(trace)[cause]
    kept &= events.start_ps[cause] <= events.start_ps[rows]
    rows, cause = rows[kept], cause[kept]
    start = events.start_ps[rows]
    at = _moments_of_handover(trace, cause, start)
    lag = _stated_lags(trace, threads, rows, cause, at)
    return Dependencies(events.line[cause], at, events.line[rows], start, lag, EdgeKind.HANDOVER, False)


def _moments_of_handover(trace: HostTrace, cause: I64, start: I64) -> I64:
    """When a call or a mark handed work over: the last thing that its thread did in it before that work started."""
    events = trace.events
    ends = np.minimum(events.start_ps[cause] + events.duration_ps[cause], start)
    at = events.start_ps[cause].copy()
    long = np.flatnonzero(events.duration_ps[cause] > 0)
    for line in numbers_in(events.line[cause[long]]):
        here = long[events.line[cause[long]] == line]
        rows = slice(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
        starts = events.start_ps[rows]
        last = np.searchsorted(starts, ends[here], side="right") - 1
        over = starts[last] + events.duration_ps[rows][last]
        at[here] = np.maximum(at[here], np.where(over <= ends[here], over, starts[last]))
    return at


def _stated_lags(trace: HostTrace, threads: Threads, rows: I64, cause: I64, at: I64) -> I64:
    """From hand-overs to starts: int64 of shape (n,), ps.

    A mark without length is the very moment of a hand-over, and what the thread needs to wake up is the median.  A call
    only contains it, and its work may wait for more than that; so there it is the shortest.
    """
    lag, types = trace.events.start_ps[rows] - at, trace.events.type[cause].astype(np.int64)
    telling = _was_waiting(threads, trace.events.line[rows], trace.events.start_ps[rows], at)
    usual = _usual_lags(types, lag, telling)
    least = np.full(int(types.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, types, lag)
    return np.where(trace.events.duration_ps[cause] > 0, least[types], usual)


def _ends_quiet(quiet: IdleSpans, line: I32, start: I64) -> Mask:
    found = np.zeros(len(line), np.bool_)
    for each in numbers_in(quiet.line):
        here = line == each
        found[here] = is_among(start[here], quiet.end_ps[quiet.line == each])
    return found


def _was_waiting(threads: Threads, line: I32, start: I64, since: I64) -> Mask:
    """Whether a thread had nothing to do from a time to the start of what came then: bool of shape (n,)."""
    found = np.zeros(len(line), np.bool_)
    for each in numbers_in(line):
        here = np.flatnonzero(line == each)
        ends = threads.working[each].end
        at = np.searchsorted(ends, start[here], side="right") - 1
        found[here] = np.where(at >= 0, np.append(ends, 0)[at], -1) <= since[here]
    return found


def _usual_lags(group: I64, lag: I64, telling: Mask) -> I64:
    """The median lag of each group over those that tell it; over all where none does."""
    out = np.zeros(len(group), np.int64)
    for each in numbers_in(group):
        here = group == each
        some = here & telling
        out[here] = int(median(lag[some if some.any() else here]))
    return out


def infer_waits(
    trace: HostTrace, threads: Threads, stated: Dependencies, queues: Queues
) -> tuple[IdleSpans, tuple[Dependencies, ...], Dependencies, IdleSpans]:
    """Waits of threads for threads and for devices.

    Returns:
        the stretches in which threads wait, for which what they wait for is known; inferred meetings with threads, and
        with work of devices; and stretches of threads with nothing to do whose end nothing explains.
    """
    quiet, is_stated = _end_stated_waits(trace, threads, queues)
    quiet = _end_waits_for_collectives(trace, threads, quiet)
    drained = drained_within(trace, queues, quiet.start_ps, quiet.end_ps)
    known = _explained_by(quiet, stated)
    needed = [line for line in threads.lines if not threads.background[line]]
    serving = [line for line in threads.lines if threads.serves_input[line] or line == threads.main]
    pools = numbers_in(stated.target_line[threads.serves_input[stated.source_line]])
    working = [line for line in needed if not threads.serves_input[line]]
    found = [
        _group(trace, threads, quiet, known, is_stated, serves, lines, drained)
        for serves, lines in ((False, working), (True, sorted({*serving, *pools})))
    ]
    chosen = np.concatenate([each[0] for each in found])
    source_line = np.concatenate([each[1] for each in found]).astype(np.int32)
    source_ps = np.concatenate([each[2] for each in found])
    target = quiet.take(chosen)
    of_device = trace.lines.kind[source_line] != LineKind.THREAD
    waits = known.copy()
    waits[chosen] = True
    lone = np.flatnonzero(~waits & (quiet.event < 0) & (quiet.line != threads.main))
    # The engine of the backward pass goes from op to op by itself; where no steps were found, and the capture counts as
    # one, a call has started it all the same.
    engine = np.isin(quiet.line[lone], np.array(_backward_lines(trace, threads), np.int64))
    engine &= (quiet.start_ps[lone] > trace.span_ps()[0]) | (steps_of(trace).source != "none")
    lone = lone[~engine]
    mine = quiet.take(waits & (quiet.line == threads.main))
    of_step = ~threads.serves_input[quiet.line[lone]]
    started, by = _started_by_waits(quiet.take(lone), of_step, mine, _busy(trace, threads, needed))
    called = quiet.take(lone[started])
    # The engine of the backward pass goes from op to op by itself; other threads that have nothing to do are idle.
    idle = ~np.isin(quiet.line[lone], np.array(_backward_lines(trace, threads), np.int32))
    idle[started] = True
    waits[lone[idle]] = True
    idle[started] = False
    main = np.full(len(called), threads.main, np.int32)
    joins, returns = (
        _meetings_of(target.take(mine), source_line[mine], source_ps[mine], kind)
        for mine, kind in ((~of_device, EdgeKind.JOIN), (of_device, EdgeKind.RETURN))
    )
    calls = Dependencies(main, by, called.line, called.end_ps, called.end_ps - by, EdgeKind.HANDOVER, True)
    return quiet.take(waits), (joins, calls), returns, quiet.take(lone[idle])


def _started_by_waits(lone: IdleSpans, of_step: Mask, waits: IdleSpans, busy: Spans) -> tuple[I64, I64]:
    """Threads with nothing to do that start first while the loop's thread waits in a call: the call has started what
    they do, as far as anyone can tell.  Their places, and when the call began to wait.

    Args:
        of_step: bool of shape (n,), threads that prepare no input.
        busy: when threads work: if one does before, the start may be due to that.
    """
    at = np.searchsorted(waits.start_ps, lone.end_ps, side="right") - 1
    inside = (at >= 0) & (waits.event[at] >= 0) & of_step if len(waits) else np.zeros(len(lone), np.bool_)
    places = np.flatnonzero(inside)
    places = places[lone.end_ps[places] < waits.end_ps[at[places]]]
    since = waits.start_ps[at[places]]
    first = busy.overlap_ps(since, lone.end_ps[places]) == 0
    return places[first], since[first]


def _meetings_of(target: IdleSpans, source_line: I32, source_ps: I64, kind: EdgeKind) -> Dependencies:
    lag = _usual_lags(target.line.astype(np.int64), target.end_ps - source_ps, np.ones(len(target), np.bool_))
    return Dependencies(source_line, source_ps, target.line, target.end_ps, lag, kind, True)


def _end_stated_waits(trace: HostTrace, threads: Threads, queues: Queues) -> tuple[IdleSpans, Mask]:
    """The quiet stretches, and which of them are waits by a mark at their start, or by the name of the call that they
    are in: bool of shape (n,).

    Such a wait ends with the last thing that another thread did; what comes long after that is the thread's own time.
    So does one in a call if others work most of the time, with what those do that start after the call has: it is they
    whom it has started.
    """
    quiet, events = threads.quiet, trace.events
    before = _events_before(trace, quiet)
    is_stated, end = _is_in_wait(trace, quiet), quiet.end_ps.copy()
    known = before >= 0
    is_stated[known] |= has_trait(trace, events.type[before[known]], CallTrait.STARTS_TO_WAIT)
    # A function's call goes on in Python once the runtime has returned; there it waits for nothing.
    in_call = (quiet.line == threads.main) & _is_in_call(trace, quiet) & ~is_stated
    in_call &= trace.events.kind[np.maximum(quiet.event, 0)] != K.TRACED_FUNCTION
    needed = [line for line in threads.lines if not threads.background[line]]
    busy = _busy(trace, threads, needed)
    drained = drained_within(trace, queues, quiet.start_ps, end)
    in_call &= np.maximum(busy.overlap_ps(quiet.start_ps, end), drained.filled_ps) >= _MOSTLY * (end - quiet.start_ps)
    for line in numbers_in(quiet.line[is_stated | in_call]):
        here = np.flatnonzero((is_stated | in_call) & (quiet.line == line))
        met = [other for other in needed if other != line and not threads.serves_input[other]]
        others = [_last_moments(trace, other, end[here]) for other in met]
        called = np.where(in_call[here], events.start_ps[np.maximum(quiet.event[here], 0)], NEVER)
        others = [
            np.where(_busy_since(threads, other, at) < called, NEVER, at) for other, at in zip(met, others, strict=True)
        ]
        done = np.max([quiet.start_ps[here], drained.done_ps[here], *others], axis=0)
        late = (done > quiet.start_ps[here]) & (end[here] - done > _most_left_ps(quiet.take(here)))
        end[here[late]] = done[late]
    return replace(quiet, end_ps=end), is_stated


def _busy_since(threads: Threads, line: int, time_ps: I64) -> I64:
    """Since when a thread has worked without a pause at each of some times: int64 of shape (n,); that time itself where
    it does not work."""
    spans = threads.working[line]
    at = np.searchsorted(spans.start, time_ps, side="right") - 1
    since = np.append(spans.start, 0)[at]
    return np.where((at >= 0) & (np.append(spans.end, 0)[at] >= time_ps), since, time_ps)


def _is_in_wait(trace: HostTrace, quiet: IdleSpans) -> Mask:
    """Stretches in a Python call that waits by its name: bool of shape (n,)."""
    found = (quiet.event >= 0) & (trace.events.kind[np.maximum(quiet.event, 0)] == K.PYTHON_CALL)
    rows = np.flatnonzero(found)
    found[rows] = has_trait(trace, trace.events.type[quiet.event[rows]], _WAITS)
    return np.asarray(found)


def _end_waits_for_collectives(trace: HostTrace, threads: Threads, quiet: IdleSpans) -> IdleSpans:
    """The quiet stretches; those in which the main thread waits for a collective of a library's thread end with it.

    A thread that is woken may find no processor: as far as that is recorded, it is its own time.
    """
    rows = np.flatnonzero((quiet.line == threads.main) & ~_is_in_call(trace, quiet))
    calls = _collectives_of_helpers(trace, threads, True)
    usage = usage_of_thread(trace, threads.main) if len(rows) and len(calls) else None
    if usage is None:
        return quiet
    end, done = quiet.end_ps.copy(), _last_done(trace, calls, quiet.end_ps[rows])
    start, left = quiet.start_ps[rows], quiet.end_ps[rows] - done
    most = _most_left_ps(quiet.take(rows))
    late = np.flatnonzero((done > start) & (left > most))
    late = late[left[late] - most_queued_within(usage, done[late], quiet.end_ps[rows[late]]) <= most[late]]
    end[rows[late]] = done[late]
    return replace(quiet, end_ps=end)


def _is_in_call(trace: HostTrace, quiet: IdleSpans) -> Mask:
    """Stretches in a call that may wait for other threads: bool of shape (n,)."""
    kind = trace.events.kind[np.maximum(quiet.event, 0)]
    return (quiet.event >= 0) & is_any_kind(kind, (*_MAY_WAIT, *_MEETS_INPUT))


def _last_done(trace: HostTrace, calls: I64, limit: I64) -> I64:
    """When the last of some calls that had started by each of some times was done, or that time if that is earlier:
    int64 of shape (n,), the least number without one."""
    calls = calls[np.argsort(trace.events.start_ps[calls], kind="stable")]
    start = trace.events.start_ps[calls]
    at = np.searchsorted(start, limit) - 1
    over = start[at] + trace.events.duration_ps[calls][at]
    return np.where(at < 0, np.iinfo(np.int64).min, np.minimum(over, limit))


def _events_before(trace: HostTrace, quiet: IdleSpans) -> I64:
    """The last event of the line that has started when each stretch starts: int64 of shape (n,), -1 without one."""
    found = np.full(len(quiet), -1, np.int64)
    for line in numbers_in(quiet.line):
        here = np.flatnonzero(quiet.line == line)
        first, last = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
        at = np.searchsorted(trace.events.start_ps[first:last], quiet.start_ps[here], side="right") - 1
        found[here] = np.where(at >= 0, first + at, -1)
    return found


def _most_left_ps(quiet: IdleSpans) -> I64:
    """How long the way back from a wait may take: int64 of shape (n,)."""
    most: I64 = np.maximum(_MOST_LEFT * (quiet.end_ps - quiet.start_ps), _ALWAYS_LEFT_PS).astype(np.int64)
    return most


def _explained_by(quiet: IdleSpans, stated: Dependencies) -> Mask:
    """Stretches that end with work which was handed over while they lasted: bool of shape (n,)."""
    found = np.zeros(len(quiet), np.bool_)
    for each in numbers_in(quiet.line):
        here = np.flatnonzero(quiet.line == each)
        mine = np.flatnonzero(stated.target_line == each)
        if not len(mine):
            continue
        order = mine[np.lexsort((stated.source_ps[mine], stated.target_ps[mine]))]
        at = np.searchsorted(stated.target_ps[order], quiet.end_ps[here], side="right") - 1
        meets = (at >= 0) & (stated.target_ps[order[at]] == quiet.end_ps[here])
        left = quiet.end_ps[here] - stated.source_ps[order[at]] - stated.lag_ps[order[at]]
        late = left > _most_left_ps(quiet.take(here))
        found[here] = meets & (stated.source_ps[order[at]] >= quiet.start_ps[here]) & ~late
    return found


def _group(
    trace: HostTrace,
    threads: Threads,
    quiet: IdleSpans,
    known: Mask,
    is_stated: Mask,
    serves_input: bool,
    lines: list[int],
    drained: Drained,
) -> _Met:
    """What the stretches of threads waited for.

    Threads that prepare input meet each other, the pools that they hand work to, and the waits for input; the others
    meet among themselves.
    """
    kind = trace.events.kind[np.maximum(quiet.event, 0)]
    inside = quiet.event >= 0
    at_input = inside & is_any_kind(kind, _MEETS_INPUT)
    mine = (
        threads.serves_input[quiet.line] | at_input if serves_input else ~threads.serves_input[quiet.line] & ~at_input
    )
    rows = np.flatnonzero(mine & ~known)
    idle = ~inside[rows] & (quiet.line[rows] != threads.main)
    waits = is_stated[rows] & ~idle
    in_calls = inside[rows] & is_any_kind(kind[rows], _MAY_WAIT) & ~waits
    in_python = ~idle & ~in_calls & ~waits
    in_run = is_called(trace, RUNS_PROGRAM)[np.maximum(quiet.event[rows], 0)]  # itself no work of others
    # Two threads of a library start at about the same time: neither waits for the other, but for who calls them.
    helpers = numbers_in(trace.events.line[_collectives_of_helpers(trace, threads, True)])
    of_helper = idle & is_among(quiet.line[rows].astype(np.int64), np.array(helpers, np.int64)) & (not serves_input)
    callers = [line for line in lines if line not in helpers]
    by_device = _meet_devices(quiet, rows, idle | waits, in_python, drained) if not serves_input else rows[:0]
    found = [
        _meet(trace, quiet, rows[(idle & ~of_helper) | waits], lines, 0.0, _busy(trace, threads, lines)),
        _meet(trace, quiet, rows[in_calls & ~in_run], lines, _MOSTLY, _busy(trace, threads, threads.lines)),
        _meet(trace, quiet, rows[in_calls & in_run], lines, _MOSTLY, _union(threads, threads.lines)),
        _meet(trace, quiet, rows[in_python], lines, _NEARLY_ALL, _busy(trace, threads, lines)),
    ]
    if not serves_input:
        in_code, asking = rows[in_python], rows[of_helper]
        for unseen, spans in _unseen_helpers(trace, threads):
            found.append(_meet(trace, quiet, _not_met(in_code, found[2:]), unseen, _MOSTLY, spans))
        found.append(_meet_closing_collectives(trace, threads, quiet, _not_met(in_code, found[2:])))
        found.append(_meet(trace, quiet, asking, callers, 0.0, _union(threads, callers)))
        found.append(_meet_collectives(trace, threads, quiet, _not_met(asking, found[-1:])))
    return _replace_by_devices(quiet, found, by_device, drained)


_Met = tuple[I64, I64, I64]
"""Stretches of threads, and the line and time of what another thread did right before they ended."""


def _not_met(rows: I64, found: list[_Met]) -> I64:
    return rows[~is_among(rows, np.concatenate([each[0] for each in found]))]


def _replace_by_devices(quiet: IdleSpans, found: list[_Met], by_device: I64, drained: Drained) -> _Met:
    """A device that was done after all threads is what a thread waited for."""
    chosen, line, at = (np.concatenate(column) for column in zip(*found, strict=True))
    late = np.full(len(quiet), NEVER)
    np.maximum.at(late, chosen, at)
    by_device = by_device[drained.done_ps[by_device] >= late[by_device]]
    kept = ~is_among(chosen, by_device)
    return (
        np.append(chosen[kept], by_device),
        np.append(line[kept], drained.line[by_device]),
        np.append(at[kept], drained.done_ps[by_device]),
    )


def _meet_devices(quiet: IdleSpans, rows: I64, waits: Mask, in_python: Mask, drained: Drained) -> I64:
    """Those of the stretches that end when a device has done all that was launched, and in which it worked for long
    enough: rows of the stretches.

    Args:
        waits: bool of shape (rows,), of threads with nothing to do, or in a call that waits by its name.
        in_python: bool of shape (rows,), in Python, which more often than not works itself.
    """
    length, done = quiet.end_ps[rows] - quiet.start_ps[rows], drained.done_ps[rows]
    least = np.where(waits, 0.0, np.where(in_python, _NEARLY_ALL, _MOSTLY))
    good = (drained.line[rows] >= 0) & (quiet.end_ps[rows] - done <= _most_left_ps(quiet.take(rows)))
    found: I64 = rows[good & (drained.filled_ps[rows] >= least * length)]
    return found


def _backward_lines(trace: HostTrace, threads: Threads) -> list[int]:
    """Threads that run the backward pass for the main one, which waits for them in a call that nobody records; where no
    event is known to be of one, as in older recordings, threads whose ops run nearly only while the main one is silent.
    """
    return trace.derived("threads of the backward pass", lambda _: _find_backward_lines(trace, threads))


def _find_backward_lines(trace: HostTrace, threads: Threads) -> list[int]:
    lines = numbers_in(trace.events.line[events_of_kind(trace, K.BACKWARD)])
    if not lines and trace.framework == "pytorch":
        quiet = threads.quiet.take(threads.quiet.line == threads.main)
        silent = Spans.union(quiet.start_ps, quiet.end_ps)
        needed = [line for line in threads.lines if not threads.background[line] | threads.serves_input[line]]
        ops = numbers_in(trace.events.line[events_of_kind(trace, K.OP)])
        works = {line: threads.working[line] for line in ops if line in needed}
        lines = [line for line, spans in works.items() if (spans & silent).total > _NEARLY_ALL * spans.total]
    return [line for line in lines if line != threads.main and line in threads.working]


def _unseen_helpers(trace: HostTrace, threads: Threads) -> Iterator[tuple[list[int], Spans]]:
    """Threads that work for the main one, which waits for them in a call that nobody records, and when they do: those
    of the backward pass, and those of the collectives of a library such as Gloo."""
    helpers = _backward_lines(trace, threads)
    yield helpers, _union(threads, helpers)
    calls = _collectives_of_helpers(trace, threads, True)
    yield numbers_in(trace.events.line[calls]), spans_of(trace, calls)


def _collectives_of_helpers(trace: HostTrace, threads: Threads, of_helpers: bool) -> I64:
    """Calls of collectives on threads of a library, or on those that hand them over, which run the program: rows."""
    calls = events_of_kind(trace, K.COLLECTIVE_CALL)
    calls = calls[is_thread_event(trace)[calls]]
    runs_program = np.isin(trace.events.line[calls], [threads.main, *_backward_lines(trace, threads)])
    found: I64 = calls[runs_program != of_helpers]
    return found


def _meet_closing_collectives(trace: HostTrace, threads: Threads, quiet: IdleSpans, rows: I64) -> tuple[I64, I64, I64]:
    """Those of the stretches that a collective of a library's thread lasts through, which that thread closes a little
    after it has woken the one that waits: rows, lines and times."""
    calls = _collectives_of_helpers(trace, threads, True)
    if not len(rows) or not len(calls):
        return rows[:0], rows[:0], rows[:0]
    calls = calls[np.argsort(trace.events.start_ps[calls], kind="stable")]
    start, end = quiet.start_ps[rows], quiet.end_ps[rows]
    at = np.searchsorted(trace.events.start_ps[calls], end) - 1
    call = calls[np.maximum(at, 0)]
    over = trace.events.start_ps[call] + trace.events.duration_ps[call] - end
    filled = spans_of(trace, calls).overlap_ps(start, end) >= _MOSTLY * (end - start)
    good = (at >= 0) & filled & (over >= 0) & (over <= _most_left_ps(quiet.take(rows)))
    return rows[good], trace.events.line[call[good]].astype(np.int64), end[good]


def _meet_collectives(trace: HostTrace, threads: Threads, quiet: IdleSpans, rows: I64) -> tuple[I64, I64, I64]:
    """Those of the stretches in which a thread of a library waits for a collective, and the call that handed over the
    next one: rows, lines and times."""
    calls = _collectives_of_helpers(trace, threads, False)
    if not len(rows) or not len(calls):
        return rows[:0], rows[:0], rows[:0]
    calls = calls[np.argsort(trace.events.start_ps[calls], kind="stable")]
    at = np.searchsorted(trace.events.start_ps[calls], quiet.end_ps[rows], side="right") - 1
    call = calls[np.maximum(at, 0)]
    start = trace.events.start_ps[call]
    good = (at >= 0) & (start > quiet.start_ps[rows])
    return rows[good], trace.events.line[call[good]].astype(np.int64), start[good]


def _meet(
    trace: HostTrace, quiet: IdleSpans, rows: I64, lines: list[int], least: float, busy: Spans
) -> tuple[I64, I64, I64]:
    """Those of the stretches of which others fill at least a share, and what another thread did last before their end:
    rows of the stretches, lines and times.

    Args:
        lines: the threads that may be met.
        busy: when threads fill a stretch; it may be more of them: those that are met wait for others in turn, as an op
            does for its input.
    """
    none = np.empty(0, np.int64)
    if not len(rows) or not lines:
        return none, none, none
    start, end = quiet.start_ps[rows], quiet.end_ps[rows]
    filled = busy.overlap_ps(start, end) >= least * (end - start)
    best, line = np.full(len(rows), np.iinfo(np.int64).min), np.full(len(rows), -1, np.int64)
    for other in lines:
        at = _last_moments(trace, other, end)
        better = (at > best) & (quiet.line[rows] != other)
        best[better], line[better] = at[better], other
    good = filled & (line >= 0) & (best > start)
    good &= end - best <= _most_left_ps(quiet.take(rows))
    return rows[good], line[good], best[good]


def _last_moments(trace: HostTrace, line: int, limit: I64) -> I64:
    """The last time at which an event of a line started or ended, up to each of some times: int64 of shape (n,)."""
    rows = slice(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    start = trace.events.start_ps[rows]
    at = count_below(start, limit, with_limit=True) - 1
    end = start[at] + trace.events.duration_ps[rows][at]
    return np.where(at < 0, np.iinfo(np.int64).min, np.where(end <= limit, end, start[at]))


def _busy(trace: HostTrace, threads: Threads, lines: list[int]) -> Spans:
    """When threads work, or a program that one of them runs is not done: its ops may be on threads that record none."""
    runs = np.flatnonzero(is_called(trace, RUNS_PROGRAM))
    runs = runs[np.isin(trace.events.line[runs], lines)]
    return _union(threads, lines) | spans_of(trace, runs) if len(runs) else _union(threads, lines)


def _union(threads: Threads, lines: list[int]) -> Spans:
    spans = [threads.working[line] for line in lines]
    if not spans:
        nothing = np.empty(0, np.int64)
        return Spans(nothing, nothing)
    return Spans.union(np.concatenate([each.start for each in spans]), np.concatenate([each.end for each in spans]))


def most_queued_within(usage: ThreadTimes, start_ps: I64, end_ps: I64) -> I64:
    """For how long at most a thread was ready without a processor in each of some stretches, which are in order of
    time: int64 of shape (n,), ps.  Where in an interval of the recording that was is not known."""
    place, interval, start, stop = intersect(start_ps, end_ps, usage.start_ps, usage.end_ps)
    found = np.zeros(len(start_ps), np.int64)
    np.add.at(found, place, np.minimum(stop - start, usage.queued_ps[interval]))
    return found


# ---- devices that ran out of work ------------------------------------------------------------------------------------
# When queues of devices had done all that was launched: what a thread of which nobody says it may have waited for.
#
# host main | L1 L2-|    ?    |a        the silence ends when the queue has nothing left of what was launched before:
# gpu0 s    |    K1---K2------          the thread waited for K2

NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Drained:
    """For each of some stretches of time the last queue that ran out of work in it.

    Attributes:
        line: int64 of shape (n,), the queue, -1 where none did.
        done_ps: int64 of shape (n,), when it had done what was launched before the end of the stretch; NEVER for none.
        filled_ps: int64 of shape (n,), for how long until then it worked in the stretch.
    """

    line: I64
    done_ps: I64
    filled_ps: I64


def drained_within(trace: HostTrace, queues: Queues, start_ps: I64, end_ps: I64) -> Drained:
    """The queues that ran out of work within stretches of time."""
    count = len(start_ps)
    found = Drained(np.full(count, -1, np.int64), np.full(count, NEVER), np.zeros(count, np.int64))
    called = np.where(queues.call >= 0, trace.events.start_ps[queues.call], queues.start_ps)
    kernels.queues.drained(
        queues.line, queues.start_ps, queues.end_ps, called, np.empty(len(called) + 1, np.int64), start_ps, end_ps,
        found.line, found.done_ps, found.filled_ps,
    )  # fmt: skip
    return found
