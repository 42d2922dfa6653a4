"""How busy the machines were: CPU, memory, disk and GPU, as sampled during the capture.

Every recorded counter is a row, with the mean, the extremes and the 95th percentile of its samples. A
capture by Stepscope samples the process and the machine ten times per second. `CPU process %` counts 100 for each core
that the process keeps busy. `CPU machine %` is the busy share of all cores. GPUs report through NVML. Counters that
PyTorch or another program recorded are listed as well. `memory-profile` shows memory use allocation by allocation.

The timeline shows the same counters over time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from stepscope.analysis.resources.counters import PROCESS_PERCENT, Counter, counters_of
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Cell, Comparable, Field, Lines, Report, Role, Table, as_prose, as_table, fields_named
from stepscope.vocabulary.lines import device_label

MOST_ROWS = 500  # kept per host
_UNITS = ("%", "GB", "MB/s", "W")  # that a counter's name may end with
_MACHINE, _PROCESS, _AVAILABLE = "CPU machine %", PROCESS_PERCENT, "Memory available GB"
_FULL_PERCENT = 90.0  # of all cores: above it, threads wait for a free core
_ONE_CORE = (85.0, 115.0)
_SCARCE_GB = 1.0
_FEWEST = 3  # samples that a finding needs

FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host", role=Role.HOST),
    Field("place", "text", "where the counter was recorded: a device, or what recorded it", role=Role.PLACE),
    Field("counter", "text", "the counter's name", role=Role.LABEL),
    Field("unit", "text", "the unit of the values; unknown if not recorded", role=Role.TYPE),
    Field("samples", "count", "number of samples", "int"),
    Field("mean", "", "mean of the samples"),
    Field("min", "", "the smallest sample"),
    Field("max", "", "the largest sample"),
    Field(
        "p95",
        "",
        "the smallest value that 95 of 100 samples do not exceed; unknown of fewer than 20",
        label="95th percentile",
    ),
)
_LEAST_FOR_P95 = 20  # samples: one of them is above it
_EMPTY = "no counters: record with stepscope, whose ProfilerOptions(system_interval_ms=100) samples the machine"


@dataclass(frozen=True)
class CounterRow:
    """The statistics of one counter's samples."""

    place: str
    counter: str
    unit: str
    samples: int
    mean: float
    low: float
    high: float
    p95: float | None


@dataclass(frozen=True)
class LoadOfHost:
    """The part of one host."""

    origin: Origin
    rows: list[CounterRow]
    left_out: int


@dataclass(frozen=True, kw_only=True)
class SystemReport(Report):
    """How busy the machines were; see FIELDS."""

    TOOL: ClassVar[str] = "system"

    findings: Lines = as_prose("What stands out")
    rows: Table = as_table("Counters of the system", FIELDS, _EMPTY)


COMPARABLES = (
    Comparable(
        id="system",
        title="Counters of the system",
        keys=fields_named(FIELDS, "place", "counter", "unit"),
        measure=Field("mean", "", "mean of the counter's samples, over all hosts"),
        is_ordered=True,
        is_neutral=True,
        joined="mean",
        weight="samples",
        empty="neither side has counters",
    ),
)


def partial(trace: HostTrace) -> LoadOfHost:
    """The part of one host."""
    rows = sorted((_row_of(one) for one in counters_of(trace) if one.place), key=lambda row: (row.place, row.counter))
    return LoadOfHost(origin_of(trace), rows[:MOST_ROWS], len(rows[MOST_ROWS:]))


def _row_of(counter: Counter) -> CounterRow:
    ordered = np.sort(counter.value)
    p95 = float(ordered[math.ceil(0.95 * len(ordered)) - 1]) if len(ordered) >= _LEAST_FOR_P95 else None
    unit = counter.unit or next((unit for unit in _UNITS if counter.name.endswith(f" {unit}")), "")
    return CounterRow(
        counter.place, counter.name, unit, len(ordered), float(ordered.mean()), float(ordered[0]), float(ordered[-1]),
        p95,
    )  # fmt: skip


def merge(partials: Sequence[LoadOfHost]) -> SystemReport:
    """The counters of all hosts, host by host."""
    lost = [f"{part.left_out} counters of {part.origin.host} are not listed" for part in partials if part.left_out]
    return SystemReport(
        **header([part.origin for part in partials], lost),
        findings=tuple(sentence for part in partials for sentence in _find_findings(part)),
        rows=tuple(_counter_cells(part.origin.host, row) for part in partials for row in part.rows),
    )


def _counter_cells(host: str, row: CounterRow) -> dict[str, Cell]:
    figures = {"mean": row.mean, "min": row.low, "max": row.high, "p95": row.p95}
    return {
        "host": host,
        "place": device_label(row.place),
        "counter": row.counter,
        "unit": row.unit or None,
        "samples": row.samples,
        **{name: None if value is None else round(value, 6) for name, value in figures.items()},
    }


def _find_findings(part: LoadOfHost) -> list[str]:
    known = {row.counter: row for row in part.rows if row.samples >= _FEWEST}
    machine, process, memory = (known.get(name) for name in (_MACHINE, _PROCESS, _AVAILABLE))
    host, found = part.origin.host, []
    if machine and machine.mean >= _FULL_PERCENT:
        found.append(f"{host}: its cores are {machine.mean:.0f} % busy, so threads wait for a free core")
    elif process and _ONE_CORE[0] <= process.mean <= _ONE_CORE[1]:
        found.append(f"{host}: the process keeps one core busy; a single thread may be its limit")
    if memory and memory.low < _SCARCE_GB:
        found.append(f"{host}: only {memory.low:.2f} GB of memory were available at the lowest point")
    return found
