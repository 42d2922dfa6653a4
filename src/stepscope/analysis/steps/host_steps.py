"""The steps of one host as a value, and helpers shared by the ways to find them."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal

import numpy as np

from stepscope.analysis.trace.grouping import forest, nearest_above
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64, Mask, distinct, median, percentiles
from stepscope.records import dataclass
from stepscope.vocabulary.serving import Batch

COMPUTES = (EventKind.KERNEL, EventKind.DEVICE_OP, EventKind.COLLECTIVE)

StepSource = Literal["markers", "inferred", "none"]

# A step at the edge of the capture with less than this share of the usual device work is cut.  The last inferred step,
# whose end is unmarked, also counts as cut if its length differs this much from the others.
WHOLE_STEP_SHARE = 0.8

_CLOSE = 0.05  # of a step: less than XProf finds worth a word of any part; a last step may miss so much


@dataclass(frozen=True)
class Loop:
    """Marks of one name on one thread: a loop of its own.

    Attributes:
        name: what its marks are called, without their numbers; thread: the thread in words.
        count: how many marks there are.
        median_ps, least_ps, most_ps, total_ps: how long they last.
    """

    name: str
    thread: str
    count: int
    median_ps: int
    least_ps: int
    most_ps: int
    total_ps: int


@dataclass(frozen=True)
class HostSteps:
    """The steps of one host, in order of time.

    Attributes:
        source: how they were found.
        how: the same in one sentence.
        confidence: 0 to 1 for inferred steps and for marks that may last longer than was recorded, None for others.
        number: int64 of shape (steps,), the step number of the marks, else 0, 1, 2, ...
        name: one name per step.
        start_ps, end_ps: int64 of shape (steps,), those of the marks and their work.
        complete: bool of shape (steps,), False for a step cut by the edge of the capture.
        label: int32 of shape (events,), the step that each event belongs to, or -1.
        numbered: the numbers are the program's own.
        line: the line with the marks, -1 without one.
        backlog: int64 of shape (n,), device work outside all steps that was launched before the first mark.
        until_ps: int64 of shape (steps,), how long each step lasts: to the start of the next; see `close_gaps`.
        cut_short: bool of shape (steps,), those for which that time was not recorded, if it matters.
        batch: what each step of a model server works on, as its mark says; empty where no mark says it.
        begun_ps: int64 of shape (steps,), when the thread of `line` begins each step, where it runs ahead of the work
            that bounds them and no mark says so; empty otherwise.
        others: loops that are marked as well and are not these steps, such as an evaluation.
        measured: their bounds measure how long they last; not where a loop runs ahead of work that was not recorded.
        pauses: int64 of shape (n,), when marks of other loops start on the thread of these, ascending: a step ends
            there at the latest.
    """

    source: StepSource
    how: str
    confidence: float | None
    number: I64
    name: tuple[str, ...]
    start_ps: I64
    end_ps: I64
    complete: Mask
    label: I32
    numbered: bool = False
    line: int = -1
    backlog: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    until_ps: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    cut_short: Mask = field(default_factory=lambda: np.empty(0, np.bool_))
    batch: tuple[Batch | None, ...] = ()
    begun_ps: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    others: tuple[Loop, ...] = ()
    measured: bool = True
    pauses: I64 = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def length_ps(self) -> I64:
        """How long each step lasts: int64 of shape (steps,)."""
        return self.until_ps - self.start_ps

    def take(self, rows: I64, label: I32) -> HostSteps:
        """Some of the steps, in order; `label` is that of the events."""
        names = tuple(self.name[row] for row in rows.tolist())
        batches = tuple(self.batch[row] for row in rows.tolist()) if self.batch else ()
        columns = ("number", "start_ps", "end_ps", "complete", "until_ps", "cut_short")
        taken = {key: getattr(self, key)[rows] for key in columns}
        if len(self.begun_ps):
            taken["begun_ps"] = self.begun_ps[rows]
        return replace(self, **taken, name=names, batch=batches, label=label)


def close_gaps(steps: HostSteps) -> HostSteps:
    """Lets each step last until the next one starts, since what lies between two marks is part of the loop.

        mark     |====|     |====|     |====|
        step     |----------|----------|....       the last step misses the time to the next, which was not recorded

    Where marks of another loop come between, such as those of an evaluation, the step lasts until these.

    Steps of no thread, of which more time lies between than in them, do not follow each other: the recording holds
    other things between them, or nothing. Nor do steps whose numbers tell that others lie between.
    """
    start, end = steps.start_ps, steps.end_ps
    if len(end) < 2:
        return replace(steps, until_ps=end, cut_short=np.zeros(len(end), np.bool_))
    gap = median(start[1:] - end[:-1])
    if steps.line < 0 and gap > median(end - start):
        return replace(steps, until_ps=end, cut_short=np.zeros(len(end), np.bool_))
    left_out = _is_gap(steps.number) if steps.numbered else np.zeros(len(end) - 1, np.bool_)
    until = np.append(np.where(left_out, np.minimum(end[:-1], start[1:]), start[1:]), max(end[-1], start[-1]))
    if len(steps.pauses):
        until = np.minimum(until, np.maximum(_next_at(steps.pauses, end), end))
    length = np.diff(start)
    low, usual, high = percentiles(length[~left_out] if not left_out.all() else length, (25, 50, 75))
    is_long = bool(gap > max(_CLOSE * usual, high - low))  # more than steps differ
    return replace(steps, until_ps=until, cut_short=np.append(left_out, True) & is_long)


def _next_at(times: I64, since: I64) -> I64:
    """The first of some ascending times at or after each of others; the largest number where there is none."""
    return np.append(times, np.iinfo(np.int64).max)[np.searchsorted(times, since)]


def _is_gap(number: I64) -> Mask:
    """Where numbers tell that other steps lie between: they are equal, or further apart than those of neighbours."""
    apart = np.diff(number)
    found: Mask = (apart == 0) | (apart > min(apart[apart > 0].tolist(), default=0))
    return found


def backlog_end(trace: HostTrace, backlog: I64, own: I64) -> int:
    """When devices have finished the work launched before the first step, ps.

    On each stream at the latest when it starts `own`, the work of that step, or when the first other one does: that
    one stream runs ahead says nothing of the rest.  The smallest possible time if either kind of work is missing.
    """
    start, line = trace.events.start_ps, trace.events.line
    if not len(backlog) or not len(own):
        return int(np.iinfo(np.int64).min)
    done, first = (np.full(len(trace.lines), np.iinfo(np.int64).min), np.full(len(trace.lines), start[own].min()))
    np.maximum.at(done, line[backlog], start[backlog] + trace.events.duration_ps[backlog])
    order = np.argsort(-start[own], kind="stable")
    first[line[own[order]]] = start[own[order]]
    return int(np.minimum(done, first).max())


def follow_device(trace: HostTrace, label: I32, device: Mask, backlog: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """Moves step bounds to follow the device, or the threads that run its programs: they may lag behind the host.

    A step ends when its mark has ended and its device work is finished.  It starts when its mark starts, but not before
    the previous step has ended; the first step not before the device has finished the backlog, if its end is moved,
    too.  If the host waits for the device, these are the marks themselves.  So they are if the device has nothing left
    to do when it is given the first work of the next step: then the host sets the pace.

        main     |==L0==|==L1==|==L2==|      L0 launches k0
        device       k0---  k1---  k2---     k0 ends in the mark after its own and before L1: nothing waits for it

    XProf instead takes the first to the last device event of a step, and so loses the time in which the device waits.
    """
    events = np.flatnonzero(device & (label >= 0))
    if not len(events):
        return start, end
    done = np.maximum(start, end)
    np.maximum.at(done, label[events], trace.events.start_ps[events] + trace.events.duration_ps[events])
    done = np.maximum.accumulate(done)
    lags = done[:-1] > start[1:]
    lags &= np.arange(1, len(done)) <= label[events].max()  # the work of later steps is not in the recording
    if lags.any() and 2 * np.sum(lags & _is_behind(trace, label, events, done)) < lags.sum():
        return start, end
    if done[0] > (start[1] if len(start) > 1 else end[0]):
        free = backlog_end(trace, backlog, events[label[events] == 0])
        start = np.append(np.maximum(start[:1], free), start[1:])
        done = np.maximum.accumulate(np.maximum(start, done))
    return np.maximum(start, np.append(start[:1], done[:-1])), done


def _is_behind(trace: HostTrace, label: I32, events: I64, done: I64) -> Mask:
    """At which ends of steps but the last the device has still work of them when it is given the next: bool of shape
    (steps - 1,); so it is taken to be where nothing tells what launched that.

    Args:
        events: the device work of all steps; done: int64 of shape (steps,), when that of each is finished.
    """
    call = forest(trace).cause[events]
    given = np.where(call >= 0, trace.events.start_ps[np.maximum(call, 0)], np.iinfo(np.int64).min)
    first = np.full(len(done), np.iinfo(np.int64).max)
    np.minimum.at(first, label[events], given)
    first = np.minimum.accumulate(first[::-1])[::-1]  # a step without work passes on what comes after it
    behind: Mask = done[:-1] > first[1:]
    return behind


def unfinished_steps(label: I32, work: Mask, n_steps: int) -> Mask:
    """Which last steps had not finished when the capture ended: bool of shape (steps,).

    A loop that waits for no result runs ahead of the device, so its last steps have no work yet.  The last step with
    work is unfinished too, since more of it may be missing.  If earlier steps lack work as well, nothing is concluded.
    """
    late = np.zeros(n_steps, np.bool_)
    busy = distinct(label[work & (label >= 0)])
    if 2 <= len(busy) == busy[-1] - busy[0] + 1 and busy[-1] < n_steps - 1:
        late[busy[-1] :] = True
    return late


def drop_enclosed(trace: HostTrace, rows: I64, others: Mask) -> I64:
    """The events that none of `others` encloses."""
    free: I64 = rows[nearest_above(trace, rows, others) < 0]
    return free


def keep_fullest_line(trace: HostTrace, rows: I64) -> I64:
    """The events on the line that has most of them; `rows` holds at least one."""
    line = trace.events.line[rows]
    there: I64 = rows[line == np.bincount(line).argmax()]
    return there
