"""Operations of custom calls that are known: matrix products and convolutions of libraries, and fused attention."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from stepscope.analysis.xla.module import CONVOLUTION

if TYPE_CHECKING:
    from stepscope.analysis.xla.module import Module

_PRODUCT = re.compile(r"cublas|gemm|matmul|hipblas|rocblas", re.IGNORECASE)
_CONVOLUTION = re.compile(r"cudnn\$conv|miopen\$conv|cudnn\$.*conv|onednn\$conv", re.IGNORECASE)
_ATTENTION = re.compile(r"^te_fused_attn_(?:for|back)ward", re.IGNORECASE)
_BACKWARD = re.compile(r"backward|bwd", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"(\w+) = (-?\d+) : i64")
_FREE = re.compile(r"Sharding|SPMD|annotate|PadToStatic|SliceToDynamic|AllocateBuffer|topk|top_k", re.IGNORECASE)


def custom_flops(module: Module, row: int) -> float | None:
    """Operations of a custom call; None if nothing tells what it computes."""
    target = module.target_of(row)
    if _CONVOLUTION.search(target):
        return _convolution(module, row)
    if _PRODUCT.search(target):
        return _product(module, row)
    if _ATTENTION.search(target):
        return _attention(module.backend_config_of(row), backward=bool(_BACKWARD.search(target)))
    return 0.0 if _FREE.search(target) else None


def _convolution(module: Module, row: int) -> float | None:
    from stepscope.analysis.xla.costs import convolution_flops

    start, stop = module.fields.range(CONVOLUTION)
    if start[row] == stop[row]:
        return None
    found = convolution_flops(module, row)
    return None if np.isnan(found) else found


def _product(module: Module, row: int) -> float | None:
    """2 m n k of each product of a batch, by the dimensions that the backend noted."""
    operands = module.operands.of(row)
    dimensions = _find(_parsed(module.backend_config_of(row)), "dot_dimension_numbers")
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
    sizes = {name: int(value) for name, value in _ATTRIBUTE.findall(config)}
    try:
        pairs = sizes["input_batch"] * sizes["attn_heads"] * sizes["q_max_seqlen"] * sizes["kv_max_seqlen"]
        width, value_width = sizes["qk_head_dim"], sizes["v_head_dim"]
    except KeyError:
        return None
    return 2.0 * pairs * (3 * width + 2 * value_width if backward else width + value_width)


def has_scratch(module: Module, row: int) -> bool:
    """Whether the last result of a custom call is memory that the library works in, and no result."""
    children = module.shapes.children_of(row)
    target = module.target_of(row)
    known = any(pattern.search(target) for pattern in (_CONVOLUTION, _PRODUCT, _ATTENTION))
    return known and len(children) > 1 and module.shapes.type_name(children[-1]) in ("u8", "s8")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _find(value: Any, key: str, depth: int = 0) -> Any:
    """The value of a key, at whatever depth."""
    if not isinstance(value, dict) or depth > 4:
        return None
    if key in value:
        return value[key]
    inner = (_find(each, key, depth + 1) for each in value.values())
    return next((each for each in inner if each is not None), None)
