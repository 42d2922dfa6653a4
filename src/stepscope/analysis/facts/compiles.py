"""What is traced and compiled while the steps run, and what about it changes from step to step, as far as it is told.

TensorFlow tells which function it traces anew, JAX which program it compiles and what each takes, PyTorch the shapes
that ops are given.  None of them tells the value of an argument that is no tensor.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.columns import on_threads, rows_of
from stepscope.analysis.trace.hlo import programs as list_of_programs
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.tensorflow import function_of_program, was_traced
from stepscope.vocabulary.traits import CallTrait, OpTrait

K = EventKind

_MOST_NAMES = 5
_MOST_SHAPES = 3
_SEVERAL = 2  # programs of a name, which can be compared


@dataclass(frozen=True)
class Compiled:
    """A function or program and how often it was traced or compiled in the steps."""

    name: str
    times: int


@dataclass(frozen=True)
class CompileFacts:
    """Tracing and compiling in the steps of one host.

    Attributes:
        programs: what is traced or compiled, most often first.
        op, shapes: an op, or an argument of a program, that is given other shapes in other steps, and some of them;
            empty if none is known.
        same_shapes: programs of one name were compiled for arguments of the same shapes.
    """

    programs: list[Compiled]
    op: str
    shapes: list[str]
    same_shapes: bool = False


def compiles_of(trace: HostTrace) -> CompileFacts | None:
    """Tracing and compiling in a host's steps; None where there is none."""
    compiling, calls = (_in_steps(trace, rows_of(trace, kind)) for kind in (K.COMPILE, K.TRACED_FUNCTION))
    if not len(compiling):
        return None
    programs = _traced(trace, calls) or _compiled(trace, compiling)
    op, shapes = _changing_shapes(trace)
    if op or not programs or programs[0].times < _SEVERAL:
        return CompileFacts(programs, op, shapes)
    return CompileFacts(programs, *_changing_argument(trace, programs[0].name))


def _in_steps(trace: HostTrace, rows: I64) -> I64:
    return rows[whole_steps(trace).label[rows] >= 0]


def _traced(trace: HostTrace, rows: I64) -> list[Compiled]:
    """Calls of TensorFlow's functions that traced them."""
    if not trace.has_stat(stat_names.FUNCTION_CALL):
        return []
    how = trace.stat_strings(stat_names.FUNCTION_CALL, rows=rows)
    traced = [text for text in np.unique(how).tolist() if was_traced(trace.strings.raw(text))]
    return _counted(trace.name_of(row) for row in rows[np.isin(how, traced)].tolist())


def _compiled(trace: HostTrace, rows: I64) -> list[Compiled]:
    """Programs that XLA compiles, each once for every compilation; frames that PyTorch compiles."""
    compiling = rows[has_trait(trace, trace.events.type[rows], CallTrait.COMPILES_PROGRAM)]
    if len(compiling) and trace.has_stat(stat_names.PROGRAM_NAME):
        names = trace.stat_strings(stat_names.PROGRAM_NAME, rows=compiling)
        return _counted(function_of_program(trace.strings[name]) for name in names[names > 0].tolist())
    frames = int(has_trait(trace, trace.events.type[rows], CallTrait.COMPILES_FRAME).sum())
    return [Compiled("a compiled frame", frames)] if frames else []


def _changing_argument(trace: HostTrace, program: str) -> tuple[str, list[str], bool]:
    """The argument of programs of a name that is given other shapes most often, and whether none is."""
    known = list_of_programs(trace).parameters(program)
    if len(known) < _SEVERAL or len({len(each) for each in known}) != 1:
        return "", [], False
    of_argument = [list(dict.fromkeys(shapes)) for shapes in zip(*known, strict=True)]
    most = max(range(len(of_argument)), key=lambda at: len(of_argument[at]), default=0)
    if not of_argument or len(of_argument[most]) == 1:
        return "", [], True
    return f"argument {most} (from 0, trees flattened) of {program}", of_argument[most][:_MOST_SHAPES], False


def _counted(names: Iterable[str]) -> list[Compiled]:
    count: dict[str, int] = {}
    for name in names:
        count[name] = count.get(name, 0) + 1
    ordered = sorted(count.items(), key=lambda each: (-each[1], each[0]))
    return [Compiled(*each) for each in ordered[:_MOST_NAMES]]


def _changing_shapes(trace: HostTrace) -> tuple[str, list[str]]:
    """The first product of every step: what is it given?"""
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return "", []
    label = whole_steps(trace).label
    rows = _in_steps(trace, rows_of(trace, K.OP))
    rows = rows[on_threads(trace)[rows]]
    rows = rows[has_trait(trace, trace.events.type[rows], OpTrait.FIRST_OF_STEP)]
    rows = rows[np.lexsort((trace.events.start_ps[rows], label[rows]))]
    first = rows[np.flatnonzero(np.append(True, np.diff(label[rows]) > 0))] if len(rows) else rows
    names = {trace.name_of(row) for row in first.tolist()}
    texts = list(dict.fromkeys(trace.stat_strings(stat_names.INPUT_DIMS, rows=first).tolist()))
    if len(names) != 1 or len(texts) < 2 or min(texts) <= 0:
        return "", []
    return names.pop(), [trace.strings[text] for text in texts[:_MOST_SHAPES]]
