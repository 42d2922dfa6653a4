"""Ops by self time, on the devices or, without devices, on the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.op_work import OpWork, device_calls, device_work, eager_dispatch, host_work
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, Mask, measure_groups
from stepscope.records import dataclass
from stepscope.report import add_records

MOST_OPS = 1000  # kept per host
_KEY = attrgetter("name", "category")
K = EventKind


@dataclass(frozen=True)
class TopOp:
    """One op, its self time and number of runs."""

    name: str
    category: str
    self_ps: int
    calls: int


@dataclass(frozen=True)
class OpTable:
    """The ops of one host or device class.

    Attributes:
        ops: by self time, longest first, at most MOST_OPS.
        types: all ops by category: self time in ps, and calls.
        total_self_ps: of all ops, also those that are not in the list.
        total_calls: likewise.
        eager_self_ps: self time of ops that were dispatched one by one; None where the trace does not tell.
        outside_self_ps: self time of ops that ran before the first step or after the last one.
    """

    ops: list[TopOp]
    types: dict[str, tuple[int, int]]
    total_self_ps: int
    total_calls: int
    eager_self_ps: int | None
    outside_self_ps: int


NO_OPS = OpTable([], {}, 0, 0, None, 0)
"""Adds nothing to other tables."""


def device_ops(trace: HostTrace) -> OpTable:
    """Ops by device time, named as `stepscope.analysis.trace.attribution` finds them; computed once per trace."""
    return trace.derived("device ops", _device_ops)


def _device_ops(trace: HostTrace) -> OpTable:
    work = device_work(trace)
    return _table(trace, work, device_calls(trace, work), None)


def host_ops(trace: HostTrace) -> OpTable:
    """Ops by time on the host's threads; computed once per trace."""
    return trace.derived("host ops", _host_ops)


def _host_ops(trace: HostTrace) -> OpTable:
    work = host_work(trace)
    eager = eager_dispatch(trace)
    eager_ps = None if eager is None else int(work.own_ps[eager[work.rows]].sum())
    return _table(trace, work, np.bincount(work.op, minlength=len(work.ops)), eager_ps)


def _table(trace: HostTrace, work: OpWork, calls: I64, eager_ps: int | None) -> OpTable:
    own = measure_groups(work.op, work.own_ps, len(work.ops))[1]
    longest = np.argsort(-own, kind="stable")[:MOST_OPS].tolist()
    ops = [TopOp(work.ops[at][0], work.ops[at][1], int(own[at]), int(calls[at])) for at in longest]
    ops.sort(key=lambda op: (-op.self_ps, op.name))
    outside = int(work.own_ps[_outside_steps(trace, work.rows)].sum())
    categories = (category for _, category in work.ops)
    types = _sum_types(zip(categories, zip(own.tolist(), calls.tolist(), strict=True), strict=True))
    return OpTable(ops, types, int(own.sum()), int(calls.sum()), eager_ps, outside)


def _outside_steps(trace: HostTrace, rows: I64) -> Mask:
    """Whether each event belongs to no step, and ends before the first step or starts after the last."""
    steps, events = steps_of(trace), trace.events
    if not len(steps.number):
        return np.zeros(len(rows), np.bool_)
    start = events.start_ps[rows]
    beyond = (start >= steps.end_ps.max()) | (start + events.duration_ps[rows] < steps.start_ps.min())
    outside: Mask = beyond & (steps.label[rows] < 0)
    return outside


def _sum_types(figures: Iterable[tuple[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for category, (self_ps, calls) in figures:
        before = sums.get(category, (0, 0))
        sums[category] = (before[0] + self_ps, before[1] + calls)
    return sums


def add_tables(tables: Sequence[OpTable]) -> OpTable:
    """The ops of several hosts together, longest first."""
    added = sum_tables(tables)
    return replace(added, ops=sorted(added.ops, key=lambda op: (-op.self_ps, op.name)))


def sum_tables(tables: Sequence[OpTable]) -> OpTable:
    """The ops of several hosts together, in the order in which they first appear: sums may be summed again."""
    eager = [table.eager_self_ps for table in tables if table.total_self_ps]
    known = [time for time in eager if time is not None]
    return OpTable(
        ops=add_records((op for table in tables for op in table.ops), _KEY, ("self_ps", "calls")),
        types=_sum_types(item for table in tables for item in table.types.items()),
        total_self_ps=sum(table.total_self_ps for table in tables),
        total_calls=sum(table.total_calls for table in tables),
        eager_self_ps=sum(known) if known and len(known) == len(eager) else None,
        outside_self_ps=sum(table.outside_self_ps for table in tables),
    )
