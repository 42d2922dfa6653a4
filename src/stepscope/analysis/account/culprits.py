"""What a cause is followed down to: a line of the program, an op with its layer, or a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.account.graph import Graph, NodeKind
from stepscope.analysis.account.names import place_of
from stepscope.analysis.account.nodes import distinct
from stepscope.analysis.account.pieces import Pieces
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.call_sites import is_users_frame
from stepscope.analysis.trace.columns import named, of_kinds
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.trace.kernel_names import brief
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask

K = EventKind

_MOST_OF = 0.5  # of a cause's time: a frame further in that holds as much is where to look
_OPS = (K.OP, K.BACKWARD, K.INPUT_WAIT, K.ITERATOR, K.TRACED_FUNCTION, K.EAGER_EXECUTE, K.COLLECTIVE_CALL, K.CHECKPOINT)
_LAYER = "nn.Module: "


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
        """The culprit of some pieces; None where nothing is recorded in any of them."""
        rows = rows[self._event[rows] >= 0]
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
        best = (-1, 0, 0)
        total = int(self._length[rows].sum())
        pieces, frames, depths = _around_each(self._trace, self._host[rows], users)
        if not len(pieces):
            return best
        kinds, kind = _numbered(self._trace.events.type[frames].astype(np.int64))
        first = np.append(True, np.diff(np.sort(pieces * len(kinds) + kind)) != 0)
        pair = np.sort(pieces * len(kinds) + kind)[first]  # a function that calls itself counts once
        ps = np.bincount(pair % len(kinds), weights=self._length[rows][pair // len(kinds)], minlength=len(kinds))
        depth = np.full(len(kinds), np.iinfo(np.int64).max)
        np.minimum.at(depth, kind, depths)
        holds = np.flatnonzero(ps >= _MOST_OF * total)
        if not len(holds):
            return best
        chosen = int(holds[np.argmax(depth[holds])])
        calls = distinct(frames[kind == chosen])
        return int(calls[0]), len(calls), int(ps[chosen])

    def _longest_op(self, rows: I64) -> tuple[str | None, I64]:
        """The op that takes most of the time of the pieces, and its pieces."""
        names = np.where(self._is_work[rows], self._ops_of_work(rows), self._ops_of_threads(rows))
        known = names >= 0
        if not known.any():
            return None, rows[:0]
        total = np.bincount(names[known], weights=self._length[rows][known])
        best = int(np.argmax(total))
        text = _op_texts(self._trace)
        found = rows[known & (names == best)]
        return text[best - len(self._trace.strings)] if best >= len(self._trace.strings) else self._trace.strings[best], found

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
        at, parent = self._event[rows].copy(), forest(self._trace).parent
        is_op = np.zeros(256, np.bool_)
        is_op[list(_OPS)] = True
        while (going := (at >= 0) & ~is_op[self._trace.events.kind[np.maximum(at, 0)]]).any():
            at[going] = parent[at[going]]
        return np.where(at >= 0, self._trace.event_names()[np.maximum(at, 0)], -1).astype(np.int64)

    def _names(self, rows: I64) -> np.ndarray:
        return np.array([self._trace.name_of(event) for event in self._event[rows].tolist()], object)

    def _longest_name(self, rows: I64) -> str:
        name = self._trace.event_names()[self._event[rows]]
        return self._trace.strings[int(np.argmax(np.bincount(name, weights=self._length[rows])))]

    def _calls(self, rows: I64) -> int:
        return len(distinct(self._event[rows]))

    def _layer(self, rows: I64) -> str | None:
        """The module that most of the time of the pieces is in."""
        modules = self._trace.derived("frames of modules", _module_frames)
        pieces, frames, depths = _around_each(self._trace, self._host[rows], modules)
        if not len(pieces):
            return None
        order = np.lexsort((-depths, pieces))
        first = np.append(True, np.diff(pieces[order]) != 0)
        innermost = order[first]
        name = self._trace.event_names()[frames[innermost]]
        total = np.bincount(name, weights=self._length[rows][pieces[innermost]])
        return self._trace.strings[int(np.argmax(total))].removeprefix(_LAYER)


def _numbered(values: I64) -> tuple[I64, I64]:
    """Different values in ascending order, and which of them each value is."""
    known = distinct(values)
    return known, np.searchsorted(known, values)


def _op_texts(trace: HostTrace) -> list[str]:
    return [brief(name) if kind != "graph launch" else name for name, kind in attribute(trace).ops]


def _users_frames(trace: HostTrace) -> Mask:
    return _python_calls(trace, is_users_frame)


def _module_frames(trace: HostTrace) -> Mask:
    return _python_calls(trace, lambda name: name.startswith(_LAYER))


def _python_calls(trace: HostTrace, test: object) -> Mask:
    found = np.zeros(len(trace.events), np.bool_)
    python = np.flatnonzero(of_kinds(trace.events.kind, (K.PYTHON_CALL,)))
    if len(python):
        found[python] = named(trace, trace.events.type[python], test)  # type: ignore[arg-type]
    return found


def _around_each(trace: HostTrace, events: I64, counts: Mask) -> tuple[I64, I64, I64]:
    """All events that count around each of some events: places, events, and how many count around each of those."""
    at, parent = events.copy(), forest(trace).parent
    place, found, level = [], [], []
    seen = np.zeros(len(events), np.int64)
    while (going := np.flatnonzero(at >= 0)).size:
        hit = going[counts[at[going]]]
        place.append(hit)
        found.append(at[hit])
        level.append(seen[hit].copy())
        seen[hit] += 1
        at[going] = parent[at[going]]
    if not place:
        return (np.empty(0, np.int64),) * 3
    places, rows = np.concatenate(place), np.concatenate(found)
    return places, rows, seen[places] - 1 - np.concatenate(level)
