"""What each part of the steps that advice is about is followed down to: a line of the program, an op or a stage.

A part is the time that a change would remove, in all steps: stretches of the loop's thread, ops, or device work.  Its
culprit is found in that time alone.  The causes of the account are parts, too.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.account import AccountRow, account_of
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.culprits import Culprit, Finder, culprit_of_time
from stepscope.analysis.account.every_step import every_step
from stepscope.analysis.account.functions import LoopFunction, functions_of_loop
from stepscope.analysis.account.innermost import cut_by_events
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.selectors import work_launched_by
from stepscope.analysis.account.statements import main_statement, statement_that_calls
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.facts.device_facts import work_by_kind
from stepscope.analysis.facts.feeding import feed_of, ops_of_iterators
from stepscope.analysis.facts.loop import BEFORE_WORK, FETCHES, PYTHON, LoopTime, loop_time_of
from stepscope.analysis.facts.work import FEW_PROGRAMS, work_events_of
from stepscope.analysis.purpose.computing import backward_runs, update_ranges
from stepscope.analysis.purpose.excess import DROPPED, ENCODED, PREFIX, UNUSED, Excess, excesses_of
from stepscope.analysis.purpose.setup import SetUp
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.analysis.trace.grouping import device_rows, forest, is_device_work
from stepscope.analysis.trace.source_lines import knows_lines
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, distinct
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.python import place_of, runs_layer
from stepscope.vocabulary.traits import OpTrait

K = EventKind

WORTH_NAMING = 0.02  # of the step
_NEARLY_ALL = 0.8  # of what is made anew: samples blur the edges of the function that makes it
_ALL = 0.95  # of the steps: what takes so much is the step itself, as for `facts.lines`
_OF_CALLERS = (UNUSED, DROPPED, PREFIX, ENCODED)  # what is mended where a part of the model is called
_START_PS = 15_000_000  # what an op counts at most where the number of ops costs
_ALIKE = 0.25  # so much shorter or longer, a part is still a cause of the account
# Parts that are causes of the account, in all steps: the median step may lack what only some steps do.
_OF_CAUSE = (Cause.INPUT, Cause.CHECKPOINT, Cause.COMPILE, Cause.TRANSFER)
_OF_LOOP = {PYTHON: "python", FETCHES: "fetches", BEFORE_WORK: "input"}  # other parts of the loop's thread
# What the account follows further than the loop's thread: to the stage that is late, to the program that is compiled.
_OF_PATH = ("input", "compile")


def culprits_of(trace: HostTrace) -> dict[str, AccountRow]:
    """The parts of a host's steps with their culprits: the causes of the account and what the modules of facts count;
    times per step.  Made once per trace; empty without steps."""
    return trace.derived("culprits of parts", _follow_parts)


def _follow_parts(trace: HostTrace) -> dict[str, AccountRow]:
    account = account_of(trace)
    if account is None:
        return {}
    of_account = {row.cause: row for row in account.rows if row.ps >= WORTH_NAMING * account.step_ps}
    steps, least_ps = len(whole_steps(trace).number), WORTH_NAMING * observed_time(trace).total
    # Work of a device may hide what the loop's thread does meanwhile.
    kept = of_account if is_device_work(trace).any() else [name for name in _OF_PATH if name in of_account]
    found = dict(of_account)
    for name, cause, total_ps, culprit in _list_parts(trace, least_ps):
        if name not in kept:
            found[name] = _average_over_steps(cause, total_ps, culprit, steps, of_account.get(cause))
    return found


def _average_over_steps(
    cause: str, total_ps: int, culprit: Culprit | None, steps: int, known: AccountRow | None
) -> AccountRow:
    """The part in a mean step; the row of the account where that says the same of about as much time."""
    if culprit is not None:
        calls = None if culprit.calls is None else max(round(culprit.calls / steps), 1)
        ps, length_ps = round(culprit.ps / steps), round(culprit.length_ps / steps)
        culprit = replace(culprit, calls=calls, ps=ps, length_ps=length_ps)
        same = known is not None and known.culprit is not None and known.culprit.place == culprit.place
        if known is not None and same and abs(known.ps - total_ps / steps) <= _ALIKE * known.ps:
            return known
    return AccountRow(cause, round(total_ps / steps), culprit, None, None)


def _list_parts(trace: HostTrace, least_ps: float) -> Iterator[tuple[str, str, int, Culprit | None]]:
    """Name, cause, total time in ps and culprit of each part that is worth it."""
    loop, every = loop_time_of(trace), every_step(trace)
    if loop is not None and every is not None:
        seen = observed_time(trace)
        of_cause = {cause: every.spans_of(cause) & seen for cause in _OF_CAUSE}
        spans = {cause.name.lower(): each for cause, each in of_cause.items()}
        for name, each in (spans | {name: loop.spans[name] for name in _OF_LOOP}).items():
            if each.total >= least_ps:
                culprit = _who_copies(trace, loop.line, each) if name == "transfer" else None
                yield name, _OF_LOOP.get(name, name), each.total, culprit or culprit_of_time(trace, loop.line, each)
        exchange = every.spans_of(Cause.COMMUNICATION) & seen  # an op of another thread; the program waits in a line
        waits = culprit_of_time(trace, loop.line, exchange) if exchange.total >= least_ps else None
        if waits is not None and waits.file:
            yield "communication", "communication", exchange.total, waits
        if not is_device_work(trace).any():
            others = reduce(operator.or_, [*of_cause.values(), every.spans_of(Cause.COMMUNICATION), loop.spans[PYTHON]])
            yield "starts", "launch", *_who_starts_most(trace, loop, seen - others)
            yield from _parts_of_programs(trace, loop)
    if len(stages := _late_stages(trace)):
        yield "feed", "input", int(trace.events.duration_ps[stages].sum()), _culprit_within(trace, stages)
    for name, (rows, own_ps) in work_events_of(trace).items():
        if own_ps.sum() >= least_ps:
            yield name, "host_compute", int(own_ps.sum()), _culprit_of_computing(trace, rows, own_ps)
    for excess in excesses_of(trace):
        if excess.made is not None:
            yield excess.kind, excess.made.cause, excess.ps, _who_makes(trace, excess.made)
            continue
        # The program has a line for what runs forward; of backward work alone the line is that which starts it, or that
        # which ran it forward where a part of a pass is not needed.
        forward = excess.rows[trace.events.kind[excess.rows] != K.BACKWARD]
        ps = trace.events.duration_ps
        is_forward = 2 * ps[forward].sum() >= ps[excess.rows].sum()
        rows, follows = (forward, False) if is_forward else (excess.rows, excess.kind == DROPPED)
        who = _who_calls(trace, excess) if excess.kind in _OF_CALLERS else None
        who = who or _culprit_of_computing(trace, rows, trace.events.duration_ps[rows], follows)
        yield excess.kind, "host_compute", excess.ps, who
    for name, rows in work_by_kind(trace).items():
        ps = trace.events.duration_ps[rows]
        if ps.sum() >= least_ps:
            yield name, "device_compute", int(ps.sum()), _culprit_of_kind(trace, rows, ps)


def _who_calls(trace: HostTrace, excess: Excess) -> Culprit | None:
    """The outermost function of the program that holds such work, forward, and does not train: how it calls the layers
    that compute is to change, not they; None where no samples show it."""
    main, seen = threads_of(trace).main, observed_time(trace)
    forward = forward_events(trace, excess.rows)
    spans = spans_of(trace, forward[(forward >= 0) & (trace.events.line[forward] == main)])
    trains = np.sort(trace.events.start_ps[np.append(backward_runs(trace), update_ranges(trace))])
    parts = [each for each in _holders(trace, spans) if len(each.samples) and each.spans.total < _ALL * seen.total]
    parts = [each for each in parts if not (each.certain.overlap_ps(trains, trains + 1) > 0).any()]
    outer = max(parts, key=lambda each: ((each.spans & spans).total, each.spans.total, -each.frame), default=None)
    if outer is None:
        return None
    frame, said = trace.name_of(outer.frame), None
    if runs_layer(place_of(frame)[0]):  # the model itself, which other lines may call as well
        frame, said = statement_that_calls(trace, main, frame, spans) or (frame, None)
    return Culprit(*place_of(frame), None, None, None, excess.ps, statement=said)


def _who_makes(trace: HostTrace, made: SetUp) -> Culprit | None:
    """The innermost function of the program that makes something anew, also where it runs the loop."""
    inner = min(_holders(trace, made.spans), key=lambda each: (each.spans.total, -each.frame), default=None)
    if inner is None:
        return culprit_of_time(trace, threads_of(trace).main, made.spans)
    frame = trace.name_of(inner.frame)
    name, file, line = place_of(frame)
    statement = main_statement(trace, threads_of(trace).main, frame, made.spans)
    return Culprit(name, file, line, None, None, None, made.spans.total, made.name or None, statement)


def _holders(trace: HostTrace, spans: Spans) -> list[LoopFunction]:
    """The functions of the program that hold nearly all of some time."""
    return [each for each in functions_of_loop(trace) if (each.spans & spans).total >= _NEARLY_ALL * spans.total > 0]


def _culprit_of_kind(trace: HostTrace, rows: I64, ps: I64) -> Culprit | None:
    """The line that asks for one kind of device work; the op that does where no line is known, or only that of all
    computation (of all work where the step waits for no computation), which says nothing about one kind."""
    finder, every = Finder(trace, rows.astype(np.int64), ps), np.arange(len(rows))
    if not len(events_of_kind(trace, K.PYTHON_CALL)):
        return finder.op_culprit(every)
    culprit, account = finder.culprit(every), account_of(trace)
    row = next((row for row in account.rows if row.cause == "device_compute"), None) if account else None
    common = row.culprit if row is not None else _culprit_of_all_work(trace)
    is_common = culprit is None or culprit.file is None or (common is not None and common.place == culprit.place)
    return finder.op_culprit(every) if is_common else culprit


def _culprit_of_all_work(trace: HostTrace) -> Culprit | None:
    rows = device_rows(trace)
    return trace.derived(
        "culprit of all device work", lambda _: _culprit_of_events(trace, rows, trace.events.duration_ps[rows])
    )


def _culprit_of_events(trace: HostTrace, rows: I64, ps: I64) -> Culprit | None:
    return Finder(trace, rows.astype(np.int64), ps).culprit(np.arange(len(rows)))


def _culprit_of_computing(trace: HostTrace, rows: I64, ps: I64, follows: bool = True) -> Culprit | None:
    """The culprit of ops: the line that a compiled program was traced from, else what samples of the loop's thread show
    meanwhile, else that of the ops, or of the work that they launch.

    Args:
        follows: backward work is followed to what ran forward.
    """
    if knows_lines(trace) and (traced := _culprit_of_events(trace, rows, ps)) is not None and traced.file:
        return traced
    loop, launched = loop_time_of(trace), work_launched_by(trace, rows) if is_device_work(trace).any() else rows[:0]
    if loop is not None:
        finder = Finder(trace, rows.astype(np.int64), ps)
        sampled = finder.computed_by(np.arange(len(rows)), loop.line, spans_of(trace, rows), follows)
        if sampled is not None:
            return sampled
    return (
        _culprit_of_events(trace, launched, trace.events.duration_ps[launched])
        if len(launched)
        else (_culprit_of_events(trace, rows, ps))
    )


def _culprit_within(trace: HostTrace, rows: I64) -> Culprit | None:
    """The culprit of the time that events of threads last, by what runs inside them."""
    lines = numbers_in(trace.events.line[rows])
    times = [(line, spans_of(trace, rows[trace.events.line[rows] == line])) for line in lines]
    cut = [cut_by_events(trace, line, spans.start, spans.end)[1:] for line, spans in times if len(spans.start)]
    if not cut:
        return None
    start, end, event = (np.concatenate(columns) for columns in zip(*cut, strict=True))
    return Finder(trace, event, end - start).culprit(np.arange(len(event)))


def _late_stages(trace: HostTrace) -> I64:
    """The ops of the dataset's functions: those that call Python, or read files, where these are most of them."""
    feed, rows = feed_of(trace), ops_of_iterators(trace)
    if not feed.ops_ps:
        return rows[:0]
    for ps, trait in ((feed.python_ps, OpTrait.CALLS_PYTHON), (feed.reading_ps, OpTrait.READS_FILE)):
        chosen = rows[has_trait(trace, trace.events.type[rows], trait)]
        if 2 * ps >= feed.ops_ps and len(chosen):
            return chosen
    return rows


def _who_copies(trace: HostTrace, line: int, spans: Spans) -> Culprit | None:
    """The line of the program that copies data in, on the loop's thread or on another one for it; None where it is not
    known.

    No trace links a copy of another thread to who asked for it: that is what the loop's thread runs as it starts.
    """
    rows = events_of_kind(trace, K.COPY_HOST_TO_DEVICE_CALL)
    begin, stop = int(trace.events.start_ps[trace.lines.event_begin[line]]), int(observed_time(trace).end[-1])
    start = trace.events.start_ps[rows]
    rows = rows[(trace.events.line[rows] != line) & (start >= begin) & (start < stop)]
    _, low, _, innermost = cut_by_events(trace, line, np.array([begin]), np.array([stop]))
    asked = innermost[np.searchsorted(low, trace.events.start_ps[rows], side="right") - 1]
    own = spans - spans_of(trace, rows)
    start, end, event = cut_by_events(trace, line, own.start, own.end)[1:] if own.total else (asked[:0],) * 3
    length = np.append(end - start, trace.events.duration_ps[rows])
    found = Finder(trace, np.append(event, asked), length).culprit(np.arange(len(length)))
    if found is None or found.file is None:
        return None
    return replace(found, ps=round(found.ps / int(length.sum()) * spans.total))


def _who_starts_most(trace: HostTrace, loop: LoopTime, spans: Spans) -> tuple[int, Culprit | None]:
    """The time of the loop's thread in which it starts work, and who starts most of it: there the number counts, not
    how long an op takes.  Backward passes and updates start as many ops as the forward pass has asked for."""
    rows, ps = loop.starts, np.minimum(trace.events.duration_ps[loop.starts], _START_PS)
    finder, every = Finder(trace, rows, ps), np.arange(len(rows))
    follows = np.append(backward_runs(trace), update_ranges(trace))
    asked = spans - spans_of(trace, follows[trace.events.line[follows] == loop.line])
    culprit = finder.sampled(every, loop.line, asked) or finder.sampled(every, loop.line, spans)
    culprit = culprit or finder.culprit(every)
    if culprit is None:
        return spans.total, None
    return spans.total, replace(culprit, ps=round(culprit.ps / max(int(ps.sum()), 1) * spans.total))


def _parts_of_programs(trace: HostTrace, loop: LoopTime) -> Iterator[tuple[str, str, int, Culprit | None]]:
    """Each compiled program, followed to the calls of the loop's thread that run it."""
    rows, own_ps = work_events_of(trace).get("programs", (np.empty(0, np.int64),) * 2)
    module = trace.stat_strings(stat_names.HLO_MODULE, rows=rows)
    programs = distinct(module).tolist()
    if not 1 < len(programs) <= FEW_PROGRAMS:
        return
    for program in programs:
        own = module == program
        calls = _calls_of_loop(trace, loop.line, rows[own])
        yield (
            f"program {trace.strings[program]}",
            "host_compute",
            int(own_ps[own].sum()),
            _culprit_of_events(trace, calls, own_ps[own]),
        )


def _calls_of_loop(trace: HostTrace, line: int, rows: I64) -> I64:
    """The event of the loop's thread that made each event happen, -1 where none is known."""
    links, found = forest(trace), np.empty(len(rows), np.int64)
    kernels.ops.climb(
        rows, links.parent, links.cause, (trace.events.line == line).astype(np.uint8), np.arange(256).astype(np.uint8),
        1, found,
    )  # fmt: skip
    return found
