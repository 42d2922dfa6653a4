"""The input casts pictures to floats, and flips, crops or rotates them afterwards: four times as many bytes to move."""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.facts.loop_events import Activity

_OF_INPUT = 15.0  # percent of the time of all ops of the input

_ACTIONS = (
    "flip, crop, pad and rotate the bytes first, then tf.cast, and scale to 0..1 in the same expression",
    "tf.image.resize returns floats whatever it gets: put it behind the crop, so that it reads fewer pixels",
)


def _evaluate(context: Context, threshold: float) -> Advice | None:
    order = context.pace.augmentation if context.pace else None
    waits = context.percent(context.part_ms(Activity.INPUT))
    if order is None or not order.ops_ps or waits < context.input_threshold(threshold):
        return None
    share = 100.0 * order.wide_ps / order.ops_ps
    if share < _OF_INPUT:
        return None
    return Advice(
        id="input.cast-early",
        kind="input_preprocessing",
        title="Cast pictures to floats after moving their pixels",
        evidence=f"{waits:.1f} % of each step is spent waiting for input, and {share:.0f} % of the time of the input's"
        f" ops moves floats, mostly {order.largest}, though {order.cast} made them of a smaller type before",
        predicted_speedup=None,
        actions=_ACTIONS,
        tool="op-stats",
        confidence=0.6,
        rows=(Row("op-stats", order.largest.rpartition(":")[0] or order.largest, round(order.wide_ps / MS, 3)),),
    )


RULE = Rule(id="input.cast-early", threshold_percent=10.0, evaluate=_evaluate, yields_to=("recompilation",))
