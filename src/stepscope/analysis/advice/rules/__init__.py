"""The rules of this package, one file each; families that exclude one another share a file."""

from stepscope.analysis.advice.rules import (
    checkpoint,
    communication,
    device_copies,
    device_idle,
    dispatch,
    memory_churn,
    memory_limits,
    precision,
    python_overhead,
    recompilation,
    redundant_compute,
    straggler,
    transfer,
    waiting,
)

RULES = (
    recompilation.RULE,
    waiting.RULE,
    transfer.RULE,
    checkpoint.RULE,
    python_overhead.RULE,
    dispatch.RULE,
    device_idle.LAUNCHES,
    device_idle.WAITS,
    device_copies.LAYOUTS,
    device_copies.COPIES,
    device_copies.PAGEABLE,
    straggler.RULE,
    communication.RULE,
    redundant_compute.RULE,
    memory_churn.RULE,
    memory_limits.RULE,
    precision.RULE,
)
