"""Finds the part of a model that a user names: a cause, a category, an op or kernel, a function, or a line of code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

import numpy as np

from stepscope.analysis.account.account_text import CAUSES_OF_CLASS
from stepscope.analysis.account.causes import MEANING, Cause
from stepscope.analysis.account.functions import function_named, part_of_function, part_with_work
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.selectors import Portion, part_of_cause, part_of_events
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.source_lines import source_lines
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.op_names import op_name
from stepscope.vocabulary.python import place_of

K = EventKind

CAUSES: dict[str, Cause] = {each.name.lower(): each for each in Cause if each != Cause.UNKNOWN}
# Categories of the step breakdown that are causes of the account, or kinds of copies, under other names.
_CAUSE_OF_CATEGORY: dict[str, Cause] = {
    "compilation": Cause.COMPILE,
    "kernel_launch": Cause.LAUNCH,
    "device_collectives": Cause.COMMUNICATION,
    "other": Cause.PYTHON,
}
_COPIES_OF_CATEGORY: dict[str, tuple[EventKind, ...]] = {
    "output": (K.COPY_DEVICE_TO_HOST,),
    "device_to_device": (K.COPY_DEVICE_TO_DEVICE, K.COPY_PEER),
}
_NAMED = (
    K.OP, K.BACKWARD, K.INPUT_WAIT, K.ITERATOR, K.INPUT_CALLBACK, K.TRACED_FUNCTION, K.EAGER_EXECUTE, K.FUNCTION_RUN,
    K.COLLECTIVE_CALL, K.CHECKPOINT, K.ANNOTATION, K.RUNTIME_CALL, K.SYNC, K.COMPILE, K.EXECUTOR, K.KERNEL,
    K.COPY_HOST_TO_DEVICE, K.COPY_DEVICE_TO_HOST, K.COPY_DEVICE_TO_DEVICE, K.COPY_OTHER, K.MEMSET, K.COLLECTIVE,
    K.DEVICE_OP, K.GRAPH_LAUNCH,
)  # fmt: skip


@dataclass(frozen=True)
class Selection:
    """A part that a user named.

    Attributes:
        name: as the user wrote it; what: what it is, for a sentence.
        part: its time in the model.
    """

    name: str
    what: str
    part: Portion


def select_part(model: StepModel, name: str, ops_of_class: Iterable[str] = ()) -> Selection | None:
    """The part of a model that a name stands for; None if nothing has that name.

    Args:
        name: a cause, a category of the step breakdown, a class of advice, an op or kernel or its type, a recorded
            Python function, or `file.py:line`.
        ops_of_class: if the name is a class of advice, the ops that the advice names.
    """
    plain = name.replace(" ", "_")  # as the summary writes categories
    cause = CAUSES.get(plain, _CAUSE_OF_CATEGORY.get(plain, next(iter(CAUSES_OF_CLASS.get(plain, ())), None)))
    if cause is not None:
        return Selection(name, f"all time in which {MEANING[cause]}", part_of_cause(model, cause))
    if ops := list(ops_of_class):
        rows = [_op_events(model.trace, op) for op in ops]
        return Selection(name, f"the ops {', '.join(ops)}", part_with_work(model, np.concatenate(rows)))
    if plain in _COPIES_OF_CATEGORY:
        copies = np.flatnonzero(is_any_kind(model.trace.events.kind, _COPIES_OF_CATEGORY[plain]))
        return Selection(name, "copies by a device", part_of_events(model, copies))
    ops_found = _op_events(model.trace, name)
    if len(ops_found):
        return Selection(name, "an op with the device work that it launches", part_with_work(model, ops_found))
    if (sampled := function_named(model.trace, name)) is not None:
        part = part_of_function(model, sampled)
        return Selection(name, "a function, as samples of the stack show it, with what it starts", part)
    calls = distinct(np.concatenate([_function_calls(model.trace, name), _traced_events(model.trace, name)]))
    if len(calls):
        return Selection(name, "a function with the device work that it launches", part_with_work(model, calls))
    types = model.trace.derived("names of events", _names_of_events).get(name, [])
    events = np.flatnonzero(_is_of_types(model.trace, types))
    return Selection(name, "what is recorded under that name", part_with_work(model, events)) if len(events) else None


def similar_names(model: StepModel, name: str, others: Iterable[str], count: int = 3) -> list[str]:
    """The names nearest to one that nothing has: ops and functions of the trace, and some others."""
    from difflib import get_close_matches

    trace = model.trace
    ops = [*trace.derived("names of ops", _names_of_ops), *(op for op, _ in attribute(trace).ops)]
    known = [*dict.fromkeys([*ops, *trace.derived("names of functions", _names_of_functions)])]
    inside = [each for each in known if name.lower() in each.lower()][:count]
    return inside or get_close_matches(name, [*dict.fromkeys([*others, *known])], n=count)


def _op_events(trace: HostTrace, name: str) -> I64:
    """The events of an op or a kernel, by name or type, and the device work that belongs to it."""
    types = trace.derived("names of ops", _names_of_ops).get(name, [])
    found = np.flatnonzero(_is_of_types(trace, types) & is_any_kind(trace.events.kind, _NAMED))
    work = attribute(trace)
    ops = [at for at, (op, kind) in enumerate(work.ops) if name in (op, kind, brief(op))]
    return distinct(np.concatenate([found, work.rows[np.isin(work.op, ops)]])) if ops else found


def _function_calls(trace: HostTrace, name: str) -> I64:
    """The recorded calls of a Python function, given by its name or by file and line."""
    functions = trace.derived("names of functions", _names_of_functions)
    return np.flatnonzero(_is_of_types(trace, functions.get(name, [])) & (trace.events.kind == K.PYTHON_CALL))


def _traced_events(trace: HostTrace, name: str) -> I64:
    """The events of instructions of compiled programs that were traced from a function or a line."""
    rows = np.flatnonzero(trace.stat_strings(stat_names.HLO_OP) > 0)
    line, lines = source_lines(trace, rows)
    wanted = [name in (each.function, *_places(each.file, each.line, each.function)) for each in lines]
    found: I64 = rows[look_up(np.array([*wanted, False], np.bool_), line)]
    return found


def _places(file: str, line: int | None, function: str) -> list[str]:
    """How a line of code may be named."""
    place = f"{file}:{line}"
    return [place, f"{place} {function}", f"{PurePath(file).name}:{line}"]


def _is_of_types(trace: HostTrace, types: list[int]) -> Mask:
    wanted = np.zeros(len(trace.event_types), np.bool_)
    wanted[types] = True
    found: Mask = look_up(wanted, trace.events.type)
    return found


def _types_of(trace: HostTrace, kinds: tuple[EventKind, ...]) -> list[tuple[int, EventKind, str]]:
    """The event types that occur with some kinds: type, kind and name."""
    rows = is_any_kind(trace.events.kind, kinds)
    pairs = trace.events.type[rows].astype(np.int64) * 256 + trace.events.kind[rows]
    seen = np.zeros(256 * len(trace.event_types), np.bool_)
    seen[pairs] = True
    pairs = np.flatnonzero(seen)
    types, found = pairs >> 8, [EventKind(kind) for kind in (pairs & 255).tolist()]
    return list(zip(types.tolist(), found, type_names(trace, types), strict=True))


def _names_of_ops(trace: HostTrace) -> dict[str, list[int]]:
    """The event types of each op: by its whole name, its short one, and its type."""
    found: dict[str, list[int]] = {}
    for type_, kind, name in _types_of(trace, _NAMED):
        for each in {name, brief(name), *op_name(name, kind)}:
            found.setdefault(each, []).append(type_)
    return found


def _names_of_events(trace: HostTrace) -> dict[str, list[int]]:
    """The event types of whatever else was recorded, by its name."""
    found: dict[str, list[int]] = {}
    for type_, _, name in _types_of(trace, tuple(kind for kind in K if kind != K.STEP_MARK)):
        for each in {name, place_of(name)[0]}:
            found.setdefault(each, []).append(type_)
    return found


def _names_of_functions(trace: HostTrace) -> dict[str, list[int]]:
    """The event types of each Python function: by its recorded name, its own name, and file:line."""
    found: dict[str, list[int]] = {}
    for type_, _, name in _types_of(trace, (K.PYTHON_CALL,)):
        function, file, line = place_of(name)
        places = [] if file is None else _places(file, line, function)
        for each in {name, function, *places}:
            found.setdefault(each, []).append(type_)
    return found
