"""The figures of a session over all hosts, before any verdict: steps, time shares, ops, environment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from stepscope.analysis.account.account import StepAccount, account_shown
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.ops.top_ops import OP_TYPES, OPS
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
from stepscope.report.relation import Counted, Merged, merge_hosts

TOP_OPS = 10  # listed


@dataclass(frozen=True)
class HostPart:
    """The part of one host in the overview."""

    steps: StepsOfHost
    environment: EnvironmentOfHost
    on_device: Counted
    device_types: Counted
    on_host: Counted
    host_types: Counted
    compute_16bit_ps: int
    compute_32bit_ps: int
    facts: HostFacts
    profiling: ProfilingCost | None
    missed: str | None
    killed: str | None
    account: StepAccount | None


OP_RELATIONS = {"on_device": OPS, "device_types": OP_TYPES, "on_host": OPS, "host_types": OP_TYPES}


@dataclass(frozen=True)
class SessionFigures:
    """The figures of all hosts together, before any verdict.

    Attributes:
        taking: the hosts whose steps count.
        paced: each step as recorded on the host of the account, which sets the pace; on its slowest one without it.
        on_host: the host of each of these.
        counted: the places of the steps that count, see `usual_of`; `usual` are these on the slowest host of each.
        warm_up: the complete steps before them, which trace and compile.
        gap: time between marks, in percent of the time from the first step to the last; None if there are none on a
            thread.
        outside_steps_percent: share of the ops' self time on `host` and `device` before the first step or after the
            last; unknown without ops.
    """

    hosts: Sequence[StepsOfHost]
    aligned: Aligned
    taking: Sequence[StepsOfHost]
    paced: Sequence[StepRow]
    on_host: Sequence[str]
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
        slowest, account = aligned.slowest, account_shown([part.account for part in partials])
        places = aligned.places_of(account.host if account is not None else None)
        paced = [rows[at] for rows, at in zip(aligned.steps, places, strict=True)]
        counted = usual_of(aligned.steps)
        usual = [slowest[at] for at in counted]
        before = range(min(counted, default=0))
        found = merge_hosts(partials, OP_RELATIONS)
        on_device, on_host = found["on_device"], found["on_host"]
        has_device = on_device.total("calls") > 0
        ops, types = (on_device, found["device_types"]) if has_device else (on_host, found["host_types"])
        return cls(
            hosts=hosts,
            aligned=aligned,
            taking=taking,
            paced=paced,
            on_host=[aligned.hosts[at] for at in places],
            counted=counted,
            usual=usual,
            warm_up=[slowest[at] for at in before if aligned.complete[at]],
            outside_steps_percent={
                "host": percent(on_host.total("outside_ps"), on_host.total("self_ps")),
                "device": percent(on_device.total("outside_ps"), on_device.total("self_ps")),
            },
            gap=gap_percent(taking),
            has_device=has_device,
            step_time=step_time_statistics([paced[at].duration_ps for at in counted]),
            placement=_placement(partials, on_device, on_host),
            top_ops=_top_op_rows(ops),
            top_op_types=_top_type_rows(types),
            environment=_environment([part.environment for part in partials]),
        )


def mean_breakdown(rows: Sequence[StepRow]) -> dict[str, float]:
    """Mean time by category, each step as on its slowest host; the parts add up to the mean step."""
    parts = np.array([row.parts_ps for row in rows], np.int64).reshape(len(rows), len(CATEGORIES))
    sums = parts.sum(axis=0).tolist()
    return {key: round_ms(ps / max(len(rows), 1)) for key, ps in zip(CATEGORIES, sums, strict=True)}


def _placement(partials: Sequence[HostPart], on_device: Merged, on_host: Merged) -> dict[str, Cell]:
    on_hosts, eager_ps = on_host.total("calls"), on_host.total("eager_ps")
    calls = on_device.total("calls") + on_hosts
    narrow, wide = sum(p.compute_16bit_ps for p in partials), sum(p.compute_32bit_ps for p in partials)
    return {
        "host_op_percent": percent(on_hosts, calls),
        "device_op_percent": percent(calls - on_hosts, calls),
        "host_eager_percent": None if eager_ps is None else percent(eager_ps, on_host.total("self_ps")),
        "compute_16bit_percent": percent(narrow, narrow + wide),
        "compute_32bit_percent": percent(wide, narrow + wide),
    }


def _top_op_rows(ops: Merged) -> tuple[dict[str, Cell], ...]:
    rows: list[dict[str, Cell]] = []
    whole, cumulative = ops.total("self_ps"), 0
    columns = (ops[name][:TOP_OPS] for name in ("name", "category", "self_ps", "calls"))
    for name, category, self_ps, calls in zip(*columns, strict=True):
        cumulative += self_ps
        rows.append(
            {
                "name": name,
                "category": category,
                "self_time_ms": round_ms(self_ps),
                "self_percent": percent(self_ps, whole),
                "cumulative_percent": percent(cumulative, whole),
                "calls": calls,
            }
        )
    return tuple(rows)


def _top_type_rows(types: Merged) -> tuple[dict[str, Cell], ...]:
    whole, columns = types.total("self_ps"), (types[name][:TOP_OPS] for name in ("category", "self_ps", "calls"))
    return tuple(
        {"category": category, "self_time_ms": round_ms(ps), "self_percent": percent(ps, whole), "calls": calls}
        for category, ps, calls in zip(*columns, strict=True)
    )


def _environment(parts: Sequence[EnvironmentOfHost]) -> dict[str, Cell]:
    start_s = min((part.start_unix_ns // 10**9 for part in parts if part.start_unix_ns), default=None)
    with_device, recorded = [part for part in parts if part.device_count], [part for part in parts if part.has_events]
    return {
        "host_count": len(parts),
        "device_type": ", ".join(dict.fromkeys(part.device_type for part in with_device or recorded)) or None,
        "device_count": sum(part.device_count for part in parts),
        "devices_used": sum(part.devices_used for part in parts),
        "framework": next((part.framework for part in parts if part.framework), None),
        "capture_ms": round_ms(max(part.span_ps for part in parts)),
        "recorded": None if start_s is None else datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "pause_ms": max((round(part.pause_ms, 3) for part in parts if part.pause_ms is not None), default=None),
    }
