"""In which order the input casts and moves pictures: bytes are moved at a quarter of the cost of floats."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts.feeding import ops_of_iterators
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.tensorflow import WIDE_TYPES
from stepscope.vocabulary.traits import InputTrait, OpTrait


@dataclass(frozen=True)
class AugmentationFacts:
    """Ops of the input that flip, crop or rotate pictures which a cast has made wider.

    Attributes:
        wide_ps: time of these ops; `ops_ps`: time of all ops of the input.
        largest: name of the one that takes longest.
        cast: name of the cast.
    """

    wide_ps: int
    ops_ps: int
    largest: str
    cast: str


def augmentation_of(trace: HostTrace) -> AugmentationFacts | None:
    """The spatial ops that work on cast pictures; None if there are none, or if the capture does not show types."""
    casts, moves = (_ops_with(trace, trait) for trait in (OpTrait.CONVERTS, InputTrait.MOVES_PIXELS))
    if not len(casts) or not len(moves):
        return None
    width = _bytes_made_wide(trace)
    wide = moves[width[moves] > 0]
    # The cast of a label is small; that of the picture makes at least what a crop of it keeps.
    casts = casts[width[casts] >= width[wide].max(initial=0)]
    if not len(wide) or not len(casts):
        return None
    ops = ops_of_iterators(trace)
    duration = trace.events.duration_ps
    longest = int(wide[duration[wide].argmax()])
    return AugmentationFacts(
        wide_ps=int(duration[wide].sum()),
        ops_ps=int(duration[ops].sum()),
        largest=trace.name_of(longest),
        cast=trace.name_of(int(casts[0])),
    )


def _ops_with(trace: HostTrace, trait: InputTrait | OpTrait) -> I64:
    ops = ops_of_iterators(trace)
    return ops[has_trait(trace, trace.events.type[ops], trait)]


def _bytes_made_wide(trace: HostTrace) -> I64:
    """For each event the bytes of floats that are allocated directly in it: int64 of shape (events,)."""
    made = np.zeros(len(trace.events), np.int64)
    rows = events_of_kind(trace, EventKind.ALLOCATION)
    types, asked = (trace.stat_ints(names, rows=rows) for names in (stat_names.DATA_TYPE, stat_names.REQUESTED_BYTES))
    wide = np.isin(types, WIDE_TYPES)
    rows, asked = rows[wide], asked[wide]
    parent = forest(trace).parent[rows]
    inside = parent >= 0
    np.maximum.at(made, parent[inside], asked[inside])
    return made
