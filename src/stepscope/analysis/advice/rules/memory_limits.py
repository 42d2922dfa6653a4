"""A device's memory is nearly full, fragmented, or allocated from the driver and freed in every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import replayed
from stepscope.analysis.advice.hardware import fit_actions
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.naming import name_share
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import CallTrait

_HOLES_PERCENT = 50.0  # of the free memory
_HOLES_MATTER = 75.0  # percent of the capacity in use: from here on fragmentation can make an allocation fail

_ROOM: Actions = {
    "tensorflow": (
        "recompute activations: tf.recompute_grad around large blocks",
        "keras.config.set_dtype_policy('mixed_bfloat16') halves activations",
        "use a smaller batch",
    ),
    "jax": (
        "recompute activations: jax.checkpoint (jax.remat) around large blocks",
        "donate arrays that the step replaces: jax.jit(..., donate_argnums=...)",
        "keep activations in jnp.bfloat16",
    ),
    "pytorch": (
        "recompute activations: torch.utils.checkpoint.checkpoint around large blocks",
        "torch.autocast('cuda', dtype=torch.bfloat16) halves most activations",
        "use a smaller batch",
    ),
    "": ("recompute activations, use 16 bits, or a smaller batch",),
}
_HOLES: Actions = {
    "tensorflow": ("TF_GPU_ALLOCATOR=cuda_malloc_async", "keep shapes constant: pad, or drop the last small batch"),
    "jax": (
        "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async, or XLA_PYTHON_CLIENT_MEM_FRACTION=.95",
        "keep shapes constant: pad, or bucket lengths into a few sizes",
    ),
    "pytorch": (
        "PYTORCH_ALLOC_CONF=expandable_segments:True (before PyTorch 2.9: PYTORCH_CUDA_ALLOC_CONF)",
        "keep shapes constant: pad, or bucket lengths into a few sizes",
    ),
    "": ("keep shapes constant, so that freed memory can be reused",),
}


def _evaluate_capacity(context: Context, threshold: float) -> Advice | None:
    found = context.read("memory-profile") if context.has_device else None
    for memory in found.memories if found else ():
        advice = _check_memory(context, memory, threshold)
        if advice is not None:
            return advice
    return None


def _check_memory(context: Context, memory: Mapping[str, Any], threshold: float) -> Advice | None:
    capacity, peak = memory.get("capacity_bytes"), memory.get("peak") or {}
    used = (peak.get("stack_bytes") or 0) + (peak.get("heap_bytes") or 0)
    share = 100.0 * used / capacity if capacity else 0.0
    holes = peak.get("fragmentation_percent") or 0.0
    torn = holes >= _HOLES_PERCENT and share >= _HOLES_MATTER
    if share < threshold and not torn:
        return None
    full = share >= threshold
    return Advice(
        id="memory.nearly-full" if full else "memory.fragmented",
        kind="memory_churn",
        title="Free memory before it runs out" if full else "Avoid memory fragmentation",
        evidence=f"{memory['id']} is {share:.0f} % full at its peak"
        + (f", and {holes:.0f} % of its free memory is fragmented" if torn else ""),
        predicted_speedup=None,
        actions=(
            *(fit_actions(context.device_type, actions_for(context.framework, _ROOM)) if full else ()),
            *(actions_for(context.framework, _HOLES) if torn else ()),
        ),
        tool="memory-profile",
        confidence=0.6,
        rows=(Row("memory-profile", str(memory["id"]), 0.0),),
    )


def _evaluate_driver_calls(context: Context, threshold: float) -> Advice | None:
    """Advice on driver calls that allocate or free memory.  They stop the device; caching allocators make few."""
    device = context.device
    calls = [call for call in device.calls if name_has(call.name, CallTrait.TAKES_MEMORY)] if device else []
    if device is None or not calls:
        return None
    idle = sum(call.total_ps for call in calls) / device.steps / MS
    if context.percent(idle) < threshold:
        return None
    count = sum(call.calls for call in calls) / device.steps
    advised = replayed(context, "driver_calls", idle, "memory calls to the driver").advice(
        rule="memory.driver-calls",
        kind="memory_churn",
        title="Allocate memory from the driver once",
        evidence=f"the device is idle for {context.percent(idle):.1f} % of each step during {count:.0f} calls such as"
        f" {calls[0].name}",
        actions=actions_for(context.framework, _HOLES),
        tool="memory-profile",
        confidence=0.75,
        rows=tuple(Row("op-stats", call.name, round(call.total_ps / device.steps / MS, 3)) for call in calls),
        intervals=context.work_places(calls),
    )
    return name_share(context, advised, calls[0], device.steps)


RULE = Rule(id="memory.nearly-full", threshold_percent=95.0, evaluate=_evaluate_capacity)
ALLOCATING = Rule(id="memory.driver-calls", threshold_percent=3.0, evaluate=_evaluate_driver_calls)
