"""The step waits for input, and most of the input's time is decoding images: a device can decode them."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.loop_events import Activity
from stepscope.report import amount
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import InputTrait

_ACTIONS: Actions = {
    "tensorflow": (
        "decode on the GPU with NVIDIA DALI (fn.decoders.image(device='mixed'))",
        "tf.io.decode_and_crop_jpeg decodes only the crop, and tf.io.decode_jpeg(ratio=2) a smaller picture",
        "store the pictures at the size that the model takes, before training",
    ),
    "pytorch": (
        "decode on the GPU: torchvision.io.decode_jpeg(data, device='cuda') on a list of pictures, or NVIDIA DALI",
        "store the pictures at the size that the model takes, before training",
    ),
    "": (
        "decode on the device (NVIDIA DALI), or store the pictures at the size that the model takes, before training",
    ),
}
_OF_INPUT = 30.0  # percent of the time of all ops on the host


def _evaluate(context: Context, threshold: float) -> Advice | None:
    waits = context.part_ms(Activity.INPUT)
    report = context.read("op-stats") if context.has_device else None
    if report is None or context.percent(waits) < context.input_threshold(threshold):
        return None
    host = [row for row in report.rows if row["where"] == "host"]
    decoding = [row for row in host if name_has(f"{row['name']}:{row['type']}", InputTrait.DECODES)]
    whole = sum(amount(row["total_self_us"]) for row in host)
    spent = sum(amount(row["total_self_us"]) for row in decoding)
    if not whole or 100.0 * spent < _OF_INPUT * whole:
        return None
    return Advice(
        id="input.decoding",
        kind="input_preprocessing",
        title="Decode pictures on the device, or fewer pixels",
        evidence=f"{context.percent(waits):.1f} % of each step is spent waiting for input, and"
        f" {100.0 * spent / whole:.0f} % of the time of all ops on the host is decoding, mostly {decoding[0]['name']}",
        predicted_speedup=None,
        actions=actions_for(context.framework, _ACTIONS),
        tool="op-stats",
        confidence=0.6,
        rows=tuple(
            Row("op-stats", str(row["name"]), round(amount(row["total_self_us"]) / 1000, 3)) for row in decoding[:3]
        ),
    )


RULE = Rule(id="input.decoding", threshold_percent=10.0, evaluate=_evaluate, yields_to=("recompilation",))
