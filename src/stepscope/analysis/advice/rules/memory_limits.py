"""A device's memory is nearly full, fragmented, or allocated from the driver and freed in every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import foretell_change
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
_FREE = (
    "increase the batch size while the time of a step grows more slowly than the batch; adapt the learning rate to it",
)
_GROWTH = (
    "to leave the rest to other programs: tf.config.experimental.set_memory_growth(gpu, True), before the first op",
)
_GROWS = "TF_FORCE_GPU_ALLOW_GROWTH"


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


def _evaluate_free_memory(context: Context, threshold: float) -> Advice | None:
    """Advice on memory that stays free at the peak: a larger batch fits, or another program."""
    found = context.read("memory-profile") if context.has_device else None
    shares = {str(memory["id"]): _peak_percent(memory) for memory in (found.memories if found else ())}
    known = {memory: share for memory, share in shares.items() if share}
    fullest = max(known, key=lambda memory: known[memory], default=None)
    if fullest is None or known[fullest] >= threshold:
        return None
    return Advice(
        id="memory.free",
        kind="small_batch",
        title="Use the free memory: a larger batch fits",
        evidence=f"at its peak {fullest} is {known[fullest]:.2g} % full, and no other memory of a device is fuller",
        predicted_speedup=None,
        actions=(*_FREE, *(_GROWTH if _takes_all_memory(context) else ())),
        tool="memory-profile",
        confidence=0.4,
        rows=(Row("memory-profile", fullest, 0.0),),
    )


def _takes_all_memory(context: Context) -> bool:
    """Whether TensorFlow takes all memory at its start, as far as the capture shows."""
    return context.framework == "tensorflow" and not any(_GROWS in host.settings for host in context.hosts)


def _peak_percent(memory: Mapping[str, Any]) -> float | None:
    """How full a device's memory is at its peak; None for a host's memory, and if its capacity is unknown."""
    capacity, peak = memory.get("capacity_bytes"), memory.get("peak") or {}
    is_host = "cpu" in str(memory["id"]).lower() or "host" in str(memory["id"]).lower()
    used = (peak.get("stack_bytes") or 0) + (peak.get("heap_bytes") or 0)
    return 100.0 * used / capacity if capacity and not is_host else None


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
    advised = foretell_change(context, "driver_calls", idle, "memory calls to the driver").advice(
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
FREE = Rule(id="memory.free", threshold_percent=30.0, evaluate=_evaluate_free_memory, is_practice=True)
ALLOCATING = Rule(id="memory.driver-calls", threshold_percent=3.0, evaluate=_evaluate_driver_calls)
