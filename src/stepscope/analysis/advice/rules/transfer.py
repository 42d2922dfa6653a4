"""Large data is copied in or converted in every step; whether it is the same, no recording shows."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Actions, Finding, Rule
from stepscope.vocabulary.traits import OpTrait

_MORE_THAN_PAGEABLE = 10.0  # of the step: with less, that of pageable memory says what to do


ACTIONS: Actions = {
    "tensorflow": (
        "what stays the same: a tf.constant or tf.Variable, made once before the loop; batches: tf.data with"
        " .prefetch(tf.data.AUTOTUNE) instead of NumPy arguments",
        "store it in the dtype that the step computes in, so that nothing is converted",
    ),
    "jax": (
        "what stays the same: call jax.device_put once, before the loop; batches: put the next one on the device while"
        " the step runs",
        "store it in the dtype that the step computes in: float64 NumPy arrays are converted on every call",
    ),
    "pytorch": (
        "what stays the same: convert or move it once, before the loop (x = x.to(device, dtype)); batches:"
        " DataLoader(pin_memory=True) and .to(device, non_blocking=True)",
    ),
    "": ("copy what stays the same once, before the loop, and the next batch while the step runs",),
}


def _find(context: Context) -> Finding | None:
    copies, casts = context.cause_ms("transfer"), _casts_ms(context)
    share, copying = context.percent(copies + casts), copies >= casts
    if share < _MORE_THAN_PAGEABLE and _are_pageable(context, copies):
        return None
    what = "copying data in" if copying else "converting data to another dtype or device"
    return Finding(
        part_ms=copies + casts,
        share=f"{share:.1f} % of each step is {what}",
        change="copies_in" if context.has_device else "transfer" if copying else "converting",
        without="copying data in",
        parts=("transfer",) if context.has_device or copying else ("casts", "transfer"),
        rows=(_evidence_row(context, copies, casts),),
        intervals=context.intervals("transfer" if copying else "host_compute"),
    )


def _evidence_row(context: Context, copies: float, casts: float) -> Row:
    """The largest op that converts, if conversion dominates and the overview lists such an op; else the input."""
    op = context.largest_op(OpTrait.CONVERTS) if casts > copies else None
    return Row("op-stats", op, round(casts, 3)) if op else Row("overview", "transfer", round(copies + casts, 3))


def _are_pageable(context: Context, copies: float) -> bool:
    """Whether most of it is copies from pageable memory, which have their own rule."""
    device = context.device
    return device is not None and 2 * device.exposed_pageable_ps / device.steps / MS >= copies


def _casts_ms(context: Context) -> float:
    """Time per step of conversions on the host and of freeing their results."""
    work, loop = context.work, context.loop
    if context.has_device or work is None or loop is None or not work.casts_ps:
        return 0.0
    casts = work.casts_ps / work.steps / MS
    moves_more = work.moves_ps > 2 * work.casts_ps
    return casts if moves_more else casts + context.per_step(loop.after_moves_ps) / MS


RULE = Rule(
    "input.transfer", kind="input_transfer", title="Copy less data in with each step", find=_find,
    actions=ACTIONS, tool="op-stats", yields_to=("recompilation",),
)  # fmt: skip
