"""Writes serialized XLA programs field by field, so that a test shows the instructions it is about.

    program("jit_f(1)", computation("main", parameter("x", f32(2, 3)), op("dot.1", "dot", f32(2, 4), "x", "w", ...)))

Instructions refer to each other by name, computations too.  This knows nothing of Stepscope's own reader.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xspace_build import number, text, varint

F32, BF16, S32, U8, TUPLE = 11, 16, 4, 6, 13


@dataclass(frozen=True)
class Op:
    """One instruction; `extra` holds further fields as they are written."""

    name: str
    opcode: str
    shape: bytes
    operands: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    extra: bytes = b""


@dataclass(frozen=True)
class Computation:
    """Instructions by name; the last is the root."""

    name: str
    ops: tuple[Op, ...] = field(default_factory=tuple)


def array(element_type: int, *dims: int, layout: bytes = b"") -> bytes:
    """The shape of an array."""
    packed = b"".join(varint(dim) for dim in dims)
    order = text(1, b"".join(varint(dim) for dim in reversed(range(len(dims))))) if dims else b""
    return number(2, element_type) + (text(3, packed) if dims else b"") + text(5, layout or order)


def f32(*dims: int) -> bytes:
    """The shape of an array in single precision."""
    return array(F32, *dims)


def bf16(*dims: int) -> bytes:
    """The shape of an array of bf16."""
    return array(BF16, *dims)


def tuple_of(*shapes: bytes) -> bytes:
    """The shape of a tuple."""
    return number(2, TUPLE) + b"".join(text(4, shape) for shape in shapes)


def op(name: str, opcode: str, shape: bytes, *operands: str, calls: tuple[str, ...] = (), extra: bytes = b"") -> Op:
    """An instruction."""
    return Op(name, opcode, shape, operands, calls, extra)


def parameter(name: str, shape: bytes, place: int = 0) -> Op:
    """A parameter of its computation."""
    return Op(name, "parameter", shape, extra=number(9, place))


def fusion(name: str, shape: bytes, *operands: str, calls: str, kind: str = "kLoop", extra: bytes = b"") -> Op:
    """A fusion."""
    return Op(name, "fusion", shape, operands, (calls,), text(11, kind) + extra)


def metadata(op_name: str, file: str = "", line: int = 0, op_type: str = "") -> bytes:
    """Where an instruction comes from."""
    return text(7, text(1, op_type) + text(2, op_name) + text(3, file) + number(4, line))


def axes(*dims: int) -> bytes:
    """The axes that a broadcast has from its operand, or that a reduce sums over."""
    return b"".join(number(14, dim) for dim in dims)


def contracting(*lhs: int) -> bytes:
    """The dimensions of the left operand that a dot sums over."""
    return text(30, text(1, b"".join(varint(dim) for dim in lhs)))


def window(*dims: tuple[int, int, int, int, int, int]) -> bytes:
    """A window: size, stride, padding low and high, window and base dilation of each dimension."""
    numbers = (1, 2, 3, 4, 5, 6)
    return text(15, b"".join(text(1, b"".join(map(number, numbers, dim))) for dim in dims))


def nhwc() -> bytes:
    """The dimension numbers of a convolution of images NHWC with kernels HWIO."""
    spatial = lambda field, *dims: text(field, b"".join(varint(dim) for dim in dims))  # noqa: E731
    plain = ((3, 2), (4, 3), (7, 0), (8, 3), (9, 0), (10, 3))
    return text(
        16, b"".join(number(*pair) for pair in plain) + spatial(6, 0, 1) + spatial(11, 1, 2) + spatial(12, 1, 2)
    )


def computation(name: str, *ops: Op) -> Computation:
    """A computation."""
    return Computation(name, ops)


def program(*computations: Computation, name: str = "jit_f", assignment: bytes = b"", schedule: bytes = b"") -> bytes:
    """A serialized HloProto; the last computation is the one that runs first."""
    places = {each.name: at + 1 for at, each in enumerate(computations)}
    parts = [text(1, name), text(2, computations[-1].name), number(6, len(computations))]
    parts += [text(3, _computation(each, at + 1, places)) for at, each in enumerate(computations)]
    return text(1, b"".join(parts) + schedule) + (text(3, assignment) if assignment else b"")


def instruction_id(computation_place: int, place: int) -> int:
    """The id that `program` gives an instruction: both places count from 0."""
    return ((computation_place + 1) << 32) | (place + 1)


def _computation(each: Computation, number_of: int, places: dict[str, int]) -> bytes:
    ids = {one.name: (number_of << 32) | (at + 1) for at, one in enumerate(each.ops)}
    instructions = b"".join(text(2, _instruction(one, ids, places)) for one in each.ops)
    root = number(6, ids[each.ops[-1].name]) if each.ops else b""
    return text(1, each.name) + instructions + number(5, number_of) + root


def _instruction(one: Op, ids: dict[str, int], places: dict[str, int]) -> bytes:
    operands = b"".join(varint(ids.get(name, 10**9)) for name in one.operands)
    calls = b"".join(varint(places.get(name, 10**6)) for name in one.calls)
    head = text(1, one.name) + text(2, one.opcode) + text(3, one.shape) + number(35, ids[one.name])
    return head + text(36, operands) + text(38, calls) + one.extra
