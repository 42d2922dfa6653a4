"""Which kernels compute on matrix units (NVIDIA's tensor cores, AMD's matrix cores), and which ops could.

Traces do not record it, but many libraries write the instruction into the kernel's name.  If the name does not show it
and the op could use matrix units, the answer is unknown, not no.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stepscope.vocabulary.patterns import Pattern

# Kernel names that show matrix instructions: the instruction's shape after the letter of its type, the instructions'
# names in each generation of each vendor, and libraries and generated kernels that use only such instructions.
_MATRIX = Pattern(
    r"[shicdbq](?:884|1688|8816|16816|16832|161616)(?!\d)|16816|tensor\d+x\d+x\d+|(?<![a-z])tensorop"
    r"|[hibdq]mma(?![a-z])|gmma|umma(?!r)|wmma|(?<![a-z])mma_(?:sync|m\d|sp)|tcgen05"
    r"|xmma_(?:\w+_)?(?:gemm|conv|fprop|dgrad|wgrad)|xmma_warp_specialized|sm(?:90|1[0-2]\d)_(?:\w+_)?gemm"
    r"|conv1x1|conv2d_c1_k1|dgrad_1x1_stride_2x2|direct_group|first_layer_wgrad_kernel"
    r"|nvjet_|deep_?gemm|marlin|gemm_fusion_dot|flash_?(?:fwd|bwd|attn|attention)\w*kernel|fort_native_sdpa"
    r"|fmha_?(?:fwd|bwd|batch|dgrad|fprop|cutlass|v\d)"
    r"|_mi\d+x\d+|mfma|smfmac|xdlops|xdl(?![a-z])|_gtcx?\d?_",  # AMD: Tensile, the instructions, CK, MIOpen
    re.IGNORECASE,
)
# Helpers of such kernels, whose names contain the same words.
_HELPERS = Pattern(
    r"ograddoto|convertq|dot_do_o|convert_dq|splitk_?reduce|reduce_?split_?k|split_?k\w*combine|compute\w*offsets",
    re.IGNORECASE,
)
# Kernel names that show GEMMs and convolutions on scalar units, or work that does not multiply matrices.
_SCALAR = Pattern(
    r"simt|[a-z]gemm_(?:\d+x\d+|largek)|scudnn|gemv|gemmk1|(?:wgrad|dgrad)\w*_engine|convolve_[sdh]gemm|winograd|fft"
    r"|elementwise|reduce|softmax|norm(?![a-z])|bn_(?:fw|bw)|copy|(?<![a-z])cat|fill|scan|sort|index|gather|scatter"
    r"|transpose|nchw|permute|im2|im3|col2|pool|embedding|dropout|philox|random|rng|memset|arange|topk|argmax"
    r"|nll_?loss|classnll|cross_?entropy|rotary|activation|silu|gelu|adam|sgd|multi_tensor|foreach|scalepacked"
    r"|tensorop(?:with)|eigenmetakernel|cub::|thrust::|nccl|rccl|interpolate|upsample|quantize"
    r"|^(?:loop|input|wrapped|concatenate|dynamic)_\w*",
    re.IGNORECASE,
)

# Ops that multiply matrices or convolve, as their frameworks call them.
_OP = Pattern(
    r"matmul|conv(?:olution)?(?:\d?d)?(?:_|$|native|backprop|transpose|bias|with)|_conv\d?d|cudnnrnn|xla(?:dot|conv)|einsum|"
    r"(?:^|_|\.|-)dot(?:_|\.|-|$)|dot_general|(?:^|_)b?mm_?(?:$|backward|_)|addmm|addbmm|baddbmm|addmv|(?:^|_)mv(?:$|backward)|addr_?$"
    r"|linear_?(?:$|backward)|multi_dot|(?:lstm|gru|rnn)(?:_|$)|attention|attn|fmha|sdpa|gemm|grouped_mm|depthwiseconv|prelu$",
    re.IGNORECASE,
)
_EINSUM = Pattern(r"\b[a-zA-Z.]+,[a-zA-Z.]+->[a-zA-Z.]*")
# Op types of the known frameworks: TensorFlow's in CamelCase, PyTorch's and JAX's in lower case.
_KNOWN = Pattern(r"_?[A-Z][A-Za-z0-9]+|[a-z_][a-z0-9_]*")


def op_is_eligible(name: str, op_type: str) -> bool | None:
    """Whether an op could use matrix units; None for ops outside of the known frameworks.

    >>> op_is_eligible("model/dense/MatMul", "MatMul"), op_is_eligible("aten::add", "add")
    (True, False)
    """
    if "->" in name and _EINSUM.search(name):
        return True
    foreign = "::" in name and not name.startswith(("aten::", "Iterator::"))
    return _type_is_eligible(op_type, foreign)


@lru_cache(maxsize=4096)
def _type_is_eligible(op_type: str, foreign: bool) -> bool | None:
    if _OP.search(op_type):
        return True
    return False if not foreign and _KNOWN.fullmatch(op_type) else None


@lru_cache(maxsize=4096)
def kernel_name_says(kernel: str) -> bool | None:
    """Whether a kernel computes on matrix units; None if its name does not show it."""
    if _HELPERS.search(kernel):
        return False
    if _MATRIX.search(kernel):
        return True
    return False if kernel.startswith("Cijk_") or _SCALAR.search(kernel) else None


def kernel_uses(kernel: str, eligible: bool | None) -> bool | None:
    """Whether a kernel computes on matrix units; None if its name does not show it and its op could use them.

    Args:
        kernel: the kernel's name.
        eligible: whether its op could use matrix units; None if unknown.
    """
    says = kernel_name_says(kernel)
    return False if says is None and eligible is False else says


def is_plain_product(kernel: str) -> bool:
    """Whether a kernel multiplies matrices without matrix units, as its name shows, and convolves nothing.

    >>> is_plain_product("ampere_sgemm_128x64_tn"), is_plain_product("implicit_convolve_sgemm")
    (True, False)
    """
    lower = kernel.lower()
    return "gemm" in lower and "conv" not in lower and not kernel_name_says(kernel)
