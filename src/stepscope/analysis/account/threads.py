"""Threads of the host as lengths of own work: where they touch something else, and where they only wait."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.steps.find_steps import HostSteps, steps_of
from stepscope.analysis.steps.loop_thread import find_loop_line
from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import enclosing_events, forest
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I32, I64, Mask, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary import tf_data
from stepscope.vocabulary.lookup import has_trait, is_called
from stepscope.vocabulary.traits import CallTrait, InputTrait
from stepscope.vocabulary.xla import AWAITS_PROGRAM, RUNS_PROGRAM

K = EventKind

# A thread that sleeps takes longer than this to be woken (10 us from hand-over to start in TensorFlow's own pools), so
# that shorter gaps between its events are its own work.
SHORTEST_WAIT_PS = 10_000_000

# While one of these lasts its thread works; whatever else encloses time may be waiting.
_WORKING = (
    K.OP, K.BACKWARD, K.INPUT_HANDOVER, K.RUNTIME_CALL, K.COPY_HOST_TO_DEVICE_CALL,
    K.COPY_HOST_TO_HOST, K.COMPILE, K.CHECKPOINT, K.REGION_BEGIN, K.EXECUTOR, K.THREADPOOL, K.SYNC,
)  # fmt: skip
# What a thread does for a step: whatever works but calls of Python and names.
_SERVES_STEP = (
    *_WORKING, K.COLLECTIVE_CALL, K.FUNCTION_RUN, K.EAGER_EXECUTE, K.TRACED_FUNCTION, K.ITERATOR, K.INPUT_CALLBACK,
    K.INPUT_WAIT,
)  # fmt: skip
_SERVES_DEVICE = (
    CallTrait.LAUNCHES_KERNEL | CallTrait.LAUNCHES_GRAPH | CallTrait.COPIES | CallTrait.CLEARS | CallTrait.STREAM_WAITS
    | CallTrait.RECORDS_EVENT | CallTrait.TAKES_MEMORY
)  # fmt: skip
_SERVES_INPUT = (K.ITERATOR, K.INPUT_HANDOVER, K.INPUT_CALLBACK)


@dataclass(frozen=True)
class IdleSpans:
    """Stretches of threads in which nothing is recorded that works, as columns sorted by line and time.

    Attributes:
        line: int32; start_ps, end_ps: int64 of shape (n,).
        event: int64, the innermost event around the stretch; -1 where the thread has nothing to do that is recorded.
    """

    line: I32
    start_ps: I64
    end_ps: I64
    event: I64

    def take(self, rows: I64 | Mask) -> IdleSpans:
        """Some of the stretches."""
        return IdleSpans(*(column[rows] for column in vars(self).values()))

    def __len__(self) -> int:
        return len(self.line)


@dataclass(frozen=True)
class Threads:
    """The threads of the host that the model knows.

    Attributes:
        lines: rows of the trace's lines.
        main: the line of the step marks, or that which launches most; -1 without threads.
        serves_input: bool of shape (all lines,), threads that prepare input whichever step is at hand.
        background: bool of shape (all lines,), threads that nothing of a step needs, as far as anyone can tell: no op,
            no program, no launch and no batch runs on them, and no other thread hands them work or gets some from them.
            They end no wait.
        quiet: where they may wait.
        working: for each row of `lines` when it works.
    """

    lines: list[int]
    main: int
    serves_input: Mask
    background: Mask
    quiet: IdleSpans
    working: dict[int, Spans]


def threads_of(trace: HostTrace) -> Threads:
    """The threads of a host, and where they may wait; found once per trace."""
    return trace.derived("threads of the model", _threads)


def _threads(trace: HostTrace) -> Threads:
    lines = recorded_threads(trace)
    main = _main_line(trace, steps_of(trace), lines)
    serves = np.array([tf_data.is_thread(trace.strings[name]) for name in trace.lines.name.tolist()], np.bool_)
    serves[trace.events.line[events_of_kind(trace, *_SERVES_INPUT)]] = True
    if main >= 0:
        serves[main] = False
    works = _works(trace)
    working = {line: _working_spans(trace, line, works) for line in lines}
    zero = trace.span_ps()[0]
    found = [_quiet_of_line(trace, line, works, zero if line != main else None) for line in lines]
    columns = [np.concatenate(column) for column in zip(*(vars(each).values() for each in found), strict=True)]
    quiet = IdleSpans(*columns) if columns else IdleSpans(np.empty(0, np.int32), *3 * [np.empty(0, np.int64)])
    return Threads(lines, main, serves, _background(trace, main, serves), quiet, working)


def _background(trace: HostTrace, main: int, serves: Mask) -> Mask:
    """Threads that nothing of a step needs: bool of shape (all lines,)."""
    events, cause = trace.events, forest(trace).cause
    linked = np.flatnonzero((cause >= 0) & is_thread_event(trace))
    linked = linked[events.line[cause[linked]] != events.line[linked]]
    works = is_any_kind(events.kind, _SERVES_STEP) | is_called(trace, RUNS_PROGRAM)
    calls = events_of_kind(trace, K.RUNTIME_CALL)
    works[calls] = has_trait(trace, events.type[calls], _SERVES_DEVICE)  # one that only asks or waits starts nothing
    launching = cause[np.flatnonzero(~is_thread_event(trace) & (cause >= 0))]
    works[launching] = True
    needed = serves.copy()
    needed[used_rows(events.line[np.flatnonzero(works)], len(needed))] = True
    needed[events.line[linked]] = True
    needed[events.line[cause[linked]]] = True
    if main >= 0:
        needed[main] = True
    return ~needed


def recorded_threads(trace: HostTrace) -> list[int]:
    """The lines of the threads that something lasting is recorded on."""
    return [line for line in trace.lines_of(LineKind.THREAD).tolist() if _has_time(trace, line)]


def _main_line(trace: HostTrace, steps: HostSteps, lines: list[int]) -> int:
    """The loop's thread, or the thread with most events where none is known; -1 without threads."""
    found = find_loop_line(trace, steps)
    if found in lines or not lines:
        return found
    return lines[int(np.argmax((trace.lines.event_end - trace.lines.event_begin)[lines]))]


def _has_time(trace: HostTrace, line: int) -> bool:
    rows = slice(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    return bool((forest(trace).extent_ps[rows] > 0).any())


def _works(trace: HostTrace) -> Mask:
    """Events while which their thread works, or is in a call whose waiting is told apart: bool of shape (events,)."""
    works = is_any_kind(trace.events.kind, _WORKING) & is_thread_event(trace)
    works[blocking_calls(trace)] = True
    works[_calls_to_workers(trace)] = True  # what they wait for is a model of its own, see producers.py
    works[_regions_that_wait(trace)] = False
    return works


def _regions_that_wait(trace: HostTrace) -> I64:
    """Work handed to a thread that soon waits for others to run the rest of a program: rows of events."""
    waits = np.flatnonzero(is_called(trace, (AWAITS_PROGRAM,)))
    if not len(waits):
        return waits
    around = enclosing_events(trace, is_any_kind(trace.events.kind, (K.REGION_BEGIN,)))[waits]
    return around[around >= 0].astype(np.int64)


def worker_waits(trace: HostTrace, line: int) -> I64:
    """Calls of a thread that take batches from worker processes, in order: rows of events."""
    calls = _calls_to_workers(trace)
    calls = calls[trace.events.line[calls] == line]
    taken = np.zeros(len(trace.events), np.bool_)
    taken[calls] = True
    outer: I64 = calls[enclosing_events(trace, taken)[calls] == calls] if len(calls) else calls
    return outer


def _calls_to_workers(trace: HostTrace) -> I64:
    calls = events_of_kind(trace, K.INPUT_WAIT)
    return calls[has_trait(trace, trace.events.type[calls], InputTrait.MULTI_PROCESS)] if len(calls) else calls


def _working_spans(trace: HostTrace, line: int, works: Mask) -> Spans:
    begin, end = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
    rows = begin + np.flatnonzero(works[begin:end])
    return Spans.of_rows(trace.events.start_ps, forest(trace).extent_ps, rows)


def _quiet_of_line(trace: HostTrace, line: int, works: Mask, since_ps: int | None) -> IdleSpans:
    """The stretches of a line; the first from a time on, before anything is recorded on it, if that is given."""
    begin, end = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
    links, first = forest(trace), int(trace.events.start_ps[begin])
    found = kernels.replay.stretches(
        begin, end, first, -1, trace.events.start_ps, links.extent_ps, links.parent, works.view(np.uint8),
        SHORTEST_WAIT_PS,
    )  # fmt: skip
    start, stop, event = np.asarray(found).T.copy()
    if since_ps is not None and since_ps < first:
        start, stop, event = np.append(since_ps, start), np.append(first, stop), np.append(-1, event)
    return IdleSpans(np.full(len(start), line, np.int32), start, stop, event)
