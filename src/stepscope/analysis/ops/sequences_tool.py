"""Repeating kernel sequences, which could be fused or recorded as a graph.

There are two tables. The first lists each op that launches at least two kernels, with the kernels in launch order. The
second lists sequences on streams, over any ops: two to eight kernels that occur three times or more, and are not a
shorter sequence several times. Each kernel counts for at most one sequence, the one that would save most launches as a
single kernel. `host_us` is what starting the kernels takes the host, by which the sequences are ordered: a saved launch
saves its part of that, and step time if a device waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from stepscope import kernels
from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.trace.columns import is_any_kind
from stepscope.analysis.trace.grouping import KERNELS, OPS, enclosing_events
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.remedies import DEVICE_ACTIVITY, remedy
from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import I64, Groups
from stepscope.records import dataclass
from stepscope.report import (
    Comparable,
    Field,
    Report,
    Role,
    Row,
    Table,
    as_table,
    fields_named,
)
from stepscope.report.relation import Counted, Merged, Relation
from stepscope.vocabulary.kernel_names import brief

K = EventKind

MOST_ROWS = 500  # kept per host and table
LONGEST = 8
LEAST_COUNT = 3
_MOST_NAMED = 32  # kernels of one sequence that are named
_KERNELS = (*KERNELS, K.MEMSET)

_FIGURES: tuple[Field, ...] = (
    Field("length", "count", "kernels in the sequence", "int"),
    Field("count", "count", "runs of the sequence", "int"),
    Field("device_us", "us", "time of its kernels over all runs"),
    Field("avg_device_us", "us", "time of its kernels per run"),
    Field("percent", "percent", "share of the time of all kernels"),
    Field("launches_saved", "count", "launches saved if it were one kernel: count times (length - 1)", "int"),
    Field("kernels", "text", "the kernels in order", role=Role.LABEL),
)
OP_FIELDS: tuple[Field, ...] = (
    Field("op", "text", "the outermost op that launches them, else the launch call", role=Role.NAME),
    Field("host_us", "us", "time of these ops on the host"),
    *_FIGURES,
)
STREAM_FIELDS: tuple[Field, ...] = (
    *_FIGURES[:2],
    Field(
        "host_us",
        "us",
        "time of the ops, else of the launching calls, that start its kernels, by the median run, as a first launch "
        "loads the kernel; an op's time is divided equally among the kernels that it starts",
    ),
    *_FIGURES[2:-1],
    Field("ops", "text", "the op that each kernel is of, in order; unknown if none is known", role=Role.LABEL),
    _FIGURES[-1],
)
_EMPTY = "no op launches two kernels or more"


def _no_sequence(report: Report) -> str:
    how = remedy(DEVICE_ACTIVITY, report.recorder)
    return f"no kernel sequence repeats: if a GPU took part, record several steps; {how}"


_MEASURES = ("count", "host_ps", "device_ps", "launches_saved")
IN_OPS = Relation(("op", "length", "named"), _MEASURES, order=("-device_ps", "op", "named"), most=MOST_ROWS)
"""Sequences by their length and the kernels that are named; on streams `op` is that of each kernel."""
ON_STREAMS = replace(IN_OPS, order=("-host_ps", "-launches_saved", *IN_OPS.order))


@dataclass(frozen=True)
class SequencesOfHost:
    """The part of one host."""

    origin: Origin
    ops: Counted
    streams: Counted
    kernels_ps: int


RELATIONS = {"ops": IN_OPS, "streams": ON_STREAMS}


_ARROW = " -> "


def _shorten_names(row: Row) -> Row:
    return row | {"kernels": _ARROW.join(map(brief, str(row["kernels"]).split(_ARROW)))}


@dataclass(frozen=True, kw_only=True)
class SequencesReport(Report):
    """Repeated sequences of kernels; see the FIELDS tables of this module."""

    TOOL: ClassVar[str] = "sequences"

    ops: Table = as_table("Kernels of one op", OP_FIELDS, _EMPTY, brief=_shorten_names)
    rows: Table = as_table("Sequences on streams", STREAM_FIELDS, _no_sequence, brief=_shorten_names)


COMPARABLES = (
    Comparable(
        id="sequences",
        title="Sequences on streams",
        keys=fields_named(STREAM_FIELDS, "kernels"),
        measure=Field("device_us", "us", "device time of the sequence"),
        count="count",
        is_total=True,
        empty="no kernel sequence repeats on either side",
    ),
)


def partial(trace: HostTrace) -> SequencesOfHost:
    """The part of one host."""
    found = attribute(trace)
    wanted = np.isin(trace.events.kind[found.rows], _KERNELS)
    wanted &= (trace.lines.kind == LineKind.STREAM)[trace.events.line[found.rows]]
    rows, call = found.rows[wanted], found.call[wanted]
    total = int(trace.events.duration_ps[rows].sum())
    ops = np.array(["", *(name for name, _ in found.ops)], object)[found.op[wanted] + 1]
    outer = enclosing_events(trace, is_any_kind(trace.events.kind, OPS))
    unit = np.where((call >= 0) & (outer[call] >= 0), outer[call], call)
    on_streams = _count_on_streams(trace, rows, ops, _launch_times(trace, unit))
    return SequencesOfHost(origin_of(trace), _count_in_ops(trace, rows, call, unit), on_streams, total)


def _launch_times(trace: HostTrace, unit: I64) -> I64:
    """What starting each kernel takes the host; `unit` is the op or call that starts it, -1 if unknown."""
    _, place, count = np.unique(unit, return_inverse=True, return_counts=True)
    return np.where(unit >= 0, trace.events.duration_ps[unit] // count[place], 0)


def _count_in_ops(trace: HostTrace, rows: I64, call: I64, unit: I64) -> Counted:
    """The sequences that ops launch, by op and kernels; `unit` is the op or call that starts each kernel."""
    rows, call, unit = rows[call >= 0], call[call >= 0], unit[call >= 0]
    order = np.lexsort((trace.events.start_ps[rows], trace.events.start_ps[call], unit))
    rows, unit = rows[order], unit[order]
    begin = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    end = np.append(begin[1:], len(unit))
    several = end - begin >= 2
    begin, end = begin[several], end[several]
    ops = unit[begin]
    alike = Groups.of(_hashes(event_name_rows(trace, rows), begin, end))
    first = begin[alike.first]
    device = np.add.reduceat(np.append(trace.events.duration_ps[rows], 0), np.stack([begin, end], 1).ravel())[::2]
    return IN_OPS.count(
        {
            "op": (event_name_rows(trace, ops), trace.strings.__getitem__),
            "length": (end - begin, int),
            "named": (alike.number, lambda at: _kernel_names(trace, rows[first[at] : end[alike.first[at]]])),
        },
        {"host_ps": trace.events.duration_ps[ops], "device_ps": device, "launches_saved": end - begin - 1},
    )


def _hashes(values: I64, begin: I64, end: I64) -> I64:
    out = np.empty(len(begin), np.uint64)
    kernels.ops.hash_runs(begin, end, values, out)
    return out.view(np.int64)


def _kernel_names(trace: HostTrace, rows: I64) -> tuple[str, ...]:
    return tuple(trace.name_of(row) for row in rows[:_MOST_NAMED].tolist())


def _count_on_streams(trace: HostTrace, rows: I64, ops: np.ndarray, host_ps: I64) -> Counted:
    """Repeated sequences on streams; `rows` are in the order of streams and time, `ops` the names of their ops, and
    `host_ps` is what starting each takes.

    The sequence that saves most launches takes its kernels first; what is left is for the others.  Otherwise a loop
    would be listed once for every kernel that it may be taken to begin with.
    """
    names, line = event_name_rows(trace, rows), trace.events.line[rows]
    candidates: list[tuple[int, I64]] = []
    for length in range(LONGEST, 1, -1):
        begin = np.arange(max(len(rows) - length + 1, 0))
        begin = begin[line[begin] == line[begin + length - 1]] if len(begin) else begin
        candidates += [(length, places) for places in _find_repeated(names, begin, length)]
    candidates.sort(key=lambda found: (-len(found[1]) * (found[0] - 1), -len(found[1]) * found[0], int(found[1][0])))
    taken, runs = np.zeros(len(rows), np.bool_), []
    for length, places in candidates:
        members = places[:, None] + np.arange(length)
        members = members[~taken[members].any(axis=1)]
        if len(members) >= LEAST_COUNT:
            taken[members] = True
            time = int(trace.events.duration_ps[rows[members]].sum())
            named = _kernel_names(trace, rows[members[0]])
            own = _ARROW.join(ops[members[0]]) if all(ops[members[0]]) else ""
            launching = len(members) * int(np.median(host_ps[members].sum(axis=1)))
            runs.append((own, length, named, len(members), launching, time, len(members) * (length - 1)))
    return ON_STREAMS.keep(runs)


def _find_repeated(names: I64, begin: I64, length: int) -> list[I64]:
    """The starts of the most frequent sequences of one length that occur often enough."""
    if not len(begin):
        return []
    groups = Groups.of(_hashes(names, begin, begin + length))
    count = groups.count()
    order = np.argsort(groups.number, kind="stable")
    bounds = np.append(0, np.cumsum(count))
    often = np.argsort(-count, kind="stable")[:MOST_ROWS]
    found = (
        _drop_overlapping(begin[order[bounds[at] : bounds[at + 1]]], length)
        for at in often.tolist()
        if count[at] >= LEAST_COUNT
    )
    return [places for places in found if len(places) >= LEAST_COUNT and not _repeats(names[places[0] :][:length])]


def _repeats(names: I64) -> bool:
    """Whether a sequence is a shorter one of several kernels twice or more, and perhaps a part of it."""
    return any((names[length:] == names[:-length]).all() for length in range(2, len(names) // 2 + 1))


def _drop_overlapping(places: I64, length: int) -> I64:
    """The places from the first on, without those that overlap an earlier one."""
    kept: list[int] = []
    free = -1
    for place in places.tolist():
        if place >= free:
            kept.append(place)
            free = place + length
    return np.array(kept, np.int64)


def merge(partials: Sequence[SequencesOfHost]) -> SequencesReport:
    """The sequences of all hosts; equal sequences are merged."""
    total = sum(part.kernels_ps for part in partials)

    def table(fields: Sequence[Field], runs: Merged) -> Table:
        return runs.table(
            fields,
            ops=[own or None for own in runs["op"]],
            avg_device_us=runs.mean("device_ps", "count"),
            percent=runs.share("device_ps", total),
            kernels=[*map(_list_kernels, runs["named"], runs["length"])],
        )

    return SequencesReport(
        **header([part.origin for part in partials]),
        rows=table(STREAM_FIELDS, ON_STREAMS.merge([part.streams for part in partials])),
        ops=table(OP_FIELDS, IN_OPS.merge([part.ops for part in partials])),
    )


def _list_kernels(named: Sequence[str], length: int) -> str:
    more = length - len(named)
    return _ARROW.join([*named, *([f"{more} more"] if more else [])])
