"""The events of the thread that runs the training loop, and those that start work."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepscope.analysis.purpose.computing import update_ranges
from stepscope.analysis.steps.find_steps import holds_step
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import forest, is_device_work
from stepscope.analysis.trace.spans import Spans, is_outermost, spans_of
from stepscope.model import EventKind, HostTrace, Kind, stat_names
from stepscope.model.arrays import I64, Mask, look_up
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CallTrait, OpTrait

K = EventKind


class Starts(Kind):
    """What an event of the loop's thread starts, or waits for."""

    PROGRAM = 1  # a compiled function: tf.function, jax.jit
    EAGER = 2  # a single op dispatched from Python
    OP = 3  # an op that computes on this thread
    SYNC = 4  # a value that the program fetches: step counts that an optimizer of PyTorch fetches are not its to change
    COMPILE = 5
    COLLECTIVE = 6


_BY_KIND = {
    K.TRACED_FUNCTION: Starts.PROGRAM, K.FUNCTION_RUN: Starts.PROGRAM, K.EAGER_EXECUTE: Starts.EAGER, K.OP: Starts.OP,
    K.BACKWARD: Starts.OP, K.EXECUTOR: Starts.OP, K.GRAPH_LAUNCH: Starts.OP, K.SYNC: Starts.SYNC,
    K.COMPILE: Starts.COMPILE, K.COLLECTIVE_CALL: Starts.COLLECTIVE,
}  # fmt: skip
# Calls that are known by name start nothing of their kind.
_NAMED = (K.PYTHON_CALL, K.OP, K.OTHER, K.EAGER_EXECUTE, K.TRACED_FUNCTION)
_OTHERWISE = CallTrait.SAVES_STATE | CallTrait.MAKES_INPUT | CallTrait.WAITS


@dataclass(frozen=True)
class LoopEvents:
    """The events of the loop's thread in the observed time, as columns."""

    trace: HostTrace = field(repr=False)
    row: I64
    kind: NDArray[np.uint8]
    start: I64
    end: I64
    type: NDArray[np.integer]

    def name(self, event: int) -> str:
        """The name of an event."""
        return self.trace.strings[self.trace.event_types.name[self.type[event]]]

    @cached_property
    def outer(self) -> dict[Starts, I64]:
        """The outermost events that start each, in order of time."""
        table = np.zeros(256, np.uint8)
        table[list(_BY_KIND)] = list(_BY_KIND.values())
        found = look_up(table, self.kind)
        eager = self.kind_events(K.EAGER_EXECUTE)
        found[eager[self.trace.stat_ints(stat_names.IS_FUNCTION, rows=self.row[eager]) > 0]] = Starts.PROGRAM
        named = np.flatnonzero(is_any_kind(self.kind, _NAMED))
        found[named[has_trait(self.trace, self.type[named], _OTHERWISE)]] = 0
        reads = named[has_trait(self.trace, self.type[named], CallTrait.READS_VALUE)]
        reads = reads[~holds_step(self.trace, self.start[reads], self.end[reads])]
        reads = reads[~is_read_by_op(self.trace, self.row[reads])]
        updates = spans_of(self.trace, update_ranges(self.trace))
        found[reads[~updates.touches(self.start[reads], self.end[reads])]] = Starts.SYNC
        rows = {each: np.flatnonzero(found == each) for each in Starts}
        return {each: at[is_outermost(self.start[at], self.end[at])] for each, at in rows.items()}

    def kind_events(self, kind: EventKind) -> I64:
        """The events of a kind, in order of time."""
        return np.flatnonzero(is_any_kind(self.kind, (kind,)))

    def event_spans(self, rows: I64) -> Spans:
        """When the given events are running."""
        return Spans.union(self.start[rows], self.end[rows])


def is_read_by_op(trace: HostTrace, reads: I64) -> Mask:
    """Whether each read of a value is an op's own, such as that of a number that `aten::std` was given, which nothing
    has to wait for where no device computes."""
    parents, above = forest(trace).parent, forest(trace).parent[reads].astype(np.int64)
    while (nested := (above >= 0) & has_trait(trace, trace.events.type[above], CallTrait.READS_VALUE)).any():
        above[nested] = parents[above[nested]]  # one read calls another
    found: Mask = (above >= 0) & is_any_kind(trace.events.kind[above], (K.OP,))
    found &= ~has_trait(trace, trace.events.type[above], OpTrait.COMPARES_VALUES)
    return found & ~is_device_work(trace).any()


def loop_events(trace: HostTrace, line: int, seen: Spans) -> LoopEvents:
    """The events of a thread in the observed time; `seen` holds at least one interval."""
    rows = slice(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    start = trace.events.start_ps[rows]
    end = start + forest(trace).extent_ps[rows]
    inside = (end > seen.start[0]) & (start < seen.end[-1])
    chosen: slice | Mask = slice(None) if inside.all() else inside
    kind, types = trace.events.kind[rows][chosen], trace.events.type[rows][chosen]
    return LoopEvents(trace, np.arange(rows.start, rows.stop)[chosen], kind, start[chosen], end[chosen], types)
