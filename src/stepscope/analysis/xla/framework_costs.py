"""What ops of PyTorch and TensorFlow cost, by the shapes of their inputs.

Sizes are those of the inputs as recorded; m, n, k are a product's sizes, b its batch.

| op | operations | bytes |
| --- | --- | --- |
| `mm`, `addmm`, `bmm`, `baddbmm`, `linear`, TensorFlow's `MatMul` | 2 b m n k | inputs and result |
| attention | 4 b h q k d; its gradient 2.5 times that; all pairs, whatever the mask | queries, keys, values, result |
| convolution | 2 for each element of the result and of a filter | inputs and result |
| gradient of a convolution | the same for each gradient that it computes | inputs and these gradients |
| element by element | 1 an element of the result | inputs and result |
| copies, `cat` | none | read and written once |
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

Shape = list[int]

_BYTES = {
    "float": 4, "double": 8, "c10::half": 2, "c10::bfloat16": 2, "half": 2, "bfloat16": 2, "long": 8, "long int": 8,
    "int": 4, "short": 2, "bool": 1, "unsigned char": 1, "signed char": 1, "float32": 4, "float64": 8, "float16": 2,
    "int32": 4, "int64": 8, "uint8": 1, "int8": 1, "c10::float8_e4m3fn": 1, "c10::float8_e5m2": 1,
    "c10::float8_e4m3fnuz": 1, "c10::float8_e5m2fnuz": 1,
}  # fmt: skip
_XLA_NAMES = {
    "float": "f32", "double": "f64", "c10::half": "f16", "half": "f16", "c10::bfloat16": "bf16", "bfloat16": "bf16",
    "float32": "f32", "float64": "f64", "float16": "f16", "signed char": "s8", "int8": "s8", "unsigned char": "u8",
}  # fmt: skip
_POINTWISE = re.compile(
    r"(?:add|sub|rsub|mul|div|pow|neg|abs|sqrt|rsqrt|exp|log|tanh|sigmoid|relu|gelu|silu|clamp|clamp_min|maximum|minimum"
    r"|eq|ne|lt|le|gt|ge|where|masked_fill|addcmul|addcdiv|lerp|bitwise_\w+|logical_\w+|threshold|hardtanh|leaky_relu"
    r"|sin|cos|erf|reciprocal|square|threshold_backward|gelu_backward|silu_backward|tanh_backward|sigmoid_backward"
    r"|AddV2|Add|Sub|Mul|RealDiv|Maximum|Minimum|Relu|ReluGrad|Sqrt|Rsqrt|Square|Exp|Tanh|Sigmoid|AddN|BiasAdd"
    r"|Greater|GreaterEqual|Less|LessEqual|Equal|NotEqual|LogicalAnd|LogicalOr|LogicalNot)_?"
)
_COMPARES = re.compile(r"(?:eq|ne|lt|le|gt|ge|logical_\w+|Greater\w*|Less\w*|\w*Equal|Logical\w+)_?")
_ATTENTION = re.compile(r"_?(?:flash|efficient|scaled_dot_product_\w+)_?attention(?P<pass>_forward|_backward)?")
_PADDING_FIRST = ("cudnn_convolution", "miopen_convolution", "mkldnn_convolution", "miopen_depthwise_convolution")
_TF_SHAPE = re.compile(r"(?P<type>[a-z]+\d*)\[(?P<dims>[\d,]*)\]")


class Cost(NamedTuple):
    """What one run costs; unknown is None.  `precision` is named as XLA does."""

    flops: float | None
    bytes: float | None
    precision: str
    matrix: bool


UNKNOWN = Cost(None, None, "", False)


@lru_cache(maxsize=65536)
def torch_cost(op: str, dims: str, types: str, concrete: str = "") -> Cost:
    """What a PyTorch op costs.

    Args:
        op: its name, such as `aten::mm`.
        dims, types, concrete: its inputs' sizes, types and values, as the profiler writes them.
    """
    shapes, names, values = (_parsed(text) for text in (dims, types, concrete))
    if not isinstance(shapes, list) or not isinstance(names, list):
        return UNKNOWN
    name = op.rpartition("::")[2]
    try:
        return _cost(name, shapes, [str(each) for each in names], values if isinstance(values, list) else [])
    except (IndexError, TypeError, ValueError, OverflowError):
        return UNKNOWN


def _cost(name: str, shapes: list[Any], types: list[str], values: list[Any]) -> Cost:
    attention = _ATTENTION.fullmatch(name)
    if attention:
        return _attention(shapes, types, name, attention["pass"] == "_backward" or name.endswith("_backward"))
    if name in ("mm", "addmm", "bmm", "baddbmm", "linear", "_addmm_activation"):
        return _product(name, shapes, types)
    if name == "convolution_backward":
        return _convolution_gradients(shapes, types, values)
    if name in ("cudnn_convolution_backward_input", "miopen_convolution_backward_input"):
        return _convolution(prod(_sizes(shapes[1])), _sizes(shapes[2]), types[1], 0)
    if name in ("convolution", "_convolution", "conv2d", "conv1d", "conv3d", *_PADDING_FIRST):
        return _forward_convolution(name, shapes, types, values)
    if name in ("copy_", "cat", "_to_copy", "clone", "contiguous", "fill_", "zero_"):
        return _copy(name, shapes, types)
    return _pointwise(name, shapes, types)


def tensorflow_cost(op_type: str, shapes_text: str) -> Cost:
    """What a TensorFlow op costs, by its type and the shapes that its annotation tells: `(half[8,4];half[4])`."""
    found = [
        (match["type"], [int(size) for size in match["dims"].split(",") if size])
        for match in _TF_SHAPE.finditer(shapes_text)
    ]
    types, shapes = [name for name, _ in found], [dims for _, dims in found]
    if op_type == "MatMul" and len(shapes) == 2:
        return _tensorflow_product(shapes, types)
    return _pointwise(op_type, shapes, types)


def _tensorflow_product(shapes: list[Shape], types: list[str]) -> Cost:
    """Which dimension is summed over is known if the operands share one size alone, since transposes are not told."""
    left, right = shapes
    if len(left) != 2 or len(right) != 2:
        return UNKNOWN
    rest = {prod(left) * prod(right) // (size * size) * size for size in set(left) & set(right) if size}
    if len(rest) != 1:
        return UNKNOWN
    (volume,) = rest
    summed = next(size for size in left if size and prod(left) * prod(right) // size == volume)
    out = volume // summed
    width = _width(types[0])
    nbytes = None if width is None else float(width * (prod(left) + prod(right) + out))
    return Cost(2.0 * volume, nbytes, _precision(types[0]), True)


# -- the kinds of ops ------------------------------------------------------------------------------------------------


def _product(name: str, shapes: list[Any], types: list[str]) -> Cost:
    at = 1 if "add" in name else 0
    left, right = _sizes(shapes[at]), _sizes(shapes[at + 1])
    if name == "linear":
        right = right[::-1]
    *batch, rows, summed = left if len(left) > 1 else [1, *left]
    if summed != right[-2]:
        return UNKNOWN
    out = prod(batch) * rows * right[-1]
    width = _width(types[at])
    sizes = prod(left) + prod(right) + out
    return Cost(2.0 * out * summed, None if width is None else float(width * sizes), _precision(types[at]), True)


def _attention(shapes: list[Any], types: list[str], name: str, backward: bool) -> Cost:
    at = 1 if backward else 0
    query, key, value = (_sizes(shapes[at + place]) for place in range(3))
    heads_first = "scaled_dot_product" in name
    if len(query) != 4 or len(key) != 4:
        return UNKNOWN
    batch, heads, rows = (query[0], query[1], query[2]) if heads_first else (query[0], query[2], query[1])
    columns = key[2] if heads_first else key[1]
    flops = 2.0 * batch * heads * rows * columns * (query[3] + value[-1])
    width = _width(types[at])
    sizes = 2 * prod(query) + prod(key) + prod(value)
    nbytes = None if width is None else float(width * sizes * (2 if backward else 1))
    return Cost(flops * (2.5 if backward else 1), nbytes, _precision(types[at]), True)


def _convolution(out: int, kernel: Shape, type_name: str, image: int, times: int = 1) -> Cost:
    """A convolution with a result of so many elements, counted as often as it computes something of that size."""
    width = _width(type_name)
    nbytes = None if width is None or not image else float(width * (out + prod(kernel) + image))
    return Cost(2.0 * out * prod(kernel[1:]) * times, nbytes, _precision(type_name), True)


def _convolution_gradients(shapes: list[Any], types: list[str], values: list[Any]) -> Cost:
    gradient, image, kernel = (_sizes(shapes[at]) for at in range(3))
    wanted = _parsed(str(values[-1]).lower()) if values else None
    times = sum(bool(each) for each in wanted[:2]) if isinstance(wanted, list) else 2
    return _convolution(prod(gradient), kernel, types[0], prod(image), times)


def _forward_convolution(name: str, shapes: list[Any], types: list[str], values: list[Any]) -> Cost:
    image, kernel = _sizes(shapes[0]), _sizes(shapes[1])
    start = 2 if name == "cudnn_convolution" else 3
    first, second, dilation = (_parsed(str(values[at])) for at in range(start, start + 3))
    padding, stride = (first, second) if name in _PADDING_FIRST else (second, first)
    if name in ("convolution", "_convolution") and str(values[start + 3]).lower() == "true":
        return UNKNOWN  # transposed: its result is larger than its input
    out = []
    for at, size in enumerate(image[2:]):
        step, around, apart = (each[at if len(each) > 1 else 0] for each in (stride, padding, dilation))
        out.append((size + 2 * around - apart * (kernel[2 + at] - 1) - 1) // step + 1)
    return _convolution(image[0] * kernel[0] * prod(out), kernel, types[0], prod(image))


def _copy(name: str, shapes: list[Any], types: list[str]) -> Cost:
    if name == "cat":
        listed = shapes[0] if shapes and shapes[0] and isinstance(shapes[0][0], list) else []
        return Cost(0.0, None, "", False) if not listed else UNKNOWN
    sizes = [
        (prod(_sizes(shape)), _width(type_name))
        for shape, type_name in zip(shapes[:2], types[:2], strict=False)
        if isinstance(shape, list) and shape
    ]
    if not sizes or any(width is None for _, width in sizes):
        return UNKNOWN
    nbytes = sum(count * (width or 0) for count, width in sizes)
    only_one = name in ("_to_copy", "clone", "contiguous")
    return Cost(0.0, float(2 * nbytes if only_one else nbytes), _precision(types[0]), False)


def _pointwise(name: str, shapes: list[Any], types: list[str]) -> Cost:
    if not _POINTWISE.fullmatch(name):
        return UNKNOWN
    arrays = [
        (_sizes(shape), type_name)
        for shape, type_name in zip(shapes, types, strict=False)
        if type_name.lower() in _BYTES
    ]
    arrays = [(shape, type_name) for shape, type_name in arrays if shape]
    if not arrays:
        return UNKNOWN
    out = prod(_broadcast([shape for shape, _ in arrays]))
    widest = 1 if _COMPARES.fullmatch(name) else max(_width(type_name) or 0 for _, type_name in arrays)
    read = sum(prod(shape) * (_width(type_name) or 0) for shape, type_name in arrays)
    return Cost(float(out), float(read + out * widest), _precision(arrays[0][1]), False)


def _broadcast(shapes: list[Shape]) -> Shape:
    rank = max(len(shape) for shape in shapes)
    padded = [[1] * (rank - len(shape)) + shape for shape in shapes]
    return [0 if 0 in column else max(column) for column in zip(*padded, strict=True)]


# -- reading ---------------------------------------------------------------------------------------------------------


def _sizes(value: Any) -> Shape:
    """The dimensions of one input.  Raises TypeError if they are none."""
    if not isinstance(value, list) or any(not isinstance(size, int) or size < 0 for size in value):
        raise TypeError("no dimensions")
    return value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def _width(type_name: str) -> int | None:
    return _BYTES.get(type_name.lower())


def _precision(type_name: str) -> str:
    lower = type_name.lower()
    return _XLA_NAMES.get(lower, "f8e4m3fn" if "float8" in lower else lower)
