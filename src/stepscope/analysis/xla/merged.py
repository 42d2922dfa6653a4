"""The XLA ops of all hosts together, and the tables and warnings that the XLA tools share."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.hlo.programs import WHY_NONE
from stepscope.analysis.xla.ops import OpRow, Partial
from stepscope.analysis.xla.peaks import Peaks
from stepscope.analysis.xla.rates import peak_warnings, peaks_of_host
from stepscope.analysis.xla.use import UsedOp, least_seconds, step_use
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, percent, round_us

REPORTED_FROM_PERCENT = 1.0

TOTAL_FIELDS: tuple[Field, ...] = (
    Field("busy_us", "us", "time of all work of all devices; of all XLA ops where the host is the device"),
    Field("matched_percent", "percent", "of that time, work that belongs to an instruction of an XLA program"),
    Field("carried_percent", "percent", "work that names its instruction itself"),
    Field("launch_percent", "percent", "work that is known by the XLA op around its launch"),
    Field("name_percent", "percent", "kernels that are known by their name alone"),
    Field("copies_percent", "percent", "copies that no instruction asked for"),
    Field("unmatched_percent", "percent", "kernels and ops that belong to no instruction, such as a framework's own"),
    Field("programs", "count", "programs that ran", "int"),
    Field("recorded_programs", "count", "programs whose instructions the capture holds", "int"),
)
PROGRAM_FIELDS: tuple[Field, ...] = (
    Field("program", "text", "the program and its number", "str", role=Role.LABEL),
    Field("runs", "count", "how often it ran, over all devices", "int"),
    Field("self_us", "us", "time of its ops"),
    Field("self_percent", "percent", "share of the time of all work"),
    Field("flops", "FLOP", "operations of its ops whose cost is known"),
    Field("bytes", "bytes", "bytes that these read and write"),
    Field("costed_percent", "percent", "share of its time in ops whose operations are known"),
    Field(
        "mfu_percent",
        "percent",
        "model FLOPs utilization: the time that its operations take at the device's peak for their precision, by the "
        "time of its ops",
    ),
    Field("mbu_percent", "percent", "memory bandwidth utilization: its bytes a second, by the device's bandwidth"),
)
STEP_FIELDS: tuple[Field, ...] = (
    Field("steps", "count", "whole steps in the capture", "int"),
    Field("step_ms", "ms", "mean time of a step"),
    Field("flops_per_step", "FLOP", "operations of a step, of ops whose cost is known, on all devices together"),
    Field("bytes_per_step", "bytes", "bytes that these read and write"),
    Field("costed_percent", "percent", "of the ops' time in steps, ops whose operations are known"),
    Field("mfu_percent", "percent", "the time these operations take at the devices' peaks, by the time of the step"),
    Field("mbu_percent", "percent", "bytes a second of elapsed time, by the bandwidth of all devices"),
)


@dataclass(frozen=True)
class HostOp:
    """An op with the label of its program and the peaks of its host's device."""

    op: OpRow
    program: str
    peaks: Peaks | None


def host_ops(partials: Sequence[Partial]) -> list[HostOp]:
    """The ops of all hosts, those of equal program and name added up, longest first."""
    found: dict[tuple[str, str, str], HostOp] = {}
    for part in partials:
        peaks = peaks_of_host(part)
        for op in part.ops:
            label = part.programs[op.program].label
            key = (label, op.name, op.category)
            before = found.get(key)
            found[key] = HostOp(op if before is None else _add_runs(before.op, op), label, peaks)
    return sorted(found.values(), key=lambda each: (-each.op.self_ps, each.program, each.op.name))


def _add_runs(one: OpRow, other: OpRow) -> OpRow:
    def sum_of(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None else a + b

    return one._replace(
        runs=one.runs + other.runs,
        total_ps=one.total_ps + other.total_ps,
        self_ps=one.self_ps + other.self_ps,
        flops=sum_of(one.flops, other.flops),
        bytes=sum_of(one.bytes, other.bytes),
        instructions=max(one.instructions, other.instructions),
    )


def totals(partials: Sequence[Partial]) -> dict[str, Cell]:
    """The figures of TOTAL_FIELDS."""
    busy = sum(part.busy_ps for part in partials)
    shares: dict[str, Cell] = {
        f"{how}_percent": percent(sum(part.matched_ps.get(how, 0) for part in partials), busy)
        for how in ("carried", "launch", "name")
    }
    matched = sum(op.self_ps for part in partials for op in part.ops)
    return {
        "busy_us": round_us(busy),
        "matched_percent": percent(matched, busy),
        **shares,
        "copies_percent": percent(sum(part.copies_ps for part in partials), busy),
        "unmatched_percent": percent(sum(part.unmatched_ps for part in partials), busy),
        "programs": len({program.label for part in partials for program in part.programs}),
        "recorded_programs": max((part.recorded_programs for part in partials), default=0),
    }


def program_rows(partials: Sequence[Partial], ops: Sequence[HostOp]) -> list[dict[str, Cell]]:
    """One row for each program, longest first."""
    busy = sum(part.busy_ps for part in partials)
    runs: dict[str, int] = {}
    for part in partials:
        for program in part.programs:
            runs[program.label] = runs.get(program.label, 0) + program.runs
    by_program: dict[str, list[HostOp]] = {}
    for each in ops:
        by_program.setdefault(each.program, []).append(each)
    rows = [_program_row(label, runs[label], mine, busy) for label, mine in by_program.items()]
    return sorted(rows, key=lambda row: (-float(row["self_us"] or 0), str(row["program"])))  # type: ignore[arg-type]


def _program_row(label: str, runs: int, ops: list[HostOp], busy: int) -> dict[str, Cell]:
    self_ps = sum(each.op.self_ps for each in ops)
    used = [UsedOp(each.op, label, "", each.peaks) for each in ops]
    time: dict[str, Cell] = {"self_us": round_us(self_ps), "self_percent": percent(self_ps, busy)}
    head: dict[str, Cell] = {"program": label, "runs": runs}
    return head | time | _use(used, self_ps)


def _use(ops: Sequence[UsedOp], self_ps: float) -> dict[str, Cell]:
    """Operations and bytes of ops, and how much of their time they would take at the device's peaks."""
    costed = [used.op for used in ops if used.op.flops is not None]
    nbytes = sum(used.op.bytes for used in ops if used.op.bytes is not None)
    least = least_seconds(ops) if ops[0].peaks and costed else None
    memory = ops[0].peaks.memory if ops[0].peaks else None
    return {
        "flops": sum(op.flops or 0.0 for op in costed),
        "bytes": nbytes,
        "costed_percent": percent(sum(op.self_ps for op in costed), self_ps),
        "mfu_percent": None if least is None else percent(least * 1e12, self_ps),
        "mbu_percent": None if not memory else percent(nbytes / memory * 1e12, self_ps),
    }


def step_figures(partials: Sequence[Partial]) -> dict[str, Cell]:
    """The figures of STEP_FIELDS, over the hosts that have steps."""
    return step_use([(part.steps, _list_used_ops(part), part.devices) for part in partials])


def _list_used_ops(part: Partial) -> list[UsedOp]:
    peaks = peaks_of_host(part)
    return [UsedOp(op, part.programs[op.program].label, "", peaks) for op in part.ops]


def warnings_of(partials: Sequence[Partial]) -> list[str]:
    """What the reader must know: programs without instructions, unmatched work, unknown peaks."""
    if not any(part.ops for part in partials):
        return [why_empty(partials)]
    found = []
    lacking = dict.fromkeys(program.label for part in partials for program in part.programs if not program.known)
    if lacking:
        names = ", ".join(list(lacking)[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
        found.append(f"no instructions are recorded of {names}; costs are known only where the trace states them")
    damaged = dict.fromkeys(program.label for part in partials for program in part.programs if program.damaged)
    found += [f"the record of {name} is damaged; a part of its instructions is missing" for name in damaged]
    unmatched = totals(partials)["unmatched_percent"]
    if isinstance(unmatched, float) and unmatched >= REPORTED_FROM_PERCENT:
        found.append(f"{unmatched:.1f} % of the device time belongs to no instruction of an XLA program")
    left_out = sum(op.instructions for part in partials for op in part.ops if op.instructions > 1)
    if left_out:
        found.append(f"{left_out:,} instructions with the least time are added up by category")
    return found + peak_warnings([(part.origin.host, part.devices) for part in partials])


def why_empty(partials: Sequence[Partial]) -> str:
    """Why there are no XLA ops, and what would record them."""
    if any(part.recorded_programs for part in partials):
        return "no XLA op ran during the capture, or the device's tracer was off (device_tracer_level=1)"
    return f"no XLA ops: {WHY_NONE}"
