"""What a trace says of its devices: name, architecture, and the peaks that it states itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.trace.grouping import COPIES
from stepscope.model import EventKind, HostTrace, PlaneKind
from stepscope.model.arrays import I64, Mask
from stepscope.records import dataclass


@dataclass(frozen=True)
class DeviceFacts:
    """One kind of device; unknown texts are empty, unknown numbers None.

    Attributes:
        name: as its vendor calls it.
        capability: compute capability, or AMD's architecture, as `9.4`.
        cores: multiprocessors or compute units.
        peak_flops, peak_bytes: what the trace itself states, operations and bytes a second.
        count: how many of these computed; of a program that only copies, how many copied.
    """

    kind: str
    name: str
    vendor: str
    capability: str
    cores: int | None
    peak_flops: float | None
    peak_bytes: float | None
    count: int


def device_facts(trace: HostTrace, rows: I64) -> list[DeviceFacts]:
    """The kinds of devices that did some work; the host's processor where the host did it.

    A device that only copies, such as one that another's memory is fetched through, takes no part in the peak.

    Args:
        rows: int64 of shape (n,), events.
    """
    copies = is_copy(trace, rows)
    used = set(trace.lines.plane[trace.events.line[rows if copies.all() else rows[~copies]]].tolist())
    found: dict[DeviceFacts, int] = {}
    for plane in trace.device_planes():
        if plane in used:
            facts = facts_of_plane(trace, plane)
            found[facts] = found.get(facts, 0) + 1
    if used and not found:
        return [DeviceFacts("CPU", "CPU", "", "", None, None, None, 1)]
    return [replace(facts, count=count) for facts, count in found.items()]


def is_copy(trace: HostTrace, rows: I64) -> Mask:
    """Which events copy or fill memory: bool of shape (n,)."""
    copies: Mask = np.isin(trace.events.kind[rows], (*COPIES, EventKind.MEMSET))
    return copies


def facts_of_plane(trace: HostTrace, plane: int) -> DeviceFacts:
    """What a trace says of one device."""
    stats = trace.stats_of_plane(plane)

    def text(*names: str) -> str:
        return next((str(stats[name]) for name in names if isinstance(stats.get(name), str)), "")

    def number(name: str, scale: float) -> float | None:
        value = stats.get(name)
        return value * scale if isinstance(value, int | float) and value > 0 else None

    major, minor, cores = (stats.get(name) for name in ("compute_cap_major", "compute_cap_minor", "core_count"))
    return DeviceFacts(
        PlaneKind(trace.planes.kind[plane]).name,
        text("gpu_device_name", "device_type_string", "device_type"),
        text("device_vendor"),
        f"{major}.{minor}" if isinstance(major, int) and isinstance(minor, int) else "",
        cores if isinstance(cores, int) and cores > 0 else None,
        number("peak_teraflops_per_second", 1e12),
        number("peak_hbm_bw_gigabytes_per_second", 1e9),
        count=1,
    )
