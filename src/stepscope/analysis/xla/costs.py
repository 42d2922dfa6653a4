"""What an instruction costs: floating-point operations and bytes of memory, from shapes alone.

The rules are those of XLA's own cost analysis, so that figures can be compared:

- a dot counts two operations for each element of the result and each element that is summed up for it; a convolution
  the same, without positions of the window that lie in the padding;
- arithmetic element by element counts one operation an element; a transcendental function (`exp`, `tanh`) counts none;
- a reduction counts its function once for each element that it takes away;
- a fusion counts what is inside; its memory is what it reads of its parameters, of which a slice reads a part, and what
  it writes;
- a loop, a condition and a call count nothing: the ops they run are counted on their own;
- a custom call is counted where it is known to be a matrix product, a convolution or attention, and unknown elsewhere.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from stepscope.analysis.hlo.fields import fields_of
from stepscope.analysis.hlo.module import CONVOLUTION, DOT, FFT_LENGTH, WINDOW, Module
from stepscope.analysis.hlo.programs import Programs
from stepscope.model.arrays import F64, I64, Mask
from stepscope.records import dataclass
from stepscope.vocabulary import custom_calls
from stepscope.vocabulary.custom_calls import attention_sizes, kind_of_call, product_dimensions

# ---- Operations of custom calls that are known: ----------------------------------------------------------------------
# matrix products and convolutions of libraries, and fused attention.


def custom_flops(module: Module, row: int) -> float | None:
    """Operations of a custom call; None if it is unknown what it computes."""
    kind = kind_of_call(module.target_of(row))
    if kind == custom_calls.CONVOLUTION:
        return _convolution(module, row)
    if kind == custom_calls.PRODUCT:
        return _product(module, row)
    if kind in (custom_calls.ATTENTION, custom_calls.ATTENTION_GRADIENT):
        return _attention(module.backend_config_of(row), kind == custom_calls.ATTENTION_GRADIENT)
    return 0.0 if kind == custom_calls.FREE else None


def _convolution(module: Module, row: int) -> float | None:
    if not len(module.part_of(row, CONVOLUTION).number):
        return None
    found = convolution_flops(module, row)
    return None if np.isnan(found) else found


def _product(module: Module, row: int) -> float | None:
    """2 m n k of each product of a batch, by the dimensions that the backend noted."""
    operands = module.operands.linked(row)
    dimensions = product_dimensions(_parsed(module.backend_config_of(row)))
    if len(operands) < 2 or not isinstance(dimensions, dict):
        return None
    shapes = module.shapes
    out = shapes.leaf(row, [0]) if shapes.children_of(row) else row
    left = shapes.dims_of(operands[0])
    try:
        summed = [left[int(at)] for at in dimensions.get("lhs_contracting_dimensions", ())]
    except (IndexError, ValueError, TypeError):
        return None
    return 2.0 * float(shapes.elements[out]) * float(np.prod(summed, dtype=np.float64))


def _attention(config: str, backward: bool) -> float | None:
    """Both products of attention, or all five of its gradient, over all pairs of a query and a key: a mask may spare
    the kernel a part of them."""
    sizes = attention_sizes(config)
    if sizes is None:
        return None
    width, value_width = sizes["width"], sizes["value_width"]
    return 2.0 * sizes["pairs"] * (3 * width + 2 * value_width if backward else width + value_width)


def has_scratch(module: Module, row: int) -> bool:
    """Whether the last result of a custom call is memory that the library works in, and no result."""
    children = module.shapes.children_of(row)
    is_known = kind_of_call(module.target_of(row)) not in ("", custom_calls.FREE)
    return is_known and len(children) > 1 and module.shapes.type_name(children[-1]) in ("u8", "s8")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# ---- costs -----------------------------------------------------------------------------------------------------------


_ELEMENTWISE = (
    "abs", "add", "and", "ceil", "clamp", "clz", "compare", "complex", "convert", "count-leading-zeros", "divide",
    "floor", "imag", "is-finite", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "real",
    "reduce-precision", "remainder", "round-nearest-afz", "round-nearest-even", "select", "shift-left",
    "shift-right-arithmetic", "shift-right-logical", "sign", "stochastic-convert", "subtract", "xor",
)  # fmt: skip
_MOVES_NOTHING = (
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "opt-barrier",
    "while", "conditional", "call", "partition-id", "replica-id", "domain", "get-dimension-size", "copy-done",
    "all-reduce-done", "all-gather-done", "collective-permute-done", "async-done", "async-update", "send-done",
    "recv-done",
)  # fmt: skip
_SLICES = ("slice", "dynamic-slice", "gather")
_DEEPEST_CALLS = 64  # functions that call functions; more is a circle
_LHS_CONTRACTING = 1


@dataclass(frozen=True)
class Costs:
    """What one run of each instruction costs.

    Attributes:
        flops: float64 of shape (instructions,), NaN where unknown.
        nbytes: float64 of shape (instructions,), NaN where unknown.
        matrix: int64 of shape (instructions,), row of the dot or convolution that most operations of an instruction
            belong to, in whichever computation; -1 if it has none.
    """

    flops: F64
    nbytes: F64
    matrix: I64


def program_costs(programs: Programs, place: int) -> Costs:
    """The costs of a program, computed once."""
    return programs.derived(place, "costs", costs_of)


def costs_of(module: Module) -> Costs:
    """The costs of all instructions of a program, those inside fusions too."""
    own = _count_own_flops(module)
    flops = _add_called_flops(module, own)
    nbytes = _count_bytes(module)
    return Costs(flops, nbytes, _find_matrix_rows(module, own))


# -- operations ------------------------------------------------------------------------------------------------------


def _count_own_flops(module: Module) -> F64:
    """Operations of each instruction without those of the computations that it calls."""
    elements = module.shapes.elements[: len(module)].astype(np.float64)
    flops = np.zeros(len(module), np.float64)
    counted = module.is_opcode(*_ELEMENTWISE, "all-reduce", "all-reduce-start", "reduce-scatter")
    flops[counted] = elements[counted]
    _count_dots(module, elements, flops)
    for row in np.flatnonzero(module.is_opcode("convolution")).tolist():
        flops[row] = convolution_flops(module, row)
    for row in np.flatnonzero(module.is_opcode("custom-call")).tolist():
        known = custom_flops(module, row)
        flops[row] = np.nan if known is None else known
    for row in np.flatnonzero(module.is_opcode("sort", "fft", "cholesky", "triangular-solve")).tolist():
        flops[row] = _count_rare_flops(module, row)
    return flops


def _count_dots(module: Module, elements: F64, flops: F64) -> None:
    rows = np.flatnonzero(module.is_opcode("dot"))
    offsets, places = fields_of(module.buf, *module.fields_of(rows).range(DOT)).numbers(_LHS_CONTRACTING)
    owner = np.repeat(np.arange(len(rows)), np.diff(offsets))
    left = first_operands(module, rows)[owner]
    shapes = module.shapes
    at = shapes.dim_offsets[left] + places
    known = (left >= 0) & (places >= 0) & (at < shapes.dim_offsets[left + 1])
    width = np.ones(len(rows), np.float64)
    np.multiply.at(width, owner[known], shapes.dims[at[known]])
    flops[rows] = 2 * elements[rows] * width


def first_operands(module: Module, rows: I64, place: int = 0) -> I64:
    """An operand of some instructions: int64 of shape (rows,), -1 where there is none."""
    links = module.operands
    if not len(links.rows):
        return np.full(len(rows), -1, np.int64)
    at = links.offsets[rows] + place
    there = at < links.offsets[rows + 1]
    return np.where(there, links.rows[np.where(there, at, 0)], -1)


def convolution_flops(module: Module, row: int) -> float:
    """Operations of a convolution, or of a custom call that is described as one."""
    operands = module.operands.linked(row)
    if len(operands) < 2:
        return float("nan")
    shapes = module.shapes
    out = shapes.leaf(row, [0]) if shapes.children_of(row) else row
    numbers = module.part_of(row, CONVOLUTION)
    windows = module.part_of(row, WINDOW)
    _, starts, stops = windows.ranges(1)
    window = fields_of(module.buf, starts, stops)
    sizes = [window.scalar(field, missing).tolist() for field, missing in _WINDOW_FIELDS]
    names = (_INPUT_SPATIAL, _OUTPUT_SPATIAL)
    spatial_in, spatial_out = (numbers.numbers(field)[1].tolist() for field in names)
    image, kernel, result = (shapes.dims_of(shape) for shape in (operands[0], operands[1], out))
    try:
        positions = 1.0
        for at, (place_in, place_out) in enumerate(zip(spatial_in, spatial_out, strict=True)):
            size = [column[at] for column in sizes]
            positions *= valid_positions(image[place_in], result[place_out], *size)
        features_in = kernel[int(numbers.scalar(_KERNEL_IN)[0])]
        features_out = result[int(numbers.scalar(_OUTPUT_FEATURE)[0])]
        batch = result[int(numbers.scalar(_OUTPUT_BATCH)[0])]
    except (IndexError, ValueError):
        return float("nan")
    return 2.0 * positions * features_in * features_out * batch


_INPUT_SPATIAL, _OUTPUT_SPATIAL = 11, 12
_KERNEL_IN, _OUTPUT_FEATURE, _OUTPUT_BATCH = 3, 10, 9
# Fields of a window's dimension, and what they are where it does not say: size, stride, padding, dilations.
_WINDOW_FIELDS = ((1, 1), (2, 1), (3, 0), (5, 1), (6, 1))


def valid_positions(
    size_in: int, size_out: int, window: int, stride: int, padding: int, window_dilation: int, base_dilation: int
) -> int:
    """Pairs of a position of the result and one of the window that fall on an element, along one dimension.

    >>> valid_positions(size_in=4, size_out=4, window=3, stride=1, padding=1, window_dilation=1, base_dilation=1)
    10
    """
    stride, base_dilation = max(stride, 1), max(base_dilation, 1)
    if not 0 <= size_out <= _LARGEST or not 0 <= window <= _LARGEST:
        raise ValueError("no sizes")
    last = (size_in - 1) * base_dilation
    outs = np.arange(size_out, dtype=np.int64) * stride - padding
    count = 0
    for at in range(window):
        place = outs + at * max(window_dilation, 1)
        inside = (place >= 0) & (place <= last)
        count += int((inside & (place % base_dilation == 0)).sum() if base_dilation > 1 else inside.sum())
    return count


_LARGEST = 1 << 16


def _count_rare_flops(module: Module, row: int) -> float:
    """Operations of a sort, a transform or a solver."""
    operands = module.operands.linked(row)
    if not operands:
        return float("nan")
    shapes, opcode = module.shapes, module.opcode_of(row)
    elements, dims = float(shapes.elements[operands[0]]), shapes.dims_of(operands[0])
    last = float(dims[-1]) if dims else 1.0
    if opcode == "sort":
        length = max(int(elements), 1)
        return elements * (length - 1).bit_length()
    if opcode == "fft":
        sizes: list[int] = module.fields_of(np.array([row])).numbers(FFT_LENGTH)[1].tolist()
        return 8.0 * sum(max(size, 1).bit_length() - 1 for size in sizes) * float(shapes.elements[row])
    if opcode == "cholesky":
        return elements * last / 3
    columns = shapes.dims_of(operands[1]) if len(operands) > 1 else []
    return 2.0 * elements * (columns[-1] if columns else 1)


def _add_called_flops(module: Module, own: F64) -> F64:
    """Operations with those of the computations that are called: a fusion's body once, a reducer once an element."""
    times = _count_calls(module)
    links = module.callees
    counts = (links.rows >= 0) & (times[links.owner] > 0)
    owner, called = links.owner[counts], links.rows[counts]
    flops = own.copy()
    for _ in range(_DEEPEST_CALLS):
        body = np.bincount(module.computation, weights=flops, minlength=len(module.computation_names))
        more = own.copy()
        np.add.at(more, owner, times[owner] * body[called])
        if np.array_equal(more, flops, equal_nan=True):
            return flops
        flops = more
    flops[owner] = np.nan  # functions that call themselves: the number of calls is unknown
    return flops


def _count_calls(module: Module) -> F64:
    """How often each instruction calls its computations; 0 for those whose computations are measured by themselves."""
    times = np.zeros(len(module), np.float64)
    elements = module.shapes.elements
    times[module.is_opcode("fusion", "async-start")] = 1
    mapped = module.is_opcode("map")
    times[mapped] = elements[: len(module)][mapped]
    rows = np.flatnonzero(module.is_opcode("reduce"))
    first = first_operands(module, rows)
    result = np.array([_count_elements(module, row) for row in rows.tolist()], np.float64)
    times[rows] = np.where(first >= 0, np.maximum(elements[first] - result, 0), 0)
    for row in np.flatnonzero(module.is_opcode("reduce-window", "select-and-scatter", "scatter")).tolist():
        times[row] = _count_window_calls(module, row)
    return times


def _count_elements(module: Module, row: int) -> float:
    """Elements of a result; of several results of a reduction, those of one."""
    shapes = module.shapes
    return float(shapes.elements[shapes.leaf(row, [0])])


def _count_window_calls(module: Module, row: int) -> float:
    operands = module.operands.linked(row)
    if module.opcode_of(row) == "scatter":
        return float(module.shapes.elements[operands[-1]]) if operands else 0.0
    _, starts, stops = module.part_of(row, WINDOW).ranges(1)
    size = float(np.prod(fields_of(module.buf, starts, stops).scalar(1, 1).astype(np.float64)))
    if module.opcode_of(row) == "reduce-window":
        return (size - 1) * _count_elements(module, row)
    return size * float(module.shapes.elements[operands[1]]) if len(operands) > 1 else 0.0


def _find_matrix_rows(module: Module, own: F64) -> I64:
    """The dot or convolution that most operations of an instruction belong to."""
    matrix = np.full(len(module), -1, np.int64)
    rows = np.flatnonzero(module.is_opcode("dot", "convolution") | (module.is_opcode("custom-call") & (own > 0)))
    matrix[rows] = rows
    links = module.callees
    bodies = module.is_opcode("fusion", "async-start")
    for _ in range(_DEEPEST_CALLS):
        known = np.flatnonzero(matrix >= 0)
        known = known[np.argsort(np.nan_to_num(own[matrix[known]]), kind="stable")]
        of_computation = np.full(len(module.computation_names), -1, np.int64)
        of_computation[module.computation[known]] = matrix[known]
        at = np.flatnonzero((links.rows >= 0) & bodies[links.owner])
        found = of_computation[links.rows[at]]
        news = (found >= 0) & (matrix[links.owner[at]] != found)
        if not news.any():
            break
        matrix[links.owner[at[news]]] = found[news]
    return matrix


# -- memory ----------------------------------------------------------------------------------------------------------


def _count_bytes(module: Module) -> F64:
    size = module.shapes.nbytes[: len(module)].astype(np.float64)
    links = module.operands
    known = links.rows >= 0
    read = np.bincount(links.owner[known], weights=size[links.rows[known]], minlength=len(module))
    nbytes = size + read
    slices = module.is_opcode(*_SLICES)
    whole = np.zeros(len(module), np.float64)
    rows = np.flatnonzero(slices)
    first = first_operands(module, rows)
    whole[rows] = np.where(first >= 0, size[first], 0)
    nbytes[slices] = 2 * size[slices] + read[slices] - whole[slices]
    updates = np.flatnonzero(module.is_opcode("dynamic-update-slice", "scatter"))
    nbytes[updates] = _count_update_bytes(module, updates, size)
    starts = np.flatnonzero(module.is_opcode("copy-start"))
    nbytes[starts] = 2 * read[starts]
    for row in np.flatnonzero(module.is_opcode("custom-call")).tolist():
        if has_scratch(module, row):
            nbytes[row] -= module.shapes.nbytes[module.shapes.children_of(row)[-1]]
    nbytes[module.is_opcode(*_MOVES_NOTHING)] = 0
    _count_fusion_bytes(module, size, slices, nbytes)
    return nbytes


def _count_update_bytes(module: Module, rows: I64, size: F64) -> F64:
    """What is put into an array is read and written, with its indices; the rest of the array stays where it is."""
    found = np.zeros(len(rows), np.float64)
    for at, row in enumerate(rows.tolist()):
        operands = module.operands.linked(row)
        if module.opcode_of(row) == "scatter":
            arrays = (len(operands) - 1) // 2
            found[at] = 2 * size[operands[arrays + 1 :]].sum() + size[operands[arrays : arrays + 1]].sum()
        elif len(operands) > 1:
            found[at] = 2 * size[operands[1]] + size[operands[2:]].sum()
    return found


def _count_fusion_bytes(module: Module, size: F64, slices: Mask, nbytes: F64) -> None:
    """What fusions read of their parameters and write, in place."""
    read = np.bincount(
        module.computation,
        weights=_count_parameter_reads(module, size, slices),
        minlength=len(module.computation_names),
    )
    links = module.callees
    at = np.flatnonzero(module.is_opcode("fusion")[links.owner] & (links.rows >= 0))
    fusion, body = links.owner[at], links.rows[at]
    written = size[fusion].copy()
    roots = module.roots[body]
    special = np.flatnonzero(np.isin(module.opcode[roots], _codes(module, "dynamic-update-slice", "tuple", "bitcast")))
    for place in special.tolist():
        if roots[place] >= 0:
            written[place] = _count_written(module, int(roots[place]), size, 0)
    nbytes[fusion] = read[body] + written


def _codes(module: Module, *opcodes: str) -> list[int]:
    return [at for at, opcode in enumerate(module.opcodes) if opcode in opcodes]


def _count_written(module: Module, row: int, size: F64, depth: int) -> float:
    """Bytes that the root of a fusion writes: of an array that is updated in place only the update."""
    opcode, operands = module.opcode_of(row), module.operands.linked(row)
    if opcode == "dynamic-update-slice" and len(operands) > 1:
        return float(size[operands[1]])
    if opcode in ("tuple", "bitcast") and operands and depth < _DEEPEST_CALLS:
        return sum(_count_written(module, each, size, depth + 1) for each in operands)
    return float(size[row])


def _count_parameter_reads(module: Module, size: F64, slices: Mask) -> F64:
    """What the users of each parameter read of it, at most all of it: float64 of shape (instructions,)."""
    links = module.operands
    owner, place = links.owner, np.arange(len(links.rows)) - links.offsets[links.owner]
    is_parameter = module.is_opcode("parameter")
    at = np.flatnonzero((links.rows >= 0) & is_parameter[links.rows])
    user, operand = owner[at], links.rows[at]
    amount = size[operand]
    part = slices[user] & (place[at] == 0)
    amount = np.where(part, size[user], amount)
    updated = np.flatnonzero(module.is_opcode("dynamic-update-slice")[user] & (place[at] == 0))
    second = first_operands(module, user[updated], 1)
    amount[updated] = np.where(second >= 0, size[second], amount[updated])
    reads = np.bincount(operand, weights=amount, minlength=len(module))
    return np.minimum(reads, size)
