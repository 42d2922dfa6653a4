"""How busy the machines were: CPU, memory, disk and GPU, as sampled during the capture.

Every recorded counter is a row, with the mean, the extremes and the 95th percentile of its samples. A
capture by Stepscope samples the process and the machine ten times per second. `CPU process %` counts 100 for each core
that the process keeps busy. `CPU machine %` is the busy share of all cores. GPUs report through NVML. Counters that
PyTorch or another program recorded are listed as well. `memory-profile` shows memory use allocation by allocation.

The timeline shows the same counters over time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from stepscope.analysis.resources.counters import PROCESS_PERCENT, Counter, counters_of
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Comparable, Field, Lines, Report, Role, Row, Table, as_prose, as_table, fields_named
from stepscope.report.fields import amount
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
class LoadOfHost:
    """The part of one host: rows of FIELDS."""

    origin: Origin
    rows: list[Row]
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
    counters = sorted((each for each in counters_of(trace) if each.place), key=lambda each: (each.place, each.name))
    rows = [_row_of(trace.host, each) for each in counters[:MOST_ROWS]]
    return LoadOfHost(origin_of(trace), rows, len(counters[MOST_ROWS:]))


def _row_of(host: str, counter: Counter) -> Row:
    ordered = np.sort(counter.value)
    p95 = float(ordered[math.ceil(0.95 * len(ordered)) - 1]) if len(ordered) >= _LEAST_FOR_P95 else None
    figures = {"mean": float(ordered.mean()), "min": float(ordered[0]), "max": float(ordered[-1]), "p95": p95}
    return {
        "host": host,
        "place": device_label(counter.place),
        "counter": counter.name,
        "unit": counter.unit or next((unit for unit in _UNITS if counter.name.endswith(f" {unit}")), None),
        "samples": len(ordered),
        **{name: None if value is None else round(value, 6) for name, value in figures.items()},
    }


def merge(partials: Sequence[LoadOfHost]) -> SystemReport:
    """The counters of all hosts, host by host."""
    lost = [f"{part.left_out} counters of {part.origin.host} are not listed" for part in partials if part.left_out]
    return SystemReport(
        **header([part.origin for part in partials], lost),
        findings=tuple(sentence for part in partials for sentence in _find_findings(part)),
        rows=tuple(row for part in partials for row in part.rows),
    )


def _find_findings(part: LoadOfHost) -> Iterator[str]:
    known = {row["counter"]: row for row in part.rows if amount(row["samples"]) >= _FEWEST}
    machine, process = (amount(known[name]["mean"]) if name in known else 0.0 for name in (_MACHINE, _PROCESS))
    host = part.origin.host
    if machine >= _FULL_PERCENT:
        yield f"{host}: its cores are {machine:.0f} % busy, so threads wait for a free core"
    elif _ONE_CORE[0] <= process <= _ONE_CORE[1]:
        yield f"{host}: the process keeps one core busy; a single thread may be its limit"
    if _AVAILABLE in known and (least := amount(known[_AVAILABLE]["min"])) < _SCARCE_GB:
        yield f"{host}: only {least:.2f} GB of memory were available at the lowest point"
