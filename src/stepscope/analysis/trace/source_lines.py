"""The line of the program that an XLA instruction was traced from, as the metadata of its program says, or that an op
of a TensorFlow graph comes from, as TensorFlow told the capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from stepscope.analysis.hlo.framework_ops import places_of_events
from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.hlo.sources import InstructionSource
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, distinct, number_pairs, number_rows
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_graph_lines
from stepscope.vocabulary.lookup import type_names

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module

_OF_CALLS = ("StatefulPartitionedCall/", "PartitionedCall/")  # what TensorFlow puts before ops of functions within
_OF_GRADIENTS = "gradient_tape/"


@dataclass(frozen=True)
class SourceLine:
    """A line of a program: the function that it is in is empty where the metadata holds no stack."""

    function: str
    file: str
    line: int


def source_lines(trace: HostTrace, events: I64) -> tuple[I64, list[SourceLine]]:
    """The line that the instruction of each event was traced from: int64 of shape (events,), -1 where none is known,
    and the different lines.

    It is the innermost one of the user's program, or of a library where the stack holds no other.

    Args:
        events: int64 of shape (n,), rows of events.
    """
    instruction = trace.stat_strings(stat_names.HLO_OP, rows=events)
    line = np.full(len(events), -1, np.int64)
    known: dict[SourceLine, int] = {}
    programs = programs_of(trace)
    at = np.flatnonzero(instruction > 0)
    if not len(programs) or not len(at):
        return _lines_of_nodes(trace, events)
    place = places_of_events(trace, events[at])
    pair, first = number_pairs(instruction[at], place)
    lines = np.full(len(first), -1, np.int64)
    programs.read([each for each in distinct(place).tolist() if each >= 0])
    for each in distinct(place[place >= 0]).tolist():
        here = np.flatnonzero(place[first] == each)
        found = _lines_of_module(trace, programs.module(each), instruction[at[first[here]]])
        lines[here] = [-1 if one is None else known.setdefault(one, len(known)) for one in found]
    line[at] = lines[pair]
    return line, list(known)


def knows_lines(trace: HostTrace) -> bool:
    """Whether lines of some compiled programs or graphs are known."""
    return trace.has_stat(stat_names.HLO_OP) or bool(_graph_lines(trace))


def _lines_of_nodes(trace: HostTrace, events: I64) -> tuple[I64, list[SourceLine]]:
    """The same for ops of graphs."""
    of_node, known = _graph_lines(trace), dict[SourceLine, int]()
    if not of_node:
        return np.full(len(events), -1, np.int64), []
    types, place = number_rows(trace.events.type[events], len(trace.event_types))
    found = [_line_of_node(name, of_node) for name in type_names(trace, types)]
    numbers = [-1 if each is None else known.setdefault(each, len(known)) for each in found]
    return np.array(numbers, np.int64)[place], list(known)


def _line_of_node(name: str, of_node: Mapping[str, SourceLine]) -> SourceLine | None:
    """The line of an op such as `StatefulPartitionedCall/dense/MatMul:MatMul`; of a gradient that of its forward op."""
    node = name.partition(":")[0]
    for scope in _OF_CALLS:
        while node.startswith(scope):
            node = node.removeprefix(scope)
    if node.startswith(_OF_GRADIENTS):
        forward = node.removeprefix(_OF_GRADIENTS).rpartition("/")[0]
        found = (of_node.get(forward) or of_node.get(f"{forward}/MatMul")) if forward else None
        return found or of_node.get(node)
    return of_node.get(node)


def line_that_asks(trace: HostTrace, events: I64) -> str:
    """The line that most of some gradients of graphs were asked for at, as `train.py:9 step`, not that of their forward
    ops; empty where it is not known."""
    of_node, times = _graph_lines(trace), Counter[SourceLine]()
    types, place = number_rows(trace.events.type[events], len(trace.event_types))
    ps = np.bincount(place, trace.events.duration_ps[events], len(types))
    for name, time in zip(type_names(trace, types) if of_node else (), ps, strict=False):
        node = name.partition(":")[0]
        once = node.count(_OF_GRADIENTS) == 1  # the gradient of a gradient is asked for elsewhere
        line = of_node.get(node[node.find(_OF_GRADIENTS) :]) if once else None
        times.update({line: int(time)} if line is not None else {})
    most = max(times, key=lambda each: times[each], default=None)
    return f"{most.file}:{most.line} {most.function}" if most is not None else ""


def _graph_lines(trace: HostTrace) -> dict[str, SourceLine]:
    """The lines of the nodes of graphs by name; empty where they were not recorded."""
    return trace.derived("lines of graphs", _find_graph_lines)


def _find_graph_lines(trace: HostTrace) -> dict[str, SourceLine]:
    found = {}
    planes = [row for row, name in enumerate(trace.planes.name.tolist()) if holds_graph_lines(trace.strings[name])]
    for line in np.flatnonzero(np.isin(trace.lines.plane, planes)).tolist():
        for row in range(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])):
            node, place, function = trace.name_of(row).split(" ", 2)
            file, _, number = place.rpartition(":")
            found[node] = SourceLine(function, file, int(number))
    return found


def _lines_of_module(trace: HostTrace, module: Module, instructions: I64) -> list[SourceLine | None]:
    offsets = trace.strings.offsets
    rows = module.find_rows(trace.strings.blob, offsets[instructions], offsets[instructions + 1])
    there = rows[rows >= 0].tolist()
    sources = iter(module.sources.read(there) if there else [])
    return [(_line_of(next(sources)) or _line_of_users(module, row)) if row >= 0 else None for row in rows.tolist()]


def _line_of_users(module: Module, row: int) -> SourceLine | None:
    """The line of what takes the value of an instruction that the compiler added, such as a copy."""
    users = module.users.linked(row)
    return next((line for each in (module.sources.read(users) if users else []) if (line := _line_of(each))), None)


def _line_of(source: InstructionSource) -> SourceLine | None:
    frame = next(source.users(), source.stack[0] if source.stack else "")
    place, _, function = frame.partition(" ") if frame else (source.line, "", "")
    file, _, number = place.rpartition(":")
    function = function.replace(".<locals>", "")
    return SourceLine(function, file, int(number)) if file and number.isdigit() else None
