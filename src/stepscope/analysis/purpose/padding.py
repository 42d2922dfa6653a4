"""Batches whose rows are filled up to one length, and how much of what the model computes is of what fills them.

    zero_  [16,320]                      a batch is made
    slice  [320] 0:25    copy_ [25]      a row of 25 goes into one of 320
    slice  [320] 0:14    copy_ [14]      ...
    linear [16,320,64]                   the model computes all of it

`pad_sequence` and `pad` run the same ops inside.  A part that is filled with one number is no row, but a mask:

    slice  [320] 0:25    copy_ [25] []   the loss ignores these labels

Rows that are filled up with no op are known where the capture has read a batch of tokens: as with NumPy, in tf.data,
or of a compiled program.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from stepscope.analysis.account.asked_by import function_at
from stepscope.analysis.purpose.compiled import program_work, rows_of
from stepscope.analysis.purpose.computing import computing_of
from stepscope.analysis.purpose.sizes import Size, sizes_of
from stepscope.analysis.purpose.tensors import alike_with_backward, ops_with_sizes
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.program_facts import PaddedBatch, padded_batches
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct, used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import strip_library
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.scopes import is_gradient
from stepscope.vocabulary.tensorflow import READS_VARIABLE
from stepscope.vocabulary.traits import PurposeTrait

_FEWEST_ROWS = 4  # a step, of one length: fewer copies into a part of a tensor are no batch that is filled up
_FIRST_SCOPES = 2  # a gradient has the model's scope behind its own
_MOST_USED = 0.75  # of the batch: of more, shorter batches save little; judgement


@dataclass(frozen=True)
class Padding:
    """Batches that are filled up.

    Attributes:
        rows: what the model computes on them: rows of events.
        kept: the share of it that the rows' own lengths need, with batches as they are, or, where these are as long as
            their longest row already, with rows of about equal lengths in one batch.
        length: of the rows as they are filled up, the most of all batches; longest, mean: before.
        is_to_longest: each batch is filled up to its own longest row.
        filled_by: the function of the program that fills them up, as its frames are named; empty if nothing shows it.
    """

    rows: I64
    kept: float
    length: int
    longest: int
    mean: float
    is_to_longest: bool
    filled_by: str


def padding_of(trace: HostTrace) -> Padding | None:
    """The padding of the batches that the steps compute; None where there is none worth a change, or no sizes tell."""
    if not trace.has_stat(stat_names.INPUT_DIMS):
        return _padding_without_sizes(trace)
    return _padding_of_copies(trace) or _padding_of_tokens(trace)


def _padding_of_copies(trace: HostTrace) -> Padding | None:
    """The padding of rows that ops copy into longer ones."""
    own, filled, batch, times = _copied_rows(trace)
    kept_rows = ~_is_used_part(own, filled, batch)
    own, filled, batch, times = own[kept_rows], filled[kept_rows], batch[kept_rows], times[kept_rows]
    if not len(own):
        return None
    steps = distinct(batch)
    most, to = (np.array([values[batch == each].max() for each in steps]) for values in (own, filled))
    # The longest row fills its batch and is no part of it, so that its copy is not seen.
    is_to_longest = bool((most == to).all()) or len(distinct(to)) > 1
    kept = float(own.sum() / filled.sum()) if is_to_longest else float(most.mean() / to.mean())
    if len(own) < _FEWEST_ROWS * len(steps) or kept > _MOST_USED:
        return None
    rows = _computed_on(trace, set(to.tolist()), len(own) // len(steps))
    by = function_at(trace, times)
    filled_by = trace.name_of(by.frame) if by is not None else ""
    return Padding(rows, kept, int(to.max()), int(most.max()), float(own.mean()), is_to_longest, filled_by)


def _padding_of_tokens(trace: HostTrace) -> Padding | None:
    """The padding of tokens that the capture has read: they may be filled up with no op, as with NumPy."""
    for each in padded_batches(trace):
        kept, size = each.longest / each.length, (each.rows, each.length)
        if kept > _MOST_USED or not any(op.name == "embedding" and size in op.sizes for op in ops_with_sizes(trace)):
            continue
        rows = _computed_on(trace, {each.length}, each.rows)
        return Padding(rows, kept, each.length, each.longest, each.mean, is_to_longest=False, filled_by="")
    return None


def _padding_without_sizes(trace: HostTrace) -> Padding | None:
    """The padding of tokens that the capture has read, where events have no sizes: of compiled programs that take an
    array of that size, or of the model whose graph looks tokens up in a variable."""
    for each in padded_batches(trace):
        kept = each.longest / each.length
        rows = _programs_on(trace, each) if kept <= _MOST_USED else np.empty(0, np.int64)
        rows = rows if len(rows) or kept > _MOST_USED else _model_that_looks_up(trace)
        if len(rows):
            return Padding(rows, kept, each.length, each.longest, each.mean, is_to_longest=False, filled_by="")
    return None


def _programs_on(trace: HostTrace, batch: PaddedBatch) -> I64:
    """What compiled programs that take a batch compute on all of its places: rows of events."""
    found, axes = [np.empty(0, np.int64)], {batch.length, batch.length * batch.rows}
    for work in program_work(trace):
        module, run = work.module, distinct(work.instruction[work.instruction >= 0]).tolist()
        taken = [row for row in rows_of(module, "parameter") if module.computation[row] == module.entry]
        if [batch.rows, batch.length] in [[*module.shapes.dims_of(row)] for row in taken]:
            near = {row: (row, *module.operands.linked(row)) for row in run}
            wide = [row for row in run if any(axes & {*module.shapes.dims_of(each)} for each in near[row])]
            found.append(work.runs_of(wide))
    return distinct(np.concatenate(found))


def _model_that_looks_up(trace: HostTrace) -> I64:
    """The ops of the model, with their gradients, that takes rows of a variable by their numbers: rows of events.

    Ops are named by the layers around them, `net/embedding/GatherV2`, `gradient_tape/net/dense/MatMul`.
    """
    work = computing_of(trace)
    types = distinct(trace.events.type[work.rows]).astype(np.int64)
    names = dict(zip(types.tolist(), (name.rpartition(":")[0] for name in type_names(trace, types)), strict=True))
    known = {*names.values()}
    looks_up = types[has_trait(trace, types, PurposeTrait.LOOKS_UP)].tolist()
    tables = [name for name in (names[each] for each in looks_up) if f"{name}/{READS_VARIABLE}" in known]
    models = {name.partition("/")[0] for name in tables if not is_gradient(name)} - {""}
    own = [each for each, name in names.items() if not models.isdisjoint(name.split("/")[:_FIRST_SCOPES])]
    return work.rows[work.outer & np.isin(trace.events.type[work.rows], own)]


def _copied_rows(trace: HostTrace) -> tuple[I64, I64, I64, I64]:
    """Of each row that is copied into the front of a longer one: its length, that of the other, its step and when."""
    rows = events_of_kind(trace, EventKind.OP)
    types = used_rows(trace.events.type[rows], len(trace.event_types))
    wanted = {
        name: [type_ for type_, text in zip(types.tolist(), type_names(trace, types), strict=True)
               if strip_library(text) == name]
        for name in ("slice", "copy_")
    }  # fmt: skip
    rows = rows[np.isin(trace.events.type[rows], [*wanted["slice"], *wanted["copy_"]])]
    rows = rows[np.lexsort((trace.events.start_ps[rows], trace.events.line[rows]))]
    cuts = np.isin(trace.events.type[rows], wanted["slice"])
    follows = np.flatnonzero(cuts[:-1] & ~cuts[1:]) if len(rows) else np.empty(0, np.int64)
    texts = trace.stat_strings(stat_names.INPUT_DIMS, rows=rows)
    first = {row: next(iter(sizes_of(trace.strings[row])), ()) if row > 0 else () for row in distinct(texts).tolist()}
    follows = follows[~_is_number(trace, texts[follows + 1])]
    pairs, place = np.unique(np.stack([texts[follows], texts[follows + 1]], axis=1), axis=0, return_inverse=True)
    lengths = np.array([_front(first[whole], first[part]) for whole, part in pairs.tolist()], np.int64).reshape(-1, 2)
    own, filled = lengths[place.ravel()].T
    # Rows of one batch are alike but for their length: what else is copied, such as positions, is none of them.
    form = [first[whole][1:] for whole, _ in pairs.tolist()]
    usual = Counter(form[at] for at in place.ravel()[own > 0].tolist()).most_common(1)
    alike = np.array([each == usual[0][0] for each in form] if usual else [], np.bool_)
    times, chosen = trace.events.start_ps[rows[follows]], own > 0
    chosen[chosen] = alike[place.ravel()[chosen]]
    step = np.searchsorted(steps_of(trace).start_ps, times, side="right")
    return own[chosen], filled[chosen], step[chosen], times[chosen]


def _is_used_part(own: I64, filled: I64, batch: I64) -> Mask:
    """Which rows are the used part of a buffer, such as of a server that takes up to so many tokens, which nothing
    fills up: they have one length within each step, and another in other steps."""

    def lengths(*groups: I64) -> I64:
        """How many lengths the rows of each row's group have."""
        group = np.unique(np.stack(groups), axis=1, return_inverse=True)[1].ravel()
        pairs = np.unique(np.stack([group, own]), axis=1)[0]
        return np.bincount(pairs, minlength=int(group.max(initial=-1)) + 1)[group].astype(np.int64)

    each_step, all_steps = lengths(batch, filled), lengths(filled)
    most = np.zeros(int(filled.max(initial=0)) + 1, np.int64)
    np.maximum.at(most, filled, each_step)
    same: Mask = (most[filled] == 1) & (all_steps > 1)
    return same


def _is_number(trace: HostTrace, texts: I64) -> Mask:
    """Which copies write one number into all places, by their operands: rows of strings."""
    numbers = [row for row in distinct(texts[texts > 0]).tolist() if () in sizes_of(trace.strings[row])[1:2]]
    return np.isin(texts, numbers)


def _front(whole: Size, part: Size) -> tuple[int, int]:
    """The lengths of a part and of the whole along the first axis, where it is a part along that alone; else zeros."""
    return (part[0], whole[0]) if part and whole and part[1:] == whole[1:] and part[0] <= whole[0] else (0, 0)


def _computed_on(trace: HostTrace, lengths: set[int], batch: int) -> I64:
    """The ops of the model with an operand that has such a length, or all rows of a batch in one axis."""
    axes = lengths | {length * batch for length in lengths}
    ops = [
        op.row for op in ops_with_sizes(trace) if any(axes & {*size} and math.prod(size) >= batch for size in op.sizes)
    ]
    return alike_with_backward(trace, ops)
