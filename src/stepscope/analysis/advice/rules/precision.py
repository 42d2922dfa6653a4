"""Matrix products run in 32 bits on a device that is faster in 16."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import foretell_change
from stepscope.analysis.advice.hardware import fit_actions
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.naming import name_line, name_share
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.report import amount

_ACTIONS: Actions = {
    "tensorflow": (
        "keras.config.set_dtype_policy('mixed_bfloat16')",
        "keras.config.set_dtype_policy('mixed_float16'), with keras.optimizers.LossScaleOptimizer",
        "make layer and batch sizes multiples of 8",
    ),
    "jax": (
        "compute in jnp.bfloat16, keep the weights in float32",
        "compute in jnp.float16 with a scaled loss, keep the weights in float32",
        "jax.config.update('jax_default_matmul_precision', 'bfloat16'), or 'tensorfloat32'",
    ),
    "pytorch": (
        "torch.autocast('cuda', dtype=torch.bfloat16)",
        "torch.autocast('cuda', dtype=torch.float16) with torch.amp.GradScaler",
        "torch.set_float32_matmul_precision('high') for TensorFloat-32",
        "make layer and batch sizes multiples of 8",
    ),
    "": ("try mixed precision: 16 bits for products, 32 for weights, and a scaled loss for float16",),
}


def _evaluate(context: Context, threshold: float) -> Advice | None:
    device = context.device
    wide = device and device.kinds.get("wide_products")
    if device is None or not device.work_ps or not wide:
        return None
    shrunk = min(device.busy_ps / device.work_ps, 1.0)
    products = wide.total_ps * shrunk / device.steps / MS
    if context.percent(products) < threshold:
        return None
    top = wide.largest[0]
    advised = foretell_change(context, "wide_products", products, "half the time of 32-bit products").advice(
        rule="precision.low",
        kind="low_precision",
        title="Compute in 16 bits",
        evidence=f"{context.percent(products):.1f} % of each step is spent on matrix products and convolutions in 32"
        f" bits, mostly {top.name}{_describe_tensor_cores(context)}",
        actions=fit_actions(context.device_type, actions_for(context.framework, _ACTIONS)),
        tool="kernel-stats",
        confidence=0.6,
        rows=tuple(
            Row("kernel-stats", each.name, round(each.total_ps / device.steps / MS, 3)) for each in wide.largest[:3]
        ),
        intervals=context.work_places(wide.largest),
    )
    return name_line(context, advised, "wide_products", name_share(context, advised, top, device.steps))


def _describe_tensor_cores(context: Context) -> str:
    """The share of kernel time that could use tensor cores but does not."""
    report = context.read("kernel-stats")
    rows = report.rows if report else ()
    total = sum(amount(row["total_us"]) for row in rows)
    idle = sum(amount(row["total_us"]) for row in rows if row["tensor_core_eligible"] and not row["uses_tensor_core"])
    return (
        f"; {100.0 * idle / total:.0f} % of kernel time could use tensor cores but does not" if total and idle else ""
    )


# It yields to nothing: its gain comes from the replay, where a device that waits for launches gains nothing from speed.
RULE = Rule(id="precision.low", threshold_percent=25.0, evaluate=_evaluate)
