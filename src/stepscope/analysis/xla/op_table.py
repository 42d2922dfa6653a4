"""The table of XLA ops of all hosts, which the XLA tools share: what each op achieves, how near it comes to what the
device can do, and the programs, the steps and the devices that belong to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stepscope.analysis.hlo.programs import WHY_NONE
from stepscope.analysis.trace.device_facts import DeviceFacts
from stepscope.analysis.xla.ops import XlaOp, XlaOpsOfHost
from stepscope.analysis.xla.peaks import HOW_TO_ADD, Peaks, peaks_of
from stepscope.analysis.xla.step_time import StepTime
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, add_up, percent, round_us

REPORTED_FROM_PERCENT = 1.0

TOTAL_FIELDS: tuple[Field, ...] = (
    Field("busy_us", "us", "all work; of all XLA ops where the host is the device", label="Busy, all devices"),
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
    Field("program", "text", "the program and its number", role=Role.LABEL),
    Field("runs", "count", "how often it ran, over all devices", "int"),
    Field("self_us", "us", "time of its ops, on all devices together", label="Self, all devices"),
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

DEVICE_FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host", role=Role.HOST),
    Field("device", "text", "the device, as the table of devices calls it", role=Role.PLACE),
    Field("count", "count", "how many of these did work", "int"),
    Field("known", "", "whether its peaks are known", "bool"),
    Field("matrix_tflop_per_s", "TFLOP/s", "highest rate of matrix products in 16 bits"),
    Field("plain_tflop_per_s", "TFLOP/s", "rate of the general units in single precision"),
    Field("memory_gb_per_s", "GB/s", "bandwidth of its main memory"),
    Field("link_gb_per_s", "GB/s", "bandwidth to other devices, both directions"),
    Field("ridge_flop_per_byte", "FLOP/byte", "intensity above which computing limits, and not memory"),
    Field("source", "text", "where these figures come from", role=Role.TEXT),
)
OP_FIELDS: tuple[Field, ...] = (
    Field("category", "text", "the opcode, of fusions their kind; the type of a framework's op", role=Role.TYPE),
    Field("occurrences", "count", "how often it ran; all kernels of one run count once", "int", label="Count"),
    Field("self_us", "us", "self time on the devices: without what runs inside it"),
    Field("self_percent", "percent", "share of the time of all work of the devices"),
    Field("flops", "FLOP", "operations of all its runs; unknown for most custom calls"),
    Field("bytes", "bytes", "bytes that all its runs read and write, at least"),
    Field("gflop_per_s", "GFLOP/s", "operations by self time", label="Rate"),
    Field("gib_per_s", "GiB/s", "bytes read and written by self time", label="Bandwidth"),
    Field("flop_per_byte", "FLOP/byte", "operational intensity: operations for each byte", label="Intensity"),
    Field("compute_percent", "percent", "share of the device's peak for its precision"),
    Field("memory_percent", "percent", "share of the device's memory bandwidth"),
    Field(
        "bound_by",
        "text",
        "`compute` or `memory`: the peak it is nearer to, unknown without both; `communication` of collectives, "
        "`transfer` of copies between host and device",
        role=Role.TERM,
    ),
    Field("precision", "text", "element type of what it multiplies, else of its result", role=Role.TYPE),
)
"""The columns of an op and what it achieves, in every table of ops; `op_cells` fills them."""


_ASYNCHRONOUS = ("-start", "-done")  # how XLA names the two halves of work that goes on beside other ops


@dataclass(frozen=True)
class Rates:
    """What a piece of work achieves.

    Attributes:
        flop_per_s, byte_per_s: by its time; None where operations or bytes are unknown.
        intensity: operations for each byte.
        compute_percent, memory_percent: of the device's peaks.
        bound_by: `compute` or `memory`, whichever is nearer to its peak, or the link that it uses; None if unknown.
        least_ps: the time that the device's peaks allow at least.
    """

    flop_per_s: float | None
    byte_per_s: float | None
    intensity: float | None
    compute_percent: float | None
    memory_percent: float | None
    bound_by: str | None
    least_ps: float | None


def rates_of(
    flops: float | None, nbytes: float | None, time_ps: float, peak_flops: float | None, peak_bytes: float | None
) -> Rates:
    """What work of so many operations and bytes achieves in a time."""
    seconds = time_ps / 1e12
    flop_rate, byte_rate = (None if amount is None or seconds <= 0 else amount / seconds for amount in (flops, nbytes))
    compute, memory = _share(flop_rate, peak_flops), _share(byte_rate, peak_bytes)
    bound = least = None
    if compute is not None and memory is not None and max(compute, memory) > 0:
        bound = "compute" if compute >= memory else "memory"
        least = max(compute, memory) * time_ps / 100
    intensity = flops / nbytes if flops is not None and nbytes else None
    return Rates(flop_rate, byte_rate, intensity, compute, memory, bound, least)


def _share(rate: float | None, peak: float | None) -> float | None:
    return None if rate is None or not peak else 100 * rate / peak


def rates_of_op(op: XlaOp, peaks: Peaks | None) -> Rates:
    """What an op achieves, over its self time; unknown for one that only starts work or waits for it, since that goes
    on beside other ops.  What uses a link is no share of a peak."""
    if op.category.endswith(_ASYNCHRONOUS):
        return replace(rates_of(None, None, op.self_ps, None, None), bound_by=op.link or None)
    if op.link:
        return replace(rates_of(op.flops, op.bytes, op.self_ps, None, None), bound_by=op.link)
    peak_flops = peaks.flops(op.precision, op.matrix) if peaks else None
    return rates_of(op.flops, op.bytes, op.self_ps, peak_flops, peaks.memory if peaks else None)


def describe_above_peaks(ops: Sequence[UsedOp]) -> list[str]:
    """A sentence about ops whose rates are beyond what their device can do; empty without any."""
    found = [(rates_of_op(used.op, used.peaks), used.op.name) for used in ops]
    shares = [(max(rates.compute_percent or 0.0, rates.memory_percent or 0.0), name) for rates, name in found]
    above = sorted((each for each in shares if each[0] > 100), reverse=True)
    if not above:
        return []
    many = f"{len(above)} ops are" if len(above) > 1 else "one op is"
    why = "the formula counts operations that a faster algorithm leaves out, and bytes that a cache holds"
    return [f"{many} above a peak of the device, `{above[0][1]}` at {above[0][0]:.0f} %: {why}"]


def op_cells(op: XlaOp, rates: Rates, busy_ps: int) -> dict[str, Cell]:
    """A row's values for OP_FIELDS.

    Args:
        op: the op.
        rates: what it achieves.
        busy_ps: time of all work of all devices.
    """
    return {
        "category": op.category,
        "occurrences": op.runs,
        "self_us": round_us(op.self_ps),
        "self_percent": percent(op.self_ps, busy_ps),
        "flops": op.flops,
        "bytes": op.bytes,
        "gflop_per_s": None if rates.flop_per_s is None else rates.flop_per_s / 1e9,
        "gib_per_s": None if rates.byte_per_s is None else rates.byte_per_s / 2**30,
        "flop_per_byte": rates.intensity,
        "compute_percent": rates.compute_percent,
        "memory_percent": rates.memory_percent,
        "bound_by": rates.bound_by,
        "precision": op.precision or None,
    }


@dataclass(frozen=True)
class UsedOp:
    """An op, or the sum of several, with the peaks of its device.

    Attributes:
        program: the label of the XLA program; empty for ops of frameworks.
        shapes: those of its inputs, of an op of a framework.
        least_s: of a sum, the time its operations take at the peaks of their precisions; None for a single op.
    """

    op: XlaOp
    program: str
    peaks: Peaks | None
    shapes: str = ""
    is_program: bool = False
    least_s: float | None = None

    @property
    def peak_flops(self) -> float | None:
        """The peak that its rate is measured against; of a sum, the mean of its ops' peaks, by their operations."""
        if self.peaks is None:
            return None
        if not self.is_program:
            return self.peaks.flops(self.op.precision, self.op.matrix)
        return self.op.flops / self.least_s if self.op.flops and self.least_s else None


def add_ops(ops: Iterable[UsedOp]) -> list[UsedOp]:
    """Ops of equal program, name, category and shapes added up, in the order in which they first appear."""
    alike: dict[tuple[str, str, str, str], list[UsedOp]] = {}
    for used in ops:
        alike.setdefault((used.program, used.op.name, used.op.category, used.shapes), []).append(used)
    return [replace(first, op=_add_runs([first.op, *(used.op for used in more)])) for first, *more in alike.values()]


def _add_runs(ops: Sequence[XlaOp]) -> XlaOp:
    summed = add_up(ops, ("runs", "total_ps", "self_ps", "flops", "bytes"))
    return summed._replace(instructions=max(op.instructions for op in ops))


def ops_of_host(part: XlaOpsOfHost) -> list[UsedOp]:
    """The XLA ops of a host."""
    peaks = peaks_of_host(part.devices)
    return [UsedOp(op, part.programs[op.program].label, peaks) for op in part.ops]


def host_ops(partials: Sequence[XlaOpsOfHost]) -> list[UsedOp]:
    """The XLA ops of all hosts, those of equal program and name added up, longest first."""
    ops = add_ops(used for part in partials for used in ops_of_host(part))
    return sorted(ops, key=lambda used: (-used.op.self_ps, used.program, used.op.name))


def list_programs(partials: Sequence[XlaOpsOfHost], ops: Sequence[UsedOp]) -> list[tuple[str, int, list[UsedOp]]]:
    """The label, the runs and the ops of each program that has ops."""
    runs: dict[str, int] = {}
    for program in (each for part in partials for each in part.programs):
        runs[program.label] = runs.get(program.label, 0) + program.runs
    by_program: dict[str, list[UsedOp]] = {}
    for used in ops:
        by_program.setdefault(used.program, []).append(used)
    return [(label, runs[label], mine) for label, mine in by_program.items()]


def use_of(label: str, ops: Sequence[UsedOp], runs: int) -> UsedOp:
    """A program as the sum of its ops; what is unknown of an op counts nothing."""
    flops = [used.op.flops for used in ops if used.op.flops is not None]
    nbytes = [used.op.bytes for used in ops if used.op.bytes is not None]
    heaviest = max(ops, key=lambda used: used.op.flops or 0).op
    total = heaviest._replace(
        name=label,
        category="program",
        runs=runs,
        total_ps=sum(used.op.self_ps for used in ops),
        self_ps=sum(used.op.self_ps for used in ops),
        flops=sum(flops) if flops else None,
        bytes=sum(nbytes) if nbytes else None,
    )
    return UsedOp(total, label, ops[0].peaks, is_program=True, least_s=least_seconds(ops))


def least_seconds(ops: Sequence[UsedOp], share_in_steps: bool = False) -> float | None:
    """The time that operations take at the peaks of their precisions; None if one of these is unknown."""
    total = 0.0
    for used in ops:
        if used.op.flops:
            peak = used.peak_flops
            if not peak:
                return None
            total += used.op.flops * (used.op.in_steps if share_in_steps else 1) / peak
    return total


def step_use(hosts: Sequence[tuple[StepTime | None, Sequence[UsedOp], Sequence[DeviceFacts]]]) -> dict[str, Cell]:
    """What steps use of the hardware, keyed as STEP_FIELDS; all devices of a host work on each step."""
    found = [(steps, ops, devices) for steps, ops, devices in hosts if steps]
    if not found:
        return dict.fromkeys(field.name for field in STEP_FIELDS)
    count = max(steps.steps for steps, _, _ in found)
    device_s = sum(steps.total_ps / 1e12 * sum(facts.count for facts in devices) for steps, _, devices in found)
    every = [used for _, ops, _ in found for used in ops]
    inside = [(used.op, used.op.in_steps) for used in every]
    flops = sum((op.flops or 0) * share for op, share in inside)
    nbytes = sum((op.bytes or 0) * share for op, share in inside)
    time = sum(op.self_ps * share for op, share in inside)
    costed = sum(op.self_ps * share for op, share in inside if op.flops is not None)
    least = least_seconds(every, share_in_steps=True) if costed else None
    memories = {used.peaks.memory if used.peaks else None for used in every}
    memory = memories.pop() if len(memories) == 1 and nbytes else None
    return {
        "steps": count,
        "step_ms": sum(steps.total_ps / steps.steps for steps, _, _ in found) / len(found) / 1e9,
        "flops_per_step": flops / count if costed else None,
        "bytes_per_step": nbytes / count if nbytes else None,
        "costed_percent": percent(costed, time),
        "mfu_percent": None if least is None else percent(least, device_s),
        "mbu_percent": None if not memory else percent(nbytes / memory, device_s),
    }


def totals(partials: Sequence[XlaOpsOfHost]) -> dict[str, Cell]:
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


def program_rows(partials: Sequence[XlaOpsOfHost], ops: Sequence[UsedOp]) -> list[dict[str, Cell]]:
    """One row for each program, longest first."""
    busy = sum(part.busy_ps for part in partials)
    programs = list_programs(partials, ops)
    programs.sort(key=lambda program: (-sum(used.op.self_ps for used in program[2]), program[0]))
    return [_program_row(*program, busy) for program in programs]


def _program_row(label: str, runs: int, ops: Sequence[UsedOp], busy: int) -> dict[str, Cell]:
    self_ps = sum(used.op.self_ps for used in ops)
    costed = [used.op for used in ops if used.op.flops is not None]
    nbytes = sum(used.op.bytes for used in ops if used.op.bytes is not None)
    peaks = ops[0].peaks
    least = least_seconds(ops) if peaks and costed else None
    return {
        "program": label,
        "runs": runs,
        "self_us": round_us(self_ps),
        "self_percent": percent(self_ps, busy),
        "flops": sum(op.flops or 0.0 for op in costed),
        "bytes": nbytes,
        "costed_percent": percent(sum(op.self_ps for op in costed), self_ps),
        "mfu_percent": None if least is None else percent(least * 1e12, self_ps),
        "mbu_percent": percent(nbytes / peaks.memory * 1e12, self_ps) if peaks and peaks.memory else None,
    }


def step_figures(partials: Sequence[XlaOpsOfHost]) -> dict[str, Cell]:
    """The figures of STEP_FIELDS, over the hosts that have steps."""
    return step_use([(part.steps, ops_of_host(part), part.devices) for part in partials])


def warnings_of(partials: Sequence[XlaOpsOfHost]) -> list[str]:
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


def why_empty(partials: Sequence[XlaOpsOfHost]) -> str:
    """Why there are no XLA ops, and what would record them."""
    if any(part.recorded_programs for part in partials):
        return "no XLA op ran during the capture, or the device's tracer was off (device_tracer_level=1)"
    return f"no XLA ops: {WHY_NONE}"


def peaks_of_host(devices: Sequence[DeviceFacts]) -> Peaks | None:
    """The peaks of a host's devices; None if they are unknown or differ."""
    found = [peaks_of(facts) for facts in devices]
    return found[0] if found and all(each == found[0] for each in found) else None


def device_rows(hosts: Sequence[tuple[str, Sequence[DeviceFacts]]]) -> list[dict[str, Cell]]:
    """One row for each kind of device of each host."""
    return [_device_row(host, facts) for host, devices in hosts for facts in devices]


def _device_row(host: str, facts: DeviceFacts) -> dict[str, Cell]:
    peaks = peaks_of(facts)
    matrix = peaks.highest_flops if peaks else None
    plain = peaks.plain.get("fp32") if peaks else None
    memory = peaks.memory if peaks else None
    return {
        "host": host,
        "device": peaks.name if peaks else _label(facts),
        "count": facts.count,
        "known": peaks is not None,
        "matrix_tflop_per_s": None if matrix is None else matrix / 1e12,
        "plain_tflop_per_s": None if plain is None else plain / 1e12,
        "memory_gb_per_s": None if memory is None else memory / 1e9,
        "link_gb_per_s": peaks.link / 1e9 if peaks and peaks.link else None,
        "ridge_flop_per_byte": matrix / memory if matrix and memory else None,
        "source": peaks.source if peaks else None,
    }


def _label(facts: DeviceFacts) -> str:
    return facts.name or f"{facts.vendor} {facts.kind} {facts.capability}".strip()


def peak_warnings(hosts: Sequence[tuple[str, Sequence[DeviceFacts]]]) -> list[str]:
    """A sentence for each kind of device whose peaks are unknown."""
    unknown = dict.fromkeys(_label(facts) for _, devices in hosts for facts in devices if peaks_of(facts) is None)
    return [f"the peaks of {name} are unknown: {HOW_TO_ADD}" for name in unknown]
