"""Sampled Python stacks: what a thread ran where its calls were not recorded.

A frame that two consecutive samples show counts as running all the time between them, so short calls are not seen and
the number of calls is unknown.  What takes a large part of the time of all steps together is seen.

A frame starts and ends half-way between two samples, so between these the thread may have done something else.  What a
part of the steps is spent in, only the samples taken in that part tell.  Where their times were not recorded, they are
taken back from the frames: between two changes of the stack lie one sample, or several at equal distances.

A thread is sampled when it lets go of the interpreter, so a fast loop is met in the library calls that do, such as the
one that puts a batch together, more often than in the Python before them.  So a loop is named only if hardly any sample
shows a function of the program that it calls.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.analysis.steps.own_tracers import events_of_thread
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import HostTrace
from stepscope.model.arrays import I32, I64, Mask, distinct, run_rows
from stepscope.records import dataclass
from stepscope.vocabulary.lines import (
    FOREIGN_THREAD,
    NATIVE_STACKS,
    holds_sample_times,
    holds_stack_samples,
    holds_worker_processes,
)
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.python import CODE_OF_MODULE, place_of
from stepscope.vocabulary.traits import CallTrait, CodeTrait

_MOST_OF = 0.5  # a function with this share of the time is where to look
_GOOD_PART = 0.25  # 57 to 100 % of samples showed the function that computes, on a busy machine (batches of 2 to 16 ms)
_INTERVAL_PS = 10_000_000_000  # between samples that no time was recorded of, as of `stepscope run` until 0.2
_LEAST_SAMPLES = 5
_LEAST_PS = _LEAST_SAMPLES * _INTERVAL_PS  # of less time nothing is said


@dataclass(frozen=True)
class SampledFunction:
    """The function that takes most of some time.

    Attributes:
        frame: a row of one of its frames.
        share: the share of the time that it holds, 0 to 1.
        inside: a row of a frame of the library's function within it that most of that time is in; -1 without one.
    """

    frame: int
    share: float
    inside: int = -1


def sampled_frames(trace: HostTrace, line: int) -> I64:
    """The sampled frames of a thread, in order of time: int64 of shape (n,), rows of events.

    Args:
        line: the line on which a profiler recorded the thread; the samples of the same thread have its number.
    """
    return events_of_thread(trace, line, holds_stack_samples)


def has_native_samples(trace: HostTrace) -> bool:
    """Whether samples are of all code, not of Python alone."""
    return any(trace.plane_name(plane).startswith(NATIVE_STACKS) for plane in range(len(trace.planes)))


def main_function(trace: HostTrace, line: int, spans: Spans) -> SampledFunction | None:
    """The innermost function of the program, else of a library, that most samples of a thread in some time show; None
    where there are none, or the time is too short.

    Where the program calls a library that runs the loop over steps, it is the first function within that loop.
    """
    if has_native_samples(trace):
        return _native_function(trace, spans)
    rows = sampled_frames(trace, line)
    if not len(rows) or spans.total < _LEAST_PS:
        return None
    found = _sampled_functions(trace, rows, spans, sample_times(trace, line))
    enough = found.weight >= max(_MOST_OF * found.total, 1)
    below = found.called_by_loop()
    if not (enough & found.of_user & ~found.is_loop).any() and below.any():
        return found.name(found.innermost(below))
    if not enough.any():
        return None
    inner = found.innermost(enough)
    if not (enough & found.of_user).any():
        # A library calls several functions of the program, such as those of a data set and of its batches.
        some = found.of_user & ~found.is_loop & (found.weight >= max(_GOOD_PART * found.total, 1))
        return found.name(found.innermost(some) if some.any() else inner)
    users = found.innermost(enough & found.of_user)
    within = enough & ~found.is_loop
    if found.is_loop[users] and (found.is_loop & ~found.of_user)[users + 1 :].any() and within.any():
        users = int(np.flatnonzero(within)[0])
    return found.name(users, inner)


def functions_called(trace: HostTrace, line: int, spans: Spans) -> list[SampledFunction]:
    """The program's functions that a library's loop calls on a thread in some time, by the samples taken then: each
    with what it calls.  Those around the loop are left out, as a forked process has the stack of its parent."""
    rows = sampled_frames(trace, line)
    if not len(rows) or spans.total < _LEAST_PS or has_native_samples(trace):
        return []
    found = _sampled_functions(trace, rows, spans, sample_times(trace, line))
    loop = np.flatnonzero(~found.of_user & (found.own_ps == found.own_ps.max()))  # it never ends, unlike what it calls
    kept = np.flatnonzero(found.of_user & (found.weight > 0))
    return [found.name(at) for at in kept.tolist() if len(loop) and at > loop[-1]]


def _native_function(trace: HostTrace, spans: Spans) -> SampledFunction | None:
    """The function of the program, else of a library, that most samples of all threads in some time are in: stacks of
    compiled code are often cut, so that an outer function need not show."""
    rows = rows_on(trace, holds_sample_times)
    start = trace.events.start_ps[rows]
    rows = rows[spans.overlap_ps(start, start + 1) > 0]
    if len(rows) < _LEAST_SAMPLES:
        return None
    _, first, count = np.unique(trace.events.type[rows], return_index=True, return_counts=True)
    most = int(np.argmax(count))
    return SampledFunction(int(rows[first[most]]), float(count[most] / len(rows)))


def pool_function(trace: HostTrace, prefix: str, spans: Spans) -> SampledFunction | None:
    """The innermost function of the program that runs for most of some time on any of several threads; None without.

    Args:
        prefix: how the names of the threads start.
    """
    functions = _time_of_functions(trace, prefix, spans) if spans.total >= _LEAST_PS else []
    found = [each for each in functions if each[0] >= _MOST_OF * spans.total]
    if not found:
        return None
    running_ps, _, frame = min(found)  # of frames with the same times the inner one has the later row
    return SampledFunction(-frame, running_ps / spans.total)


def function_called_back(trace: HostTrace, spans: Spans, innermost: bool = False) -> int:
    """The function of the program that samples show longest on threads that Python did not start, in some time in which
    such threads call Python, as for TensorFlow's `numpy_function`: a row of one of its frames, -1 without one.

    Nothing else of the program runs there, so one sample tells it, however short the calls are.

    Args:
        innermost: of those that run as long, the one called last instead of first.
    """
    found = _time_of_functions(trace, FOREIGN_THREAD, spans)
    longest = [each for each in found if each[0] == max(found)[0] > 0]
    return -(min if innermost else max)(longest)[2] if longest else -1


def _time_of_functions(trace: HostTrace, prefix: str, spans: Spans) -> list[tuple[int, int, int]]:
    """For each of the program's functions on some threads how long it runs in some time, in ps, and minus the first
    start and row of its frames.  A frame that one sample shows counts as one ps."""
    frames, events = rows_on(trace, holds_stack_samples, prefix), trace.events
    users, part = (
        has_trait(trace, events.type[frames], each) for each in (CodeTrait.OF_USER, CodeTrait.PART_OF_FUNCTION)
    )
    frames, found = frames[users & ~part], []
    for type_ in distinct(events.type[frames]).tolist():
        own = frames[events.type[frames] == type_]
        start, length = events.start_ps[own], np.maximum(events.duration_ps[own], 1)
        found.append(((Spans.union(start, start + length) & spans).total, -int(start.min()), -int(own[0])))
    return found


def rows_on(trace: HostTrace, is_plane: Callable[[str], bool], prefix: str = "") -> I64:
    """The events of the lines on some planes whose names start so: rows."""
    planes = enumerate(map(trace.plane_name, trace.lines.plane.tolist()))
    found = [line for line, name in planes if is_plane(name) and trace.line_label(line).startswith(prefix)]
    lines = np.array(found, np.int64)
    begin = trace.lines.event_begin[lines].astype(np.int64)
    return run_rows(begin, trace.lines.event_end[lines] - begin)


@dataclass(frozen=True)
class _Functions:
    """Sampled functions, as columns; one that is always inside another comes after it.

    Attributes:
        frame: int64 of shape (n,), a row of one of its frames.
        weight: int64, the time that the samples in question stand for in which it runs; `total` is all of that time.
        own_ps: int64, of all its frames.
        of_user, is_loop: bool, it is the program's; all samples of the thread show it, or the module that it is.
        decided_ps: the part of `total` whose samples show a function of the program that the loop calls, or nothing
            that the loop calls.
    """

    trace: HostTrace
    frame: I64
    weight: I64
    total: int
    own_ps: I64
    of_user: Mask
    is_loop: Mask
    decided_ps: int

    def called_by_loop(self) -> Mask:
        """The program's functions below the loop that hold most of what samples decide, if they decide a good part:
        bool of shape (n,)."""
        if self.decided_ps < max(_GOOD_PART * self.total, 1):
            return np.zeros(len(self.frame), np.bool_)
        holds: Mask = self.of_user & ~self.is_loop & (self.weight >= _MOST_OF * self.decided_ps)
        return holds

    def innermost(self, among: Mask) -> int:
        """The last of some functions: an inner function takes no longer than an outer one."""
        chosen = np.flatnonzero(among)
        return int(chosen[np.lexsort((-chosen, self.own_ps[chosen], self.weight[chosen]))[0]])

    def name(self, function: int, inside: int | None = None) -> SampledFunction:
        """A function, with one inside it if that is another."""
        share = min(float(self.weight[function] / self.total), 1.0)
        other = -1 if inside is None or inside == function else int(self.frame[inside])
        return SampledFunction(int(self.frame[function]), share, other)


def _sampled_functions(trace: HostTrace, rows: I64, spans: Spans, known: I64) -> _Functions:
    rows = rows[has_trait(trace, trace.events.type[rows], CodeTrait.IS_CODE)]
    start, end = trace.events.start_ps[rows], trace.events.start_ps[rows] + trace.events.duration_ps[rows]
    time, stands_for = _find_samples(start, end, known)
    counts = stands_for * (spans.overlap_ps(time, time + 1) > 0)
    _, first, of_frame = np.unique(trace.events.type[rows], return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.argsort(order)[of_frame]
    held, all_held, own = np.zeros((3, len(first)), np.int64)
    low, high = np.searchsorted(time, start), np.searchsorted(time, end)
    for sums, weight in ((held, counts), (all_held, stands_for)):
        before = np.concatenate([[0], np.cumsum(weight)])
        np.add.at(sums, place, before[high] - before[low])
    np.add.at(own, place, end - start)
    frame = rows[first[order]]
    types = trace.events.type[frame]
    is_loop = _sum_modules(trace, types, all_held) >= int(stands_for.sum())
    users, part = (has_trait(trace, types, trait) for trait in (CodeTrait.OF_USER, CodeTrait.PART_OF_FUNCTION))
    called, by_user = (_shown((who & ~is_loop & ~part)[place], low, high, len(time)) for who in (~part, users))
    decided_ps = int(counts[by_user | ~called].sum())
    own = _sum_modules(trace, types, own)  # a line of a module that takes less than a function is around it, too
    return _Functions(trace, frame, held, int(counts.sum()), own, users & ~part, is_loop, decided_ps)


def _sum_modules(trace: HostTrace, types: I32, held: I64) -> I64:
    """The time of each function; of a module, whose frames are named by the line that runs, that of all its lines."""
    places = [place_of(name) for name in type_names(trace, types.astype(np.int64))]
    keys = [path if name == CODE_OF_MODULE else str(at) for at, (name, path, _) in enumerate(places)]
    group = np.unique(np.array(keys, np.str_), return_inverse=True)[1]
    return np.bincount(group, weights=held)[group].astype(np.int64)


def _shown(frames: Mask, low: I64, high: I64, samples: int) -> Mask:
    """The samples that show any of some frames: bool of shape (samples,)."""
    change = np.zeros(samples + 1, np.int64)
    np.add.at(change, low[frames], 1)
    np.add.at(change, high[frames], -1)
    shown: Mask = np.cumsum(change[:-1]) > 0
    return shown


def sample_times(trace: HostTrace, line: int) -> I64:
    """When a thread was sampled: int64, ascending; empty where that was not recorded, as for worker processes."""
    is_worker = holds_worker_processes(trace.plane_name(int(trace.lines.plane[line])))
    own = events_of_thread(trace, line, holds_sample_times)  # of a tool that samples each thread at times of its own
    rows = own if len(own) else rows_on(trace, holds_sample_times)
    return distinct(trace.events.start_ps[rows])[: 0 if is_worker else None]


def _find_samples(start: I64, end: I64, known: I64) -> tuple[I64, I64]:
    """When samples were taken that show some frames, and how much time each stands for: int64, ascending."""
    edges = distinct(np.concatenate([start, end]))
    if len(known) and len(edges) > 1:
        time = np.minimum(known[(known >= edges[0]) & (known <= edges[-1])], edges[-1] - 1)
        return time, np.diff(np.concatenate([edges[:1], (time[1:] + time[:-1]) // 2, edges[-1:]]))[: len(time)]
    length = np.diff(edges)
    between = length[1:-1]  # the first and last stack need not have changed: they tell no interval
    usual = max(_INTERVAL_PS, int(np.percentile(between, 25))) if len(between) else _INTERVAL_PS
    count = np.maximum(np.round(length / usual).astype(np.int64), 1)
    part = np.repeat(length // count, count)
    time = np.repeat(edges[:-1], count) + part * (run_rows(np.zeros_like(count), count)) + part // 2
    time[-1:], time[:1] = edges[-1:] - 1, edges[:1]
    return time, part


def spans_of_others(trace: HostTrace, line: int) -> Spans:
    """When the samples of a thread show functions none of which makes input by its name."""
    rows = sampled_frames(trace, line)
    return spans_of(trace, rows) - spans_of(
        trace, rows[has_trait(trace, trace.events.type[rows], CallTrait.MAKES_INPUT)]
    )
