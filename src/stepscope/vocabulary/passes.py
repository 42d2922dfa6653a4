"""The passes of a training step, as kernels are named after them; that over gradients of weights is one of its own in
zero-bubble pipelines (Qi et al., "Zero Bubble Pipeline Parallelism", 2023).
"""

from __future__ import annotations

from functools import lru_cache

from stepscope.vocabulary.patterns import Pattern

PASSES = ("forward", "backward", "optimizer", "weight_gradients")
_NAMED = tuple(
    (PASSES.index(name), Pattern(pattern))
    for name, pattern in (
        ("optimizer", r"(?i)multi_tensor_apply|optimi[sz]er|adam|sgd|lamb\b|lion\b"),
        ("weight_gradients", r"(?i)wgrad|weight_?grad|^PP:\d+W"),
        ("backward", r"(?i)^PP:\d+[IB]|backward|bwd|bprop|[dw]grad|transpose\(jvp"),
        ("forward", r"(?i)^PP:\d+F|forward|fwd|fprop"),
    )
)


@lru_cache(maxsize=4096)
def pass_of(name: str) -> int:
    """The pass that a kernel's name tells, as a place in PASSES; their number where it tells none.

    >>> [pass_of(name) for name in ("flash_bwd_kernel", "cudnn_infer_fprop", "ampere_sgemm_128x64_tn", "PP:0W1")]
    [1, 0, 4, 3]
    """
    return next((at for at, pattern in _NAMED if pattern.search(name)), len(PASSES))


def is_pass(name: str) -> bool:
    """Whether a range is one pass over a microbatch: torch.distributed.pipelining names them `PP:0F1`."""
    return name.startswith("PP:") and pass_of(name) < len(PASSES)
