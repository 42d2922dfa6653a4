"""Loops inside compiled programs whose rounds do not need each other, as `jax.lax.map` makes them.

    body   (i, rows, out)  ->  i + 1, rows, dynamic-update-slice(out, f(rows[i]), i)

What goes from round to round is read alone, counted, written into its own place, or added to a sum; where anything else
does, as the state of a recurrent layer, the rounds have to wait for each other.
"""

from __future__ import annotations

import math

import numpy as np

from stepscope.analysis.account.asked_by import asked_ops_of
from stepscope.analysis.account.statements import SampledLoop, loops_of_thread
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.purpose.compiled import ProgramWork, program_work
from stepscope.analysis.purpose.computing import inside_any, update_ranges
from stepscope.analysis.purpose.sizes import sizes_of
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import HostTrace, stat_names
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
        given = [] if _chooses(work, body) else _list_carried(work, body)
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


def _chooses(work: ProgramWork, body: int) -> bool:
    """Whether each round runs one of several branches: all rounds at once would run all branches, and select."""
    return bool((work.module.is_opcode("conditional") & (work.module.computation == body)).any())


def _goes_alone(work: ProgramWork, row: int, place: int) -> bool:
    """Whether a value that goes from round to round keeps none waiting for the one before."""
    is_number = not work.flow.dims(row)
    return is_number or _takes(work, row, place) or _is_written(work, row, place) or _is_summed(work, row, place)


def _takes(work: ProgramWork, row: int, place: int) -> bool:
    """Whether a value is what the round was given at a place."""
    row = work.flow.origin(row)
    module = work.module
    if module.opcode_of(row) != "get-tuple-element" or int(module.tuple_index[row]) != place:
        return False
    return module.opcode_of(work.flow.operand(row, 0)) == "parameter"  # not of another loop, inside the round


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


_MANY = 50  # ops per step: an unrolled model of some layers starts fewer in one loop; as for functions in `facts.lines`
_TRAINS = 0.25  # of their time: what no backward pass follows is a function that could be left out; judgement
FEW_NUMBERS = 16_384  # 64 KB: computing with them takes about as long as starting an op, whatever recording adds
_MOST_OF = 0.5  # of the ops' time in those that do little more than start, or of a backward pass; by the word


@dataclass(frozen=True)
class EagerRounds:
    """A loop of the program whose rounds start ops one by one, forward and backward.

    Attributes:
        loop: that; rows: its ops, and those of their backward pass, the outermost: rows of events.
        starts: how many of the forward ops a step has; op: the one that it starts most often.
    """

    loop: SampledLoop
    rows: I64
    starts: float
    op: str


def eager_rounds(trace: HostTrace) -> EagerRounds | None:
    """The loop of the program, other than that over steps, that takes most time for short ops of rounds that do not
    need each other; None without one, or where no forward op is linked to its backward pass."""
    return trace.derived("rounds of eager ops", _find_eager_rounds)


def _find_eager_rounds(trace: HostTrace) -> EagerRounds | None:
    line, steps = threads_of(trace).main, max(len(whole_steps(trace).number), 1)
    loops = loops_of_thread(trace, line) if line >= 0 else []
    if not loops:
        return None
    ops = asked_ops_of(trace, line)
    trains = ops.is_backward | inside_any(trace, ops.rows, update_ranges(trace))
    backward, least = spans_of(trace, ops.rows[ops.is_backward]), LARGE_SHARE / 100.0 * observed_time(trace).total
    best, best_ps = None, 0
    for loop in loops if backward.total else ():
        if loop.carries or (loop.spans & backward).total >= _MOST_OF * backward.total:
            continue
        inside = ops.asked_in(loop.spans)
        own, ps = ops.rows[inside & ~ops.is_backward], int(ops.ps[inside].sum())
        is_short = tiny_share(trace, own) >= _MOST_OF or usual_size(trace, own) <= FEW_NUMBERS
        if ops.ps[inside & trains].sum() < _TRAINS * ps or ps < max(least, best_ps + 1):
            continue
        if len(own) < _MANY * steps or not is_short:
            continue
        names, calls = np.unique(trace.event_names(own), return_counts=True)
        op = trace.strings[int(names[calls.argmax()])]
        best, best_ps = EagerRounds(loop, ops.rows[inside], len(own) / steps, op), ps
    return best


def usual_size(trace: HostTrace, rows: I64) -> float:
    """How many numbers the largest operand of an op has, the median over the time of some ops; infinite where that was
    not recorded."""
    if not len(rows) or not trace.has_stat(stat_names.INPUT_DIMS):
        return math.inf
    texts, place = np.unique(trace.stat_strings(stat_names.INPUT_DIMS, rows=rows), return_inverse=True)
    sizes = np.array([max(map(math.prod, sizes_of(trace.strings[max(text, 0)])), default=0) for text in texts.tolist()])
    ps, order = np.bincount(place.ravel(), trace.events.duration_ps[rows], len(texts)), np.argsort(sizes)
    return float(sizes[order][np.searchsorted(np.cumsum(ps[order]), ps.sum() / 2)])


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
