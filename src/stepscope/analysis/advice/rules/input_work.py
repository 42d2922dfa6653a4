"""Work of an input pipeline that could be less: pixels moved as floats, pictures decoded, elements dropped late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Actions, Finding, Rule
from stepscope.analysis.advice.rules.model import op_rows, share_of_ops
from stepscope.report import amount
from stepscope.vocabulary.traits import InputTrait

_MOVED_PERCENT = 15.0  # of the time of all ops of the input
_DECODED_PERCENT = 30.0  # of the time of all ops on the host
# Stages whose work is lost for dropped elements; sources such as file names and ranges cost nothing.
_WORK = ("Map", "ParallelMap", "Filter", "Batch", "PaddedBatch", "TFRecord", "TextLine", "FixedLengthRecord",
         "Interleave", "ParallelInterleave", "FlatMap")  # fmt: skip

_CAST_LATE: Actions = {
    "": (
        "flip, crop, pad and rotate the bytes first, then tf.cast, and scale to 0..1 in the same expression",
        "tf.image.resize returns floats whatever it gets: put it behind the crop, so that it reads fewer pixels",
    ),
}
_DECODE: Actions = {
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
_SHARD_EARLY: Actions = {
    "": (
        "call .shard(num_workers, index) first, on the list of files: Dataset.list_files(pattern, shuffle=False)"
        ".shard(n, i).interleave(open_file, num_parallel_calls=tf.data.AUTOTUNE)",
        "with tf.distribute, leave it to AutoShardPolicy.FILE in tf.data.Options().experimental_distribute",
    ),
}


def _find_early_cast(context: Context) -> Finding | None:
    """Pictures that are cast to floats and flipped, cropped or rotated afterwards: four times as many bytes to move."""
    order = context.pace.augmentation
    share = 100.0 * order.wide_ps / order.ops_ps if order is not None and order.ops_ps else 0.0
    if order is None or share < _MOVED_PERCENT:
        return None
    waits = context.percent(context.cause_ms("input"))
    return Finding(
        percent=waits,
        evidence=f"{waits:.1f} % of each step is spent waiting for input, and {share:.0f} % of the time of the input's"
        f" ops moves floats, mostly {order.largest}, though {order.cast} made them of a smaller type before",
        unknown="it does not show how fast the same ops are on bytes",
        rows=(Row("op-stats", order.largest.rpartition(":")[0] or order.largest, round(order.wide_ps / MS, 3)),),
    )


def _find_decoding(context: Context) -> Finding | None:
    """A device waits for input whose time is mostly decoding pictures, which the device can do."""
    decoding, percent = share_of_ops(context, "host", InputTrait.DECODES) if context.has_device else ((), 0.0)
    if not decoding or percent < _DECODED_PERCENT:
        return None
    waits = context.percent(context.cause_ms("input"))
    return Finding(
        percent=waits,
        evidence=f"{waits:.1f} % of each step is spent waiting for input, and {percent:.0f} % of the time of all ops on"
        f" the host is decoding, mostly {decoding[0]['name']}",
        unknown="it does not show how fast the device decodes",
        rows=op_rows(decoding),
    )


def _find_late_shard(context: Context) -> Finding | None:
    """A dataset that is sharded after its elements were made: every worker makes all, and drops those of the others."""
    report = context.read("tf-data")
    graph: Sequence[Mapping[str, Any]] = report.graph if report else ()
    shard = next((row for row in graph if str(row["name"]).startswith("Shard")), None)
    before = [row for row in graph if shard and _feeds(row, shard) and str(row["name"]).startswith(_WORK)]
    whole_us = amount(graph[0]["total_us"]) if graph else 0.0
    if shard is None or not before or not whole_us:
        return None
    percent = 100.0 * sum(amount(row["self_us"]) for row in before) / whole_us
    names = ", ".join(dict.fromkeys(str(row["name"]) for row in before))
    return Finding(
        percent=percent,
        evidence=f"{shard['long_name']} drops elements that {names} made before it:"
        f" {percent:.0f} % of the slowest call of the pipeline, on every worker",
        unknown="it does not show how many elements a worker keeps",
        rows=tuple(Row("tf-data", str(row["long_name"]), round(amount(row["self_us"]) / 1000, 3)) for row in before),
    )


def _feeds(row: Mapping[str, Any], shard: Mapping[str, Any]) -> bool:
    """Whether a stage makes elements for the shard: its long name begins with the shard's."""
    return row is not shard and str(row["long_name"]).startswith(str(shard["long_name"]))


RULES = (
    Rule(
        "input.cast-early", kind="input_preprocessing", actions=_CAST_LATE, tool="op-stats",
        title="Cast pictures to floats after moving their pixels", find=_find_early_cast, confidence=0.6,
        yields_to=("recompilation",),
    ),
    Rule(
        "input.decoding", kind="input_preprocessing", actions=_DECODE, tool="op-stats",
        title="Decode pictures on the device, or fewer pixels", find=_find_decoding, confidence=0.6,
        yields_to=("recompilation",),
    ),
    Rule(
        "input.shard-late", 10.0, kind="input_preprocessing", actions=_SHARD_EARLY, tool="tf-data",
        title="Shard the dataset before its elements are made", find=_find_late_shard, confidence=0.8,
    ),
)  # fmt: skip
