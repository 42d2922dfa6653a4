"""Kernels on GPUs, as libraries and compilers name them.  `tensor_cores` knows which of them use matrix units."""

from __future__ import annotations

from stepscope.vocabulary.devices import mentions
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import NameTable
from stepscope.vocabulary.traits import KernelTrait
from stepscope.vocabulary.xla import instruction_name

# Kernels that reorder data and compute nothing: cuDNN's and MIOpen's changes of layout, TensorFlow's and XLA's
# transposes.  MIOpen's kernels on parts of a tensor do not: those with a scalar fill or scale one
# (`SUBTENSOR_OP_WITH_SCALAR_SET`, `_MULTIPLY` in its sources), those with a cast change the number format.
_REORDERS = Pattern(
    r"(?i)(?:nc[d]?hw\w*(?:to|2)n[d]?hwc|n[d]?hwc\w*(?:to|2)nc[d]?hw|(?<!conv_)(?<!conv2d_)transpose(?!d?_?conv)"
    r"|SwapDimension\dAnd\d|ShuffleInTensor|tensorTransform)"
)
# Kernels that only copy or join: those of PyTorch's contiguous(), clone() and cat(), and XLA's copies.
_COPIES = Pattern(
    r"direct_copy_kernel|CatArrayBatchedCopy|^(?:copy|concatenate|slice)(?:[-_](?:start|done|fusion))*(?:\.\d+)?$"
)
# A fused kernel has the ops that it computes in its name, beside the copy or transpose: `fused_rms_transpose`,
# `triton_poi_fused_add_mul_transpose_3`, `rotary_embedding_transposed`.
_COMPUTES_TOO = Pattern(
    r"(?i)gemm|_dot|convolution|conv2d|conv3d|attention|softmax|reduce|norm|fmha|rotary"
    r"|(?<![a-z])(?:add|mul(?:tiply)?|sub(?:tract)?|div(?:ide)?|pow(?:er)?|mean|var|r?sqrt|exp|log|tanh|silu|gelu|relu"
    r"|sigmoid|logistic|cos(?:ine)?|sine?|neg(?:ate)?|sum|max(?:imum)?|min(?:imum)?|rms|rope)(?![a-z])"
)
# Products and convolutions whose names show 32-bit operands; names without a type do not count.
_WIDE_PRODUCT = Pattern(
    r"sgemm|sgemv|scudnn|s1688(?:gemm|fprop|dgrad|wgrad)|tf32|f32f32|Cijk_\w+?_SB_"
    r"|(?i:(?:gemm|gemv|convol|conv\dd|[dw]grad|winograd|xmma|cutlass|matmul|attention|fmha)).*<(?:float|f32)\b"
    r"|^%(?:dot|convolution)[\w.\-]* = f32\["
)
# Kernel names have a thousand characters; finding one of these words is much faster than an unanchored pattern.
_WORDS_OF_LAYOUT = (
    "nchw", "nhwc", "ncdhw", "ndhwc", "transpos", "swapdim", "shuffleintensor", "transform",
)  # fmt: skip
_WORDS_OF_PRODUCT = (
    "gemm", "gemv", "scudnn", "s1688", "tf32", "f32f32", "cijk_", "conv", "grad", "winograd", "xmma", "cutlass",
    "matmul", "attention", "fmha", "%dot",
)  # fmt: skip


def reorders(name: str) -> bool:
    """True for a kernel that reorders data and computes nothing.

    >>> [reorders(name) for name in ("void cudnn::ops::nchwToNhwcKernel<float>()", "input_transpose_fusion", "dot_0")]
    [True, True, False]
    >>> [reorders(name) for name in ("triton_poi_fused_transpose_3", "triton_poi_fused_add_rsqrt_transpose_3")]
    [True, False]
    """
    text = instruction_name(name)
    return mentions(text, _WORDS_OF_LAYOUT) and bool(_REORDERS.search(text)) and not _COMPUTES_TOO.search(text)


def copies(name: str) -> bool:
    """True for a kernel that copies or joins data and computes nothing.

    >>> [copies(name) for name in ("%copy-done.2 = f32[5] copy-done(f32[5] %a)", "wrapped_copy_add", "copy.3")]
    [True, False, True]
    """
    text = instruction_name(name)
    return bool(_COPIES.search(text)) and not _COMPUTES_TOO.search(text)


def is_wide_product(name: str) -> bool:
    """True for a product or convolution in 32 bits.

    >>> [is_wide_product(name) for name in ("volta_sgemm_64x64", "void dgrad<float, 5>()", "gemm_fusion_dot")]
    [True, True, False]
    """
    return mentions(name, _WORDS_OF_PRODUCT) and bool(_WIDE_PRODUCT.search(name))


NAMES: tuple[NameTable, ...] = (
    NameTable(
        rules=(
            (KernelTrait.REORDERS, reorders),
            (KernelTrait.COPIES, copies),
            (KernelTrait.WIDE_PRODUCT, is_wide_product),
            (KernelTrait.ELEMENTWISE, r"(?:.*\b|_Z\w+\d)(?:vectorized_|unrolled_)?elementwise_kernel(?:_\w+)?[<I]"),
        )
    ),
)
