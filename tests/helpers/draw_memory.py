"""Draws what one allocator of a GPU records, and asks the memory profile of it."""

from __future__ import annotations

from typing import Any

from stepscope.analysis.resources import memory_profile_tool
from stepscope.model import EventKind, PlaneKind, TraceBuilder

MIB = 1 << 20
_MS = 10**9


class MemoryHost:
    """A host with one thread, on which an allocator records; times in ms, sizes in bytes."""

    def __init__(self) -> None:
        self.builder = TraceBuilder("host")
        self.builder.framework = "pytorch"
        self.line = self.builder.line(self.builder.plane("/host:CPU", PlaneKind.HOST), "python")
        self._in_use = 0

    def step(self, number: int, begin: float, end: float) -> None:
        """A step mark."""
        length = round((end - begin) * _MS)
        self.line.event("train", round(begin * _MS), length, EventKind.STEP_MARK, {"step_num": number})

    def allocate(self, at: float, size: int, address: int, op: str) -> None:
        """An allocation of an op."""
        self._record(at, EventKind.ALLOCATION, size, address, op)

    def free(self, at: float, size: int, address: int) -> None:
        """A deallocation."""
        self._record(at, EventKind.DEALLOCATION, size, address, "")

    def _record(self, at: float, kind: EventKind, size: int, address: int, op: str) -> None:
        self._in_use += size if kind == EventKind.ALLOCATION else -size
        stats: dict[str, Any] = {
            "allocator_name": "GPU_0_bfc", "allocation_bytes": size, "requested_bytes": size, "addr": address,
            "bytes_allocated": self._in_use, "tf_op": op,
        }  # fmt: skip
        self.line.event("memory", round(at * _MS), 0, kind, stats)


def memory_report(host: MemoryHost) -> dict[str, Any]:
    """The memory profile of a host as JSON, with its sentences."""
    report = memory_profile_tool.merge([memory_profile_tool.partial(host.builder.build())])
    return {**report.to_dict(), "sentences": list(report.sections()[0].lines)}
