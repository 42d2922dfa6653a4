"""What kind of computing an op, a kernel or a library's function does, by its name: as remedies go by that."""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

CONVOLUTION, SLOW_CONVOLUTION, ATTENTION, FUSED_ATTENTION, PRODUCT, NORMALIZATION, RUNTIME_COMPILER = (
    "convolution", "convolution without a library", "attention", "fused attention", "product", "normalization",
    "runtime compiler",
)  # fmt: skip
_FAMILIES = (
    (
        RUNTIME_COMPILER,
        Pattern(r"<(?:.* @ )?(?:libnvrtc|libnvJitLink|libnvidia-ptxjitcompiler|libamd_comgr|libhiprtc)"),
    ),
    (FUSED_ATTENTION, Pattern(r"(?i).*(?:flash|fused_attn|fmha|cudnn\w*sdpa|efficient_attention|cpu_attention)")),
    (ATTENTION, Pattern(r"(?i).*(?:attention|attn|fmha|sdpa)")),
    (SLOW_CONVOLUTION, Pattern(r"aten::_?slow_conv\d")),  # of PyTorch, where neither oneDNN nor cuDNN takes it
    (CONVOLUTION, Pattern(r"(?i).*(?:conv(?!ert)|winograd|[dw]grad|fprop)")),
    (NORMALIZATION, Pattern(r"(?i).*(?:batch|layer|group|rms)_?norm")),
    (PRODUCT, Pattern(r"(?i).*(?:gemm|matmul|nvjet|cijk_|einsum|\bdot\b|::(?:add|b|addb)?mm\b|linear)")),
)


def family_of(name: str) -> str:
    """The kind of computing of a name; empty where it is none of these.

    >>> family_of("aten::convolution_backward"), family_of("aten::addmm"), family_of("aten::exp")
    ('convolution', 'product', '')
    """
    return next((family for family, pattern in _FAMILIES if pattern.match(name)), "")
