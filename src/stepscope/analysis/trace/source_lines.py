"""The line of the program that an XLA instruction was traced from, as the metadata of its program says."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.hlo.framework_ops import places_of_events
from stepscope.analysis.hlo.module import Module
from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.hlo.sources import InstructionSource
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, distinct, number_pairs
from stepscope.records import dataclass
from stepscope.vocabulary.python import is_of_user


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
        return line, []
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
    frames = [frame.partition(" ") for frame in source.stack]
    users = (frame for frame in frames if is_of_user(f"${frame[0]} {frame[2]}"))
    place, _, function = next(users, frames[0] if frames else (source.line, "", ""))
    file, _, number = place.rpartition(":")
    function = function.replace(".<locals>", "")
    return SourceLine(function, file, int(number)) if file and number.isdigit() else None
