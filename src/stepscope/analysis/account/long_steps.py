"""Long steps that come again since they do more than the others, such as each tenth one, which saves.

length   1 1 1 3 1 1 1 3 1 1      3: a function runs that no other step calls, or twice as many ops: part of the loop
length   1 1 1 3 1 3 1 1 1 1      3: the same takes longer: these stalled
length   1 1 1 3 1 1 1 1 1 1      nothing says whether and when it comes again
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.contention import lost_spans
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.stack_samples import sampled_frames
from stepscope.analysis.trace.columns import is_any_kind, is_thread_event
from stepscope.analysis.trace.grouping import device_rows
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import F64, I64, Mask, median
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.python import place_of
from stepscope.vocabulary.traits import CodeTrait

K = EventKind

OUTLIER = 1.5  # times the median step: what the overview calls a slow step
_MOST_OF = 0.5  # of the additional time, by the word
_HARDLY = 0.1  # of what a function takes in a long step: others that have no more of it do something else
_ASKED_FOR = (
    K.OP, K.BACKWARD, K.EAGER_EXECUTE, K.TRACED_FUNCTION, K.PYTHON_CALL, K.CHECKPOINT, K.COMPILE, K.ANNOTATION,
    K.INPUT_WAIT,
)  # fmt: skip
_COMPARED = 16  # of the other steps: more tell no more of what all of them do


@dataclass(frozen=True)
class LongSteps:
    """Long steps that come again.

    Attributes:
        numbers: of the steps; every: how many steps lie from one to the next, where that is always the same, else None.
        cause: what they spend most of their additional time on, see Cause.
        share: of the time of all usual steps that which these spend more on it, 0 to 1.
        name, file, line: the function that only they run, with its place if it is the program's; empty if not known.
    """

    numbers: tuple[int, ...]
    every: int | None
    cause: str
    share: float
    name: str = ""
    file: str | None = None
    line: int | None = None


def own_lengths(trace: HostTrace, steps: I64) -> I64:
    """How long steps last without what the loop waits for a free core: int64 of shape (steps,), ps.

    Args:
        steps: rows of `steps_of`.
    """
    found, lost = steps_of(trace), lost_spans(trace)
    length: I64 = found.length_ps[steps]
    return length if lost is None else length - lost.overlap_ps(found.start_ps, found.until_ps)[steps]


def find_long_steps(trace: HostTrace, steps: I64, spent_ps: I64) -> LongSteps | None:
    """The long steps that come again; None without two of them.

    Args:
        steps: rows of `steps_of`, the usual ones in order of time.
        spent_ps: int64 of shape (steps, causes), what each is spent on.
    """
    length, own = steps_of(trace).length_ps[steps], own_lengths(trace, steps)
    # A step that saves may also wait for a core while it does.
    extra = np.where(own > OUTLIER * median(own), own - median(own), length - median(length))
    is_long = (own > OUTLIER * median(own)) | (length > OUTLIER * median(length))
    long, others = np.flatnonzero(is_long), np.flatnonzero(~is_long)
    if len(long) < 2 or len(others) < 2:
        return None
    others = others[:: max(len(others) // _COMPARED, 1)][:_COMPARED]
    does_more, types = _find_additional(trace, steps, long, others, extra)
    long = long[does_more]
    if len(long) < 2 or long[-1] - long[0] < len(long):  # without another step between them they are one event
        return None
    more = spent_ps[long].mean(axis=0) - spent_ps[others].mean(axis=0)
    more[Cause.CONTENTION] = 0
    if more.argmax() == Cause.COMPILE:  # that comes again with what makes it do so, see `compile_again`
        return None
    apart, every = np.diff(long), int(long[1] - long[0])
    is_regular = (apart == every).all() and long[0] < every and long[-1] + every >= len(steps)
    name, file, line = _name_one(trace, types)
    return LongSteps(
        numbers=tuple(steps_of(trace).number[steps[long]].tolist()),
        every=every if is_regular else None,
        cause=Cause(int(more.argmax())).name.lower(),
        share=float(max(more.max(), 0.0) * len(long) / max(int(spent_ps.sum()), 1)),
        name=name,
        file=file,
        line=line,
    )


def _find_additional(trace: HostTrace, steps: I64, long: I64, others: I64, extra: F64) -> tuple[Mask, I64]:
    """Which long steps do the same thing for most of their additional time, which the others hardly do, or start far
    less often: bool of shape (long,); and the types of events that this is, the longest first."""
    number = np.full(len(steps_of(trace).number), -1, np.int64)
    number[steps[np.append(long, others)]] = np.arange(len(long) + len(others))
    types, spent, starts = _sum_by_type(trace, number, len(long) + len(others))
    usual = np.median(spent[:, len(long) :], axis=1)[:, None]
    often = starts[:, len(long) :].max(axis=1)[:, None]
    mine, is_counted = spent[:, : len(long)], (starts.max(axis=1, initial=0.0) > 0)[:, None]
    often = np.where(often > 0, np.maximum(OUTLIER * often, often + 1), 0)  # one more may be of the next step
    never = spent[:, len(long) :].max(axis=1)[:, None] <= _HARDLY * mine
    more = np.where(is_counted, starts[:, : len(long)] > often, never)
    more = more & (mine > 0) & (mine - usual >= _MOST_OF * extra[long])
    does_more: Mask = more[int(more.sum(axis=1).argmax())] if len(types) else np.zeros(len(long), np.bool_)
    common = np.flatnonzero(more[:, does_more].all(axis=1)) if does_more.any() else types[:0]
    return does_more, types[common[np.argsort(-mine[common].sum(axis=1), kind="stable")]]


def _sum_by_type(trace: HostTrace, number: I64, count: int) -> tuple[I64, F64, F64]:
    """What is done in some steps by type of event: the types, float64 of shape (types, steps) for how long, in ps, and
    the same for how many of them start, where that is known.

    Args:
        number: of each step its place among the chosen ones, -1 for others.
    """
    found, events = steps_of(trace), trace.events
    near = Spans.union(found.start_ps[number >= 0], found.until_ps[number >= 0])
    parts = [(rows[_touches(trace, near, rows)], counts) for rows, counts in _rows_of_steps(trace)]
    rows = np.concatenate([each for each, _ in parts])
    is_counted = np.repeat([counts for _, counts in parts], [len(each) for each, _ in parts])
    start, end = events.start_ps[rows], events.start_ps[rows] + events.duration_ps[rows]
    order = np.argsort(found.start_ps, kind="stable")
    begins = found.start_ps[order]
    first = np.maximum(np.searchsorted(begins, start, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(begins, end, side="left") - 1, first)
    at = np.repeat(np.arange(len(rows)), last - first + 1)  # an event in several steps counts in each
    step = np.repeat(first, last - first + 1) + np.arange(len(at)) - np.searchsorted(at, at)
    own = order[step]
    kept = number[own] >= 0
    at, own = at[kept], own[kept]
    inside = np.minimum(end[at], found.until_ps[own]) - np.maximum(start[at], found.start_ps[own])
    types, place = np.unique(events.type[rows[at]].astype(np.int64), return_inverse=True)
    cell, cells = place.reshape(-1) * count + number[own], len(types) * count
    begun = (start[at] >= found.start_ps[own]) & is_counted[at]
    spent, starts = (np.bincount(cell, each, cells).reshape(-1, count) for each in (np.maximum(inside, 0), begun))
    return types, spent.astype(np.float64), starts.astype(np.float64)


def _touches(trace: HostTrace, spans: Spans, rows: I64) -> Mask:
    start = trace.events.start_ps[rows]
    return spans.touches(start, start + trace.events.duration_ps[rows])


def _rows_of_steps(trace: HostTrace) -> Iterator[tuple[I64, bool]]:
    """What the program asks for, by any thread, what samples show its loop in, and the work of devices; and whether its
    number is known: samples tell how long a function runs, not how often."""
    yield np.flatnonzero(is_any_kind(trace.events.kind, _ASKED_FOR) & is_thread_event(trace)), True
    yield sampled_frames(trace, threads_of(trace).main) if threads_of(trace).main >= 0 else np.empty(0, np.int64), False
    yield device_rows(trace), True


def _name_one(trace: HostTrace, types: I64) -> tuple[str, str | None, int | None]:
    """The name, file and line of the innermost function of the program, else of a library."""
    names = [trace.strings[int(trace.event_types.name[each])] for each in types.tolist()]
    users = [name for name in names if name_has(name, CodeTrait.OF_USER)]
    code = [name for name in names if name_has(name, CodeTrait.IS_CODE)]
    if not (users or code):
        return "", None, None
    name, file, line = place_of((users or code)[-1])
    return (name, file, line) if users else (name, None, None)
