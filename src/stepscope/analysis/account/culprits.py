"""What a cause is followed down to: a line of the program, an op with its layer, or a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.asked_by import function_that_asked
from stepscope.analysis.account.causes import LONG_GAP_PS, Cause, event_causes
from stepscope.analysis.account.critical_path import Pieces, around, kinds_of
from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.account.innermost import cut_by_events
from stepscope.analysis.account.nodes import numbers_in
from stepscope.analysis.account.statements import Statement, has_statements, is_called_in_loop, main_statement
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.account.worker_functions import function_of_workers, waits_for_workers
from stepscope.analysis.steps.find_steps import holds_step, observed_time, steps_of, whole_steps
from stepscope.analysis.steps.stack_samples import (
    SampledFunction,
    function_called_back,
    has_native_samples,
    main_function,
    sampled_frames,
)
from stepscope.analysis.trace.attribution import HowKnown, attribute
from stepscope.analysis.trace.call_sites import call_sites, site_text
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind, is_call_with, is_inside
from stepscope.analysis.trace.forward_ops import forward_events
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.trace.source_lines import source_lines
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I32, I64, Mask, distinct, places_of
from stepscope.records import dataclass
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.lookup import has_trait, name_has, type_names
from stepscope.vocabulary.python import below_packages, is_of_user, place_of
from stepscope.vocabulary.tf_data import plain_name
from stepscope.vocabulary.torch import MODULE_PREFIX
from stepscope.vocabulary.traits import CallTrait, CodeTrait, InputTrait, OpTrait

K = EventKind

_MOST_OF = 0.5  # of a cause's time: a frame further in that holds as much is where to look
_NEARLY_ALL = 0.9  # of a step
_OF_PYTHON = (Cause.PYTHON, Cause.INPUT, Cause.CHECKPOINT, Cause.LAUNCH)  # where a function says more than the op
_SAMPLED = (Cause.HOST_COMPUTE, Cause.PYTHON, Cause.UNKNOWN)  # what samples of compiled code tell
_CALLS = OpTrait.CALLS_PYTHON | OpTrait.CALLS_BACK
_OPS = (K.OP, K.BACKWARD, K.INPUT_WAIT, K.ITERATOR, K.TRACED_FUNCTION, K.EAGER_EXECUTE, K.COLLECTIVE_CALL, K.CHECKPOINT)
_CALLS_OF_RUNTIME = (K.RUNTIME_CALL, K.SYNC)
_OPS_OF_WORK = (HowKnown.OWN, HowKnown.GRAPH, HowKnown.CALL)  # device work that an op is known to have asked for


@dataclass(frozen=True)
class Culprit:
    """What a person can look at, or edit.

    Attributes:
        name: the function, op or kernel.
        file, line: where a recorded Python call is defined, or the line that the instructions of a compiled program
            were traced from; None where neither is known.
        op: the op that runs then; None where there is none.
        layer: the module around it, or the stage of the input pipeline; None if the trace does not tell.
        inside: of a function the library's function within it that most of the time is spent in; None without one.
        statement: of a function the line in it that holds most of its time; None where that is not known.
        calls: how often in the step, None where only samples of the stack show it; ps: for how long the step waits for
            it.
        length_ps: how long these calls last together, with what is inside them and what the step does not wait for; 0
            where that is not known.
        holds_steps: it has the loop over steps, as far as samples show: all of each step is in it.
    """

    name: str
    file: str | None
    line: int | None
    op: str | None
    layer: str | None
    calls: int | None
    ps: int
    inside: str | None = None
    statement: Statement | None = None
    length_ps: int = 0
    holds_steps: bool = False

    @property
    def place(self) -> tuple[str, str | None, int | None]:
        """What makes it another one: its name, file and line."""
        return self.name, self.file, self.line

    @property
    def where(self) -> str | None:
        """`train.py:14`, the line to look at: the statement that holds most of its time, else where it is defined."""
        if self.statement is not None:
            return self.statement.place
        if self.file is None:
            return None
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Finder:
    """Finds the culprits of stretches of time.

    Args:
        event: int64 of shape (n,), the innermost event of a thread, or the device work; -1 where nothing is recorded.
        length_ps: int64 of shape (n,).
    """

    def __init__(self, trace: HostTrace, event: I64, length_ps: I64) -> None:
        self._trace, self._event, self._length = trace, event, length_ps
        self._is_work = (event >= 0) & is_device_work(trace)[event]
        # Device work is followed to the call that launched it, and backward work to its forward op.  No line of the
        # program asks for what hooks of a backward pass send.
        host = np.where(self._is_work, forest(trace).cause[event], event).astype(np.int64)
        talks = np.flatnonzero(is_any_kind(kinds_of(trace, event), (K.COLLECTIVE, K.COLLECTIVE_CALL)) & (host >= 0))
        of_hooks = talks[is_inside(trace, host[talks], K.BACKWARD)]
        self._host = forward_events(trace, host)
        self._host[of_hooks] = -1
        self._users = self._find_frames("nearest frames of the user", _nearest_users)
        self._all: tuple[_Frames, I64] | None = None

    def _find_frames(self, key: str, nearest_of: Callable[[HostTrace], I32]) -> tuple[_Frames, I64]:
        """Frames around the stretches, and the innermost of them around each; -1 without one."""
        nearest = self._trace.derived(key, nearest_of)
        found = _frames_around(self._trace, nearest, self._host)
        inner = np.where(self._host >= 0, nearest[self._host], -1)
        return found, np.where(inner >= 0, np.searchsorted(found.event, inner), -1)

    def culprit(self, rows: I64) -> Culprit | None:
        """The culprit of some stretches by what was recorded in them; None where that is nothing but the step's own
        mark."""
        rows = rows[self._event[rows] >= 0]
        named = rows[kinds_of(self._trace, self._event[rows]) != K.STEP_MARK]
        if (found := self._find_worker_culprit(named)) is not None:
            return found
        op, op_rows = self._longest_op(named)
        if len(replayed := self._replayed(named)):
            return self._make_op_culprit(replayed, None, replayed[:0])
        frame, calls, ps = self._function(rows)
        length_ps = int(forest(self._trace).extent_ps[calls].sum())
        fills_steps = frame >= 0 and self._is_of_devices(rows) and self._fill_steps(calls)
        statement = self._statement(frame) if frame >= 0 else None
        if frame >= 0 and not fills_steps and (statement is not None or not self._only_holds(rows, frame)):
            place, inside = self._place(frame), self._inside(rows, frame)
            return Culprit(*place, op, self._layer(rows), len(calls), ps, inside, statement, length_ps)
        if not len(named):
            return None
        if fills_steps:
            work = named[self._is_work[named]]
            return self._traced_line(work) or self.op_culprit(work) or self._make_op_culprit(work, None, work[:0])
        return (
            self._called_back(named, op, op_rows)
            or self._traced_line(named)
            or self._make_op_culprit(named, op, op_rows)
        )

    def range_culprit(self, rows: I64) -> Culprit | None:
        """The program's own range furthest in that holds most of some stretches, those of backward work where their
        forward ops ran; None where only what holds the steps does."""
        frame, calls, ps = self._frame(rows, *self._find_frames("nearest ranges", _nearest_ranges))
        if frame < 0 or self._fill_steps(calls) or self._hold_steps(np.array([frame]))[0]:
            return None
        length_ps = int(forest(self._trace).extent_ps[calls].sum())
        name = self._trace.name_of(frame)
        return Culprit(name, None, None, None, self._layer(rows), len(calls), ps, None, None, length_ps)

    def _replayed(self, rows: I64) -> I64:
        """The stretches of work that graphs replay and of which no op is known, where that is most of them: the kernel
        says what it is, while what replays the graph holds all that was captured, wherever that is written."""
        work = rows[self._is_work[rows]]
        found = attribute(self._trace)
        at = np.searchsorted(found.rows, self._event[work])
        call = found.call[at]
        graph = (call >= 0) & ~np.isin(found.source[at], _OPS_OF_WORK)
        graph &= has_trait(self._trace, self._trace.events.type[np.maximum(call, 0)], CallTrait.LAUNCHES_GRAPH)
        is_most = 2 * int(self._length[work[graph]].sum()) > int(self._length[rows].sum())
        return work[graph] if is_most else work[:0]

    def _only_holds(self, rows: I64, frame: int) -> bool:
        """Whether a frame holds several steps and what most of some stretches are is ops in it, which it says nothing
        of."""
        ops = is_any_kind(kinds_of(self._trace, self._event[rows]), (K.OP, K.BACKWARD)) & (self._event[rows] >= 0)
        is_most = 2 * int(self._length[rows[ops]].sum()) > int(self._length[rows].sum())
        start, steps = int(self._trace.events.start_ps[frame]), steps_of(self._trace)
        end = start + int(forest(self._trace).extent_ps[frame])
        return is_most and int(np.count_nonzero((steps.start_ps >= start) & (steps.end_ps <= end))) > 1

    def _is_of_devices(self, rows: I64) -> bool:
        """Whether most of some stretches is work of devices."""
        return 2 * int(self._length[rows[self._is_work[rows]]].sum()) > int(self._length[rows].sum())

    def _fill_steps(self, calls: I64) -> bool:
        """Whether some calls take nearly all of their steps: such say nothing of what devices do in them."""
        steps, start = steps_of(self._trace), self._trace.events.start_ps[calls]
        inside = Spans.union(start, start + forest(self._trace).extent_ps[calls])
        taken = inside.overlap_ps(steps.start_ps, np.maximum(steps.until_ps, steps.start_ps))
        whole = int((steps.until_ps - steps.start_ps)[taken > 0].sum())
        return int(taken.sum()) >= _NEARLY_ALL * whole > 0

    def op_culprit(self, rows: I64) -> Culprit | None:
        """The op that asked for most of some device work, with its layer; None where no op is known for it: a function
        around its launch is none."""
        found = attribute(self._trace)
        source = found.source[np.searchsorted(found.rows, self._event[rows])]
        op, op_rows = self._longest_op(rows[np.isin(source, _OPS_OF_WORK)])
        return None if op is None else self._make_op_culprit(rows, op, op_rows)

    def sampled(self, rows: I64, line: int, spans: Spans, of_input: bool = False) -> Culprit | None:
        """The function that samples of a thread's stack show for most of some time, for stretches of that time; None
        where calls were recorded.

        Where the thread waits in a library for input, it is the function of the program that another one makes the
        input in.
        """
        if (self._users[1][rows] >= 0).any() or self._find_worker_culprit(rows[self._event[rows] >= 0]) is not None:
            return None
        found = main_function(self._trace, line, spans)
        if found is None:
            return None
        op, op_rows = self._longest_op(rows[self._event[rows] >= 0])
        if of_input and not name_has(self._trace.name_of(found.frame), CodeTrait.OF_USER):
            maker = function_called_back(self._trace, spans, innermost=True)
            found = SampledFunction(maker, found.share) if maker >= 0 else found
        inside = self._place_text(found.inside) if found.inside >= 0 else None
        ps = round(found.share * int(self._length[rows].sum()))
        frame = self._trace.name_of(found.frame)  # what a library's does for the program, a line of that asks for
        statement = main_statement(self._trace, line, frame if name_has(frame, CodeTrait.OF_USER) else None, spans)
        holds_steps = _has_the_loop(self._trace, line, found.frame)
        if holds_steps and statement is None and inside is None:
            return None  # all that the program does is in it
        place, layer = self._place(found.frame), self._layer(op_rows)
        return Culprit(*place, op, layer, None, ps, inside, statement, holds_steps=holds_steps)

    def computed_by(self, rows: I64, line: int, spans: Spans, follows: bool = True) -> Culprit | None:
        """The innermost function of the program that samples of a thread show in some time in which it computes, or the
        line of a script that has none; of a backward pass, if that is followed, the one that ran the forward ops.  None
        where calls were recorded, or no sample shows one."""
        if (self._users[1][rows] >= 0).any():
            return None
        op, op_rows = self._longest_op(rows[self._event[rows] >= 0])
        if follows and (asked := function_that_asked(self._trace, line, spans)) is not None:
            frame, ps = asked.function.frame, round(asked.share * int(self._length[rows].sum()))
            statement = main_statement(self._trace, line, self._trace.name_of(frame), asked.function.spans)
            return Culprit(*self._place(frame), op, self._layer(op_rows), None, ps, statement=statement)
        found = main_function(self._trace, line, spans)
        if found is None or not name_has(self._trace.name_of(found.frame), CodeTrait.OF_USER):
            return None
        ps = round(found.share * int(self._length[rows].sum()))
        statement = main_statement(self._trace, line, self._trace.name_of(found.frame), spans)
        holds_steps = _has_the_loop(self._trace, line, found.frame)
        if holds_steps and statement is None:
            return None
        place, layer = self._place(found.frame), self._layer(op_rows)
        return Culprit(*place, op, layer, None, ps, statement=statement, holds_steps=holds_steps)

    def labels(self) -> I64:
        """What each stretch is of, as a number: the innermost function of the program around it, else its op, else its
        event's type; -1 where nothing is recorded."""
        (frames, frame_of), types = self._users, len(self._trace.event_types)
        own = np.where(self._event >= 0, self._trace.events.type[self._event], -1).astype(np.int64)
        named = np.where(self._op_numbers >= 0, 2 * types + self._op_numbers, own)
        return np.where(frame_of >= 0, types + frames.function[frame_of], named) if len(frames.event) else named

    def _statement(self, frame: int) -> Statement | None:
        """The line that holds most of the time of a recorded function, where its thread was sampled, too."""
        line, type_ = int(self._trace.events.line[frame]), self._trace.events.type[frame]
        if not has_statements(self._trace, line):
            return None
        rows = np.arange(int(self._trace.lines.event_begin[line]), int(self._trace.lines.event_end[line]))
        calls = spans_of(self._trace, rows[self._trace.events.type[rows] == type_])
        return main_statement(self._trace, line, self._trace.name_of(frame), calls)

    def _place(self, frame: int) -> tuple[str, str | None, int | None]:
        """The function of a call, with file and line where these are the program's: nobody edits a library's."""
        name, file, line = place_of(self._trace.name_of(frame))
        is_users = name_has(self._trace.name_of(frame), CodeTrait.OF_USER)
        return (name, file, line) if is_users else (name, None, None)

    def _find_worker_culprit(self, rows: I64) -> Culprit | None:
        """The function of worker processes that most of the time is waited for; None for other time."""
        found = function_of_workers(self._trace)
        if found is None:
            return None
        op, op_rows = self._longest_op(rows)
        waits_ps = int(self._length[op_rows].sum())
        if op is None or not waits_for_workers(op) or waits_ps < _MOST_OF * int(self._length[rows].sum()):
            return None
        name, file, line = place_of(self._trace.name_of(found.frame))
        return Culprit(name, file, line, op, None, None, round(found.share * waits_ps))

    def _called_back(self, rows: I64, op: str | None, op_rows: I64) -> Culprit | None:
        """The function that an op of a graph or a stage of its input calls, which most of the time is; None where no
        sample shows it."""
        op_ps = int(self._length[op_rows].sum())
        makes_input = op is not None and name_has(op, InputTrait.FROM_PYTHON)
        if op is None or op_ps < _MOST_OF * int(self._length[rows].sum()):
            return None
        if not (makes_input or name_has(op, _CALLS) or self._holds_calls(distinct(self._op_events[op_rows]))):
            return None
        events = distinct(self._op_events[op_rows])
        alike = np.flatnonzero(np.isin(self._trace.events.type, self._trace.events.type[events]))  # in every step
        frame = function_called_back(self._trace, spans_of(self._trace, alike), makes_input)
        if frame < 0:
            return None
        return Culprit(*place_of(self._trace.name_of(frame)), op, self._layer(op_rows), len(events), op_ps)

    def _holds_calls(self, events: I64) -> bool:
        """Whether ops of other threads that call Python run for most of the time of some stages of an input."""
        ops = events_of_kind(self._trace, K.OP)
        ops = ops[has_trait(self._trace, self._trace.events.type[ops], OpTrait.CALLS_PYTHON)]
        if not len(ops) or not len(events) or self._trace.events.kind[events[0]] != K.ITERATOR:
            return False
        alike = np.flatnonzero(np.isin(self._trace.events.type, self._trace.events.type[events]))  # in every step
        waits = spans_of(self._trace, alike)
        return (spans_of(self._trace, ops) & waits).total >= _MOST_OF * waits.total > 0

    def _function(self, rows: I64) -> tuple[int, I64, int]:
        """The user's function furthest in that holds most of the time, as `_frame` has it.  Where that calls a library
        that runs the loop over steps, it is the first function within that loop that does."""
        found = self._frame(rows, *self._users)
        if found[0] < 0 or not self._hold_steps(np.array([found[0]]))[0]:
            return found
        frames, frame_of = self._all_frames()
        loops = self._hold_steps(frames.event)
        innermost = self._frame(rows, frames, frame_of, loops)[0]
        if innermost < 0 or self._trace.events.type[innermost] == self._trace.events.type[found[0]]:
            return found
        own = np.array(
            [name_has(self._trace.name_of(each), CodeTrait.OF_USER) for each in frames.event.tolist()], np.bool_
        )
        within = self._frame(rows, frames, frame_of, own & ~loops, outermost=True)
        if within[0] < 0:
            within = self._frame(rows, frames, frame_of, ~loops, outermost=True)
        return within if within[0] >= 0 else found

    def _hold_steps(self, frames: I64) -> Mask:
        start = self._trace.events.start_ps[frames]
        return holds_step(self._trace, start, start + forest(self._trace).extent_ps[frames])

    def _make_op_culprit(self, rows: I64, op: str | None, op_rows: I64) -> Culprit:
        name = op or self._name_of_most(self._event[rows], rows) or ""
        if op is None:
            op_rows = rows[self._names(rows) == name]
        calls, ps = self._calls(op_rows), int(self._length[op_rows].sum())
        name = self._forward_name(op_rows) or name
        length_ps = int(forest(self._trace).extent_ps[calls].sum())
        statement = self._statement_around(op_rows) or self._recorded_site(op_rows)
        return Culprit(name, None, None, op, self._layer(op_rows), len(calls), ps, None, statement, length_ps)

    def _forward_name(self, rows: I64) -> str:
        """The forward op that some stretches of a thread's backward work belong to: that is what a program asks for;
        empty for others, and where it is not known."""
        own = rows[~self._is_work[rows]]
        back = own[kinds_of(self._trace, self._op_events[own]) == K.BACKWARD]
        linked = back[(self._host[back] >= 0) & (kinds_of(self._trace, self._host[back]) == K.OP)]
        if not len(linked) or 2 * int(self._length[linked].sum()) <= int(self._length[rows].sum()):
            return ""
        return self._name_of_most(self._host[linked], linked) or ""

    def _recorded_site(self, rows: I64) -> Statement | None:
        """The line of the program that most of some ops have in the stacks that they carry themselves; None where they
        carry none, or no line holds most of the time."""
        if not self._trace.has_stat(stat_names.CALL_STACK):
            return None
        is_op = np.zeros(256, np.uint8)
        is_op[list(_OPS)] = 1
        own = self._host[rows]
        around_them = around(self._trace, own, is_op, 1, by_kind=True)
        inner, outer = (
            np.where(events >= 0, call_sites(self._trace, np.maximum(events, 0)), -1) for events in (own, around_them)
        )
        site, at = np.unique(np.where(inner >= 0, inner, outer), return_inverse=True)
        texts = ["" if row < 0 else site_text(self._trace.strings[row]) for row in site.tolist()]
        lengths = np.bincount(at.ravel(), weights=self._length[rows], minlength=len(site))
        of_line: dict[tuple[str, int], float] = {}
        for text, ps in zip(texts, lengths.tolist(), strict=True):
            _, file, line = place_of(text)
            if file is not None and line is not None and is_of_user(text):
                of_line[file, line] = of_line.get((file, line), 0.0) + ps
        if not of_line:
            return None
        (file, line), ps = max(of_line.items(), key=lambda item: item[1])
        share = ps / float(lengths.sum())
        return Statement(file, line, "", share) if share >= _MOST_OF else None

    def _statement_around(self, rows: I64) -> Statement | None:
        """The line of the program in which the loop's thread asks for most of some ops, as far as samples tell."""
        asked = distinct(self._host[rows][self._host[rows] >= 0])
        line = steps_of(self._trace).line
        asked = asked[self._trace.events.line[asked] == line]
        if not len(asked) or not has_statements(self._trace, line):
            return None
        alike = np.flatnonzero(np.isin(self._trace.events.type, distinct(self._trace.events.type[asked])))
        alike = alike[self._trace.events.line[alike] == line]
        return main_statement(self._trace, line, None, spans_of(self._trace, alike) & observed_time(self._trace))

    def _traced_line(self, rows: I64) -> Culprit | None:
        """The line of the program whose instructions take most time inside compiled programs; None where no line is
        known for most of the time."""
        event = self._event[rows].copy()
        thread = np.flatnonzero(~self._is_work[rows])
        event[thread] = self._op_events[rows[thread]]
        inside = np.flatnonzero(event >= 0)
        line, lines = source_lines(self._trace, event[inside])
        known = inside[line >= 0]
        if int(self._length[rows[known]].sum()) <= _MOST_OF * int(self._length[rows].sum()):
            return None
        best = int(np.argmax(np.bincount(line[line >= 0], weights=self._length[rows[known]])))
        chosen = inside[line == best]
        found, ps = lines[best], int(self._length[rows[chosen]].sum())
        op = self._longest_op(rows[chosen])[0]
        calls = len(distinct(event[chosen]))
        return Culprit(found.function or op or found.file, found.file, found.line, op, None, calls, ps)

    def _inside(self, rows: I64, frame: int) -> str | None:
        """The place and name of the library's function furthest in that most of the time is spent in."""
        inner = self._frame(rows, *self._all_frames())[0]
        if inner < 0 or self._trace.events.type[inner] == self._trace.events.type[frame]:
            return None
        return self._place_text(inner)

    def _all_frames(self) -> tuple[_Frames, I64]:
        if self._all is None:
            self._all = self._find_frames("nearest frames", _nearest_frames)
        return self._all

    def _place_text(self, frame: int) -> str:
        name, file, line = place_of(self._trace.name_of(frame))
        return f"{below_packages(file)}:{line} {name}" if file else name

    def _frame(
        self, rows: I64, frames: _Frames, frame_of: I64, among: Mask | None = None, outermost: bool = False
    ) -> tuple[int, I64, int]:
        """The function furthest in, or out, that holds most of the time: an event of it, its calls, and time; -1
        without one.

        Args:
            among: bool of shape (frames,), which of them count; None for all.
        """
        frame = frame_of[rows]
        if not (frame >= 0).any():
            return -1, rows[:0], 0
        held = np.bincount(frame[frame >= 0], weights=self._length[rows][frame >= 0], minlength=len(frames.event))
        held = held.astype(np.int64)
        kernels.nesting.add_to_ancestors(held, frames.parent)
        held = held if among is None else held * among
        counted = np.flatnonzero((held > 0) & ~frames.inside_itself)
        ps = np.bincount(frames.function[counted], weights=held[counted])
        deep = np.full(len(ps), np.iinfo(np.int64).max)
        some = np.flatnonzero(held > 0)
        np.minimum.at(deep, frames.function[some], frames.depth[some])
        holds = np.flatnonzero(ps >= max(_MOST_OF * int(self._length[rows].sum()), 1))
        if not len(holds):
            return -1, rows[:0], 0
        chosen = int(holds[np.argmin(deep[holds]) if outermost else np.argmax(deep[holds])])
        calls = frames.event[counted[frames.function[counted] == chosen]]
        return int(calls[0]), calls, int(ps[chosen])

    def _longest_op(self, rows: I64) -> tuple[str | None, I64]:
        """The op that takes most of the time of the pieces, and its pieces."""
        names = self._op_numbers[rows]
        known = names >= 0
        if not known.any():
            return None, rows[:0]
        total = np.bincount(names[known], weights=self._length[rows][known])
        best = int(np.argmax(total))
        unnamed = rows[~known & self._is_work[rows]]
        of_name = np.bincount(self._trace.event_names(self._event[unnamed]), weights=self._length[unnamed])
        if of_name.max(initial=0.0) > total[best]:  # of no known op, and more than any op has
            return None, rows[:0]
        return self._op_text(best), rows[known & (names == best)]

    @cached_property
    def _op_numbers(self) -> I64:
        """The op of each piece, as `_ops_of_work` and `_ops_of_threads` number it: most questions are about it."""
        return np.where(self._is_work, self._ops_of_work(), self._ops_of_threads())

    def _op_text(self, number: int) -> str:
        """The name of an op as `_ops_of_work` and `_ops_of_threads` number it."""
        strings = self._trace.strings
        if number < len(strings):
            return strings[number]
        name, kind = attribute(self._trace).ops[number - len(strings)]
        return name if kind == "graph launch" else brief(name)

    def _ops_of_work(self) -> I64:
        """A number for the op of each piece of device work: beyond those of strings."""
        found, event = attribute(self._trace), self._event
        op = np.append(found.op, -1)[places_of(found.rows, event)]
        return np.where(op >= 0, op.astype(np.int64) + len(self._trace.strings), -1)

    def _ops_of_threads(self) -> I64:
        """The string row of the innermost op around each piece of a thread, -1 without one."""
        at = self._op_events
        return np.where(at >= 0, self._trace.event_names(at), -1).astype(np.int64)

    @cached_property
    def _op_events(self) -> I64:
        """The innermost op around each piece of a thread, -1 without one; of what TensorFlow does to start an op the
        event that has the op's name, and of memory that an op asks for that op."""
        is_op = np.zeros(256, np.uint8)
        is_op[list(_OPS)] = 1
        found: I64 = around(self._trace, self._event, is_op, 1, by_kind=True)
        starting = np.flatnonzero(kinds_of(self._trace, found) == K.EAGER_EXECUTE)
        if len(starting):
            named = self._trace.derived("nearest dispatches", _nearest_dispatches)[found[starting]]
            found[starting] = np.where(named >= 0, named, found[starting])
        while len(taking := np.flatnonzero(self._only_allocates(found))):
            callers = forest(self._trace).parent[found[taking]].astype(np.int64)
            caller = around(self._trace, callers, is_op, 1, by_kind=True)
            if not (caller >= 0).any():
                break
            found[taking] = np.where(caller >= 0, caller, found[taking])
        return found

    def _only_allocates(self, ops: I64) -> Mask:
        types = self._trace.events.type[np.maximum(ops, 0)]
        return (ops >= 0) & has_trait(self._trace, types, OpTrait.ONLY_ALLOCATES)

    def _names(self, rows: I64) -> np.ndarray:
        return np.array([self._trace.name_of(event) for event in self._event[rows].tolist()], object)

    def _name_of_most(self, event: I64, rows: I64, least: float = 0.0) -> str | None:
        """The name that the events around some pieces have for most of their time; None where none is around them, or
        none for that share of it."""
        inside = event >= 0
        if not inside.any():
            return None
        total = np.bincount(self._trace.event_names(event[inside]), weights=self._length[rows][inside])
        longest = int(np.argmax(total))
        return self._trace.strings[longest] if total[longest] >= least * self._length[rows].sum() else None

    def _calls(self, rows: I64) -> I64:
        """The device work, calls of ops, or other events that the pieces are of: rows of events."""
        event = self._event[rows]
        op = np.where(self._is_work[rows], -1, self._op_events[rows])
        return distinct(np.where(op >= 0, op, event))

    def _layer(self, rows: I64) -> str | None:
        """The module that most of the time of the pieces is in; without modules the stage of the input pipeline."""
        modules = self._trace.derived("frames of modules", _module_frames)
        if not len(modules):
            return self._stage(rows)
        level = np.zeros(len(self._trace.events), np.uint8)
        level[modules] = 1
        name = self._name_of_most(around(self._trace, self._host[rows], level, 1), rows, _MOST_OF)
        return None if name is None else name.removeprefix(MODULE_PREFIX)

    def _stage(self, rows: I64) -> str | None:
        """The stage of a tf.data pipeline that the pieces work for, on its own threads or those of a pool."""
        is_stage = np.zeros(256, np.uint8)
        is_stage[K.ITERATOR] = 1
        links, found = forest(self._trace), np.empty(len(rows), np.int64)
        kernels.ops.climb(self._host[rows], links.parent, links.cause, self._trace.events.kind, is_stage, 1, found)
        name = self._name_of_most(found, rows)
        return None if name is None else plain_name(name)


class PieceFinder:
    """Finds the culprits of a step's pieces."""

    def __init__(self, trace: HostTrace, graph: Graph, pieces: Pieces) -> None:
        self._trace, self._event = trace, pieces.event
        self._start = pieces.start_ps
        self._length, is_work = pieces.end_ps - pieces.start_ps, graph.kind[pieces.node] == NodeKind.WORK
        main, line = steps_of(trace).line, graph.line[pieces.node]
        self._main = main if main >= 0 else threads_of(trace).main  # without steps
        self._is_own = (line == self._main) & (line >= 0) & ~is_work
        event = np.where(is_work, graph.event[pieces.node], pieces.event)
        self._finder = Finder(trace, event.astype(np.int64), self._length)

    def labels(self) -> I64:
        """As of `Finder.labels`."""
        return self._finder.labels()

    def culprit(self, rows: I64, cause: Cause, during: Spans | None = None) -> Culprit | None:
        """The culprit of the pieces that have a cause; samples of the stack tell where most is the loop's own time.

        None where nothing recorded names one.

        Args:
            during: the time whose samples tell it, if it is long enough; all steps tell it otherwise.
        """
        own = rows[self._is_own[rows]]
        if len(own) and self._length[own].sum() >= _MOST_OF * self._length[rows].sum():
            longest = int(self._event[own[np.argmax(self._length[own])]])
            said = int(event_causes(self._trace)[longest]) if longest >= 0 else int(Cause.PYTHON)
            found, is_told = None, longest >= 0 or cause not in _SAMPLED
            if has_native_samples(self._trace) and is_told:
                said = int(Cause.UNKNOWN)  # a call, or what devices do: samples of compiled code say less
            if said in _OF_PYTHON:
                spans, of_input = _time_of_cause(self._trace, self._main, said), cause == Cause.INPUT
                if during is not None:
                    found = self._finder.sampled(rows, self._main, spans & during, of_input)
                found = found or self._finder.sampled(rows, self._main, spans, of_input)
            elif said == Cause.HOST_COMPUTE:
                found = self._finder.computed_by(rows, self._main, _time_of_cause(self._trace, self._main, said))
            if found is not None:
                return found
        if cause in (Cause.LAUNCH, Cause.PYTHON):
            found = self._finder.culprit(rows)
            if found is not None and (found.where or 2 * found.ps > int(self._length[rows].sum())):
                return found
            return self._finder.range_culprit(rows) or found
        if cause != Cause.UNKNOWN:
            return self._finder.culprit(rows)
        return self._finder.culprit(rows[self._covers(rows)]) or self._between(rows)

    def _between(self, rows: I64) -> Culprit | None:
        """The calls before and after the longest time of the loop's thread in which nothing was recorded, where that is
        most of some pieces; None elsewhere."""
        own = rows[self._is_own[rows] & (self._event[rows] < 0)]
        if not len(own):
            return None
        spans = Spans.union(self._start[own], self._start[own] + self._length[own])
        longest = int(np.argmax(spans.end - spans.start))
        start, end = int(spans.start[longest]), int(spans.end[longest])
        events = self._trace.events
        line = slice(int(self._trace.lines.event_begin[self._main]), int(self._trace.lines.event_end[self._main]))
        starts, ends = events.start_ps[line], events.start_ps[line] + events.duration_ps[line]
        before, after = np.flatnonzero(ends <= start), np.flatnonzero(starts >= end)
        if end - start < _MOST_OF * int(self._length[rows].sum()) or not len(before) or not len(after):
            return None
        last, following = line.start + int(before[np.argmax(ends[before])]), line.start + int(after[0])
        name = f"from {self._trace.name_of(last)} to {self._trace.name_of(following)}"
        return Culprit(name, None, None, None, None, 1, end - start)

    def _covers(self, rows: I64) -> Mask:
        """Whether what was recorded goes on through each piece: what only comes next does not explain it."""
        event, events = np.maximum(self._event[rows], 0), self._trace.events
        starts, length = (
            events.start_ps[event],
            np.maximum(events.duration_ps[event], forest(self._trace).extent_ps[event]),
        )
        end = self._start[rows] + self._length[rows]
        found: Mask = (self._event[rows] >= 0) & (starts <= self._start[rows]) & (starts + length >= end)
        return found

    def waiting_call(self, rows: I64) -> Culprit | None:
        """The function whose call waits for a device on the loop's thread during most of some pieces, with that call;
        None where none does."""
        events, line = self._trace.events, threads_of(self._trace).main
        calls = np.flatnonzero(is_any_kind(events.kind, _CALLS_OF_RUNTIME) & (events.line == line))
        calls = calls[events.duration_ps[calls] >= LONG_GAP_PS]
        calls = calls[has_trait(self._trace, events.type[calls], CallTrait.MAY_BLOCK)]
        meanwhile = Spans.union(self._start[rows], self._start[rows] + self._length[rows])
        waits_ps = meanwhile.overlap_ps(events.start_ps[calls], events.start_ps[calls] + events.duration_ps[calls])
        if 2 * int(waits_ps.sum()) <= meanwhile.total:
            return None
        waits = meanwhile & spans_of(self._trace, calls)
        found = culprit_of_time(self._trace, line, waits)
        if found is not None and found.where is None:  # the op says nothing of where the program waits
            found = range_of_time(self._trace, line, waits) or found
        return found and replace(found, inside=self._trace.name_of(int(calls[np.argmax(waits_ps)])))


def _has_the_loop(trace: HostTrace, line: int, frame: int) -> bool:
    """Whether samples of a thread never show it outside of a function, in steps, that no statement calls in a loop: it
    has the loop over steps.  Not known where no statements were sampled."""
    types = trace.events.type
    rows = sampled_frames(trace, line)
    rows = rows[types[rows] == types[frame]]
    start, end = trace.events.start_ps[rows], trace.events.start_ps[rows] + trace.events.duration_ps[rows]
    holds_all = len(rows) == 1 and bool(holds_step(trace, start, end)[0])
    return holds_all and has_statements(trace, line) and not is_called_in_loop(trace, line, trace.name_of(frame))


def culprit_of_time(trace: HostTrace, line: int, spans: Spans) -> Culprit | None:
    """The culprit of some time of a thread; None where nothing recorded names one."""
    if not len(spans.start):
        return None
    _, start, end, event = cut_by_events(trace, line, spans.start, spans.end)
    finder, rows = Finder(trace, event, end - start), np.arange(len(event))
    return finder.sampled(rows, line, spans) or finder.culprit(rows)


def range_of_time(trace: HostTrace, line: int, spans: Spans) -> Culprit | None:
    """The program's own range that holds most of some time of a thread; see `Finder.range_culprit`."""
    _, start, end, event = cut_by_events(trace, line, spans.start, spans.end)
    return Finder(trace, event, end - start).range_culprit(np.arange(len(event)))


def _time_of_cause(trace: HostTrace, line: int, cause: int) -> Spans:
    """When a thread spends time on a cause itself, in all whole steps; Python is what no other event explains."""
    steps = whole_steps(trace)
    seen = Spans.union(steps.start_ps, steps.end_ps)
    rows = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    said = event_causes(trace)[rows]
    if cause == Cause.PYTHON:
        return seen - spans_of(trace, rows[said != Cause.PYTHON])
    return seen & spans_of(trace, rows[said == cause])


@dataclass(frozen=True)
class _Frames:
    """The user's Python calls around a step's pieces, as columns; a call comes after the one around it.

    Attributes:
        event: int64 of shape (n,), rows of events, ascending.
        parent: int32 of shape (n,), the place of the next of them further out, or -1.
        depth: int64 of shape (n,), how many are around it.
        function: int64 of shape (n,), a number for each function.
        inside_itself: bool of shape (n,), a call of the same function is around it.
    """

    event: I64
    parent: I32
    depth: I64
    function: I64
    inside_itself: Mask


def _frames_around(trace: HostTrace, nearest: I32, events: I64) -> _Frames:
    """The frames around some events."""
    parent = forest(trace).parent
    found = [distinct(nearest[events[events >= 0]].astype(np.int64))]
    while len(found[-1]) and found[-1][-1] >= 0:
        inner = found[-1][found[-1] >= 0]
        above = parent[inner]
        found.append(distinct(np.where(above >= 0, nearest[above], -1).astype(np.int64)))
    frames = distinct(np.concatenate(found))
    frames = frames[frames >= 0]
    above = parent[frames]
    outer = np.where(above >= 0, nearest[above], -1)
    place = np.where(outer >= 0, np.searchsorted(frames, outer), -1).astype(np.int32)
    functions = trace.events.type[frames].astype(np.int64)
    return _Frames(frames, place, *_depths(place, functions))


def _depths(parent: I32, functions: I64) -> tuple[I64, I64, Mask]:
    """How many are around each frame, a number for its function, and whether one of the same function is around it."""
    number = np.searchsorted(distinct(functions), functions)
    depth, again = np.zeros(len(parent), np.int64), np.zeros(len(parent), np.bool_)
    rows, at = np.arange(len(parent)), parent
    while (going := np.flatnonzero(at >= 0)).size:
        rows, at = rows[going], at[going]
        depth[rows] += 1
        again[rows] |= number[at] == number[rows]
        at = parent[at]
    return depth, number, again


def _nearest_users(trace: HostTrace) -> I32:
    """The nearest Python call of the user's program around each event, itself included: int32 of shape (events,)."""
    return _nearest(trace, _users_frames(trace))


def _nearest_frames(trace: HostTrace) -> I32:
    """The nearest Python call of any file around each event, itself included: int32 of shape (events,)."""
    return _nearest(trace, is_call_with(trace, CodeTrait.IS_CODE))


def _nearest_ranges(trace: HostTrace) -> I32:
    """The nearest range that the program, or a library for it, marks around each event, itself included."""
    return _nearest(trace, trace.events.kind == K.ANNOTATION)


def _nearest_dispatches(trace: HostTrace) -> I32:
    """The nearest dispatch of a named op or function around each event, itself included: int32 of shape (events,)."""
    return _nearest(trace, has_trait(trace, trace.events.type, CallTrait.DISPATCHES))


def _nearest(trace: HostTrace, counts: Mask) -> I32:
    if not counts.any():
        return np.broadcast_to(np.int32(-1), len(counts))
    nearest = np.empty(len(trace.events), np.int32)
    kernels.nesting.nearest(forest(trace).parent, counts, nearest)
    return nearest


def _users_frames(trace: HostTrace) -> Mask:
    """Calls of functions of the user's program: bool of shape (events,).

    A file name such as `utils.py`, which frameworks have as well, is the user's unless a library calls it.
    """
    users = is_call_with(trace, CodeTrait.OF_USER)
    unsure = np.flatnonzero(users & is_call_with(trace, CodeTrait.MAY_BE_LIBRARY))
    part = is_call_with(trace, CodeTrait.PART_OF_FUNCTION)
    if not len(unsure):
        return users & ~part
    sure = is_call_with(trace, CodeTrait.IS_CODE)
    sure[unsure] = False
    around = _nearest(trace, sure)[unsure]
    users[unsure[(around >= 0) & ~users[around]]] = False
    return users & ~part


def _module_frames(trace: HostTrace) -> I64:
    """Recorded calls of modules: rows of events."""
    python = events_of_kind(trace, K.PYTHON_CALL)
    if not len(python):
        return python
    types = np.array(numbers_in(trace.events.type[python]), np.int64)
    is_module = np.zeros(len(trace.event_types), np.bool_)
    is_module[types] = [name.startswith(MODULE_PREFIX) for name in type_names(trace, types)]
    return python[is_module[trace.events.type[python]]]
