"""When the loop's thread saves its state: a save is rarely recorded as one event, so the order of events tells it.

Something that was recorded has to say that state is written, or made ready for it: a call of that name, an op that
writes, a state_dict of detached tensors.  Reading variables is none of these: every eager step does so.
"""

from __future__ import annotations

from functools import cached_property, reduce
from operator import or_

import numpy as np

from stepscope.analysis.account.causes import LONG_GAP_PS, Cause, event_causes
from stepscope.analysis.account.statements import statements_of_loop
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import HostSteps, holds_step, steps_of
from stepscope.analysis.steps.stack_samples import sampled_frames
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.spans import Spans, is_outermost, spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, U8, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.python import saves_arrays, statement_of, writes_file
from stepscope.vocabulary.traits import CallTrait, CodeTrait, OpTrait

K = EventKind

_STATE_DICT_OPS = 4  # this many detached tensors in a row are a state_dict
_LITTLE = 0.3  # of a stretch of time; with half or twice as much no answer on the given captures changes


@dataclass(frozen=True)
class _Loop:
    """The events of the loop's thread in the steps as columns; `seen` is when steps last."""

    trace: HostTrace
    steps: HostSteps
    row: I64
    start: I64
    end: I64
    kind: U8
    seen: Spans

    @cached_property
    def feeds(self) -> Spans:
        """When the events make input."""
        return self.spans(event_causes(self.trace)[self.row] == Cause.INPUT)

    @cached_property
    def rest(self) -> Spans:
        """The rest of the time."""
        return self.seen - self.feeds

    def spans(self, chosen: Mask | I64) -> Spans:
        """When some of the events run."""
        return Spans.union(self.start[chosen], self.end[chosen])

    def outside_input(self, chosen: I64) -> Spans:
        """When some of the events run and no input is made."""
        return self.spans(chosen) & self.rest if len(chosen) else Spans(self.start[:0], self.end[:0])

    def have(self, chosen: I64, trait: CallTrait | OpTrait) -> Mask:
        """Which of the chosen events have a trait."""
        return has_trait(self.trace, self.trace.events.type[self.row[chosen]], trait)

    def select_kinds(self, *kinds: EventKind) -> I64:
        """The events of some kinds."""
        return np.flatnonzero(is_any_kind(self.kind, kinds))


def saves_of(trace: HostTrace) -> Spans:
    """When the loop's thread saves, in all steps; found once."""
    return trace.derived("saves", _find_saves)


def _find_saves(trace: HostTrace) -> Spans:
    steps, line = steps_of(trace), threads_of(trace).main
    seen = Spans.union(steps.start_ps, steps.until_ps)
    if steps.source == "none" or line < 0 or not len(seen.start):
        return Spans(seen.start[:0], seen.end[:0])
    loop = _loop_events(trace, steps, line, seen)
    calls = loop.select_kinds(K.PYTHON_CALL, K.OP, K.OTHER, K.EAGER_EXECUTE, K.TRACED_FUNCTION)
    calls = calls[loop.have(calls, CallTrait.SAVES_STATE)]
    of_python = loop.kind[calls] == K.PYTHON_CALL
    writes = loop.outside_input(np.append(calls[~of_python], loop.select_kinds(K.CHECKPOINT)))
    unnamed = _saves_without_ops(loop)
    if len(unnamed.start):
        talks = is_any_kind(trace.events.kind, (K.COLLECTIVE_CALL, K.COLLECTIVE))
        unnamed = _drop_covered(unnamed, spans_of(trace, np.flatnonzero(talks)))
        unnamed = _drop_seen_otherwise(trace, line, unnamed)
    named = loop.outside_input(_drop_training(loop, calls[of_python]))
    return named | writes | _extend(loop, writes) | unnamed | _sampled_in_savers(loop, line)


def _sampled_in_savers(loop: _Loop, line: int) -> Spans:
    """When samples of the stack show a library's code that writes models, a function of the program that calls that
    write a file, or a line of the program that saves arrays, outside of what trains."""
    rows = sampled_frames(loop.trace, line)
    rows = rows[has_trait(loop.trace, loop.trace.events.type[rows], CodeTrait.OF_SAVER)]
    lines = [each.spans for each in statements_of_loop(loop.trace, line) if saves_arrays(each.statement.called)]
    if not len(rows) and not lines:
        return Spans(loop.start[:0], loop.end[:0])
    found = spans_of(loop.trace, rows) | _files_of_savers(loop.trace, line, rows) if len(rows) else lines[0]
    work = loop.spans(loop.select_kinds(K.TRACED_FUNCTION, K.FUNCTION_RUN, K.BACKWARD, K.OP))
    return (reduce(or_, lines, found) & loop.rest) - work


def _files_of_savers(trace: HostTrace, line: int, savers: I64) -> Spans:
    """When functions of the program that call such code write a file, by the calls of their lines."""
    said, written = statements_of_loop(trace, line), spans_of(trace, savers)
    frames = [statement_of(trace.name_of(each.row)).frame for each in said]
    saving = {
        frame for frame, each in zip(frames, said, strict=True)
        if 2 * (written.overlap_ps(each.samples, each.samples + 1) > 0).sum() > len(each.samples)
    }  # fmt: skip
    return reduce(
        or_,
        (
            each.spans
            for frame, each in zip(frames, said, strict=True)
            if frame in saving and writes_file(each.statement.called)
        ),
        written - written,
    )


def _loop_events(trace: HostTrace, steps: HostSteps, line: int, seen: Spans) -> _Loop:
    first, last = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
    last = first + int(np.searchsorted(trace.events.start_ps[first:last], seen.end[-1]))  # they are in order of time
    end = trace.events.start_ps[first:last] + forest(trace).extent_ps[first:last]
    inside = np.flatnonzero(end > seen.start[0])
    row = first + inside
    return _Loop(trace, steps, row, trace.events.start_ps[row], end[inside], trace.events.kind[row], seen)


def _drop_training(loop: _Loop, calls: I64) -> I64:
    """Python functions without those that run programs or a whole step: their names are misleading."""
    if not len(calls):
        return calls
    work = loop.spans(
        loop.select_kinds(K.TRACED_FUNCTION, K.FUNCTION_RUN, K.EAGER_EXECUTE, K.OP, K.BACKWARD, K.EXECUTOR)
    )
    start, end = loop.start[calls], loop.end[calls]
    busy = work.overlap_ps(start, end) > _LITTLE * (end - start)
    return calls[~(busy | holds_step(loop.trace, start, end))]


def _extend(loop: _Loop, found: Spans) -> Spans:
    """Extends saves beyond the ops that write: from the preceding program to the following program or input."""
    if not len(found.start):
        return found
    eager = loop.select_kinds(K.EAGER_EXECUTE)
    eager = eager[loop.trace.stat_ints(stat_names.IS_FUNCTION, rows=loop.row[eager]) > 0]
    work = loop.spans(np.append(eager, loop.select_kinds(K.TRACED_FUNCTION, K.FUNCTION_RUN))) | loop.feeds
    marks = loop.spans(loop.select_kinds(K.STEP_MARK))
    if not len(work.start):
        return found
    before = np.sort(np.concatenate([work.end, marks.start, loop.rest.start[:1]]))
    after = np.sort(np.concatenate([work.start, marks.end, loop.rest.end[-1:]]))
    since = before[np.maximum(np.searchsorted(before, found.start, side="right") - 1, 0)]
    until = after[np.minimum(np.searchsorted(after, found.end), len(after) - 1)]
    return Spans.union(np.minimum(since, found.start), np.maximum(until, found.end)) & loop.rest


def _saves_without_ops(loop: _Loop) -> Spans:
    """Long gaps right after a state_dict: PyTorch detaches every parameter, then writes without an op."""
    ops = loop.select_kinds(K.OP, K.BACKWARD, K.EXECUTOR, K.GRAPH_LAUNCH)
    if not loop.have(ops, OpTrait.DETACHES).any():
        return Spans(loop.start[:0], loop.end[:0])
    ops = ops[is_outermost(loop.start[ops], loop.end[ops])]
    copies = loop.have(ops, OpTrait.COPIES_OUT)
    every = loop.select_kinds(K.OP)
    parameters = round(int(loop.have(every, OpTrait.ADDS_GRADIENT).sum()) / max(len(loop.steps.number), 1))
    before = loop.start[ops] - np.append(loop.start[ops[:1]], loop.end[ops[:-1]])
    pauses = np.cumsum(before >= LONG_GAP_PS, dtype=np.int64)
    return _gaps_after_detached(loop, ops, pauses, _STATE_DICT_OPS) | _gaps_after_detached(
        loop, ops[~copies], pauses[~copies], max(_STATE_DICT_OPS, parameters)
    )


def _drop_covered(spans: Spans, others: Spans) -> Spans:
    """Drops spans that others largely cover: a state_dict may also be made to send it to other ranks."""
    kept = others.overlap_ps(spans.start, spans.end) < _LITTLE * (spans.end - spans.start)
    return Spans(spans.start[kept], spans.end[kept])


def _drop_seen_otherwise(trace: HostTrace, line: int, gaps: Spans) -> Spans:
    """Drops gaps in which samples of the stack show something else than saving: statistics and averages of parameters
    detach them, too.  Gaps between two samples are taken for what most of the others are."""
    rows = sampled_frames(trace, line)
    if not len(rows) or not len(gaps.start):
        return gaps
    saving = has_trait(trace, trace.events.type[rows], CallTrait.SAVES_STATE)
    is_seen = spans_of(trace, rows).touches(gaps.start, gaps.end)
    is_saved = spans_of(trace, rows[saving]).touches(gaps.start, gaps.end)
    length = gaps.end - gaps.start
    if length[is_seen & ~is_saved].sum() > length[is_saved].sum():
        return Spans(gaps.start[is_saved], gaps.end[is_saved])
    kept = is_saved | ~is_seen
    return Spans(gaps.start[kept], gaps.end[kept])


def _gaps_after_detached(loop: _Loop, ops: I64, pauses: I64, least: int) -> Spans:
    """Long gaps after some detached tensors in a row, without a pause between them.

    Args:
        pauses: how many pauses lie before each op.
    """
    if not len(ops):
        return Spans(loop.start[:0], loop.end[:0])
    gap = np.append(loop.start[ops], loop.end.max())[1:] - loop.end[ops]
    # A gap after each of them is what the loop does with the values of one parameter, such as a histogram.
    follows = np.diff(pauses, prepend=-1) == 0
    run = _run_lengths(loop.have(ops, OpTrait.DETACHES), follows)
    last = np.flatnonzero(run >= least)
    gap_end = loop.end[ops[last]] + gap[last]
    long = gap[last] >= LONG_GAP_PS
    first = loop.start[ops[last - run[last] + 1]]
    return Spans.union(first[long], gap_end[long]) & loop.rest


def _run_lengths(flags: Mask, follows: Mask) -> I64:
    """For each place, how many flags in a row are set up to it, each of which follows the one before."""
    counted = np.cumsum(flags)
    before = np.where(flags, 0, counted)
    before = np.where(flags & ~follows, counted - 1, before)
    return counted - np.maximum.accumulate(before)
