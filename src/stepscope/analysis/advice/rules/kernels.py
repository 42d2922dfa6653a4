"""A device runs many kernels where a few would do: elementwise chains, attention in pieces, updates per parameter."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import foretell_change
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.naming import name_line, name_op, name_share
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.device_facts import DeviceFacts, WorkOfKind

_MANY = 20.0  # kernels per step: fewer are no chain
_PER_PARAMETER = 50.0  # launches of an update: a fused or foreach one makes a dozen

_CHAINS: Actions = {
    "tensorflow": ("tf.function(jit_compile=True) fuses elementwise ops into their neighbours",),
    "jax": ("put the ops under one jax.jit: XLA then fuses them",),
    "pytorch": (
        "torch.compile(model) fuses elementwise ops into their neighbours",
        "use fused layers: torch.nn.functional.layer_norm, gelu and cross_entropy instead of their parts written out",
    ),
    "": ("fuse elementwise ops with a compiler",),
}
_ATTENTION: Actions = {
    "pytorch": (
        "torch.nn.functional.scaled_dot_product_attention(q, k, v) in place of matmul, softmax and matmul; with Hugging"
        " Face models from_pretrained(..., attn_implementation='sdpa')",
        "in 16 bits it runs as one flash kernel, which writes no matrix of scores",
    ),
    "jax": ("jax.nn.dot_product_attention(q, k, v, implementation='cudnn')",),
    "tensorflow": ("keras.layers.MultiHeadAttention with flash attention: keras.config.enable_flash_attention()",),
    "": ("use a fused attention kernel",),
}
_UPDATE: Actions = {
    "pytorch": (
        "torch.optim.AdamW(params, fused=True) updates all parameters in a few kernels; other optimizers have"
        " foreach=True",
        "wrap the update in torch.compile if the optimizer is your own",
    ),
    "": ("update all parameters in one fused kernel",),
}


def _evaluate_chains(context: Context, threshold: float) -> Advice | None:
    return _evaluate(
        context, threshold, "elementwise", rule="kernels.elementwise", kind="memory_churn", least=_MANY,
        title="Fuse chains of elementwise kernels", actions=_CHAINS,
        what="run single elementwise ops, each of which reads its operands from memory and writes its result there",
    )  # fmt: skip


def _evaluate_attention(context: Context, threshold: float) -> Advice | None:
    return _evaluate(
        context, threshold, "attention", rule="kernels.attention", kind="memory_churn", least=1.0,
        title="Use a fused attention kernel", actions=_ATTENTION,
        what="compute attention in pieces: products, a softmax and whatever lies between",
    )  # fmt: skip


def _evaluate(
    context: Context,
    threshold: float,
    change: str,
    *,
    rule: str,
    kind: str,
    least: float,
    title: str,
    actions: Actions,
    what: str,
) -> Advice | None:
    device = context.device
    work = device and device.kinds.get(change)
    if device is None or not work or work.calls < least * device.steps:
        return None
    time = _critical_path_ms(device, work)
    if context.percent(time) < threshold:
        return None
    evidence = f"for {context.percent(time):.1f} % of each step {work.calls / device.steps:.0f} kernels {what}"
    advised = foretell_change(context, change, time, f"a part of what the {change} kernels take").advice(
        rule=rule,
        kind=kind,
        title=title,
        evidence=evidence,
        actions=actions_for(context.framework, actions),
        tool="kernel-stats",
        confidence=0.6,
        rows=tuple(Row("kernel-stats", each.name, _per_step_ms(device, each.total_ps)) for each in work.largest[:3]),
        intervals=context.work_places(work.largest),
    )
    return name_line(context, advised, change, name_share(context, advised, work.largest[0], device.steps))


def _critical_path_ms(device: DeviceFacts, work: WorkOfKind) -> float:
    """Elapsed time per step: work that overlaps on several streams or devices adds up to more."""
    shrunk = min(device.busy_ps / device.work_ps, 1.0) if device.work_ps else 1.0
    return work.total_ps * shrunk / device.steps / MS


def _per_step_ms(device: DeviceFacts, time_ps: int) -> float:
    return round(time_ps / device.steps / MS, 3)


def _evaluate_update(context: Context, threshold: float) -> Advice | None:
    """Advice on an optimizer that launches kernels for each parameter."""
    device = context.device
    update = device.update if device is not None else None
    if device is None or update is None or update.launches < _PER_PARAMETER * device.steps:
        return None
    time = update.total_ps / device.steps / MS
    if context.percent(time) < threshold:
        return None
    advised = foretell_change(context, "optimizer", time, "launching the update parameter by parameter").advice(
        rule="optimizer.per-parameter",
        kind="eager_dispatch",
        title="Update all parameters in a few kernels",
        evidence=f"the update launches {update.launches / device.steps:.0f} kernels per step, parameter by parameter",
        actions=actions_for(context.framework, _UPDATE),
        tool="op-stats",
        confidence=0.75,
        rows=(Row("op-stats", update.name, round(time, 3)),),
    )
    return name_op(context, advised, update.name, 1, update.total_ps / device.steps)


CHAINS = Rule(
    id="kernels.elementwise",
    threshold_percent=15.0,
    evaluate=_evaluate_chains,
    yields_to=("eager_dispatch", "small_batch"),
)
ATTENTION = Rule(
    id="kernels.attention",
    threshold_percent=10.0,
    evaluate=_evaluate_attention,
    yields_to=("eager_dispatch", "small_batch"),
)
UPDATE = Rule(id="optimizer.per-parameter", threshold_percent=5.0, evaluate=_evaluate_update)
