"""Grain, the input library of JAX programs: each stage of a pipeline is a range named after its iterator's class.

_BatchDatasetIterator.__next__             a stage, which asks the stage before it
Prefetch._getitem                          a row that a prefetching thread makes
"""

from __future__ import annotations

from stepscope.model import EventKind, Trait
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule

K = EventKind
_NEXT = r"_?\w*Dataset(?:Iterator|Iter)\.__next__$"

KINDS: tuple[KindRule, ...] = (
    (_NEXT, K.INPUT_WAIT, Trait.NONE),
    (r"Prefetch\._getitem$|\w*\.__getitem__$(?<=(?:DataSource|MapDataset)\.__getitem__)", K.INPUT_CALLBACK, Trait.NONE),
)

_WAIT = Pattern(_NEXT)


def is_wait(name: str) -> bool:
    """True for the call in which a loop, or a stage, waits for its next element."""
    return _WAIT.match(name) is not None
