"""Forward passes that no backward pass follows: what their results are for, as far as the recording tells.

A teacher, a target network or a frozen part computes what an update uses, and no recording shows the values that flow.
So such a pass is called unneeded only where something says it: its results are compared with labels or go into a loss
that is not trained on, or it starts after the update of its step.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.purpose.compiled import compiled_again
from stepscope.analysis.purpose.computing import Computing, computing_of, is_passed_over, update_ranges
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.columns import events_of_kind, is_inside, is_inside_another
from stepscope.analysis.trace.grouping import enclosing_events
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.torch import RECOMPUTES
from stepscope.vocabulary.traits import OpTrait, PurposeTrait

K = EventKind

_FORWARD_IS_HEAVY = 0.3  # least share of products and convolutions in the time of a forward pass
LONG_OP_PS = 300_000_000  # longer than starting an op: its operands are large


@dataclass(frozen=True)
class ForwardOnly:
    """Forward work without a backward pass; each field is bool of the length of `computing_of`.

    Attributes:
        every: all of it; measures: what only measures; late: what starts after the update of its step.
        first: what comes before any trained work of its step, as frozen layers and a teacher that is asked first do.
        makes_again: ops that make large tensors again, and are no forward pass.
    """

    every: Mask
    measures: Mask
    late: Mask
    first: Mask
    makes_again: Mask


def recomputed_ops(trace: HostTrace) -> I64:
    """Forward ops that run again within the backward pass of a step, as activation checkpointing does: rows of events.

    Autograd numbers the ops that it records for a backward pass, and within a backward pass there are none of these but
    for what is computed again.  Compiled programs name such ops.
    """
    ops = computing_of(trace).rows
    compiled = compiled_again(trace)
    if len(compiled):
        return compiled
    if not len(ops) or not trace.has_stat(stat_names.SEQUENCE_NUMBER) or not len(events_of_kind(trace, K.BACKWARD)):
        return ops[:0]
    numbered = ops[trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=ops) >= 0]
    again = is_inside(trace, numbered, K.BACKWARD)
    forward = numbered[~again]
    types = distinct(trace.events.type[forward[~is_inside_another(trace, forward, K.OP)]])
    found = numbered[again]
    found = found[np.isin(trace.events.type[found], types)]
    # Without a product of the forward pass among them they differentiate a gradient.
    if not _multiplies_again(trace, found, forward):
        return ops[:0]
    among = np.zeros(len(trace.events), np.bool_)
    among[found] = True
    outermost: I64 = found[enclosing_events(trace, among)[found] == found]
    return outermost


def _multiplies_again(trace: HostTrace, found: I64, forward: I64) -> bool:
    """Whether most products among some ops have operands as those of the forward pass, where sizes were recorded."""
    heavy, first = (rows[has_trait(trace, trace.events.type[rows], OpTrait.MULTIPLIES)] for rows in (found, forward))
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return bool(len(heavy))
    again, known = (trace.stat_strings(stat_names.INPUT_DIMS, rows=rows) for rows in (heavy, first))
    return bool(2 * np.isin(again, known).sum() > len(heavy))


def forward_only_of(trace: HostTrace) -> ForwardOnly | None:
    """Forward work without a backward pass; None if the trace holds no numbers of autograd.

    These are ops without a number, as under `torch.no_grad`, ops whose number no backward pass has, and ops that
    autograd passes over, as of frozen layers on data: a later op has the same number.
    Only products and convolutions make them a forward pass.  Others update averages, count hits and the like.
    """
    return trace.derived("forward only", _find_forward_only) if trace.has_stat(stat_names.SEQUENCE_NUMBER) else None


def _find_forward_only(trace: HostTrace) -> ForwardOnly:
    work = computing_of(trace)
    ops, own, heavy = work.rows, work.own_ps, work.heavy
    learned = distinct(trace.stat_ints(stat_names.SEQUENCE_NUMBER, rows=events_of_kind(trace, K.BACKWARD)))
    idle = ~work.backward
    known = (work.number >= 0) & np.isin(work.number, learned)
    learns = known & ~is_passed_over(trace, ops, work.number, idle)
    free = (work.number < 0) & idle & ~is_inside(trace, ops, K.ANNOTATION)
    unlearned = (work.number >= 0) & idle & ~learns
    computes = _is_forward(own, free, heavy)
    makes = has_trait(trace, trace.events.type[ops], OpTrait.MAKES_RESULT) & (own >= LONG_OP_PS)
    recomputes = any(trace.strings.find(name) > 0 for name in RECOMPUTES)  # then the first pass has no gradients
    no_grad = free & (computes and not recomputes)
    unlearned &= len(learned) > 0 and not recomputes and _is_forward(own, unlearned, heavy)
    every = no_grad | unlearned
    return ForwardOnly(every, *_judge_parts(trace, work, every), free & makes & (not computes))


def _is_forward(own: I64, chosen: Mask, heavy: Mask) -> bool:
    return bool(own[chosen & heavy].sum() >= _FORWARD_IS_HEAVY * max(own[chosen].sum(), 1))


def _judge_parts(trace: HostTrace, work: Computing, alone: Mask) -> tuple[Mask, Mask, Mask]:
    """Which of the ops without a backward pass only measure, start late, or come first in their step."""
    steps, start = whole_steps(trace), trace.events.start_ps[work.rows]
    label = steps.label[work.rows]
    part = _number_parts(trace, work, alone)
    types = trace.events.type[work.rows]
    count = int(part.max(initial=0)) + 1
    ended = np.full(count, -1, np.int64)
    np.maximum.at(ended, part[alone & work.heavy], start[alone & work.heavy])
    after = alone & ~work.learned & (start > ended[part])

    def have(trait: PurposeTrait) -> Mask:
        return np.bincount(part[after & has_trait(trace, types, trait)], minlength=count) > 0

    # A comparison alone may make a mask for the next model, and the largest class alone an action.
    measures = have(PurposeTrait.IS_LOSS) | (have(PurposeTrait.PICKS_CLASS) & have(PurposeTrait.COMPARES_LABELS))
    updates = update_ranges(trace)
    updated = np.full(len(steps.number) + 1, np.iinfo(np.int64).max)  # one for -1
    last = np.full(len(steps.number) + 1, -1, np.int64)
    np.maximum.at(last, steps.label[updates], trace.events.start_ps[updates])
    updated = np.where(last >= 0, last, updated)
    trained = np.full(len(steps.number) + 1, np.iinfo(np.int64).max)
    learns = work.learned & work.heavy
    np.minimum.at(trained, label[learns], start[learns])
    began = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(began, part[alone & work.heavy], start[alone & work.heavy])
    late = alone & (steps.source == "markers") & (start > updated[label])
    late &= (began[part] > updated[label]) & (ended[part] >= 0)
    return alone & measures[part], late, alone & (start < trained[label]) & ~late


def _number_parts(trace: HostTrace, work: Computing, alone: Mask) -> I64:
    """A number for each stretch of ops between two that are trained: int64 of shape (ops,)."""
    steps = whole_steps(trace).label[work.rows].astype(np.int64)
    lines = trace.events.line[work.rows].astype(np.int64)
    order = np.lexsort((trace.events.start_ps[work.rows], lines))
    # A product that is trained ends a stretch, and so do a backward pass, an update and the step.
    ends = (work.learned & work.heavy) | work.backward | work.updates
    begins = ends[order] | (np.diff(lines[order], prepend=-1) != 0) | (np.diff(steps[order], prepend=-2) != 0)
    found = np.zeros(len(work), np.int64)
    found[order] = np.cumsum(begins)
    return found
