"""Ops of PyTorch and TensorFlow on a device, by the shapes of their inputs, with what they cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stepscope.analysis.trace.attribution import attribute, event_name_rows
from stepscope.analysis.xla.framework_costs import UNKNOWN, Cost, tensorflow_cost, torch_cost
from stepscope.analysis.xla.op_time import op_time
from stepscope.analysis.xla.step_time import share_in_steps
from stepscope.model import EventKind, HostTrace, stat_names
from stepscope.model.arrays import I64, number_pairs
from stepscope.vocabulary.op_names import op_name

MOST_OPS = 2000
_CONCRETE = ("Concrete Inputs",)
_SHAPE = ("shape",)


class FrameworkOp(NamedTuple):
    """Runs of an op with inputs of equal shapes; times in ps, costs of all runs, unknown is None."""

    name: str
    type: str
    shapes: str
    runs: int
    time_ps: int
    flops: float | None
    bytes: float | None
    in_steps: float
    precision: str
    matrix: bool


def framework_ops(trace: HostTrace) -> list[FrameworkOp]:
    """The ops that launched device work which belongs to no XLA instruction, longest first."""
    found, xla = attribute(trace), op_time(trace)
    free = ~np.isin(found.rows, xla.rows)
    annotated = (trace.stat_strings(_SHAPE, rows=found.rows) > 0) | (found.run < 0)
    launched = _find_launched_ops(trace, np.flatnonzero(free & ~annotated))
    named = _find_annotated_ops(trace, np.flatnonzero(free & annotated))
    return sorted([*launched, *named], key=lambda op: (-op.time_ps, op.name, op.shapes))[:MOST_OPS]


def _find_launched_ops(trace: HostTrace, pieces: I64) -> list[FrameworkOp]:
    """Ops whose run on the host is in the trace, as in PyTorch's: the run has the shapes."""
    found = attribute(trace)
    run = found.run[pieces]
    names = (stat_names.INPUT_DIMS, stat_names.INPUT_TYPES, _CONCRETE)
    dims, types, concrete = (trace.stat_strings(each, rows=run) for each in names)
    op = event_name_rows(trace, run)
    group, first = number_pairs(op, dims)
    for column in (types, concrete):
        group, first = number_pairs(group, column)
    stated = trace.stat_ints(stat_names.FLOPS, rows=run)
    costs, labels = [], []
    for at in first.tolist():
        texts = [trace.strings[column[at]] if column[at] > 0 else "" for column in (dims, types, concrete)]
        name = trace.strings[op[at]]
        cost = torch_cost(name, *texts)
        costs.append(cost if stated[at] <= 0 else cost._replace(flops=float(stated[at])))
        labels.append((name, op_name(name, EventKind.OP)[1], texts[0]))
    return _sum_ops(trace, pieces, group.astype(np.int64), run, labels, costs)


def _find_annotated_ops(trace: HostTrace, pieces: I64) -> list[FrameworkOp]:
    """Ops that kernels name themselves, as TensorFlow's do; some give the shapes of their inputs."""
    found = attribute(trace)
    pieces = pieces[found.op[pieces] >= 0]
    shapes = trace.stat_strings(_SHAPE, rows=found.rows[pieces])
    group, first = number_pairs(found.op[pieces], shapes)
    costs, labels = [], []
    for at in first.tolist():
        name, op_type = found.ops[found.op[pieces[at]]]
        text = trace.strings[shapes[at]] if shapes[at] > 0 else ""
        costs.append(tensorflow_cost(op_type, text) if text else UNKNOWN)
        labels.append((name, op_type, text))
    return _sum_ops(trace, pieces, group.astype(np.int64), None, labels, costs)


def _sum_ops(
    trace: HostTrace,
    pieces: I64,
    group: I64,
    run: I64 | None,
    labels: list[tuple[str, str, str]],
    costs: list[Cost],
) -> list[FrameworkOp]:
    found, size = attribute(trace), len(labels)
    time = np.zeros(size, np.int64)
    np.add.at(time, group, found.time_ps[pieces])
    runs = (
        _count_distinct(group, run, size)
        if run is not None
        else _count_rarest_kernel(trace, found.rows[pieces], group, size)
    )
    inside = share_in_steps(trace, found.rows[pieces], group, size)
    return [
        FrameworkOp(
            *label, int(count), int(ps), _scale(cost.flops, count), _scale(cost.bytes, count), float(share),
            cost.precision, cost.matrix,
        )
        for label, count, ps, share, cost in zip(labels, runs, time, inside, costs, strict=True)
    ]  # fmt: skip


def _count_distinct(group: I64, run: I64, size: int) -> I64:
    _, first = number_pairs(group, run)
    return np.bincount(group[first], minlength=size)


def _count_rarest_kernel(trace: HostTrace, rows: I64, group: I64, size: int) -> I64:
    """An op launches the same kernels whenever it runs with the same shapes."""
    kernel, first = number_pairs(group, event_name_rows(trace, rows))
    runs = np.full(size, np.iinfo(np.int64).max, np.int64)
    np.minimum.at(runs, group[first], np.bincount(kernel, minlength=len(first)))
    return runs


def _scale(amount: float | None, count: int) -> float | None:
    return None if amount is None else amount * int(count)
