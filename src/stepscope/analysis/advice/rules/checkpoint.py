"""The loop pauses to save its state."""

from __future__ import annotations

from stepscope.analysis.account.account_text import cause_words
from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Finding, Rule
from stepscope.analysis.advice.rules.words import WORDS_OF_CLASS


def _find_saving(context: Context) -> Finding | None:
    saving = context.cause_ms("checkpoint")
    where = context.intervals("checkpoint")
    name = next((place.name.lstrip("$") for place in where if place.name), "")
    where_text = f", in {name}" if name else ""
    return Finding(
        part_ms=saving,
        share=f"{context.percent(saving):.1f} % of each step is {cause_words('checkpoint')}{where_text}",
        change="checkpoint",
        without="saving",
        parts=("checkpoint",),
        rows=(Row("overview", "checkpoint", round(saving, 3)),),
        intervals=where,
        confidence=0.9 if name else 0.7,
    )


RULES = (
    Rule(
        "checkpoint.stall", kind="checkpoint_stall", title="Save less often, or in the background", find=_find_saving,
        actions=WORDS_OF_CLASS["checkpoint_stall"].actions, tool="steps", yields_to=("recompilation",),
    ),
)  # fmt: skip
