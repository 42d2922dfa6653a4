"""Stretches of the loop's thread whose cause the innermost event does not tell: what happens around them does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.analysis.account.causes import LONG_GAP_PS, Cause, event_causes, is_silent, unrecorded_causes
from stepscope.analysis.account.compiled_code import compiled_time
from stepscope.analysis.account.contention import late_peers, lost_spans
from stepscope.analysis.account.innermost import cut_by_events
from stepscope.analysis.account.sampled_time import sampled_time_of
from stepscope.analysis.account.saves import saves_of
from stepscope.analysis.account.silence import devices_in_silence, new_programs_of, silence_of
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.stack_samples import has_native_samples, rows_on, sampled_frames
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64, U8, Mask, union
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_interpreter_samples
from stepscope.vocabulary.lookup import has_trait, is_called
from stepscope.vocabulary.traits import CallTrait, CodeTrait, OpTrait
from stepscope.vocabulary.xla import RUNS_PROGRAM

K = EventKind

NO_STRETCH = 255  # in place of a cause
# Of the loop's thread.
_OWN = (Cause.INPUT, Cause.COMPILE, Cause.COMMUNICATION, Cause.TRANSFER, Cause.HOST_COMPUTE)


@dataclass(frozen=True)
class Stretches:
    """Stretches as columns in order of time; no two overlap.

    Attributes:
        start_ps, end_ps: int64 of shape (n,).
        cause: uint8 of shape (n,), see Cause.
        silent: bool of shape (n,), nothing says what the loop's thread does meanwhile: the cause is that of what else
            goes on.
        of_loop: bool of shape (n,), it holds for the loop's thread's own time alone, as silence and a lost processor.
    """

    start_ps: I64
    end_ps: I64
    cause: U8
    silent: Mask
    of_loop: Mask

    def spans_of_cause(self, cause: Cause) -> Spans:
        """Those with a cause, but for silence."""
        chosen = (self.cause == cause) & ~self.silent
        return Spans.union(self.start_ps[chosen], self.end_ps[chosen])


def stretches_of(trace: HostTrace) -> Stretches:
    """The stretches of a host's loop, found once."""
    return trace.derived("stretches of the loop", _find_stretches)


def _find_stretches(trace: HostTrace) -> Stretches:
    known, found = saves_of(trace), [(Cause.CHECKPOINT, saves_of(trace), False, False)]
    for cause, spans, silent in _reasons(trace):
        if spans.total and (spans := spans - known).total:
            found.append((cause, spans, silent, silent))
            known = known | spans
    if (lost := lost_spans(trace)) is not None:
        late = awaits_late_peers(trace)
        found = [(cause, spans - lost - late, silent, own) for cause, spans, silent, own in found]
        found += [(Cause.CONTENTION, lost, False, True), (Cause.CONTENTION, late, False, False)]
    counts = [len(each[1].start) for each in found]
    start, end = (np.concatenate([getattr(each[1], side) for each in found]) for side in ("start", "end"))
    causes = np.repeat(np.array([each[0] for each in found], np.uint8), counts)
    silence, of_loop = (
        np.repeat(np.array(each, np.bool_), counts) for each in zip(*(each[2:] for each in found), strict=True)
    )
    order = np.argsort(start, kind="stable")
    return Stretches(start[order], end[order], causes[order], silence[order], of_loop[order])


def awaits_late_peers(trace: HostTrace) -> Spans:
    """When the loop communicates, by any thread, computes nothing, and waits for a rank that is late on a busy machine;
    found once."""
    return trace.derived("waits for late peers", _find_waits_for_peers)


def _find_waits_for_peers(trace: HostTrace) -> Spans:
    late, lost = late_peers(trace), lost_spans(trace)
    if not len(late.start) or lost is None:
        return late
    calls = events_of_kind(trace, K.COLLECTIVE_CALL)
    calling = _extents(trace, calls[trace.events.line[calls] == threads_of(trace).main])
    return ((calling | _work_of_others(trace, Cause.COMMUNICATION)) & late) - lost


def _reasons(trace: HostTrace) -> Iterator[tuple[Cause, Spans, bool]]:
    """What goes on around the loop's thread that is its cause, the most telling first, and whether that thread is
    silent meanwhile; silence with nothing else at work is unknown."""
    yield Cause.INPUT, _lock_waits(trace), False
    yield Cause.TRANSFER, _work_of_others(trace, Cause.TRANSFER), False
    yield Cause.TRANSFER, _conversions(trace), False
    yield Cause.INPUT, _reads_of_python(trace), False
    yield Cause.HOST_COMPUTE, _only_python(trace, compiled_time(trace, threads_of(trace).main)), True
    silence = silence_of(trace)
    if not silence.total:
        return
    yield from ((cause, spans, True) for cause, spans in devices_in_silence(trace).items())
    yield Cause.HOST_COMPUTE, other_threads_computing(trace) & silence, True
    waits = events_of_kind(trace, K.INPUT_WAIT)
    waits = waits[_works_for_step(trace, True)[trace.events.line[waits]]]
    yield Cause.INPUT, spans_of(trace, waits) & silence, True
    yield Cause.COMPILE, new_programs_of(trace) & silence, True
    threads = threads_of(trace)
    if threads.working[threads.main].total >= LONG_GAP_PS:  # else nothing of what the loop does was recorded
        yield Cause.COMMUNICATION, _work_of_others(trace, Cause.COMMUNICATION) & silence, True
    yield Cause.UNKNOWN, silence, True


def _lock_waits(trace: HostTrace) -> Spans:
    """Calls of TensorFlow that have finished their work and wait for Python's lock, which a function of the dataset
    holds."""
    ops = events_of_kind(trace, K.OP)
    ops = ops[has_trait(trace, trace.events.type[ops], OpTrait.CALLS_PYTHON)]
    return _around_dispatches(trace)[1] & spans_of(trace, ops) if len(ops) else Spans(ops, ops)


def _conversions(trace: HostTrace) -> Spans:
    """Calls of TensorFlow before they dispatch their op: they make tensors of arrays of the host, and copy these."""
    return _around_dispatches(trace)[0]


def _around_dispatches(trace: HostTrace) -> tuple[Spans, Spans]:
    """The time in the loop's calls of TensorFlow for longer than a dispatch, before and after the last that they
    dispatch; the first without what they dispatch there, as the constants that become of their arguments."""
    line, events = threads_of(trace).main, trace.events
    rows = np.arange(trace.lines.event_begin[line], trace.lines.event_end[line]) if line >= 0 else np.empty(0, np.int64)
    rows = rows[events.duration_ps[rows] >= LONG_GAP_PS]
    calls = rows[has_trait(trace, events.type[rows], CallTrait.LEAVES_PYTHON)]
    if not len(calls):
        return Spans(calls, calls), Spans(calls, calls)
    eager = events_of_kind(trace, K.EAGER_EXECUTE)
    inner = spans_of(trace, eager[events.line[eager] == line])
    start, end = events.start_ps[calls], events.start_ps[calls] + events.duration_ps[calls]
    done = np.maximum(np.append(0, inner.end)[np.searchsorted(inner.end, end, side="right")], start)
    before = Spans.union(start, done) - inner
    return before.drop_shorter(LONG_GAP_PS), Spans.union(done, end).drop_shorter(LONG_GAP_PS)


def _only_python(trace: HostTrace, spans: Spans) -> Spans:
    """The part of some time of the loop's thread in which nothing but Python was recorded of it, for longer than a
    dispatch."""
    threads = threads_of(trace)
    known = (Cause.PYTHON, Cause.LAUNCH) if has_native_samples(trace) else (Cause.PYTHON,)
    if not len(spans.start) or unrecorded_causes(trace, threads)[threads.main] not in known:
        return Spans(spans.start[:0], spans.start[:0])
    _, start, end, event = cut_by_events(trace, threads.main, spans.start, spans.end)
    plain = (event < 0) | (event_causes(trace)[event] == Cause.PYTHON)
    if Cause.LAUNCH in known:  # between two launches samples tell more than that
        plain |= is_silent(trace, np.maximum(event, 0))
    return Spans.union(start[plain], end[plain]).drop_shorter(LONG_GAP_PS)


def _reads_of_python(trace: HostTrace) -> Spans:
    """When samples show the loop's thread in a library that reads or decodes files, such as h5py."""
    line = threads_of(trace).main
    frames = sampled_frames(trace, line) if line >= 0 else np.empty(0, np.int64)
    reads = frames[has_trait(trace, trace.events.type[frames], CodeTrait.READS_DATA)]
    sampled = sampled_time_of(trace, line) if len(reads) else None
    return _only_python(trace, sampled.spans_shown(spans_of(trace, reads))[0] if sampled else spans_of(trace, reads))


def _work_of_others(trace: HostTrace, cause: Cause) -> Spans:
    """When other threads are in work of a cause for a loop that is not itself, and no thread computes; never on a host
    with devices, which may compute then."""
    if is_device_work(trace).any():
        return Spans.union(np.empty(0, np.int64), np.empty(0, np.int64))
    said, on_loop = event_causes(trace), _events_of_loop(trace)
    busy = other_threads_computing(trace) | _extents(trace, on_loop[np.isin(said[on_loop], _OWN)])
    rows = np.flatnonzero(said == cause)
    return _extents(trace, rows[_works_for_step(trace)[trace.events.line[rows]]]) - busy


def other_threads_computing(trace: HostTrace) -> Spans:
    """When threads other than that of the loop compute for the steps; found once per trace."""
    return trace.derived("other threads computing", _find_others_computing)


def _find_others_computing(trace: HostTrace) -> Spans:
    said, ops = event_causes(trace), events_of_kind(trace, K.OP, K.BACKWARD)
    if has_native_samples(trace):
        return spans_of(trace, rows_on(trace, holds_interpreter_samples))
    runs = np.flatnonzero(is_called(trace, RUNS_PROGRAM))
    rows = union(ops[said[ops] == Cause.HOST_COMPUTE], runs[said[runs] != Cause.TRANSFER])
    return _extents(trace, rows[_works_for_step(trace)[trace.events.line[rows]]])


def _works_for_step(trace: HostTrace, with_input: bool = False) -> Mask:
    """Threads that work for the steps, but for that of the loop: bool of shape (lines,)."""
    threads = threads_of(trace)
    lines: Mask = (trace.lines.kind == LineKind.THREAD) & (np.arange(len(trace.lines)) != threads.main)
    return lines if with_input else lines & ~threads.serves_input


def time_of_loop(trace: HostTrace, cause: Cause) -> Spans:
    """When the loop's thread is in work of a cause, or others are for it, whether the step waits for that or not.  A
    wait for input is one on any thread."""
    rows = _events_of_loop(trace)
    rows = rows[event_causes(trace)[rows] == cause]
    if cause == Cause.INPUT:
        rows = union(rows, events_of_kind(trace, K.INPUT_WAIT))
    found = _extents(trace, rows) | stretches_of(trace).spans_of_cause(cause)
    return found | _work_of_others(trace, cause) if cause == Cause.COMMUNICATION else found


def _events_of_loop(trace: HostTrace) -> I64:
    """The events of the loop's thread: rows."""
    line = threads_of(trace).main
    return np.arange(*(trace.lines.event_begin[line], trace.lines.event_end[line]) if line >= 0 else (0,))


def _extents(trace: HostTrace, rows: I64) -> Spans:
    return Spans.of_rows(trace.events.start_ps, forest(trace).extent_ps, rows)


def bounds_of_stretches(trace: HostTrace) -> tuple[I64, I64]:
    """When stretches begin or end that are a cause for the loop's thread, and for the others: int64 of shape (2 n,),
    ps, ascending."""
    known = stretches_of(trace)
    both = np.stack([known.start_ps, known.end_ps], axis=1)
    return both.ravel(), both[~known.of_loop].ravel()


def causes_within(trace: HostTrace, line: NDArray[np.integer], start: I64, end: I64, own: Mask) -> U8:
    """The cause of the stretch around some time of threads, already cut: uint8 of shape (n,), NO_STRETCH for
    none.

    What other threads do for the loop's is a part of what that does; only a lost processor and silence are its own.

    Args:
        own: bool of shape (n,), time that the thread does not wait for a known reason.
    """
    known, found = stretches_of(trace), np.full(len(start), NO_STRETCH, np.uint8)
    if len(known.cause):
        is_main = own & (line == threads_of(trace).main)
        kernels.causes.of_stretches(
            known.start_ps, known.end_ps, known.cause, known.of_loop.view(np.uint8), start, end, is_main.view(np.uint8),
            found,
        )  # fmt: skip
    return found
