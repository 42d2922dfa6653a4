"""Operations of custom calls that are known: matrix products and convolutions of libraries, and fused attention."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from stepscope.analysis.hlo.module import CONVOLUTION
from stepscope.vocabulary import custom_calls
from stepscope.vocabulary.custom_calls import attention_sizes, kind_of_call, product_dimensions

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module


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
    from stepscope.analysis.xla.costs import convolution_flops

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
