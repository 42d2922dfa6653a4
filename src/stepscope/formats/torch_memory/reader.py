"""Reads memory snapshots of PyTorch's caching allocator, as `torch.cuda.memory._dump_snapshot` writes them.

    snapshot = {"segments": [segment], "device_traces": [[entry, ...] of each device], ...}
    segment  = {"device", "address", "total_size", "blocks": [{"size", "address", "state", "frames"}], ...}
    entry    = {"action", "addr", "size", "frames", "time_us", ...}

A snapshot is a pickle, and unpickling an unknown file normally runs whatever code it names.  Here no name is ever
looked up: only plain values can come out, and a pickle that asks for more is refused.

The history of a device is a ring: its beginning may be lost.  What was in use at its beginning follows from what is in
use at its end, which the segments tell, and from all that happened in between.  Blocks that were in use all the time
appear as allocations at the beginning.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from stepscope.errors import Problem, UnreadableError
from stepscope.model import EventKind, HostTrace, PlaneKind, StatValue, TraceBuilder
from stepscope.model.stat_names import (
    ADDRESS,
    ALLOCATED_BYTES,
    ALLOCATING_OP,
    HEAP_BYTES,
    MEMORY_DEVICE_ID,
    MEMORY_DEVICE_TYPE,
    POOL_BYTES,
    REQUESTED_BYTES,
)
from stepscope.records import dataclass

_CUDA = 1  # PyTorch's number for GPUs, also those of AMD
# Tuples, since what a file holds in their place may be anything, also what cannot be hashed.
_GROWS = ("segment_alloc", "segment_map")
_SHRINKS = ("segment_free", "segment_unmap")
_IN_USE = ("active_allocated", "active_awaiting_free", "active_pending_free")
_PS_PER_US = 1_000_000
_MOST = (1 << 63) - 1
_FARTHEST_US = 1 << 52  # from 1970: 142 years
_LONGEST_US = 1 << 40  # a history longer than 12 days mixes clocks, and its ps would not fit into 64 bits
# Frames that allocate for others: what called them is what needs the memory.
_LIBRARY_PARTS = ("site-packages/torch/", "/torch/nn/", "/torch/_", "dist-packages/torch/")


def read(data: bytes, source: str, host: str) -> HostTrace:
    """Reads one snapshot.

    Args:
        data: the file's bytes.
        source: the name to use in messages.
        host: the host's name.

    Returns:
        A trace with a line of allocation events for each device.

    Raises:
        UnreadableError: the data is no pickle of plain values, or none of a memory snapshot.
    """
    snapshot = _unpickled(data, source)
    builder = TraceBuilder(host or "localhost")
    builder.source, builder.framework = source, "pytorch"
    devices = [_Device(number, entries) for number, entries in enumerate(_lists(snapshot.get("device_traces")))]
    for segment in _mappings(snapshot.get("segments")):
        number = _number(segment.get("device"))
        while len(devices) <= number < 1024:
            devices.append(_Device(len(devices), []))
        if number < len(devices):
            devices[number].segments.append(segment)
    first = _on_one_clock(devices)
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    for device in devices:
        if device.segments or device.entries:
            device.write(builder, plane, first)
    if any(not device.timed for device in devices):
        builder.problems.append(
            Problem("no-time", "the snapshot tells no times: events are one microsecond apart", path=source)
        )
    builder.start_unix_ns = first * 1000 if first > 0 else None
    return builder.build()


class _PlainUnpickler(pickle.Unpickler):
    """Builds dicts, lists, tuples, texts and numbers, and nothing that has a name."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}, which is not looked up")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError("the pickle refers to something outside itself")


def _unpickled(data: bytes, source: str) -> Mapping[str, Any]:
    hint = "give a file written by torch.cuda.memory._dump_snapshot"
    try:
        found = _PlainUnpickler(io.BytesIO(data)).load()
    except Exception as error:  # damaged pickles raise errors of any sort
        reason = f"the pickle cannot be read: {str(error) or type(error).__name__}"
        raise UnreadableError(reason, code="pickle", path=source, lost="everything", hint=hint) from error
    if not isinstance(found, dict) or not {"segments", "device_traces"} & found.keys():
        raise UnreadableError("the pickle holds no memory snapshot", code="pickle", path=source, hint=hint)
    return found


def _lists(value: object) -> list[list[Any]]:
    return [each for each in value if isinstance(each, list)] if isinstance(value, list) else []


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def _number(value: object) -> int:
    """A number that is not negative and fits into a trace; 0 for anything else."""
    return min(max(value, 0), _MOST) if isinstance(value, int) else 0


@dataclass(frozen=True)
class _Event:
    """One allocation or, with negative bytes, one deallocation."""

    time_us: int
    bytes: int
    requested: int
    address: int
    owner: str


class _Device:
    """The history of one device's allocator."""

    def __init__(self, number: int, entries: list[Any]) -> None:
        self.number = number
        self.entries = [entry for entry in entries if isinstance(entry, dict)]
        self.segments: list[Mapping[str, Any]] = []
        self.timed = all(_is_time(entry.get("time_us")) for entry in self.entries)

    def times_us(self) -> list[int]:
        """When things happened, empty if the history does not tell."""
        return [entry["time_us"] for entry in self.entries] if self.timed else []

    def write(self, builder: TraceBuilder, plane: int, first_us: int) -> None:
        """Adds the device's events to a trace."""
        line = builder.line(plane, f"allocator of GPU {self.number}", line_id=self.number)
        blocks = [block for segment in self.segments for block in _mappings(segment.get("blocks"))]
        in_use = [block for block in blocks if block.get("state") in _IN_USE]
        steps = self._steps(in_use, first_us)
        used = sum(_number(block.get("size")) for block in in_use) - sum(
            step.bytes for step in steps if isinstance(step, _Event)
        )
        pool = sum(_number(segment.get("total_size")) for segment in self.segments) - sum(
            step for step in steps if isinstance(step, int)
        )
        for step in steps:
            if isinstance(step, int):
                pool += step
                continue
            used += step.bytes
            kind = EventKind.ALLOCATION if step.bytes >= 0 else EventKind.DEALLOCATION
            stats = self._stats(step, max(used, 0), max(pool, 0))
            line.event("[memory]", (step.time_us - first_us) * _PS_PER_US, 0, kind, stats)

    def _steps(self, in_use: list[Mapping[str, Any]], first_us: int) -> list[_Event | int]:
        """What happens, in order: allocations, and by how many bytes the pool grows."""
        steps: list[_Event | int] = []
        allocated = {_number(entry.get("addr")) for entry in self.entries if entry.get("action") == "alloc"}
        begin = min(self.times_us(), default=first_us)
        for block in in_use:
            if _number(block.get("address")) not in allocated:
                steps.append(_event(block, "address", begin, 1))
        for at, entry in enumerate(self.entries):
            action, moment = entry.get("action"), entry["time_us"] if self.timed else first_us + at
            if action in _GROWS or action in _SHRINKS:
                steps.append(_number(entry.get("size")) * (1 if action in _GROWS else -1))
            elif action in ("alloc", "free_completed"):
                steps.append(_event(entry, "addr", moment, 1 if action == "alloc" else -1))
        return steps

    def _stats(self, event: _Event, used: int, pool: int) -> dict[str, StatValue]:
        stats: dict[str, StatValue] = {
            ALLOCATED_BYTES[-1]: event.bytes,
            ADDRESS[-1]: event.address,
            MEMORY_DEVICE_TYPE[0]: _CUDA,
            MEMORY_DEVICE_ID[0]: self.number,
            HEAP_BYTES[-1]: used,
            POOL_BYTES[0]: pool,
        }
        if event.requested:
            stats[REQUESTED_BYTES[0]] = event.requested
        if event.owner:
            stats[ALLOCATING_OP[0]] = event.owner
        return stats


def _is_time(value: object) -> bool:
    return isinstance(value, int) and abs(value) < _FARTHEST_US


def _on_one_clock(devices: list[_Device]) -> int:
    """When the snapshot begins, in us since 1970, 0 if it tells no times.  Devices that count from elsewhere lose
    theirs."""
    first = min((moment for device in devices for moment in device.times_us()), default=0)
    for device in devices:
        if max(device.times_us(), default=first) - first >= _LONGEST_US:
            device.timed = False
    return first


def _event(entry: Mapping[str, Any], address: str, moment: int, sign: int) -> _Event:
    return _Event(
        time_us=moment,
        bytes=_number(entry.get("size")) * sign,
        requested=_number(entry.get("requested_size")),
        address=_number(entry.get(address)),
        owner=_owner(entry.get("frames")) if sign > 0 else "",
    )


def _owner(frames: object) -> str:
    """The innermost Python frame that is not PyTorch's own, else the innermost frame, as `file(line): function`."""
    python = [frame for frame in _mappings(frames) if str(frame.get("filename", "")).endswith(".py")]
    own = [frame for frame in python if not any(part in str(frame["filename"]) for part in _LIBRARY_PARTS)]
    chosen = next(iter(own or python or list(_mappings(frames))), None)
    if chosen is None:
        return ""
    name = str(chosen.get("name", ""))
    return f"{chosen['filename']}({_number(chosen.get('line'))}): {name}" if chosen in python else name
