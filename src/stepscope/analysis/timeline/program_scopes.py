"""The named scopes of compiled programs on the streams of devices: when the ops of a scope ran, one row per level.

XLA programs keep, for each instruction, the path of the framework's op: `jit(step)/encoder/layer_1/dot_general` under
`jax.named_scope`, flax and `tf.name_scope`.  TensorFlow writes such a path to each kernel.  A stretch of a stream whose
work lies in one scope is one range of it.  It ends with its step, and where work outside of the scope runs; work whose
path is unknown does not end it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.attribution import Attribution, Source, attribute
from stepscope.model import EventKind, HostTrace, LineKind, stat_names
from stepscope.model.arrays import I32, I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_scopes
from stepscope.vocabulary.scopes import named_scopes

MOST_LEVELS = 10
"""Deeper scopes are left out."""

_COPIES = (
    EventKind.COPY_HOST_TO_DEVICE,
    EventKind.COPY_DEVICE_TO_HOST,
    EventKind.COPY_DEVICE_TO_DEVICE,
    EventKind.COPY_PEER,
    EventKind.COPY_HOST_TO_HOST,
    EventKind.COPY_OTHER,
    EventKind.MEMSET,
)


@dataclass(frozen=True)
class ScopeRanges:
    """Ranges of scopes, each column int64 of shape (n,).

    Attributes:
        event: the first piece of work of each.
        stream: its line in the trace.
        start, end: from when to when, ps.
        level: 0 for an outermost scope, 1 for one inside it, and so on.
        name: its place in `names`; `names`: the different names, each the last part of a path.
    """

    event: I64
    stream: I64
    start: I64
    end: I64
    level: I64
    name: I64
    names: tuple[str, ...]


def find_scope_ranges(trace: HostTrace) -> ScopeRanges:
    """The ranges of all scopes on all streams, in no order."""
    if not (trace.has_stat(stat_names.HLO_OP) or trace.has_stat(stat_names.FRAMEWORK_OP)):
        return _no_ranges()
    found = attribute(trace)
    scopes, names, name_of = _number_scopes([name for name, _ in found.ops])
    if not names:
        return _no_ranges()
    place = np.flatnonzero(_is_scoped_work(trace, found))
    rows = found.rows[place]
    start = trace.events.start_ps[rows]
    order = np.lexsort((start, trace.events.line[rows]))
    rows, start = rows[order], start[order]
    end, line = start + trace.events.duration_ps[rows], trace.events.line[rows].astype(np.int64)
    step, path = steps_of(trace).label[rows], scopes[found.op[place[order]]]
    cut = np.ones(len(rows), np.bool_)
    cut[1:] = (line[1:] != line[:-1]) | (step[1:] != step[:-1])
    parts: list[tuple[I64, ...]] = []
    for level in range(scopes.shape[1] if len(rows) else 0):
        scope = path[:, level]
        first = np.flatnonzero(cut | np.append(True, scope[1:] != scope[:-1]))
        last = np.maximum.reduceat(end, first)
        named = scope[first] >= 0
        first, last = first[named], last[named]
        parts.append((rows[first], line[first], start[first], last, np.full(len(first), level), name_of[scope[first]]))
    if not parts:
        return _no_ranges()
    event, stream, begins, ends, levels, name = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ScopeRanges(event, stream, begins, ends, levels, name, names)


def _no_ranges() -> ScopeRanges:
    none = np.empty(0, np.int64)
    return ScopeRanges(none, none, none, none, none, none, ())


def _number_scopes(ops: Sequence[str]) -> tuple[I32, tuple[str, ...], I64]:
    """The scopes around each op: int32 of shape (ops, levels), -1 where it is inside fewer; the names of the scopes,
    and for each scope the place of its name.  Scopes of one name inside different ones are different."""
    paths = [named_scopes(name)[:MOST_LEVELS] for name in ops]
    scopes = np.full((len(ops), max(map(len, paths), default=0)), -1, np.int32)
    numbers: dict[tuple[str, ...], int] = {}
    for at, path in enumerate(paths):
        for level in range(len(path)):
            scopes[at, level] = numbers.setdefault(path[: level + 1], len(numbers))
    names = {path[-1]: None for path in numbers}
    place = {name: at for at, name in enumerate(names)}
    return scopes, tuple(names), np.array([place[path[-1]] for path in numbers], np.int64)


def _is_scoped_work(trace: HostTrace, found: Attribution) -> Mask:
    """The work whose path is known, without copies: bool of shape (work,).

    An instruction that XLA made up, such as a fusion of reductions, may have no path.  Devices on which the profiler
    wrote rows of scopes itself are left out.
    """
    lines = trace.lines
    derived = np.flatnonzero((lines.kind == LineKind.DERIVED) & (lines.event_end > lines.event_begin)).tolist()
    has_rows = np.isin(lines.plane, [lines.plane[line] for line in derived if holds_scopes(trace.line_label(line))])
    own = np.isin(found.source, (Source.OWN, Source.GRAPH)) & (found.op >= 0)
    copies = np.isin(trace.events.kind[found.rows], _COPIES)
    has_path = np.array([*("/" in name for name, _ in found.ops), False])[found.op]
    nameless = (found.instruction > 0) & ~has_path
    scoped: Mask = own & ~copies & ~nameless & ~has_rows[trace.events.line[found.rows]]
    return scoped
