"""Links each run of a compiled program on the host's threads to the call that made it.

On CPUs, XLA runs a program on its own threads.  A program that waits for the result of another is started by the thread
that finishes the other one, and the profiler records a cause in the previous run.  Followed from run to run,
everything would belong to the first step.  Runs of one program happen in the order of its calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.analysis.trace.event_kinds import rows_of_kinds
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, stat_names
from stepscope.model.arrays import I32, I64, Mask, distinct, look_up
from stepscope.vocabulary.jax import function_of_call, function_of_program


def link_runs(trace: HostTrace, parent: I32, cause: I32) -> None:
    """Replaces causes in other runs by the calls that made the runs, in place.

    Args:
        parent: int32 of shape (events,), the enclosing event on the same line, or -1.
        cause: int32 of shape (events,), the event on another line that made this one happen, or -1.
    """
    ops = trace.derived("ops of runs", _ops_of_runs)
    if not len(ops):
        return
    outermost = np.empty(len(trace.events), np.int32)
    kernels.nesting.outermost(parent, np.ones(len(trace.events), np.bool_), outermost)
    _, first, run = np.unique(trace.stat_ints(stat_names.XLA_RUN_ID, rows=ops), return_index=True, return_inverse=True)
    call = _calls_of_runs(trace, parent, ops, first, run)
    if (call < 0).all():  # no calls were recorded: keep the causes in other runs
        return
    tops, first_op = np.unique(outermost[ops], return_index=True)
    run_of = np.full(len(trace.events), -1, np.int64)
    run_of[tops] = run[first_op]
    made_by, line = call[run_of[tops]], trace.events.line
    elsewhere = (made_by >= 0) & (line[made_by] != line[tops])
    cause[tops[elsewhere]] = made_by[elsewhere]
    unknown = tops[(made_by < 0) & (cause[tops] >= 0)]
    before = run_of[outermost[cause[unknown]]]
    cause[unknown[(before >= 0) & (before != run_of[unknown])]] = -1


def link_modules(trace: HostTrace, parent: I32, cause: I32, device: Mask) -> None:
    """Links the work of a device to the call that made the run of a program in which it lies, in place.

        host     |call|call|                    nothing of an op says which call it is of: the run does, by its link
        modules        |run-----|run-----|      to the call, or by its place among the runs of its program
        ops            |a|b-----|a|b-----|

    Args:
        device: bool of shape (events,), which events are measured work of devices.
    """
    events, lines = trace.events, trace.lines
    for line, runs in runs_on_devices(trace).items():
        made_by = cause[runs].astype(np.int64)
        if (made_by < 0).all():
            made_by = _match_calls(trace, parent, trace.event_names(runs), events.start_ps[runs])
            cause[runs] = made_by
        ops = np.flatnonzero(device & look_up(lines.plane == lines.plane[line], events.line) & (cause < 0))
        middle = events.start_ps[ops] + events.duration_ps[ops] // 2  # clocks have noise: an op may seem to start early
        at = np.searchsorted(events.start_ps[runs], middle, side="right") - 1
        inside = (at >= 0) & (middle < (events.start_ps[runs] + events.duration_ps[runs])[at])
        cause[ops[inside]] = made_by[at[inside]]


def runs_on_devices(trace: HostTrace) -> dict[int, I64]:
    """The runs of programs that devices measure, by their line: rows of events in order of time.

    On GPUs the lines of programs are derived from kernels, so theirs are left out.
    """
    lines = trace.lines
    measured = (lines.kind == LineKind.MODULES) & (trace.planes.kind[lines.plane] != PlaneKind.GPU)
    return {
        line: np.arange(int(lines.event_begin[line]), int(lines.event_end[line]))
        for line in np.flatnonzero(measured & (lines.event_end > lines.event_begin)).tolist()
    }


def ops_of_run(trace: HostTrace, runs: I64) -> I64:
    """The first op of a device in each run of a program on one device: int64 of shape (runs,), -1 where none of a run
    was recorded.

    Args:
        runs: rows of events, the runs of one device in order of time.
    """
    events, lines = trace.events, trace.lines
    found = np.full(len(runs), -1, np.int64)
    plane = lines.plane[events.line[runs[0]]] if len(runs) else -1
    for line in np.flatnonzero((lines.plane == plane) & (lines.kind == LineKind.DEVICE_OPS)).tolist():
        ops = np.arange(int(lines.event_begin[line]), int(lines.event_end[line]))
        if not len(ops):
            continue
        middle = events.start_ps[ops] + events.duration_ps[ops] // 2
        at = np.searchsorted(events.start_ps[runs], middle, side="right") - 1
        inside = (at >= 0) & (middle < (events.start_ps[runs] + events.duration_ps[runs])[at])
        run, first = np.unique(at[inside], return_index=True)
        found[run] = ops[inside][first]
    return found


def program_ops_elsewhere(trace: HostTrace, line: int) -> Mask:
    """Whether each event is an op of a program on another thread than `line`: bool of shape (events,)."""
    found = np.zeros(len(trace.events), np.bool_)
    ops = trace.derived("ops of runs", _ops_of_runs)
    found[ops[trace.events.line[ops] != line]] = True
    return found


def called_before(trace: HostTrace, parent: I32) -> I64:
    """Ops of the runs of programs that were called before the recording, while calls of the same program were recorded:
    rows of events.  No recorded step has called them.

    Args:
        parent: int32 of shape (events,), the enclosing event on the same line, or -1.
    """
    ops = trace.derived("ops of runs", _ops_of_runs)
    if not len(ops):
        return ops
    _, first, run = np.unique(trace.stat_ints(stat_names.XLA_RUN_ID, rows=ops), return_index=True, return_inverse=True)
    made_by = _calls_of_runs(trace, parent, ops, first, run)
    program = trace.stat_strings(stat_names.HLO_MODULE, rows=ops[first])
    early = (made_by < 0) & np.isin(program, program[made_by >= 0])
    found: I64 = ops[early[run]]
    return found


def _ops_of_runs(trace: HostTrace) -> I64:
    """Ops of programs on host threads that carry the id of their run."""
    if not trace.has_stat(stat_names.XLA_RUN_ID):
        return np.empty(0, np.int64)
    ops = rows_of_kinds(trace, [EventKind.OP])
    ops = ops[(trace.lines.kind == LineKind.THREAD)[trace.events.line[ops]]]
    known: I64 = ops[trace.stat_ints(stat_names.XLA_RUN_ID, missing=0, rows=ops) != 0]
    return known


def _calls_of_runs(trace: HostTrace, parent: I32, ops: I64, first: I64, run: I64) -> I64:
    """The call of each run, -1 where it was made before the recording or is unknown."""
    begin = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(begin, run, trace.events.start_ps[ops])
    return _match_calls(trace, parent, trace.stat_strings(stat_names.HLO_MODULE, rows=ops[first]), begin)


def _match_calls(trace: HostTrace, parent: I32, module: NDArray[np.integer], begin: I64) -> I64:
    """The call that made each run of some programs, as runs of one program happen in the order of its calls.

    Args:
        module: integers of shape (runs,), the text that names each run's program; begin: int64, when each starts.
    """
    calls, called = _outer_calls(trace, parent)
    made_by = np.full(len(begin), -1, np.int64)
    for program in distinct(module).tolist():
        name = function_of_program(trace.strings[program])
        runs = np.flatnonzero(module == program)
        runs = runs[np.argsort(begin[runs], kind="stable")]
        mine = calls[[each == name for each in called]]
        mine = mine[np.argsort(trace.events.start_ps[mine], kind="stable")]
        early = _count_early_runs(begin[runs], trace.events.start_ps[mine])
        count = min(len(runs) - early, len(mine))
        made_by[runs[early : early + count]] = mine[:count]
    return made_by


def _outer_calls(trace: HostTrace, parent: I32) -> tuple[I64, list[str]]:
    """Outermost calls of compiled functions, and the names of the functions as XLA writes them."""
    is_call = trace.events.kind == EventKind.TRACED_FUNCTION
    outermost = np.empty(len(trace.events), np.int32)
    kernels.nesting.outermost(parent, is_call, outermost)
    calls = np.flatnonzero(is_call)
    calls = calls[outermost[calls] == calls]
    return calls, [function_of_call(trace.name_of(call)) for call in calls.tolist()]


def _count_early_runs(runs: I64, calls: I64) -> int:
    """How many of the first runs were called before the recording: no run starts before its call.

    >>> _count_early_runs(np.array([3, 12, 22]), np.array([10, 20, 30]))
    1
    """
    later = np.searchsorted(runs, calls)
    shift = (later - np.arange(len(calls)))[later < len(runs)]
    return max(len(runs) - len(calls), int(shift.max(initial=0)))
