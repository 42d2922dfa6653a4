"""Reads the XLA programs in a trace: which framework op each instruction was made from."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from stepscope import kernels
from stepscope.model import HostTrace, PlaneKind, StatTag, stat_names
from stepscope.vocabulary.xla import split_program

_BYTES_AN_INSTRUCTION = 32  # a lower bound
# Fields of XLA's HloProto, HloModuleProto, ProgramShapeProto and ShapeProto.
_MODULE, _SHAPE_OF_PROGRAM, _PARAMETER, _ELEMENT_TYPE, _DIMENSIONS = 1, 4, 1, 2, 3
_ELEMENTS = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 15: "c64", 16: "bf16", 18: "c128",
}  # fmt: skip


class Programs:
    """Looks up the framework op of an XLA instruction.

    Args:
        protos: serialized programs by module name, such as `jit_step(4)`.
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
        """The op as `name:type`, or an empty text if it is unknown; the type may be empty."""
        return self._ops_of(program_id, module).get(instruction, "")

    def framework_ops(self, program_id: int, module: str) -> Collection[str]:
        """The ops of all instructions of a program, including those inside fusions, as `framework_op` returns them."""
        return self._ops_of(program_id, module).values()

    def _ops_of(self, program_id: int, module: str) -> dict[str, str]:
        proto = self._protos.get(program_id) or self._protos.get(module)
        if proto is None:
            return {}
        if proto not in self._ops:
            self._ops[proto] = _read_ops(proto)
        return self._ops[proto]

    def parameters(self, module: str) -> list[tuple[str, ...]]:
        """Parameter shapes, such as `f32[32,128]`, of each program with this module name, in the order of program
        numbers.  Programs without shapes are left out."""
        found = (_read_parameters(self._protos[number]) for number in sorted(self._ids.get(module, ())))
        return [shapes for shapes in found if shapes]


def xla_programs(trace: HostTrace) -> Programs:
    """The programs of a trace, read on first use."""
    return trace.derived("programs", _read_programs)


def _read_programs(trace: HostTrace) -> Programs:
    stats, types = trace.type_stats, trace.event_types
    wanted = [row for row in map(trace.strings.find, stat_names.HLO_PROTO) if row > 0]
    rows = np.flatnonzero(np.isin(stats.name, wanted) & (stats.tag == StatTag.BYTES))
    owners = np.searchsorted(stats.offsets, rows, side="right") - 1
    metadata = trace.planes.kind[types.plane[owners]] == PlaneKind.METADATA
    pairs = zip(owners[metadata].tolist(), stats.value[rows[metadata]].tolist(), strict=True)
    return Programs({trace.strings[types.name[owner]]: trace.strings.raw(value) for owner, value in pairs})


def _read_ops(proto: bytes) -> dict[str, str]:
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


def _read_parameters(proto: bytes) -> tuple[str, ...]:
    """The shapes of a serialized program's parameters; empty if the program is damaged."""
    try:
        shapes = (shape for module in _submessages(proto, _MODULE) for shape in _submessages(module, _SHAPE_OF_PROGRAM))
        return tuple(_read_shape(each) for shape in shapes for each in _submessages(shape, _PARAMETER))
    except IndexError:
        return ()


def _read_shape(proto: bytes) -> str:
    element = next(
        (value for field, value in _read_fields(proto) if field == _ELEMENT_TYPE and isinstance(value, int)), 0
    )
    dimensions: list[int] = []
    for field, value in _read_fields(proto):
        if field == _DIMENSIONS:
            dimensions += [value] if isinstance(value, int) else _read_varints(value)
    return f"{_ELEMENTS.get(element, '?')}[{','.join(map(str, dimensions))}]"


def _submessages(proto: bytes, wanted: int) -> Iterator[bytes]:
    """The messages in field `wanted` of a message."""
    return (value for field, value in _read_fields(proto) if field == wanted and isinstance(value, bytes))


def _read_fields(proto: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each varint and length-delimited field of a message.

    Raises:
        IndexError: the message ends in the middle of a field.
    """
    at = 0
    while at < len(proto):
        key, at = _read_varint(proto, at)
        if key & 7 in (_FIXED_64, _FIXED_32):
            at += 8 if key & 7 == _FIXED_64 else 4
            continue
        value, at = _read_varint(proto, at)
        if key & 7 == _VARINT:
            yield key >> 3, value
        else:
            yield key >> 3, proto[at : at + value]
            at += value
    if at > len(proto):
        raise IndexError


_VARINT, _FIXED_64, _FIXED_32 = 0, 1, 5  # wire types


def _read_varints(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _read_varint(data, at)
        found.append(value)
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that starts at `at`, and the offset after it.

    Raises:
        IndexError: the number is not terminated.
    """
    value = 0
    for shift in range(0, 64, 7):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise IndexError  # a varint has at most ten bytes
