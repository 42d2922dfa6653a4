"""Branches of compiled programs of which both are computed, for all rows of a batch: a `jax.lax.cond` under `jax.vmap`.

    vmap: lax.cond(done, reset, keep, state)  ->  select(done, reset(state), state)

A batch has no one condition, so each branch runs for every row, and a selection takes from both.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.hlo.sources import InstructionSource
from stepscope.analysis.purpose.compiled import ProgramWork, program_work
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.jax import is_choice_of_rows
from stepscope.vocabulary.python import is_of_user


@dataclass(frozen=True)
class BothBranches:
    """What functions compute that are called where a batch chooses between their results.

    Attributes:
        rows: rows of events; line: where it chooses, as `train.py:9 step`.
    """

    rows: I64
    line: str


def both_branches(trace: HostTrace) -> BothBranches | None:
    """The choice whose branches take longest; None without one."""
    found = [each for work in program_work(trace) for each in _of_program(work)]
    return max(found, key=lambda each: int(trace.events.duration_ps[each.rows].sum()), default=None)


def _of_program(work: ProgramWork) -> list[BothBranches]:
    module = work.module
    selects = np.flatnonzero(module.is_opcode("select")).tolist()
    named = zip(selects, module.sources.read(selects) if selects else (), strict=True)
    chooses = ((row, users[0]) for row, source in named
               if is_choice_of_rows(source.op_name) and (users := _users(source)))  # fmt: skip
    lines = {frame.partition(" ")[0]: frame for row, frame in chooses if not _compares_itself(work, row)}
    run = [row for row in distinct(work.instruction).tolist() if row >= 0] if lines else []
    called: dict[str, list[int]] = {}
    for row, source in zip(run, module.sources.read(run) if run else (), strict=True):
        if module.opcode_of(row) not in ("while", "conditional", "call"):
            for frame in _users(source)[1:]:  # a branch may be a function of its own in that line
                if (place := frame.partition(" ")[0]) in lines:
                    called.setdefault(place, []).append(row)
    return [BothBranches(work.runs_of(rows), lines[place]) for place, rows in called.items()]


def _users(source: InstructionSource) -> list[str]:
    """The frames of the program around an instruction, the innermost first."""
    return [frame for frame in source.stack if is_of_user("$" + frame)]


def _compares_itself(work: ProgramWork, row: int) -> bool:
    """Whether a selection is by the size of what it takes, as indexing makes it of a negative number."""
    flow = work.flow
    condition, *taken = (flow.origin(each) for each in work.module.operands.linked(row))
    sides = {flow.origin(each) for each in work.module.operands.linked(condition)}
    return work.module.opcode_of(condition) == "compare" and not sides.isdisjoint(taken)
