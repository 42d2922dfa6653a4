"""The figures of a session over all hosts, before any verdict: steps, time shares, ops, environment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.account.account import StepAccount
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.ops.top_ops import OpTable, add_tables
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.analysis.steps.profiling_cost import ProfilingCost
from stepscope.analysis.steps.session_steps import (
    Aligned,
    StepRow,
    StepsOfHost,
    align,
    gap_percent,
    step_time_statistics,
    usual_of,
)
from stepscope.analysis.trace.environment import EnvironmentOfHost
from stepscope.records import dataclass
from stepscope.report import Cell, percent, round_ms

TOP_OPS = 10  # listed


@dataclass(frozen=True)
class HostPart:
    """The part of one host in the overview."""

    steps: StepsOfHost
    environment: EnvironmentOfHost
    on_device: OpTable
    on_host: OpTable
    compute_16bit_ps: int
    compute_32bit_ps: int
    facts: HostFacts
    profiling: ProfilingCost | None
    missed: str | None
    killed: str | None
    account: StepAccount | None


@dataclass(frozen=True)
class SessionFigures:
    """The figures of all hosts together, before any verdict.

    Attributes:
        taking: the hosts whose steps count.
        slowest: each step as recorded on its slowest host.
        counted: the places of the steps that count, see `usual_of`; `usual` are these of `slowest`.
        warm_up: the complete steps before them, which trace and compile.
        gap: time between marks, in percent of the time from the first step to the last; None if there are none on a
            thread.
        outside_steps_percent: share of the ops' self time on `host` and `device` before the first step or after the
            last; unknown without ops.
    """

    hosts: Sequence[StepsOfHost]
    aligned: Aligned
    taking: Sequence[StepsOfHost]
    slowest: Sequence[StepRow]
    counted: Sequence[int]
    usual: Sequence[StepRow]
    warm_up: Sequence[StepRow]
    outside_steps_percent: dict[str, float | None]
    gap: float | None
    has_device: bool
    step_time: dict[str, Cell]
    placement: dict[str, Cell]
    top_ops: tuple[dict[str, Cell], ...]
    top_op_types: tuple[dict[str, Cell], ...]
    environment: dict[str, Cell]

    @classmethod
    def combine(cls, partials: Sequence[HostPart]) -> SessionFigures:
        """The figures of one or more hosts."""
        hosts = [part.steps for part in partials]
        aligned = align(hosts)
        taking = aligned.participants(hosts)
        slowest = aligned.slowest
        counted = usual_of(aligned.steps)
        usual = [slowest[at] for at in counted]
        before = range(min(counted, default=0))
        on_device, on_host = add_tables([p.on_device for p in partials]), add_tables([p.on_host for p in partials])
        has_device = on_device.total_calls > 0
        return cls(
            hosts=hosts,
            aligned=aligned,
            taking=taking,
            slowest=slowest,
            counted=counted,
            usual=usual,
            warm_up=[slowest[at] for at in before if aligned.complete[at]],
            outside_steps_percent={
                "host": percent(on_host.outside_self_ps, on_host.total_self_ps),
                "device": percent(on_device.outside_self_ps, on_device.total_self_ps),
            },
            gap=gap_percent(taking),
            has_device=has_device,
            step_time=step_time_statistics([row.duration_ps for row in usual]),
            placement=_placement(partials, on_device, on_host),
            top_ops=_top_op_rows(on_device if has_device else on_host),
            top_op_types=_top_type_rows(on_device if has_device else on_host),
            environment=_environment([part.environment for part in partials]),
        )


def mean_breakdown(rows: Sequence[StepRow]) -> dict[str, float]:
    """Mean time by category, each step as on its slowest host; the parts add up to the mean step."""
    parts = np.array([row.parts_ps for row in rows], np.int64).reshape(len(rows), len(CATEGORIES))
    sums = parts.sum(axis=0).tolist()
    return {key: round_ms(ps / max(len(rows), 1)) for key, ps in zip(CATEGORIES, sums, strict=True)}


def _placement(partials: Sequence[HostPart], on_device: OpTable, on_host: OpTable) -> dict[str, Cell]:
    calls = on_device.total_calls + on_host.total_calls
    narrow, wide = sum(p.compute_16bit_ps for p in partials), sum(p.compute_32bit_ps for p in partials)
    eager = None if on_host.eager_self_ps is None else percent(on_host.eager_self_ps, on_host.total_self_ps)
    return {
        "host_op_percent": percent(on_host.total_calls, calls),
        "device_op_percent": percent(on_device.total_calls, calls),
        "host_eager_percent": eager,
        "compute_16bit_percent": percent(narrow, narrow + wide),
        "compute_32bit_percent": percent(wide, narrow + wide),
    }


def _top_op_rows(table: OpTable) -> tuple[dict[str, Cell], ...]:
    rows: list[dict[str, Cell]] = []
    cumulative = 0
    for op in table.ops[:TOP_OPS]:
        cumulative += op.self_ps
        rows.append(
            {
                "name": op.name,
                "category": op.category,
                "self_time_ms": round_ms(op.self_ps),
                "self_percent": percent(op.self_ps, table.total_self_ps),
                "cumulative_percent": percent(cumulative, table.total_self_ps),
                "calls": op.calls,
            }
        )
    return tuple(rows)


def _top_type_rows(table: OpTable) -> tuple[dict[str, Cell], ...]:
    longest = sorted(table.types.items(), key=lambda item: (-item[1][0], item[0]))[:TOP_OPS]
    return tuple(
        {
            "category": category,
            "self_time_ms": round_ms(self_ps),
            "self_percent": percent(self_ps, table.total_self_ps),
            "calls": calls,
        }
        for category, (self_ps, calls) in longest
    )


def _environment(parts: Sequence[EnvironmentOfHost]) -> dict[str, Cell]:
    with_device, recorded = [part for part in parts if part.device_count], [part for part in parts if part.has_events]
    return {
        "host_count": len(parts),
        "device_type": ", ".join(dict.fromkeys(part.device_type for part in with_device or recorded)) or None,
        "device_count": sum(part.device_count for part in parts),
        "devices_used": sum(part.devices_used for part in parts),
        "framework": next((part.framework for part in parts if part.framework), None),
        "capture_ms": round_ms(max(part.span_ps for part in parts)),
        "pause_ms": max((round(part.pause_ms, 3) for part in parts if part.pause_ms is not None), default=None),
    }
