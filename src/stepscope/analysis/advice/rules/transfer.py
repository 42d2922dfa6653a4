"""The same large data is copied or converted on its way into the step, again and again."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import without
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.loop_events import Activity
from stepscope.vocabulary.traits import OpTrait

_MEASURABLE_PERCENT = 1.0  # less than that is nobody's question

_ACTIONS: Actions = {
    "tensorflow": (
        "make a tf.constant or tf.Variable of it once, before the loop, and pass that",
        "feed batches through tf.data with .prefetch(tf.data.AUTOTUNE) instead of NumPy arguments",
        "keep it in the type that the step computes in, so that nothing is converted",
    ),
    "jax": (
        "jax.device_put it once, before the loop, and pass the device array",
        "keep it in the type that the step computes in: float64 NumPy arrays are converted on every call",
        "put the next batch on the device while the step runs",
    ),
    "pytorch": (
        "convert or move it once, before the loop: x = x.to(device, dtype)",
        "DataLoader(pin_memory=True) and .to(device, non_blocking=True) for what changes with every batch",
    ),
    "": ("copy what does not change once, before the loop", "copy what changes while the step before runs"),
}


def _evaluate(context: Context, threshold: float) -> Advice | None:
    copies = context.part_ms(Activity.TRANSFER)
    casts = _casts(context)
    share = context.percent(copies + casts)
    if share < context.least_of_input(threshold) or (share < threshold and _are_pageable(context, copies)):
        return None
    what = "copies data in" if copies >= casts else "converts data to another type or device"
    gain = without(context, copies + casts, "copying data in", parts=(Activity.TRANSFER,), competes_ms=copies + casts)
    return gain.advice(
        rule="input.transfer",
        kind="input_transfer",
        title="Copy data in once, not in every step",
        evidence=f"{share:.1f} % of the time of a step {what}{_besides_input(context, share)}",
        actions=actions_for(context.framework, _ACTIONS),
        tool="op-stats",
        confidence=0.8,
        rows=(_row(context, copies, casts),),
        intervals=context.intervals(Activity.TRANSFER if copies >= casts else Activity.OP),
    )


def _row(context: Context, copies: float, casts: float) -> Row:
    """The op that converts most, where converting is most of it and that op is among the overview's; else the input."""
    op = context.largest_op(OpTrait.CONVERTS) if casts > copies else None
    return Row("op-stats", op, round(casts, 3)) if op else Row("overview", "input", round(copies + casts, 3))


def _are_pageable(context: Context, copies: float) -> bool:
    """Whether copies out of memory that is not pinned are most of it; there is a rule for these."""
    device = context.device
    return device is not None and 2 * device.exposed_pageable_ps / device.steps / MS >= copies


def _besides_input(context: Context, share: float) -> str:
    """Why the breakdown of the steps has less input, where it does: it goes by the calls that copy."""
    counted = context.shares.get("input", 0.0)
    if context.has_device or context.loop is None or counted >= share - _MEASURABLE_PERCENT:
        return ""
    return (
        f"; the breakdown counts {counted:.1f} % as input (the copies themselves) and the rest as host compute (making"
        " what is copied, and giving its memory back)"
    )


def _casts(context: Context) -> float:
    """Conversions on the host, with the time that giving back what they made takes."""
    work, loop = context.work, context.loop
    if context.has_device or work is None or loop is None or not work.casts_ps:
        return 0.0
    casts = work.casts_ps / work.steps / MS
    moves_more = work.moves_ps > 2 * work.casts_ps
    return casts if moves_more else casts + context.per_step(loop.after_moves_ps) / MS


RULE = Rule(id="input.transfer", threshold_percent=10.0, evaluate=_evaluate, yields_to=("recompilation",))
