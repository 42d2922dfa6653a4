"""The tool `hlo-stats`: every instruction of the XLA programs that ran, its time and how near it comes to the hardware.

Work on the device is matched to the instructions of the programs in the capture. Operations and bytes are counted from
the instructions' shapes by the rules of XLA's own cost analysis, or taken from the trace where it states them, as TPUs
do. A dot counts two operations for each product, a convolution leaves out what lies in the padding, attention of a
library counts all pairs of a query and a key, and transcendental functions count none. What a custom call computes is
unknown unless it is a matrix product, a convolution or attention of a known library.

Programs that were compiled during the capture are listed with their cost and with what changed: the arguments of a
program are compared with those of the program of the same function before it. What is not in a program cannot be
compared: values of static arguments, weak types, and settings of JAX. The cache on disk is JAX's persistent compilation
cache: a function that is lowered and not compiled was loaded from it, and one that is written to it was not there.

Total time includes what runs inside an op, such as the body of a loop; self time does not. Where programs run on the
host's own threads, as on a CPU, each thread's time counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stepscope.analysis.trace.origin import header
from stepscope.analysis.xla.compiled import COMPILATION_FIELDS, FUNCTION_FIELDS, compilation_cells, function_cells
from stepscope.analysis.xla.op_table import (
    DEVICE_FIELDS,
    OP_FIELDS,
    PROGRAM_FIELDS,
    STEP_FIELDS,
    TOTAL_FIELDS,
    UsedOp,
    describe_above_peaks,
    device_rows,
    host_ops,
    op_cells,
    program_rows,
    rates_of_op,
    step_figures,
    totals,
    warnings_of,
    why_empty,
)
from stepscope.analysis.xla.ops import XlaOpsOfHost, partial
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Part,
    Report,
    Role,
    Row,
    Table,
    as_figures,
    as_table,
    fields_named,
    make_row,
    not_in_json,
    percent,
    round_us,
)

__all__ = ["HloStatsReport", "merge", "partial"]

FIELDS: tuple[Field, ...] = (
    Field("rank", "number", "place in the list, by self time", "int", role=Role.ORDINAL),
    Field("program", "text", "the program and its number", role=Role.LABEL),
    *fields_named(OP_FIELDS, "category"),
    Field("name", "text", "the instruction; `others` for those of a category that are not listed", role=Role.NAME),
    *fields_named(OP_FIELDS, "occurrences", "self_us", "self_percent"),
    Field("framework_op", "text", "the op of the framework that it was made from", role=Role.LABEL),
    Field("total_us", "us", "time with what runs inside it"),
    Field("avg_us", "us", "total time by occurrences"),
    Field("avg_self_us", "us", "self time by occurrences"),
    Field("cumulative_self_percent", "percent", "self_percent added up to this row"),
    *fields_named(OP_FIELDS, "flops", "bytes", "gflop_per_s", "gib_per_s", "flop_per_byte"),
    *fields_named(OP_FIELDS, "compute_percent", "memory_percent", "bound_by"),
    Field("source", "text", "the line of the program that asked for it", role=Role.SOURCE),
    *fields_named(OP_FIELDS, "precision"),
    Field("rematerialized", "", "whether it computes again what was dropped to save memory", "bool"),
    Field("outside_compilation", "", "whether it hands data to or from the host in the middle of a program", "bool"),
    Field("text", "text", "the instruction as XLA writes it", role=Role.TEXT),
)
_PARTS = (
    Part("HLO ops", ("rank", "program", "category", "name", "occurrences", "self_us", "self_percent", "framework_op")),
    Part(
        "Times of HLO ops",
        ("rank", "name", "total_us", "avg_us", "avg_self_us", "cumulative_self_percent", "flops", "bytes"),
    ),
    Part(
        "Rates of HLO ops",
        (
            *("rank", "name", "gflop_per_s", "gib_per_s", "flop_per_byte", "compute_percent", "memory_percent"),
            "bound_by",
        ),
    ),
    Part(
        "Where HLO ops come from",
        ("rank", "name", "source", "precision", "rematerialized", "outside_compilation", "text"),
    ),
)


_NONE_COMPILED = "nothing was compiled during the capture"


@dataclass(frozen=True, kw_only=True)
class HloStatsReport(Report):
    """Instructions and their times; see the FIELDS tables of this module for the meaning of its parts."""

    TOOL: ClassVar[str] = "hlo-stats"

    rows: Table = as_table("HLO ops", FIELDS, lambda report: report.empty, _PARTS)
    programs: Table = as_table("Programs", PROGRAM_FIELDS, lambda report: report.empty)
    steps: Row = as_figures("Use of the hardware by steps", STEP_FIELDS)
    compiled: Table = as_table("Functions compiled during the capture", FUNCTION_FIELDS, _NONE_COMPILED)
    compilations: Table = as_table("Why they were compiled", COMPILATION_FIELDS, _NONE_COMPILED)
    devices: Table = as_table("Devices", DEVICE_FIELDS, "no device worked")
    totals: Row = as_figures("How device work is matched to instructions", TOTAL_FIELDS)
    empty: str = not_in_json()


def merge(partials: Sequence[XlaOpsOfHost]) -> HloStatsReport:
    """The instructions of all hosts together."""
    ops = host_ops(partials)
    busy = sum(part.busy_ps for part in partials)
    return HloStatsReport(
        **header([part.origin for part in partials], [*warnings_of(partials), *describe_above_peaks(ops)]),
        rows=tuple(_list_ops(ops, busy)),
        totals=totals(partials),
        programs=tuple(program_rows(partials, ops)),
        steps=step_figures(partials),
        devices=tuple(device_rows([(part.origin.host, part.devices) for part in partials])),
        compiled=tuple(function_cells([(part.origin.host, part.compiled) for part in partials])),
        compilations=tuple(compilation_cells([(part.origin.host, part.compiled) for part in partials])),
        empty=why_empty(partials),
    )


def _list_ops(ops: Sequence[UsedOp], busy: int) -> list[dict[str, Cell]]:
    rows, so_far = [], 0
    for rank, each in enumerate(ops, 1):
        so_far += each.op.self_ps
        rows.append(_cells(each, busy) | {"rank": rank, "cumulative_self_percent": percent(so_far, busy)})
    return rows


def _cells(each: UsedOp, busy: int) -> Row:
    op, runs = each.op, max(each.op.runs, 1)
    times = {"avg_us": round_us(op.total_ps / runs), "avg_self_us": round_us(op.self_ps / runs)}
    rates = op_cells(op, rates_of_op(op, each.peaks), busy)
    return make_row(FIELDS, op, rank=None, program=each.program, cumulative_self_percent=None, **times, **rates)


COMPARABLES = (
    Comparable(
        id="hlo_ops",
        title="HLO ops",
        keys=fields_named(FIELDS, "category", "name"),
        measure=Field("self_us", "us", "self time of the instruction, in all programs that have one of its name"),
        count="occurrences",
        is_total=True,
        empty="neither side has instructions of XLA programs",
    ),
)
