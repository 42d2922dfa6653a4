"""What a thread runs at each moment, by samples of its stack: of all steps, not only of the one in which a sample fell.

Samples come every few milliseconds, as far apart as a step may be long, and half of the way from one to the next is no
edge of anything: a function between two ops would end somewhere among the ops.  The events that were recorded on the
thread are edges, and steps repeat them.  So the time is cut at these edges; a piece in which no sample fell is told by
the piece at the same place of another step that is most like it in length.  What no sample of any step tells is half
of each neighbour, but not beyond the range of the program that the neighbour lies in: elsewhere nobody knows.

    step 1   ops ..aaaaaaaaaaaa--bb--cc     a sample in the gap shows `make_batch`
    step 2   ops ...............--bb--cc     none here: the gap before the same op is `make_batch`, too
    samples         ^                 ^
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.stack_samples import sample_times, sampled_frames
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.spans import Spans, is_outermost, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, count_before, number_pairs, run_rows
from stepscope.records import dataclass

K = EventKind

# Events that the program's Python runs in; any other is one piece, whatever lies inside.
_RANGES = (K.STEP_MARK, K.INPUT_WAIT, K.ANNOTATION, K.CHECKPOINT)  # that the program itself, or its trainer, has named
_HOLDERS = (*_RANGES, K.OTHER, K.PYTHON_CALL)


@dataclass(frozen=True)
class SampledTime:
    """The time of a thread in pieces, each told by one sample.

    Attributes:
        times: int64, when samples were taken, ps, ascending.
        start, end: int64 of shape (pieces,), ps.
        sample: int64 of shape (pieces,), the sample that tells what runs in each: an index of `times`.
        other: int64 of shape (pieces,), of pieces that no sample tells the one on the other side, else the same.
    """

    times: I64
    start: I64
    end: I64
    sample: I64
    other: I64

    def spans_shown(self, frames: Spans) -> tuple[Spans, Spans, I64]:
        """When a function runs that samples show in some frames, the part of that which is not an edge that nothing
        tells, and the times of these samples."""
        shown = frames.overlap_ps(self.times, self.times + 1) > 0
        inside = shown[self.sample]
        certain = inside & shown[self.other]
        found, known = (Spans.union(self.start[some], self.end[some]) for some in (inside, certain))
        return found, known, self.times[shown]


def sampled_time_of(trace: HostTrace, line: int) -> SampledTime | None:
    """The time of a thread by its samples, found once; None where it is not known when these were taken."""
    return trace.derived(f"sampled time of line {line}", lambda of: _sampled_time(of, line))


def _sampled_time(trace: HostTrace, line: int) -> SampledTime | None:
    times, seen = sample_times(trace, line), observed_time(trace)
    shows = seen & spans_of(trace, sampled_frames(trace, line)) if len(times) and len(seen.start) else seen
    times = times[shows.overlap_ps(times, times + 1) > 0]  # that of another thread tells nothing
    if not len(times):
        return None
    edges, key, within = _edges(trace, line, int(seen.start[0]), int(seen.end[-1]))
    start, end = edges[:-1], edges[1:]
    own = np.searchsorted(start, times, side="right") - 1
    count = np.bincount(own, minlength=len(start))
    like = _most_alike(key, end - start, count > 0)
    first = np.searchsorted(own, np.arange(len(start)))  # sample of each piece

    # Half-way between two samples of a piece another may begin; its own edges are those of the first and the last.
    low, high = start[own].astype(np.float64), end[own].astype(np.float64)
    same, middle = own[1:] == own[:-1], (times[1:] + times[:-1]) / 2
    low[1:][same], high[:-1][same] = middle[same], middle[same]
    length = np.maximum(end - start, 1)[own]
    low, high = (low - start[own]) / length, (high - start[own]) / length

    known = like >= 0
    parts = np.where(known, count[np.maximum(like, 0)], 1)
    piece = np.repeat(np.arange(len(start)), parts)
    sample = run_rows(np.where(known, first[np.maximum(like, 0)], 0), parts)
    whole = (end - start)[piece]
    begins = start[piece] + np.round(np.where(known[piece], low[sample], 0.0) * whole).astype(np.int64)
    ends = start[piece] + np.round(np.where(known[piece], high[sample], 1.0) * whole).astype(np.int64)
    return SampledTime(times, *_fill(begins, ends, sample, known[piece], within[piece]))


def _edges(trace: HostTrace, line: int, begin: int, stop: int) -> tuple[I64, I64, I64]:
    """The edges of events on a thread, and what is known of each piece between two of them.

    Returns:
        The edges, int64 of shape (n + 1,), ascending; what each piece is called alike in all steps: the edge that it
        follows, and how often that was in the step, int64 of shape (n,); and how many ranges of the program began or
        ended before it, int64 of shape (n,).
    """
    events = trace.events
    rows = np.arange(trace.lines.event_begin[line], trace.lines.event_end[line])
    start = events.start_ps[rows]
    end = start + forest(trace).extent_ps[rows]
    holds = is_any_kind(events.kind[rows], _HOLDERS)
    outer = np.flatnonzero(~holds)
    outer = outer[is_outermost(start[outer], end[outer])]
    inside = Spans.union(start[outer], end[outer])
    holders = np.flatnonzero(holds & ~(inside.overlap_ps(start, end) == end - start))
    chosen = np.append(outer, holders)
    marks = events.kind[rows[chosen]] == K.STEP_MARK  # which may be named by number
    name = np.where(marks, -1, events.type[rows[chosen]].astype(np.int64))
    at, code = np.append(start[chosen], end[chosen]), np.append(2 * name, 2 * name + 1)
    of_range = np.tile(is_any_kind(events.kind[rows[chosen]], _RANGES), 2)
    inner = (at > begin) & (at < stop)
    at, code, of_range = at[inner], code[inner], of_range[inner]
    order = np.argsort(at, kind="stable")
    at, code, within = at[order], np.append(-4, code[order]), np.append(0, np.cumsum(of_range[order]))
    edges = np.concatenate([[begin], at, [stop]])
    step = np.searchsorted(whole_steps(trace).start_ps, edges[:-1], side="right")
    group, _ = number_pairs(code - code.min(), step)
    key, _ = number_pairs(code - code.min(), count_before(group.astype(np.int64)))
    return edges, key.astype(np.int64), within.astype(np.int64)


def _most_alike(key: I64, length: I64, is_sampled: Mask) -> I64:
    """The sampled piece that tells what each is: itself, else the one of its key that is nearest in length; -1 without
    one."""
    order = np.lexsort((length, key))
    sampled = is_sampled[order]
    place, none = np.arange(len(order)), len(order)
    before = np.maximum.accumulate(np.where(sampled, place, -1))
    after = np.minimum.accumulate(np.where(sampled, place, none)[::-1])[::-1]
    has_before = (before >= 0) & (key[order][np.maximum(before, 0)] == key[order])
    has_after = (after < none) & (key[order][np.minimum(after, none - 1)] == key[order])
    shorter = length[order] - length[order][np.maximum(before, 0)]
    longer = length[order][np.minimum(after, none - 1)] - length[order]
    near = np.where(has_before & (~has_after | (shorter <= longer)), before, after)
    found = np.full(len(order), -1, np.int64)
    some = has_before | has_after
    found[order[some]] = order[near[some]]
    return found


def _fill(start: I64, end: I64, sample: I64, known: Mask, within: I64) -> tuple[I64, I64, I64, I64]:
    """The pieces, with those between known ones that nothing tells: the first half of the time between is what comes
    before, the second what follows, where no range of the program begins or ends between them."""
    place, none = np.arange(len(start)), len(start)
    before = np.maximum.accumulate(np.where(known, place, -1))
    after = np.minimum.accumulate(np.where(known, place, none)[::-1])[::-1]
    open_ = np.flatnonzero(~known)
    left, right = before[open_], after[open_]
    low = np.where(left >= 0, end[np.maximum(left, 0)], start[0])
    high = np.where(right < none, start[np.minimum(right, none - 1)], end[-1])
    middle = np.where(left < 0, low, np.where(right >= none, high, (low + high) // 2))
    one, two = sample[np.where(left < 0, right, left)], sample[np.where(right >= none, left, right)]
    is_left = (left >= 0) & (within[np.maximum(left, 0)] == within[open_])
    is_right = (right < none) & (within[np.minimum(right, none - 1)] == within[open_])
    pieces = (
        (start[known], end[known], sample[known], sample[known]),
        (start[open_][is_left], np.minimum(end[open_], middle)[is_left], one[is_left], two[is_left]),
        (np.maximum(start[open_], middle)[is_right], end[open_][is_right], two[is_right], one[is_right]),
    )
    begins, ends, told, other = (np.concatenate(each) for each in zip(*pieces, strict=True))
    some = ends > begins
    return begins[some], ends[some], told[some], other[some]
