"""When the loop's thread was ready and had no processor, because other threads or processes used them all.

A trace shows such a thread as late, and the time as Python or as a long call.  Our own captures record, from reading to
reading, how long the thread ran and how long it was ready without running (`capture/tracers/thread_usage.py`).  Where
in that interval the time was lost is not recorded.  A thread may lose its processor at any moment in which it runs, so
all that it runs in the interval is taken to have lost the same share, but for what slept.

A collective waits for the last of its ranks.  Where the machine is busy, that one may be without a core as well: what
the same call of a step took least is what it takes, with the work that ranks always have more, and the rest is a wait
for a rank that is late this time.

Whether it slept in one function or in the next is not recorded either, where both lie in one interval.  Other intervals
have more of one and less of the other: the shares in which each kind of code sleeps are those that explain all
intervals best.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.build import graph_of
from stepscope.analysis.account.graph import Graph
from stepscope.analysis.account.innermost import cut_by_events, places_around
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.cycles import LEAST_STEPS
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.own_tracers import ThreadTimes, usage_of_thread
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.collective_events import collective_rows
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.devices_told_of import LONGEST_DISPATCH_PS
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import F64, I32, I64, Groups, count_before, median, number_pairs, percentiles
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CodeTrait

_COMPUTES = (EventKind.OP, EventKind.BACKWARD, EventKind.EAGER_EXECUTE)  # an op computes where it is not said to wait
_ROUNDS, _SPILLS = 24, 3  # of an estimate of shares: more change none by a hundredth
_MOST_PLACES = 1 << 20  # of lost time: of more stretches, as of millions of short calls, neighbours lose it together
_LEAST = 0.01  # of an interval: a thread that is woken waits for some microseconds on an idle machine, too


def lost_spans(trace: HostTrace) -> Spans | None:
    """When the loop's thread was ready and had no processor, found once; None where that was not recorded."""
    return trace.derived("contention", _lost_spans)


def late_peers(trace: HostTrace) -> Spans:
    """When collectives of a busy machine last longer than the same ones of other steps, found once."""
    return trace.derived("late peers", _late_peers)


def _late_peers(trace: HostTrace) -> Spans:
    lost, seen, steps = lost_spans(trace), observed_time(trace), whole_steps(trace)
    calls = collective_rows(trace)
    calls = calls[steps.label[calls] >= 0]
    is_busy = lost is not None and 100 * (lost & seen).total >= LARGE_SHARE * seen.total > 0
    if not is_busy or not len(calls) or trace.device_planes():
        return Spans.union(calls[:0], calls[:0])
    kind, step = trace.events.type[calls].astype(np.int64), steps.label[calls].astype(np.int64)
    nth = count_before(kind * len(steps.number) + step)
    same = number_pairs(kind, nth)[0]
    length = trace.events.duration_ps[calls]
    least = np.full(int(same.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, same, length)
    again = np.bincount(same)[same] >= LEAST_STEPS
    start = trace.events.start_ps[calls]
    return Spans.union((start + least[same])[again], (start + length)[again])


def asleep_ps(trace: HostTrace, line: int, spans: Spans) -> int | None:
    """How much of some time of a thread it neither ran nor was ready: it slept, or waited for a lock, a file or a peer;
    None where that was not recorded."""
    slept = trace.derived(f"sleep of thread {line}", lambda _: _find_sleep(trace, line))
    return None if slept is None else round(slept.within(spans))


@dataclass(frozen=True)
class _Sleep:
    """Stretches of a thread in its readings: int64 of shape (n,), ps; share: float64, how much of each it slept; waits:
    what is none of its own time in them, as it waits for a thread or a process."""

    start_ps: I64
    end_ps: I64
    share: F64
    waits: Spans

    def within(self, spans: Spans) -> float:
        """How long it slept in some time, ps."""
        return float((spans.overlap_ps(self.start_ps, self.end_ps) * self.share).sum() + (self.waits & spans).total)


def _find_sleep(trace: HostTrace, line: int) -> _Sleep | None:
    usage, graph = usage_of_thread(trace, line), graph_of(trace)
    if usage is None:
        return None
    if graph is None:
        asleep = (usage.end_ps - usage.start_ps - usage.ran_ps - usage.queued_ps).clip(min=0)
        none = Spans(usage.start_ps[:0], usage.end_ps[:0])
        return _Sleep(usage.start_ps, usage.end_ps, asleep / np.maximum(usage.end_ps - usage.start_ps, 1), none)
    interval, start, end, event = _stretches(trace, graph, line, usage)
    waits = Spans.union(usage.start_ps, usage.end_ps) - Spans.union(start, end)
    return _Sleep(start, end, _shares_asleep(trace, usage, interval, end - start, event), waits)


def _shares_asleep(trace: HostTrace, usage: ThreadTimes, interval: I64, length: I64, event: I64) -> F64:
    """How much of each stretch the thread slept, 0 to 1: expectation and maximisation over kinds of code, which are
    functions, and what nothing recorded.  Ops do not sleep but where their names say so."""
    if not len(length):
        return np.zeros(0)
    events = trace.events
    type_ = np.where(event >= 0, events.type[event], -1)
    works = (event >= 0) & is_any_kind(events.kind[event], _COMPUTES)
    works &= ~has_trait(trace, events.type[np.maximum(event, 0)], CodeTrait.SLEEPS)
    alike = Groups.of(interval, type_)  # what is of one kind in one interval sleeps as much: there is little of that
    kind = Groups.of(type_[alike.first]).number
    whole, working = alike.sum(length), alike.sum(length * works)
    return _sleep_of_kinds(usage, interval[alike.first], kind, whole, working)[alike.number]


def _sleep_of_kinds(usage: ThreadTimes, interval: I64, kind: I32, length: I64, working: I64) -> F64:
    """The same of all time of one kind in one interval together: float64 of shape (n,).

    Args:
        interval, kind: int64 and int32 of shape (n,); length, working: int64 of shape (n,), ps, the latter in ops.
    """
    worked = np.bincount(interval, length, len(usage.start_ps))  # without what it waited for, as for a device
    slept = np.maximum(worked - usage.ran_ps - usage.queued_ps, 0)
    total = np.maximum(np.bincount(kind, length), 1.0)
    rate = np.where(np.bincount(kind, working) > 0, 0.0, 0.5)
    share = np.zeros(len(length))
    for _ in range(_ROUNDS):
        share = rate[kind]
        # What a stretch has no room for goes to the others of its interval.
        for _ in range(_SPILLS):
            found = np.bincount(interval, share * length, len(slept))
            share = np.minimum(share * (slept / np.maximum(found, 1.0))[interval], 1.0)
        rate = np.bincount(kind, share * length) / total
    return share


def _lost_spans(trace: HostTrace) -> Spans | None:
    lost = _find_lost(trace)
    return None if lost is None else lost | _find_pauses_of_marks(trace)


def _find_pauses_of_marks(trace: HostTrace) -> Spans:
    """Long pauses between two marks that usually follow each other at once: the recorder ends one and starts the next
    there, so nothing of the program runs in them.

        marks    M0------M1------        M2------M3------
                                 ^^^^^^^^
    """
    steps = whole_steps(trace)
    pause = steps.start_ps[1:] - steps.end_ps[:-1]
    short = max(_LEAST * median(steps.length_ps), LONGEST_DISPATCH_PS) if len(pause) else 0.0
    if steps.line < 0 or not len(pause) or percentiles(pause, (25,))[0] >= short:
        return Spans.union(steps.start_ps[:0], steps.end_ps[:0])
    pauses = Spans(steps.end_ps[:-1][pause >= LONGEST_DISPATCH_PS], steps.start_ps[1:][pause >= LONGEST_DISPATCH_PS])
    rows = np.arange(trace.lines.event_begin[steps.line], trace.lines.event_end[steps.line])
    start = trace.events.start_ps[rows]
    return pauses - spans_of(trace, rows[pauses.overlap_ps(start, start + 1) > 0])


def _find_lost(trace: HostTrace) -> Spans | None:
    main, graph = threads_of(trace).main, graph_of(trace)
    usage = usage_of_thread(trace, main) if main >= 0 else None
    if usage is None or graph is None:
        return None
    late = usage.take(usage.queued_ps >= _LEAST * (usage.end_ps - usage.start_ps))
    if not len(late.start_ps):
        return Spans(late.start_ps, late.end_ps)
    slept = trace.derived(f"sleep of thread {main}", lambda _: _find_sleep(trace, main))
    interval, start, end, event = _stretches(trace, graph, main, late)
    asleep = np.zeros(len(start)) if slept is None else _share_at(slept, start)
    asleep[(event >= 0) & (trace.events.kind[event] == EventKind.SYNC)] = 1.0  # it waits, and wants no processor
    return _place_lost(late, interval, start, end, asleep)


def _share_at(slept: _Sleep, start: I64) -> F64:
    at = np.searchsorted(slept.start_ps, start, side="right") - 1
    return np.where(at >= 0, slept.share[np.maximum(at, 0)], 0.0)


def _stretches(trace: HostTrace, graph: Graph, line: int, usage: ThreadTimes) -> tuple[I64, I64, I64, I64]:
    """The own time of a thread, cut by interval and innermost event: interval, start, end and event of each part."""
    own = np.flatnonzero((graph.line == line) & (graph.own_ps > 0))
    if not len(own):
        return own, own, own, own
    cuts = np.stack([usage.start_ps, usage.end_ps], axis=1).ravel()
    _, start, end, event = cut_by_events(trace, line, graph.start_ps[own], graph.end_ps[own], cuts)
    interval = places_around(usage.start_ps, usage.end_ps, start, end)
    inside = np.flatnonzero(interval >= 0)
    return interval[inside], start[inside], end[inside], event[inside]


def _place_lost(usage: ThreadTimes, interval: I64, start: I64, end: I64, asleep: F64) -> Spans:
    """What each interval lost, taken from all of its stretches alike, and from their starts: a thread that is woken
    waits before it runs."""
    length, count = end - start, len(usage.start_ps)
    worked = np.bincount(interval, length, count)
    lost = np.minimum(usage.queued_ps, np.maximum(worked - usage.ran_ps, 0))
    awake = length * (1.0 - asleep)
    share = lost / np.maximum(np.bincount(interval, awake, count), 1.0)
    taken = np.minimum(np.rint(awake * share[interval]), length).astype(np.int64)
    together = -(-len(start) // _MOST_PLACES)
    if together > 1:
        apart = (np.diff(interval, prepend=-1) != 0) | (start != np.append(-1, end[:-1]))
        first = np.flatnonzero(apart | (np.arange(len(start)) % together == 0))
        start, taken = start[first], np.add.reduceat(taken, first)
    return Spans.union(start, start + taken)
