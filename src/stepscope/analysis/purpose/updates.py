"""Updates that go over memory once for each of their ops, where a fused optimizer goes over it once."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from stepscope.analysis.purpose.computing import computing_of, update_ranges
from stepscope.analysis.purpose.sizes import sizes_of
from stepscope.analysis.steps.find_steps import whole_steps
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import strip_library
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.torch import optimizer_of

# How often a fused kernel reads or writes each number of a parameter, its gradient and its state.
_FUSED: Mapping[str, int] = {"Adam": 7, "AdamW": 7, "SGD": 5, "Adagrad": 5}
_LEAST_GAIN = 0.25  # of what the steps compute: less is no fault, as optimizers are not fused by default; judgement
_FEWEST = 8  # parameters: of fewer little is called


@dataclass(frozen=True)
class UnfusedUpdate:
    """The update of an optimizer that could be fused.

    Attributes:
        rows: its ops: rows of events; kept: the share of their time that stays.
        optimizer: its class; ops: how many a step; parameters: of how many; each: how many ops each has.
    """

    rows: I64
    kept: float
    optimizer: str
    ops: float
    parameters: float
    each: float


def unfused_update(trace: HostTrace) -> UnfusedUpdate | None:
    """The update on a host whose ops read and write more than a fused one, where that is a large part of the step."""
    work, calls = computing_of(trace), update_ranges(trace)
    names = {optimizer_of(name) for name in type_names(trace, distinct(trace.events.type[calls]).astype(np.int64))}
    (name,) = names if len(names) == 1 else ("",)
    if name not in _FUSED or is_device_work(trace).any() or not trace.has_stat(stat_names.INPUT_DIMS):
        return None
    rows = work.rows[work.updates & work.outer]
    types, inverse = np.unique(trace.events.type[rows], return_inverse=True)
    ops = [strip_library(each) for each in type_names(trace, types.astype(np.int64))]
    if any(each.startswith(("_foreach_", "_fused_")) for each in ops):
        return None
    text = trace.stat_strings(stat_names.INPUT_DIMS, rows=rows)
    sizes = {row: sizes_of(trace.strings[row]) for row in distinct(text[text > 0]).tolist()}
    touched, first = np.zeros(len(rows)), np.zeros(len(rows))
    for row, each in sizes.items():
        chosen = text == row
        touched[chosen] = sum(math.prod(size) for size in each if size) + math.prod(each[0] if each else ())
        first[chosen] = math.prod(each[0]) if each and each[0] else 0
    in_place = [at for at, each in enumerate(ops) if each.endswith("_") and first[inverse == at].any()]
    numbers = min((float(first[inverse == at].sum()) for at in in_place), default=0.0)
    count = min((int((first[inverse == at] > 0).sum()) for at in in_place), default=0)
    steps = max(len(whole_steps(trace).number), 1)
    if not numbers or count < _FEWEST * steps:
        return None
    kept = min(_FUSED[name] * numbers / max(float(touched.sum()), 1.0), 1.0)
    spared = float(trace.events.duration_ps[rows].sum()) * (1.0 - kept)
    if spared < _LEAST_GAIN * float(work.own_ps.sum()):
        return None
    return UnfusedUpdate(rows, kept, name, len(rows) / steps, count / steps, len(rows) / count)
