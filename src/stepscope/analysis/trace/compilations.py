"""The programs that were compiled during a capture: what each cost, and how its arguments differ from earlier ones.

JAX compiles a program inside the call that needs it: it traces the function, lowers it, and compiles it or loads it
from its cache on disk.  The call says which function.  The programs of a function are numbered in the order in which
they were made, so the last ones belong to the compilations in the capture.

What TensorFlow traces and PyTorch compiles is known where Stepscope made the capture: it notes which argument changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.hlo.programs import Programs, programs_of
from stepscope.analysis.trace.columns import events_of_kind, is_thread_event
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.noted_compilations import Change, NotedCompilation, noted_compilations
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary import jax, tensorflow
from stepscope.vocabulary.jax import function_of_call
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module

K = EventKind
HIT, MISS = "hit", "miss"
_LARGEST_COUNT = 1 << 40  # larger numbers of programs are fingerprints, and no count
_HIGHEST_CLIMB = 1024

Argument = tuple[str, str]
"""Name and shape of an argument, such as `("params['w']", "f32[64,64]")`."""


@dataclass(frozen=True)
class Compilation:
    """One program that was compiled, or loaded from a cache on disk.

    Attributes:
        event: row of the call that needed it, or of the compiler's own event.
        function: the function, or the program's name where the trace has no call.
        program: label of the program, empty if it is not known which one it is.
        total_ps: time of the call: tracing, lowering, compiling or loading, and launching.
        lower_ps, compile_ps: of that, lowering and compiling.
        cache: HIT or MISS of a cache on disk; empty if the trace does not show whether there is one.
        arguments: what the program takes; empty if unknown.
        earlier: what the program of the same function before it takes; None if there is none.
        place: file and line of the user's code; empty if unknown.
        reason: why a noted function was compiled, see `noted_compilations`; empty for programs of JAX.
        changes: the arguments of a noted function that changed.
    """

    event: int
    function: str
    program: str
    total_ps: int
    lower_ps: int
    compile_ps: int
    cache: str
    arguments: tuple[Argument, ...]
    earlier: tuple[Argument, ...] | None
    place: str = ""
    reason: str = ""
    changes: tuple[Change, ...] = ()


def compilations_of(trace: HostTrace) -> list[Compilation]:
    """The compilations of a trace, in order of time; computed once."""
    return trace.derived("compilations", _find_compilations)


def _find_compilations(trace: HostTrace) -> list[Compilation]:
    calls = _calls(trace)
    has_cache = any(call.cache for call in calls)
    of_function: dict[str, list[_Call]] = {}
    for call in calls:
        of_function.setdefault(call.function, []).append(call)
    programs = programs_of(trace)
    found = []
    for function, mine in of_function.items():
        places = _places_of(programs, function)
        first = len(places) - len(mine)
        for at, call in enumerate(mine, start=first):
            place, before = (places[at], places[at - 1] if at else -1) if first >= 0 else (-1, -1)
            found.append(_compilation(programs, call, place, before, has_cache))
    if not calls:  # programs of JAX say more of a compilation than its note
        found = [_compilation_of_note(note) for note in noted_compilations(trace)]
    return sorted(found, key=lambda each: int(trace.events.start_ps[each.event]))


def _compilation_of_note(note: NotedCompilation) -> Compilation:
    return Compilation(
        event=note.event,
        function=note.function,
        program="",
        total_ps=note.total_ps,
        lower_ps=note.trace_ps,
        compile_ps=note.backend_ps,
        cache="",
        arguments=(),
        earlier=None,
        place=note.place,
        reason=note.reason,
        changes=note.changes,
    )


# -- calls that compile -----------------------------------------------------------------------------------------------


@dataclass
class _Call:
    """A call that compiles, under construction; `elsewhere_ps` is compiling on other threads meanwhile."""

    event: int
    function: str
    total_ps: int
    lower_ps: int = 0
    compile_ps: int = 0
    elsewhere_ps: int = 0
    cache: str = ""


def _calls(trace: HostTrace) -> list[_Call]:
    """The calls that lower or compile a program, in order of time."""
    rows, around = _outermost_compiling(trace)
    names = _program_names(trace, rows)
    calls = _calls_around(trace, rows, around, names)
    for row in np.flatnonzero(around == rows).tolist():
        if names[row]:
            _add_alone(trace, calls, int(rows[row]), names[row])
    for call in calls:
        call.compile_ps = call.compile_ps or min(call.elsewhere_ps, call.total_ps - call.lower_ps)
    _set_cache(trace, calls)
    return sorted(calls, key=lambda call: int(trace.events.start_ps[call.event]))


def _calls_around(trace: HostTrace, rows: I64, around: I64, names: Sequence[str]) -> list[_Call]:
    """The calls of functions that lower a program or compile one that has a name."""
    lowers = has_trait(trace, trace.events.type[rows], CallTrait.LOWERS_PROGRAM)
    calls: dict[int, _Call] = {}
    relevant = set()
    for at in np.flatnonzero(around != rows).tolist():
        call, duration = int(around[at]), int(trace.events.duration_ps[rows[at]])
        function = function_of_call(trace.name_of(call)) or names[at]
        entry = calls.setdefault(call, _Call(call, function, int(trace.events.duration_ps[call])))
        entry.lower_ps += duration if lowers[at] else 0
        entry.compile_ps += 0 if lowers[at] else duration
        if lowers[at] or names[at]:
            relevant.add(call)
    return [entry for call, entry in calls.items() if call in relevant and entry.function]


def _add_alone(trace: HostTrace, calls: list[_Call], row: int, function: str) -> None:
    """Compiling with no call around it: on another thread while a call of the function waits, or without any call."""
    start, duration = int(trace.events.start_ps[row]), int(trace.events.duration_ps[row])
    for call in calls:
        begin = int(trace.events.start_ps[call.event])
        if call.function == function and begin <= start and start + duration <= begin + call.total_ps:
            call.elsewhere_ps += duration
            return
    calls.append(_Call(row, function, duration, compile_ps=duration))


def _outermost_compiling(trace: HostTrace) -> tuple[I64, I64]:
    """Compiling that lies in no other compiling, and the outer call of a function around each, itself if none."""
    rows = events_of_kind(trace, K.COMPILE)
    rows = rows[is_thread_event(trace)[rows]]
    kind, parent, types = trace.events.kind, forest(trace).parent, trace.events.type
    inner, call = np.zeros(len(rows), np.bool_), rows.copy()
    at = parent[rows].astype(np.int64)
    for _ in range(_HIGHEST_CLIMB):
        there = at >= 0
        if not there.any():
            break
        here = np.maximum(at, 0)
        inner |= there & (kind[here] == K.COMPILE)
        is_call = there & (kind[here] == K.TRACED_FUNCTION)
        # The nearest call; some record each call twice, one inside the other.
        call = np.where(is_call & ((call == rows) | (types[call] == types[here])), here, call)
        at = np.where(there, parent[here], -1)
    return rows[~inner], call[~inner]


def _program_names(trace: HostTrace, rows: I64) -> list[str]:
    """The function of the program that is compiled inside each event; empty if nothing inside names it."""
    compiling = events_of_kind(trace, K.COMPILE)
    compiling = compiling[has_trait(trace, trace.events.type[compiling], CallTrait.COMPILES_PROGRAM)]
    if not trace.has_stat(stat_names.PROGRAM_NAME):
        return [""] * len(rows)
    name = trace.stat_strings(stat_names.PROGRAM_NAME, rows=compiling)
    start, line = trace.events.start_ps[compiling], trace.events.line[compiling]
    found = []
    for row in rows.tolist():
        inside = _is_inside(trace, row, line, start)
        at = np.flatnonzero(inside & (name > 0))
        found.append(function_of_program(trace.strings[int(name[at[0]])]) if len(at) else "")
    return found


def _is_inside(trace: HostTrace, row: int, line: NDArray[np.integer], start: I64) -> Mask:
    begin = int(trace.events.start_ps[row])
    inside: Mask = (
        (line == trace.events.line[row]) & (start >= begin) & (start <= begin + int(trace.events.duration_ps[row]))
    )
    return inside


def _set_cache(trace: HostTrace, calls: Sequence[_Call]) -> None:
    """A program that is lowered in a call and not compiled comes from a cache; one that is written was not there."""
    python = events_of_kind(trace, K.PYTHON_CALL)
    python = python[has_trait(trace, trace.events.type[python], CallTrait.WRITES_PROGRAM_CACHE)]
    start, line = trace.events.start_ps[python], trace.events.line[python]
    for call in calls:
        is_call = trace.events.kind[call.event] == K.TRACED_FUNCTION
        if is_call and call.lower_ps and not call.compile_ps:
            call.cache = HIT
        elif call.compile_ps and _is_inside(trace, call.event, line, start).any():
            call.cache = MISS


# -- programs and their arguments --------------------------------------------------------------------------------------


def function_of_program(program: str) -> str:
    """The function that a program was made of, in JAX or TensorFlow."""
    return jax.function_of_program(tensorflow.function_of_program(program))


def _places_of(programs: Programs, function: str) -> list[int]:
    """The programs of a function in the order in which they were made; empty if their numbers do not show the order."""
    places = [at for at, entry in enumerate(programs.entries) if function_of_program(entry.module) == function]
    numbers = [programs.entries[at].number for at in places]
    if any(number is None or not 0 <= number < _LARGEST_COUNT for number in numbers):
        return []
    return sorted(places, key=lambda at: programs.entries[at].number or 0)


def _compilation(programs: Programs, call: _Call, place: int, before: int, has_cache: bool) -> Compilation:
    return Compilation(
        event=call.event,
        function=call.function,
        program=programs.entries[place].label if place >= 0 else "",
        total_ps=call.total_ps,
        lower_ps=call.lower_ps,
        compile_ps=call.compile_ps,
        cache=call.cache or (MISS if has_cache and call.compile_ps else ""),
        arguments=arguments_of(programs.module(place)) if place >= 0 else (),
        earlier=arguments_of(programs.module(before)) if before >= 0 else None,
    )


def arguments_of(module: Module) -> tuple[Argument, ...]:
    """What a program takes, in order; an argument without a name is called by its place, from 0."""
    shapes = [shape for _, shape in module.parameters]
    names = [f"argument {at}" for at in range(len(shapes))]
    rows = np.flatnonzero(module.is_opcode("parameter") & (module.computation == module.entry))
    for row, source in zip(rows.tolist(), module.sources.read(rows.tolist()), strict=True):
        at = int(module.parameter_number[row])
        if source.op_name and 0 <= at < len(names):
            names[at] = source.op_name
    return tuple(zip(names, shapes, strict=True))
