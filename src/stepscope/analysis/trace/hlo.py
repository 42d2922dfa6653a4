"""What the XLA programs in a trace say of their instructions: which op of the framework each was made from."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from stepscope import kernels
from stepscope.model import HostTrace, PlaneKind, StatTag, stat_names
from stepscope.vocabulary.xla import split_program

_BYTES_AN_INSTRUCTION = 32  # at least; leaves room to spare
# Fields of XLA's HloProto, HloModuleProto, ProgramShapeProto and ShapeProto.
_MODULE, _SHAPE_OF_PROGRAM, _PARAMETER, _ELEMENT_TYPE, _DIMENSIONS = 1, 4, 1, 2, 3
_ELEMENTS = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 15: "c64", 16: "bf16", 18: "c128",
}  # fmt: skip


class Programs:
    """Looks up the framework op of an XLA instruction.

    Args:
        protos: for each module's name, as in `jit_step(4)`, its serialized program.
    """

    def __init__(self, protos: dict[str, bytes]) -> None:
        self._protos: dict[str | int, bytes] = {}
        self._ops: dict[bytes, dict[str, str]] = {}
        self._ids: dict[str, list[int]] = {}
        for name, proto in protos.items():
            module, number = split_program(name)
            self._protos[module] = proto
            if number is not None:
                self._protos[number] = proto
                self._ids.setdefault(module, []).append(number)

    def __bool__(self) -> bool:
        return bool(self._protos)

    def framework_op(self, program_id: int, module: str, instruction: str) -> str:
        """The op as `name:type`, with an empty type where the program tells none; empty if it does not know the op."""
        return self._ops_of(program_id, module).get(instruction, "")

    def framework_ops(self, program_id: int, module: str) -> Collection[str]:
        """The ops of all instructions of a program, those inside fusions too, as `framework_op` gives them."""
        return self._ops_of(program_id, module).values()

    def _ops_of(self, program_id: int, module: str) -> dict[str, str]:
        proto = self._protos.get(program_id) or self._protos.get(module)
        if proto is None:
            return {}
        if proto not in self._ops:
            self._ops[proto] = _ops(proto)
        return self._ops[proto]

    def parameters(self, module: str) -> list[tuple[str, ...]]:
        """What each program of a module's name takes, such as `f32[32,128]`, in the order of their numbers; without
        those that do not tell it."""
        found = (_parameters(self._protos[number]) for number in sorted(self._ids.get(module, ())))
        return [shapes for shapes in found if shapes]


def programs(trace: HostTrace) -> Programs:
    """The programs of a trace, decoded when first asked for."""
    return trace.derived("programs", _programs)


def _programs(trace: HostTrace) -> Programs:
    stats, types = trace.type_stats, trace.event_types
    wanted = [row for row in map(trace.strings.find, stat_names.HLO_PROTO) if row > 0]
    rows = np.flatnonzero(np.isin(stats.name, wanted) & (stats.tag == StatTag.BYTES))
    owners = np.searchsorted(stats.offsets, rows, side="right") - 1
    metadata = trace.planes.kind[types.plane[owners]] == PlaneKind.METADATA
    pairs = zip(owners[metadata].tolist(), stats.value[rows[metadata]].tolist(), strict=True)
    return Programs({trace.strings[types.name[owner]]: trace.strings.raw(value) for owner, value in pairs})


def _ops(proto: bytes) -> dict[str, str]:
    from_hlo = kernels.hlo
    buf = np.frombuffer(proto, np.uint8)
    table = np.zeros((len(proto) // _BYTES_AN_INSTRUCTION + 16, from_hlo.WIDTH), np.int64)
    count = from_hlo.instructions(buf, table)
    if count > len(table):
        table = np.zeros((count, from_hlo.WIDTH), np.int64)
        from_hlo.instructions(buf, table)
    found = {}
    for name, name_len, _, _, kind, kind_len, op, op_len in table[:count].tolist():
        if op_len:
            parts = (proto[op : op + op_len], proto[kind : kind + kind_len])
            text = b":".join(parts).decode("utf-8", "replace")
            found[proto[name : name + name_len].decode("utf-8", "replace")] = text
    return found


def _parameters(proto: bytes) -> tuple[str, ...]:
    """The shapes of a serialized program's parameters; none if it is damaged."""
    try:
        shapes = (shape for module in _parts(proto, _MODULE) for shape in _parts(module, _SHAPE_OF_PROGRAM))
        return tuple(_shape(each) for shape in shapes for each in _parts(shape, _PARAMETER))
    except IndexError:
        return ()


def _shape(proto: bytes) -> str:
    element = next((value for field, value in _fields(proto) if field == _ELEMENT_TYPE and isinstance(value, int)), 0)
    dimensions: list[int] = []
    for field, value in _fields(proto):
        if field == _DIMENSIONS:
            dimensions += [value] if isinstance(value, int) else _varints(value)
    return f"{_ELEMENTS.get(element, '?')}[{','.join(map(str, dimensions))}]"


def _parts(proto: bytes, wanted: int) -> Iterator[bytes]:
    """The messages in a field of a message."""
    return (value for field, value in _fields(proto) if field == wanted and isinstance(value, bytes))


def _fields(proto: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a message that is a varint or has a length.

    Raises:
        IndexError: the message ends in the middle of one.
    """
    at = 0
    while at < len(proto):
        key, at = _varint(proto, at)
        if key & 7 in (_FIXED_64, _FIXED_32):
            at += 8 if key & 7 == _FIXED_64 else 4
            continue
        value, at = _varint(proto, at)
        if key & 7 == _VARINT:
            yield key >> 3, value
        else:
            yield key >> 3, proto[at : at + value]
            at += value
    if at > len(proto):
        raise IndexError


_VARINT, _FIXED_64, _FIXED_32 = 0, 1, 5  # how a field is written


def _varints(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a place, and where it ends.

    Raises:
        IndexError: it has no end.
    """
    value = 0
    for shift in range(0, 64, 7):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise IndexError  # a number has at most ten bytes: this one has no end
