"""The passes of a training step, as kernels are named after them."""

from __future__ import annotations

from functools import lru_cache

from stepscope.vocabulary.patterns import Pattern

PASSES = ("forward", "backward", "optimizer")
_NAMED = tuple(
    (PASSES.index(name), Pattern(pattern))
    for name, pattern in (
        ("optimizer", r"(?i)multi_tensor_apply|optimi[sz]er|adam|sgd|lamb\b|lion\b"),
        ("backward", r"(?i)backward|bwd|bprop|[dw]grad|transpose\(jvp"),
        ("forward", r"(?i)forward|fwd|fprop"),
    )
)


@lru_cache(maxsize=4096)
def pass_of(name: str) -> int:
    """The pass that a kernel's name tells, as a place in PASSES; their number where it tells none.

    >>> [pass_of(name) for name in ("flash_bwd_kernel", "cudnn_infer_fprop", "ampere_sgemm_128x64_tn")]
    [1, 0, 3]
    """
    return next((at for at, pattern in _NAMED if pattern.search(name)), len(PASSES))
