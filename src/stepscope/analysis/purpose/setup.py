"""What the steps make anew that could be made once, before the loop: iterators of loaders, pipelines, modules.

What is made once for a run, or once per epoch, shows in few of the captured steps; what every step makes shows in most
of them.  Three records tell it, the surest first:

    ops of a loader that only begin an epoch, in the wait for each batch      random_ randperm | stack stack ...
    ops that build a pipeline, between two calls of the program that trains   RangeDataset MapDataset MakeIterator
    calls or samples of the stack that show a library's constructor           torch/optim/adam.py __init__
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.functions import started_by
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.sampled_time import sampled_time_of
from stepscope.analysis.account.selectors import Portion, join_parts, part_of_events, part_of_stretches
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import holds_step, observed_time, whole_steps
from stepscope.analysis.steps.stack_samples import sampled_frames
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.spans import Spans, is_outermost, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CodeTrait, SetUpTrait

K = EventKind

# Of the steps that need to show it: an epoch that begins within a capture shows in one or two.
_MOST_STEPS = 0.8  # where every step was recorded; the first and the last may be cut
_FEWEST_STEPS = 3  # where samples show it, which miss most of what is short

_OTHERS = 2  # samples that do not show it: of what is around the loop none but one at an edge are such

_MADE: dict[str, SetUpTrait] = {
    "fit": SetUpTrait.RUNS_LOOP,
    "loader": SetUpTrait.MAKES_LOADER,
    "pipeline": SetUpTrait.MAKES_PIPELINE,
    "optimizer": SetUpTrait.MAKES_OPTIMIZER,
    "module": SetUpTrait.MAKES_MODULE,
    "threads": SetUpTrait.MAKES_THREADS,
    "walk": SetUpTrait.WALKS_MODULE,
}


@dataclass(frozen=True)
class SetUp:
    """Something that the steps make anew.

    Attributes:
        what: a key of the table of words, such as `loader`.
        name: of the call that is made anew, where it is known, such as `fit`; else empty.
        spans: when the loop's thread makes it.
        steps: in how many of the whole steps it shows.
        is_certain: recorded in every step, not only sampled in some.
    """

    what: str
    name: str
    spans: Spans
    steps: int
    is_certain: bool

    @property
    def overlaps(self) -> bool:
        """Whether what the step computes may run meanwhile, so that a replay alone tells what it costs."""
        return self.what == "walk"

    @property
    def cause(self) -> str:
        """The cause of the account that it is mostly counted as."""
        return "input" if self.what == "loader" else "python"


def set_up_of(trace: HostTrace) -> SetUp | None:
    """What a host's steps make anew that takes most time; found once per trace, None where nothing does."""
    return trace.derived("set up in each step", _find_set_up)


def part_of_set_up(model: StepModel, made: SetUp) -> Portion:
    """The time in which the loop's thread makes it, with what that starts elsewhere."""
    trace, line, spans = model.trace, model.threads.main, made.spans
    if made.overlaps:
        return part_of_stretches(model, line, spans)
    rows = _rows_of(trace, line)
    start = trace.events.start_ps[rows]
    inside = rows[spans.overlap_ps(start, start + 1) > 0]
    return join_parts([part_of_stretches(model, line, spans), part_of_events(model, started_by(trace, inside))])


def _rows_of(trace: HostTrace, line: int) -> I64:
    return np.arange(trace.lines.event_begin[line], trace.lines.event_end[line], dtype=np.int64)


def _find_set_up(trace: HostTrace) -> SetUp | None:
    line, seen = threads_of(trace).main, observed_time(trace)
    if line < 0 or not len(seen.start) or len(whole_steps(trace).number) < _FEWEST_STEPS:
        return None
    shown = _find_in_frames(trace, line)
    known = [each for each in (_restarted_loader(trace, line), _built_pipeline(trace, line)) if each is not None]
    whole = [each for each in shown if each.what == "fit"]
    if known and len(whole) > 1:
        return None  # one such call lies in the steps of another, as in a callback: it could be left out as a whole
    if known and whole:  # what a library's loop over batches makes is made anew with each call of it
        known = [SetUp("fit", whole[0].name, each.spans, each.steps, True) for each in known]
    found = known or [each for each in shown if each.what != "fit"]
    return max(found, key=lambda each: (each.spans & seen).total, default=None)


def _restarted_loader(trace: HostTrace, line: int) -> SetUp | None:
    """A loader that draws the order of its whole data set before each batch: the ops at the start of each wait, up to
    the first that makes the batch."""
    waits = events_of_kind(trace, K.INPUT_WAIT)
    waits = waits[trace.events.line[waits] == line].astype(np.int64)
    if not len(waits):
        return None
    events, ops = trace.events, events_of_kind(trace, K.OP)
    ops = ops[events.line[ops] == line].astype(np.int64)
    if not has_trait(trace, events.type[ops], SetUpTrait.DRAWS_ORDER).any():
        return None
    begin, end = events.start_ps[ops], events.start_ps[ops] + forest(trace).extent_ps[ops]
    outer = is_outermost(begin, end)
    ops, begin, end = ops[outer], begin[outer], end[outer]
    orders, leading = (
        has_trait(trace, events.type[ops], each)
        for each in (SetUpTrait.DRAWS_ORDER, SetUpTrait.PART_OF_DRAWING | SetUpTrait.DRAWS_ORDER)
    )
    starts, stops = [], []
    for wait in waits.tolist():
        low, high = np.searchsorted(begin, (events.start_ps[wait], events.start_ps[wait] + events.duration_ps[wait]))
        others = np.flatnonzero(~leading[low:high])
        leads = int(others[0]) if len(others) else int(high - low)
        if leads < int(high - low) and leads > 1 and orders[low : low + leads].any():
            starts.append(int(events.start_ps[wait]))
            stops.append(int(begin[low + leads]))
    return _confirm_steps(trace, "loader", np.array(starts, np.int64), np.array(stops, np.int64))


def _built_pipeline(trace: HostTrace, line: int) -> SetUp | None:
    """A pipeline of tf.data that is built, or begun, between each two calls of the program that trains, up to the end
    of the fetch that fills it, and of the release of the one before, which waits for the threads of that."""
    events = trace.events
    eager = events_of_kind(trace, K.EAGER_EXECUTE).astype(np.int64)
    eager = eager[events.line[eager] == line]
    makes = eager[has_trait(trace, events.type[eager], SetUpTrait.MAKES_PIPELINE)]
    begins = makes[has_trait(trace, events.type[makes], SetUpTrait.BEGINS_PIPELINE)]
    if not len(begins):
        return None
    rows = _rows_of(trace, line)
    runs = rows[is_any_kind(events.kind[rows], (K.FUNCTION_RUN, K.STEP_MARK, K.TRACED_FUNCTION))]
    trains = np.sort(events.start_ps[runs])
    releases = has_trait(trace, events.type[rows], SetUpTrait.RELEASES_TENSOR)
    fetches = rows[is_any_kind(events.kind[rows], (K.INPUT_WAIT, K.ITERATOR)) | releases]  # the first one fills it
    group, fetched = (np.searchsorted(trains, events.start_ps[each]) for each in (makes, fetches))
    of_begun = distinct(np.searchsorted(trains, events.start_ps[begins])).tolist()
    starts, stops = [], []
    for each in of_begun:
        own = makes[group == each]
        starts.append(int(events.start_ps[own].min()))
        own = np.append(own, fetches[fetched == each])
        stops.append(int((events.start_ps[own] + forest(trace).extent_ps[own]).max()))
    return _confirm_steps(trace, "pipeline", np.array(starts, np.int64), np.array(stops, np.int64))


def _confirm_steps(trace: HostTrace, what: str, start: I64, stop: I64) -> SetUp | None:
    """What was made in such stretches, if most of the steps have one."""
    number = len(whole_steps(trace).number)
    inside = _steps_of(trace, start)
    if not len(start) or inside < max(_MOST_STEPS * (number - 1), _FEWEST_STEPS - 1):
        return None
    return SetUp(what, "", Spans.union(start, stop) & observed_time(trace), inside, True)


def _steps_of(trace: HostTrace, times: I64) -> int:
    """In how many whole steps some moments lie."""
    steps = whole_steps(trace)
    at = np.searchsorted(steps.start_ps, times, side="right") - 1
    inside = (at >= 0) & (times < steps.until_ps[np.maximum(at, 0)])
    return len(distinct(at[inside]))


def _find_in_frames(trace: HostTrace, line: int) -> list[SetUp]:
    """What constructors of libraries make in several steps, as recorded calls or samples of the loop's thread show."""
    calls = events_of_kind(trace, K.PYTHON_CALL)
    rows, sampled = calls[trace.events.line[calls] == line].astype(np.int64), None
    if not len(rows):
        rows = sampled_frames(trace, line)
        sampled = sampled_time_of(trace, line) if len(rows) else None
    if not len(rows):
        return []
    length = trace.events.duration_ps if sampled is not None else forest(trace).extent_ps
    savers = rows[has_trait(trace, trace.events.type[rows], CodeTrait.OF_SAVER)]  # some make what they save to compare
    start = trace.events.start_ps[savers]
    saved = Spans.union(start, start + length[savers]).overlap_ps(
        trace.events.start_ps[rows], trace.events.start_ps[rows] + 1
    )
    rows = rows[saved == 0]
    if sampled is None:  # what holds a step is around the loop, such as the start of a process that was forked
        start = trace.events.start_ps[rows]
        rows = rows[~holds_step(trace, start, start + length[rows]) | _runs_loop(trace, rows)]
    found = []
    groups = [
        (what, own)
        for what, trait in _MADE.items()
        for own in _split_by_name(trace, rows[has_trait(trace, trace.events.type[rows], trait)], what == "fit")
    ]
    for what, own in groups:
        start = trace.events.start_ps[own]
        spans, times = Spans.union(start, start + length[own]), start
        if sampled is not None:
            spans, _, times = sampled.spans_shown(spans)
            if what != "fit" and len(sampled.times) - len(times) < _OTHERS:
                continue  # the same
        if what == "walk":  # samples tell only roughly when the compiled call between two walks begins
            inside = _rows_of(trace, line)
            kinds = is_any_kind(trace.events.kind[inside], (K.TRACED_FUNCTION, K.FUNCTION_RUN, K.EXECUTOR))
            spans = spans - spans_of(trace, inside[kinds])
        steps = _steps_of(trace, times)
        if steps >= _FEWEST_STEPS and _recurs(trace, spans):
            name = trace.name_of(int(own[0])).rpartition(" ")[2]
            found.append(SetUp(what, name, spans & observed_time(trace), steps, False))
    return found


def _runs_loop(trace: HostTrace, rows: I64) -> Mask:
    return has_trait(trace, trace.events.type[rows], SetUpTrait.RUNS_LOOP)


def _split_by_name(trace: HostTrace, rows: I64, apart: bool) -> list[I64]:
    """The rows, those of each name apart if that is wanted; nothing without rows."""
    if not apart:
        return [rows] if len(rows) else []
    return [rows[trace.events.type[rows] == each] for each in distinct(trace.events.type[rows]).tolist()]


def _recurs(trace: HostTrace, spans: Spans) -> bool:
    """Whether no one step has most of some time."""
    steps = whole_steps(trace)
    spent = spans.overlap_ps(steps.start_ps, steps.until_ps)
    return bool(2 * spent.max(initial=0) <= spent.sum())
