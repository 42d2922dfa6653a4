"""Large data is copied in or converted in every step; whether it is the same, no recording shows."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Finding, Rule
from stepscope.analysis.advice.rules.words import WORDS_OF_CLASS
from stepscope.vocabulary.traits import OpTrait

_MORE_THAN_PAGEABLE = 10.0  # of the step: with less, that of pageable memory says what to do


def _find_copies_in(context: Context) -> Finding | None:
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
    return device is not None and 2 * device.per_step_ms(device.exposed_pageable_ps) >= copies


def _casts_ms(context: Context) -> float:
    """Time per step of conversions on the host and of freeing their results."""
    work, loop = context.work, context.loop
    if context.has_device or loop is None or not work.casts_ps:
        return 0.0
    casts = work.per_step_ms(work.casts_ps)
    moves_more = work.moves_ps > 2 * work.casts_ps
    return casts if moves_more else casts + context.per_step_ms(loop.after_moves_ps)


RULES = (
    Rule(
        "input.transfer", kind="input_transfer", title="Copy less data in with each step", find=_find_copies_in,
        actions=WORDS_OF_CLASS["input_transfer"].actions, tool="op-stats", yields_to=("recompilation",),
    ),
)  # fmt: skip
