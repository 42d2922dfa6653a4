"""Loops inside compiled programs whose rounds do not need each other, as `jax.lax.map` makes them.

    body   (i, rows, out)  ->  i + 1, rows, dynamic-update-slice(out, f(rows[i]), i)

What goes from round to round is read alone, counted, written into its own place, or added to a sum; where anything else
does, as the state of a recurrent layer, the rounds have to wait for each other.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.purpose.compiled import ProgramWork, program_work
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, median
from stepscope.records import dataclass

SHORT_PS = 30_000_000  # running one op costs about as much as the op; of a device, where it is a kernel, it is less
_FEWEST_ROUNDS = 8  # in a step: fewer may well be layers


@dataclass(frozen=True)
class IndependentRounds:
    """The rounds of such loops in which ops are short.

    Attributes:
        rows: their ops: rows of events; rounds: how many a step has, of the loop with most.
    """

    rows: I64
    rounds: float


def independent_rounds(trace: HostTrace) -> IndependentRounds | None:
    """The loops of a host's programs that could be one pass over all rounds; None without one."""
    return trace.derived("independent rounds", _find_rounds)


def _find_rounds(trace: HostTrace) -> IndependentRounds | None:
    found = [each for work in program_work(trace) if (each := _rounds_of(trace, work)) is not None]
    if not found:
        return None
    return IndependentRounds(np.concatenate([each.rows for each in found]), max(each.rounds for each in found))


def _rounds_of(trace: HostTrace, work: ProgramWork) -> IndependentRounds | None:
    """Those of one program.  One of its loops keeps a result of each round, as a map does; those that only sum up, as
    its backward pass, may also belong to a loop whose rounds need each other."""
    steps, parts, rounds, maps = max(len(whole_steps(trace).number), 1), list[I64](), 0.0, False
    for loop in _loops(work):
        body = _body(work, loop)
        given = _list_carried(work, body)
        if not given or not all(_goes_alone(work, row, at) for at, row in enumerate(given)):
            continue
        rows = work.runs_of(np.flatnonzero(work.module.computation == body).tolist())
        each = _rounds(work, rows) / steps
        if each >= _FEWEST_ROUNDS and median(trace.events.duration_ps[rows]) < SHORT_PS:
            parts.append(rows)
            rounds = max(rounds, each)
            maps |= any(_is_written(work, row, at) for at, row in enumerate(given))
    return IndependentRounds(np.concatenate(parts), rounds) if maps else None


def _rounds(work: ProgramWork, rows: I64) -> int:
    """How often the instruction runs that runs most often."""
    found = work.instruction[np.isin(work.rows, rows)]
    return int(np.bincount(found[found >= 0]).max(initial=0)) if len(found) else 0


def _loops(work: ProgramWork) -> list[int]:
    found: list[int] = np.flatnonzero(work.module.is_opcode("while")).tolist()
    return found


def _body(work: ProgramWork, loop: int) -> int:
    """The computation that a loop repeats: of the two that it calls the one that gives its values; -1 without one."""
    module = work.module
    called = [each for each in module.callees.linked(loop) if module.roots[each] >= 0]
    return next((each for each in called if module.opcode_of(int(module.roots[each])) == "tuple"), -1)


def _list_carried(work: ProgramWork, body: int) -> list[int]:
    """What a round gives to the next one, in order."""
    return list(work.module.operands.linked(int(work.module.roots[body]))) if body >= 0 else []


def _goes_alone(work: ProgramWork, row: int, place: int) -> bool:
    """Whether a value that goes from round to round keeps none waiting for the one before."""
    is_number = not work.flow.dims(row)
    return is_number or _takes(work, row, place) or _is_written(work, row, place) or _is_summed(work, row, place)


def _takes(work: ProgramWork, row: int, place: int) -> bool:
    """Whether a value is what the round was given at a place."""
    row = work.flow.origin(row)
    module = work.module
    return module.opcode_of(row) == "get-tuple-element" and int(module.tuple_index[row]) == place


def _is_written(work: ProgramWork, row: int, place: int) -> bool:
    """Whether a value is what the round was given with a part of it written."""
    row = work.flow.origin(row)
    if work.module.opcode_of(row) != "dynamic-update-slice":
        return False
    return _takes(work, work.flow.operand(row, 0), place)


def _is_summed(work: ProgramWork, row: int, place: int) -> bool:
    """Whether a value is what the round was given, and something added that does not depend on that."""
    module, flow = work.module, work.flow
    made = flow.origin(row)
    if module.opcode_of(made) != "add":
        return False
    sides = module.operands.linked(made)
    given = [side for side in sides if _takes(work, side, place)]
    if len(sides) != 2 or len(given) != 1 or len(module.users.linked(given[0])) != 1:
        return False
    holder = flow.outer(made)  # the fusion, whose operands lie in the body
    others = [each for each in module.operands.linked(holder) if not _takes(work, each, place)]
    return not any(_takes(work, each, place) for each in flow.needed_by(others))


def tiny_share(trace: HostTrace, rows: I64) -> float:
    """The share of the time of some ops in those that are too short to do more than start.

    A busy machine and the recording stretch single calls, so each counts with the median of its type.
    """
    if not len(rows):
        return 0.0
    types, length = trace.events.type[rows], trace.events.duration_ps[rows]
    order = np.lexsort((length, types))
    first = np.flatnonzero(np.append(True, np.diff(types[order]) != 0))
    calls = np.diff(np.append(first, len(rows)))
    median = length[order][first + (calls - 1) // 2]
    whole = median * calls
    return float(whole[median < SHORT_PS].sum() / max(whole.sum(), 1))
