"""The rules of this package; those that share words or exclude one another share a file."""

from stepscope.analysis.advice.rules import (
    checkpoint,
    communication,
    device_idle,
    device_work,
    dispatch,
    input_work,
    lines,
    memory,
    model,
    python_overhead,
    recompilation,
    redundant_compute,
    set_up,
    straggler,
    transfer,
    waiting,
)

RULES = (
    lines.RULE, recompilation.RULE, waiting.RULE, transfer.RULE, checkpoint.RULE, *python_overhead.RULES, dispatch.RULE,
    *device_idle.RULES, straggler.RULE, communication.RULE, *redundant_compute.RULES, set_up.RULE, *memory.RULES,
    *device_work.RULES, *input_work.RULES, *model.RULES,
)  # fmt: skip
