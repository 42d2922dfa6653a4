"""Ops by self time, on the devices or, without devices, on the host."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.op_work import OpWork, device_calls, device_work, eager_dispatch, host_work
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, Mask, measure_groups
from stepscope.report.relation import Counted, Relation

MOST_OPS = 1000  # kept per host

OPS = Relation(("name", "category"), ("self_ps", "calls", "eager_ps", "outside_ps"), order=("-self_ps", "name"))
"""`eager_ps` is self time of runs that were dispatched one by one, None where the trace does not tell; `outside_ps` is
that of runs before the first step or after the last one."""
OP_TYPES = Relation(("category",), ("self_ps", "calls"), order=("-self_ps", "category"))


class CountedOps(NamedTuple):
    """The ops of one side of a host: those that take longest, and all by category."""

    ops: Counted
    types: Counted


def device_ops(trace: HostTrace) -> CountedOps:
    """Ops by device time, named as `stepscope.analysis.trace.attribution` finds them; computed once per trace."""
    return trace.derived("device ops", _device_ops)


def _device_ops(trace: HostTrace) -> CountedOps:
    work = device_work(trace)
    return _count(trace, work, device_calls(trace, work), None)


def host_ops(trace: HostTrace) -> CountedOps:
    """Ops by time on the host's threads; computed once per trace."""
    return trace.derived("host ops", _host_ops)


def _host_ops(trace: HostTrace) -> CountedOps:
    work = host_work(trace)
    eager = eager_dispatch(trace)
    return _count(
        trace, work, np.bincount(work.op, minlength=len(work.ops)), None if eager is None else eager[work.rows]
    )


def _count(trace: HostTrace, work: OpWork, calls: I64, eager: Mask | None) -> CountedOps:
    def time_of(runs: Mask | slice) -> I64:
        return measure_groups(work.op[runs], work.own_ps[runs], len(work.ops))[1]

    own, outside = time_of(slice(None)), time_of(_outside_steps(trace, work.rows))
    eager_ps = None if eager is None else time_of(eager)
    order = np.argsort(-own, kind="stable")
    listed, others = order[:MOST_OPS], order[MOST_OPS:]
    columns = [None if each is None else each[listed].tolist() for each in (own, calls, eager_ps, outside)]
    rest = [None if each is None else int(each[others].sum()) for each in (own, calls, eager_ps, outside)]
    figures = zip(*([None] * len(listed) if column is None else column for column in columns), strict=True)
    rows = [(*work.ops[at], *row) for at, row in zip(listed.tolist(), figures, strict=True)]
    number: dict[str, int] = {}
    category_of = np.array([number.setdefault(category, len(number)) for _, category in work.ops], np.int64)
    types = OP_TYPES.count({"category": (category_of, [*number].__getitem__)}, {"self_ps": own, "calls": calls})
    left_out = dict(zip(OPS.measures, rest, strict=True)) if len(others) else None
    return CountedOps(OPS.keep(rows, len(others), left_out), types)


def _outside_steps(trace: HostTrace, rows: I64) -> Mask:
    """Whether each event belongs to no step, and ends before the first step or starts after the last."""
    steps, events = steps_of(trace), trace.events
    if not len(steps.number):
        return np.zeros(len(rows), np.bool_)
    start = events.start_ps[rows]
    beyond = (start >= steps.end_ps.max()) | (start + events.duration_ps[rows] < steps.start_ps.min())
    outside: Mask = beyond & (steps.label[rows] < 0)
    return outside
