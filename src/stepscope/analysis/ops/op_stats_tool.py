"""The tool `op-stats`: every op that ran, on the hosts and on the devices.

Total time includes what runs inside an op, self time does not. Percentages are of the self time of all ops on the same
side: host ops say nothing of the device and the other way round, and read 0 there. Idle time is not an op; the columns
with idle time show the shares that remain if it is counted in.

On a host, an op's time is that of the thread that runs it, so that ops on several threads add up to more than the time
that passes. Idle is the time between the first and the last op of each thread in which it runs none. On a device, an
op's time is that of its kernels and copies; idle is the time between the first and the last work of each device in
which it does none. Work that cannot be attributed to an op has a row under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from stepscope.analysis.ops.op_sides import Peaks, Side, device_idle, host_idle, peaks_of, side_of
from stepscope.analysis.ops.op_table import distributions, side_rows, totals, whole
from stepscope.analysis.trace import attribution
from stepscope.analysis.trace.attribution import Shares, shares
from stepscope.analysis.trace.op_work import device_calls, device_work, host_work
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Figures,
    Part,
    Report,
    Role,
    Row,
    Rows,
    Section,
    fields_named,
    percent,
)
from stepscope.vocabulary.kernel_names import brief

K = EventKind

_STAND_INS = {
    K.TRACED_FUNCTION: "the traced functions that it called",
    K.ANNOTATION: "the ranges that the program named",
    K.PYTHON_CALL: "the Python functions that it called",
}

FIELDS: tuple[Field, ...] = (
    Field(
        "rank",
        "number",
        "place in the list: device ops by self time, then host ops by self time",
        "int",
        role=Role.ORDINAL,
    ),
    Field("where", "text", "`host` or `device`", "str", role=Role.PLACE),
    Field("type", "text", "the op's type, as the framework calls it; for copies the direction", "str", role=Role.TYPE),
    Field(
        "name",
        "text",
        "the op: its name in the framework, else the XLA instruction, else the kernel",
        "str",
        role=Role.NAME,
    ),
    Field(
        "occurrences",
        "count",
        "how often the op ran; on a device, launches of all its kernels count once",
        "int",
        label="Count",
    ),
    Field("total_us", "us", "accumulated time: with what runs inside it"),
    Field("avg_us", "us", "total time divided by occurrences"),
    Field("total_self_us", "us", "self time: without what runs inside it"),
    Field("avg_self_us", "us", "self time divided by occurrences"),
    Field("self_percent", "percent", "self time as a share of that of all ops on the same side"),
    Field(
        "cumulative_self_percent",
        "percent",
        "self_percent added up from the side's first row to this one",
        label="Cumulative",
    ),
    Field(
        "gflop_per_s", "GFLOP/s", "floating-point operations that the trace states, by total time", label="Compute rate"
    ),
    Field(
        "gib_per_s",
        "GiB/s",
        "bytes of memory that the trace states the op accesses or copies, by total time; unknown for the begin and the "
        "end of asynchronous copies, whose time is not that of the copy",
        label="Memory rate",
    ),
    Field("flop_per_byte", "FLOP/byte", "the operations divided by the bytes", label="Intensity"),
    Field(
        "tensor_core_percent",
        "percent",
        "time of the op's kernels on tensor cores (AMD: matrix cores), of all its kernels; unknown if no name tells",
    ),
    Field(
        "bound_by",
        "text",
        "`compute` or `memory`, whichever comes closer to the peak rate that the trace states for the device; unknown "
        "where it states no peaks or no operations and bytes",
        "str",
        role=Role.TERM,
    ),
    Field(
        "eager_percent",
        "percent",
        "self time of the op's runs on the host that were dispatched one by one; the rest runs in traced functions; "
        "unknown where the trace does not tell",
    ),
    *(
        Field(f"{side}_{name}", "percent", f"{meaning} {side}; 0 for ops that ran on the {other}")
        for side, other in (("device", "host"), ("host", "device"))
        for name, meaning in (
            ("self_percent", "share of the self time of all ops on the"),
            ("cumulative_self_percent", "the same added up to this row, for the"),
        )
    ),
    Field("self_percent_with_idle", "percent", "self time as a share of the self time of all ops and idle time"),
    Field(
        "cumulative_self_percent_with_idle",
        "percent",
        "the same added up to this row, with idle time taking its place among the ops by its length",
        label="Cumulative",
    ),
)
_PARTS = (
    Part("Ops", ("rank", "where", "type", "name", "occurrences", "total_self_us", "self_percent")),
    Part("Times of ops", ("rank", "name", "total_us", "avg_us", "avg_self_us", "cumulative_self_percent")),
    Part(
        "Rates of ops",
        (
            *("rank", "name", "gflop_per_s", "gib_per_s", "flop_per_byte", "tensor_core_percent", "bound_by"),
            "eager_percent",
        ),
    ),
    Part(
        "Shares of ops",
        (
            *("rank", "name", "device_self_percent", "device_cumulative_self_percent"),
            *("host_self_percent", "host_cumulative_self_percent"),
            *("self_percent_with_idle", "cumulative_self_percent_with_idle"),
        ),
    ),
)
TOTAL_FIELDS: tuple[Field, ...] = tuple(
    field
    for side, busy, idle in (
        ("device", "kernels, copies and ops of all devices together", "each device's first and last work"),
        ("host", "ops on all threads together", "each thread's first and last op"),
    )
    for field in (
        Field(
            f"{side}_ops",
            "count",
            f"different ops that ran on the {side}; unknown where one of several hosts has more than are kept",
            "int",
        ),
        Field(f"{side}_self_us", "us", f"self time of {busy}"),
        Field(f"{side}_idle_us", "us", f"time without any between {idle}, added up"),
    )
)
DISTRIBUTION_FIELDS: tuple[Field, ...] = (
    Field("where", "text", "`host` or `device`", "str", role=Role.PLACE),
    Field("by", "text", "`type` for op types, `op` for single ops", "str", role=Role.TERM),
    Field(
        "name",
        "text",
        "the type or the op; `others` for all that are not listed; `IDLE` for idle time",
        "str",
        role=Role.NAME,
    ),
    Field("self_us", "us", "self time"),
    Field("percent", "percent", "share of the self time on this side; unknown for idle time"),
    Field("percent_with_idle", "percent", "share of self time and idle time on this side"),
)


@dataclass(frozen=True)
class Partial:
    """What one host contributes."""

    origin: Origin
    device: Side
    on_host: Side
    stand_in: str | None
    attributed: Shares
    peaks: Peaks | None


@dataclass(frozen=True, kw_only=True)
class OpStatsReport(Report):
    """Ops and their times; see the FIELDS tables of this module for the meaning of its parts."""

    TOOL: ClassVar[str] = "op-stats"

    rows: tuple[dict[str, Cell], ...]
    totals: dict[str, Cell]
    distributions: tuple[dict[str, Cell], ...]
    attribution: dict[str, Cell]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "rows": list(self.rows),
            "totals": self.totals,
            "distributions": list(self.distributions),
            "attribution": self.attribution,
        }

    def sections(self) -> Sequence[Section]:
        """The ops, how their time spreads, and how far it can be attributed."""
        spread = self.distributions
        return [
            Rows("rows", "Ops", FIELDS, self.rows, _EMPTY, _PARTS, _briefly),
            Rows("distributions", "Self time by type and by op", DISTRIBUTION_FIELDS, spread, "no ops", brief=_briefly),
            Figures("totals", "Totals", TOTAL_FIELDS, self.totals),
            Figures("attribution", "How the ops of device work are known", attribution.FIELDS, self.attribution),
        ]


def _briefly(row: Row) -> Row:
    """The same row with the name of a kernel as it fits on a screen; paths of ops are cut by who shows them."""
    return row if "/" in str(row["name"]) else row | {"name": brief(str(row["name"]))}


_EMPTY = (
    "no ops: neither host nor device recorded any; record with ProfilerOptions(host_tracer_level=2) and, on a GPU or "
    "TPU, device_tracer_level=1"
)


COMPARABLES = (
    Comparable(
        id="rows",
        title="Ops",
        keys=fields_named(FIELDS, "where", "type", "name"),
        measure=Field("total_self_us", "us", "self time of the op, over all threads and devices"),
        count="occurrences",
        is_total=True,
        empty="neither side has ops",
    ),
)


# -- one host ------------------------------------------------------------------------------------------------------


def partial(trace: HostTrace) -> Partial:
    """What one host contributes."""
    on_host, on_device = host_work(trace), device_work(trace)
    return Partial(
        origin=origin_of(trace),
        device=side_of(trace, on_device, device_calls(trace, on_device), device_idle(trace, on_device.rows)),
        on_host=side_of(trace, on_host, None, host_idle(trace, on_host)),
        stand_in=_STAND_INS.get(on_host.stand_in) if on_host.stand_in else None,
        attributed=shares(trace),
        peaks=peaks_of(trace),
    )


# -- all hosts -----------------------------------------------------------------------------------------------------


def merge(partials: Sequence[Partial]) -> OpStatsReport:
    """The ops of all hosts together."""
    sides = {
        "device": whole([part.device for part in partials]),
        "host": whole([part.on_host for part in partials]),
    }
    stated = {part.peaks for part in partials if part.device.ops}
    peaks = stated.pop() if len(stated) == 1 else None
    rows: list[dict[str, Cell]] = []
    for name, side in sides.items():
        rows += side_rows(name, side, len(rows), peaks)
    return OpStatsReport(
        **header([part.origin for part in partials], _warnings(partials, sides)),
        rows=tuple(rows),
        totals={key: value for name, side in sides.items() for key, value in totals(name, side, len(partials)).items()},
        distributions=tuple(row for name, side in sides.items() for row in distributions(name, side)),
        attribution=dict(attribution.figures([part.attributed for part in partials])),
    )


def _warnings(partials: Sequence[Partial], sides: dict[str, Side]) -> list[str]:
    if not any(side.ops for side in sides.values()):
        return [_EMPTY]
    found = attribution.warning([part.attributed for part in partials])
    stand_ins = dict.fromkeys(part.stand_in for part in partials if part.stand_in)
    found += [f"a host recorded no ops, so {what} stand for them" for what in stand_ins]
    for name, side in sides.items():
        if side.left_out:
            share = percent(side.left_out_ps, side.self_ps) or 0.0
            found.append(f"{side.left_out:,} ops on the {name} with {share:.2g} % of its self time are not listed")
    return found
