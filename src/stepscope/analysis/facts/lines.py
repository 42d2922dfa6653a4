"""Functions of the program that a step could leave out: who takes how much, and what lies inside.

A function counts if nothing of the training lies in it: no forward op with a backward pass, no backward pass, no
update, no call of the program that trains.  What holds the whole step is none, nor what takes most of it where nothing
shows which part trains: that is the model.  Of nested ones the outermost counts, named by the one furthest in that
holds nearly all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.compiled_code import interpreting_of
from stepscope.analysis.account.contention import asleep_ps, lost_spans
from stepscope.analysis.account.every_step import every_step
from stepscope.analysis.account.functions import (
    LoopFunction,
    functions_of_loop,
    names_of_function,
    part_of_function,
    started_by,
)
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.selectors import Portion
from stepscope.analysis.account.statements import (
    SampledLoop,
    Statement,
    loop_around,
    loop_in,
    main_statement,
    reaches,
    statements_of_loop,
    takes_result,
)
from stepscope.analysis.account.stretches import awaits_late_peers
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.facts.inside import work_in
from stepscope.analysis.facts.loop import FETCHES, LoopTime, loop_time_of
from stepscope.analysis.facts.loop_events import is_read_by_op
from stepscope.analysis.facts.processors import processors_of, ran_ps
from stepscope.analysis.facts.work import (
    OPS_OF_A_PROGRAM,
    SHORT_OP_PS,
    OpShare,
    module_of,
    sum_by_name,
    training_program,
    work_events_of,
    work_of,
)
from stepscope.analysis.purpose.autograd import ops_per_parameter
from stepscope.analysis.purpose.computing import computing_of, inside_any, passed_since, update_ranges
from stepscope.analysis.purpose.sizes import Size, sizes_of
from stepscope.analysis.purpose.values import has_operands, takes_what_steps_write
from stepscope.analysis.steps.find_steps import holds_step, observed_time, whole_steps
from stepscope.analysis.steps.stack_samples import sampled_frames
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.spans import Spans, is_outermost, spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.jax import function_of_call, function_of_program, is_product
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.python import CODE_OF_MODULE, PLAIN, is_training_function, place_of, runs_layer, sleeps
from stepscope.vocabulary.tensorflow import OF_ANY_OP
from stepscope.vocabulary.traits import CallTrait, CodeTrait, OpTrait

K = EventKind
_ON_DEVICES = (Cause.DEVICE_COMPUTE, Cause.COPY)

# All chosen by judgement, then moved on eight recordings with such functions: what other values found is said.
_WHOLE = 0.9  # of a function's time: with so much in another it is nested in that, but for edges; 0.72 is the same
_SHOWN_OPS = 2  # of one loop: they tell which it is
_AS_OFTEN = 0.9  # of the calls of the most frequent op: ops of one loop run as often but for its edges
_TRAINS = 0.3  # of a function's time: samples blur its edges; 0.15 takes one function for training, 0.6 is the same
_AT_EDGES = 0.02  # of a function's time: of forward passes in eight recordings 0.57 or more, else none; of less in
# products, samples show those of what runs before and after
_COMPUTES = 0.5  # of a line's time, or the step's, without contention; judgement: two such waits had 10 and 14 %
_NEARLY_ALL = 0.8  # of a function's time: who holds this much of it is where to look; 0.64 names others in one
_LARGE = LARGE_SHARE / 100.0  # of the step: less of what may be needed as it is is not said
LEAST_OF_STEP = 0.03  # less is not worth a change; a half finds one function more, twice one less, none of them first
_ALL = 0.95  # of a plain step: what takes so much is the step itself; judgement
_OTHERS = 2  # samples that do not show it: of the loop none but one at an edge are such; 0 to 8 are the same
_FEWEST_SAMPLES = 4  # outside of training: fewer show a function by accident; 1 to 8 are the same, 16 loses some in two
_SEVERAL_STEPS = 5  # with fewer, one may well be a fifth of what the loop does; 2 loses one function, 20 is the same
_MANY = 50  # ops per step: making a batch starts fewer in all recordings with such functions, an update by hand 200
_SHARED_NUMBERS = 32_768  # from there on PyTorch's pointwise ops run on several threads (at::internal::GRAIN_SIZE)
_MOST_LINES, _MOST_OPS, _MOST_PARTS = 4, 4, 3  # kept, since each function has to be replayed; not moved


@dataclass(frozen=True)
class LineFacts:
    """A function of the program that could be left out; times in ps per step.

    Attributes:
        name, file, line: of the function; owner: the outermost one that is left out with it, empty if it is that.
        calls: per step; None where only samples of the stack show it.
        ps: its time on the loop's thread.
        causes: what the thread does in it, by cause of the account.
        ops: what it starts, by name, the longest first: calls and time in all steps.
        starts: how many ops, programs and single ops it starts per step.
        heavy_ps: in matrix products and convolutions; moves_ps: in ops that only move data, by any thread.
        fetches_ps: in which it reads values from the framework; fetches: how many per step.
        asleep: the share of its time in which the thread neither runs nor is ready, as in time.sleep; 0 where nothing
            shows that.
        is_input: it makes the batch: the loop waits for a batch while it runs, or the step's first work follows it, and
            it makes arrays or its name says so.
        models: how many matrix products and convolutions it has for one of the forward passes that are trained: from
            about one on it runs the whole model.
        copies_in: it copies arrays of the host to where the program computes.
        waits_ps, peers_ps: in which it starts nothing, and the step waits for work of devices, or communicates, by
            whichever thread.
        is_needed: it runs within a forward pass that is trained, which takes what it computes.
        feeds: what trains takes its result; None where that is not known.
        calls_model: it computes with the weights that are trained, as far as their sizes show.
        is_forward: it is that forward pass, or holds it, so that its Python is that between the model's ops.
        in_layer: it is what a framework calls to compute a layer, or lies within: what follows needs its result.
        statement: the line in it that holds most of its time; None where that is not known.
        loop: its own loop, where no single line of that takes most of its time, else the nearest loop of the program
            that calls it and that is not over steps, as `line 20 of assign (train.py)`; empty where its statement has a
            loop, or without one; carries: what each round of that, or of the statement's, needs of the one before,
            empty for nothing.
        library: the library's function that most samples of that line show furthest in; empty without one.
        parts: where no line holds most of it, the longest, with the library's function in each, empty for none.
        inside: of a line, not a function, the library's function that it calls and that a cheaper form is known of.
        of_parameters: how many ops it has for each parameter, as in an update that is written out; else 0.
        often: the ops that it starts most often, and as often as each other, the longest first: calls and time in all
            steps. often_size: the largest operand of most calls of the first; None if not recorded.
        goes_over: the first side of what its ops work on, of those that take half of their time; 0 if not recorded.
        draws: one of its ops draws random numbers.
    """

    name: str
    file: str
    line: int
    owner: str
    calls: float | None
    ps: int
    causes: dict[str, int]
    ops: list[OpShare]
    starts: float
    heavy_ps: int
    moves_ps: int
    fetches_ps: int
    fetches: float
    asleep: float
    is_input: bool
    models: float = 0.0
    copies_in: bool = False
    waits_ps: int = 0
    peers_ps: int = 0
    is_needed: bool = False
    feeds: bool | None = None
    calls_model: bool = False
    is_forward: bool = False
    in_layer: bool = False
    statement: Statement | None = None
    loop: str = ""
    carries: str = ""
    library: str = ""
    parts: Sequence[tuple[Statement, str]] = ()
    inside: str = ""
    of_parameters: float = 0.0
    often: Sequence[OpShare] = ()
    often_size: Size | None = None
    goes_over: int = 0
    draws: bool = False

    @property
    def key(self) -> str:
        """The row of the table of changes that leaves it out."""
        return f"function {self.file}:{self.line} {self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        """How faces name it."""
        short = self.file.rpartition("/")[2]
        places = tuple(f"{file}:{self.line}" for file in dict.fromkeys((self.file, short)) if file)
        return (self.name, *places, *(f"{place} {self.name}" for place in places))

    @property
    def where(self) -> str:
        """The line to look at: the statement that holds most of its time, else where it is defined."""
        return self.statement.place if self.statement is not None else f"{self.file}:{self.line}" if self.file else ""

    @property
    def own_ps(self) -> int:
        """Its time without contention."""
        return max(self.ps - self.causes.get("contention", 0), 0)

    def starts_small_work(self, computes_in_call: bool) -> bool:
        """Whether it starts many ops, each too short to do more than start, by their own time or by its time for each.

        Args:
            computes_in_call: an op computes on the thread that calls it, as PyTorch's do; others only start it there.
        """
        calls = sum(op.calls for op in self.ops)
        each_ps = min(self.own_ps / max(self.starts, 1), sum(op.total_ps for op in self.ops) / max(calls, 1))
        return self.starts >= _MANY and (not computes_in_call or each_ps < SHORT_OP_PS)

    @property
    def is_of_large_arrays(self) -> bool:
        """Whether what it starts most often works on so many numbers each time, for so long, that several at once would
        take as long as one after another."""
        calls = sum(op.calls for op in self.often)
        each_ps = sum(op.total_ps for op in self.often) / max(calls, 1)
        return (
            self.often_size is not None and math.prod(self.often_size) > _SHARED_NUMBERS and each_ps >= SHORT_OP_PS / 2
        )

    def share(self, *causes: str) -> float:
        """The share of its time that some causes have, contention aside."""
        return sum(self.causes.get(cause, 0) for cause in causes) / self.own_ps if self.own_ps else 0.0

    @property
    def share_known(self) -> float:
        """The share of its time of which a cause is known, contention aside."""
        return self.share(*(cause for cause in self.causes if cause != "contention"))


def lines_of(trace: HostTrace) -> list[LineFacts]:
    """The functions that a host's steps could leave out, the longest first; found once per trace."""
    return [facts for facts, _, _ in trace.derived("lines to leave out", _find_lines)]


def parts_of_lines(model: StepModel) -> Iterator[tuple[str, Portion]]:
    """The same as parts of the model, by their rows in the table of changes."""
    found = model.trace.derived("lines to leave out", _find_lines)
    return ((facts.key, part_of_function(model, function, training)) for facts, function, training in found)


def part_of_line(model: StepModel, name: str) -> Portion | None:
    """The part of the function with a name or place, as advice on it has it; None if it is none of these."""
    for facts, function, training in model.trace.derived("lines to leave out", _find_lines):
        if name in names_of_function(model.trace, function) or name in facts.names:
            return part_of_function(model, function, training)
    return None


_Found = tuple[LineFacts, LoopFunction, Spans]  # the function that is left out, and the training beside it


def _find_lines(trace: HostTrace) -> list[_Found]:
    loop, seen = loop_time_of(trace), observed_time(trace)
    functions = functions_of_loop(trace) if loop is not None and seen.total and trace.framework else []
    if loop is None or not functions:
        return []
    training, own = _find_training(trace, loop), list[tuple[int, LoopFunction]]()
    # Code outside of functions is a frame for each of its lines, so that no single frame may show all of them.
    samples = distinct(np.concatenate([each.samples for each in functions]))
    training_samples = samples[training.spans.overlap_ps(samples, samples + 1) > 0]
    quiet = seen - _contention(trace)  # what others take of the machine makes no function small
    for each in functions:
        ps = ((each.spans - training.spans) & quiet).total
        if ps < LEAST_OF_STEP * quiet.total or _is_loop(trace, each, samples):
            continue
        if len(each.samples) and len(np.setdiff1d(each.samples, training_samples)) < _FEWEST_SAMPLES:
            continue
        if _is_one_stall(trace, each.spans - training.spans):
            continue
        if _begins_training(training, each) and place_of(trace.name_of(each.frame))[0] == CODE_OF_MODULE:
            continue
        if _trains(training, each, training_samples) or (
            not training.spans.total and _may_be_model(trace, loop, each, quiet)
        ):
            continue
        own.append((ps, each))
    own.sort(key=lambda each: (-each[0], each[1].frame))
    chosen: list[tuple[LoopFunction, LoopFunction]] = []
    for ps, each in own:
        if any(_is_within(each, outer) for outer, _ in chosen):
            continue
        inside = [other for other_ps, other in own if other_ps >= _NEARLY_ALL * ps and _is_within(other, each)]
        inner = min([each, *inside], key=lambda other: (other.spans.total, -other.frame))
        # What trains in part, such as the model's call, cannot be left out as a whole.
        chosen.append((inner if (each.spans & training.spans).total else each, inner))
    forward = [each for each in functions if _is_forward(training, each)]
    layers = [each for each in functions if runs_layer(place_of(trace.name_of(each.frame))[0])]
    found = []
    for outer, inner in chosen:
        holds = any(each is outer for each in forward)
        within = holds or any(_is_within(outer, each) for each in forward)
        in_layer = any(one in layers or any(_is_within(one, layer) for layer in layers) for one in (outer, inner))
        facts = _describe(trace, loop, training, outer, inner)
        facts = replace(facts, is_needed=facts.is_needed or within, is_forward=holds, in_layer=in_layer)
        found.append((facts, outer, training.spans))
    found += _find_calls(trace, loop, training, quiet, [outer for outer, _ in chosen])
    return [each for each in found if not _is_line_of_loop(each[0])][:_MOST_LINES]


def _find_calls(
    trace: HostTrace, loop: LoopTime, training: _Training, quiet: Spans, others: Sequence[LoopFunction]
) -> list[_Found]:
    """Lines of functions that cannot be left out, but for which there is something to do: they spend their time in work
    of a library of which a cheaper form is known, or run Python for a large share of the step and train nothing."""
    found = []
    for each in statements_of_loop(trace, loop.line):
        work = work_in(each.inside, each.statement.called)
        spans, least = each.spans - training.spans, LEAST_OF_STEP if work and work.is_avoidable else _LARGE
        call = LoopFunction(each.row, each.spans, each.certain, np.empty(0, np.int64), each.samples)
        if (spans & quiet).total < least * quiet.total or any(_is_within(call, other) for other in others):
            continue
        if _is_one_stall(trace, spans) or _is_forward(training, call) or _begins_training(training, call):
            continue
        if (training.after.overlap_ps(each.samples, each.samples + 1) > 0).any():
            continue  # a backward pass or an update runs in it: what else does is theirs
        if len(each.samples) < _FEWEST_SAMPLES:
            continue
        facts = _describe(trace, loop, training, call, call, is_apart=False)
        said, function = each.statement, facts.name.rpartition(" @")[0]
        if work is None and (not said.called or facts.share("python", "input") < _COMPUTES or facts.starts >= _MANY):
            continue  # Python between as many ops starts them
        name = said.called or f"{each.inside.partition('/')[0]}'s {each.inside.rpartition(' ')[2]}"
        if sleeps(said.called):  # nobody makes that cheaper: the function waits there
            found.append((replace(facts, name=function, file=said.file, line=said.line), call, training.spans))
            continue
        facts = replace(facts, name=name, owner=function, file=said.file, line=said.line, statement=said)
        found.append((replace(facts, inside=each.inside or name), call, training.spans))
    return found


def _contention(trace: HostTrace) -> Spans:
    """When the loop's thread, or a rank that it waits for, is ready and has no processor."""
    lost = lost_spans(trace)
    return awaits_late_peers(trace) if lost is None else lost | awaits_late_peers(trace)


def _is_line_of_loop(line: LineFacts) -> bool:
    """Whether a candidate is a line outside of any function that does not compute in Python itself: there the loop
    waits for what its step started."""
    return line.name == CODE_OF_MODULE and line.share("python") < _COMPUTES


def _is_loop(trace: HostTrace, function: LoopFunction, samples: I64) -> bool:
    """Whether a function runs the loop over steps, as far as is known: one of its calls holds a step, or all samples of
    the stack show it but for one at an edge; too few samples show nothing."""
    if len(function.samples):
        others = np.flatnonzero(~np.isin(samples, function.samples))
        is_at_edge = len(others) < _OTHERS and np.isin(others, (0, len(samples) - 1)).all()
        return bool(len(function.samples) < _FEWEST_SAMPLES or is_at_edge)
    start, length = trace.events.start_ps[function.calls], forest(trace).extent_ps[function.calls]
    return bool(holds_step(trace, start, start + length).any())


def _is_one_stall(trace: HostTrace, spans: Spans) -> bool:
    """Whether most of some time lies in one step of several, and no other has half as much: that step stalled, and
    leaving the function out of the others gives nothing."""
    steps = whole_steps(trace)
    if len(steps.number) < _SEVERAL_STEPS:
        return False
    spent = np.sort(spans.overlap_ps(steps.start_ps, steps.until_ps))
    return bool(2 * spent[-1] > spent.sum() and 2 * spent[-2] < spent[-1])


def _is_within(inner: LoopFunction, outer: LoopFunction) -> bool:
    return inner is not outer and (inner.spans & outer.spans).total >= _WHOLE * inner.spans.total


def _trains(training: _Training, function: LoopFunction, training_samples: I64) -> bool:
    """Whether a function holds the training: much of its time is training, or most of the samples taken while the
    thread trains show it, or, by its recorded calls, most of what trains starts in it."""
    if function.share_in(training.spans) >= _TRAINS:
        return True
    shown = np.isin(training_samples, function.samples)
    if len(shown) >= _FEWEST_SAMPLES and 2 * shown.sum() > len(shown):
        return True
    inside = function.spans.overlap_ps(training.start_ps, training.start_ps + 1) > 0
    return bool(len(function.calls) and 2 * inside.sum() > len(inside) > 0)


def _begins_training(training: _Training, function: LoopFunction) -> bool:
    """Whether a line starts a backward pass or an update, as `optimizer.step()`: what else runs in it is theirs."""
    inside = function.certain.overlap_ps(training.start_ps, training.start_ps + 1) > 0
    return bool((inside & training.ends).any())


def _is_forward(training: _Training, function: LoopFunction) -> bool:
    """Whether a function holds forward ops that are trained, and hardly a backward pass or an update.  Samples blur the
    edges of a function, so that ops right before or after it seem to start in it, but take none of its time."""
    if len(function.samples) and function.share_in(training.spans) < _AT_EDGES:
        return False
    inside = function.certain.overlap_ps(training.start_ps, training.start_ps + 1) > 0
    forward, others = (inside & training.begins & ~training.ends).sum(), (inside & training.ends).sum()
    return bool(forward > 2 * others)


def _may_be_model(trace: HostTrace, loop: LoopTime, function: LoopFunction, seen: Spans) -> bool:
    """Whether a function may be the model's call, where nothing shows what trains: it takes most of the step, or
    computes products."""
    share = (function.spans & seen).total / max(seen.total, 1)
    if trace.framework == PLAIN:
        every, trains = every_step(trace), is_training_function(place_of(trace.name_of(function.frame))[0])
        if every is not None and interpreting_of(trace, loop.line) is not None:
            computes, python = (
                (every.spans_of(cause, loop.line) & function.spans).total
                for cause in (Cause.HOST_COMPUTE, Cause.PYTHON)
            )
            least = _COMPUTES if trains else _NEARLY_ALL
            return computes > least * max(computes + python, 1)  # nothing shows that its result is not needed
        is_step = share > 0.5 and trains
        return (share > _ALL or is_step) and not _runs_others(trace, function)
    if share > 0.5:
        return True
    start = trace.events.start_ps[loop.starts]
    inside = distinct(trace.events.type[loop.starts[function.spans.overlap_ps(start, start + 1) > 0]])
    names = type_names(trace, inside.astype(np.int64))
    multiplies = has_trait(trace, inside, OpTrait.MULTIPLIES).any()
    return bool(multiplies or any(is_product(function_of_call(name)) for name in names))


def _runs_others(trace: HostTrace, function: LoopFunction) -> bool:
    """Whether much of a function is Python of libraries: then it is Python, and no call into compiled code."""
    line = threads_of(trace).main
    rows = events_of_kind(trace, K.PYTHON_CALL)
    rows = rows[trace.events.line[rows] == line] if len(function.calls) else sampled_frames(trace, line)
    others = rows[~has_trait(trace, trace.events.type[rows], CodeTrait.OF_USER)]
    start = trace.events.start_ps[others]
    inside = spans_of(trace, others[function.spans.overlap_ps(start, start + 1) > 0])
    return (inside & function.spans).total >= _TRAINS * function.spans.total


def is_one_function(trace: HostTrace) -> bool:
    """Whether a step is one function of a program without a framework, of which nothing tells Python from compiled
    code, such as NumPy's: then it is not known to be slow."""
    loop, seen = loop_time_of(trace), observed_time(trace)
    if loop is None or trace.framework != PLAIN or interpreting_of(trace, threads_of(trace).main) is not None:
        return False
    quiet = seen - _contention(trace)
    found = [each for each in functions_of_loop(trace) if (each.spans & quiet).total > _ALL * quiet.total]
    return bool(found) and not any(_runs_others(trace, each) for each in found) and not lines_of(trace)


@dataclass(frozen=True)
class _Training:
    """When the loop's thread trains.

    Attributes:
        spans: forward ops with a backward pass, that pass, updates, and calls of the program that trains.
        start_ps: int64 of shape (n,), when each of these begins, ascending.
        begins, ends: bool of shape (n,), it may be the first, or the last, of a step's training.
        after: backward passes and updates alone.
    """

    spans: Spans
    start_ps: I64
    begins: Mask
    ends: Mask
    after: Spans


def _find_training(trace: HostTrace, loop: LoopTime) -> _Training:
    backward = events_of_kind(trace, K.BACKWARD).astype(np.int64)
    forward = distinct(forward_events(trace, backward))
    is_own = np.isin(forward, backward)  # backward work without a number leads to no forward op
    parts = [
        forward[(forward >= 0) & ~is_own],
        np.append(backward, _updates(trace, loop, backward)),
        _calls_that_train(trace, loop),
    ]
    rows = np.concatenate(parts).astype(np.int64)
    which = np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    here = trace.events.line[rows] == loop.line
    rows, which = rows[here], which[here]
    order = np.argsort(trace.events.start_ps[rows], kind="stable")
    which = which[order]
    start, after = trace.events.start_ps[rows[order]], spans_of(trace, rows[order][which == 1])
    return _Training(spans_of(trace, rows), start, which != 1, which != 0, after)


def _updates(trace: HostTrace, loop: LoopTime, backward: I64) -> I64:
    """What updates the model: the calls of optimizers; of those that are given a function for forward and backward
    pass, the ops after these, since that function may hold anything: rows of events."""
    events, rows = trace.events, update_ranges(trace)
    since, begin = passed_since(trace, rows, backward), events.start_ps[loop.starts]
    holds = since > events.start_ps[rows]
    after = Spans.union(since[holds], (events.start_ps[rows] + events.duration_ps[rows])[holds])
    found: I64 = np.append(rows[~holds], loop.starts[after.overlap_ps(begin, begin + 1) > 0])
    return found


def _calls_that_train(trace: HostTrace, loop: LoopTime) -> I64:
    """Calls by the loop's thread of the compiled program that trains, else those whose names say training: rows of
    events."""
    rows, work = loop.starts, work_of(trace)
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    names = dict(zip(types.tolist(), type_names(trace, types), strict=True))
    named = [type_ for type_, name in names.items() if is_training_function(name)]
    main = training_program(work, is_named=bool(named))
    wanted = function_of_program(module_of(main)) if main is not None else ""
    mine = [type_ for type_, name in names.items() if wanted and function_of_call(name) == wanted]
    calls = int(np.isin(trace.events.type[rows], mine).sum())
    if main is not None and main.calls <= OPS_OF_A_PROGRAM * calls:  # an op that is dispatched by itself trains nothing
        mine = []
    return rows[np.isin(trace.events.type[rows], mine or named or _types_with_gradients(trace, rows))]


def _types_with_gradients(trace: HostTrace, rows: I64) -> list[int]:
    """The type of the calls after which most of the time of a graph's gradients lies; empty where no type has most."""
    work, calls = computing_of(trace), rows[has_trait(trace, trace.events.type[rows], OpTrait.MULTIPLIES) == 0]
    of = has_trait(trace, trace.events.type[work.rows], OpTrait.OF_GRADIENT)
    at = np.searchsorted(trace.events.start_ps[calls], trace.events.start_ps[work.rows[of]], side="right") - 1
    types, ps = trace.events.type[calls[np.maximum(at, 0)]].astype(np.int64), work.own_ps[of]
    kinds, place = np.unique(types, return_inverse=True)
    sums = np.bincount(place.ravel(), ps, len(kinds)) if len(calls) and len(types) else np.zeros(0)
    return [int(kinds[sums.argmax()])] if len(sums) and 2 * sums.max() > ps.sum() else []


def _describe(
    trace: HostTrace,
    loop: LoopTime,
    training: _Training,
    outer: LoopFunction,
    inner: LoopFunction,
    is_apart: bool = True,
) -> LineFacts:
    spans, steps = outer.spans - training.spans, max(len(whole_steps(trace).number), 1)
    certain = outer.certain - training.spans
    inside = _starting_in(trace, loop.starts, certain)
    name, file, line = place_of(trace.name_of(inner.frame))
    owner = "" if inner is outer else place_of(trace.name_of(outer.frame))[0]
    frame = trace.name_of((inner if owner == CODE_OF_MODULE else outer).frame)
    waits = _waits_in(trace, loop, spans, certain, inside, is_apart)
    said = _known_work(trace, loop, spans, waits["causes"]) or main_statement(
        trace, loop.line, trace.name_of(inner.frame), spans
    )
    is_own = said is not None and bool(said.loop)
    around, carries = loop_around(trace, loop.line, frame, training.spans)
    own = loop_in(trace, loop.line, trace.name_of(inner.frame), spans)
    if own is not None and said is None:  # its time is spread over the lines of the loop
        around, carries = f"line {own.line} of {name} ({file})", own.needs
    products = _products_of(trace, loop.line)
    called = _starting_in(trace, products, certain)
    at_edges = len(outer.samples) and trace.events.duration_ps[called].sum() < _AT_EDGES * certain.total
    calls_model = not at_edges and _calls_model(trace, called)
    feeds_next = _is_waited_for(trace, loop, spans) or (
        _makes_input(trace, loop, training, outer, (outer, inner))
        # Many ops on what the training gave are its update, which the next step begins with.
        and not (len(inside) >= _MANY * steps and takes_result(trace, loop.line, frame, training.spans))
    )
    return LineFacts(
        name=name,
        file=file or "",
        line=line or 0,
        owner=owner,
        calls=len(inner.calls) / steps if len(inner.calls) else None,
        ps=round(spans.total / steps),
        starts=len(inside) / steps,
        **_ops_in(trace, inside),
        **_computing_in(trace, loop.line, spans, certain, inside, products),
        **waits,
        is_input=feeds_next and not calls_model,
        is_needed=feeds_next and calls_model,
        feeds=reaches(trace, loop.line, frame, training.spans) if training.spans.total else None,
        calls_model=calls_model,
        statement=said,
        loop="" if is_own else around,
        carries=said.carries or _needs_of(own, said) if said is not None and is_own else carries,
        library=_library_at(trace, loop, said),
        parts=_longest_lines(trace, loop, spans) if said is None else (),
    )


def _needs_of(own: SampledLoop | None, said: Statement) -> str:
    """What a round of a statement's loop needs of the one before, by the other lines of that loop."""
    return own.needs if own is not None and own.line == said.loop else ""


def _starting_in(trace: HostTrace, rows: I64, spans: Spans) -> I64:
    """The events that start within some time: rows."""
    start = trace.events.start_ps[rows]
    found: I64 = rows[spans.overlap_ps(start, start + 1) > 0]
    return found


def _products_of(trace: HostTrace, line: int) -> I64:
    """The matrix products and convolutions of a thread: rows of ops."""
    ops = events_of_kind(trace, K.OP)
    ops = ops[trace.events.line[ops] == line]
    found: I64 = ops[has_trait(trace, trace.events.type[ops], OpTrait.MULTIPLIES)]
    return found


def _ops_in(trace: HostTrace, inside: I64) -> dict[str, Any]:
    """The ops that a function starts, as attributes of LineFacts."""
    shares = sum_by_name(trace, inside, trace.events.duration_ps[inside])
    named = [each for each in shares if each.name not in OF_ANY_OP]
    most = max((each.calls for each in named), default=0)
    often = [each for each in named if each.calls >= _AS_OFTEN * most][:_SHOWN_OPS]
    return {
        "ops": shares[:_MOST_OPS],
        "often": often,
        "often_size": _usual_size(trace, inside, often[0]) if often else None,
        "goes_over": usual_rows(trace, inside),
        "of_parameters": ops_per_parameter(trace, inside),
        "draws": bool(has_trait(trace, trace.events.type[inside], OpTrait.IS_RANDOM).any()),
    }


def _computing_in(
    trace: HostTrace, line: int, spans: Spans, certain: Spans, inside: I64, products: I64
) -> dict[str, Any]:
    """What a function of a thread computes and copies, as attributes of LineFacts."""
    steps, of_model = max(len(whole_steps(trace).number), 1), forward_products(trace)
    moves, _ = work_events_of(trace).get("moves", (products[:0], products[:0]))
    elsewhere = np.intersect1d(moves[trace.events.line[moves] != line], started_by(trace, inside))
    moves = moves[trace.events.line[moves] == line]
    copies = events_of_kind(trace, K.COPY_HOST_TO_DEVICE_CALL)
    copies = copies[trace.events.line[copies] == line]
    return {
        "heavy_ps": round((spans_of(trace, products) & spans).total / steps),
        "moves_ps": round(((spans_of(trace, moves) & spans).total + spans_of(trace, elsewhere).total) / steps),
        "models": len(_starting_in(trace, products, certain)) / max(of_model, 1) if of_model else 0.0,
        "copies_in": len(_starting_in(trace, copies, certain)) >= steps,
    }


def _waits_in(
    trace: HostTrace, loop: LoopTime, spans: Spans, certain: Spans, inside: I64, is_apart: bool
) -> dict[str, Any]:
    """What the time of a function goes to, and what it waits for, as attributes of LineFacts.

    Args:
        is_apart: nothing of the training lies in it, which its thread may compute itself.
    """
    steps, every = max(len(whole_steps(trace).number), 1), every_step(trace)
    on_devices = [every.spans_of(cause) for cause in _ON_DEVICES] if every else []
    with_peers = every.spans_of(Cause.COMMUNICATION) if every else spans - spans
    causes = {cause.name.lower(): (every.spans_of(cause, loop.line) & spans).total for cause in Cause} if every else {}
    causes["contention"] = (_contention(trace) & spans).total
    asleep = _share_asleep(trace, loop, spans)
    ran = ran_ps(trace, loop.line, spans) if processors_of(trace) is not None and is_apart else None
    if ran is not None:  # Python beside what other threads compute takes a processor from them
        hidden = ran - sum(causes.values())
        causes["python"] = causes.get("python", 0) + max(hidden, 0)
        asleep = min(asleep, max(1.0 - ran / max(spans.total, 1), 0.0))
    idle = spans - spans_of(trace, inside)  # it starts nothing
    return {
        "causes": {cause: round(ps / steps) for cause, ps in causes.items() if ps},
        "waits_ps": round((reduce(or_, on_devices, spans - spans) & idle).total / steps),
        "peers_ps": round((with_peers & idle - _contention(trace)).total / steps),
        "fetches_ps": round((loop.spans[FETCHES] & spans).total / steps),
        "fetches": _count_reads(trace, loop, certain) / steps,
        "asleep": asleep,
    }


def _known_work(trace: HostTrace, loop: LoopTime, spans: Spans, causes: Mapping[str, int]) -> Statement | None:
    """The line of a function that holds most of its Python, where that is most of the function, in work of a library of
    which a cheaper form is known: also where ops, which the function may need, have a line that holds more."""
    python_ps, steps = causes.get("python", 0), max(len(whole_steps(trace).number), 1)
    if 2 * python_ps < sum(causes.values()) or not python_ps:
        return None
    known = [
        ((each.spans & spans).total, each.statement)
        for each in statements_of_loop(trace, loop.line)
        if (work := work_in(each.inside, each.statement.called)) is not None and work.is_avoidable
    ]
    ps, said = max(known, key=lambda each: each[0], default=(0, None))
    return replace(said, share=ps / spans.total) if said is not None and 2 * ps >= steps * python_ps else None


def _library_at(trace: HostTrace, loop: LoopTime, said: Statement | None) -> str:
    """The library's function that most samples of a line show furthest in; empty without one."""
    place = (said.file, said.line) if said is not None else None
    here = [
        each for each in statements_of_loop(trace, loop.line) if (each.statement.file, each.statement.line) == place
    ]
    return max(here, key=lambda each: each.spans.total).inside if here else ""


def _longest_lines(trace: HostTrace, loop: LoopTime, spans: Spans) -> list[tuple[Statement, str]]:
    """The lines of the program that take a large share of some time of a thread each, the longest first, with the
    library's function that most samples of each show furthest in."""
    found: dict[tuple[str, int], tuple[Statement, str]] = {}
    for each in statements_of_loop(trace, loop.line):
        own, ps = each.statement, (each.spans & spans).total
        before, inside = found.get((own.file, own.line), (replace(own, share=0.0), each.inside))
        found[own.file, own.line] = replace(before, share=before.share + ps / max(spans.total, 1)), inside
    large = [each for each in found.values() if each[0].share >= _LARGE]
    return sorted(large, key=lambda each: -each[0].share)[:_MOST_PARTS]


def _usual_size(trace: HostTrace, rows: I64, op: OpShare) -> Size | None:
    """The largest operand of most calls of an op, by the sizes that were recorded; None where they were not."""
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return None
    own = rows[trace.event_names(rows) == trace.strings.find(op.name)]
    texts, calls = np.unique(trace.stat_strings(stat_names.INPUT_DIMS, rows=own), return_counts=True)
    if not len(texts) or texts[calls.argmax()] <= 0 or 2 * calls.max() <= calls.sum():
        return None
    return max(sizes_of(trace.strings[int(texts[calls.argmax()])]), key=math.prod, default=())


def usual_rows(trace: HostTrace, rows: I64) -> int:
    """The first side of the largest operand, the median over the time of some ops; 0 where sizes were not recorded."""
    if not len(rows) or not trace.has_stat(stat_names.INPUT_DIMS):
        return 0
    texts, place = np.unique(trace.stat_strings(stat_names.INPUT_DIMS, rows=rows), return_inverse=True)
    largest = [max(sizes_of(trace.strings[text]), key=math.prod, default=()) for text in texts.tolist()]
    sides = np.array([size[0] if size else 0 for size in largest], np.int64)
    ps = np.bincount(place.ravel(), trace.events.duration_ps[rows], len(texts))
    order = np.argsort(sides)
    return int(sides[order][np.searchsorted(np.cumsum(ps[order]), ps.sum() / 2)])


def _calls_model(trace: HostTrace, heavy: I64) -> bool:
    """Whether most of some products take a lasting tensor that the steps write, or, where that was not recorded, a
    matrix of the size that one which is trained takes: the same weights."""
    work = computing_of(trace)
    trained = work.rows[work.heavy & work.learned]
    told = heavy[_lies_in(trace, heavy, has_operands(trace))]
    if len(told):
        return bool(2 * _lies_in(trace, told, takes_what_steps_write(trace) & ~work.updates).sum() > len(told))
    if not len(heavy) or not len(trained) or not trace.has_stat(stat_names.INPUT_DIMS):
        return False
    known = {pair for pair, _ in _matrices(trace, trained)}
    alike = sum(calls for pair, calls in _matrices(trace, heavy) if pair in known)
    return 2 * alike > len(heavy)


def _lies_in(trace: HostTrace, rows: I64, chosen: Mask) -> Mask:
    """Whether each event is one of the chosen ops or lies inside one."""
    return inside_any(trace, rows, computing_of(trace).rows[chosen])


def _matrices(trace: HostTrace, rows: I64) -> Iterator[tuple[tuple[int, Size], int]]:
    """The types of some ops with the sizes of their last operand of two dimensions, and how many have these."""
    types, texts = trace.events.type[rows].astype(np.int64), trace.stat_strings(stat_names.INPUT_DIMS, rows=rows)
    pairs, calls = np.unique(np.stack([types, texts.astype(np.int64)], axis=1), axis=0, return_counts=True)
    for (type_, text), count in zip(pairs.tolist(), calls.tolist(), strict=True):
        matrices = [size for size in sizes_of(trace.strings[text]) if len(size) == 2] if text > 0 else []
        if matrices:  # the weights stand last: [32,128] x [400,128], + [1] of a bias
            yield (type_, matrices[-1]), count


def forward_products(trace: HostTrace) -> int:
    """How many matrix products and convolutions of the steps a backward pass follows."""
    work = computing_of(trace)
    return int((work.heavy & work.learned).sum())


def _share_asleep(trace: HostTrace, loop: LoopTime, spans: Spans) -> float:
    """By what the thread used of the processors, else by recorded calls that sleep; of the time in which it has one."""
    spans = spans - _contention(trace)
    ps = asleep_ps(trace, loop.line, spans)
    if ps is None:
        rows = np.arange(trace.lines.event_begin[loop.line], trace.lines.event_end[loop.line])
        ps = (spans_of(trace, rows[has_trait(trace, trace.events.type[rows], CodeTrait.SLEEPS)]) & spans).total
    return ps / max(spans.total, 1)


def _count_reads(trace: HostTrace, loop: LoopTime, spans: Spans) -> int:
    """How many values the loop's thread reads from the framework in some time."""
    rows = np.arange(trace.lines.event_begin[loop.line], trace.lines.event_end[loop.line])
    reads = rows[has_trait(trace, trace.events.type[rows], CallTrait.READS_VALUE)]
    reads = reads[~is_read_by_op(trace, reads)]
    start = trace.events.start_ps[reads]
    outer = is_outermost(start, start + forest(trace).extent_ps[reads])
    return int((spans.overlap_ps(start[outer], start[outer] + 1) > 0).sum())


def _is_waited_for(trace: HostTrace, loop: LoopTime, spans: Spans) -> bool:
    """Whether most of some time lies in the loop's recorded waits for its batch: no worker makes it."""
    waits = events_of_kind(trace, K.INPUT_WAIT)
    waits = waits[trace.events.line[waits] == loop.line]
    return 2 * (spans_of(trace, waits) & spans).total > spans.total


def _makes_input(
    trace: HostTrace, loop: LoopTime, training: _Training, outer: LoopFunction, named: Sequence[LoopFunction]
) -> bool:
    """Whether a function makes the batch: a step's training, or a product, begins right after it, with nothing between
    but what moves the batch, or what the function does itself, whose end samples tell only roughly, and no fetch of
    a batch; and it makes arrays, or copies them in, or its name says that it makes input; a name alone says nothing."""
    events, spans = trace.events, outer.spans - training.spans
    begin = events.start_ps[loop.starts]
    inside = loop.starts[spans.overlap_ps(begin, begin + 1) > 0]
    says_so = any(has_trait(trace, events.type[[each.frame]], CallTrait.MAKES_INPUT)[0] for each in named)
    makes = bool(has_trait(trace, events.type[inside], OpTrait.LIFTS_VALUES | OpTrait.SETS_STORAGE).any())
    copies = events.start_ps[events_of_kind(trace, K.COPY_HOST_TO_DEVICE_CALL)]
    makes = makes or bool((spans.overlap_ps(copies, copies + 1) > 0).any())
    if not len(training.start_ps) or not (says_so or makes):
        return False
    types = events.type[loop.starts]
    own = has_trait(trace, types, OpTrait.CONVERTS | OpTrait.MOVES_DATA) | np.isin(types, events.type[inside])
    first, last = _known_edges(outer, spans)
    next_start = np.append(begin[~own], np.iinfo(np.int64).max)[np.searchsorted(begin[~own], last)]
    products = begin[has_trait(trace, types, OpTrait.MULTIPLIES)]
    next_product = np.append(products, np.iinfo(np.int64).max)[np.searchsorted(products, last)]
    after = np.searchsorted(training.start_ps, last)
    before = np.searchsorted(training.start_ps, first) - 1
    known = after < len(training.start_ps)
    after, before = after[known], before[known]
    leads = training.begins[after]
    leads &= next_start[known] >= np.minimum(training.start_ps[after], next_product[known])
    waits = events_of_kind(trace, K.INPUT_WAIT)  # what fetches the batch after it makes the batch
    fetched = events.start_ps[waits[events.line[waits] == loop.line]]
    next_fetch = np.append(fetched, np.iinfo(np.int64).max)[np.searchsorted(fetched, last)]
    leads &= next_fetch[known] >= training.start_ps[after]
    leads &= (before < 0) | training.ends[np.maximum(before, 0)]
    return bool(2 * leads.sum() > len(after))


def _known_edges(function: LoopFunction, spans: Spans) -> tuple[I64, I64]:
    """When a function runs for certain: the first and the last moment of each of its spans, by the samples in it."""
    samples = function.samples
    if not len(samples):
        return spans.start, spans.end
    low, high = np.searchsorted(samples, spans.start), np.searchsorted(samples, spans.end)
    some = high > low
    return samples[low[some]], samples[high[some] - 1]
