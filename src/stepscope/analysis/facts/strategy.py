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
from stepscope.analysis.workers.collectives import collectives_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import distinct
from stepscope.vocabulary.collectives import PIPELINE, PIPELINE_OPERATION, parallelism_of
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.torch import wrapper_of

DDP, SHARDED, TENSOR, EXPERT, EXCHANGE, MIRRORED = "ddp", "fsdp", "tensor", "expert", "exchange", "mirrored"
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
