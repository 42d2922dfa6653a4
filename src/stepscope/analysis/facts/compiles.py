"""What is traced and compiled while the steps run, and which shapes change from step to step.

TensorFlow records which function it traces again.  JAX records which program it compiles and its parameters.  PyTorch
records the operand shapes of ops.  None of them records the values of arguments that are not tensors; a capture of
Stepscope does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.steps.compiled import Named, compiled_in_steps, find_rerun, is_in_steps, rows_in_steps
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.columns import is_thread_event
from stepscope.analysis.trace.noted_compilations import AGAIN, FIRST, FUNCTION, NotedCompilation, noted_compilations
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import OpTrait

K = EventKind

_MOST_NAMES, _MOST_SHAPES = 5, 3  # shown
_AT = " at 0x"  # as a capture notes a value that is not plain: `a partial at 0x7f00`
_SEVERAL = 2  # programs with one name, which can be compared


@dataclass(frozen=True)
class CompileCount:
    """A function or program, and how often it was traced or compiled in the steps."""

    name: str
    times: int


@dataclass(frozen=True)
class CompileFacts:
    """Tracing and compiling in the steps of one host.

    Attributes:
        programs: what is traced or compiled, that with most time first.
        steps: in how many whole steps.
        op, shapes: an op or program argument whose shapes differ between steps, and some of the shapes; empty if
            unknown.
        same_shapes: programs of one name were compiled for arguments of equal shapes.
        repeated: most of the time went into programs that were compiled more than once.
        change: what made the costliest function be traced or compiled again, in words, where Stepscope noted it.
        argument: the argument that changed then, empty if it is none; function: with its place, `step (train.py:9)`.
        is_shape: the argument is an array of another shape or type, and not another value.
        of_type: the type of what is given as the argument, where that is another object of it each time.
        is_first: nothing of the function was traced before, as far as it is known.
    """

    programs: list[CompileCount]
    steps: int
    op: str
    shapes: list[str]
    same_shapes: bool = False
    repeated: bool = False
    change: str = ""
    argument: str = ""
    function: str = ""
    is_shape: bool = False
    of_type: str = ""
    is_first: bool = False


def compiles_of(trace: HostTrace) -> CompileFacts | None:
    """Tracing and compiling in a host's steps; None if there is none, or each program once for a few."""
    compiling, named = rows_in_steps(trace, K.COMPILE), compiled_in_steps(trace)
    if not len(compiling) or _happens_once(trace, compiling, named):
        return None
    programs, repeated = _count_names(trace, named), _is_repeated(trace, named)
    steps = len(distinct(whole_steps(trace).label[compiling]))
    noted = _noted_change(trace)
    if noted is not None and not noted.is_first:
        return replace(noted, programs=programs, steps=steps, repeated=repeated)
    op, shapes = _changing_shapes(trace)
    if op or not programs:
        return CompileFacts(programs, steps, op, shapes, repeated=repeated)
    op, shapes, same_shapes = _changing_argument(trace, programs[0].name)
    if noted is not None and not (op or same_shapes):
        return replace(noted, programs=programs, steps=steps, repeated=repeated)
    return CompileFacts(programs, steps, op, shapes, same_shapes, repeated)


def _noted_change(trace: HostTrace) -> CompileFacts | None:
    """What made the function on which most time was spent be traced or compiled again, else which is traced for the
    first time; None if nothing was noted."""
    groups: dict[tuple[str, str, str], list[NotedCompilation]] = {}
    noted = [note for note in noted_compilations(trace) if is_in_steps(trace, note.event)]
    again = [note for note in noted if note.reason in (AGAIN, FUNCTION)]
    spent = [sum(note.total_ps for note in notes) for notes in (again, noted)]
    for note in again if 2 * spent[0] >= spent[1] else noted:
        argument = note.changes[0][0] if note.changes else ""
        groups.setdefault((note.function, note.place, argument), []).append(note)
    if not groups:
        return None
    key = max(groups, key=lambda key: sum(note.total_ps for note in groups[key]))
    (function, place, argument), notes = key, groups[key]
    where = f"{function} ({place.rpartition('/')[2]})" if place else function
    if notes[0].reason == FUNCTION:
        change = f"{where} is defined anew each time, so nothing compiled before is reused"
        return CompileFacts([], 0, "", [], change=change, function=where)
    if notes[0].reason == FIRST:
        change = f"{where} is traced for the first time" if place else ""
        return CompileFacts([], 0, "", [], change=change, function=where if place else "", is_first=True)
    had = list(dict.fromkeys(text for note in notes for text in note.changes[0][1:] if text)) if argument else []
    change = f"{where} is compiled again" + (f" because of {argument}" if argument else "")
    if had:
        change = f"argument {argument} of {where} changes: {', then '.join(had[:_MOST_SHAPES])}"
    is_shape = bool(had) and all(each.endswith("]") and not each.startswith("[") for each in had)
    types = {each.partition(_AT)[0].removeprefix("a ") if _AT in each else "" for each in had}
    of_type = types.pop() if len(types) == 1 else ""
    if of_type:
        change = f"argument {argument} of {where} is another {of_type} each time"
    return CompileFacts([], 0, "", [], False, False, change, argument, where, is_shape, of_type)


def _is_repeated(trace: HostTrace, named: Named) -> bool:
    """Whether most of the time goes into programs that are compiled more than once."""
    times, ps = Counter(name for name, _ in named), trace.events.duration_ps
    again = sum(int(ps[row]) for name, row in named if times[name] >= _SEVERAL)
    return 2 * again > sum(int(ps[row]) for _, row in named)


def _happens_once(trace: HostTrace, compiling: I64, named: Named) -> bool:
    """Whether it is over after a few steps: most of the time goes into what is compiled in one step only and did not
    run before, such as an evaluation after the first epoch, there perhaps for several shapes."""
    steps, ps = whole_steps(trace), trace.events.duration_ps
    if not named or 2 * len(distinct(steps.label[compiling])) >= len(steps.number):
        return False
    in_steps: dict[str, set[int]] = {}
    for name, row in named:
        in_steps.setdefault(name, set()).add(int(steps.label[row]))
    rerun = find_rerun(trace, named)
    again = sum(int(ps[row]) for name, row in named if len(in_steps[name]) > 1 or row in rerun)
    return 2 * again < sum(int(ps[row]) for _, row in named)


def _changing_argument(trace: HostTrace, program: str) -> tuple[str, list[str], bool]:
    """The argument whose shapes differ most between programs of a name, its shapes, and whether most programs have the
    shapes of another one: then something else makes them be compiled again."""
    programs = programs_of(trace)
    places = [at for at, entry in enumerate(programs.entries) if entry.module == program]
    places.sort(key=lambda at: programs.entries[at].number or 0)
    taken = [[shape for _, shape in programs.module(at).parameters] for at in places]
    known = [shapes for shapes in taken if shapes]
    if len(known) < _SEVERAL or len({len(each) for each in known}) != 1:
        return "", [], False
    if 2 * len(set(map(tuple, known))) <= len(known):
        return "", [], True
    of_argument = [list(dict.fromkeys(shapes)) for shapes in zip(*known, strict=True)]
    most = max(range(len(of_argument)), key=lambda at: len(of_argument[at]), default=0)
    if not of_argument or len(of_argument[most]) == 1:
        return "", [], True
    return f"argument {most} (from 0, trees flattened) of {program}", of_argument[most][:_MOST_SHAPES], False


def _count_names(trace: HostTrace, named: Named) -> list[CompileCount]:
    """By time: a small program, such as one that makes a batch, may be compiled just as often as the step."""
    count, spent = Counter(name for name, _ in named), Counter[str]()
    for name, row in named:
        spent[name] += int(trace.events.duration_ps[row])
    return [CompileCount(name, count[name]) for name, _ in spent.most_common(_MOST_NAMES)]


def _changing_shapes(trace: HostTrace) -> tuple[str, list[str]]:
    """The first product of each step and its operand shapes, if they differ between steps."""
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return "", []
    label = whole_steps(trace).label
    rows = rows_in_steps(trace, K.OP)
    rows = rows[is_thread_event(trace)[rows]]
    rows = rows[has_trait(trace, trace.events.type[rows], OpTrait.FIRST_OF_STEP)]
    rows = rows[np.lexsort((trace.events.start_ps[rows], label[rows]))]
    first = rows[np.flatnonzero(np.append(True, np.diff(label[rows]) > 0))] if len(rows) else rows
    names = {trace.name_of(row) for row in first.tolist()}
    texts = list(dict.fromkeys(trace.stat_strings(stat_names.INPUT_DIMS, rows=first).tolist()))
    if len(names) != 1 or len(texts) < 2 or min(texts) <= 0:
        return "", []
    return names.pop(), [trace.strings[text] for text in texts[:_MOST_SHAPES]]
