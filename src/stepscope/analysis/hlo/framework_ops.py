"""Which op of the framework each XLA instruction was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.analysis.hlo.programs import Programs, programs_of
from stepscope.analysis.hlo.texts import number_texts
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, distinct, number_pairs

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module

_NO_NUMBER = -1


def framework_ops(programs: Programs, place: int) -> set[str]:
    """The ops of all instructions of a program, those inside fusions too, as `name:type`; the type may be empty."""
    return programs.derived(place, "framework ops", _all_ops) if place >= 0 else set()


def _all_ops(module: Module) -> set[str]:
    _, texts = _ops_of_rows(module, np.arange(len(module)))
    return {text for text in texts if text}


def framework_ops_of_events(trace: HostTrace, events: I64, instructions: I64) -> tuple[I64, list[str]]:
    """The framework's op of the XLA instruction of each event: int64 of shape (events,), and the different ops.

    Ops are `name:type`, as in `framework_ops`; place 0 is the empty text, for what no program explains.

    Args:
        events: int64 of shape (n,), rows of events.
        instructions: int64 of shape (n,), string rows of their instructions.
    """
    programs = programs_of(trace)
    op = np.zeros(len(events), np.int64)
    known: dict[str, int] = {"": 0}
    if len(programs) and len(events):
        place = places_of_events(trace, events)
        programs.read(distinct(place).tolist())
        for each in distinct(place[place >= 0]).tolist():
            here = np.flatnonzero(place == each)
            code, texts = _ops_by_name(trace, programs.module(each), instructions[here])
            op[here] = np.array([known.setdefault(text, len(known)) for text in texts], np.int64)[code]
    return op, list(known)


def places_of_events(trace: HostTrace, events: I64) -> I64:
    """The place of each event's program among those of the trace: int64 of shape (events,), -1 if it is not there."""
    programs = programs_of(trace)
    module = trace.stat_strings(stat_names.HLO_MODULE, rows=events)
    number = trace.stat_ints(stat_names.PROGRAM_ID, _NO_NUMBER, rows=events)
    code, first = number_pairs(module, number)
    pairs = zip(module[first].tolist(), number[first].tolist(), strict=True)
    wanted = [
        (each if each != _NO_NUMBER or name <= 0 else None, trace.strings[name] if name > 0 else "")
        for name, each in pairs
    ]
    places = programs.find_all(wanted)
    found: I64 = np.array(places, np.int64)[code]
    return found


def _ops_by_name(trace: HostTrace, module: Module, instructions: I64) -> tuple[I64, tuple[str, ...]]:
    offsets = trace.strings.offsets
    rows = module.find_rows(trace.strings.blob, offsets[instructions], offsets[instructions + 1])
    code = np.zeros(len(rows), np.int64)
    there = np.flatnonzero(rows >= 0)
    code[there], texts = _ops_of_rows(module, rows[there])
    return code, texts


def _ops_of_rows(module: Module, rows: I64) -> tuple[I64, tuple[str, ...]]:
    """The ops of some instructions: int64 of shape (rows,), and the different ops, of which the first is empty."""
    start, stop, type_start, type_stop = module.framework_op_ranges(rows)
    name, names = number_texts(module.buf, start, stop)
    kind, kinds = number_texts(module.buf, type_start, type_stop)
    code, first = number_pairs(name, np.where(name > 0, kind, 0))
    texts = [
        f"{names[a]}:{kinds[b]}" if a else "" for a, b in zip(name[first].tolist(), kind[first].tolist(), strict=True)
    ]
    return code.astype(np.int64) + 1, ("", *texts)
