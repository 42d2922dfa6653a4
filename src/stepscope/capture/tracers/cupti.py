"""Records what any library runs on NVIDIA GPUs, with the package `cupti-python`.

CUPTI serves one profiler at a time, and TensorFlow, JAX and PyTorch use it themselves.  So this tracer is used only
without a framework's profiler: for programs that compute with another CUDA library, such as CuPy.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Iterable
from typing import Any

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.report import warn
from stepscope.capture.tracers.base import Clock, Probe, make_chunk
from stepscope.formats.spool.layout import Chunk, StatValue

_BUFFER_BYTES = 8 << 20
_BYTES_OF_ACTIVITY = 400
# CUpti_ActivityMemcpyKind -> EventKind, and the name that viewers know the copy by
_COPIES = {
    1: ("COPY_HOST_TO_DEVICE", "MemcpyH2D"),
    2: ("COPY_DEVICE_TO_HOST", "MemcpyD2H"),
    8: ("COPY_DEVICE_TO_DEVICE", "MemcpyD2D"),
    9: ("COPY_HOST_TO_HOST", "MemcpyH2H"),
    10: ("COPY_PEER", "MemcpyP2P"),
}
_OTHER_COPY = ("COPY_OTHER", "Memcpy")
_KINDS = ("CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET")  # MEMCPY2: from one GPU to another

_Row = tuple[int, int, str, str, int, int, dict[str, StatValue]]  # device, stream, kind, name, start, end, stats


class Delivery:
    """Where CUPTI's activities go.  CUPTI takes its callbacks once for the life of the process.

    Attributes:
        tracer: gets the activities; None drops them.
        is_registered: CUPTI has the callbacks.
    """

    def __init__(self) -> None:
        self.tracer: CuptiTracer | None = None
        self.is_registered = False

    def register(self, cupti: Any) -> None:
        """Gives CUPTI the callbacks, unless it has them."""
        if not self.is_registered:
            cupti.activity_register_callbacks(_provide_buffer, _take_buffer)
            self.is_registered = True


DELIVERY = Delivery()


def available() -> bool:
    """True if the package is installed; whether the driver permits it is known only when it starts."""
    try:
        return importlib.util.find_spec("cupti.cupti") is not None
    except (ImportError, ValueError):
        return False


class CuptiTracer(Probe):
    """Records kernels, copies and memory fills of all GPUs.  CUDA does not work in a forked child."""

    def __init__(self) -> None:
        self._cupti: Any = None
        self._rows: list[_Row] = []
        self._offset_ns = 0
        self._enabled: list[Any] = []
        self._ended = False
        self._untimed = 0

    def start(self, options: ProfilerOptions, clock: Clock = time.perf_counter_ns) -> None:
        """Starts recording.  Raises what CUPTI raises: no driver, no permission, another profiler."""
        cupti = self._cupti = importlib.import_module("cupti.cupti")
        before = clock()
        there = int(cupti.get_timestamp())
        self._offset_ns = (before + clock()) // 2 - there
        DELIVERY.register(cupti)
        DELIVERY.tracer = self
        try:
            for name in _KINDS:
                kind = getattr(cupti.ActivityKind, name)
                cupti.activity_enable(kind)
                self._enabled.append(kind)
        except BaseException:
            DELIVERY.tracer = None
            self._disable()
            raise

    def stop(self) -> None:
        """Ends the recording; the last activities come with the next `drain`."""
        self._ended = True
        self._disable()

    def _disable(self) -> None:
        while self._enabled:
            self._cupti.activity_disable(self._enabled.pop())

    def waiting_bytes(self) -> int:
        """About how much memory the activities take."""
        return _BYTES_OF_ACTIVITY * len(self._rows)

    def add(self, activities: Iterable[Any]) -> None:
        """Takes activities as CUPTI delivers them, on a thread of CUPTI's."""
        kinds = self._cupti.ActivityKind
        for activity in activities:
            described = _describe_activity(activity, kinds)
            if described is None:
                continue
            if not 0 < activity.start <= activity.end:  # CUPTI's way to mark work that has not ended or was not timed
                self._untimed += 1
                continue
            kind, name, stats = described
            begin, end = int(activity.start) + self._offset_ns, int(activity.end) + self._offset_ns
            stats["correlation_id"] = int(activity.correlation_id)
            self._rows.append((int(activity.device_id), int(activity.stream_id), kind, name, begin, end, stats))

    def drain(self) -> list[Chunk]:
        """The activities since the last call, a chunk for each stream and kind."""
        if DELIVERY.tracer is self:
            self._cupti.activity_flush_all(int(self._ended))  # 1: also the buffers that are not full
            DELIVERY.tracer = None if self._ended else self
            if self._ended and self._untimed:
                warn(f"{self._untimed:,} kernels and copies are not in the profile: CUPTI gave them no times")
        taken = self._rows[:]
        del self._rows[: len(taken)]
        grouped: dict[tuple[int, int, str], list[_Row]] = {}
        for row in taken:
            grouped.setdefault(row[:3], []).append(row)
        return [_chunk(*key, rows) for key, rows in grouped.items()]


def _describe_activity(activity: Any, kinds: Any) -> tuple[str, str, dict[str, StatValue]] | None:
    """Kind, name and stats of an activity; None for a kind that was not requested."""
    if activity.kind == kinds.CONCURRENT_KERNEL:
        return "KERNEL", str(activity.name), _describe_launch(activity)
    if activity.kind in (kinds.MEMCPY, kinds.MEMCPY2):
        return *_COPIES.get(int(activity.copy_kind), _OTHER_COPY), {"bytes": int(activity.bytes)}
    if activity.kind == kinds.MEMSET:
        return "MEMSET", "Memset", {"bytes": int(activity.bytes)}
    return None


def _describe_launch(kernel: Any) -> dict[str, StatValue]:
    """How a kernel was launched, in the XSpace format's notation."""
    grid = f"{kernel.grid_x},{kernel.grid_y},{kernel.grid_z}"
    block = f"{kernel.block_x},{kernel.block_y},{kernel.block_z}"
    shared = int(kernel.static_shared_memory), int(kernel.dynamic_shared_memory)
    return {
        "kernel_details": f"regs:{int(kernel.registers_per_thread)} static_shared:{shared[0]} "
        f"dynamic_shared:{shared[1]} grid:{grid} block:{block}"
    }


def _chunk(device: int, stream: int, kind: str, rows: list[_Row]) -> Chunk:
    stats = {at: row[6] for at, row in enumerate(rows)}
    return make_chunk(f"/device:GPU:{device}", f"Stream #{stream}", stream, kind, [row[3:6] for row in rows], stats)


def _provide_buffer() -> tuple[int, int]:
    """The size of a buffer, and the most records in it: 0 for as many as fit."""
    return _BUFFER_BYTES, 0


def _take_buffer(activities: list[Any]) -> None:
    tracer = DELIVERY.tracer
    if tracer is not None:
        tracer.add(activities)
