"""Work of training that grows from step to step: an op that each step runs more often, or on a larger tensor.

Hooks that are attached in every step, values that are kept with their graph, a history that every step goes through:
the run gets slower without an end.
"""

from __future__ import annotations

import math

import numpy as np

from stepscope.analysis.purpose.computing import backward_runs, computing_of
from stepscope.analysis.purpose.sizes import sizes_of
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import F64, I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import type_names

_FEWEST_STEPS = 5  # in each of which it has to grow: by chance 1 of 120 orders of five numbers does
_NAMED = 3  # ops: as many as a sentence bears


@dataclass(frozen=True)
class OpGrowth:
    """Ops whose number, or whose largest tensor, grows in every step.

    Attributes:
        rows: the ops: rows of events; kept: the share of their work that a step would have without the growth.
        what: in words.
    """

    rows: I64
    kept: float
    what: str


def growth_of(trace: HostTrace) -> OpGrowth | None:
    """The work that grows; None where none does, or nothing is trained: generating text step by step needs it."""
    work, steps = computing_of(trace), whole_steps(trace)
    count = len(steps.number)
    if count < _FEWEST_STEPS or not len(backward_runs(trace)):
        return None
    rows = np.append(work.rows[work.outer & ~work.backward], backward_runs(trace))
    rows = rows[steps.label[rows] >= 0]
    types, place = np.unique(trace.events.type[rows], return_inverse=True)
    cell = place * count + steps.label[rows]
    number = np.bincount(cell, minlength=len(types) * count).reshape(len(types), count).astype(np.float64)
    largest = np.zeros(len(types) * count)
    np.maximum.at(largest, cell, _largest_operands(trace, rows))
    size = largest.reshape(len(types), count)
    names = type_names(trace, types.astype(np.int64))
    of_number, of_size = _grows(number), _grows(size)
    chosen = of_number if of_number.any() else of_size
    if not chosen.any():
        return None
    table = number if of_number.any() else size
    time = np.bincount(place, trace.events.duration_ps[rows], minlength=len(types))
    order = sorted(np.flatnonzero(chosen).tolist(), key=lambda each: -time[each])
    kept = float(sum(time[each] * _needed(table[each], steps.number) for each in order) / time[order].sum())
    said = ", ".join(f"{names[each]} {table[each][0]:,.0f} to {table[each][-1]:,.0f}" for each in order[:_NAMED])
    of = "times" if of_number.any() else "numbers in its largest tensor"
    what = f"grows with every step: over {count} steps {said} {of}"
    return OpGrowth(rows[chosen[place]], kept, what)


def _largest_operands(trace: HostTrace, rows: I64) -> F64:
    """How many numbers the largest operand of each op has; 0 where sizes were not recorded."""
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return np.zeros(len(rows))
    texts, place = np.unique(trace.stat_strings(stat_names.INPUT_DIMS, rows=rows), return_inverse=True)
    largest = [
        max(map(math.prod, sizes_of(trace.strings[text])), default=0) if text > 0 else 0 for text in texts.tolist()
    ]
    return np.array(largest, np.float64)[place]


def _grows(table: F64) -> Mask:
    """Which rows of a table grow from each step to the next."""
    found: Mask = (np.diff(table, axis=1) > 0).all(axis=1) & (table[:, 0] > 0)
    return found


def _needed(table: F64, number: I64) -> float:
    """The share of what a row has in a mean step that it had in the first step of the run, if it grew evenly since."""
    each = float(table[-1] - table[0]) / max(len(table) - 1, 1)
    first = max(float(table[0]) - each * max(int(number[0]), 0), each)
    return min(first / float(table.mean()), 1.0)
