"""Collectives take time that no computation hides."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import without
from stepscope.analysis.advice.rule import Advice, Row, Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.loop import Activity

_MANY_MESSAGES = 8.0  # a step; from here on it is their number that costs, not only what they carry
_FEW_MESSAGES_PERCENT = 30.0  # what a few large messages may take: data parallelism has its price

_ACTIONS: Actions = {
    "tensorflow": (
        "reduce gradients together: tf.distribute.experimental.CommunicationOptions(bytes_per_pack=...)",
        "communicate in 16 bits",
    ),
    "jax": (
        "let jit partition the whole step, so that XLA combines and overlaps collectives",
        "reduce one flat array (jax.flatten_util.ravel_pytree) instead of one per parameter",
    ),
    "pytorch": (
        "DistributedDataParallel(bucket_cap_mb=25), which reduces large buckets while the backward pass runs",
        "or flatten all gradients into one buffer and all_reduce it once, async_op=True",
        "communicate in 16 bits: register_comm_hook(..., bf16_compress_hook)",
    ),
    "": ("reduce gradients in large buckets while the backward pass runs", "communicate in 16 bits"),
}


def _evaluate(context: Context, threshold: float) -> Advice | None:
    exposed = _exposed(context)
    messages = context.calls(Activity.COLLECTIVE) if not context.has_device else 0.0
    many = messages > _MANY_MESSAGES
    if context.percent(exposed) < (threshold if many or context.has_device else _FEW_MESSAGES_PERCENT):
        return None
    count = f" in {messages:.0f} messages a step" if messages else ""
    gain = without(context, exposed, "communication that nothing hides", parts=(Activity.COLLECTIVE,), competes=many)
    return gain.advice(
        rule="communication.exposed",
        kind="communication_bound",
        title="Communicate in fewer, larger messages" if many else "Hide or shrink the communication",
        evidence=f"{context.percent(exposed):.1f} % of the time of a step is collectives that no computation"
        f" hides{count}",
        actions=actions_for(context.framework, _ACTIONS),
        tool="pod-viewer",
        confidence=0.9 if many else 0.7,
        rows=(Row("steps", "device_collectives", round(exposed, 3)),),
        intervals=context.intervals(Activity.COLLECTIVE),
    )


def _exposed(context: Context) -> float:
    """Time of collectives that every host spends: what one host spends beyond that is waiting for another."""
    looped = [host.loop for host in context.hosts if host.loop is not None]
    if context.has_device or not looped:
        return context.part_ms(Activity.COLLECTIVE)
    return min(loop.activity_ps.get("collective", 0) / loop.steps / MS for loop in looped)


RULE = Rule(id="communication.exposed", threshold_percent=15.0, evaluate=_evaluate, yields_to=("straggler",))
