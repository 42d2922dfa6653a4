"""How the model is spread over ranks, so that remedies belong to what is there.

What the program's wrapper or its process groups are called says so, else which operation takes most of the
communication: gathering parameters and scattering gradients is what sharded training does, sending to a neighbour what
a pipeline does, exchanging between all what experts and spread tables of embeddings do, and adding up without a
gradient to add up is what a layer does that is spread over ranks.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from stepscope.analysis.purpose.computing import backward_runs, computing_of, update_ranges
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.spans import spans_of
from stepscope.analysis.workers.collectives import collectives_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import distinct
from stepscope.records import dataclass
from stepscope.vocabulary.collectives import (
    PIPELINE,
    PIPELINE_OPERATION,
    is_library_call,
    operation_of,
    parallelism_of,
)
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.torch import wrapper_of

DDP, SHARDED, TENSOR, EXPERT, EXCHANGE, MIRRORED = "ddp", "fsdp", "tensor", "expert", "exchange", "mirrored"
_BROADCAST = "broadcast"
_BY_OPERATION = {
    "all_gather": SHARDED, "reduce_scatter": SHARDED, PIPELINE_OPERATION: PIPELINE, "all_to_all": EXCHANGE,
}  # fmt: skip


def strategy_of(trace: HostTrace) -> str:
    """Returns ddp, fsdp, tensor, pipeline, expert, exchange (between all), context, mirrored (TensorFlow's), or nothing
    where no more is known than that ranks communicate."""
    annotations = distinct(trace.events.type[events_of_kind(trace, EventKind.ANNOTATION)]).astype(np.int64)
    wrapper = wrapper_of(type_names(trace, annotations)) if trace.framework == "pytorch" else ""
    found = collectives_of(trace)
    if (wrapper and wrapper != DDP) or not found.name:
        return wrapper
    if trace.framework == "tensorflow":
        return MIRRORED
    by_group, by_operation = Counter[int](), Counter[str]()
    for group, name, ps in zip(found.group, found.name, found.duration_ps, strict=True):
        by_group[group] += ps
        by_operation[_BY_OPERATION.get(found.names[name], "")] += ps
    group = by_group.most_common(1)[0][0]
    stated = parallelism_of(found.purposes[group], ())
    if stated not in (None, "data"):
        return stated or ""
    kind = by_operation.most_common(1)[0][0]
    if wrapper and kind != EXCHANGE:  # beside spread tables, DDP has only the rest of the model
        return wrapper
    infers = computing_of(trace).heavy.any() and not len(backward_runs(trace)) and not len(update_ranges(trace))
    return TENSOR if not kind and infers else kind  # without gradients it adds up parts of a layer


@dataclass(frozen=True)
class SentBuffers:
    """What DDP sends from one rank to all before forward passes, so that their buffers are the same: bytes and messages
    per step, and their share of the time that collectives take."""

    bytes: float
    messages: float
    share: float


def sent_buffers(trace: HostTrace) -> SentBuffers | None:
    """The buffers that DDP sends in each step; None where it sends none, or most of what is sent from one rank to all
    is the program's own."""
    found = collectives_of(trace)
    broadcasts, step = [name == _BROADCAST for name in found.names], np.array(found.step, np.int64)
    chosen = np.flatnonzero(np.array([broadcasts[each] for each in found.name], np.bool_) & (step >= 0))
    steps = len(distinct(step[chosen]))
    if not steps:
        return None
    ranges = events_of_kind(trace, EventKind.ANNOTATION)
    forward = spans_of(trace, ranges[[wrapper_of([trace.name_of(row)]) == DDP for row in ranges.tolist()]])
    calls = events_of_kind(trace, EventKind.COLLECTIVE_CALL)
    names = map(trace.name_of, calls.tolist())
    asks = [operation_of(name) == _BROADCAST and not is_library_call(name) for name in names]
    asked = trace.events.start_ps[calls[asks]]
    if 2 * (forward.overlap_ps(asked, asked + 1) > 0).sum() <= len(asked):
        return None
    spent, sent = np.array(found.duration_ps, np.int64), int(np.array(found.bytes, np.int64)[chosen].sum())
    return SentBuffers(sent / steps, len(chosen) / steps, float(spent[chosen].sum() / max(spent.sum(), 1)))
