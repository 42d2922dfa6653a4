"""A device's memory is nearly full, or full of holes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.rule import Advice, Row, Rule

_HOLES_PERCENT = 50.0


def _evaluate(context: Context, threshold: float) -> Advice | None:
    found = context.read("memory-profile") if context.has_device else None
    for memory in (found or {}).get("memories", ()):
        advice = _of(memory, threshold)
        if advice is not None:
            return advice
    return None


def _of(memory: Mapping[str, Any], threshold: float) -> Advice | None:
    capacity, peak = memory.get("capacity_bytes"), memory.get("peak") or {}
    used = (peak.get("stack_bytes") or 0) + (peak.get("heap_bytes") or 0)
    if not capacity or not used or 100.0 * used / capacity < threshold:
        return None
    holes = peak.get("fragmentation_percent") or 0.0
    torn = f", {holes:.0f} % of what is free is fragmented" if holes >= _HOLES_PERCENT else ""
    return Advice(
        id="memory.nearly-full",
        kind="memory_churn",
        title="Make room before memory runs out",
        evidence=f"{memory['id']} is {100.0 * used / capacity:.0f} % full at its peak{torn}",
        predicted_speedup=None,
        actions=(
            "recompute activations (jax.checkpoint, tf.recompute_grad, torch.utils.checkpoint), or use 16 bits",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, TF_GPU_ALLOCATOR=cuda_malloc_async against holes",
        ),
        tool="memory-profile",
        confidence=0.6,
        rows=(Row("memory-profile", str(memory["id"]), 0.0),),
    )


RULE = Rule(id="memory.nearly-full", threshold_percent=95.0, evaluate=_evaluate, needs=("memory-profile",))
