"""How many batches a step is: a mark may hold several, and an update of the model may take several marks.

fetch    f f f f  f f f f          four batches a step, as with Keras' `steps_per_execution=4`
mark     |======| |======|

update          U        U         an update every second step, where each micro-batch is marked
mark     |==||==| |==||==|
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps.find_steps import is_usual, steps_of
from stepscope.analysis.trace.columns import events_of_kind, is_thread_event
from stepscope.analysis.trace.grouping import nearest_above
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import RangeTrait

_REGULAR = 0.8  # of the steps have the usual number: else the number says nothing
_FEWEST = 3


@dataclass(frozen=True)
class Batches:
    """What a step is made of.

    Attributes:
        a_step: batches that a step takes; 1 where no regular number was recorded.
        steps_an_update: marked steps from one update of the model to the next; 1 where each has one, or none is known.
    """

    a_step: int = 1
    steps_an_update: int = 1

    def sentence(self) -> str:
        """The same for people; empty for a step of one batch with an update."""
        if self.a_step > 1:
            return f"each step is {self.a_step} batches: its time is that of all of them"
        if self.steps_an_update > 1:
            return (
                f"a step is one of {self.steps_an_update} micro-batches: the model is updated every"
                f" {self.steps_an_update} steps"
            )
        return ""


def batches_of(trace: HostTrace) -> Batches:
    """How many batches the steps of a host are, found once per trace."""
    return trace.derived("batches", _find_batches)


def _find_batches(trace: HostTrace) -> Batches:
    steps = steps_of(trace)
    usual = np.flatnonzero(is_usual(trace))
    if steps.source == "none" or len(usual) < _FEWEST:
        return Batches()
    fetches = _outer(trace, events_of_kind(trace, EventKind.INPUT_WAIT))
    label = steps.label[fetches].astype(np.int64)
    counts = _counts_by_name(trace, fetches[label >= 0], label[label >= 0], len(steps.number))[:, usual]
    found = [each for row in counts if (each := _regular(row)) > 1]
    return Batches(min(found, default=1), _steps_an_update(trace, usual))


def _outer(trace: HostTrace, rows: I64) -> I64:
    """Fetches on threads that no other fetch encloses."""
    is_fetch = np.zeros(len(trace.events), np.bool_)
    is_fetch[rows] = True
    kept: Mask = is_thread_event(trace)[rows] & (nearest_above(trace, rows, is_fetch) < 0)
    return rows[kept]


def _counts_by_name(trace: HostTrace, rows: I64, step: I64, steps: int) -> I64:
    """How often each fetch of one name occurs in each step: int64 of shape (names, steps)."""
    names, place = np.unique(trace.event_names(rows), return_inverse=True)
    keys = place.astype(np.int64) * steps + step
    return np.bincount(keys, minlength=len(names) * steps).reshape(len(names), steps)


def _regular(counts: I64) -> int:
    """The number that most have; 0 where they differ."""
    usual = int(np.median(counts))
    return usual if np.mean(counts == usual) >= _REGULAR else 0


def _steps_an_update(trace: HostTrace, usual: I64) -> int:
    """After how many steps each update comes, if always after as many."""
    rows = events_of_kind(trace, EventKind.ANNOTATION)
    rows = rows[has_trait(trace, trace.events.type[rows], RangeTrait.UPDATES_MODEL)] if len(rows) else rows
    step = distinct(steps_of(trace).label[rows])
    step = step[np.isin(step, usual)]
    apart = np.diff(step)
    if len(apart) < _FEWEST - 1 or not (apart == apart[0]).all():
        return 1
    return int(apart[0])
