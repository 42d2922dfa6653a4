"""The ops of one side of all hosts as rows: their shares, rates and time distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from stepscope.analysis.ops.op_sides import OpRow, Peaks, Side
from stepscope.model.arrays import I64
from stepscope.report import Cell, percent, round_6, round_us

T = TypeVar("T", int, float)
TOP = 10  # of a distribution
IDLE = "IDLE"  # the name and type of idle time, which is not an op

_TOTAL_PS, _SELF_PS = OpRow._fields.index("total_ps"), OpRow._fields.index("self_ps")


def merge_sides(sides: Sequence[Side]) -> Side:
    """One side of all hosts, the longest ops first."""
    summed = sum_sides(sides)
    return replace(summed, ops=sorted(summed.ops, key=lambda row: (-row.self_ps, row.name, row.type)))


def sum_sides(sides: Sequence[Side]) -> Side:
    """One side of all hosts, ops in the order in which they first appear: sums may be summed again."""
    types: dict[str, int] = {}
    for side in sides:
        for name, ps in side.types.items():
            types[name] = types.get(name, 0) + ps
    left_out, left_out_ps = sum(side.left_out for side in sides), sum(side.left_out_ps for side in sides)
    return Side(_sum_ops(sides), left_out, left_out_ps, types, sum(side.idle_ps for side in sides))


def _sum_ops(sides: Sequence[Side]) -> list[OpRow]:
    merged: dict[tuple[str, str], OpRow] = {}
    for side in sides:
        for row in side.ops:
            key = (row.name, row.type)
            merged[key] = _sum(merged[key], row) if key in merged else row
    return [*merged.values()]


def _sum(one: OpRow, other: OpRow) -> OpRow:
    """The sum of both rows.  A figure missing on one is unknown: the sum would be too small for their time."""

    def plus(mine: T | None, its: T | None) -> T | None:
        return None if mine is None or its is None else mine + its

    return OpRow(
        one.name, one.type, one.calls + other.calls, one.total_ps + other.total_ps, one.self_ps + other.self_ps,
        plus(one.flops, other.flops), plus(one.bytes, other.bytes), plus(one.tensor_ps, other.tensor_ps),
        one.kernel_ps + other.kernel_ps, plus(one.eager_ps, other.eager_ps),
    )  # fmt: skip


def side_rows(where: str, side: Side, before: int, peaks: Peaks | None) -> list[dict[str, Cell]]:
    """The rows of one side, made column by column: there are thousands."""
    columns: dict[str, Sequence[Cell]] = {
        "rank": range(before + 1, before + 1 + len(side.ops)),
        "where": [where] * len(side.ops),
        "type": [row.type for row in side.ops],
        "name": [row.name for row in side.ops],
        "occurrences": [row.calls for row in side.ops],
        **_times(side),
        **_rates(side),
        "bound_by": [_bound_by(row, peaks) if peaks and where == "device" else None for row in side.ops],
        "eager_percent": [percent(row.eager_ps, row.self_ps) if row.eager_ps is not None else None for row in side.ops],
        **_shares(where, side),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _times(side: Side) -> dict[str, list[float]]:
    calls = np.array([row.calls for row in side.ops], np.int64)
    total, own = (np.array([row[at] for row in side.ops], np.int64) for at in (_TOTAL_PS, _SELF_PS))
    us = {"total_us": total, "avg_us": total / calls, "total_self_us": own, "avg_self_us": own / calls}
    return {name: (np.floor(ps + 0.5) / 1e6).tolist() for name, ps in us.items()}


def _shares(where: str, side: Side) -> dict[str, list[float | None]]:
    own, idle = side.self_ps, side.idle_ps
    nothing: list[float | None] = [0.0] * len(side.ops)
    self_ps = np.array([row.self_ps for row in side.ops], np.int64)
    so_far = np.cumsum(self_ps)
    here, up_to_here = _percents(self_ps, own), _percents(so_far, own)
    on_device = where == "device"
    return {
        "self_percent": here,
        "cumulative_self_percent": up_to_here,
        "self_percent_with_idle": _percents(self_ps, own + idle),
        "cumulative_self_percent_with_idle": _percents(so_far + np.where(idle >= self_ps, idle, 0), own + idle),
        "device_self_percent": here if on_device else nothing,
        "device_cumulative_self_percent": up_to_here if on_device else nothing,
        "host_self_percent": nothing if on_device else here,
        "host_cumulative_self_percent": nothing if on_device else up_to_here,
    }


def idle_row(where: str, side: Side) -> list[dict[str, Cell]]:
    """The idle time of one side, ranked among its ops; none if the side has no idle time."""
    own, idle = side.self_ps, side.idle_ps
    if not side.ops or idle <= 0:
        return []
    longer = [row.self_ps for row in side.ops if row.self_ps > idle]
    return [
        {
            "where": where, "type": IDLE, "name": IDLE, "rank_with_idle": len(longer) + 1,
            "total_self_us": round_us(idle), "self_percent_with_idle": percent(idle, own + idle),
            "cumulative_self_percent_with_idle": percent(sum(longer) + idle, own + idle),
        }
    ]  # fmt: skip


def _percents(parts: I64, merge_sides: int) -> list[float | None]:
    """`percent` of each part."""
    if merge_sides <= 0:
        return [None] * len(parts)
    found: list[float | None] = (np.floor(1e6 * parts / merge_sides + 0.5) / 1e4).tolist()
    return found


def _rates(side: Side) -> dict[str, list[float | None]]:
    def rate(amount: float | None, total: float, scale: float) -> float | None:
        return round_6(amount / total * scale) if amount is not None and total else None

    ops = side.ops
    return {
        "gflop_per_s": [rate(row.flops, row.total_ps, 1e3) for row in ops],
        "gib_per_s": [rate(row.bytes, row.total_ps, 1e12 / 2**30) for row in ops],
        "flop_per_byte": [rate(row.flops, row.bytes or 0.0, 1) for row in ops],
        "tensor_core_percent": [
            percent(row.tensor_ps, row.kernel_ps) if row.tensor_ps is not None else None for row in ops
        ],
    }


def _bound_by(row: OpRow, peaks: Peaks) -> str | None:
    compute, memory = (row.flops or 0.0) / peaks.flops, (row.bytes or 0.0) / peaks.bytes
    return None if not compute and not memory else "compute" if compute >= memory else "memory"


def totals(where: str, side: Side, hosts: int) -> dict[str, Cell]:
    """The figures of one side over `hosts` hosts."""
    # An op left out on one host may also be on another, listed or left out.
    ops = None if side.left_out and hosts > 1 else len(side.ops) + side.left_out
    return {
        f"{where}_ops": ops,
        f"{where}_self_us": round_us(side.self_ps),
        f"{where}_idle_us": round_us(side.idle_ps),
    }


def distributions(where: str, side: Side) -> list[dict[str, Cell]]:
    """The distribution of one side's self time over types and over ops."""
    types, ops = list(side.types.items()), [(row.name, row.self_ps) for row in side.ops]
    return [*_distribution(where, "type", types, side), *_distribution(where, "op", ops, side)]


def _distribution(where: str, by: str, found: list[tuple[str, int]], side: Side) -> list[dict[str, Cell]]:
    own, idle = side.self_ps, side.idle_ps
    ranked = sorted(found, key=lambda item: (-item[1], item[0]))
    shown = ranked[:TOP]
    others = own - sum(ps for _, ps in shown)
    shown += [("others", others)] if others > 0 else []
    rows: list[dict[str, Cell]] = [
        {
            "where": where, "by": by, "name": name, "self_us": round_us(ps), "percent": percent(ps, own),
            "percent_with_idle": percent(ps, own + idle),
        }
        for name, ps in shown
    ]  # fmt: skip
    if rows and idle:
        rows.append({
            "where": where, "by": by, "name": IDLE, "self_us": round_us(idle), "percent": None,
            "percent_with_idle": percent(idle, own + idle),
        })  # fmt: skip
    return rows
