"""Reads memory snapshots of PyTorch's caching allocator, as `torch.cuda.memory._dump_snapshot` writes them.

    snapshot = {"segments": [segment], "device_traces": [[entry, ...] per device], ...}
    segment  = {"device", "address", "total_size", "blocks": [{"size", "address", "state", "frames"}], ...}
    entry    = {"action", "addr", "size", "frames", "time_us", ...}; "oom" is a request that was refused

A snapshot is a pickle of plain values; nothing in it is executed.

The history of a device is a ring buffer, so its start may be lost.  The bytes in use at the start follow from those at
the end, which the segments give, and from all events in between.  Blocks that were in use all the time appear as
allocations at the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from stepscope.errors import Problem, UnreadableError
from stepscope.formats.plain_pickle import load_plain
from stepscope.model import EventKind, HostTrace, PlaneKind, StatValue, TraceBuilder
from stepscope.model.stat_names import (
    ADDRESS,
    ALLOCATED_BYTES,
    ALLOCATING_OP,
    CALL_STACK,
    HEAP_BYTES,
    MEMORY_DEVICE_ID,
    MEMORY_DEVICE_TYPE,
    POOL_BYTES,
    REGION_TYPE,
    REQUESTED_BYTES,
)
from stepscope.records import dataclass

_CUDA = 1  # PyTorch's number for GPUs, including AMD's
# Tuples, since a file may hold anything in place of these texts, even values without a hash.
_GROWS = ("segment_alloc", "segment_map")
_SHRINKS = ("segment_free", "segment_unmap")
_IN_USE = ("active_allocated", "active_awaiting_free", "active_pending_free")
_PS_PER_US = 1_000_000
_MOST = (1 << 63) - 1
_MOST_REFUSALS = 5
_FARTHEST_US = 1 << 52  # from 1970: 142 years
_LONGEST_US = 1 << 40  # a history longer than 12 days mixes clocks, and its ps would not fit into 64 bits
# Frames that allocate for their callers.
_LIBRARY_PARTS = ("site-packages/torch/", "/torch/nn/", "/torch/_", "dist-packages/torch/")

# C++ above the function that wanted memory: what unwinds the stack, the allocator, and what makes empty tensors.
_MACHINERY = re.compile(
    r"torch::unwind::|torch::CapturedTraceback|::gather(?:_with_cpp)?\(|Allocator|\bc10::(?:Storage|TensorImpl)"
    r"|\b(?:at|c10)::(?:\w+::)*_?empty\w*\(|\boperator new|\bmalloc\("
)

_MOST_FRAMES = 40  # of a stack that is kept
_DEEPEST = 1000  # frames that are looked at: Python's own limit

# What a stack of Python frames says of an allocation: the path of a frame holds this, and its function is one of these,
# or any.  The innermost frame of which something is said counts.
_SHOWS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("torch/optim/", (), "optimizer_state"),
    ("torch/_tensor.py", ("backward",), "gradients"),
    ("torch/autograd/", ("_engine_run_backward", "backward", "grad"), "gradients"),
    ("torch/nn/parameter.py", (), "parameters"),
    ("torch/nn/modules/", ("_apply", "to", "cuda", "__init__", "reset_parameters"), "parameters"),
    ("torch/nn/modules/module.py", ("_call_impl", "_wrapped_call_impl"), "activations"),
)


def read(data: bytes, source: str, host: str) -> HostTrace:
    """Reads one snapshot.

    Args:
        data: the file's bytes.
        source: the name to use in messages.
        host: the host's name.

    Returns:
        A trace with a line of allocation events per device.

    Raises:
        UnreadableError: the data is not a pickle of plain values, or not a memory snapshot.
    """
    snapshot = _load_snapshot(data, source)
    builder = TraceBuilder(host or "localhost")
    builder.source, builder.framework = source, "pytorch"
    devices = [_Device(number, entries) for number, entries in enumerate(_lists(snapshot.get("device_traces")))]
    for segment in _mappings(snapshot.get("segments")):
        number = _clamp_number(segment.get("device"))
        while len(devices) <= number < 1024:
            devices.append(_Device(len(devices), []))
        if number < len(devices):
            devices[number].segments.append(segment)
    first = _align_clocks(devices)
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    for device in devices:
        if device.segments or device.entries:
            device.write(builder, plane, first)
    if any(not device.timed for device in devices):
        builder.problems.append(
            Problem("no-time", "the snapshot holds no times: events are shown one microsecond apart", path=source)
        )
    builder.recorder_messages += [sentence for device in devices for sentence in device.describe_refusals()]
    builder.start_unix_ns = first * 1000 if first > 0 else None
    return builder.build()


def _load_snapshot(data: bytes, source: str) -> Mapping[str, Any]:
    hint = "give a file written by torch.cuda.memory._dump_snapshot"
    found = load_plain(data, source, hint)
    if not isinstance(found, dict) or not {"segments", "device_traces"} & found.keys():
        raise UnreadableError("the pickle is not a memory snapshot", code="pickle", path=source, hint=hint)
    entries = sum(map(len, _lists(found.get("device_traces"))))
    entries += sum(
        len(blocks) for each in _mappings(found.get("segments")) if isinstance(blocks := each.get("blocks"), list)
    )
    if entries > len(data):  # an entry takes some bytes; a file whose parts refer to each other can claim any number
        raise UnreadableError(
            f"{len(data):,} bytes claim {entries:,} entries",
            code="too-large",
            path=source,
            lost="everything",
            hint=hint,
        )
    return found


def _lists(value: object) -> list[list[Any]]:
    return [each for each in value if isinstance(each, list)] if isinstance(value, list) else []


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def _clamp_number(value: object) -> int:
    """The value limited to 0 to 2^63 - 1; 0 if it is not an integer."""
    return min(max(value, 0), _MOST) if isinstance(value, int) else 0


@dataclass(frozen=True)
class _Event:
    """One allocation or, with negative bytes, one deallocation."""

    time_us: int
    bytes: int
    requested: int
    address: int
    owner: str
    stack: str
    purpose: str


class _Device:
    """The history of one device's allocator."""

    def __init__(self, number: int, entries: list[Any]) -> None:
        self.number = number
        self.entries = [entry for entry in entries if isinstance(entry, dict)]
        self.segments: list[Mapping[str, Any]] = []
        self.timed = all(_is_time(entry.get("time_us")) for entry in self.entries)

    def times_us(self) -> list[int]:
        """The times of all entries; empty if the history holds none."""
        return [entry["time_us"] for entry in self.entries] if self.timed else []

    def describe_refusals(self) -> list[str]:
        """A sentence for each request that the device had no memory for: how much, and who asked; the last ones."""
        refused = [entry for entry in self.entries if entry.get("action") == "oom"][-_MOST_REFUSALS:]
        return [_describe_refusal(self.number, entry) for entry in refused]

    def write(self, builder: TraceBuilder, plane: int, first_us: int) -> None:
        """Adds the device's events to a trace."""
        line = builder.line(plane, f"allocator of GPU {self.number}", line_id=self.number)
        blocks = [block for segment in self.segments for block in _mappings(segment.get("blocks"))]
        in_use = [block for block in blocks if block.get("state") in _IN_USE]
        steps = self._steps(in_use, first_us)
        used = sum(_clamp_number(block.get("size")) for block in in_use) - sum(
            step.bytes for step in steps if isinstance(step, _Event)
        )
        pool = sum(_clamp_number(segment.get("total_size")) for segment in self.segments) - sum(
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
        """The history in order: allocations, and the bytes by which the pool grows."""
        steps: list[_Event | int] = []
        allocated = {_clamp_number(entry.get("addr")) for entry in self.entries if entry.get("action") == "alloc"}
        begin = min(self.times_us(), default=first_us)
        for block in in_use:
            if _clamp_number(block.get("address")) not in allocated:
                steps.append(_make_event(block, "address", begin, 1))
        for at, entry in enumerate(self.entries):
            action, moment = entry.get("action"), entry["time_us"] if self.timed else first_us + at
            if action in _GROWS or action in _SHRINKS:
                steps.append(_clamp_number(entry.get("size")) * (1 if action in _GROWS else -1))
            elif action in ("alloc", "free_completed"):
                steps.append(_make_event(entry, "addr", moment, 1 if action == "alloc" else -1))
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
        if event.stack:
            stats[CALL_STACK[0]] = event.stack
        if event.purpose:
            stats[REGION_TYPE[0]] = event.purpose
        return stats


def _describe_refusal(device: int, entry: Mapping[str, Any]) -> str:
    owner = _find_owner(*_read_frames(entry))
    free = _clamp_number(entry.get("device_free") or entry.get("addr"))  # PyTorch keeps it in place of an address
    size = _clamp_number(entry.get("size"))
    who = f", asked for by {owner}" if owner else ""
    return f"GPU {device} was out of memory: {size:,} bytes were refused and {free:,} were free{who}"


def _is_time(value: object) -> bool:
    return isinstance(value, int) and abs(value) < _FARTHEST_US


def _align_clocks(devices: list[_Device]) -> int:
    """The start of the snapshot in us since 1970; 0 if it holds no times.

    Devices whose times count from another zero lose their times.
    """
    first = min((moment for device in devices for moment in device.times_us()), default=0)
    for device in devices:
        if max(device.times_us(), default=first) - first >= _LONGEST_US:
            device.timed = False
    return first


def _make_event(entry: Mapping[str, Any], address: str, moment: int, sign: int) -> _Event:
    frames, python = _read_frames(entry) if sign > 0 else ([], [])
    return _Event(
        time_us=moment,
        bytes=_clamp_number(entry.get("size")) * sign,
        requested=_clamp_number(entry.get("requested_size")),
        address=_clamp_number(entry.get(address)),
        owner=_find_owner(frames, python),
        stack=";".join(_frame_text(frame) for frame in python[:_MOST_FRAMES]),
        purpose=_find_purpose(python),
    )


def _read_frames(entry: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The stack of an entry, innermost frame first, and the Python frames in it."""
    frames = list(islice(_mappings(entry.get("frames")), _DEEPEST))
    return frames, [frame for frame in frames if str(frame.get("filename", "")).endswith(".py")]


def _frame_text(frame: Mapping[str, Any]) -> str:
    return f"{frame['filename']}({_clamp_number(frame.get('line'))}): {frame.get('name', '')}"


def _find_purpose(python: list[Mapping[str, Any]]) -> str:
    """What the memory is for, as far as its stack shows it."""
    for frame in python:
        path, name = str(frame["filename"]).replace("\\", "/"), str(frame.get("name", ""))
        for place, names, purpose in _SHOWS:
            if place in path and (not names or name in names):
                return purpose
    return ""


def _find_owner(frames: list[Mapping[str, Any]], python: list[Mapping[str, Any]]) -> str:
    """The innermost Python frame outside of PyTorch, as `file(line): function`; without any, the innermost frame below
    those that record the stack and allocate."""
    own = [frame for frame in python if not any(part in str(frame["filename"]) for part in _LIBRARY_PARTS)]
    chosen = next(iter(own or python), None)
    if chosen is not None:
        return _frame_text(chosen)
    names = [str(frame.get("name", "")) for frame in frames]
    return next((name for name in names if not _MACHINERY.search(name)), names[0] if names else "")
