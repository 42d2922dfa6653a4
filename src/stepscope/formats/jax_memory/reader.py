"""Reads device memory profiles of JAX: what is alive on each device, and which line of the program made it.

    profile  = {sample types, samples, locations, functions, texts}
    sample   = {locations, the innermost first; allocations and bytes; labels `kind` and `device`}

The file is pprof's, usually compressed.  It shows one moment, so all allocations of the trace stand at its start, in
the order of the file.  What belongs to a compiled program has no device; it is a memory of its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from stepscope.errors import UnreadableError
from stepscope.formats.compressed import unpack
from stepscope.formats.protobuf import DELIMITED, VARINT, read_fields, read_number
from stepscope.formats.xspace.schema import HOST_PLANE
from stepscope.model import EventKind, HostTrace, PlaneKind, StatValue, TraceBuilder
from stepscope.model.stat_names import ADDRESS, ALLOCATED_BYTES, ALLOCATING_OP, ALLOCATOR, HEAP_BYTES, REGION_TYPE
from stepscope.records import dataclass
from stepscope.vocabulary.python import is_of_user

_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _TEXT = 1, 2, 4, 5, 6
_WANTED = ["allocations", "count", "space", "bytes"]
_MOST_BYTES = 1 << 28  # unpacked
_MOST_EVENTS = 200_000
_PROGRAMS = "compiled programs"
_HINT = "give a file written by jax.profiler.save_device_memory_profile"

Message = dict[int, list[int | bytes]]
"""The fields of a message by their numbers: numbers, and the bytes of texts and messages."""


@dataclass(frozen=True)
class _Sample:
    """Allocations of one place, kind and device."""

    device: str
    kind: str
    count: int
    size: int
    owner: str


def read(data: bytes, source: str, host: str) -> HostTrace:
    """Reads one profile.

    Args:
        data: the file's bytes, plain or compressed with gzip.
        source: the name to use in messages.
        host: the host's name.

    Returns:
        A trace with a line of allocations for each device.

    Raises:
        UnreadableError: the data is not such a profile.
    """
    try:
        samples = list(_samples(_fields(unpack(bytes(data), _MOST_BYTES))))
    except (zlib.error, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        reason = f"the profile cannot be read: {error}"
        raise UnreadableError(reason, code="pprof", path=source, lost="everything", hint=_HINT) from error
    builder = TraceBuilder(host or "localhost")
    builder.source, builder.framework = source, "jax"
    plane = builder.plane(HOST_PLANE, PlaneKind.HOST)
    address = 0  # the file has none; nothing is freed, so that each allocation has one of its own
    for number, device in enumerate(dict.fromkeys(sample.device for sample in samples)):
        line, used = builder.line(plane, f"memory of {device}", line_id=number), 0
        for sample in (each for each in samples if each.device == device):
            for size in _sizes(sample, len(samples)):
                used, address = used + size, address + 1
                stats: dict[str, StatValue] = {
                    ALLOCATOR[0]: device, ALLOCATED_BYTES[0]: size, HEAP_BYTES[0]: used, REGION_TYPE[0]: sample.kind,
                    ALLOCATING_OP[0]: sample.owner, ADDRESS[0]: address,
                }  # fmt: skip
                line.event("[memory]", 0, 0, EventKind.ALLOCATION, stats)
    return builder.build()


def _sizes(sample: _Sample, samples: int) -> list[int]:
    """The bytes of each allocation of a sample, which gives their sum; one event where there are very many."""
    count = sample.count if 0 < sample.count <= max(_MOST_EVENTS // max(samples, 1), 1) else 1
    each = sample.size // count
    return [sample.size - each * (count - 1), *[each] * (count - 1)]


def _samples(profile: Message) -> Iterator[_Sample]:
    """What is alive.  Raises ValueError if the profile counts something else."""
    texts = [_bytes(text).decode("utf-8", "replace") for text in profile.get(_TEXT, [])]
    types = [texts[_number(field, at)] for field in map(_message, profile.get(_TYPE, [])) for at in (1, 2)]
    if types != _WANTED:
        raise ValueError(f"it counts {', '.join(types) or 'nothing'}, not allocations and bytes")
    functions = {_number(each, 1): each for each in map(_message, profile.get(_FUNCTION, []))}
    frames = {}
    for location in map(_message, profile.get(_LOCATION, [])):
        frames[_number(location, 1)] = [_frame(_message(line), functions, texts) for line in location.get(4, [])]
    for sample in map(_message, profile.get(_SAMPLE, [])):
        labels = [_message(label) for label in sample.get(3, [])]
        named = {texts[_number(label, 1)]: texts[_number(label, 2)] for label in labels}
        count, size = _numbers(sample, 2)
        if size > 0:
            stack = [frame for location in _numbers(sample, 1) for frame in frames.get(location, [])]
            device = named.get("device") or _PROGRAMS
            yield _Sample(device, named.get("kind", ""), count, size, _owner(stack))


def _frame(line: Message, functions: dict[int, Message], texts: list[str]) -> str:
    function = functions.get(_number(line, 1), {})
    name, file = texts[_number(function, 2)], texts[_number(function, 4)]
    return f"{file}({_number(line, 2)}): {name}" if file else name


def _owner(stack: list[str]) -> str:
    """The innermost line of the user's program, otherwise the innermost frame."""
    return next(filter(is_of_user, stack), stack[0] if stack else "")


# -- messages of protobuf ----------------------------------------------------------------------------------------------


def _fields(message: bytes) -> Message:
    """The fields of a message.  Raises ValueError if it is damaged."""
    found: Message = {}
    for number, wire, value in read_fields(memoryview(message)):
        if wire == DELIMITED:
            plain: int | bytes = bytes(value)
        else:
            plain = read_number(value, 0)[0] if wire == VARINT else int.from_bytes(value, "little")
        found.setdefault(number, []).append(plain)
    return found


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands in place of a text")
    return value


def _message(value: int | bytes) -> Message:
    return _fields(_bytes(value))


def _number(message: Message, field: int) -> int:
    """The number in a field, 0 if it has none."""
    value = message.get(field, [0])[-1]
    if not isinstance(value, int):
        raise ValueError("a text stands in place of a number")
    return value


def _numbers(message: Message, field: int) -> list[int]:
    """All numbers of a repeated field, packed or not, as signed ones."""
    found: list[int] = []
    for value in message.get(field, []):
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = read_number(value, at)
            found.append(number)
    return [number - (1 << 64) if number >= 1 << 63 else number for number in found]
