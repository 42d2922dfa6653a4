"""What a cause is followed down to: a line of the program, an op with its layer, or a kernel."""

from __future__ import annotations

import numpy as np

from stepscope import kernels
from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.account.nodes import distinct, numbers_in
from stepscope.analysis.account.pieces import Pieces, around, around_by_kind, kinds_of
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import forest
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.lookup import has_trait, type_names
from stepscope.vocabulary.python import place_of
from stepscope.vocabulary.torch import MODULE_PREFIX
from stepscope.vocabulary.traits import CodeTrait

K = EventKind

_MOST_OF = 0.5  # of a cause's time: a frame further in that holds as much is where to look
_OPS = (K.OP, K.BACKWARD, K.INPUT_WAIT, K.ITERATOR, K.TRACED_FUNCTION, K.EAGER_EXECUTE, K.COLLECTIVE_CALL, K.CHECKPOINT)


@dataclass(frozen=True)
class Culprit:
    """What a person can look at, or edit.

    Attributes:
        name: the function, op or kernel.
        file, line: where a recorded Python call is defined; None where none was recorded.
        op: the op that runs then; None where there is none.
        layer: the module around it; None if the trace does not tell.
        calls: how often in the step; ps: for how long the step waits for it.
    """

    name: str
    file: str | None
    line: int | None
    op: str | None
    layer: str | None
    calls: int
    ps: int


class Finder:
    """Finds the culprits of a step's pieces."""

    def __init__(self, trace: HostTrace, graph: Graph, pieces: Pieces) -> None:
        self._trace, self._pieces = trace, pieces
        self._length = pieces.end_ps - pieces.start_ps
        self._is_work = graph.kind[pieces.node] == NodeKind.WORK
        # Device work is followed to the call that launched it.
        event = np.where(self._is_work, graph.event[pieces.node], pieces.event).astype(np.int64)
        cause = forest(trace).cause
        self._host = np.where(self._is_work & (event >= 0), cause[event], event).astype(np.int64)
        self._event = event

    def culprit(self, rows: I64) -> Culprit | None:
        """The culprit of some pieces; None where nothing is recorded in any of them but the step's own mark."""
        rows = rows[self._event[rows] >= 0]
        rows = rows[kinds_of(self._trace, self._event[rows]) != K.STEP_MARK]
        if not len(rows):
            return None
        op, op_rows = self._longest_op(rows)
        frame, calls, ps = self._frame(rows)
        if frame >= 0:
            name, file, line = place_of(self._trace.name_of(frame))
            return Culprit(name, file, line, op, self._layer(rows), calls, ps)
        name = op if op is not None else self._longest_name(rows)
        if op is None:
            op_rows = rows[self._names(rows) == name]
        return Culprit(
            name, None, None, op, self._layer(op_rows), self._calls(op_rows), int(self._length[op_rows].sum())
        )

    def _frame(self, rows: I64) -> tuple[int, int, int]:
        """The Python call furthest in that holds most of the time: an event of it, how many calls, and time; -1 without
        one."""
        users = self._trace.derived("frames of the user", _users_frames)
        event, length = self._host[rows], self._length[rows]
        if not len(users) or not (event >= 0).any():
            return -1, 0, 0
        held = np.zeros(len(self._trace.events), np.int64)
        np.add.at(held, event[event >= 0], length[event >= 0])
        kernels.nesting.add_to_ancestors(held, forest(self._trace).parent)
        frames = users[held[users] > 0]
        depth, inside_itself = _depths(self._trace, frames, users)
        kinds, kind = _numbered(self._trace.events.type[frames].astype(np.int64))
        ps, deep = np.zeros(len(kinds), np.int64), np.full(len(kinds), np.iinfo(np.int64).max)
        np.add.at(ps, kind[~inside_itself], held[frames[~inside_itself]])
        np.minimum.at(deep, kind, depth)
        holds = np.flatnonzero(ps >= _MOST_OF * int(length.sum()))
        if not len(holds):
            return -1, 0, 0
        chosen = int(holds[np.argmax(deep[holds])])
        calls = frames[(kind == chosen) & ~inside_itself]
        return int(calls[0]), len(calls), int(ps[chosen])

    def _longest_op(self, rows: I64) -> tuple[str | None, I64]:
        """The op that takes most of the time of the pieces, and its pieces."""
        names = np.where(self._is_work[rows], self._ops_of_work(rows), self._ops_of_threads(rows))
        known = names >= 0
        if not known.any():
            return None, rows[:0]
        total = np.bincount(names[known], weights=self._length[rows][known])
        best = int(np.argmax(total))
        return self._op_text(best), rows[known & (names == best)]

    def _op_text(self, number: int) -> str:
        """The name of an op as `_ops_of_work` and `_ops_of_threads` number it."""
        strings = self._trace.strings
        if number < len(strings):
            return strings[number]
        name, kind = attribute(self._trace).ops[number - len(strings)]
        return name if kind == "graph launch" else brief(name)

    def _ops_of_work(self, rows: I64) -> I64:
        """A number for the op of each piece of device work: beyond those of strings."""
        found = attribute(self._trace)
        event = self._event[rows]
        at = np.minimum(np.searchsorted(found.rows, event), max(len(found.rows) - 1, 0))
        if not len(found.rows):
            return np.full(len(rows), -1, np.int64)
        op = np.where(found.rows[at] == event, found.op[at], -1)
        return np.where(op >= 0, op.astype(np.int64) + len(self._trace.strings), -1)

    def _ops_of_threads(self, rows: I64) -> I64:
        """The string row of the innermost op around each piece of a thread, -1 without one."""
        is_op = np.zeros(256, np.uint8)
        is_op[list(_OPS)] = 1
        at = around_by_kind(self._trace, self._event[rows], is_op, 1)
        return np.where(at >= 0, self._trace.event_names(at), -1).astype(np.int64)

    def _names(self, rows: I64) -> np.ndarray:
        return np.array([self._trace.name_of(event) for event in self._event[rows].tolist()], object)

    def _longest_name(self, rows: I64) -> str:
        name = self._trace.event_names(self._event[rows])
        return self._trace.strings[int(np.argmax(np.bincount(name, weights=self._length[rows])))]

    def _calls(self, rows: I64) -> int:
        return len(distinct(self._event[rows]))

    def _layer(self, rows: I64) -> str | None:
        """The module that most of the time of the pieces is in."""
        modules = self._trace.derived("frames of modules", _module_frames)
        if not len(modules):
            return None
        level = np.zeros(len(self._trace.events), np.uint8)
        level[modules] = 1
        found = around(self._trace, self._host[rows], level, 1)
        inside = found >= 0
        if not inside.any():
            return None
        name = self._trace.event_names(found[inside])
        total = np.bincount(name, weights=self._length[rows][inside])
        return self._trace.strings[int(np.argmax(total))].removeprefix(MODULE_PREFIX)


def _numbered(values: I64) -> tuple[I64, I64]:
    """Different values in ascending order, and which of them each value is."""
    known = distinct(values)
    return known, np.searchsorted(known, values)


def _users_frames(trace: HostTrace) -> I64:
    """Recorded Python calls of the user's program: rows of events."""
    python = np.flatnonzero(is_any_kind(trace.events.kind, (K.PYTHON_CALL,)))
    return python[has_trait(trace, trace.events.type[python], CodeTrait.OF_USER)] if len(python) else python


def _module_frames(trace: HostTrace) -> I64:
    """Recorded calls of modules: rows of events."""
    python = np.flatnonzero(is_any_kind(trace.events.kind, (K.PYTHON_CALL,)))
    if not len(python):
        return python
    types = np.array(numbers_in(trace.events.type[python]), np.int64)
    is_module = np.zeros(len(trace.event_types), np.bool_)
    is_module[types] = [name.startswith(MODULE_PREFIX) for name in type_names(trace, types)]
    return python[is_module[trace.events.type[python]]]


def _depths(trace: HostTrace, frames: I64, users: I64) -> tuple[I64, Mask]:
    """How many of the user's frames are around each of some, and whether one of the same function is."""
    is_users = np.zeros(len(trace.events), np.bool_)
    is_users[users] = True
    parent, kind = forest(trace).parent, trace.events.type
    at, depth, again = parent[frames].astype(np.int64), np.zeros(len(frames), np.int64), np.zeros(len(frames), np.bool_)
    while (going := np.flatnonzero(at >= 0)).size:
        here = at[going]
        depth[going] += is_users[here]
        again[going] |= kind[here] == kind[frames[going]]
        at[going] = parent[here]
    return depth, again
