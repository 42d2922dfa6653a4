"""The rules of this package, one file each; families that exclude one another share a file."""

from stepscope.analysis.advice.rules import (
    checkpoint,
    communication,
    dispatch,
    launch,
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
    launch.RULE,
    straggler.RULE,
    communication.RULE,
    redundant_compute.RULE,
    memory_churn.RULE,
    memory_limits.RULE,
    precision.RULE,
)
