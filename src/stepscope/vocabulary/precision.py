"""Names that show whether something computes in 16 bits or fewer."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.vocabulary.patterns import Pattern

# In a kernel's name or in its op's shapes, as written in XSpace files: the spellings of CUDA, cuDNN, CUTLASS and Eigen,
# then the operand letters of Tensile (H half, B bfloat16), then XLA shapes.
_IN_KERNEL_OR_SHAPE = Pattern(
    rb"half|fp16|bf16|bfloat16|float16|fp8|f8e[45]m[23]|[hi](?:884|1688|16816)(?!\d)|hmma|hgemm|_f16|"
    rb"_[HB]{2}[SHB]_|(?:^|[(,;])f16\["
)
# In a kernel's name in Kineto traces: names of types (also mangled, as in N3c104HalfE and DF16b), the mma shapes of
# half-precision GEMMs (h884, h16816), and the operand letters of Tensile (Cijk_..._BBS_) and of cuBLAS' nvjet.
_NARROW = Pattern(
    r"(?i:bf16|bfloat16|fp16|float16|fp8|float8|e4m3|e5m2|fp4|e2m1)|(?<![A-Za-z0-9])f16|DF16"
    r"|(?:c10|at)::Half\b|Half(?:E|$)|__half|(?<![A-Za-z])half2?(?:_t)?(?![A-Za-z_])"
    r"|hgemm|(?<![A-Za-z0-9])h(?:884|1688|16816)|HMMA|hmma"
    r"|^Cijk_[A-Za-z]+_[A-Za-z]+_(?:H|B|F8)|nvjet_(?:sm\d+_)?[htq]"
)
# Names that show another type.
_WIDE = Pattern(r"float|double|tf32|fp?32|fp?64|(?<![a-z])[sdcz]gemm|scudnn|(?<![a-z0-9])s1688gemm|^Cijk_|nvjet_")
_NARROW_TYPES = ("c10::Half", "c10::BFloat16", "c10::Float8", "c10::Float4")
_WIDE_TYPES = ("float", "double")


def is_narrow(text: bytes) -> bool:
    """True if a kernel's name, or its op's shapes, show that it computes in 16 bits or fewer."""
    return _IN_KERNEL_OR_SHAPE.search(text) is not None


def kernel_computes_16bit(name: str) -> bool | None:
    """Whether a kernel computes in 16 bits or fewer; None if its name does not show it."""
    if _NARROW.search(name):
        return True
    return False if _WIDE.search(name) else None


def inputs_are_16bit(types: Sequence[object]) -> bool:
    """True if an op with these input types computes in 16 bits or fewer: all its floating-point inputs are narrow."""
    narrow = any(isinstance(name, str) and name.startswith(_NARROW_TYPES) for name in types)
    return narrow and not any(name in _WIDE_TYPES for name in types)
