"""Branches of compiled programs of which both are computed, for all rows of a batch: a `jax.lax.cond` under `jax.vmap`.

    vmap: lax.cond(done, reset, keep, state)  ->  select(done, reset(state), state)

A batch has no one condition, so each branch runs for every row, and a selection takes from both.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.purpose.compiled import ProgramWork, program_work
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.jax import is_choice_of_rows


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
    branches: dict[str, str] = {}
    for row, source in named:
        if is_choice_of_rows(source.op_name) and (users := [*source.users()]) and not _compares_itself(work, row):
            branches |= dict.fromkeys(_functions_chosen(work, row, users), users[0])
    run = [row for row in distinct(work.instruction).tolist() if row >= 0] if branches else []
    called: dict[str, list[int]] = {}
    for row, source in zip(run, module.sources.read(run) if run else (), strict=True):
        if module.opcode_of(row) not in ("while", "conditional", "call"):
            for line in {branches[each] for each in map(_function_of, source.users()) if each in branches}:
                called.setdefault(line, []).append(row)
    return [BothBranches(work.runs_of(rows), line) for line, rows in called.items()]


def _functions_chosen(work: ProgramWork, row: int, around: list[str]) -> set[str]:
    """The functions that a selection takes results of, and that are not around it: a branch is traced by itself."""
    taken = [work.flow.origin(each) for each in work.module.operands.linked(row)[1:]]
    known, found = {_function_of(each) for each in around}, set[str]()
    for source in work.module.sources.read(taken) if taken else ():
        others = [each for each in map(_function_of, source.users()) if each not in known]
        found.update(others[-1:])
    return found


def _function_of(frame: str) -> str:
    """`train.py step` of the frame `train.py:9 step`."""
    place, _, function = frame.partition(" ")
    return f"{place.rpartition(':')[0]} {function}"


def _compares_itself(work: ProgramWork, row: int) -> bool:
    """Whether a selection is by the size of what it takes, as indexing makes it of a negative number."""
    flow = work.flow
    condition, *taken = (flow.origin(each) for each in work.module.operands.linked(row))
    sides = {flow.origin(each) for each in work.module.operands.linked(condition)}
    return work.module.opcode_of(condition) == "compare" and not sides.isdisjoint(taken)
