"""XLA's custom calls: the names that libraries give to matrix products, convolutions and attention."""

from __future__ import annotations

import re

from stepscope.vocabulary.patterns import Pattern

_PRODUCT = Pattern(r"cublas|gemm|matmul|hipblas|rocblas", re.IGNORECASE)
_CONVOLUTION = Pattern(r"cudnn\$.*conv|miopen\$conv|onednn\$conv", re.IGNORECASE)
_ATTENTION = Pattern(r"^te_fused_attn_(?:for|back)ward", re.IGNORECASE)
_BACKWARD = Pattern(r"backward|bwd", re.IGNORECASE)
_FREE = Pattern(r"Sharding|SPMD|annotate|PadToStatic|SliceToDynamic|AllocateBuffer|topk|top_k", re.IGNORECASE)
_ATTRIBUTE = r"(\w+) = (-?\d{1,19}) : i64"

CONVOLUTION, PRODUCT, ATTENTION, ATTENTION_GRADIENT, FREE = (
    "convolution", "product", "attention", "gradient of attention", "free",
)  # fmt: skip


def kind_of_call(target: str) -> str:
    """What a custom call computes: FREE if nothing, empty if its target does not show it.

    >>> kind_of_call("__cublas$gemm"), kind_of_call("te_fused_attn_backward_ffi"), kind_of_call("mine")
    ('product', 'gradient of attention', '')
    """
    if _CONVOLUTION.search(target):
        return CONVOLUTION
    if _PRODUCT.search(target):
        return PRODUCT
    if _ATTENTION.search(target):
        return ATTENTION_GRADIENT if _BACKWARD.search(target) else ATTENTION
    return FREE if _FREE.search(target) else ""


def attention_sizes(config: str) -> dict[str, int] | None:
    """The number of query-key pairs and the widths of keys and values, from Transformer Engine's config.

    None if one of them is missing.
    """
    sizes = {name: int(value) for name, value in re.findall(_ATTRIBUTE, config)}
    try:
        pairs = sizes["input_batch"] * sizes["attn_heads"] * sizes["q_max_seqlen"] * sizes["kv_max_seqlen"]
        return {"pairs": pairs, "width": sizes["qk_head_dim"], "value_width": sizes["v_head_dim"]}
    except KeyError:
        return None


def product_dimensions(config: object, depth: int = 0) -> object:
    """The dimension numbers of a matrix product, from any level of its backend config; None if there are none."""
    if not isinstance(config, dict) or depth > 4:
        return None
    if "dot_dimension_numbers" in config:
        return config["dot_dimension_numbers"]
    inner = (product_dimensions(each, depth + 1) for each in config.values())
    return next((each for each in inner if each is not None), None)
