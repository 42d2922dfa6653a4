"""The device computes in 32 bits."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.rule import Advice, Row, Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for

_MOSTLY_COMPUTES = 50.0
_ACTIONS: Actions = {
    "tensorflow": ("keras.mixed_precision.set_global_policy('mixed_bfloat16' or 'mixed_float16')",),
    "jax": ("compute in jnp.bfloat16, keep the weights in float32", "jax.default_matmul_precision('bfloat16')"),
    "pytorch": (
        "torch.autocast('cuda', dtype=torch.bfloat16), with a GradScaler for float16",
        "torch.set_float32_matmul_precision('high') for TensorFloat-32",
    ),
    "": ("try mixed precision (bfloat16, or float16 with loss scaling)",),
}


def _evaluate(context: Context, threshold: float) -> Advice | None:
    share, compute = context.compute_16bit_percent, context.shares.get("device_compute", 0.0)
    if share is None or share >= threshold or compute < _MOSTLY_COMPUTES:
        return None
    return Advice(
        id="precision.low",
        kind="low_precision",
        title="Compute in 16 bits",
        evidence=f"only {share:.1f} % of the device's compute time uses 16-bit numbers{_tensor_cores(context)}",
        predicted_speedup=None,
        actions=actions_for(context.framework, _ACTIONS),
        tool="kernel-stats",
        confidence=0.6,
        rows=(Row("overview", "device_compute", round(compute * context.step_ms / 100, 3)),),
    )


def _tensor_cores(context: Context) -> str:
    """How much of the time could run on tensor cores and does not."""
    rows = (context.read("kernel-stats") or {}).get("rows") or ()
    total = sum(row["total_us"] or 0.0 for row in rows)
    idle = sum(row["total_us"] or 0.0 for row in rows if row["tensor_core_eligible"] and not row["uses_tensor_core"])
    return f"; {100.0 * idle / total:.0f} % could use tensor cores and does not" if total and idle else ""


RULE = Rule(id="precision.low", threshold_percent=10.0, evaluate=_evaluate, needs=("kernel-stats",))
