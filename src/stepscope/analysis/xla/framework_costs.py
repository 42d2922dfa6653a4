"""What ops of PyTorch and TensorFlow cost, by the shapes of their inputs.

Sizes are those of the inputs as recorded; m, n, k are a product's sizes, b its batch.

| op | operations | bytes |
| --- | --- | --- |
| `mm`, `addmm`, `bmm`, `baddbmm`, `linear`, TensorFlow's `MatMul` | 2 b m n k | inputs and result |
| attention | 4 b h q k d; its gradient 2.5 times that; all pairs, whatever the mask | queries, keys, values, result |
| convolution | 2 for each element of the result and of a filter | inputs and result |
| gradient of a convolution | the same for each gradient that it computes | inputs and these gradients |
| element by element | 1 an element of the result | inputs and result |
| softmax | 5 an element, its gradient 4 | inputs and result |
| batch, layer and group norm | 7 an element, the gradient 9 | inputs and result |
| sums, means, pooling | 1 an element of the input | the input |
| copies, `cat` | none | read and written once |

The result of a convolution whose stride was not recorded, and what else its gradient does not name, is that of the same
convolution elsewhere in the trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from stepscope.vocabulary.computing_ops import (
    ATTENTION,
    COMPARES,
    CONVOLUTION_GRADIENTS,
    CONVOLUTIONS,
    COPIES,
    COPIES_WITH_ONE_INPUT,
    GRADIENT_OF_INPUT,
    GRADIENT_OF_KERNEL,
    ONE_OPERAND,
    PADDING_FIRST,
    PER_ELEMENT,
    POINTWISE,
    PRODUCTS,
    THREE_OPERANDS,
    element_bytes,
    shapes_in_annotation,
    strip_library,
    xla_type,
)

Shape = list[int]


class Cost(NamedTuple):
    """What one run costs; unknown is None.  `precision` is named as XLA does."""

    flops: float | None
    bytes: float | None
    precision: str
    matrix: bool


UNKNOWN = Cost(None, None, "", False)


class Convolutions:
    """The sizes of image, gradient and kernel of each convolution whose whole gradient a trace records.

    The gradient has the sizes of the result; where two of the three are known, so is the third, unless convolutions
    differ in nothing else.
    """

    def __init__(self, gradients: Iterable[tuple[str, str]] = ()) -> None:
        """Takes the names of ops and the sizes of their inputs, as the profiler writes them."""
        self._thirds: dict[tuple[int, str, str], set[str]] = {}
        for op, dims in gradients:
            shapes, places = _parsed(dims), CONVOLUTION_GRADIENTS.get(strip_library(op))
            if places and isinstance(shapes, list) and len(shapes) > max(places):
                self._note([json.dumps(shapes[at]) for at in places])

    def _note(self, sizes: list[str]) -> None:
        for at in range(len(sizes)):
            one, other = (size for place, size in enumerate(sizes) if place != at)
            self._thirds.setdefault((at, one, other), set()).add(sizes[at])

    def missing(self, at: int, one: Shape, other: Shape) -> Shape | None:
        """Image (0), gradient (1) or kernel (2), by the sizes of the two others in this order."""
        found = self._thirds.get((at, json.dumps(one), json.dumps(other)), set())
        return _sizes(_parsed(next(iter(found)))) if len(found) == 1 else None


_NONE_KNOWN = Convolutions()


@lru_cache(maxsize=65536)
def torch_cost(op: str, dims: str, types: str, concrete: str = "", known: Convolutions = _NONE_KNOWN) -> Cost:
    """What a PyTorch op costs.

    Args:
        op: its name, such as `aten::mm`.
        dims, types, concrete: its inputs' sizes, types and values, as the profiler writes them.
        known: the convolutions of the trace.
    """
    shapes, names, values = (_parsed(text) for text in (dims, types, concrete))
    if not isinstance(shapes, list) or not isinstance(names, list):
        return UNKNOWN
    name = strip_library(op)
    try:
        return _cost(name, shapes, [str(each) for each in names], values if isinstance(values, list) else [], known)
    except (IndexError, TypeError, ValueError, OverflowError):
        return UNKNOWN


def _cost(name: str, shapes: list[Any], types: list[str], values: list[Any], known: Convolutions) -> Cost:
    attention = ATTENTION.fullmatch(name)
    if attention:
        return _attention(shapes, types, name, attention["pass"] == "_backward" or name.endswith("_backward"))
    if name in PRODUCTS:
        return _product(name, shapes, types)
    if name == "convolution_backward":
        return _convolution_gradients(shapes, types, values)
    if name in GRADIENT_OF_INPUT:
        gradient, kernel = _sizes(shapes[1]), _sizes(shapes[2])
        return _convolution(prod(gradient), kernel, types[1], prod(known.missing(0, gradient, kernel) or [0]))
    if name in GRADIENT_OF_KERNEL:
        gradient, image = _sizes(shapes[1]), _sizes(shapes[2])
        found = known.missing(2, image, gradient)
        return _convolution(prod(gradient), found, types[1], prod(image)) if found else UNKNOWN
    if name in CONVOLUTIONS:
        return _forward_convolution(name, shapes, types, values, known)
    if name in COPIES:
        return _copy(name, shapes, types)
    if name in PER_ELEMENT:
        return _per_element(shapes, types, *PER_ELEMENT[name])
    count = 1 if ONE_OPERAND.fullmatch(name) else 3 if THREE_OPERANDS.fullmatch(name) else 2
    return _pointwise(name, shapes[:count], types[:count])  # behind them stands the tensor of `out=`, which is written


def tensorflow_cost(op_type: str, shapes_text: str) -> Cost:
    """What a TensorFlow op costs, by its type and the shapes in its annotation: `(half[8,4];half[4])`."""
    found = shapes_in_annotation(shapes_text)
    types, shapes = [name for name, _ in found], [dims for _, dims in found]
    if op_type == "MatMul" and len(shapes) == 2:
        return _tensorflow_product(shapes, types)
    return _pointwise(op_type, shapes, types)


def _tensorflow_product(shapes: list[Shape], types: list[str]) -> Cost:
    """Transposes are not recorded: the dimension summed over is known if the operands share exactly one size."""
    left, right = shapes
    if len(left) != 2 or len(right) != 2:
        return UNKNOWN
    rest = {prod(left) * prod(right) // (size * size) * size for size in set(left) & set(right) if size}
    if len(rest) != 1:
        return UNKNOWN
    (volume,) = rest
    summed = next(size for size in left if size and prod(left) * prod(right) // size == volume)
    out = volume // summed
    width = element_bytes(types[0])
    nbytes = None if width is None else float(width * (prod(left) + prod(right) + out))
    return Cost(2.0 * volume, nbytes, xla_type(types[0]), True)


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
    width = element_bytes(types[at])
    sizes = prod(left) + prod(right) + out
    return Cost(2.0 * out * summed, None if width is None else float(width * sizes), xla_type(types[at]), True)


def _attention(shapes: list[Any], types: list[str], name: str, backward: bool) -> Cost:
    at = 1 if backward else 0
    query, key, value = (_sizes(shapes[at + place]) for place in range(3))
    heads_first = "scaled_dot_product" in name
    if len(query) != 4 or len(key) != 4:
        return UNKNOWN
    batch, heads, rows = (query[0], query[1], query[2]) if heads_first else (query[0], query[2], query[1])
    columns = key[2] if heads_first else key[1]
    flops = 2.0 * batch * heads * rows * columns * (query[3] + value[-1])
    width = element_bytes(types[at])
    sizes = 2 * prod(query) + prod(key) + prod(value)
    nbytes = None if width is None else float(width * sizes * (2 if backward else 1))
    return Cost(flops * (2.5 if backward else 1), nbytes, xla_type(types[at]), True)


def _convolution(out: int, kernel: Shape, type_name: str, image: int, times: int = 1) -> Cost:
    """A convolution with a result of so many elements, counted as often as it computes something of that size."""
    width = element_bytes(type_name)
    nbytes = None if width is None or not image else float(width * (out + prod(kernel) + image))
    return Cost(2.0 * out * prod(kernel[1:]) * times, nbytes, xla_type(type_name), True)


def _convolution_gradients(shapes: list[Any], types: list[str], values: list[Any]) -> Cost:
    gradient, image, kernel = (_sizes(shapes[at]) for at in range(3))
    wanted = _parsed(str(values[-1]).lower()) if values else None
    times = sum(bool(each) for each in wanted[:2]) if isinstance(wanted, list) else 2
    return _convolution(prod(gradient), kernel, types[0], prod(image), times)


def _forward_convolution(
    name: str, shapes: list[Any], types: list[str], values: list[Any], known: Convolutions
) -> Cost:
    image, kernel = _sizes(shapes[0]), _sizes(shapes[1])
    if not values:
        result = known.missing(1, image, kernel)
        return _convolution(prod(result), kernel, types[0], prod(image)) if result else UNKNOWN
    start = 2 if name == "cudnn_convolution" else 3
    first, second, dilation = (_parsed(str(values[at])) for at in range(start, start + 3))
    padding, stride = (first, second) if name in PADDING_FIRST else (second, first)
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
        (prod(_sizes(shape)), element_bytes(type_name))
        for shape, type_name in zip(shapes[:2], types[:2], strict=False)
        if isinstance(shape, list) and shape
    ]
    if not sizes or any(width is None for _, width in sizes):
        return UNKNOWN
    nbytes = sum(count * (width or 0) for count, width in sizes)
    only_one = name in COPIES_WITH_ONE_INPUT
    return Cost(0.0, float(2 * nbytes if only_one else nbytes), xla_type(types[0]), False)


def _pointwise(name: str, shapes: list[Any], types: list[str]) -> Cost:
    if not POINTWISE.fullmatch(name):
        return UNKNOWN
    arrays = [
        (_sizes(shape), type_name)
        for shape, type_name in zip(shapes, types, strict=False)
        if element_bytes(type_name) is not None
    ]
    arrays = [(shape, type_name) for shape, type_name in arrays if shape]
    if not arrays:
        return UNKNOWN
    out = prod(_broadcast([shape for shape, _ in arrays]))
    widest = 1 if COMPARES.fullmatch(name) else max(element_bytes(type_name) or 0 for _, type_name in arrays)
    read = sum(prod(shape) * (element_bytes(type_name) or 0) for shape, type_name in arrays)
    return Cost(float(out), float(read + out * widest), xla_type(arrays[0][1]), False)


def _per_element(shapes: list[Any], types: list[str], operations: int, at: int, arrays: int) -> Cost:
    count, width = prod(_sizes(shapes[at])), element_bytes(types[at])
    nbytes = None if width is None else float(arrays * count * width)
    return Cost(float(operations * count), nbytes, xla_type(types[at]), False)


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
