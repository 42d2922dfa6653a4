"""What the training loop does: what work it starts, and where its own Python takes long.

Where the time of the steps goes, the account says.  Here is what it does not count: how often the loop's thread starts
work of each kind, and which stretches of its Python are long, read from the pieces of the account.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.causes import LONG_GAP_PS, Cause, input_functions
from stepscope.analysis.account.contention import asleep_ps
from stepscope.analysis.account.every_step import EveryStep, every_step
from stepscope.analysis.account.stretches import awaits_late_peers, other_threads_computing, time_of_loop
from stepscope.analysis.facts.loop_events import LoopEvents, Starts, loop_events
from stepscope.analysis.facts.work import OpShare, sum_by_name
from stepscope.analysis.purpose.computing import update_ranges
from stepscope.analysis.steps.find_steps import HostSteps, observed_time, whole_steps
from stepscope.analysis.steps.loop_thread import find_loop_line
from stepscope.analysis.steps.stack_samples import spans_of_others
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I32, I64, Mask, count_before, number_pairs
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.torch import LIFTS_VALUES
from stepscope.vocabulary.traits import CodeTrait, OpTrait

K = EventKind

_LEAST_FREED = 0.005  # bytes freed per ps of a gap from which freeing explains the gap: 5 GB per second
_NEAR_FETCH_PS = 1_000_000_000  # largest distance between two fetched values of a burst
_SEVERAL_STEPS = 5  # from this number on, a gap without a counterpart in other steps is chance
PYTHON, FETCHES, BEFORE_WORK, FREEING = "python", "fetches", "before_work", "freeing"
_MOST_NAMES, _MOST_SPANS = 12, 3  # kept: rules name two, and show three


@dataclass(frozen=True)
class TraceInterval:
    """An interval of the trace: what happens and when, in ps from the start of the session."""

    name: str
    start_ps: int
    end_ps: int


@dataclass(frozen=True)
class LoopFacts:
    """What the loop of one host does, summed over the steps.

    Attributes:
        steps: number of steps.
        observed_ps: the observed time (`find_steps.observed_time`).
        places: the longest stretches of each cause of the account, of fetched values and of long Python.
        calls: number of outermost events that start work of a kind, see `Starts`.
        python_ps: time of the long stretches of Python while nothing computes, in places where several steps have one.
        chance_ps: time of such stretches in places where no other step has one: other programs used the core.
        input_ps: time in which the loop's thread makes input, or waits for it, whether the step waits for that or not.
        input_from_python_ps: the part of it in Python functions that count as input because of their names.
        input_reads_files_percent, input_is_native_percent: percent of that part in functions that read files, and in
            native code such as NumPy; None without such functions.
        input_sleeps_percent, python_sleeps_percent: percent of the time of input and of long Python in which the thread
            neither runs nor waits for a core, as while it waits for a disk or a server; None if nothing shows
            that.
        programs: compiled functions that the loop calls, by name.
        eager_ops: ops that the loop dispatches one by one, by name.
        python_calls: Python calls recorded on the thread; recording slowed down each of them.
        silent_ps: time of such stretches of which nothing is known.
        before_program_ps: the part of long gaps before a step's first program, op or transfer, in which the loop makes
            its batch as far as is known.
        after_moves_ps: the part of long gaps spent freeing memory: it follows an op that moved or converted data, or
            enough bytes are freed in it to explain it.
        before_silent_ps, after_silent_ps: the parts of these two in `silent_ps`, not in `python_ps`.
        fetches_ps: time of bursts of values that the program fetches, including the time between fetches of a burst.
        late_ps: time in which the loop waits for ranks that have no core.
    """

    steps: int
    observed_ps: int
    places: dict[str, list[TraceInterval]]
    calls: dict[str, int]
    python_ps: int
    chance_ps: int
    input_ps: int
    input_from_python_ps: int
    input_reads_files_percent: float | None
    input_is_native_percent: float | None
    input_sleeps_percent: float | None
    python_sleeps_percent: float | None
    programs: list[OpShare]
    eager_ops: list[OpShare]
    python_calls: int
    silent_ps: int
    before_program_ps: int
    after_moves_ps: int
    before_silent_ps: int
    after_silent_ps: int
    fetches_ps: int
    late_ps: int = 0


@dataclass(frozen=True)
class LoopTime:
    """When the loop's thread does what the account has no cause for.

    Attributes:
        line: of the thread.
        spans: the long stretches of `PYTHON`; of them, and of those of which nothing else is known, the ones
            `BEFORE_WORK` in which a batch may be made and the ones that are `FREEING` memory; the bursts of `FETCHES`.
        starts: the outermost ops, programs and single ops that it starts: rows of events.
    """

    line: int
    spans: dict[str, Spans]
    starts: I64


def loop_of(trace: HostTrace) -> LoopFacts | None:
    """How the loop of a host spends its time; None if no steps or no host thread were found."""
    found = trace.derived("loop", _find_loop_facts)
    return found[0] if found else None


def loop_time_of(trace: HostTrace) -> LoopTime | None:
    """When it does what; None where `loop_of` is None."""
    found = trace.derived("loop", _find_loop_facts)
    return found[1] if found else None


def _find_loop_facts(trace: HostTrace) -> tuple[LoopFacts, LoopTime] | None:
    steps, every = whole_steps(trace), every_step(trace)
    line = find_loop_line(trace, steps)
    seen = observed_time(trace)
    if steps.source == "none" or line < 0 or every is None or not len(seen.start):
        return None
    loop = loop_events(trace, line, seen)
    idle, silent = (every.spans_of(cause, line) & seen for cause in (Cause.PYTHON, Cause.UNKNOWN))
    long = (idle - other_threads_computing(trace)).drop_shorter(LONG_GAP_PS)
    python = _keep_recurring(loop, steps, long)
    # What comes before and after them and what is freed in them says what these are, whether Python was recorded there
    # or not.
    gaps = _keep_recurring(loop, steps, long | silent.drop_shorter(LONG_GAP_PS))
    before = _gaps_before_work(loop, steps, python, gaps, spans_of_others(trace, line))
    freeing, unknown = _gaps_freeing(loop, gaps), gaps - python
    spans = {PYTHON: python, FETCHES: _fetch_spans(loop) & seen, BEFORE_WORK: before, FREEING: freeing}
    made = time_of_loop(trace, Cause.INPUT) & seen
    calls = input_functions(trace)
    from_python = made & spans_of(trace, calls[trace.events.line[calls] == line])
    starts = np.sort(np.concatenate([loop.outer[each] for each in (Starts.PROGRAM, Starts.EAGER, Starts.OP)]))
    facts = LoopFacts(
        steps=len(steps.number),
        observed_ps=seen.total,
        places={name: _longest_spans(loop, each) for name, each in _places(every, seen, spans).items()},
        calls={each.name.lower(): len(loop.outer[each]) for each in Starts},
        python_ps=python.total,
        chance_ps=long.total - python.total,
        input_ps=made.total,
        input_from_python_ps=from_python.total,
        input_reads_files_percent=_share_with_trait(loop, from_python, CodeTrait.READS_FILE),
        input_is_native_percent=_share_with_trait(loop, from_python, CodeTrait.IS_NATIVE),
        input_sleeps_percent=_asleep_percent(loop, line, made, from_python),
        python_sleeps_percent=_asleep_percent(loop, line, python, python),
        programs=_sum_by_name(loop, loop.outer[Starts.PROGRAM]),
        eager_ops=_sum_by_name(loop, loop.kind_events(K.EAGER_EXECUTE)),
        python_calls=len(loop.kind_events(K.PYTHON_CALL)),
        silent_ps=unknown.total,
        before_program_ps=before.total,
        after_moves_ps=freeing.total,
        before_silent_ps=(before & unknown).total,
        after_silent_ps=(freeing & unknown).total,
        fetches_ps=spans[FETCHES].total,
        late_ps=(awaits_late_peers(trace) & seen).total,
    )
    return facts, LoopTime(line, spans, loop.row[starts])


def _fetch_spans(loop: LoopEvents) -> Spans:
    """Fetches of values: each from the end of the previous one if that is near and no product, backward pass or update
    lies between them, else from its own start.

        ops      f---b---u-iaiai      f, b, u: forward, backward, update; i: a fetch; a: finds the place of a value
        fetches            -----
    """
    rows = loop.outer[Starts.SYNC]
    start, end = loop.start[rows], loop.end[rows]
    ops = loop.outer[Starts.OP]
    works = (loop.kind[ops] == K.BACKWARD) | has_trait(loop.trace, loop.type[ops], OpTrait.MULTIPLIES)
    work = np.sort(np.append(loop.start[ops[works]], loop.trace.events.start_ps[update_ranges(loop.trace)]))
    near = start[1:] - end[:-1] < _NEAR_FETCH_PS
    near &= np.searchsorted(work, end[:-1]) == np.searchsorted(work, start[1:])
    return Spans.union(np.concatenate([start[:1], np.where(near, end[:-1], start[1:])]), end)


# -- names and places --------------------------------------------------------------------------------------------


def _places(every: EveryStep, seen: Spans, spans: dict[str, Spans]) -> dict[str, Spans]:
    found = {cause.name.lower(): every.spans_of(cause) & seen for cause in Cause}
    return found | {name: spans[name] for name in (PYTHON, FETCHES)}


def _longest_spans(loop: LoopEvents, spans: Spans) -> list[TraceInterval]:
    length = spans.end - spans.start
    some = np.flatnonzero(length >= np.sort(length)[-_MOST_SPANS:][:1])
    order = some[np.argsort(-length[some], kind="stable")][:_MOST_SPANS]
    bounds = zip(spans.start[order].tolist(), spans.end[order].tolist(), strict=True)
    return [TraceInterval(_span_name(loop, start, end), start, end) for start, end in bounds]


def _span_name(loop: LoopEvents, start: int, end: int) -> str:
    """The name of the longest event inside a span; empty without one."""
    first, last = np.searchsorted(loop.start, (start, end))
    rows = int(first) + np.flatnonzero(loop.end[first:last] <= end)
    rows = rows[loop.kind[rows] != K.STEP_MARK]
    return loop.name(int(rows[np.argmax(loop.end[rows] - loop.start[rows])])) if len(rows) else ""


def _sum_by_name(loop: LoopEvents, rows: I64) -> list[OpShare]:
    return sum_by_name(loop.trace, loop.row[rows], loop.end[rows] - loop.start[rows])[:_MOST_NAMES]


def _share_with_trait(loop: LoopEvents, claimed: Spans, trait: CodeTrait) -> float | None:
    """Percent of the claimed time inside Python functions with a trait; None without claimed time."""
    if not claimed.total:
        return None
    calls = loop.kind_events(K.PYTHON_CALL)
    calls = calls[has_trait(loop.trace, loop.type[calls], trait)]
    return round(100.0 * (claimed & loop.event_spans(calls)).total / claimed.total, 2)


def _asleep_percent(loop: LoopEvents, line: int, spans: Spans, from_python: Spans) -> float | None:
    """By what the thread used of the processors, else by the recorded Python calls in a part of that time."""
    asleep = asleep_ps(loop.trace, line, spans) if spans.total else None
    if asleep is None:
        return _share_with_trait(loop, from_python, CodeTrait.SLEEPS) or None
    return round(100.0 * asleep / spans.total, 2)


# -- long stretches of Python --------------------------------------------------------------------------------------


def _keep_recurring(loop: LoopEvents, steps: HostSteps, gaps: Spans) -> Spans:
    """Drops gaps in places where no other step has a gap of half the length: there, other programs used the core, or
    the step stalled.  A gap around a whole step has no place in it, and stays.

    A place is the event before the gap: the n-th of its name, counted from the start or from the end of the step.
    Marks of steps, which may be named by number, are all alike.
    """
    if len(steps.number) < _SEVERAL_STEPS or not len(gaps.start):
        return gaps
    before = np.maximum(np.searchsorted(loop.start, gaps.start, side="right") - 1, 0)
    names = np.where(loop.kind == K.STEP_MARK, -1, loop.type).astype(np.int64)
    first, last = np.searchsorted(steps.start_ps, np.stack([gaps.start, gaps.end]))
    kept = last - first > 1
    for place in _counts_within_steps(loop, steps, names, names[before]):
        kept |= _has_like(number_pairs(names[before], place[before])[0], gaps.end - gaps.start)
    return Spans(gaps.start[kept], gaps.end[kept])


def _has_like(group: I32, length: I64) -> Mask:
    """Whether another of the same group is at least half as long: bool of shape (n,)."""
    order = np.lexsort((length, group))
    same = group[order][1:] == group[order][:-1]
    longer_follows = np.append(same, False)
    half_before = np.append(False, same & (2 * length[order][:-1] >= length[order][1:]))
    found = np.zeros(len(group), np.bool_)
    found[order] = longer_follows | half_before
    return found


def _counts_within_steps(loop: LoopEvents, steps: HostSteps, names: I64, chosen: I64) -> tuple[I64, I64]:
    """For each event with a chosen name, how many of its name precede it in its step, and how many follow, itself
    included; entries of other events have no meaning."""
    rows = np.flatnonzero(np.isin(names, chosen))
    step = np.searchsorted(steps.start_ps, loop.start[rows], side="right")
    group = names[rows] * (len(steps.number) + 1) + step
    since, until = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    since[rows] = count_before(group)
    until[rows] = count_before(group[::-1])[::-1] + 1
    return since, until


def _gaps_before_work(loop: LoopEvents, steps: HostSteps, python: Spans, gaps: Spans, others: Spans) -> Spans:
    """The long gaps in which the loop makes its batch, as far as is known: those of Python before a step's first
    program, transfer or op, from its mark on, but for what samples of the stack show there.

    Where that first work copies an array of the host in, the array comes from the whole gap, also from before the mark,
    and also where nothing was recorded.  If the loop reads a value in that gap, Python may be busy with that value
    instead.

        marks    M0---      M1---      M2---
        loop     TP   ppppppTP   ppppppTP           T copies a batch in, p makes it

    Args:
        gaps: those of Python, and those of which nothing is known.
        others: when the samples show functions that make no input by their names.
    """
    rows = _first_work(loop)
    at = np.searchsorted(loop.start[rows], steps.start_ps)
    step = np.flatnonzero(at < len(rows))
    step = step[loop.start[rows[at[step]]] < steps.end_ps[step]]
    first = steps.start_ps.copy()
    first[step] = loop.start[rows[at[step]]]
    ends = np.append(np.maximum.accumulate(loop.end[rows]), steps.start_ps[:1])
    after = np.where(at > 0, ends[at - 1], steps.start_ps)[step]
    reads = loop.start[loop.outer[Starts.SYNC]]
    made = _takes_array_in(loop, rows[at[step]])
    made &= np.searchsorted(reads, after) == np.searchsorted(reads, first[step])
    making = Spans.union(np.minimum(after, steps.start_ps[step])[made], first[step][made])
    return (gaps & making) | (python & (Spans.union(steps.start_ps, first) - others))


def _first_work(loop: LoopEvents) -> I64:
    """What a step may start with: programs, transfers and ops, but for those that make a tensor from Python numbers."""
    work = [loop.outer[each] for each in (Starts.PROGRAM, Starts.EAGER, Starts.OP)]
    if loop.trace.strings.find(LIFTS_VALUES) > 0:
        work[2] = work[2][~has_trait(loop.trace, loop.type[work[2]], OpTrait.MAKES_TENSOR)]
    return np.sort(np.concatenate([*work, loop.kind_events(K.COPY_HOST_TO_DEVICE_CALL)]))


def _takes_array_in(loop: LoopEvents, rows: I64) -> Mask:
    """Whether an array of the host is copied in during each of some events, such as the call of a program."""
    copies = loop.start[loop.kind_events(K.COPY_HOST_TO_DEVICE_CALL)]
    found: Mask = np.searchsorted(copies, loop.start[rows]) < np.searchsorted(copies, loop.end[rows])
    return found


def _gaps_freeing(loop: LoopEvents, gaps: Spans) -> Spans:
    """The long gaps in which memory is freed: they follow an op that only moves data, and are no longer than that, as
    writing memory takes longer than freeing it, or many bytes are freed in them."""
    ops = loop.outer[Starts.OP]
    if not len(ops) or not len(gaps.start):
        return Spans(gaps.start[:0], gaps.end[:0])
    last = np.searchsorted(loop.start[ops], gaps.start, side="right") - 1
    moves = has_trait(loop.trace, loop.type[ops], OpTrait.MOVES_DATA | OpTrait.CONVERTS)
    length = gaps.end - gaps.start
    follows = (last >= 0) & moves[last] & (length <= (loop.end[ops] - loop.start[ops])[last])
    freeing = follows | (_freed_bytes(loop, gaps) >= length * _LEAST_FREED)
    return Spans(gaps.start[freeing], gaps.end[freeing])


def _freed_bytes(loop: LoopEvents, gaps: Spans) -> I64:
    """Recorded bytes freed in each gap."""
    frees = loop.kind_events(K.DEALLOCATION)
    size = np.abs(loop.trace.stat_ints(stat_names.ALLOCATED_BYTES, rows=loop.row[frees]))
    freed = np.append(0, np.cumsum(size))
    found: I64 = np.diff(freed[np.searchsorted(loop.start[frees], np.stack([gaps.start, gaps.end]))], axis=0)[0]
    return found
