"""The causes of an account, and which of them each piece of a step has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.compiled_code import compiled_calls
from stepscope.analysis.account.threads import Threads, threads_of
from stepscope.analysis.steps.find_steps import holds_step
from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.columns import (
    events_of_kind,
    is_any_kind,
    is_thread_event,
    select_thread_events,
)
from stepscope.analysis.trace.devices_told_of import LONGEST_DISPATCH_PS, is_device_silent, split_ops
from stepscope.analysis.trace.eager import computing_eager_ops
from stepscope.analysis.trace.environment import has_lost_framework
from stepscope.analysis.trace.event_kinds import count_kinds
from stepscope.analysis.trace.grouping import device_rows, enclosing_events, forest, is_device_work
from stepscope.analysis.trace.program_runs import runs_on_devices
from stepscope.model import EventKind, HostTrace, Kind, stat_names
from stepscope.model.arrays import I64, U8, Mask, distinct, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.collectives import is_library_call
from stepscope.vocabulary.jax import PROGRAMS_THAT_TAKE_IN
from stepscope.vocabulary.lookup import has_trait, is_called, type_names
from stepscope.vocabulary.python import PLAIN
from stepscope.vocabulary.traits import CallTrait, CodeTrait, KernelTrait, RangeTrait
from stepscope.vocabulary.xla import AWAITS_PROGRAM, RUNS_PROGRAM

K = EventKind


class Cause(Kind):
    """What a moment of a step is spent on, by the model."""

    UNKNOWN = 0
    INPUT = 1
    PYTHON = 2
    HOST_COMPUTE = 3
    LAUNCH = 4
    DEVICE_COMPUTE = 5
    DEVICE_GAP = 6
    COPY = 7
    COMMUNICATION = 8
    COMPILE = 9
    SYNC = 10
    CHECKPOINT = 11
    CONTENTION = 12
    TRANSFER = 13


@dataclass(frozen=True)
class CauseTerms:
    """What is said of a cause.

    Attributes:
        meaning: when a moment has it.
        words: what the moment is spent on, in words that follow `is`.
        verdict: on a run that it limits.
        waited_for: what a device without work waits for, in words that follow `for`; empty where `words` say it.
        next: what to do next if this takes most of the step and nothing stands out; empty for the usual.
    """

    meaning: str
    words: str
    verdict: str
    waited_for: str = ""
    next: str = ""


CAUSES: dict[Cause, CauseTerms] = {
    Cause.UNKNOWN: CauseTerms(
        "what happens was not recorded", "unexplained", "unknown", "nothing that was recorded"),
    Cause.INPUT: CauseTerms(
        "the step waits for its batch, or the batch is being made", "input", "input_bound",
        next="see which stage or function of the input takes the time (stepscope input-pipeline)"),
    Cause.PYTHON: CauseTerms("the loop's thread runs Python", "Python in the loop", "host_bound"),
    # Where a device takes part; else it is the computation.
    Cause.HOST_COMPUTE: CauseTerms("the host computes", "computation on the host", "host_bound"),
    Cause.LAUNCH: CauseTerms(
        "work is dispatched: ops, programs and kernels are started, or handed to other threads",
        "waiting for launches", "launch_bound", "launches"),
    Cause.DEVICE_COMPUTE: CauseTerms(
        "a device computes", "computation on the device", "compute_bound", "computation on another device"),
    Cause.DEVICE_GAP: CauseTerms(
        "a device goes from one piece of work to the next",
        "gaps between device work", "compute_bound", "its next work to start"),
    Cause.TRANSFER: CauseTerms(
        "data is copied to a device, or into an array of the framework", "copying data in", "input_bound"),
    Cause.COPY: CauseTerms("data is copied from a device, or within one", "copies", "compute_bound"),
    Cause.COMMUNICATION: CauseTerms(
        "workers exchange data; a device may compute at the same time, but that ends earlier",
        "communication", "communication_bound",
        next="overlap communication with more computation, or use a faster network"),
    Cause.COMPILE: CauseTerms(
        "a program is traced or compiled", "compiling", "compile_bound", "compilation",
        next="record later in the run, when everything is compiled"),
    Cause.SYNC: CauseTerms(
        "the host is in a call that waits for a device, for longer than the device works",
        "synchronising with idle devices", "host_bound", "the host, which waits for an idle device"),
    Cause.CHECKPOINT: CauseTerms(
        "state is saved or restored", "saving or restoring state", "host_bound", "state to be saved or restored"),
    Cause.CONTENTION: CauseTerms(
        "the loop's thread is ready but has no free core: other threads or processes use them all",
        "waiting for a free core", "host_bound", "a processor that other threads or processes use",
        next="use fewer threads or a quieter machine (taskset, OMP_NUM_THREADS)"),
}  # fmt: skip
MEANING = {cause: terms.meaning for cause, terms in CAUSES.items()}
TERMS = {cause.name.lower(): terms for cause, terms in CAUSES.items()}
"""The same by the name that an account has for the cause."""

_OF_DEVICE: dict[EventKind, Cause] = {
    K.KERNEL: Cause.DEVICE_COMPUTE, K.DEVICE_OP: Cause.DEVICE_COMPUTE, K.GRAPH_LAUNCH: Cause.DEVICE_COMPUTE,
    K.MEMSET: Cause.DEVICE_COMPUTE, K.COLLECTIVE: Cause.COMMUNICATION, K.INFEED: Cause.INPUT,
    K.COPY_HOST_TO_DEVICE: Cause.TRANSFER,
}  # fmt: skip
# What the innermost event says where nothing around it says more.
_OF_HOST: dict[EventKind, Cause] = {
    K.OP: Cause.HOST_COMPUTE, K.BACKWARD: Cause.HOST_COMPUTE, K.EXECUTOR: Cause.HOST_COMPUTE,
    K.REGION_BEGIN: Cause.HOST_COMPUTE, K.COPY_HOST_TO_HOST: Cause.HOST_COMPUTE, K.RUNTIME_CALL: Cause.LAUNCH,
    K.COPY_HOST_TO_DEVICE_CALL: Cause.TRANSFER, K.EAGER_EXECUTE: Cause.LAUNCH, K.TRACED_FUNCTION: Cause.LAUNCH,
    K.FUNCTION_RUN: Cause.LAUNCH, K.PYTHON_CALL: Cause.PYTHON, K.STEP_MARK: Cause.PYTHON, K.ANNOTATION: Cause.PYTHON,
    K.SYNC: Cause.SYNC, K.COLLECTIVE_CALL: Cause.LAUNCH,
}  # fmt: skip
# What an event around says of everything inside, the most telling last.
_AROUND: dict[EventKind, Cause] = {
    K.COMPILE: Cause.COMPILE, K.COLLECTIVE_CALL: Cause.COMMUNICATION, K.CHECKPOINT: Cause.CHECKPOINT,
    K.ITERATOR: Cause.INPUT, K.INPUT_HANDOVER: Cause.INPUT, K.INPUT_CALLBACK: Cause.INPUT, K.INPUT_WAIT: Cause.INPUT,
}  # fmt: skip
# Events that only name a part of the program: what its thread does in them, they do not say.
_NAMES_ONLY = (K.STEP_MARK, K.ANNOTATION, K.REGION_END)
LONG_GAP_PS = LONGEST_DISPATCH_PS  # longer gaps are not those between two dispatches
# What a framework records of itself on the host.
_OF_FRAMEWORK = (
    K.OP, K.BACKWARD, K.EXECUTOR, K.EAGER_EXECUTE, K.TRACED_FUNCTION, K.FUNCTION_RUN, K.COLLECTIVE_CALL, K.ITERATOR,
    K.REGION_BEGIN,
)  # fmt: skip
# What a program in Python that trains leaves on its host, at least one of these.
_OF_PROGRAM = (*_OF_HOST, *_AROUND)
_NAMED = (K.PYTHON_CALL, K.OP, K.OTHER, K.EAGER_EXECUTE, K.TRACED_FUNCTION)  # what has a trait by its name
_IN_FUNCTION = np.uint8(128)  # the bit of functions that make input, beside those of what events around say


def own_work_ps(spent_ps: Sequence[int]) -> int:
    """The time of a step without communication, in which a worker waits for the others; the worker with most of it sets
    the pace of a session.

    Args:
        spent_ps: the time by cause.
    """
    return sum(spent_ps) - spent_ps[Cause.COMMUNICATION]


def causes_of_work(trace: HostTrace) -> U8:
    """The cause of device work by its kind: uint8 of shape (256,).  What compiled programs copy to their device from
    the host's memory is no input: they move what does not fit, or what was placed there."""
    own = {K.COPY_HOST_TO_DEVICE: Cause.COPY} if trace.derived("programs copy in", _do_programs_copy_in) else {}
    return _table(_OF_DEVICE | own, Cause.COPY)


def _do_programs_copy_in(trace: HostTrace) -> bool:
    copies = events_of_kind(trace, K.COPY_HOST_TO_DEVICE)
    return len(copies) > 0 and bool(has_trait(trace, trace.events.type[copies], KernelTrait.COPIES).all())


def unrecorded_causes(trace: HostTrace, threads: Threads) -> U8:
    """The cause of a thread's time in which nothing is recorded: uint8 of shape (lines,)."""
    nothing_recorded = bool(trace.framework) and not has_native_events(trace)
    cause = np.full(len(trace.lines), Cause.UNKNOWN if nothing_recorded else Cause.LAUNCH, np.uint8)
    cause[threads.main] = Cause.PYTHON if _is_of_python(trace) else Cause.UNKNOWN
    if lacks_ops(trace):  # between two launches it goes from one to the next
        cause[threads.main] = Cause.LAUNCH
    return cause


_OF_SESSION = (K.OP, K.INPUT_WAIT)  # all that a timeline of TensorFlow 1 holds of a host


def _is_of_python(trace: HostTrace) -> bool:
    """Whether what a thread does between the events of a framework is Python: not where these could not be kept, nor
    where no event of a host is of a known kind, as in a file of another tool; nor between the ops of a session of
    TensorFlow 1, which its executor runs."""
    if trace.framework == "tensorflow" and trace.derived("only a session", _holds_only_session):
        return False
    return bool(count_kinds(trace)[[*_OF_PROGRAM]].any()) and not has_lost_framework(trace)


def _holds_only_session(trace: HostTrace) -> bool:
    return bool((is_any_kind(trace.events.kind, _OF_SESSION) | ~is_thread_event(trace)).all())


def lacks_ops(trace: HostTrace) -> bool:
    """Whether launches were recorded, or runs of programs on devices, and nothing of the ops that make them."""
    return trace.derived("lacks ops", _lacks_ops)


def _lacks_ops(trace: HostTrace) -> bool:
    if count_kinds(trace)[[*_OF_FRAMEWORK]].any():
        return False
    calls = events_of_kind(trace, K.RUNTIME_CALL)
    launches = CallTrait.LAUNCHES_KERNEL | CallTrait.LAUNCHES_GRAPH
    return bool(has_trait(trace, trace.events.type[calls], launches).any() or len(runs_on_devices(trace)))


def long_frames(trace: HostTrace) -> Mask:
    """Calls of Python that last for longer than a dispatch and hold others: bool of shape (events,)."""
    return trace.derived("long frames", _long_frames)


def _long_frames(trace: HostTrace) -> Mask:
    links = forest(trace)
    found: Mask = (trace.events.kind == K.PYTHON_CALL) & (links.extent_ps >= LONG_GAP_PS)
    holds = np.zeros(len(found), np.bool_)
    holds[links.parent[links.parent >= 0]] = True
    found &= holds
    return found


def is_silent(trace: HostTrace, rows: I64) -> Mask:
    """Which of some events do not say what their thread does: marks and ranges that the program names."""
    kind, types = trace.events.kind[rows], trace.events.type[rows]
    silent = is_any_kind(kind, _NAMES_ONLY)
    other = np.flatnonzero(kind == K.OTHER)
    silent[other] = ~has_trait(trace, types[other], RangeTrait.OF_RUNTIME)
    return silent


def has_native_events(trace: HostTrace) -> bool:
    """Whether something of what the framework does was recorded: work of devices, or calls of a known kind on a thread
    that are no Python calls, marks and names; what a runtime waits for is nothing that it does."""
    return trace.derived("native events", _has_native_events)


def _has_native_events(trace: HostTrace) -> bool:
    says = is_thread_event(trace).copy()
    says[events_of_kind(trace, *_NAMES_ONLY, K.PYTHON_CALL, K.OTHER)] = False
    return bool(is_device_work(trace).any() or says.any())


def event_causes(trace: HostTrace) -> U8:
    """The cause of time in which each event is the innermost of its thread: uint8 of shape (events,); found once."""
    return trace.derived("causes of events", _event_causes)


def _table(known: dict[EventKind, Cause], other: Cause) -> U8:
    table = np.full(256, other, np.uint8)
    table[list(known)] = list(known.values())
    return table


def _event_causes(trace: HostTrace) -> U8:
    kind, parent = trace.events.kind, forest(trace).parent
    cause = np.empty(len(kind), np.uint8)
    kernels.nesting.inherit_by_kind(kind, parent, _table(_OF_HOST, Cause.UNKNOWN), Cause.PYTHON, cause)
    if lacks_ops(trace):
        cause[(cause == int(Cause.PYTHON)) & (long_frames(trace) | is_any_kind(kind, _NAMES_ONLY))] = Cause.LAUNCH
    if trace.framework == PLAIN:
        compiled = compiled_calls(trace, threads_of(trace).main)
        cause[compiled[cause[compiled] == int(Cause.PYTHON)]] = Cause.HOST_COMPUTE
    waits = _waits_for_peers(trace)
    cause[waits[cause[waits] == int(Cause.PYTHON)]] = Cause.UNKNOWN
    if not _is_of_python(trace):  # what is Python once ops are taken off
        cause[cause == int(Cause.PYTHON)] = Cause.UNKNOWN
    dispatches = _dispatches(trace)
    if dispatches is not None:
        cause[(cause == int(Cause.HOST_COMPUTE)) & dispatches] = Cause.LAUNCH
    cause[_within_eager_ops(trace)] = Cause.HOST_COMPUTE
    if is_device_silent(trace):
        ops, _, short, fetches = split_ops(trace)
        cause[ops[short]], cause[ops[fetches]] = Cause.LAUNCH, Cause.SYNC
    else:
        cause[_ops_that_wait(trace, cause)] = Cause.SYNC
    _correct_runtimes(trace, cause)
    cause[is_called(trace, (AWAITS_PROGRAM,))] = Cause.HOST_COMPUTE  # its ops run on threads that may record none
    cause[_programs_that_copy(trace)] = Cause.TRANSFER
    return _take_enclosing_causes(trace, cause)


def _ops_that_wait(trace: HostTrace, cause: U8) -> I64:
    """Ops that read a value of a device for longer than a dispatch takes, and launch nothing: rows of events."""
    ops = events_of_kind(trace, K.OP) if is_device_work(trace).any() else np.empty(0, np.int64)
    ops = ops[has_trait(trace, trace.events.type[ops], CallTrait.READS_VALUE)]
    found: I64 = ops[(cause[ops] == int(Cause.HOST_COMPUTE)) & (forest(trace).extent_ps[ops] >= LONG_GAP_PS)]
    return found


def _within_eager_ops(trace: HostTrace) -> I64:
    """What runs inside eager ops that compute: rows of events."""
    among = np.zeros(len(trace.events), np.bool_)
    among[computing_eager_ops(trace)] = True
    inside = events_of_kind(trace, K.OTHER) if among.any() else np.empty(0, np.int64)
    found: I64 = inside[enclosing_events(trace, among)[inside] >= 0]
    return found


def _waits_for_peers(trace: HostTrace) -> I64:
    """Calls in which another thread than the loop's waits until someone outside asks for something, as in a server:
    what a loop waits for that waits for such a thread was not recorded.  Rows of events."""
    calls = events_of_kind(trace, K.PYTHON_CALL)
    calls = calls[has_trait(trace, trace.events.type[calls], CodeTrait.AWAITS_PEER)]
    return calls[trace.events.line[calls] != threads_of(trace).main] if len(calls) else calls


def _correct_runtimes(trace: HostTrace, cause: U8) -> None:
    """Sets the cause, in place, of what a runtime does outside of ops on its own threads: it starts programs."""
    others = select_thread_events(trace, events_of_kind(trace, K.OTHER))
    of_runtime = others[trace.events.line[others] != threads_of(trace).main]
    if not len(of_runtime):
        return
    # Without a device, work that is handed to another thread is a share of an op.
    known = _OF_HOST | ({K.REGION_BEGIN: Cause.LAUNCH} if is_device_work(trace).any() else {})
    found = np.empty(len(cause), np.uint8)
    table = _table(known, Cause.UNKNOWN)
    kernels.nesting.inherit_by_kind(trace.events.kind, forest(trace).parent, table, Cause.LAUNCH, found)
    cause[of_runtime] = found[of_runtime]


def _take_enclosing_causes(trace: HostTrace, cause: U8) -> U8:
    """The causes, in place, or what events around say of everything inside: uint8 of shape (events,)."""
    said = [Cause.TRANSFER, *dict.fromkeys(_AROUND.values())]
    level = np.zeros(256, np.uint8)
    level[list(_AROUND)] = [2 << said.index(each) for each in _AROUND.values()]
    bits = look_up(level, trace.events.kind)
    bits[_calls_for_devices(trace)] = 0
    bits[blocking_calls(trace)] = 1
    bits[_calls_that_copy(trace)] = 2
    bits[_dispatched_saves(trace)] = 2 << said.index(Cause.CHECKPOINT)
    bits[input_functions(trace)] |= _IN_FUNCTION
    kernels.nesting.around(bits, forest(trace).parent, np.arange(256).astype(np.uint8), bits)
    by_bits = np.zeros(256, np.uint8)
    for at, each in enumerate((Cause.SYNC, *said)):  # the most telling last
        by_bits[(np.arange(256) & (1 << at)) > 0] = each
    enclosing = look_up(by_bits, bits)
    enclosing[(bits == _IN_FUNCTION) & (cause == int(Cause.PYTHON))] = Cause.INPUT
    np.copyto(cause, enclosing, where=enclosing > 0)
    return cause


def _calls_for_devices(trace: HostTrace) -> I64:
    """Calls of collectives that devices do: they only start them, but for those that a library records of itself on
    the host, such as Gloo's.  Rows of events."""
    calls, collectives = events_of_kind(trace, K.COLLECTIVE_CALL), events_of_kind(trace, K.COLLECTIVE)
    collectives = collectives[is_device_work(trace)[collectives]] if len(calls) else calls
    if not len(collectives):
        return collectives
    launches, call = np.zeros(len(trace.events), np.uint8), forest(trace).cause[collectives]
    launches[call[call >= 0]] = 1
    kernels.nesting.mark_ancestors(launches, forest(trace).parent)
    types = distinct(trace.events.type[calls])
    of_library = types[[is_library_call(name) for name in type_names(trace, types.astype(np.int64))]]
    return calls[(launches[calls] > 0) | ~np.isin(trace.events.type[calls], of_library)]


def _dispatched_saves(trace: HostTrace) -> I64:
    """Dispatches of ops that save or restore state, such as TensorFlow's `SaveV2`: rows of events."""
    rows = events_of_kind(trace, K.EAGER_EXECUTE)
    saves: I64 = rows[has_trait(trace, trace.events.type[rows], CallTrait.SAVES_STATE)]
    return saves


def takes_in(trace: HostTrace, ops: I64) -> Mask:
    """Whether each op belongs to a program that only takes in or converts an array."""
    rows = [row for row in map(trace.strings.find, PROGRAMS_THAT_TAKE_IN) if row > 0]
    if not rows or not trace.has_stat(stat_names.HLO_MODULE):
        return np.zeros(len(ops), np.bool_)
    found: Mask = np.isin(trace.stat_strings(stat_names.HLO_MODULE, rows=ops), rows)
    return found


def _programs_that_copy(trace: HostTrace) -> I64:
    """Ops of programs that only take in an array, and the copying that XLA continues after one has ended: rows of
    events."""
    ops = events_of_kind(trace, K.OP)
    taking = ops[takes_in(trace, ops)]
    if not len(taking):
        return taking
    line, runs = trace.events.line, np.flatnonzero(is_called(trace, RUNS_PROGRAM))
    last = ops[np.maximum(np.searchsorted(ops, runs, side="right") - 1, 0)]
    return np.append(taking, runs[np.isin(last, taking) & (line[last] == line[runs])])


def _calls_that_copy(trace: HostTrace) -> I64:
    """Calls that make an array of the framework from a foreign one, assignments of variables that copy it again right
    after, and calls that read memory that is not pinned while a device copies it, where they take longer than starting
    that: rows of events."""
    rows, events = events_of_kind(trace, *_NAMED), trace.events
    rows = rows[forest(trace).extent_ps[rows] >= LONG_GAP_PS]
    named = rows[has_trait(trace, events.type[rows], CallTrait.COPIES_IN)]
    copies = np.sort(np.append(named, events_of_kind(trace, K.COPY_HOST_TO_DEVICE_CALL)))
    named = np.append(named, calls_during_their_copy(trace))
    if not len(copies):
        return named
    assigns = rows[has_trait(trace, events.type[rows], CallTrait.ASSIGNS_VARIABLE)]
    before = copies[np.maximum(np.searchsorted(copies, assigns) - 1, 0)]
    since = events.start_ps[assigns] - events.start_ps[before] - forest(trace).extent_ps[before]
    again = (events.line[before] == events.line[assigns]) & (since >= 0) & (since < LONG_GAP_PS)
    return np.append(named, assigns[again])


def calls_during_their_copy(trace: HostTrace) -> I64:
    """Calls that spend most of their time while what they copy to a device is copied: they hand over memory that is not
    pinned piece by piece, and may return just before the last piece has arrived.  Rows of events."""
    copies = events_of_kind(trace, K.COPY_HOST_TO_DEVICE)
    call = forest(trace).cause[copies].astype(np.int64)
    copies, call = copies[call >= 0], call[call >= 0]
    begins, starts = (trace.events.start_ps[rows] for rows in (copies, call))
    copying, length = (trace.events.duration_ps[rows] for rows in (copies, call))
    both = np.minimum(begins + copying, starts + length) - np.maximum(begins, starts)
    return distinct(call[(length >= LONG_GAP_PS) & (2 * both > length)])


def input_functions(trace: HostTrace) -> I64:
    """Calls whose names say that they make input: rows of events.

    One that holds a whole step is a loop over steps, whatever it is called, such as `record`.  What the import of a
    module loads, itself or inside, is no input.
    """
    calls = events_of_kind(trace, K.PYTHON_CALL)
    rows, imports = (
        calls[has_trait(trace, trace.events.type[calls], each)] for each in (CallTrait.MAKES_INPUT, CodeTrait.IMPORTS)
    )
    rows, imports = (each[~_hold_steps(trace, each)] for each in (rows, imports))
    if len(rows) and len(imports):
        importing = np.zeros(len(trace.events), np.bool_)
        importing[imports] = True
        rows = rows[enclosing_events(trace, importing)[rows] < 0]
    return rows


def _hold_steps(trace: HostTrace, rows: I64) -> Mask:
    start = trace.events.start_ps[rows]
    return holds_step(trace, start, start + forest(trace).extent_ps[rows])


def _dispatches(trace: HostTrace) -> Mask | None:
    """Host events in an op that launches device work, itself or inside, and those in no op that do the same: bool of
    shape (events,); None without devices.  A call whose name says so launches work, though that was not recorded."""
    kind = trace.events.kind
    work = device_rows(trace)
    call, named = forest(trace).cause[work], events_of_kind(trace, K.RUNTIME_CALL)
    # An op whose result is copied to a device has computed it on the host.
    call[(kind[work] == K.COPY_HOST_TO_DEVICE) & (kind[np.maximum(call, 0)] == K.OP)] = -1
    named = named[has_trait(trace, trace.events.type[named], CallTrait.LAUNCHES_KERNEL | CallTrait.LAUNCHES_GRAPH)]
    call = np.append(call[call >= 0], named)
    if not len(call):
        return None
    launches, found = np.zeros(len(trace.events), np.uint8), np.empty(len(trace.events), np.uint8)
    launches[call] = 1
    kernels.nesting.mark_ancestors(launches, forest(trace).parent)
    is_op = np.zeros(256, np.uint8)
    is_op[[K.OP, K.BACKWARD]] = 1
    kernels.nesting.outermost_mark(trace.events.kind, forest(trace).parent, is_op, launches, found)
    return (found & 1).view(np.bool_)
