"""What the training loop does: how the thread that runs it spends its time, and what work it asks for.

The thread of the step marks is looked at from the first step's begin to the last one's end, between the steps too.
Each instant belongs to one activity, the first in the order of `Activity` that covers it.  What nothing covers is a
gap; a gap while other threads compute for the step is waiting for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.columns import named, observed, of_kinds, on_threads, rows_of, type_names
from stepscope.analysis.grouping import forest, is_device_work
from stepscope.analysis.spans import Spans, outermost, spans_of
from stepscope.analysis.stepping import HostSteps, whole_steps
from stepscope.analysis.work import CASTS, TAKES_IN, is_move
from stepscope.model import EventKind, HostTrace, Kind, LineKind, stat_names
from stepscope.model.arrays import I64, Mask

K = EventKind

_OF_STARTS = 50  # percent of the kernels, from the shortest, that take no longer than it takes to start one
_LEAST_FREED = 0.005  # bytes in a ps of a gap, from which on it is giving them back that takes it: 5 GB a second
SEVERAL_STEPS = 5  # from here on it tells something that a gap has no counterpart in any other step
LONG_GAP_PS = 300_000_000  # dispatching one op leaves shorter gaps; longer ones are a program's own Python
NEAR_FETCH_PS = 1_000_000_000  # from one fetched value to the next, where a program looks at many
MOST_NAMES = 12
MOST_SPANS = 3
NEVER = np.iinfo(np.int64).max
_LITTLE = 0.3
STATE_DICT_OPS = 4  # so many detached tensors in a row are a state_dict


class Activity(Kind):
    """What the loop's thread does; where several cover an instant the smallest number counts."""

    INPUT = 1
    CHECKPOINT = 2
    COMPILE = 3
    COLLECTIVE = 4
    TRANSFER = 5
    SYNC = 6
    PROGRAM = 7  # a compiled function: tf.function, jax.jit
    EAGER = 8  # a single op that is dispatched from Python
    OP = 9  # an op that computes on this very thread
    RUNTIME = 10  # calls of the framework that are none of these
    WAIT = 11  # nothing here, while other threads or a device work for the step
    DISPATCH = 12  # nothing, for a moment: Python between two calls
    PYTHON = 13  # nothing, for long


_OF_KIND: Mapping[EventKind, Activity] = {
    K.INPUT_WAIT: Activity.INPUT,
    K.CHECKPOINT: Activity.CHECKPOINT,
    K.COMPILE: Activity.COMPILE,
    K.COLLECTIVE_CALL: Activity.COLLECTIVE,
    K.COPY_HOST_TO_DEVICE_CALL: Activity.TRANSFER,
    K.SYNC: Activity.SYNC,
    K.TRACED_FUNCTION: Activity.PROGRAM,
    K.FUNCTION_RUN: Activity.PROGRAM,
    K.EAGER_EXECUTE: Activity.EAGER,
    K.OP: Activity.OP,
    K.BACKWARD: Activity.OP,
    K.EXECUTOR: Activity.OP,
    K.GRAPH_LAUNCH: Activity.OP,
    K.RUNTIME_CALL: Activity.RUNTIME,
    K.OTHER: Activity.RUNTIME,
}
# Python functions that say by their name what they do.  The name is the part after the last blank.
_TRAINS = r"(?!.*(?:train|test|eval|update|on_|optim|loss|backward|step))"
_PYTHON_RULES: tuple[tuple[Activity, str], ...] = (
    (
        Activity.CHECKPOINT,
        r".*[ .](?:\w*(?:save|checkpoint|ckpt|snapshot|serialize|savez)\w*|to_bytes)$|.*pickle\w* \w*dumps?$"
        r"|.*(?:orbax|checkpoint)\w*/",
    ),
    (
        Activity.INPUT,
        rf"{_TRAINS}.*[ .](?:__next__|__getitem__|\w*collate\w*|\w*augment\w*|\w*token\w*|\w*preprocess\w*"
        r"|\w*(?:batch|batches|dataset|loader|examples?|samples?|records?|images?|inputs?)|\w*(?:load|read|decode|fetch)_\w+)$"
        r"|.*(?:torch/utils/data|/grain/|tensorflow_datasets)",
    ),
    (Activity.SYNC, r".*[ .](?:_value|item|_item|tolist|device_get|__float__|__int__|__bool__|__array__)$"),
    (Activity.WAIT, r".*[ .](?:block_until_ready|try_to_block|synchronize)$"),
)
_PYTHON = tuple((activity, re.compile(pattern)) for activity, pattern in _PYTHON_RULES)
# Calls whose names are always the same.  The constants are arguments that are copied in, and afterwards given back.
# JAX runs a program of its own for a NumPy array that it takes in (jnp.asarray), and to convert one.
_OF_NAME: Mapping[str, Activity] = {
    **dict.fromkeys(("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"), Activity.SYNC),
    **dict.fromkeys(
        ("tf.constant", "convert_to_tensor", "shard_args", "PythonRefManager::CollectGarbage"), Activity.TRANSFER
    ),
    **{f"PjitFunction({name})": Activity.TRANSFER for name in TAKES_IN},
    **dict.fromkeys(
        (
            f"EagerLocalExecute: {op}"
            for op in ("SaveV2", "MergeV2Checkpoints", "RestoreV2", "ShardedFilename", "WriteFile")
        ),
        Activity.CHECKPOINT,
    ),
}
_SINGLE_OP = re.compile(r"EagerLocalExecute: ")
_READS_VARIABLE = frozenset({"EagerLocalExecute: ReadVariableOp", "EagerLocalExecute: Identity"})
_ASSIGNS = "EagerLocalExecute: AssignVariableOp"
# Calls out of Python, which take its lock again before they return; and ops of a dataset that hold it.
_EXECUTES = frozenset({"TFE_Py_ExecuteCancelable", "TFE_Py_FastPathExecute_C", "TFE_Py_Execute"})
_RUNS_PYTHON = re.compile(r".*:(?:Eager)?PyFunc(?:Stateless)?$")
_DETACH = "aten::detach"
_EAGER_KERNEL = "KernelAndDeviceFunc::Run"
_PYTHON_CODE = re.compile(r"\$.*\.py:\d+ |.*\.py\(\d+\): ")
# What stands between detached parameters that are copied out of the framework, one by one.
_COPIES_OUT = frozenset({"aten::to", "aten::resolve_conj", "aten::resolve_neg", "aten::alias", "aten::cpu"})
# What torch.tensor runs around the gap in which it goes through Python's lists, and what follows to change the type.
_FROM_PYTHON = "aten::lift_fresh"
_MAKES_TENSOR = re.compile(r"aten::(?:empty\w*|lift_fresh|detach_?|to|_to_copy|copy_)$|detach_$")
_GETS_GRADIENT = "torch::autograd::AccumulateGrad"
_READS_FILE = re.compile(
    r".*[ .](?:fromfile|open|readinto|readlines?|read|read_array\w*|imread|mmap|load)$"
    r"|<built-in (?:function (?:fromfile|open)|method read\w* of _io\.(?:Buffered\w+|FileIO|TextIOWrapper)\b.*)>$"
)
_NATIVE = re.compile(r"\$(?:numpy|<unknown>|scipy|PIL|cv2|_imaging)\b|.*/(?:numpy|scipy|PIL|cv2|skimage)/")


@dataclass(frozen=True)
class Span:
    """A stretch of the trace: what happens and when, in ps from the session's start."""

    name: str
    start_ps: int
    end_ps: int


@dataclass(frozen=True)
class Named:
    """Things of one name: how often, for how long altogether."""

    name: str
    calls: int
    total_ps: int


@dataclass(frozen=True)
class Recorded:
    """What recording an activity cost time for.

    Attributes:
        events: what was recorded besides Python calls.
        python_calls: Python calls.
        python_ps: time in which Python code itself ran while calls were recorded; of gaps only, since elsewhere its
            frames stay around what it waits for.
    """

    events: int
    python_calls: int
    python_ps: int


@dataclass(frozen=True)
class LoopFacts:
    """How the loop of one host spends its time, all steps together.

    Attributes:
        steps: how many.
        observed_ps: the time that is looked at (`columns.observed`); what `activity_ps` adds up to.
        activity_ps: time by activity, in lower case.
        busy: by the number of each step, its time without that in collectives.
        spans: the longest stretches of each activity.
        calls: how many outermost events of each activity there are.
        input_from_python_ps: the time of input that Python functions claim by their names.
        input_reads_files, input_is_native: percent of that time in functions that read files, and in NumPy and the
            like; None without such functions.
        programs: compiled functions that the loop calls, by name; `eager_ops` those it dispatches one by one.
        gaps: what Python functions fill long gaps, longest first.
        python_calls: Python calls that were recorded on the thread, each of which the recording made slower.
        before_program_ps: the part of the long gaps that lies before a step's first program, op or transfer.
        after_moves_ps: the part that gives memory back: it follows an op which moved or converted data, or as much
            is freed in it as takes that time.
        recorded: by activity, what of it was recorded.
        helper_events: what was recorded of the work of other threads for the steps.
        eager_kernels_ps: of the ops that are dispatched one by one, the time in their kernels beyond their start.
        fetches_ps: time of bursts of fetched values, and of all that the thread does between two of a burst;
            `fetches_recorded` what of that was recorded.
        update_ps: time of ops, and between them, that follow the last backward pass of a step: the optimizer's;
            `update_recorded` what of that was recorded.
    """

    steps: int
    observed_ps: int
    activity_ps: dict[str, int]
    busy: dict[int, int]
    spans: dict[str, list[Span]]
    calls: dict[str, int]
    input_from_python_ps: int
    input_reads_files_percent: float | None
    input_is_native_percent: float | None
    programs: list[Named]
    eager_ops: list[Named]
    gaps: list[Named]
    python_calls: int
    before_program_ps: int
    after_moves_ps: int
    recorded: dict[str, Recorded]
    helper_events: int
    eager_kernels_ps: int
    fetches_ps: int
    fetches_recorded: int
    update_ps: int = 0
    update_recorded: int = 0


@dataclass(frozen=True)
class _Loop:
    """The events of the loop's thread while it is observed, as columns."""

    trace: HostTrace = field(repr=False)
    row: I64
    kind: NDArray[np.uint8]
    start: I64
    end: I64
    type: NDArray[np.integer]
    activity: NDArray[np.uint8]

    def name(self, event: int) -> str:
        return self.trace.strings[self.trace.event_types.name[self.type[event]]]

    @cached_property
    def _by_activity(self) -> list[I64]:
        """The events of each activity, in order of time."""
        order = np.argsort(self.activity, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.activity, minlength=max(Activity) + 1))[:-1])

    @cached_property
    def _outer(self) -> list[I64]:
        """The same without those that lie in another one of their activity."""
        none, *others = self._by_activity
        return [none[:0], *(rows[outermost(self.start[rows], self.end[rows])] for rows in others)]

    def rows(self, activity: Activity) -> I64:
        """The events of an activity, in order of time."""
        return self._by_activity[activity]

    def of_kind(self, kind: EventKind) -> I64:
        """The events of a kind, in order of time."""
        return np.flatnonzero(of_kinds(self.kind, (kind,)))

    def at(self, rows: I64) -> Spans:
        return Spans.of(self.start[rows], self.end[rows])

    def of(self, *activities: Activity) -> Spans:
        return self.at(np.concatenate([self.outer(activity) for activity in activities]))

    def where(self, chosen: Mask) -> Spans:
        return Spans.of(self.start[chosen], self.end[chosen])

    def outer(self, activity: Activity) -> I64:
        """Events of an activity that lie in no other of it."""
        return self._outer[activity]


def loop_of(trace: HostTrace) -> LoopFacts | None:
    """How the loop of a host spends its time; None where no steps or no thread of the host were found."""
    return trace.derived("loop", _find)


def _find(trace: HostTrace) -> LoopFacts | None:
    steps = whole_steps(trace)
    line = _loop_line(trace, steps)
    if steps.source == "none" or line < 0:
        return None
    seen = observed(trace)
    loop = _loop(trace, line, seen)
    helpers = _helpers(trace, steps, line)
    parts = _parts(loop, helpers, steps, seen)
    fetches = _fetches(loop)
    update = _after_backward(loop, steps) & (parts[Activity.OP] | parts[Activity.DISPATCH])
    from_python = parts[Activity.INPUT] & _claimed_by_python(loop, Activity.INPUT)
    return LoopFacts(
        steps=len(steps.number),
        observed_ps=seen.total,
        activity_ps={activity.name.lower(): spans.total for activity, spans in parts.items()},
        busy=_busy(steps, parts[Activity.COLLECTIVE]),
        spans={activity.name.lower(): _longest(loop, spans, activity) for activity, spans in parts.items()},
        calls={activity.name.lower(): len(loop.outer(activity)) for activity in parts},
        input_from_python_ps=from_python.total,
        input_reads_files_percent=_share(loop, from_python, _READS_FILE),
        input_is_native_percent=_share(loop, from_python, _NATIVE),
        programs=_by_name(loop, loop.outer(Activity.PROGRAM)),
        eager_ops=_by_name(loop, loop.of_kind(K.EAGER_EXECUTE)),
        gaps=_fillers(loop, parts[Activity.PYTHON]),
        python_calls=len(loop.of_kind(K.PYTHON_CALL)),
        before_program_ps=_before_work(loop, steps, parts[Activity.PYTHON]),
        after_moves_ps=_after_moves(loop, parts[Activity.PYTHON]),
        recorded=_recorded(loop, parts),
        helper_events=helpers.events,
        eager_kernels_ps=_eager_kernels(loop),
        fetches_ps=(fetches & seen).total,
        fetches_recorded=_events_in(loop, fetches),
        update_ps=update.total,
        update_recorded=_events_in(loop, update),
    )


# -- the thread and its events -----------------------------------------------------------------------------------


def _loop_line(trace: HostTrace, steps: HostSteps) -> int:
    """The line of the step marks; without marks the thread that calls most programs in steps, without programs most
    ops.  A thread that runs the ops of a program is nobody's loop."""
    if steps.line >= 0 and trace.lines.kind[steps.line] == LineKind.THREAD:
        return steps.line
    lines = trace.lines_of(LineKind.THREAD)
    bounds = list(zip(trace.lines.event_begin[lines].tolist(), trace.lines.event_end[lines].tolist(), strict=True))
    for kinds in (_CALLING_PROGRAMS, _CALLING):
        calls = of_kinds(trace.events.kind, kinds) & (steps.label >= 0)
        count = [np.count_nonzero(calls[begin:end]) for begin, end in bounds]
        if any(count):
            return int(lines[np.argmax(count)])
    return -1


def _loop(trace: HostTrace, line: int, seen: Spans) -> _Loop:
    rows = slice(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    start = trace.events.start_ps[rows]
    end = start + forest(trace).extent_ps[rows]
    inside = (end > seen.start[0]) & (start < seen.end[-1])
    chosen: slice | Mask = slice(None) if inside.all() else inside
    kind, types = trace.events.kind[rows][chosen], trace.events.type[rows][chosen]
    start, end = start[chosen], end[chosen]
    row = np.arange(rows.start, rows.stop)[chosen]
    activity = _by_kind()[kind]
    activity[_single_programs(trace, rows)[inside]] = Activity.PROGRAM
    _by_name_of(trace, kind, types, end - start, activity)
    activity[_assigns_what_came_in(trace, types, start, end, activity)] = Activity.TRANSFER
    return _without_claims_on_programs(_Loop(trace, row, kind, start, end, types, activity))


def _by_kind() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for kind, activity in _OF_KIND.items():
        table[kind] = activity
    return table


def _single_programs(trace: HostTrace, rows: slice) -> Mask:
    """Dispatches of a whole function rather than of one op."""
    eager = of_kinds(trace.events.kind[rows], (K.EAGER_EXECUTE,))
    return eager & (trace.stat_ints(stat_names.IS_FUNCTION)[rows] > 0) if eager.any() else eager


def _by_name_of(
    trace: HostTrace, kind: NDArray[np.uint8], types: NDArray[np.integer], length: I64, activity: NDArray[np.uint8]
) -> None:
    """What only names tell: Python functions, ops that fetch a value, large constants that are copied."""
    looked_at = of_kinds(kind, (K.PYTHON_CALL, K.OP, K.OTHER, K.EAGER_EXECUTE, K.TRACED_FUNCTION))
    table = np.zeros(len(trace.event_types.name), np.uint8)
    for row, name in type_names(trace, types).items():
        table[row] = _from_name(name)
    told = table[types] * looked_at
    told[(told == Activity.TRANSFER) & (length < LONG_GAP_PS)] = 0
    np.copyto(activity, told, where=told > 0)


def _assigns_what_came_in(
    trace: HostTrace, types: NDArray[np.integer], start: I64, end: I64, activity: NDArray[np.uint8]
) -> I64:
    """Assignments of a variable that copy, once more, an array which was copied in right before."""
    came = np.maximum.accumulate(end[activity == Activity.TRANSFER])
    rows = np.flatnonzero((activity == Activity.EAGER) & (end - start >= LONG_GAP_PS)) if len(came) else came
    rows = rows[named(trace, types[rows], _ASSIGNS.__eq__)]
    before = np.searchsorted(came, start[rows], side="right") - 1
    return rows[(before >= 0) & (start[rows] - came[np.maximum(before, 0)] < LONG_GAP_PS)]


def _from_name(name: str) -> int:
    if not name.startswith("$") and "): " not in name:
        return _OF_NAME.get(name, 0)
    return next((activity for activity, pattern in _PYTHON if pattern.match(name)), 0)


def _without_claims_on_programs(loop: _Loop) -> _Loop:
    """A Python function that runs programs is no input, however it is called."""
    claims = loop.of_kind(K.PYTHON_CALL)
    claims = claims[loop.activity[claims] > 0]
    if not len(claims):
        return loop
    work = loop.of(Activity.PROGRAM, Activity.EAGER, Activity.OP)
    held = work.covered(loop.start[claims], loop.end[claims])
    lost = claims[(held > 0.3 * (loop.end[claims] - loop.start[claims])) & (loop.activity[claims] != Activity.SYNC)]
    activity = loop.activity.copy()
    activity[lost] = 0
    return replace(loop, activity=activity)


# -- time by activity --------------------------------------------------------------------------------------------


# What the thread of a loop does.
_CALLING_PROGRAMS = (K.TRACED_FUNCTION, K.EAGER_EXECUTE)
_CALLING = (K.TRACED_FUNCTION, K.EAGER_EXECUTE, K.RUNTIME_CALL, K.BACKWARD, K.PYTHON_CALL, K.OP)
# XLA on a CPU runs a program: its ops say when they begin, but not all of them how long they work on other threads.
_RUNS_PROGRAM = ("ThunkExecutor::Execute", "ThunkExecutor::Execute (wait for completion)")
# What other threads do that matters to the loop.
_HELPING = (
    K.OP, K.BACKWARD, K.EXECUTOR, K.COLLECTIVE_CALL, K.COMPILE, K.COPY_HOST_TO_DEVICE_CALL, K.INPUT_WAIT,
)  # fmt: skip


@dataclass(frozen=True)
class _Helpers:
    """What other threads and the devices do for the steps; `events` counts what the threads compute with."""

    events: int
    compute: Spans
    collective: Spans
    compile: Spans
    transfer: Spans
    input: Spans


def _helpers(trace: HostTrace, steps: HostSteps, line: int) -> _Helpers:
    running = _runs_program(trace)
    other = on_threads(trace) & (of_kinds(trace.events.kind, _HELPING) | running)
    other[trace.lines.event_begin[line] : trace.lines.event_end[line]] = False
    rows = np.flatnonzero(other | is_device_work(trace))
    kind, device, running = trace.events.kind[rows], ~other[rows], running[rows] & other[rows]
    working = (steps.label[rows] >= 0) | running
    compiling = ~device & of_kinds(kind, (K.COMPILE,))
    working &= ~device & ~compiling
    talking = (working & of_kinds(kind, (K.COLLECTIVE_CALL,))) | (device & of_kinds(kind, (K.COLLECTIVE,)))
    copying = working & of_kinds(kind, (K.COPY_HOST_TO_DEVICE_CALL,))
    copying |= device & of_kinds(kind, (K.COPY_HOST_TO_DEVICE,))
    waiting = working & of_kinds(kind, (K.INPUT_WAIT,))
    compute = (working | device) & ~talking & ~copying & ~waiting
    start = trace.events.start_ps[rows]
    end = _without_tails(trace, rows, start + forest(trace).extent_ps[rows])
    chosen = (compute, talking, compiling, copying, waiting)
    spans = [Spans.of(start[each], end[each]) for each in chosen]
    return _Helpers(int((working & compute & ~device & ~running).sum()), *spans)


def _without_tails(trace: HostTrace, rows: I64, end: I64) -> I64:
    """When events end, executors of TensorFlow with the last event in them: what follows for long is a thread that
    waits for a core, which the step does not wait for.  Ops count for themselves."""
    events = trace.events
    long = of_kinds(events.kind[rows], (K.EXECUTOR,)) & (end - events.start_ps[rows] >= LONG_GAP_PS)
    clipped = end.copy()
    executors = np.flatnonzero(long)
    line = events.line[rows[executors]]
    for each in np.unique(line).tolist():
        here = executors[line == each]
        first, stop = int(trace.lines.event_begin[each]), int(trace.lines.event_end[each])
        last = first + np.searchsorted(events.start_ps[first:stop], end[here]) - 1
        done = events.start_ps[last] + events.duration_ps[last]
        waits = (last > rows[here]) & (end[here] - done >= LONG_GAP_PS)
        clipped[here[waits]] = done[waits]
    return clipped


def _runs_program(trace: HostTrace) -> Mask:
    """Events in which XLA runs a program on a CPU: bool of shape (events,)."""
    names = [row for row in map(trace.strings.find, _RUNS_PROGRAM) if row > 0]
    if not names:
        return np.zeros(len(trace.events), np.bool_)
    found: Mask = np.isin(trace.event_types.name, names)[trace.events.type]
    return found


def _parts(loop: _Loop, helpers: _Helpers, steps: HostSteps, seen: Spans) -> dict[Activity, Spans]:
    """Every instant of the observed time under exactly one activity."""
    parts: dict[Activity, Spans] = {}
    rest = seen
    for activity in (each for each in Activity if each <= Activity.RUNTIME):
        covered = loop.of(activity)
        if activity == Activity.INPUT:
            covered = covered | helpers.input | _waits_for_the_lock(loop)
        if activity == Activity.COMPILE:
            covered = covered | helpers.compile
        if activity == Activity.SYNC:
            covered = covered - helpers.compute  # what is waited for would take its time anyway
        if activity == Activity.CHECKPOINT:
            ops = loop.where((loop.activity == activity) & (loop.kind != K.PYTHON_CALL))
            talking = loop.of(Activity.COLLECTIVE) | helpers.collective
            unnamed = _apart_from(_saves_without_ops(loop, rest), talking)
            covered = covered | _whole_saves(loop, ops, rest) | unnamed
            covered = covered | _saves_after_reads(loop, rest)
        parts[activity] = rest & covered
        rest = rest - covered
    computing = helpers.compute
    parts[Activity.WAIT] = rest & computing
    rest = rest - computing
    for activity, covered in ((Activity.COLLECTIVE, helpers.collective), (Activity.TRANSFER, helpers.transfer)):
        parts[activity] = parts[activity] | (rest & covered)
        rest = rest - covered
    parts[Activity.WAIT] = parts[Activity.WAIT] | (rest & loop.of(Activity.WAIT))
    rest = rest - loop.of(Activity.WAIT)
    parts[Activity.PYTHON] = _that_recur(loop, steps, rest.longer(LONG_GAP_PS))
    parts[Activity.DISPATCH] = rest - parts[Activity.PYTHON]
    return parts


def _busy(steps: HostSteps, waiting: Spans) -> dict[int, int]:
    busy = steps.end_ps - steps.start_ps - waiting.covered(steps.start_ps, steps.end_ps)
    return dict(zip(steps.number.tolist(), busy.tolist(), strict=True))


def _waits_for_the_lock(loop: _Loop) -> Spans:
    """Calls of TensorFlow that have done their work and wait for Python's lock, which a function of the dataset has."""
    trace = loop.trace
    ops = rows_of(trace, K.OP)
    holding = ops[named(trace, trace.events.type[ops], _RUNS_PYTHON.match)] if len(ops) else ops
    calls = np.flatnonzero(named(trace, loop.type, _EXECUTES.__contains__)) if len(holding) else ops[:0]
    inner = loop.at(loop.of_kind(K.EAGER_EXECUTE))
    if not len(calls) or not len(inner.end):
        return loop.at(calls[:0])
    done = _last_at_or_before(inner.end, loop.end[calls])
    after = Spans.of(np.maximum(done, loop.start[calls]), loop.end[calls]).longer(LONG_GAP_PS)
    return after & spans_of(trace, holding)


def _that_recur(loop: _Loop, steps: HostSteps, gaps: Spans) -> Spans:
    """Gaps without those in places where no other step has one: there, other programs took the core.

    A place is the n-th event of its name before the gap, counted from the begin of the step or from its end.
    """
    if len(steps.number) < SEVERAL_STEPS or not len(gaps.start):
        return gaps
    before = np.maximum(np.searchsorted(loop.start, gaps.start, side="right") - 1, 0)
    since_begin, until_end = _places(loop, steps, np.unique(loop.type[before]))
    kept = np.zeros(len(before), np.bool_)
    for place in (since_begin[before], until_end[before]):
        _, inverse, times = np.unique(
            np.stack([loop.type[before].astype(np.int64), place]), axis=1, return_inverse=True, return_counts=True
        )
        kept |= times[inverse.reshape(-1)] > 1
    return Spans(gaps.start[kept], gaps.end[kept])


def _places(loop: _Loop, steps: HostSteps, types: NDArray[np.integer]) -> tuple[I64, I64]:
    """For events of some types, how many of the same type come before each in its step, and how many from it on; for
    others nothing of use."""
    wanted = np.zeros(len(loop.trace.event_types.name), np.bool_)
    wanted[types] = True
    rows = np.flatnonzero(wanted[loop.type])
    step = np.searchsorted(steps.start_ps, loop.start[rows], side="right")
    group = loop.type[rows].astype(np.int64) * (len(steps.number) + 1) + step
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))
    count = np.diff(np.append(begins, len(order)))
    since_begin, until_end = np.zeros(len(loop.type), np.int64), np.zeros(len(loop.type), np.int64)
    since_begin[rows[order]] = np.arange(len(order)) - np.repeat(begins, count)
    until_end[rows[order]] = np.repeat(count, count) - since_begin[rows[order]]
    return since_begin, until_end


def _whole_saves(loop: _Loop, found: Spans, rest: Spans) -> Spans:
    """A save is more than the ops that write: all from the program before it to the program or the input after it."""
    if not len(found.start):
        return found
    work = loop.of(Activity.PROGRAM, Activity.INPUT)
    marks = loop.at(loop.of_kind(K.STEP_MARK))
    if not len(work.start):
        return found
    before = np.maximum(_last_at_or_before(work.end, found.start), _last_at_or_before(marks.start, found.start))
    after = np.minimum(_first_at_or_after(work.start, found.end), _first_at_or_after(marks.end, found.end))
    return Spans.of(np.where(before > 0, before, found.start), np.where(after < NEVER, after, found.end)) & rest


def _last_at_or_before(values: I64, limit: I64) -> I64:
    at = np.searchsorted(values, limit, side="right") - 1
    return np.where(at >= 0, values[np.maximum(at, 0)], 0) if len(values) else np.zeros_like(limit)


def _first_at_or_after(values: I64, limit: I64) -> I64:
    at = np.searchsorted(values, limit, side="left")
    inside = at < len(values)
    return (
        np.where(inside, values[np.minimum(at, len(values) - 1)], NEVER) if len(values) else np.full_like(limit, NEVER)
    )


def _saves_without_ops(loop: _Loop, rest: Spans) -> Spans:
    """Long gaps right after a state_dict: PyTorch detaches every parameter, then writes without an op."""
    ops = loop.outer(Activity.OP)
    copied = ops[~named(loop.trace, loop.type[ops], _COPIES_OUT.__contains__)]
    return _gaps_after_detached(loop, ops, STATE_DICT_OPS, rest) | _gaps_after_detached(
        loop, copied, max(STATE_DICT_OPS, _parameters(loop)), rest
    )


def _apart_from(spans: Spans, others: Spans) -> Spans:
    """Those of which others cover little: a state_dict may as well be there to be sent to other ranks."""
    kept = others.covered(spans.start, spans.end) < _LITTLE * (spans.end - spans.start)
    return Spans(spans.start[kept], spans.end[kept])


def _parameters(loop: _Loop) -> int:
    """How many parameters get a gradient in a step."""
    gradients = int(named(loop.trace, loop.type[loop.of_kind(K.OP)], _GETS_GRADIENT.__eq__).sum())
    return round(gradients / max(len(loop.of_kind(K.STEP_MARK)), 1))


def _gaps_after_detached(loop: _Loop, ops: I64, least: int, rest: Spans) -> Spans:
    if not len(ops):
        return Spans.of(loop.start[:0], loop.end[:0])
    detach = named(loop.trace, loop.type[ops], _DETACH.__eq__)
    if not detach.any():
        return Spans.of(loop.start[:0], loop.end[:0])
    run = _run_lengths(detach)
    last = np.flatnonzero(run >= least)
    gap_begin = loop.end[ops[last]]
    gap_end = np.append(loop.start[ops], loop.end.max())[last + 1]
    long = gap_end - gap_begin >= LONG_GAP_PS
    first = loop.start[ops[last - run[last] + 1]]
    return Spans.of(first[long], gap_end[long]) & rest


def _saves_after_reads(loop: _Loop, rest: Spans) -> Spans:
    """What surrounds a burst of reads of variables and is mostly long gaps: Keras reads all, and writes without ops."""
    ops = loop.of_kind(K.EAGER_EXECUTE)
    ops = ops[named(loop.trace, loop.type[ops], _SINGLE_OP.match)]
    reads = named(loop.trace, loop.type[ops], _READS_VARIABLE.__contains__)
    run = _run_lengths(reads)
    first, last = np.flatnonzero(run == STATE_DICT_OPS), np.flatnonzero(run >= STATE_DICT_OPS)
    if not len(last):
        return Spans.of(loop.start[:0], loop.end[:0])
    begin = np.concatenate([loop.start[ops[first - STATE_DICT_OPS + 1]], loop.start[ops[last]]])
    end = np.concatenate([loop.end[ops[first]], loop.end[ops[last]]])
    around = _whole_saves(loop, Spans.of(begin, end), rest)
    busy = loop.where(loop.activity > 0)
    idle = (around - busy).longer(LONG_GAP_PS)
    mostly = idle.covered(around.start, around.end) >= 0.3 * (around.end - around.start)
    return Spans(around.start[mostly], around.end[mostly])


def _run_lengths(flags: Mask) -> I64:
    """How many flags in a row are set up to each place."""
    counted = np.cumsum(flags)
    before: I64 = np.maximum.accumulate(np.where(flags, 0, counted))
    return counted - before


# -- what was recorded -------------------------------------------------------------------------------------------


def _recorded(loop: _Loop, parts: Mapping[Activity, Spans]) -> dict[str, Recorded]:
    """Events by the activity in which they begin."""
    python = of_kinds(loop.kind, (K.PYTHON_CALL,))
    running = _running_python(loop, python)
    begins = np.concatenate([spans.start for spans in parts.values()])
    order = np.argsort(begins)
    owner = np.repeat(np.arange(len(parts)), [len(spans.start) for spans in parts.values()])[order]
    bounds = np.append(np.searchsorted(loop.start, begins[order]), len(python))
    called = np.diff(np.append(0, np.cumsum(python))[bounds])
    calls, events = np.zeros(len(parts), np.int64), np.zeros(len(parts), np.int64)
    np.add.at(calls, owner, called)
    np.add.at(events, owner, np.diff(bounds) - called)
    return {
        activity.name.lower(): Recorded(
            int(events[row]), int(calls[row]), (spans & running).total if activity >= Activity.DISPATCH else 0
        )
        for row, (activity, spans) in enumerate(parts.items())
    }


def _eager_kernels(loop: _Loop) -> int:
    """Time of kernels that TensorFlow runs on the loop's thread; no other framework records them like this."""
    kernels = loop.rows(Activity.RUNTIME)
    kernels = kernels[named(loop.trace, loop.type[kernels], _EAGER_KERNEL.__eq__)]
    length = loop.end[kernels] - loop.start[kernels]
    return int((length - np.percentile(length, _OF_STARTS)).clip(min=0).sum()) if len(length) else 0


def _fetches(loop: _Loop) -> Spans:
    """Fetches of values, each from the end of the one before it where that is near; from its own begin else."""
    rows = loop.outer(Activity.SYNC)
    start, end = loop.start[rows], loop.end[rows]
    near = start[1:] - end[:-1] < NEAR_FETCH_PS
    return Spans.of(np.concatenate([start[:1], np.where(near, end[:-1], start[1:])]), end)


def _events_in(loop: _Loop, spans: Spans) -> int:
    """How many events begin in some spans."""
    return int(np.diff(np.searchsorted(loop.start, np.stack([spans.start, spans.end])), axis=0).sum())


def _after_backward(loop: _Loop, steps: HostSteps) -> Spans:
    """From the last backward work of each step to the step's end."""
    rows = loop.of_kind(K.BACKWARD)
    if not len(rows):
        return loop.at(rows)
    last = np.searchsorted(loop.start[rows], steps.end_ps) - 1
    there = (last >= 0) & (loop.start[rows[np.maximum(last, 0)]] >= steps.start_ps)
    done = np.maximum.accumulate(loop.end[rows])[last[there]]
    ends = steps.end_ps[there]
    return Spans.of(np.minimum(done, ends), ends)


def _running_python(loop: _Loop, python: Mask) -> Spans:
    """When recorded Python code itself runs, rather than what it calls."""
    if not python.any():
        return Spans.of(loop.start[:0], loop.end[:0])
    code = python & named(loop.trace, loop.type, _PYTHON_CODE.match)
    return loop.where(code) - loop.where(~code & (python | (loop.activity > 0)))


# -- names and places --------------------------------------------------------------------------------------------


def _longest(loop: _Loop, spans: Spans, activity: Activity) -> list[Span]:
    order = np.argsort(spans.start - spans.end, kind="stable")[:MOST_SPANS]
    found = []
    for at in order.tolist():
        start, end = int(spans.start[at]), int(spans.end[at])
        found.append(Span(_name_in(loop, start, end, activity), start, end))
    return found


def _name_in(loop: _Loop, start: int, end: int, activity: Activity) -> str:
    """The longest event of the activity inside a span; for spans that no event covers the longest Python call."""
    first, last = np.searchsorted(loop.start, (start, end))
    near = slice(int(first), int(last))
    inside = loop.end[near] <= end
    rows = first + np.flatnonzero(inside & (loop.activity[near] == int(activity)))
    if not len(rows):
        rows = first + np.flatnonzero(inside & of_kinds(loop.kind[near], (K.PYTHON_CALL,)))
    return loop.name(int(rows[np.argmax(loop.end[rows] - loop.start[rows])])) if len(rows) else ""


def _by_name(loop: _Loop, rows: I64) -> list[Named]:
    types, inverse = np.unique(loop.type[rows], return_inverse=True)
    calls = np.bincount(inverse, minlength=len(types))
    total = np.zeros(len(types), np.int64)
    np.add.at(total, inverse, loop.end[rows] - loop.start[rows])
    names = loop.trace.event_types.name[types]
    merged: dict[str, Named] = {}
    for name, count, time in zip(names.tolist(), calls.tolist(), total.tolist(), strict=True):
        text = loop.trace.strings[name]
        known = merged.get(text, Named(text, 0, 0))
        merged[text] = Named(text, known.calls + count, known.total_ps + time)
    return sorted(merged.values(), key=lambda named: (-named.total_ps, named.name))[:MOST_NAMES]


def _claimed_by_python(loop: _Loop, activity: Activity) -> Spans:
    """When Python functions say by their names that they do something."""
    calls = loop.of_kind(K.PYTHON_CALL)
    return loop.at(calls[loop.activity[calls] == int(activity)])


def _share(loop: _Loop, claimed: Spans, names: re.Pattern[str]) -> float | None:
    """Percent of the claimed time inside Python functions of such names; None if nothing is claimed."""
    if not claimed.total:
        return None
    calls = loop.of_kind(K.PYTHON_CALL)
    calls = calls[named(loop.trace, loop.type[calls], names.match)]
    inside = claimed & Spans.of(loop.start[calls], loop.end[calls])
    return round(100.0 * inside.total / claimed.total, 2)


def _fillers(loop: _Loop, gaps: Spans) -> list[Named]:
    """The Python functions that fill long gaps: for each the longest call that begins in it and fills most of it."""
    python = loop.of_kind(K.PYTHON_CALL)
    start, end = loop.start[python], loop.end[python]
    found: dict[str, Named] = {}
    for begin, stop in zip(gaps.start[:200].tolist(), gaps.end[:200].tolist(), strict=True):
        low, high = np.searchsorted(start, begin - LONG_GAP_PS // 10), np.searchsorted(start, stop)
        inside = np.minimum(end[low:high], stop) - np.maximum(start[low:high], begin)
        best = int(np.argmax(inside)) if len(inside) else -1
        if best < 0 or inside[best] < 0.3 * (stop - begin):
            continue
        name = loop.name(int(python[low + best]))
        known = found.get(name, Named(name, 0, 0))
        found[name] = Named(name, known.calls + 1, known.total_ps + int(inside[best]))
    return sorted(found.values(), key=lambda named: -named.total_ps)[:MOST_NAMES]


def _before_work(loop: _Loop, steps: HostSteps, gaps: Spans) -> int:
    """Long gaps before the first program of each step, or the first op that is more than making a tensor of Python's
    numbers."""
    work = [loop.rows(each) for each in (Activity.PROGRAM, Activity.OP, Activity.TRANSFER, Activity.EAGER)]
    if loop.trace.strings.find(_FROM_PYTHON) > 0:
        work[1] = work[1][~named(loop.trace, loop.type[work[1]], _MAKES_TENSOR.match)]
    first = np.minimum.reduce([_first_at_or_after(loop.start[rows], steps.start_ps) for rows in work])
    first = np.where(first < steps.end_ps, first, steps.start_ps)
    return (gaps & Spans.of(steps.start_ps, first)).total


def _after_moves(loop: _Loop, gaps: Spans) -> int:
    """Long gaps in which memory is given back: they begin where an op that only moves data ends, or much is freed in
    them."""
    ops = loop.outer(Activity.OP)
    if not len(ops) or not len(gaps.start):
        return 0
    last = np.searchsorted(loop.start[ops], gaps.start, side="right") - 1
    moves = named(loop.trace, loop.type[ops], lambda name: is_move(name) or CASTS.match(name))
    follows = (last >= 0) & moves[last]
    length = gaps.end - gaps.start
    return int(length[follows | (_freed_in(loop, gaps) >= length * _LEAST_FREED)].sum())


def _freed_in(loop: _Loop, gaps: Spans) -> I64:
    """Bytes that are freed in each gap, as far as that was recorded."""
    frees = loop.of_kind(K.DEALLOCATION)
    size = np.abs(loop.trace.stat_ints(stat_names.ALLOCATED_BYTES, rows=loop.row[frees]))
    freed = np.append(0, np.cumsum(size))
    found: I64 = np.diff(freed[np.searchsorted(loop.start[frees], np.stack([gaps.start, gaps.end]))], axis=0)[0]
    return found
