"""The passes of a training step, as kernels are named after them, and ranges around their launches.

A zero-bubble pipeline has a pass of its own for the gradients of weights, which no other stage waits for (Qi et al.,
"Zero Bubble Pipeline Parallelism", 2023).  The schedules of torch.distributed.pipelining put a range around each pass
over a microbatch: `PP:`, the stage, a letter for the pass, and the microbatch.
"""

from __future__ import annotations

from functools import lru_cache

from stepscope.vocabulary.patterns import Pattern

PASSES = ("forward", "backward", "optimizer", "weight_gradients")
_NAMED = tuple(
    (PASSES.index(name), Pattern(pattern))
    for name, pattern in (
        ("optimizer", r"(?i)multi_tensor_apply|optimi[sz]er|adam|sgd|lamb\b|lion\b"),
        ("weight_gradients", r"(?i)wgrad|weight_?grad"),
        ("backward", r"(?i)backward|bwd|bprop|[dw]grad|transpose\(jvp"),
        ("forward", r"(?i)forward|fwd|fprop"),
    )
)

_RANGE = Pattern(r"^PP:[0-9]+([FIBW])[0-9]*$")
_LETTERS = {"F": "forward", "I": "backward", "B": "backward", "W": "weight_gradients"}


@lru_cache(maxsize=4096)
def pass_of(name: str) -> int:
    """The pass that a kernel's name tells, as a place in PASSES; their number where it tells none.

    >>> [pass_of(name) for name in ("flash_bwd_kernel", "cudnn_infer_fprop", "ampere_sgemm_128x64_tn")]
    [1, 0, 4]
    """
    return next((at for at, pattern in _NAMED if pattern.search(name)), len(PASSES))


def pass_of_range(name: str) -> int:
    """The pass that a range over a microbatch is, as a place in PASSES; their number for another range.

    >>> [pass_of_range(name) for name in ("PP:0F1", "PP:3I12", "PP:3W12", "PP:0SEND_F1")]
    [0, 1, 3, 4]
    """
    found = _RANGE.search(name)
    return PASSES.index(_LETTERS[found[1]]) if found else len(PASSES)
