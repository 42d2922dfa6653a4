"""What is traced or compiled while the steps run, by name, and in which steps the same is compiled again."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of, whole_steps
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.noted_compilations import AGAIN, FUNCTION, noted_compilations
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.vocabulary import jax
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.tensorflow import function_of_program, is_retraced
from stepscope.vocabulary.traits import CallTrait

Named = list[tuple[str, int]]
"""What was traced or compiled: its name and the event's row, once for each time."""


def compiled_in_steps(trace: HostTrace) -> Named:
    """What the whole steps trace or compile; empty where it has no names."""
    traced = _traced_functions(trace, rows_in_steps(trace, EventKind.TRACED_FUNCTION))
    return traced or _compiled_programs(trace, rows_in_steps(trace, EventKind.COMPILE))


def compile_again(trace: HostTrace, steps: I64) -> Mask:
    """Which of some steps trace or compile again, with most of what they compile: what another one of them compiles
    too, or what ran before.

    Args:
        steps: int64 of shape (n,), places among all steps of the host.
    """
    found, events = steps_of(trace), trace.events
    place_of = {int(step): at for at, step in enumerate(steps)}
    named = [(name, row) for name, row in compiled_in_steps(trace) if int(found.label[row]) in place_of]
    rerun = find_rerun(trace, named)
    in_steps: dict[str, set[int]] = {}
    for name, row in named:
        in_steps.setdefault(name, set()).add(int(found.label[row]))
    again, whole = np.zeros(len(steps), np.int64), np.zeros(len(steps), np.int64)
    for name, row in named:
        at, ps = place_of[int(found.label[row])], int(events.duration_ps[row])
        whole[at] += ps
        again[at] += ps if len(in_steps[name]) > 1 or row in rerun else 0
    mostly: Mask = 2 * again > whole
    return mostly


def find_rerun(trace: HostTrace, named: Named) -> set[int]:
    """The compilations of functions that were called in the capture before the step in which they are: rows of events.
    Those came for other arguments, or for a new function of that name, and not since a part of the program runs for the
    first time, as a report over arrays of several shapes in one step."""
    noted = {note.event for note in noted_compilations(trace) if note.reason in (AGAIN, FUNCTION)}
    ends = {name: _end_of_first_call(trace, name) for name, _ in named}
    steps, start = steps_of(trace), trace.events.start_ps
    step = {row: int(steps.label[row]) for _, row in named}
    begin = {row: int(steps.start_ps[at] if at >= 0 else start[row]) for row, at in step.items()}
    return {row for name, row in named if row in noted or begin[row] >= ends[name]}


def _end_of_first_call(trace: HostTrace, program: str) -> int:
    calls = calls_of(trace, program)
    return int((trace.events.start_ps[calls] + trace.events.duration_ps[calls]).min(initial=np.iinfo(np.int64).max))


def calls_of(trace: HostTrace, program: str) -> I64:
    """The calls of a traced function, or of the function that a program was compiled from: rows of events.  JAX may
    record a call twice, one inside the other."""
    calls = events_of_kind(trace, EventKind.TRACED_FUNCTION)
    wanted = {program, function_of_program(program), jax.function_of_program(program)}
    types = distinct(trace.events.type[calls]).astype(np.int64)
    names = zip(types.tolist(), type_names(trace, types), strict=True)
    mine = [type_ for type_, name in names if name in wanted or jax.function_of_call(name) in wanted]
    return calls[np.isin(trace.events.type[calls], mine)].astype(np.int64)


def rows_in_steps(trace: HostTrace, kind: EventKind) -> I64:
    """The events of a kind in whole steps."""
    rows = events_of_kind(trace, kind).astype(np.int64)
    return rows[whole_steps(trace).label[rows] >= 0]


def _traced_functions(trace: HostTrace, rows: I64) -> Named:
    """Calls of TensorFlow functions that traced them."""
    if not trace.has_stat(stat_names.FUNCTION_CALL):
        return []
    how = trace.stat_strings(stat_names.FUNCTION_CALL, rows=rows)
    traced = [text for text in distinct(how).tolist() if is_retraced(trace.strings.raw(text))]
    return [(trace.name_of(row), row) for row in rows[np.isin(how, traced)].tolist()]


def _compiled_programs(trace: HostTrace, rows: I64) -> Named:
    """Programs that XLA compiles, one per compilation, or frames that PyTorch compiles."""
    compiling = rows[has_trait(trace, trace.events.type[rows], CallTrait.COMPILES_PROGRAM)]
    if len(compiling) and trace.has_stat(stat_names.PROGRAM_NAME):
        names = trace.stat_strings(stat_names.PROGRAM_NAME, rows=compiling)
        known = names > 0
        pairs = zip(names[known].tolist(), compiling[known].tolist(), strict=True)
        return [(function_of_program(trace.strings[name]), row) for name, row in pairs]
    notes = [note for note in noted_compilations(trace) if is_in_steps(trace, note.event)]
    if notes:
        return [(note.function, note.event) for note in notes]
    frames = rows[has_trait(trace, trace.events.type[rows], CallTrait.COMPILES_FRAME)]
    return [("a compiled frame", row) for row in frames.tolist()]


def is_in_steps(trace: HostTrace, row: int) -> bool:
    """Whether an event starts in one of the steps that count; a note lies on no thread, so its time decides."""
    steps, start = whole_steps(trace), int(trace.events.start_ps[row])
    return bool(((steps.start_ps <= start) & (start < steps.end_ps)).any())
