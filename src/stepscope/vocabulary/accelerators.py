"""What accelerators lack, by how they are called."""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

_BEFORE_AMPERE = Pattern(
    r"(?i).*(?:\b(?:V100|P100|P40|P4|T4|T40|K80|K40|M40|M60|GTX|TITAN|RTX 20\d\d|Quadro RTX)\b"
    r"|V100|compute capability [3-7]\.)"
)
# Compute capability 8.9 and up multiply in FP8, as do AMD's devices from MI300 on.
_BEFORE_FP8 = Pattern(
    r"(?i).*(?:\b(?:A[38]00|A100|A800|A10G?|A16|A2|A30|A40|RTX (?:A\d000|30\d\d)|MI[12]\d\dX?)\b"
    r"|compute capability 8\.[0-7]|gfx90)"
)
_OF_AMD = Pattern(r"(?i).*(?:\bAMD\b|Radeon|Instinct|\bMI\d{2,3}X?\b|\bgfx\d)")
_OF_OTHERS = Pattern(r"(?i).*(?:Ascend|\bNPU|\bTPU|\bXPU|Gaudi|\bHPU)")
_FORMATS = ("bfloat16", "bf16", "TensorFloat-32", "tensorfloat32")
_OF_NVIDIA = ("cudnn", "cuDNN", "`ncu`")
_AMD_ALONE = ("MIOPEN", "`rocprof-compute`")


def has_bfloat16(device_type: str) -> bool:
    """Whether a device computes in bfloat16 and TensorFloat-32; true for an unknown one.

    >>> has_bfloat16("Tesla V100-SXM2-16GB"), has_bfloat16("NVIDIA GPU (Turing, compute capability 7.5)")
    (False, False)
    >>> has_bfloat16("NVIDIA H100 80GB HBM3"), has_bfloat16("")
    (True, True)
    """
    return _BEFORE_AMPERE.match(device_type) is None


def words_of_others(device_type: str) -> tuple[str, ...]:
    """Number formats and libraries, as texts name them, that a device lacks; none of an unknown one.

    >>> words_of_others("AMD Instinct MI300X"), words_of_others("NVIDIA A100-SXM4-80GB")
    (('cudnn', 'cuDNN', '`ncu`'), ('FP8', 'MIOPEN', '`rocprof-compute`'))
    """
    is_amd, old = _OF_AMD.match(device_type) is not None, not has_bfloat16(device_type)
    return (
        *(_FORMATS if old else ()),
        *(("FP8",) if old or _BEFORE_FP8.match(device_type) else ()),
        *(_OF_NVIDIA if is_amd or _OF_OTHERS.match(device_type) else ()),
        *(_AMD_ALONE if device_type and not is_amd else ()),
    )
