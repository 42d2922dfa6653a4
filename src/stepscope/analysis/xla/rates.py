"""How near work comes to what the device can do: rates, shares of the peaks, and which of them limits it."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.xla.device_facts import DeviceFacts
from stepscope.analysis.xla.ops import OpRow, Partial
from stepscope.analysis.xla.peaks import HOW_TO_ADD, Peaks, peaks_of
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, percent, round_us

DEVICE_FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host", "str", role=Role.HOST),
    Field("device", "text", "the device, as the table of devices calls it", "str", role=Role.PLACE),
    Field("count", "count", "how many of these did work", "int"),
    Field("known", "", "whether its peaks are known", "bool"),
    Field("matrix_tflop_per_s", "TFLOP/s", "highest rate of matrix products in 16 bits"),
    Field("plain_tflop_per_s", "TFLOP/s", "rate of the general units in single precision"),
    Field("memory_gb_per_s", "GB/s", "bandwidth of its main memory"),
    Field("link_gb_per_s", "GB/s", "bandwidth to other devices, both directions"),
    Field("ridge_flop_per_byte", "FLOP/byte", "intensity above which computing limits, and not memory"),
    Field("source", "text", "where these figures come from", "str", role=Role.TEXT),
)
OP_FIELDS: tuple[Field, ...] = (
    Field("category", "text", "the opcode, of fusions their kind; the type of a framework's op", "str", role=Role.TYPE),
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
        "`compute` or `memory`: the peak it is nearer to; unknown without both",
        "str",
        role=Role.TERM,
    ),
    Field("precision", "text", "element type of what it multiplies, else of its result", "str", role=Role.TYPE),
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
        bound_by: `compute` or `memory`, whichever is nearer to its peak; None if unknown.
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


def rates_of_op(op: OpRow, peaks: Peaks | None) -> Rates:
    """What an op achieves, over its self time; unknown for one that only starts work or waits for it, since that goes
    on beside other ops."""
    if op.category.endswith(_ASYNCHRONOUS):
        return rates_of(None, None, op.self_ps, None, None)
    peak_flops = peaks.flops(op.precision, op.matrix) if peaks else None
    return rates_of(op.flops, op.bytes, op.self_ps, peak_flops, peaks.memory if peaks else None)


def op_cells(op: OpRow, rates: Rates, busy_ps: int) -> dict[str, Cell]:
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


def peaks_of_host(part: Partial) -> Peaks | None:
    """The peaks of a host's devices; None if they are unknown or differ."""
    found = [peaks_of(facts) for facts in part.devices]
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
